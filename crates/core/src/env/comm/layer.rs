//! A communicator over another one that changes some of its calls and forwards the others: to count or watch calls,
//! or to make one fail.
//!
//! A [`CommLayer`] is a [`Comm`] that implements only the calls that it changes; [`FileLayer`] does the same for
//! files.
//!
//! ```
//! use std::sync::Arc;
//! use fieldstone_core::env::comm::layer::CommLayer;
//! use fieldstone_core::env::comm::{Comm, Team, single::SingleComm};
//! use fieldstone_core::env::sim::SimWorld;
//! use fieldstone_core::{Error, Result};
//!
//! #[derive(Debug)]
//! struct NoStep(SingleComm);
//!
//! impl CommLayer for NoStep {
//!     fn below(&self) -> &dyn Comm {
//!         &self.0
//!     }
//!     fn before_step(&self, step: &str) -> Result<()> {
//!         Err(Error::unavailable(format!("no {step}")))
//!     }
//! }
//!
//! let comm = NoStep(SingleComm::new(SimWorld::memory().disk));
//! assert_eq!(comm.allgather(b"as below").unwrap(), [b"as below"]);
//! assert!(Team::new(Arc::new(comm)).barrier("start").is_err());
//! ```

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::{Comm, CommFile, CommReader, CommWriter, FileMode, Hints, Parts, PartsMut, Reduce, Teams};
use crate::Result;

/// A [`Comm`] that forwards every call that it does not change. It always forwards collectives: the communicator
/// below implements them for all ranks.
pub trait CommLayer: Send + Sync + fmt::Debug {
    /// The communicator below.
    fn below(&self) -> &dyn Comm;
    /// See [`Comm::before_step`].
    fn before_step(&self, step: &str) -> Result<()> {
        self.below().before_step(step)
    }
    /// See [`Comm::teams`].
    fn teams(&self) -> Arc<Teams> {
        self.below().teams()
    }
    /// See [`Comm::open`].
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>> {
        self.below().open(path, mode)
    }
    /// See [`Comm::open_with`]. Without hints it is [`open`](CommLayer::open).
    fn open_with(&self, path: &Path, mode: FileMode, hints: &Hints) -> Result<Arc<dyn CommFile>> {
        match hints.is_empty() {
            true => CommLayer::open(self, path, mode),
            false => self.below().open_with(path, mode, hints),
        }
    }
    /// See [`Comm::hints`].
    fn hints(&self) -> Hints {
        self.below().hints()
    }
    /// See [`Comm::host`].
    fn host(&self) -> Option<String> {
        self.below().host()
    }
}

impl<L: CommLayer> Comm for L {
    fn rank(&self) -> usize {
        self.below().rank()
    }
    fn size(&self) -> usize {
        self.below().size()
    }
    fn before_step(&self, step: &str) -> Result<()> {
        CommLayer::before_step(self, step)
    }
    fn teams(&self) -> Arc<Teams> {
        CommLayer::teams(self)
    }
    fn barrier(&self) -> Result<()> {
        self.below().barrier()
    }
    fn broadcast(&self, root: usize, data: Vec<u8>, len: usize) -> Result<Vec<u8>> {
        self.below().broadcast(root, data, len)
    }
    fn allgather(&self, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.below().allgather(data)
    }
    fn gather(&self, root: usize, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.below().gather(root, data)
    }
    fn exscan(&self, values: &mut [u64]) -> Result<()> {
        self.below().exscan(values)
    }
    fn allreduce(&self, reduce: Reduce, values: &mut [u64]) -> Result<()> {
        self.below().allreduce(reduce, values)
    }
    fn alltoallv(&self, parts: Vec<Vec<u8>>, longest: usize) -> Result<Vec<Vec<u8>>> {
        self.below().alltoallv(parts, longest)
    }
    fn exchange(&self, sent: Parts<'_>, taken: PartsMut<'_>, longest: usize) -> Result<()> {
        self.below().exchange(sent, taken, longest)
    }
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>> {
        CommLayer::open(self, path, mode)
    }
    fn open_with(&self, path: &Path, mode: FileMode, hints: &Hints) -> Result<Arc<dyn CommFile>> {
        CommLayer::open_with(self, path, mode, hints)
    }
    fn hints(&self) -> Hints {
        CommLayer::hints(self)
    }
    fn host(&self) -> Option<String> {
        CommLayer::host(self)
    }
}

/// A [`CommFile`] that forwards every call that it does not change.
#[allow(clippy::len_without_is_empty)] // The file's length shows whether the file is empty.
pub trait FileLayer: Send + Sync + fmt::Debug {
    /// The file below.
    fn below(&self) -> &dyn CommFile;
    /// See [`CommWriter::write_at`].
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.below().write_at(data, offset)
    }
    /// See [`CommReader::read_at`].
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.below().read_at(buffer, offset)
    }
    /// See [`CommWriter::write_all`].
    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        self.below().write_all(parts)
    }
    /// See [`CommReader::read_all`].
    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        self.below().read_all(parts)
    }
    /// See [`CommReader::len`].
    fn len(&self) -> Result<u64> {
        self.below().len()
    }
    /// See [`CommFile::set_len`].
    fn set_len(&self, len: u64) -> Result<()> {
        self.below().set_len(len)
    }
    /// See [`CommFile::sync`].
    fn sync(&self) -> Result<()> {
        self.below().sync()
    }
    /// See [`CommFile::make_durable`].
    fn make_durable(&self) -> Result<()> {
        self.below().make_durable()
    }
    /// See [`CommFile::close`].
    fn close(&self) -> Result<()> {
        self.below().close()
    }
    /// See [`CommFile::visibility_barrier`].
    fn visibility_barrier(&self) -> Result<()> {
        self.below().visibility_barrier()
    }
}

impl<L: FileLayer> CommReader for L {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        FileLayer::read_at(self, buffer, offset)
    }
    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        FileLayer::read_all(self, parts)
    }
    fn len(&self) -> Result<u64> {
        FileLayer::len(self)
    }
}

impl<L: FileLayer> CommWriter for L {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        FileLayer::write_at(self, data, offset)
    }
    fn write_all(&self, parts: &[(u64, &[u8])]) -> Result<()> {
        FileLayer::write_all(self, parts)
    }
}

impl<L: FileLayer> CommFile for L {
    fn set_len(&self, len: u64) -> Result<()> {
        FileLayer::set_len(self, len)
    }
    fn sync(&self) -> Result<()> {
        FileLayer::sync(self)
    }
    fn make_durable(&self) -> Result<()> {
        FileLayer::make_durable(self)
    }
    fn visibility_barrier(&self) -> Result<()> {
        FileLayer::visibility_barrier(self)
    }
    fn is_concurrent(&self) -> bool {
        self.below().is_concurrent()
    }
    fn taken_hints(&self) -> Result<Hints> {
        self.below().taken_hints()
    }
    fn close(&self) -> Result<()> {
        FileLayer::close(self)
    }
}
