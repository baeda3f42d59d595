//! The order in which new frames of a log come into a copy: readers find them when all are durable, and not before
//! (spec/store-format.md, 15.6).
//!
//! A reader looks for the last commit from both ends of a log. From the start it stops where the first new frame has no
//! head. From the end it takes the last bytes that are not zero for a foot; after a power cut these may be the foot of any new
//! frame that ends where the written sectors do. So other bytes stand at the end, durable, before any new frame does.
//!
//! ```text
//! hide_new_frames(file, from, upto)?;
//! for (begin, end) in parts(from, upto) { …copy and sync these bytes… }
//! ```

use std::io;

use fieldstone_core::env::{DiskFile, write_all_at};
use fieldstone_format::log::{FOOT, HEAD};

/// Stands in for the last foot: not a foot, and not zeros, which readers pass over.
const NO_FOOT: [u8; FOOT] = [0xFF; FOOT];

/// Takes away, durably, what readers would find new frames by, which are about to be written to `from..upto`.
pub fn hide_new_frames(file: &dyn DiskFile, from: u64, upto: u64) -> io::Result<()> {
    write_all_at(file, &[0; HEAD], from)?;
    write_all_at(file, &NO_FOOT, upto - FOOT as u64)?;
    file.sync_data()
}

/// The parts of the new frames in the order in which they are copied, each synced before the next: all but the head of the
/// first and the foot of the last, that head, that foot.
pub fn parts(from: u64, upto: u64) -> [(u64, u64); 3] {
    let (body, foot) = (from + HEAD as u64, upto - FOOT as u64);
    [(body, foot), (from, body), (foot, upto)]
}
