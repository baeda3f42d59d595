//! Exchanges of many rounds, one of which fails on one rank: all ranks get the error, and continue together.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_array::distributed::buffer::{Buffer, BufferMut, Element};
use fieldstone_array::distributed::plan::{FileArray, Method, PastFileEnd, Planner, Read, Settings, Write};
use fieldstone_array::distributed::view::View;
use fieldstone_core::env::comm::layer::FileLayer;
use fieldstone_core::env::comm::{CommFile, TeamFile};
use fieldstone_core::{ErrorKind, Result};

use crate::distributed::{disk_with, on_ranks};

const RANKS: usize = 3;
/// Elements of a rank: some blocks of each aggregator's range.
const EACH: u64 = 6 * 512;

/// A file whose n-th read or write fails, once.
#[derive(Debug)]
struct FailsOnce {
    below: Arc<dyn CommFile>,
    left: AtomicU64,
}

impl FailsOnce {
    fn over(file: &TeamFile, nth: u64) -> TeamFile {
        file.over(Arc::new(FailsOnce { below: file.below(), left: AtomicU64::new(nth) }))
    }

    fn strike(&self) -> Result<()> {
        match self.left.fetch_sub(1, Ordering::Relaxed) {
            1 => Err(fieldstone_core::Error::unavailable("the disk fails once")),
            _ => Ok(()),
        }
    }
}

impl FileLayer for FailsOnce {
    fn below(&self) -> &dyn CommFile {
        &*self.below
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        self.strike()?;
        self.below.write_at(data, offset)
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.strike()?;
        self.below.read_at(buffer, offset)
    }
}

#[test]
fn a_rank_that_fails_in_a_round_fails_all_and_they_go_on() {
    let total = EACH * RANKS as u64;
    let settings = Settings { method: Method::Exchange, buffer: 1, aggregators: None };
    let array = FileArray::dense(0, 8);
    for failing in 0..RANKS {
        for nth in 1..=6 {
            let outcomes = on_ranks(RANKS, &disk_with(&[]), |file| {
                let rank = file.team().rank();
                let map: Vec<i64> =
                    (0..EACH).map(|n| ((n * RANKS as u64 + rank as u64) * 4099 % total) as i64).collect();
                let own: Vec<u8> = map.iter().flat_map(|at| at.to_ne_bytes()).collect();
                let view = View::irregular(map, None, None).resolve(&[total], rank, RANKS)?;
                let (planner, element) = (Planner::new(), Element::new(8, 1)?);
                let from = Buffer::new(&own, element, &[EACH])?;
                let write = Write { view: &view, array, from: &from, fill: None, settings };
                let broken = || if rank == failing { FailsOnce::over(file, nth) } else { file.clone() };
                let check = |error: fieldstone_core::Error| {
                    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
                    assert!(error.message().starts_with(&format!("rank {failing}: ")), "{error}");
                };
                check(planner.write(&broken(), "write", Ok(write)).unwrap_err());
                planner.write(file, "write", Ok(write))?;
                for file in [broken(), file.clone()] {
                    let mut bytes = vec![0; own.len()];
                    let into = &mut BufferMut::new(&mut bytes, element, &[EACH])?;
                    let past_end = PastFileEnd::Corrupt;
                    match planner.read(
                        &file.reader(),
                        "read",
                        Ok(Read { view: &view, array, into, past_end, settings }),
                    ) {
                        Ok(_) => assert!(bytes == own, "rank {rank}"),
                        Err(error) => check(error),
                    }
                }
                Ok(())
            });
            outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        }
    }
}
