//! Slots: parts of the graph's view, each with relations and vertices of its own, that know of one another by messages
//! alone. They run as threads of a process here; every message names its ends by addresses that all processes share, so that
//! a server can carry the same frames.
//!
//! ```text
//! client ──Insert──▶ slot ──Move──▶ slot        what is put; what a split gives away
//!        ◀Inserted──      ◀─Moved──
//! client ──Begin, Step──▶ slots ──Expand, Reach──▶ slots        a traversal
//!        ◀──Report, Collected──
//! client ──Show, Thaw──▶ slots                    what each holds
//!        ◀──Shown──
//! ```
//!
//! | module | |
//! |---|---|
//! | [`network`] | what carries frames from one end to another, and says which ends are gone: threads, or a simulation |
//! | [`storage`] | segments that all ends reach, by the numbers that messages name |
//! | `delivery` | each frame once, on a network that loses them |
//! | [`shelf`] | what a slot has: its segments, and which partitions are split |
//! | `placed` | rows on their way to a slot |
//! | `put`, `split` | rows come in; partitions split |
//! | `walk`, `query`, `gather`, `progress` | a traversal, as one slot has it |
//! | [`server`] | a slot: one frame after another |
//! | [`client`] | an end that puts rows and begins traversals |
//! | [`shelves`] | the same end asks slots what they hold |
//! | [`cluster`], `hosting` | all slots of a view, each a thread |
//! | [`travels`] | a traversal, as who asks has it |
//! | [`simulated`] | slots and their network in one thread, from a seed |
//!
//! Invariants:
//! * a slot alone reads and writes its shelf; other ends know what it sent;
//! * an end has one [address](fieldstone_format::graph_message::ends::Address) in all processes: a slot's follows from how the
//!   view is cut, a client draws its own at random;
//! * a relation that a split gives away is shown where it was until all that the split gives away is where it belongs,
//!   and no traversal is beginning;
//! * what clients put is never held up by a split;
//! * all that slots hold is in the logs: one that is lost is made from the list on disk and the logs behind it.
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
