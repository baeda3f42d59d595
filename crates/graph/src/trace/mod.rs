//! Lineage: what a result came from, and what came from it.
//!
//! A walk by **cause** carries a time. Upstream it begins at a moment (or after everything); a hop takes relations
//! that began at or before the time, and goes on from a relation's end, if that is earlier. Downstream is the mirror
//! image. So who read a file before it was written is no descendant of its writer, and who wrote it after it was read
//! is no ancestor of its reader. A write that replaces hides older writers upstream, and later readers downstream.
//!
//! | hop | takes | and goes on |
//! |---|---|---|
//! | up: data to who wrote it | writes that began by then, from the last that replaces on | from the earlier of the time and the write's end |
//! | up: execution to what it read | reads that began by then | from the earlier of the time and the read's end |
//! | up: execution to its program | as it was when it began | from the earlier of the time and that |
//! | down: data to who read it | reads that ended since, up to the next write that replaces | from the later of the time and the read's beginning |
//! | down: execution to what it wrote | writes that ended since | from the later of the time and the write's beginning |
//! | job to its processes, and back | always: ranks talk | at the same time and depth |
//!
//! A vertex that is reached at several times is gone on from at the one that allows most, once in each of its epochs:
//! between writes that replace it, and deletions that ended something at it. More time does not show what these hide. At
//! its other times the walk takes what lasts then alone: a read that goes on while a file is replaced has both of it.
//!
//! Every version of a relation counts: a file written three times has three writes. What was deleted itself does not
//! count; what ended with a deleted vertex does, for times before that. A walk that is not by cause takes what holds at
//! a moment, whatever the times.
//!
//! A walk upstream from what was removed, and is not there again, begins just before that: it shows what it was.

mod groups;
mod reached;
mod walk;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use fieldstone_core::{Code, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_segment::VertexPlace;

use crate::read::Relation;
use crate::state::GraphState;
use walk::Walk;

/// Which way a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// To what it came from.
    Up,
    /// To what came from it.
    Down,
    /// Both.
    Both,
}

/// How a lineage is asked for.
#[derive(Debug, Clone, Copy)]
pub struct TraceOptions {
    /// Which way.
    pub way: Way,
    /// Hops, at most.
    pub depth: Option<u32>,
    /// As it was at this stamp.
    pub at: Option<u64>,
    /// Downstream: from this stamp on.
    pub since: Option<u64>,
    /// Whether times count.
    pub causal: bool,
    /// Vertices, at most.
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

/// Where a vertex came from, or what came from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Lineage {
    /// What was asked for, or the first of it.
    pub root: VertexName,
    /// All that was asked for and that something names, `root` first; `root` alone where nothing names any of it.
    pub roots: Vec<VertexName>,
    /// The root first, then by depth and name.
    pub vertices: Vec<Step>,
    /// Relations between them, each from its source; by stamp.
    pub edges: Vec<Relation>,
    /// What their types are called from the target.
    pub reverses: BTreeMap<String, String>,
    /// Which way it was walked.
    pub way: Way,
    /// Whether it was cut off at a limit.
    pub truncated: bool,
}

impl Lineage {
    /// The stores that have properties of its relations which were moved, each with how many of these have some there.
    pub fn archived(&self) -> BTreeMap<Arc<str>, u64> {
        let mut urls = BTreeMap::new();
        for url in self.edges.iter().filter_map(|edge| edge.archived.clone()) {
            *urls.entry(url).or_default() += 1;
        }
        urls
    }
}

/// The lineage of a vertex; NotFound where nothing names it.
pub fn trace(state: &GraphState, root: &VertexName, options: &TraceOptions) -> Result<Lineage> {
    if !state.names(VertexPlace::of(root))? {
        return Err(Code::VertexNotFound
            .error(format!("the graph has no vertex {root}"))
            .with_hint("write the whole id, such as the full path of a file"));
    }
    trace_all(state, root, &[], options)
}

/// The lineage of several vertices as one: of `root`, and of others that stand beside it. Of the first that anything
/// names it is called; of what nothing names there is nothing but the root itself.
pub fn trace_all(
    state: &GraphState,
    root: &VertexName,
    others: &[VertexName],
    options: &TraceOptions,
) -> Result<Lineage> {
    let starts = [root].into_iter().chain(others).map(|name| Step { name: name.clone(), depth: 0 });
    let starts: Vec<Step> = starts.collect();
    let found = trace_on(state, &starts, options)?;
    Ok(found.unwrap_or_else(|| {
        let (roots, vertices) = (vec![root.clone()], vec![Step { name: root.clone(), depth: 0 }]);
        let (edges, reverses) = Default::default();
        let way = options.way;
        Lineage { root: root.clone(), roots, vertices, edges, reverses, way, truncated: false }
    }))
}

/// A lineage that goes on from vertices to which it took so many hops; `None` where nothing names any of them.
pub fn trace_on(state: &GraphState, starts: &[Step], options: &TraceOptions) -> Result<Option<Lineage>> {
    let (mut roots, mut names, mut taken) = (Vec::new(), Vec::new(), HashSet::new());
    for Step { name, depth } in starts {
        let place = VertexPlace::of(name);
        if taken.insert(place) && state.names(place)? {
            roots.push((place, *depth));
            names.push(name.clone());
        }
    }
    let Some(root) = names.first().cloned() else { return Ok(None) };
    let mut walk = Walk::new(state, *options);
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
