//! The snapshot of a version: a handle that was opened at one sees nothing newer, whatever happens to the files.
//!
//! Takeovers replace logs, and the replaced files go a grace later. So a pinned handle looks now and then whether the takeovers
//! are those that it knows, and finds the same commits in the new ones; a version that a purge cut into is NotFound then.

use std::sync::Arc;

use fieldstone_core::env::Env;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{ErrorKind, Result};

use crate::files::Newest;
use crate::fork::PerProcess;
use crate::snapshot::Snapshot;

/// How often a pinned handle looks for takeovers, nanoseconds: replaced files stay for minutes.
const AGAIN: u64 = 10_000_000_000;

/// The snapshot that shows a version.
#[derive(Debug)]
pub struct Pinned {
    first: Arc<Snapshot>,
    /// The snapshot as it was found last, and when.
    found: PerProcess<Mutex<(Arc<Snapshot>, u64)>>,
}

impl Pinned {
    /// The snapshot of a version, as it was just found.
    pub fn new(env: &Env, snapshot: Snapshot) -> Pinned {
        let first = Arc::new(snapshot);
        let found = Mutex::new((first.clone(), env.clock.monotonic()));
        Pinned { found: PerProcess::new(env.identity.clone(), found), first }
    }

    fn found(&self) -> &Mutex<(Arc<Snapshot>, u64)> {
        self.found.get(|| Mutex::new((self.first.clone(), 0)))
    }

    /// The snapshot.
    pub fn snapshot(&self, env: &Env, newest: &dyn Newest) -> Result<Arc<Snapshot>> {
        let mut found = self.found().lock();
        let now = env.clock.monotonic();
        if now.saturating_sub(found.1) < AGAIN {
            return Ok(found.0.clone());
        }
        found.1 = now;
        match newest.again(&found.0) {
            Ok(Some(again)) => found.0 = again,
            Ok(None) => {}
            Err(gone) if gone.kind() == ErrorKind::NotFound => return Err(gone),
            // The files that it knows may be there all the same.
            Err(_) => {}
        }
        Ok(found.0.clone())
    }

    /// The snapshot as it was found last, without a look.
    pub fn known(&self) -> Arc<Snapshot> {
        self.found().lock().0.clone()
    }
}
