//! Containers with the partitioned header: their ranks compare only shared names when they write, and readers read
//! one metadata block at a time.
//!
//! | module | what it does |
//! |---|---|
//! | [`reader`] | reads metadata from head, index table and the needed blocks |
//! | `lists` | answers from the path lists, without reading a block |
//! | `lru_cache` | caches recently read blocks |
//! | `rank_part` | prepares the parts of one rank |
//! | [`write`](mod@write) | the collective call: writes blocks in parallel, gathers the table |
//!
//! `format::partitioned` defines the bytes; the normative text is `spec/partitioned-header.md`.
//!
//! Invariants: every rank holds the index table, but never all blocks; a rank that defines only paths of its own
//! sends no names; an error for a failed checksum names the block and path, and the rest stays readable.

mod lists;
mod lru_cache;
pub(crate) mod rank_part;
pub mod reader;
#[cfg(test)]
mod tests;
pub mod write;

pub use reader::Reader;
pub use write::finished;
