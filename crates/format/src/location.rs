//! The location of an entry's bytes.
//!
//! ```text
//! location = 00                                           no bytes yet (a created field)
//!          | 01 file: varint offset: varint size: varint blocks    blocks, in line
//!          | 02 file offset size table offset: varint table length: varint table crc: u32
//!          | 03 external blocks                                    outside the store, blocks in line
//!          | 04 data: bytes crc: u32                               in the entry
//!          | 05 external file: varint table offset, length, crc    outside, blocks in a table
//!          | 06 (00 | 01 writer: id sequence: varint ordinal: varint)    removed
//!          | 07 grown blocks                                       a file of the store that grows, in line
//!          | 08 grown file: varint table offset, length, crc       the same, blocks in a table
//!          | 09 attempt: text  began: u64  writer: id              an attempt tombstone
//!          | 41 | 42 | 45 | 48                                     in a takeover: as 01, 02, 05, 08, after `holder: varint`
//! grown    = path: text offset: varint size: varint holes: varint
//! external = url: text nbytes: u64 mtime: i64 offset: varint parts: varint stride: varint size: varint
//! ```
//! `file` 0 is the log with the segment, n its writer's data log n. In a takeover 0 is its own file and n its own data log n,
//! or, after a holder, data log n of the writer with this number in the table of names. Blocks follow one another from `offset`.
//! An external location is `parts` equal ranges of a file that the store does not own, whose beginnings are
//! `stride` bytes apart: together they are the raw bytes, in order. Its blocks are never compressed, and each
//! has its checksum like any other.
//!
//! A grown location (since version 2) is one range of a file that the store owns, named relative to the
//! store's folder. Others may append to the file while the entry exists. The location holds a whole array,
//! uncompressed, in blocks of `size` raw bytes (0: one block). Only the blocks' checksums show whether the
//! bytes are the entry's; the file's length and change time do not. `holes` elements of the array are
//! unwritten: they hold the missing value.
//!
//! ```
//! use fieldstone_format::location::{file_url, url_path};
//!
//! let url = file_url("/data/run 7.nc".as_ref());
//! assert_eq!(url, "file:///data/run%207.nc");
//! assert_eq!(url_path(&url).unwrap(), std::path::Path::new("/data/run 7.nc"));
//! ```

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use fieldstone_core::id::{EntryId, Id};
use fieldstone_core::{Error, Result};

use crate::FIRST_VERSION;
use crate::block::{Block, INLINE_BLOCKS, put_blocks, read_blocks};
use crate::bytes::{Cursor, Put};

/// First byte of the location of a removal.
pub(crate) const REMOVED: u8 = 6;
/// First byte of the location of an attempt tombstone.
pub(crate) const ATTEMPT_TOMBSTONE: u8 = 9;
/// Added to the first byte of a location whose file is another writer's.
const HELD: u8 = 0x40;
/// The first version of the format that has locations in growing files.
pub const GROWN_SINCE: u32 = 2;

/// The location of an entry's bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Location {
    /// Nowhere yet: the field was created and waits for pieces.
    None,
    /// Blocks in a file of the segment's writer.
    Blocks {
        /// 0 for the writer's log, otherwise the number of its data log.
        file: u32,
        /// Offset of the first block.
        offset: u64,
        /// Raw length of all blocks but the last (opaque bytes only).
        size: u64,
        /// The blocks, or the position of their list.
        blocks: Blocks,
    },
    /// Ranges of a file that the store does not own.
    External(Box<External>),
    /// A range of a growing file that the store owns.
    Grown(Box<Grown>),
    /// In the entry itself.
    Inline {
        /// The bytes.
        data: Vec<u8>,
        /// Their CRC-32C.
        crc: u32,
    },
    /// Nothing: a purge left it of an entry of this attempt, which hides entries of older attempts.
    AttemptTombstone(Box<AttemptTombstone>),
    /// None: after this entry the key has no field.
    Removed {
        /// The removal counts only if this entry is the newest under the key.
        only: Option<EntryId>,
    },
}

/// The attempt whose entry a purge has dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptTombstone {
    /// Its name.
    pub attempt: String,
    /// Stamp of its first commit.
    pub began: u64,
    /// The log with that commit.
    pub writer: Id,
}

/// Ranges of a file outside the store, and the file's size and time when they were recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct External {
    /// URL of the file.
    pub url: String,
    /// Size of the file in bytes.
    pub nbytes: u64,
    /// Its change time, nanoseconds since 1970.
    pub mtime: i64,
    /// Offset of the first part.
    pub offset: u64,
    /// Number of parts of equal length, at least one.
    pub parts: u64,
    /// Bytes from the beginning of a part to that of the next.
    pub stride: u64,
    /// Raw length of all blocks but the last (opaque bytes only).
    pub size: u64,
    /// The file of the segment's writer with the table of blocks; 0 if the entry lists them.
    pub file: u32,
    /// The blocks, or the position of their list.
    pub blocks: Blocks,
}

impl External {
    /// Corrupt unless parts of `length` bytes in total are inside the file and do not overlap.
    pub fn check(&self, length: u64) -> Result<()> {
        let part = self.part(length);
        let whole = part.checked_mul(self.parts) == Some(length) && (self.parts == 1 || self.stride >= part);
        let end = self
            .parts
            .checked_sub(1)
            .and_then(|n| n.checked_mul(self.stride))
            .and_then(|n| n.checked_add(self.offset)?.checked_add(part));
        match end {
            Some(end) if whole && end <= self.nbytes => Ok(()),
            _ => Err(Error::corrupt("an external location is not inside its file")),
        }
    }

    /// Reads the parts of a location outside the store, whose blocks are `inline` or in a table.
    fn decode(
        inline: bool,
        cursor: &mut Cursor<'_>,
        listed: impl Fn(&mut Cursor<'_>, u64) -> Result<Blocks>,
    ) -> Result<External> {
        let mut external = External {
            url: cursor.text()?.to_owned(),
            nbytes: cursor.u64()?,
            mtime: cursor.i64()?,
            offset: cursor.varint()?,
            parts: cursor.varint()?,
            stride: cursor.varint()?,
            size: cursor.varint()?,
            file: 0,
            blocks: Blocks::Inline(Vec::new()),
        };
        if inline {
            external.blocks = listed(cursor, external.size)?;
        } else {
            external.file = file_number(cursor)?;
            external.blocks = Blocks::table(cursor)?;
        }
        Ok(external)
    }

    /// Bytes of one part, if all have `length` bytes together.
    pub fn part(&self, length: u64) -> u64 {
        length / self.parts.max(1)
    }
}

/// A range of a growing file that the store owns: a whole array.
#[derive(Debug, Clone, PartialEq)]
pub struct Grown {
    /// The file, relative to the store's folder, with `/` between its parts.
    pub path: String,
    /// Offset of the array.
    pub offset: u64,
    /// Raw length of all blocks but the last, in whole elements; 0 for one block.
    pub size: u64,
    /// Number of unwritten elements.
    pub holes: u64,
    /// The file of the segment's writer with the table of blocks; 0 if the entry lists them.
    pub file: u32,
    /// The blocks, or the position of their list.
    pub blocks: Blocks,
}

impl Grown {
    /// Corrupt unless the path stays inside the store, and the `length` bytes are not empty, end below 2^64,
    /// and have blocks cut between elements of `item` bytes.
    pub fn check(&self, length: u64, item: u64) -> Result<()> {
        let inside =
            self.path.split('/').all(|part| !matches!(part, "" | "." | "..") && !part.contains('\0'));
        if !inside {
            return Err(Error::corrupt(format!(
                "'{}' does not name a file inside the store's folder",
                self.path
            )));
        }
        if length == 0 || self.offset.checked_add(length).is_none() {
            return Err(Error::corrupt("a location in a file of the store has no bytes within 64 bits"));
        }
        let cut = |bytes: u64| bytes.checked_rem(item).is_some_and(|rest| rest == 0);
        if !cut(self.size) || !cut(length) {
            return Err(Error::corrupt("a location in a file of the store is not cut between elements"));
        }
        if self.holes > length / item {
            return Err(Error::corrupt("a location in a file of the store has more holes than elements"));
        }
        Ok(())
    }
}

/// The blocks of an entry.
#[derive(Debug, Clone, PartialEq)]
pub enum Blocks {
    /// Listed in the entry.
    Inline(Vec<Block>),
    /// Listed in a table in the same file.
    Table {
        /// Offset of the table.
        offset: u64,
        /// Bytes of the table.
        length: u64,
        /// CRC-32C of the table.
        crc: u32,
    },
}

impl Blocks {
    fn table(cursor: &mut Cursor<'_>) -> Result<Blocks> {
        Ok(Blocks::Table { offset: cursor.varint()?, length: cursor.varint()?, crc: cursor.u32()? })
    }

    fn encode(&self, arrays: bool, out: &mut Vec<u8>) {
        match self {
            Blocks::Inline(blocks) => {
                debug_assert!(blocks.len() <= INLINE_BLOCKS);
                put_blocks(blocks, arrays, out);
            }
            Blocks::Table { offset, length, crc } => {
                out.put_varint(*offset);
                out.put_varint(*length);
                out.put_u32(*crc);
            }
        }
    }
}

impl Location {
    /// The oldest version of the format that has it.
    pub fn version(&self) -> u32 {
        match self {
            Location::Grown(_) | Location::AttemptTombstone(_) => GROWN_SINCE,
            _ => FIRST_VERSION,
        }
    }

    /// The unwritten elements of a whole array with a place in a file; 0 for all others.
    pub fn holes(&self) -> u64 {
        match self {
            Location::Grown(grown) => grown.holes,
            _ => 0,
        }
    }

    /// File, offset and length of the range in the writer's files: stored bytes followed by the table. `None`
    /// if it has none.
    pub fn own_range(&self) -> Option<(u32, u64, u64)> {
        let (file, begin, blocks) = match self {
            Location::Blocks { file, offset, blocks, .. } => (file, Some(*offset), blocks),
            Location::External(external) => (&external.file, None, &external.blocks),
            Location::Grown(grown) => (&grown.file, None, &grown.blocks),
            _ => return None,
        };
        let (begin, length) = match blocks {
            Blocks::Inline(blocks) => (begin?, blocks.iter().map(|block| block.stored).sum()),
            Blocks::Table { offset, length, .. } => {
                let begin = begin.unwrap_or(*offset);
                (begin, offset.saturating_sub(begin).saturating_add(*length))
            }
        };
        (length > 0).then_some((*file, begin, length))
    }

    /// Moves the range in the writer's files by `base` bytes, and to another file if one is given.
    pub fn shift(&mut self, to: Option<u32>, base: u64) {
        self.place(to, |offset| offset + base);
    }

    /// Moves the range in the writer's files from an offset to an offset of another file.
    pub fn relocate(&mut self, file: u32, from: u64, to: u64) {
        self.place(Some(file), |offset| offset.saturating_sub(from) + to);
    }

    fn place(&mut self, to: Option<u32>, moved: impl Fn(u64) -> u64) {
        let (file, blocks) = match self {
            Location::Blocks { file, offset, blocks, .. } => {
                *offset = moved(*offset);
                (file, blocks)
            }
            Location::External(external) if matches!(external.blocks, Blocks::Table { .. }) => {
                (&mut external.file, &mut external.blocks)
            }
            Location::Grown(grown) if matches!(grown.blocks, Blocks::Table { .. }) => {
                (&mut grown.file, &mut grown.blocks)
            }
            _ => return,
        };
        *file = to.unwrap_or(*file);
        if let Blocks::Table { offset, .. } = blocks {
            *offset = moved(*offset);
        }
    }

    /// Encodes the location in a takeover, with the holder of its file: a number in the table of names.
    pub fn encode_held(&self, holder: u64, arrays: bool, out: &mut Vec<u8>) {
        let mut plain = Vec::new();
        self.encode(arrays, &mut plain);
        let (kind, parts) = plain.split_first().unwrap_or((&0, &[]));
        out.push(kind | HELD);
        out.put_varint(holder);
        out.extend_from_slice(parts);
    }

    /// The kind of the location that follows, and the holder of its file.
    pub(crate) fn decode_kind(cursor: &mut Cursor<'_>) -> Result<(u8, Option<u64>)> {
        match cursor.u8()? {
            kind @ (0x41 | 0x42 | 0x45 | 0x48) => Ok((kind & !HELD, Some(cursor.varint()?))),
            kind => Ok((kind, None)),
        }
    }

    /// Encodes the location; `arrays`: whether blocks have summaries.
    pub fn encode(&self, arrays: bool, out: &mut Vec<u8>) {
        match self {
            Location::None => out.push(0),
            Location::Blocks { file, offset, size, blocks } => {
                out.push(if matches!(blocks, Blocks::Inline(_)) { 1 } else { 2 });
                out.put_varint(u64::from(*file));
                out.put_varint(*offset);
                out.put_varint(*size);
                blocks.encode(arrays, out);
            }
            Location::External(external) => {
                let listed = matches!(external.blocks, Blocks::Inline(_));
                out.push(if listed { 3 } else { 5 });
                out.put_bytes(external.url.as_bytes());
                out.put_u64(external.nbytes);
                out.put_i64(external.mtime);
                out.put_varint(external.offset);
                out.put_varint(external.parts);
                out.put_varint(external.stride);
                out.put_varint(external.size);
                if !listed {
                    out.put_varint(u64::from(external.file));
                }
                external.blocks.encode(arrays, out);
            }
            Location::Grown(grown) => {
                let listed = matches!(grown.blocks, Blocks::Inline(_));
                out.push(if listed { 7 } else { 8 });
                out.put_bytes(grown.path.as_bytes());
                out.put_varint(grown.offset);
                out.put_varint(grown.size);
                out.put_varint(grown.holes);
                if !listed {
                    out.put_varint(u64::from(grown.file));
                }
                grown.blocks.encode(arrays, out);
            }
            Location::Inline { data, crc } => {
                out.push(4);
                out.put_bytes(data);
                out.put_u32(*crc);
            }
            Location::AttemptTombstone(tombstone) => {
                out.push(ATTEMPT_TOMBSTONE);
                out.put_bytes(tombstone.attempt.as_bytes());
                out.put_u64(tombstone.began);
                out.put_id(tombstone.writer);
            }
            Location::Removed { only } => {
                out.push(REMOVED);
                out.push(u8::from(only.is_some()));
                if let Some(entry) = only {
                    put_entry_id(entry, out);
                }
            }
        }
    }

    /// Decodes a location of this kind. `count` gives the number of blocks for a size, and `ranges` the number if they are
    /// ranges of the raw bytes.
    pub fn decode(
        kind: u8,
        cursor: &mut Cursor<'_>,
        arrays: bool,
        count: impl Fn(u64) -> Result<u64>,
        ranges: impl Fn(u64) -> Result<u64>,
    ) -> Result<Location> {
        let listed = |cursor: &mut Cursor<'_>, size: u64| -> Result<Blocks> {
            Ok(Blocks::Inline(read_blocks(cursor, count(size)?, arrays)?))
        };
        Ok(match kind {
            0 => Location::None,
            tag @ (1 | 2) => {
                let (file, offset, size) = (file_number(cursor)?, cursor.varint()?, cursor.varint()?);
                let blocks = if tag == 1 { listed(cursor, size)? } else { Blocks::table(cursor)? };
                Location::Blocks { file, offset, size, blocks }
            }
            3 | 5 => Location::External(Box::new(External::decode(kind == 3, cursor, listed)?)),
            4 => Location::Inline { data: cursor.bytes()?.to_vec(), crc: cursor.u32()? },
            REMOVED => match cursor.u8()? {
                0 => Location::Removed { only: None },
                1 => Location::Removed { only: Some(entry_id(cursor)?) },
                _ => return Err(cursor.fail("a removal has an unknown kind")),
            },
            tag @ (7 | 8) => {
                let mut grown = Grown {
                    path: cursor.text()?.to_owned(),
                    offset: cursor.varint()?,
                    size: cursor.varint()?,
                    holes: cursor.varint()?,
                    file: 0,
                    blocks: Blocks::Inline(Vec::new()),
                };
                grown.blocks = if tag == 7 {
                    Blocks::Inline(read_blocks(cursor, ranges(grown.size)?, arrays)?)
                } else {
                    grown.file = file_number(cursor)?;
                    Blocks::table(cursor)?
                };
                Location::Grown(Box::new(grown))
            }
            ATTEMPT_TOMBSTONE => {
                let attempt = cursor.text()?.to_owned();
                Location::AttemptTombstone(Box::new(AttemptTombstone {
                    attempt,
                    began: cursor.u64()?,
                    writer: cursor.id()?,
                }))
            }
            _ => return Err(cursor.fail("an entry has an unknown kind of location")),
        })
    }
}

fn put_entry_id(entry: &EntryId, out: &mut Vec<u8>) {
    out.put_id(entry.writer);
    out.put_varint(entry.sequence);
    out.put_varint(entry.ordinal);
}

fn entry_id(cursor: &mut Cursor<'_>) -> Result<EntryId> {
    Ok(EntryId { writer: cursor.id()?, sequence: cursor.varint()?, ordinal: cursor.varint()? })
}

fn file_number(cursor: &mut Cursor<'_>) -> Result<u32> {
    u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a file number is too large"))
}

/// The URL of an absolute path: bytes that a URL cannot hold become `%` and two digits.
pub fn file_url(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                url.push(byte as char);
            }
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url
}

/// The path of a file's URL. Any other URL in an index is Corrupt.
pub fn url_path(url: &str) -> Result<PathBuf> {
    let wrong = || Error::corrupt(format!("'{url}' is not the URL of a file"));
    let mut rest =
        url.strip_prefix("file://").filter(|path| path.starts_with('/')).ok_or_else(wrong)?.bytes();
    let mut path = Vec::new();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            path.push(byte);
            continue;
        }
        let mut digit = || (rest.next()? as char).to_digit(16);
        let (Some(high), Some(low)) = (digit(), digit()) else { return Err(wrong()) };
        path.push((high * 16 + low) as u8);
    }
    Ok(OsString::from_vec(path).into())
}
