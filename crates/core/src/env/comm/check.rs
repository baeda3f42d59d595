//! Checks that a communicator keeps its promises: calls every collective and every call of its files with known
//! values. Communicators are made outside this crate (over mpi4py, or over MPI in C); run this check on a new
//! communicator, or with a new MPI, before you trust it with data.
//!
//! The check uses a [`Team`], so that a mismatch found on one rank raises an error on all ranks.
//!
//! ```
//! use fieldstone_core::env::{comm::{check::check, threads}, sim::SimWorld};
//! let disk = SimWorld::memory().disk;
//! let steps = threads::run(3, None, disk, threads::Faults::none(), |comm| {
//!     check(comm, "/scratch".as_ref(), 1000, None)
//! });
//! assert!(steps.into_iter().all(|steps| steps.is_ok()));
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::layer::CommLayer;
use super::{Comm, FileMode, Reduce, Team, TeamFile, Teams};
use crate::{Error, Result};

/// Part of the message of an injected failure.
const ON_PURPOSE: &str = "was to fail";

/// Checks `comm`, with parts of about `length` bytes and a new file at `path`, which the check leaves there.
/// Collective. Returns the number of steps that the ranks agreed upon.
///
/// With `fails`, that rank's part of that step (counted from 1) fails on purpose: the check must then end on every
/// rank with an error that names the rank.
pub fn check(comm: Arc<dyn Comm>, path: &Path, length: usize, fails: Option<(usize, u64)>) -> Result<u64> {
    let nth = fails.filter(|(rank, _)| *rank == comm.rank()).map_or(0, |(_, nth)| nth);
    let counted = Arc::new(Counted { comm, nth, steps: AtomicU64::new(0) });
    let team = Team::new(counted.clone());
    collectives(&team, &*counted.comm, length)?;
    let file = team.open("create", path, FileMode::CreateNew)?;
    files(&file, length)?;
    file.close("close", Ok(()))?;
    let again = team.open("open", path, FileMode::Read)?;
    let len = again.len();
    team.agree("length", len.and_then(|len| equal("the length of a file", &len, &0)))?;
    again.close("close", Ok(()))?;
    Ok(counted.steps.load(Ordering::Relaxed))
}

/// Bytes that identify their sender and receiver.
fn bytes(from: usize, to: usize, length: usize) -> Vec<u8> {
    (0..length + from + to).map(|n| (n + 3 * from + 7 * to) as u8).collect()
}

fn equal<T: PartialEq + ?Sized>(what: &str, got: &T, expected: &T) -> Result<()> {
    match got == expected {
        true => Ok(()),
        false => Err(Error::internal(format!("{what} differs from the expected value"))
            .with_hint("this communicator cannot be used: its MPI, or the table of its calls, is at fault")),
    }
}

fn collectives(team: &Team, comm: &dyn Comm, length: usize) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    let of = |rank: usize| bytes(rank, 0, length);
    let all: Vec<_> = (0..size).map(of).collect();
    team.barrier("barrier")?;
    for root in [0, size - 1] {
        let got = team.broadcast("broadcast", root, Ok(if rank == root { of(root) } else { Vec::new() }))?;
        let same = equal("the result of broadcast", &got, &of(root));
        let got = team.gather("gather", root, same.map(|()| of(rank)))?;
        let same = equal("the result of gather", &got[..], if rank == root { &all[..] } else { &[] });
        let got = team.allgather("allgather", same.map(|()| of(rank)))?;
        team.agree("compare", equal("the result of allgather", &got, &all))?;
    }
    let (own, n) = (rank as u64, size as u64);
    let sums = team.sums("sums", Ok(vec![own, 1, u64::MAX]))?;
    let before = [(0..own).sum(), own, own.wrapping_neg()];
    let same = equal("the result of exscan", &sums.before[..], &before).and(equal(
        "the result of allreduce",
        &sums.total[..],
        &[(0..n).sum(), n, n.wrapping_neg()],
    ));
    let most = team.max("max", same.map(|()| vec![own, n - own, u64::MAX]))?;
    let same = equal("the result of allreduce", &most[..], &[n - 1, n, u64::MAX]);
    let parts = same.map(|()| (0..size).map(|to| bytes(rank, to, length)).collect());
    let got = team.alltoallv("alltoallv", parts)?;
    let expected: Vec<_> = (0..size).map(|from| bytes(from, rank, length)).collect();
    // A part may be empty.
    let some = |from: usize, to: usize| if from < to { vec![from as u8] } else { Vec::new() };
    let parts = equal("the result of alltoallv", &got, &expected);
    let got = team.alltoallv("alltoallv", parts.map(|()| (0..size).map(|to| some(rank, to)).collect()))?;
    let expected: Vec<_> = (0..size).map(|from| some(from, rank)).collect();
    team.agree("compare", equal("the result of alltoallv", &got, &expected))?;
    comm.exscan(&mut [])?;
    comm.allreduce(Reduce::Sum, &mut [])?;
    comm.barrier()
}

/// Writes and reads the file. It is empty before and after.
fn files(file: &TeamFile, length: usize) -> Result<()> {
    let team = file.team();
    let (rank, size) = (team.rank() as u64, team.size() as u64);
    let block = length.max(1) as u64;
    let of = |rank: u64, turn: u64| vec![(1 + rank + 100 * turn) as u8; length.max(1)];
    // First one part for each rank, in rank order; then several parts each, interleaved; then one rank writes alone.
    file.write_all("write", Ok(&[(rank * block, &of(rank, 0))]))?;
    let at = |rank: u64, turn: u64| (turn * size + rank) * block;
    let (first, second) = (of(rank, 1), of(rank, 2));
    file.write_all("write", Ok(&[(at(rank, 1), &first), (at(rank, 2), &second)]))?;
    let last = 3 * size * block;
    let alone = if rank == size - 1 { file.write_at(b"end", last + 1) } else { Ok(()) };
    file.sync("sync", alone)?;
    let next = (rank + 1) % size;
    let mut got = [of(0, 9), of(0, 9), of(0, 9)];
    let [a, b, c] = &mut got;
    let mut parts = [(at(next, 0), &mut a[..]), (at(next, 1), &mut b[..]), (at(next, 2), &mut c[..])];
    file.read_all("read", Ok(&mut parts))?;
    let same = equal("the data read in turns", &got, &[of(next, 0), of(next, 1), of(next, 2)]);
    let [a, ..] = &mut got;
    let mut part = [(at(next, 2), &mut a[..])];
    file.read_all("read", same.map(|()| &mut part[..]))?;
    let same = equal("the data read", &got[0], &of(next, 2));
    // Some ranks have no part.
    let part = [(last, &b"z"[..])];
    file.write_all("write", same.map(|()| if rank == 0 { &part[..] } else { &[] }))?;
    file.sync("sync", Ok(()))?;
    let mut tail = [9; 9];
    let read = file.read_at(&mut tail, last);
    let same = read
        .and_then(|n| equal("the end of the file", &tail[..n], b"zend"))
        .and_then(|()| equal("the length of a file", &file.len()?, &(last + 4)));
    let mut beyond = [0; 5];
    team.agree("compare", same)?;
    let refused = match file.read_all("beyond", Ok(&mut [(last, &mut beyond)])) {
        Err(error) if error.message().contains(ON_PURPOSE) => return Err(error),
        outcome => equal("a read beyond the end", &outcome.is_err(), &true),
    };
    team.agree("compare", refused)?;
    file.set_len("grow", Ok(last + 8))?;
    let read = file.read_at(&mut tail, last + 3);
    let same = read.and_then(|n| equal("a hole", &tail[..n], b"d\0\0\0\0"));
    file.set_len("cut", same.map(|()| 0))?;
    team.agree("compare", file.is_empty().and_then(|empty| equal("an empty file", &empty, &true)))
}

/// A communicator that counts its steps, and makes one of them fail.
#[derive(Debug)]
struct Counted {
    comm: Arc<dyn Comm>,
    nth: u64,
    steps: AtomicU64,
}

impl CommLayer for Counted {
    fn below(&self) -> &dyn Comm {
        &*self.comm
    }
    fn before_step(&self, step: &str) -> Result<()> {
        match self.steps.fetch_add(1, Ordering::Relaxed) + 1 == self.nth {
            true => Err(Error::unavailable(format!("step `{step}` {ON_PURPOSE}"))),
            false => self.comm.before_step(step),
        }
    }
    /// The injected failure ends no container of the same communicator, because the check has its own teams.
    fn teams(&self) -> Arc<Teams> {
        Arc::default()
    }
}
