//! The helper process: `python -m fieldstone._helper`, which has eccodes and matplotlib.
//!
//! One request and its frames, as `spec/helper-protocol.md` has them. The helper is found through
//! `FIELDSTONE_PYTHON`, beside this program (both come in one wheel), or as `python3`.

use std::io::{self, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use fieldstone::{Error, ErrorKind, Result};
use serde_json::{Value, json};

/// Longest header that either side sends.
const MAX_HEADER: usize = 16 << 20;
/// Largest payload that is taken.
const MAX_PAYLOAD: u64 = 4 << 30;
/// How much of what the helper says on stderr is told when it dies.
const LAST_WORDS: usize = 2_000;

/// One frame: its header and its payload.
pub type Frame = (Value, Vec<u8>);

/// Sends one request and returns what it is answered with before `done`.
pub fn ask(request: &Value, payload: &[&[u8]]) -> Result<Vec<Frame>> {
    let python = python();
    let child = Command::new(&python)
        .args(["-m", "fieldstone._helper"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(|e| {
        Error::unavailable(format!("cannot start the helper {} -m fieldstone._helper: {e}", python.display()))
            .with_hint("install the Python package fieldstone, or name its Python in FIELDSTONE_PYTHON")
    })?;
    let (frames, last_words) = std::thread::scope(|scope| {
        let stderr = child.stderr.take();
        let words = scope.spawn(move || {
            let mut text = Vec::new();
            if let Some(mut stderr) = stderr {
                let _ = stderr.read_to_end(&mut text);
            }
            text
        });
        let frames = converse(&mut child, request, payload);
        if frames.is_err() {
            // It may still wait for the rest of a request.
            let _ = child.kill();
        }
        (frames, words.join().unwrap_or_default())
    });
    let _ = child.wait();
    let broken = |e: io::Error| {
        let words = String::from_utf8_lossy(&last_words);
        let last = words.trim_end();
        let start = last.char_indices().rev().take(LAST_WORDS).last().map_or(0, |(i, _)| i);
        let line = last[start..].lines().last().unwrap_or("it said nothing");
        Error::unavailable(format!(
            "the helper {} -m fieldstone._helper died ({e}): {line}",
            python.display()
        ))
        .with_hint("install the Python package fieldstone, or name its Python in FIELDSTONE_PYTHON")
    };
    let mut frames = frames.map_err(broken)?;
    match frames.pop() {
        Some((last, _)) if last["kind"] == "done" => Ok(frames),
        Some((last, _)) => Err(told(&last)),
        None => Err(Error::internal("the helper answered nothing")),
    }
}

fn python() -> PathBuf {
    if let Some(named) = std::env::var_os("FIELDSTONE_PYTHON").filter(|v| !v.is_empty()) {
        return named.into();
    }
    let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.join("python")));
    beside.filter(|path| path.exists()).unwrap_or_else(|| "python3".into())
}

/// The error that an `error` frame tells.
fn told(frame: &Value) -> Error {
    let text = |name: &str| frame.get(name).and_then(Value::as_str);
    let kind = ErrorKind::ALL.into_iter().find(|kind| text("error_kind") == Some(kind.name()));
    let error =
        Error::new(kind.unwrap_or(ErrorKind::Internal), text("message").unwrap_or("the helper failed"));
    match text("hint") {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// Writes the request and reads up to `done` or `error`, which is the last frame.
fn converse(child: &mut Child, request: &Value, payload: &[&[u8]]) -> io::Result<Vec<Frame>> {
    let (Some(mut to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("no pipe"));
    };
    std::thread::scope(|scope| {
        let sent = scope.spawn(move || send(&mut to, request, payload));
        let mut from = BufReader::new(from);
        let mut frames = Vec::new();
        let read = loop {
            match receive(&mut from) {
                Ok(frame) => {
                    let last = frame.0["kind"] == "done" || frame.0["kind"] == "error";
                    frames.push(frame);
                    if last {
                        break Ok(frames);
                    }
                }
                Err(e) => break Err(e),
            }
        };
        // Closes the pipe, so that a sender that is still busy ends.
        drop(from);
        let sent = sent.join().unwrap_or_else(|_| Err(io::Error::other("the sender ended")));
        read.and_then(|frames| sent.map(|()| frames))
    })
}

fn send(to: &mut dyn Write, request: &Value, payload: &[&[u8]]) -> io::Result<()> {
    let header = request.to_string();
    let length: usize = payload.iter().map(|part| part.len()).sum();
    to.write_all(&(header.len() as u32).to_le_bytes())?;
    to.write_all(header.as_bytes())?;
    to.write_all(&(length as u64).to_le_bytes())?;
    payload.iter().try_for_each(|part| to.write_all(part))?;
    to.flush()
}

fn receive(from: &mut dyn Read) -> io::Result<Frame> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("its {what} is no frame"));
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_HEADER {
        return Err(wrong("header"));
    }
    let mut header = vec![0; length];
    from.read_exact(&mut header)?;
    let header = serde_json::from_slice(&header).map_err(|_| wrong("header"))?;
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_PAYLOAD {
        return Err(wrong("payload"));
    }
    // Grows as bytes come: a wrong length does not take memory.
    let mut payload = Vec::new();
    if from.take(length).read_to_end(&mut payload)? as u64 != length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((header, payload))
}

/// The request for a picture of `values`, which the arrays of `payload` follow.
pub fn plot_request(shape: &[usize], title: &str, label: &str, size: [u32; 2], coords: &[Value]) -> Value {
    json!({
        "op": "plot",
        "dtype": "<f8",
        "shape": shape,
        "title": title,
        "label": label,
        "size": size,
        "coords": coords,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_those_of_the_protocol() {
        let mut sent = Vec::new();
        send(&mut sent, &json!({"op": "version"}), &[b"ab", b"c"]).unwrap();
        assert_eq!(sent, b"\x10\0\0\0{\"op\":\"version\"}\x03\0\0\0\0\0\0\0abc");
        let (header, payload) = receive(&mut &sent[..]).unwrap();
        assert_eq!((header, &payload[..]), (json!({"op": "version"}), &b"abc"[..]));
        for n in 0..sent.len() {
            assert!(receive(&mut &sent[..n]).is_err(), "{n} bytes");
        }
    }

    #[test]
    fn errors_keep_kind_and_hint() {
        let error = told(&json!({"kind": "error", "error_kind": "Corrupt", "message": "m", "hint": "h"}));
        assert_eq!((error.kind(), error.message(), error.hint()), (ErrorKind::Corrupt, "m", Some("h")));
        assert_eq!(told(&json!({})).kind(), ErrorKind::Internal);
    }
}
