//! Agreement over a communicator.
//!
//! Every collective of a [`Team`] takes this rank's part as a `Result` and names its step. It begins with one small
//! reduction that finds a failed rank, if there is one, and compares the ranks' steps (C-3). So an error before a
//! collective reaches every rank in that collective, as an error of the same kind that names the failed rank; the
//! communicator stays usable. A team of one rank exchanges nothing.
//!
//! If there are more ranks than processors, each MPI call costs a time slice, so a team makes few calls (C-11): the
//! reduction also carries a few words of the step and returns their maxima. Short results, such as a maximum or a
//! length, thus arrive with the agreement.
//!
//! Several teams may share one communicator, such as those of the containers that a program has open. All ranks
//! number them alike. If a rank leaves one team while others are in a step of another, the others can tell, and all
//! ranks close the files of the abandoned team at that moment. If ranks are out of step, each waiting in another
//! call, all of them leave the teams that they are in, and no rank waits for a call that will never come.
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

mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use tracing::trace_span;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

use super::step::{ForeignStep, Step};
use super::{Comm, CommFile, FileMode, Hints, Parts, PartsMut, Reduce};
use crate::sync::plain::{Mutex, MutexGuard};
use crate::{Code, Error, ErrorKind, Result};
pub use file::{TeamFile, TeamReader, TeamWriter};

/// Sums of several values over ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    /// Over the lower ranks.
    pub before: Vec<u64>,
    /// Over all ranks.
    pub total: Vec<u64>,
}

/// This rank's traffic so far. A collective over P ranks counts log2 P messages (rounded up) if a tree carries it
/// (reductions, scans, broadcast, barrier) and P - 1 if each pair may exchange (gathers, alltoallv). An agreement
/// counts as the reduction that it is.
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
    /// The part of the sent bytes that `alltoallv` moved.
    exchanged: AtomicU64,
}

/// The teams of one communicator, on this rank.
#[derive(Debug, Default)]
pub struct Teams(Mutex<TeamState>);

#[derive(Debug, Default)]
struct TeamState {
    next: u64,
    left: BTreeMap<u64, Weak<OnceLock<RankError>>>,
    /// The open files of each team, in the same order on all ranks.
    files: BTreeMap<u64, Vec<Arc<dyn CommFile>>>,
}

/// A rank and its packed error.
type RankError = (usize, Vec<u8>);

/// Words that an agreement carries besides its own; the same number in every step, so that ranks in different steps
/// meet in one reduction.
const CARRIED: usize = 4;
/// Bytes of an agreement.
const AGREEMENT: u64 = (3 + CARRIED as u64) * 8;

/// The first words of a list, padded with zeros; `None` if the list is longer.
fn carried(values: &[u64]) -> Option<[u64; CARRIED]> {
    let mut words = [0; CARRIED];
    words.get_mut(..values.len())?.copy_from_slice(values);
    Some(words)
}

impl Teams {
    fn known(&self) -> MutexGuard<'_, TeamState> {
        self.0.lock()
    }

    /// Ends the team with this number. Closes its files, because this is the last moment at which all ranks are
    /// together.
    fn end(&self, number: u64, report: &RankError) {
        let (left, files) = {
            let mut known = self.known();
            (known.left.remove(&number), known.files.remove(&number))
        };
        if let Some(left) = left.and_then(|left| left.upgrade()) {
            let _ = left.set(report.clone());
        }
        // The end of the process closes a file that cannot be closed here.
        files.unwrap_or_default().iter().for_each(|file| drop(file.close()));
    }
}

/// A communicator with agreement. See the module's documentation. Clones share the communicator and the counters.
#[derive(Debug, Clone)]
pub struct Team {
    comm: Arc<dyn Comm>,
    counting: Arc<Counting>,
    teams: Arc<Teams>,
    /// The team's number in the communicator; the ranks agree upon it in their first step that succeeds.
    number: Arc<OnceLock<u64>>,
    /// The rank that left, and its error: from then on no call waits for another rank.
    left: Arc<OnceLock<RankError>>,
    /// Whether the last step failed with all ranks in it.
    failed_together: Arc<AtomicBool>,
    /// The host of each rank, cached by the first call that asks for it.
    hosts: Arc<OnceLock<Arc<[u32]>>>,
}

/// A flag next to the number of the rank that failed: it takes part in no later step.
const LEAVES: u64 = 1 << 32;
/// Takes the place of the number of a team that has none yet.
const UNNUMBERED: u64 = u64::MAX;
/// The step of a rank that failed before it entered the others' step.
const FAIL: Step = Step::once("fail");

impl Team {
    /// Makes a team of all ranks of `comm`.
    pub fn new(comm: Arc<dyn Comm>) -> Team {
        let (teams, counting) = (comm.teams(), Arc::default());
        let (number, left) = (Arc::default(), Arc::default());
        let (failed_together, hosts) = (Arc::default(), Arc::default());
        let team = Team { comm, counting, teams, number, left, failed_together, hosts };
        if team.size() == 1 {
            let next = team.teams.known().next;
            team.take_number(next);
        }
        team
    }

    fn take_number(&self, number: u64) {
        let mut known = self.teams.known();
        known.next = number.saturating_add(1);
        known.left.retain(|_, left| left.strong_count() > 0);
        known.left.insert(number, Arc::downgrade(&self.left));
        let _ = self.number.set(number);
    }

    fn number(&self) -> u64 {
        self.number.get().copied().unwrap_or(UNNUMBERED)
    }

    /// This rank's number.
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// The number of ranks.
    pub fn size(&self) -> usize {
        self.comm.size()
    }

    /// The traffic of this rank so far.
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

    /// Bytes that this rank sent to others by [`alltoallv`](Team::alltoallv): data, without the traffic of
    /// agreements.
    pub fn exchanged(&self) -> u64 {
        self.counting.exchanged.load(Ordering::Relaxed)
    }

    /// Returns `local` if all ranks succeeded; else the error of the lowest rank that failed.
    ///
    /// Errors: the failed rank's error, in whatever step it failed, with its kind and its number before the message;
    /// `Conflict` if ranks are in different steps; any error of the communicator. Once a rank has
    /// [left](Team::leave), every call returns that rank's error at once.
    pub fn agree<T>(&self, step: impl Into<Step>, local: Result<T>) -> Result<T> {
        let step = step.into();
        self.decide(step, local, [0; CARRIED], false).map(|(local, _)| local)
    }

    /// Takes part as failed in the step that the other ranks are in, because this rank could not begin it. If that
    /// step is repeatable, the ranks then go on together. Returns the error.
    pub fn fail(&self, error: Error) -> Error {
        match self.decide::<()>(FAIL, Err(error), [0; CARRIED], false) {
            Err(error) => error,
            Ok(_) => Error::internal("a rank failed, and its team did not notice"),
        }
    }

    /// Takes part as failed in the step that the other ranks are in or come to, and in none after it: from then on
    /// every step fails on every rank at once, with this error. Closes the team's files. Returns the error.
    pub fn leave(&self, error: Error) -> Error {
        match self.decide::<()>(Step::once("leave"), Err(error), [0; CARRIED], true) {
            Err(error) => error,
            Ok(_) => Error::internal("a rank left, and its team did not notice"),
        }
    }

    /// As [`agree`](Team::agree); also returns the maximum of each of `words` over all ranks.
    fn decide<T>(
        &self,
        step: Step,
        local: Result<T>,
        words: [u64; CARRIED],
        leaves: bool,
    ) -> Result<(T, [u64; CARRIED])> {
        // Log the step in which a rank waits for the others; at `trace` level, because a container has dozens.
        let _span =
            trace_span!("step", step = step.name, rank = self.rank(), failed = local.is_err()).entered();
        let local = local.and_then(|part| self.comm.before_step(step.name).map(|()| part));
        if self.size() == 1 {
            self.failed_together.store(local.is_err(), Ordering::Release);
            if leaves {
                self.teams.end(self.number(), &(0, Vec::new()));
            }
            return local.map(|local| (local, words));
        }
        self.failed_together.store(false, Ordering::Release);
        let (rank, size) = (self.rank() as u64, self.size() as u64);
        // A failed rank contributes more the lower its number is, so the maximum identifies the lowest one.
        let failed = if local.is_err() { size - rank } else { 0 };
        let failed = if leaves { failed | LEAVES } else { failed };
        loop {
            if let Some((rank, report)) = self.left.get() {
                return Err(unpack(report).context(format_args!("rank {rank}")));
            }
            // A hash of step, team and flag. The maxima of `code` and `!code` are complements only if all ranks have
            // the same code, so they are in the same step.
            let code = xxh3_64_with_seed(
                step.name.as_bytes(),
                self.number().rotate_left(1) ^ u64::from(step.repeatable),
            );
            let mut head = [0; 3 + CARRIED];
            head[..3].copy_from_slice(&[failed, code, !code]);
            head[3..].copy_from_slice(&words);
            self.comm.allreduce(Reduce::Max, &mut head)?;
            self.count_tree(AGREEMENT);
            let in_step = head[1] == !head[2];
            if head[0] == 0 && in_step {
                self.numbered()?;
                let greatest = head.last_chunk().copied().unwrap_or(words);
                return local.map(|local| (local, greatest));
            }
            if head[0] == 0 {
                return Err(self.out_of_step(step, None)?);
            }
            let loser = (size - (head[0] & (LEAVES - 1))) as usize;
            let (number, report) = self.share_failure(loser, local.as_ref().err())?;
            let is_left = head[0] & LEAVES != 0;
            if is_left {
                self.end(number, &report);
                if leaves && self.left.get().is_none() {
                    // A rank left another team: the failure of this one is still to be reported.
                    continue;
                }
            } else if in_step {
                self.failed_together.store(true, Ordering::Release);
            } else {
                self.out_of_step(step, Some(&report))?;
            }
            return match local {
                Err(own) if loser == self.rank() => Err(own.context(format_args!("rank {loser}"))),
                _ => Err(unpack(&report.1).context(format_args!("rank {loser}"))),
            };
        }
    }

    /// Agrees upon this team's number, after the first step that succeeded.
    fn numbered(&self) -> Result<()> {
        if self.number.get().is_none() {
            let mut next = [self.teams.known().next];
            self.comm.allreduce(Reduce::Max, &mut next)?;
            self.count_tree(8);
            self.take_number(next[0]);
        }
        Ok(())
    }

    fn end(&self, number: u64, report: &RankError) {
        self.teams.end(number, report);
        if number == self.number() {
            let _ = self.left.set(report.clone());
        }
    }

    /// Sends the failure of rank `loser`, which passes it as `own`, to all ranks: the number of its team and the
    /// error.
    fn share_failure(&self, loser: usize, own: Option<&Error>) -> Result<(u64, RankError)> {
        let report = match own {
            Some(error) if loser == self.rank() => [&self.number().to_le_bytes()[..], &pack(error)].concat(),
            _ => Vec::new(),
        };
        let mut len = [report.len() as u64];
        self.comm.allreduce(Reduce::Max, &mut len)?;
        let report = self.comm.broadcast(loser, report, usize::try_from(len[0]).unwrap_or(usize::MAX))?;
        let (number, report) = report.split_first_chunk::<8>().unwrap_or((&[0xff; 8], &[]));
        Ok((u64::from_le_bytes(*number), (loser, report.to_vec())))
    }

    /// Handles ranks in different steps; `report` is the failure of one of them, if there is one. The ranks can go on
    /// if some only failed before they entered the others' step, and that step is repeatable. Else no rank's call
    /// will complete, and all the teams that they are in end. The error names each rank's step.
    fn out_of_step(&self, step: Step, report: Option<&RankError>) -> Result<Error> {
        let own = [&self.number().to_le_bytes()[..], &step.packed()].concat();
        let all = self.comm.allgather(&own)?;
        let places: Vec<(u64, ForeignStep<'_>)> = all.iter().map(|place| place_of(place)).collect();
        let steps: BTreeSet<_> = places.iter().filter(|(_, step)| step.name != FAIL.name).collect();
        let numbers: BTreeSet<u64> = places.iter().map(|(number, _)| *number).collect();
        // Name rank 0 and the first rank in another step.
        let (number, first) = places[0];
        let other = places.iter().enumerate().find(|(_, place)| **place != places[0]);
        let (rank, (other_number, other)) = other.map_or((0, places[0]), |(rank, place)| (rank, *place));
        let apart = if number == other_number { "" } else { " of another container" };
        let error = Code::CollectiveMismatch
            .error(format!("rank 0 is in `{}`, rank {rank} in `{}`{apart}", first.name, other.name))
            .with_hint("make the same collective calls in the same order on all ranks");
        let goes_on = steps.iter().all(|(_, step)| step.repeatable);
        if steps.len() > 1 || numbers.len() > 1 || !goes_on {
            let report = report.cloned().unwrap_or_else(|| (0, pack(&error)));
            numbers.iter().for_each(|number| self.end(*number, &report));
        }
        Ok(error)
    }

    /// Returns when all ranks have called it, with the error of any rank that failed.
    pub fn barrier(&self, step: impl Into<Step>) -> Result<()> {
        let step = step.into();
        self.agree(step, Ok(()))
    }

    /// Each rank's bytes, on every rank.
    pub fn allgather(&self, step: impl Into<Step>, local: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let step = step.into();
        let data = self.agree(step, local)?;
        if self.size() == 1 {
            return Ok(vec![data]);
        }
        let parts = self.comm.allgather(&data)?;
        self.count_pairs(data.len() as u64 * (self.size() as u64 - 1), parts.iter().map(Vec::len));
        Ok(parts)
    }

    /// Each rank's bytes, on rank `root`; an empty list elsewhere.
    pub fn gather(&self, step: impl Into<Step>, root: usize, local: Result<Vec<u8>>) -> Result<Vec<Vec<u8>>> {
        let step = step.into();
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
    pub fn broadcast(&self, step: impl Into<Step>, root: usize, local: Result<Vec<u8>>) -> Result<Vec<u8>> {
        let step = step.into();
        let own = self.rank() == root;
        // The agreement carries the length, and the whole of a short text.
        let mut words = [0; CARRIED];
        if let (true, Ok(data)) = (own, &local) {
            words[0] = data.len() as u64;
            for (word, bytes) in words[1..].iter_mut().zip(data.chunks(8)) {
                let mut padded = [0; 8];
                padded[..bytes.len()].copy_from_slice(bytes);
                *word = u64::from_le_bytes(padded);
            }
        }
        let (data, words) = self.decide(step, local, words, false)?;
        let len = usize::try_from(words[0]).unwrap_or(usize::MAX);
        if self.size() == 1 || len <= 8 * (CARRIED - 1) {
            let carried = || words[1..].iter().flat_map(|word| word.to_le_bytes()).take(len).collect();
            return Ok(if own { data } else { carried() });
        }
        let data = self.comm.broadcast(root, data, len)?;
        self.count_tree(data.len() as u64);
        Ok(data)
    }

    /// Sums of each value over the lower ranks and over all ranks. All ranks pass lists of equal length.
    pub fn sums(&self, step: impl Into<Step>, local: Result<Vec<u64>>) -> Result<Sums> {
        let step = step.into();
        let values = self.agree(step, local)?;
        if self.size() == 1 {
            return Ok(Sums { before: vec![0; values.len()], total: values });
        }
        let mut before = values.clone();
        self.comm.exscan(&mut before)?;
        self.count_tree(before.len() as u64 * 8);
        Ok(Sums { before, total: self.added(values)? })
    }

    /// The sum of each value over all ranks. All ranks pass lists of equal length.
    pub fn total(&self, step: impl Into<Step>, local: Result<Vec<u64>>) -> Result<Vec<u64>> {
        let step = step.into();
        let values = self.agree(step, local)?;
        self.added(values)
    }

    /// The maximum of each value over all ranks. All ranks pass lists of equal length.
    pub fn max(&self, step: impl Into<Step>, local: Result<Vec<u64>>) -> Result<Vec<u64>> {
        let step = step.into();
        let words = local.as_ref().map_or(Some([0; CARRIED]), |values| carried(values));
        let (mut values, greatest) = self.decide(step, local, words.unwrap_or_default(), false)?;
        if words.is_some() {
            values.iter_mut().zip(greatest).for_each(|(value, greatest)| *value = greatest);
        } else if self.size() > 1 {
            self.comm.allreduce(Reduce::Max, &mut values)?;
            self.count_tree(values.len() as u64 * 8);
        }
        Ok(values)
    }

    /// The maximum and the sum of each value over all ranks. All ranks pass lists of equal length.
    pub fn max_and_total(
        &self,
        step: impl Into<Step>,
        local: Result<Vec<u64>>,
    ) -> Result<(Vec<u64>, Vec<u64>)> {
        let step = step.into();
        let own = local.as_ref().map_or_else(|_| Vec::new(), Vec::clone);
        let greatest = self.max(step, local)?;
        Ok((greatest, self.added(own)?))
    }

    /// Adds up values that all ranks have agreed to add up.
    fn added(&self, mut values: Vec<u64>) -> Result<Vec<u64>> {
        if self.size() > 1 {
            self.comm.allreduce(Reduce::Sum, &mut values)?;
            self.count_tree(values.len() as u64 * 8);
        }
        Ok(values)
    }

    /// Sends `parts[r]` to rank `r`; returns the part that each rank sent to this one.
    pub fn alltoallv(&self, step: impl Into<Step>, local: Result<Vec<Vec<u8>>>) -> Result<Vec<Vec<u8>>> {
        let step = step.into();
        let rank = self.rank();
        let others = |parts: &Vec<Vec<u8>>| {
            let others = parts.iter().enumerate().filter(|(to, _)| *to != rank);
            others.map(|(_, part)| part.len() as u64).max().unwrap_or(0)
        };
        let mut words = [0; CARRIED];
        words[0] = local.as_ref().map_or(0, others);
        let (mut parts, words) = self.decide(step, local, words, false)?;
        if self.size() == 1 {
            return Ok(parts);
        }
        // This rank's own part need not pass through the communicator's buffers.
        let own = parts.get_mut(rank).map(std::mem::take).unwrap_or_default();
        let sent: usize = parts.iter().map(Vec::len).sum();
        let longest = usize::try_from(words[0]).unwrap_or(usize::MAX);
        let mut parts = self.comm.alltoallv(parts, longest)?;
        if let Some(part) = parts.get_mut(rank) {
            *part = own;
        }
        self.counting.exchanged.fetch_add(sent as u64, Ordering::Relaxed);
        self.count_pairs(sent as u64, parts.iter().map(Vec::len));
        Ok(parts)
    }

    /// Exchanges parts whose lengths both ends know, directly between buffers; all ranks have agreed to make this
    /// call. See [`Comm::exchange`]; a rank exchanges nothing with itself.
    pub fn exchange(&self, sent: Parts<'_>, taken: PartsMut<'_>, longest: usize) -> Result<()> {
        if self.size() == 1 {
            return Ok(());
        }
        let bytes: usize = sent.lens.iter().sum();
        let came: Vec<usize> = taken.lens.to_vec();
        self.comm.exchange(sent, taken, longest)?;
        self.counting.exchanged.fetch_add(bytes as u64, Ordering::Relaxed);
        self.count_pairs(bytes as u64, came.into_iter());
        Ok(())
    }

    /// Opens a file on all ranks.
    pub fn open(&self, step: impl Into<Step>, path: &Path, mode: FileMode) -> Result<TeamFile> {
        let step = step.into();
        self.agree(step, Ok(()))?;
        let file = self.comm.open(path, mode);
        self.opened(step, file)
    }

    /// As [`open`](Team::open), with hints in addition to those of the communicator.
    ///
    /// Errors: also `Conflict` if ranks give different hints.
    pub fn open_with(
        &self,
        step: impl Into<Step>,
        path: &Path,
        mode: FileMode,
        local: Result<&Hints>,
    ) -> Result<TeamFile> {
        let step = step.into();
        let (all, hints) = match local {
            Ok(hints) => (Ok(self.hints().with(hints)), Some(hints)),
            Err(error) => (Err(error), None),
        };
        self.compare_hints(step, all)?;
        let file = self.comm.open_with(path, mode, hints.unwrap_or(&Hints::default()));
        self.opened(step, file)
    }

    /// Collective: checks that the communicators of all ranks have the same hints.
    ///
    /// Errors: `Conflict` that names a rank and its hints.
    pub fn agree_on_hints(&self, step: impl Into<Step>) -> Result<()> {
        let step = step.into();
        self.compare_hints(step, Ok(self.hints()))
    }

    fn compare_hints(&self, step: Step, own: Result<Hints>) -> Result<()> {
        let own = own.map(|hints| hints.to_string());
        let hash = own.as_ref().map(|own| xxh3_64(own.as_bytes())).map_err(Error::replicate);
        let most = self.max(step, hash.map(|hash| vec![hash, !hash]))?;
        if most[0] == !most[1] {
            return Ok(());
        }
        let own = own.unwrap_or_default();
        let root = self.broadcast(step, 0, Ok(own.clone().into_bytes()))?;
        let same = match root == own.as_bytes() {
            true => Ok(()),
            false => Err(Code::CollectiveMismatch
                .error(format!(
                    "this rank gives the hints `{own}`, rank 0 `{}`",
                    String::from_utf8_lossy(&root)
                ))
                .with_hint("give the same hints on all ranks")),
        };
        self.agree(step, same)
    }

    fn opened(&self, step: Step, file: Result<Arc<dyn CommFile>>) -> Result<TeamFile> {
        let file = self.agree(step, file)?;
        self.teams.known().files.entry(self.number()).or_default().push(file.clone());
        Ok(TeamFile::new(self, file))
    }

    /// Wraps an object that ranks read or write as a file, although the communicator did not open it. It needs no
    /// close.
    pub fn pseudo_file<F: ?Sized>(&self, file: Arc<F>) -> TeamFile<F> {
        TeamFile::new(self, file)
    }

    /// The hints with which the communicator opens every file.
    pub fn hints(&self) -> Hints {
        self.comm.hints()
    }

    /// The host of each rank, as numbers from 0 in rank order; all 0 if the communicator does not know the hosts. The
    /// first call is collective.
    pub fn hosts(&self, step: impl Into<Step>) -> Result<Arc<[u32]>> {
        let step = step.into();
        if let Some(hosts) = self.hosts.get() {
            return Ok(hosts.clone());
        }
        let names = self.allgather(step, Ok(self.comm.host().unwrap_or_default().into_bytes()))?;
        let mut known: BTreeMap<&[u8], u32> = BTreeMap::new();
        let number = |name| {
            let next = known.len() as u32;
            *known.entry(name).or_insert(next)
        };
        let hosts: Arc<[u32]> = names.iter().map(Vec::as_slice).map(number).collect();
        Ok(self.hosts.get_or_init(|| hosts).clone())
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

    fn count_pairs(&self, sent: u64, came: impl Iterator<Item = usize>) {
        let rank = self.rank();
        let received = came.enumerate().filter(|(r, _)| *r != rank).map(|(_, len)| len);
        self.count(self.size() as u64 - 1, sent, received.sum::<usize>() as u64);
    }
}

/// The team number and step of a rank.
fn place_of(bytes: &[u8]) -> (u64, ForeignStep<'_>) {
    let (number, step) = bytes.split_first_chunk::<8>().unwrap_or((&[0xff; 8], &[]));
    (u64::from_le_bytes(*number), ForeignStep::unpacked(step))
}

/// Packs an error for other ranks: kind (one byte, its index in [`ErrorKind::ALL`]), length of the code's text (one
/// byte), this text, length of the message (four bytes, little-endian), message, hint.
fn pack(error: &Error) -> Vec<u8> {
    let kind = ErrorKind::ALL.iter().position(|kind| *kind == error.kind()).unwrap_or(0);
    let message = error.message();
    let code = error.code().as_str();
    let mut bytes = vec![kind as u8, code.len() as u8];
    bytes.extend_from_slice(code.as_bytes());
    bytes.extend_from_slice(&(message.len() as u32).to_le_bytes());
    bytes.extend_from_slice(message.as_bytes());
    bytes.extend_from_slice(error.hint().unwrap_or("").as_bytes());
    bytes
}

fn unpack(bytes: &[u8]) -> Error {
    let kind = bytes.first().and_then(|kind| ErrorKind::ALL.get(*kind as usize));
    let (code, bytes) = match bytes.get(1..) {
        Some([len, rest @ ..]) => rest.split_at(rest.len().min(usize::from(*len))),
        _ => (&[][..], &[][..]),
    };
    // A rank of another release may send a code that this release does not know.
    let code = std::str::from_utf8(code).ok().and_then(Code::of_text);
    let code = code.unwrap_or(Code::from(*kind.unwrap_or(&ErrorKind::Internal)));
    let len = bytes.get(..4).and_then(|len| len.try_into().ok()).map_or(0, u32::from_le_bytes) as usize;
    let rest = bytes.get(4..).unwrap_or(&[]);
    let (message, hint) = rest.split_at(len.min(rest.len()));
    let error = code.error(String::from_utf8_lossy(message));
    match String::from_utf8_lossy(hint) {
        hint if hint.is_empty() => error,
        hint => error.with_hint(hint),
    }
}
