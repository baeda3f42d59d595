//! Every sync of the writer has a reason: for each one, a test disables it and sees a power cut lose flushed data or
//! the store itself, while with the sync nothing is lost. `docs/faults.md` lists them. Boards are hints, and none of
//! their writes is synced.

use std::path::Path;

use crate::faults::{Model, ROOT, Step, Work, check, full, open};
use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::{OpKind, SimWorld, SyncKind};

/// A sync that is disabled.
#[derive(Debug, Clone, Copy)]
enum Removed {
    /// The sync of the bytes of files whose path contains this.
    Data(&'static str),
    /// The sync of the entries of exactly this folder.
    Dir(&'static str),
}

const STEPS: [Step; 5] = [Step::Small, Step::Large, Step::Overwrite, Step::Commit, Step::Pieces];

fn work(env: &Env, model: &mut Model, seed: u64) -> Result<()> {
    let store = open(env)?;
    let result = {
        let mut work = Work::new(&store, model, "mine", seed);
        STEPS.iter().try_for_each(|&step| work.step(step))
    };
    std::mem::forget(store);
    result
}

/// Disables a sync of `world` from now on. `future` holds the coming calls.
fn remove(world: &SimWorld, removed: Removed, future: &[(OpKind, std::path::PathBuf)]) {
    let folder = match removed {
        Removed::Data(part) => {
            let made = |(kind, path): &(OpKind, std::path::PathBuf)| {
                *kind == OpKind::SyncData && path.to_str().unwrap().contains(part)
            };
            assert!(future.iter().any(made), "{part} is never synced");
            return world.disable_sync(SyncKind::Data, part);
        }
        Removed::Dir(folder) => Path::new(folder),
    };
    // The world identifies syncs by a part of their path; this one is distinguished from those below it by its place
    // among them.
    let part = folder.to_str().unwrap();
    let same = future
        .iter()
        .filter(|(kind, path)| *kind == OpKind::SyncDir && path.to_str().unwrap().contains(part));
    let mut times = 0;
    for (n, (_, path)) in (1..).zip(same) {
        if path == folder {
            world.disable_nth_sync(SyncKind::Dir, part, n);
            times += 1;
        }
    }
    assert!(times > 0, "{folder:?} is never synced");
}

fn calls(world: &SimWorld) -> Vec<(OpKind, std::path::PathBuf)> {
    world.trace().into_iter().map(|op| (op.kind, op.path.to_path_buf())).collect()
}

/// The loss, if any, that a power cut at some moment of a writer's work causes.
fn loss(removed: Option<Removed>) -> Option<String> {
    for seed in 0..if full() { 6 } else { 2 } {
        let undisturbed = SimWorld::new(seed);
        work(&undisturbed.process("a"), &mut Model::default(), seed).unwrap();
        let calls = calls(&undisturbed);
        let mut n = 10;
        while n <= calls.len() as u64 + 1 {
            let world = SimWorld::new(seed);
            world.set_tracing(false);
            if let Some(removed) = removed {
                remove(&world, removed, &calls);
            }
            let env = world.process("a");
            world.kill_nth(&env, None, n);
            let mut model = Model::default();
            let _ = work(&env, &mut model, seed);
            for image in 0..6 {
                if let Err(wrong) = check(&world.power_cut(image), "a", &model) {
                    return Some(format!("seed {seed}, cut at call {n}, image {image}: {wrong}"));
                }
            }
            // If a sync is missing, the loss shows at once; if none is missing, fewer moments suffice.
            n += if removed.is_some() { 3 } else { 11 };
        }
    }
    None
}

/// The loss that a power cut causes to a writer whose predecessor died while it made the store.
fn loss_after_a_death(removed: Option<Removed>) -> Option<String> {
    for seed in 0..if full() { 30 } else { 6 } {
        for n in 1..45 {
            let world = SimWorld::new(seed);
            let first = world.process("a");
            world.kill_nth(&first, None, n);
            let mut dead = Model::default();
            let _ =
                open(&first).and_then(|store| Work::new(&store, &mut dead, "mine", seed).step(Step::Small));
            if dead.acknowledged > 0 {
                break;
            }
            let second = |world: &SimWorld, model: &mut Model| {
                let store = open(&world.process("a")).unwrap();
                Work::new(&store, model, "mine", !seed).step(Step::Small).unwrap();
                drop(store);
            };
            if let Some(removed) = removed {
                let ahead = world.fork_image();
                ahead.clear_trace();
                second(&ahead, &mut Model::default());
                let calls = calls(&ahead);
                if let Removed::Dir(folder) = removed
                    && !calls.contains(&(OpKind::SyncDir, folder.into()))
                {
                    continue;
                }
                remove(&world, removed, &calls);
            }
            // Data that the dead writer had not flushed may appear.
            let mut model = Model::default();
            second(&world, &mut model);
            model.before = model.after.clone();
            let mut both = dead.after.clone();
            both.extend(model.after.clone());
            model.after = both;
            for image in 0..8 {
                if let Err(wrong) = check(&world.power_cut(image), "a", &model) {
                    return Some(format!("seed {seed}, first died at {n}, image {image}: {wrong}"));
                }
            }
        }
    }
    None
}

fn needed(removed: Removed) {
    let loss = loss(Some(removed));
    assert!(loss.is_some(), "nothing is lost without the sync of {removed:?}");
}

fn needed_after_a_death(removed: Removed) {
    let loss = loss_after_a_death(Some(removed));
    assert!(loss.is_some(), "nothing is lost without the sync of {removed:?}");
}

#[test]
fn with_every_sync_nothing_is_lost() {
    assert_eq!(loss(None), None);
}

#[test]
fn a_writer_that_follows_a_dead_one_loses_nothing() {
    assert_eq!(loss_after_a_death(None), None);
}

#[test]
fn a_log_is_synced_at_each_flush() {
    needed(Removed::Data(".log"));
}

#[test]
fn a_data_log_is_synced_before_its_log() {
    needed(Removed::Data(".data"));
}

#[test]
fn the_marker_is_synced_before_it_gets_its_name() {
    needed(Removed::Data("/.new-"));
}

#[test]
fn the_folder_of_logs_is_synced_after_a_new_log() {
    needed(Removed::Dir("/scratch/project/store/logs"));
}

#[test]
fn the_folder_of_data_logs_is_synced_after_a_new_data_log() {
    needed(Removed::Dir("/scratch/project/store/data"));
}

#[test]
fn the_folder_of_the_store_is_synced_with_folders_and_marker_in_it() {
    needed(Removed::Dir(ROOT));
}

#[test]
fn the_parent_of_the_store_is_synced_when_it_is_made() {
    needed(Removed::Dir("/scratch/project"));
}

#[test]
fn each_new_folder_above_the_store_is_synced_into_its_parent() {
    needed(Removed::Dir("/scratch"));
    needed(Removed::Dir("/"));
}

#[test]
fn the_folder_of_the_store_is_synced_again_by_who_finds_it_made() {
    needed_after_a_death(Removed::Dir(ROOT));
}

#[test]
fn the_folders_above_are_synced_again_where_there_is_no_marker() {
    needed_after_a_death(Removed::Dir("/scratch/project"));
    needed_after_a_death(Removed::Dir("/scratch"));
    needed_after_a_death(Removed::Dir("/"));
}

/// The list above is complete: a writer makes each of these syncs, and no others.
#[test]
fn no_other_sync_is_made() {
    let world = SimWorld::new(3);
    work(&world.process("a"), &mut Model::default(), 3).unwrap();
    let mut synced: Vec<String> = world
        .trace()
        .iter()
        .filter(|op| matches!(op.kind, OpKind::SyncData | OpKind::SyncDir))
        .map(|op| {
            let path = op.path.to_str().unwrap();
            match path.rsplit_once('.') {
                Some((_, "log")) => "a log".to_owned(),
                Some((_, "data")) => "a data log".to_owned(),
                Some((_, new)) if new.starts_with("new-") => "the marker".to_owned(),
                _ => path.to_owned(),
            }
        })
        .collect();
    synced.sort();
    synced.dedup();
    let expected = [
        "/",
        "/scratch",
        "/scratch/project",
        ROOT,
        "/scratch/project/store/data",
        "/scratch/project/store/logs",
        "a data log",
        "a log",
        "the marker",
    ];
    assert_eq!(synced, expected);
}
