//! Backups (store format, 15.7; R38): incremental, whole at every moment, for reading alone until they are promoted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::*;
use crate::purge::{at_once, purge, visible};
use crate::takeovers::{close, compact};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_journal::Session;
use fieldstone_journal::journal::{Journal, JournalOptions, promote};
use fieldstone_journal::medium::posix::backup::BackupReport;
use fieldstone_store::LocalStore;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Access, Opening};

pub const T1: &str = "run=a,variable=t,step=1";
pub const T2: &str = "run=a,variable=t,step=2";
pub const TO: &str = "/backup/store";

pub fn try_backup(world: &SimWorld, purge: bool) -> Result<BackupReport> {
    let env = world.process("c");
    let options = JournalOptions { url: ROOT.into(), must_exist: true, ..JournalOptions::default() };
    let source = Journal::open(env.clone(), Path::new(ROOT), options)?;
    source.back_up((&env, Path::new(TO)), purge, &mut |_| Ok(()))
}

pub fn backup(world: &SimWorld) -> BackupReport {
    try_backup(world, false).unwrap()
}

/// A handle on the backup, for reading.
pub fn copy_at(world: &SimWorld, at: Option<&str>) -> Result<Store> {
    let opening = Opening { access: Access::Read, at: at.map(str::to_owned), ..Opening::default() };
    let store = LocalStore::open(world.process("d"), Path::new(TO), opening.local(TO))?;
    Ok(std::sync::Arc::new(store))
}

pub fn copy(world: &SimWorld) -> Store {
    copy_at(world, None).unwrap()
}

/// All that it shows, after a check that all of it is whole.
pub fn content(store: &Store) -> BTreeMap<String, String> {
    let report = store.verify(&Request::new()).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
    visible(store, None)
}

fn write(world: &SimWorld, key: &str, value: &[u8]) {
    let store = open(world, "a");
    flush_one(&store, key, value);
    close(&store);
}

fn bytes_of(world: &SimWorld) -> u64 {
    let folder = |name: &str| {
        let path = Path::new(TO).join(name);
        let env = world.host("a");
        let names = env.disk.list_dir(&path).unwrap_or_default();
        names.into_iter().map(|(name, _)| path.join(name)).collect::<Vec<PathBuf>>()
    };
    ["logs", "data"].into_iter().flat_map(folder).map(|path| world.read(&path).unwrap().len() as u64).sum()
}

#[test]
fn r38_a_backup_shows_a_version_and_then_the_next_one() {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, T1, b"first");
    flush_one(&writer, T2, &vec![7; 3 << 20]);
    let first = backup(&world);
    assert_eq!((first.version.clone(), first.before.as_str()), (writer.version().unwrap(), ""));
    let expected = content(&writer);
    assert_eq!(content(&copy(&world)), expected);
    assert_eq!(copy(&world).version().unwrap(), first.version);
    // Nothing is new: nothing is copied.
    let again = backup(&world);
    assert_eq!((again.nbytes, again.files, again.version), (0, 0, first.version.clone()));
    flush_one(&writer, T1, b"second");
    assert_eq!(content(&copy(&world)), expected);
    let second = backup(&world);
    assert!(second.nbytes < 2000, "{second:?}");
    assert_eq!(content(&copy(&world)), content(&writer));
    assert_eq!(content(&copy_at(&world, Some(&first.version)).unwrap()), expected);
}

#[test]
fn nobody_writes_into_a_backup_until_it_is_promoted() {
    let world = SimWorld::new(2);
    let writer = open(&world, "a");
    flush_one(&writer, T1, b"first");
    backup(&world);
    let opening = Opening::default();
    let denied = LocalStore::open(world.process("d"), Path::new(TO), opening.local(TO)).unwrap_err();
    assert_eq!((denied.kind(), denied.code()), (ErrorKind::Denied, Code::ReadOnly));
    assert!(denied.hint().unwrap().contains("fieldstone promote"), "{denied}");
    let denied = put(&copy(&world), T1, b"x").unwrap_err();
    assert!(denied.to_string().contains("backup"), "{denied}");
    let was = content(&copy(&world));
    let id = promote(&world.process("d"), Path::new(TO)).unwrap();
    let promoted = LocalStore::open(world.process("d"), Path::new(TO), Opening::default().local(TO)).unwrap();
    let promoted = std::sync::Arc::new(promoted);
    assert_ne!(id, writer.journal().home().id);
    assert_eq!((promoted.journal().home().id, content(&promoted)), (id, was));
    flush_one(&promoted, T2, b"its own");
    close(&promoted);
    // Both go on, each by itself.
    flush_one(&writer, T1, b"second");
    for take_over in [false, true] {
        let promoted =
            LocalStore::open(world.process("e"), Path::new(TO), Opening::default().local(TO)).unwrap();
        let promoted = std::sync::Arc::new(promoted);
        if take_over {
            compact(&promoted);
        }
        assert_eq!(get(&promoted, T1).unwrap(), b"first");
        assert_eq!(get(&promoted, T2).unwrap(), b"its own");
        content(&promoted);
    }
    assert_eq!(get(&writer, T1).unwrap(), b"second");
    let error = try_backup(&world, false).unwrap_err();
    assert_eq!(error.code(), Code::TargetDiffers, "{error}");
    assert_eq!(promote(&world.process("d"), Path::new(TO)).unwrap_err().kind(), ErrorKind::Invalid);
}

#[test]
fn a_folder_that_is_no_backup_of_the_store_is_left_alone() {
    let world = SimWorld::new(3);
    write(&world, T1, b"first");
    let env = world.host("a");
    env.disk.create_dir_all(Path::new(TO)).unwrap();
    let stray = Path::new(TO).join("notes.txt");
    env.disk.create_new(&stray).unwrap();
    assert_eq!(try_backup(&world, false).unwrap_err().code(), Code::TargetExists);
    assert_eq!(env.disk.list_dir(Path::new(TO)).unwrap().len(), 1);
    env.disk.unlink(&stray).unwrap();
    let other = LocalStore::open(world.process("a"), Path::new(TO), Opening::default().local(TO)).unwrap();
    let other = std::sync::Arc::new(other);
    flush_one(&other, T1, b"another store's");
    assert_eq!(try_backup(&world, false).unwrap_err().code(), Code::TargetDiffers);
    assert_eq!(get(&other, T1).unwrap(), b"another store's");
    let into = |folder: &str| {
        let source = open(&world, "c");
        let to = (&world.process("c"), Path::new(folder));
        source.journal().back_up(to, false, &mut |_| Ok(())).unwrap_err().kind()
    };
    assert_eq!(into(&format!("{ROOT}/backup")), ErrorKind::Invalid);
    assert_eq!(into("/shared"), ErrorKind::Invalid);
}

#[test]
fn takeovers_of_the_source_replace_files_of_the_backup_a_grace_later() {
    let world = SimWorld::new(4);
    let mut versions = Vec::new();
    for n in 0..5u8 {
        write(&world, T1, &[n]);
        write(&world, T2, &vec![n; 100_000]);
        versions.push((backup(&world).version, content(&open(&world, "b"))));
    }
    let before = files_in_copy(&world).len();
    compact(&open(&world, "b"));
    backup(&world);
    let now = content(&open(&world, "b"));
    assert_eq!(content(&copy(&world)), now);
    assert!(files_in_copy(&world).len() > before);
    world.advance(3700 * SECOND);
    let report = backup(&world);
    assert!(report.removed > 5 && files_in_copy(&world).len() < before, "{report:?}");
    assert_eq!(content(&copy(&world)), now);
    for (version, was) in versions {
        assert_eq!(content(&copy_at(&world, Some(&version)).unwrap()), was);
    }
}

fn files_in_copy(world: &SimWorld) -> Vec<String> {
    let names = world.host("a").disk.list_dir(&Path::new(TO).join("logs")).unwrap();
    names.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn r38_a_purge_of_the_source_leaves_a_backup_alone_until_one_there() {
    let world = SimWorld::new(5);
    write(&world, T1, b"hidden");
    write(&world, T2, &vec![1; 300_000]);
    let old = backup(&world).version;
    let was = content(&copy(&world));
    for key in [T1, T2] {
        write(&world, key, b"newer");
    }
    assert!(purge(&world).versions > 0);
    backup(&world);
    let now = content(&open(&world, "b"));
    for _ in 0..3 {
        assert_eq!(content(&copy(&world)), now);
        assert_eq!(content(&copy_at(&world, Some(&old)).unwrap()), was);
        world.advance(3700 * SECOND);
        write(&world, "run=b,variable=t,step=1", b"more");
        compact(&open(&world, "b"));
        backup(&world);
        write(&world, "run=b,variable=t,step=1", b"more");
        purge(&world);
        backup(&world);
        assert_eq!(content(&copy_at(&world, Some(&old)).unwrap()), was);
        let now_there = content(&open(&world, "b"));
        assert_eq!(content(&copy(&world)), now_there);
        if now_there != now {
            break;
        }
    }
    let bytes = bytes_of(&world);
    let report = try_backup(&world, true).unwrap();
    assert!(report.removed > 0 && bytes_of(&world) + 300_000 < bytes, "{report:?}");
    let gone = copy_at(&world, Some(&old)).map(|store| get(&store, T1));
    assert!(gone.is_err() || gone.unwrap().is_err());
    assert_eq!(content(&copy(&world)), content(&open(&world, "b")));
    let _ = (at_once(), Session::default());
}
