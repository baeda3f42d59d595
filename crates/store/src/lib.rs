//! The field store: fields go in by key, become visible at a flush, and come out by request.
//!
//! * [`api`]: the trait [`FieldStore`] and the words of its calls; what every backend and frontend keeps.
//! * [`local`]: [`LocalStore`], the store in a folder (or, on a simulated disk, in memory).
//! * [`join`]: what a catalog or a graph beside the fields needs of a store.
//! * [`feed`]: what the logs hold, commit by commit, for the indexes that are built over them.
//! * [`conformance`]: the suite that every implementation of the trait must pass.
//!
//! Inside a [`LocalStore`]:
//!
//! * `writer`: this process's own log; batches, flushes, index runs, the board slot;
//! * `snapshot`: which commits of which logs a read sees;
//! * `read`: from a request to entries, from entries to checked bytes;
//! * `report`: verify, status, stats, dump;
//! * `checkpoint`: a store in memory, written to a folder.
//!
//! Invariants: a commit record is the only thing that makes a field visible; no file is written by two
//! processes but a host's board; nothing is locked; a read pins one snapshot.

pub mod api;
pub mod conformance;
pub mod join;
pub mod local;
mod read;
mod report;
mod writer;

use fieldstone_journal::{checkpoint, feed, files, fork, identity, layout, run, snapshot};

pub use api::FieldStore;
pub use fieldstone_journal::feed::Feed;
pub use local::LocalStore;
pub use read::{Field, Fields, FieldsReader, Outline};
