//! What is asked of that which waits for a flush: whether there is anything, which arrays, and whether a piece fits.

use fieldstone_core::dtype::DType;
use fieldstone_core::{Code, Result};
use fieldstone_format::entry::{ArrayInfo, Entry};
use fieldstone_format::keys::key_text;

use super::session_state::SessionState;
use super::{Encoded, Writer};
use crate::session::SessionKey;

/// An encoded key, and element type and shape of the array under it.
pub type PendingArray = (Vec<u8>, Option<(DType, Vec<u64>)>);

impl Writer {
    /// Whether anything waits for a flush, of any session.
    pub fn holds_anything(&self) -> bool {
        self.sessions.values().any(SessionState::holds_anything)
    }

    /// Refuses a piece that is not of the array whose pieces wait under its key: no reader could put them together.
    pub fn check_piece(&self, session: SessionKey, value: &Encoded<'_>) -> Result<()> {
        let Some(array) = value.entry.array.as_ref().filter(|_| !value.entry.generation) else {
            return Ok(());
        };
        let batches = self.sessions.get(&session).into_iter().flat_map(SessionState::batches);
        let newest = batches.filter_map(|batch| batch.newest(&value.key.bytes)).last();
        let Some(before) = newest.filter(|before| !before.is_removal()) else { return Ok(()) };
        let same = |other: &ArrayInfo| (other.dtype, &other.shape) == (array.dtype, &array.shape);
        if before.array.as_ref().is_some_and(same) {
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
            .with_hint("give all pieces one type and shape; create_field begins the array anew"))
    }

    /// Encoded keys in a session, each with its entry's element type and shape.
    pub fn arrays(&self, session: SessionKey) -> Vec<PendingArray> {
        let batches = self.sessions.get(&session).into_iter().flat_map(SessionState::batches);
        let array = |entry: &Entry| entry.array.as_ref().map(|array| (array.dtype, array.shape.clone()));
        batches.flat_map(|batch| batch.entries()).map(|(key, entry)| (key.to_vec(), array(entry))).collect()
    }
}
