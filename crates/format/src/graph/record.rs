//! Rows as side records, in columns.
//!
//! ```text
//! vertices  = n: varint  strings(n) types  strings(n) ids  versions(n)  strings(n) static  strings(n) props
//! relations = n: varint  strings(n) types  strings(n) strings(n) source  strings(n) strings(n) target
//!             versions(n)  ints(n) whether it ends  [ints(m) until - stamp]  strings(n) props
//! versions  = ints(n) stamps  ints(n) time - stamp  ints(n) whether deleted
//! archived  = before: u64  url: text  vertices, or relations
//! ```
//! No bytes mean that static properties are not given; the count 0 means that they are given and empty.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};

use super::columns::{ROWS_MAX, RelationColumns, read_names, read_rows, read_versions};
use super::props::{props_bytes, props_of_bytes, read_props};
use super::types::{put_types, read_types};
use super::{Archive, Props, RelationRow, TypeDecl, Version, VertexName, VertexRow};
use crate::bytes::{Cursor, Put};
use crate::columns::{ShortHasher, put_ints, put_strings, read_strings};
use crate::log::SideRecord;
use crate::side;

/// Kinds of side records that belong to the graph, known or not.
pub const KINDS: std::ops::RangeInclusive<u16> = 0x0200..=0x02ff;
const VERTICES: u16 = 0x0200;
pub(super) const RELATIONS: u16 = 0x0201;
const TYPES: u16 = 0x0202;
const ARCHIVED_VERTICES: u16 = 0x0203;
const ARCHIVED_RELATIONS: u16 = 0x0204;

/// Bytes of rows after which a record is split.
pub(super) const SPLIT_BYTES: usize = 16 << 20;

/// Whether a side record belongs to the graph.
pub fn is_graph(side: &SideRecord) -> bool {
    KINDS.contains(&side.kind)
}

/// A side record of the graph.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    /// Versions of vertices.
    Vertices(Vec<VertexRow>),
    /// Versions of relations.
    Relations(Vec<RelationRow>),
    /// Declared types.
    Types(Vec<TypeDecl>),
    /// Versions of vertices whose content moved to another store.
    ArchivedVertices(Archive, Vec<VertexRow>),
    /// Versions of relations whose content moved to another store.
    ArchivedRelations(Archive, Vec<RelationRow>),
}

/// The body of a record of relations.
#[derive(Debug)]
pub struct RelationsBody<'a> {
    /// The bytes to decode with [`RelationColumns`].
    pub body: Cow<'a, [u8]>,
    /// The destination of these versions' content; `None` if it is here.
    pub archive: Option<Archive>,
}

impl Record {
    /// Encodes the record. It has at least one row and at most [`ROWS_MAX`]: see
    /// [`encode_rows`](Record::encode_rows).
    pub fn encode(&self) -> SideRecord {
        let mut body = Vec::new();
        let kind = match self {
            Record::Vertices(rows) => {
                put_vertices(&mut body, rows);
                VERTICES
            }
            Record::Relations(rows) => {
                put_relations(&mut body, rows);
                RELATIONS
            }
            Record::Types(types) => {
                put_types(&mut body, types);
                TYPES
            }
            Record::ArchivedVertices(archive, rows) => {
                put_archive(&mut body, archive);
                put_vertices(&mut body, rows);
                ARCHIVED_VERTICES
            }
            Record::ArchivedRelations(archive, rows) => {
                put_archive(&mut body, archive);
                put_relations(&mut body, rows);
                ARCHIVED_RELATIONS
            }
        };
        side::encode(kind, &body)
    }

    /// Encodes rows as side records, each short enough to be read again; none if there are no rows.
    pub fn encode_rows(vertices: &[VertexRow], relations: &[RelationRow]) -> Vec<SideRecord> {
        let mut records = Vec::new();
        for part in parts(vertices, VertexRow::weight) {
            let mut body = Vec::new();
            put_vertices(&mut body, part);
            records.push(side::encode(VERTICES, &body));
        }
        for part in parts(relations, RelationRow::weight) {
            let mut body = Vec::new();
            put_relations(&mut body, part);
            records.push(side::encode(RELATIONS, &body));
        }
        records
    }

    /// Encodes stubs of versions whose content moved, as side records, each short enough to be read again.
    pub fn encode_archived(
        archive: &Archive,
        vertices: &[VertexRow],
        relations: &[RelationRow],
    ) -> Vec<SideRecord> {
        let of_vertices = parts(vertices, VertexRow::weight).into_iter();
        let of_relations = parts(relations, RelationRow::weight).into_iter();
        of_vertices
            .map(|part| Record::ArchivedVertices(archive.clone(), part.to_vec()).encode())
            .chain(
                of_relations.map(|part| Record::ArchivedRelations(archive.clone(), part.to_vec()).encode()),
            )
            .collect()
    }

    /// The body of a side record of relations, for [`RelationColumns`]; `None` for another kind.
    pub fn relations_body(side: &SideRecord) -> Result<Option<RelationsBody<'_>>> {
        match side.kind {
            RELATIONS => Ok(Some(RelationsBody { body: side::body(side)?, archive: None })),
            ARCHIVED_RELATIONS => {
                let body = side::body(side)?;
                let mut cursor = Cursor::new(&body);
                let archive = Some(read_archive(&mut cursor)?);
                let behind = body[cursor.position()..].to_vec();
                Ok(Some(RelationsBody { body: behind.into(), archive }))
            }
            _ => Ok(None),
        }
    }

    /// Decodes the bytes of a side record of types.
    pub fn decode_types(bytes: &[u8]) -> Result<Vec<TypeDecl>> {
        match Record::decode(&SideRecord { kind: TYPES, bytes: bytes.into() })? {
            Record::Types(types) => Ok(types),
            _ => Err(Error::corrupt("a record of types has another kind")),
        }
    }

    /// Decodes a side record of the graph. Every defect is Corrupt; a kind of a later release is Conflict.
    pub fn decode(side: &SideRecord) -> Result<Record> {
        let named = |error: Error| error.context(format!("a record of the graph (kind {:#06x})", side.kind));
        side::body(side).and_then(|body| read_body(side.kind, &body)).map_err(named)
    }
}

/// Splits rows into parts of bounded count and size.
fn parts<T>(rows: &[T], weight: impl Fn(&T) -> usize) -> Vec<&[T]> {
    let (mut parts, mut begin, mut bytes) = (Vec::new(), 0, 0);
    for (i, row) in rows.iter().enumerate() {
        if i > begin && (i - begin == ROWS_MAX || bytes + weight(row) > SPLIT_BYTES) {
            parts.push(&rows[begin..i]);
            (begin, bytes) = (i, 0);
        }
        bytes += weight(row);
    }
    if begin < rows.len() {
        parts.push(&rows[begin..]);
    }
    parts
}

fn name_weight(name: &VertexName) -> usize {
    name.kind.len() + name.id.len()
}

impl VertexRow {
    fn weight(&self) -> usize {
        let fixed = self.fixed.as_ref().map_or(0, |props| props_bytes(props).len());
        name_weight(&self.vertex) + fixed + props_bytes(&self.props).len()
    }
}

impl RelationRow {
    fn weight(&self) -> usize {
        let names = name_weight(&self.source) + name_weight(&self.target);
        self.kind.len() + names + props_bytes(&self.props).len()
    }
}

fn put_texts<T>(out: &mut Vec<u8>, rows: &[T], text: impl Fn(&T) -> &str) {
    put_strings(out, &rows.iter().map(text).collect::<Vec<&str>>());
}

fn put_numbers<T>(out: &mut Vec<u8>, rows: &[T], number: impl Fn(&T) -> i64) {
    put_ints(out, &rows.iter().map(number).collect::<Vec<i64>>());
}

fn put_versions<T>(out: &mut Vec<u8>, rows: &[T], version: impl Fn(&T) -> &Version) {
    put_numbers(out, rows, |row| version(row).stamp as i64);
    put_numbers(out, rows, |row| version(row).time.wrapping_sub(version(row).stamp as i64));
    put_numbers(out, rows, |row| i64::from(version(row).deleted));
}

fn put_vertices(out: &mut Vec<u8>, rows: &[VertexRow]) {
    out.put_varint(rows.len() as u64);
    put_texts(out, rows, |row| &row.vertex.kind);
    put_texts(out, rows, |row| &row.vertex.id);
    put_versions(out, rows, |row| &row.version);
    let fixed = |row: &VertexRow| match &row.fixed {
        None => Vec::new(),
        Some(props) if props.is_empty() => vec![0],
        Some(props) => props_bytes(props).to_vec(),
    };
    put_strings(out, &rows.iter().map(fixed).collect::<Vec<Vec<u8>>>());
    put_strings(out, &rows.iter().map(|row| props_bytes(&row.props)).collect::<Vec<&[u8]>>());
}

/// Relations, with one column for each part.
#[derive(Debug)]
pub struct RelationParts<'a> {
    /// Types.
    pub kinds: Vec<&'a [u8]>,
    /// Types and ids of the sources.
    pub source: [Vec<&'a [u8]>; 2],
    /// Types and ids of the targets.
    pub target: [Vec<&'a [u8]>; 2],
    /// Versions, with the stamps at which they began.
    pub versions: &'a [Version],
    /// Stamps at which they ended.
    pub until: &'a [Option<u64>],
    /// Properties, as their bytes.
    pub props: Vec<&'a [u8]>,
}

fn put_relations(out: &mut Vec<u8>, rows: &[RelationRow]) {
    fn texts<'a>(rows: &'a [RelationRow], text: impl Fn(&'a RelationRow) -> &'a str) -> Vec<&'a [u8]> {
        rows.iter().map(|row| text(row).as_bytes()).collect()
    }
    let parts = RelationParts {
        kinds: texts(rows, |row| &row.kind),
        source: [texts(rows, |row| &row.source.kind), texts(rows, |row| &row.source.id)],
        target: [texts(rows, |row| &row.target.kind), texts(rows, |row| &row.target.id)],
        versions: &rows.iter().map(|row| row.version).collect::<Vec<Version>>(),
        until: &rows.iter().map(|row| row.until).collect::<Vec<Option<u64>>>(),
        props: rows.iter().map(|row| props_bytes(&row.props)).collect(),
    };
    put_relation_parts(out, &parts);
}

/// Appends the body of a record of at least one relation.
pub fn put_relation_parts(out: &mut Vec<u8>, parts: &RelationParts<'_>) {
    out.put_varint(parts.versions.len() as u64);
    put_strings(out, &parts.kinds);
    parts.source.iter().chain(&parts.target).for_each(|column| put_strings(out, column));
    put_versions(out, parts.versions, |version| version);
    put_numbers(out, parts.until, |until| i64::from(until.is_some()));
    let lengths = parts.until.iter().zip(parts.versions);
    let length = |(until, version): (&Option<u64>, &Version)| {
        until.map(|until| until.wrapping_sub(version.stamp) as i64)
    };
    put_ints(out, &lengths.filter_map(length).collect::<Vec<i64>>());
    put_strings(out, &parts.props);
}

fn read_body(kind: u16, body: &[u8]) -> Result<Record> {
    let mut cursor = Cursor::new(body);
    let record = match kind {
        VERTICES => Record::Vertices(read_vertices(&mut cursor)?),
        RELATIONS => Record::Relations(read_relations(&mut cursor)?),
        TYPES => Record::Types(read_types(&mut cursor)?),
        ARCHIVED_VERTICES => {
            let archive = read_archive(&mut cursor)?;
            let rows = read_vertices(&mut cursor)?;
            check_archived(rows.iter().map(|row| row.version))?;
            Record::ArchivedVertices(archive, rows)
        }
        ARCHIVED_RELATIONS => {
            let archive = read_archive(&mut cursor)?;
            let rows = read_relations(&mut cursor)?;
            check_archived(rows.iter().map(|row| row.version))?;
            Record::ArchivedRelations(archive, rows)
        }
        _ => {
            let message = "a later release wrote it";
            return Err(Code::LaterTables.error(message).with_hint("use that release to read the graph"));
        }
    };
    if cursor.is_empty() { Ok(record) } else { Err(cursor.fail("a record is longer than its content")) }
}

fn put_archive(out: &mut Vec<u8>, archive: &Archive) {
    out.put_u64(archive.before);
    out.put_bytes(archive.url.as_bytes());
}

fn read_archive(cursor: &mut Cursor<'_>) -> Result<Archive> {
    Ok(Archive { before: cursor.u64()?, url: cursor.text()?.into() })
}

/// Refuses deletions, which never move.
pub(super) fn check_archived(mut versions: impl Iterator<Item = Version>) -> Result<()> {
    match versions.any(|version| version.deleted) {
        true => Err(Error::corrupt("a deletion is marked as archived")),
        false => Ok(()),
    }
}

/// Texts of a column, with equal texts stored once.
#[derive(Default)]
struct Texts<'a>(HashMap<&'a str, Arc<str>, BuildHasherDefault<ShortHasher>>);

impl<'a> Texts<'a> {
    fn shared(&mut self, text: &'a str) -> Arc<str> {
        self.0.entry(text).or_insert_with(|| text.into()).clone()
    }
}

fn read_vertices(cursor: &mut Cursor<'_>) -> Result<Vec<VertexRow>> {
    let n = read_rows(cursor)?;
    let (kinds, ids) = (read_names(cursor, n)?, read_names(cursor, n)?);
    let versions = read_versions(cursor, n)?;
    let (fixed, props) = (read_strings(cursor, n)?, read_strings(cursor, n)?);
    let (mut known_kinds, mut known_ids) = (Texts::default(), Texts::default());
    let mut names = kinds.into_iter().zip(ids);
    let mut rows = Vec::with_capacity(n);
    for (version, (fixed, props)) in versions.into_iter().zip(fixed.into_iter().zip(props)) {
        let (kind, id) = names.next().unwrap_or_default();
        let fixed = match fixed {
            [] => None,
            [0] => Some(Props::default()),
            bytes => Some(read_props(bytes)?),
        };
        let vertex = VertexName { kind: known_kinds.shared(kind), id: known_ids.shared(id) };
        rows.push(VertexRow { vertex, version, fixed, props: read_props(props)? });
    }
    Ok(rows)
}

fn read_relations(cursor: &mut Cursor<'_>) -> Result<Vec<RelationRow>> {
    let columns = RelationColumns::read(cursor)?;
    let mut texts: [Texts; 5] = Default::default();
    let mut rows = Vec::with_capacity(columns.len());
    for i in 0..columns.len() {
        let [kind, source_kind, source_id, target_kind, target_id] = &mut texts;
        rows.push(RelationRow {
            kind: kind.shared(columns.kinds[i]),
            source: VertexName {
                kind: source_kind.shared(columns.source_kinds[i]),
                id: source_id.shared(columns.source_ids[i]),
            },
            target: VertexName {
                kind: target_kind.shared(columns.target_kinds[i]),
                id: target_id.shared(columns.target_ids[i]),
            },
            version: columns.versions[i],
            until: columns.until[i],
            props: props_of_bytes(columns.props[i]),
        });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone_core::value::{Value, ValueType};
    use proptest::prelude::*;

    fn props() -> impl Strategy<Value = Props> {
        proptest::collection::btree_map("[a-c]{1,3}", any::<i64>(), 0..3).prop_map(|map| {
            let pairs: Vec<(String, Value)> = map.into_iter().map(|(k, v)| (k, Value::Int(v))).collect();
            Props::of(pairs.iter().map(|(name, value)| (name.as_str(), value))).unwrap()
        })
    }

    fn version() -> impl Strategy<Value = Version> {
        (any::<u64>(), any::<i64>(), any::<bool>()).prop_map(|(stamp, time, deleted)| Version {
            stamp,
            time,
            deleted,
        })
    }

    fn name() -> impl Strategy<Value = VertexName> {
        ("[a-c]{1,2}", "[a-z/]{1,9}").prop_map(|(kind, id)| VertexName::new(&kind, &id))
    }

    fn vertex() -> impl Strategy<Value = VertexRow> {
        (name(), version(), proptest::option::of(props()), props())
            .prop_map(|(vertex, version, fixed, props)| VertexRow { vertex, version, fixed, props })
    }

    fn relation() -> impl Strategy<Value = RelationRow> {
        ("[a-c]{1,2}", name(), name(), version(), proptest::option::of(any::<u64>()), props()).prop_map(
            |(kind, source, target, version, until, props)| RelationRow {
                kind: kind.as_str().into(),
                source,
                target,
                version,
                until,
                props,
            },
        )
    }

    proptest! {
        #[test]
        fn vertices_come_back(rows in proptest::collection::vec(vertex(), 1..40)) {
            let record = Record::Vertices(rows);
            prop_assert_eq!(Record::decode(&record.encode()).unwrap(), record);
        }

        #[test]
        fn relations_come_back(rows in proptest::collection::vec(relation(), 1..40)) {
            let record = Record::Relations(rows);
            prop_assert_eq!(Record::decode(&record.encode()).unwrap(), record);
        }

        #[test]
        fn stubs_come_back(
            mut vertices in proptest::collection::vec(vertex(), 1..9),
            mut relations in proptest::collection::vec(relation(), 1..9), before in any::<u64>(), url in "[a-z:/]{0,9}",
        ) {
            vertices.iter_mut().for_each(|row| row.version.deleted = false);
            relations.iter_mut().for_each(|row| row.version.deleted = false);
            let archive = Archive { before, url: url.as_str().into() };
            let sides = Record::encode_archived(&archive, &vertices, &relations);
            let read: Vec<Record> = sides.iter().map(|side| Record::decode(side).unwrap()).collect();
            let stubs = [
                Record::ArchivedVertices(archive.clone(), vertices), Record::ArchivedRelations(archive.clone(), relations),
            ];
            prop_assert_eq!(&read[..], &stubs[..]);
            let own = Record::relations_body(&sides[1]).unwrap().unwrap();
            prop_assert_eq!(own.archive, Some(archive));
        }

        #[test]
        fn any_bytes_are_read_or_refused(kind in 0x0200u16..0x0206, mut bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            bytes.insert(0, 0);
            let side = SideRecord { kind, bytes: bytes.into() };
            let _ = (Record::decode(&side), Record::relations_body(&side).map(|own| own.is_some()));
        }
    }

    #[test]
    fn types_come_back() {
        let vertex = VertexType {
            name: "dataset".into(),
            fixed: vec![("mode".into(), ValueType::Int)],
            ..VertexType::default()
        };
        let edge = EdgeType {
            name: "derives".into(),
            reverse: "wasDerivedFrom".into(),
            target: Some("dataset".into()),
            ..EdgeType::default()
        };
        let record = Record::Types(vec![TypeDecl::Vertex(vertex), TypeDecl::Edge(edge)]);
        assert_eq!(Record::decode(&record.encode()).unwrap(), record);
    }

    #[test]
    fn a_property_is_there_once() {
        let one = Value::Int(1);
        assert!(Props::of([("a", &one), ("a", &one)]).unwrap_err().message().contains("'a'"));
        let mut deep = Value::Int(1);
        (0..70).for_each(|_| deep = Value::List(vec![deep.clone()]));
        assert!(Props::of([("a", &deep)]).is_err());
        let once = Props::of([("a", &one)]).unwrap();
        let twice = [&[2], &props_bytes(&once)[1..], &props_bytes(&once)[1..]].concat();
        assert!(read_props(&twice).unwrap_err().message().contains("'a'"));
    }

    #[test]
    fn many_rows_are_several_records() {
        let row = |n: usize| VertexRow {
            vertex: VertexName::new("file", &n.to_string()),
            version: Version { stamp: 1, time: 1, deleted: false },
            fixed: None,
            props: Props::default(),
        };
        let rows: Vec<VertexRow> = (0..ROWS_MAX + 1).map(row).collect();
        let records = Record::encode_rows(&rows, &[]);
        let read: Vec<VertexRow> = records
            .iter()
            .flat_map(|side| match Record::decode(side).unwrap() {
                Record::Vertices(rows) => rows,
                other => panic!("{other:?}"),
            })
            .collect();
        assert!(records.len() == 2 && read == rows);
    }

    use crate::graph::{EdgeType, VertexType};
}
