//! Rows for a slot: versions of vertices and relations, each with its commit. A relation version also names
//! the end, or both, for which it is placed in this slot.
//!
//! ```text
//! rows      = commits: list { since  stamp  user  archive: option { before  url } }
//!             vertices: bytes  of: list  relations: bytes  of: list
//!             types: list { commit: varint  record: bytes }
//! vertices  = side record of vertices, its kind and bytes; nothing if there are none
//! of        = for each vertex: index of its commit
//! relations = body of a side record of relations; nothing if there are none
//! of        = for each relation: index of its commit << 2 | 1 it is placed for its source | 2 for its target
//! ```
//!
//! Rows of a commit with an archive are stubs: the store at that URL has the properties of these versions.

use fieldstone_core::{Error, Result};

use super::fields::fields;
use crate::graph::{
    Archive, Record, RelationColumns, RelationParts, TypeDecl, Version, VertexRow, put_relation_parts,
};
use crate::graph_segment::{CommitKnown, VertexPlace};
use crate::log::SideRecord;

/// A relation is placed for its source.
pub const FOR_SOURCE: u8 = 1;
/// A relation is placed for its target.
pub const FOR_TARGET: u8 = 2;

/// A commit that brought rows, or its stubs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowsCommit {
    /// When it became known.
    pub known: CommitKnown,
    /// The user of its log.
    pub user: u32,
    /// The destination of its rows, if they are stubs.
    pub archive: Option<Archive>,
}

/// Rows for a slot. See the module.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlacedRows {
    /// The commits.
    pub commits: Vec<RowsCommit>,
    /// A side record of versions of vertices.
    pub vertices: Box<[u8]>,
    /// The commit of each.
    pub of_vertices: Vec<u32>,
    /// The body of a side record of versions of relations.
    pub relations: Box<[u8]>,
    /// The commit of each, and the ends for which it is placed.
    pub of_relations: Vec<u32>,
    /// Side records of declared types, each with its commit.
    pub types: Vec<(u32, Box<[u8]>)>,
}

/// A row that a slot refuses, because the partition for which it is placed is elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The relation's index in the batch.
    pub row: u32,
    /// The ends that are refused.
    pub ends: u8,
}

impl PlacedRows {
    /// Whether there are no rows and types.
    pub fn is_empty(&self) -> bool {
        self.of_vertices.is_empty() && self.of_relations.is_empty() && self.types.is_empty()
    }

    /// The versions of vertices.
    pub fn vertex_rows(&self) -> Result<Vec<VertexRow>> {
        let rows = match self.vertices.split_first_chunk() {
            None => Vec::new(),
            Some((kind, bytes)) => {
                let side = SideRecord { kind: u16::from_le_bytes(*kind), bytes: bytes.into() };
                match Record::decode(&side)? {
                    Record::Vertices(rows) => rows,
                    _ => return Err(Error::corrupt("a record of vertices has another kind")),
                }
            }
        };
        match rows.len() == self.of_vertices.len() {
            true => Ok(rows),
            false => Err(Error::corrupt("the numbers of vertices and their commits differ")),
        }
    }

    /// The declared types, each with the index of its commit.
    pub fn declared(&self) -> Result<Vec<(u32, Vec<TypeDecl>)>> {
        self.types.iter().map(|(commit, bytes)| Ok((*commit, Record::decode_types(bytes)?))).collect()
    }

    /// Sets versions of vertices, each with the index of its commit; at most
    /// [`ROWS_MAX`](crate::graph::ROWS_MAX).
    pub fn set_vertices(&mut self, rows: Vec<VertexRow>, of: Vec<u32>) {
        let mut bytes = Vec::new();
        if !rows.is_empty() {
            let side = Record::Vertices(rows).encode();
            bytes.extend_from_slice(&side.kind.to_le_bytes());
            bytes.extend_from_slice(&side.bytes);
        }
        (self.vertices, self.of_vertices) = (bytes.into(), of);
    }

    /// Adds declared types, with the index of their commit.
    pub fn declare(&mut self, commit: u32, types: Vec<TypeDecl>) {
        self.types.push((commit, Record::Types(types).encode().bytes.to_vec().into()));
    }

    /// Selects some of the relations, each only for these ends; no vertices and types.
    pub fn some(&self, picked: &[Refused]) -> Result<PlacedRows> {
        let columns = RelationColumns::of_body(&self.relations)?;
        if picked.iter().any(|pick| pick.row as usize >= columns.len().min(self.of_relations.len())) {
            return Err(Error::corrupt("a slot refused a relation that it was not sent"));
        }
        fn texts<'a>(column: &[&'a str], picked: &[Refused]) -> Vec<&'a [u8]> {
            picked.iter().map(|pick| column[pick.row as usize].as_bytes()).collect()
        }
        let versions: Vec<Version> = picked.iter().map(|pick| columns.versions[pick.row as usize]).collect();
        let until: Vec<Option<u64>> = picked.iter().map(|pick| columns.until[pick.row as usize]).collect();
        let parts = RelationParts {
            kinds: texts(&columns.kinds, picked),
            source: [texts(&columns.source_kinds, picked), texts(&columns.source_ids, picked)],
            target: [texts(&columns.target_kinds, picked), texts(&columns.target_ids, picked)],
            versions: &versions,
            until: &until,
            props: picked.iter().map(|pick| columns.props[pick.row as usize]).collect(),
        };
        let of = |pick: &Refused| self.of_relations[pick.row as usize] >> 2 << 2 | u32::from(pick.ends);
        let mut some = PlacedRows { commits: self.commits.clone(), ..PlacedRows::default() };
        some.set_relations(&parts, picked.iter().map(of).collect());
        Ok(some)
    }

    /// The places of the source and the target of each relation.
    pub fn places(&self) -> Result<Vec<(VertexPlace, VertexPlace)>> {
        if self.of_relations.is_empty() {
            return Ok(Vec::new());
        }
        let columns = RelationColumns::of_body(&self.relations)?;
        let source = |i| VertexPlace::named(columns.source_kinds[i], columns.source_ids[i]);
        let target = |i| VertexPlace::named(columns.target_kinds[i], columns.target_ids[i]);
        Ok((0..columns.len()).map(|i| (source(i), target(i))).collect())
    }

    /// Sets relations, each with the index of its commit and the ends for which it is placed.
    pub fn set_relations(&mut self, parts: &RelationParts<'_>, of: Vec<u32>) {
        let mut body = Vec::new();
        if !of.is_empty() {
            put_relation_parts(&mut body, parts);
        }
        (self.relations, self.of_relations) = (body.into(), of);
    }
}

fields!(Archive { before, url });
fields!(RowsCommit { known, user, archive });
fields!(PlacedRows { commits, vertices, of_vertices, relations, of_relations, types });
fields!(Refused { row, ends });
