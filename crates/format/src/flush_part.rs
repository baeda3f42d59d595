//! The flushes of clients that a commit holds, since version 2: a flush whose answer was lost is sent again, and counts once.
//!
//! ```text
//! record, after the attempt:   varint { session: id  number: varint  repetition: varint }
//! ```
//! Of several commits with one session and number, only the one with the highest repetition counts.

use fieldstone_core::Result;

use crate::Id;
use crate::bytes::{Cursor, Put};

/// One flush of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlushPart {
    /// The client's session.
    pub session: Id,
    /// Number of the flush in the session.
    pub number: u64,
    /// How often the client has sent it before.
    pub repetition: u64,
}

impl FlushPart {
    pub(crate) fn put_all(parts: &[FlushPart], out: &mut Vec<u8>) {
        out.put_varint(parts.len() as u64);
        for part in parts {
            out.put_id(part.session);
            out.put_varint(part.number);
            out.put_varint(part.repetition);
        }
    }

    pub(crate) fn decode_all(cursor: &mut Cursor<'_>) -> Result<Vec<FlushPart>> {
        let mut parts = Vec::new();
        for _ in 0..cursor.count(18)? {
            parts.push(FlushPart {
                session: cursor.id()?,
                number: cursor.varint()?,
                repetition: cursor.varint()?,
            });
        }
        Ok(parts)
    }
}
