//! Runs the program in a folder of its own, so that a test of a verb is three lines:
//!
//! ```
//! let t = TestStore::with(&["run=a variable=t step=6"]);
//! let done = t.run(["list", "store"]).ok();
//! assert_eq!(done.out(), "{run=a}{variable=t}{step=6}\n");
//! ```
#![allow(dead_code)] // each test file uses its own part

use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// A folder with, perhaps, a store named `store` in it.
pub struct TestStore {
    folder: PathBuf,
    /// Removes it at the end.
    _temporary: Option<tempfile::TempDir>,
}

/// How a run of the program ended.
pub struct Run {
    output: Output,
    what: String,
}

impl TestStore {
    /// An empty folder.
    pub fn empty() -> TestStore {
        let temporary = tempfile::tempdir().unwrap();
        TestStore { folder: temporary.path().to_owned(), _temporary: Some(temporary) }
    }

    /// A folder that stays.
    pub fn at(folder: &Path) -> TestStore {
        TestStore { folder: folder.to_owned(), _temporary: None }
    }

    /// A store with a field under each key, whose bytes are the key's text.
    pub fn with(keys: &[&str]) -> TestStore {
        let t = TestStore::empty();
        for key in keys {
            t.archive(key, key.as_bytes());
        }
        t
    }

    /// Archives bytes under `run=a variable=t step=6`.
    pub fn archive(&self, key: &str, bytes: &[u8]) {
        self.run_with(["archive", "store"].into_iter().chain(key.split(' ')), bytes).ok();
    }

    /// Archives floats as an array.
    pub fn archive_floats(&self, key: &str, values: &[f32], shape: &str) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let options = ["archive", "store", "--dtype", "<f4", "--shape", shape];
        self.run_with(options.into_iter().chain(key.split(' ')), &bytes).ok();
    }

    /// Runs the program in the folder.
    pub fn run<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Run {
        self.run_with(arguments, b"")
    }

    /// The same, with bytes on stdin.
    pub fn run_with<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>, stdin: &[u8]) -> Run {
        finish(self.command(arguments), stdin)
    }

    /// A run that is not started yet.
    pub fn command<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fieldstone"));
        command.args(arguments).current_dir(self.path()).env_remove("COLUMNS");
        // A loaded machine must not change what completion offers.
        command.env("FIELDSTONE_PATIENCE", "60000");
        command
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// A file below the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// The content of a file below the folder.
    pub fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.file(name)).unwrap()
    }

    /// Every plain file below a folder, with its bytes.
    pub fn files(&self, folder: &str) -> Vec<(PathBuf, Vec<u8>)> {
        let mut found = Vec::new();
        let mut folders = vec![self.file(folder)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let bytes = std::fs::read(&path).unwrap();
                    found.push((path, bytes));
                }
            }
        }
        found.sort();
        found
    }

    /// Flips a byte of the one place in the store's files where `needle` stands.
    pub fn damage(&self, needle: &[u8]) {
        for (path, mut bytes) in self.files("store") {
            if let Some(at) = bytes.windows(needle.len()).position(|w| w == needle) {
                bytes[at] ^= 1;
                return std::fs::write(path, bytes).unwrap();
            }
        }
        panic!("no file of the store holds {needle:?}");
    }
}

/// Runs a command with bytes on stdin.
pub fn finish(mut command: Command, stdin: &[u8]) -> Run {
    let what = format!("{command:?}");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    // A program that fails early does not read its stdin.
    let _ = pipe.write_all(stdin);
    drop(pipe);
    Run { output: child.wait_with_output().unwrap(), what }
}

impl Run {
    /// The run, which must have ended well.
    pub fn ok(self) -> Run {
        self.code(0)
    }

    /// The run, which must have ended with this code.
    pub fn code(self, code: i32) -> Run {
        assert_eq!(self.output.status.code(), Some(code), "{}\n{}{}", self.what, self.out(), self.err());
        self
    }

    /// How it ended; `None` for a signal.
    pub fn exit_code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// Stdout as text.
    pub fn out(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    /// Stdout.
    pub fn bytes(&self) -> &[u8] {
        &self.output.stdout
    }

    /// Stderr.
    pub fn err(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    /// Stdout as the one JSON document that it must be.
    pub fn json(&self) -> Value {
        let out = self.out();
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{}\n{e} in\n{out}", self.what))
    }

    /// Stderr must be an error with these words and a hint.
    pub fn says(self, words: &[&str]) -> Run {
        let err = self.err();
        assert!(err.starts_with("error: "), "{}\n{err}", self.what);
        assert!(err.contains("\nhint: "), "no hint: {}\n{err}", self.what);
        for word in words {
            assert!(err.contains(word), "no '{word}': {}\n{err}", self.what);
        }
        self
    }
}
