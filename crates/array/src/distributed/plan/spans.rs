//! Combines runs into a few long spans of the file, in rounds limited by a buffer.
//!
//! Invariants: the spans of a round ascend, do not overlap, and are consecutive in the buffer. Runs are taken in
//! order and may be cut; overlapping runs, such as those of a map that is read and names an element twice, share
//! bytes of a span, because MPI-IO does not accept a view that goes back.

use super::file_array::FileArray;
use crate::distributed::view::{Run, Runs};

/// Limit on the spans and pieces of a round, which take a few words each.
const PIECES: usize = 1 << 16;

/// Elements of one run, adjacent in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpanPiece {
    /// Index of the first element in memory.
    pub memory: u64,
    pub buffer_at: usize,
    pub len: usize,
}

/// Bytes written or read in one call.
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
    /// Whether pieces of the round share bytes.
    pub shares: bool,
}

impl<'a> Spans<'a> {
    /// Makes rounds of at most `budget` bytes, or one element. Gaps of up to `gap` bytes become part of a span.
    pub fn new(mut runs: Runs<'a>, array: FileArray, budget: usize, gap: u64) -> Spans<'a> {
        let rest = runs.next();
        let budget = budget.max(array.size as usize);
        let (spans, pieces) = (Vec::new(), Vec::new());
        Spans { runs, rest, array, budget, gap, spans, pieces, bytes: 0, shares: false }
    }

    /// Moves to the next round; false if nothing is left.
    pub fn next(&mut self) -> bool {
        self.spans.clear();
        self.pieces.clear();
        (self.bytes, self.shares) = (0, false);
        while let Some(run) = self.rest {
            if self.pieces.len() >= PIECES {
                break;
            }
            let offset = self.array.offset(run.at);
            let last = self.spans.last().copied();
            // After a run that was cut, the next one may begin before it.
            if last.is_some_and(|last| offset < last.offset) {
                break;
            }
            let end = last.map_or(offset, |last| last.offset + last.len as u64);
            let skip = offset.saturating_sub(end);
            let joins = last.is_some() && skip <= self.gap;
            let (skip, shared) = (if joins { skip } else { 0 }, end.saturating_sub(offset));
            let room = ((self.budget - self.bytes) as u64).saturating_sub(skip) + shared;
            let take = (room / self.array.size).min(self.array.side_by_side(run.at, run.elements));
            if take == 0 {
                break;
            }
            let len = (take * self.array.size) as usize;
            let grown = skip as usize + len.saturating_sub(shared as usize);
            self.shares |= shared > 0;
            let buffer_at = match self.spans.last_mut().filter(|_| joins) {
                Some(last) => {
                    last.len += grown;
                    last.buffer_at + (offset - last.offset) as usize
                }
                None => {
                    self.spans.push(FileSpan { offset, buffer_at: self.bytes, len });
                    self.bytes
                }
            };
            self.pieces.push(SpanPiece { memory: run.memory, buffer_at, len });
            self.bytes += grown;
            self.rest = match run.elements - take {
                0 => self.runs.next(),
                elements => Some(Run { at: run.at + take, memory: run.memory + take, elements }),
            };
        }
        !self.pieces.is_empty()
    }
}
