//! A transaction of the follower while it grows. At its end its rows become segments: in parts, in parallel.

use std::panic::resume_unwind;

use fieldstone_core::Result;
use fieldstone_core::sync::thread;

use super::applied::{Applied, spill};
use crate::folder::SegmentFolder;
use crate::parallel;
use crate::segment::{Rows, Segment, build};

/// Number of relations after which the next commit begins a part of its own: enough to make a thread pay.
const PART: usize = 64 << 10;
/// Maximum number of threads that build segments at once.
const THREADS_MAX: usize = 8;

/// The content of a transaction of the follower so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub applied: Applied,
    /// Its parts, each of which becomes a segment.
    pub rows: Vec<Rows>,
}

impl Draft {
    /// The rows to which one more commit is added. A commit is never divided between parts, because the
    /// choice among its versions is made inside a part.
    pub fn rows(&mut self) -> &mut Rows {
        if self.rows.last().is_none_or(|part| part.relations() >= PART) {
            self.rows.push(Rows::default());
        }
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }
}

/// Builds a segment of each part. At the same time, writes the earlier segments to disk, if there is a folder
/// for them.
pub(super) fn build_beside(
    applied: Applied,
    parts: &[Rows],
    folder: Option<&SegmentFolder>,
) -> Result<(Applied, Vec<Segment>)> {
    let Some(folder) = folder else { return Ok((applied, build_all(parts)?)) };
    thread::scope(|scope| {
        let building = scope.spawn(|| build_all(parts));
        let spilled = spill(applied, folder);
        let built = building.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok((spilled?, built?))
    })
}

fn build_all(parts: &[Rows]) -> Result<Vec<Segment>> {
    parallel::map(parts, THREADS_MAX, build).into_iter().collect()
}
