//! Containers with the partitioned header: written by ranks that compare only what they share, read a
//! metadata block at a time.
//!
//! | module | what it does |
//! |---|---|
//! | [`reader`] | metadata from head, index table and the blocks that are asked for |
//! | `lists` | what the path lists say, without a block |
//! | `lru_cache` | blocks that were read lately |
//! | `rank_part` | what one rank prepares alone |
//! | [`write`](mod@write) | the collective moment: blocks written in parallel, the table gathered |
//!
//! The bytes are those of `format::partitioned`; the normative text is `spec/partitioned-header.md`.
//!
//! Invariants: what every rank holds is the index table, never all blocks; a rank that defines paths of its
//! own sends no name to anybody; what fails its checksum is named by block and path, and the rest is read.

mod lists;
mod lru_cache;
pub(crate) mod rank_part;
pub mod reader;
#[cfg(test)]
mod tests;
pub mod write;

pub use reader::Reader;
pub use write::finished;
