//! The helper process (B-5), `python -m fieldstone._helper`: requests that need eccodes, netCDF-C or matplotlib go to
//! it through a pipe, so that a library that crashes on a damaged file ends no other process.
//!
//! Invariants:
//! * if a helper dies, is silent for too long or sends an invalid frame, the error reports it with its last words; no
//!   wait for it is endless;
//! * the process ends with its [`Helper`];
//! * at most two frames are in memory, the one being looked at and the one being read.
//!
//! ```no_run
//! use fieldstone::helper::{Helper, HelperOptions};
//!
//! let mut helper = Helper::start(&HelperOptions::default())?;
//! let (facts, values) = helper.decode(&std::fs::read("one.grib").unwrap())?;
//! println!("{:?} {} bytes", facts.shape, values.len());
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use fieldstone_core::decoded::{Decoded, DecodedCoordinate};
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, Result};
pub(crate) use fieldstone_format::darshan::{DarshanAccess, DarshanJob, DarshanPart, DarshanRecord};
pub(crate) use fieldstone_format::helper::{
    Content, DeclaredFile, FieldFrame, MeshFrame, MeshFrameArray, Name, Reply, Texts, attribute_value,
};
use fieldstone_format::helper::{Request, read_reply, write_request};
use serde_json::{Map, Value};

/// Number of bytes kept of a helper's stderr.
const LAST_WORDS: usize = 4096;
/// Time in which a helper that closed its pipe must end.
const FAREWELL: Duration = Duration::from_secs(5);
/// Time to wait for the rest of stderr after the helper has ended; a child of it may hold the pipe.
const LAST_WORDS_COME: Duration = Duration::from_secs(1);
/// The advice if Python or a package is missing.
const INSTALL: &str =
    "pip install 'fieldstone[netcdf,grib]', or name a Python that has it in FIELDSTONE_PYTHON";

/// The code that Python runs: the helper without the package around it, whose loading takes longer than most answers.
/// The helper loads the whole package only if a request needs it; otherwise this is `python -P -m fieldstone._helper`.
const START: &str = r#"
import sys
from importlib.util import find_spec, module_from_spec
if spec := find_spec("fieldstone"):
    sys.modules["fieldstone"] = module_from_spec(spec)
from fieldstone._helper.__main__ import main
sys.exit(main())
"#;

/// Options for starting a helper.
#[derive(Debug, Clone)]
pub struct HelperOptions {
    /// The Python to run. If absent: `FIELDSTONE_PYTHON`, else `python3` or `python` next to this program, else
    /// `python3`.
    pub python: Option<PathBuf>,
    /// Time that it may be silent before it is given up.
    pub patience: Duration,
}

impl Default for HelperOptions {
    fn default() -> Self {
        HelperOptions { python: None, patience: Duration::from_secs(600) }
    }
}

/// The result of waiting for an answer.
#[derive(Debug)]
pub(crate) enum HelperEvent {
    /// A frame and its payload.
    Reply(Reply, Vec<u8>),
    /// The helper has ended, and how: "crashed (signal 11)".
    Died(String),
}

/// A reply with its payload; none at the end.
type Frame = Result<Option<(Reply, Vec<u8>)>>;

/// A running helper.
#[derive(Debug)]
pub struct Helper {
    python: PathBuf,
    child: Child,
    to: Option<ChildStdin>,
    frames: Receiver<Frame>,
    words: Arc<Mutex<Vec<u8>>>,
    /// Signals that the end of stderr was read.
    all_said: Receiver<()>,
    pub(crate) patience: Duration,
    /// Whether it ever answered: a helper that never did could not start.
    answered: bool,
}

impl Helper {
    /// Starts a helper. It loads its libraries when a request needs them.
    pub fn start(options: &HelperOptions) -> Result<Helper> {
        let python = options.python.clone().unwrap_or_else(find_python);
        let mut child = Command::new(&python)
            // -P: a file in the current folder must not replace a module.
            .args(["-P", "-c", START])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|e| {
                Code::LibraryMissing
                    .error(format!("cannot start the helper with {}: {e}", python.display()))
                    .with_hint(INSTALL)
            })?;
        let (Some(to), Some(from), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(Error::internal("the helper has no pipes"));
        };
        let words = Arc::new(Mutex::new(Vec::new()));
        let kept = words.clone();
        let thread = |name: &str| std::thread::Builder::new().name(format!("fieldstone-helper-{name}"));
        let failed = |e| Code::ProcessLimit.error(format!("cannot start a thread: {e}"));
        let (said, all_said) = sync_channel::<()>(1);
        let listener = move || {
            keep_last(stderr, &kept);
            let _ = said.send(());
        };
        thread("stderr").spawn(listener).map_err(failed)?;
        let (sender, frames) = sync_channel(0);
        let reader = move || {
            let mut from = BufReader::with_capacity(1 << 16, from);
            loop {
                let frame = read_reply(&mut from);
                let last = !matches!(frame, Ok(Some(_)));
                if sender.send(frame).is_err() || last {
                    return;
                }
            }
        };
        thread("frames").spawn(reader).map_err(failed)?;
        let patience = options.patience;
        Ok(Helper { python, child, to: Some(to), frames, words, all_said, patience, answered: false })
    }

    /// Whether its process is still running.
    pub(crate) fn is_running(&mut self) -> bool {
        self.to.is_some() && matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a request. [`Helper::next`], not this, reports a helper that has ended.
    pub(crate) fn send(&mut self, request: &Request<'_>, payload: &[&[u8]]) -> Result<()> {
        let Some(to) = &mut self.to else { return Ok(()) };
        match write_request(to, request, payload) {
            Err(error) if error.kind() == fieldstone_core::ErrorKind::Unavailable => {
                self.to = None;
                Ok(())
            }
            outcome => outcome,
        }
    }

    /// Waits for the next frame. Unavailable if the helper could not even start.
    pub(crate) fn next(&mut self) -> Result<HelperEvent> {
        let why = match self.frames.recv_timeout(self.patience) {
            Ok(Ok(Some((reply, payload)))) => {
                self.answered = true;
                return Ok(HelperEvent::Reply(reply, payload));
            }
            Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => None,
            Ok(Err(error)) => Some(error.message().to_owned()),
            Err(RecvTimeoutError::Timeout) => {
                let _ = self.child.kill();
                Some(format!("did not answer for {} s and was ended", self.patience.as_secs()))
            }
        };
        self.to = None;
        let status = self.end();
        let words = self.last_words();
        if let Some(signal) = status.and_then(signal_of)
            && (why.is_none() || signal != KILLED)
        {
            return Ok(HelperEvent::Died(format!("crashed (signal {signal})")));
        }
        let code = status.and_then(|status| status.code());
        if !self.answered && code.is_some_and(|code| code != 0) {
            return Err(Code::LibraryMissing
                .error(format!(
                    "cannot start the helper {} -m fieldstone._helper: {}",
                    self.python.display(),
                    words.as_deref().unwrap_or("it printed nothing")
                ))
                .with_hint(INSTALL));
        }
        let mut reason = why.unwrap_or_else(|| format!("ended (exit code {})", code.unwrap_or(0)));
        if let Some(words) = words {
            reason = format!("{reason}: {words}");
        }
        Ok(HelperEvent::Died(reason))
    }

    /// The values of one GRIB message, little-endian in C order, and then each coordinate.
    pub fn decode(&mut self, message: &[u8]) -> Result<(Decoded, Vec<u8>)> {
        self.send(&Request::Decode, &[message])?;
        let mut found = None;
        self.until_done(|reply, payload| {
            if let Reply::Decoded(facts) = reply {
                found = Some((facts, payload));
            }
        })?;
        found.ok_or_else(|| Error::internal("the helper decoded nothing"))
    }

    /// The catalog's declarations for GRIB messages: a variable for each, in their order, with an empty name if eccodes
    /// cannot read it; and the arrays of coordinates.
    pub(crate) fn grib_declared(&mut self, messages: &[&[u8]]) -> Result<(DeclaredFile, Vec<u8>)> {
        let lengths: Vec<usize> = messages.iter().map(|message| message.len()).collect();
        self.send(&Request::GribDeclared { lengths: &lengths }, messages)?;
        let mut found = None;
        self.until_done(|reply, payload| {
            if let Reply::Declared(file) = reply {
                found = Some((file, payload));
            }
        })?;
        found.ok_or_else(|| Error::internal("the helper declared nothing"))
    }

    /// A PNG of the arrays in `payload`; `what` has the keywords of `plot` in `spec/helper-protocol.md`.
    pub fn plot(&mut self, what: &Map<String, Value>, payload: &[&[u8]]) -> Result<Vec<u8>> {
        self.send(&Request::Plot(what), payload)?;
        let mut found = None;
        self.until_done(|reply, payload| {
            if reply == Reply::Image {
                found = Some(payload);
            }
        })?;
        found.ok_or_else(|| Error::internal("the helper drew nothing"))
    }

    /// Has the helper write files from a store; `what` has the keywords of `export` in `spec/helper-protocol.md`.
    /// Returns the helper's `exported`, and the omitted parts: file, part, reason.
    #[expect(clippy::type_complexity, reason = "two lists, named above")]
    pub fn export(
        &mut self,
        what: &Map<String, Value>,
    ) -> Result<(Map<String, Value>, Vec<(PathBuf, String, String)>)> {
        self.send(&Request::Export(what), &[])?;
        let (mut found, mut omitted) = (None, Vec::new());
        self.until_done(|reply, _| match reply {
            Reply::Exported(facts) => found = Some(facts),
            Reply::LeftOut { file, what, why } => omitted.push((PathBuf::from(file), what, why)),
            _ => {}
        })?;
        let found = found.ok_or_else(|| Error::internal("the helper exported nothing"))?;
        Ok((found, omitted))
    }

    /// The rows of a table in a Parquet file, in parts: `take` gets the columns with their types, the number of rows
    /// done and in total, and the rows of this part as CSV without a header.
    pub fn rows(
        &mut self,
        path: &Path,
        mut take: impl FnMut(&Texts, u64, u64, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let path = path
            .to_str()
            .ok_or_else(|| Code::Name.error(format!("the path {} is not UTF-8", path.display())))?;
        self.send(&Request::Rows { path }, &[])?;
        let mut failed = None;
        self.until_done(|reply, payload| {
            if let (Reply::Rows { columns, done, of }, None) = (reply, &failed)
                && let Err(error) = take(&columns, done, of, &payload)
            {
                failed = Some(error);
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    /// The records of a Darshan log, in parts: `take` gets the job first.
    pub(crate) fn darshan(
        &mut self,
        path: &Path,
        mut take: impl FnMut(DarshanPart) -> Result<()>,
    ) -> Result<()> {
        self.send(&Request::Darshan { path: path.as_os_str().as_encoded_bytes() }, &[])?;
        let mut failed = None;
        self.until_done(|reply, _| {
            if let (Reply::Darshan(part), None) = (reply, &failed) {
                failed = take(part).err();
            }
        })?;
        failed.map_or(Ok(()), Err)
    }

    fn until_done(&mut self, mut take: impl FnMut(Reply, Vec<u8>)) -> Result<()> {
        loop {
            match self.next()? {
                HelperEvent::Reply(Reply::Done, _) => return Ok(()),
                HelperEvent::Reply(Reply::Failed { code, message, hint }, _) => {
                    return Err(failure(code, message, hint));
                }
                HelperEvent::Reply(reply, payload) => take(reply, payload),
                HelperEvent::Died(how) => return Err(Code::HelperFailed.error(format!("the helper {how}"))),
            }
        }
    }

    /// Waits briefly for a process that closed its pipe, then ends it.
    fn end(&mut self) -> Option<ExitStatus> {
        let step = Duration::from_millis(5);
        for _ in 0..FAREWELL.as_millis() / step.as_millis() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(step);
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }

    /// The last line of stderr of a helper that has ended: its bytes may still be on their way.
    fn last_words(&self) -> Option<String> {
        let _ = self.all_said.recv_timeout(LAST_WORDS_COME);
        let kept = self.words.lock();
        let text = String::from_utf8_lossy(&kept);
        text.lines().map(str::trim).rfind(|line| !line.is_empty()).map(str::to_owned)
    }
}

impl Drop for Helper {
    fn drop(&mut self) {
        // The helper holds no data of its own: it need not finish.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The error of a `Failed` reply.
pub(crate) fn failure(code: Code, message: String, hint: Option<String>) -> Error {
    let error = code.error(message);
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

const KILLED: i32 = 9;

#[cfg(unix)]
fn signal_of(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal_of(_: ExitStatus) -> Option<i32> {
    None
}

/// Reads a stream to its end and keeps its last bytes.
fn keep_last(mut from: impl Read, kept: &Mutex<Vec<u8>>) {
    let mut part = [0; 1024];
    while let Ok(n @ 1..) = from.read(&mut part) {
        let mut kept = kept.lock();
        kept.extend_from_slice(&part[..n]);
        let excess = kept.len().saturating_sub(LAST_WORDS);
        kept.drain(..excess);
    }
}

/// The default Python for helpers, which a program that embeds Python sets.
static OWN_PYTHON: OnceLock<PathBuf> = OnceLock::new();

/// Sets the Python for helpers if neither their options nor `FIELDSTONE_PYTHON` name one. The first call counts.
pub fn use_python(python: PathBuf) {
    let _ = OWN_PYTHON.set(python);
}

/// `FIELDSTONE_PYTHON`, else the default one, else the Python next to this program, else `python3`.
fn find_python() -> PathBuf {
    if let Some(named) = std::env::var_os("FIELDSTONE_PYTHON").filter(|name| !name.is_empty()) {
        return named.into();
    }
    if let Some(own) = OWN_PYTHON.get() {
        return own.clone();
    }
    let program = std::env::current_exe().ok();
    let folder = program.as_deref().and_then(Path::parent);
    let beside = folder.and_then(|folder| {
        ["python3", "python"].into_iter().map(|name| folder.join(name)).find(|path| path.exists())
    });
    beside.unwrap_or_else(|| "python3".into())
}
