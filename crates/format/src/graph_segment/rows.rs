//! The name and the versions of one vertex, and the row of one version of a relation.
//!
//! ```text
//! name    = index of the type's name: varint  the bytes of the id
//! vertex  = length of the rest: varint  n: varint  n x version
//! version = head: u8  stamp - base: zigzag  index of known: varint  user: varint  time - stamp: zigzag
//!           [static: bytes]  [properties: bytes]
//! head    = 1 deletion  2 static properties are given  4 there are properties
//!           8 its content moved to another store
//! row     = time - stamp: zigzag  the bytes of the properties
//! ```
//! Names are a section of their own: a reader that follows relations needs the names of many vertices and the
//! rows of few.
//!
//! A relation without properties whose time equals its stamp has no row. Versions are stored newest first.
//! Rows of relations follow the vertex.

use fieldstone_core::Result;

use crate::bytes::{Cursor, Put};
use crate::columns::{put_zigzag, read_zigzag};
use crate::graph::{Props, props_bytes, props_of_bytes};

const DELETED: u8 = 1;
const FIXED: u8 = 2;
const PROPS: u8 = 4;
const ARCHIVED: u8 = 8;

/// One version of a vertex in a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VertexVersion {
    /// Its stamp.
    pub stamp: u64,
    /// The clock of the process that put it, nanoseconds since 1970.
    pub time: i64,
    /// Stamp of the commit that made it visible, as an index into the segment's list.
    pub known: u32,
    /// The user who put it, as an index into the segment's list.
    pub user: u32,
    /// Whether it is a deletion.
    pub deleted: bool,
    /// Whether its properties moved to another store.
    pub archived: bool,
    /// Static properties, if given.
    pub fixed: Option<Props>,
    /// The user's properties.
    pub props: Props,
}

/// Appends the name of a vertex: the index of its type's name, and its id.
pub fn put_name(out: &mut Vec<u8>, kind: u32, id: &str) {
    out.put_varint(u64::from(kind));
    out.extend_from_slice(id.as_bytes());
}

/// Reads a name that takes up all of the bytes.
pub fn read_name(bytes: &[u8]) -> Result<(u32, &str)> {
    let mut cursor = Cursor::new(bytes);
    let kind = small(&mut cursor)?;
    let id =
        std::str::from_utf8(&bytes[cursor.position()..]).map_err(|_| cursor.fail("an id is not UTF-8"))?;
    Ok((kind, id))
}

/// Appends the versions of a vertex, newest first. A vertex that only relations name has none.
pub fn put_vertex(out: &mut Vec<u8>, base: u64, versions: &[VertexVersion]) {
    // Most vertices have no version: their length takes one byte, so the versions need not move.
    let begin = out.len();
    out.push(0);
    out.put_varint(versions.len() as u64);
    for version in versions {
        let bit = |on: bool, bit: u8| if on { bit } else { 0 };
        out.push(
            bit(version.deleted, DELETED)
                | bit(version.fixed.is_some(), FIXED)
                | bit(!version.props.is_empty(), PROPS)
                | bit(version.archived, ARCHIVED),
        );
        put_zigzag(out, version.stamp.wrapping_sub(base) as i64);
        out.put_varint(u64::from(version.known));
        out.put_varint(u64::from(version.user));
        put_zigzag(out, version.time.wrapping_sub(version.stamp as i64));
        if let Some(fixed) = &version.fixed {
            out.put_bytes(props_bytes(fixed));
        }
        if !version.props.is_empty() {
            out.put_bytes(props_bytes(&version.props));
        }
    }
    let length = out.len() - begin - 1;
    if length < 0x80 {
        out[begin] = length as u8;
    } else {
        let body = out.split_off(begin + 1);
        out.truncate(begin);
        out.put_bytes(&body);
    }
}

/// Reads the versions at the front of a vertex's rows, and the offset of its relations' rows.
pub fn read_vertex(bytes: &[u8], base: u64) -> Result<(Vec<VertexVersion>, usize)> {
    let mut outer = Cursor::new(bytes);
    let body = outer.bytes()?;
    let mut cursor = Cursor::new(body);
    let mut versions = Vec::new();
    for _ in 0..cursor.count(5)? {
        let head = cursor.u8()?;
        let stamp = base.wrapping_add(read_zigzag(&mut cursor)? as u64);
        let (known, user) = (small(&mut cursor)?, small(&mut cursor)?);
        let time = (stamp as i64).wrapping_add(read_zigzag(&mut cursor)?);
        let fixed = if head & FIXED == 0 { None } else { Some(props_of_bytes(cursor.bytes()?)) };
        let props = if head & PROPS == 0 { Props::default() } else { props_of_bytes(cursor.bytes()?) };
        let (deleted, archived) = (head & DELETED != 0, head & ARCHIVED != 0);
        versions.push(VertexVersion { stamp, time, known, user, deleted, archived, fixed, props });
    }
    Ok((versions, outer.position()))
}

/// The offset of the rows of relations, from the first ten bytes of a vertex's rows, or from all if there are
/// fewer.
pub fn relations_at(front: &[u8]) -> Result<usize> {
    let mut cursor = Cursor::new(front);
    let length = cursor.size()?;
    length.checked_add(cursor.position()).ok_or_else(|| cursor.fail("a vertex has an impossible length"))
}

fn small(cursor: &mut Cursor<'_>) -> Result<u32> {
    u32::try_from(cursor.varint()?).map_err(|_| cursor.fail("a number of a segment exceeds 32 bits"))
}

/// Appends the row of a relation's version; returns its length, 0 if it needs none.
pub fn put_row(out: &mut Vec<u8>, stamp: u64, time: i64, props: &[u8]) -> usize {
    let (lag, before) = (time.wrapping_sub(stamp as i64), out.len());
    if lag != 0 || !props.is_empty() {
        put_zigzag(out, lag);
        out.extend_from_slice(props);
    }
    out.len() - before
}

/// Appends the row of a relation's version at the relation's target, as slots keep it. The row is never
/// empty, so that a missing row differs from a row without content.
pub fn put_target_row(out: &mut Vec<u8>, stamp: u64, time: i64, props: &[u8]) {
    put_zigzag(out, time.wrapping_sub(stamp as i64));
    out.extend_from_slice(props);
}

/// Reads the row of a relation's version: its time and properties.
pub fn read_row(bytes: &[u8], stamp: u64) -> Result<(i64, Props)> {
    if bytes.is_empty() {
        return Ok((stamp as i64, Props::default()));
    }
    let mut cursor = Cursor::new(bytes);
    let lag = read_zigzag(&mut cursor)?;
    Ok(((stamp as i64).wrapping_add(lag), props_of_bytes(&bytes[cursor.position()..])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_core::value::Value;
    use proptest::prelude::*;

    fn props() -> impl Strategy<Value = Props> {
        proptest::option::of(any::<i64>()).prop_map(|n| match n {
            None => Props::default(),
            Some(n) => Props::of([("a", &Value::Int(n))]).unwrap(),
        })
    }

    fn version() -> impl Strategy<Value = VertexVersion> {
        let numbers = (any::<u64>(), any::<i64>(), any::<u32>(), any::<u32>());
        (numbers, any::<[bool; 2]>(), proptest::option::of(props()), props()).prop_map(
            |((stamp, time, known, user), [deleted, archived], fixed, props)| VertexVersion {
                stamp,
                time,
                known,
                user,
                deleted,
                archived,
                fixed,
                props,
            },
        )
    }

    proptest! {
        #[test]
        fn vertices_come_back(
            kind in any::<u32>(), id in "[a-z/]{0,20}", base in any::<u64>(),
            versions in proptest::collection::vec(version(), 0..4),
        ) {
            let mut bytes = Vec::new();
            put_name(&mut bytes, kind, &id);
            prop_assert_eq!(read_name(&bytes).unwrap(), (kind, id.as_str()));
            bytes.clear();
            put_vertex(&mut bytes, base, &versions);
            let end = bytes.len();
            bytes.extend_from_slice(b"rows");
            prop_assert_eq!(relations_at(&bytes).unwrap(), end);
            prop_assert_eq!(relations_at(&bytes[..bytes.len().min(10)]).unwrap(), end);
            prop_assert_eq!(read_vertex(&bytes, base).unwrap(), (versions, end));
        }

        #[test]
        fn rows_come_back(stamp in any::<u64>(), lag in any::<bool>(), props in props()) {
            let time = (stamp as i64).wrapping_add(i64::from(lag));
            let mut bytes = Vec::new();
            let len = put_row(&mut bytes, stamp, time, props_bytes(&props));
            prop_assert_eq!(len == 0, !lag && props.is_empty());
            prop_assert_eq!(read_row(&bytes, stamp).unwrap(), (time, props));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
            let _ = (read_vertex(&bytes, 0), read_row(&bytes, 0), read_name(&bytes));
        }
    }
}
