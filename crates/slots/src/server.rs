//! A slot: it handles one frame after another, and returns the frames to send.
//!
//! It never waits, and reads a clock only to time its work, so that a simulation can run many slots in one
//! thread, in any order.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_core::env::Clock;
use fieldstone_core::{Error, Result};
use fieldstone_format::graph_message::Message;
use fieldstone_format::graph_message::ends::{Address, QueryId};
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_graph::hashing::PlaceMap;
use fieldstone_graph::partition::{Partitioner, SlotNumber};
use fieldstone_graph::slot::split_rows;

use crate::delivery::{Delivery, Outgoing};
use crate::query::SlotQuery;
use crate::shelf::SlotShelf;
use crate::split::{Counted, Gathered, Moving};

/// Setup of a slot.
#[derive(Debug)]
pub struct SlotSetup {
    /// Its number.
    pub number: SlotNumber,
    /// The leading client, which is notified of complete splits.
    pub lead: Address,
    /// The partitioning of the index.
    pub partitioner: Arc<dyn Partitioner>,
    /// The clock that times its work.
    pub clock: Arc<dyn Clock>,
    /// Whether its network is reliable.
    pub is_reliable: bool,
    /// Additional nanoseconds for reading the relations of a vertex: simulates a slow disk in tests.
    pub delay: u64,
}

/// A slot; see the module's description.
#[derive(Debug)]
pub struct SlotServer {
    pub(crate) number: SlotNumber,
    pub(crate) lead: Address,
    pub(crate) partitioner: Arc<dyn Partitioner>,
    pub(crate) shelf: SlotShelf,
    pub(crate) clock: Arc<dyn Clock>,
    delivery: Delivery,
    /// Upper bound of a vertex's relations here, if it has a partition here that may still split.
    pub(crate) counted: PlaceMap<Counted>,
    /// Numbers of relation types, for counting.
    pub(crate) kinds: HashMap<Arc<str>, u32>,
    /// Whether the slot began empty: then everything that is here has been counted.
    pub(crate) began_empty: bool,
    /// Vertices that may exceed the threshold and have not been examined since.
    pub(crate) grown: Vec<VertexPlace>,
    /// Rows of consecutive messages.
    pub(crate) gathered: Gathered,
    /// Batches that were handed over and not acknowledged.
    pub(crate) moving: HashMap<u64, u64>,
    /// Actions that wait for them.
    pub(crate) moves: HashMap<u64, Moving>,
    /// Number of splits whose old rows are still visible here.
    pub(crate) unfinished: u64,
    pub(crate) queries: HashMap<QueryId, SlotQuery>,
    pub(crate) next: u64,
    pub(crate) delay: u64,
}

/// Whether a slot continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Serving {
    /// It continues.
    On,
    /// It was asked to stop.
    Stopped,
}

impl SlotServer {
    /// A slot with the content of this shelf.
    pub fn new(setup: SlotSetup, shelf: SlotShelf) -> SlotServer {
        let SlotSetup { number, lead, partitioner, clock, is_reliable, delay } = setup;
        let delivery = Delivery::new(Address::Slot(number), is_reliable);
        let (counted, kinds, grown, gathered, moving, moves, queries) = Default::default();
        let (unfinished, next) = (0, 0);
        let began_empty = shelf.content().segments.is_empty();
        SlotServer {
            number,
            lead,
            partitioner,
            shelf,
            clock,
            delivery,
            counted,
            kinds,
            began_empty,
            grown,
            gathered,
            moving,
            moves,
            unfinished,
            queries,
            next,
            delay,
        }
    }

    /// The client to notify of a failure: the end that asked, or the leading client if that end is a slot.
    fn client_of(&self, end: Address) -> Address {
        match end {
            Address::Client(_) => end,
            Address::Slot(_) => self.lead,
        }
    }

    /// Its content.
    pub fn shelf(&self) -> &SlotShelf {
        &self.shelf
    }

    /// Handles an end that has gone: forgets a client's traversals.
    pub fn forget(&mut self, end: Address) {
        self.delivery.forget(end);
        self.queries.retain(|_, query| query.asker != end);
    }

    /// Hands over again the rows whose handover was unfinished when the slot stopped.
    pub fn resume(&mut self, out: &mut Outgoing) -> Result<()> {
        let begun = self.split_again(out);
        self.flush(out);
        begun
    }

    /// Handles a frame. Invalid frames, and those for another slot, are ignored: the sender sends them again.
    pub fn handle(&mut self, frame: &[u8], out: &mut Outgoing) -> Serving {
        let Ok(Some((from, message))) = self.delivery.take(frame, out) else { return Serving::On };
        let is_rows = matches!(message, Message::Insert { .. } | Message::Move { .. });
        if !is_rows {
            self.add_or_fail(out);
        }
        if message == Message::Stop {
            return Serving::Stopped;
        }
        let query = query_of(&message);
        if let Err(error) = self.take(from, message, out) {
            let asker = query.and_then(|query| self.queries.get(&query)).map(|query| query.asker);
            match asker {
                // Some of them may be among the gathered rows.
                None if is_rows => self.fail_gathered(Some(from), &error, out),
                asker => {
                    let to = asker.unwrap_or(self.client_of(from));
                    self.say(to, Message::failed(query, &error), out);
                }
            }
        }
        self.flush(out);
        Serving::On
    }

    fn take(&mut self, from: Address, message: Message, out: &mut Outgoing) -> Result<()> {
        match message {
            Message::Insert { batch, rows } => self.insert(from, batch, &rows, out),
            Message::Move { batch, rows } => self.moved_here(from, batch, &rows, out),
            Message::Moved { batch } => self.moved_there(batch, out),
            Message::Split { of } => self.note_split(of),
            Message::Finish { of } => {
                self.finish(&of)?;
                self.say(from, Message::Finished, out);
                Ok(())
            }
            Message::Settle => {
                let moving = self.unfinished + self.moves.len() as u64;
                self.say(from, Message::Settled { moving }, out);
                Ok(())
            }
            Message::Begin { query, engine, plan, rows } => {
                self.begin(from, query, engine, plan, &rows)?;
                self.say(from, Message::Begun { query }, out);
                Ok(())
            }
            Message::Show { token, freeze, splits } => {
                if freeze {
                    self.shelf.freeze();
                }
                self.show(from, token, splits, out);
                Ok(())
            }
            Message::Thaw { token, saved } => {
                self.shelf.thaw(saved.as_deref())?;
                self.show(from, token, false, out);
                Ok(())
            }
            Message::End { query } => {
                self.queries.remove(&query);
                Ok(())
            }
            message => self.walk(from, message, out),
        }
    }

    /// Reports the slot's content.
    fn show(&mut self, to: Address, token: u64, splits: bool, out: &mut Outgoing) {
        let segments = self.shelf.names();
        let splits = if splits { split_rows(&**self.shelf.splits()) } else { Vec::new() };
        self.say(to, Message::Shown { token, segments, splits }, out);
    }

    /// Works while no frame waits; returns whether there may be more to do.
    pub fn idle(&mut self, out: &mut Outgoing) -> bool {
        let gathered = !self.gathered.answers.is_empty();
        self.add_or_fail(out);
        let more = self.between_frames(out);
        self.flush(out);
        more || gathered
    }

    /// Adds the gathered rows; if that fails, the waiting ends get the error.
    fn add_or_fail(&mut self, out: &mut Outgoing) {
        if let Err(error) = self.add_gathered(out) {
            self.fail_gathered(None, &error, out);
        }
    }

    /// Sends an error to the ends that wait for gathered rows, and to the sender of more. The leading client
    /// gets it in place of slots, and if no end waits.
    fn fail_gathered(&mut self, from: Option<Address>, error: &Error, out: &mut Outgoing) {
        let waiting = std::mem::take(&mut self.gathered).answers;
        let asked = waiting.iter().map(|answer| answer.to).chain(from);
        let mut clients: BTreeSet<Address> = asked.map(|end| self.client_of(end)).collect();
        if clients.is_empty() {
            clients.insert(self.lead);
        }
        for client in clients {
            self.say(client, Message::failed(None, error), out);
        }
    }

    /// Sends frames again that were not acknowledged in time.
    pub fn again(&mut self, out: &mut Outgoing) {
        self.delivery.again(self.clock.monotonic(), out);
    }

    /// Sends a message, and counts it if it belongs to a traversal.
    pub(crate) fn say(&mut self, to: Address, message: Message, out: &mut Outgoing) {
        let frame = self.delivery.wrap(to, message, self.clock.monotonic());
        out.push((to, frame));
    }

    /// A number that this slot has not used.
    pub(crate) fn fresh_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}

/// The traversal to which a message belongs.
pub(crate) fn query_of(message: &Message) -> Option<QueryId> {
    match message {
        Message::Begin { query, .. }
        | Message::Step { query, .. }
        | Message::Reach { query, .. }
        | Message::Expand { query, .. }
        | Message::Gather { query, .. }
        | Message::Gathered { query, .. }
        | Message::Collect { query } => Some(*query),
        _ => None,
    }
}

/// The error for a message that no slot accepts.
pub(crate) fn unexpected(message: &Message) -> Error {
    Error::internal(format!("a slot was sent {message:?}"))
}
