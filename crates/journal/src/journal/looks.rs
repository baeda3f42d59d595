//! Looks at the logs, and the snapshots that they give.
//!
//! A handle that was opened at a version sees that snapshot for ever; any other handle looks at each read. A look
//! puts the schema, settings and format that it finds in force.
//!
//! Invariants:
//! * a read gets a snapshot of a refresh that began after it asked (J-13);
//! * a look holds the refresher's lock alone, so that it may wait for the disk: the schema's is taken after it was given back,
//!   the writer's never. Only the end of a commit holds two, the refresher's and then the writer's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use fieldstone_core::Result;
use fieldstone_core::sync::Mutex;
use fieldstone_format::version::Version;
use tracing::field::Empty;
use tracing::{debug_span, trace_span};

use super::access::Access;
use super::pinned::Pinned;
use super::schema_state::SchemaState;
use crate::block_cache::BlockCache;
use crate::feed::Feed;
use crate::files::Newest;
use crate::medium::{Look, Medium};
use crate::session::Session;
use crate::snapshot::{Refresher, Snapshot};
use crate::writer::Horizon;

/// How long a wait for news sleeps between its looks, nanoseconds: first, and at last.
const LOOK_FIRST: u64 = 2_000_000;
const LOOK_LAST: u64 = 200_000_000;

/// The state of one process between its looks.
#[derive(Debug)]
pub struct LookState {
    refresher: Mutex<Refresher>,
    /// How many reads have asked for a snapshot.
    asked: AtomicU64,
    /// The version of the format that the store was seen to be of; 0 before the first look.
    format: AtomicU32,
    /// Whether the last look found a lock on a dataset, in force or ended.
    has_locks: AtomicBool,
}

impl LookState {
    /// Of a process that has not looked yet.
    pub fn new(medium: Arc<dyn Medium>) -> LookState {
        let cache = Arc::new(BlockCache::default());
        LookState {
            refresher: Mutex::new(Refresher::new(medium, cache)),
            asked: AtomicU64::new(0),
            format: AtomicU32::new(0),
            has_locks: AtomicBool::new(false),
        }
    }

    /// Keeps snapshots up to date.
    pub fn refresher(&self) -> &Mutex<Refresher> {
        &self.refresher
    }

    /// Whether the last look found a lock on a dataset, in force or ended.
    pub fn has_locks(&self) -> bool {
        self.has_locks.load(Ordering::Relaxed)
    }

    /// The snapshot of a look that begins after this call.
    pub fn look_again(&self) -> Result<Arc<Snapshot>> {
        self.look(|_| ()).map(|(snapshot, ())| snapshot)
    }

    /// The snapshot of a look that begins after this call, and what the refresher says beside it.
    fn look<T>(&self, beside: impl FnOnce(&Refresher) -> T) -> Result<(Arc<Snapshot>, T)> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut refresher = self.refresher.lock();
        let snapshot = refresher.refresh_for(ticket, &self.asked)?;
        Ok((snapshot, beside(&refresher)))
    }
}

impl Newest for LookState {
    fn snapshot(&self) -> Result<Arc<Snapshot>> {
        self.look_again()
    }

    fn again(&self, snapshot: &Snapshot) -> Result<Option<Arc<Snapshot>>> {
        let newest = self.look_again()?;
        if newest.taken.takeovers().is_same(snapshot.taken.takeovers()) {
            return Ok(None);
        }
        newest.at(&snapshot.version(), &self.refresher.lock()).map(|found| Some(Arc::new(found)))
    }
}

/// The looks of one process by a handle.
#[derive(Debug, Clone, Copy)]
pub struct Looks<'a> {
    pub(super) access: &'a Access,
    pub(super) schema: &'a SchemaState,
    /// The snapshot of the version that the handle was opened at, where it was.
    pub(super) pinned: Option<&'a Pinned>,
    pub(super) medium: &'a Arc<dyn Medium>,
    pub(super) state: &'a LookState,
}

impl<'a> Looks<'a> {
    /// The snapshot that a read of now sees. Corrupt where the folder of logs is gone: what they held is not nothing.
    pub fn snapshot(&self) -> Result<Arc<Snapshot>> {
        let snapshot = self.even_without_logs()?;
        match &snapshot.without_logs {
            None => Ok(snapshot),
            Some(gone) => Err(gone.error()),
        }
    }

    /// The same for reports of problems, even if the folder of logs is gone.
    pub fn even_without_logs(&self) -> Result<Arc<Snapshot>> {
        match self.pinned {
            Some(pinned) => pinned.snapshot(self.access.env(), self.state),
            None => {
                let _span = trace_span!("look", logs = Empty, moved = Empty).entered();
                let (snapshot, ()) = self.state.look(|_| ())?;
                self.follow(&snapshot);
                Ok(snapshot)
            }
        }
    }

    /// The content of the logs at this moment (or in the version this handle was opened at), commit by commit.
    pub fn feed(&self) -> Result<Feed> {
        Ok(Feed::new(self.snapshot()?, self.medium.clone()))
    }

    /// A snapshot cut back to a version that its text names.
    pub fn older(&self, snapshot: &Snapshot, version: &str) -> Result<Snapshot> {
        snapshot.at(&Version::decode(version)?, &self.state.refresher.lock())
    }

    /// Looks at every log that is not closed.
    pub fn refresh(&self) -> Result<()> {
        if self.pinned.is_none() {
            let _span = debug_span!("refresh", logs = Empty, moved = Empty).entered();
            let snapshot = self.state.refresher.lock().refresh(Look::All)?;
            self.follow(&snapshot);
        }
        Ok(())
    }

    /// Waits until a commit is there that a version does not hold; `false` where none was within that many nanoseconds.
    /// Looks at boards, more and more seldom, and at logs as often as reads do.
    pub fn wait(&self, version: &str, timeout: u64, session: &Session) -> Result<bool> {
        let (version, clock) = (Version::decode(version)?, &self.access.env().clock);
        let (begun, mut pause) = (clock.monotonic(), LOOK_FIRST);
        loop {
            if self.snapshot()?.has_news(&version)? {
                return Ok(true);
            }
            let waited = clock.monotonic().saturating_sub(begun);
            if waited >= timeout {
                return Ok(false);
            }
            session.check(&**clock)?;
            clock.sleep(pause.min(timeout - waited));
            pause = (pause + pause / 2).min(LOOK_LAST);
        }
    }

    /// How often a look at the logs was asked for in this process: by reads, feeds and commits.
    pub fn count(&self) -> u64 {
        self.state.asked.load(Ordering::SeqCst)
    }

    /// The state that keeps snapshots up to date.
    pub fn refresher(&self) -> &'a Mutex<Refresher> {
        &self.state.refresher
    }

    /// The horizon of a commit that begins now, and the snapshot that shows it. Refused where this handle
    /// must not write beside what is there.
    pub(super) fn horizon(&self) -> Result<(Horizon, Arc<Snapshot>)> {
        let (snapshot, max_stamp) = self.state.look(Refresher::max_stamp)?;
        self.follow(&snapshot);
        self.access.check_versions(&snapshot)?;
        Ok((Horizon { max_stamp, snapshot: Some(snapshot.clone()) }, snapshot))
    }

    /// Puts in force what a snapshot says of schema, settings and format.
    pub(super) fn follow(&self, snapshot: &Snapshot) {
        self.schema.follow(snapshot);
        self.state.has_locks.store(!snapshot.locks.is_empty(), Ordering::Relaxed);
        let asked = self.access.options().format.filter(|_| snapshot.format.is_open);
        self.state.format.store(asked.unwrap_or(snapshot.format.version), Ordering::Relaxed);
    }

    /// The first call of a process looks. A failed look is an error of the call that reads or writes there.
    pub(super) fn follow_first(&self) {
        match self.pinned {
            _ if self.schema.is_followed() => {}
            Some(pinned) => self.schema.follow(&pinned.known()),
            None => drop(self.snapshot()),
        }
    }

    /// The greatest stamp that this process has read, without a look.
    pub(super) fn known_stamp(&self) -> u64 {
        self.state.refresher.lock().max_stamp()
    }

    /// The version of the format that the store was seen to be of; 0 before the first look.
    pub(super) fn known_format(&self) -> u32 {
        self.state.format.load(Ordering::Relaxed)
    }
}
