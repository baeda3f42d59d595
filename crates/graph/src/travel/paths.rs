//! Whole ways, one after the other: depth first, among what reaches the end.
//!
//! Of hops as they are written every way is given, and a vertex may come twice in one. What is repeated gives, at the
//! end of each round, the ways to there; in these no vertex comes twice. By cause a way has its own times.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::graph::VertexName;

use super::expand::{Expander, Moment, Number, TakenRelation};
use super::walk::Reached;
use crate::read::{Relation, relation};

/// A whole way.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// From the start to the end.
    pub vertices: Vec<VertexName>,
    /// The relations between them, one fewer; as their near ends have them.
    pub edges: Vec<Relation>,
}

/// Somewhere on a way, with what is still to be tried from there.
struct Stop {
    vertex: Number,
    /// Where the way goes on: set, round, relation. The last is tried first.
    open: Vec<(usize, u32, TakenRelation)>,
}

/// What ways are made of.
pub(super) type WayParts = (Expander, Arc<Reached>);

/// Walks once more, over a state that can be read; `None` where that gives no ways.
pub(super) type WalkOnce = Box<dyn FnOnce() -> Result<Option<WayParts>> + Send + Sync>;

/// The ways of a walk.
pub struct Paths {
    expander: Expander,
    reached: Arc<Reached>,
    /// Starts that are left; the last is taken first.
    starts: Vec<Number>,
    way: Vec<Stop>,
    /// What led to each stop but the first.
    taken: Vec<TakenRelation>,
    again: Option<WalkOnce>,
    /// How many ways were given.
    given: usize,
    /// Ways that were given before the walk was made again, in text, with how often.
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

    /// The next way; `None` behind the last.
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

    /// Whether a way was given before the walk was made again.
    fn was_given(&mut self, path: &Path) -> bool {
        if self.passed.is_empty() {
            return false;
        }
        let left = self.passed.get_mut(&format!("{path:?}")).filter(|left| **left > 0);
        left.map(|left| *left -= 1).is_some()
    }

    /// Goes on in the same walk, made once more over a state that can be read.
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

    /// Goes to a vertex; says whether a way ends there.
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

    /// The way as it is now.
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
