//! The origin of moved entries, since version 2: the commit of another store that held them (store-format.md, 6.2).
//!
//! ```text
//! origin = store: id  writer: id  sequence: varint  stamp: varint  time: zigzag  (u8 0 | owner)
//!          attempt: u8 0 | 1 name: text began: u64 writer: id
//! ```
//! A moved entry keeps the time, the place in the order and the attempt of its origin, and lineage goes through it.

use fieldstone_core::Result;

use crate::Id;
use crate::bytes::{Cursor, Put, put_time, read_time};
use crate::owner::Owner;

/// The first version of the format with moved entries.
pub const MOVED_SINCE: u32 = 2;

/// The place of an origin among those of one commit: stamp, writer, sequence, store.
pub type OriginRank = (u64, Id, u64, Id);

/// The attempt of a moved entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OriginAttempt {
    /// Its name.
    pub name: String,
    /// Stamp of its first commit.
    pub began: u64,
    /// The log with that commit.
    pub writer: Id,
}

/// The commit from which entries were moved.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EntryOrigin {
    /// Its store.
    pub store: Id,
    /// Its log.
    pub writer: Id,
    /// Its sequence.
    pub sequence: u64,
    /// The stamp of the entries' place in the order, which is (this, `writer`): that of the commit that made them visible
    /// there, or a greater one if the store held something newer under their keys when they arrived.
    pub stamp: u64,
    /// Its time, nanoseconds since 1970.
    pub time: i64,
    /// The owner of that log.
    pub owner: Option<Owner>,
    /// Its attempt.
    pub attempt: Option<OriginAttempt>,
}

impl EntryOrigin {
    /// The order of the rows of one commit.
    pub fn rank(&self) -> OriginRank {
        (self.stamp, self.writer, self.sequence, self.store)
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.put_id(self.store);
        out.put_id(self.writer);
        out.put_varint(self.sequence);
        out.put_varint(self.stamp);
        put_time(self.time, self.stamp, out);
        Owner::put_some(self.owner.as_ref(), out);
        out.push(u8::from(self.attempt.is_some()));
        if let Some(attempt) = &self.attempt {
            out.put_bytes(attempt.name.as_bytes());
            out.put_u64(attempt.began);
            out.put_id(attempt.writer);
        }
    }

    pub(crate) fn decode(cursor: &mut Cursor<'_>) -> Result<EntryOrigin> {
        let (store, writer, sequence) = (cursor.id()?, cursor.id()?, cursor.varint()?);
        let stamp = cursor.varint()?;
        let time = read_time(cursor, stamp)?;
        let owner = Owner::decode_some(cursor)?;
        let mut attempt = None;
        if cursor.flag()? {
            let name = cursor.text()?.to_owned();
            attempt = Some(OriginAttempt { name, began: cursor.u64()?, writer: cursor.id()? });
        }
        Ok(EntryOrigin { store, writer, sequence, stamp, time, owner, attempt })
    }
}
