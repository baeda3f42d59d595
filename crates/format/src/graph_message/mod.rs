//! Messages between the slots of the graph's index, and between them and their clients. The normative text is
//! `spec/graph-messages.md`.
//!
//! ```text
//! frame   = crc: u32 of the rest  from: address  to: address  number: varint  message
//! message = kind: u8  fields
//! ```
//! Frames from one end to another are numbered from 1; an acknowledgement has the number 0. Frames may arrive
//! twice, late, in any order or never: the sender keeps a frame until it is acknowledged, and the receiver
//! accepts each number once.
//!
//! | module | content |
//! |---|---|
//! | [`ends`] | names of ends and of traversals, the same in all processes |
//! | `fields` | the encoding of message fields |
//! | [`rows`] | rows for a slot, with their commits |
//! | [`walk`] | content that a traversal sends from slot to slot |
//! | [`plan`] | the plan of a traversal |
//!
//! ```
//! use fieldstone_format::graph_message::ends::Address;
//! use fieldstone_format::graph_message::{Frame, Message};
//! let frame = Frame { from: Address::Slot(0), to: Address::Slot(2), number: 7, message: Message::Settle };
//! assert_eq!(Frame::decode(&frame.encode())?, frame);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

pub mod ends;
mod fields;
pub mod plan;
pub mod rows;
pub mod walk;

use fieldstone_core::{Code, Result};

use crate::bytes::{Cursor, Put};
use crate::crc;
use crate::graph::VertexName;
use crate::graph_segment::VertexPlace;
use crate::graph_segment::manifest::SplitVertex;
use ends::{Address, QueryId};
use fields::{Field, message_kinds};
use plan::WalkPlan;
use rows::{PlacedRows, Refused};
use walk::{Asked, Expansion, Reaching, SlotStep, WalkLink, WalkNode};

/// A message from one end to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The sender.
    pub from: Address,
    /// The receiver.
    pub to: Address,
    /// Its number among the frames from this sender to this receiver; 0: it is not acknowledged.
    pub number: u64,
    /// The message.
    pub message: Message,
}

/// The split partitions of a vertex, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VertexSplits {
    /// The vertex.
    pub vertex: VertexPlace,
    /// The partitions.
    pub partitions: Vec<u32>,
}

/// One partition of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct VertexPartition {
    /// The vertex.
    pub vertex: VertexPlace,
    /// The partition, by its number.
    pub partition: u32,
}

/// A message of one end to another.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Frames with these numbers arrived.
    Acknowledge {
        /// The numbers.
        numbers: Vec<u64>,
    },
    /// A client puts rows.
    Insert {
        /// The sender's number for it.
        batch: u64,
        /// The rows.
        rows: PlacedRows,
    },
    /// The answer: rows that belong elsewhere now, and the splits of the batch's vertices.
    Inserted {
        /// The sender's number for it.
        batch: u64,
        /// Rows that belong elsewhere now.
        refused: Vec<Refused>,
        /// Splits of the batch's vertices.
        splits: Vec<VertexSplits>,
    },
    /// A slot hands over rows of a splitting partition.
    Move {
        /// The sender's number for it.
        batch: u64,
        /// The rows.
        rows: PlacedRows,
    },
    /// The answer: the rows have arrived.
    Moved {
        /// The sender's number for it.
        batch: u64,
    },
    /// To a vertex's home: a partition of the vertex has split.
    Split {
        /// The partition.
        of: VertexPartition,
    },
    /// To the leading client: all rows of a split partition have arrived.
    Complete {
        /// The partition.
        of: VertexPartition,
    },
    /// The answer: no traversal is beginning, so the old slot may drop the moved rows.
    Finish {
        /// The partitions.
        of: Vec<VertexPartition>,
    },
    /// The slot has recorded the end of the splits.
    Finished,
    /// Asks for the number of partitions of this slot that are splitting.
    Settle,
    /// The answer.
    Settled {
        /// The number of splitting partitions.
        moving: u64,
    },
    /// Begins a traversal, which does not see later puts. The rows are the client's own.
    Begin {
        /// The traversal.
        query: QueryId,
        /// 0: by steps, reading ahead; 1: by steps; 2: without steps.
        engine: u8,
        /// The plan.
        plan: WalkPlan,
        /// The rows.
        rows: PlacedRows,
    },
    /// The answer: the slot knows the traversal.
    Begun {
        /// The traversal.
        query: QueryId,
    },
    /// A hop begins, in all slots.
    Step {
        /// The traversal.
        query: QueryId,
        /// The hop.
        hop: u32,
        /// The round of the repeated part, from 1; 0 after it.
        round: u32,
    },
    /// Reached vertices, sent to their home.
    Reach {
        /// The traversal.
        query: QueryId,
        /// The set: 0 is the start.
        set: u32,
        /// The round of the repeated part, from 1; 0 after it.
        round: u32,
        /// The vertices.
        reached: Vec<Reaching>,
    },
    /// Asks a slot to walk the relations of vertices that it has.
    Expand {
        /// The traversal.
        query: QueryId,
        /// The hop.
        hop: u32,
        /// The round of the repeated part, from 1; 0 after it.
        round: u32,
        /// The vertices.
        vertices: Vec<Expansion>,
    },
    /// Asks a slot for facts that need all relations of a vertex.
    Gather {
        /// The traversal.
        query: QueryId,
        /// Identifies the answer.
        token: u64,
        /// The question.
        what: Asked,
        /// The vertex.
        vertex: VertexPlace,
    },
    /// The answer: stamps, or places as numbers.
    Gathered {
        /// The traversal.
        query: QueryId,
        /// Identifies the answer.
        token: u64,
        /// Stamps, or places.
        found: Vec<u128>,
        /// Names of the places.
        names: Vec<VertexName>,
    },
    /// The number of a traversal's frames that a slot has sent to each end and received from each, so far.
    Report {
        /// The traversal.
        query: QueryId,
        /// To each slot, then to the client.
        sent: Vec<u64>,
        /// From each slot, then from the client.
        received: Vec<u64>,
        /// Vertices that wait for the next hop.
        fresh: u64,
    },
    /// Asks for the results of a traversal.
    Collect {
        /// The traversal.
        query: QueryId,
    },
    /// The answer.
    Collected {
        /// The traversal.
        query: QueryId,
        /// Vertices of the sets.
        nodes: Vec<WalkNode>,
        /// Links between vertices of the sets.
        links: Vec<WalkLink>,
        /// Counts of the slot's work.
        steps: Vec<SlotStep>,
    },
    /// Ends a traversal.
    End {
        /// The traversal.
        query: QueryId,
    },
    /// The answer of a slot that failed, with the reason.
    Failed {
        /// The traversal, if one failed.
        query: Option<QueryId>,
        /// The error's code.
        code: String,
        /// Its message.
        why: String,
        /// The next step.
        hint: Option<String>,
    },
    /// Stops a slot.
    Stop,
    /// Asks a slot for its content.
    Show {
        /// Identifies the answer.
        token: u64,
        /// Whether the slot must not change the content until it is thawed.
        freeze: bool,
        /// Whether to include its splits.
        splits: bool,
    },
    /// The answer.
    Shown {
        /// Identifies the answer.
        token: u64,
        /// Its segments, the oldest first, by their numbers in the storage that all ends share.
        segments: Vec<u64>,
        /// Its splits, if requested.
        splits: Vec<SplitVertex>,
    },
    /// Replaces the frozen content of a slot by the content written to disk; the answer is its content
    /// afterwards.
    Thaw {
        /// Identifies the answer.
        token: u64,
        /// The written content, as in [`Message::Shown`]; `None`: nothing was written.
        saved: Option<Vec<u64>>,
    },
}

message_kinds! { Message {
    0 => Acknowledge { numbers },
    1 => Insert { batch, rows },
    2 => Inserted { batch, refused, splits },
    3 => Move { batch, rows },
    4 => Moved { batch },
    5 => Split { of },
    6 => Complete { of },
    7 => Finish { of },
    8 => Finished {},
    9 => Settle {},
    10 => Settled { moving },
    11 => Begin { query, engine, plan, rows },
    12 => Begun { query },
    13 => Step { query, hop, round },
    14 => Reach { query, set, round, reached },
    15 => Expand { query, hop, round, vertices },
    16 => Gather { query, token, what, vertex },
    17 => Gathered { query, token, found, names },
    18 => Report { query, sent, received, fresh },
    19 => Collect { query },
    20 => Collected { query, nodes, links, steps },
    21 => End { query },
    22 => Failed { query, code, why, hint },
    23 => Stop {},
    24 => Show { token, freeze, splits },
    25 => Shown { token, segments, splits },
    26 => Thaw { token, saved },
} }

impl Message {
    /// The message for a failure.
    pub fn failed(query: Option<QueryId>, error: &fieldstone_core::Error) -> Message {
        let (code, hint) = (error.code().as_str().to_owned(), error.hint().map(str::to_owned));
        Message::Failed { query, code, why: error.message().to_owned(), hint }
    }

    /// The error of a failure; Internal if its code is unknown.
    pub fn error(code: &str, why: String, hint: Option<String>) -> fieldstone_core::Error {
        let error = Code::of_text(code).unwrap_or(Code::Internal).error(why);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

impl Frame {
    /// Encodes the frame.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![0; 4];
        self.from.put(&mut out);
        self.to.put(&mut out);
        out.put_varint(self.number);
        self.message.put(&mut out);
        let sum = crc(&out[4..]);
        out[..4].copy_from_slice(&sum.to_le_bytes());
        out
    }

    /// Decodes a frame; every defect is Corrupt.
    pub fn decode(bytes: &[u8]) -> Result<Frame> {
        let mut cursor = Cursor::new(bytes);
        let sum = cursor.u32()?;
        if sum != crc(&bytes[4..]) {
            return Err(Code::Checksum.error("a message does not match its checksum"));
        }
        let (from, to) = (Field::read(&mut cursor)?, Field::read(&mut cursor)?);
        let number = cursor.varint()?;
        let message = Message::read(&mut cursor)?;
        match cursor.is_empty() {
            true => Ok(Frame { from, to, number, message }),
            false => Err(cursor.fail("a message is longer than its content")),
        }
    }
}
