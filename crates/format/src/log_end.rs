//! `logs/<id>.end`: the file that ends a log from outside, or by its writer after a failure (takeovers.md, 5).
//!
//! ```text
//! file = "FIELDSTONE-ENDS\0"  version: u32  length: u32  writer: id  store: id  sequence: u64  end: u64  hash: u32
//!        time: i64  uid: u32  why: u8  host: text  crc: u32
//! ```
//! It is linked to its name when it is whole and synced: the link decides between several. From then on the log ends with
//! the commit `sequence` (0: it has none), whatever its file holds.
//!
//! ```
//! use fieldstone_format::Id;
//! use fieldstone_format::log_end::{EndReason, LogEnd};
//!
//! let end = LogEnd {
//!     writer: Id([1; 16]), store: Id([2; 16]), sequence: 3, end: 900, hash: 7, time: 0, uid: 1000,
//!     why: EndReason::Silent, host: "node1".into(),
//! };
//! assert_eq!(LogEnd::decode(&end.encode())?, end);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

use fieldstone_core::{Code, Result};

use crate::bytes::{Cursor, Put, sealed};
use crate::{Id, crc, unknown_version};

const MAGIC: &[u8; 16] = b"FIELDSTONE-ENDS\0";
/// The only version of end files.
const VERSION: u32 = 2;
/// Number of bytes from which the version can be read.
const PREFIX: usize = 24;

/// Longest end file accepted.
pub const END_MAX: usize = 4096;

/// Name of the end file of a writer's log, inside the folder `logs`.
pub fn file_name(writer: Id) -> String {
    format!("{writer}.end")
}

/// The writer in an end file's name.
pub fn parse_file_name(name: &str) -> Option<Id> {
    Id::parse(name.strip_suffix(".end")?)
}

/// The second name of a log that is about to be ended.
pub fn ending_name(writer: Id) -> String {
    format!("{writer}.ending")
}

/// The writer in the second name of a log.
pub fn parse_ending_name(name: &str) -> Option<Id> {
    Id::parse(name.strip_suffix(".ending")?)
}

/// The reason for the end of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndReason {
    /// A write or a sync of the log failed.
    Failed,
    /// The process was gone.
    Gone,
    /// The log was silent for a day.
    Silent,
    /// The writer found the second name of its log.
    Asked,
    /// An administrator ended it.
    Administrator,
}

impl EndReason {
    const ALL: [EndReason; 5] =
        [EndReason::Failed, EndReason::Gone, EndReason::Silent, EndReason::Asked, EndReason::Administrator];

    fn number(self) -> u8 {
        EndReason::ALL.iter().position(|reason| *reason == self).map_or(0, |i| i as u8 + 1)
    }

    fn of(number: u8) -> Option<EndReason> {
        EndReason::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// The end of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEnd {
    /// The log's writer.
    pub writer: Id,
    /// The store.
    pub store: Id,
    /// The last commit that counts; 0 if none does.
    pub sequence: u64,
    /// Address behind that commit.
    pub end: u64,
    /// Hash of that commit; 0 without one.
    pub hash: u32,
    /// When the file was made, nanoseconds since 1970.
    pub time: i64,
    /// The user who made it.
    pub uid: u32,
    /// Why.
    pub why: EndReason,
    /// The host on which it was made.
    pub host: String,
}

impl LogEnd {
    /// The bytes of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.put_id(self.writer);
        body.put_id(self.store);
        body.put_u64(self.sequence);
        body.put_u64(self.end);
        body.put_u32(self.hash);
        body.put_i64(self.time);
        body.put_u32(self.uid);
        body.push(self.why.number());
        body.put_bytes(self.host.as_bytes());
        sealed(MAGIC, VERSION, &body)
    }

    /// Reads an end file.
    pub fn decode(bytes: &[u8]) -> Result<LogEnd> {
        let mut cursor = Cursor::new(bytes);
        if cursor.take(16)? != MAGIC {
            return Err(cursor.fail("an end file does not begin with its magic"));
        }
        let (version, length) = (cursor.u32()?, cursor.u32()?);
        if version != VERSION {
            return Err(unknown_version("the end file", version));
        }
        let Some((body, sum)) = bytes.split_last_chunk::<4>() else {
            return Err(Code::Truncated.error("an end file is truncated"));
        };
        if length as usize != bytes.len() || crc(body).to_le_bytes() != *sum {
            return Err(Code::Checksum.error("an end file does not match its checksum"));
        }
        let mut cursor = Cursor::new(body);
        cursor.take(PREFIX)?;
        let end = LogEnd {
            writer: cursor.id()?,
            store: cursor.id()?,
            sequence: cursor.u64()?,
            end: cursor.u64()?,
            hash: cursor.u32()?,
            time: cursor.i64()?,
            uid: cursor.u32()?,
            why: EndReason::of(cursor.u8()?)
                .ok_or_else(|| cursor.fail("an end file has an unknown reason"))?,
            host: cursor.text()?.to_owned(),
        };
        if cursor.is_empty() { Ok(end) } else { Err(cursor.fail("an end file is too long")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_file_is_read_back_and_every_changed_byte_is_noticed() {
        for why in EndReason::ALL {
            let end = LogEnd {
                writer: Id([3; 16]),
                store: Id([4; 16]),
                sequence: 9,
                end: 4711,
                hash: 0xfeed,
                time: -1,
                uid: 1000,
                why,
                host: "n1".into(),
            };
            let bytes = end.encode();
            assert!(bytes.len() <= END_MAX);
            assert_eq!(LogEnd::decode(&bytes).ok().as_ref(), Some(&end));
            for i in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[i] ^= 0x40;
                assert!(LogEnd::decode(&damaged).is_err(), "byte {i}");
                assert!(LogEnd::decode(&bytes[..i]).is_err(), "cut at {i}");
            }
        }
    }

    #[test]
    fn names_of_both_files_are_read_back() {
        let id = Id([7; 16]);
        assert_eq!(parse_file_name(&file_name(id)), Some(id));
        assert_eq!(parse_ending_name(&ending_name(id)), Some(id));
        assert_eq!(parse_file_name(&ending_name(id)), None);
        assert_eq!(parse_file_name("x.end"), None);
    }
}
