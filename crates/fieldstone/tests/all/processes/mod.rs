//! Shared by the tests with real processes: the example `writer`, folders, and the expected visible state.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use fieldstone::{ErrorKind, FieldStore, OpenOptions, ReadOptions, Request};
use fieldstone_testkit::fields::content;
use fieldstone_testkit::require::require;

/// Whether strace is there and may trace.
pub fn have_strace() -> bool {
    let traced = Command::new("strace")
        .args(["-f", "-o", "/dev/null", "-e", "inject=getpid:signal=SIGCONT", "true"])
        .stderr(Stdio::null())
        .status();
    require("strace", traced.is_ok_and(|s| s.success()), "strace is missing or may not trace")
}

/// A folder that is removed when this value is dropped.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Folder {
        let base = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
        let path = base.join(format!("fieldstone-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn store(&self) -> String {
        self.0.join("store").to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The example `writer`, which cargo builds with the tests.
pub fn writer() -> PathBuf {
    example("writer")
}

/// An example of this crate.
pub fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    static BUILT: std::sync::Mutex<()> = std::sync::Mutex::new(());
    {
        let _one = BUILT.lock().unwrap();
        // Cargo builds the examples with all tests of the crate, but not for one test that is named.
        if !program.exists() {
            let mut cargo = Command::new(env!("CARGO"));
            cargo.args(["build", "--quiet", "--package", "fieldstone", "--example", name]);
            if !cfg!(debug_assertions) {
                cargo.arg("--release");
            }
            assert!(cargo.status().unwrap().success(), "cannot build the example {name}");
        }
    }
    assert!(program.exists(), "{} is not built: run cargo build --examples", program.display());
    program
}

/// Starts the writer, under strace with these options if there are any.
pub fn start(strace: &[&str], arguments: &[&str]) -> Child {
    let mut command = match strace {
        [] => Command::new(writer()),
        options => {
            let mut command = Command::new("strace");
            command.arg("-f").args(options).arg("--").arg(writer());
            command
        }
    };
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// The number of flushes acknowledged to a finished or killed writer.
pub fn acknowledged(child: Child) -> u64 {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // A killed process may have written its last line in part.
    text.split_inclusive('\n').filter(|line| line.ends_with('\n')).count() as u64
}

pub fn open(url: &str) -> fieldstone::Store {
    fieldstone::open(url, &OpenOptions::default()).unwrap()
}

/// Checks a run with `acknowledged` acknowledged flushes as a new reader sees it: these, perhaps the one in progress,
/// no flush in part, nothing after them. Returns the number of visible flushes.
pub fn check_run(store: &dyn FieldStore, run: &str, acknowledged: u64) -> u64 {
    let there = |step: u64| {
        let key = [("run", run), ("variable", "v"), ("step", &step.to_string())];
        match store.get(&key, &ReadOptions::default()) {
            Ok(field) => {
                let bytes = field.read().unwrap_or_else(|e| panic!("{run} {step}: {e}"));
                assert!(bytes == content(run, step, bytes.len()), "{run} {step}: wrong bytes");
                assert!(bytes.len() >= 100, "{run} {step}: {} bytes", bytes.len());
                true
            }
            Err(e) if e.kind() == ErrorKind::NotFound => false,
            Err(e) => panic!("{run} {step}: {e}"),
        }
    };
    let mut flushes = 0;
    loop {
        let found = [0, 1, 2].map(|i| there(3 * flushes + i));
        match found {
            [true, true, true] => flushes += 1,
            [false, false, false] => break,
            _ => panic!("{run}: flush {flushes} is there in part: {found:?}"),
        }
    }
    assert!(
        (acknowledged..=acknowledged + 1).contains(&flushes),
        "{run}: {acknowledged} flushes were acknowledged, {flushes} are visible"
    );
    flushes
}

/// `verify` finds nothing.
pub fn check_clean(store: &dyn FieldStore) {
    match store.verify(&Request::new()) {
        // A kill may come before there is anything.
        Err(e) if e.code() == fieldstone::Code::StoreNotFound => {}
        report => {
            let report = report.unwrap();
            assert!(report.ok(), "{:?}", report.damaged);
        }
    }
}
