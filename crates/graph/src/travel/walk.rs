//! Walks sets of vertices, hop by hop.
//!
//! A set of the walk has nodes: a vertex and, by cause, a time. The walk continues from a node once, whatever
//! led to it. It records the links between nodes only if the plan needs them: for `rtn`, and for whole paths,
//! which are searched among the nodes that reach the end.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

use fieldstone_core::env::Clock;
use fieldstone_core::{Error, Result};
use fieldstone_format::graph_message::walk::{WalkLink, WalkNode};
use fieldstone_format::graph_segment::VertexPlace;

use super::expand::{Expander, Moment, Number};
use super::figures::StepFigures;
use super::plan::TravelPlan;

/// A vertex in one of the sets.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// The set: 0 is the start, i the far ends of the i-th hop.
    set: usize,
    vertex: Number,
    moment: Moment,
    /// The round in which it was reached first.
    round: u32,
}

/// The result of a walk.
#[derive(Debug)]
pub(crate) struct Reached {
    nodes: Vec<Node>,
    numbers: HashMap<(usize, Number, Moment), u32>,
    /// Links between nodes: from, to.
    links: Vec<(u32, u32)>,
    /// For each node, the least number of rounds until the walk reaches its end; none if it does not.
    ahead: Vec<Option<u32>>,
    pub figures: Vec<StepFigures>,
}

/// Walks sets; `None` if it read more than `most` vertices.
pub(super) fn walk(
    expander: &mut Expander,
    starts: &[VertexPlace],
    clock: &dyn Clock,
    most: u64,
) -> Result<Option<Reached>> {
    let plan = expander.plan.clone();
    let mut walk = SetWalk {
        expander,
        clock,
        most,
        linked: plan.returns() || plan.paths,
        reached: Reached {
            nodes: Vec::new(),
            numbers: HashMap::new(),
            links: Vec::new(),
            ahead: Vec::new(),
            figures: Vec::new(),
        },
    };
    if !walk.run(starts)? {
        return Ok(None);
    }
    let mut reached = walk.reached;
    if plan.returns() || plan.paths {
        reached.look_ahead(&plan);
    }
    Ok(Some(reached))
}

struct SetWalk<'a> {
    expander: &'a mut Expander,
    clock: &'a dyn Clock,
    /// Maximum number of vertices that are read.
    most: u64,
    linked: bool,
    reached: Reached,
}

impl SetWalk<'_> {
    fn run(&mut self, starts: &[VertexPlace]) -> Result<bool> {
        let plan = self.expander.plan.clone();
        let mut frontier = Vec::new();
        for place in starts {
            self.expander.limits.step()?;
            let vertex = self.expander.number(*place);
            let vertex = self.expander.stands_for(vertex)?;
            if self.expander.passes(vertex, 0)? {
                frontier.extend(self.node(0, vertex, None, 1).1);
            }
        }
        if let Some((hops, most)) = plan.repeat {
            for round in 1..=most {
                for i in 0..hops {
                    let Some(next) = self.step(frontier, i, round)? else { return Ok(false) };
                    frontier = next;
                }
                if frontier.is_empty() {
                    break;
                }
            }
            // The repeat returns the vertices of every round, not only those of the last.
            let of_body = |node: &Node| node.set == hops;
            let nodes = self.reached.nodes.iter().enumerate();
            frontier = nodes.filter(|(_, node)| of_body(node)).map(|(i, _)| i as u32).collect();
        }
        for i in plan.body()..plan.hops.len() {
            let Some(next) = self.step(frontier, i, 0)? else { return Ok(false) };
            frontier = next;
        }
        Ok(true)
    }

    /// The number of a node; the second value repeats it if the node is new.
    fn node(&mut self, set: usize, vertex: Number, moment: Moment, round: u32) -> (u32, Option<u32>) {
        let Reached { nodes, numbers, .. } = &mut self.reached;
        let next = nodes.len() as u32;
        let number = *numbers.entry((set, vertex, moment)).or_insert(next);
        if number < next {
            return (number, None);
        }
        nodes.push(Node { set, vertex, moment, round });
        (number, Some(number))
    }

    /// The new nodes that a hop reaches from a frontier; `None` if too much was read.
    fn step(&mut self, frontier: Vec<u32>, hop: usize, round: u32) -> Result<Option<Vec<u32>>> {
        let begun = self.clock.monotonic();
        let (vertices, relations) = (self.expander.vertices, self.expander.relations);
        let size = frontier.len() as u64;
        let mut reached = Vec::new();
        for (vertex, nodes) in self.by_vertex(&frontier) {
            // The caller then walks numbers of segments, which is faster for many vertices.
            if self.expander.vertices >= self.most {
                return Ok(None);
            }
            let times: Vec<Moment> = nodes.iter().map(|n| self.reached.nodes[*n as usize].moment).collect();
            for (m, taken) in self.expander.hop(vertex, &times, hop)? {
                let (number, new) = self.node(hop + 1, taken.far, taken.moment, round);
                reached.extend(new);
                if self.linked {
                    self.reached.links.push((nodes[m], number));
                }
            }
        }
        self.reached.figures.push(StepFigures {
            hop,
            round,
            frontier: size,
            reached: reached.len() as u64,
            vertices: self.expander.vertices - vertices,
            relations: self.expander.relations - relations,
            nanoseconds: self.clock.monotonic().saturating_sub(begun),
        });
        Ok(Some(reached))
    }

    /// The nodes of a frontier by vertex.
    fn by_vertex(&self, frontier: &[u32]) -> Vec<(Number, Vec<u32>)> {
        let mut nodes: Vec<(Number, u32)> =
            frontier.iter().map(|node| (self.reached.nodes[*node as usize].vertex, *node)).collect();
        nodes.sort_unstable();
        let mut all: Vec<(Number, Vec<u32>)> = Vec::with_capacity(nodes.len());
        for (vertex, node) in nodes {
            match all.last_mut() {
                Some((last, of_vertex)) if *last == vertex => of_vertex.push(node),
                _ => all.push((vertex, vec![node])),
            }
        }
        all
    }
}

impl Reached {
    /// The combined result of slots: nodes of sets, and the links between them if the plan needs those.
    pub fn of_slots(
        expander: &mut Expander,
        mut nodes: Vec<WalkNode>,
        links: &[WalkLink],
        figures: Vec<StepFigures>,
    ) -> Result<Reached> {
        // Sorted by set and round: of equal nodes from several slots the first has the least round.
        nodes.sort_unstable();
        let (numbers, links_of) = (HashMap::new(), Vec::with_capacity(links.len()));
        let mut reached = Reached { nodes: Vec::new(), numbers, links: links_of, ahead: Vec::new(), figures };
        for WalkNode { set, round, vertex, moment } in nodes {
            let node = Node { set: set as usize, vertex: expander.number(vertex), moment, round };
            let next = reached.nodes.len() as u32;
            if let Entry::Vacant(free) = reached.numbers.entry((node.set, node.vertex, moment)) {
                free.insert(next);
                reached.nodes.push(node);
            }
        }
        let missing = || Error::internal("a slot names a vertex that no slot has reached");
        for WalkLink { before, from, set, to } in links {
            let mut node = |set: u32, (vertex, moment): (VertexPlace, Moment)| {
                let key = (set as usize, expander.number(vertex), moment);
                reached.numbers.get(&key).copied().ok_or_else(missing)
            };
            let link = (node(*before, *from)?, node(*set, *to)?);
            reached.links.push(link);
        }
        let plan = expander.plan.clone();
        if plan.returns() || plan.paths {
            reached.look_ahead(&plan);
        }
        Ok(reached)
    }

    /// The distinct vertices of a set; if paths or sets are returned, those from which the walk reaches its
    /// end.
    pub fn set(&self, set: usize, plan: &TravelPlan) -> Vec<Number> {
        let reaches = |i: usize, node: &Node| {
            let most = plan.repeat.map_or(u32::MAX, |(_, most)| most);
            self.ahead.is_empty()
                || self.ahead[i].is_some_and(|ahead| node.round.saturating_add(ahead) <= most)
        };
        let nodes = self.nodes.iter().enumerate();
        let of_set = nodes.filter(|(i, node)| node.set == set && reaches(*i, node));
        let vertices: BTreeSet<Number> = of_set.map(|(_, node)| node.vertex).collect();
        vertices.into_iter().collect()
    }

    /// The least number of rounds from a vertex of a set to the end; `None` if the walk does not reach it.
    pub fn ahead(&self, set: usize, vertex: Number, moment: Moment) -> Option<u32> {
        let number = self.numbers.get(&(set, vertex, moment))?;
        self.ahead.get(*number as usize).copied().flatten()
    }

    /// The vertices where the walk starts.
    pub fn starts(&self) -> Vec<Number> {
        self.nodes.iter().filter(|node| node.set == 0).map(|node| node.vertex).collect()
    }

    /// Finds the nodes from which the walk reaches its end, backwards.
    fn look_ahead(&mut self, plan: &TravelPlan) {
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (from, to) in &self.links {
            before[*to as usize].push(*from);
        }
        self.ahead = vec![None; self.nodes.len()];
        let mut next: VecDeque<(u32, u32)> = VecDeque::new();
        let last = plan.hops.len();
        let ends = self.nodes.iter().enumerate().filter(|(_, node)| node.set == last);
        next.extend(ends.map(|(i, _)| (i as u32, 0)));
        // Links cost one round or none, so a queue with two ends visits nodes in the order of their rounds.
        while let Some((node, rounds)) = next.pop_front() {
            let known = &mut self.ahead[node as usize];
            if known.is_some_and(|known| known <= rounds) {
                continue;
            }
            *known = Some(rounds);
            for from in &before[node as usize] {
                // A link from the end of the body to its first set begins another round. The start begins the
                // first one.
                let (to, before) = (self.nodes[node as usize].set, self.nodes[*from as usize].set);
                match plan.body() > 0 && to == 1 && before == plan.body() {
                    true => next.push_back((*from, rounds + 1)),
                    false => next.push_front((*from, rounds)),
                }
            }
        }
    }
}
