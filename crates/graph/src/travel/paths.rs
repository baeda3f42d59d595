//! Whole paths, one after the other: depth first, among the nodes that reach the end.
//!
//! Hops outside a repeat give every path, in which a vertex may occur twice. A repeated part gives, at the
//! end of each round, the paths to that point; in these no vertex occurs twice. By cause, each path has its
//! own times.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::graph::VertexName;

use super::expand::{Expander, Moment, Number, TakenRelation};
use super::walk::Reached;
use crate::read::{Relation, relation};

/// A whole path.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// From the start to the end.
    pub vertices: Vec<VertexName>,
    /// The relations between them, one fewer; named from their near ends.
    pub edges: Vec<Relation>,
}

/// A stop on a path, with the continuations that were not tried yet.
struct Stop {
    vertex: Number,
    /// The continuations: set, round, relation. The last is tried first.
    open: Vec<(usize, u32, TakenRelation)>,
}

/// The parts from which paths are made.
pub(super) type WayParts = (Expander, Arc<Reached>);

/// Walks once more, over a readable state; `None` if that gives no paths.
pub(super) type WalkOnce = Box<dyn FnOnce() -> Result<Option<WayParts>> + Send + Sync>;

/// The paths of a walk.
pub struct Paths {
    expander: Expander,
    reached: Arc<Reached>,
    /// The remaining starts; the last is taken first.
    starts: Vec<Number>,
    way: Vec<Stop>,
    /// The relation that led to each stop except the first.
    taken: Vec<TakenRelation>,
    again: Option<WalkOnce>,
    /// The number of paths returned so far.
    given: usize,
    /// Paths that were returned before the walk was repeated, as text, each with its count.
    passed: HashMap<String, usize>,
}

impl std::fmt::Debug for Paths {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Paths").field("way", &self.way.len()).finish_non_exhaustive()
    }
}

impl Paths {
    pub(super) fn new(expander: Expander, reached: Arc<Reached>, again: Option<WalkOnce>) -> Paths {
        let mut starts = reached.starts();
        starts.reverse();
        let (way, taken, passed) = Default::default();
        Paths { expander, reached, starts, way, taken, again, given: 0, passed }
    }

    /// The next path; `None` at the end.
    pub fn next_path(&mut self) -> Result<Option<Path>> {
        loop {
            match self.advance() {
                Err(damage) if damage.kind() == ErrorKind::Corrupt => self.walk_again(damage)?,
                Ok(Some(path)) if self.was_given(&path) => {}
                outcome => {
                    self.given += usize::from(matches!(outcome, Ok(Some(_))));
                    return outcome;
                }
            }
        }
    }

    /// Whether a path was returned before the walk was repeated.
    fn was_given(&mut self, path: &Path) -> bool {
        if self.passed.is_empty() {
            return false;
        }
        let left = self.passed.get_mut(&format!("{path:?}")).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    /// Continues in the same walk, repeated over a readable state.
    fn walk_again(&mut self, damage: Error) -> Result<()> {
        let Some(again) = self.again.take() else { return Err(damage) };
        let mut passed: HashMap<String, usize> = HashMap::new();
        let mut before = Paths::new(self.expander.clone(), self.reached.clone(), None);
        for _ in 0..self.given {
            if let Some(path) = before.advance()? {
                *passed.entry(format!("{path:?}")).or_default() += 1;
            }
        }
        let Some((expander, reached)) = again()? else { return Err(damage) };
        *self = Paths { given: self.given, passed, ..Paths::new(expander, reached, None) };
        Ok(())
    }

    fn advance(&mut self) -> Result<Option<Path>> {
        loop {
            let next = match self.way.last_mut() {
                Some(stop) => stop.open.pop(),
                None => {
                    let Some(start) = self.starts.pop() else { return Ok(None) };
                    if self.enter(0, 1, start, None)? {
                        return self.path().map(Some);
                    }
                    continue;
                }
            };
            let Some((set, round, taken)) = next else {
                self.way.pop();
                self.taken.pop();
                continue;
            };
            let (vertex, moment) = (taken.far, taken.moment);
            self.taken.push(taken);
            if self.enter(set, round, vertex, moment)? {
                return self.path().map(Some);
            }
        }
    }

    /// Moves to a vertex; returns whether a path ends there.
    fn enter(&mut self, set: usize, round: u32, vertex: Number, moment: Moment) -> Result<bool> {
        let plan = self.expander.plan.clone();
        let (body, hops) = (plan.body(), plan.hops.len());
        let most = plan.repeat.map_or(u32::MAX, |(_, most)| most);
        let mut next: Vec<(usize, u32)> = Vec::new();
        let begins = set == 0 && (body == 0 || most > 0);
        if set < hops && (set != 0 || begins) {
            next.push((set, round));
        }
        if body > 0 && set == body && round < most {
            next.push((0, round + 1));
        }
        let mut open = Vec::new();
        for (hop, round) in next {
            for (_, taken) in self.expander.hop(vertex, &[moment], hop)? {
                let ahead = self.reached.ahead(hop + 1, taken.far, taken.moment);
                let ends = ahead.is_some_and(|ahead| hop >= body || round.saturating_add(ahead) <= most);
                let again = body > 0
                    && taken.way.is_some()
                    && (taken.far == vertex || self.way.iter().any(|stop| stop.vertex == taken.far));
                if ends && !again {
                    open.push((hop + 1, round, taken));
                }
            }
        }
        open.reverse();
        self.way.push(Stop { vertex, open });
        Ok(set == hops)
    }

    /// The present path.
    fn path(&self) -> Result<Path> {
        let state = &self.expander.state;
        let mut reader = state.reader();
        let mut path = Path { vertices: Vec::new(), edges: Vec::new() };
        for (i, stop) in self.way.iter().enumerate() {
            let taken = i.checked_sub(1).and_then(|before| self.taken.get(before));
            if let Some((near, edge)) = taken.and_then(|taken| taken.way.as_ref()) {
                let name = state.name(*near)?;
                for version in &edge.versions {
                    let row = reader.row(*near, edge, version)?;
                    path.edges.push(relation(&mut reader, &name, edge, version, row)?);
                }
            }
            if i == 0 || taken.is_some_and(|taken| taken.way.is_some()) {
                path.vertices.push(self.expander.name(stop.vertex)?);
            }
        }
        Ok(path)
    }
}
