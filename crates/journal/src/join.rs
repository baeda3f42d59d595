//! What a store tells those who join something to it: a catalog or a graph beside the fields.
//!
//! A [`SideSource`] holds side records that are not complete yet, such as a batch that still grows. The
//! store asks it before every flush, so that who writes through the store alone loses none of them.

use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_format::Id;
use fieldstone_format::log::SideRecord;

pub use crate::fork::PerProcess;

/// Where and what a store is.
#[derive(Debug, Clone)]
pub struct Home {
    /// Its id; of a store that has no commit yet, the one it will have if this handle makes it.
    pub id: Id,
    /// Its folder on this machine's file systems; `None` for a store in memory or on a simulated disk.
    pub folder: Option<PathBuf>,
    /// Whether this handle may write.
    pub writable: bool,
    /// Whether this handle reads an older version and sees nothing newer.
    pub pinned: bool,
    /// The world that the store lives in.
    pub env: Env,
}

/// Side records of somebody else that go with a handle's flushes. The calls come without a lock of the
/// store held, but for [`lost`](Self::lost).
pub trait SideSource: Send + Sync + fmt::Debug {
    /// Gives up all records of a session, in their order: they are about to be flushed or looked at.
    fn drain(&self, session: Option<Id>) -> Result<Vec<SideRecord>>;
    /// The session's records are discarded, those that were given up too.
    fn discarded(&self, session: Option<Id>);
    /// A failure took the session's records, those that were given up too. Forgets them, and what they
    /// declared; returns those not given up, so that who waits for them is told. The call comes with the
    /// writer locked and must not call the store.
    fn lost(&self, session: Option<Id>) -> Vec<SideRecord>;
    /// The session was flushed.
    fn flushed(&self, session: Option<Id>);
    /// The handle is closed: it flushes no more.
    fn closed(&self);
}

/// Who has side records for a handle's flushes.
#[derive(Debug, Clone, Default)]
pub struct Sources(Arc<Mutex<Vec<Weak<dyn SideSource>>>>);

impl Sources {
    /// Remembers one for as long as it lives.
    pub fn attach(&self, source: Weak<dyn SideSource>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(source);
    }

    /// Those who still live.
    pub fn alive(&self) -> Vec<Arc<dyn SideSource>> {
        let mut sources = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sources.retain(|source| source.strong_count() > 0);
        sources.iter().filter_map(Weak::upgrade).collect()
    }
}
