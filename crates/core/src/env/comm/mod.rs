//! The communicator: how the ranks of a job exchange data and write one file together.
//!
//! [`Comm`] is the interface of a communicator: a few collectives over owned bytes, and a file that all ranks have
//! open. There are implementations for one process ([`single`]), for threads under a seeded schedule with failures
//! ([`threads`]), and, outside this crate, for MPI through a table of functions. Nothing here links MPI. A [`layer`]
//! over a communicator changes some of its calls and forwards the others.
//!
//! Algorithms do not use a communicator directly but through a [`Team`], which adds agreement: a failure on one rank
//! raises an error on all, with the rank's number, and ranks in different calls get an error instead of waiting for
//! each other. A team also counts messages and bytes.
//!
//! Invariants of every [`Comm`]:
//! * all ranks call collectives in the same order; each call returns when this rank's part is done;
//! * returned lists are in rank order and include this rank's own part;
//! * when a rank has gone (its communicator was dropped, or its thread panicked), the collectives of the others fail
//!   instead of waiting for ever.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::{Error, Result};

pub mod check;
pub mod hints;
pub mod layer;
pub mod rounds;
pub mod single;
mod step;
mod team;
pub mod threads;

pub use hints::Hints;
pub use step::Step;
pub use team::{Counters, Sums, Team, TeamFile, TeamReader, TeamWriter, Teams};

/// The operation with which [`Comm::allreduce`] combines values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    /// Wrapping sum.
    Sum,
    /// Maximum.
    Max,
}

/// How [`Comm::open`] opens a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// Create a file that must not exist yet, for reading and writing.
    CreateNew,
    /// Open an existing file for reading.
    Read,
    /// Open an existing file for reading and writing.
    ReadWrite,
}

/// The bytes for each rank: concatenated in rank order, with the length of each part.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// The concatenated parts; at least as many bytes as the lengths add up to.
    pub bytes: &'a [u8],
    /// The number of bytes for each rank.
    pub lens: &'a [usize],
}

/// Space for the bytes from each rank, laid out as in [`Parts`].
#[derive(Debug)]
pub struct PartsMut<'a> {
    /// Space for all parts.
    pub bytes: &'a mut [u8],
    /// The number of bytes from each rank.
    pub lens: &'a [usize],
}

/// The ranks of a job. See the module's documentation.
pub trait Comm: Send + Sync + fmt::Debug {
    /// This rank's number, below [`size`](Comm::size).
    fn rank(&self) -> usize;
    /// The number of ranks, at least 1.
    fn size(&self) -> usize;
    /// A hook that a [`Team`] calls before each step that its ranks agree upon; an error becomes this rank's part of
    /// the step. Communicators for tests use it to make a step fail. It does nothing else, and does not wait.
    fn before_step(&self, step: &str) -> Result<()> {
        let _ = step;
        Ok(())
    }
    /// The shared state of the [`Team`]s of this communicator. A communicator that is a new object for each container
    /// must keep this where all of its objects find it.
    fn teams(&self) -> Arc<Teams> {
        Arc::default()
    }
    /// Returns when all ranks have called it.
    fn barrier(&self) -> Result<()>;
    /// Returns the `data` of rank `root` on every rank and ignores those of others. `len` is its length, which all
    /// ranks know.
    fn broadcast(&self, root: usize, data: Vec<u8>, len: usize) -> Result<Vec<u8>>;
    /// Returns every rank's `data`, on every rank.
    fn allgather(&self, data: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// Returns every rank's `data` on rank `root`, and an empty list elsewhere.
    fn gather(&self, root: usize, data: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// Replaces each value by its (wrapping) sum over all lower ranks; by zero on rank 0.
    fn exscan(&self, values: &mut [u64]) -> Result<()>;
    /// Replaces each value by its sum or maximum over all ranks. All ranks pass lists of equal length.
    fn allreduce(&self, reduce: Reduce, values: &mut [u64]) -> Result<()>;
    /// Sends `parts[r]` to rank `r`; returns the part that each rank sent to this one. Parts may have any length,
    /// even above 2 GiB; `longest` is an upper limit on the length of a part, equal on all ranks.
    fn alltoallv(&self, parts: Vec<Vec<u8>>, longest: usize) -> Result<Vec<Vec<u8>>>;
    /// As [`alltoallv`](Comm::alltoallv), with parts whose lengths both ends know, directly between the callers'
    /// buffers.
    fn exchange(&self, sent: Parts<'_>, taken: PartsMut<'_>, longest: usize) -> Result<()> {
        let (mut rest, mut parts) = (sent.bytes, Vec::with_capacity(sent.lens.len()));
        for len in sent.lens {
            let (part, behind) = rest.split_at(*len);
            parts.push(part.to_vec());
            rest = behind;
        }
        let came = self.alltoallv(parts, longest)?;
        let mut rest = taken.bytes;
        for (part, len) in came.iter().zip(taken.lens) {
            let (into, behind) = rest.split_at_mut(*len);
            if part.len() != *len {
                return Err(Error::internal(format!("received {} bytes instead of {len}", part.len())));
            }
            into.copy_from_slice(part);
            rest = behind;
        }
        Ok(())
    }
    /// Opens a file on all ranks (collective). Under [`FileMode::CreateNew`], one rank creates it.
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>>;
    /// As [`open`](Comm::open), with hints, which are equal on all ranks. A communicator without hints ignores them.
    fn open_with(&self, path: &Path, mode: FileMode, hints: &Hints) -> Result<Arc<dyn CommFile>> {
        let _ = hints;
        self.open(path, mode)
    }
    /// The hints with which this communicator opens every file.
    fn hints(&self) -> Hints {
        Hints::default()
    }
    /// The host on which this rank runs, if the communicator knows it; either all ranks know theirs or none does.
    fn host(&self) -> Option<String> {
        None
    }
}

/// Bytes that the ranks of a communicator can read: a file, or anything that is read like one. Offsets and lengths
/// count bytes.
pub trait CommReader: Send + Sync + fmt::Debug {
    /// Reads into `buffer` from `offset`, on this rank alone. Returns the number of bytes read, which is smaller than
    /// the buffer only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;
    /// Collective: fills each part from its offset. Offsets ascend; parts of one rank do not overlap. A part beyond
    /// the end of the file is an error.
    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()>;
    /// The current length of the file.
    fn len(&self) -> Result<u64>;
    /// Whether the file is empty.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A place to which the ranks of a communicator can write bytes: a file, or anything that is written like one.
pub trait CommWriter: Send + Sync + fmt::Debug {
    /// Writes all of `data` at `offset`, on this rank alone.
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()>;
    /// Collective: writes each part at its offset. Offsets ascend; parts of one rank do not overlap.
    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        parts.iter().try_for_each(|(offset, data)| self.write_at(data, *offset))
    }
}

/// A file that all ranks of a communicator have open.
pub trait CommFile: CommReader + CommWriter {
    /// Collective: sets the file's length, cutting the file or adding a hole.
    fn set_len(&self, len: u64) -> Result<()>;
    /// Collective: makes all ranks' writes durable, and visible to all ranks.
    fn sync(&self) -> Result<()>;
    /// Collective: makes all earlier writes visible to all ranks, and orders them before all later ones. Without it,
    /// MPI promises neither for bytes that one rank writes and another then reads or writes. A file whose ranks share
    /// one handle needs to do nothing.
    fn visibility_barrier(&self) -> Result<()> {
        self.sync()
    }
    /// Collective: makes this rank's writes durable before it returns on this rank. It promises nothing about what
    /// other ranks see.
    fn make_durable(&self) -> Result<()> {
        self.sync()
    }
    /// Whether several threads of this rank may call [`read_at`](CommReader::read_at) and
    /// [`write_at`](CommWriter::write_at) at the same time.
    fn is_concurrent(&self) -> bool {
        false
    }
    /// The hints in force for this file, whoever gave them; empty if the communicator does not know them.
    fn taken_hints(&self) -> Result<Hints> {
        Ok(Hints::default())
    }
    /// Collective: releases the file's resources. No rank uses the file afterwards. MPI closes a file on all ranks
    /// together, so dropping a file does not close it; a file that was never closed is closed with the process. Later
    /// calls fail, except on a file that belongs to one process alone.
    fn close(&self) -> Result<()> {
        Ok(())
    }
}
