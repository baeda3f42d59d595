//! Containers: self-describing array files that many ranks create without waiting for each other.
//!
//! | module | what it does |
//! |---|---|
//! | [`cdl`] | prints a container as ncdump does |
//! | [`access`] | moves elements in and out: boxes of variables, on one rank or all |
//! | [`convert`](mod@convert), [`merge`](mod@merge) | converts a container to another format; merges several |
//! | [`define`] | define mode: the definitions of one rank |
//! | [`enddef`] | the end of define mode: the ranks' definitions become one header |
//! | [`file`] | an open container: define mode, data mode, the way to a finished file |
//! | [`validate`] | checks that a file obeys its format |
//! | [`model`] | shared types: formats, strategies, variables as readers see them |
//! | [`offsets`] | the extents of variables |
//! | [`stats`] | counts and bytes, in total and by path |
//! | [`partitioned`] | the partitioned header: written in blocks, read on demand |
//! | `write_buffer` | collects bytes into large writes |
//! | `hash_sort` | sorts words by their hashes |
//! | `words` | structs as words in messages between ranks |
//!
//! Invariants: names are paths (`event_7/hits`) in every format; a read touches only the needed parts of a file's
//! header and the requested bytes; a collective call raises the same error on all ranks.

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
