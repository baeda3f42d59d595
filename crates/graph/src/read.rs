//! Reads of one vertex: the vertex itself, its versions, the relations at it.
//!
//! Versions that were moved to another store are listed without properties, with the store's URL; a direct
//! read of one fails and names that store.

use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::graph::{Props, VertexName};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::session::Limits;

use crate::described::described;
use crate::state::{END, Edge, EdgeVersion, GraphState, RelationReader, VertexVersion, standing};

/// A vertex as it was at some moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Vertex {
    /// Its name.
    pub name: VertexName,
    /// Static properties.
    pub fixed: Vec<(String, Value)>,
    /// The user's properties.
    pub props: Vec<(String, Value)>,
    /// Stamp of the version.
    pub stamp: u64,
    /// The clock of the user who put it, nanoseconds since 1970.
    pub time: i64,
    /// The user who put it.
    pub user: u32,
    /// Whether the version is a deletion.
    pub deleted: bool,
    /// The store to which the properties of this version were moved, if they were; they are absent here.
    pub archived: Option<Arc<str>>,
}

/// A version of a relation, seen from the requested vertex.
#[derive(Debug, Clone, PartialEq)]
pub struct Relation {
    /// Its name from there.
    pub kind: String,
    /// The requested vertex.
    pub near: VertexName,
    /// The vertex at the far end.
    pub far: VertexName,
    /// Whether the far end is its source.
    pub reverse: bool,
    /// Its properties.
    pub props: Vec<(String, Value)>,
    /// Stamp of the version: the time when it began.
    pub stamp: u64,
    /// The clock of the user who put it, nanoseconds since 1970.
    pub time: i64,
    /// The time when it ended.
    pub until: Option<u64>,
    /// The user who put it.
    pub user: u32,
    /// Whether the version is a deletion.
    pub deleted: bool,
    /// The store to which the properties of this version were moved, if they were; they are absent here.
    pub archived: Option<Arc<str>>,
}

/// A selection of versions of relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versions {
    /// Those that hold at a moment.
    At(u64),
    /// All between two moments, both included, with deletions.
    Between(u64, u64),
}

impl Default for Versions {
    fn default() -> Versions {
        Versions::NOW
    }
}

impl Versions {
    /// Those that hold now.
    pub const NOW: Versions = Versions::At(END);
    /// All.
    pub const ALL: Versions = Versions::Between(0, END);
}

fn filled(
    state: &GraphState,
    name: &VertexName,
    version: &VertexVersion,
    props: Vec<(String, Value)>,
    fixed: Option<&VertexVersion>,
) -> Result<Vertex> {
    let moved = [Some(version), fixed].into_iter().flatten().find(|version| version.archived);
    let given = fixed.and_then(|version| version.fixed.as_ref());
    Ok(Vertex {
        name: name.clone(),
        archived: moved.and_then(|version| state.vertex_archived_in(version)),
        fixed: given.map(|props| props.pairs()).transpose()?.unwrap_or_default(),
        props,
        stamp: version.stamp,
        time: version.time,
        user: version.user,
        deleted: version.deleted,
    })
}

/// A vertex at a moment, or now. NotFound if there was none, and if that version is in another store.
pub fn vertex(state: &GraphState, name: &VertexName, at: Option<u64>) -> Result<Vertex> {
    let found = shown(state, name, at)?;
    match &found.archived {
        Some(url) => Err(moved(name, url)),
        None => Ok(found),
    }
}

/// The error for a version that was moved to another store.
pub fn moved(what: impl std::fmt::Display, url: &str) -> Error {
    Code::VersionArchived
        .error(format!("the version that {what} had then is in another store: {url}"))
        .with_hint("open that store and read the version there")
}

/// Like [`vertex`], but shows a version in another store without its properties.
pub fn shown(state: &GraphState, name: &VertexName, at: Option<u64>) -> Result<Vertex> {
    let (place, at) = (VertexPlace::of(name), at.unwrap_or(END));
    let versions = state.vertex_versions(place)?;
    let standing = standing(&versions, at, VertexVersion::facts);
    if let Some(version) = standing.first() {
        let fixed = standing.iter().find(|version| version.fixed.is_some());
        return filled(state, name, version, described(&standing)?, fixed.copied());
    }
    // Nobody put the vertex itself, but somebody put a relation from or to it.
    let mut first: Option<EdgeVersion> = None;
    for edge in state.edges(place, &|_, _| true)? {
        if let Some(version) = state.current(place, &edge, at)?
            && first.is_none_or(|first| version.stamp < first.stamp)
        {
            first = Some(*version);
        }
    }
    let Some(first) = first else {
        return Err(Code::VertexNotFound.error(format!("the graph has no vertex {name}")).with_hint(
            "write the whole id, such as the full path of a file; `versions` shows deleted vertices too",
        ));
    };
    Ok(Vertex {
        name: name.clone(),
        fixed: Vec::new(),
        props: Vec::new(),
        stamp: first.stamp,
        time: first.stamp as i64,
        user: first.user,
        deleted: false,
        archived: None,
    })
}

/// All versions of a vertex, newest first.
pub fn versions(state: &GraphState, name: &VertexName) -> Result<Vec<Vertex>> {
    let versions = state.vertex_versions(VertexPlace::of(name))?;
    let own = |version: &VertexVersion| filled(state, name, version, version.props.pairs()?, Some(version));
    versions.iter().map(own).collect()
}

/// Relations at a vertex, of one type (by either of its names) or all, up to a limit of versions.
pub fn edges(
    state: &GraphState,
    name: &VertexName,
    kind: Option<&str>,
    versions: Versions,
    limit: Option<usize>,
    limits: &mut Limits,
) -> Result<Vec<Relation>> {
    let place = VertexPlace::of(name);
    let asked = kind.map(|kind| state.vocabulary().direction(kind));
    let wanted = |known: &str, reverse: bool| {
        asked.as_ref().is_none_or(|asked| *asked.kind == *known && asked.reverse == reverse)
    };
    let limit = limit.unwrap_or(usize::MAX);
    let (mut relations, mut reader) = (Vec::new(), state.reader());
    let mut chosen: Vec<EdgeVersion> = Vec::new();
    for edge in state.edges(place, &wanted)? {
        limits.step()?;
        chosen.clear();
        match versions {
            Versions::At(at) => {
                chosen.extend(state.current(place, &edge, at)?);
            }
            Versions::Between(from, to) => {
                let within = edge.versions.iter().filter(|version| (from..=to).contains(&version.stamp));
                chosen.extend(within);
            }
        }
        chosen.truncate(limit - relations.len());
        for (version, row) in chosen.iter().zip(reader.rows(place, &edge, &chosen)?) {
            relations.push(relation(&mut reader, name, &edge, version, row)?);
        }
        if relations.len() >= limit {
            break;
        }
    }
    Ok(relations)
}

/// A version of a relation, with its time and properties.
pub fn relation(
    reader: &mut RelationReader<'_>,
    near: &VertexName,
    edge: &Edge,
    version: &EdgeVersion,
    (time, props): (i64, Props),
) -> Result<Relation> {
    let state = reader.state();
    Ok(Relation {
        kind: state.vocabulary().name(&edge.direction.kind, edge.direction.reverse),
        near: near.clone(),
        far: reader.far_name(version)?,
        reverse: edge.direction.reverse,
        props: props.pairs()?,
        stamp: version.stamp,
        time,
        until: version.until,
        user: version.user,
        deleted: version.deleted,
        archived: state.archived_in(version),
    })
}
