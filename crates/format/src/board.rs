//! The board of a host: 128 bytes for each writer, its board slot, rewritten in place after every sync. The
//! board is a hint: a reader of the board reads only the logs that moved, and a lost or damaged board loses
//! nothing.
//!
//! ```text
//! slot = "FSbd"  version: u16  state: u16 (1 open, 2 closed)  writer: id
//!        length: u64  sequence: u64  stamp: u64  frame: u64  hash: u32
//!        process: u32  time: i64  zeros to byte 124  crc: u32
//! ```
//! `length` is the log's length including its last commit, `frame` the offset of that commit's frame, `hash`
//! the checksum in that frame's header.

use fieldstone_core::{Code, Result};

use crate::bytes::{Cursor, Put};
use crate::{Id, crc, unknown_version};

/// Length of a slot.
pub const SLOT: usize = 128;
const MAGIC: &[u8; 4] = b"FSbd";

/// A writer's description of its log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The writer's id, which names its log.
    pub writer: Id,
    /// Whether the writer has closed its log for good.
    pub closed: bool,
    /// Length of the log, including all commits.
    pub length: u64,
    /// Sequence of the last commit.
    pub sequence: u64,
    /// Stamp of the last commit.
    pub stamp: u64,
    /// Offset of the last commit's frame.
    pub frame: u64,
    /// Checksum in the header of that frame.
    pub hash: u32,
    /// Process id of the writer on its host.
    pub process: u32,
    /// The writer's clock at its last commit, nanoseconds since 1970.
    pub time: i64,
}

impl Slot {
    /// Encodes the slot.
    pub fn encode(&self) -> [u8; SLOT] {
        let mut out = Vec::with_capacity(SLOT);
        out.extend_from_slice(MAGIC);
        out.put_u16(crate::FIRST_VERSION as u16);
        out.put_u16(if self.closed { 2 } else { 1 });
        out.put_id(self.writer);
        for value in [self.length, self.sequence, self.stamp, self.frame] {
            out.put_u64(value);
        }
        out.put_u32(self.hash);
        out.put_u32(self.process);
        out.put_i64(self.time);
        out.resize(SLOT - 4, 0);
        let sum = crc(&out);
        out.put_u32(sum);
        let mut slot = [0; SLOT];
        slot.copy_from_slice(&out);
        slot
    }

    /// The version of an intact slot whose version is not ours. Every version keeps length, magic, version
    /// and checksum of a slot in place.
    pub fn foreign(bytes: &[u8]) -> Option<u32> {
        let (body, sum) = bytes.split_last_chunk()?;
        let version = u32::from(u16::from_le_bytes([*bytes.get(4)?, *bytes.get(5)?]));
        let whole = bytes.len() == SLOT && bytes.starts_with(MAGIC) && crc(body).to_le_bytes() == *sum;
        (whole && version != crate::FIRST_VERSION).then_some(version)
    }

    /// Decodes one slot.
    pub fn decode(bytes: &[u8]) -> Result<Slot> {
        if bytes.len() != SLOT || crc(&bytes[..SLOT - 4]).to_le_bytes() != bytes[SLOT - 4..] {
            return Err(Code::Checksum.error("a board slot does not match its checksum"));
        }
        let mut cursor = Cursor::new(bytes);
        if cursor.take(4)? != MAGIC {
            return Err(cursor.fail("a board slot has the wrong magic"));
        }
        match u32::from(cursor.u16()?) {
            crate::FIRST_VERSION => {}
            version => return Err(unknown_version("the slot", version)),
        }
        let closed = match cursor.u16()? {
            1 => false,
            2 => true,
            _ => return Err(cursor.fail("a board slot has an unknown state")),
        };
        Ok(Slot {
            closed,
            writer: cursor.id()?,
            length: cursor.u64()?,
            sequence: cursor.u64()?,
            stamp: cursor.u64()?,
            frame: cursor.u64()?,
            hash: cursor.u32()?,
            process: cursor.u32()?,
            time: cursor.i64()?,
        })
    }
}
