//! Helpers for the tests of whole stores: handles in simulated worlds, short calls, and re-exports from the kit.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::{Op, OpKind, SimWorld};
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::request::Request;
use fieldstone_format::log::{FOOT, FrameInfo};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
pub use fieldstone_store::api::{Admin as _, FieldAccess as _, Transactions as _};
use fieldstone_store::conformance::Opening;
use fieldstone_store::local::LocalStore;
pub use fieldstone_testkit::{Random, errors::error, fields::pattern, seeded};

pub const SECOND: u64 = 1_000_000_000;
pub const HOUR: i64 = 3_600 * SECOND as i64;
/// From 2024, where simulated worlds begin, to 2099.
pub const TO_2099: i64 = 75 * 365 * 24 * HOUR;
pub const ROOT: &str = "/shared/store";

pub type Store = Arc<LocalStore>;

/// The users of the hosts `alice` and `bob`.
pub const ALICE: u32 = 501;
pub const BOB: u32 = 502;

/// The folders of a store, which an administrator made for all users: everyone adds files, no one removes another's.
pub fn shared_folder() -> SimWorld {
    shared_folder_of(1)
}

/// The same in the world of a seed.
pub fn shared_folder_of(seed: u64) -> SimWorld {
    let world = SimWorld::new(seed);
    for (host, user) in [("alice", ALICE), ("bob", BOB), ("admin", 0)] {
        world.set_uid(host, user);
    }
    let admin = world.process("admin");
    for folder in ["", "logs", "data", "boards"] {
        let path = Path::new(ROOT).join(folder);
        admin.disk.create_dir_all(&path).unwrap();
        world.permissions().set_mode(&path, 0o1777).unwrap();
    }
    world
}

/// A handle in an environment. With `FIELDSTONE_PLANTED` it meets a planted fault (docs/faults.md): the tests of the rule that it
/// breaks have to fail.
pub fn open_in(env: &Env, how: &Opening) -> Result<Store> {
    if let Ok(name) = std::env::var("FIELDSTONE_PLANTED") {
        planted::plant(Planted::named(&name));
    }
    Ok(Arc::new(LocalStore::open(env.clone(), Path::new(ROOT), how.local(ROOT))?))
}

/// A handle of a new process of a host.
pub fn open(world: &SimWorld, host: &str) -> Store {
    open_in(&world.process(host), &Opening::default()).unwrap()
}

/// A log up to its last commit: an open writer leaves zeros after it.
pub fn commits(world: &SimWorld, log: &Path) -> Vec<u8> {
    let mut bytes = world.read(log).unwrap();
    let data = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let whole = |end: &usize| FrameInfo::decode_foot(&bytes[end - FOOT..*end], *end as u64).is_ok();
    // The foot itself may end in zeros.
    let end = (data..=bytes.len().min(data + 3)).find(whole).unwrap();
    bytes.truncate(end);
    bytes
}

pub fn pairs(key: &str) -> Vec<(String, String)> {
    Request::parse(key).unwrap().single_pairs().unwrap()
}

pub fn archive<S: FieldStore + ?Sized>(
    store: &Arc<S>,
    key: &str,
    value: Value<'_>,
    options: &ArchiveOptions,
) -> Result<()> {
    let pairs = pairs(key);
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    store.archive(&pairs, value, options)
}

pub fn put<S: FieldStore + ?Sized>(store: &Arc<S>, key: &str, value: &[u8]) -> Result<()> {
    archive(store, key, Value::Bytes(value), &ArchiveOptions::default())
}

pub fn put_in<S: FieldStore + ?Sized>(
    store: &Arc<S>,
    key: &str,
    value: &[u8],
    transaction: Id,
) -> Result<()> {
    let options = ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() };
    archive(store, key, Value::Bytes(value), &options)
}

/// Archives and flushes one field.
pub fn flush_one<S: FieldStore + ?Sized>(store: &Arc<S>, key: &str, value: &[u8]) {
    put(store, key, value).unwrap();
    store.flush(&Session::default()).unwrap();
}

/// Flushes fields so that commits end where a sector of the disk does: a power cut may leave these as the last bytes of the log.
/// Returns the bytes that each commit has `beside` its payload, which a call on a store of the same past has to know.
pub fn flush_to_ends_of_sectors(store: &LocalStore, beside: &[u64], steps: Range<u64>) -> Vec<u64> {
    /// A shorter length is written in one byte less.
    const LEAST: u64 = 128;
    const SECTOR: u64 = 512;
    let end = || {
        let snapshot = store.journal().looks().snapshot().unwrap();
        snapshot.logs.iter().map(|log| log.ends.end()).max().unwrap_or(0)
    };
    let (mut before, mut found, mut known) = (end(), 0, Vec::new());
    for step in steps.clone() {
        let expected = beside.get(step as usize).copied().unwrap_or_default();
        let length = LEAST + (SECTOR - (before + expected + LEAST) % SECTOR) % SECTOR;
        let key = [("run", "a"), ("variable", "t"), ("step", &*step.to_string())];
        let value = vec![step as u8; length as usize];
        store.archive(&key, Value::Bytes(&value), &ArchiveOptions::default()).unwrap();
        store.flush(&Session::default()).unwrap();
        let now = end();
        found += u64::from(now % SECTOR == 0);
        known.push(now - before - length);
        before = now;
    }
    assert!(
        beside.is_empty() || found * 2 > steps.end - steps.start,
        "{found} of {steps:?}: {beside:?}, {known:?}"
    );
    known
}

pub fn field<S: FieldStore + ?Sized>(
    store: &Arc<S>,
    key: &str,
    transaction: Option<Id>,
) -> Result<fieldstone_store::Field> {
    let pairs = pairs(key);
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    store.get(&pairs, &ReadOptions { session: Session::from(transaction) })
}

pub fn get<S: FieldStore + ?Sized>(store: &Arc<S>, key: &str) -> Result<Vec<u8>> {
    field(store, key, None)?.read()
}

pub fn listed<S: FieldStore + ?Sized>(store: &Arc<S>) -> Vec<String> {
    let list = store.list(&Request::new(), &ListOptions::default()).unwrap();
    list.map(|entry| entry.unwrap().key.to_string()).collect()
}

pub fn count_all<S: FieldStore + ?Sized>(store: &Arc<S>) -> usize {
    let options = ListOptions { masked: true, ..ListOptions::default() };
    store.list(&Request::new(), &options).unwrap().map(Result::unwrap).count()
}

/// Files of the world's store in one of its folders.
pub fn files(world: &SimWorld, folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(ROOT).join(folder);
    world.files().into_iter().filter(|path| path.starts_with(&folder)).collect()
}

/// Successful calls of a kind on paths that contain `part`.
pub fn calls(world: &SimWorld, kind: OpKind, part: &str) -> Vec<Op> {
    let matches = |op: &Op| op.kind == kind && op.path.to_string_lossy().contains(part);
    world.trace().into_iter().filter(matches).collect()
}
