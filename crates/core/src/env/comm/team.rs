//! Agreement over a communicator.
//!
//! Every collective of a [`Team`] takes this rank's part as a `Result` and names the step it belongs to.
//! It begins with one small reduction that says who failed and which step each rank is in. So an error
//! before a collective reaches every rank in that collective, as an error of the same kind that names the
//! rank; the communicator stays usable. On a team of one rank nothing is exchanged.
//!
//! ```
//! use fieldstone_core::env::comm::{Team, single::SingleComm};
//! use std::sync::Arc;
//! # fn main() -> fieldstone_core::Result<()> {
//! let team = Team::new(Arc::new(SingleComm::new(fieldstone_core::env::Env::real().disk)));
//! let sums = team.sums("count", Ok(vec![7]))?;
//! assert_eq!((sums.before, sums.total), (vec![0], vec![7]));
//! # Ok(()) }
//! ```

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use xxhash_rust::xxh3::xxh3_64;

use super::{Comm, CommFile, FileMode, Reduce};
use crate::{Error, ErrorKind, Result};

/// Sums over ranks of each of some values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    /// Over the lower ranks.
    pub before: Vec<u64>,
    /// Over all ranks.
    pub total: Vec<u64>,
}

/// What this rank has sent and received. A collective over P ranks counts log2 P messages (rounded up) where
/// a tree carries it (reductions, scans, broadcast, barrier) and P - 1 where each pair may exchange
/// (gathers, alltoallv). Agreement is counted as the reduction that it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Collective calls.
    pub collectives: u64,
    /// Messages sent by this rank.
    pub messages: u64,
    /// Bytes sent by this rank to others.
    pub sent: u64,
    /// Bytes received by this rank from others.
    pub received: u64,
}

#[derive(Debug, Default)]
struct Counting {
    collectives: AtomicU64,
    messages: AtomicU64,
    sent: AtomicU64,
    received: AtomicU64,
}

/// A communicator with agreement. See the module's text. Clones share the communicator and the counters.
#[derive(Debug, Clone)]
pub struct Team {
    comm: Arc<dyn Comm>,
    counting: Arc<Counting>,
    /// The rank that left, and why: from then on nobody waits for anybody.
    left: Arc<OnceLock<(usize, Vec<u8>)>>,
    /// The files that were opened and not yet closed, in the same order on all ranks.
    open: Arc<Mutex<Vec<Arc<dyn CommFile>>>>,
    /// Whether the last step failed, and all ranks were in it.
    failed_together: Arc<AtomicBool>,
}

/// Beside the rank that failed: it takes part in nothing more.
const LEAVES: u64 = 1 << 32;

impl Team {
    /// A team of all ranks of `comm`.
    pub fn new(comm: Arc<dyn Comm>) -> Team {
        let (counting, left) = (Arc::default(), Arc::default());
        Team { comm, counting, left, open: Arc::default(), failed_together: Arc::default() }
    }

    /// This rank's number.
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// What this rank has exchanged so far.
    pub fn counters(&self) -> Counters {
        let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let c = &self.counting;
        Counters {
            collectives: get(&c.collectives),
            messages: get(&c.messages),
            sent: get(&c.sent),
            received: get(&c.received),
        }
    }

    /// Gives `local` back where all ranks succeeded; else the error of the lowest rank that failed.
    ///
    /// Errors: that rank's kind, with its number before the message, whatever step it failed in; `Conflict`
    /// where ranks are in different steps; whatever the communicator itself reports. Once a rank has
    /// [left](Team::leave) its error comes back at once.
    pub fn agree<T>(&self, step: &'static str, local: Result<T>) -> Result<T> {
        self.decide(step, local, false)
    }

    /// Takes part in the step that the other ranks are in, or come to, as failed, and in nothing after it: from
    /// then on every step fails on every rank, with this error, and without waiting. The team's files are closed.
    /// Gives the error back.
    pub fn leave(&self, error: Error) -> Error {
        match self.decide::<()>("leave", Err(error), true) {
            Err(error) => error,
            Ok(()) => Error::internal("a rank left, and its team did not notice"),
        }
    }

    fn decide<T>(&self, step: &'static str, local: Result<T>, leaves: bool) -> Result<T> {
        let local = local.and_then(|part| self.comm.before_step(step).map(|()| part));
        if self.size() == 1 {
            self.failed_together.store(local.is_err(), Ordering::Release);
            if leaves {
                self.close_all();
            }
            return local;
        }
        self.failed_together.store(false, Ordering::Release);
        if let Some((rank, told)) = self.left.get() {
            return Err(unpack(told).context(format_args!("rank {rank}")));
        }
        let (rank, size) = (self.rank() as u64, self.size() as u64);
        let failed = if local.is_err() { size - rank } else { 0 };
        let failed = if leaves { failed | LEAVES } else { failed };
        let code = xxh3_64(step.as_bytes());
        let mut head = [failed, code, !code];
        self.comm.allreduce(Reduce::Max, &mut head)?;
        self.count_tree(24);
        if head[0] == 0 {
            return if head[1] == !head[2] { local } else { Err(self.different_steps(step)?) };
        }
        let loser = (size - (head[0] & (LEAVES - 1))) as usize;
        let told = match (&local, loser == self.rank()) {
            (Err(error), true) => pack(error),
            _ => Vec::new(),
        };
        let told = self.comm.broadcast(loser, told)?;
        if head[0] & LEAVES != 0 {
            let _ = self.left.set((loser, told.clone()));
            // Files are closed by all ranks together, and never again will they be in one step.
            self.close_all();
        } else {
            self.failed_together.store(head[1] == !head[2], Ordering::Release);
        }
        match local {
            Err(own) if loser == self.rank() => Err(own.context(format_args!("rank {loser}"))),
            _ => Err(unpack(&told).context(format_args!("rank {loser}"))),
        }
    }

    fn different_steps(&self, step: &str) -> Result<Error> {
        let steps = self.comm.allgather(step.as_bytes())?;
        let own = String::from_utf8_lossy(&steps[0]).into_owned();
        let other = steps.iter().enumerate().find(|(_, other)| **other != steps[0]);
        let (rank, other) = other.map_or((0, step.into()), |(rank, s)| (rank, String::from_utf8_lossy(s)));
        Ok(Error::conflict(format!("rank 0 is in `{own}`, rank {rank} in `{other}`"))
            .with_hint("all ranks make the same collective calls in the same order"))
    }

    fn open_files(&self) -> MutexGuard<'_, Vec<Arc<dyn CommFile>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close_all(&self) {
        // What cannot be closed is closed with the process.
        std::mem::take(&mut *self.open_files()).iter().for_each(|file| drop(file.close()));
    }

    /// Returns when all ranks are here, with the error of any that failed.
    pub fn barrier(&self, step: &'static str) -> Result<()> {
        self.agree(step, Ok(()))
    }

    /// Each rank's bytes, on every rank.
    pub fn allgather(&self, step: &'static str, local: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let data = self.agree(step, local)?;
        if self.size() == 1 {
            return Ok(vec![data]);
        }
        let parts = self.comm.allgather(&data)?;
        self.count_pairs(data.len() as u64 * (self.size() as u64 - 1), &parts);
        Ok(parts)
    }

    /// Each rank's bytes, on rank `root`; an empty list elsewhere.
    pub fn gather(&self, step: &'static str, root: usize, local: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let data = self.agree(step, local)?;
        if self.size() == 1 {
            return Ok(vec![data]);
        }
        let parts = self.comm.gather(root, &data)?;
        let is_root = root == self.rank();
        let (sent, received) = match is_root {
            true => (0, parts.iter().map(Vec::len).sum::<usize>().saturating_sub(data.len())),
            false => (data.len(), 0),
        };
        self.count(u64::from(!is_root), sent as u64, received as u64);
        Ok(parts)
    }

    /// The bytes of rank `root`, on every rank.
    pub fn broadcast(&self, step: &'static str, root: usize, local: Result<Vec<u8>>) -> Result<Vec<u8>> {
        let data = self.agree(step, local)?;
        if self.size() == 1 {
            return Ok(data);
        }
        let data = self.comm.broadcast(root, data)?;
        self.count_tree(data.len() as u64);
        Ok(data)
    }

    /// Sums of each value over the lower ranks and over all. Lists are of equal length on all ranks.
    pub fn sums(&self, step: &'static str, local: Result<Vec<u64>>) -> Result<Sums> {
        let values = self.agree(step, local)?;
        if self.size() == 1 {
            return Ok(Sums { before: vec![0; values.len()], total: values });
        }
        let mut before = values.clone();
        self.comm.exscan(&mut before)?;
        let mut total = values;
        self.comm.allreduce(Reduce::Sum, &mut total)?;
        self.count_tree(total.len() as u64 * 8);
        self.count_tree(total.len() as u64 * 8);
        Ok(Sums { before, total })
    }

    /// The greatest of each value over all ranks. Lists are of equal length on all ranks.
    pub fn max(&self, step: &'static str, local: Result<Vec<u64>>) -> Result<Vec<u64>> {
        let mut values = self.agree(step, local)?;
        if self.size() > 1 {
            self.comm.allreduce(Reduce::Max, &mut values)?;
            self.count_tree(values.len() as u64 * 8);
        }
        Ok(values)
    }

    /// Sends `parts[r]` to rank `r`; returns what each rank sent here.
    pub fn alltoallv(&self, step: &'static str, local: Result<Vec<Vec<u8>>>) -> Result<Vec<Vec<u8>>> {
        let mut parts = self.agree(step, local)?;
        if self.size() == 1 {
            return Ok(parts);
        }
        // What stays here need not pass through the communicator's buffers.
        let rank = self.rank();
        let own = parts.get_mut(rank).map(std::mem::take).unwrap_or_default();
        let sent: usize = parts.iter().map(Vec::len).sum();
        let mut parts = self.comm.alltoallv(parts)?;
        if let Some(part) = parts.get_mut(rank) {
            *part = own;
        }
        self.count_pairs(sent as u64, &parts);
        Ok(parts)
    }

    /// Opens a file on all ranks.
    pub fn open(&self, step: &'static str, path: &Path, mode: FileMode) -> Result<TeamFile> {
        self.agree(step, Ok(()))?;
        let file = self.agree(step, self.comm.open(path, mode))?;
        self.open_files().push(file.clone());
        Ok(TeamFile { team: self.clone(), file })
    }

    fn count(&self, messages: u64, sent: u64, received: u64) {
        let c = &self.counting;
        c.collectives.fetch_add(1, Ordering::Relaxed);
        c.messages.fetch_add(messages, Ordering::Relaxed);
        c.sent.fetch_add(sent, Ordering::Relaxed);
        c.received.fetch_add(received, Ordering::Relaxed);
    }

    fn count_tree(&self, bytes: u64) {
        let rounds = u64::from(self.size().next_power_of_two().trailing_zeros());
        self.count(rounds, rounds * bytes, rounds * bytes);
    }

    fn count_pairs(&self, sent: u64, parts: &[Vec<u8>]) {
        let rank = self.rank();
        let received = parts.iter().enumerate().filter(|(r, _)| *r != rank).map(|(_, part)| part.len());
        self.count(self.size() as u64 - 1, sent, received.sum::<usize>() as u64);
    }
}

/// A file that a team has open. Reads and writes at an offset are this rank's own affair; the rest is
/// collective and agreed upon before and after.
#[derive(Debug, Clone)]
pub struct TeamFile {
    team: Team,
    file: Arc<dyn CommFile>,
}

impl TeamFile {
    /// The team whose file this is.
    pub fn team(&self) -> &Team {
        &self.team
    }

    /// See [`CommFile::write_at`].
    pub fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.file.write_at(data, offset)
    }

    /// See [`CommFile::read_at`].
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.file.read_at(buffer, offset)
    }

    /// See [`CommFile::len`].
    pub fn len(&self) -> Result<u64> {
        self.file.len()
    }

    /// See [`CommFile::is_empty`].
    pub fn is_empty(&self) -> Result<bool> {
        self.file.is_empty()
    }

    /// See [`CommFile::is_concurrent`].
    pub fn is_concurrent(&self) -> bool {
        self.file.is_concurrent()
    }

    /// Collective: see [`CommFile::write_all`].
    pub fn write_all(&self, step: &'static str, local: Result<&[(u64, &[u8])]>) -> Result<()> {
        let parts = self.team.agree(step, local)?;
        self.team.agree(step, self.file.write_all(parts))
    }

    /// Collective: see [`CommFile::read_all`].
    pub fn read_all(&self, step: &'static str, local: Result<&mut [(u64, &mut [u8])]>) -> Result<()> {
        let parts = self.team.agree(step, local)?;
        self.team.agree(step, self.file.read_all(parts))
    }

    /// Collective: see [`CommFile::set_len`].
    pub fn set_len(&self, step: &'static str, local: Result<u64>) -> Result<()> {
        let len = self.team.agree(step, local)?;
        self.team.agree(step, self.file.set_len(len))
    }

    /// Collective: see [`CommFile::sync`].
    pub fn sync(&self, step: &'static str, local: Result<()>) -> Result<()> {
        self.team.agree(step, local)?;
        self.team.agree(step, self.file.sync())
    }

    /// Collective: see [`CommFile::settle`].
    pub fn settle(&self, step: &'static str, local: Result<()>) -> Result<()> {
        self.team.agree(step, local)?;
        if self.team.size() == 1 {
            return Ok(());
        }
        self.team.agree(step, self.file.settle())
    }

    /// Collective: see [`CommFile::close`]. Where a rank has failed, all close the file nevertheless; where ranks
    /// are in different steps none does.
    pub fn close(&self, step: &'static str, local: Result<()>) -> Result<()> {
        if let Err(error) = self.team.agree(step, local) {
            self.give_up();
            return Err(error);
        }
        self.forget();
        self.team.agree(step, self.file.close())
    }

    /// Closes the file where the team's last step failed with all ranks in it; else it stays open. All that
    /// took part in that step call this next.
    pub fn give_up(&self) {
        if self.team.failed_together.load(Ordering::Acquire) && self.forget() {
            let _ = self.file.close();
        }
    }

    /// Whether it was open.
    fn forget(&self) -> bool {
        let mut open = self.team.open_files();
        let place = open.iter().position(|other| Arc::ptr_eq(other, &self.file));
        place.map(|place| open.remove(place)).is_some()
    }
}

/// An error on its way to other ranks: kind (one byte, its place in [`ErrorKind::ALL`]), length of the
/// message (four bytes, little-endian), message, hint.
fn pack(error: &Error) -> Vec<u8> {
    let kind = ErrorKind::ALL.iter().position(|kind| *kind == error.kind()).unwrap_or(0);
    let message = error.message();
    let mut bytes = vec![kind as u8];
    bytes.extend_from_slice(&(message.len() as u32).to_le_bytes());
    bytes.extend_from_slice(message.as_bytes());
    bytes.extend_from_slice(error.hint().unwrap_or("").as_bytes());
    bytes
}

fn unpack(bytes: &[u8]) -> Error {
    let kind = bytes.first().and_then(|kind| ErrorKind::ALL.get(*kind as usize));
    let len = bytes.get(1..5).and_then(|len| len.try_into().ok()).map_or(0, u32::from_le_bytes) as usize;
    let rest = bytes.get(5..).unwrap_or(&[]);
    let (message, hint) = rest.split_at(len.min(rest.len()));
    let error = Error::new(*kind.unwrap_or(&ErrorKind::Internal), String::from_utf8_lossy(message));
    match String::from_utf8_lossy(hint) {
        hint if hint.is_empty() => error,
        hint => error.with_hint(hint),
    }
}
