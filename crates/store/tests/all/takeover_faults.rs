//! The making of a takeover is disturbed at every call: the process dies, the power fails, the disk is full or fails.
//! Every field is there afterwards, as before, and the next takeover ends the work.
//!
//! `FIELDSTONE_CRASH=full` draws more disk images at every call, otherwise few at every third.

use std::path::PathBuf;

use crate::common::*;
use crate::takeovers::{close, compact, first_difference, look, look_all};
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_format::Id;
use fieldstone_format::takeover::TakeoverHeader;
use fieldstone_journal::Session;
use fieldstone_journal::compact::{CompactOptions, CompactReport};
use fieldstone_journal::writer::INLINE_MAX;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_testkit::require::full;

/// A store with an older takeover, ended logs and a living one.
struct Stage {
    world: SimWorld,
    /// The data log of the large field, which stays.
    large: String,
    /// Handles that stay open: the living writer.
    _living: Store,
    prepared: Id,
    versions: Vec<String>,
    before: String,
}

fn stage() -> Stage {
    let world = SimWorld::new(21);
    world.set_tracing(false);
    let a = open(&world, "a");
    flush_one(&a, "run=a,variable=t,step=1", b"first");
    flush_one(&a, "run=a,variable=large", &pattern(INLINE_MAX + 5, 3));
    close(&a);
    let large = names(&world, "data").remove(0);
    compact(&open(&world, "a"));
    let b = open(&world, "b");
    let versions = vec![b.version().unwrap()];
    flush_one(&b, "run=a,variable=t,step=1", b"second");
    flush_one(&b, "run=a,variable=gone", b"to be removed");
    let gone = fieldstone_core::request::Request::parse("run=a,variable=gone").unwrap();
    assert_eq!(b.remove(&gone, &RemoveOptions::default()).unwrap(), 1);
    b.flush(&Session::default()).unwrap();
    let prepared = b.begin().unwrap();
    put_in(&b, "run=a,variable=prepared", b"prepared", prepared).unwrap();
    b.flush(&Session::from(prepared)).unwrap();
    close(&b);
    let attempt = Opening { attempt: "1.1".into(), ..Opening::default() };
    let c = open_in(&world.process("a"), &attempt).unwrap();
    let data = pattern(4 * 96, 5);
    let value = Value::Array { data: &data, dtype: DType::F4, shape: &[8, 12] };
    let chunks = ArchiveOptions { chunks: Some(vec![3, 5]), ..ArchiveOptions::default() };
    archive(&c, "run=c,variable=array", value, &chunks).unwrap();
    let id = c.begin().unwrap();
    put_in(&c, "run=c,variable=decided", b"decided", id).unwrap();
    c.decide(id, true, &Session::default()).unwrap();
    close(&c);
    let living = open(&world, "a");
    flush_one(&living, "run=a,variable=living", b"living");
    let before = look_all(&world, &[prepared], &versions);
    Stage { world, large, _living: living, prepared, versions, before }
}

impl Stage {
    /// Everything is there in a world that came from this one.
    fn check(&self, world: &SimWorld, at: &str) {
        let after = look_all(world, &[self.prepared], &self.versions);
        assert!(after == self.before, "{at}\n{}", first_difference(&self.before, &after));
    }

    /// Everything is there, and later takeovers end the work.
    fn check_and_end(&self, world: &SimWorld, at: &str) {
        self.check(world, at);
        end(world);
        self.check(world, &format!("{at}, ended"));
        let logs = names(world, "logs");
        assert!(logs.iter().all(|name| name.ends_with(".takeover")), "{at}: {logs:?}");
    }
}

/// Makes takeovers until nothing is left to do; the time in between ends logs that nobody closed, also those of other
/// hosts.
fn end(world: &SimWorld) {
    for _ in 0..4 {
        world.advance(25 * 3_600 * SECOND);
        compact(&open(world, "a"));
    }
}

/// Data logs that neither a takeover nor an entry names: copies whose makers died.
fn orphans(world: &SimWorld, large: &str) -> Vec<String> {
    let takeovers =
        files(world, "logs").into_iter().filter(|path| path.to_string_lossy().ends_with(".takeover"));
    let ids: Vec<String> = takeovers
        .map(|path| TakeoverHeader::decode(&world.read(&path).unwrap()).unwrap().id.to_string())
        .collect();
    let mut found = names(world, "data");
    found.retain(|name| name != large && !ids.iter().any(|id| name.starts_with(id)));
    found
}

fn names(world: &SimWorld, folder: &str) -> Vec<String> {
    let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    files(world, folder).into_iter().map(name).collect()
}

/// Compacts with whatever outcome.
fn try_compact(store: &Store) -> fieldstone_core::Result<CompactReport> {
    let options = CompactOptions { grace: 0, ..CompactOptions::default() };
    store.journal().maintenance().compact(&options, &Session::default(), &mut |_| Ok(()))
}

/// Kills the maker at its n-th call; `None` if it makes fewer.
fn killed_at(n: u64) -> Option<Stage> {
    let stage = stage();
    let env = stage.world.process("a");
    let maker = open_in(&env, &Opening::default()).unwrap();
    stage.world.kill_nth(&env, None, n);
    let outcome = try_compact(&maker);
    let killed = !env.identity.alive(env.identity.process());
    std::mem::forget(maker);
    assert!(killed || outcome.is_ok(), "{outcome:?}");
    killed.then_some(stage)
}

/// Calls at which the maker is disturbed.
fn calls_to_try() -> impl Iterator<Item = u64> {
    (1..).step_by(if full() { 1 } else { 3 })
}

#[test]
fn a_power_cut_at_any_call_of_a_maker_loses_nothing() {
    let images = if full() { 12 } else { 2 };
    let mut cuts = 0;
    for n in calls_to_try() {
        let Some(stage) = killed_at(n) else { break };
        for image in 0..images {
            let after = stage.world.power_cut(image);
            let at = format!("power cut at call {n}, image {image}");
            stage.check_and_end(&after, &at);
            // Each file that is removed then has its replacement on the disk.
            stage.check(&after.power_cut(image), &format!("{at}, cut again"));
            cuts += 2;
        }
    }
    println!("{cuts} power cuts");
}

#[test]
fn a_kill_at_any_call_of_a_maker_loses_nothing() {
    let images = if full() { 12 } else { 3 };
    let (mut kills, mut cuts, mut copies) = (0, 0, 0);
    let mut ends_with_copy = 0;
    for n in calls_to_try() {
        let Some(stage) = killed_at(n) else { break };
        let at = format!("killed at call {n}");
        let watcher = open(&stage.world, "b");
        let seen = look(&watcher, None);
        stage.check(&stage.world, &at);
        compact(&open(&stage.world, "a"));
        assert_eq!(look(&watcher, None), seen, "{at}");
        for image in 0..images {
            stage.check(&stage.world.power_cut(image), &format!("{at}, then a power cut, image {image}"));
            cuts += 1;
        }
        let ended = stage.world.power_cut(0);
        stage.check_and_end(&ended, &at);
        let left = orphans(&ended, &stage.large).len();
        copies = copies.max(left);
        ends_with_copy += usize::from(left > 0);
        kills += 1;
    }
    println!(
        "{kills} kills, {cuts} power cuts after the next takeover, {ends_with_copy} leave a copy of payload"
    );
    assert_eq!(copies, 0, "a dead maker left data logs");
}

/// The number of calls of a maker that was not disturbed.
fn undisturbed() -> u64 {
    let stage = stage();
    let maker = open(&stage.world, "a");
    stage.world.clear_trace();
    compact(&maker);
    let calls = stage.world.counters().total();
    let ended = stage.world.power_cut(0);
    stage.check_and_end(&ended, "undisturbed");
    assert!(orphans(&ended, &stage.large).is_empty());
    calls
}

#[test]
fn a_disk_that_fails_a_maker_once_loses_nothing_and_keeps_no_file() {
    let calls = undisturbed();
    let mut counts = [0u64; 3];
    for (i, fault) in [Fault::NoSpace, Fault::Io, Fault::IoPartial].into_iter().enumerate() {
        for kind in [
            OpKind::Create,
            OpKind::Write,
            OpKind::Append,
            OpKind::SyncData,
            OpKind::SyncDir,
            OpKind::Link,
            OpKind::Rename,
            OpKind::Unlink,
            OpKind::ListDir,
            OpKind::Read,
        ] {
            if fault == Fault::IoPartial && kind != OpKind::SyncData {
                continue;
            }
            let step = if kind == OpKind::Read && !full() { 9 } else { 1 };
            for n in (1..calls).step_by(step) {
                let stage = stage();
                let env = stage.world.process("a");
                let maker = open_in(&env, &Opening::default()).unwrap();
                stage.world.clear_trace();
                let plan = Plan::new(fault).host("a").process(env.identity.process()).kind(kind).nth(n);
                stage.world.schedule(plan);
                let outcome = try_compact(&maker);
                if stage.world.counters().count(kind) < n {
                    assert!(outcome.is_ok(), "{outcome:?}");
                    break;
                }
                stage.world.clear_faults();
                let at = format!("{fault:?} at {kind:?} {n}: {:?}", outcome.map(|report| report.logs));
                stage.check(&stage.world, &at);
                drop(maker);
                let ended = stage.world.power_cut(0);
                stage.check_and_end(&ended, &at);
                assert_eq!(orphans(&ended, &stage.large), [""; 0], "{at}");
                counts[i] += 1;
            }
        }
    }
    println!("full once {}, failed once {}, synced in part {}", counts[0], counts[1], counts[2]);
}

#[test]
fn a_disk_that_stays_full_loses_nothing_and_keeps_no_file() {
    let (mut room, mut tried, mut refused) = (0u64, 0, 0);
    loop {
        let stage = stage();
        let maker = open(&stage.world, "a");
        let used: u64 =
            stage.world.files().iter().map(|path| stage.world.read(path).unwrap().len() as u64).sum();
        stage.world.set_capacity(Some(used + room));
        let outcome = try_compact(&maker);
        stage.world.clear_faults();
        let at = format!("{room} bytes are free: {:?}", outcome.as_ref().map(|report| report.logs));
        stage.check(&stage.world, &at);
        if outcome.is_err() {
            let left: Vec<String> =
                names(&stage.world, "logs").into_iter().filter(|name| name.ends_with("-new")).collect();
            assert!(left.is_empty(), "{at}: {left:?}");
        }
        drop(maker);
        let ended = stage.world.power_cut(0);
        stage.check_and_end(&ended, &at);
        assert_eq!(orphans(&ended, &stage.large), [""; 0], "{at}");
        (tried, refused) = (tried + 1, refused + usize::from(outcome.is_err()));
        if outcome.is_ok() && room > 0 {
            break;
        }
        room += if full() { 61 } else { 509 };
    }
    println!("{tried} sizes of the free room, refused at {refused}");
    assert!(refused > 2);
}
