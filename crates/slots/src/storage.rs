//! Storage that all ends of a network reach; messages name its segments by numbers.
//!
//! Here it is memory of one process. Slots of several processes need a file system or a bucket in its place.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::sync::Mutex;
use fieldstone_graph::segment::Segment;

/// Segments by number. No number is used twice.
#[derive(Debug, Default)]
pub struct SharedSegments(Mutex<Stored>);

#[derive(Debug, Default)]
struct Stored {
    last: u64,
    segments: HashMap<u64, Arc<Segment>>,
}

impl SharedSegments {
    /// Stores a segment; returns its number.
    pub fn put(&self, segment: Arc<Segment>) -> u64 {
        let mut stored = self.0.lock();
        stored.last += 1;
        let number = stored.last;
        stored.segments.insert(number, segment);
        number
    }

    /// The segment with a number, if it is still stored.
    pub fn get(&self, number: u64) -> Option<Arc<Segment>> {
        self.0.lock().segments.get(&number).cloned()
    }

    /// Removes the segment with a number.
    pub fn forget(&self, number: u64) {
        self.0.lock().segments.remove(&number);
    }
}
