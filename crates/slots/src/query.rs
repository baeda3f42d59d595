//! A traversal in one slot: the vertices of its sets whose home is this slot, and the relations that are
//! here.
//!
//! | task | in | action |
//! |---|---|---|
//! | `Vertex` | the home of a vertex of the frontier | asks the slots that have relations of it |
//! | `Expand` | a slot that has some of them | walks them, and sends the vertices at their far ends home |
//! | `Reach` | the home of a reached vertex | tests it, and keeps it for the next hop, once |
//!
//! Some tasks need facts from all relations of a vertex, which several slots may have: when it was replaced,
//! its job, its processes. `gather` collects these before such a task continues. Sending and results are in
//! `progress`.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use fieldstone_core::env::Clock;
use fieldstone_core::{Error, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_message::Message;
use fieldstone_format::graph_message::ends::{Address, QueryId};
use fieldstone_format::graph_message::walk::{Asked, Expansion, Reaching, SlotStep, WalkLink};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_graph::partition::{Partitioner, SlotNumber, Splits};
use fieldstone_graph::slot::SplitTable;
use fieldstone_graph::state::{Edge, GraphState};
use fieldstone_graph::travel::expand::{Expander, Moment};
use fieldstone_graph::travel::plan::TravelPlan;

/// The synchronisation of hops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pacing {
    /// A hop begins when the last one has ended everywhere; waiting slots read ahead.
    StepsAhead,
    /// The same, but waiting slots do nothing.
    Steps,
    /// Each vertex continues as soon as it is reached.
    Free,
}

/// The parts of its slot that a query needs.
pub struct SlotSide<'a> {
    pub number: SlotNumber,
    pub partitioner: &'a dyn Partitioner,
    pub clock: &'a dyn Clock,
    pub delay: u64,
}

/// A task of a traversal.
#[derive(Debug)]
pub(crate) enum Task {
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
    /// The vertex itself, or the job that stands for it, arrives.
    Arrive {
        set: u32,
        round: u32,
        reaching: Reaching,
    },
    /// The facts for a task are complete.
    Gathered {
        found: Vec<(u128, Option<VertexName>)>,
        then: Box<Task>,
    },
}

/// Facts gathered from several slots, and the task that needs them.
#[derive(Debug)]
pub(crate) struct Gathering {
    /// Number of slots that have not answered.
    pub left: usize,
    pub found: Vec<(u128, Option<VertexName>)>,
    pub then: Task,
}

/// A traversal in one slot; see the module's description.
#[derive(Debug)]
pub struct SlotQuery {
    pub asker: Address,
    pub(crate) pacing: Pacing,
    pub(crate) linked: bool,
    pub(crate) names: bool,
    pub(crate) splits: Arc<SplitTable>,
    pub(crate) expander: Expander,
    pub(crate) nodes: HashMap<(u32, VertexPlace, Moment), u32>,
    /// New vertices of each set and round, which wait for their hop. Those of a round that has begun
    /// elsewhere may arrive before it begins here.
    pub(crate) fresh: BTreeMap<(u32, u32), Vec<(VertexPlace, Moment)>>,
    pub(crate) links: Vec<WalkLink>,
    pub(crate) steps: BTreeMap<(u32, u32), SlotStep>,
    /// The last step that began: round, hop.
    pub(crate) last: (u32, u32),
    pub(crate) tasks: VecDeque<Task>,
    pub(crate) gatherings: HashMap<u64, Gathering>,
    pub(crate) next: u64,
    /// Vertices sent home already, with the round.
    pub(crate) forwarded: HashMap<(u32, VertexPlace, Moment), u32>,
    /// Relations that were read ahead of their step.
    pub(crate) ahead: HashMap<(u32, VertexPlace), Vec<Edge>>,
    /// Number of vertices of a waiting set and round that were considered for reading ahead.
    pub(crate) ahead_of: HashMap<(u32, u32), usize>,
    pub(crate) reach: BTreeMap<(SlotNumber, u32, u32), Vec<Reaching>>,
    pub(crate) expand: BTreeMap<(SlotNumber, u32, u32), Vec<Expansion>>,
    pub(crate) others: Vec<(Address, Message)>,
    pub(crate) sent: Vec<u64>,
    pub(crate) received: Vec<u64>,
    /// Whether the client knows of all frames sent and received.
    pub(crate) reported: bool,
    /// Whether the traversal has failed; the client gets the failure and no other end.
    pub(crate) failed: bool,
}

/// Counts a frame to or from an end: slots by number, then the client.
pub(crate) fn count(frames: &mut [u64], end: Address) {
    let place = match end {
        Address::Slot(number) => frames.get_mut(usize::from(number)),
        Address::Client(_) => frames.last_mut(),
    };
    place.into_iter().for_each(|frames| *frames += 1);
}

fn named(plan: &TravelPlan, hop: u32) -> Result<usize> {
    let known = (hop as usize) < plan.hops.len();
    if known { Ok(hop as usize) } else { Err(Error::corrupt("a message names a hop outside the plan")) }
}

impl SlotQuery {
    /// A traversal that begins.
    pub fn new(
        (asker, slots): (Address, usize),
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

    /// Handles a message of the traversal.
    pub fn take(&mut self, from: Address, message: Message, id: QueryId, side: &SlotSide<'_>) -> Result<()> {
        let taken = self.take_one(from, message, id, side);
        self.failed |= taken.is_err();
        taken
    }

    fn take_one(&mut self, from: Address, message: Message, id: QueryId, side: &SlotSide<'_>) -> Result<()> {
        // The client counts every frame to detect the end, even one that causes no work.
        count(&mut self.received, from);
        self.reported = false;
        match message {
            Message::Step { hop, round, .. } => self.begin_step(hop, round)?,
            Message::Reach { set, round, reached, .. } => {
                let task = |reaching| Task::Reach { set, round, reaching };
                self.tasks.extend(reached.into_iter().map(task));
            }
            Message::Expand { hop, round, vertices, .. } => {
                for expansion in vertices {
                    // A process of a job begins at its home; other slots walk their part.
                    let home = side.partitioner.home(expansion.vertex) == side.number;
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

    /// The vertices at which a hop begins.
    fn begin_step(&mut self, hop: u32, round: u32) -> Result<()> {
        let plan = self.expander.plan.clone();
        let body = plan.body() as u32;
        let i = named(&plan, hop)?;
        self.last = (round, hop);
        // The first hop after the repeated part begins at the vertices that any round reached.
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
        // One task for each vertex, with all its moments, so that its relations are read once.
        frontier.sort_unstable();
        for same in frontier.chunk_by(|a, b| a.0 == b.0) {
            let moments = same.iter().map(|(_, moment)| *moment).collect();
            self.tasks.push_back(Task::Vertex { vertex: same[0].0, moments, hop, round });
        }
        Ok(())
    }

    fn work(&mut self, id: QueryId, side: &SlotSide<'_>) -> Result<()> {
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

    pub(crate) fn step(&mut self, hop: u32, round: u32) -> &mut SlotStep {
        self.steps.entry((round, hop)).or_insert(SlotStep { hop, round, ..SlotStep::default() })
    }

    pub(crate) fn slots_of(&self, vertex: VertexPlace, side: &SlotSide<'_>) -> Vec<SlotNumber> {
        let none = Splits::default();
        let splits = self.splits.get(&vertex).map_or(&none, |splitting| &splitting.known);
        side.partitioner.slots_of(vertex, splits)
    }

    /// Processes a vertex of the frontier, at its home.
    fn vertex(
        &mut self,
        id: QueryId,
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
        // A job stands for its processes, whose relations count as its own.
        if plan.jobs && &*self.expander.name(number)?.kind == "job" {
            return self.gather(id, Asked::Processes, vertex, task, side);
        }
        self.tasks.push_back(task);
        Ok(())
    }

    /// Asks the slots that have relations of a vertex, including this one.
    fn read(
        &mut self,
        id: QueryId,
        (vertex, node): (VertexPlace, VertexPlace),
        moments: Vec<Moment>,
        (hop, round): (u32, u32),
        side: &SlotSide<'_>,
    ) -> Result<()> {
        let plan = self.expander.plan.clone();
        let replaces = plan.causal && plan.hops[named(&plan, hop)?].follows_data();
        // A walk by cause needs all stamps at which the vertex was replaced, and each slot has only some.
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

    pub(crate) fn fan_out(
        &mut self,
        mut expansion: Expansion,
        (hop, round): (u32, u32),
        side: &SlotSide<'_>,
    ) {
        let vertex = expansion.vertex;
        if let Some(splitting) = self.splits.get(&vertex) {
            expansion.splits = splitting.known.numbers();
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

    /// Walks the relations of a vertex in this slot.
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
            let home = side.partitioner.home(far);
            let mut name = None;
            if let Some((_, edge)) = &taken.way {
                let (direction, version) = (&edge.direction, edge.versions.first());
                let same = |(place, reverse, kind): &(VertexPlace, bool, Arc<str>)| {
                    (*place, *reverse) == (far, direction.reverse) && *kind == direction.kind
                };
                // Steps along versions of one relation are adjacent: count the relation once.
                if !last.as_ref().is_some_and(same) {
                    forwards += u64::from(home != side.number);
                    last = Some((far, direction.reverse, direction.kind.clone()));
                }
                if let Some(version) = version.filter(|_| self.names) {
                    name = Some(self.expander.state.reader().far_name(version)?);
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

    pub(crate) fn send_home(
        &mut self,
        home: SlotNumber,
        (set, round): (u32, u32),
        reaching: Reaching,
        side: &SlotSide<'_>,
    ) {
        // Without links one message for each vertex and moment is enough, unless a later one has an earlier
        // round.
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

    /// The relations of a vertex that are here and not handed over.
    pub(crate) fn edges(&self, vertex: VertexPlace, i: usize, side: &SlotSide<'_>) -> Result<Vec<Edge>> {
        if side.delay > 0 {
            side.clock.sleep(side.delay);
        }
        let mut edges = self.expander.edges(vertex, &self.expander.plan.hops[i])?;
        // After a split is finished, only the new slot shows the relations that it handed over.
        if let Some(finished) = self.splits.get(&vertex).map(|s| &s.finished).filter(|f| !f.is_empty()) {
            edges.retain(|edge| side.partitioner.shows(side.number, vertex, edge.far, finished));
        }
        Ok(edges)
    }

    /// Passes a request on to slots that the sender did not know, because of a later split.
    fn pass_on(&mut self, expansion: &Expansion, (hop, round): (u32, u32), side: &SlotSide<'_>) {
        let Some(own) = self.splits.get(&expansion.vertex) else { return };
        let asked = Splits::of_numbers(&expansion.splits);
        if own.known.partitions().all(|partition| asked.has(partition)) {
            return;
        }
        // The receivers get the merged splits, so that they do not pass the request on to one another.
        let mut all = asked.clone();
        all.merge(&own.known);
        let known = side.partitioner.slots_of(expansion.vertex, &asked);
        let splits = all.numbers();
        for slot in side.partitioner.slots_of(expansion.vertex, &all) {
            if !known.contains(&slot) && slot != side.number {
                self.step(hop, round).requests += 1;
                let expansion = Expansion { splits: splits.clone(), ..expansion.clone() };
                self.expand.entry((slot, hop, round)).or_default().push(expansion);
            }
        }
    }

    /// Processes a reached vertex, at its home.
    fn reach(
        &mut self,
        id: QueryId,
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
            return Err(Error::corrupt("a message names a set outside the plan"));
        }
        let begun = side.clock.monotonic();
        let number = self.expander.number(*vertex);
        if let Some(name) = name {
            self.expander.named(number, name.clone());
        }
        let passes = self.expander.passes(number, set as usize)?;
        let before = self.nodes.get(&(set, *vertex, *moment)).copied();
        // A vertex that is reached again in an earlier round continues again: it has more rounds left.
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
}

/// The hops that begin at a vertex of a set that was reached in a round, each with its own round.
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
