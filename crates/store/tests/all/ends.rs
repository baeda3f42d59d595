//! How a log ends: by its writer after a failure (R11), by somebody else while its process is gone or sleeps (R12), and
//! because it is long enough (R33).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::*;
use crate::takeovers::{close, compact};
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_format::log::{FOOT, FrameInfo, SideRecord};
use fieldstone_format::log_end::{EndReason, LogEnd, parse_file_name};
use fieldstone_journal::Session;
use fieldstone_journal::medium::objects::{ObjectMedium, Objects};
use fieldstone_journal::medium::posix::FileMedium;
use fieldstone_journal::medium::posix::ending::EndedLog;
use fieldstone_journal::writer::LogLimits;
use fieldstone_store::conformance::Opening;
use fieldstone_store::local::{LocalOptions, LocalStore};

/// A grace, and a moment beyond it.
const GRACE: u64 = 60 * SECOND;
const LATER: u64 = 61 * SECOND;

/// Names in the folder of logs that end in `kind`.
fn named(world: &SimWorld, kind: &str) -> Vec<PathBuf> {
    let mut found = files(world, "logs");
    found.retain(|path| path.extension().is_some_and(|extension| extension == kind));
    found
}

/// The content of the only end file.
fn the_end(world: &SimWorld) -> LogEnd {
    let found = named(world, "end");
    assert_eq!(found.len(), 1, "{found:?}");
    LogEnd::decode(&world.read(&found[0]).unwrap()).unwrap()
}

/// Maintenance by a process.
fn end_logs(env: &Env) -> Vec<EndedLog> {
    FileMedium::new(env.clone(), Path::new(ROOT)).unwrap().end_logs(GRACE).unwrap()
}

fn flush(store: &Store, key: &str, value: &[u8]) -> fieldstone_core::Result<()> {
    put(store, key, value).and_then(|()| store.flush(&Session::default()))
}

fn has(store: &Store, key: &str) -> bool {
    listed(store).contains(&format!("{{run=a}}{{variable={key}}}{{}}"))
}

/// Whether a field is there: all readers agree, also after a power cut, and nothing is damaged.
fn is_there(world: &SimWorld, former: &Store, key: &str) -> bool {
    former.refresh().unwrap();
    let seen = has(former, key);
    let cuts: Vec<SimWorld> = (0..4).map(|seed| world.power_cut(seed)).collect();
    for world in std::iter::once(world).chain(&cuts) {
        let fresh = open(world, "c");
        assert_eq!(has(&fresh, key), seen, "a new reader disagrees about {key}");
        let report = fresh.verify(&Request::new()).unwrap();
        assert!(report.ok(), "{report:?}");
        assert!(report.notes.iter().all(|note| !note.contains("is not a file of the store")), "{report:?}");
        assert!(fresh.status().unwrap().problems.iter().all(|problem| problem.code.is_none()));
    }
    seen
}

#[test]
fn r11_a_failed_sync_makes_the_end_file_first() {
    let world = SimWorld::new(1);
    let (writer, former) = (open(&world, "a"), open(&world, "b"));
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    world.clear_trace();
    world.schedule(Plan::new(Fault::Io).kind(OpKind::SyncData).path(".log"));
    error(flush(&writer, "run=a,variable=lost", b"2"), ErrorKind::Unavailable);
    let end = the_end(&world);
    assert_eq!((end.sequence, end.why), (1, EndReason::Failed));
    let frames = commits(&world, &named(&world, "log")[0]);
    assert_eq!((end.end, end.uid, &*end.host), (frames.len() as u64, 1000, "a"));
    // Whole and synced before it has its name, and the name is durable.
    let calls = world.trace();
    let at = |kind, part: &str| {
        calls
            .iter()
            .rposition(|op| op.kind == kind && op.ok && op.path.to_string_lossy().contains(part))
            .unwrap()
    };
    let order = [
        at(OpKind::Write, ".new-"),
        at(OpKind::SyncData, ".new-"),
        at(OpKind::Link, ".new-"),
        at(OpKind::SyncDir, "logs"),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert!(is_there(&world, &former, "kept") && !is_there(&world, &former, "lost"));
    assert_eq!(open(&world, "a").status().unwrap().writers[0].state, "closed");
    flush(&writer, "run=a,variable=after", b"3").unwrap();
    assert!(is_there(&world, &former, "after") && !is_there(&world, &former, "lost"));
    assert_eq!(named(&world, "log").len(), 2);
}

/// A frame that was whole for readers, and whose sync failed, never comes back.
#[test]
fn r11_readers_do_not_see_what_was_reported_lost() {
    let world = SimWorld::new(1);
    let (env, former) = (world.process("a"), open(&world, "b"));
    let writer = open_in(&env, &Opening::default()).unwrap();
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    let whole = {
        flush(&writer, "run=a,variable=lost", b"2").unwrap();
        world.read(&named(&world, "log")[0]).unwrap()
    };
    assert!(has(&former, "lost"));
    // The same again, as of a writer whose disk takes no more once its sync has failed.
    let world = SimWorld::new(1);
    let (env, former) = (world.process("a"), open(&world, "b"));
    let writer = open_in(&env, &Opening::default()).unwrap();
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    world.schedule(Plan::new(Fault::Io).kind(OpKind::SyncData).path(".log"));
    error(flush(&writer, "run=a,variable=lost", b"2"), ErrorKind::Unavailable);
    let log = named(&world, "log").remove(0);
    let mut bytes = world.read(&log).unwrap();
    bytes.extend_from_slice(&whole[bytes.len()..]);
    world.overwrite(&log, &bytes).unwrap();
    world.advance(2 * SECOND);
    assert!(!is_there(&world, &former, "lost") && is_there(&world, &former, "kept"));
}

#[test]
fn r11_where_no_end_file_can_be_made_the_next_header_says_the_end() {
    for (n, spoil) in [0, 1].into_iter().enumerate() {
        let world = SimWorld::new(1);
        world.set_links(spoil != 0);
        let (writer, former) = (open(&world, "a"), open(&world, "b"));
        flush(&writer, "run=a,variable=kept", b"1").unwrap();
        world.schedule(Plan::new(Fault::Io).kind(OpKind::SyncData).path(".log"));
        world.set_max_files((spoil == 1).then(|| world.files().len() as u64));
        error(flush(&writer, "run=a,variable=lost", b"2"), ErrorKind::Unavailable);
        world.clear_faults();
        assert!(named(&world, "end").is_empty(), "{n}");
        flush(&writer, "run=a,variable=after", b"3").unwrap();
        assert!(is_there(&world, &former, "after") && !is_there(&world, &former, "lost"));
    }
}

#[test]
fn r11_a_store_of_format_1_gets_no_end_files() {
    let world = SimWorld::new(1);
    let how = Opening { format: Some(1), ..Opening::default() };
    let writer = open_in(&world.process("a"), &how).unwrap();
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    world.schedule(Plan::new(Fault::Io).kind(OpKind::SyncData).path(".log"));
    error(flush(&writer, "run=a,variable=lost", b"2"), ErrorKind::Unavailable);
    world.advance(200_000 * SECOND);
    assert!(named(&world, "end").is_empty() && end_logs(&world.namesake("a")).is_empty());
    assert!(named(&world, "ending").is_empty());
}

/// The moments at which the others act on a writer that sleeps in a flush.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Meanwhile {
    /// It has a second name before the flush, and an end file while it sleeps.
    End,
    /// Both while it sleeps.
    NameAndEnd,
    /// Its second name while it sleeps, and nothing else.
    Name,
    /// Both before the flush.
    Before,
}

/// A flush that stops at its n-th call while others end the log; whether it came to that call.
fn sleeps(meanwhile: Meanwhile, n: u64) -> bool {
    let world = SimWorld::new(n);
    let env = world.process("a");
    let (writer, former) = (open_in(&env, &Opening::default()).unwrap(), open(&world, "b"));
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    // Another machine of this name: for it, this process is gone.
    let other = world.namesake("a");
    let name = || {
        assert!(end_logs(&other).is_empty());
        assert_eq!(named(&world, "ending").len(), 1);
    };
    let end = || {
        world.advance(LATER);
        let ended = end_logs(&other);
        assert!(
            ended.len() == 1 && ended[0].why == EndReason::Gone && ended[0].process == env.identity.process()
        );
    };
    if matches!(meanwhile, Meanwhile::End | Meanwhile::Before) {
        name();
    }
    if meanwhile == Meanwhile::Before {
        end();
    }
    let stop = world.stop_nth(&env, n);
    let thread = std::thread::spawn({
        let (writer, stop) = (writer.clone(), stop.clone());
        move || {
            let outcome = flush(&writer, "run=a,variable=slow", b"2");
            stop.end();
            outcome
        }
    });
    let stopped = stop.wait();
    if stopped {
        if matches!(meanwhile, Meanwhile::NameAndEnd | Meanwhile::Name) {
            name();
        }
        // The writer may have been faster.
        if matches!(meanwhile, Meanwhile::NameAndEnd | Meanwhile::End) && named(&world, "end").is_empty() {
            end();
        }
    }
    stop.resume();
    let outcome = thread.join().unwrap();
    let is_in = is_there(&world, &former, "slow");
    match &outcome {
        Ok(()) => assert!(is_in, "{meanwhile:?}, {n}: an acknowledged flush is gone"),
        Err(failure) => {
            assert_eq!(failure.code(), Code::LogEnded, "{failure}");
            assert!(failure.message().contains("variable=slow") && failure.hint().is_some(), "{failure}");
            assert!(!is_in, "{meanwhile:?}, {n}: beyond its end");
        }
    }
    if meanwhile == Meanwhile::Name && outcome.is_ok() && !named(&world, "end").is_empty() {
        assert_eq!((the_end(&world).why, the_end(&world).sequence), (EndReason::Asked, 2));
    }
    assert!(meanwhile != Meanwhile::Name || outcome.is_ok(), "{n}: it makes the end file itself");
    assert!(meanwhile != Meanwhile::Before || outcome.is_err(), "{n}");
    // It goes on in a new log; where that of this flush was ended behind it, the next flush learns of it.
    if let Err(failure) = flush(&writer, "run=a,variable=after", b"3") {
        assert!(failure.code() == Code::LogEnded && outcome.is_ok(), "{failure}");
        assert!(!is_there(&world, &former, "after"));
        flush(&writer, "run=a,variable=after", b"3").unwrap();
    }
    assert!(is_there(&world, &former, "after") && is_there(&world, &former, "kept"));
    assert_eq!(is_there(&world, &former, "slow"), is_in, "{meanwhile:?}, {n}");
    stopped
}

#[test]
fn r12_a_writer_that_sleeps_anywhere_acknowledges_only_what_counts() {
    for meanwhile in [Meanwhile::End, Meanwhile::NameAndEnd, Meanwhile::Name, Meanwhile::Before] {
        let stops = (1..).take_while(|n| sleeps(meanwhile, *n)).count();
        assert!(stops > 8, "{meanwhile:?}: {stops}");
    }
}

/// A handle that did nothing for long looks before it writes: its values go into the next log.
#[test]
fn r12_a_writer_that_wakes_between_flushes_loses_nothing() {
    for has_end in [false, true] {
        let world = SimWorld::new(1);
        let (writer, former) = (open(&world, "a"), open(&world, "b"));
        flush(&writer, "run=a,variable=kept", b"1").unwrap();
        put(&writer, "run=a,variable=large", &pattern(2 << 20, 1)).unwrap();
        let other = world.namesake("a");
        end_logs(&other);
        world.advance(1_000 * SECOND);
        if has_end {
            assert_eq!(end_logs(&other).len(), 1);
        }
        writer.flush(&Session::default()).unwrap();
        assert_eq!(the_end(&world).sequence, 1);
        assert_eq!(named(&world, "log").len(), 2);
        assert!(is_there(&world, &former, "large") && is_there(&world, &former, "kept"));
        assert_eq!(get(&former, "run=a,variable=large").unwrap(), pattern(2 << 20, 1));
    }
}

/// Names the log of a handle, ends it, takes it over and removes its files, as a maintainer does for whom its process is gone.
fn take_over(world: &SimWorld) {
    let other = open_in(&world.namesake("a"), &Opening::default()).unwrap();
    for _ in 0..4 {
        compact(&other);
        world.advance(SECOND);
    }
    let left = named(world, "log");
    assert!(left.is_empty(), "{left:?}");
}

/// A writer that slept until its log was taken over and removed has lost nothing that it acknowledged.
#[test]
fn r12_a_writer_whose_log_was_taken_over_goes_on() {
    for (slept, size, first) in
        [(1_000, 1, 1), (1_000, 2 << 20, 1), (1_000, 1, 2 << 20), (1_000, 2 << 20, 2 << 20)]
    {
        let world = SimWorld::new(1);
        let (writer, former) = (open(&world, "a"), open(&world, "b"));
        flush(&writer, "run=a,variable=kept", &pattern(first, 1)).unwrap();
        world.advance(slept * SECOND);
        take_over(&world);
        flush(&writer, "run=a,variable=next", &pattern(size, 2)).unwrap();
        assert!(is_there(&world, &former, "kept") && is_there(&world, &former, "next"), "{size}");
        for (key, bytes) in [("kept", pattern(first, 1)), ("next", pattern(size, 2))] {
            assert_eq!(get(&writer, &format!("run=a,variable={key}")).unwrap(), bytes, "{key} of {size}");
        }
    }
}

/// A writer that slept too short to look first, or whose data log went with archived values, says in its flush that the log
/// was ended, names the keys, and goes on.
#[test]
fn r12_a_flush_into_a_log_that_was_taken_over_names_its_keys() {
    for (slept, first, size) in [(1, 1, 1), (1, 2 << 20, 1), (1, 1, 2 << 20), (1, 2 << 20, 2 << 20)] {
        let world = SimWorld::new(1);
        let (writer, former) = (open(&world, "a"), open(&world, "b"));
        flush(&writer, "run=a,variable=kept", &pattern(first, 1)).unwrap();
        put(&writer, "run=a,variable=slow", &pattern(size, 2)).unwrap();
        take_over(&world);
        let data = world.files().iter().filter(|path| path.extension().is_some_and(|e| e == "data")).count();
        world.advance(slept * SECOND);
        let failure = flush(&writer, "run=a,variable=late", b"2").unwrap_err();
        assert_eq!(failure.code(), Code::LogEnded, "{first}, {size}, {data}: {failure}");
        assert!(failure.message().contains("variable=slow") && failure.message().contains("variable=late"));
        assert!(is_there(&world, &former, "kept") && !is_there(&world, &former, "slow"));
        flush(&writer, "run=a,variable=after", b"3").unwrap();
        assert!(is_there(&world, &former, "after") && is_there(&world, &former, "kept"));
    }
}

/// A log that is gone without a takeover that has all of it was lost, whatever else was taken over.
#[test]
fn a_log_that_is_removed_beside_takeovers_is_lost() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    let other = open(&world, "c");
    flush(&other, "run=a,variable=other", b"0").unwrap();
    close(&other);
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    let own = named(&world, "log");
    compact(&open(&world, "b"));
    let own: Vec<_> = named(&world, "log").into_iter().filter(|path| own.contains(path)).collect();
    assert_eq!(own.len(), 1);
    world.process("x").disk.unlink(&own[0]).unwrap();
    let failure = flush(&writer, "run=a,variable=next", b"2").unwrap_err();
    assert_eq!(failure.code(), Code::LogGone, "{failure}");
}

/// A file system that counts names in its own way, and has no links, ends nothing.
#[test]
fn r12_a_second_name_without_links_asks_for_nothing() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    let log = named(&world, "log").remove(0);
    world.process("b").disk.link(&log, Path::new("/elsewhere")).unwrap();
    world.set_links(false);
    flush(&writer, "run=a,variable=next", b"2").unwrap();
    assert!(named(&world, "end").is_empty() && named(&world, "log").len() == 1);
    // With links, it is as good as the name that maintenance gives.
    world.set_links(true);
    flush(&writer, "run=a,variable=last", b"3").unwrap();
    assert_eq!((the_end(&world).sequence, the_end(&world).why), (3, EndReason::Asked));
    flush(&writer, "run=a,variable=after", b"4").unwrap();
    assert_eq!((named(&world, "log").len(), listed(&open(&world, "c")).len()), (2, 4));
}

#[test]
fn r12_a_grace_lies_between_second_name_and_end_file() {
    let world = SimWorld::new(1);
    let env = world.process("a");
    let writer = open_in(&env, &Opening::default()).unwrap();
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    let gone = world.process("a");
    let closed = open_in(&gone, &Opening::default()).unwrap();
    flush(&closed, "run=b,variable=kept", b"1").unwrap();
    closed.close(&Session::default()).unwrap();
    world.kill(&gone);
    let next = world.process("a");
    assert!(end_logs(&next).is_empty() && named(&world, "ending").is_empty(), "it lives");
    world.kill(&env);
    assert!(end_logs(&next).is_empty());
    assert_eq!((named(&world, "ending").len(), named(&world, "end").len()), (1, 0));
    world.advance(GRACE - 10 * SECOND);
    assert!(end_logs(&next).is_empty() && named(&world, "end").is_empty());
    world.advance(20 * SECOND);
    let ended = end_logs(&next);
    assert_eq!(ended.len(), 1);
    let EndedLog { writer, host, process, sequence, why } = &ended[0];
    assert_eq!((&**host, *process, *sequence, *why), ("a", env.identity.process(), 1, EndReason::Gone));
    let end = the_end(&world);
    assert_eq!((end.writer, end.sequence, end.why), (*writer, 1, EndReason::Gone));
    assert!(end_logs(&next).is_empty(), "once");
    let states = open(&world, "a").status().unwrap().states();
    assert_eq!((states.get("ended"), states.get("closed"), states.len()), (Some(&1), Some(&1), 2));
}

#[test]
fn r12_a_log_that_is_silent_for_a_day_is_ended() {
    let world = SimWorld::new(1);
    let (writer, other) = (open(&world, "a"), world.process("b"));
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    world.advance(86_300 * SECOND);
    assert!(end_logs(&other).is_empty() && named(&world, "ending").is_empty());
    world.advance(200 * SECOND);
    assert!(end_logs(&other).is_empty() && named(&world, "ending").len() == 1);
    world.advance(LATER);
    assert_eq!(end_logs(&other)[0].why, EndReason::Silent);
    // A writer that wakes has begun a new log by then: its old one is a day old.
    flush(&writer, "run=a,variable=after", b"2").unwrap();
    assert!(is_there(&world, &open(&world, "b"), "after"));
}

#[test]
fn r12_a_log_without_a_commit_ends_before_its_first() {
    let world = SimWorld::new(1);
    let env = world.process("a");
    let writer = open_in(&env, &Opening::default()).unwrap();
    writer.journal().create().unwrap();
    world.kill_nth(&env, Some(OpKind::SyncData), 1);
    assert!(flush(&writer, "run=a,variable=lost", b"1").is_err());
    let log = named(&world, "log").remove(0);
    let whole = world.read(&log).unwrap();
    // Its frame is torn.
    world.truncate(&log, whole.len() as u64 - 10).unwrap();
    let next = world.process("a");
    assert!(end_logs(&next).is_empty());
    world.advance(LATER);
    let ended = end_logs(&next);
    assert_eq!((ended.len(), ended[0].sequence, the_end(&world).hash), (1, 0, 0));
    world.overwrite(&log, &whole).unwrap();
    assert!(!is_there(&world, &open(&world, "b"), "lost"));
}

#[test]
fn r12_without_links_nothing_is_ended() {
    let world = SimWorld::new(1);
    world.set_links(false);
    let env = world.process("a");
    let writer = open_in(&env, &Opening::default()).unwrap();
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    world.kill(&env);
    for _ in 0..3 {
        assert!(end_logs(&world.process("a")).is_empty());
        world.advance(LATER);
    }
    assert!(named(&world, "ending").is_empty() && named(&world, "end").is_empty());
}

#[test]
fn r12_each_user_ends_his_own_logs_and_the_owner_of_the_folder_all() {
    let world = SimWorld::new(1);
    world.set_uid("bobs", 7);
    world.set_uid("carols", 8);
    let alice = world.process("a");
    let owner = open_in(&alice, &Opening::default()).unwrap();
    flush(&owner, "run=a,variable=kept", b"1").unwrap();
    for folder in ["", "/logs", "/data", "/boards"] {
        world.permissions().set_mode(Path::new(&format!("{ROOT}{folder}")), 0o1777).unwrap();
    }
    let bob = world.process("bobs");
    flush(&open_in(&bob, &Opening::default()).unwrap(), "run=b,variable=kept", b"1").unwrap();
    world.kill(&bob);
    world.kill(&alice);
    world.advance(100_000 * SECOND);
    assert!(end_logs(&world.process("carols")).is_empty() && named(&world, "ending").is_empty());
    end_logs(&world.process("bobs"));
    assert_eq!(named(&world, "ending").len(), 1, "his own");
    end_logs(&world.process("a"));
    assert_eq!(named(&world, "ending").len(), 2, "all");
    world.advance(LATER);
    assert_eq!(end_logs(&world.process("a")).len(), 2);
    // An end file of nobody who may ends nothing.
    let reader = open(&world, "c");
    assert_eq!(listed(&reader).len(), 2);
    let ends = named(&world, "end");
    for path in &ends {
        let mut end = LogEnd::decode(&world.read(path).unwrap()).unwrap();
        (end.sequence, end.end) = (0, 0);
        world.overwrite(path, &end.encode()).unwrap();
    }
    assert_eq!(listed(&open(&world, "c")).len(), 0);
    ends.iter().for_each(|path| world.permissions().chown(path, 8).unwrap());
    assert_eq!(listed(&open(&world, "c")).len(), 2);
}

/// Another user may take the name of a second name: its writer sees one name, and goes on.
#[test]
fn r12_what_only_has_the_name_of_a_second_name_ends_nothing() {
    let world = SimWorld::new(1);
    let (writer, former) = (open(&world, "a"), open(&world, "b"));
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    let log = named(&world, "log").remove(0);
    world.process("b").disk.create_new(&log.with_extension("ending")).unwrap();
    world.advance(LATER);
    assert!(end_logs(&world.namesake("a")).is_empty());
    flush(&writer, "run=a,variable=next", b"2").unwrap();
    assert!(is_there(&world, &former, "next") && named(&world, "end").is_empty());
}

#[test]
fn r12_a_log_that_lost_commits_is_not_ended() {
    let world = SimWorld::new(1);
    let env = world.process("a");
    let writer = open_in(&env, &Opening::default()).unwrap();
    (0..3).for_each(|n| flush(&writer, &format!("run=a,variable=v{n}"), b"1").unwrap());
    world.kill(&env);
    let log = named(&world, "log").remove(0);
    let length = commits(&world, &log).len() as u64;
    world.truncate(&log, length - 20).unwrap();
    for _ in 0..3 {
        assert!(end_logs(&world.process("a")).is_empty());
        world.advance(LATER);
    }
    assert!(named(&world, "ending").is_empty());
}

/// A commit beyond an end file never counts, also for a reader that saw it before.
#[test]
fn r12_a_reader_that_saw_more_goes_back_to_the_end() {
    let world = SimWorld::new(1);
    let (writer, former) = (open(&world, "a"), open(&world, "b"));
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    let log = named(&world, "log").remove(0);
    let first = commits(&world, &log);
    let ends = FrameInfo::decode_foot(&first[first.len() - FOOT..], first.len() as u64).unwrap();
    flush(&writer, "run=a,variable=beyond", b"2").unwrap();
    assert!(has(&former, "beyond"));
    let end = LogEnd {
        writer: fieldstone_format::log::parse_file_name(log.file_name().unwrap().to_str().unwrap()).unwrap(),
        store: writer.journal().home().id,
        sequence: 1,
        end: ends.end(),
        hash: ends.hash,
        time: 0,
        uid: 1000,
        why: EndReason::Administrator,
        host: "b".into(),
    };
    let file = world.process("b").disk.create_new(&log.with_extension("end")).unwrap();
    file.write_at(&end.encode(), 0).unwrap();
    file.sync_data().unwrap();
    world.process("b").disk.sync_dir(log.parent().unwrap()).unwrap();
    world.advance(2 * SECOND);
    assert!(!is_there(&world, &former, "beyond") && is_there(&world, &former, "kept"));
}

#[test]
fn r12_a_damaged_end_file_is_named_and_ends_nothing() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    world.schedule(Plan::new(Fault::Io).kind(OpKind::SyncData).path(".log"));
    error(flush(&writer, "run=a,variable=lost", b"2"), ErrorKind::Unavailable);
    let end = named(&world, "end").remove(0);
    world.flip(&end, 60, 1).unwrap();
    let reader = open(&world, "b");
    assert!(has(&reader, "kept"));
    let report = reader.verify(&Request::new()).unwrap();
    let name = end.file_name().unwrap().to_str().unwrap();
    assert!(parse_file_name(name).is_some());
    assert!(report.damaged.iter().any(|damage| damage.file == format!("logs/{name}")), "{report:?}");
}

/// The weak profile shows a second name late, too: the grace is two minutes at least.
#[test]
fn r12_the_grace_is_two_minutes_where_files_show_late() {
    let world = SimWorld::new(1);
    world.weak(30 * SECOND);
    let env = world.process("a");
    let writer = open_in(&env, &Opening::default()).unwrap();
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    world.kill(&env);
    let other = world.process("a");
    world.advance(LATER);
    assert!(end_logs(&other).is_empty());
    world.advance(LATER);
    assert!(end_logs(&other).is_empty() && named(&world, "ending").len() == 1);
    world.advance(LATER);
    assert_eq!(end_logs(&other).len(), 1);
}

/// The same on a real disk: the number of names, and the time of an inode.
#[test]
fn r12_a_second_name_is_noticed_on_a_real_disk() {
    let folder = tempfile::tempdir().unwrap();
    let env = Env::real();
    let how = LocalOptions { writable: true, native: true, ..LocalOptions::default() };
    let writer = Arc::new(LocalStore::open(env.clone(), folder.path(), how.clone()).unwrap());
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    let logs = folder.path().join("logs");
    let log = std::fs::read_dir(&logs).unwrap().next().unwrap().unwrap().path();
    let file = env.disk.open_plain(&log, false).unwrap();
    let (before, names) = (file.inode_time().unwrap(), file.stat().unwrap().links);
    std::thread::sleep(std::time::Duration::from_millis(20));
    std::fs::hard_link(&log, log.with_extension("ending")).unwrap();
    assert!(file.inode_time().unwrap() > before);
    assert_eq!((names, file.stat().unwrap().links), (1, 2));
    flush(&writer, "run=a,variable=asked", b"2").unwrap();
    let end = LogEnd::decode(&std::fs::read(log.with_extension("end")).unwrap()).unwrap();
    assert_eq!((end.sequence, end.why), (2, EndReason::Asked));
    flush(&writer, "run=a,variable=after", b"3").unwrap();
    // Nobody else ends the log of a process that lives.
    let medium = FileMedium::new(env.clone(), folder.path()).unwrap();
    assert_eq!(medium.end_logs(0).unwrap(), []);
    let reader = Arc::new(LocalStore::open(env, folder.path(), how).unwrap());
    assert_eq!(listed(&reader).len(), 3);
    assert!(reader.verify(&Request::new()).unwrap().ok());
    assert_eq!(std::fs::read_dir(&logs).unwrap().count(), 4);
}

fn short_logs(env: &Env, limits: LogLimits) -> Store {
    let options = LocalOptions { limits, ..Opening::default().local(ROOT) };
    Arc::new(LocalStore::open(env.clone(), Path::new(ROOT), options).unwrap())
}

#[test]
fn r33_ten_thousand_commits_fill_a_log() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let writer = open(&world, "a");
    let count = LogLimits::default().commits;
    (0..count).for_each(|_| flush_one(&writer, "run=a,variable=t", b"1"));
    assert_eq!(named(&world, "log").len(), 1);
    flush_one(&writer, "run=a,variable=t", b"2");
    assert_eq!(named(&world, "log").len(), 2);
    let status = open(&world, "b").status().unwrap();
    let states = status.states();
    assert_eq!((states.get("closed"), states.get("open")), (Some(&1), Some(&1)));
    assert_eq!(get(&open(&world, "b"), "run=a,variable=t").unwrap(), b"2");
}

#[test]
fn r33_bytes_and_a_day_fill_a_log_too() {
    let world = SimWorld::new(1);
    let writer = short_logs(&world.process("a"), LogLimits { bytes: 100_000, ..LogLimits::default() });
    for n in 0..5 {
        flush_one(&writer, &format!("run=a,variable=v{n}"), &pattern(40_000, n));
    }
    assert_eq!(named(&world, "log").len(), 2);
    world.advance(90_000 * SECOND);
    flush_one(&writer, "run=a,variable=day", b"1");
    assert_eq!(named(&world, "log").len(), 3);
    assert_eq!(count_all(&open(&world, "b")), 6);
}

/// Lists, versions and news are right where a log follows another.
#[test]
fn r33_readers_do_not_notice_the_border() {
    let world = SimWorld::new(1);
    let writer = short_logs(&world.process("a"), LogLimits { commits: 3, ..LogLimits::default() });
    let former = open(&world, "b");
    let mut versions = Vec::new();
    for n in 0..8u64 {
        let note = SideRecord { kind: 0x7777, bytes: [n as u8][..].into() };
        writer.journal().unflushed().add(vec![note], &Session::default()).unwrap();
        flush_one(&writer, "run=a,variable=t", &pattern(30, n));
        let version = former.version().unwrap();
        assert!(versions.last() != Some(&version), "a commit is a new version");
        versions.push(version);
        assert_eq!(get(&former, "run=a,variable=t").unwrap(), pattern(30, n));
        assert_eq!(get(&writer, "run=a,variable=t").unwrap(), pattern(30, n));
    }
    assert_eq!(named(&world, "log").len(), 3);
    for (n, version) in versions.iter().enumerate() {
        let how = Opening { at: Some(version.clone()), ..Opening::default() };
        let then = open_in(&world.process("c"), &how).unwrap();
        assert_eq!(get(&then, "run=a,variable=t").unwrap(), pattern(30, n as u64));
        let feed = former.journal().looks().feed().unwrap();
        let older = former.journal().looks().older(feed.snapshot(), version).unwrap();
        let seen: u64 = older.heads().iter().map(|(_, sequence)| sequence).sum();
        assert_eq!(seen, n as u64 + 1);
    }
    let feed = former.journal().looks().feed().unwrap();
    let commits: usize = feed.logs().iter().map(|(log, _)| feed.commits(*log, 0).unwrap().count()).sum();
    assert_eq!(commits, 8);
}

/// A log of objects is left as one in a file.
#[test]
fn r33_a_log_of_objects_is_left_too() {
    let (env, objects) = (SimWorld::new(1).process("a"), Arc::<Objects>::default());
    let medium = || Arc::new(ObjectMedium::new(env.clone(), objects.clone()));
    let limits = LogLimits { commits: 2, ..LogLimits::default() };
    let options = LocalOptions { limits, ..Opening::default().local("objects:") };
    let writer = Arc::new(LocalStore::open_in(env.clone(), medium(), options.clone()).unwrap());
    for n in 0..5 {
        flush_one(&writer, &format!("run=a,variable=v{n}"), &pattern(2 << 20, n));
    }
    let reader = Arc::new(LocalStore::open_in(env.clone(), medium(), options).unwrap());
    assert_eq!((objects.folders("logs/").len(), listed(&reader).len()), (3, 5));
    assert_eq!(get(&reader, "run=a,variable=v4").unwrap(), pattern(2 << 20, 4));
    assert_eq!(reader.status().unwrap().states().get("closed"), Some(&2));
}

/// An attempt is as old as its first log.
#[test]
fn r33_an_attempt_keeps_its_age_over_the_border() {
    let world = SimWorld::new(1);
    let limits = LogLimits { commits: 2, ..LogLimits::default() };
    let attempt = |host: &str, name: &str| {
        let how = Opening { attempt: name.into(), ..Opening::default() };
        let options = LocalOptions { limits, ..how.local(ROOT) };
        Arc::new(LocalStore::open(world.process(host), Path::new(ROOT), options).unwrap())
    };
    let one = attempt("a", "one");
    flush_one(&one, "run=a,variable=t", b"one");
    let two = attempt("b", "two");
    flush_one(&two, "run=a,variable=t", b"two");
    (0..4).for_each(|_| flush_one(&one, "run=a,variable=t", b"late"));
    assert!(named(&world, "log").len() > 3);
    assert_eq!(get(&open(&world, "c"), "run=a,variable=t").unwrap(), b"two");
}

/// A transaction over the border commits whole, or not at all.
#[test]
fn r33_a_transaction_over_the_border_is_one() {
    for commits in [true, false] {
        let world = SimWorld::new(1);
        let env = world.process("a");
        let writer = short_logs(&env, LogLimits { commits: 2, ..LogLimits::default() });
        let id = writer.begin().unwrap();
        let joined = short_logs(&world.process("b"), LogLimits { commits: 2, ..LogLimits::default() });
        for n in 0..5 {
            put_in(&writer, &format!("run=a,variable=v{n}"), b"1", id).unwrap();
            writer.flush(&Session::from(id)).unwrap();
            put_in(&joined, &format!("run=a,variable=w{n}"), b"1", id).unwrap();
            joined.flush(&Session::from(id)).unwrap();
        }
        assert!(named(&world, "log").len() >= 6);
        let reader = open(&world, "c");
        assert_eq!(listed(&reader).len(), 0);
        assert_eq!(reader.status().unwrap().transactions.len(), 1);
        writer.decide(id, commits, &Session::default()).unwrap();
        let seen = if commits { 10 } else { 0 };
        assert_eq!((listed(&reader).len(), listed(&open(&world, "c")).len()), (seen, seen));
        assert!(open(&world, "c").status().unwrap().transactions.is_empty());
        assert!(reader.verify(&Request::new()).unwrap().ok());
    }
}

/// Values that wait in sessions and name bytes of the old files stay whole: a log is left later, or its bytes are copied.
#[test]
fn r33_nothing_that_waits_is_lost_at_the_border() {
    let world = SimWorld::new(1);
    let writer = short_logs(&world.process("a"), LogLimits { commits: 2, ..LogLimits::default() });
    let id = writer.begin().unwrap();
    put_in(&writer, "run=a,variable=large", &pattern(2 << 20, 1), id).unwrap();
    for n in 0..3 {
        flush_one(&writer, &format!("run=a,variable=v{n}"), b"1");
    }
    assert_eq!(named(&world, "log").len(), 1, "it is left later");
    for n in 3..6 {
        flush_one(&writer, &format!("run=a,variable=v{n}"), b"1");
    }
    assert!(named(&world, "log").len() > 1, "but not never");
    writer.flush(&Session::from(id)).unwrap();
    writer.decide(id, true, &Session::default()).unwrap();
    let reader = open(&world, "b");
    assert_eq!(get(&reader, "run=a,variable=large").unwrap(), pattern(2 << 20, 1));
    assert_eq!(listed(&reader).len(), 7);
    assert!(reader.verify(&Request::new()).unwrap().ok());
}

fn kept() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/compat/ends")
}

/// The small reader that knows only spec/ reads it as well: `tests/compat/test_ends.py`.
#[test]
fn r12_the_kept_store_has_a_whole_frame_beyond_an_end() {
    let options = LocalOptions { must_exist: true, ..LocalOptions::default() };
    let store = Arc::new(LocalStore::open(Env::real(), &kept().join("store"), options).unwrap());
    let names = ["after", "kept"].map(|name| format!("{{run=a}}{{variable={name}}}{{}}"));
    assert_eq!(listed(&store), names);
    assert!(store.verify(&Request::new()).unwrap().ok());
    let states = store.status().unwrap().states();
    assert_eq!((states.get("closed"), states.len()), (Some(&1), 2), "its writer learned of its end");
}

/// Makes it. Kept stores of an old release are never rewritten: run this for a new release, under a new name.
#[test]
#[ignore = "writes into the sources"]
fn make_the_kept_store_with_ends() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush(&writer, "run=a,variable=kept", b"1").unwrap();
    let other = world.namesake("a");
    end_logs(&other);
    world.advance(LATER);
    end_logs(&other);
    error(flush(&writer, "run=a,variable=lost", b"2"), ErrorKind::Unavailable);
    flush(&writer, "run=a,variable=after", b"3").unwrap();
    for path in world.files() {
        let to = kept().join("store").join(path.strip_prefix(ROOT).unwrap());
        std::fs::create_dir_all(to.parent().unwrap()).unwrap();
        std::fs::write(to, world.read(&path).unwrap()).unwrap();
    }
}
