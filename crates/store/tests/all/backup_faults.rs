//! A backup is disturbed at every call: the process dies, the power fails, the disk is full or fails. It shows the version of
//! before or the new one, whole, and the next call brings it up to date.
//!
//! `FIELDSTONE_CRASH=full` draws more disk images at every call, otherwise few at every third.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::backup::*;
use crate::common::*;
use crate::takeovers::{close, compact};
use fieldstone_core::env::sim::{Fault, OpKind, Plan, SimWorld};
use fieldstone_core::env::{Env, write_all_at};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_journal::Session;
use fieldstone_journal::journal::{Journal, JournalOptions, promote};
use fieldstone_store::LocalStore;
use fieldstone_store::conformance::Opening;
use fieldstone_testkit::require::full;

/// A store whose backup is a step behind: new commits in a log that it has, new logs, a takeover.
struct Stage {
    world: SimWorld,
    _living: Store,
    before: BTreeMap<String, String>,
    after: BTreeMap<String, String>,
}

fn stage() -> Stage {
    let world = SimWorld::new(51);
    world.set_tracing(false);
    let living = open(&world, "a");
    flush_one(&living, T1, b"first");
    flush_one(&living, T2, &vec![1; 200_000]);
    for n in 0..3u8 {
        let store = open(&world, "b");
        flush_one(&store, &format!("run=b,variable=t,step={n}"), &vec![n; 70_000]);
        close(&store);
    }
    backup(&world);
    let before = content(&copy(&world));
    flush_one(&living, T1, b"second");
    flush_one(&living, T2, &vec![2; 200_000]);
    compact(&open(&world, "b"));
    let store = open(&world, "b");
    flush_one(&store, "run=c,variable=t,step=0", b"third");
    close(&store);
    world.advance(4000 * SECOND);
    flush_one(&living, T1, b"third");
    let after = content(&open(&world, "b"));
    Stage { world, _living: living, before, after }
}

fn run(env: &Env) -> Result<()> {
    let options = JournalOptions { url: ROOT.into(), must_exist: true, ..JournalOptions::default() };
    let source = Journal::open(env.clone(), Path::new(ROOT), options)?;
    source.back_up((env, Path::new(TO)), false, &mut |_| Ok(())).map(drop)
}

impl Stage {
    fn check(&self, world: &SimWorld, at: &str) {
        let shown = content(&copy(world));
        assert!(shown == self.before || shown == self.after, "{at}: {shown:?}");
    }

    fn check_and_end(&self, world: &SimWorld, at: &str) {
        self.check(world, at);
        backup(world);
        assert_eq!(content(&copy(world)), self.after, "{at}, ended");
    }
}

fn calls() -> u64 {
    let stage = stage();
    let env = stage.world.process("a");
    stage.world.clear_trace();
    run(&env).unwrap();
    let calls = stage.world.counters().total();
    stage.check_and_end(&stage.world.power_cut(0), "undisturbed");
    calls
}

#[test]
fn r38_a_kill_or_a_power_cut_at_any_call_leaves_a_whole_backup() {
    let (calls, images, mut kills) = (calls(), if full() { 8 } else { 2 }, 0);
    for n in (1..=calls).step_by(if full() { 1 } else { 3 }) {
        let stage = stage();
        let env = stage.world.process("a");
        stage.world.kill_nth(&env, None, n);
        let outcome = run(&env);
        if env.identity.alive(env.identity.process()) {
            assert!(outcome.is_ok(), "{outcome:?}");
            break;
        }
        let at = format!("killed at call {n}");
        stage.check(&stage.world, &at);
        for image in 0..images {
            let cut = stage.world.power_cut(image);
            stage.check_and_end(&cut, &format!("{at}, power cut {image}"));
        }
        stage.check_and_end(&stage.world, &at);
        kills += 1;
    }
    println!("{kills} kills, each with {images} power cuts");
    assert!(kills > 20, "{kills}");
}

/// A power cut may leave the foot of any new frame as the last bytes of a log, if sectors end there.
#[test]
fn r38_new_frames_that_end_with_a_sector_leave_a_whole_backup() {
    let mut cuts = 0;
    let beside = flush_to_ends_of_sectors(&open(&SimWorld::new(58), "a"), &[], 0..7);
    for n in 1.. {
        let world = SimWorld::new(58);
        world.set_tracing(false);
        let store = open(&world, "a");
        flush_to_ends_of_sectors(&store, &beside, 0..3);
        backup(&world);
        let before = content(&copy(&world));
        flush_to_ends_of_sectors(&store, &beside, 3..7);
        let after = content(&store);
        let env = world.process("a");
        world.kill_nth(&env, None, n);
        if run(&env).is_ok() {
            break;
        }
        for image in 0..if full() { 1_000 } else { 80 } {
            let cut = world.power_cut(image);
            let at = format!("killed at call {n}, power cut {image}");
            let shown = content(&copy(&cut));
            assert!(shown == before || shown == after, "{at}: {shown:?}");
            promote(&cut.process("d"), Path::new(TO)).ok();
            let shown = content(&copy(&cut));
            assert!(shown == before || shown == after, "{at}, promoted: {shown:?}");
            cuts += 1;
        }
    }
    assert!(cuts > 200, "{cuts}");
}

#[test]
fn a_promotion_that_dies_leaves_a_backup_or_a_store() {
    for n in (1..).step_by(if full() { 1 } else { 4 }) {
        let stage = stage();
        // A round that was broken off, so that there is something to put right.
        let env = stage.world.process("a");
        stage.world.kill_nth(&env, Some(OpKind::Rename), 2);
        assert!(run(&env).is_err());
        let env = stage.world.process("c");
        stage.world.kill_nth(&env, None, n);
        let outcome = promote(&env, Path::new(TO));
        let is_dead = !env.identity.alive(env.identity.process());
        for world in [stage.world.power_cut(0), stage.world.power_cut(1)] {
            assert_eq!(content(&copy(&world)), stage.before, "killed at call {n}");
            match promote(&world.process("d"), Path::new(TO)) {
                Ok(_) => {}
                // Its mark was there already.
                Err(e) => assert_eq!(e.kind(), ErrorKind::Invalid, "{e}"),
            }
            let opening = Opening::default().local(TO);
            let promoted = LocalStore::open(world.process("d"), Path::new(TO), opening).unwrap();
            let promoted = std::sync::Arc::new(promoted);
            assert_eq!(content(&promoted), stage.before);
            flush_one(&promoted, T1, b"its own");
            assert_eq!(get(&promoted, T1).unwrap(), b"its own");
        }
        if !is_dead {
            outcome.unwrap();
            return;
        }
        // A backup goes on where its promotion died.
        if run(&stage.world.process("a")).is_ok() {
            assert_eq!(content(&copy(&stage.world)), stage.after, "killed at call {n}");
        }
    }
}

#[test]
fn a_full_or_failing_disk_leaves_the_version_of_before() {
    let kinds =
        [OpKind::Create, OpKind::Write, OpKind::SyncData, OpKind::SyncDir, OpKind::Rename, OpKind::ListDir];
    let mut struck = 0;
    for (kind, fault) in kinds.into_iter().flat_map(|kind| [(kind, Fault::NoSpace), (kind, Fault::Io)]) {
        for n in 1.. {
            let stage = stage();
            let env = stage.world.process("a");
            stage.world.clear_trace();
            let plan = Plan::new(fault).host("a").process(env.identity.process()).kind(kind).nth(n);
            stage.world.schedule(plan);
            let outcome = run(&env);
            if stage.world.counters().count(kind) < n {
                assert!(outcome.is_ok(), "{outcome:?}");
                break;
            }
            stage.world.clear_faults();
            struck += usize::from(outcome.is_err());
            stage.check_and_end(&stage.world.power_cut(0), &format!("{fault:?} at {kind:?} {n}"));
        }
    }
    assert!(struck > 10, "{struck}");
}

#[test]
fn array_files_in_new_folders_are_durable_before_a_backup_shows_them() {
    let world = SimWorld::new(52);
    let store = open(&world, "a");
    flush_one(&store, T1, b"first");
    let env = world.process("a");
    let within = "arrays/a/0123456789abcdef/g0";
    env.disk.create_dir_all(&Path::new(ROOT).join(within)).unwrap();
    let file = env.disk.create_new(&Path::new(ROOT).join(within).join("t-0.nc")).unwrap();
    write_all_at(&*file, b"an array", 0).unwrap();
    backup(&world);
    for image in 0..8 {
        let cut = world.power_cut(image);
        let kept = cut.read(&Path::new(TO).join(within).join("t-0.nc"));
        assert!(kept.is_ok_and(|kept| kept == b"an array"), "image {image}");
    }
}

/// A store with a backup, whose last commit is damaged; its log, and what the backup shows.
fn with_a_damaged_last_commit() -> (SimWorld, PathBuf, BTreeMap<String, String>) {
    let world = SimWorld::new(57);
    world.set_tracing(false);
    let store = open(&world, "a");
    flush_one(&store, T1, b"first");
    backup(&world);
    let before = content(&copy(&world));
    flush_one(&store, T2, &[7; 3_000]);
    close(&store);
    let logs = || world.files().into_iter().filter(|path| path.starts_with(Path::new(ROOT).join("logs")));
    let log = logs().find(|path| path.extension().is_some_and(|ext| ext == "log")).unwrap();
    let bytes = world.read(&log).unwrap();
    let at = bytes.windows(64).position(|window| window == [7; 64]).unwrap();
    world.flip(&log, at as u64 + 100, 1).unwrap();
    (world, log, before)
}

/// The source's board vouches for its last commit, and nothing in a backup does.
#[test]
fn a_damaged_last_commit_is_named_and_leaves_the_version_of_before() {
    let (world, _, before) = with_a_damaged_last_commit();
    let error = try_backup(&world, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt, "{error}");
    assert!(error.to_string().contains("last commit"), "{error}");
    assert_eq!(content(&copy(&world)), before);
}

#[test]
fn what_was_given_up_of_a_last_commit_goes_along() {
    let (world, log, before) = with_a_damaged_last_commit();
    let name = log.strip_prefix(ROOT).unwrap().display().to_string();
    let report = open(&world, "a").accept(&name, "bit rot", &Session::default()).unwrap();
    assert_eq!(report.keys.len(), 1, "{report}");
    // A handle without a past relies on boards alone.
    world.advance(2 * SECOND);
    let made = backup(&world);
    assert_eq!(content(&copy(&world)), before, "the damaged field was the only one that was added");
    assert_eq!(copy(&world).version().unwrap(), made.version);
    let more = open(&world, "a");
    flush_one(&more, T2, b"again");
    close(&more);
    let again = backup(&world);
    let after = content(&open(&world, "b"));
    assert_eq!((content(&copy(&world)), again.before), (after.clone(), made.version.clone()));
    assert_eq!(content(&copy_at(&world, Some(&made.version)).unwrap()), before);
    // The mark of a promoted copy goes on vouching.
    promote(&world.process("d"), Path::new(TO)).unwrap();
    let opening = Opening::default().local(TO);
    let promoted = LocalStore::open(world.process("d"), Path::new(TO), opening).unwrap();
    assert_eq!(content(&std::sync::Arc::new(promoted)), after);
}
