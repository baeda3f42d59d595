//! The head: the first [`Head::LEN`] bytes of a file with a partitioned header.
//!
//! Invariants: everything but the number of records is written once and covered by one checksum; the number
//! of records changes in place and has a separate checksum.
//!
//! ```
//! use fieldstone_format::partitioned::Head;
//! let head = Head { vars: 7, numrecs: 3, ..Head::default() };
//! let mut bytes = head.encode();
//! assert_eq!(Head::decode(&bytes).unwrap(), head);
//! bytes[Head::NUMRECS_AT as usize..][..16].copy_from_slice(&Head::numrecs_field(4));
//! assert_eq!(Head::decode(&bytes).unwrap().numrecs, 4);
//! ```

use crc32c::{crc32c, crc32c_append};
use fieldstone_core::{Code, Error, Result};

use super::{Cursor, MAGIC, UNFINISHED, VERSION};

/// Whether the first bytes belong to an unfinished file: [`UNFINISHED`], or its remainder after the disk has
/// torn the write of the four bytes that finish a file. No version has the number of `P`.
pub fn is_unfinished(bytes: &[u8]) -> bool {
    let [_, _, _, last] = UNFINISHED;
    bytes.get(..4).is_some_and(|first| first == UNFINISHED || (first[..3] == MAGIC[..3] && first[3] == last))
}

/// The content of the head.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Head {
    /// Number of records.
    pub numrecs: u64,
    /// Dimensions of the file.
    pub dims: u64,
    /// Global attributes of the file.
    pub attrs: u64,
    /// Variables of the file.
    pub vars: u64,
    /// Different paths of its objects.
    pub paths: u64,
    /// Number of the record dimension.
    pub record_dim: Option<u64>,
    /// Bytes from one record to the next.
    pub record_size: u64,
    /// Offset of the data part.
    pub data_begin: u64,
    /// Offset of the first record.
    pub record_begin: u64,
    /// Offset of the index table.
    pub table_offset: u64,
    /// Its length in bytes.
    pub table_len: u64,
    /// Its CRC-32C.
    pub table_crc: u32,
    /// Metadata blocks.
    pub blocks: u32,
    /// Writers.
    pub writers: u32,
    /// Offset of the path index.
    pub paths_offset: u64,
    /// Pages of the path index.
    pub paths_pages: u64,
}

impl Head {
    /// Bytes of a head.
    pub const LEN: usize = 160;
    /// Offset of the number of records and its checksum; see [`Head::numrecs_field`].
    pub const NUMRECS_AT: u64 = 8;

    /// The 16 bytes of a number of records, to be written at [`Head::NUMRECS_AT`].
    pub fn numrecs_field(numrecs: u64) -> [u8; 16] {
        let mut field = [0; 16];
        field[..8].copy_from_slice(&numrecs.to_be_bytes());
        field[8..12].copy_from_slice(&crc32c(&numrecs.to_be_bytes()).to_be_bytes());
        field
    }

    /// Encodes the head of a finished file. Until a file is published its first four bytes are
    /// [`UNFINISHED`].
    pub fn encode(&self) -> [u8; Head::LEN] {
        let mut out = Vec::with_capacity(Head::LEN);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&Head::numrecs_field(self.numrecs));
        let record_dim = self.record_dim.unwrap_or(u64::MAX);
        for value in [self.dims, self.attrs, self.vars, self.paths, record_dim, self.record_size] {
            out.extend_from_slice(&value.to_be_bytes());
        }
        for value in [self.data_begin, self.record_begin, self.table_offset, self.table_len] {
            out.extend_from_slice(&value.to_be_bytes());
        }
        for value in [self.table_crc, self.blocks, self.writers, 0] {
            out.extend_from_slice(&value.to_be_bytes());
        }
        out.extend_from_slice(&self.paths_offset.to_be_bytes());
        out.extend_from_slice(&self.paths_pages.to_be_bytes());
        out.resize(Head::LEN - 4, 0);
        let crc = Head::checksum(&out);
        out.extend_from_slice(&crc.to_be_bytes());
        let mut head = [0; Head::LEN];
        head.copy_from_slice(&out);
        head
    }

    /// Checksum of all but the first four bytes (which change at publication), the number of records and
    /// itself.
    fn checksum(bytes: &[u8]) -> u32 {
        crc32c_append(crc32c(&bytes[4..8]), &bytes[24..Head::LEN - 4])
    }

    /// Decodes a head. Errors: `Corrupt` for a file of another kind or version, for an unfinished file, and
    /// for damage; the message names the case.
    pub fn decode(bytes: &[u8]) -> Result<Head> {
        if is_unfinished(bytes) {
            return Err(Code::ContainerUnfinished
                .error("the writer never finished this file: its first bytes are not `FSP` and a version")
                .with_hint("write it again; its content is not reliable"));
        }
        if bytes.get(..3) != Some(&MAGIC[..3]) {
            return Err(Error::corrupt(
                "offset 0: this is not a file with a partitioned header: it does not begin with `FSP`",
            ));
        }
        let short =
            || Code::Truncated.error(format!("the head takes {} bytes, the file has fewer", Head::LEN));
        let bytes = bytes.get(..Head::LEN).ok_or_else(short)?;
        if bytes[3] != VERSION {
            return Err(crate::unknown_version("the partitioned header", bytes[3]));
        }
        let mut cursor = Cursor::new(&bytes[Head::LEN - 4..], "head");
        if cursor.u32()? != Head::checksum(bytes) {
            return Err(Code::Checksum.error("offset 0: the head does not match its checksum"));
        }
        let mut cursor = Cursor::new(&bytes[8..], "head");
        let numrecs = cursor.u64()?;
        if cursor.u32()? != crc32c(&bytes[8..16]) {
            return Err(Code::Checksum.error("offset 8: the number of records does not match its checksum"));
        }
        cursor.u32()?;
        let mut next = || cursor.u64();
        let (dims, attrs, vars, paths) = (next()?, next()?, next()?, next()?);
        let (record_dim, record_size) = (next()?, next()?);
        let (data_begin, record_begin, table_offset, table_len) = (next()?, next()?, next()?, next()?);
        let (table_crc, blocks, writers, _) = (cursor.u32()?, cursor.u32()?, cursor.u32()?, cursor.u32()?);
        let (paths_offset, paths_pages) = (cursor.u64()?, cursor.u64()?);
        let record_dim = Some(record_dim).filter(|id| *id != u64::MAX);
        let head = Head {
            numrecs,
            dims,
            attrs,
            vars,
            paths,
            record_dim,
            record_size,
            data_begin,
            record_begin,
            table_offset,
            table_len,
            table_crc,
            blocks,
            writers,
            paths_offset,
            paths_pages,
        };
        head.check()?;
        Ok(head)
    }

    /// Checks the rules that a checksum cannot show, in case a writer broke them.
    fn check(&self) -> Result<()> {
        let wrong = |rule: &str| Err(Error::corrupt(format!("head: {rule}")));
        if self.record_dim.is_some_and(|id| id >= self.dims) {
            return wrong("the record dimension's number must be below the number of dimensions");
        }
        let table_end = self.table_offset.checked_add(self.table_len);
        if self.data_begin > self.record_begin || table_end.is_none_or(|end| end > self.data_begin) {
            return wrong("the table must end before the data part, which must begin before the records");
        }
        let pages_end = self.paths_pages.checked_mul(super::pages::PAGE as u64);
        let pages_end = pages_end.and_then(|len| len.checked_add(self.paths_offset));
        if pages_end.is_none_or(|end| end > self.data_begin) {
            return wrong("the path index must end before the data part");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Head {
        Head {
            numrecs: 5,
            dims: 3,
            attrs: 1,
            vars: 9,
            paths: 2,
            record_dim: Some(2),
            record_size: 40,
            data_begin: 10_240,
            record_begin: 12_000,
            table_offset: 9_000,
            table_len: 96,
            table_crc: 7,
            blocks: 1,
            writers: 1,
            paths_offset: 4_096,
            paths_pages: 1,
        }
    }

    #[test]
    fn a_flipped_bit_of_the_head_is_seen_or_changes_nothing() {
        let bytes = sample().encode();
        let mut unseen = Vec::new();
        for bit in 0..Head::LEN * 8 {
            let mut damaged = bytes;
            damaged[bit / 8] ^= 1 << (bit % 8);
            match Head::decode(&damaged) {
                Ok(head) => {
                    assert_eq!(head, sample());
                    unseen.push(bit / 8);
                }
                Err(error) => assert!(!error.message().is_empty()),
            }
        }
        assert!(unseen.iter().all(|byte| (20..24).contains(byte)), "{unseen:?}");
    }

    #[test]
    fn other_files_are_named_as_what_they_are() {
        let mut bytes = sample().encode();
        bytes[..4].copy_from_slice(&UNFINISHED);
        assert!(Head::decode(&bytes).unwrap_err().message().contains("never finished"));
        bytes[..4].copy_from_slice(b"CDF\x05");
        assert!(Head::decode(&bytes).unwrap_err().message().contains("does not begin"));
        bytes[..4].copy_from_slice(b"FSP\x09");
        assert!(Head::decode(&bytes).unwrap_err().message().contains("version 9"));
        for len in 0..Head::LEN {
            assert!(Head::decode(&sample().encode()[..len]).is_err());
        }
    }

    #[test]
    fn places_that_contradict_one_another_are_refused() {
        for spoil in [
            |head: &mut Head| head.record_dim = Some(3),
            |head: &mut Head| head.table_len = u64::MAX,
            |head: &mut Head| head.data_begin = 100,
            |head: &mut Head| head.paths_pages = u64::MAX / 8,
        ] {
            let mut head = sample();
            spoil(&mut head);
            assert!(Head::decode(&head.encode()).is_err());
        }
    }
}
