//! The snapshot of a version: a handle that was opened at one sees nothing newer, whatever happens to the files.
//!
//! Takeovers replace logs, and what they replace goes a grace later. So a pinned handle looks now and then whether the takeovers
//! are those that it knows, and finds the same commits in the new ones; a version that a purge cut into is NotFound then.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::sync::Mutex;
use fieldstone_format::version::Version;

use super::looks::LookState;
use crate::fork::PerProcess;
use crate::snapshot::Snapshot;

/// How often a pinned handle looks for takeovers, nanoseconds: replaced files stay for minutes.
const AGAIN: u64 = 10_000_000_000;

/// A version, and the snapshot that shows it.
#[derive(Debug)]
pub struct Pinned {
    version: Version,
    first: Arc<Snapshot>,
    /// The snapshot as it was found last, and when.
    found: PerProcess<Mutex<(Arc<Snapshot>, u64)>>,
}

impl Pinned {
    /// The snapshot of a version, as it was just found.
    pub fn new(env: &Env, version: Version, snapshot: Snapshot) -> Pinned {
        let first = Arc::new(snapshot);
        let found = Mutex::new((first.clone(), env.clock.monotonic()));
        Pinned { version, found: PerProcess::new(env.identity.clone(), found), first }
    }

    /// The snapshot.
    pub fn snapshot(&self, env: &Env, looks: &LookState) -> Result<Arc<Snapshot>> {
        let mut found = self.found.get(|| Mutex::new((self.first.clone(), 0))).lock();
        let now = env.clock.monotonic();
        if now.saturating_sub(found.1) < AGAIN {
            return Ok(found.0.clone());
        }
        found.1 = now;
        let Ok(newest) = looks.look_again() else { return Ok(found.0.clone()) };
        if !newest.taken.takeovers().is_same(found.0.taken.takeovers()) {
            found.0 = Arc::new(newest.at(&self.version, &looks.refresher().lock())?);
        }
        Ok(found.0.clone())
    }

    /// The snapshot as it was found last, without a look.
    pub fn known(&self) -> Arc<Snapshot> {
        self.found.get(|| Mutex::new((self.first.clone(), 0))).lock().0.clone()
    }
}
