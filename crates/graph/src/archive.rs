//! Moving versions that newer ones hide to another store.
//!
//! What moves is what a version says: its properties. That it was there stays, as a mark at its stamp: so no walk by
//! cause takes another way, and who asks for the properties learns which store has them.
//!
//! A version moves where the user who put it has put a newer one, not younger than a moment: whatever comes later, and
//! whatever was late, no read at that moment or after it shows the older one. What another user put hides nothing
//! here, since its deletion would show the older again. Deletions stay, and so does what deletions alone hide: a walk
//! shows what was removed as it was last.

use std::collections::BTreeSet;

use fieldstone_core::Result;
use fieldstone_format::graph::{Props, RelationRow, TypeDecl, Version, VertexName, VertexRow};
use fieldstone_format::graph_segment::VertexPlace;

use crate::described::source;
use crate::state::{GraphState, RelationReader, VertexVersion};

/// Rows after which those that were found are handed over.
const ROWS: usize = 65_536;
/// Bytes of properties after which they are.
const BYTES: u64 = 16 << 20;

/// Versions that are to be moved, with all that they say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HiddenVersions {
    /// Of vertices.
    pub vertices: Vec<VertexRow>,
    /// Of relations.
    pub relations: Vec<RelationRow>,
    /// How their types are declared.
    pub types: Vec<TypeDecl>,
    /// Bytes of their properties.
    pub bytes: u64,
}

impl HiddenVersions {
    /// The same without what they say: marks.
    pub fn marks(&self) -> (Vec<VertexRow>, Vec<RelationRow>) {
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

/// What an archive moves, or would move.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArchiveReport {
    /// Versions of vertices.
    pub vertices: u64,
    /// Versions of relations.
    pub relations: u64,
    /// Bytes of their properties.
    pub bytes: u64,
    /// Hidden versions that other users put, which they can move.
    pub others: u64,
    /// Whether it was done.
    pub done: bool,
}

/// Hands the versions of a user that newer ones of his hide at a moment and ever after to `take`, in portions.
pub fn hidden(
    state: &GraphState,
    user: u32,
    before: u64,
    take: &mut dyn FnMut(&HiddenVersions) -> Result<()>,
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

/// Whether a user is among some; adds him where he is to be.
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
        // Users of whom a newer put came up; of whom one that gives static properties did, which stay until then.
        let (mut putting, mut fixing): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for version in versions.iter().filter(|version| version.stamp <= self.before && !version.deleted) {
            // What a source says adds to the rest, and is hidden by nothing.
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
                (fixed.as_ref().map_or(0, |own| own.bytes().len()) + props.bytes().len()) as u64;
            self.found.vertices.push(VertexRow { vertex, version, fixed, props });
        }
        self.relations(place, name)
    }

    /// Those that leave a vertex.
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
                self.found.bytes += props.bytes().len() as u64;
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
