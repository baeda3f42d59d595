//! The communicator: how the ranks of a job talk to one another and write one file together.
//!
//! [`Comm`] is what a communicator must offer: few collectives over owned bytes, and a file that all
//! ranks have open. It is implemented for one process ([`single`]), for threads under a seeded schedule
//! with failures ([`threads`]), and, outside this crate, for MPI by a table of functions. Nothing here
//! links MPI. A [`layer`] over one changes some of its calls and hands on the others.
//!
//! Algorithms do not use it directly but through a [`Team`], which adds agreement: what fails on one rank
//! is raised on all, with the rank's number, and ranks that are in different calls learn so instead of
//! waiting for one another. It also counts messages and bytes.
//!
//! Invariants of every [`Comm`]:
//! * collectives are called by all ranks in the same order; each returns when this rank's part is done;
//! * lists that come back are in the order of ranks, this rank's own part among them;
//! * a rank that has gone (its communicator was dropped, its thread panicked) makes the collectives of the
//!   others fail; they do not wait for ever.

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

/// How [`Comm::allreduce`] joins values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reduce {
    /// Wrapping sum.
    Sum,
    /// Greatest value.
    Max,
}

/// How [`Comm::open`] opens a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileMode {
    /// A file that must not exist yet, for reading and writing.
    CreateNew,
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
}

/// What goes to each rank: the bytes one after another in the order of ranks, and how many each has.
#[derive(Debug, Clone, Copy)]
pub struct Parts<'a> {
    /// All of them; at least as many as the lengths say.
    pub bytes: &'a [u8],
    /// How many go to each rank.
    pub lens: &'a [usize],
}

/// What comes from each rank, as [`Parts`].
#[derive(Debug)]
pub struct PartsMut<'a> {
    /// Room for all of them.
    pub bytes: &'a mut [u8],
    /// How many come from each rank.
    pub lens: &'a [usize],
}

/// The ranks of a job. See the module's text.
pub trait Comm: Send + Sync + fmt::Debug {
    /// This rank's number, below [`size`](Comm::size).
    fn rank(&self) -> usize;
    /// How many ranks there are, at least 1.
    fn size(&self) -> usize;
    /// A [`Team`] calls this before each step that its ranks agree upon; an error is this rank's part in it.
    /// So a communicator for tests makes a step fail. It does nothing else, and waits for nobody.
    fn before_step(&self, step: &str) -> Result<()> {
        let _ = step;
        Ok(())
    }
    /// What the [`Team`]s of this communicator know of one another. One that is given out anew for each container
    /// keeps it where all find it.
    fn teams(&self) -> Arc<Teams> {
        Arc::default()
    }
    /// Returns when all ranks have called it.
    fn barrier(&self) -> Result<()>;
    /// `data` of rank `root`, which is `len` bytes long, on every rank; what other ranks give is ignored. All know the length.
    fn broadcast(&self, root: usize, data: Vec<u8>, len: usize) -> Result<Vec<u8>>;
    /// What each rank gave, on every rank.
    fn allgather(&self, data: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// What each rank gave, on rank `root`; an empty list elsewhere.
    fn gather(&self, root: usize, data: &[u8]) -> Result<Vec<Vec<u8>>>;
    /// Replaces each value by the (wrapping) sum of that value over all lower ranks; zeros on rank 0.
    fn exscan(&self, values: &mut [u64]) -> Result<()>;
    /// Replaces each value by its sum or maximum over all ranks. Lists are of equal length everywhere.
    fn allreduce(&self, reduce: Reduce, values: &mut [u64]) -> Result<()>;
    /// Sends `parts[r]` to rank `r`; returns what each rank sent to this one. Any lengths, also beyond 2 GiB; no part is
    /// longer than `longest`, which is the same on all ranks.
    fn alltoallv(&self, parts: Vec<Vec<u8>>, longest: usize) -> Result<Vec<Vec<u8>>>;
    /// As [`alltoallv`](Comm::alltoallv), of parts whose lengths both ends know, from and to where they stand.
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
                return Err(Error::internal(format!("{} bytes came in place of {len}", part.len())));
            }
            into.copy_from_slice(part);
            rest = behind;
        }
        Ok(())
    }
    /// Opens a file on all ranks (collective). Under [`FileMode::CreateNew`] one rank creates it.
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>>;
    /// As [`open`](Comm::open), with hints, which are equal on all ranks. A communicator that knows of none ignores them.
    fn open_with(&self, path: &Path, mode: FileMode, hints: &Hints) -> Result<Arc<dyn CommFile>> {
        let _ = hints;
        self.open(path, mode)
    }
    /// The hints that every file of this communicator is opened with.
    fn hints(&self) -> Hints {
        Hints::default()
    }
    /// The host that this rank runs on, where the communicator can tell; all ranks can or none.
    fn host(&self) -> Option<String> {
        None
    }
}

/// Bytes that the ranks of a communicator read: a file, or whatever is read as one. Offsets and lengths are bytes.
pub trait CommReader: Send + Sync + fmt::Debug {
    /// Reads into `buffer` from `offset`; by this rank alone. Returns how many bytes were read: fewer than
    /// asked for only at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;
    /// Collective: fills each part from its offset. Offsets ascend; parts of one rank do not overlap. A part beyond the end of
    /// the file fails.
    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()>;
    /// Length of the file now.
    fn len(&self) -> Result<u64>;
    /// Whether the file is empty.
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }
}

/// A place that the ranks of a communicator write bytes to: a file, or whatever is written as one.
pub trait CommWriter: Send + Sync + fmt::Debug {
    /// Writes all of `data` at `offset`; by this rank alone.
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()>;
    /// Collective: writes each part at its offset. Offsets ascend; parts of one rank do not overlap.
    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        parts.iter().try_for_each(|(offset, data)| self.write_at(data, *offset))
    }
}

/// A file that all ranks of a communicator have open.
pub trait CommFile: CommReader + CommWriter {
    /// Collective: makes the file this long, cutting it or adding a hole.
    fn set_len(&self, len: u64) -> Result<()>;
    /// Collective: what any rank wrote is durable, and seen by all ranks.
    fn sync(&self) -> Result<()>;
    /// Collective: what any rank wrote is seen by all ranks, and overtakes nothing that they write from now on.
    /// Without it MPI promises neither of bytes that one rank writes and another then reads or writes. A file
    /// whose ranks share one handle has nothing to do.
    fn visibility_barrier(&self) -> Result<()> {
        self.sync()
    }
    /// Collective: what this rank wrote is durable when it returns on this rank. Nothing is said of what others see.
    fn make_durable(&self) -> Result<()> {
        self.sync()
    }
    /// Whether several threads of this rank may call [`read_at`](CommReader::read_at) and
    /// [`write_at`](CommWriter::write_at) at the same time.
    fn is_concurrent(&self) -> bool {
        false
    }
    /// The hints that are in force for this file, whoever gave them; none where the communicator knows of none.
    fn taken_hints(&self) -> Result<Hints> {
        Ok(Hints::default())
    }
    /// Collective: gives back what the file holds. No rank uses it afterwards. MPI closes a file on all ranks
    /// together, therefore dropping one does not; one that was never closed is closed with the process. Calls
    /// after it fail, but where the file belongs to one process alone.
    fn close(&self) -> Result<()> {
        Ok(())
    }
}
