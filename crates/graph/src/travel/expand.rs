//! Expands one hop from one vertex, and tests vertices.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_journal::session::Limits;

use super::plan::{Hop, Point, TravelPlan};
use crate::cause::{self, Course};
use crate::find::pass;
use crate::read::{self, Vertex};
use crate::state::{Edge, EdgeVersion, GraphState};

/// The time of a walk by cause; none as long as no relation has set it.
pub type Moment = Option<u64>;

/// A vertex in a walk, as a number.
pub type Number = u32;

/// A relation that a walk took, and where the walk continues.
#[derive(Debug, Clone)]
pub struct TakenRelation {
    /// The vertex at the far end.
    pub far: Number,
    /// The time that the walk carries there.
    pub moment: Moment,
    /// The end from which it was taken, its type, and the version; none if the walk stays.
    pub way: Option<(VertexPlace, Edge)>,
}

/// Reads a state for a plan, and counts its reads.
#[derive(Debug, Clone)]
pub struct Expander {
    /// The graph that is read.
    pub state: Arc<GraphState>,
    /// The plan that is followed.
    pub plan: Arc<TravelPlan>,
    /// The limits of the session that walks.
    pub limits: Limits,
    numbers: HashMap<VertexPlace, Number>,
    places: Vec<VertexPlace>,
    names: HashMap<Number, VertexName>,
    /// Whether a vertex passes the tests of a set.
    passing: HashMap<(usize, Number), bool>,
    /// Vertices that were read.
    pub vertices: u64,
    /// Relations that were read.
    pub relations: u64,
}

impl Expander {
    /// A reader that has read nothing yet.
    pub fn new(state: Arc<GraphState>, plan: Arc<TravelPlan>) -> Expander {
        Expander {
            state,
            plan,
            limits: Limits::default(),
            numbers: HashMap::new(),
            places: Vec::new(),
            names: HashMap::new(),
            passing: HashMap::new(),
            vertices: 0,
            relations: 0,
        }
    }

    /// The same reader, within the limits of a session.
    pub fn within(self, limits: Limits) -> Expander {
        Expander { limits, ..self }
    }

    /// The number of a vertex in this walk.
    pub fn number(&mut self, place: VertexPlace) -> Number {
        let places = &mut self.places;
        *self.numbers.entry(place).or_insert_with(|| {
            places.push(place);
            places.len() as Number - 1
        })
    }

    /// The vertex of a number.
    pub fn place(&self, number: Number) -> VertexPlace {
        self.places[number as usize]
    }

    /// Type and id of a vertex.
    pub fn name(&self, number: Number) -> Result<VertexName> {
        match self.names.get(&number) {
            Some(name) => Ok(name.clone()),
            None => self.state.name(self.place(number)),
        }
    }

    /// Records the name of a vertex that the state may not name: a slot has only what is placed there.
    pub fn named(&mut self, number: Number, name: VertexName) {
        self.names.insert(number, name);
    }

    /// If jobs count as one, the job of a process; otherwise the vertex itself.
    pub fn stands_for(&mut self, number: Number) -> Result<Number> {
        if !self.plan.jobs || &*self.name(number)?.kind != "process" {
            return Ok(number);
        }
        let job = self.jobs(self.place(number))?.into_iter().next();
        Ok(job.map_or(number, |(_, far)| self.number(far)))
    }

    /// The jobs that contain a process, in the order of their places.
    pub fn jobs(&self, place: VertexPlace) -> Result<Vec<(VertexName, VertexPlace)>> {
        let mut jobs = Vec::new();
        for edge in self.state.edges(place, &|kind, reverse| kind == "contains" && reverse)? {
            let there = match self.plan.causal {
                true => !cause::counting(&self.state, place, &edge, self.plan.at)?.is_empty(),
                false => self.state.current(place, &edge, self.plan.at)?.is_some(),
            };
            if let Some(version) = edge.versions.first().filter(|_| there) {
                jobs.push((self.state.reader().far_name(version)?, edge.far));
            }
        }
        Ok(jobs)
    }

    /// The processes that a job contains.
    pub fn processes(&self, place: VertexPlace) -> Result<Vec<VertexPlace>> {
        let processes = self.state.edges(place, &|kind, reverse| kind == "contains" && !reverse)?;
        Ok(processes.iter().map(|edge| edge.far).collect())
    }

    /// A job and its processes, if they count as one.
    fn parts(&self, place: VertexPlace) -> Result<Vec<VertexPlace>> {
        let mut parts = vec![place];
        if self.plan.jobs && &*self.state.name(place)?.kind == "job" {
            parts.extend(self.processes(place)?);
        }
        Ok(parts)
    }

    /// The continuations from a vertex by the i-th hop, from each of these moments; each with the index of
    /// its moment.
    pub fn hop(&mut self, from: Number, moments: &[Moment], i: usize) -> Result<Vec<(usize, TakenRelation)>> {
        self.limits.step()?;
        let plan = self.plan.clone();
        let hop = &plan.hops[i];
        let mut found = Vec::new();
        if hop.stays {
            for (m, moment) in moments.iter().enumerate() {
                found.push((m, TakenRelation { far: from, moment: *moment, way: None }));
            }
        } else {
            for place in self.parts(self.place(from))? {
                self.of_part(place, moments, hop, &mut found)?;
            }
        }
        let mut passed = Vec::with_capacity(found.len());
        for (m, mut taken) in found {
            self.limits.step()?;
            // Tests are about the job if jobs count as one, not about its processes.
            taken.far = self.stands_for(taken.far)?;
            if self.passes(taken.far, i + 1)? {
                passed.push((m, taken));
            }
        }
        Ok(passed)
    }

    fn of_part(
        &mut self,
        place: VertexPlace,
        moments: &[Moment],
        hop: &Hop,
        found: &mut Vec<(usize, TakenRelation)>,
    ) -> Result<()> {
        let edges = self.edges(place, hop)?;
        self.vertices += 1;
        let replacing = self.replacing(place, &edges)?;
        self.along((place, &edges, &replacing), moments, hop, found)
    }

    /// The relations of a vertex that a hop may take, and those that hide others from it.
    pub fn edges(&self, place: VertexPlace, hop: &Hop) -> Result<Vec<Edge>> {
        let hides = |kind: &str, reverse: bool| self.plan.causal && kind == "write" && reverse;
        // If jobs count as one, the relations inside a job lead nowhere.
        let joins = |kind: &str| self.plan.jobs && kind == "contains";
        self.state
            .edges(place, &|kind, reverse| hides(kind, reverse) || (hop.takes(kind, reverse) && !joins(kind)))
    }

    /// The continuations along the relations of a vertex, from each of these moments; `replacing`: the times
    /// when the vertex was replaced, ascending.
    pub fn along(
        &mut self,
        (place, edges, replacing): (VertexPlace, &[Edge], &[u64]),
        moments: &[Moment],
        hop: &Hop,
        found: &mut Vec<(usize, TakenRelation)>,
    ) -> Result<()> {
        for edge in edges {
            self.limits.step()?;
            let Edge { direction, far, .. } = edge;
            let joins = self.plan.jobs && &*direction.kind == "contains";
            self.relations += edge.versions.len() as u64;
            if joins || !hop.takes(&direction.kind, direction.reverse) {
                continue;
            }
            let counting = self.versions(place, edge, hop)?;
            let counting = self.tested(place, edge, counting, hop)?;
            let course = if self.plan.causal { cause::course(direction) } else { None };
            for (m, moment) in moments.iter().enumerate() {
                for (version, ended) in &counting {
                    let after = match course {
                        None => Some(*moment),
                        Some(course) => {
                            // No relation has set a time yet: the walk may use everything up to the moment,
                            // or from the beginning.
                            let time = moment.unwrap_or(match course {
                                Course::Up => self.plan.at,
                                Course::Down => 0,
                            });
                            let hiding = cause::hiding(replacing, time, course);
                            cause::goes_on(direction, course, (version, *ended), time, hiding).map(Some)
                        }
                    };
                    let Some(moment) = after else { continue };
                    let (direction, far) = (direction.clone(), *far);
                    let way = Some((place, Edge { direction, far, versions: vec![*version] }));
                    found.push((m, TakenRelation { far: self.number(far), moment, way }));
                }
            }
        }
        Ok(())
    }

    /// The times when a vertex was replaced, ascending.
    pub fn replacing(&self, place: VertexPlace, edges: &[Edge]) -> Result<Vec<u64>> {
        let mut replacing = Vec::new();
        let written = |edge: &&Edge| &*edge.direction.kind == "write" && edge.direction.reverse;
        for edge in edges.iter().filter(|edge| self.plan.causal && written(edge)) {
            let counting = cause::counting(&self.state, place, edge, self.plan.at)?;
            replacing.extend(counting.iter().filter(|(v, _)| v.replaces).map(|(v, _)| v.stamp));
        }
        replacing.sort_unstable();
        Ok(replacing)
    }

    /// The versions of a relation that a hop selects, each with the time when one of its ends was deleted.
    fn versions(
        &self,
        place: VertexPlace,
        edge: &Edge,
        hop: &Hop,
    ) -> Result<Vec<(EdgeVersion, Option<u64>)>> {
        let at = self.plan.at;
        let mut counting = match (self.plan.causal, hop.versions) {
            // By cause, versions that have ended still count for earlier times.
            (true, _) => cause::counting(&self.state, place, edge, at)?,
            (false, None) => {
                let current = self.state.current(place, edge, at)?;
                return Ok(current.map(|version| (*version, None)).into_iter().collect());
            }
            (false, Some(_)) => {
                let put = edge.versions.iter().filter(|version| !version.deleted && version.stamp <= at);
                put.map(|version| (*version, None)).collect()
            }
        };
        if let Some((from, to)) = hop.versions {
            counting.retain(|(version, _)| (from..=to).contains(&version.stamp));
        }
        Ok(counting)
    }

    /// Those versions whose properties pass.
    fn tested(
        &self,
        place: VertexPlace,
        edge: &Edge,
        versions: Vec<(EdgeVersion, Option<u64>)>,
        hop: &Hop,
    ) -> Result<Vec<(EdgeVersion, Option<u64>)>> {
        if hop.edges.is_empty() || versions.is_empty() {
            return Ok(versions);
        }
        let rows = self.state.reader().rows(place, edge, versions.iter().map(|(version, _)| version))?;
        let mut passing = Vec::new();
        for (version, (_, props)) in versions.into_iter().zip(rows) {
            // The properties are in another store, so the test cannot be decided here.
            if let Some(url) = self.state.archived_in(&version.0) {
                let what =
                    format_args!("the relation {} of {}", edge.direction.kind, self.state.name(place)?);
                return Err(read::moved(what, &url));
            }
            if pass(&hop.edges, |name| props.get(name))? {
                passing.push(version);
            }
        }
        Ok(passing)
    }

    /// Whether a vertex belongs to the i-th set.
    pub fn passes(&mut self, number: Number, i: usize) -> Result<bool> {
        let plan = self.plan.clone();
        let Point { tests, .. } = plan.set(i);
        if tests.is_empty() {
            return Ok(true);
        }
        // Many relations lead to the same vertex, whose test may read its properties.
        if let Some(known) = self.passing.get(&(i, number)) {
            return Ok(*known);
        }
        let name = self.name(number)?;
        let mut passes = true;
        for test in tests {
            passes = passes && test.passes(&self.state, &name, plan.at, plan.causal)?;
        }
        self.passing.insert((i, number), passes);
        Ok(passes)
    }
}

/// A vertex as a walk shows it: in its state at a moment, or as absent.
pub(super) fn shown(state: &GraphState, name: &VertexName, at: u64) -> Result<Vertex> {
    match read::shown(state, name, Some(at)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let (fixed, props) = (Vec::new(), Vec::new());
            let versions = state.vertex_versions(VertexPlace::of(name))?;
            let last = versions.iter().find(|version| version.stamp <= at);
            let (stamp, time, user) = last.map_or((0, 0, 0), |v| (v.stamp, v.time, v.user));
            Ok(Vertex { name: name.clone(), fixed, props, stamp, time, user, deleted: true, archived: None })
        }
        outcome => outcome,
    }
}
