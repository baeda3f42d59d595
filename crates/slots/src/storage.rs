//! Storage that all ends of a network reach, and in which messages name segments by numbers.
//!
//! Here it is memory of one process. Slots of several processes will have a file system or a bucket in its place.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::sync::Mutex;
use fieldstone_graph::segment::Segment;

/// Segments by number. A number is never given twice.
#[derive(Debug, Default)]
pub struct SharedSegments(Mutex<Stored>);

#[derive(Debug, Default)]
struct Stored {
    last: u64,
    segments: HashMap<u64, Arc<Segment>>,
}

impl SharedSegments {
    /// Keeps a segment; gives its number.
    pub fn put(&self, segment: Arc<Segment>) -> u64 {
        let mut stored = self.0.lock();
        stored.last += 1;
        let number = stored.last;
        stored.segments.insert(number, segment);
        number
    }

    /// The segment of a number, where it is still kept.
    pub fn get(&self, number: u64) -> Option<Arc<Segment>> {
        self.0.lock().segments.get(&number).cloned()
    }

    /// Keeps the segment of a number no longer.
    pub fn forget(&self, number: u64) {
        self.0.lock().segments.remove(&number);
    }
}
