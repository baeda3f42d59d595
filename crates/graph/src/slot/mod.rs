//! Slots: parts of a view, each with relations and vertices of its own, that know of one another by messages alone.
//!
//! ```text
//! client ──Insert──▶ slot ──Move──▶ slot        what is put; what a split gives away
//!        ◀Inserted──      ◀─Moved──
//! client ──Begin, Step──▶ slots ──Expand, Reach──▶ slots        a traversal
//!        ◀──Report, Collected──
//! ```
//!
//! | module | |
//! |---|---|
//! | [`network`] | what carries frames from one end to another: threads, or a simulation |
//! | `delivery` | each frame once, on a network that loses them |
//! | [`shelf`] | what a slot has: its segments, and which partitions are split |
//! | `placed` | rows on their way to a slot |
//! | `put`, `split` | rows come in; partitions split |
//! | `walk`, `query`, `gather`, `progress` | a traversal, as one slot has it |
//! | [`server`] | a slot: one frame after another |
//! | [`client`] | who puts rows and begins traversals |
//! | [`cluster`] | all slots of a view, each a thread |
//! | [`travels`] | a traversal, as who asks has it |
//! | [`simulated`] | slots and their network in one thread, from a seed |
//!
//! Invariants:
//! * a slot reads and writes its own shelf only; of others it knows what they sent;
//! * a relation that a split gives away is shown where it was until all that the split gives away is where it belongs,
//!   and no traversal is beginning;
//! * what clients put is never held up by a split;
//! * all that slots hold is in the logs: one that is lost is made from the list on disk and the logs behind it.
//!
//! Source: GraphMeta (TPDS 30 (7), 2019), sections 4 and 5.

pub mod client;
pub mod cluster;
mod delivery;
mod gather;
pub mod network;
mod placed;
mod progress;
mod put;
mod query;
pub mod server;
pub mod shelf;
pub mod simulated;
mod split;
pub mod travels;
mod walk;

pub use client::{Engine, SlotClient};
pub use cluster::{SlotCluster, SlotOptions};
