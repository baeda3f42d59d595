//! Slots: parts of the graph's index, each with its own relations and vertices, which communicate only by
//! messages. Here they run as threads of a process; every message names its ends by addresses that all
//! processes share, so that a server can carry the same frames.
//!
//! ```text
//! client ──Insert──▶ slot ──Move──▶ slot        puts; rows that a split hands over
//!        ◀Inserted──      ◀─Moved──
//! client ──Begin, Step──▶ slots ──Expand, Reach──▶ slots        a traversal
//!        ◀──Report, Collected──
//! client ──Show, Thaw──▶ slots                    the content of slots
//!        ◀──Shown──
//! ```
//!
//! | module | content |
//! |---|---|
//! | [`network`] | carries frames from one end to another, and reports ends that have gone: threads, or a simulation |
//! | [`storage`] | segments that all ends reach, by the numbers in messages |
//! | `delivery` | delivers each frame once, on a network that loses them |
//! | [`shelf`] | the content of a slot: its segments, and the split partitions |
//! | `placed` | rows on their way to a slot |
//! | `put`, `split` | arriving rows; splits of partitions |
//! | `walk`, `query`, `gather`, `progress` | a traversal in one slot |
//! | [`server`] | a slot: it handles one frame after another |
//! | [`client`] | an end that puts rows and begins traversals |
//! | [`shelves`] | the same end asks slots for their content |
//! | [`cluster`], `hosting` | all slots of an index, a thread for each |
//! | [`travels`] | a traversal at its client |
//! | [`simulated`] | slots and their network in one thread, from a seed |
//!
//! Invariants:
//! * only a slot itself reads and writes its shelf; other ends know what it sent;
//! * an end has one [address](fieldstone_format::graph_message::ends::Address) in all processes: a slot's
//!   follows from the partitioning of the index, and a client draws its own at random;
//! * a relation that a split hands over stays visible at its old slot until all relations of the split have
//!   arrived and no traversal is beginning;
//! * a split never blocks the puts of clients;
//! * the logs hold all content of slots: a lost slot is made again from its files and the later commits in
//!   the logs.
//!
//! ```
//! use fieldstone_core::env::Env;
//! use fieldstone_format::graph_segment::partitioning::Partitioning;
//! use fieldstone_graph::segment::Rows;
//! use fieldstone_graph::slot::StartSlots;
//! use fieldstone_slots::SlotOptions;
//!
//! let partitioning = Partitioning { slots: 4, ..Partitioning::default() };
//! let slots = SlotOptions::default().start(partitioning, Vec::new(), &Env::real())?;
//! slots.insert(&Rows::default())?;
//! assert_eq!(slots.contents()?.len(), 4);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```
//!
//! Source: GraphMeta (TPDS 30 (7), 2019), sections 4 and 5.

pub mod client;
pub mod cluster;
mod delivery;
mod gather;
mod hosting;
pub mod network;
mod placed;
mod progress;
mod put;
mod query;
pub mod server;
pub mod shelf;
pub mod shelves;
pub mod simulated;
mod split;
pub mod storage;
pub mod travels;
mod walk;

pub use client::SlotClient;
pub use cluster::{SlotCluster, SlotOptions};
