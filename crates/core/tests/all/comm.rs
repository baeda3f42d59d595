//! The promises of every communicator, checked on one process and on threads: free, and under schedules.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::comm::check::check;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, CommFile, FileMode, Parts, PartsMut, Reduce, Team};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Disk, Env};
use fieldstone_core::{Error, ErrorKind, Result};

/// Runs `body` on every communicator of this crate.
fn on_every_comm(body: impl Fn(Arc<dyn Comm>) -> Result<()> + Sync) {
    let memory = || SimWorld::memory().disk;
    body(Arc::new(SingleComm::new(memory()))).unwrap();
    let runs = [(1, None), (2, None), (3, None), (7, None), (64, None), (256, None)];
    let seeded = (0..20).flat_map(|seed| [(1, Some(seed)), (2, Some(seed)), (5, Some(seed))]);
    for (size, seed) in runs.into_iter().chain(seeded).chain([(256, Some(1))]) {
        for (rank, result) in
            threads::run(size, seed, memory(), Faults::none(), &body).into_iter().enumerate()
        {
            result.unwrap_or_else(|e| panic!("{size} ranks, seed {seed:?}, rank {rank}: {e}"));
        }
    }
}

/// Bytes that identify their rank: `len` times its number.
fn bytes_of(rank: usize, len: usize) -> Vec<u8> {
    vec![rank as u8; len]
}

#[test]
fn collectives_give_what_they_say() {
    on_every_comm(|comm| {
        let (rank, size) = (comm.rank(), comm.size());
        assert!(rank < size);
        comm.barrier()?;
        for root in [0, size / 2, size - 1] {
            let data = if rank == root { bytes_of(root, 5 + root) } else { b"ignored".to_vec() };
            assert_eq!(comm.broadcast(root, data, 5 + root)?, bytes_of(root, 5 + root));
            let all: Vec<_> = (0..size).map(|r| bytes_of(r, r % 3)).collect();
            let expected = if rank == root { all.clone() } else { Vec::new() };
            assert_eq!(comm.gather(root, &all[rank])?, expected);
            assert_eq!(comm.allgather(&all[rank])?, all);
        }
        let mut scan = [rank as u64, 1, u64::MAX];
        comm.exscan(&mut scan)?;
        let below: u64 = (0..rank as u64).sum();
        assert_eq!(scan, [below, rank as u64, (rank as u64).wrapping_neg()]);
        let mut sum = [rank as u64, u64::MAX];
        comm.allreduce(Reduce::Sum, &mut sum)?;
        assert_eq!(sum, [(0..size as u64).sum(), (size as u64).wrapping_neg()]);
        let mut max = [rank as u64, size as u64 - rank as u64, u64::MAX];
        comm.allreduce(Reduce::Max, &mut max)?;
        assert_eq!(max, [size as u64 - 1, size as u64, u64::MAX]);
        comm.exscan(&mut [])?;
        comm.allreduce(Reduce::Max, &mut [])?;
        let parts = (0..size).map(|to| bytes_of(rank, (rank + 2 * to) % 5)).collect();
        let expected: Vec<_> = (0..size).map(|from| bytes_of(from, (from + 2 * rank) % 5)).collect();
        assert_eq!(comm.alltoallv(parts, 4)?, expected);
        let lens: Vec<usize> = (0..size).map(|to| (rank + 2 * to) % 5).collect();
        let came: Vec<usize> = expected.iter().map(Vec::len).collect();
        let (sent, mut taken) = (vec![rank as u8; lens.iter().sum()], vec![99; came.iter().sum()]);
        let (sent, into) = (Parts { bytes: &sent, lens: &lens }, PartsMut { bytes: &mut taken, lens: &came });
        comm.exchange(sent, into, 4)?;
        assert_eq!(taken, expected.concat());
        Ok(())
    });
}

#[test]
fn a_file_is_written_and_read_by_all() {
    on_every_comm(|comm| {
        let (rank, size) = (comm.rank() as u64, comm.size() as u64);
        let path = Path::new("/f");
        let absent = comm.open(path, FileMode::ReadWrite).unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::NotFound);
        let file = comm.open(path, FileMode::CreateNew)?;
        assert!(comm.open(path, FileMode::CreateNew).is_err(), "the name is taken");
        assert!(file.is_empty()?);
        comm.barrier()?;
        let (mine, tail) = ([(rank as u8).wrapping_add(1); 4], [rank as u8]);
        file.write_all(&[(4 * rank, &mine), (4 * size + rank, &tail)])?;
        file.sync()?;
        assert_eq!(file.len()?, 5 * size);
        comm.barrier()?;
        let next = (rank + 1) % size;
        let (mut first, mut second) = ([0; 2], [9; 1]);
        file.read_all(&mut [(4 * next + 1, &mut first), (4 * size + next, &mut second)])?;
        assert_eq!((first, second), ([(next as u8).wrapping_add(1); 2], [next as u8]));
        let mut beyond = [0; 2];
        assert!(file.read_all(&mut [(5 * size - 1, &mut beyond)]).is_err(), "ends beyond the file");
        assert_eq!(file.read_at(&mut beyond, 5 * size - 1)?, 1);
        file.write_all(&[])?;
        file.set_len(4 * size)?;
        assert_eq!(file.len()?, 4 * size);
        comm.barrier()?;
        if rank == 0 {
            file.write_at(b"z", 6 * size)?;
        }
        comm.barrier()?;
        assert_eq!(file.len()?, 6 * size + 1);
        let read = comm.open(path, FileMode::Read)?;
        let mut hole = [7; 1];
        assert_eq!(read.read_at(&mut hole, 4 * size)?, 1);
        assert_eq!(hole, [0]);
        assert!(read.write_at(b"x", 0).is_err(), "opened for reading");
        Ok(())
    });
}

#[test]
fn the_check_passes_on_all_and_finds_the_rank_that_fails() {
    on_every_comm(|comm| {
        let (size, alone) = (comm.size(), comm.size() == 1);
        let steps = check(comm.clone(), Path::new("/check"), 50, None)?;
        if size > 5 {
            return Ok(());
        }
        for rank in 0..size {
            for nth in 1..=steps {
                let path = format!("/check-{rank}-{nth}");
                let error = check(comm.clone(), Path::new(&path), 50, Some((rank, nth))).unwrap_err();
                assert!(error.message().contains("was to fail"), "{error}");
                assert!(alone || error.message().starts_with(&format!("rank {rank}: ")), "{error}");
            }
        }
        Ok(())
    });
}

#[test]
fn files_of_the_real_disk_serve_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f");
    let disk = Env::real().disk;
    let results = threads::run(8, None, disk.clone(), Faults::none(), |comm| {
        let file = comm.open(&path, FileMode::CreateNew)?;
        let block = bytes_of(comm.rank(), 1000);
        file.write_all(&[(1000 * comm.rank() as u64, &block)])?;
        file.sync()
    });
    results.into_iter().for_each(|r| r.unwrap());
    let bytes = std::fs::read(&path).unwrap();
    assert!(bytes.len() == 8000 && bytes.iter().enumerate().all(|(i, b)| usize::from(*b) == i / 1000));
}

/// The order of the ranks' writes, which each rank's independent write of a byte leaves in a file.
fn order_of(size: usize, seed: Option<u64>) -> Vec<u8> {
    let world = SimWorld::new(1);
    let disk: Arc<dyn Disk> = world.host("a").disk;
    let results = threads::run(size, seed, disk, Faults::none(), |comm| {
        let file = comm.open(Path::new("/f"), FileMode::CreateNew)?;
        for n in 0..5 {
            file.write_at(&[comm.rank() as u8], n)?;
        }
        comm.barrier()?;
        let file: Arc<dyn CommFile> = comm.open(Path::new("/f"), FileMode::ReadWrite)?;
        file.write_at(&[comm.rank() as u8], 9)
    });
    results.into_iter().for_each(|r| r.unwrap());
    let offsets = world.trace().into_iter().filter(|op| op.len == 1).map(|op| op.offset as u8);
    let last = world.read(Path::new("/f")).unwrap();
    offsets.chain(last).collect()
}

#[test]
fn a_seed_decides_who_runs_and_seeds_differ() {
    let of_seeds: Vec<_> = (0..30).map(|seed| order_of(4, Some(seed))).collect();
    for (seed, order) in of_seeds.iter().enumerate() {
        assert_eq!(*order, order_of(4, Some(seed as u64)), "seed {seed} again");
    }
    let different: std::collections::BTreeSet<_> = of_seeds.iter().collect();
    assert!(different.len() > 25, "only {} orders of 30 seeds", different.len());
}

#[test]
fn calls_that_differ_are_named_and_nobody_waits() {
    type Act = fn(&dyn Comm) -> Result<()>;
    let acts: [(&str, Act); 9] = [
        ("Barrier", |c| c.barrier()),
        ("Broadcast { root: 0 }", |c| c.broadcast(0, vec![], 0).map(drop)),
        ("Broadcast { root: 1 }", |c| c.broadcast(1, vec![], 0).map(drop)),
        ("Allgather", |c| c.allgather(&[]).map(drop)),
        ("Gather { root: 1 }", |c| c.gather(1, &[]).map(drop)),
        ("ExclusiveScan { values: 1 }", |c| c.exscan(&mut [1])),
        ("Allreduce { reduce: Max, values: 1 }", |c| c.allreduce(Reduce::Max, &mut [1])),
        ("Allreduce { reduce: Sum, values: 2 }", |c| c.allreduce(Reduce::Sum, &mut [1, 2])),
        ("Alltoallv", |c| c.alltoallv(vec![vec![]; 3], 0).map(drop)),
    ];
    for (i, (name, first)) in acts.iter().enumerate() {
        for (other_name, other) in &acts[i + 1..] {
            for seed in [None, Some(1)] {
                let results = threads::run(3, seed, SimWorld::memory().disk, Faults::none(), |comm| {
                    let act = if comm.rank() == 1 { other } else { first };
                    let error = act(&*comm).unwrap_err();
                    assert!(comm.barrier().is_err(), "of no use any more");
                    Err::<(), _>(error)
                });
                for error in results.into_iter().map(|r| r.unwrap_err()) {
                    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                    let text = error.to_string();
                    assert!(text.contains(name) && text.contains(other_name) && text.contains("rank 1"));
                }
            }
        }
    }
}

#[test]
fn parts_for_another_number_of_ranks_are_refused() {
    let results = threads::run(3, None, SimWorld::memory().disk, Faults::none(), |comm| {
        assert_eq!(comm.alltoallv(vec![Vec::new(); 2], 0).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(comm.broadcast(3, Vec::new(), 0).unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(comm.gather(3, &[]).unwrap_err().kind(), ErrorKind::Invalid);
        comm.barrier()
    });
    results.into_iter().for_each(|r| r.unwrap());
}

#[test]
fn after_a_rank_has_left_nobody_waits() {
    for seed in std::iter::once(None).chain((0..50).map(Some)) {
        let disk = SimWorld::memory().disk;
        let results = threads::run(4, seed, disk, Faults::none(), |comm: Arc<dyn Comm>| {
            let team = Team::new(comm);
            team.barrier("begin")?;
            let also = team.clone();
            let first = match team.rank() {
                2 => team.leave(Error::denied("out of coffee")),
                // A lower rank that fails in the same step does not interfere.
                0 => team.agree::<()>("work", Err(Error::invalid("also wrong"))).unwrap_err(),
                _ => team.barrier("work").unwrap_err(),
            };
            // Rank 2 makes no further call; the others make any number, each on its own.
            let again = match team.rank() {
                2 => return Ok(()),
                3 => also.leave(Error::invalid("I go, too")),
                rank => {
                    (0..rank).for_each(|_| assert!(also.barrier("more").is_err()));
                    also.allgather("more", Ok(vec![1])).unwrap_err()
                }
            };
            for error in [first, again] {
                assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
                assert!(error.message().contains("rank 2: out of coffee"), "{error}");
            }
            Ok(())
        });
        for (rank, result) in results.into_iter().enumerate() {
            result.unwrap_or_else(|error| panic!("seed {seed:?}, rank {rank}: {error}"));
        }
    }
}
