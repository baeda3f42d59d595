//! What an exchange sends: each element once, each index once, and little else; as the model says, which goes on where no
//! test can.

use fieldstone_array::distributed::buffer::{Buffer, Element};
use fieldstone_array::distributed::plan::model::{ExchangeCase, ExchangeCost};
use fieldstone_array::distributed::plan::{FileArray, Method, Planner, Settings, Write};
use fieldstone_array::distributed::view::View;
use fieldstone_core::Result;
use fieldstone_core::env::comm::layer::CommLayer;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, FileMode, Team};
use fieldstone_core::env::sim::SimWorld;
use std::path::Path;
use std::sync::Arc;

/// Elements of a rank, of which owners' blocks have 512.
const OWN: u64 = 4096;
const SIZE: u64 = 8;

/// What a rank sent for the first write of its view and for the next; bytes that it wrote.
type CountedWrites = (ExchangeCost, ExchangeCost, u64);

fn counted(case: &ExchangeCase) -> Vec<CountedWrites> {
    let disk = SimWorld::memory().disk;
    let ranks = case.ranks;
    let run = |comm: Arc<dyn Comm>| -> Result<CountedWrites> {
        let team = Team::new(comm);
        let file = team.open("create", Path::new("/f"), FileMode::CreateNew)?;
        let rank = team.rank();
        // An odd factor deals the elements out evenly, in an order that ascends nowhere for long.
        let at = |n: u64| (n * 7919 % case.elements) as i64;
        let map: Vec<i64> = (rank as u64 * OWN..(rank as u64 + 1) * OWN).map(at).collect();
        let view = View::irregular(map.clone(), None, None).resolve(&[case.elements], rank, ranks)?;
        let bytes: Vec<u8> = map.iter().flat_map(|at| at.to_be_bytes()).collect();
        let from = Buffer::new(&bytes, Element::new(SIZE as usize, 1)?, view.local_shape())?;
        let owners = Some(case.owners).filter(|owners| *owners < ranks);
        let settings = Settings { method: Method::Exchange, buffer: case.buffer, owners };
        let planner = Planner::new();
        let write = || -> Result<(ExchangeCost, u64)> {
            let before = team.counters();
            let array = FileArray::dense(0, SIZE);
            let done = planner.write(
                &file,
                "put",
                Ok(Write { view: &view, array, from: &from, fill: None, settings }),
            )?;
            let after = team.counters();
            let (messages, sent) = (after.messages - before.messages, after.sent - before.sent);
            Ok((ExchangeCost { messages, sent, ..ExchangeCost::default() }, done.written))
        };
        let (first, written) = write()?;
        Ok((first, write()?.0, written))
    };
    threads::run(ranks, None, disk, Faults::none(), run).into_iter().map(|counted| counted.unwrap()).collect()
}

/// Within a tenth, or a few messages and bytes of one round more.
fn is_near(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) * 10 <= expected.max(found)
}

#[test]
fn an_exchange_sends_elements_and_indices_once_and_costs_what_the_model_says() {
    for (ranks, owners, buffer) in [
        (1, 1, 64 << 20),
        (2, 2, 64 << 20),
        (3, 3, 64 << 20),
        (16, 16, 64 << 20),
        (16, 4, 64 << 20),
        (64, 64, 64 << 20),
        (64, 64, 40_000),
        (100, 7, 100_000),
        (256, 256, 64 << 20),
    ] {
        let case = ExchangeCase { ranks, owners, elements: ranks as u64 * OWN, size: SIZE, buffer };
        let all = counted(&case);
        let most = |of: fn(&CountedWrites) -> u64| all.iter().map(of).max().unwrap();
        let (first, later) = (case.first_write(), case.later_write());
        for (what, found, expected) in [
            ("messages of the first", most(|c| c.0.messages), first.messages),
            ("messages of a later", most(|c| c.1.messages), later.messages),
            ("bytes of the first", most(|c| c.0.sent), first.sent),
            ("bytes of a later", most(|c| c.1.sent), later.sent),
        ] {
            assert!(is_near(found, expected), "{case:?}: {what} are {found}, the model says {expected}");
        }
        // Where one round does it, as it does with the buffer that is usual.
        if buffer == 64 << 20 {
            let own = OWN * SIZE;
            let (once, again) = (most(|c| c.0.sent), most(|c| c.1.sent));
            assert!(once * 10 <= own * 11 + OWN * 80, "{case:?}: {once} bytes sent first");
            assert!(again * 10 <= own * 11, "{case:?}: {again} bytes sent later");
        }
        let written: Vec<u64> = all.iter().map(|c| c.2).filter(|bytes| *bytes > 0).collect();
        let (least, greatest) = (written.iter().min().unwrap(), written.iter().max().unwrap());
        assert_eq!(written.len(), owners, "{case:?}");
        assert!(greatest - least <= 512 * SIZE, "{case:?}: owners wrote {least} to {greatest} bytes");
    }
}

/// Ranks of several hosts.
#[derive(Debug)]
struct Hosted(Arc<dyn Comm>);

impl CommLayer for Hosted {
    fn below(&self) -> &dyn Comm {
        &*self.0
    }
    fn host(&self) -> Option<String> {
        // Three hosts, the first of which has half of the ranks.
        let host = [0, 1, 0, 2][CommLayer::below(self).rank() % 4];
        Some(format!("node{host}"))
    }
}

#[test]
fn hosts_have_equal_shares_of_the_owners() {
    let disk = SimWorld::memory().disk;
    let outcomes = threads::run(12, None, disk, Faults::none(), |comm| {
        let team = Team::new(Arc::new(Hosted(comm)));
        let file = team.open("create", Path::new("/f"), FileMode::CreateNew)?;
        let rank = team.rank();
        let map: Vec<i64> = (0..1000).map(|n| n * 12 + rank as i64).collect();
        let view = View::irregular(map, None, None).resolve(&[12_000], rank, 12)?;
        let bytes = vec![1; 1000];
        let from = Buffer::new(&bytes, Element::new(1, 1)?, view.local_shape())?;
        let settings = Settings { method: Method::Exchange, owners: Some(6), ..Settings::default() };
        let write = Write { view: &view, array: FileArray::dense(0, 1), from: &from, fill: None, settings };
        let report = Planner::new().write(&file, "put", Ok(write))?;
        Ok(report.written > 0)
    });
    let owners: Vec<usize> =
        (0..12).zip(outcomes).filter(|(_, owns)| *owns.as_ref().unwrap()).map(|(rank, _)| rank).collect();
    // Ranks 0, 2, 4, 6, 8, 10 are on node0; 1, 5, 9 on node1; 3, 7, 11 on node2.
    assert_eq!(owners, [0, 1, 3, 5, 6, 7]);
}
