//! What a slot notes of partitions that grow, of what it gave away, and of rows that it has gathered.

use fieldstone_format::graph_message::ends::Address;
use fieldstone_format::graph_message::rows::PlacedRows;
use fieldstone_format::graph_message::{Message, VertexPartition};
use fieldstone_graph::hashing::RelationSet;
use fieldstone_graph::partition::SlotNumber;
use fieldstone_graph::segment::Rows;

/// How many relations of a vertex are here: in the one partition of it that may still grow.
#[derive(Debug)]
pub enum Counted {
    /// At most so many: a relation that was put twice may be in it twice.
    AtMost(u64),
    /// These.
    Exactly(RelationSet),
    /// Any number: there is no slot to give some to.
    Final,
}

/// What waits until batches are where they belong.
#[derive(Debug)]
pub struct Moving {
    /// How many batches.
    pub open: usize,
    /// What is done then.
    pub then: Then,
}

/// What is done when all batches are where they belong.
#[derive(Debug)]
pub enum Then {
    /// A split is complete.
    Complete(VertexPartition),
    /// Another slot, or a client, is answered.
    Say { to: Address, answer: Box<Message> },
}

/// Rows that came, and are not on the shelf.
#[derive(Debug, Default)]
pub struct Gathered {
    pub rows: Rows,
    /// Who waits for them.
    pub answers: Vec<WaitingAnswer>,
}

/// An answer that waits until rows are on the shelf.
#[derive(Debug)]
pub struct WaitingAnswer {
    /// Whose rows they are.
    pub to: Address,
    pub answer: Message,
    /// What goes to other slots first.
    pub batches: Vec<(SlotNumber, PlacedRows)>,
}
