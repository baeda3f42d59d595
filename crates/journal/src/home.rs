//! The location and identity of a store.

use std::path::PathBuf;

use fieldstone_core::env::Env;
use fieldstone_format::Id;

/// The location and identity of a store.
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
