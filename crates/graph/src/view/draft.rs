//! A transaction of the view while it grows, and how its rows become segments: in parts, side by side.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{iter, thread};

use fieldstone_core::Result;

use super::applied::{Applied, spill};
use crate::folder::SegmentFolder;
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
) -> (Applied, Result<Vec<Segment>>) {
    let Some(folder) = folder else { return (applied, build_all(parts)) };
    thread::scope(|scope| {
        let building = scope.spawn(|| build_all(parts));
        let spilled = spill(applied, folder);
        (spilled, building.join().unwrap_or_else(|panic| resume_unwind(panic)))
    })
}

fn build_all(parts: &[Rows]) -> Result<Vec<Segment>> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX).min(parts.len());
    if threads <= 1 {
        return parts.iter().map(build).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || -> Vec<(usize, Result<Segment>)> {
        let mine = iter::from_fn(|| {
            let i = next.fetch_add(1, Ordering::Relaxed);
            parts.get(i).map(|part| (i, build(part)))
        });
        mine.collect()
    };
    let mut built = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
        let mut built = work();
        for other in others {
            // A panic there is a panic here, as without threads.
            built.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        built
    });
    built.sort_unstable_by_key(|(i, _)| *i);
    built.into_iter().map(|(_, segment)| segment).collect()
}
