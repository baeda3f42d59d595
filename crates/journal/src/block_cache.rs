//! Index blocks of segments and takeovers that were read, kept in memory up to a bound.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::sync::Mutex;

/// Bytes of index blocks kept in memory.
const CACHE_BYTES: usize = 64 << 20;

/// Index blocks that were read, up to a bound.
#[derive(Debug, Default)]
pub struct BlockCache {
    state: Mutex<CacheState>,
    next_segment: AtomicU64,
}

#[derive(Debug, Default)]
struct CacheState {
    blocks: HashMap<(u64, usize), Arc<[u8]>>,
    bytes: usize,
}

impl BlockCache {
    /// A number under which blocks of one more segment or takeover are kept.
    pub fn next(&self) -> u64 {
        self.next_segment.fetch_add(1, Ordering::Relaxed)
    }

    /// A block that is kept.
    pub fn get(&self, at: (u64, usize)) -> Option<Arc<[u8]>> {
        self.state.lock().blocks.get(&at).cloned()
    }

    /// Keeps a block.
    pub fn put(&self, at: (u64, usize), block: &Arc<[u8]>) {
        let mut state = self.state.lock();
        if state.bytes + block.len() > CACHE_BYTES {
            state.blocks.clear();
            state.bytes = 0;
        }
        if state.blocks.insert(at, block.clone()).is_none() {
            state.bytes += block.len();
        }
    }
}
