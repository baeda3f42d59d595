//! Ranks as threads: the base for tests of collective algorithms, with up to [`MOST_RANKS`] ranks, injected failures,
//! and a schedule determined by a seed (T-2).
//!
//! Without a seed, the threads run freely. With a seed, exactly one rank runs at a time; at every call of the
//! communicator or of one of its files, the seed draws the rank that runs next. So a run repeats exactly, even on a
//! simulated disk. The threads then share one processor, because waking a thread on another, idle processor takes
//! several times as long as most calls.
//!
//! Invariants:
//! * data passed from one rank to another are moved or copied: ranks share nothing through the communicator;
//! * no call waits for a rank that has gone, or for ranks that are in another call: it fails at once;
//! * one rank opens a file, and all write through that one handle.
//!
//! ```
//! use fieldstone_core::env::{comm::{Team, threads}, sim::SimWorld};
//! let disk = SimWorld::memory().disk;
//! let sums = threads::run(4, Some(1), disk, threads::Faults::none(), |comm| {
//!     let team = Team::new(comm);
//!     let rank = team.rank() as u64;
//!     Ok(team.sums("ranks", Ok(vec![rank]))?.before[0])
//! });
//! let sums: Vec<u64> = sums.into_iter().map(|sum| sum.unwrap()).collect();
//! assert_eq!(sums, [0, 0, 1, 3]);
//! ```

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::thread;

mod faults;
mod file;
mod meeting;

pub use faults::Faults;

use self::file::ThreadFile;
use self::meeting::{Call, Died, Meeting};
use super::single::DiskCommFile;
use super::{Comm, CommFile, FileMode, Reduce, Teams};
use crate::env::Disk;
use crate::processor::Processor;
use crate::{Error, Result};

/// Maximum number of ranks in a run.
pub const MOST_RANKS: usize = 256;

/// Runs `body` on `size` ranks (1 to [`MOST_RANKS`]), each a thread with files on `disk`; freely, or under the
/// schedule of `seed`. Returns each rank's result; for a rank that panicked or died, an error that describes it.
pub fn run<T, F>(
    size: usize,
    seed: Option<u64>,
    disk: Arc<dyn Disk>,
    faults: Faults,
    body: F,
) -> Vec<Result<T>>
where
    T: Send,
    F: Fn(Arc<dyn Comm>) -> Result<T> + Sync,
{
    let meeting = Arc::new(Meeting::new(size.clamp(1, MOST_RANKS), seed, faults));
    let processor = seed.and_then(|_| Processor::of_this_thread());
    thread::scope(|scope| {
        let start = |rank| {
            let comm =
                ThreadComm { meeting: meeting.clone(), rank, disk: disk.clone(), teams: Arc::default() };
            let (meeting, body) = (meeting.clone(), &body);
            scope.spawn(move || {
                processor.iter().for_each(Processor::stay);
                meeting.begin(rank);
                let result = catch_unwind(AssertUnwindSafe(|| body(Arc::new(comm))));
                let result = result.unwrap_or_else(|payload| {
                    let why = cause(&*payload);
                    meeting.leave(rank, &why);
                    Err(Error::internal(format!("rank {rank} {why}")))
                });
                meeting.end(rank);
                result
            })
        };
        let threads: Vec<_> = (0..meeting.size()).map(start).collect();
        let lost = |_| Err(Error::internal("a thread was lost"));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(lost)).collect()
    })
}

/// The reason why a thread unwound.
fn cause(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    match text.or(payload.downcast_ref::<String>().map(String::as_str)) {
        _ if payload.is::<Died>() => "died of an injected failure".to_owned(),
        Some(text) => format!("panicked: {text}"),
        None => "panicked".to_owned(),
    }
}

/// A rank's input to a collective, or its output.
#[derive(Debug, Clone)]
enum Contribution {
    Nothing,
    Bytes(Vec<u8>),
    /// The bytes of all ranks; each rank copies those that it needs.
    All(Arc<Vec<Vec<u8>>>),
    Parts(Vec<Vec<u8>>),
    Numbers(Vec<u64>),
    /// A file and its number.
    File(Arc<DiskCommFile>, u64),
    Failed(Arc<Error>),
}

impl Contribution {
    fn bytes(self) -> Vec<u8> {
        if let Contribution::Bytes(bytes) = self { bytes } else { Vec::new() }
    }
    fn parts(self) -> Vec<Vec<u8>> {
        match self {
            Contribution::Parts(parts) => parts,
            Contribution::All(parts) => parts.to_vec(),
            _ => Vec::new(),
        }
    }
    fn numbers(self) -> Vec<u64> {
        if let Contribution::Numbers(numbers) = self { numbers } else { Vec::new() }
    }
}

/// Gives the same outcome to every rank.
fn for_all(size: usize, part: Contribution) -> Vec<Result<Contribution>> {
    (0..size).map(|_| Ok(part.clone())).collect()
}

/// One rank of a run.
struct ThreadComm {
    meeting: Arc<Meeting>,
    rank: usize,
    disk: Arc<dyn Disk>,
    teams: Arc<Teams>,
}

impl fmt::Debug for ThreadComm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rank {} of {} threads", self.rank, self.meeting.size())
    }
}

impl Drop for ThreadComm {
    fn drop(&mut self) {
        // If this thread panics, `run` reports it to the others a moment later, with its message.
        if !thread::panicking() {
            self.meeting.leave(self.rank, "dropped its communicator");
        }
    }
}

impl ThreadComm {
    fn collective(
        &self,
        call: Call,
        part: Contribution,
        join: impl FnOnce(Vec<Contribution>) -> Vec<Result<Contribution>>,
    ) -> Result<Contribution> {
        self.meeting.enter(self.rank)?;
        self.meeting.meet(self.rank, call, part, join)
    }

    fn check_root(&self, root: usize) -> Result<()> {
        match root < self.size() {
            true => Ok(()),
            false => Err(Error::invalid(format!("rank {root} as root of {} ranks", self.size()))),
        }
    }
}

impl Comm for ThreadComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.meeting.size()
    }

    fn before_step(&self, step: &str) -> Result<()> {
        self.meeting.step(self.rank, step)
    }

    fn teams(&self) -> Arc<Teams> {
        self.teams.clone()
    }

    fn barrier(&self) -> Result<()> {
        self.collective(Call::Barrier, Contribution::Nothing, |parts| {
            for_all(parts.len(), Contribution::Nothing)
        })
        .map(drop)
    }

    fn broadcast(&self, root: usize, data: Vec<u8>, len: usize) -> Result<Vec<u8>> {
        self.check_root(root)?;
        let own = if root == self.rank { Contribution::Bytes(data) } else { Contribution::Nothing };
        let got = self.collective(Call::Broadcast { root }, own, |mut parts| {
            let data = parts.swap_remove(root);
            for_all(parts.len() + 1, data)
        })?;
        let data = got.bytes();
        match data.len() == len {
            true => Ok(data),
            false => Err(Error::internal(format!("a broadcast of {} bytes, declared as {len}", data.len()))),
        }
    }

    fn allgather(&self, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        let got = self.collective(Call::Allgather, Contribution::Bytes(data.to_vec()), |parts| {
            let size = parts.len();
            for_all(size, Contribution::All(Arc::new(parts.into_iter().map(Contribution::bytes).collect())))
        })?;
        Ok(got.parts())
    }

    fn gather(&self, root: usize, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        self.check_root(root)?;
        let got = self.collective(Call::Gather { root }, Contribution::Bytes(data.to_vec()), |parts| {
            let mut outcomes = for_all(parts.len(), Contribution::Nothing);
            outcomes[root] = Ok(Contribution::Parts(parts.into_iter().map(Contribution::bytes).collect()));
            outcomes
        })?;
        Ok(got.parts())
    }

    fn exscan(&self, values: &mut [u64]) -> Result<()> {
        let call = Call::ExclusiveScan { values: values.len() };
        let got = self.collective(call, Contribution::Numbers(values.to_vec()), |parts| {
            let mut sums = vec![0u64; parts.first().cloned().map_or(0, |part| part.numbers().len())];
            let before = |part: Contribution| {
                let before = sums.clone();
                sums.iter_mut().zip(part.numbers()).for_each(|(sum, n)| *sum = sum.wrapping_add(n));
                Ok(Contribution::Numbers(before))
            };
            parts.into_iter().map(before).collect()
        })?;
        values.copy_from_slice(&got.numbers());
        Ok(())
    }

    fn allreduce(&self, reduce: Reduce, values: &mut [u64]) -> Result<()> {
        let call = Call::Allreduce { reduce, values: values.len() };
        let got = self.collective(call, Contribution::Numbers(values.to_vec()), |parts| {
            let size = parts.len();
            let join = |mut sums: Vec<u64>, numbers: Vec<u64>| {
                for (sum, n) in sums.iter_mut().zip(numbers) {
                    *sum = match reduce {
                        Reduce::Sum => sum.wrapping_add(n),
                        Reduce::Max => n.max(*sum),
                    };
                }
                sums
            };
            let sums = parts.into_iter().map(Contribution::numbers).reduce(join).unwrap_or_default();
            for_all(size, Contribution::Numbers(sums))
        })?;
        values.copy_from_slice(&got.numbers());
        Ok(())
    }

    fn alltoallv(&self, parts: Vec<Vec<u8>>, longest: usize) -> Result<Vec<Vec<u8>>> {
        if parts.len() != self.size() {
            let (given, size) = (parts.len(), self.size());
            return Err(Error::invalid(format!("alltoallv with {given} parts for {size} ranks")));
        }
        if let Some(part) = parts.iter().find(|part| part.len() > longest) {
            let len = part.len();
            return Err(Error::internal(format!(
                "a part of {len} bytes, longer than the declared maximum {longest}"
            )));
        }
        let got = self.collective(Call::Alltoallv, Contribution::Parts(parts), |given| {
            let mut given: Vec<_> = given.into_iter().map(|part| part.parts().into_iter()).collect();
            let of_next = |given: &mut Vec<std::vec::IntoIter<Vec<u8>>>| {
                Ok(Contribution::Parts(
                    given.iter_mut().map(|parts| parts.next().unwrap_or_default()).collect(),
                ))
            };
            (0..given.len()).map(|_| of_next(&mut given)).collect()
        })?;
        Ok(got.parts())
    }

    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>> {
        let call = Call::Open { path: path.to_owned(), mode };
        let together = |parts: Vec<Contribution>| for_all(parts.len(), Contribution::Nothing);
        self.collective(call.clone(), Contribution::Nothing, together)?;
        let opened = match self.rank {
            0 => match DiskCommFile::open(&*self.disk, path, mode) {
                Ok(file) => Contribution::File(Arc::new(file), self.meeting.file_number()),
                Err(error) => Contribution::Failed(Arc::new(error)),
            },
            _ => Contribution::Nothing,
        };
        let first = |mut parts: Vec<Contribution>| {
            let opened = parts.swap_remove(0);
            for_all(parts.len() + 1, opened)
        };
        match self.meeting.meet(self.rank, call, opened, first)? {
            Contribution::File(file, number) => {
                let (meeting, rank) = (self.meeting.clone(), self.rank);
                Ok(Arc::new(ThreadFile { meeting, rank, file, number }))
            }
            Contribution::Failed(error) => Err(error.replicate()),
            _ => Err(Error::internal("a collective of threads without an outcome")),
        }
    }
}
