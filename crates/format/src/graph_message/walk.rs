//! Content that a traversal sends from slot to slot.
//!
//! A *moment* is the time that a walk by cause carries. There is none before a relation has given one, and
//! none in other walks.

use fieldstone_core::Result;
pub use fieldstone_core::graph::SlotStep;

use super::fields::{Field, fields};
use crate::bytes::Cursor;
use crate::graph::VertexName;
use crate::graph_segment::VertexPlace;

/// A vertex that a walk reaches, sent to its home.
#[derive(Debug, Clone, PartialEq)]
pub struct Reaching {
    /// The vertex.
    pub vertex: VertexPlace,
    /// Its moment.
    pub moment: Option<u64>,
    /// Type and id, if the walk needs them.
    pub name: Option<VertexName>,
    /// The vertex and moment in the previous set that led there, if the walk records links.
    pub from: Option<(VertexPlace, Option<u64>)>,
}

/// A vertex whose relations are walked, sent to a slot that has some of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// The vertex.
    pub vertex: VertexPlace,
    /// The vertex that the walk sees: the job, if this is one of its processes.
    pub node: VertexPlace,
    /// The moments from which it is walked.
    pub moments: Vec<Option<u64>>,
    /// The stamps at which it was replaced, ascending, if they were gathered.
    pub replacing: Option<Vec<u64>>,
    /// Its partitions that have split, as far as the sender knows.
    pub splits: Vec<u32>,
}

/// A question to all slots that have relations of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// The stamps at which it was replaced.
    Replacing,
    /// The jobs that contain it.
    Jobs,
    /// The processes that it contains.
    Processes,
}

/// A vertex in one of the sets of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WalkNode {
    /// The set's number: 0 is the start, i the far ends of hop i.
    pub set: u32,
    /// The first round in which it was reached.
    pub round: u32,
    /// The vertex.
    pub vertex: VertexPlace,
    /// Its moment.
    pub moment: Option<u64>,
}

/// A link from a vertex of one set to a vertex of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WalkLink {
    /// The set of the first.
    pub before: u32,
    /// Its vertex and moment.
    pub from: (VertexPlace, Option<u64>),
    /// The set of the second.
    pub set: u32,
    /// Its vertex and moment.
    pub to: (VertexPlace, Option<u64>),
}

impl Field for Asked {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self as u8);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Asked> {
        match cursor.u8()? {
            0 => Ok(Asked::Replacing),
            1 => Ok(Asked::Jobs),
            2 => Ok(Asked::Processes),
            _ => Err(cursor.fail("an unknown question about a vertex")),
        }
    }
}

fields!(Reaching { vertex, moment, name, from });
fields!(Expansion { vertex, node, moments, replacing, splits });
fields!(WalkNode { set, round, vertex, moment });
fields!(WalkLink { before, from, set, to });
fields!(SlotStep {
    hop,
    round,
    frontier,
    reached,
    relations,
    requests,
    forwards,
    frames,
    bytes,
    vertex_time,
    edge_time,
    prefetch_time,
    prefetched
});
