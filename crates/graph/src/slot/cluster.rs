//! All slots of a view: each a thread with a shelf of its own, between them a network.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fieldstone_core::env::Clock;
use fieldstone_core::sync::thread::JoinHandle;
use fieldstone_core::sync::{Mutex, MutexGuard, thread};
use fieldstone_core::{Error, Result};
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_message::rows::PlacedRows;
use fieldstone_format::graph_message::{Frame, Message};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_format::graph_segment::partitioning::Partitioning;

use super::client::{Engine, SlotClient, WalkedSlots};
use super::network::{Mailboxes, Network, Networks};
use super::server::{Serving, SlotServer};
use super::shelf::{ShelfContent, SlotShelf, SplitTable, VertexSplitting};
use crate::partition::{Partitioner, SlotNumber, Splits, partitioner};
use crate::segment::{KeepHalves, Rows};
use crate::travel::plan::TravelPlan;

/// How long a slot waits for a frame before it looks whether anything is to be sent again.
const LOOK: Duration = Duration::from_millis(50);

/// How slots run.
#[derive(Debug, Clone, Default)]
pub struct SlotOptions {
    /// What carries frames; mailboxes in memory, where nothing is given.
    pub networks: Option<Arc<dyn Networks>>,
    /// Nanoseconds that reading the relations of a vertex takes besides, by slot: slow disks, as tests have them.
    pub delays: Vec<u64>,
}

impl SlotOptions {
    /// Whether nothing is asked for: mailboxes in memory, and no delays.
    pub fn is_plain(&self) -> bool {
        self.networks.is_none() && self.delays.is_empty()
    }
}

/// All slots of a view.
#[derive(Debug)]
pub struct SlotCluster {
    partitioning: Partitioning,
    partitioner: Arc<dyn Partitioner>,
    shelves: Vec<Arc<SlotShelf>>,
    network: Arc<dyn Network>,
    clock: Arc<dyn Clock>,
    lead: Mutex<SlotClient>,
    ends: AtomicU32,
    threads: Vec<JoinHandle<()>>,
}

/// A traversal that has begun in all slots.
#[derive(Debug)]
pub struct BegunWalk {
    cluster: Arc<SlotCluster>,
    client: SlotClient,
    query: u64,
    engine: Engine,
}

impl SlotCluster {
    /// Starts slots that hold this.
    pub fn start(
        partitioning: Partitioning,
        contents: Vec<ShelfContent>,
        clock: &Arc<dyn Clock>,
        options: &SlotOptions,
    ) -> Result<SlotCluster> {
        let network = match &options.networks {
            Some(networks) => networks.network(),
            None => Arc::new(Mailboxes::default()),
        };
        let mut contents = contents.into_iter();
        let shelves =
            (0..partitioning.slots).map(|_| SlotShelf::of(contents.next().unwrap_or_default()).into());
        let mut cluster = SlotCluster::over(partitioning, shelves.collect(), network, clock);
        for number in 0..u32::from(partitioning.slots) {
            let thread = cluster.thread(number, options)?;
            cluster.threads.push(thread);
        }
        Ok(cluster)
    }

    /// Slots that somebody else runs on a network, with these shelves.
    pub fn over(
        partitioning: Partitioning,
        shelves: Vec<Arc<SlotShelf>>,
        network: Arc<dyn Network>,
        clock: &Arc<dyn Clock>,
    ) -> SlotCluster {
        let partitioner = partitioner(&partitioning);
        let slots = u32::from(partitioning.slots);
        let lead = SlotClient::new(slots, network.clone(), partitioner.clone(), clock.clone());
        SlotCluster {
            partitioning,
            partitioner,
            shelves,
            network,
            clock: clock.clone(),
            lead: Mutex::new(lead),
            ends: AtomicU32::new(slots + 1),
            threads: Vec::new(),
        }
    }

    fn thread(&self, number: u32, options: &SlotOptions) -> Result<JoinHandle<()>> {
        let delay = options.delays.get(number as usize).copied().unwrap_or(0);
        let shelf = self.shelves[number as usize].clone();
        let (network, partitioner) = (self.network.clone(), self.partitioner.clone());
        let slot =
            SlotServer::new(number, partitioner, shelf, self.clock.clone(), network.is_reliable(), delay);
        let leaving = Leaving { number, network: network.clone() };
        let thread = thread::Builder::new().name(format!("graph-slot-{number}"));
        let serving = thread.spawn(move || {
            // However the thread ends, who waits for the slot hears of it.
            let _leaving = leaving;
            serve(slot, &*network);
        });
        serving.map_err(|e| Error::unavailable(format!("a slot of the graph's view does not start: {e}")))
    }

    /// How it is cut into slots.
    pub fn partitioning(&self) -> Partitioning {
        self.partitioning
    }

    /// The partitioner.
    pub fn partitioner(&self) -> &dyn Partitioner {
        &*self.partitioner
    }

    /// What each slot has, by number.
    pub fn shelves(&self) -> &[Arc<SlotShelf>] {
        &self.shelves
    }

    /// Whether all slots serve.
    pub fn serves(&self) -> bool {
        (0..u32::from(self.partitioning.slots)).all(|slot| self.network.serves(slot))
    }

    fn lead(&self) -> MutexGuard<'_, SlotClient> {
        self.lead.lock()
    }

    /// Puts rows where they belong. Splits that this brings about go on behind it.
    pub fn insert(&self, rows: &Rows) -> Result<()> {
        let mut lead = self.lead();
        lead.insert(rows)?;
        lead.finish();
        Ok(())
    }

    /// Waits until nothing is being split.
    pub fn settle(&self) -> Result<()> {
        self.lead().settle()
    }

    /// A client besides the one that leads.
    pub fn client(&self) -> SlotClient {
        let end = self.ends.fetch_add(1, Ordering::Relaxed);
        SlotClient::new(end, self.network.clone(), self.partitioner.clone(), self.clock.clone())
    }

    /// Begins a traversal: what is put from here on is not seen by it. `own` gives, for each slot, rows that only who
    /// asks sees, placed by the splits of this moment.
    pub fn begin(
        self: &Arc<SlotCluster>,
        plan: &TravelPlan,
        engine: Engine,
        own: impl FnOnce(&dyn Partitioner, &dyn Fn(VertexPlace) -> Splits) -> Result<Vec<PlacedRows>>,
    ) -> Result<BegunWalk> {
        let mut client = self.client();
        let mut lead = self.lead();
        lead.look();
        // What is split by now: nothing else is finished while no other traversal begins.
        let tables: Vec<Arc<SplitTable>> = self.shelves.iter().map(|shelf| shelf.splits()).collect();
        let splits = |vertex: VertexPlace| {
            let mut all = Splits::default();
            tables.iter().filter_map(|table| table.get(&vertex)).for_each(|own| all.merge(&own.known));
            all
        };
        let own = own(&*self.partitioner, &splits)?;
        lead.finish();
        let query = client.begin(&plan.to_slots(), engine, own)?;
        Ok(BegunWalk { cluster: self.clone(), client, query, engine })
    }

    /// What a slot keeps of the relations that it had: not what it has given away, once that is finished.
    pub fn keeps(&self, slot: SlotNumber, content: &ShelfContent) -> KeepsOwn {
        KeepsOwn { partitioner: self.partitioner.clone(), slot, splits: content.splits.clone() }
    }

    /// What all slots have at one moment, in which no traversal begins: it stays as it is until it is thawed.
    pub fn freeze(&self) -> Vec<ShelfContent> {
        let lead = self.lead();
        let contents = self.shelves.iter().map(|shelf| shelf.freeze()).collect();
        drop(lead);
        contents
    }
}

impl BegunWalk {
    /// Walks it, from these vertices.
    pub fn walk(&mut self, plan: &TravelPlan, starts: &[(VertexPlace, VertexName)]) -> Result<WalkedSlots> {
        self.client.walk(self.query, plan, self.engine, starts)
    }
}

impl Drop for BegunWalk {
    fn drop(&mut self) {
        // Slots forget it, whether it was walked to its end or not.
        self.client.end_walk(self.query);
        self.cluster.network.close(self.client.end());
    }
}

impl Drop for SlotCluster {
    fn drop(&mut self) {
        let from = u32::from(self.partitioning.slots);
        for slot in 0..from {
            self.network.send(slot, Frame { from, to: slot, number: 0, message: Message::Stop }.encode());
        }
        for thread in self.threads.drain(..) {
            // One that panicked has nothing that is not in the logs.
            drop(thread.join());
        }
    }
}

/// See [`SlotCluster::keeps`].
#[derive(Debug)]
pub struct KeepsOwn {
    partitioner: Arc<dyn Partitioner>,
    slot: SlotNumber,
    splits: Arc<SplitTable>,
}

impl KeepHalves for KeepsOwn {
    fn leaves_out(&self, near: VertexPlace) -> bool {
        self.splits.get(&near).is_some_and(|splitting| !splitting.finished.is_empty())
    }

    fn keeps(&self, near: VertexPlace, far: VertexPlace) -> bool {
        let Some(VertexSplitting { finished, .. }) = self.splits.get(&near) else { return true };
        self.partitioner.shows(self.slot, near, far, finished)
    }
}

/// Says that a slot does not serve any more.
struct Leaving {
    number: u32,
    network: Arc<dyn Network>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.network.leave(self.number);
    }
}

/// Serves until the slot is to stop, or the network does not have it any more.
fn serve(mut slot: SlotServer, network: &dyn Network) {
    let number = slot.number;
    let mut out = Vec::new();
    let send = |out: &mut Vec<(u32, Vec<u8>)>| out.drain(..).for_each(|(to, frame)| network.send(to, frame));
    if slot.resume(&mut out).is_err() {
        return;
    }
    send(&mut out);
    let mut more = false;
    while network.serves(number) {
        let wait = if more { Duration::ZERO } else { LOOK };
        match network.receive(number, wait) {
            Some(frame) => {
                if slot.handle(&frame, &mut out) == Serving::Stopped {
                    return;
                }
                more = true;
            }
            None if more => more = slot.idle(&mut out),
            None => slot.again(&mut out),
        }
        send(&mut out);
    }
}
