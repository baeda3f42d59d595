//! The conformance suite, on every system a store may stand on. Each behaviour on each system is a
//! test of its own: `cargo test -p fieldstone-store --test conformance weak::b01`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_store::api::{FieldStore, Joins};
use fieldstone_store::conformance::{self, Harness, Opening, put_file};
use fieldstone_store::local::LocalStore;

const SECOND: u64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND as i64;
/// From 2024, where simulated worlds begin, to 2099.
const TO_2099: i64 = 75 * 365 * 24 * HOUR;

fn open(env: Env, folder: &Path, how: &Opening) -> Result<Arc<dyn FieldStore>> {
    Ok(Arc::new(LocalStore::open(env, folder, how.local("tested"))?))
}

/// A folder of this machine's file system.
struct Posix(tempfile::TempDir);

impl Posix {
    fn fresh() -> Posix {
        Posix(tempfile::tempdir().unwrap())
    }
}

impl Harness for Posix {
    fn open(&self, _process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        open(Env::real(), &self.0.path().join("store"), how)
    }

    fn settle(&self) {}

    fn joins<'a>(&self, store: &'a dyn FieldStore) -> Option<&'a dyn Joins> {
        Some(store)
    }

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        put_file(&Env::real(), self.0.path().join(name), content)
    }
}

/// The store behind `memory:`.
struct Memory(Env);

impl Memory {
    fn fresh() -> Memory {
        Memory(SimWorld::memory())
    }
}

impl Harness for Memory {
    fn open(&self, _process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        open(self.0.clone(), Path::new("/store"), how)
    }

    fn settle(&self) {}

    fn joins<'a>(&self, store: &'a dyn FieldStore) -> Option<&'a dyn Joins> {
        Some(store)
    }

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        put_file(&self.0, Path::new("/").join(name), content)
    }
}

/// A simulated disk that several hosts share.
struct Shared {
    world: SimWorld,
    hosts: &'static [&'static str],
    /// How long hosts may see what was.
    staleness: u64,
}

impl Shared {
    fn new() -> Shared {
        let world = SimWorld::new(1);
        world.set_tracing(false);
        Shared { world, hosts: &["a", "b"], staleness: 0 }
    }

    /// The weak profile of a network file system.
    fn weak(seconds: u64) -> Shared {
        let shared = Shared { staleness: seconds * SECOND, ..Shared::new() };
        shared.world.weak(shared.staleness);
        shared
    }

    /// A file system without hard links.
    fn without_links() -> Shared {
        let shared = Shared::new();
        shared.world.set_links(false);
        shared
    }

    /// Hosts whose clocks are wrong; the world's time is right on the last.
    fn wrong_clocks(staleness: u64) -> Shared {
        let mut shared = if staleness == 0 { Shared::new() } else { Shared::weak(staleness) };
        shared.hosts = &["behind", "ahead", "far-ahead", "right"];
        shared.world.set_clock_offset("behind", -HOUR);
        shared.world.set_clock_offset("ahead", HOUR);
        shared.world.set_clock_offset("far-ahead", TO_2099);
        shared
    }
}

impl Harness for Shared {
    fn open(&self, process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        let host = self.hosts[process % self.hosts.len()];
        open(self.world.process(host), Path::new("/shared/store"), how)
    }

    fn settle(&self) {
        self.world.advance(self.staleness);
    }

    fn joins<'a>(&self, store: &'a dyn FieldStore) -> Option<&'a dyn Joins> {
        Some(store)
    }

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        let path = put_file(&self.world.process(self.hosts[0]), Path::new("/shared").join(name), content);
        self.settle();
        path
    }

    fn pass(&self) {
        self.world.advance(self.staleness / 8);
    }
}

macro_rules! one_test_each {
    ($($module:ident: $($name:ident),+;)+) => {$($(
        #[test]
        fn $name() {
            run(stringify!($name));
        }
    )+)+};
}

macro_rules! systems {
    ($($system:ident: $fresh:expr;)+) => {$(
        mod $system {
            use super::*;

            fn run(name: &str) {
                conformance::run(name, &$fresh).unwrap();
            }

            fieldstone_store::behaviours!(one_test_each);
        }
    )+};
}

systems! {
    posix: Posix::fresh();
    memory: Memory::fresh();
    shared: Shared::new();
    weak: Shared::weak(10);
    very_weak: Shared::weak(50);
    without_links: Shared::without_links();
    wrong_clocks: Shared::wrong_clocks(0);
    weak_with_wrong_clocks: Shared::wrong_clocks(30);
}
