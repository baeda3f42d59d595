//! Maintenance on real files: calls of the kernel that fail, disks without room, stores that cannot be written, and copies
//! that somebody broke off. A call ends well or with an error of its kind; nothing that anybody sees is lost or doubled; and a
//! call without a fault then does the rest.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use fieldstone_testkit::require::{full, program, require};
use fieldstone_testkit::samples::checkout;

use crate::harness::{Run, TestStore, finish};

/// Calls that change files; `write` is left out, as it prints.
const CALLS: [&str; 14] = [
    "pwrite64",
    "pwritev",
    "ftruncate",
    "fallocate",
    "copy_file_range",
    "linkat",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "mkdir",
    "fdatasync",
    "fsync",
];

/// A verb of maintenance, and the stores that it leaves.
struct Verb {
    words: &'static [&'static str],
    /// Its target, beside `store`.
    target: Option<&'static str>,
}

const COMPACT: Verb = Verb { words: &["compact", "store", "--grace", "0"], target: None };
const PURGE: Verb = Verb { words: &["purge", "store", "--all", "--grace", "0", "--doit"], target: None };
const WIPE: Verb = Verb { words: &["wipe", "store", "run=c", "--doit"], target: None };
const MOVE: Verb = Verb { words: &["move", "store", "run=b", "--to", "other"], target: Some("other") };
const BACKUP: Verb = Verb { words: &["backup", "store", "other"], target: Some("other") };
const REBUILD: Verb = Verb { words: &["rebuild", "store"], target: None };

/// A store with logs that have ended: small and large fields, some of them overwritten or removed, and attributes.
fn store() -> TestStore {
    let t = TestStore::empty();
    for (round, run) in ["a", "b", "a", "c"].into_iter().enumerate() {
        for step in 0..2 {
            let length = if step == 0 { 40 } else { 1_200_000 };
            let bytes = vec![b'0' + round as u8; length];
            t.archive(&format!("run={run} variable=t step={step}"), &bytes);
        }
        t.run(["annotate", "store", "round", &round.to_string(), "--run", run]).ok();
    }
    t.archive("run=d variable=t step=0", b"removed");
    t.run(["remove", "store", "run=d", "--doit"]).ok();
    t.run(["find", "store"]).ok();
    t
}

/// A copy of the stores of a folder.
fn copy_of(t: &TestStore) -> TestStore {
    let copy = TestStore::empty();
    copy_all(&t.path().join("."), copy.path());
    copy
}

fn copy_all(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
}

/// The fields with their bytes, and the attributes, that a store shows; nothing if there is none.
fn answers(t: &TestStore, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    if !t.file(name).join("fieldstone.store").exists() {
        return found;
    }
    for line in t.run(["list", name]).ok().out().lines() {
        let bytes = t.run(["get", name, line]).ok();
        let first = bytes.bytes().first().copied().unwrap_or_default();
        found.insert(format!("{line} {} of {first}", bytes.bytes().len()));
    }
    let attributes = t.run(["find", name, "--jsonl"]).ok().out();
    found.extend(attributes.lines().map(|line| {
        let hit: serde_json::Value = serde_json::from_str(line).unwrap();
        format!("{} {} {}", hit["run"], hit["tag"], hit["value"])
    }));
    found
}

/// Both stores together show this; a copy may be in both.
fn shown(t: &TestStore, verb: &Verb) -> BTreeSet<String> {
    let mut shown = answers(t, "store");
    // A broken backup may show less: that is the backup's matter.
    if let Some(target) = verb.target.filter(|_| verb.words[0] != "backup") {
        shown.extend(answers(t, target));
    }
    shown
}

fn is_sound(t: &TestStore, verb: &Verb, context: &str) {
    for name in ["store"].into_iter().chain(verb.target) {
        if t.file(name).join("fieldstone.store").exists() {
            let verified = t.run(["verify", name]).ok();
            assert!(!verified.out().is_empty(), "{context}");
        }
    }
}

/// Checks how a call ended: well, or by an error that says what to do.
fn ended(run: &Run, context: &str) {
    let code = run.exit_code();
    assert!(code.is_some_and(|code| code != 1 && code < 64), "{context}: {code:?}\n{}", run.err());
    if code != Some(0) && code != Some(5) {
        assert!(run.err().contains("error: "), "{context}: {}", run.err());
    }
}

/// Runs a verb without a fault. A move whose first call did all but say so finds nothing left.
fn again(t: &TestStore, verb: &Verb) {
    let run = t.run(verb.words);
    let is_done = verb.words[0] == "move" && answers(t, "store").iter().all(|line| !line.contains("run=b"));
    assert!(run.exit_code() == Some(0) || is_done && run.exit_code() == Some(3), "{}", run.err());
}

/// Runs a verb in strace.
fn traced(t: &TestStore, verb: &Verb, options: &[&str]) -> Run {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq"]).args(options).arg(env!("CARGO_BIN_EXE_fieldstone")).args(verb.words);
    command.current_dir(t.path()).env("FIELDSTONE_PATIENCE", "60000");
    finish(command, b"")
}

/// How often a verb makes each call.
fn counted(t: &TestStore, verb: &Verb) -> Vec<(&'static str, u64)> {
    let trace = t.file("trace");
    let calls = format!("trace={}", CALLS.join(","));
    traced(t, verb, &["-o", trace.to_str().unwrap(), "-e", &calls]).ok();
    let text = std::fs::read_to_string(trace).unwrap();
    let count = |call: &str| {
        let begins = format!("{call}(");
        text.lines().filter(|line| line.contains(&format!(" {begins}")) || line.starts_with(&begins)).count()
    };
    CALLS.into_iter().map(|call| (call, count(call) as u64)).filter(|(_, count)| *count > 0).collect()
}

/// Lets calls of a verb fail, one for each run or all from one on.
fn fails_at_calls(verb: &Verb) {
    if !program("strace") {
        return;
    }
    let template = store();
    let before = shown(&template, verb);
    let whole = copy_of(&template);
    let counts = counted(&whole, verb);
    let after = shown(&whole, verb);
    let total: u64 = counts.iter().map(|(_, count)| count).sum();
    assert!(total > 3, "{counts:?}");
    let every = if full() { 1 } else { (total / 7).max(1) };
    let mut points = counts.iter().flat_map(|(call, count)| (1..=*count).map(move |n| (*call, n)));
    let mut struck = 0;
    for (i, (call, n)) in points.by_ref().enumerate().filter(|(i, _)| (*i as u64).is_multiple_of(every)) {
        for error in ["EIO", "ENOSPC"] {
            let from_there = if i % 2 == 0 { "+" } else { "" };
            let context = format!("{} with {error} at {call} {n}{from_there}", verb.words[0]);
            let t = copy_of(&template);
            let inject = format!("inject={call}:error={error}:when={n}{from_there}");
            let run = traced(&t, verb, &["-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]);
            ended(&run, &context);
            struck += u64::from(run.exit_code() != Some(0));
            is_sound(&t, verb, &context);
            let now = shown(&t, verb);
            assert!(now == before || now == after, "{context}: {now:?}");
            again(&t, verb);
            is_sound(&t, verb, &context);
            assert_eq!(shown(&t, verb), after, "{context}");
        }
    }
    println!("{}: {total} calls, {struck} errors", verb.words[0]);
}

#[test]
fn compact_with_calls_that_fail() {
    fails_at_calls(&COMPACT);
}

#[test]
fn purge_with_calls_that_fail() {
    fails_at_calls(&PURGE);
}

#[test]
fn wipe_with_calls_that_fail() {
    fails_at_calls(&WIPE);
}

#[test]
fn move_with_calls_that_fail() {
    fails_at_calls(&MOVE);
}

#[test]
fn backup_with_calls_that_fail() {
    fails_at_calls(&BACKUP);
}

#[test]
fn rebuild_with_calls_that_fail() {
    fails_at_calls(&REBUILD);
}

/// A mounted folder.
struct Mount<'a>(&'a Path);

impl Mount<'_> {
    fn new<'a>(path: &'a Path, arguments: &[&str]) -> Option<Mount<'a>> {
        let mounted = Command::new("mount").args(arguments).arg(path).output();
        let mounted = mounted.is_ok_and(|output| output.status.success());
        require("tmpfs", mounted, "a mount needs root").then_some(Mount(path))
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

#[test]
fn a_disk_that_is_full_at_any_step_ends_a_call_and_harms_nothing() {
    let template = store();
    let every = if full() { 40_000 } else { 1_100_000 };
    for verb in [&COMPACT, &PURGE, &WIPE, &MOVE, &REBUILD] {
        let before = shown(&template, verb);
        for room in (0..4_000_000).step_by(every) {
            let t = TestStore::empty();
            let folder = t.file("disk");
            std::fs::create_dir(&folder).unwrap();
            let Some(_mount) = Mount::new(&folder, &["-t", "tmpfs", "-o", "size=40m", "test"]) else {
                return;
            };
            copy_all(&template.path().join("."), &folder);
            let filler = folder.join("filler");
            let free = fs_free(&folder).saturating_sub(room as u64);
            assert!(
                Command::new("fallocate")
                    .args(["-l", &free.to_string()])
                    .arg(&filler)
                    .status()
                    .unwrap()
                    .success()
            );
            let context = format!("{} with room for {room} bytes", verb.words[0]);
            let t = TestStore::at(&folder);
            ended(&t.run(verb.words), &context);
            is_sound(&t, verb, &context);
            std::fs::remove_file(&filler).unwrap();
            let now = shown(&t, verb);
            again(&t, verb);
            let after = shown(&t, verb);
            assert!(now == before || now == after, "{context}: {now:?}");
            is_sound(&t, verb, &context);
        }
    }
}

/// Free bytes of a file system.
fn fs_free(path: &Path) -> u64 {
    let output = Command::new("df").args(["--output=avail", "-B1"]).arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().last().unwrap().trim().parse().unwrap()
}

#[test]
fn a_store_on_a_disk_for_reading_alone_is_read_and_backed_up_and_refuses_the_rest() {
    let template = store();
    let before = shown(&template, &COMPACT);
    let t = TestStore::empty();
    let folder = t.file("store");
    std::fs::create_dir(&folder).unwrap();
    let source = template.file("store");
    let Some(_mount) = Mount::new(&folder, &["--bind", source.to_str().unwrap()]) else { return };
    let read_only = ["-o", "remount,ro,bind"];
    assert!(Command::new("mount").args(read_only).arg(&folder).status().unwrap().success());
    assert_eq!(answers(&t, "store"), before);
    for verb in [&COMPACT, &PURGE, &WIPE, &MOVE] {
        let run = t.run(verb.words);
        ended(&run, verb.words[0]);
        assert_ne!(run.exit_code(), Some(0), "{}: {}", verb.words[0], run.out());
    }
    assert!(!t.file("other").exists(), "a move that cannot remove copies nothing");
    t.run(["verify", "store"]).ok();
    assert_eq!(answers(&t, "store"), before);
    t.run(["backup", "store", "copy"]).ok();
    t.run(["verify", "copy"]).ok();
    assert_eq!(answers(&t, "copy"), before);
}

#[test]
fn a_store_of_another_user_is_read_as_far_as_it_may_be_and_never_changed() {
    let t = store();
    if !program("setpriv") {
        return;
    }
    let is_root = Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n");
    if !require("root", is_root, "another user's process needs root") {
        return;
    }
    let before = shown(&t, &COMPACT);
    let other = |words: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=54321", "--regid=54321", "--clear-groups"]);
        command.arg(env!("CARGO_BIN_EXE_fieldstone")).args(words).current_dir(t.path()).env("HOME", "/tmp");
        finish(command, b"")
    };
    let mode = |path: &Path, mode: &str| {
        assert!(Command::new("chmod").arg(mode).arg(path).status().unwrap().success());
    };
    mode(t.path(), "755");
    if !require("root", other(&["--version"]).exit_code() == Some(0), "the program is closed to other users")
    {
        return;
    }
    let listed = other(&["list", "store"]).ok().out();
    assert_eq!(listed, t.run(["list", "store"]).ok().out());
    for verb in [&COMPACT, &PURGE, &WIPE, &MOVE] {
        let run = other(verb.words);
        ended(&run, verb.words[0]);
        assert_ne!(run.exit_code(), Some(0), "{}: {}", verb.words[0], run.out());
    }
    mode(&t.file("store"), "700");
    for words in [&["list", "store"][..], &["verify", "store"], COMPACT.words, PURGE.words, BACKUP.words] {
        let run = other(words);
        ended(&run, words[0]);
        assert_ne!(run.exit_code(), Some(0), "{}: {}", words[0], run.out());
    }
    assert_eq!(shown(&t, &COMPACT), before);
    t.run(["verify", "store"]).ok();
}

#[test]
fn a_store_that_was_copied_half_way_shows_nothing_wrong() {
    let t = store();
    let fields: BTreeSet<String> = answers(&t, "store");
    let mut files: Vec<_> = t.files("store").into_iter().map(|(path, _)| path).collect();
    files.retain(|path| !path.to_string_lossy().contains("/catalog/"));
    for turn in 0..2 {
        if turn == 1 {
            files.reverse();
        }
        for half in (0..files.len()).step_by(if full() { 1 } else { 4 }) {
            let copy = TestStore::empty();
            for (i, path) in files.iter().take(half + 1).enumerate() {
                let to = copy.path().join(path.strip_prefix(t.path()).unwrap());
                std::fs::create_dir_all(to.parent().unwrap()).unwrap();
                let mut bytes = std::fs::read(path).unwrap();
                // The last one was broken off.
                bytes.truncate(if i == half { bytes.len() / 2 } else { bytes.len() });
                std::fs::write(to, bytes).unwrap();
            }
            let context = format!("{half} of {} files", files.len());
            let listed = copy.run(["list", "store"]);
            ended(&listed, &context);
            for line in listed.out().lines() {
                let got = copy.run(["get", "store", line]);
                ended(&got, &context);
                if got.exit_code() == Some(0) {
                    let first = got.bytes().first().copied().unwrap_or_default();
                    let field = format!("{line} {} of {first}", got.bytes().len());
                    // Of a copy without the logs that replaced or removed it.
                    let is_older = line.contains("run=a") && first == b'0' || line.contains("run=d");
                    assert!(fields.contains(&field) || is_older, "{context}: {field}");
                }
            }
            for words in [&["verify", "store"][..], &["status", "store"], COMPACT.words, PURGE.words] {
                ended(&copy.run(words), &context);
            }
        }
    }
}

#[test]
fn maintenance_runs_on_stores_of_older_formats() {
    let folder = checkout().join("tests/compat/fixtures");
    let mut upgraded = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if !entry.path().join("store").is_dir() {
            continue;
        }
        let t = TestStore::empty();
        copy_all(&entry.path().join("store"), t.path());
        // Maintenance moves values to other files.
        let line = |text: &str| {
            let mut line: serde_json::Value = serde_json::from_str(text).unwrap();
            line["location"].take();
            line.to_string()
        };
        let lines = |t: &TestStore| {
            let listed = t.run(["list", "store", "--jsonl"]);
            ended(&listed, &name);
            (listed.exit_code(), listed.out().lines().map(line).collect::<Vec<_>>())
        };
        let before = lines(&t);
        for words in [COMPACT.words, PURGE.words] {
            let run = t.run(words);
            ended(&run, &name);
        }
        assert_eq!(lines(&t), before, "{name}");
        let run = t.run(["upgrade", "store"]);
        ended(&run, &name);
        upgraded += u64::from(run.exit_code() == Some(0));
        for words in [COMPACT.words, PURGE.words, BACKUP.words, REBUILD.words] {
            ended(&t.run(words), &name);
        }
        assert_eq!(lines(&t), before, "{name}");
        ended(&t.run(["verify", "store"]), &name);
    }
    assert!(upgraded > 5, "{upgraded} stores were upgraded");
}
