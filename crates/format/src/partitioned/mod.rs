//! The partitioned header: a container's header as an index table and metadata blocks, so that ranks write it
//! independently and readers read only the parts that they need.
//!
//! | module | content |
//! |---|---|
//! | [`head`] | the first bytes of the file: totals, offsets, number of records |
//! | [`table`] | the index table: an entry for each metadata block and for each writer |
//! | [`block`] | a metadata block: dimensions, global attributes and variables that one writer defined |
//! | [`list`] | a path list: one writer's objects under each of its paths |
//! | [`pages`] | sorted entries in checksummed pages: the path index, and each writer's name index |
//!
//! A file is head, blocks, name indexes, path index, path lists, table, data part. The data part is that of a
//! CDF-5 file with the same definitions. The normative text is `spec/partitioned-header.md`.
//!
//! Invariants: integers are big-endian; a CRC-32C covers every byte of the header but padding; a decoder
//! checks lengths against the available bytes before it allocates; a block's offsets are relative to the data
//! part, so that it does not depend on the length of the header.

use fieldstone_core::{Error, Result};

pub mod block;
pub mod head;
pub mod list;
pub mod pages;
pub mod table;

pub use block::{Block, BlockBuilder, BlockDim, BlockVar};
pub use head::{Head, is_unfinished};
pub use list::{ListedPath, PathList, path_list};
pub use pages::{Page, name_entry, name_key, path_entry, path_hash};
pub use table::{BlockEntry, Table, WriterEntry};

/// The version of the format that this release writes and reads.
pub const VERSION: u8 = 0;

/// The first four bytes of a finished file.
pub const MAGIC: [u8; 4] = [b'F', b'S', b'P', VERSION];

/// The first four bytes of a file that is being written.
pub const UNFINISHED: [u8; 4] = *b"FSUP";

/// Size at which a writer closes a block and begins the next; only a single larger object exceeds it.
pub const BLOCK_TARGET: usize = 256 << 10;

/// Most bytes of one object's entry.
pub const MAX_ENTRY: usize = 1 << 30;

/// Reads big-endian values from untrusted bytes.
#[derive(Debug, Clone, Copy)]
struct Cursor<'a> {
    bytes: &'a [u8],
    what: &'static str,
}

impl<'a> Cursor<'a> {
    fn new(bytes: &'a [u8], what: &'static str) -> Cursor<'a> {
        Cursor { bytes, what }
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (part, rest) = self
            .bytes
            .split_at_checked(len)
            .ok_or_else(|| Error::corrupt(format!("{}: {len} bytes do not fit", self.what)))?;
        self.bytes = rest;
        Ok(part)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_be_bytes(self.array()?))
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    fn text(&mut self, len: usize) -> Result<&'a str> {
        let what = self.what;
        std::str::from_utf8(self.take(len)?)
            .map_err(|_| Error::corrupt(format!("{what}: a name is not UTF-8")))
    }
}
