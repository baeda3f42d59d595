//! A client of slots: it puts rows, and begins traversals.
//!
//! It knows the splits that slots have reported. If it sends a row to a slot that has handed the partition
//! over, the row comes back with the splits, and the client sends it to the right slot. One client of an
//! index leads: at a moment when no traversal begins, it permits slots to drop rows that they have handed
//! over.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use fieldstone_core::env::Clock;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_message::ends::{Address, QueryId};
use fieldstone_format::graph_message::plan::WalkPlan;
use fieldstone_format::graph_message::rows::{FOR_SOURCE, PlacedRows, Refused};
use fieldstone_format::graph_message::walk::{Reaching, SlotStep, WalkLink, WalkNode};
use fieldstone_format::graph_message::{Message, VertexPartition, VertexSplits};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_graph::hashing::PlaceMap;
use fieldstone_graph::partition::{Partition, Partitioner, SlotNumber, Splits};
use fieldstone_graph::segment::Rows;
use fieldstone_graph::slot::Engine;
use fieldstone_graph::travel::plan::TravelPlan;
use fieldstone_graph::travel::{SlotFigures, StepFigures};
use fieldstone_journal::session::Limits;

use crate::delivery::Delivery;
use crate::network::{Arrival, Network};

/// Time that a client waits before it looks for frames to send again.
const LOOK: Duration = Duration::from_millis(20);

/// The results of a traversal of slots.
#[derive(Debug)]
pub struct WalkedSlots {
    /// Vertices of the requested sets.
    pub nodes: Vec<WalkNode>,
    /// Links between vertices.
    pub links: Vec<WalkLink>,
    /// Counts of each hop of each round.
    pub steps: Vec<StepFigures>,
    /// Counts of each slot.
    pub figures: SlotFigures,
}

/// A client; see the module's description.
#[derive(Debug)]
pub struct SlotClient {
    id: Id,
    network: Arc<dyn Network>,
    delivery: Delivery,
    partitioner: Arc<dyn Partitioner>,
    clock: Arc<dyn Clock>,
    /// The limits of the session that it works for.
    limits: Limits,
    splits: PlaceMap<Splits>,
    next: u64,
    /// Splits that are complete but not finished.
    complete: Vec<VertexPartition>,
    /// Number of outstanding answers to `Finish`.
    finishing: usize,
    /// Number of times that rows came back.
    redirects: u64,
    /// Slots that have gone.
    gone: BTreeSet<SlotNumber>,
}

/// The frames that slots sent for a traversal, and whether all of them arrived.
struct Counts {
    /// Frames from this client to each slot.
    own: Vec<u64>,
    /// The counts in each slot's report: sent, received, waiting.
    slots: Vec<(Vec<u64>, Vec<u64>, u64)>,
}

impl Counts {
    fn of(slots: usize) -> Counts {
        let none = (vec![0; slots + 1], vec![0; slots + 1], 0);
        Counts { own: vec![0; slots], slots: vec![none; slots] }
    }

    /// Whether everything sent has arrived, so that no end has anything to do.
    fn are_even(&self) -> bool {
        let n = self.slots.len();
        let from = |sender: usize, receiver: usize| match sender == n {
            true => self.own[receiver],
            false => self.slots[sender].0[receiver],
        };
        (0..=n).all(|a| (0..n).all(|b| from(a, b) == self.slots[b].1[a]))
    }
}

impl SlotClient {
    /// A client with this name, which joins a network.
    pub fn new(
        id: Id,
        network: Arc<dyn Network>,
        partitioner: Arc<dyn Partitioner>,
        clock: Arc<dyn Clock>,
    ) -> SlotClient {
        let end = Address::Client(id);
        network.open(end);
        let delivery = Delivery::new(end, network.is_reliable());
        let (splits, complete, gone) = Default::default();
        let (next, finishing, redirects) = (0, 0, 0);
        SlotClient {
            id,
            network,
            delivery,
            partitioner,
            clock,
            limits: Limits::default(),
            splits,
            next,
            complete,
            finishing,
            redirects,
            gone,
        }
    }

    /// The same client, within the limits of a session: it stops waiting for slots when they are reached.
    pub fn within(mut self, limits: Limits) -> SlotClient {
        self.limits = limits;
        self
    }

    pub(crate) fn slots(&self) -> SlotNumber {
        self.partitioner.slots()
    }

    /// The name of this end.
    pub fn address(&self) -> Address {
        Address::Client(self.id)
    }

    /// Whether all slots serve, as far as this client knows.
    pub fn all_serve(&self) -> bool {
        self.gone.is_empty()
    }

    /// A number that this client has not used.
    pub(crate) fn fresh_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Number of times that rows came back because they belong elsewhere.
    pub fn redirects(&self) -> u64 {
        self.redirects
    }

    pub(crate) fn say(&mut self, slot: SlotNumber, message: Message) {
        let to = Address::Slot(slot);
        let frame = self.delivery.wrap(to, message, self.clock.monotonic());
        self.network.send(to, frame);
    }

    pub(crate) fn say_to_all(&mut self, message: &Message) {
        (0..self.slots()).for_each(|slot| self.say(slot, message.clone()));
    }

    /// The next message and its slot; Unavailable if a slot no longer serves, or at a limit of the session.
    pub(crate) fn receive(&mut self) -> Result<(SlotNumber, Message)> {
        loop {
            self.limits.check()?;
            // After a slot has gone, take the frames that are there already, and then fail.
            let wait = if self.all_serve() { LOOK } else { Duration::ZERO };
            match self.network.receive(self.address(), wait) {
                Arrival::Frame(frame) => match self.take(&frame) {
                    Some((_, Message::Failed { code, why, hint, .. })) => {
                        return Err(Message::error(&code, why, hint));
                    }
                    Some(taken) => return Ok(taken),
                    None => {}
                },
                Arrival::Gone(end) if end == self.address() => {
                    return Err(Error::unavailable("a client of the graph's slots was closed"));
                }
                Arrival::Gone(end) => self.note_gone(end),
                Arrival::Nothing => {
                    if let Some(lost) = self.gone.first() {
                        return Err(Error::unavailable(format!("slot {lost} of the graph's index stopped"))
                            .with_hint("ask again: the index is made again from its files and the logs"));
                    }
                    let mut out = Vec::new();
                    self.delivery.again(self.clock.monotonic(), &mut out);
                    out.into_iter().for_each(|(to, frame)| self.network.send(to, frame));
                }
            }
        }
    }

    fn note_gone(&mut self, end: Address) {
        self.delivery.forget(end);
        if let Address::Slot(slot) = end {
            self.gone.insert(slot);
        }
    }

    /// Takes a frame: records splits, and returns other messages of slots.
    fn take(&mut self, frame: &[u8]) -> Option<(SlotNumber, Message)> {
        let mut out = Vec::new();
        // The sender repeats a frame that arrives damaged.
        let taken = self.delivery.take(frame, &mut out).unwrap_or(None);
        out.into_iter().for_each(|(to, frame)| self.network.send(to, frame));
        match taken? {
            (_, Message::Complete { of }) => self.complete.push(of),
            (_, Message::Finished) => self.finishing = self.finishing.saturating_sub(1),
            (Address::Slot(slot), message) => return Some((slot, message)),
            (Address::Client(_), _) => {}
        }
        None
    }

    /// Puts rows into the slots to which they belong.
    pub fn insert(&mut self, rows: &Rows) -> Result<()> {
        let (partitioner, splits) = (self.partitioner.clone(), &self.splits);
        let none = Splits::default();
        let home = |vertex| usize::from(partitioner.home(vertex));
        let routed = rows.routed(partitioner.slots().into(), home, |near, far| {
            usize::from(partitioner.slot_of(near, far, splits.get(&near).unwrap_or(&none)))
        });
        let mut open: HashMap<u64, PlacedRows> = HashMap::new();
        for (slot, batches) in (0..).zip(routed) {
            for rows in batches {
                self.send_rows(slot, rows, &mut open);
            }
        }
        // Partitions may go on splitting, so a row can come back several times; each answer brings newer
        // splits.
        while !open.is_empty() {
            let (_, message) = self.receive()?;
            let Message::Inserted { batch, refused, splits } = message else { continue };
            let Some(rows) = open.remove(&batch) else { continue };
            self.learn(splits);
            if !refused.is_empty() {
                self.redirects += refused.len() as u64;
                self.send_again(&rows, &refused, &mut open)?;
            }
        }
        Ok(())
    }

    fn send_rows(&mut self, slot: SlotNumber, rows: PlacedRows, open: &mut HashMap<u64, PlacedRows>) {
        let batch = self.fresh_number();
        self.say(slot, Message::Insert { batch, rows: rows.clone() });
        open.insert(batch, rows);
    }

    fn learn(&mut self, splits: Vec<VertexSplits>) {
        for VertexSplits { vertex, partitions } in splits {
            self.splits.entry(vertex).or_default().merge(&Splits::of_numbers(&partitions));
        }
    }

    /// Sends rows that came back to their present slot.
    fn send_again(
        &mut self,
        rows: &PlacedRows,
        refused: &[Refused],
        open: &mut HashMap<u64, PlacedRows>,
    ) -> Result<()> {
        let places = rows.places()?;
        let none = Splits::default();
        let mut by_slot: BTreeMap<SlotNumber, Vec<Refused>> = BTreeMap::new();
        for pick in refused {
            let (source, target) = *places
                .get(pick.row as usize)
                .ok_or_else(|| Error::corrupt("a slot refused a relation that it was not sent"))?;
            let (near, far) = if pick.ends == FOR_SOURCE { (source, target) } else { (target, source) };
            let splits = self.splits.get(&near).unwrap_or(&none);
            let slot = self.partitioner.slot_of(near, far, splits);
            by_slot.entry(slot).or_default().push(*pick);
        }
        for (slot, picks) in by_slot {
            self.send_rows(slot, rows.some(&picks)?, open);
        }
        Ok(())
    }

    /// Permits slots to drop the rows that completed splits have handed over. The caller ensures that no
    /// traversal is beginning.
    pub fn finish(&mut self) {
        let mut by_slot: BTreeMap<SlotNumber, Vec<VertexPartition>> = BTreeMap::new();
        for of in std::mem::take(&mut self.complete) {
            if let Some(partition) = Partition::of_number(of.partition) {
                by_slot.entry(self.partitioner.slot(of.vertex, partition)).or_default().push(of);
            }
        }
        for (slot, of) in by_slot {
            self.finishing += 1;
            self.say(slot, Message::Finish { of });
        }
    }

    /// Takes the frames that have arrived, without waiting.
    pub fn look(&mut self) {
        loop {
            match self.network.receive(self.address(), Duration::ZERO) {
                Arrival::Frame(frame) => drop(self.take(&frame)),
                Arrival::Gone(end) if end != self.address() => self.note_gone(end),
                Arrival::Gone(_) | Arrival::Nothing => return,
            }
        }
    }

    /// Waits until all splits have ended.
    pub fn settle(&mut self) -> Result<()> {
        loop {
            // Arriving rows may cause further splits: ask again until a whole round finds none.
            self.finish();
            self.say_to_all(&Message::Settle);
            let (mut left, mut moving) = (self.slots(), 0);
            while left > 0 {
                if let (_, Message::Settled { moving: own }) = self.receive()? {
                    left -= 1;
                    moving += own;
                }
            }
            if moving == 0 && self.complete.is_empty() {
                return Ok(());
            }
        }
    }

    /// Begins a traversal in all slots, which does not see later puts. `own` has rows for each slot that only
    /// this traversal sees. Returns the traversal's name.
    pub fn begin(&mut self, plan: &WalkPlan, engine: Engine, own: Vec<PlacedRows>) -> Result<QueryId> {
        let query = QueryId { client: self.id, number: self.fresh_number() };
        let mut own = own.into_iter();
        for slot in 0..self.slots() {
            let (plan, rows) = (plan.clone(), own.next().unwrap_or_default());
            self.say(slot, Message::Begin { query, engine: engine as u8, plan, rows });
        }
        let mut left = self.slots();
        while left > 0 {
            match self.receive() {
                Ok((_, Message::Begun { query: begun })) if begun == query => left -= 1,
                Ok(_) => {}
                // Some slots may have begun it.
                Err(error) => {
                    self.end_walk(query);
                    return Err(error);
                }
            }
        }
        Ok(query)
    }

    /// Ends a traversal: slots forget it.
    pub fn end_walk(&mut self, query: QueryId) {
        self.say_to_all(&Message::End { query });
    }

    /// Walks the traversal from these vertices.
    pub fn walk(
        &mut self,
        query: QueryId,
        plan: &TravelPlan,
        engine: Engine,
        starts: &[(VertexPlace, VertexName)],
    ) -> Result<WalkedSlots> {
        let mut counts = Counts::of(self.slots().into());
        let mut by_slot: BTreeMap<SlotNumber, Vec<Reaching>> = BTreeMap::new();
        for (vertex, name) in starts {
            let home = self.partitioner.home(*vertex);
            let reaching = Reaching { vertex: *vertex, moment: None, name: Some(name.clone()), from: None };
            by_slot.entry(home).or_default().push(reaching);
        }
        for (slot, reached) in by_slot {
            counts.own[usize::from(slot)] += 1;
            self.say(slot, Message::Reach { query, set: 0, round: 1, reached });
        }
        // The starts must be in their sets before the first hop.
        self.wait(query, &mut counts)?;
        let mut times: HashMap<(u32, u32), u64> = HashMap::new();
        if engine != Engine::Async {
            let body = plan.body() as u32;
            for round in 1..=plan.repeat.map_or(0, |(_, most)| most) {
                for hop in 0..body {
                    self.step(query, (hop, round), &mut counts, &mut times)?;
                }
                // No vertex waits for another round.
                if counts.slots.iter().all(|(.., fresh)| *fresh == 0) {
                    break;
                }
            }
            for hop in body..plan.hops.len() as u32 {
                self.step(query, (hop, 0), &mut counts, &mut times)?;
            }
        }
        self.collect(query, &times)
    }

    fn step(
        &mut self,
        query: QueryId,
        (hop, round): (u32, u32),
        counts: &mut Counts,
        times: &mut HashMap<(u32, u32), u64>,
    ) -> Result<()> {
        let begun = self.clock.monotonic();
        counts.own.iter_mut().for_each(|sent| *sent += 1);
        self.say_to_all(&Message::Step { query, hop, round });
        self.wait(query, counts)?;
        times.insert((round, hop), self.clock.monotonic().saturating_sub(begun));
        Ok(())
    }

    /// Waits until no end has anything to do.
    fn wait(&mut self, query: QueryId, counts: &mut Counts) -> Result<()> {
        while !counts.are_even() {
            let (from, message) = self.receive()?;
            let Message::Report { query: of, sent, received, fresh } = message else { continue };
            let n = counts.slots.len();
            if of != query || usize::from(from) >= n || sent.len() != n + 1 || received.len() != n + 1 {
                continue;
            }
            // Reports may come in any order: counts only grow.
            let known = &mut counts.slots[usize::from(from)];
            let more = |a: &[u64], b: &[u64]| a.iter().sum::<u64>() >= b.iter().sum::<u64>();
            if more(&sent, &known.0) && more(&received, &known.1) {
                *known = (sent, received, fresh);
            }
        }
        Ok(())
    }

    fn collect(&mut self, query: QueryId, times: &HashMap<(u32, u32), u64>) -> Result<WalkedSlots> {
        self.say_to_all(&Message::Collect { query });
        let mut walked = WalkedSlots {
            nodes: Vec::new(),
            links: Vec::new(),
            steps: Vec::new(),
            figures: SlotFigures { steps: vec![Vec::new(); self.slots().into()] },
        };
        let mut left = self.slots();
        while left > 0 {
            let (from, message) = self.receive()?;
            let Message::Collected { query: of, nodes, links, steps } = message else { continue };
            if of == query && from < self.slots() {
                left -= 1;
                walked.nodes.extend(nodes);
                walked.links.extend(links);
                walked.figures.steps[usize::from(from)] = steps;
            }
        }
        walked.steps = steps_of(&walked.figures, times);
        Ok(walked)
    }
}

impl Drop for SlotClient {
    fn drop(&mut self) {
        self.network.close(self.address());
    }
}

/// Counts of each hop of each round over all slots. A step that was not timed gets the time of the busiest
/// slot.
fn steps_of(figures: &SlotFigures, times: &HashMap<(u32, u32), u64>) -> Vec<StepFigures> {
    let mut all: BTreeMap<(u32, u32, u32), StepFigures> = BTreeMap::new();
    for step in figures.steps.iter().flatten() {
        let SlotStep { hop, round, .. } = *step;
        let none = StepFigures {
            hop: hop as usize,
            round,
            frontier: 0,
            reached: 0,
            vertices: 0,
            relations: 0,
            nanoseconds: 0,
        };
        let last = if round == 0 { 1 } else { 0 };
        let sum = all.entry((last, round, hop)).or_insert(none);
        sum.frontier += step.frontier;
        sum.reached += step.reached;
        sum.vertices += step.frontier;
        sum.relations += step.relations;
        let own = step.vertex_time + step.edge_time;
        sum.nanoseconds = times.get(&(round, hop)).copied().unwrap_or(sum.nanoseconds.max(own));
    }
    all.into_values().collect()
}
