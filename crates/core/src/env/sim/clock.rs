//! Time, randomness and identity of a simulated world.
//!
//! All hosts share one true time, which advances a little with every call and jumps by the whole length of a sleep,
//! so no call waits; a host's clock shows that time plus its offset.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::permissions::Permissions;
use super::random::Random;
use super::{Process, World};
use crate::env::{Clock, Identity, Lifetime, Rand};
use crate::sync::plain::Mutex;

/// How far time advances with each call: a microsecond.
pub(super) const TICK: i64 = 1_000;

/// The clock of one host.
#[derive(Debug)]
pub(super) struct SimClock {
    pub(super) world: Arc<World>,
    pub(super) process: Process,
}

impl Clock for SimClock {
    fn now(&self) -> i64 {
        let mut state = self.world.lock();
        state.now = state.now.saturating_add(TICK);
        state.now.saturating_add(state.host(&self.process.host).offset)
    }

    fn monotonic(&self) -> u64 {
        let mut state = self.world.lock();
        state.now = state.now.saturating_add(TICK);
        u64::try_from(state.now).unwrap_or(0)
    }

    fn sleep(&self, nanoseconds: u64) {
        let nanoseconds = i64::try_from(nanoseconds).unwrap_or(i64::MAX);
        {
            let mut state = self.world.lock();
            state.now = state.now.saturating_add(nanoseconds);
        }
        // A thread that polls by sleeping lets the other threads run.
        std::thread::yield_now();
    }
}

/// The random bytes of one process: each process of a world has another stream.
#[derive(Debug)]
pub(super) struct SimRand(pub(super) Mutex<Random>);

impl Rand for SimRand {
    fn fill(&self, buffer: &mut [u8]) {
        self.0.lock().fill(buffer);
    }
}

/// A process of a simulated host.
#[derive(Debug)]
pub(super) struct SimIdentity {
    pub(super) world: Arc<World>,
    pub(super) process: Process,
    /// Whether it runs on another machine, or in another container, that has the host's name.
    pub(super) namesake: bool,
}

impl Identity for SimIdentity {
    fn host(&self) -> String {
        self.process.host.to_string()
    }

    fn process(&self) -> u32 {
        self.process.id
    }

    fn uid(&self) -> u32 {
        self.world.lock().host(&self.process.host).uid
    }

    fn user_name(&self, uid: u32) -> String {
        format!("user{uid}")
    }

    fn user_number(&self, name: &str) -> Option<u32> {
        name.strip_prefix("user").unwrap_or(name).parse().ok()
    }

    fn lifetime(&self) -> Lifetime {
        let boots = self.world.lock().boots;
        let host = &self.process.host;
        // Numbers of processes are given out once: a number is its start.
        match self.namesake {
            false => {
                Lifetime { boot: format!("{host}-{boots}"), namespace: 1, started: self.process.id.into() }
            }
            true => Lifetime { boot: format!("{host}-other"), namespace: 1, started: self.process.id.into() },
        }
    }

    fn started(&self, process: u32) -> Option<u64> {
        self.alive(process).then(|| process.into())
    }

    fn alive(&self, process: u32) -> bool {
        let key = Process { host: self.process.host.clone(), id: process };
        let state = self.world.lock();
        !state.halted && state.processes.get(&key).is_some_and(|alive| *alive)
    }

    fn give(&self, path: &Path, uid: u32) -> io::Result<()> {
        match self.uid() {
            0 => Permissions { world: &self.world }.chown(path, uid),
            _ => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}
