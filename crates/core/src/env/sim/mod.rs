//! A simulated world, in memory: several hosts, their processes and the file system that they share; a seed
//! determines all of it.
//!
//! * [`SimWorld::memory`] is the plain, fast disk without faults behind `memory:`, with real time.
//! * [`SimWorld::new`] makes a world for tests: faults by plan or by chance, kills, power cuts,
//!   wrong clocks, other users, and the *weak* profile of a network file system.
//! * [`Random`] draws numbers from the seed, here, in the conformance suites and in tests.
//!
//! Invariants: nothing here touches the real world, except that `memory:` takes time, randomness and identity from
//! it; if one thread at a time makes calls, the same seed and the same calls give the same results, byte for byte.
//!
//! ```
//! use fieldstone_core::env::sim::{Fault, OpKind, SimWorld};
//! use std::path::Path;
//!
//! let world = SimWorld::new(42);
//! let env = world.host("a");
//! let file = env.disk.create_new(Path::new("/log")).unwrap();
//! world.fail_nth(OpKind::SyncData, 2, Fault::Io);
//! file.write_at(b"kept", 0).unwrap();
//! file.sync_data().unwrap();
//! env.disk.sync_dir(Path::new("/")).unwrap();
//! file.write_at(b" or lost", 4).unwrap();
//! assert!(file.sync_data().is_err());
//! let after = world.power_cut(7);
//! assert!(after.read(Path::new("/log")).unwrap().starts_with(b"kept"));
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

mod clock;
mod crash;
mod disk;
mod faults;
mod file;
mod journal;
mod permissions;
mod random;
mod stall;
mod tamper;
mod tree;
mod weak;

pub use faults::{Counters, Fault, Op, OpKind, Plan, SyncKind};
pub use permissions::Permissions;
pub use random::Random;
pub use stall::{ProcessStop, Stall};

use self::clock::{SimClock, SimIdentity, SimRand};
use self::disk::{Door, SimDisk, Who};
use self::faults::{Faults, Ignored};
use self::stall::Stalls;
use self::tree::Tree;
use self::weak::Weak;
use super::{Env, Space, real};
use crate::sync::plain::{Mutex, MutexGuard};

/// When a world begins: 2024-01-01, in nanoseconds since 1970.
const START: i64 = 1_704_067_200_000_000_000;

/// User of a host for which none was set.
const DEFAULT_UID: u32 = 1000;

/// Settings of a host.
#[derive(Debug, Clone, Copy)]
struct Host {
    offset: i64,
    uid: u32,
    /// Process id of the next process; each host counts its own, so that ids repeat between hosts.
    next: u32,
}

/// A process of a host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    host: Arc<str>,
    id: u32,
}

/// All mutable state.
#[derive(Debug)]
struct WorldState {
    seed: u64,
    rng: Random,
    now: i64,
    tree: Tree,
    hosts: BTreeMap<Arc<str>, Host>,
    /// Every process ever created, and whether it is alive.
    processes: BTreeMap<Process, bool>,
    /// How often the machines were started again.
    boots: u64,
    halted: bool,
    links: bool,
    faults: Faults,
    weak: Option<Weak>,
}

impl WorldState {
    fn new(seed: u64, tracked: bool, uid: u32) -> WorldState {
        WorldState {
            seed,
            rng: Random::derived(seed, 0),
            now: START,
            tree: Tree::new(tracked, uid),
            hosts: BTreeMap::new(),
            processes: BTreeMap::new(),
            boots: 0,
            halted: false,
            links: true,
            faults: Faults::new(),
            weak: None,
        }
    }

    fn host(&self, name: &str) -> Host {
        self.hosts.get(name).copied().unwrap_or(Host { offset: 0, uid: DEFAULT_UID, next: 100 })
    }

    fn space(&self) -> Space {
        let (bytes, files) = self.used();
        let left = |max: Option<u64>, used| max.map_or(i64::MAX as u64, |m: u64| m.saturating_sub(used));
        Space {
            free_bytes: left(self.faults.capacity, bytes),
            free_inodes: left(self.faults.max_files, files),
        }
    }
}

/// The state with its lock, and the suspended calls, which wait before they take the lock.
#[derive(Debug)]
struct World {
    state: Mutex<WorldState>,
    stalls: Stalls,
}

impl World {
    fn new(state: WorldState) -> World {
        World { state: Mutex::new(state), stalls: Stalls::default() }
    }

    fn lock(&self) -> MutexGuard<'_, WorldState> {
        self.state.lock()
    }
}

/// A handle on a simulated world; clones refer to the same world.
#[derive(Debug, Clone)]
pub struct SimWorld(Arc<World>);

impl SimWorld {
    /// An empty world.
    pub fn new(seed: u64) -> SimWorld {
        SimWorld::of(WorldState::new(seed, true, DEFAULT_UID))
    }

    fn of(state: WorldState) -> SimWorld {
        SimWorld(Arc::new(World::new(state)))
    }

    /// An empty disk in memory without faults, with the real time, randomness and identity.
    /// Clones of the `Env` share the disk.
    pub fn memory() -> Env {
        let uid = super::Identity::uid(&real::RealIdentity);
        let clock = real::RealClock::default();
        let world = Arc::new(World::new(WorldState::new(0, false, uid)));
        let who = Who::Real { clock: clock.clone(), host: "memory".into() };
        Env {
            clock: Arc::new(clock),
            rand: Arc::new(real::RealRand),
            disk: Arc::new(SimDisk(Door { world, who })),
            identity: Arc::new(real::RealIdentity),
        }
    }

    /// Creates a process on a host; the first process of a host creates the host.
    pub fn process(&self, host: &str) -> Env {
        process_of(self, host, false)
    }

    /// Creates a process of another machine, or of a container, that has the name of a host.
    pub fn namesake(&self, host: &str) -> Env {
        process_of(self, host, true)
    }

    /// As [`SimWorld::process`]; reads better for a host with only one process.
    pub fn host(&self, name: &str) -> Env {
        self.process(name)
    }

    fn env(&self, process: Process, rng: Random, namesake: bool) -> Env {
        let world = self.0.clone();
        let door = Door { world: world.clone(), who: Who::Process(process.clone()) };
        Env {
            clock: Arc::new(SimClock { world: world.clone(), process: process.clone() }),
            rand: Arc::new(SimRand(Mutex::new(rng))),
            disk: Arc::new(SimDisk(door)),
            identity: Arc::new(SimIdentity { world, process, namesake }),
        }
    }

    // Time and users.

    /// The true time, nanoseconds since 1970.
    pub fn now(&self) -> i64 {
        self.0.lock().now
    }

    /// Lets time pass.
    pub fn advance(&self, nanoseconds: u64) {
        let mut state = self.0.lock();
        state.now = state.now.saturating_add_unsigned(nanoseconds);
    }

    fn set_host(&self, host: &str, set: impl FnOnce(&mut Host)) {
        let mut state = self.0.lock();
        let mut settings = state.host(host);
        set(&mut settings);
        state.hosts.insert(host.into(), settings);
    }

    /// Sets how far a host's clock is ahead of the true time, in nanoseconds.
    pub fn set_clock_offset(&self, host: &str, nanoseconds: i64) {
        self.set_host(host, |h| h.offset = nanoseconds);
    }

    /// Sets the user of all processes of a host; 1000 by default.
    pub fn set_uid(&self, host: &str, uid: u32) {
        self.set_host(host, |h| h.uid = uid);
    }

    // Faults.

    /// Adds a planned fault.
    pub fn schedule(&self, plan: Plan) {
        self.0.lock().faults.plans.push(plan);
    }

    /// Plans a fault at the n-th call of a kind from now, counted from 1, by any host.
    pub fn fail_nth(&self, kind: OpKind, n: u64, fault: Fault) {
        self.schedule(Plan::new(fault).kind(kind).nth(n));
    }

    /// Makes each call of a kind fail with this probability.
    pub fn set_probability(&self, kind: OpKind, fault: Fault, probability: f64) {
        self.0.lock().faults.chances.push((kind, fault, probability));
    }

    /// Removes all planned and probable faults, disabled syncs and limits of space.
    pub fn clear_faults(&self) {
        let faults = &mut self.0.lock().faults;
        faults.plans.clear();
        faults.chances.clear();
        faults.ignored.clear();
        faults.capacity = None;
        faults.max_files = None;
    }

    /// Kills a process at its n-th call from now (of a kind, or of any).
    pub fn kill_nth(&self, env: &Env, kind: Option<OpKind>, n: u64) {
        let plan = Plan::new(Fault::Kill).host(&env.identity.host()).process(env.identity.process()).nth(n);
        self.schedule(match kind {
            Some(kind) => plan.kind(kind),
            None => plan,
        });
    }

    /// Kills a process now: all its later calls fail, and it is not alive.
    pub fn kill(&self, env: &Env) {
        let process = Process { host: env.identity.host().into(), id: env.identity.process() };
        self.0.lock().processes.insert(process, false);
    }

    /// Sets the size of the disk in bytes of file content; a write beyond it is short, the next one fails.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.0.lock().faults.capacity = bytes;
    }

    /// Sets how many files may exist.
    pub fn set_max_files(&self, files: Option<u64>) {
        self.0.lock().faults.max_files = files;
    }

    /// Makes all syncs of a kind on paths that contain `part` ("" for all) succeed without effect.
    pub fn disable_sync(&self, kind: SyncKind, part: &str) {
        self.0.lock().faults.ignored.push(Ignored { kind, nth: 0, path: part.to_owned() });
    }

    /// Makes the n-th such sync from now, counted from 1, succeed without effect.
    pub fn disable_nth_sync(&self, kind: SyncKind, part: &str, n: u64) {
        self.0.lock().faults.ignored.push(Ignored { kind, nth: n.max(1), path: part.to_owned() });
    }

    /// Turns on the weak profile: other hosts may see a host's changes up to `staleness_ns` late, and there is no
    /// append. It cannot be turned off.
    pub fn weak(&self, staleness_ns: u64) {
        self.0.lock().weaken(i64::try_from(staleness_ns).unwrap_or(i64::MAX));
    }

    /// Sets whether hard links work; if not, `link` gives `Unsupported`.
    pub fn set_links(&self, links: bool) {
        self.0.lock().links = links;
    }

    // The account.

    /// All calls so far, in order, except those of dead processes.
    pub fn trace(&self) -> Vec<Op> {
        self.0.lock().faults.trace.clone()
    }

    /// Counts of the same calls.
    pub fn counters(&self) -> Counters {
        self.0.lock().faults.counters.clone()
    }

    /// Clears the trace and the counters.
    pub fn clear_trace(&self) {
        let faults = &mut self.0.lock().faults;
        faults.trace.clear();
        faults.counters = Counters::default();
    }

    /// Sets whether calls are recorded in the trace; they are counted in any case.
    pub fn set_tracing(&self, tracing: bool) {
        self.0.lock().faults.tracing = tracing;
    }

    // Other worlds.

    /// The world after a power cut at this moment: one of the disk images that the calls so far allow, drawn by
    /// `seed`. No process is alive in it, and no fault is set. This world continues.
    pub fn power_cut(&self, seed: u64) -> SimWorld {
        let state = self.0.lock();
        let mut rng = Random::derived(state.seed ^ seed.rotate_left(32), seed);
        let mut after = WorldState::new(rng.next_u64(), true, DEFAULT_UID);
        after.tree = state.tree.crashed(state.weak.is_some(), &mut rng);
        (after.now, after.boots) = (state.now, state.boots + 1);
        after.hosts = state.hosts.clone();
        after.processes = state.processes.keys().map(|p| (p.clone(), false)).collect();
        after.links = state.links;
        after.weak = state.weak.as_ref().map(|w| Weak::new(w.staleness));
        SimWorld::of(after)
    }

    /// An independent copy of this world as it is. The processes of this world are dead in the copy.
    pub fn fork_image(&self) -> SimWorld {
        let state = self.0.lock();
        SimWorld::of(WorldState {
            seed: state.seed,
            rng: state.rng.clone(),
            now: state.now,
            tree: state.tree.deep_clone(),
            hosts: state.hosts.clone(),
            processes: state.processes.keys().map(|p| (p.clone(), false)).collect(),
            boots: state.boots + 1,
            halted: false,
            links: state.links,
            faults: state.faults.clone(),
            weak: state.weak.clone(),
        })
    }
}

fn process_of(world: &SimWorld, host: &str, namesake: bool) -> Env {
    let (process, rng) = {
        let mut state = world.0.lock();
        let host: Arc<str> = host.into();
        let mut settings = state.host(&host);
        let process = Process { host: host.clone(), id: settings.next };
        settings.next += 1;
        state.hosts.insert(host, settings);
        state.processes.insert(process.clone(), true);
        (process, Random::derived(state.seed, state.processes.len() as u64))
    };
    world.env(process, rng, namesake)
}
