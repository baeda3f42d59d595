//! Files that the standard input and output of this process are redirected to; commands that it starts inherit them.
//!
//! Linux names the file of a descriptor (`/proc/self/fd`); other systems do not, so there are none.
//!
//! Invariants:
//! * a stream is a regular file at its path: not a terminal, a device, a removed file, or a file in the folder of the
//!   store; of an input that is a pipe, only that fact is recorded;
//! * the flags of a file, its length and the stream's offset at the beginning of the execution show how it was opened:
//!   a file that was empty then has no bytes of older writers (G-61).

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::io::{Seek, stderr, stdin, stdout};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use fieldstone_core::value::Value;
use rustix::fs::{OFlags, fcntl_getfl};

use crate::interop::lineage::props::count;

/// How a stream has its file, as the shell operator that opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamMode {
    /// `<`
    Read,
    /// `>`: it was empty.
    Write,
    /// `>>`: its old content stays in front of new bytes.
    Append,
    /// `<>`: new bytes overwrite its old content from the beginning.
    Update,
    /// `2>&1`: standard error goes to the file of standard output.
    Joined,
}

/// A standard stream that is a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFile {
    /// `stdin`, `stdout` or `stderr`.
    pub name: &'static str,
    /// The number of its descriptor.
    pub number: u32,
    /// The file's full path.
    pub path: PathBuf,
    /// How it is opened.
    pub mode: StreamMode,
    /// Its offset at the beginning, in bytes.
    pub offset: u64,
}

impl StreamMode {
    fn name(self) -> &'static str {
        match self {
            StreamMode::Read => "read",
            StreamMode::Write => "write",
            StreamMode::Append => "append",
            StreamMode::Update => "update",
            StreamMode::Joined => "stdout",
        }
    }
}

impl StreamFile {
    /// The present path of its file, which may have been renamed; with its metadata.
    pub fn now(&self) -> Option<(PathBuf, Metadata)> {
        let (input, output, error) = (stdin(), stdout(), stderr());
        match self.number {
            0 => place(0, input.as_fd()),
            1 => place(1, output.as_fd()),
            _ => place(2, error.as_fd()),
        }
        .map(|(path, facts, _)| (path, facts))
    }
}

/// The path of a descriptor's file, if the file is still there.
fn place(number: u32, descriptor: BorrowedFd<'_>) -> Option<(PathBuf, Metadata, File)> {
    let file = File::from(descriptor.try_clone_to_owned().ok()?);
    let facts = file.metadata().ok().filter(Metadata::is_file)?;
    let path = fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
    // If the file was removed, or another root hides it, the link points elsewhere.
    let there = fs::metadata(&path).ok()?;
    ((there.dev(), there.ino()) == (facts.dev(), facts.ino())).then_some((path, facts, file))
}

fn look(name: &'static str, number: u32, descriptor: BorrowedFd<'_>) -> Option<(StreamFile, (u64, u64))> {
    let (path, facts, mut file) = place(number, descriptor)?;
    let flags = fcntl_getfl(descriptor).ok()?;
    let access = flags & OFlags::ACCMODE;
    let offset = file.stream_position().ok()?;
    let mode = match number {
        0 if access == OFlags::WRONLY => return None,
        0 => StreamMode::Read,
        _ if access == OFlags::RDONLY => return None,
        _ if flags.contains(OFlags::APPEND) => StreamMode::Append,
        _ if facts.len() == 0 => StreamMode::Write,
        // Another command of the same redirection wrote the content.
        _ if offset > 0 => StreamMode::Append,
        _ => StreamMode::Update,
    };
    Some((StreamFile { name, number, path, mode, offset }, (facts.dev(), facts.ino())))
}

/// This process's streams that are files outside a folder. Facts that cannot be recorded go to `notes`.
pub fn own(without: Option<&Path>, notes: &mut Vec<String>) -> Vec<StreamFile> {
    let without = without.map(|folder| fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()));
    let (input, output, error) = (stdin(), stdout(), stderr());
    let all = [
        look("stdin", 0, input.as_fd()),
        look("stdout", 1, output.as_fd()),
        look("stderr", 2, error.as_fd()),
    ];
    let mut streams: Vec<StreamFile> = Vec::new();
    let mut written = None;
    for (mut stream, file) in all.into_iter().flatten() {
        if without.as_ref().is_some_and(|folder| stream.path.starts_with(folder)) {
            continue;
        }
        if stream.path.to_str().is_none() {
            notes.push(format!("{}: its path is not UTF-8, so it has no vertex", stream.path.display()));
            continue;
        }
        if stream.number == 2 && written == Some(file) {
            stream.mode = StreamMode::Joined;
        }
        written = (stream.number == 1).then_some(file);
        streams.push(stream);
    }
    streams
}

/// The description of streams at the end, if a command renamed one of its files; else `None`.
pub fn described_again(streams: &[StreamFile], piped: bool) -> Option<Value> {
    let mut renamed = BTreeMap::new();
    for stream in streams.iter().filter(|stream| stream.mode != StreamMode::Read) {
        let now = stream.now().filter(|(path, _)| *path != stream.path);
        renamed.extend(now.and_then(|(path, _)| Some((stream.name, path.to_str()?.to_owned()))));
    }
    let Some(Value::Map(mut all)) = described(streams, piped).filter(|_| !renamed.is_empty()) else {
        return None;
    };
    for (name, facts) in &mut all {
        if let (Some(path), Value::Map(facts)) = (renamed.get(name.as_str()), facts) {
            facts.push(("renamed".to_owned(), Value::Text(path.clone())));
        }
    }
    Some(Value::Map(all))
}

/// Whether the input of this process comes through a pipe.
pub fn is_piped() -> bool {
    let input = stdin();
    let file = input.as_fd().try_clone_to_owned().map(File::from);
    let kind = file.and_then(|file| file.metadata()).map(|facts| facts.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_socket())
}

/// The description of streams: path, mode, and the offset if it is not at the beginning; for an input that is a pipe,
/// only the mode.
pub fn described(streams: &[StreamFile], piped: bool) -> Option<Value> {
    let one = |stream: &StreamFile| {
        let mut pairs = vec![
            ("path".to_owned(), Value::Text(stream.path.to_str()?.to_owned())),
            ("mode".to_owned(), Value::Text(stream.mode.name().to_owned())),
        ];
        if stream.mode == StreamMode::Read && stream.offset > 0 {
            pairs.push(("offset".to_owned(), count(stream.offset)));
        }
        Some((stream.name.to_owned(), Value::Map(pairs)))
    };
    let mut all: Vec<(String, Value)> = streams.iter().filter_map(one).collect();
    if piped {
        all.push(("stdin".to_owned(), Value::Map(vec![("mode".to_owned(), Value::Text("pipe".to_owned()))])));
    }
    (!all.is_empty()).then_some(Value::Map(all))
}
