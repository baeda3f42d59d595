//! The incoming and outgoing relations of one vertex.
//!
//! ```text
//! adjacency = n: varint  n x group                          in ascending order of codes
//! group     = code: varint  flags: u8  far ends: varint  length of numbers: varint  length of versions: varint
//!             rows: varint  numbers  versions
//! code      = index of the type's name << 1 | 1 if the vertex is the target
//! flags     = 1 each far end has one version  2 none of them is a deletion
//! numbers   = varint, the first number; then varints, the differences
//! versions  = for each far end [count: varint, without flag 1] and its versions, newest first
//! version   = head: u8  stamp - base: zigzag  index of known: varint  [until - stamp: zigzag]  [user: varint]
//!             [length of the row: varint]
//! head      = 1 deletion  2 until  4 replaces  8 user is not 0  16 there is a row
//!             32 its content was moved to another store
//! ```
//! `rows` is the position of the group's first row, counted from the end of the vertex's own rows; rows of a
//! group follow one another in the order of its versions. Groups of incoming relations have no rows: the row
//! is stored with the source.

use fieldstone_core::Result;

use crate::bytes::{Cursor, Put};
use crate::columns::{put_zigzag, read_zigzag};

const SINGLE: u8 = 1;
const LIVE: u8 = 2;

const DELETED: u8 = 1;
const UNTIL: u8 = 2;
const REPLACES: u8 = 4;
const USER: u8 = 8;
const ROW: u8 = 16;
const ARCHIVED: u8 = 32;

/// One version of a relation in an adjacency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgeVersion {
    /// Its stamp.
    pub stamp: u64,
    /// Stamp of the commit that made it visible, as an index into the segment's list.
    pub known: u32,
    /// The stamp at which it ended.
    pub until: Option<u64>,
    /// The user who put it, as an index into the segment's list.
    pub user: u32,
    /// Whether it is a deletion.
    pub deleted: bool,
    /// Whether it replaces the earlier content of its target.
    pub replaces: bool,
    /// Whether its properties moved to another store.
    pub archived: bool,
    /// Length of its row.
    pub row: u32,
}

/// A far end with its versions, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FarEnd {
    /// Its number in the segment.
    pub number: u32,
    /// Its versions; at least one.
    pub versions: Vec<EdgeVersion>,
}

/// Writes the adjacency of one vertex after another: groups in the order of their codes, in each the far ends
/// in the order of their numbers.
///
/// ```
/// use fieldstone_format::graph_segment::adjacency::{AdjacencyWriter, EdgeVersion, groups};
/// let version =
///     EdgeVersion { stamp: 7, known: 0, until: None, user: 0, deleted: false, replaces: false, archived: false, row: 0 };
/// let mut writer = AdjacencyWriter::new(5);
/// writer.group(4, 0);
/// writer.version(17, version);
/// let mut bytes = Vec::new();
/// writer.finish(&mut bytes);
/// assert_eq!(groups(&bytes)?.next().transpose()?.map(|group| group.code), Some(4));
/// # Ok::<(), fieldstone_core::Error>(())
/// ```
#[derive(Debug)]
pub struct AdjacencyWriter {
    base: u64,
    groups: u64,
    written: Vec<u8>,
    /// Code of the open group, and the position of its rows.
    open: Option<(u32, u64)>,
    /// Its far ends by number, each with its number of versions.
    ends: Vec<(u32, u32)>,
    versions: Vec<EdgeVersion>,
    numbers_bytes: Vec<u8>,
    versions_bytes: Vec<u8>,
}

impl AdjacencyWriter {
    /// A writer whose stamps are relative to `base`.
    pub fn new(base: u64) -> AdjacencyWriter {
        AdjacencyWriter {
            base,
            groups: 0,
            written: Vec::new(),
            open: None,
            ends: Vec::new(),
            versions: Vec::new(),
            numbers_bytes: Vec::new(),
            versions_bytes: Vec::new(),
        }
    }

    /// Begins a group; `rows` is the position of its rows after the vertex's own.
    pub fn group(&mut self, code: u32, rows: u64) {
        self.close();
        self.open = Some((code, rows));
    }

    /// Adds a version to the open group, under the far end of this number. The newest version of a far end
    /// comes first.
    #[inline]
    pub fn version(&mut self, number: u32, version: EdgeVersion) {
        match self.ends.last_mut() {
            Some((last, count)) if *last == number => *count += 1,
            _ => self.ends.push((number, 1)),
        }
        self.versions.push(version);
    }

    fn close(&mut self) {
        let Some((code, rows)) = self.open.take().filter(|_| !self.ends.is_empty()) else { return };
        let AdjacencyWriter { numbers_bytes: numbers, versions_bytes: versions, .. } = self;
        numbers.clear();
        versions.clear();
        let single = self.ends.len() == self.versions.len();
        let live = self.versions.iter().all(|version| !version.deleted);
        let (mut last, mut of_end) = (0, self.versions.as_slice());
        for (number, count) in &self.ends {
            numbers.put_varint(u64::from(number - last));
            last = *number;
            if !single {
                versions.put_varint(u64::from(*count));
            }
            let (own, behind) = of_end.split_at(*count as usize);
            own.iter().for_each(|version| put_version(versions, self.base, version));
            of_end = behind;
        }
        // The lengths come before the columns, so that a reader can skip a group without decoding it.
        let out = &mut self.written;
        out.put_varint(u64::from(code));
        out.push((u8::from(single) * SINGLE) | (u8::from(live) * LIVE));
        out.put_varint(self.ends.len() as u64);
        out.put_varint(numbers.len() as u64);
        out.put_varint(versions.len() as u64);
        out.put_varint(rows);
        out.extend_from_slice(numbers);
        out.extend_from_slice(versions);
        self.groups += 1;
        self.ends.clear();
        self.versions.clear();
    }

    /// Ends the vertex: appends its adjacency, which is empty if it has no relations.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.close();
        if self.groups > 0 {
            out.put_varint(self.groups);
            out.extend_from_slice(&self.written);
        }
        self.groups = 0;
        self.written.clear();
    }
}

fn put_version(out: &mut Vec<u8>, base: u64, version: &EdgeVersion) {
    let EdgeVersion { stamp, known, until, user, deleted, replaces, archived, row } = *version;
    let bit = |on: bool, bit: u8| if on { bit } else { 0 };
    out.push(
        bit(deleted, DELETED)
            | bit(until.is_some(), UNTIL)
            | bit(replaces, REPLACES)
            | bit(user != 0, USER)
            | bit(row != 0, ROW)
            | bit(archived, ARCHIVED),
    );
    put_zigzag(out, stamp.wrapping_sub(base) as i64);
    out.put_varint(u64::from(known));
    if let Some(until) = until {
        put_zigzag(out, until.wrapping_sub(stamp) as i64);
    }
    if user != 0 {
        out.put_varint(u64::from(user));
    }
    if row != 0 {
        out.put_varint(u64::from(row));
    }
}

fn read_version(cursor: &mut Cursor<'_>, base: u64) -> Result<EdgeVersion> {
    let head = cursor.u8()?;
    if head & !(DELETED | UNTIL | REPLACES | USER | ROW | ARCHIVED) != 0 {
        return Err(cursor.fail("a version has unknown flags"));
    }
    let stamp = base.wrapping_add(read_zigzag(cursor)? as u64);
    let known = small(cursor)?;
    let until = match head & UNTIL {
        0 => None,
        _ => Some(stamp.wrapping_add(read_zigzag(cursor)? as u64)),
    };
    let user = if head & USER == 0 { 0 } else { small(cursor)? };
    let row = if head & ROW == 0 { 0 } else { small(cursor)? };
    Ok(EdgeVersion {
        stamp,
        known,
        until,
        user,
        deleted: head & DELETED != 0,
        replaces: head & REPLACES != 0,
        archived: head & ARCHIVED != 0,
        row,
    })
}

fn small(cursor: &mut Cursor<'_>) -> Result<u32> {
    u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a number of a segment exceeds 32 bits"))
}

/// The encoded form of a group.
#[derive(Debug, Clone, Copy)]
pub struct GroupBytes<'a> {
    /// Index of the type's name, times two; plus one if the vertex is the target.
    pub code: u32,
    /// Number of far ends.
    pub len: usize,
    /// Whether each far end has one version, and no version is a deletion.
    pub plain: bool,
    /// Position of its rows after the vertex's own.
    pub rows: u64,
    single: bool,
    numbers: &'a [u8],
    versions: &'a [u8],
}

/// The groups of a vertex, in the order of their codes.
pub fn groups(bytes: &[u8]) -> Result<Groups<'_>> {
    let mut cursor = Cursor::new(bytes);
    let left = if bytes.is_empty() { 0 } else { cursor.count(6)? };
    Ok(Groups { cursor, left })
}

/// Iterator of [`groups`].
#[derive(Debug, Clone)]
pub struct Groups<'a> {
    cursor: Cursor<'a>,
    left: usize,
}

impl<'a> Groups<'a> {
    fn read(&mut self) -> Result<GroupBytes<'a>> {
        let cursor = &mut self.cursor;
        let code = small(cursor)?;
        let flags = cursor.u8()?;
        if flags > (SINGLE | LIVE) {
            return Err(cursor.fail("a group has unknown flags"));
        }
        let (len, numbers, versions) = (cursor.size()?, cursor.size()?, cursor.size()?);
        let rows = cursor.varint()?;
        let (numbers, versions) = (cursor.take(numbers)?, cursor.take(versions)?);
        if len > numbers.len() || len > versions.len() {
            return Err(cursor.fail("a group has more far ends than bytes"));
        }
        let single = flags & SINGLE != 0;
        Ok(GroupBytes { code, len, plain: single && flags & LIVE != 0, rows, single, numbers, versions })
    }
}

impl<'a> Iterator for Groups<'a> {
    type Item = Result<GroupBytes<'a>>;

    fn next(&mut self) -> Option<Result<GroupBytes<'a>>> {
        self.left = self.left.checked_sub(1)?;
        let group = self.read();
        if group.is_err() {
            self.left = 0;
        }
        Some(group)
    }
}

impl<'a> GroupBytes<'a> {
    /// Numbers of the far ends, ascending.
    pub fn numbers(&self) -> Numbers<'a> {
        Numbers { cursor: Cursor::new(self.numbers), left: self.len, last: 0 }
    }

    /// Finds one far end, with the offset of the row of its first version; `None` if it is missing.
    pub fn find(&self, number: u32, base: u64) -> Result<Option<(FarEnd, u64)>> {
        let mut before = 0;
        for known in self.numbers() {
            match known? {
                known if known < number => before += 1,
                known if known == number => break,
                _ => return Ok(None),
            }
        }
        if before == self.len {
            return Ok(None);
        }
        let mut ends = self.far_ends(base);
        for _ in 0..before {
            ends.numbers.next().transpose()?;
            let count = if self.single { 1 } else { ends.cursor.count(3)? };
            for _ in 0..count {
                let row = read_version(&mut ends.cursor, base)?.row;
                ends.row = ends.row.saturating_add(u64::from(row));
            }
        }
        ends.next().transpose()
    }

    /// Visits each far end with its versions, without keeping any.
    pub fn each(&self, base: u64, mut visit: impl FnMut(u32, &[EdgeVersion]) -> Result<()>) -> Result<()> {
        let mut cursor = Cursor::new(self.versions);
        let mut versions = Vec::new();
        for number in self.numbers() {
            let count = if self.single { 1 } else { cursor.count(3)? };
            versions.clear();
            for _ in 0..count {
                versions.push(read_version(&mut cursor, base)?);
            }
            visit(number?, &versions)?;
        }
        Ok(())
    }

    /// Passes each version to `take`: the number of its far end, the version, and the position of its row.
    pub fn each_version(
        &self,
        base: u64,
        mut take: impl FnMut(u32, EdgeVersion, u64) -> Result<()>,
    ) -> Result<()> {
        let (mut cursor, mut row) = (Cursor::new(self.versions), self.rows);
        for number in self.numbers() {
            let number = number?;
            let count = if self.single { 1 } else { cursor.count(3)? };
            for _ in 0..count {
                let version = read_version(&mut cursor, base)?;
                take(number, version, row)?;
                row = row.saturating_add(u64::from(version.row));
            }
        }
        Ok(())
    }

    /// The far ends with their versions, each with the offset of the row of its first version.
    pub fn far_ends(&self, base: u64) -> FarEnds<'a> {
        let cursor = Cursor::new(self.versions);
        FarEnds { numbers: self.numbers(), cursor, single: self.single, base, row: self.rows }
    }
}

/// Iterator of [`GroupBytes::numbers`].
#[derive(Debug, Clone)]
pub struct Numbers<'a> {
    cursor: Cursor<'a>,
    left: usize,
    last: u32,
}

impl Iterator for Numbers<'_> {
    type Item = Result<u32>;

    #[inline]
    fn next(&mut self) -> Option<Result<u32>> {
        self.left = self.left.checked_sub(1)?;
        Some(small(&mut self.cursor).map(|difference| {
            self.last = self.last.wrapping_add(difference);
            self.last
        }))
    }
}

/// Iterator of [`GroupBytes::far_ends`].
#[derive(Debug, Clone)]
pub struct FarEnds<'a> {
    numbers: Numbers<'a>,
    cursor: Cursor<'a>,
    single: bool,
    base: u64,
    row: u64,
}

impl FarEnds<'_> {
    fn read(&mut self, number: u32) -> Result<(FarEnd, u64)> {
        let count = if self.single { 1 } else { self.cursor.count(3)? };
        let first = self.row;
        let mut versions = Vec::with_capacity(count);
        for _ in 0..count {
            let version = read_version(&mut self.cursor, self.base)?;
            self.row = self.row.saturating_add(u64::from(version.row));
            versions.push(version);
        }
        Ok((FarEnd { number, versions }, first))
    }
}

impl Iterator for FarEnds<'_> {
    type Item = Result<(FarEnd, u64)>;

    fn next(&mut self) -> Option<Result<(FarEnd, u64)>> {
        let number = self.numbers.next()?;
        Some(number.and_then(|number| self.read(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn version() -> impl Strategy<Value = EdgeVersion> {
        let flags = (any::<bool>(), any::<bool>(), any::<bool>(), proptest::option::of(any::<u64>()));
        (any::<u64>(), any::<u32>(), 0..3u32, 0..200u32, flags).prop_map(
            |(stamp, known, user, row, (deleted, replaces, archived, until))| EdgeVersion {
                stamp,
                known,
                until,
                user,
                deleted,
                replaces,
                archived,
                row,
            },
        )
    }

    /// A group as the test writes it.
    #[derive(Debug, Clone)]
    struct Group {
        code: u32,
        rows: u64,
        far_ends: Vec<FarEnd>,
    }

    fn write(writer: &mut AdjacencyWriter, groups: &[Group]) -> Vec<u8> {
        for group in groups {
            writer.group(group.code, group.rows);
            for end in &group.far_ends {
                end.versions.iter().for_each(|version| writer.version(end.number, *version));
            }
        }
        let mut bytes = Vec::new();
        writer.finish(&mut bytes);
        bytes
    }

    fn group() -> impl Strategy<Value = Group> {
        let ends =
            proptest::collection::btree_map(any::<u32>(), proptest::collection::vec(version(), 1..3), 1..9);
        (any::<u32>(), any::<u32>(), ends).prop_map(|(code, rows, ends)| Group {
            code,
            rows: u64::from(rows),
            far_ends: ends.into_iter().map(|(number, versions)| FarEnd { number, versions }).collect(),
        })
    }

    proptest! {
        #[test]
        fn groups_come_back(all in proptest::collection::vec(group(), 0..4), base in any::<u64>()) {
            let mut writer = AdjacencyWriter::new(base);
            let bytes = write(&mut writer, &all);
            prop_assert_eq!(&write(&mut writer, &all), &bytes, "the previous vertex leaves nothing behind");
            let back: Vec<GroupBytes<'_>> = groups(&bytes).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(back.len(), all.len());
            for (group, bytes) in all.iter().zip(back) {
                let ends: Vec<(FarEnd, u64)> = bytes.far_ends(base).map(Result::unwrap).collect();
                let mut row = group.rows;
                for (end, (read, at)) in group.far_ends.iter().zip(&ends) {
                    prop_assert_eq!((end, row), (read, *at));
                    row += end.versions.iter().map(|version| u64::from(version.row)).sum::<u64>();
                }
                let mut each = Vec::new();
                bytes.each_version(base, |number, version, at| {
                    each.push((number, version, at));
                    Ok(())
                }).unwrap();
                let mut at = group.rows;
                for (number, version) in group.far_ends.iter().flat_map(|end| end.versions.iter().map(|v| (end.number, v))) {
                    prop_assert_eq!(each.remove(0), (number, *version, at));
                    at += u64::from(version.row);
                }
                prop_assert!(each.is_empty());
                let numbers: Vec<u32> = bytes.numbers().map(Result::unwrap).collect();
                for (end, at) in &ends {
                    prop_assert_eq!(bytes.find(end.number, base).unwrap(), Some((end.clone(), *at)));
                }
                let mut visited = Vec::new();
                let visit = |number, versions: &[EdgeVersion]| {
                    visited.push(FarEnd { number, versions: versions.to_vec() });
                    Ok(())
                };
                bytes.each(base, visit).unwrap();
                prop_assert_eq!(&visited, &group.far_ends);
                let absent = (0..).find(|n| !numbers.contains(n)).unwrap();
                prop_assert_eq!(bytes.find(absent, base).unwrap(), None);
                prop_assert_eq!(numbers, group.far_ends.iter().map(|end| end.number).collect::<Vec<u32>>());
                let plain = |end: &FarEnd| end.versions.len() == 1 && !end.versions[0].deleted;
                prop_assert_eq!(bytes.plain, group.far_ends.iter().all(plain));
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
            let Ok(groups) = groups(&bytes) else { return Ok(()) };
            for group in groups {
                let Ok(group) = group else { break };
                let _ = group.far_ends(0).count();
            }
        }
    }
}
