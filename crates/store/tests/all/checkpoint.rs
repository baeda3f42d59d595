//! A store in memory, written to a folder: the folder's contents after each checkpoint, and after a kill, a power cut
//! or a full disk in any call of one.

use std::path::Path;

use crate::common::flush_to_ends_of_sectors;
use crate::faults::{self, Model, State, Step, Work, full, seeded, visible};
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::local::{LocalOptions, LocalStore};

const FOLDER: &str = "/scratch/project/checkpoint";

/// A store in memory whose external files are on the disk of `target`.
fn memory(target: &Env) -> LocalStore {
    memory_in(&SimWorld::memory(), target, None)
}

fn memory_in(memory: &Env, target: &Env, at: Option<String>) -> LocalStore {
    let options = LocalOptions {
        url: "memory:".into(),
        writable: at.is_none(),
        at,
        outside: Some(target.disk.clone()),
        ..LocalOptions::default()
    };
    LocalStore::open(memory.clone(), Path::new("/store"), options).unwrap()
}

fn found(env: &Env, writable: bool) -> Result<LocalStore> {
    let options = LocalOptions { url: FOLDER.into(), must_exist: true, writable, ..LocalOptions::default() };
    LocalStore::open(env.clone(), Path::new(FOLDER), options)
}

fn checkpoint(store: &LocalStore, incremental: bool) -> Result<CheckpointReport> {
    store.checkpoint(Path::new(FOLDER), &CheckpointOptions { incremental }, &Session::default())
}

/// Rounds of work between checkpoints: many commits, large and small, transactions, removed versions.
const ROUNDS: [&[Step]; 4] = [
    &[Step::Small, Step::Large, Step::Pieces],
    &[Step::Overwrite],
    &[Step::Small, Step::Commit, Step::Abort, Step::Created, Step::Large],
    &[],
];

#[test]
fn a_checkpoint_holds_what_the_store_shows_and_goes_on_with_new_bytes_alone() {
    let world = SimWorld::new(3);
    let env = world.process("a");
    let store = memory(&env);
    let mut model = Model::default();
    let mut total = 0;
    for (round, steps) in ROUNDS.iter().enumerate() {
        let mut work = Work::new(&store, &mut model, &format!("r{round}"), round as u64);
        steps.iter().for_each(|&step| work.step(step).unwrap());
        let report = checkpoint(&store, true).unwrap();
        let reopened = found(&world.process("b"), false).unwrap();
        assert_eq!(visible(&reopened).unwrap(), model.before, "round {round}");
        assert_eq!(reopened.version().unwrap(), report.version);
        assert_eq!(store.version().unwrap(), report.version);
        let verified = reopened.verify(&Request::new()).unwrap();
        assert!(verified.ok() && verified.notes.is_empty(), "{verified:?}");
        assert_eq!(report.bytes == 0, steps.is_empty(), "round {round}: {report:?}");
        total += report.bytes;
    }
    // The bytes written in total equal the bytes in the files: nothing was written twice.
    let held = found(&env, false).unwrap().stats(&Request::new()).unwrap();
    let marker = env.disk.stat(&Path::new(FOLDER).join("fieldstone.store")).unwrap().len;
    assert_eq!(total, held.file_bytes - marker);
}

#[test]
fn what_is_archived_and_not_flushed_goes_with_it_but_not_a_transaction() {
    let world = SimWorld::new(4);
    let env = world.process("a");
    let store = memory(&env);
    let archive = |run: &str, transaction| {
        let options = ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() };
        let key = [("run", run), ("variable", "v"), ("step", "1")];
        store.archive(&key, Value::Bytes(b"x"), &options).unwrap();
    };
    archive("plain", None);
    let open = store.begin().unwrap();
    archive("joined", Some(open));
    checkpoint(&store, true).unwrap();
    assert_eq!(visible(&found(&env, false).unwrap()).unwrap().len(), 1);
    store.decide(open, true, &Session::default()).unwrap();
    checkpoint(&store, true).unwrap();
    assert_eq!(visible(&found(&env, false).unwrap()).unwrap().len(), 2);
}

/// Kills the process in call `n` of the checkpoint after round `last`, optionally cuts the power, and checks that the
/// remaining store is one of the versions from the previous checkpoint on. Returns whether the call was reached.
fn struck(last: usize, n: u64, cut: Option<u64>) -> bool {
    let world = SimWorld::new(5);
    world.set_tracing(false);
    let (env, in_memory) = (world.process("a"), SimWorld::memory());
    let store = memory_in(&in_memory, &env, None);
    let mut model = Model::default();
    let mut before = State::new();
    for (round, steps) in ROUNDS.iter().enumerate().take(last + 1) {
        before = model.before.clone();
        let mut work = Work::new(&store, &mut model, &format!("r{round}"), round as u64);
        steps.iter().for_each(|&step| work.step(step).unwrap());
        if round < last {
            checkpoint(&store, true).unwrap();
        }
    }
    world.kill_nth(&env, None, n);
    let reached = checkpoint(&store, true).is_err();
    let world = cut.map_or(world.clone(), |seed| world.power_cut(seed));
    let place = || format!("round {last}, killed at call {n}, power cut {cut:?}");
    let (seen, version) = match found(&world.process("b"), false) {
        Ok(store) => {
            let verified = store.verify(&Request::new()).unwrap();
            assert!(verified.ok(), "{}: {verified:?}", place());
            (visible(&store).unwrap(), store.version().unwrap())
        }
        Err(e) if e.kind() == ErrorKind::NotFound && last == 0 => return reached,
        Err(e) => panic!("{}: {e}", place()),
    };
    // It is a complete version of the store: this one, the previous one, or one between.
    let then = memory_in(&in_memory, &env, Some(version));
    assert!(seen == visible(&then).unwrap(), "{}: {:?}", place(), faults::describe(&seen));
    let newest = seen == model.before;
    assert!(newest || reached, "{}: older than reported", place());
    let kept = before.keys().all(|key| seen.contains_key(key));
    assert!(kept, "{}: older than the previous checkpoint", place());
    reached
}

#[test]
fn a_kill_or_power_cut_in_any_call_leaves_a_version_no_older_than_the_last_checkpoint() {
    let mut random = seeded(9);
    let mut strikes = 0;
    for last in 0..ROUNDS.len() {
        let mut n = 1;
        while struck(last, n, None) {
            for _ in 0..if full() { 40 } else { 2 } {
                struck(last, n, Some(random.next_u64()));
                strikes += 1;
            }
            n += 1;
        }
    }
    assert!(strikes > 150, "{strikes}");
}

/// A power cut may leave the foot of any new frame as the last bytes of the log, if sectors end there.
#[test]
fn new_frames_that_end_with_a_sector_show_only_when_all_before_them_are_there() {
    let mut cuts = 0;
    let beside = flush_to_ends_of_sectors(&memory(&SimWorld::memory()), &[], 0..7);
    for n in 1.. {
        let world = SimWorld::new(10);
        world.set_tracing(false);
        let (env, in_memory) = (world.process("a"), SimWorld::memory());
        let store = memory_in(&in_memory, &env, None);
        flush_to_ends_of_sectors(&store, &beside, 0..3);
        checkpoint(&store, true).unwrap();
        let before = visible(&store).unwrap();
        flush_to_ends_of_sectors(&store, &beside, 3..7);
        world.kill_nth(&env, None, n);
        if checkpoint(&store, true).is_ok() {
            break;
        }
        for image in 0..if full() { 1_000 } else { 150 } {
            let found = found(&world.power_cut(image).process("b"), false).unwrap();
            let verified = found.verify(&Request::new()).unwrap();
            assert!(verified.ok(), "killed at call {n}, power cut {image}: {verified:?}");
            let shown = visible(&found).unwrap();
            assert!(
                before.keys().all(|key| shown.contains_key(key)),
                "killed at call {n}, power cut {image}"
            );
            let then = memory_in(&in_memory, &env, Some(found.version().unwrap()));
            assert!(shown == visible(&then).unwrap(), "killed at call {n}, power cut {image}");
            cuts += 1;
        }
    }
    assert!(cuts > 400, "{cuts}");
}

#[test]
fn a_checkpoint_that_failed_is_gone_on_with() {
    for kind in [OpKind::Create, OpKind::Write, OpKind::SyncData, OpKind::SyncDir, OpKind::CreateDirAll] {
        for n in 1.. {
            let world = SimWorld::new(6);
            let env = world.process("a");
            let store = memory(&env);
            let mut model = Model::default();
            for round in 0..2 {
                let mut work = Work::new(&store, &mut model, &format!("r{round}"), round);
                [Step::Small, Step::Large, Step::Pieces]
                    .into_iter()
                    .for_each(|step| work.step(step).unwrap());
                if round == 0 && n % 2 == 0 {
                    checkpoint(&store, true).unwrap();
                }
            }
            world.fail_nth(kind, n, fieldstone_core::env::sim::Fault::NoSpace);
            let failed = checkpoint(&store, true);
            world.clear_faults();
            checkpoint(&store, true).unwrap();
            let place = format!("{kind:?} {n}");
            let reopened = found(&world.power_cut(n).process("b"), false).unwrap();
            assert_eq!(visible(&reopened).unwrap(), model.before, "{place}");
            assert!(reopened.verify(&Request::new()).unwrap().ok(), "{place}");
            if let Err(e) = failed {
                assert_eq!(e.kind(), ErrorKind::Unavailable, "{e}");
            } else if n > 3 {
                break;
            }
        }
    }
}

#[test]
fn a_damaged_checkpoint_is_mended_by_the_next() {
    let world = SimWorld::new(7);
    let env = world.process("a");
    let store = memory(&env);
    let mut model = Model::default();
    let mut work = Work::new(&store, &mut model, "r", 1);
    [Step::Small, Step::Large, Step::Small, Step::Pieces]
        .into_iter()
        .for_each(|step| work.step(step).unwrap());
    checkpoint(&store, true).unwrap();
    for folder in ["logs", "data"] {
        let folder = Path::new(FOLDER).join(folder);
        for (name, _) in env.disk.list_dir(&folder).unwrap() {
            env.disk.unlink(&folder.join(name)).unwrap();
        }
    }
    checkpoint(&store, true).unwrap();
    assert_eq!(visible(&found(&env, false).unwrap()).unwrap(), model.before);
}

#[test]
fn folders_of_others_are_refused() {
    let world = SimWorld::new(8);
    let env = world.process("a");
    let (mine, other) = (memory(&env), memory(&env));
    let key = [("run", "r"), ("variable", "v"), ("step", "1")];
    for store in [&mine, &other] {
        store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
    }
    checkpoint(&mine, false).unwrap();
    let refused = checkpoint(&other, true).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert!(refused.message().contains("another store"), "{refused}");
    let again = checkpoint(&mine, false).unwrap_err();
    assert!(again.kind() == ErrorKind::Conflict && again.message().contains("not empty"), "{again}");
    checkpoint(&mine, true).unwrap();
    // Another process continues from the checkpoint: it is a separate store from there on.
    let restarted = found(&world.process("b"), true).unwrap();
    restarted.archive(&key, Value::Bytes(b"y"), &ArchiveOptions::default()).unwrap();
    restarted.flush(&Session::default()).unwrap();
    let refused = checkpoint(&mine, true).unwrap_err();
    assert!(refused.kind() == ErrorKind::Conflict && refused.message().contains("logs/"), "{refused}");
    // A store in a folder does not need checkpoints.
    let refused = checkpoint(&restarted, true).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}
