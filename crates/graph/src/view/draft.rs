//! A transaction of the view while it grows, and how its rows become segments: in parts, side by side.

use std::panic::resume_unwind;

use fieldstone_core::Result;
use fieldstone_core::sync::thread;

use super::applied::{Applied, spill};
use crate::folder::SegmentFolder;
use crate::parallel;
use crate::segment::{Rows, Segment, build};

/// Relations after which the next commit begins a part of its own: so many that a segment is worth a thread.
const PART: usize = 64 << 10;
/// Most threads that build segments at once.
const THREADS_MAX: usize = 8;

/// What a transaction of the view has so far.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub applied: Applied,
    /// In parts, of which each becomes a segment.
    pub rows: Vec<Rows>,
}

impl Draft {
    /// Where the rows of one more commit go. All of a commit are in one part: what of them counts is decided there.
    pub fn rows(&mut self) -> &mut Rows {
        if self.rows.last().is_none_or(|part| part.relations() >= PART) {
            self.rows.push(Rows::default());
        }
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }
}

/// A segment of each part; meanwhile what was applied before is written to disk, where a folder for it is given.
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
