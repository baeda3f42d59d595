//! Lineage: the vertices from which a result came, and those that came from it.
//!
//! A walk by **cause** carries a time. Upstream it begins at a moment (or after everything); a hop takes
//! relations that began at or before the time, and the walk continues from a relation's end, if that is
//! earlier. Downstream is the mirror image. So a reader of a file before it was written is not a descendant
//! of its writer, and a writer after it was read is not an ancestor of its reader. A write that replaces the
//! file hides older writers upstream, and later readers downstream.
//!
//! | hop | takes | and continues |
//! |---|---|---|
//! | up: from data to its writers | writes that began by then, from the last that replaces on | from the earlier of the time and the write's end |
//! | up: from an execution to its inputs | reads that began by then | from the earlier of the time and the read's end |
//! | up: from an execution to its program | the program at the start of the execution | from the earlier of the time and that start |
//! | down: from data to its readers | reads that ended since, up to the next write that replaces | from the later of the time and the read's beginning |
//! | down: from an execution to its outputs | writes that ended since | from the later of the time and the write's beginning |
//! | from a job to its processes, and back | always: ranks communicate | at the same time and depth |
//!
//! If a walk reaches a vertex at several times, it continues from the most permissive one, once in each
//! period (`period` in the code): periods lie between writes that replace the vertex, and deletions that ended
//! relations at it, because no further time reveals what these hide. At the other times the walk follows only
//! relations that last at that time: a read that continues while a file is replaced has both versions.
//!
//! Every version of a relation counts: a file written three times has three writes. Deleted relations do not
//! count; a relation that ended with a deleted vertex does, for earlier times. A walk that is not by cause
//! takes the relations that are valid at a moment, whatever their times.
//!
//! A walk upstream from a vertex that was deleted, and does not exist again, begins just before the deletion:
//! it shows the last state.

mod groups;
mod reached;
mod walk;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use fieldstone_core::{Code, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::session::Limits;

use crate::read::Relation;
use crate::state::GraphState;
use walk::Walk;

/// The direction of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To the vertices from which it came.
    Up,
    /// To the vertices that came from it.
    Down,
    /// Both.
    Both,
}

/// The request for a lineage.
#[derive(Debug, Clone, Copy)]
pub struct TraceOptions {
    /// The direction.
    pub way: Way,
    /// Maximum number of hops.
    pub depth: Option<u32>,
    /// In the state at this stamp.
    pub at: Option<u64>,
    /// Downstream: from this stamp on.
    pub since: Option<u64>,
    /// Whether times count.
    pub causal: bool,
    /// Maximum number of vertices.
    pub limit: usize,
}

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions { way: Way::Up, depth: None, at: None, since: None, causal: true, limit: 10_000 }
    }
}

/// A vertex of a lineage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The vertex.
    pub name: VertexName,
    /// Hops from the root.
    pub depth: u32,
}

/// The vertices from which a vertex came, or that came from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Lineage {
    /// The requested vertex, or the first of several.
    pub root: VertexName,
    /// All requested vertices that something names, `root` first; `root` alone if nothing names any of them.
    pub roots: Vec<VertexName>,
    /// The root first, then by depth and name.
    pub vertices: Vec<Step>,
    /// Relations between them, each from its source; by stamp.
    pub edges: Vec<Relation>,
    /// The reverse names of their types.
    pub reverses: BTreeMap<String, String>,
    /// The direction of the walk.
    pub way: Way,
    /// Whether it was cut off at a limit.
    pub truncated: bool,
}

impl Lineage {
    /// The stores to which properties of its relations were moved, each with the number of such relations.
    pub fn archived(&self) -> BTreeMap<Arc<str>, u64> {
        let mut urls = BTreeMap::new();
        for url in self.edges.iter().filter_map(|edge| edge.archived.clone()) {
            *urls.entry(url).or_default() += 1;
        }
        urls
    }
}

/// The lineage of a vertex; NotFound if nothing names it.
pub fn trace(
    state: &GraphState,
    root: &VertexName,
    options: &TraceOptions,
    limits: &mut Limits,
) -> Result<Lineage> {
    if !state.names(VertexPlace::of(root))? {
        return Err(Code::VertexNotFound
            .error(format!("the graph has no vertex {root}"))
            .with_hint("write the whole id, such as the full path of a file"));
    }
    trace_all(state, root, &[], options, limits)
}

/// The lineage of several vertices as one: of `root`, and of others that belong to it. Its name is the first
/// vertex that anything names; if nothing names any, the lineage holds only the root itself.
pub fn trace_all(
    state: &GraphState,
    root: &VertexName,
    others: &[VertexName],
    options: &TraceOptions,
    limits: &mut Limits,
) -> Result<Lineage> {
    let starts = [root].into_iter().chain(others).map(|name| Step { name: name.clone(), depth: 0 });
    let starts: Vec<Step> = starts.collect();
    let found = trace_on(state, &starts, options, limits)?;
    Ok(found.unwrap_or_else(|| {
        let (roots, vertices) = (vec![root.clone()], vec![Step { name: root.clone(), depth: 0 }]);
        let (edges, reverses) = Default::default();
        let way = options.way;
        Lineage { root: root.clone(), roots, vertices, edges, reverses, way, truncated: false }
    }))
}

/// A lineage that continues from vertices, with the hops that it took to each; `None` if nothing names any of
/// them.
pub fn trace_on(
    state: &GraphState,
    starts: &[Step],
    options: &TraceOptions,
    limits: &mut Limits,
) -> Result<Option<Lineage>> {
    let (mut roots, mut names, mut taken) = (Vec::new(), Vec::new(), HashSet::new());
    for Step { name, depth } in starts {
        limits.step()?;
        let place = VertexPlace::of(name);
        if taken.insert(place) && state.names(place)? {
            roots.push((place, *depth));
            names.push(name.clone());
        }
    }
    let Some(root) = names.first().cloned() else { return Ok(None) };
    let mut walk = Walk::new(state, *options, limits);
    walk.depths.extend(roots.iter().copied());
    if options.way != Way::Down {
        let from = roots.iter().map(|(place, depth)| Ok((*place, walk.begins(*place)?, *depth)));
        let from = from.collect::<Result<Vec<_>>>()?;
        walk.run(&from)?;
    }
    if options.way != Way::Up {
        walk.turn();
        let since = options.since.unwrap_or(0);
        walk.run(&roots.iter().map(|(place, depth)| (*place, since, *depth)).collect::<Vec<_>>())?;
    }
    let roots: Vec<VertexPlace> = roots.into_iter().map(|(place, _)| place).collect();
    let (vertices, edges) = walk.lineage(&root, &roots)?;
    let reverse = |edge: &Relation| (edge.kind.clone(), state.vocabulary().name(&edge.kind, true));
    let reverses = edges.iter().map(reverse).collect();
    let (way, truncated) = (options.way, walk.truncated);
    Ok(Some(Lineage { root, roots: names, vertices, edges, reverses, way, truncated }))
}
