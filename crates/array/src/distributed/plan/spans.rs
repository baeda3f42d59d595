//! Runs as few long spans of the file, in rounds that a buffer bounds.
//!
//! Invariants: the spans of a round ascend, do not overlap, and stand one behind the other in the buffer; runs are
//! taken as they come and may be cut.

use super::file_array::FileArray;
use crate::distributed::view::{Run, Runs};

/// Spans and pieces of a round, which are a few words each.
const PIECES: usize = 1 << 16;

/// Elements of one run, side by side in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanPiece {
    /// Number of the first in memory.
    pub memory: u64,
    pub buffer_at: usize,
    pub len: usize,
}

/// Bytes that are written or read as one.
#[derive(Debug, Clone, Copy)]
pub(super) struct FileSpan {
    pub offset: u64,
    pub buffer_at: usize,
    pub len: usize,
}

/// Takes runs round by round.
pub(super) struct Spans<'a> {
    runs: Runs<'a>,
    rest: Option<Run>,
    array: FileArray,
    budget: usize,
    gap: u64,
    pub spans: Vec<FileSpan>,
    pub pieces: Vec<SpanPiece>,
    pub bytes: usize,
}

impl<'a> Spans<'a> {
    /// Rounds of at most `budget` bytes, or one element. Gaps of up to `gap` bytes are part of a span.
    pub fn new(mut runs: Runs<'a>, array: FileArray, budget: usize, gap: u64) -> Spans<'a> {
        let rest = runs.next();
        let budget = budget.max(array.size as usize);
        Spans { runs, rest, array, budget, gap, spans: Vec::new(), pieces: Vec::new(), bytes: 0 }
    }

    /// Goes on to the next round; false where nothing is left.
    pub fn next(&mut self) -> bool {
        self.spans.clear();
        self.pieces.clear();
        self.bytes = 0;
        while let Some(run) = self.rest {
            if self.pieces.len() >= PIECES {
                break;
            }
            let offset = self.array.offset(run.at);
            let last = self.spans.last().copied();
            let end = last.map(|last| last.offset + last.len as u64);
            let bridged =
                end.filter(|end| offset >= *end && offset - end <= self.gap).map(|end| offset - end);
            let room = (self.budget - self.bytes) as u64;
            let side_by_side = self.array.side_by_side(run.at, run.elements);
            let take = (room.saturating_sub(bridged.unwrap_or(0)) / self.array.size).min(side_by_side);
            if take == 0 {
                break;
            }
            let len = (take * self.array.size) as usize;
            let skip = bridged.unwrap_or(0) as usize;
            match (self.spans.last_mut(), bridged) {
                (Some(last), Some(_)) => last.len += skip + len,
                _ => self.spans.push(FileSpan { offset, buffer_at: self.bytes, len }),
            }
            self.pieces.push(SpanPiece { memory: run.memory, buffer_at: self.bytes + skip, len });
            self.bytes += skip + len;
            self.rest = match run.elements - take {
                0 => self.runs.next(),
                elements => Some(Run { at: run.at + take, memory: run.memory + take, elements }),
            };
        }
        !self.pieces.is_empty()
    }
}
