//! Questions about what waits for a flush: which keys and arrays, which records, and whether a piece fits.

use fieldstone_core::dtype::DType;
use fieldstone_core::{Code, Result};
use fieldstone_format::entry::{ArrayInfo, Entry};
use fieldstone_format::keys::key_text;
use fieldstone_format::log::SideRecord;

use super::encoded::Encoded;
use super::session_state::SessionState;
use super::sessions::Sessions;
use crate::session::SessionKey;

/// An encoded key, and element type and shape of the array under it.
pub type PendingArray = (Vec<u8>, Option<(DType, Vec<u64>)>);

/// How far somebody has read the side records that wait for a session's flush.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PendingCursor {
    /// Changes when records that were there do not wait any more: flushed, lost or discarded.
    pub fill: u64,
    /// Records that were read.
    pub records: usize,
}

impl PendingCursor {
    /// Whether all records that `earlier` has read are still the first of those that wait.
    pub fn continues(&self, earlier: PendingCursor) -> bool {
        earlier.records == 0 || (self.fill == earlier.fill && self.records >= earlier.records)
    }
}

/// Side records that wait for a session's flush.
#[derive(Debug, Clone, PartialEq)]
pub struct PendingSide {
    /// The cursor behind them.
    pub end: PendingCursor,
    /// Whether they stand behind what the cursor had read; else they are all that waits, from the first on.
    pub continues: bool,
    /// The records, in their order.
    pub records: Vec<SideRecord>,
}

impl Sessions {
    /// Encoded keys in a session.
    pub fn keys(&self, session: SessionKey) -> Vec<Vec<u8>> {
        let batches = self.state(session).into_iter().flat_map(SessionState::batches);
        batches.flat_map(|batch| batch.keys().map(<[u8]>::to_vec)).collect()
    }

    /// Encoded keys in a session, each with its entry's element type and shape.
    pub fn arrays(&self, session: SessionKey) -> Vec<PendingArray> {
        let batches = self.state(session).into_iter().flat_map(SessionState::batches);
        let array = |entry: &Entry| entry.array.as_ref().map(|array| (array.dtype, array.shape.clone()));
        batches.flat_map(|batch| batch.entries()).map(|(key, entry)| (key.to_vec(), array(entry))).collect()
    }

    /// Refuses a piece that is not of the array whose pieces wait under its key: no reader could put them together.
    pub fn check_piece(&self, session: SessionKey, value: &Encoded<'_>) -> Result<()> {
        let Some(array) = value.entry.array.as_ref().filter(|_| !value.entry.generation) else {
            return Ok(());
        };
        let batches = self.state(session).into_iter().flat_map(SessionState::batches);
        let newest = batches.filter_map(|batch| batch.newest(&value.key.bytes)).last();
        let Some(before) = newest.filter(|before| !before.is_removal()) else { return Ok(()) };
        let same = |other: &ArrayInfo| (other.dtype, &other.shape) == (array.dtype, &array.shape);
        if before.array.as_deref().is_some_and(same) {
            return Ok(());
        }
        let before = match &before.array {
            Some(other) => format!("{} {:?}", other.dtype, other.shape),
            None => "opaque bytes".to_owned(),
        };
        Err(Code::PiecesDiffer
            .error(format!(
                "a piece of {} is of an array {} {:?}, what was archived before it of {before}",
                key_text(&value.key.bytes),
                array.dtype,
                array.shape
            ))
            .with_hint("give all pieces one type and shape; create_field begins the array again"))
    }

    /// Catalog and graph changes that wait for a commit of a session, behind what `cursor` has read of them.
    pub fn side_behind(&self, session: SessionKey, cursor: PendingCursor) -> PendingSide {
        let end = self.side_cursor(session);
        let continues = cursor.records == 0 || cursor.fill == end.fill;
        let passed = if continues { cursor.records } else { 0 };
        let batches = self.state(session).into_iter().flat_map(SessionState::batches);
        let mut records = Vec::with_capacity(end.records.saturating_sub(passed));
        let mut left = passed;
        for batch in batches {
            let skipped = left.min(batch.side.len());
            records.extend_from_slice(&batch.side[skipped..]);
            left -= skipped;
        }
        PendingSide { end, continues, records }
    }

    /// The cursor at which [`side_behind`](Self::side_behind) would end now.
    pub fn side_cursor(&self, session: SessionKey) -> PendingCursor {
        let Some(own) = self.state(session) else { return PendingCursor::default() };
        let records = own.batches().map(|batch| batch.side.len()).sum();
        PendingCursor { fill: own.fill, records }
    }
}
