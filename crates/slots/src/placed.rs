//! Rows on their way to a slot: from the logs, or from the segments of another slot.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::graph::{
    Props, RelationParts, RelationRow, Version, VertexName, VertexRow, props_bytes,
};
use fieldstone_format::graph_message::rows::{FOR_SOURCE, FOR_TARGET, PlacedRows, RowsCommit};
use fieldstone_format::graph_segment::{CommitKnown, VertexPlace};
use fieldstone_graph::partition::{Partitioner, Splits};
use fieldstone_graph::segment::Segment;
use fieldstone_graph::state::{Edge, GraphState, RelationReader, VertexVersion};

/// Gathers rows for one slot.
#[derive(Debug, Default)]
pub struct RowsFor {
    commits: Vec<RowsCommit>,
    /// Indices by commit, and by whether its rows are stubs.
    numbers: HashMap<(CommitKnown, u32, bool), u32>,
    vertices: Vec<VertexRow>,
    of_vertices: Vec<u32>,
    relations: Vec<RelationRow>,
    of_relations: Vec<u32>,
}

impl RowsFor {
    fn commit(&mut self, commit: RowsCommit) -> u32 {
        let commits = &mut self.commits;
        *self.numbers.entry((commit.known, commit.user, commit.archive.is_some())).or_insert_with(|| {
            commits.push(commit);
            commits.len() as u32 - 1
        })
    }

    /// Adds a version of a vertex.
    pub fn vertex(&mut self, commit: RowsCommit, row: VertexRow) {
        let commit = self.commit(commit);
        self.of_vertices.push(commit);
        self.vertices.push(row);
    }

    /// Adds a version of a relation, for some of its ends.
    pub fn relation(&mut self, commit: RowsCommit, row: RelationRow, ends: u8) {
        let commit = self.commit(commit);
        self.of_relations.push(commit << 2 | u32::from(ends));
        self.relations.push(row);
    }

    /// Number of relations.
    pub fn relations(&self) -> usize {
        self.relations.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.vertices.is_empty() && self.relations.is_empty()
    }

    /// The rows for the slot.
    pub fn finish(self) -> PlacedRows {
        fn texts<'a>(rows: &'a [RelationRow], text: impl Fn(&'a RelationRow) -> &'a str) -> Vec<&'a [u8]> {
            rows.iter().map(|row| text(row).as_bytes()).collect()
        }
        let rows = &self.relations;
        let versions: Vec<Version> = rows.iter().map(|row| row.version).collect();
        let until: Vec<Option<u64>> = rows.iter().map(|row| row.until).collect();
        let parts = RelationParts {
            kinds: texts(rows, |row| &row.kind),
            source: [texts(rows, |row| &row.source.kind), texts(rows, |row| &row.source.id)],
            target: [texts(rows, |row| &row.target.kind), texts(rows, |row| &row.target.id)],
            versions: &versions,
            until: &until,
            props: rows.iter().map(|row| props_bytes(&row.props)).collect(),
        };
        let mut placed = PlacedRows { commits: self.commits, ..PlacedRows::default() };
        placed.set_relations(&parts, self.of_relations);
        placed.set_vertices(self.vertices, self.of_vertices);
        placed
    }
}

/// The commit of a version or of a stub.
fn commit(state: &GraphState, known: CommitKnown, user: u32, archived: bool) -> RowsCommit {
    RowsCommit { known, user, archive: archived.then(|| state.archive_of(known, user)) }
}

/// The versions of a relation at one of its ends, as rows.
pub fn relation_rows(
    reader: &mut RelationReader<'_>,
    near: (&VertexName, VertexPlace),
    edge: &Edge,
) -> Result<Vec<(RowsCommit, RelationRow, u8)>> {
    let mut rows = Vec::with_capacity(edge.versions.len());
    for (version, (time, props)) in edge.versions.iter().zip(reader.rows(near.1, edge, &edge.versions)?) {
        let (near, far) = (near.0.clone(), reader.far_name(version)?);
        let (source, target, ends) = match edge.direction.reverse {
            false => (near, far, FOR_SOURCE),
            true => (far, near, FOR_TARGET),
        };
        let row = RelationRow {
            kind: edge.direction.kind.clone(),
            source,
            target,
            version: Version { stamp: version.stamp, time, deleted: version.deleted },
            until: version.until,
            // A stub has no other properties.
            props: if version.archived && version.replaces { Props::replacing() } else { props },
        };
        rows.push((commit(reader.state(), version.known, version.user, version.archived), row, ends));
    }
    Ok(rows)
}

/// The versions of a vertex, as rows.
pub fn vertex_rows(state: &GraphState, name: &VertexName) -> Result<Vec<(RowsCommit, VertexRow)>> {
    let versions = state.vertex_versions(VertexPlace::of(name))?;
    let row = |version: VertexVersion| {
        let commit = commit(state, version.known, version.user, version.archived);
        let at = Version { stamp: version.stamp, time: version.time, deleted: version.deleted };
        let row = VertexRow { vertex: name.clone(), version: at, fixed: version.fixed, props: version.props };
        (commit, row)
    };
    Ok(versions.into_iter().map(row).collect())
}

/// The content of segments, as rows for each slot.
pub fn placed(
    partitioner: &dyn Partitioner,
    splits: &dyn Fn(VertexPlace) -> Splits,
    segments: &[Arc<Segment>],
) -> Result<Vec<PlacedRows>> {
    let mut rows: Vec<RowsFor> = (0..partitioner.slots()).map(|_| RowsFor::default()).collect();
    for segment in segments {
        let alone = GraphState::of(vec![segment.clone()]);
        let mut reader = alone.reader();
        for number in 0..segment.vertices() {
            let (place, name) = (segment.place(number)?, segment.name(number)?);
            let of_vertex = splits(place);
            for (commit, row) in vertex_rows(&alone, &name)? {
                match row.version.deleted {
                    true => rows.iter_mut().for_each(|slot| slot.vertex(commit.clone(), row.clone())),
                    false => rows[usize::from(partitioner.home(place))].vertex(commit, row),
                }
            }
            for edge in alone.edges(place, &|_, _| true)? {
                let slot = usize::from(partitioner.slot_of(place, edge.far, &of_vertex));
                for (commit, row, ends) in relation_rows(&mut reader, (&name, place), &edge)? {
                    rows[slot].relation(commit, row, ends);
                }
            }
        }
    }
    Ok(rows.into_iter().map(RowsFor::finish).collect())
}
