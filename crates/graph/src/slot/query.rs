//! A traversal as one slot has it: the vertices of its sets that are at home here, and the relations that are here.
//!
//! | task | where | |
//! |---|---|---|
//! | `Vertex` | home of a vertex of the frontier | asks the slots that have relations of it |
//! | `Expand` | a slot that has some | walks them, and sends what they lead to home |
//! | `Reach` | home of what was reached | tests it, and keeps it for the next hop, once |
//!
//! What must be known of all relations of a vertex that several slots have (when it was replaced; its job; its
//! processes) is gathered before its task goes on.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use fieldstone_core::env::Clock;
use fieldstone_core::{Error, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_message::Message;
use fieldstone_format::graph_message::walk::{Asked, Expansion, Reaching, SlotStep, WalkLink, WalkNode};
use fieldstone_format::graph_segment::VertexPlace;

use super::shelf::SplitTable;
use crate::partition::{Partition, Partitioner, SlotNumber, Splits};
use crate::state::{Edge, GraphState};
use crate::travel::expand::{Expander, Moment};
use crate::travel::plan::TravelPlan;

/// Relations that are read before their step, at most.
const AHEAD_MAX: usize = 1 << 20;
/// Vertices of one message.
const TOGETHER: usize = 1000;

/// How hops follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// A hop begins when the last one has ended everywhere; whoever waits for that reads ahead.
    StepsAhead,
    /// The same; who waits does nothing.
    Steps,
    /// Each vertex goes on when it is reached.
    Free,
}

/// What a query needs of its slot.
pub struct SlotSide<'a> {
    pub number: u32,
    pub partitioner: &'a dyn Partitioner,
    pub clock: &'a dyn Clock,
    pub delay: u64,
}

/// Something to do.
#[derive(Debug)]
enum Task {
    Vertex {
        vertex: VertexPlace,
        moments: Vec<Moment>,
        hop: u32,
        round: u32,
    },
    Read {
        vertex: VertexPlace,
        node: VertexPlace,
        moments: Vec<Moment>,
        hop: u32,
        round: u32,
    },
    Expand {
        hop: u32,
        round: u32,
        expansion: Expansion,
    },
    Reach {
        set: u32,
        round: u32,
        reaching: Reaching,
    },
    /// The vertex stands for itself, or is the job that stands for it.
    Arrive {
        set: u32,
        round: u32,
        reaching: Reaching,
    },
    /// What was gathered for a task is there.
    Gathered {
        found: Vec<(u128, Option<VertexName>)>,
        then: Box<Task>,
    },
}

/// What is gathered from several slots, and what is done then.
#[derive(Debug)]
struct Gathering {
    left: usize,
    found: Vec<(u128, Option<VertexName>)>,
    then: Task,
}

/// A traversal in one slot. See the module.
#[derive(Debug)]
pub struct SlotQuery {
    pub asker: u32,
    pacing: Pacing,
    linked: bool,
    names: bool,
    splits: Arc<SplitTable>,
    expander: Expander,
    nodes: HashMap<(u32, VertexPlace, Moment), u32>,
    /// New vertices of each set and round, which wait for their hop. Those of a round that has begun elsewhere may come
    /// before it begins here.
    fresh: BTreeMap<(u32, u32), Vec<(VertexPlace, Moment)>>,
    links: Vec<WalkLink>,
    steps: BTreeMap<(u32, u32), SlotStep>,
    /// The step that was begun last: round, hop.
    last: (u32, u32),
    tasks: VecDeque<Task>,
    gatherings: HashMap<u64, Gathering>,
    next: u64,
    /// What was sent home already, and in which round.
    forwarded: HashMap<(u32, VertexPlace, Moment), u32>,
    /// Relations that were read before their step.
    ahead: HashMap<(u32, VertexPlace), Vec<Edge>>,
    /// How many vertices of a waiting set and round were looked at for that.
    ahead_of: HashMap<(u32, u32), usize>,
    reach: BTreeMap<(u32, u32, u32), Vec<Reaching>>,
    expand: BTreeMap<(u32, u32, u32), Vec<Expansion>>,
    others: Vec<(u32, Message)>,
    sent: Vec<u64>,
    received: Vec<u64>,
    /// The asker knows of all that was sent and received.
    reported: bool,
    /// It has no end any more but the failure that the asker is sent.
    failed: bool,
}

fn named(plan: &TravelPlan, hop: u32) -> Result<usize> {
    let known = (hop as usize) < plan.hops.len();
    if known { Ok(hop as usize) } else { Err(Error::corrupt("a message names a hop that is not walked")) }
}

impl SlotQuery {
    /// A traversal that begins.
    pub fn new(
        (asker, slots): (u32, usize),
        pacing: Pacing,
        plan: TravelPlan,
        linked: bool,
        state: GraphState,
        splits: Arc<SplitTable>,
    ) -> SlotQuery {
        let names = plan.asks_for_names();
        let expander = Expander::new(Arc::new(state), Arc::new(plan));
        SlotQuery {
            asker,
            pacing,
            linked,
            names,
            splits,
            expander,
            nodes: HashMap::new(),
            fresh: BTreeMap::new(),
            links: Vec::new(),
            steps: BTreeMap::new(),
            last: (0, 0),
            tasks: VecDeque::new(),
            gatherings: HashMap::new(),
            next: 0,
            forwarded: HashMap::new(),
            ahead: HashMap::new(),
            ahead_of: HashMap::new(),
            reach: BTreeMap::new(),
            expand: BTreeMap::new(),
            others: Vec::new(),
            sent: vec![0; slots + 1],
            received: vec![0; slots + 1],
            reported: true,
            failed: false,
        }
    }

    /// Takes a message of the traversal, and does what follows from it.
    pub fn take(&mut self, from: u32, message: Message, id: u64, side: &SlotSide<'_>) -> Result<()> {
        let taken = self.take_one(from, message, id, side);
        self.failed |= taken.is_err();
        taken
    }

    fn take_one(&mut self, from: u32, message: Message, id: u64, side: &SlotSide<'_>) -> Result<()> {
        let last = self.received.len() - 1;
        self.received[(from as usize).min(last)] += 1;
        self.reported = false;
        match message {
            Message::Step { hop, round, .. } => self.begin_step(hop, round)?,
            Message::Reach { set, round, reached, .. } => {
                let task = |reaching| Task::Reach { set, round, reaching };
                self.tasks.extend(reached.into_iter().map(task));
            }
            Message::Expand { hop, round, vertices, .. } => {
                for expansion in vertices {
                    // A process of a job is begun at its home; elsewhere its part is walked.
                    let home = u32::from(side.partitioner.home(expansion.vertex)) == side.number;
                    self.tasks.push_back(match home {
                        true => {
                            let Expansion { vertex, node, moments, .. } = expansion;
                            Task::Read { vertex, node, moments, hop, round }
                        }
                        false => Task::Expand { hop, round, expansion },
                    });
                }
            }
            Message::Gather { token, what, vertex, .. } => {
                let (found, names) = self.answer(what, vertex)?.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
                let names = names.into_iter().flatten().collect();
                self.others.push((from, Message::Gathered { query: id, token, found, names }));
            }
            Message::Gathered { token, found, names, .. } => {
                let mut names = names.into_iter();
                let found = found.into_iter().map(|item| (item, names.next())).collect();
                self.gathered(token, found);
            }
            other => return Err(Error::internal(format!("a traversal was sent {other:?}"))),
        }
        self.work(id, side)
    }

    /// The vertices that a hop begins with.
    fn begin_step(&mut self, hop: u32, round: u32) -> Result<()> {
        let plan = self.expander.plan.clone();
        let body = plan.body() as u32;
        let i = named(&plan, hop)?;
        self.last = (round, hop);
        let mut frontier: Vec<(VertexPlace, Moment)> = if body > 0 && hop == body && round == 0 {
            let of_body = self.nodes.keys().filter(|(set, ..)| *set == body);
            of_body.map(|(_, vertex, moment)| (*vertex, *moment)).collect()
        } else {
            let waiting = match hop == 0 {
                true if round > 1 => (body, round - 1),
                true => (0, 1),
                false => (i as u32, round),
            };
            self.ahead_of.remove(&waiting);
            self.fresh.remove(&waiting).unwrap_or_default()
        };
        frontier.sort_unstable();
        for same in frontier.chunk_by(|a, b| a.0 == b.0) {
            let moments = same.iter().map(|(_, moment)| *moment).collect();
            self.tasks.push_back(Task::Vertex { vertex: same[0].0, moments, hop, round });
        }
        Ok(())
    }

    fn work(&mut self, id: u64, side: &SlotSide<'_>) -> Result<()> {
        while let Some(task) = self.tasks.pop_front() {
            match task {
                Task::Vertex { vertex, moments, hop, round } => {
                    self.vertex(id, (vertex, moments), (hop, round), side)?;
                }
                Task::Read { vertex, node, moments, hop, round } => {
                    self.read(id, (vertex, node), moments, (hop, round), side)?;
                }
                Task::Expand { hop, round, expansion } => self.walk(expansion, (hop, round), side)?,
                Task::Reach { set, round, reaching } => self.reach(id, (set, round), reaching, side)?,
                Task::Arrive { set, round, reaching } => self.arrive((set, round), &reaching, side)?,
                Task::Gathered { found, then } => self.go_on(found, *then, side),
            }
        }
        Ok(())
    }

    fn step(&mut self, hop: u32, round: u32) -> &mut SlotStep {
        self.steps.entry((round, hop)).or_insert(SlotStep { hop, round, ..SlotStep::default() })
    }

    fn slots_of(&self, vertex: VertexPlace, side: &SlotSide<'_>) -> Vec<u32> {
        let none = Splits::default();
        let splits = self.splits.get(&vertex).map_or(&none, |splitting| &splitting.known);
        side.partitioner.slots_of(vertex, splits).into_iter().map(u32::from).collect()
    }

    /// A vertex of the frontier, at its home.
    fn vertex(
        &mut self,
        id: u64,
        (vertex, moments): (VertexPlace, Vec<Moment>),
        (hop, round): (u32, u32),
        side: &SlotSide<'_>,
    ) -> Result<()> {
        let plan = self.expander.plan.clone();
        let i = named(&plan, hop)?;
        self.step(hop, round).frontier += moments.len() as u64;
        let number = self.expander.number(vertex);
        if plan.hops[i].stays {
            for moment in moments {
                let name = if self.names { Some(self.expander.name(number)?) } else { None };
                let from = self.linked.then_some((vertex, moment));
                let reaching = Reaching { vertex, moment, name, from };
                self.tasks.push_back(Task::Arrive { set: hop + 1, round, reaching });
            }
            return Ok(());
        }
        let task = Task::Read { vertex, node: vertex, moments, hop, round };
        if plan.jobs && &*self.expander.name(number)?.kind == "job" {
            return self.gather(id, Asked::Processes, vertex, task, side);
        }
        self.tasks.push_back(task);
        Ok(())
    }

    /// Asks the slots that have relations of a vertex, this one among them.
    fn read(
        &mut self,
        id: u64,
        (vertex, node): (VertexPlace, VertexPlace),
        moments: Vec<Moment>,
        (hop, round): (u32, u32),
        side: &SlotSide<'_>,
    ) -> Result<()> {
        let plan = self.expander.plan.clone();
        let replaces = plan.causal && plan.hops[named(&plan, hop)?].follows_data();
        if replaces && self.slots_of(vertex, side).len() > 1 {
            let (replacing, splits) = (None, Vec::new());
            let expansion = Expansion { vertex, node, moments, replacing, splits };
            return self.gather(id, Asked::Replacing, vertex, Task::Expand { hop, round, expansion }, side);
        }
        self.fan_out(
            Expansion { vertex, node, moments, replacing: None, splits: Vec::new() },
            (hop, round),
            side,
        );
        Ok(())
    }

    fn fan_out(&mut self, mut expansion: Expansion, (hop, round): (u32, u32), side: &SlotSide<'_>) {
        let vertex = expansion.vertex;
        if let Some(splitting) = self.splits.get(&vertex) {
            expansion.splits = splitting.known.partitions().map(Partition::number).collect();
        }
        for slot in self.slots_of(vertex, side) {
            let expansion = expansion.clone();
            if slot == side.number {
                self.tasks.push_back(Task::Expand { hop, round, expansion });
            } else {
                self.step(hop, round).requests += 1;
                self.expand.entry((slot, hop, round)).or_default().push(expansion);
            }
        }
    }

    /// Walks the relations of a vertex that are here.
    fn walk(&mut self, expansion: Expansion, (hop, round): (u32, u32), side: &SlotSide<'_>) -> Result<()> {
        let plan = self.expander.plan.clone();
        let i = named(&plan, hop)?;
        self.pass_on(&expansion, (hop, round), side);
        let Expansion { vertex, node, moments, replacing, .. } = expansion;
        let begun = side.clock.monotonic();
        let edges = match self.ahead.remove(&(hop, vertex)) {
            Some(edges) => edges,
            None => self.edges(vertex, i, side)?,
        };
        let replacing = match replacing {
            Some(replacing) => replacing,
            None => self.expander.replacing(vertex, &edges)?,
        };
        let taken = |edge: &&Edge| plan.hops[i].takes(&edge.direction.kind, edge.direction.reverse);
        let relations = edges.iter().filter(taken).count() as u64;
        let mut found = Vec::new();
        self.expander.along((vertex, &edges, &replacing), &moments, &plan.hops[i], &mut found)?;
        let mut last: Option<(VertexPlace, bool, Arc<str>)> = None;
        let mut forwards = 0;
        for (m, taken) in found {
            let far = self.expander.place(taken.far);
            let home = u32::from(side.partitioner.home(far));
            let mut name = None;
            if let Some((_, edge)) = &taken.way {
                let (direction, version) = (&edge.direction, edge.versions.first());
                let same = |(place, reverse, kind): &(VertexPlace, bool, Arc<str>)| {
                    (*place, *reverse) == (far, direction.reverse) && *kind == direction.kind
                };
                if !last.as_ref().is_some_and(same) {
                    forwards += u64::from(home != side.number);
                    last = Some((far, direction.reverse, direction.kind.clone()));
                }
                if let Some(version) = version.filter(|_| self.names) {
                    name = Some(self.expander.state.far_name(version)?);
                }
            }
            let from = self.linked.then(|| (node, moments[m]));
            let reaching = Reaching { vertex: far, moment: taken.moment, name, from };
            self.send_home(home, (hop + 1, round), reaching, side);
        }
        let step = self.step(hop, round);
        step.relations += relations;
        step.forwards += forwards;
        step.edge_time += side.clock.monotonic().saturating_sub(begun);
        Ok(())
    }

    fn send_home(&mut self, home: u32, (set, round): (u32, u32), reaching: Reaching, side: &SlotSide<'_>) {
        if !self.linked {
            let key = (set, reaching.vertex, reaching.moment);
            match self.forwarded.get_mut(&key) {
                Some(before) if *before <= round => return,
                Some(before) => *before = round,
                None => drop(self.forwarded.insert(key, round)),
            }
        }
        if home == side.number {
            self.tasks.push_back(Task::Reach { set, round, reaching });
        } else {
            self.reach.entry((home, set, round)).or_default().push(reaching);
        }
    }

    /// The relations of a vertex that are here and were not given away.
    fn edges(&self, vertex: VertexPlace, i: usize, side: &SlotSide<'_>) -> Result<Vec<Edge>> {
        if side.delay > 0 {
            side.clock.sleep(side.delay);
        }
        let mut edges = self.expander.edges(vertex, &self.expander.plan.hops[i])?;
        if let Some(finished) = self.splits.get(&vertex).map(|s| &s.finished).filter(|f| !f.is_empty()) {
            let slot = side.number as SlotNumber;
            edges.retain(|edge| side.partitioner.shows(slot, vertex, edge.far, finished));
        }
        Ok(edges)
    }

    /// Sends a request on to slots that who asked did not know of: something was split since.
    fn pass_on(&mut self, expansion: &Expansion, (hop, round): (u32, u32), side: &SlotSide<'_>) {
        let Some(own) = self.splits.get(&expansion.vertex) else { return };
        let asked: Splits = expansion.splits.iter().filter_map(|n| Partition::of_number(*n)).collect();
        if own.known.partitions().all(|partition| asked.has(partition)) {
            return;
        }
        let mut all = asked.clone();
        all.merge(&own.known);
        let known = side.partitioner.slots_of(expansion.vertex, &asked);
        let splits: Vec<u32> = all.partitions().map(Partition::number).collect();
        for slot in side.partitioner.slots_of(expansion.vertex, &all) {
            if !known.contains(&slot) && u32::from(slot) != side.number {
                self.step(hop, round).requests += 1;
                let expansion = Expansion { splits: splits.clone(), ..expansion.clone() };
                self.expand.entry((slot.into(), hop, round)).or_default().push(expansion);
            }
        }
    }

    /// A vertex that was reached, at its home.
    fn reach(
        &mut self,
        id: u64,
        (set, round): (u32, u32),
        reaching: Reaching,
        side: &SlotSide<'_>,
    ) -> Result<()> {
        let process = reaching.name.as_ref().is_some_and(|name| &*name.kind == "process");
        if self.expander.plan.jobs && process {
            let vertex = reaching.vertex;
            return self.gather(id, Asked::Jobs, vertex, Task::Reach { set, round, reaching }, side);
        }
        self.arrive((set, round), &reaching, side)
    }

    fn arrive(&mut self, (set, round): (u32, u32), reaching: &Reaching, side: &SlotSide<'_>) -> Result<()> {
        let Reaching { vertex, moment, name, from } = reaching;
        let plan = self.expander.plan.clone();
        if set as usize > plan.hops.len() {
            return Err(Error::corrupt("a message names a set that is not walked"));
        }
        let begun = side.clock.monotonic();
        let number = self.expander.number(*vertex);
        if let Some(name) = name {
            self.expander.named(number, name.clone());
        }
        let passes = self.expander.passes(number, set as usize)?;
        let before = self.nodes.get(&(set, *vertex, *moment)).copied();
        let new = passes && before.is_none_or(|before| round < before);
        if let Some(hop) = set.checked_sub(1) {
            let step = self.step(hop, round);
            step.vertex_time += side.clock.monotonic().saturating_sub(begun);
            step.reached += u64::from(passes && before.is_none());
        }
        if let Some(from) = from.filter(|_| passes && set > 0) {
            let body = plan.body() as u32;
            let before = if set == 1 && round > 1 { body } else { set - 1 };
            self.links.push(WalkLink { before, from, set, to: (*vertex, *moment) });
        }
        if !new {
            return Ok(());
        }
        self.nodes.insert((set, *vertex, *moment), round);
        if self.pacing != Pacing::Free {
            self.fresh.entry((set, round)).or_default().push((*vertex, *moment));
            return Ok(());
        }
        for (hop, round) in next_hops(&plan, set, round, before.is_none()) {
            let (vertex, moments) = (*vertex, vec![*moment]);
            self.tasks.push_back(Task::Vertex { vertex, moments, hop, round });
        }
        Ok(())
    }

    /// Gathers something of all relations of a vertex, and then does a task with it.
    fn gather(
        &mut self,
        id: u64,
        what: Asked,
        vertex: VertexPlace,
        then: Task,
        side: &SlotSide<'_>,
    ) -> Result<()> {
        self.next += 1;
        let (token, slots) = (self.next, self.slots_of(vertex, side));
        let found = self.answer(what, vertex)?;
        let left = slots.iter().filter(|slot| **slot != side.number).count();
        self.gatherings.insert(token, Gathering { left: left + 1, found: Vec::new(), then });
        for slot in slots.into_iter().filter(|slot| *slot != side.number) {
            self.others.push((slot, Message::Gather { query: id, token, what, vertex }));
        }
        self.gathered(token, found);
        Ok(())
    }

    fn answer(&self, what: Asked, vertex: VertexPlace) -> Result<Vec<(u128, Option<VertexName>)>> {
        Ok(match what {
            Asked::Replacing => {
                let writes = |kind: &str, reverse: bool| kind == "write" && reverse;
                let edges = self.expander.state.edges(vertex, &writes)?;
                let stamps = self.expander.replacing(vertex, &edges)?;
                stamps.into_iter().map(|stamp| (u128::from(stamp), None)).collect()
            }
            Asked::Jobs => {
                let jobs = self.expander.jobs(vertex)?;
                jobs.into_iter().map(|(name, place)| (place.0, Some(name))).collect()
            }
            Asked::Processes => {
                let processes = self.expander.processes(vertex)?;
                processes.into_iter().map(|place| (place.0, None)).collect()
            }
        })
    }

    fn gathered(&mut self, token: u64, found: Vec<(u128, Option<VertexName>)>) {
        let Some(gathering) = self.gatherings.get_mut(&token) else { return };
        gathering.found.extend(found);
        gathering.left -= 1;
        if gathering.left > 0 {
            return;
        }
        let Some(Gathering { mut found, then, .. }) = self.gatherings.remove(&token) else { return };
        found.sort_unstable();
        found.dedup_by(|a, b| a.0 == b.0);
        self.tasks.push_back(Task::Gathered { found, then: Box::new(then) });
    }

    /// What was gathered is there: the task goes on.
    fn go_on(&mut self, found: Vec<(u128, Option<VertexName>)>, then: Task, side: &SlotSide<'_>) {
        match then {
            Task::Expand { hop, round, mut expansion } => {
                expansion.replacing = Some(found.into_iter().map(|(stamp, _)| stamp as u64).collect());
                self.fan_out(expansion, (hop, round), side);
            }
            Task::Reach { set, round, mut reaching } => match found.into_iter().next() {
                None => self.tasks.push_back(Task::Arrive { set, round, reaching }),
                Some((job, name)) => {
                    (reaching.vertex, reaching.name) = (VertexPlace(job), name);
                    let home = u32::from(side.partitioner.home(reaching.vertex));
                    self.send_home(home, (set, round), reaching, side);
                }
            },
            Task::Read { vertex, node, moments, hop, round } => {
                for (process, _) in found {
                    let process = VertexPlace(process);
                    let home = u32::from(side.partitioner.home(process));
                    let moments = moments.clone();
                    if home == side.number {
                        self.tasks.push_back(Task::Read { vertex: process, node, moments, hop, round });
                    } else {
                        let (replacing, splits) = (None, Vec::new());
                        let expansion = Expansion { vertex: process, node, moments, replacing, splits };
                        self.expand.entry((home, hop, round)).or_default().push(expansion);
                    }
                }
                self.tasks.push_back(Task::Read { vertex, node, moments, hop, round });
            }
            other => self.tasks.push_back(other),
        }
    }

    /// Reads the relations of one vertex that waits for the next hop; says whether there may be more to read.
    pub fn read_ahead(&mut self, side: &SlotSide<'_>) -> Result<bool> {
        if self.pacing != Pacing::StepsAhead || self.ahead.len() >= AHEAD_MAX {
            return Ok(false);
        }
        let plan = self.expander.plan.clone();
        let body = plan.body() as u32;
        for ((set, round), waiting) in &self.fresh {
            let at = self.ahead_of.entry((*set, *round)).or_default();
            let (hop, round) = match *set {
                0 => (0, u32::from(body > 0)),
                set if body > 0 && set == body => (0, round + 1),
                set => (set, *round),
            };
            let stays = |hop: &u32| plan.hops.get(*hop as usize).is_none_or(|hop| hop.stays);
            let Some((vertex, _)) = waiting.get(*at).copied().filter(|_| !stays(&hop)) else { continue };
            *at += 1;
            if self.ahead.contains_key(&(hop, vertex)) {
                return Ok(true);
            }
            let begun = side.clock.monotonic();
            let edges = self.edges(vertex, hop as usize, side)?;
            self.ahead.insert((hop, vertex), edges);
            let step = self.step(hop, round);
            step.prefetched += 1;
            step.prefetch_time += side.clock.monotonic().saturating_sub(begun);
            return Ok(true);
        }
        Ok(false)
    }

    /// What goes out, each with the hop and round it is counted for.
    pub fn outgoing(&mut self, id: u64) -> Vec<(u32, (u32, u32), Message)> {
        let mut out = Vec::new();
        for ((to, set, round), reached) in std::mem::take(&mut self.reach) {
            let hop = set.saturating_sub(1);
            for part in reached.chunks(TOGETHER) {
                let reached = part.to_vec();
                out.push((to, (hop, round), Message::Reach { query: id, set, round, reached }));
            }
        }
        for ((to, hop, round), vertices) in std::mem::take(&mut self.expand) {
            for part in vertices.chunks(TOGETHER) {
                let vertices = part.to_vec();
                out.push((to, (hop, round), Message::Expand { query: id, hop, round, vertices }));
            }
        }
        let (round, hop) = self.last;
        out.extend(self.others.drain(..).map(|(to, message)| (to, (hop, round), message)));
        out
    }

    /// A frame of the traversal was sent.
    pub fn was_sent(&mut self, to: u32, (hop, round): (u32, u32), bytes: usize) {
        let last = self.sent.len() - 1;
        self.sent[(to as usize).min(last)] += 1;
        self.reported = false;
        let step = self.step(hop, round);
        step.frames += 1;
        step.bytes += bytes as u64;
    }

    /// What the asker does not know yet of frames that were sent and received.
    pub fn report(&mut self, id: u64) -> Option<Message> {
        // After a failure a report might come first, and the asker take what is there for all.
        if self.reported || self.failed {
            return None;
        }
        self.reported = true;
        let fresh = self.fresh.values().map(|waiting| waiting.len() as u64).sum();
        Some(Message::Report { query: id, sent: self.sent.clone(), received: self.received.clone(), fresh })
    }

    /// What came out of it here.
    pub fn collect(&self, id: u64) -> Message {
        let last = self.expander.plan.hops.len() as u32;
        let asked = |set: u32| self.linked || set == last;
        let nodes = self.nodes.iter().filter(|((set, ..), _)| asked(*set));
        let node = |((set, vertex, moment), round): (&(u32, VertexPlace, Moment), &u32)| WalkNode {
            set: *set,
            round: *round,
            vertex: *vertex,
            moment: *moment,
        };
        let steps = self.steps.values().copied().collect();
        Message::Collected { query: id, nodes: nodes.map(node).collect(), links: self.links.clone(), steps }
    }
}

/// The hops that begin at a vertex of a set, which was reached in a round, each with its own round.
fn next_hops(plan: &TravelPlan, set: u32, round: u32, first: bool) -> Vec<(u32, u32)> {
    let (body, hops) = (plan.body() as u32, plan.hops.len() as u32);
    let most = plan.repeat.map_or(0, |(_, most)| most);
    let mut next = Vec::new();
    if body == 0 || set > body {
        next.extend((set < hops).then_some((set, 0)));
    } else if set == 0 {
        next.extend((most > 0).then_some((0, 1)));
    } else if set < body {
        next.push((set, round));
    } else {
        next.extend((round < most).then_some((0, round + 1)));
        next.extend((first && body < hops).then_some((body, 0)));
    }
    next
}
