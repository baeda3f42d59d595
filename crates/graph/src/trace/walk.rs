//! The walk itself: takes the most permissive times first, vertex by vertex, and collects the result.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::session::Limits;

use super::groups::Groups;
use super::reached::{Hop, Reached};
use super::{Step, TraceOptions};
use crate::cause::{self, Course};
use crate::read::{Relation, relation};
use crate::state::{END, Edge, EdgeVersion, GraphState, VertexVersion, standing};

/// Up to this many relations of one source are looked up one by one.
const FEW: usize = 8;

/// A walked relation: source, type, target, and one version.
type Used = (VertexPlace, Arc<str>, VertexPlace, u64, u32);

/// A vertex, or a group, and a time.
type Come = (bool, VertexPlace, u64);

/// A place to continue from: more permissive ones come first. The time is inverted downstream.
type Next = (u64, Reverse<u32>, VertexPlace);

pub struct Walk<'a> {
    state: &'a GraphState,
    options: TraceOptions,
    limits: &'a mut Limits,
    up: bool,
    /// The number of hops to each reached vertex.
    pub depths: HashMap<VertexPlace, u32>,
    /// The walked relations.
    used: HashSet<Used>,
    /// Executions reached only as part of a job.
    joined: HashSet<VertexPlace>,
    pub truncated: bool,
    reached: HashMap<VertexPlace, Reached>,
    groups: Groups,
    /// Times at which the walk came to a vertex, or a group, again, each with the fewest hops.
    again: HashMap<Come, u32>,
    next: BinaryHeap<Next>,
}

impl<'a> Walk<'a> {
    /// A walk upstream that has reached nothing yet.
    pub fn new(state: &'a GraphState, options: TraceOptions, limits: &'a mut Limits) -> Walk<'a> {
        Walk {
            state,
            options,
            limits,
            up: true,
            depths: HashMap::new(),
            used: HashSet::new(),
            joined: HashSet::new(),
            truncated: false,
            reached: HashMap::new(),
            groups: Groups::default(),
            again: HashMap::new(),
            next: BinaryHeap::new(),
        }
    }

    /// Continues downstream from here on.
    pub fn turn(&mut self) {
        self.up = false;
        self.reached.clear();
        self.groups = Groups::default();
        self.again.clear();
    }

    /// The time at which a walk upstream begins: after everything, or just before the deletion of a deleted
    /// vertex.
    pub fn begins(&self, place: VertexPlace) -> Result<u64> {
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

    /// Its direction in time; `None` if times do not count.
    fn course(&self) -> Option<Course> {
        let course = if self.up { Course::Up } else { Course::Down };
        self.options.causal.then_some(course)
    }

    /// Walks from vertices, each at a time and depth.
    pub fn run(&mut self, from: &[(VertexPlace, u64, u32)]) -> Result<()> {
        let from = from.iter().map(|(root, time, depth)| (self.key(*time), Reverse(*depth), *root));
        self.next = from.collect();
        while let Some((key, Reverse(depth), place)) = self.next.pop() {
            self.limits.step()?;
            let time = self.key(key);
            let known = self.reached.get(&place);
            // A visit with no more hops has already continued over the whole period.
            let is_done =
                |known: &Reached| known.done.get(&known.period(time)).is_some_and(|least| *least <= depth);
            if known.is_some_and(is_done) {
                self.come_again(place, time, depth);
                continue;
            }
            let mut reached = match self.reached.remove(&place) {
                Some(known) if known.is_loaded => known,
                known => {
                    let mut fresh = self.look(place)?;
                    // The hops of an execution join its group once; later visits only read them again.
                    if known.is_none() {
                        self.groups.add(place, fresh.others(), !fresh.bounds.is_empty());
                    }
                    fresh.done = known.map(|known| known.done).unwrap_or_default();
                    fresh
                }
            };
            reached.done.insert(reached.period(time), depth);
            self.go_on(place, &reached, time, depth)?;
            reached.unload();
            self.reached.insert(place, reached);
        }
        Ok(())
    }

    /// Takes all hops of a vertex at a time.
    fn go_on(&mut self, place: VertexPlace, reached: &Reached, time: u64, depth: u32) -> Result<()> {
        let last = self.options.depth.is_some_and(|most| depth >= most);
        for (hop, after) in reached.hops(time, self.course()).filter(|(hop, _)| hop.is_part() || !last) {
            self.limits.step()?;
            self.note(place, hop);
            // A rank that is reached only through its job takes part once another relation leads to it.
            if hop.is_part() && !self.depths.contains_key(&hop.far) {
                self.joined.insert(hop.far);
            } else if !hop.is_part() {
                self.joined.remove(&hop.far);
            }
            self.push(hop.far, after, depth, u32::from(!hop.is_part()));
        }
        Ok(())
    }

    /// Comes to a vertex again, at another time of the same period, with no fewer hops than before.
    fn come_again(&mut self, place: VertexPlace, time: u64, depth: u32) {
        let Some(course) = self.course() else { return };
        let mut far = Vec::new();
        if let Some(reached) = self.reached.get(&place).filter(|reached| reached.lasts)
            && is_first(&mut self.again, (false, place, time), depth)
        {
            far.extend(reached.lasting(time, course));
        }
        let name = self.groups.name(place);
        let bounded = !self.groups.bounded(name).is_empty();
        if (bounded || self.groups.lasts(name)) && is_first(&mut self.again, (true, name, time), depth) {
            let hops = self.groups.lasting(name).map(std::mem::take).unwrap_or_default();
            let hops: Vec<Hop> = hops.into_iter().filter(|hop| self.may_differ(hop)).collect();
            far.extend(hops.iter().filter(|hop| hop.lasts_at(time, course)).map(|hop| hop.far));
            if let Some(lasting) = self.groups.lasting(name) {
                // Hops whose result cannot differ any more are dropped for good.
                *lasting = hops;
            }
            let others: Vec<VertexPlace> = self.groups.bounded(name).to_vec();
            let others = others.into_iter().filter(|other| *other != place);
            others.for_each(|other| self.push(other, time, depth, 0));
        }
        if self.options.depth.is_none_or(|most| depth < most) {
            far.into_iter().for_each(|far| self.push(far, time, depth, 1));
        }
    }

    /// Whether the result after a hop may depend on the time, during the relation, at which the walk
    /// continues.
    fn may_differ(&mut self, hop: &Hop) -> bool {
        let Some(far) = self.reached.get(&hop.far) else { return true };
        far.bounds.iter().any(|bound| hop.has(*bound)) || far.lasts || self.groups.lasts(hop.far)
    }

    /// Queues a vertex.
    fn push(&mut self, far: VertexPlace, time: u64, depth: u32, hops: u32) {
        // Ranks of a job that took no part in the result are left out in the end.
        let counted = self.depths.len().saturating_sub(self.joined.len());
        // Ranks of a job that is in the result enter whatever the limit; most are left out in the end.
        if !self.depths.contains_key(&far) && hops > 0 && counted >= self.options.limit {
            self.truncated = true;
            return;
        }
        let known = self.depths.entry(far).or_insert(depth + hops);
        *known = (*known).min(depth + hops);
        self.next.push((self.key(time), Reverse(depth + hops), far));
    }

    /// Reads the hops at a vertex.
    fn look(&mut self, place: VertexPlace) -> Result<Reached> {
        let (mut hops, mut replacing) = (Vec::new(), Vec::new());
        for edge in self.edges(place)? {
            self.limits.step()?;
            let written = &*edge.direction.kind == "write" && edge.direction.reverse;
            for (version, ended) in self.versions(place, &edge)? {
                if written && version.replaces && self.options.causal {
                    replacing.push(version.stamp);
                }
                // Downstream, the writes of data are needed only because they hide others.
                if written && !self.up {
                    continue;
                }
                hops.push(Hop { far: edge.far, direction: edge.direction.clone(), version, ended });
            }
        }
        Ok(Reached::of(hops, replacing, self.course()))
    }

    /// The relations of a vertex that the walk needs.
    fn edges(&self, place: VertexPlace) -> Result<Vec<Edge>> {
        let up = self.up;
        self.state.edges(place, &|kind, reverse| match kind {
            "contains" => true,
            // From data, writes lead upstream and reads downstream; from executions it is the other way
            // round. Writes that hide are read from data in both directions.
            "write" => up == reverse || reverse,
            "read" => up != reverse,
            "exe" => up && !reverse,
            _ => false,
        })
    }

    /// The versions of a relation that count, each with the time when one of its ends was deleted.
    fn versions(&self, place: VertexPlace, edge: &Edge) -> Result<Vec<(EdgeVersion, Option<u64>)>> {
        let at = self.options.at.unwrap_or(END);
        if !self.options.causal {
            let current = self.state.current(place, edge, at)?;
            return Ok(current.map(|version| (*version, None)).into_iter().collect());
        }
        cause::counting(self.state, place, edge, at)
    }

    fn note(&mut self, place: VertexPlace, hop: &Hop) {
        let (source, target) = match hop.direction.reverse {
            false => (place, hop.far),
            true => (hop.far, place),
        };
        let kind = hop.direction.kind.clone();
        self.used.insert((source, kind, target, hop.version.stamp, hop.version.user));
    }

    /// The reached vertices, and the relations between them, each in order.
    pub fn lineage(
        &mut self,
        root: &VertexName,
        roots: &[VertexPlace],
    ) -> Result<(Vec<Step>, Vec<Relation>)> {
        let place = VertexPlace::of(root);
        // Ranks of a job that took no part would only distract.
        let part = |key: &Used| &*key.1 == "contains";
        let Walk { used, depths, .. } = self;
        // The limit may have kept an end of a walked relation out.
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
            self.limits.step()?;
            let name = self.state.name(*far)?;
            names.insert(*far, name.clone());
            vertices.insert((*far != place, *depth, name));
        }
        let mut edges = self.relations(&names)?;
        edges.sort_by(|a, b| (a.stamp, &a.near, &a.kind, &a.far).cmp(&(b.stamp, &b.near, &b.kind, &b.far)));
        let vertices = vertices.into_iter().map(|(_, depth, name)| Step { name, depth }).collect();
        Ok((vertices, edges))
    }

    /// The walked relations between these vertices, each from its source.
    fn relations(&mut self, names: &HashMap<VertexPlace, VertexName>) -> Result<Vec<Relation>> {
        // By source: if many relations of one were walked, all are read together.
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
                self.limits.step()?;
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

/// Whether a place and time come for the first time with so small a number of hops.
fn is_first(again: &mut HashMap<Come, u32>, key: Come, depth: u32) -> bool {
    match again.entry(key) {
        Entry::Occupied(known) if *known.get() <= depth => false,
        Entry::Occupied(mut known) => {
            known.insert(depth);
            true
        }
        Entry::Vacant(free) => {
            free.insert(depth);
            true
        }
    }
}
