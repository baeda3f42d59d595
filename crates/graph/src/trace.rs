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
//! Every version of a relation counts: a file written three times has three writes. What was deleted itself does not
//! count; what ended with a deleted vertex does, for times before that. A walk that is not by cause takes what holds at
//! a moment, whatever the times.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};

use fieldstone_core::{Code, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_segment::Place;

use crate::live::Relation;
use crate::live::read::relation;
use crate::state::{END, Edge, EdgeVersion, State, holding, standing};

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
    /// What was asked for.
    pub root: VertexName,
    /// The root first, then by depth and name.
    pub vertices: Vec<Step>,
    /// Relations between them, each from its source; by stamp.
    pub edges: Vec<Relation>,
    /// Whether it was cut off at a limit.
    pub truncated: bool,
}

/// The lineage of a vertex; NotFound where nothing names it.
pub fn trace(state: &State, root: &VertexName, options: &TraceOptions) -> Result<Lineage> {
    let place = Place::of(root);
    if !state.names(place)? {
        return Err(Code::VertexNotFound
            .error(format!("the graph has no vertex {root}"))
            .with_hint("see what there is with find, or write the id out: a file's is its full path"));
    }
    let mut walk = Walk {
        state,
        options: *options,
        up: true,
        depths: HashMap::new(),
        used: HashMap::new(),
        joined: HashSet::new(),
        truncated: false,
    };
    walk.depths.insert(place, 0);
    if options.way != Way::Down {
        walk.run(place, options.at.unwrap_or(END))?;
    }
    if options.way != Way::Up {
        walk.up = false;
        walk.run(place, options.since.unwrap_or(0))?;
    }
    walk.lineage(root, place)
}

/// A relation that was walked: from its source, type, to its target, one version.
type Used = (Place, std::sync::Arc<str>, Place, u64, u32);

struct Walk<'a> {
    state: &'a State,
    options: TraceOptions,
    up: bool,
    /// Hops to each vertex that was reached.
    depths: HashMap<Place, u32>,
    /// What was walked, as the vertex has it from which it was walked.
    used: HashMap<Used, (Place, Edge, EdgeVersion)>,
    /// Executions reached as part of a job alone.
    joined: HashSet<Place>,
    truncated: bool,
}

/// A place to go on from: what allows more first. The time is turned round downstream.
type Next = (u64, Reverse<u32>, Place);

impl Walk<'_> {
    fn key(&self, time: u64) -> u64 {
        if self.up { time } else { !time }
    }

    fn run(&mut self, root: Place, time: u64) -> Result<()> {
        let mut next: BinaryHeap<Next> = BinaryHeap::new();
        // Of what was expanded with more time, the least depth: only fewer hops show more.
        let mut done: HashMap<Place, u32> = HashMap::new();
        next.push((self.key(time), Reverse(0), root));
        while let Some((key, Reverse(depth), place)) = next.pop() {
            if done.get(&place).is_some_and(|known| *known <= depth) {
                continue;
            }
            done.insert(place, depth);
            for (far, time, hops) in self.hops(place, self.key(key), depth)? {
                if !self.depths.contains_key(&far) && self.depths.len() >= self.options.limit {
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

    /// Where a walk that is at a vertex at some time goes on: vertex, time, hops.
    fn hops(&mut self, place: Place, time: u64, depth: u32) -> Result<Vec<(Place, u64, u32)>> {
        let up = self.up;
        let wanted = |kind: &str, reverse: bool| match kind {
            "contains" => true,
            // From data writes lead to executions and reads to others; from executions the other way round. What
            // hides is looked at from data, whichever way.
            "write" => up == reverse || reverse,
            "read" => up != reverse,
            "exe" => up && !reverse,
            _ => false,
        };
        let edges = self.state.edges(place, &wanted)?;
        let last = self.options.depth.is_some_and(|most| depth >= most);
        let replaced = if self.options.causal { self.replaced(place, &edges, time)? } else { None };
        let mut found = Vec::new();
        for edge in &edges {
            let part = &*edge.direction.kind == "contains";
            let looked_at = !up && &*edge.direction.kind == "write" && edge.direction.reverse;
            if looked_at || (last && !part) {
                continue;
            }
            let hops = u32::from(!part);
            let mut best: Option<u64> = None;
            for (version, end) in self.versions(place, edge)? {
                let Some(after) = self.goes_on(edge, &version, end, time, replaced) else { continue };
                best = Some(match best {
                    None => after,
                    Some(known) => {
                        if up {
                            known.max(after)
                        } else {
                            known.min(after)
                        }
                    }
                });
                self.note(place, edge, version);
            }
            let Some(after) = best else { continue };
            if part && !self.depths.contains_key(&edge.far) {
                self.joined.insert(edge.far);
            } else if !part {
                self.joined.remove(&edge.far);
            }
            found.push((edge.far, after, hops));
        }
        Ok(found)
    }

    /// Versions of a relation that count, each with its end.
    fn versions(&self, place: Place, edge: &Edge) -> Result<Vec<(EdgeVersion, u64)>> {
        let at = self.options.at.unwrap_or(END);
        let ends = [place, edge.far];
        if !self.options.causal {
            let Some(version) = holding(&edge.versions, at, EdgeVersion::facts) else {
                return Ok(Vec::new());
            };
            let gone = self.state.ended(version, ends, at)?.is_some();
            return Ok(if gone { Vec::new() } else { vec![(*version, version.end())] });
        }
        let mut counting = Vec::new();
        for version in standing(&edge.versions, at, EdgeVersion::facts) {
            let ended = self.state.ended(version, ends, at)?;
            counting.push((*version, version.end().min(ended.unwrap_or(END))));
        }
        Ok(counting)
    }

    /// The write that hides others: upstream the last that replaces and began by then, downstream the next.
    fn replaced(&self, place: Place, edges: &[Edge], time: u64) -> Result<Option<u64>> {
        let mut found: Option<u64> = None;
        for edge in edges.iter().filter(|edge| &*edge.direction.kind == "write" && edge.direction.reverse) {
            for (version, _) in self.versions(place, edge)? {
                let stamp = version.stamp;
                if !version.replaces || (stamp <= time) != self.up {
                    continue;
                }
                found = Some(
                    found.map_or(stamp, |known| if self.up { known.max(stamp) } else { known.min(stamp) }),
                );
            }
        }
        Ok(found)
    }

    /// The time at which a walk goes on behind a version of a relation; `None` where it does not take it.
    fn goes_on(
        &self,
        edge: &Edge,
        version: &EdgeVersion,
        end: u64,
        time: u64,
        replaced: Option<u64>,
    ) -> Option<u64> {
        if !self.options.causal || &*edge.direction.kind == "contains" {
            return Some(time);
        }
        let of_data = edge.direction.reverse;
        let taken = match self.up {
            true => version.stamp <= time && !(of_data && replaced.is_some_and(|last| version.stamp < last)),
            false => end >= time && !(of_data && replaced.is_some_and(|next| version.stamp > next)),
        };
        let moves = &*edge.direction.kind != "exe";
        taken.then_some(match (moves, self.up) {
            (false, _) => time,
            (true, true) => time.min(end),
            (true, false) => time.max(version.stamp),
        })
    }

    fn note(&mut self, place: Place, edge: &Edge, version: EdgeVersion) {
        let (source, target) = match edge.direction.reverse {
            false => (place, edge.far),
            true => (edge.far, place),
        };
        let key = (source, edge.direction.kind.clone(), target, version.stamp, version.user);
        let bare = Edge { versions: Vec::new(), ..edge.clone() };
        self.used.entry(key).or_insert((place, bare, version));
    }

    fn lineage(mut self, root: &VertexName, place: Place) -> Result<Lineage> {
        // Ranks of a job that had no part in it would only be in the way.
        let part = |key: &Used| &*key.1 == "contains";
        let reached = |place: &Place| self.depths.contains_key(place);
        self.used.retain(|key, _| reached(&key.0) && reached(&key.2));
        let takes_part: HashSet<Place> =
            self.used.keys().filter(|key| !part(key)).flat_map(|key| [key.0, key.2]).chain([place]).collect();
        let kept_by_parts: HashSet<Place> = self
            .used
            .keys()
            .filter(|key| part(key) && takes_part.contains(&key.2))
            .map(|key| key.0)
            .collect();
        let keeps = |place: &Place| {
            !self.joined.contains(place) || takes_part.contains(place) || kept_by_parts.contains(place)
        };
        let mut names: HashMap<Place, VertexName> = HashMap::new();
        let mut vertices = BTreeSet::new();
        for (far, depth) in self.depths.iter().filter(|(far, _)| keeps(far)) {
            let name = self.state.name(*far)?;
            names.insert(*far, name.clone());
            vertices.insert((*far != place, *depth, name));
        }
        let mut edges = Vec::with_capacity(self.used.len());
        for ((source, _, target, ..), (seen_from, edge, version)) in &self.used {
            let (Some(from), Some(to)) = (names.get(source), names.get(target)) else { continue };
            let near = if edge.direction.reverse { to } else { from };
            let seen = relation(self.state, near, *seen_from, edge, version)?;
            edges.push(Relation {
                kind: edge.direction.kind.to_string(),
                near: from.clone(),
                far: to.clone(),
                reverse: false,
                ..seen
            });
        }
        edges.sort_by(|a, b| (a.stamp, &a.near, &a.kind, &a.far).cmp(&(b.stamp, &b.near, &b.kind, &b.far)));
        let vertices = vertices.into_iter().map(|(_, depth, name)| Step { name, depth }).collect();
        Ok(Lineage { root: root.clone(), vertices, edges, truncated: self.truncated })
    }
}
