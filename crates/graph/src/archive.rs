//! Moves versions that newer ones hide to another store.
//!
//! The properties of a version move. A stub at its stamp stays, so no walk by cause changes its way, and a
//! reader of the properties learns which store has them.
//!
//! A version moves if the user who put it has put a newer one, not younger than a moment: then no read at
//! that moment or later shows the older one, whatever comes late. A version of another user hides nothing
//! here, because deleting it would show the older one again. Deletions stay, and so do versions that only
//! deletions hide: a walk shows a removed vertex in its last state.

use std::collections::BTreeSet;

use fieldstone_core::Result;
use fieldstone_format::graph::{Props, RelationRow, TypeDecl, Version, VertexName, VertexRow, props_bytes};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::session::Limits;

use crate::described::source;
use crate::state::{GraphState, RelationReader, VertexVersion};

/// Number of rows after which the found versions are passed on.
const ROWS: usize = 65_536;
/// Number of bytes of properties after which they are passed on.
const BYTES: u64 = 16 << 20;

/// Versions to move, with all their content.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HiddenVersions {
    /// Of vertices.
    pub vertices: Vec<VertexRow>,
    /// Of relations.
    pub relations: Vec<RelationRow>,
    /// The declarations of their types.
    pub types: Vec<TypeDecl>,
    /// Bytes of their properties.
    pub bytes: u64,
}

impl HiddenVersions {
    /// The same versions without their content: stubs.
    pub fn stubs(&self) -> (Vec<VertexRow>, Vec<RelationRow>) {
        let vertex = |row: &VertexRow| VertexRow {
            fixed: row.fixed.as_ref().map(|_| Default::default()),
            props: Default::default(),
            ..row.clone()
        };
        let relation = |row: &RelationRow| {
            let props = if row.props.replaces() { Props::replacing() } else { Default::default() };
            RelationRow { props, ..row.clone() }
        };
        (self.vertices.iter().map(vertex).collect(), self.relations.iter().map(relation).collect())
    }

    fn len(&self) -> usize {
        self.vertices.len() + self.relations.len()
    }
}

/// The versions that an archive moves, or would move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveReport {
    /// Versions of vertices.
    pub vertices: u64,
    /// Versions of relations.
    pub relations: u64,
    /// Bytes of their properties.
    pub bytes: u64,
    /// Hidden versions of other users, which only those users can move.
    pub others: u64,
    /// Whether the archive was carried out.
    pub done: bool,
}

/// Passes the versions of a user that newer ones of the same user hide at a moment and ever after to `take`,
/// in portions.
pub fn hidden(
    state: &GraphState,
    user: u32,
    before: u64,
    take: &mut dyn FnMut(&HiddenVersions) -> Result<()>,
    limits: &mut Limits,
) -> Result<ArchiveReport> {
    let mut finder = Finder {
        state,
        reader: state.reader(),
        user,
        before,
        found: HiddenVersions::default(),
        report: ArchiveReport::default(),
    };
    for (i, segment) in state.segments().iter().enumerate() {
        for number in 0..segment.vertices() {
            limits.step()?;
            let place = segment.place(number)?;
            let mut seen = false;
            for older in &state.segments()[..i] {
                seen = seen || older.find(place)?.is_some();
            }
            if !seen {
                finder.vertex(place)?;
            }
            if finder.found.len() >= ROWS || finder.found.bytes >= BYTES {
                finder.hand_over(take)?;
            }
        }
    }
    finder.hand_over(take)?;
    Ok(finder.report)
}

/// Whether a user is in a list; adds the user if `adds` is set.
fn note(users: &mut Vec<u32>, user: u32, adds: bool) -> bool {
    let known = users.contains(&user);
    if adds && !known {
        users.push(user);
    }
    known
}

struct Finder<'a> {
    state: &'a GraphState,
    reader: RelationReader<'a>,
    user: u32,
    before: u64,
    found: HiddenVersions,
    report: ArchiveReport,
}

impl Finder<'_> {
    fn vertex(&mut self, place: VertexPlace) -> Result<()> {
        let versions = self.state.vertex_versions(place)?;
        let mut name: Option<VertexName> = None;
        // Users with a newer put, and users with a newer put of static properties, which hold until the next
        // such put.
        let (mut putting, mut fixing): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for version in versions.iter().filter(|version| version.stamp <= self.before && !version.deleted) {
            // A version with a source adds to the others, and nothing hides it.
            if source(version)?.is_some() {
                continue;
            }
            let VertexVersion { stamp, user, deleted, archived, .. } = *version;
            let hidden = note(&mut putting, user, true);
            let fixed = version.fixed.is_some();
            let given = note(&mut fixing, user, fixed) || !fixed;
            if !hidden || !given || archived {
                continue;
            }
            if user != self.user {
                self.report.others += 1;
                continue;
            }
            let vertex = match &name {
                Some(name) => name.clone(),
                None => name.insert(self.state.name(place)?).clone(),
            };
            let (fixed, props) = (version.fixed.clone(), version.props.clone());
            let version = Version { stamp, time: version.time, deleted };
            self.report.vertices += 1;
            self.found.bytes +=
                (fixed.as_ref().map_or(0, |own| props_bytes(own).len()) + props_bytes(&props).len()) as u64;
            self.found.vertices.push(VertexRow { vertex, version, fixed, props });
        }
        self.relations(place, name)
    }

    /// The relations that leave a vertex.
    fn relations(&mut self, place: VertexPlace, mut name: Option<VertexName>) -> Result<()> {
        for edge in self.state.edges(place, &|_, reverse| !reverse)? {
            let mut newer: Vec<u32> = Vec::new();
            for version in edge.versions.iter().filter(|version| version.stamp <= self.before) {
                let hidden = note(&mut newer, version.user, true);
                if !hidden || version.deleted || version.archived {
                    continue;
                }
                if version.user != self.user {
                    self.report.others += 1;
                    continue;
                }
                let source = match &name {
                    Some(name) => name.clone(),
                    None => name.insert(self.state.name(place)?).clone(),
                };
                let (time, props) = self.reader.own_row(version)?;
                self.report.relations += 1;
                self.found.bytes += props_bytes(&props).len() as u64;
                self.found.relations.push(RelationRow {
                    kind: edge.direction.kind.clone(),
                    source,
                    target: self.reader.far_name(version)?,
                    version: Version { stamp: version.stamp, time, deleted: false },
                    until: version.until,
                    props,
                });
            }
        }
        Ok(())
    }

    fn hand_over(&mut self, take: &mut dyn FnMut(&HiddenVersions) -> Result<()>) -> Result<()> {
        if self.found.len() == 0 {
            return Ok(());
        }
        let vocabulary = self.state.vocabulary();
        let ends = self.found.relations.iter().flat_map(|row| [&row.source.kind, &row.target.kind]);
        let own = self.found.vertices.iter().map(|row| &row.vertex.kind);
        let vertices: BTreeSet<&str> = own.chain(ends).map(|kind| &**kind).collect();
        let relations: BTreeSet<&str> = self.found.relations.iter().map(|row| &*row.kind).collect();
        let vertices = vertices.into_iter().filter_map(|kind| vocabulary.vertex(kind).cloned());
        let relations = relations.into_iter().filter_map(|kind| vocabulary.edge(kind).cloned());
        self.found.types = vertices.map(TypeDecl::Vertex).chain(relations.map(TypeDecl::Edge)).collect();
        self.report.bytes += self.found.bytes;
        take(&self.found)?;
        self.found = HiddenVersions::default();
        Ok(())
    }
}
