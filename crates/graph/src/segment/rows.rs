//! Rows as they come out of the logs, until a segment is built of them: each name once, relations as numbers.
//!
//! Of a relation nothing is copied but numbers: its properties stay in the body of their record.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use fieldstone_core::{Error, Result};
use fieldstone_format::graph::{Record, RelationColumns, VertexName, VertexRow};
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};
use fieldstone_format::log::SideRecord;

use super::TypeRow;

/// A commit that brought rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommitOrder {
    /// When it became known.
    pub known: CommitKnown,
    /// Whose log it is of.
    pub user: u32,
}

/// What came out of the logs and stands in no segment yet; each row with the number of its commit.
#[derive(Debug, Default)]
pub struct Rows {
    /// The commits.
    pub(super) commits: Vec<CommitOrder>,
    pub(super) names: Names,
    pub(super) vertices: Vec<VertexLine>,
    pub(super) relations: Vec<RelationLine>,
    pub(super) types: Vec<TypeRow>,
    /// Bodies of records, in which properties of relations stand.
    bodies: Vec<Box<[u8]>>,
}

/// A version of a vertex.
#[derive(Debug)]
pub(super) struct VertexLine {
    pub vertex: u32,
    pub commit: u32,
    pub row: VertexRow,
}

/// A version of a relation; type and ends are numbers of [`Names`].
#[derive(Debug, Clone, Copy)]
pub(super) struct RelationLine {
    pub kind: u32,
    pub source: u32,
    pub target: u32,
    pub commit: u32,
    pub stamp: u64,
    pub time: i64,
    pub until: Option<u64>,
    pub deleted: bool,
    pub replaces: bool,
    body: u32,
    from: u32,
    len: u32,
}

impl Rows {
    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty() && self.relations.is_empty() && self.types.is_empty()
    }

    /// What is added from here on is of another commit.
    pub fn begin(&mut self, source: CommitOrder) {
        self.commits.push(source);
    }

    /// Adds what a side record says: all of it, or nothing where it cannot be read.
    pub fn add(&mut self, source: CommitOrder, side: &SideRecord) -> Result<()> {
        if self.commits.last() != Some(&source) {
            self.begin(source);
        }
        let commit = self.commits.len() as u32 - 1;
        if let Some(body) = Record::relations_body(side)? {
            return self.add_relations(commit, body);
        }
        match Record::decode(side)? {
            Record::Vertices(rows) => {
                for row in rows {
                    let VertexName { kind, id } = &row.vertex;
                    let vertex = self.names.vertex(kind, id);
                    self.vertices.push(VertexLine { vertex, commit, row });
                }
            }
            Record::Types(types) => self.types.extend(types.into_iter().map(|declared| TypeRow {
                known: source.known,
                user: source.user,
                declared,
            })),
            // Its body was taken above.
            Record::Relations(_) => {}
        }
        Ok(())
    }

    fn add_relations(&mut self, commit: u32, body: Cow<'_, [u8]>) -> Result<()> {
        if u32::try_from(body.len()).is_err() {
            return Err(Error::corrupt("a record of the graph of more than 4 GiB"));
        }
        let columns = RelationColumns::of_body(&body)?;
        let number = self.bodies.len() as u32;
        self.relations.reserve(columns.len());
        for i in 0..columns.len() {
            let (version, props) = (columns.versions[i], columns.props[i]);
            let from = if props.is_empty() { 0 } else { props.as_ptr() as usize - body.as_ptr() as usize };
            self.relations.push(RelationLine {
                kind: self.names.kind(columns.kinds[i]),
                source: self.names.vertex(columns.source_kinds[i], columns.source_ids[i]),
                target: self.names.vertex(columns.target_kinds[i], columns.target_ids[i]),
                commit,
                stamp: version.stamp,
                time: version.time,
                until: columns.until[i],
                deleted: version.deleted,
                replaces: columns.replaces[i],
                body: number,
                from: from as u32,
                len: props.len() as u32,
            });
        }
        self.bodies.push(body.into());
        Ok(())
    }

    /// The bytes of a relation's properties.
    pub(super) fn props(&self, line: &RelationLine) -> &[u8] {
        let from = line.from as usize;
        &self.bodies[line.body as usize][from..from + line.len as usize]
    }
}

/// Places are hashes already: they are spread evenly.
#[derive(Debug, Default)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    fn write_u128(&mut self, place: u128) {
        self.0 = place as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A vertex that rows name.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedVertex {
    pub place: VertexPlace,
    pub kind: u32,
    from: usize,
    len: usize,
}

/// Names of types and vertices, each once, numbered as they came.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub kinds: Vec<Arc<str>>,
    by_kind: HashMap<Arc<str>, u32>,
    /// The type that was asked for last: rows of one type stand together.
    last: u32,
    pub vertices: Vec<NamedVertex>,
    by_place: HashMap<VertexPlace, u32, BuildHasherDefault<PlaceHasher>>,
    ids: String,
    /// Two vertices of one place, the first that were met.
    clash: Option<String>,
}

impl Names {
    fn kind(&mut self, kind: &str) -> u32 {
        if self.kinds.get(self.last as usize).is_some_and(|last| **last == *kind) {
            return self.last;
        }
        self.last = match self.by_kind.get(kind) {
            Some(number) => *number,
            None => {
                let (shared, number): (Arc<str>, _) = (kind.into(), self.kinds.len() as u32);
                self.kinds.push(shared.clone());
                self.by_kind.insert(shared, number);
                number
            }
        };
        self.last
    }

    fn vertex(&mut self, kind: &str, id: &str) -> u32 {
        let (place, kind) = (VertexPlace::named(kind, id), self.kind(kind));
        let next = self.vertices.len() as u32;
        let number = *self.by_place.entry(place).or_insert(next);
        if number == next {
            self.vertices.push(NamedVertex { place, kind, from: self.ids.len(), len: id.len() });
            self.ids.push_str(id);
        } else {
            let known = self.vertices[number as usize];
            if (known.kind, self.id(&known)) != (kind, id) && self.clash.is_none() {
                let name = |kind: u32, id: &str| format!("{}:{id}", self.kinds[kind as usize]);
                self.clash = Some(format!("{} and {}", name(known.kind, self.id(&known)), name(kind, id)));
            }
        }
        number
    }

    /// The id of a vertex.
    pub fn id(&self, vertex: &NamedVertex) -> &str {
        &self.ids[vertex.from..vertex.from + vertex.len]
    }

    /// Fails where two vertices have one place, or there are more than can be numbered.
    pub fn check(&self) -> Result<()> {
        if let Some(clash) = &self.clash {
            return Err(Error::internal(format!("{clash} have one place")));
        }
        match u32::try_from(self.vertices.len()) {
            Ok(u32::MAX) | Err(_) => Err(Error::internal("a segment of more than 2^32 vertices")),
            Ok(_) => Ok(()),
        }
    }
}
