//! Maintenance: rules are obeyed, what pays is done, the rest is named and left, and nothing else changes.

use crate::common::*;
use crate::purge::visible;
use crate::retain::{DAY, older, try_retain, versions};
use crate::takeovers::{close, open_at};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, Error, ErrorKind};
use fieldstone_journal::Session;
use fieldstone_journal::writer::INLINE_MAX;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;
use fieldstone_testkit::require::full;

const AT_ONCE: u64 = 0;

fn how(grace: u64) -> Maintaining {
    Maintaining { grace, ..Maintaining::default() }
}

fn maintain(store: &Store, grace: u64) -> MaintainReport {
    let report = store.maintain(&how(grace), &mut |_| Ok(())).unwrap();
    assert!(report.failed().is_none(), "{report}");
    report
}

fn step(report: &MaintainReport, action: MaintainAction) -> &MaintainStep {
    report.steps.iter().find(|step| step.action == action).unwrap()
}

fn write(world: &SimWorld, key: &str, value: &[u8]) {
    let store = open(world, "a");
    flush_one(&store, key, value);
    close(&store);
}

fn large(seed: u64) -> Vec<u8> {
    pattern(INLINE_MAX + 1000, seed)
}

fn bytes(world: &SimWorld) -> u64 {
    world.files().iter().map(|path| world.read(path).unwrap().len() as u64).sum()
}

fn is_sound(world: &SimWorld) {
    let report = open(world, "b").verify(&Request::new()).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
}

#[test]
fn a_store_of_hot_data_stays_bounded() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    try_retain(&store, "variable=hot", older(2)).unwrap();
    flush_one(&store, "run=kept,variable=cold,step=0", &large(99));
    close(&store);
    let mut sizes = Vec::new();
    let mut pinned = None;
    for day in 0..7u64 {
        for n in 0..4 {
            write(&world, &format!("run={day},variable=hot,step={n}"), &large(day * 10 + n));
        }
        let reader = open(&world, "b");
        let (seen, list) = (visible(&reader, None), reader.list(&Request::new(), &ListOptions::default()));
        let store = open(&world, "a");
        maintain(&store, 3_600 * SECOND);
        close(&store);
        // A reader from before goes on.
        assert_eq!(list.unwrap().count(), seen.len());
        if day == 3 {
            pinned = Some(open(&world, "b").version().unwrap());
        }
        world.advance(DAY);
        sizes.push(bytes(&world));
    }
    assert!(sizes[6] <= sizes[4] * 11 / 10 && sizes[6] < sizes[3] * 2, "{sizes:?}");
    let keys = listed(&open(&world, "b"));
    assert!(keys.iter().any(|key| key.contains("cold")), "{keys:?}");
    assert!((8..=14).contains(&keys.len()), "{keys:?}");
    is_sound(&world);
    let older = open_at(&world, &pinned.unwrap());
    error(get(&older, "run=3,variable=hot,step=0"), ErrorKind::NotFound);
}

#[test]
fn a_rule_with_an_age_keeps_hidden_versions() {
    let world = SimWorld::new(1);
    for (n, run) in [(0, "a"), (1, "a"), (2, "free"), (3, "free")] {
        write(&world, &format!("run={run},variable=t,step=1"), &large(n));
    }
    let version = open(&world, "b").version().unwrap();
    write(&world, "run=a,variable=gone,step=1", &large(7));
    let store = open(&world, "a");
    store.remove(&Request::parse("variable=gone").unwrap(), &RemoveOptions::default()).unwrap();
    store.flush(&Session::default()).unwrap();
    try_retain(&store, "run=a", older(30)).unwrap();
    close(&store);
    let before = visible(&open(&world, "b"), None);
    let report = maintain(&open(&world, "a"), AT_ONCE);
    let purge = step(&report, MaintainAction::Purge);
    assert_eq!((purge.done, purge.versions, purge.fields), (true, 2, 1), "{report}");
    assert_eq!(visible(&open(&world, "b"), None), before);
    // The versions that newer ones hide are there.
    let older = open_at(&world, &version);
    assert_eq!(get(&older, "run=a,variable=t,step=1").unwrap(), large(1));
    assert_eq!(maintain(&open(&world, "a"), AT_ONCE).steps[2].versions, 0);
}

/// The value of a key at a version; `None` if it was purged.
fn at(world: &SimWorld, version: &str, key: &str) -> Option<Vec<u8>> {
    match get(&open_at(world, version), key) {
        Ok(bytes) => Some(bytes),
        Err(e) if e.code() == Code::VersionPurged => None,
        Err(e) => panic!("{e}"),
    }
}

#[test]
fn r62_a_rule_with_versions_keeps_the_newest_of_each_key() {
    let world = SimWorld::new(1);
    let key = "run=a,variable=t,step=1";
    let mut made = Vec::new();
    for n in 0..5 {
        write(&world, key, &large(n));
        write(&world, "run=b,variable=t,step=1", &large(n));
        made.push(open(&world, "b").version().unwrap());
    }
    let store = open(&world, "a");
    try_retain(&store, "run=a", versions(2)).unwrap();
    try_retain(&store, "variable=t,run=a", versions(4)).unwrap();
    close(&store);
    let report = maintain(&open(&world, "a"), AT_ONCE);
    let purge = step(&report, MaintainAction::Purge);
    assert_eq!((purge.done, purge.versions), (true, 3), "the strictest of two rules: {report}");
    for (n, version) in made.iter().enumerate() {
        let kept = (n >= 3).then(|| large(n as u64));
        assert_eq!(at(&world, version, key), kept, "{n}");
        assert_eq!(at(&world, version, "run=b,variable=t,step=1"), Some(large(n as u64)), "no rule: {n}");
    }
    is_sound(&world);
    // Versions that a removal hides do not count: they go with it.
    let store = open(&world, "a");
    store.remove(&Request::parse("run=a").unwrap(), &RemoveOptions::default()).unwrap();
    store.flush(&Session::default()).unwrap();
    flush_one(&store, key, &large(8));
    close(&store);
    let report = maintain(&open(&world, "a"), AT_ONCE);
    assert_eq!(step(&report, MaintainAction::Purge).versions, 3, "two and the removal: {report}");
    assert_eq!(get(&open(&world, "b"), key).unwrap(), large(8));
}

#[test]
fn without_rules_nothing_goes_but_files_that_nothing_names() {
    let world = SimWorld::new(1);
    let key = "run=a,variable=t,step=1";
    write(&world, key, &large(0));
    let version = open(&world, "b").version().unwrap();
    for n in 1..14 {
        write(&world, key, &large(n));
    }
    let report = maintain(&open(&world, "a"), 3_600 * SECOND);
    assert!(step(&report, MaintainAction::Purge).why.as_deref().unwrap().contains("no rule"), "{report}");
    let compacted = step(&report, MaintainAction::Compact);
    assert!(compacted.done && compacted.files >= 13, "{report}");
    assert!(report.waiting >= 13, "{report:?}");
    let again = maintain(&open(&world, "a"), 3_600 * SECOND);
    assert!(again.steps.iter().all(|step| !step.done && step.why.is_some()), "{again}");
    world.advance(3_601 * SECOND);
    let swept = maintain(&open(&world, "a"), 3_600 * SECOND);
    assert!(step(&swept, MaintainAction::Sweep).done && swept.waiting == 0, "{swept}");
    assert_eq!(at(&world, &version, key), Some(large(0)));
}

#[test]
fn a_dry_run_and_a_budget() {
    let world = SimWorld::new(1);
    for n in 0..3 {
        for step in 0..3 {
            write(&world, &format!("run=a,variable=t,step={step}"), &large(10 * n + step));
        }
    }
    let store = open(&world, "a");
    try_retain(&store, "run=a", Retaining { versions: Some(1), ..older(5) }).unwrap();
    close(&store);
    world.advance(6 * DAY);
    let before = (visible(&open(&world, "b"), None), world.files().len());
    let dry = Maintaining { dry_run: true, ..how(AT_ONCE) };
    let store = open(&world, "a");
    let report = store.maintain(&dry, &mut |_| Ok(())).unwrap();
    assert!(report.steps.iter().all(|step| !step.done), "{report}");
    let (wipe, purge) = (step(&report, MaintainAction::Wipe), step(&report, MaintainAction::Purge));
    assert_eq!((wipe.fields, purge.versions), (3, 6), "{report}");
    assert_eq!((visible(&open(&world, "b"), None), world.files().len()), before);
    // Progress names each step, and an error of the listener ends it.
    let mut heard = Vec::new();
    let stopped = store.maintain(&how(AT_ONCE), &mut |progress| {
        heard.push(progress.action);
        match progress.action {
            MaintainAction::Wipe => Err(Error::internal("enough")),
            _ => Ok(()),
        }
    });
    assert_eq!(stopped.unwrap_err().message(), "enough");
    assert_eq!(heard, [MaintainAction::Sweep, MaintainAction::Wipe]);
    assert_eq!(listed(&open(&world, "b")).len(), 3);
}

#[test]
fn a_second_maintainer_says_that_the_first_is_at_work() {
    let world = SimWorld::new(1);
    for n in 0..14 {
        write(&world, &format!("run=a,variable=t,step={n}"), &large(n));
    }
    let mut second = None;
    let report = open(&world, "a").maintain(&how(3_600 * SECOND), &mut |progress| {
        if progress.action == MaintainAction::Compact && second.is_none() {
            second = Some(maintain(&open(&world, "a"), 3_600 * SECOND));
        }
        Ok(())
    });
    let (first, second) = (report.unwrap(), second.unwrap());
    assert!(step(&second, MaintainAction::Compact).done);
    let late = step(&first, MaintainAction::Compact);
    assert!(!late.done && late.why.is_some() && late.code.is_none(), "{first}");
    assert_eq!(listed(&open(&world, "b")).len(), 14);
}

/// A store with something for each step.
fn stage() -> SimWorld {
    let world = SimWorld::new(3);
    world.set_tracing(false);
    let store = open(&world, "a");
    flush_one(&store, "run=old,variable=t,step=1", &large(1));
    try_retain(&store, "run=a/old", Retaining { versions: Some(1), ..older(5) }).unwrap();
    close(&store);
    world.advance(6 * DAY);
    for n in 0..14 {
        write(&world, "run=a,variable=t,step=1", &large(n));
    }
    world
}

#[test]
fn a_kill_at_any_call_of_maintenance_leaves_what_the_next_one_ends() {
    let (mut kills, expected) = (0, vec!["{run=a}{variable=t}{step=1}".to_owned()]);
    for n in (1..).step_by(if full() { 1 } else { 13 }) {
        let world = stage();
        let env = world.process("a");
        let store = open_in(&env, &Opening::default()).unwrap();
        world.kill_nth(&env, None, n);
        let outcome = store.maintain(&how(AT_ONCE), &mut |_| Ok(()));
        if env.identity.alive(env.identity.process()) {
            assert!(outcome.unwrap().failed().is_none());
            break;
        }
        std::mem::forget(store);
        kills += 1;
        let cut = world.power_cut(0);
        let mut last = MaintainReport::default();
        for _ in 0..3 {
            cut.advance(25 * 3_600 * SECOND);
            let store = open(&cut, "a");
            last = maintain(&store, AT_ONCE);
            flush_one(&store, "run=other,variable=t,step=1", b"x");
            close(&store);
        }
        let mut keys = listed(&open(&cut, "b"));
        keys.retain(|key| !key.contains("other"));
        // Everything is older than the rule by now, or about to be.
        assert!(keys == expected || keys.is_empty(), "killed at call {n}: {keys:?}");
        is_sound(&cut);
        let data: u64 = files(&cut, "data").iter().map(|path| cut.read(path).unwrap().len() as u64).sum();
        assert!(data < 4 * INLINE_MAX as u64, "killed at call {n}: {data} bytes; {last}");
    }
    assert!(kills > 10, "{kills}");
}

#[test]
fn a_full_disk_lets_maintenance_free_what_nothing_names() {
    let world = stage();
    let store = open(&world, "a");
    maintain(&store, 3_600 * SECOND);
    close(&store);
    world.advance(3_601 * SECOND);
    let full = bytes(&world);
    let store = open(&world, "a");
    world.set_capacity(Some(full));
    let report = store.maintain(&how(3_600 * SECOND), &mut |_| Ok(())).unwrap();
    let made = [MaintainAction::Sweep, MaintainAction::Purge].map(|action| step(&report, action).done);
    assert_eq!(made, [true, true], "the room of replaced logs is enough for a purge: {report}");
    close(&store);
    world.advance(3_601 * SECOND);
    maintain(&open(&world, "a"), 3_600 * SECOND);
    assert!(bytes(&world) < full / 4, "{full} bytes, now {}", bytes(&world));
    world.set_capacity(None);
    is_sound(&world);
}
