//! What a traversal sends from slot to slot.
//!
//! A *moment* is the time that a walk by cause carries; none before a relation gave it one, and none otherwise.

use fieldstone_core::Result;

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
    /// Type and id, where the walk asks for them.
    pub name: Option<VertexName>,
    /// What led there, where that is noted: vertex and moment in the set before.
    pub from: Option<(VertexPlace, Option<u64>)>,
}

/// A vertex whose relations are walked, sent to a slot that has some of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// The vertex.
    pub vertex: VertexPlace,
    /// The vertex of the walk: the job, where this is one of its processes.
    pub node: VertexPlace,
    /// The moments from which it is walked.
    pub moments: Vec<Option<u64>>,
    /// When it was replaced, ascending, where that was gathered.
    pub replacing: Option<Vec<u64>>,
    /// Its partitions that the sender knows to be split.
    pub splits: Vec<u32>,
}

/// What is asked of all slots that have relations of a vertex.
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
    /// Which set: 0 is the start, i the far ends of the i-th hop.
    pub set: u32,
    /// The round in which it was reached first.
    pub round: u32,
    /// The vertex.
    pub vertex: VertexPlace,
    /// Its moment.
    pub moment: Option<u64>,
}

/// What led to what: a node of one set, a node of another.
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

/// What a slot did in one hop of one round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotStep {
    /// Which hop.
    pub hop: u32,
    /// The round of what is repeated, from 1; 0 behind it.
    pub round: u32,
    /// Vertices of the frontier that are at home here.
    pub frontier: u64,
    /// Vertices that were reached here, and that nothing had reached before.
    pub reached: u64,
    /// Relations that were read here.
    pub relations: u64,
    /// Vertices whose relations were asked for at another slot.
    pub requests: u64,
    /// Relations whose far end is at home in another slot.
    pub forwards: u64,
    /// Frames and bytes that were sent.
    pub frames: u64,
    /// Bytes of these frames.
    pub bytes: u64,
    /// Nanoseconds with vertices: whether they pass, what they are.
    pub vertex_time: u64,
    /// Nanoseconds with relations.
    pub edge_time: u64,
    /// Nanoseconds with relations that were read before their step.
    pub prefetch_time: u64,
    /// Vertices whose relations were read before their step.
    pub prefetched: u64,
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
