//! A slot's records of growing partitions, of rows that it handed over, and of rows that it has gathered.

use fieldstone_format::graph_message::ends::Address;
use fieldstone_format::graph_message::rows::PlacedRows;
use fieldstone_format::graph_message::{Message, VertexPartition};
use fieldstone_graph::hashing::RelationSet;
use fieldstone_graph::partition::SlotNumber;
use fieldstone_graph::segment::Rows;

/// Number of a vertex's relations here: in its one partition that may still grow.
#[derive(Debug)]
pub enum Counted {
    /// At most this many: a relation that was put twice may be counted twice.
    AtMost(u64),
    /// Exactly these.
    Exactly(RelationSet),
    /// Any number: there is no slot to take some of them.
    Final,
}

/// An action that waits for the arrival of batches.
#[derive(Debug)]
pub struct Moving {
    /// Number of outstanding batches.
    pub open: usize,
    /// The action.
    pub then: Then,
}

/// The action after all batches have arrived.
#[derive(Debug)]
pub enum Then {
    /// Completes a split.
    Complete(VertexPartition),
    /// Answers another slot or a client.
    Say { to: Address, answer: Box<Message> },
}

/// Rows that have arrived but are not on the shelf.
#[derive(Debug, Default)]
pub struct Gathered {
    pub rows: Rows,
    /// The answers that wait for them.
    pub answers: Vec<WaitingAnswer>,
}

/// An answer that waits until rows are on the shelf.
#[derive(Debug)]
pub struct WaitingAnswer {
    /// The sender of the rows.
    pub to: Address,
    pub answer: Message,
    /// Batches that must reach other slots first.
    pub batches: Vec<(SlotNumber, PlacedRows)>,
}
