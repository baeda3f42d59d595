//! Messages between the slots of the graph's view, and between them and who asks them. The normative text is
//! `spec/graph-messages.md`.
//!
//! ```text
//! frame   = crc: u32 of all behind it  from: address  to: address  number: varint  message
//! message = kind: u8  fields
//! ```
//! Frames from one end to another are numbered from 1; an acknowledgement has no number of its own, which is 0. Frames may
//! come twice, late, in any order or not at all: the sender keeps a frame until it is acknowledged, the receiver takes each
//! number once.
//!
//! | module | what |
//! |---|---|
//! | [`ends`] | names of ends and of traversals, the same in all processes |
//! | `fields` | how fields of messages are written |
//! | [`rows`] | rows that go to a slot, with the commits they are of |
//! | [`walk`] | what a traversal sends from slot to slot |
//! | [`plan`] | what is walked |
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

/// What goes from one end to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// The end that sends it.
    pub from: Address,
    /// The end that is to have it.
    pub to: Address,
    /// Its number among those from here to there; 0: it is not acknowledged.
    pub number: u64,
    /// What it says.
    pub message: Message,
}

/// Partitions of a vertex that are split, by their numbers.
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

/// What one end says to another.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Frames of these numbers came.
    Acknowledge {
        /// The numbers.
        numbers: Vec<u64>,
    },
    /// A client puts rows.
    Insert {
        /// Its number, by the sender.
        batch: u64,
        /// The rows.
        rows: PlacedRows,
    },
    /// The answer: what is elsewhere by now, and what its vertices' splits are.
    Inserted {
        /// Its number, by the sender.
        batch: u64,
        /// What is elsewhere by now.
        refused: Vec<Refused>,
        /// What is split of the vertices it is of.
        splits: Vec<VertexSplits>,
    },
    /// A slot gives away part of a partition that splits.
    Move {
        /// Its number, by the sender.
        batch: u64,
        /// The rows.
        rows: PlacedRows,
    },
    /// The answer: the rows are where they belong.
    Moved {
        /// Its number, by the sender.
        batch: u64,
    },
    /// To a vertex's home: a partition of it is split.
    Split {
        /// Which.
        of: VertexPartition,
    },
    /// To the client that leads: all of a split partition is where it belongs.
    Complete {
        /// Which.
        of: VertexPartition,
    },
    /// The answer: no traversal is beginning; what was moved need not be shown any more.
    Finish {
        /// Which.
        of: Vec<VertexPartition>,
    },
    /// Finishing was noted.
    Finished,
    /// How many partitions of this slot are being split?
    Settle,
    /// The answer.
    Settled {
        /// How many are.
        moving: u64,
    },
    /// A traversal begins: what is put from here on is not seen by it. The rows are the asker's own.
    Begin {
        /// The traversal.
        query: QueryId,
        /// 0: by steps, reading ahead; 1: by steps; 2: without steps.
        engine: u8,
        /// What is walked.
        plan: WalkPlan,
        /// The rows.
        rows: PlacedRows,
    },
    /// It is known here.
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
        /// The round of what is repeated, from 1; 0 behind it.
        round: u32,
    },
    /// Vertices are reached, at their home.
    Reach {
        /// The traversal.
        query: QueryId,
        /// The set: 0 is the start.
        set: u32,
        /// The round of what is repeated, from 1; 0 behind it.
        round: u32,
        /// The vertices.
        reached: Vec<Reaching>,
    },
    /// Relations of vertices are walked, where they are.
    Expand {
        /// The traversal.
        query: QueryId,
        /// The hop.
        hop: u32,
        /// The round of what is repeated, from 1; 0 behind it.
        round: u32,
        /// The vertices.
        vertices: Vec<Expansion>,
    },
    /// What must be known of all relations of a vertex is asked, where they are.
    Gather {
        /// The traversal.
        query: QueryId,
        /// By which the answer is known.
        token: u64,
        /// What is asked.
        what: Asked,
        /// The vertex.
        vertex: VertexPlace,
    },
    /// The answer: stamps, or places as numbers.
    Gathered {
        /// The traversal.
        query: QueryId,
        /// By which the answer is known.
        token: u64,
        /// Stamps, or places.
        found: Vec<u128>,
        /// Names of the places.
        names: Vec<VertexName>,
    },
    /// How many frames of a traversal a slot has sent to each end and has received from each, so far.
    Report {
        /// The traversal.
        query: QueryId,
        /// To each slot, then to the asker.
        sent: Vec<u64>,
        /// From each slot, then from the asker.
        received: Vec<u64>,
        /// Vertices that wait for the next hop.
        fresh: u64,
    },
    /// What came out is asked for.
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
        /// What led to what.
        links: Vec<WalkLink>,
        /// What was done.
        steps: Vec<SlotStep>,
    },
    /// A traversal is over.
    End {
        /// The traversal.
        query: QueryId,
    },
    /// A slot cannot do what was asked of it, and why.
    Failed {
        /// The traversal, where it is one that failed.
        query: Option<QueryId>,
        /// The error's code.
        code: String,
        /// Its message.
        why: String,
        /// The next step.
        hint: Option<String>,
    },
    /// A slot stops.
    Stop,
    /// To a slot: what does it hold?
    Show {
        /// By which the answer is known.
        token: u64,
        /// Whether it leaves that as it is until it is thawed.
        freeze: bool,
        /// Whether its splits are asked for, too.
        splits: bool,
    },
    /// The answer.
    Shown {
        /// By which the answer is known.
        token: u64,
        /// Its segments, the older first, by their numbers in the storage that all ends share.
        segments: Vec<u64>,
        /// Its splits, where they were asked for.
        splits: Vec<SplitVertex>,
    },
    /// To a slot: what was written to disk takes the place of what was frozen; the answer is what it holds then.
    Thaw {
        /// By which the answer is known.
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
    /// That something failed.
    pub fn failed(query: Option<QueryId>, error: &fieldstone_core::Error) -> Message {
        let (code, hint) = (error.code().as_str().to_owned(), error.hint().map(str::to_owned));
        Message::Failed { query, code, why: error.message().to_owned(), hint }
    }

    /// The error of a failure: Internal, where nobody knows its code.
    pub fn error(code: &str, why: String, hint: Option<String>) -> fieldstone_core::Error {
        let error = Code::of_text(code).unwrap_or(Code::Internal).error(why);
        match hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

impl Frame {
    /// Its bytes.
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

    /// Reads a frame; every defect is Corrupt.
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
