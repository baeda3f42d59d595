//! The conformance suite, on every system that can hold a store. Each behaviour on each system is a separate test:
//! `cargo test -p fieldstone-store --test all conformance::weak`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_journal::Session;
use fieldstone_journal::medium::objects::{ObjectMedium, Objects};
use fieldstone_store::api::*;
use fieldstone_store::conformance::{self, Access, Harness, Opening, put_file};
use fieldstone_store::frontends::FilterStore;
use fieldstone_store::local::LocalStore;

const SECOND: u64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND as i64;
/// From 2024, where simulated worlds begin, to 2099.
const TO_2099: i64 = 75 * 365 * 24 * HOUR;

/// A system that holds a store in a folder, which alone has a journal.
pub trait Folder: Harness {
    /// As [`Harness::open`].
    fn local(&self, process: usize, how: &Opening) -> Result<LocalStore>;
}

fn open(env: Env, folder: &Path, how: &Opening) -> Result<LocalStore> {
    LocalStore::open(env, folder, how.local("tested"))
}

/// A folder of this machine's file system.
pub struct Posix(tempfile::TempDir);

impl Posix {
    pub fn fresh() -> Posix {
        Posix(tempfile::tempdir().unwrap())
    }
}

impl Folder for Posix {
    fn local(&self, _process: usize, how: &Opening) -> Result<LocalStore> {
        open(Env::real(), &self.0.path().join("store"), how)
    }
}

impl Harness for Posix {
    fn open(&self, process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        Ok(Arc::new(self.local(process, how)?))
    }

    fn settle(&self) {}

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        put_file(&Env::real(), self.0.path().join(name), content)
    }

    fn inside(&self, name: &str, content: Option<&[u8]>) -> Result<Option<PathBuf>> {
        self.source(&format!("store/{name}"), content).map(Some)
    }
}

/// The store of `memory:`.
pub struct Memory(Env);

impl Memory {
    pub fn fresh() -> Memory {
        Memory(SimWorld::memory())
    }
}

impl Folder for Memory {
    fn local(&self, _process: usize, how: &Opening) -> Result<LocalStore> {
        open(self.0.clone(), Path::new("/store"), how)
    }
}

impl Harness for Memory {
    fn open(&self, process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        Ok(Arc::new(self.local(process, how)?))
    }

    fn settle(&self) {}

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        put_file(&self.0, Path::new("/").join(name), content)
    }

    fn inside(&self, name: &str, content: Option<&[u8]>) -> Result<Option<PathBuf>> {
        self.source(&format!("store/{name}"), content).map(Some)
    }
}

/// A store of objects that are put once, without a disk.
struct AsObjects {
    world: SimWorld,
    objects: Arc<Objects>,
}

impl AsObjects {
    fn new() -> AsObjects {
        AsObjects { world: SimWorld::new(1), objects: Arc::default() }
    }
}

impl Harness for AsObjects {
    fn open(&self, process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        let env = self.world.process(["a", "b"][process % 2]);
        let medium = Arc::new(ObjectMedium::new(env.clone(), self.objects.clone()));
        Ok(Arc::new(LocalStore::open_in(env, medium, how.local("tested"))?))
    }

    fn settle(&self) {}

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        put_file(&self.world.process("a"), Path::new("/").join(name), content)
    }
}

/// A simulated disk that several hosts share.
pub struct Shared {
    world: SimWorld,
    hosts: &'static [&'static str],
    /// How long hosts may see old contents.
    staleness: u64,
}

impl Shared {
    pub fn new() -> Shared {
        let world = SimWorld::new(1);
        world.set_tracing(false);
        Shared { world, hosts: &["a", "b"], staleness: 0 }
    }

    /// The weak profile of a network file system.
    pub fn weak(seconds: u64) -> Shared {
        let shared = Shared { staleness: seconds * SECOND, ..Shared::new() };
        shared.world.weak(shared.staleness);
        shared
    }

    /// A file system without hard links.
    pub fn without_links() -> Shared {
        let shared = Shared::new();
        shared.world.set_links(false);
        shared
    }

    /// Hosts whose clocks are wrong; the world's time is correct on the last.
    pub fn wrong_clocks(staleness: u64) -> Shared {
        let mut shared = if staleness == 0 { Shared::new() } else { Shared::weak(staleness) };
        shared.hosts = &["behind", "ahead", "far-ahead", "right"];
        shared.world.set_clock_offset("behind", -HOUR);
        shared.world.set_clock_offset("ahead", HOUR);
        shared.world.set_clock_offset("far-ahead", TO_2099);
        shared
    }
}

impl Folder for Shared {
    fn local(&self, process: usize, how: &Opening) -> Result<LocalStore> {
        let host = self.hosts[process % self.hosts.len()];
        open(self.world.process(host), Path::new("/shared/store"), how)
    }
}

impl Harness for Shared {
    fn open(&self, process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        Ok(Arc::new(self.local(process, how)?))
    }

    fn settle(&self) {
        self.world.advance(self.staleness);
    }

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        let path = put_file(&self.world.process(self.hosts[0]), Path::new("/shared").join(name), content);
        self.settle();
        path
    }

    fn inside(&self, name: &str, content: Option<&[u8]>) -> Result<Option<PathBuf>> {
        self.source(&format!("store/{name}"), content).map(Some)
    }

    fn pass(&self) {
        self.world.advance(self.staleness / 8);
    }
}

/// A filter over a store that also holds hidden fields: in the same datasets and indexes, in separate datasets,
/// incomplete, contradictory, removed and overwritten.
struct Filtered {
    beneath: Shared,
    /// The number of flushes of hidden fields.
    hidden: AtomicU64,
}

/// All variables of the suite.
const VARIABLES: &str =
    "t/u/s/v/t0/t1/t2/t3/v0/v1/v2/v3/mask/none/one/two/first/second/late/after/array/bytes";

impl Filtered {
    fn new() -> Filtered {
        Filtered { beneath: Shared::new(), hidden: AtomicU64::new(0) }
    }

    /// The filter, and keys that it hides, for a schema of the suite.
    fn filter(schema: &Schema) -> (Request, Vec<&'static [(&'static str, &'static str)]>) {
        if schema.type_of("variable").is_some() {
            let keys: [&[(&str, &str)]; 5] = [
                &[("run", "a"), ("variable", "hidden"), ("step", "99")],
                &[("run", "a"), ("variable", "zz"), ("step", "1")],
                &[("run", "b"), ("variable", "a"), ("step", "0")],
                &[("run", "hidden"), ("variable", "hidden"), ("step", "1")],
                &[("run", "0"), ("variable", "0"), ("step", "0")],
            ];
            return (Request::parse(&format!("variable={VARIABLES}")).unwrap(), keys.to_vec());
        }
        let short: &[(&str, &str)] =
            &[("class", "od"), ("expver", "1"), ("type", "fc"), ("step", "0"), ("param", "t")];
        let long: &[(&str, &str)] = &[
            ("class", "od"),
            ("expver", "xxxx"),
            ("stream", "oper"),
            ("date", "20250101"),
            ("time", "12"),
            ("type", "fc"),
            ("levtype", "pl"),
            ("step", "0"),
            ("levelist", "500"),
            ("param", "130.128"),
        ];
        let keys = [short, long].into_iter().filter(|key| schema.resolve(key).is_ok()).collect();
        (Request::parse("class=rd").unwrap(), keys)
    }

    /// Flushes hidden fields if the store exists; the second flush overwrites the first.
    fn hide(&self) -> Result<()> {
        let read = Opening { access: Access::Read, ..Opening::default() };
        if self.hidden.load(Ordering::Relaxed) == 2 || self.beneath.open(0, &read).is_err() {
            return Ok(());
        }
        let round = self.hidden.fetch_add(1, Ordering::Relaxed);
        let store = self.beneath.open(5, &Opening::default())?;
        let plain = ArchiveOptions::default();
        let (_, keys) = Filtered::filter(&store.schema());
        assert!(!keys.is_empty(), "the schema accepts none of the keys to hide");
        for (i, key) in keys.iter().enumerate() {
            match i as u64 + round {
                1 => {
                    let spec = FieldSpec { dtype: DType::F8, shape: &[4], fill: None, chunks: None };
                    store.create_field(key, &spec, &plain)?;
                }
                2 => {
                    for shape in [[2], [3]] {
                        let (data, dtype) = (&[0; 8], DType::F8);
                        let piece = Value::Piece { data, dtype, start: &[0], count: &[1], shape: &shape };
                        store.archive(key, piece, &plain)?;
                        store.flush(&Session::default())?;
                    }
                }
                _ => store.archive(key, Value::Bytes(b"never to be seen"), &plain)?,
            }
        }
        store.flush(&Session::default())?;
        if let ([last, _, ..], 1) = (&keys[..], round) {
            store.remove_fields(&[store.get(last, &ReadOptions::default())?], &RemoveOptions::default())?;
        }
        store.close(&Session::default())
    }
}

impl Harness for Filtered {
    fn open(&self, process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        let beneath = self.beneath.open(process, how)?;
        let (filter, _) = Filtered::filter(&beneath.schema());
        Ok(Arc::new(FilterStore::new(beneath, filter)?))
    }

    fn settle(&self) {
        self.hide().unwrap();
        self.beneath.settle();
    }

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        self.beneath.source(name, content)
    }

    fn inside(&self, name: &str, content: Option<&[u8]>) -> Result<Option<PathBuf>> {
        self.beneath.inside(name, content)
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
    filtered: Filtered::new();
    objects: AsObjects::new();
}
