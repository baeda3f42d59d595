//! Kills a writer in a system call of every kind, with the call completed, partly completed or not executed.
//! Everything that it flushed must exist, nothing else may, and the store must keep working.
//!
//! `FIELDSTONE_CRASH=full` makes 2,000 kills, otherwise about 200.

use std::collections::BTreeMap;

use crate::faults::{self, Model, Work, check, full, open, visible};
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_store::local::LocalStore;

/// The kinds of calls that a writer makes.
const KINDS: [OpKind; 17] = [
    OpKind::Create,
    OpKind::OpenRead,
    OpenWrite,
    OpenAppend,
    OpKind::Read,
    OpKind::Write,
    OpKind::Append,
    OpKind::SyncData,
    OpKind::Writeback,
    OpKind::StatFile,
    OpKind::CreateDirAll,
    OpKind::SyncDir,
    OpKind::ListDir,
    OpKind::Stat,
    OpKind::Link,
    OpKind::Rename,
    OpKind::Unlink,
];
use OpKind::{OpenAppend, OpenWrite};

/// The contents of the store before the writer began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    /// Nothing: its first flush makes the store.
    Empty,
    /// Nothing, on a file system without hard links.
    Unlinked,
    /// The fields of another process of the same host.
    SameHost,
    /// The fields of a process of another host.
    OtherHost,
}

const SCENES: [Scene; 4] = [Scene::Empty, Scene::Unlinked, Scene::SameHost, Scene::OtherHost];

/// A world with earlier contents, an open handle of a process that only watches, and the model.
fn stage(scene: Scene, seed: u64) -> (SimWorld, LocalStore, Model) {
    let world = SimWorld::new(seed);
    world.set_tracing(false);
    world.set_links(scene != Scene::Unlinked);
    let mut model = Model::default();
    let other = match scene {
        Scene::Empty | Scene::Unlinked => None,
        Scene::SameHost => Some("a"),
        Scene::OtherHost => Some("b"),
    };
    if let Some(host) = other {
        let store = open(&world.process(host)).unwrap();
        let mut work = Work::new(&store, &mut model, "before", seed ^ 1);
        work.step(faults::Step::Small).unwrap();
        work.step(faults::Step::Pieces).unwrap();
    }
    let watcher = open(&world.process("a")).unwrap();
    assert_eq!(visible(&watcher).unwrap(), model.before);
    (world, watcher, model)
}

/// The number of calls of each kind in an undisturbed writer.
fn count(scene: Scene, seed: u64) -> BTreeMap<OpKind, u64> {
    let (world, watcher, mut model) = stage(scene, seed);
    let env = world.process("a");
    let before = world.counters();
    let store = open(&env).unwrap();
    Work::new(&store, &mut model, "mine", seed).all().unwrap();
    assert_eq!(model.before, model.after);
    let calls = world.counters();
    assert_eq!(visible(&watcher).unwrap(), model.before);
    check(&world, "a", &model).unwrap();
    KINDS.into_iter().map(|kind| (kind, calls.count(kind) - before.count(kind))).collect()
}

/// Kills a writer at its n-th call of a kind and checks the remaining state against the model.
fn kill(scene: Scene, seed: u64, kind: OpKind, n: u64, draw: u64) {
    let (world, watcher, mut model) = stage(scene, seed);
    // The same calls, but another draw of how much of the last one completes.
    world.advance(draw);
    (0..draw % 5).for_each(|_| drop(world.process("elsewhere")));
    let env = world.process("a");
    world.kill_nth(&env, Some(kind), n);
    let result = open(&env).and_then(|store| {
        let result = Work::new(&store, &mut model, "mine", seed).all();
        std::mem::forget(store);
        result
    });
    // If it was killed while it wrote its board slot at the very end, it got no error.
    assert!(
        !env.identity.alive(env.identity.process()),
        "the writer survived call {n} of {kind:?}: {result:?}"
    );
    let place = || format!("{scene:?}, seed {seed}, killed at {kind:?} {n}, draw {draw}");
    // A handle that was open throughout sees the same.
    let seen = visible(&watcher).unwrap_or_else(|e| panic!("{}: watcher: {e}", place()));
    assert!(model.allows(&seen), "{}: the watcher sees {:?}", place(), faults::describe(&seen));
    if let Err(wrong) = check(&world, "a", &model) {
        panic!("{}: {wrong}", place());
    }
}

#[test]
fn a_kill_in_any_call_loses_nothing_flushed_and_shows_nothing_else() {
    let per_kind: u64 = if full() { 120 } else { 12 };
    let mut table = BTreeMap::new();
    let counts: Vec<_> = SCENES.map(|scene| (scene, count(scene, 1000))).into_iter().collect();
    for kind in KINDS {
        let places: Vec<_> = counts.iter().filter(|(_, calls)| calls[&kind] > 0).collect();
        if places.is_empty() {
            // Only `Rename` and the like may be absent from every scene.
            panic!("no scene makes a call of kind {kind:?}");
        }
        let mut done = 0;
        let mut random = faults::seeded(kind as u64);
        while done < per_kind {
            let (scene, calls) = places[done as usize % places.len()];
            // The first calls of a kind are the rare ones: the test kills in each of them, then in random others.
            let round = done / places.len() as u64;
            let n = if round < 6 { round % calls[&kind] + 1 } else { 1 + random.below(calls[&kind]) };
            kill(*scene, 1000, kind, n, done);
            done += 1;
        }
        table.insert(format!("{kind:?}"), done);
    }
    println!("{:<14} kills", "call");
    table.iter().for_each(|(kind, kills)| println!("{kind:<14} {kills:>5}"));
    println!("{:<14} {:>5}", "all", table.values().sum::<u64>());
}
