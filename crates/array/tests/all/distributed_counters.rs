//! The traffic of an exchange: each element once, each index once, and little else; as the model predicts, which
//! extends beyond the sizes of tests. And the bytes read from an import: each once.

use fieldstone_array::distributed::buffer::{Buffer, BufferMut, Element};
use fieldstone_array::distributed::import::Import;
use fieldstone_array::distributed::partition::source::EdgeArrays;
use fieldstone_array::distributed::partition::vector::{NodeRanks, Vector};
use fieldstone_array::distributed::partition::{PartitionMethod, PartitionSettings, partition};
use fieldstone_array::distributed::plan::model::{ExchangeCase, ExchangeCost};
use fieldstone_array::distributed::plan::{FileArray, Method, Planner, Settings, Write};
use fieldstone_array::distributed::view::View;
use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::comm::layer::CommLayer;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, FileMode, Team};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::write_all_at;
use fieldstone_format::catalog::ImportedVariable;
use std::path::Path;
use std::sync::Arc;

/// Elements of a rank; aggregators' blocks have 512.
const OWN: u64 = 4096;
const SIZE: u64 = 8;

/// The traffic of a rank for the first write of its view and for the next, and the bytes that it wrote.
type CountedWrites = (ExchangeCost, ExchangeCost, u64);

fn counted(case: &ExchangeCase) -> Vec<CountedWrites> {
    let disk = SimWorld::memory().disk;
    let ranks = case.ranks;
    let run = |comm: Arc<dyn Comm>| -> Result<CountedWrites> {
        let team = Team::new(comm);
        let file = team.open("create", Path::new("/f"), FileMode::CreateNew)?;
        let rank = team.rank();
        // An odd factor distributes the elements evenly, in an order that never ascends for long.
        let at = |n: u64| (n * 7919 % case.elements) as i64;
        let map: Vec<i64> = (rank as u64 * OWN..(rank as u64 + 1) * OWN).map(at).collect();
        let view = View::irregular(map.clone(), None, None).resolve(&[case.elements], rank, ranks)?;
        let bytes: Vec<u8> = map.iter().flat_map(|at| at.to_be_bytes()).collect();
        let from = Buffer::new(&bytes, Element::new(SIZE as usize, 1)?, view.local_shape())?;
        let aggregators = Some(case.aggregators).filter(|aggregators| *aggregators < ranks);
        let settings = Settings { method: Method::Exchange, buffer: case.buffer, aggregators };
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

/// Whether the numbers agree up to a tenth, or a few messages and bytes of one round.
fn is_near(found: u64, expected: u64) -> bool {
    found.abs_diff(expected) * 10 <= expected.max(found)
}

#[test]
fn an_exchange_sends_elements_and_indices_once_and_costs_what_the_model_says() {
    for (ranks, aggregators, buffer) in [
        (1, 1, 64 << 20),
        (2, 2, 64 << 20),
        (3, 3, 64 << 20),
        (4, 4, 64 << 20),
        (16, 16, 64 << 20),
        (16, 4, 64 << 20),
        (64, 64, 64 << 20),
        (64, 64, 40_000),
        (100, 7, 100_000),
        (256, 256, 64 << 20),
    ] {
        let case = ExchangeCase { ranks, aggregators, elements: ranks as u64 * OWN, size: SIZE, buffer };
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
        // For the case of one round, which is usual with the default buffer.
        if buffer == 64 << 20 {
            let own = OWN * SIZE;
            let (once, again) = (most(|c| c.0.sent), most(|c| c.1.sent));
            assert!(once * 10 <= own * 11 + OWN * 80, "{case:?}: {once} bytes sent first");
            assert!(again * 10 <= own * 11, "{case:?}: {again} bytes sent later");
        }
        let written: Vec<u64> = all.iter().map(|c| c.2).filter(|bytes| *bytes > 0).collect();
        let (least, greatest) = (written.iter().min().unwrap(), written.iter().max().unwrap());
        assert_eq!(written.len(), aggregators, "{case:?}");
        assert!(greatest - least <= 512 * SIZE, "{case:?}: aggregators wrote {least} to {greatest} bytes");
    }
}

/// A mesh in a raw file: edges, of which every rank reads its share, and values at nodes, read by the resulting
/// parts.
#[test]
fn the_bytes_of_an_import_are_read_once_whatever_the_ranks() {
    const NODES: u64 = 6_000;
    const EDGES: u64 = 30_000;
    let world = SimWorld::new(1);
    let disk = world.process("node").disk;
    let end = |n: u64| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % NODES;
    let ends = (0..2 * EDGES).flat_map(|n| (end(n) as i32).to_le_bytes());
    let bytes: Vec<u8> = ends.chain((0..NODES).flat_map(|node| (node as f64).to_le_bytes())).collect();
    let file = disk.create_new(Path::new("/mesh")).unwrap();
    write_all_at(&*file, &bytes, 0).unwrap();
    let variable = |name: &str, dtype: &str, offset: u64, len: u64| ImportedVariable {
        name: name.into(),
        dtype: DType::parse(dtype).unwrap(),
        offset,
        shape: vec![len],
    };
    for (ranks, method) in [
        (1, PartitionMethod::Direct),
        (2, PartitionMethod::Ring),
        (4, PartitionMethod::Direct),
        (16, PartitionMethod::Ring),
        (64, PartitionMethod::Direct),
    ] {
        let before = world.counters().bytes_read;
        let outcomes = threads::run(ranks, None, disk.clone(), Faults::none(), |comm| {
            let team = Team::new(comm);
            let variables = vec![
                variable("first", "<i4", 0, EDGES),
                variable("second", "<i4", 4 * EDGES, EDGES),
                variable("x", "<f8", 8 * EDGES, NODES),
            ];
            let import = Import::raw(&team, &*disk, Path::new("/mesh"), variables)?;
            let read = |name: &str, view: Option<&View>| -> Result<Vec<u8>> {
                let (local, array) = (import.view(name, view)?, import.variable(name)?);
                let dtype = array.variable.dtype.to_native();
                let mut bytes = vec![0; local.local_shape()[0] as usize * dtype.size()];
                let mut into = BufferMut::new(&mut bytes, array.element(dtype)?, local.local_shape())?;
                import.read(name, Ok((&local, &mut into)), Settings::default())?;
                Ok(bytes)
            };
            let ends = |name| -> Result<Vec<i32>> {
                Ok(read(name, None)?.as_chunks().0.iter().map(|word| i32::from_ne_bytes(*word)).collect())
            };
            let (first, second) = (ends("first")?, ends("second")?);
            let vector: Vec<i32> = (0..NODES).map(|node| (node * 31 % ranks as u64) as i32).collect();
            let vector = NodeRanks::new(&team, &Vector::Replicated(vector[..].into()), Some(NODES))?;
            let settings = PartitionSettings { method, buffer: 1 << 16, ..PartitionSettings::default() };
            let mut edges = EdgeArrays { first: &first, second: &second };
            let part = partition(&team, &mut edges, &vector, &settings)?;
            let x = read("x", Some(&part.node_view()))?;
            assert!(
                x.as_chunks()
                    .0
                    .iter()
                    .zip(part.nodes())
                    .all(|(x, node)| f64::from_ne_bytes(*x) == *node as f64)
            );
            import.close()
        });
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
        let read = world.counters().bytes_read - before;
        assert_eq!(read, bytes.len() as u64, "{ranks} ranks, {method:?}");
    }
}

/// Ranks on several hosts.
#[derive(Debug)]
struct Hosted(Arc<dyn Comm>);

impl CommLayer for Hosted {
    fn below(&self) -> &dyn Comm {
        &*self.0
    }
    fn host(&self) -> Option<String> {
        // Three hosts; the first one has half of the ranks.
        let host = [0, 1, 0, 2][CommLayer::below(self).rank() % 4];
        Some(format!("node{host}"))
    }
}

#[test]
fn hosts_have_equal_shares_of_the_aggregators() {
    let disk = SimWorld::memory().disk;
    let outcomes = threads::run(12, None, disk, Faults::none(), |comm| {
        let team = Team::new(Arc::new(Hosted(comm)));
        let file = team.open("create", Path::new("/f"), FileMode::CreateNew)?;
        let rank = team.rank();
        let map: Vec<i64> = (0..1000).map(|n| n * 12 + rank as i64).collect();
        let view = View::irregular(map, None, None).resolve(&[12_000], rank, 12)?;
        let bytes = vec![1; 1000];
        let from = Buffer::new(&bytes, Element::new(1, 1)?, view.local_shape())?;
        let settings = Settings { method: Method::Exchange, aggregators: Some(6), ..Settings::default() };
        let write = Write { view: &view, array: FileArray::dense(0, 1), from: &from, fill: None, settings };
        let report = Planner::new().write(&file, "put", Ok(write))?;
        Ok(report.written > 0)
    });
    let aggregators: Vec<usize> =
        (0..12).zip(outcomes).filter(|(_, owns)| *owns.as_ref().unwrap()).map(|(rank, _)| rank).collect();
    // Ranks 0, 2, 4, 6, 8, 10 are on node0; 1, 5, 9 on node1; 3, 7, 11 on node2.
    assert_eq!(aggregators, [0, 1, 3, 5, 6, 7]);
}
