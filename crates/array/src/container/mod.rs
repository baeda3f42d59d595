//! Containers: self-describing array files, created by many ranks without waiting for one another.
//!
//! | module | what it does |
//! |---|---|
//! | [`cdl`] | a container as text, as ncdump prints it |
//! | [`access`] | elements in and out: boxes of variables, alone or by all ranks |
//! | [`convert`](mod@convert), [`merge`](mod@merge) | a container in another format; one from several |
//! | [`define`] | define mode: what one rank wants in a container |
//! | [`enddef`] | the collective moment: what ranks defined apart becomes one header |
//! | [`file`] | an open container: define mode, data mode, the way to a finished file |
//! | [`validate`] | whether a file keeps the format |
//! | [`model`] | words shared by the others: formats, strategies, a variable as readers see it |
//! | [`offsets`] | where the bytes of each variable lie |
//! | [`stats`] | counts and bytes, in all and by path |
//! | [`partitioned`] | the partitioned header: written by blocks, read on demand |
//! | `write_buffer` | bytes gathered into large writes |
//! | `hash_sort` | words in the order of their hashes |
//! | `words` | structs as words between ranks |
//!
//! Invariants: names are paths (`event_7/hits`) in every format; nothing of a file is read but its header's
//! needed parts and the bytes asked for; a collective call raises the same error on all ranks.

pub mod access;
pub mod cdl;
pub mod convert;
#[cfg(test)]
mod counting_key;
pub mod define;
pub mod enddef;
pub mod file;
mod hash_sort;
pub mod merge;
pub mod model;
pub mod offsets;
pub mod partitioned;
pub mod stats;
pub mod validate;
pub(crate) mod words;
pub(crate) mod write_buffer;

pub use file::{Container, CreateOptions, Define, DimRef, Elements, Mode, VarRef};
pub use model::{Counts, DimInfo, Format, Metadata, Object, PathTotals, Strategy, VarInfo};
