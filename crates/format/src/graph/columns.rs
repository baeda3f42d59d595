//! Relations of a record in columns that refer to its bytes: a reader of many relations copies no text.

use fieldstone_core::{Error, Result};

use super::Version;
use super::props::check_props;
use crate::bytes::Cursor;
use crate::columns::{read_ints, read_strings};

/// Most rows of a record.
pub const ROWS_MAX: usize = 65_536;

/// Relations of a record, with one column for each part.
///
/// ```
/// use fieldstone_format::graph::{Props, Record, RelationColumns, RelationRow, Version, VertexName};
/// let row = RelationRow {
///     kind: "write".into(),
///     source: VertexName::new("job", "17"),
///     target: VertexName::new("file", "/data/a.nc"),
///     version: Version { stamp: 5, time: 5, deleted: false },
///     until: None,
///     props: Props::default(),
/// };
/// let side = Record::Relations(vec![row]).encode();
/// let own = Record::relations_body(&side)?.expect("relations");
/// let columns = RelationColumns::of_body(&own.body)?;
/// assert_eq!(columns.target_ids, ["/data/a.nc"]);
/// # Ok::<(), fieldstone_core::Error>(())
/// ```
#[derive(Debug)]
pub struct RelationColumns<'a> {
    /// Types of the relations.
    pub kinds: Vec<&'a str>,
    /// Types of the sources.
    pub source_kinds: Vec<&'a str>,
    /// Their ids.
    pub source_ids: Vec<&'a str>,
    /// Types of the targets.
    pub target_kinds: Vec<&'a str>,
    /// Their ids.
    pub target_ids: Vec<&'a str>,
    /// Versions, with the stamps at which they began.
    pub versions: Vec<Version>,
    /// Stamps at which they ended.
    pub until: Vec<Option<u64>>,
    /// Properties, as their bytes.
    pub props: Vec<&'a [u8]>,
    /// Whether each replaces the earlier content of its target.
    pub replaces: Vec<bool>,
}

impl<'a> RelationColumns<'a> {
    /// Decodes a body; every defect is Corrupt.
    pub fn of_body(body: &'a [u8]) -> Result<RelationColumns<'a>> {
        let mut cursor = Cursor::new(body);
        let columns = RelationColumns::read(&mut cursor)?;
        if cursor.is_empty() { Ok(columns) } else { Err(cursor.fail("a record is longer than its content")) }
    }

    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<RelationColumns<'a>> {
        let n = read_rows(cursor)?;
        let kinds = read_names(cursor, n)?;
        let (source_kinds, source_ids) = (read_names(cursor, n)?, read_names(cursor, n)?);
        let (target_kinds, target_ids) = (read_names(cursor, n)?, read_names(cursor, n)?);
        let versions = read_versions(cursor, n)?;
        let ends = read_flags(cursor, n)?;
        let lengths = match ends.iter().filter(|ends| **ends).count() {
            0 => Vec::new(),
            m => read_ints(cursor, m)?,
        };
        let mut lengths = lengths.into_iter();
        let until = |(ends, version): (bool, &Version)| {
            let length = if ends { lengths.next() } else { None };
            length.map(|length| version.stamp.wrapping_add(length as u64))
        };
        let until = ends.into_iter().zip(&versions).map(until).collect();
        let mut props = read_strings(cursor, n)?;
        let mut replaces = Vec::with_capacity(n);
        for own in &mut props {
            let (bytes, replacing) = check_props(own)?;
            *own = bytes;
            replaces.push(replacing);
        }
        Ok(RelationColumns {
            kinds,
            source_kinds,
            source_ids,
            target_kinds,
            target_ids,
            versions,
            until,
            props,
            replaces,
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.versions.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.versions.is_empty()
    }
}

pub(super) fn read_rows(cursor: &mut Cursor<'_>) -> Result<usize> {
    match cursor.size()? {
        n @ 1..=ROWS_MAX => Ok(n),
        _ => Err(cursor.fail("a record has an impossible number of rows")),
    }
}

/// Reads a column of names, which must not be empty.
pub(super) fn read_names<'a>(cursor: &mut Cursor<'a>, n: usize) -> Result<Vec<&'a str>> {
    let wrong = || Error::corrupt("a name is empty or not UTF-8");
    // Rows of a listed text point to the same bytes, which are checked once.
    let mut last: (&[u8], &str) = (&[], "");
    let name = |bytes: &'a [u8]| {
        if bytes.is_empty() {
            return Err(wrong());
        }
        if !std::ptr::eq(bytes, last.0) {
            last = (bytes, std::str::from_utf8(bytes).map_err(|_| wrong())?);
        }
        Ok(last.1)
    };
    read_strings(cursor, n)?.into_iter().map(name).collect()
}

fn read_flags(cursor: &mut Cursor<'_>, n: usize) -> Result<Vec<bool>> {
    let flag = |number: i64| match number {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Error::corrupt("a flag is neither 0 nor 1")),
    };
    read_ints(cursor, n)?.into_iter().map(flag).collect()
}

pub(super) fn read_versions(cursor: &mut Cursor<'_>, n: usize) -> Result<Vec<Version>> {
    let (stamps, lags) = (read_ints(cursor, n)?, read_ints(cursor, n)?);
    let deleted = read_flags(cursor, n)?;
    let version = |((stamp, lag), deleted): ((i64, i64), bool)| Version {
        stamp: stamp as u64,
        time: stamp.wrapping_add(lag),
        deleted,
    };
    Ok(stamps.into_iter().zip(lags).zip(deleted).map(version).collect())
}
