//! Plans: what ranks exchange becomes the array's bytes, whatever the views, types, owners, buffers and ranks; what
//! contradicts itself is refused; what fails on one rank fails on all.

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::buffer::{Element, Strides};
use fieldstone_array::distributed::plan::blocks::BLOCK;
use fieldstone_array::distributed::plan::{BlockSum, Direction, SourceBuffer, TargetBuffer, TransferPlan};
use fieldstone_array::distributed::view::{LocalView, View, Whole};
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, FileMode, Team};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_testkit::{Random, seeded};

use super::model::{Case, held, random_case, random_shape};

const FILE: &str = "/array";
/// Where the array begins in the file.
const BEGIN: u64 = 24;

/// The bytes of an element in memory: different ones for different elements.
fn value(element: u64, size: usize) -> Vec<u8> {
    (0..size as u64)
        .map(|k| (element.wrapping_mul(0x9e37_79b9).wrapping_add(k * 0x85eb + element / 251) >> 7) as u8)
        .collect()
}

fn in_file(mut bytes: Vec<u8>, word: usize) -> Vec<u8> {
    bytes.chunks_mut(word).for_each(<[u8]>::reverse);
    bytes
}

/// A buffer of a rank: dense or backwards, with the elements that a view holds; others are marked.
fn buffer(dice: &mut Random, shape: &[u64], element: Element, of: &[Option<u64>]) -> (Vec<u8>, Strides) {
    let size = element.size();
    let bytes = of.iter().flat_map(|held| held.map_or(vec![0xee; size], |held| value(held, size)));
    let mut bytes: Vec<u8> = bytes.collect();
    if dice.below(2) == 0 || bytes.is_empty() {
        let strides = Strides::dense(shape, element, bytes.len()).unwrap();
        return (bytes, strides);
    }
    bytes = bytes.chunks(size).rev().flatten().copied().collect();
    let mut step = -(size as isize);
    let mut steps = vec![0; shape.len()];
    for (len, at) in shape.iter().zip(&mut steps).rev() {
        *at = step;
        step *= *len as isize;
    }
    let strides = Strides::new(shape, steps, bytes.len() - size, element, bytes.len()).unwrap();
    (bytes, strides)
}

fn local(case: &Case, rank: usize) -> LocalView {
    let whole = Whole::new(&case.shape).unwrap();
    case.views[rank].local_behind(&whole, case.before[rank], rank, case.views.len()).unwrap()
}

fn of_rank(case: &Case, rank: usize) -> Vec<Option<(u64, bool)>> {
    held(&case.views[rank], &case.shape, case.before[rank], rank)
}

fn write(
    comm: Arc<dyn Comm>,
    case: &Case,
    seed: u64,
    element: Element,
    fill: &[u8],
) -> Result<Vec<BlockSum>> {
    let team = Team::new(comm);
    let file = team.open("open", Path::new(FILE), FileMode::ReadWrite)?;
    let dice = &mut *seeded(seed);
    let (owners, room) = (1 + dice.below(4) as usize, 1 << (10 + dice.below(12)));
    let local = local(case, team.rank());
    let plan = TransferPlan::make(&team, Ok(&local), Direction::Write, owners)?;
    let elements: Vec<Option<u64>> =
        of_rank(case, team.rank()).into_iter().map(|held| Some(held?.0)).collect();
    let (bytes, strides) = buffer(&mut seeded(seed + team.rank() as u64), local.shape(), element, &elements);
    let source = SourceBuffer { bytes: &bytes, strides: &strides, fill: Some(fill) };
    let mut put = |first: u64, blocks: &[u8]| file.write_at(blocks, BEGIN + first * element.size() as u64);
    let sums = plan.write(&team, Ok(source), room, &mut put)?;
    let written: u64 = (0..team.size())
        .map(|rank| of_rank(case, rank).iter().flatten().filter(|h| h.1).count() as u64)
        .sum();
    if plan.missing() == 0 && written == plan.whole().elements() {
        assert!(plan.memory() <= 24 * (local.elements() + BLOCK), "{} bytes", plan.memory());
    }
    team.barrier("end")?;
    Ok(sums)
}

fn read(comm: Arc<dyn Comm>, case: &Case, seed: u64, element: Element) -> Result<()> {
    let team = Team::new(comm);
    let file = team.open("open", Path::new(FILE), FileMode::Read)?;
    let dice = &mut *seeded(seed);
    let (owners, room) = (1 + dice.below(4) as usize, 1 << (10 + dice.below(12)));
    let local = local(case, team.rank());
    let plan = TransferPlan::make(&team, Ok(&local), Direction::Read, owners)?;
    let nothing = vec![None; local.elements() as usize];
    let (mut bytes, strides) = buffer(&mut seeded(seed), local.shape(), element, &nothing);
    let target = TargetBuffer { bytes: &mut bytes, strides: &strides };
    let mut get = |first: u64, blocks: &mut [u8]| {
        let n = file.read_at(blocks, BEGIN + first * element.size() as u64)?;
        if n == blocks.len() { Ok(()) } else { Err(Error::corrupt("the file is short")) }
    };
    plan.read(&team, Ok(target), room, &mut get)?;
    let wanted: Vec<Option<u64>> = of_rank(case, team.rank()).into_iter().map(|held| Some(held?.0)).collect();
    let (expected, _) = buffer(&mut seeded(seed), local.shape(), element, &wanted);
    assert!(bytes == expected, "seed {seed}, rank {}: {:?}", team.rank(), case.views[team.rank()]);
    team.barrier("end")
}

/// One case: written, compared with what the model says, read with other views by other ranks.
fn round_trip(seed: u64, large: bool) {
    let dice = &mut *seeded(seed);
    let shape = random_shape(dice, large);
    let word = 1 << dice.below(4);
    let size = if dice.below(4) == 0 { 2 * word } else { word };
    let element = Element::new(size, word).unwrap();
    let ranks = 1 + dice.below(if large { 5 } else { 16 }) as usize;
    let case = random_case(dice, &shape, ranks, true);
    let fill: Vec<u8> = (0..size as u8).map(|k| k + 1).collect();
    let elements: u64 = shape.iter().product();
    let mut expected: Vec<u8> = fill.repeat(elements as usize);
    for rank in 0..ranks {
        for (element, _) in of_rank(&case, rank).into_iter().flatten().filter(|held| held.1) {
            let at = element as usize * size;
            expected[at..at + size].copy_from_slice(&in_file(value(element, size), word));
        }
    }
    let disk = SimWorld::memory().disk;
    let file = disk.create_new(Path::new(FILE)).unwrap();
    let given = (dice.below(3) == 0).then_some(seed);
    let results = threads::run(ranks, given, disk.clone(), Faults::none(), |comm| {
        write(comm, &case, seed, element, &fill)
    });
    let mut sums: Vec<BlockSum> = results.into_iter().flat_map(|sums| sums.unwrap()).collect();
    sums.sort_unstable();
    let mut bytes = vec![0; expected.len()];
    assert_eq!(file.read_at(&mut bytes, BEGIN).unwrap(), bytes.len());
    assert!(bytes == expected, "seed {seed}: {case:?}");
    let blocks = expected.chunks(BLOCK as usize * size);
    let summed = (0..).zip(blocks).map(|(block, bytes)| BlockSum { block, sum: crc32c::crc32c(bytes) });
    assert_eq!(sums, summed.collect::<Vec<_>>(), "seed {seed}");

    for element_number in 0..elements {
        let at = element_number as usize * size;
        expected[at..at + size].copy_from_slice(&in_file(value(element_number, size), word));
    }
    file.write_at(&expected, BEGIN).unwrap();
    let ranks = 1 + dice.below(6) as usize;
    let other = random_case(dice, &shape, ranks, true);
    let results = threads::run(ranks, given, disk, Faults::none(), |comm| read(comm, &other, seed, element));
    results.into_iter().for_each(|result| result.unwrap());
}

#[test]
fn what_ranks_hold_becomes_the_array_and_is_read_by_others() {
    (0..1_500).for_each(|seed| round_trip(seed, false));
}

#[test]
fn arrays_of_many_blocks_are_cut_among_owners() {
    (0..60).for_each(|seed| round_trip(10_000 + seed, true));
}

fn conflict(second: u8) -> Vec<Result<()>> {
    threads::run(3, None, SimWorld::memory().disk, Faults::none(), |comm| {
        let team = Team::new(comm);
        let whole = Whole::new(&[2, 3])?;
        let map = [vec![0, 1, 2], vec![5], vec![3, 4, 5]][team.rank()].clone();
        let view = View::irregular(map, None, None);
        let local = view.local(&whole, team.rank(), 3)?;
        let plan = TransferPlan::make(&team, Ok(&local), Direction::Write, 1)?;
        let bytes = [vec![1, 1, 1], vec![7], vec![1, 1, second]][team.rank()].clone();
        let strides = Strides::dense(local.shape(), Element::new(1, 1)?, bytes.len())?;
        let source = SourceBuffer { bytes: &bytes, strides: &strides, fill: None };
        plan.write(&team, Ok(source), 1 << 20, &mut |_, blocks| {
            assert_eq!(blocks, [1, 1, 1, 1, 1, 7]);
            Ok(())
        })?;
        Ok(())
    })
}

#[test]
fn an_element_of_two_values_is_named_with_its_ranks() {
    assert!(conflict(7).into_iter().all(|result| result.is_ok()), "equal values are no conflict");
    for result in conflict(8) {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let said = "element [1, 2] would have two values: ranks 1 and 2 write it";
        assert!(error.message().contains(said), "{}", error.message());
    }
}

/// Whatever one rank fails in, all learn of it, and nobody waits.
#[test]
fn what_fails_on_one_rank_fails_on_all() {
    let element = Element::new(8, 8).unwrap();
    for seed in 0..200 {
        let dice = &mut *seeded(seed);
        let shape = [1 + dice.below(300), 1 + dice.below(5)];
        let ranks = 2 + dice.below(4) as usize;
        let case = random_case(dice, &shape, ranks, false);
        let (rank, nth) = (dice.below(ranks as u64) as usize, 1 + dice.below(8));
        let faults = if dice.below(2) == 0 { Faults::step(rank, nth) } else { Faults::death(rank, nth) };
        let disk = SimWorld::memory().disk;
        drop(disk.create_new(Path::new(FILE)).unwrap());
        let results = threads::run(ranks, Some(seed), disk, faults.clone(), |comm| {
            write(comm, &case, seed, element, &[0; 8])
        });
        if faults.struck() {
            assert!(results.iter().all(|result| result.is_err()), "seed {seed}: {results:?}");
        } else {
            assert!(results.iter().all(|result| result.is_ok()), "seed {seed}: {results:?}");
        }
    }
}

#[test]
fn ranks_that_speak_of_other_arrays_or_buffers_learn_of_it() {
    let results = threads::run(3, None, SimWorld::memory().disk, Faults::none(), |comm| {
        let team = Team::new(comm);
        let whole = Whole::new(&[if team.rank() == 1 { 5 } else { 4 }])?;
        let local = View::block(&[0], &[0]).local(&whole, team.rank(), 3)?;
        TransferPlan::make(&team, Ok(&local), Direction::Write, 1).map(|_| ())
    });
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("ranks speak of other arrays"), "{}", error.message());
    }
    let results = threads::run(2, None, SimWorld::memory().disk, Faults::none(), |comm| {
        let team = Team::new(comm);
        let whole = Whole::new(&[4])?;
        let local = View::grid(&[2]).local(&whole, team.rank(), 2)?;
        let plan = TransferPlan::make(&team, Ok(&local), Direction::Write, 1)?;
        let bytes = vec![0; 2 + team.rank()];
        let strides = Strides::dense(&[bytes.len() as u64], Element::new(1, 1)?, bytes.len())?;
        let source = SourceBuffer { bytes: &bytes, strides: &strides, fill: None };
        plan.write(&team, Ok(source), 1 << 20, &mut |_, _| Ok(())).map(|_| ())
    });
    for result in results {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        let said = "rank 1: a buffer of shape [3] for a view of 2 elements";
        assert!(error.message().contains(said), "{}", error.message());
    }
}
