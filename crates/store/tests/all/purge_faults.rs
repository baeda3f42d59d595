//! A purge is disturbed at every call: the process dies, the power fails, the disk is full or fails. Visible content stays, and
//! the next purge ends the work and leaves no file behind.
//!
//! `FIELDSTONE_CRASH=full` draws more disk images at every call, otherwise few at every third.

use std::collections::BTreeMap;

use crate::common::*;
use crate::purge::{at_once, try_purge, visible};
use crate::takeovers::{close, compact};
use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_journal::writer::INLINE_MAX;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_testkit::require::full;

/// A store with a takeover, ended logs, a living one, and something to purge of each kind.
struct Stage {
    world: SimWorld,
    _living: Store,
    before: BTreeMap<String, String>,
}

fn stage() -> Stage {
    let world = SimWorld::new(22);
    world.set_tracing(false);
    let large = |seed: u64| pattern(INLINE_MAX + 1000, seed);
    let a = open(&world, "a");
    for n in 0..3 {
        put(&a, &format!("run=a,variable=large{n}"), &large(n)).unwrap();
    }
    flush_one(&a, "run=a,variable=t,step=1", &pattern(100_000, 1));
    flush_one(&a, "run=a,variable=t,step=2", &pattern(1000, 2));
    close(&a);
    compact(&open(&world, "a"));
    let b = open(&world, "b");
    for n in 0..2 {
        put(&b, &format!("run=a,variable=large{n}"), &large(10 + n)).unwrap();
    }
    flush_one(&b, "run=a,variable=t,step=1", b"second");
    flush_one(&b, "run=a,variable=gone", &large(20));
    b.remove(&Request::parse("run=a,variable=gone").unwrap(), &RemoveOptions::default()).unwrap();
    b.flush(&Session::default()).unwrap();
    let id = b.begin().unwrap();
    put_in(&b, "run=a,variable=aborted", b"aborted", id).unwrap();
    b.flush(&Session::from(id)).unwrap();
    b.decide(id, false, &Session::default()).unwrap();
    close(&b);
    let living = open(&world, "a");
    flush_one(&living, "run=a,variable=large0", &large(30));
    flush_one(&living, "run=a,variable=living", b"living");
    let before = visible(&open(&world, "b"), None);
    Stage { world, _living: living, before }
}

impl Stage {
    fn check(&self, world: &SimWorld, at: &str) {
        let reader = open(world, "b");
        assert_eq!(visible(&reader, None), self.before, "{at}");
        let report = reader.verify(&Request::new()).unwrap();
        assert!(report.damaged.is_empty(), "{at}: {report:?}");
    }

    /// All is there, and further purges end the work: as many bytes of data stay as without a disturbance.
    fn check_and_end(&self, world: &SimWorld, at: &str) -> u64 {
        self.check(world, at);
        // Time that ends logs whose processes are gone, and graces.
        for _ in 0..3 {
            world.advance(25 * 3_600 * SECOND);
            try_purge(&open(world, "a"), &at_once()).unwrap();
            compact(&open(world, "a"));
        }
        try_purge(&open(world, "a"), &at_once()).unwrap();
        self.check(world, &format!("{at}, ended"));
        files(world, "data").iter().map(|path| world.read(path).unwrap().len() as u64).sum()
    }
}

/// The number of calls of a purge that was not disturbed, and the bytes of data that stay after it.
fn undisturbed() -> (u64, u64) {
    let stage = stage();
    let store = open(&stage.world, "a");
    stage.world.clear_trace();
    let report = try_purge(&store, &at_once()).unwrap();
    assert!(report.versions >= 7, "{report}");
    let calls = stage.world.counters().total();
    (calls, stage.check_and_end(&stage.world.power_cut(0), "undisturbed"))
}

#[test]
fn a_kill_or_a_power_cut_at_any_call_of_a_purge_loses_nothing() {
    let (calls, bytes) = undisturbed();
    let (images, mut kills) = (if full() { 8 } else { 2 }, 0);
    for n in (1..=calls).step_by(if full() { 1 } else { 3 }) {
        let stage = stage();
        let env = stage.world.process("a");
        let store = open_in(&env, &Opening::default()).unwrap();
        stage.world.kill_nth(&env, None, n);
        let outcome = try_purge(&store, &at_once());
        if env.identity.alive(env.identity.process()) {
            assert!(outcome.is_ok(), "{outcome:?}");
            break;
        }
        std::mem::forget(store);
        let at = format!("killed at call {n}");
        stage.check(&stage.world, &at);
        for image in 0..images {
            let cut = stage.world.power_cut(image);
            let at = format!("{at}, then a power cut, image {image}");
            assert!(stage.check_and_end(&cut, &at) <= bytes, "{at}");
        }
        kills += 1;
    }
    println!("{kills} kills, each with {images} power cuts");
    assert!(kills > 20, "{kills}");
}

#[test]
fn a_disk_that_fails_a_purge_once_loses_nothing() {
    let (calls, bytes) = undisturbed();
    let mut faults = 0;
    for fault in [Fault::NoSpace, Fault::Io] {
        for kind in [
            OpKind::Create,
            OpKind::Write,
            OpKind::SyncData,
            OpKind::SyncDir,
            OpKind::Link,
            OpKind::Unlink,
            OpKind::ListDir,
        ] {
            for n in (1..calls).step_by(if full() { 1 } else { 2 }) {
                let stage = stage();
                let env = stage.world.process("a");
                let store = open_in(&env, &Opening::default()).unwrap();
                stage.world.clear_trace();
                let plan = Plan::new(fault).host("a").process(env.identity.process()).kind(kind).nth(n);
                stage.world.schedule(plan);
                let outcome = try_purge(&store, &at_once());
                if stage.world.counters().count(kind) < n {
                    assert!(outcome.is_ok(), "{outcome:?}");
                    break;
                }
                stage.world.clear_faults();
                drop(store);
                let at = format!("{fault:?} at {kind:?} {n}: {:?}", outcome.map(|report| report.versions));
                assert!(stage.check_and_end(&stage.world.power_cut(0), &at) <= bytes, "{at}");
                faults += 1;
            }
        }
    }
    println!("{faults} faults");
    assert!(faults > 10);
}

#[test]
fn a_disk_that_stays_full_lets_a_purge_free_room_or_loses_nothing() {
    let (_, bytes) = undisturbed();
    let (mut room, mut refused) = (0u64, 0);
    loop {
        let stage = stage();
        let store = open(&stage.world, "a");
        let used: u64 =
            stage.world.files().iter().map(|path| stage.world.read(path).unwrap().len() as u64).sum();
        stage.world.set_capacity(Some(used + room));
        let outcome = try_purge(&store, &at_once());
        stage.world.set_capacity(None);
        let at = format!("{room} bytes are free: {:?}", outcome.as_ref().map(|report| report.versions));
        stage.check(&stage.world, &at);
        drop(store);
        refused += usize::from(outcome.is_err());
        assert!(stage.check_and_end(&stage.world.power_cut(0), &at) <= bytes, "{at}");
        if outcome.is_ok() {
            break;
        }
        room = (room + 1000) * 2;
    }
    assert!(refused > 1);
}
