//! Partitions kept in files, so that later runs need not make them again.
//!
//! | file | serves | what a rank reads |
//! |---|---|---|
//! | of edges ([`read_edges`]) | any vector and any number of ranks | the blocks of rows that may have its nodes |
//! | of parts ([`read_parts`]) | one vector, one number of ranks | its part, in one piece |
//!
//! Reading exchanges nothing but agreement and, where the vector stands in shares, what it takes to ask for them; rows of
//! a vector that scatters the nodes are exchanged. A
//! file of another mesh or vector is a `Conflict`, a damaged one is `Corrupt`; the caller then partitions the edges.
//! A file is written by a [`HistoryWriter`], whose middle part may run on any thread. The bytes are described in
//! `spec/partition-history.md`.
//!
//! Invariants: what is read is checked, by checksums and by range, before it is used; a file gets its name when it is whole
//! and durable.

use std::path::Path;

use fieldstone_core::env::comm::{Team, TeamFile};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::partition::{ContentSum, HEADER, HistoryHeader, HistoryKind};

mod edges;
mod parts;
mod verify;
mod writer;

pub use edges::read_edges;
pub use parts::read_parts;
pub use verify::verify_history;
pub use writer::HistoryWriter;

use super::with_file;

/// The step of collectives here. Ranks of which some read and others write, or partition, learn so.
const STEP: &str = "read partition";
/// Bytes that are read, or made ready for writing, at a time.
const PIECE: usize = 1 << 20;

/// A file that a rank reads by itself, and how many bytes it has read.
struct KeptFile<'a> {
    file: &'a TeamFile,
    read: u64,
}

impl KeptFile<'_> {
    /// Fills `bytes`; the file is known to have them.
    fn read(&mut self, bytes: &mut [u8], at: u64) -> Result<()> {
        let count = self.file.read_at(bytes, at)?;
        self.read += count as u64;
        match count == bytes.len() {
            true => Ok(()),
            false => Err(Code::Truncated.error(format!("the file ends at byte {}", at + count as u64))),
        }
    }

    /// Reads the header, and checks that it is of the mesh that is asked for.
    fn header(&mut self, kind: HistoryKind, mesh: ContentSum) -> Result<HistoryHeader> {
        let length = self.file.len()?;
        if length < HEADER as u64 {
            return Err(Code::Truncated.error(format!("the file has {length} bytes, less than a header")));
        }
        let mut bytes = [0; HEADER];
        self.read(&mut bytes, 0)?;
        let header = HistoryHeader::decode(kind, &bytes, length)?;
        match header.mesh == mesh {
            true => Ok(header),
            false => Err(of_another("mesh", header.mesh, mesh)),
        }
    }
}

/// The error of bytes that are not those that were written.
fn damaged(len: u64, offset: u64) -> Error {
    Code::Checksum.error(format!("the {len} bytes from {offset} on do not match their checksum"))
}

fn of_another(what: &str, given: impl std::fmt::Display, asked: impl std::fmt::Display) -> Error {
    Code::Conflict
        .error(format!("the file is of another {what}: {given}, not {asked}"))
        .with_hint("partition the edges; then a file for them can be kept")
}

/// Collective: what each rank reads from a file by itself. Errors name the file.
fn read_alone<T>(team: &Team, path: &Path, read: impl FnOnce(&mut KeptFile<'_>) -> Result<T>) -> Result<T> {
    with_file(team, path, |file| {
        let own = read(&mut KeptFile { file, read: 0 });
        file.team().agree(STEP, own)
    })
}
