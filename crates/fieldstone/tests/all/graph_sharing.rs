//! Two processes put relations while two read, one of them a user who may not write to the store: no call is refused,
//! both find flushed relations in a second, no count falls, and no process writes another one's files.
//!
//! `FIELDSTONE_CRASH=full` goes on for a minute.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::processes::{Folder, check_clean, example, have_strace, open};
use fieldstone_testkit::require::{full, require};

/// A user with no rights of ours: nobody.
const NOBODY: u32 = 65_534;
const WRITERS: [&str; 2] = ["a", "b"];

fn start(trace: Option<&Path>, user: Option<(u32, &Path)>, arguments: &[&str]) -> Child {
    let mut command = match trace {
        None => Command::new(example("grapher")),
        Some(trace) => {
            let calls =
                "trace=openat,open,openat2,creat,rename,renameat,renameat2,link,linkat,unlink,unlinkat";
            let mut command = Command::new("strace");
            command
                .args(["-f", "-y", "-o", trace.to_str().unwrap(), "-e", calls, "--"])
                .arg(example("grapher"));
            command
        }
    };
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("XDG_CACHE_HOME");
    if let Some((uid, home)) = user {
        command.uid(uid).gid(uid).env("HOME", home);
    }
    command.spawn().unwrap()
}

/// The lines that a process printed, in words; it must have succeeded.
fn said(child: Child, who: &str) -> Vec<Vec<String>> {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{who}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}

fn number(word: &str) -> u64 {
    word.parse().unwrap()
}

/// A home for another user; `None` if this process may not act as one, or that user may not reach it.
fn other_user(folder: &Folder) -> Option<std::path::PathBuf> {
    let home = folder.0.join("home");
    std::fs::create_dir(&home).unwrap();
    std::os::unix::fs::chown(&home, Some(NOBODY), Some(NOBODY)).ok()?;
    std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o755)).unwrap();
    let reaches =
        Command::new(example("grapher")).uid(NOBODY).gid(NOBODY).current_dir(&home).output().is_ok();
    reaches.then_some(home)
}

#[test]
fn two_writers_and_two_readers_one_of_them_without_rights_hear_of_each_other_within_a_second() {
    let folder = Folder::new("graph-sharing");
    let url = folder.store();
    said(start(None, None, &["write", &url, "first", "0"]), "who makes the store");
    let home = other_user(&folder);
    require("root", home.is_some(), "another user's process needs root");
    let seconds = if full() { "60" } else { "8" };
    let writers: Vec<Child> =
        WRITERS.iter().map(|name| start(None, None, &["write", &url, name, seconds])).collect();
    let read = ["read", url.as_str(), seconds, WRITERS[0], WRITERS[1]];
    let mut readers = vec![start(None, None, &read)];
    readers.extend(home.as_deref().map(|home| start(None, Some((NOBODY, home)), &read)));
    let flushed: BTreeMap<&str, Vec<(u64, u64)>> = WRITERS
        .into_iter()
        .zip(writers)
        .map(|(name, child)| {
            (name, said(child, name).iter().map(|line| (number(&line[0]), number(&line[1]))).collect())
        })
        .collect();
    let mut slowest = 0;
    for (i, reader) in readers.into_iter().enumerate() {
        let seen = said(reader, &format!("reader {i}"));
        let end = seen.iter().map(|line| number(&line[2])).max().unwrap();
        for (name, flushes) in &flushed {
            let own: Vec<(u64, u64)> = seen
                .iter()
                .filter(|line| line[0] == *name)
                .map(|line| (number(&line[1]), number(&line[2])))
                .collect();
            assert!(own.len() > 10, "reader {i} saw {name} {} times", own.len());
            let last = own.last().unwrap().0;
            for (count, moment) in flushes.iter().filter(|(count, _)| *count <= last) {
                let (_, found) = own.iter().find(|(found, _)| found >= count).unwrap();
                slowest = slowest.max(found.saturating_sub(*moment));
            }
            let missed = flushes.iter().find(|(count, _)| *count > last);
            if let Some((_, moment)) = missed {
                slowest = slowest.max(end.saturating_sub(*moment));
            }
        }
    }
    let flushes: usize = flushed.values().map(Vec::len).sum();
    println!("{flushes} flushes of two writers; the slowest was found after {} ms", slowest / 1_000_000);
    // A loaded machine may take longer, if the short form runs next to other tests.
    assert!(slowest < if full() { 1 } else { 3 } * 1_000_000_000, "found after {} ms", slowest / 1_000_000);
    let store = open(&url);
    check_clean(&store);
    let check = store.graph().verify().unwrap();
    assert!(check.ok(), "{check:?}");
}

/// A process that puts and reads writes its own files in the index's folder, which are renamed when they are complete; a
/// reader without rights writes nothing into the store.
#[test]
fn segments_are_files_of_one_process_and_nobody_writes_to_one_that_has_its_name() {
    if !have_strace() {
        return;
    }
    let folder = Folder::new("graph-strace");
    let url = folder.store();
    said(start(None, None, &["write", &url, "first", "0"]), "who makes the store");
    let traces: Vec<_> = (0..4).map(|i| folder.0.join(format!("trace{i}"))).collect();
    let arguments: [&[&str]; 4] = [
        &["write", &url, "a", "3"],
        &["write", &url, "b", "3"],
        &["read", &url, "4", "a", "b"],
        &["read", &url, "4", "a", "b"],
    ];
    let children: Vec<Child> =
        traces.iter().zip(arguments).map(|(trace, arguments)| start(Some(trace), None, arguments)).collect();
    for (i, child) in children.into_iter().enumerate() {
        said(child, &format!("process {i}"));
    }
    let mut makers: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for (i, trace) in traces.iter().enumerate() {
        for line in std::fs::read_to_string(trace).unwrap().lines().filter(|line| line.contains("/graph/")) {
            let writes = ["O_WRONLY", "O_RDWR", "O_APPEND", "O_TRUNC"].iter().any(|flag| line.contains(flag));
            if writes && !line.contains(" = -1 ") {
                assert!(line.contains("O_CREAT|O_EXCL") || line.contains("O_EXCL"), "process {i}: {line}");
                let path = line.split('"').nth(1).unwrap().to_owned();
                assert!(!path.ends_with("/manifest") && !path.ends_with("/lock"), "process {i}: {line}");
                makers.entry(path).or_default().insert(i);
            }
        }
    }
    assert!(makers.values().all(|who| who.len() == 1), "{makers:?}");
    assert!(makers.keys().any(|path| path.ends_with(".segment")), "no process wrote the index: {makers:?}");
    assert!(makers.values().flatten().all(|who| *who >= 2), "who only puts needs no index: {makers:?}");
    println!("files made in the index's folder: {}", makers.len());
}
