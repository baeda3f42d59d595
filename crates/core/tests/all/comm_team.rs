//! Agreement: a failure on one rank is raised on all, and traffic is counted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, Counters, FileMode, Step, Sums, Team};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::{Disk, Env};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_testkit::require::full;

const SECOND: u64 = 1_000_000_000;

fn memory() -> Arc<dyn Disk> {
    SimWorld::memory().disk
}

/// Number of steps in [`everything`]: one for a collective of a team, two for one of its file.
const STEPS: u64 = 18;

/// Every collective of a team, once.
fn everything(team: &Team) -> Result<()> {
    let (rank, size) = (team.rank(), team.size());
    team.barrier("start")?;
    assert_eq!(team.allgather("names", Ok(vec![rank as u8]))?.len(), size);
    team.gather("sizes", size - 1, Ok(vec![rank as u8]))?;
    assert_eq!(team.broadcast("table", 0, Ok(vec![7; 7 * usize::from(rank == 0)]))?, [7; 7]);
    team.sums("offsets", Ok(vec![1, rank as u64]))?;
    team.max("peak", Ok(vec![rank as u64]))?;
    team.alltoallv("shares", Ok(vec![vec![rank as u8]; size]))?;
    let file = team.open("create", Path::new("/f"), FileMode::CreateNew)?;
    file.write_all("write", Ok(&[(rank as u64, &[rank as u8])]))?;
    file.sync("sync", Ok(()))?;
    let mut byte = [9];
    file.read_all("read", Ok(&mut [(rank as u64, &mut byte)]))?;
    assert_eq!(byte, [rank as u8]);
    file.set_len("cut", Ok(1))?;
    team.barrier("end")
}

/// Runs [`everything`] with one failure; on whatever rank it occurs, all must get an error in a second. Returns
/// whether it occurred.
fn all_learn(size: usize, seed: Option<u64>, faults: &Faults, check: impl Fn(usize, &Error)) -> bool {
    let clock = Env::real().clock;
    let began = clock.monotonic();
    let results = threads::run(size, seed, memory(), faults.clone(), |comm| everything(&Team::new(comm)));
    assert!(clock.monotonic() - began < SECOND, "seed {seed:?}, {faults:?}");
    for (rank, result) in results.iter().enumerate() {
        match result {
            Ok(()) => assert!(!faults.struck(), "rank {rank} of {size} went on, seed {seed:?}, {faults:?}"),
            Err(error) => check(rank, error),
        }
    }
    faults.struck()
}

#[test]
fn each_rank_fails_at_each_step_under_seeds_and_all_learn_its_name() {
    let clock = Env::real().clock;
    let mut runs = 0;
    let seeds = if full() { 200 } else { 40 };
    for seed in 0..seeds {
        let size = 2 + seed as usize % 4;
        for rank in 0..size {
            for nth in 1..=STEPS {
                let faults = Faults::step(rank, nth);
                let began = clock.monotonic();
                let results = threads::run(size, Some(seed), memory(), faults.clone(), |comm| {
                    let team = Team::new(comm);
                    let result = everything(&team);
                    // The team is usable again, in whatever state the failure left the others.
                    let total = team.sums("again", Ok(vec![1]))?.total;
                    assert_eq!(total, [team.size() as u64]);
                    Ok(result)
                });
                assert!(clock.monotonic() - began < SECOND, "seed {seed}, rank {rank}, step {nth}");
                runs += 1;
                for error in results.into_iter().map(|r| r.unwrap().unwrap_err()) {
                    assert_eq!(error.kind(), ErrorKind::Unavailable);
                    assert!(error.message().starts_with(&format!("rank {rank}: ")), "{error}");
                    assert!(error.message().contains("injected failure of step"), "{error}");
                }
            }
            assert!(!all_learn(size, Some(seed), &Faults::step(rank, STEPS + 1), |_, e| panic!("{e}")));
        }
    }
    assert_eq!(runs, seeds / 4 * (2 + 3 + 4 + 5) * STEPS);
}

#[test]
fn each_rank_dies_at_each_call_and_nobody_waits_for_it() {
    for (fault, text) in
        [(Faults::death as fn(usize, u64) -> Faults, "has gone"), (Faults::call, "a call of")]
    {
        for seed in [None, Some(1), Some(2), Some(3)] {
            for rank in 0..3 {
                let mut nth = 1;
                let check = |_: usize, error: &Error| {
                    assert!(error.message().contains(&format!("rank {rank}")), "{error}");
                    assert!(error.message().contains(text) || error.message().contains("died"), "{error}");
                };
                while all_learn(3, seed, &fault(rank, nth), check) {
                    nth += 1;
                }
                // Ranks other than rank 0 join the same calls: one for agreement, and one or two more.
                assert!(nth > 25, "only {nth} calls of rank {rank} were tried");
            }
        }
    }
}

#[test]
fn a_rank_that_panics_or_leaves_is_named_by_all_others_at_once() {
    let clock = Env::real().clock;
    for size in [2, 5, 256] {
        for panics in [true, false] {
            let began = clock.monotonic();
            let results = threads::run(size, None, memory(), Faults::none(), |comm| {
                let team = Team::new(comm);
                team.barrier("start")?;
                if team.rank() == 1 {
                    assert!(!panics, "on purpose");
                    return Ok(());
                }
                team.barrier("end")
            });
            assert!(clock.monotonic() - began < SECOND);
            for (rank, result) in results.into_iter().enumerate().filter(|(rank, _)| panics || *rank != 1) {
                let error = result.unwrap_err();
                let why = if panics { "panicked: on purpose" } else { "dropped its communicator" };
                assert!(
                    error.message().contains("rank 1") && error.message().contains(why),
                    "{rank}: {error}"
                );
            }
        }
    }
}

#[test]
fn errors_arrive_with_kind_message_and_hint_and_the_lowest_rank_speaks() {
    for kind in ErrorKind::ALL {
        let results = threads::run(5, Some(3), memory(), Faults::none(), |comm| {
            let team = Team::new(comm);
            let local = match team.rank() {
                0 | 2 => Ok(vec![1]),
                rank => Err(Error::new(kind, format!("`x` is twice on {rank}")).with_hint("once will do")),
            };
            team.sums("names", local)
        });
        for error in results.into_iter().map(|r| r.unwrap_err()) {
            assert_eq!(error.kind(), kind);
            assert_eq!(error.message(), "rank 1: `x` is twice on 1");
            assert_eq!(error.hint(), Some("once will do"));
        }
    }
}

#[test]
fn ranks_in_different_steps_are_told_so_and_nobody_waits_any_more() {
    for seed in [None, Some(1), Some(2)] {
        let results = threads::run(4, seed, memory(), Faults::none(), |comm| {
            let (team, other) = (Team::new(comm.clone()), Team::new(comm));
            team.barrier("first")?;
            let error = match team.rank() {
                2 => team.allgather("the other", Ok(vec![])).unwrap_err(),
                _ => team.sums("the one", Ok(vec![])).unwrap_err(),
            };
            // Some make further calls, and some do not.
            for _ in 0..team.rank() {
                assert_eq!(team.barrier("alone").unwrap_err().kind(), ErrorKind::Conflict);
            }
            other.barrier("another team goes on")?;
            Ok(error)
        });
        for error in results.into_iter().map(|r| r.unwrap()) {
            assert_eq!(error.kind(), ErrorKind::Conflict);
            assert_eq!(error.message(), "rank 0 is in `the one`, rank 2 in `the other`");
        }
    }
}

#[test]
fn a_rank_that_fails_before_a_step_that_may_be_repeated_goes_on_with_the_others() {
    let results = threads::run(3, Some(4), memory(), Faults::none(), |comm| {
        let team = Team::new(comm);
        team.barrier("first")?;
        let error = match team.rank() {
            1 => team.fail(Error::invalid("no array")),
            _ => team.barrier(Step::repeatable("put")).unwrap_err(),
        };
        assert_eq!(error.message(), "rank 1: no array");
        team.barrier("together")?;
        // There is no way back after the last step.
        let error = match team.rank() {
            1 => team.fail(Error::invalid("no array")),
            _ => team.barrier("close").unwrap_err(),
        };
        assert_eq!(error.message(), "rank 1: no array");
        if team.rank() == 2 {
            assert_eq!(team.barrier("alone").unwrap_err().message(), "rank 1: no array");
        }
        Ok(())
    });
    results.into_iter().for_each(|r| r.unwrap());
}

#[test]
fn a_rank_leaves_one_team_while_the_others_are_in_another() {
    for seed in std::iter::once(None).chain((0..20).map(Some)) {
        let results = threads::run(4, seed, memory(), Faults::none(), |comm| {
            let (outer, inner) = (Team::new(comm.clone()), Team::new(comm.clone()));
            let a = outer.open("create", Path::new("/a"), FileMode::CreateNew)?;
            let b = inner.open("create", Path::new("/b"), FileMode::CreateNew)?;
            // As with nested `with` blocks: two ranks fail in the inner one, and the others get the error in a step
            // of the outer one.
            if outer.rank() < 2 {
                let error = inner.leave(Error::invalid(format!("boom {}", outer.rank())));
                assert!(error.message().contains("boom"), "{error}");
            } else {
                let error = outer.barrier("read").unwrap_err();
                assert!(error.message().contains("boom"), "{error}");
                inner.leave(error);
            }
            assert!(b.sync("sync", Ok(())).unwrap_err().message().contains("boom"));
            // Then the outer one fails, on each rank when it gets there; a further team is unaffected.
            outer.leave(Error::invalid("the outer block"));
            assert!(a.sync("sync", Ok(())).is_err());
            Team::new(comm).barrier("a further team")
        });
        for (rank, result) in results.into_iter().enumerate() {
            result.unwrap_or_else(|error| panic!("seed {seed:?}, rank {rank}: {error}"));
        }
    }
}

#[test]
fn a_file_that_cannot_be_opened_or_written_fails_on_all() {
    let results = threads::run(3, None, memory(), Faults::none(), |comm| {
        let team = Team::new(comm);
        let absent = team.open("open", Path::new("/absent"), FileMode::Read).unwrap_err();
        let file = team.open("create", Path::new("/f"), FileMode::CreateNew)?;
        let mut bytes = vec![0; team.rank()];
        let short = file.read_all("read", Ok(&mut [(0, &mut bytes)])).unwrap_err();
        Ok((absent, short))
    });
    for (absent, short) in results.into_iter().map(|r| r.unwrap()) {
        assert_eq!(absent.kind(), ErrorKind::NotFound);
        assert!(absent.message().starts_with("rank 0: "), "{absent}");
        assert!(short.message().starts_with("rank 1: "), "rank 0 reads nothing: {short}");
    }
}

#[test]
fn counters_are_those_computed_by_hand() {
    // Three ranks: a tree has 2 rounds, pairs are 2. An agreement is 56 bytes in each round, and the first of a team
    // 64.
    let agreed = Counters { collectives: 1, messages: 2, sent: 112, received: 112 };
    let first = Counters { collectives: 2, messages: 4, sent: 128, received: 128 };
    let results = threads::run(3, Some(5), memory(), Faults::none(), |comm: Arc<dyn Comm>| {
        let rank = comm.rank() as u64;
        let count = |act: &dyn Fn(&Team) -> Result<()>| {
            let team = Team::new(comm.clone());
            team.barrier("first").unwrap();
            assert_eq!(team.counters(), first);
            act(&team).unwrap();
            let c = team.counters();
            Counters {
                collectives: c.collectives - first.collectives - agreed.collectives,
                messages: c.messages - first.messages - agreed.messages,
                sent: c.sent - first.sent - agreed.sent,
                received: c.received - first.received - agreed.received,
            }
        };
        let of = |collectives, messages, sent, received| Counters { collectives, messages, sent, received };
        let own = |len: u64| Ok(vec![0u8; len as usize]);
        assert_eq!(count(&|t| t.barrier("s")), of(0, 0, 0, 0));
        // Rank r sends r + 1 bytes to 2 others, and receives the other 6 - (r + 1).
        assert_eq!(count(&|t| t.allgather("s", own(rank + 1)).map(drop)), of(1, 2, 2 * (rank + 1), 5 - rank));
        let gathered = [of(1, 1, 1, 0), of(1, 0, 0, 4), of(1, 1, 3, 0)][rank as usize];
        assert_eq!(count(&|t| t.gather("s", 1, own(rank + 1)).map(drop)), gathered);
        // Short data travel with the agreement.
        assert_eq!(count(&|t| t.broadcast("s", 0, own(24)).map(drop)), of(0, 0, 0, 0));
        assert_eq!(count(&|t| t.broadcast("s", 0, own(25)).map(drop)), of(1, 2, 50, 50));
        assert_eq!(count(&|t| t.sums("s", Ok(vec![1, 2])).map(drop)), of(2, 4, 64, 64));
        assert_eq!(count(&|t| t.total("s", Ok(vec![1, 2])).map(drop)), of(1, 2, 32, 32));
        assert_eq!(count(&|t| t.max("s", Ok(vec![1; 4])).map(drop)), of(0, 0, 0, 0));
        assert_eq!(count(&|t| t.max("s", Ok(vec![1; 5])).map(drop)), of(1, 2, 80, 80));
        // Rank r sends 10 * to bytes to each rank: 30 - 10 r to others; it receives 10 r from each of two.
        let parts = || Ok((0..3).map(|to| vec![0; 10 * to]).collect());
        assert_eq!(count(&|t| t.alltoallv("s", parts()).map(drop)), of(1, 2, 30 - 10 * rank, 20 * rank));
        Ok(())
    });
    results.into_iter().for_each(|r| r.unwrap());
}

#[test]
fn a_team_of_one_exchanges_nothing() {
    let results = threads::run(1, None, memory(), Faults::none(), |comm| {
        let team = Team::new(comm);
        everything(&team)?;
        assert_eq!(team.counters(), Counters::default());
        assert_eq!(team.sums("s", Ok(vec![4]))?, Sums { before: vec![0], total: vec![4] });
        let alone = team.max("s", Err(Error::invalid("wrong"))).unwrap_err();
        assert_eq!(alone.message(), "wrong", "no rank is named where there is one");
        Ok(())
    });
    results.into_iter().for_each(|r| r.unwrap());
}
