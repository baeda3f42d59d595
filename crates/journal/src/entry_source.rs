//! Sorted index entries, read the same way wherever they stand: in a segment of a log, or in the table of a takeover.
//!
//! ```text
//! source   Segment(segment, log)      entries of one log, which names commits by its own table
//!          Takeover(takeover)         entries of all logs that it replaces
//! cursor   advance, seek              in the order of the keys; equal keys newest first
//!          place, go_to               where an entry stands, and back to it later
//! ```

use std::sync::Arc;

use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::bytes::Cursor;
use fieldstone_format::keys;
use fieldstone_format::segment::CommitInfo;
use fieldstone_format::takeover::TakeoverTable;

use crate::order::Order;
use crate::segment::{Segment, SegmentCursor};
use crate::takeover::{Rows, Takeover};

/// A sorted sequence of index entries.
#[derive(Debug, Clone)]
pub enum EntrySource {
    /// A segment, and the number of its log among those of the snapshot.
    Segment(Arc<Segment>, u32),
    /// The entries of a takeover.
    Takeover(Arc<Takeover>),
}

/// The commit by which an entry came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryCommit {
    /// The log.
    pub writer: Id,
    /// The user whose log it is.
    pub user: u32,
    /// Its number in the log.
    pub sequence: u64,
    /// Its stamp.
    pub stamp: u64,
    /// The writer's clock, nanoseconds since 1970.
    pub time: i64,
    /// The transaction under which it is prepared.
    pub transaction: Option<Id>,
    /// Its place in the order, where the decision that made it visible is forgotten.
    pub forgotten: Option<Order>,
    /// The number of the takeover that took its log over first; 0 for a living log.
    pub taken: u64,
    /// When the attempt that it is of began.
    pub attempt: Option<Order>,
    /// The place of moved entries in the store that they were moved from.
    pub moved: Option<Moved>,
}

/// The commit of another store that entries were moved from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Its store.
    pub store: Id,
    /// Its sequence in the log of the order's writer.
    pub sequence: u64,
    /// The place in the order.
    pub order: Order,
    /// Its time, nanoseconds since 1970.
    pub time: i64,
    /// When its attempt began.
    pub attempt: Option<Order>,
}

impl EntryCommit {
    /// A commit of a log, as a segment or a takeover describes it.
    pub fn new(writer: Id, user: u32, info: &CommitInfo) -> EntryCommit {
        EntryCommit {
            writer,
            user,
            sequence: info.sequence,
            stamp: info.stamp,
            time: info.time,
            transaction: info.transaction,
            forgotten: None,
            taken: 0,
            attempt: None,
            moved: None,
        }
    }
}

impl EntrySource {
    /// Whether a key with this hash may be here.
    pub fn may_contain(&self, key: &[u8], hash: u64) -> Result<bool> {
        match self {
            EntrySource::Segment(segment, _) => segment.may_contain(key, hash),
            EntrySource::Takeover(takeover) => {
                let table = takeover.record.table(TakeoverTable::Entries);
                Ok(table.is_some_and(|table| &table.first_key[..] <= key && key <= &table.last_key[..]))
            }
        }
    }

    /// Whether any key begins so.
    pub fn has_prefix(&self, prefix: &[u8]) -> bool {
        if let EntrySource::Segment(segment, _) = self {
            let Ok(meta) = segment.meta() else { return true };
            if let Some(datasets) = &meta.datasets {
                return datasets.iter().any(|(known, _)| known == prefix);
            }
        }
        let mut cursor = EntryCursor::new(self, 0);
        matches!(cursor.seek(prefix), Ok(true)) && cursor.key().starts_with(prefix)
    }

    /// The file that it stands in, as messages name it.
    pub fn shown(&self) -> String {
        match self {
            EntrySource::Segment(segment, _) => segment.shown(),
            EntrySource::Takeover(takeover) => takeover.shown.clone(),
        }
    }
}

/// Walks the entries of a source in order, with jumps.
#[derive(Debug)]
pub struct EntryCursor {
    /// Number of the source in the snapshot.
    pub index: usize,
    walk: Walk,
}

#[derive(Debug)]
enum Walk {
    Segment(SegmentCursor),
    Takeover(TakeoverWalk),
}

/// A walk over the entries of a takeover.
#[derive(Debug)]
struct TakeoverWalk {
    takeover: Arc<Takeover>,
    /// None where it has no entries.
    rows: Option<Rows>,
    tolerant: bool,
    /// Blocks that a tolerant walk skipped.
    damage: Vec<Error>,
}

impl TakeoverWalk {
    /// Whether the last move failed at a block that was given up.
    fn is_given_up(&self) -> bool {
        let failed = self.rows.as_ref().and_then(Rows::failed);
        failed.is_some_and(|block| self.takeover.gives_up(Some(block)))
    }

    /// The outcome of a move; a walk goes on behind a block that was given up, and a tolerant one behind any damaged one.
    fn moved(&mut self, mut outcome: Result<bool>) -> Result<bool> {
        loop {
            match outcome {
                Err(e) if e.kind() == ErrorKind::Corrupt && (self.tolerant || self.is_given_up()) => {
                    if !self.is_given_up() {
                        self.damage.push(self.takeover.named(e));
                    }
                    let Some(rows) = self.rows.as_mut().filter(|rows| rows.is_inside()) else {
                        return Ok(false);
                    };
                    outcome = rows.advance();
                }
                outcome => return outcome.map_err(|e| self.takeover.named(e)),
            }
        }
    }

    fn advance(&mut self) -> Result<bool> {
        let outcome = self.rows.as_mut().map_or(Ok(false), Rows::advance);
        self.moved(outcome)
    }

    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let outcome = self.rows.as_mut().map_or(Ok(false), |rows| rows.seek(key));
        let mut more = self.moved(outcome)?;
        while more && self.rows.as_ref().is_some_and(|rows| rows.key() < key) {
            more = self.advance()?;
        }
        Ok(more)
    }
}

impl EntryCursor {
    /// A cursor before the first entry of the source with this number, which stops at damage.
    pub fn new(source: &EntrySource, index: usize) -> EntryCursor {
        EntryCursor::of(source, index, false)
    }

    /// A cursor before the first entry, which skips damaged blocks and keeps account of them.
    pub fn tolerant(source: &EntrySource, index: usize) -> EntryCursor {
        EntryCursor::of(source, index, true)
    }

    fn of(source: &EntrySource, index: usize, tolerant: bool) -> EntryCursor {
        let walk = match source {
            EntrySource::Segment(segment, _) => Walk::Segment(match tolerant {
                true => SegmentCursor::tolerant(segment.clone()),
                false => SegmentCursor::new(segment.clone()),
            }),
            EntrySource::Takeover(takeover) => Walk::Takeover(TakeoverWalk {
                takeover: takeover.clone(),
                rows: takeover.cursor(TakeoverTable::Entries),
                tolerant,
                damage: Vec::new(),
            }),
        };
        EntryCursor { index, walk }
    }

    /// The damaged parts that the cursor has skipped so far.
    pub fn take_damage(&mut self) -> Vec<Error> {
        match &mut self.walk {
            Walk::Segment(cursor) => cursor.take_damage(),
            Walk::Takeover(walk) => std::mem::take(&mut walk.damage),
        }
    }

    /// Moves on by one entry; `false` at the end.
    #[inline]
    pub fn advance(&mut self) -> Result<bool> {
        match &mut self.walk {
            Walk::Segment(cursor) => cursor.advance(),
            Walk::Takeover(walk) => walk.advance(),
        }
    }

    /// Moves on to the next entry under the current key; `false` where there is none. A block is opened only if it can
    /// hold one.
    pub fn advance_under(&mut self, key: &[u8]) -> Result<bool> {
        match &mut self.walk {
            Walk::Segment(cursor) => cursor.advance_under(key),
            Walk::Takeover(walk) => {
                let outcome = walk.rows.as_mut().map_or(Ok(false), |rows| rows.advance_under(key));
                match outcome {
                    Err(e) if e.kind() == ErrorKind::Corrupt && walk.is_given_up() => {
                        let more = walk.advance()?;
                        Ok(more && walk.rows.as_ref().is_some_and(|rows| rows.key() == key))
                    }
                    outcome => outcome.map_err(|e| walk.takeover.named(e)),
                }
            }
        }
    }

    /// Moves to the first entry whose key is at least `key`; `false` where there is none. Never moves back.
    pub fn seek(&mut self, key: &[u8]) -> Result<bool> {
        match &mut self.walk {
            Walk::Segment(cursor) => cursor.seek(key),
            Walk::Takeover(walk) => walk.seek(key),
        }
    }

    /// Moves to the entry at a place, wherever the cursor is.
    pub fn go_to(&mut self, place: Place) -> Result<()> {
        let found = match &mut self.walk {
            Walk::Segment(cursor) => cursor.go_to(place),
            Walk::Takeover(walk) => {
                let outcome = walk.rows.as_mut().map_or(Ok(false), |rows| rows.go_to_row(row_of(place)));
                outcome.map_err(|e| walk.takeover.named(e))
            }
        };
        match found? {
            true => Ok(()),
            false => Err(Error::internal("an entry is not at its place any more")),
        }
    }

    /// Key of the current entry.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match &self.walk {
            Walk::Segment(cursor) => cursor.key(),
            Walk::Takeover(walk) => walk.rows.as_ref().map_or(&[], Rows::key),
        }
    }

    /// Value of the current entry.
    #[inline]
    pub fn value(&self) -> &[u8] {
        match &self.walk {
            Walk::Segment(cursor) => cursor.value(),
            Walk::Takeover(walk) => walk.rows.as_ref().map_or(&[], Rows::value),
        }
    }

    /// The number of the current entry's commit, as its source counts them.
    pub fn commit(&self) -> Result<u64> {
        Cursor::new(self.value()).varint()
    }

    /// End of the first level in the current key.
    pub fn dataset_end(&self) -> Result<usize> {
        Ok(keys::level_ends(self.key())?[0])
    }

    /// The place of the current entry in its source.
    pub fn place(&self) -> Place {
        match &self.walk {
            Walk::Segment(cursor) => cursor.place(),
            Walk::Takeover(walk) => {
                let row = walk.rows.as_ref().map_or(0, Rows::row);
                ((row >> 32) as u32, row as u32)
            }
        }
    }
}

/// The place of an entry: block and place in it, or high and low half of a row's number. Later entries have greater ones.
pub type Place = (u32, u32);

fn row_of((high, low): Place) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

/// Cursors in the order of their keys; of equal keys the one of the source with the least number comes first.
#[derive(Debug, Default)]
pub struct EntryHeap {
    /// A binary heap, least key first; every cursor stands on an entry.
    heap: Vec<EntryCursor>,
}

impl EntryHeap {
    /// Of cursors that stand on entries.
    pub fn new(heap: Vec<EntryCursor>) -> EntryHeap {
        let mut heap = EntryHeap { heap };
        for i in (0..heap.heap.len() / 2).rev() {
            heap.sift_down(i);
        }
        heap
    }

    /// The cursor with the least key.
    pub fn first(&self) -> Option<&EntryCursor> {
        self.heap.first()
    }

    /// The same, to be moved on; [`settle`](Self::settle) follows.
    pub fn first_mut(&mut self) -> Option<&mut EntryCursor> {
        self.heap.first_mut()
    }

    /// Restores the order after the first cursor moved, or drops it where it ended.
    pub fn settle(&mut self, more: bool) {
        if !more {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
    }

    fn sift_down(&mut self, mut i: usize) {
        let before = |a: &EntryCursor, b: &EntryCursor| (a.key(), a.index) < (b.key(), b.index);
        loop {
            let mut least = i;
            for child in [2 * i + 1, 2 * i + 2] {
                if child < self.heap.len() && before(&self.heap[child], &self.heap[least]) {
                    least = child;
                }
            }
            if least == i {
                return;
            }
            self.heap.swap(i, least);
            i = least;
        }
    }
}
