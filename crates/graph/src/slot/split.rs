//! What a slot notes of partitions that grow, and of what it gave away.

use fieldstone_format::graph_message::{Message, VertexPartition};

use crate::places::RelationSet;

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
    Say { to: u32, answer: Message },
}
