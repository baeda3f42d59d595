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
//! | up: execution to its program | as it was by then | at the same time |
//! | down: data to who read it | reads that ended since, up to the next write that replaces | from the later of the time and the read's beginning |
//! | down: execution to what it wrote | writes that ended since | from the later of the time and the write's beginning |
//! | job to its processes, and back | always: ranks talk | at the same time and depth |
//!
//! A vertex that is reached at several times is gone on from at the one that allows most, once in each of its epochs:
//! between writes that replace it, and deletions that ended something at it. More time does not show what these hide.
//!
//! Every version of a relation counts: a file written three times has three writes. What was deleted itself does not
//! count; what ended with a deleted vertex does, for times before that. A walk that is not by cause takes what holds at
//! a moment, whatever the times.
//!
//! A walk upstream from what was removed, and is not there again, begins just before that: it shows what it was.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::{Code, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_segment::VertexPlace;

use crate::cause::{self, Course};
use crate::read::{Relation, relation};
use crate::state::{END, Edge, EdgeVersion, GraphState, VertexVersion, standing};

/// Relations of one source that are looked for one by one.
const FEW: usize = 8;

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
            .with_hint("write its id out: a file's is its full path"));
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
        Lineage { root: root.clone(), roots, vertices, edges, reverses, truncated: false }
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
    let mut walk = Walk {
        state,
        options: *options,
        up: true,
        depths: HashMap::new(),
        used: HashSet::new(),
        joined: HashSet::new(),
        truncated: false,
    };
    walk.depths.extend(roots.iter().copied());
    if options.way != Way::Down {
        let from = roots.iter().map(|(place, depth)| Ok((*place, walk.begins(*place)?, *depth)));
        let from = from.collect::<Result<Vec<_>>>()?;
        walk.run(&from)?;
    }
    if options.way != Way::Up {
        walk.up = false;
        let since = options.since.unwrap_or(0);
        walk.run(&roots.iter().map(|(place, depth)| (*place, since, *depth)).collect::<Vec<_>>())?;
    }
    let roots: Vec<VertexPlace> = roots.into_iter().map(|(place, _)| place).collect();
    let (vertices, edges) = walk.lineage(&root, &roots)?;
    let reverse = |edge: &Relation| (edge.kind.clone(), state.vocabulary().name(&edge.kind, true));
    let reverses = edges.iter().map(reverse).collect();
    Ok(Some(Lineage { root, roots: names, vertices, edges, reverses, truncated: walk.truncated }))
}

/// A relation that was walked: from its source, type, to its target, one version.
type Used = (VertexPlace, Arc<str>, VertexPlace, u64, u32);

/// Which of the epochs between these bounds a time is in.
fn epoch(bounds: &[u64], time: u64) -> usize {
    bounds.partition_point(|bound| *bound <= time)
}

struct Walk<'a> {
    state: &'a GraphState,
    options: TraceOptions,
    up: bool,
    /// Hops to each vertex that was reached.
    depths: HashMap<VertexPlace, u32>,
    /// What was walked.
    used: HashSet<Used>,
    /// Executions reached as part of a job alone.
    joined: HashSet<VertexPlace>,
    truncated: bool,
}

/// A place to go on from: what allows more first. The time is turned round downstream.
type Next = (u64, Reverse<u32>, VertexPlace);

impl Walk<'_> {
    /// Where a walk upstream begins: after everything, but from what was removed just before that.
    fn begins(&self, place: VertexPlace) -> Result<u64> {
        let at = self.options.at.unwrap_or(END);
        let versions = self.state.vertex_versions(place)?;
        let last = versions.iter().find(|version| version.deleted && version.stamp <= at);
        let Some(last) = last.filter(|_| self.options.causal) else { return Ok(at) };
        let mut there = !standing(&versions, at, VertexVersion::facts).is_empty();
        for edge in self.state.edges(place, &|_, _| true)? {
            there = there || self.state.current(place, &edge, at)?.is_some();
        }
        Ok(if there { at } else { last.stamp.saturating_sub(1) })
    }

    fn key(&self, time: u64) -> u64 {
        if self.up { time } else { !time }
    }

    fn run(&mut self, from: &[(VertexPlace, u64, u32)]) -> Result<()> {
        let mut next: BinaryHeap<Next> = BinaryHeap::new();
        // Of what was expanded with more time, within one epoch of the vertex, the least depth: only fewer hops show
        // more.
        let mut done: HashMap<(VertexPlace, usize), u32> = HashMap::new();
        let mut bounds: HashMap<VertexPlace, Vec<u64>> = HashMap::new();
        next.extend(from.iter().map(|(root, time, depth)| (self.key(*time), Reverse(*depth), *root)));
        while let Some((key, Reverse(depth), place)) = next.pop() {
            let time = self.key(key);
            if let Some(known) = bounds.get(&place)
                && done.get(&(place, epoch(known, time))).is_some_and(|known| *known <= depth)
            {
                continue;
            }
            let edges = self.edges(place)?;
            let (replacing, all) =
                if self.options.causal { self.bounds(place, &edges)? } else { Default::default() };
            let hiding = cause::hiding(&replacing, time, self.course());
            done.insert((place, epoch(&all, time)), depth);
            bounds.insert(place, all);
            for (far, time, hops) in self.hops(place, &edges, time, hiding, depth)? {
                // Ranks of a job that have no part in it are left out in the end.
                let counted = self.depths.len().saturating_sub(self.joined.len());
                if !self.depths.contains_key(&far) && hops > 0 && counted >= self.options.limit {
                    self.truncated = true;
                    continue;
                }
                let known = self.depths.entry(far).or_insert(depth + hops);
                *known = (*known).min(depth + hops);
                next.push((self.key(time), Reverse(depth + hops), far));
            }
        }
        Ok(())
    }

    /// What of a vertex is looked at.
    fn edges(&self, place: VertexPlace) -> Result<Vec<Edge>> {
        let up = self.up;
        self.state.edges(place, &|kind, reverse| match kind {
            "contains" => true,
            // From data writes lead to executions and reads to others; from executions the other way round. What
            // hides is looked at from data, whichever way.
            "write" => up == reverse || reverse,
            "read" => up != reverse,
            "exe" => up && !reverse,
            _ => false,
        })
    }

    /// Where a walk that is at a vertex at some time goes on: vertex, time, hops.
    fn hops(
        &mut self,
        place: VertexPlace,
        edges: &[Edge],
        time: u64,
        hiding: Option<u64>,
        depth: u32,
    ) -> Result<Vec<(VertexPlace, u64, u32)>> {
        let up = self.up;
        let last = self.options.depth.is_some_and(|most| depth >= most);
        let mut found = Vec::new();
        for edge in edges {
            let part = &*edge.direction.kind == "contains";
            let looked_at = !up && &*edge.direction.kind == "write" && edge.direction.reverse;
            if looked_at || (last && !part) {
                continue;
            }
            let hops = u32::from(!part);
            // Each time may stand between other writes that replace the far end.
            let mut times: Vec<u64> = Vec::new();
            for (version, ended) in self.versions(place, edge)? {
                let Some(after) = self.goes_on(edge, &version, ended, time, hiding) else { continue };
                times.push(after);
                self.note(place, edge, version);
            }
            if times.is_empty() {
                continue;
            }
            if part && !self.depths.contains_key(&edge.far) {
                self.joined.insert(edge.far);
            } else if !part {
                self.joined.remove(&edge.far);
            }
            times.sort_unstable();
            times.dedup();
            found.extend(times.into_iter().map(|after| (edge.far, after, hops)));
        }
        Ok(found)
    }

    /// Versions of a relation that count, each with when one of its ends was deleted.
    fn versions(&self, place: VertexPlace, edge: &Edge) -> Result<Vec<(EdgeVersion, Option<u64>)>> {
        let at = self.options.at.unwrap_or(END);
        if !self.options.causal {
            let current = self.state.current(place, edge, at)?;
            return Ok(current.map(|version| (*version, None)).into_iter().collect());
        }
        cause::counting(self.state, place, edge, at)
    }

    /// When a vertex was replaced, and between which times a walk that is there sees the same: both ascending.
    fn bounds(&self, place: VertexPlace, edges: &[Edge]) -> Result<(Vec<u64>, Vec<u64>)> {
        let (mut replacing, mut all) = (Vec::new(), Vec::new());
        for edge in edges {
            let written = &*edge.direction.kind == "write" && edge.direction.reverse;
            for (version, ended) in self.versions(place, edge)? {
                if written && version.replaces {
                    replacing.push(version.stamp);
                }
                all.extend(ended.filter(|_| self.up));
            }
        }
        all.extend(&replacing);
        all.sort_unstable();
        all.dedup();
        replacing.sort_unstable();
        Ok((replacing, all))
    }

    fn course(&self) -> Course {
        if self.up { Course::Up } else { Course::Down }
    }

    /// The time at which a walk goes on behind a version of a relation; `None` where it does not take it.
    fn goes_on(
        &self,
        edge: &Edge,
        version: &EdgeVersion,
        ended: Option<u64>,
        time: u64,
        hiding: Option<u64>,
    ) -> Option<u64> {
        if !self.options.causal || &*edge.direction.kind == "contains" {
            return Some(time);
        }
        cause::goes_on(&edge.direction, self.course(), (version, ended), time, hiding)
    }

    fn note(&mut self, place: VertexPlace, edge: &Edge, version: EdgeVersion) {
        let (source, target) = match edge.direction.reverse {
            false => (place, edge.far),
            true => (edge.far, place),
        };
        self.used.insert((source, edge.direction.kind.clone(), target, version.stamp, version.user));
    }

    /// What was reached, and the relations between it, each in order.
    fn lineage(&mut self, root: &VertexName, roots: &[VertexPlace]) -> Result<(Vec<Step>, Vec<Relation>)> {
        let place = VertexPlace::of(root);
        // Ranks of a job that had no part in it would only be in the way.
        let part = |key: &Used| &*key.1 == "contains";
        let Walk { used, depths, .. } = self;
        used.retain(|key| depths.contains_key(&key.0) && depths.contains_key(&key.2));
        let taking = self.used.iter().filter(|key| !part(key)).flat_map(|key| [key.0, key.2]);
        let takes_part: HashSet<VertexPlace> = taking.chain(roots.iter().copied()).collect();
        let kept_by_parts: HashSet<VertexPlace> = self
            .used
            .iter()
            .filter(|key| part(key) && takes_part.contains(&key.2))
            .map(|key| key.0)
            .collect();
        let keeps = |place: &VertexPlace| {
            !self.joined.contains(place) || takes_part.contains(place) || kept_by_parts.contains(place)
        };
        let mut names: HashMap<VertexPlace, VertexName> = HashMap::new();
        let mut vertices = BTreeSet::new();
        for (far, depth) in self.depths.iter().filter(|(far, _)| keeps(far)) {
            let name = self.state.name(*far)?;
            names.insert(*far, name.clone());
            vertices.insert((*far != place, *depth, name));
        }
        let mut edges = self.relations(&names)?;
        edges.sort_by(|a, b| (a.stamp, &a.near, &a.kind, &a.far).cmp(&(b.stamp, &b.near, &b.kind, &b.far)));
        let vertices = vertices.into_iter().map(|(_, depth, name)| Step { name, depth }).collect();
        Ok((vertices, edges))
    }

    /// What was walked between these vertices, each relation from its source.
    fn relations(&self, names: &HashMap<VertexPlace, VertexName>) -> Result<Vec<Relation>> {
        // By source: of one that many were walked from, all are read at once.
        let mut by_source: HashMap<(VertexPlace, &str), Vec<&Used>> = HashMap::new();
        for key in self.used.iter().filter(|key| names.contains_key(&key.0) && names.contains_key(&key.2)) {
            by_source.entry((key.0, &*key.1)).or_default().push(key);
        }
        let (mut relations, mut reader) = (Vec::with_capacity(self.used.len()), self.state.reader());
        for ((source, kind), mut keys) in by_source {
            let Some(near) = names.get(&source) else { continue };
            let mut forward: HashMap<VertexPlace, Edge> = HashMap::new();
            if keys.len() > FEW {
                let edges = self.state.edges(source, &|known, reverse| known == kind && !reverse)?;
                forward.extend(edges.into_iter().map(|edge| (edge.far, edge)));
            }
            keys.sort_unstable();
            for of_one in keys.chunk_by(|a, b| a.2 == b.2) {
                let target = of_one[0].2;
                let edge = match forward.entry(target) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(free) => free.insert(self.state.relation(source, kind, target)?),
                };
                for (.., stamp, user) in of_one {
                    let order = |v: &EdgeVersion| (Reverse(v.stamp), v.user);
                    let at = edge.versions.binary_search_by_key(&(Reverse(*stamp), *user), order);
                    let Ok(version) = at.map(|at| &edge.versions[at]) else { continue };
                    let row = reader.own_row(version)?;
                    relations.push(relation(&mut reader, near, edge, version, row)?);
                }
            }
        }
        Ok(relations)
    }
}
