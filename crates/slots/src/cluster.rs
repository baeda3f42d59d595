//! All slots of an index: a thread with a shelf for each, and a network between them.

use std::sync::Arc;
use std::time::Duration;

use fieldstone_core::env::{Env, Rand};
use fieldstone_core::sync::thread::JoinHandle;
use fieldstone_core::sync::{Mutex, MutexGuard, thread};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::graph::VertexName;
use fieldstone_format::graph_message::ends::{Address, QueryId};
use fieldstone_format::graph_message::{Frame, Message};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_graph::partition::{Partitioner, SlotNumber, Splits, partitioner};
use fieldstone_graph::segment::Segment;
use fieldstone_graph::slot::{Engine, ShelfContent, SplitTable, split_table};
use fieldstone_graph::travel::TravelPlan;
use fieldstone_journal::session::Limits;

use crate::client::{SlotClient, WalkedSlots};
use crate::network::{Arrival, Mailboxes, Network, Networks};
use crate::placed::placed;
use crate::server::{Serving, SlotServer, SlotSetup};
use crate::shelf::{SlotShelf, stored};
use crate::shelves::ShownShelf;
use crate::storage::SharedSegments;

/// Time that a slot waits for a frame before it looks for frames to send again.
const LOOK: Duration = Duration::from_millis(50);

/// Options of slots.
#[derive(Debug, Clone, Default)]
pub struct SlotOptions {
    /// The networks that carry frames; by default mailboxes in memory.
    pub networks: Option<Arc<dyn Networks>>,
    /// Additional nanoseconds for reading the relations of a vertex, by slot: simulates slow disks in tests.
    pub delays: Vec<u64>,
}

impl SlotOptions {
    /// Whether all options are defaults: mailboxes in memory, and no delays.
    pub fn is_plain(&self) -> bool {
        self.networks.is_none() && self.delays.is_empty()
    }
}

/// All slots of an index.
#[derive(Debug)]
pub struct SlotCluster {
    pub(crate) partitioning: Partitioning,
    partitioner: Arc<dyn Partitioner>,
    network: Arc<dyn Network>,
    pub(crate) storage: Arc<SharedSegments>,
    env: Env,
    lead: Mutex<SlotClient>,
    threads: Vec<JoinHandle<()>>,
}

/// A traversal that has begun in all slots.
#[derive(Debug)]
pub struct BegunWalk {
    /// Keeps the slots running until it ends.
    _cluster: Arc<SlotCluster>,
    client: SlotClient,
    query: QueryId,
    engine: Engine,
}

/// A random id, different from that of any client in any process.
pub fn fresh_id(rand: &dyn Rand) -> Id {
    let mut id = [0; 16];
    rand.fill(&mut id);
    Id(id)
}

impl SlotCluster {
    /// Starts slots with this content.
    pub fn start(
        partitioning: Partitioning,
        contents: Vec<ShelfContent>,
        env: &Env,
        options: &SlotOptions,
    ) -> Result<SlotCluster> {
        let network = match &options.networks {
            Some(networks) => networks.network(),
            None => Arc::new(Mailboxes::default()),
        };
        (0..partitioning.slots).for_each(|number| network.open(Address::Slot(number)));
        let (lead, storage) = (fresh_id(&*env.rand), Arc::default());
        let mut cluster = SlotCluster::over(partitioning, network, (lead, storage), env);
        let mut contents = contents.into_iter();
        for number in 0..partitioning.slots {
            let setup = SlotSetup {
                number,
                lead: Address::Client(lead),
                partitioner: cluster.partitioner.clone(),
                clock: env.clock.clone(),
                is_reliable: cluster.network.is_reliable(),
                delay: options.delays.get(usize::from(number)).copied().unwrap_or(0),
            };
            let shelf = SlotShelf::new(contents.next().unwrap_or_default(), cluster.storage.clone());
            cluster.threads.push(serve_beside(SlotServer::new(setup, shelf), cluster.network.clone())?);
        }
        Ok(cluster)
    }

    /// Slots that another process runs on a network. `lead` is the name of the leading client, as these slots
    /// know it.
    pub fn over(
        partitioning: Partitioning,
        network: Arc<dyn Network>,
        (lead, storage): (Id, Arc<SharedSegments>),
        env: &Env,
    ) -> SlotCluster {
        let partitioner = partitioner(&partitioning);
        let lead = SlotClient::new(lead, network.clone(), partitioner.clone(), env.clock.clone());
        SlotCluster {
            partitioning,
            partitioner,
            network,
            storage,
            env: env.clone(),
            lead: Mutex::new(lead),
            threads: Vec::new(),
        }
    }

    /// The partitioner.
    pub fn partitioner(&self) -> &dyn Partitioner {
        &*self.partitioner
    }

    pub(crate) fn lead(&self) -> MutexGuard<'_, SlotClient> {
        self.lead.lock()
    }

    /// A client in addition to the leading one.
    pub fn client(&self) -> SlotClient {
        let id = fresh_id(&*self.env.rand);
        SlotClient::new(id, self.network.clone(), self.partitioner.clone(), self.env.clock.clone())
    }

    /// Begins a traversal, which does not see later puts. `over` has segments that only this traversal sees;
    /// they are placed by the present splits.
    pub fn begin_walk(
        self: &Arc<SlotCluster>,
        plan: &TravelPlan,
        engine: Engine,
        over: &[Arc<Segment>],
        limits: Limits,
    ) -> Result<BegunWalk> {
        let mut client = self.client().within(limits);
        let mut lead = self.lead();
        lead.look();
        let own = if over.is_empty() {
            Vec::new()
        } else {
            // No split is finished until this traversal has begun.
            let shown = lead.show(false, true)?;
            let tables: Vec<SplitTable> = shown.iter().map(|shelf| split_table(&shelf.splits)).collect();
            let splits = |vertex: VertexPlace| {
                let mut all = Splits::default();
                tables.iter().filter_map(|table| table.get(&vertex)).for_each(|own| all.merge(&own.known));
                all
            };
            placed(&*self.partitioner, &splits, over)?
        };
        lead.finish();
        let query = client.begin(&plan.to_slots(), engine, own)?;
        Ok(BegunWalk { _cluster: self.clone(), client, query, engine })
    }

    /// Reads the content that slots reported.
    pub(crate) fn read(&self, shown: &[ShownShelf]) -> Result<Vec<ShelfContent>> {
        let content = |shelf: &ShownShelf| {
            let segments = stored(&self.storage, &shelf.segments)?;
            Ok(ShelfContent { segments, splits: Arc::new(split_table(&shelf.splits)) })
        };
        shown.iter().map(content).collect()
    }
}

impl BegunWalk {
    /// Walks the traversal from these vertices.
    pub fn walk(&mut self, plan: &TravelPlan, starts: &[(VertexPlace, VertexName)]) -> Result<WalkedSlots> {
        self.client.walk(self.query, plan, self.engine, starts)
    }
}

impl Drop for BegunWalk {
    fn drop(&mut self) {
        // Slots must forget it, even if it was not walked to its end.
        self.client.end_walk(self.query);
    }
}

impl Drop for SlotCluster {
    fn drop(&mut self) {
        let from = self.lead().address();
        for to in (0..self.partitioning.slots).map(Address::Slot) {
            self.network.send(to, Frame { from, to, number: 0, message: Message::Stop }.encode());
        }
        for thread in self.threads.drain(..) {
            // A thread that panicked had nothing that is not in the logs.
            drop(thread.join());
        }
    }
}

/// Reports that a slot no longer serves.
struct Leaving {
    end: Address,
    network: Arc<dyn Network>,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.network.close(self.end);
    }
}

/// Serves a slot on its own thread.
fn serve_beside(slot: SlotServer, network: Arc<dyn Network>) -> Result<JoinHandle<()>> {
    let number: SlotNumber = slot.number;
    let leaving = Leaving { end: Address::Slot(number), network: network.clone() };
    let thread = thread::Builder::new().name(format!("graph-slot-{number}"));
    let serving = thread.spawn(move || {
        // However the thread ends, all ends are notified.
        let _leaving = leaving;
        serve(slot, &*network);
    });
    serving.map_err(|e| Error::unavailable(format!("a slot of the graph's index does not start: {e}")))
}

/// Serves until the slot must stop, or the network has closed it.
fn serve(mut slot: SlotServer, network: &dyn Network) {
    let own = Address::Slot(slot.number);
    let mut out = Vec::new();
    let send =
        |out: &mut Vec<(Address, Vec<u8>)>| out.drain(..).for_each(|(to, frame)| network.send(to, frame));
    if slot.resume(&mut out).is_err() {
        return;
    }
    send(&mut out);
    let mut more = false;
    loop {
        let wait = if more { Duration::ZERO } else { LOOK };
        match network.receive(own, wait) {
            Arrival::Frame(frame) => {
                if slot.handle(&frame, &mut out) == Serving::Stopped {
                    return;
                }
                more = true;
            }
            Arrival::Gone(end) if end == own => return,
            Arrival::Gone(end) => slot.forget(end),
            Arrival::Nothing if more => more = slot.idle(&mut out),
            Arrival::Nothing => slot.again(&mut out),
        }
        send(&mut out);
    }
}
