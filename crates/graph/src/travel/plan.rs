//! The plan of a traversal: its start, its hops, and the repeated part.

use fieldstone_core::value::Test;
use fieldstone_core::{Error, Result};
use fieldstone_format::graph_message::plan::{WalkHop, WalkPlan, WalkTest};

use super::{Travel, TravelStep, VertexTest};
use crate::state::END;
use crate::vocabulary::{Direction, Vocabulary};

/// A checked traversal.
#[derive(Debug, Clone)]
pub struct TravelPlan {
    /// The moment of the request.
    pub at: u64,
    /// See [`Travel::causal`].
    pub causal: bool,
    /// See [`Travel::jobs`].
    pub jobs: bool,
    /// Maximum number of results.
    pub limit: usize,
    /// The vertices where it starts.
    pub start: VertexTest,
    /// Further tests of the start.
    pub starting: Point,
    /// The hops, in order.
    pub hops: Vec<Hop>,
    /// The number of hops, from the first on, that are repeated, and the maximum number of rounds.
    pub repeat: Option<(usize, u32)>,
    /// Whether the result is whole paths instead of vertices.
    pub paths: bool,
}

/// One hop: along relations, to vertices.
#[derive(Debug, Clone, Default)]
pub struct Hop {
    /// Whether it leads from each vertex to itself: a place for tests after a repeat.
    pub stays: bool,
    /// Types, named from this end; empty: all.
    pub directions: Vec<Direction>,
    /// As in [`TravelStep::Edges`].
    pub versions: Option<(u64, u64)>,
    /// Tests of the relations.
    pub edges: Vec<(String, Test)>,
    /// The tests of the vertices at the far end.
    pub point: Point,
}

/// A set of the walk: the tests of its vertices, and whether they are returned.
#[derive(Debug, Clone, Default)]
pub struct Point {
    /// The tests that its vertices pass.
    pub tests: Vec<VertexTest>,
    /// Whether they are returned.
    pub returned: bool,
}

impl Hop {
    /// Whether it may lead from data to their writers or readers: then a write that replaced the data hides
    /// others.
    pub fn follows_data(&self) -> bool {
        self.takes("write", true) || self.takes("read", true)
    }

    /// Whether it takes relations of a type, as seen from one end.
    pub fn takes(&self, kind: &str, reverse: bool) -> bool {
        let same = |direction: &Direction| *direction.kind == *kind && direction.reverse == reverse;
        self.directions.is_empty() || self.directions.iter().any(same)
    }
}

fn refused(message: &str, hint: &str) -> Error {
    Error::invalid(message.to_owned()).with_hint(hint.to_owned())
}

impl Travel {
    /// Checks the traversal against a vocabulary.
    pub fn plan(&self, vocabulary: &Vocabulary) -> Result<TravelPlan> {
        let mut steps = self.steps.iter();
        let Some(TravelStep::Vertices(start)) = steps.next() else {
            let hint = "begin with v, which selects the first vertices";
            return Err(refused("the traversal has no start", hint));
        };
        let mut plan = TravelPlan {
            at: self.at.unwrap_or(END),
            causal: self.causal,
            jobs: self.jobs,
            limit: self.limit.unwrap_or(usize::MAX),
            start: start.clone(),
            starting: Point::default(),
            hops: Vec::new(),
            repeat: None,
            paths: false,
        };
        for step in steps {
            plan.add(step, vocabulary)?;
        }
        if plan.paths && plan.returns() {
            let hint = "whole paths hold every vertex on the way: leave out rtn or return_fp";
            return Err(refused("a traversal cannot have both rtn and return_fp", hint));
        }
        Ok(plan)
    }
}

impl TravelPlan {
    fn add(&mut self, step: &TravelStep, vocabulary: &Vocabulary) -> Result<()> {
        if self.paths {
            return Err(refused("return_fp is not the last step", "end with return_fp"));
        }
        match step {
            TravelStep::Edges { kinds, versions } => {
                let directions = kinds.iter().map(|kind| vocabulary.direction(kind)).collect();
                self.hops.push(Hop { directions, versions: *versions, ..Hop::default() });
            }
            // `v` without a test changes nothing.
            TravelStep::Vertices(test) if *test == VertexTest::default() => {}
            TravelStep::Vertices(test) => self.test(test.clone()),
            TravelStep::VertexProperty(name, test) => {
                let tests = vec![(name.clone(), test.clone())];
                self.test(VertexTest { tests, ..VertexTest::default() });
            }
            TravelStep::EdgeProperty(name, test) => {
                let open = self.body() < self.hops.len();
                let Some(hop) = self.hops.last_mut().filter(|hop| open && !hop.stays) else {
                    return Err(refused(
                        "ea has no e before it",
                        "ea tests the relations of the e right before it",
                    ));
                };
                hop.edges.push((name.clone(), test.clone()));
            }
            TravelStep::Return => self.point().returned = true,
            TravelStep::Repeat(most) => {
                if self.repeat.is_some() {
                    let hint = "one repeat covers every e since the start";
                    return Err(refused("a traversal can have only one repeat", hint));
                }
                if self.hops.is_empty() {
                    return Err(refused("repeat has no e before it", "repeat follows the e before it again"));
                }
                self.repeat = Some((self.hops.len(), most.unwrap_or(u32::MAX)));
            }
            TravelStep::FullPaths => self.paths = true,
        }
        Ok(())
    }

    fn test(&mut self, test: VertexTest) {
        self.point().tests.push(test);
    }

    /// The set that the next test applies to.
    fn point(&mut self) -> &mut Point {
        if self.repeat.is_some() && self.body() == self.hops.len() {
            // A test after a repeat need not hold in every round.
            self.hops.push(Hop { stays: true, ..Hop::default() });
        }
        self.hops.last_mut().map_or(&mut self.starting, |hop| &mut hop.point)
    }

    /// The i-th set of the walk: 0 is the start, i the far ends of the i-th hop.
    pub fn set(&self, i: usize) -> &Point {
        i.checked_sub(1).and_then(|hop| self.hops.get(hop)).map_or(&self.starting, |hop| &hop.point)
    }

    /// Whether the traversal returns sets other than the last.
    pub fn returns(&self) -> bool {
        (0..=self.hops.len()).any(|i| self.set(i).returned)
    }

    /// Hops that are repeated.
    pub fn body(&self) -> usize {
        self.repeat.map_or(0, |(hops, _)| hops)
    }

    /// Whether there are no tests of relations and vertices.
    pub fn is_plain(&self) -> bool {
        let plain = |hop: &Hop| {
            !hop.stays && hop.versions.is_none() && hop.edges.is_empty() && hop.point.tests.is_empty()
        };
        !(self.causal || self.jobs || self.paths || self.returns()) && self.hops.iter().all(plain)
    }
}

impl TravelPlan {
    /// The part that is sent to slots.
    pub fn to_slots(&self) -> WalkPlan {
        let hop = |hop: &Hop| WalkHop {
            stays: hop.stays,
            directions: hop.directions.iter().map(|d| (d.kind.clone(), d.reverse)).collect(),
            versions: hop.versions,
            edges: hop.edges.clone(),
            tests: hop.point.tests.iter().map(to_slots).collect(),
        };
        WalkPlan {
            at: self.at,
            causal: self.causal,
            jobs: self.jobs,
            linked: self.paths || self.returns(),
            starting: self.starting.tests.iter().map(to_slots).collect(),
            hops: self.hops.iter().map(hop).collect(),
            repeat: self.repeat.map(|(hops, most)| (hops as u32, most)),
        }
    }

    /// The plan in a message to a slot; Corrupt if it is not a valid plan.
    pub fn of_message(plan: WalkPlan) -> Result<TravelPlan> {
        let WalkPlan { at, causal, jobs, starting, hops, repeat, .. } = plan;
        if repeat.is_some_and(|(body, _)| body == 0 || body as usize > hops.len()) {
            return Err(Error::corrupt("a plan repeats hops that it does not have"));
        }
        let point = |tests: Vec<WalkTest>| Point {
            tests: tests.into_iter().map(of_message).collect(),
            returned: false,
        };
        let hop = |hop: WalkHop| Hop {
            stays: hop.stays,
            directions: hop
                .directions
                .into_iter()
                .map(|(kind, reverse)| Direction { kind, reverse })
                .collect(),
            versions: hop.versions,
            edges: hop.edges,
            point: point(hop.tests),
        };
        Ok(TravelPlan {
            at,
            causal,
            jobs,
            limit: usize::MAX,
            start: VertexTest::default(),
            starting: point(starting),
            hops: hops.into_iter().map(hop).collect(),
            repeat: repeat.map(|(hops, most)| (hops as usize, most)),
            paths: false,
        })
    }

    /// Whether it needs types and ids of the vertices that it passes.
    pub fn asks_for_names(&self) -> bool {
        self.jobs || (0..=self.hops.len()).any(|i| !self.set(i).tests.is_empty())
    }
}

fn to_slots(test: &VertexTest) -> WalkTest {
    let VertexTest { named, kind, tests, versions } = test.clone();
    WalkTest { named, kind, tests, versions }
}

fn of_message(test: WalkTest) -> VertexTest {
    let WalkTest { named, kind, tests, versions } = test;
    VertexTest { named, kind, tests, versions }
}
