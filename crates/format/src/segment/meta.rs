//! The meta part of a segment, from which a reader decides whether, and which, blocks to read.

use std::sync::Arc;

use fieldstone_core::key::KeyValue;
use fieldstone_core::{Code, Result};

use crate::bytes::{Cursor, Put, put_time, read_time};
use crate::keys::{decode_value, encode_value, skip_value};
use crate::origin::EntryOrigin;
use crate::{Id, crc};

/// All datasets are listed.
const COMPLETE: u8 = 1;
/// An entry is a removal.
const REMOVALS: u8 = 2;
/// A commit is prepared under a transaction.
const TRANSACTION: u8 = 1;
/// Entries of a commit were moved.
const ORIGIN: u8 = 2;
/// A commit was made under a view of a stack.
const VIEW: u8 = 4;
/// The first version of the format that has origins and views.
pub const ORIGINS_SINCE: u8 = 2;

/// A commit whose entries a segment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitInfo {
    /// Its sequence in the log.
    pub sequence: u64,
    /// Its stamp.
    pub stamp: u64,
    /// The writer's clock, nanoseconds since 1970.
    pub time: i64,
    /// The transaction under which it was prepared.
    pub transaction: Option<Id>,
    /// The index of the origin of its entries in [`SegmentMeta::origins`], if they were moved.
    pub origin: Option<u32>,
    /// The view of a stack of stores under which it was made; 0 in a single store.
    pub view: u64,
}

/// The distinct values of a keyword in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// Level of the keyword: 0, 1 or 2.
    pub level: u8,
    /// The keyword.
    pub keyword: Arc<str>,
    /// Sorted values; `None` if there are too many to list.
    pub values: Option<Vec<KeyValue>>,
}

/// One block of the directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// Offset from the segment's first byte. Not stored: blocks follow one another without gaps.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// CRC-32C.
    pub crc: u32,
    /// Number of entries.
    pub entries: u64,
    /// Key of its first entry.
    pub first_key: Box<[u8]>,
}

/// A segment's description of its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentMeta {
    /// Version of the format: that of the log.
    pub version: u8,
    /// Number of entries.
    pub entries: u64,
    /// Raw bytes of all entries.
    pub bytes: u64,
    /// Commits whose entries it holds, ascending.
    pub commits: Vec<CommitInfo>,
    /// Origins of moved entries, in the order of the commit table.
    pub origins: Vec<EntryOrigin>,
    /// First key.
    pub first_key: Vec<u8>,
    /// Last key.
    pub last_key: Vec<u8>,
    /// Encoded first levels, each with the index of the first commit into it; `None` if there are too many.
    pub datasets: Option<Vec<(Vec<u8>, u64)>>,
    /// Whether some entry is a removal, so that axes may hold values of keys without a field.
    pub removals: bool,
    /// Values of each keyword.
    pub axes: Vec<Axis>,
    /// Offset of the filter from the segment's first byte. Not stored: it follows from the directory.
    pub filter_offset: u64,
    /// Bytes of the filter.
    pub filter_len: u64,
    /// Probes of the filter.
    pub filter_hashes: u8,
    /// CRC-32C of the filter.
    pub filter_crc: u32,
    /// The blocks, in order.
    pub directory: Vec<Directory>,
}

impl SegmentMeta {
    /// Encodes the meta part.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![self.version];
        out.put_varint(self.entries);
        out.put_varint(self.bytes);
        out.put_varint(self.commits.len() as u64);
        let (mut sequence, mut stamp) = (0, 0);
        for commit in &self.commits {
            out.put_varint(commit.sequence.wrapping_sub(sequence));
            out.put_varint(commit.stamp.wrapping_sub(stamp));
            (sequence, stamp) = (commit.sequence, commit.stamp);
            put_time(commit.time, stamp, &mut out);
            let origin = commit.origin.and_then(|origin| self.origins.get(origin as usize));
            let transaction = if commit.transaction.is_some() { TRANSACTION } else { 0 };
            let view = if commit.view > 0 { VIEW } else { 0 };
            out.push(transaction | view | if origin.is_some() { ORIGIN } else { 0 });
            if let Some(id) = commit.transaction {
                out.put_id(id);
            }
            if let Some(origin) = origin {
                origin.put(&mut out);
            }
            if commit.view > 0 {
                out.put_varint(commit.view);
            }
        }
        out.put_bytes(&self.first_key);
        put_key(&self.first_key, &self.last_key, &mut out);
        out.push(
            if self.datasets.is_some() { COMPLETE } else { 0 } | if self.removals { REMOVALS } else { 0 },
        );
        let datasets = self.datasets.as_deref().unwrap_or_default();
        out.put_varint(datasets.len() as u64);
        let mut before = &self.first_key;
        for (prefix, commit) in datasets {
            put_key(before, prefix, &mut out);
            out.put_varint(*commit);
            before = prefix;
        }
        out.put_varint(self.axes.len() as u64);
        for axis in &self.axes {
            out.push(axis.level);
            out.put_bytes(axis.keyword.as_bytes());
            out.push(u8::from(axis.values.is_some()));
            let values = axis.values.as_deref().unwrap_or_default();
            out.put_varint(values.len() as u64);
            values.iter().for_each(|value| encode_value(value, &mut out));
        }
        out.put_varint(self.filter_len);
        out.push(self.filter_hashes);
        out.put_u32(self.filter_crc);
        out.put_varint(self.directory.len() as u64);
        let mut before: &[u8] = &self.first_key;
        for block in &self.directory {
            out.put_varint(block.length);
            out.put_u32(block.crc);
            out.put_varint(block.entries);
            put_key(before, &block.first_key, &mut out);
            before = &block.first_key;
        }
        out
    }

    /// Checks and decodes the meta part of a segment whose blocks and filter together have `between` bytes.
    pub fn decode(bytes: &[u8], expected_crc: u32, between: u64) -> Result<SegmentMeta> {
        if crc(bytes) != expected_crc {
            return Err(Code::Checksum.error("a segment does not match its checksum"));
        }
        let cursor = &mut Cursor::new(bytes);
        let version = cursor.u8()?;
        if !crate::is_known(u32::from(version)) {
            return Err(cursor.fail("a segment has an unknown version"));
        }
        let (entries, raw) = (cursor.varint()?, cursor.varint()?);
        let (commits, origins) = read_commits(cursor, version)?;
        let first_key = cursor.bytes()?.to_vec();
        let last_key = read_key(cursor, &first_key)?;
        let flags = cursor.u8()?;
        if flags > COMPLETE | REMOVALS {
            return Err(cursor.fail("a segment has unknown flags"));
        }
        let mut datasets: Vec<(Vec<u8>, u64)> = Vec::new();
        for _ in 0..cursor.count(3)? {
            let before = datasets.last().map_or(&first_key, |(prefix, _)| prefix);
            let prefix = read_key(cursor, before)?;
            datasets.push((prefix, cursor.varint()?));
        }
        let mut axes = Vec::new();
        for _ in 0..cursor.count(4)? {
            axes.push(read_axis(cursor)?);
        }
        let (filter_len, filter_hashes, filter_crc) = (cursor.varint()?, cursor.u8()?, cursor.u32()?);
        let start = bytes.len() as u64;
        let directory = read_directory(cursor, start, &first_key)?;
        let filter_offset = directory.last().map_or(start, |d: &Directory| d.offset + d.length);
        if filter_offset.checked_add(filter_len) != start.checked_add(between) || !cursor.is_empty() {
            return Err(cursor.fail("a segment's parts do not add up to its length"));
        }
        Ok(SegmentMeta {
            version,
            entries,
            bytes: raw,
            commits,
            origins,
            first_key,
            last_key,
            datasets: (flags & COMPLETE != 0).then_some(datasets),
            removals: flags & REMOVALS != 0,
            axes,
            filter_offset,
            filter_len,
            filter_hashes,
            filter_crc,
            directory,
        })
    }

    /// Index of the first block that can hold `key` (entries of one key may span blocks).
    pub fn block_for(&self, key: &[u8]) -> usize {
        self.directory.partition_point(|block| *block.first_key < *key).saturating_sub(1)
    }
}

/// Reads the commit table, and the origins in it.
fn read_commits(cursor: &mut Cursor<'_>, version: u8) -> Result<(Vec<CommitInfo>, Vec<EntryOrigin>)> {
    let count = cursor.count(4)?;
    let (mut commits, mut origins) = (Vec::with_capacity(count), Vec::new());
    let (mut sequence, mut stamp) = (0u64, 0u64);
    for _ in 0..count {
        sequence = sequence.wrapping_add(cursor.varint()?);
        stamp = stamp.wrapping_add(cursor.varint()?);
        let time = read_time(cursor, stamp)?;
        let flags = cursor.u8()?;
        if flags > TRANSACTION | ORIGIN | VIEW || (flags > TRANSACTION && version < ORIGINS_SINCE) {
            return Err(cursor.fail("a commit of a segment has unknown flags"));
        }
        let transaction = if flags & TRANSACTION != 0 { Some(cursor.id()?) } else { None };
        let mut origin = None;
        if flags & ORIGIN != 0 {
            origin = Some(origins.len() as u32);
            origins.push(EntryOrigin::decode(cursor)?);
        }
        let view = if flags & VIEW != 0 { cursor.varint()? } else { 0 };
        commits.push(CommitInfo { sequence, stamp, time, transaction, origin, view });
    }
    Ok((commits, origins))
}

fn read_axis(cursor: &mut Cursor<'_>) -> Result<Axis> {
    let level = cursor.u8()?;
    let keyword: Arc<str> = cursor.text()?.into();
    let complete = cursor.flag()?;
    let mut values = Vec::new();
    for _ in 0..cursor.count(1)? {
        let rest = cursor.clone().take(cursor.remaining())?;
        let mut after = rest;
        let raw = skip_value(&mut after)?;
        cursor.take(raw.len())?;
        values.push(decode_value(&mut &raw[..])?);
    }
    Ok(Axis { level, keyword, values: complete.then_some(values) })
}

fn read_directory(cursor: &mut Cursor<'_>, mut offset: u64, first: &[u8]) -> Result<Vec<Directory>> {
    let count = cursor.count(8)?;
    let mut directory: Vec<Directory> = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, crc, entries) = (cursor.varint()?, cursor.u32()?, cursor.varint()?);
        let first_key = read_key(cursor, directory.last().map_or(first, |d| &d.first_key))?.into();
        directory.push(Directory { offset, length, crc, entries, first_key });
        offset = offset.checked_add(length).ok_or_else(|| cursor.fail("a segment exceeds 64 bits"))?;
    }
    Ok(directory)
}

/// Writes the part of a key that differs from an earlier key.
fn put_key(before: &[u8], key: &[u8], out: &mut Vec<u8>) {
    let shared = shared_prefix(before, key);
    out.put_varint(shared as u64);
    out.put_bytes(&key[shared..]);
}

/// Reads a key that is stored as its difference from an earlier key.
fn read_key(cursor: &mut Cursor<'_>, before: &[u8]) -> Result<Vec<u8>> {
    let shared = cursor.size()?;
    let prefix =
        before.get(..shared).ok_or_else(|| cursor.fail("a key shares more than the earlier key has"))?;
    Ok([prefix, cursor.bytes()?].concat())
}

pub(crate) fn shared_prefix(a: &[u8], b: &[u8]) -> usize {
    let n = a.len().min(b.len());
    let mut i = 0;
    while i + 8 <= n && a[i..i + 8] == b[i..i + 8] {
        i += 8;
    }
    while i < n && a[i] == b[i] {
        i += 1;
    }
    i
}
