//! Distributed arrays: random views against a model, with every method, on threads.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::Path;
use std::sync::Arc;

use fieldstone_array::distributed::buffer::{Buffer, BufferMut, Element};
use fieldstone_array::distributed::plan::{
    FileArray, Method, MoveReport, PastFileEnd, Planner, Read, Settings, Write,
};
use fieldstone_array::distributed::view::View;
use fieldstone_core::env::comm::single::SingleComm;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, FileMode, Team, TeamFile};
use fieldstone_core::env::sim::{Random, SimWorld};
use fieldstone_core::env::{Disk, Env};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::seeded;

use crate::distributed_memory::{Strided, value};
use crate::distributed_model::{Elements, Spec, exclusive, irregular, reading};

const METHODS: [Method; 4] = [Method::Direct, Method::Exchange, Method::View, Method::Auto];
const PATH: &str = "/array.bin";

fn turned(mut bytes: Vec<u8>, swap: usize) -> Vec<u8> {
    bytes.chunks_mut(swap).for_each(<[u8]>::reverse);
    bytes
}

pub fn contents(disk: &Arc<dyn Disk>) -> Vec<u8> {
    let team = Team::new(Arc::new(SingleComm::new(disk.clone())));
    let file = team.open("open", Path::new(PATH), FileMode::Read).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(&mut bytes, 0).unwrap();
    bytes
}

/// Puts `bytes` into a new file.
pub fn disk_with(bytes: &[u8]) -> Arc<dyn Disk> {
    let env: Env = SimWorld::memory();
    let team = Team::new(Arc::new(SingleComm::new(env.disk.clone())));
    let file = team.open("create", Path::new(PATH), FileMode::CreateNew).unwrap();
    file.write_at(bytes, 0).unwrap();
    env.disk
}

fn open(comm: Arc<dyn Comm>) -> Result<TeamFile> {
    Team::new(comm).open("open", Path::new(PATH), FileMode::ReadWrite)
}

/// An array in a file, and the way in which it is moved.
#[derive(Clone)]
struct Case {
    shape: Vec<u64>,
    array: FileArray,
    element: (usize, usize),
    settings: Settings,
    fill: Option<Vec<u8>>,
}

impl Case {
    fn random(random: &mut Random) -> Case {
        let dims = 1 + random.below(3) as usize;
        let most = [3000, 60, 16][dims - 1];
        let shape: Vec<u64> =
            (0..dims).map(|_| random.below(most) + u64::from(random.below(9) > 0)).collect();
        let (size, swap) =
            [(1, 1), (2, 2), (3, 1), (4, 4), (8, 8), (8, 4), (16, 8)][random.below(7) as usize];
        let row: u64 = shape[1..].iter().product();
        let mut array = FileArray::dense(1 + random.below(99), size as u64);
        if random.below(2) == 0 && row > 0 {
            (array.record, array.record_stride) = (row, row * size as u64 + random.below(2) * 5);
        }
        let buffer = [1, 200, 20_000, 1 << 20][random.below(4) as usize];
        let settings = Settings { buffer, aggregators: None, ..Settings::default() };
        let fill = (random.below(2) == 0).then(|| vec![0xf1; size]);
        Case { shape, array, element: (size, swap), settings, fill }
    }

    fn total(&self) -> u64 {
        self.shape.iter().product()
    }

    fn offset(&self, at: u64) -> usize {
        let (row, stride) = match self.array.record {
            0 => (self.total().max(1), 0),
            record => (record, self.array.record_stride),
        };
        (self.array.begin + at / row * stride + at % row * self.array.size) as usize
    }

    /// The contents of the file after all ranks' elements are written.
    fn expected(&self, before: &[u8], ranks: &[(Vec<u64>, Elements)]) -> Vec<u8> {
        let mut bytes = before.to_vec();
        let mut put = |at: u64, element: &[u8]| {
            let offset = self.offset(at);
            bytes.resize(bytes.len().max(offset + element.len()), 0);
            bytes[offset..offset + element.len()].copy_from_slice(element);
        };
        let written: Vec<u64> = ranks
            .iter()
            .flat_map(|(_, elements)| elements.iter().flatten().filter(|e| e.1).map(|e| e.0))
            .collect();
        if let (Some(fill), true) = (&self.fill, self.total() > written.len() as u64 || !written.is_empty()) {
            (0..self.total()).for_each(|at| put(at, fill));
        }
        for at in written {
            put(at, &turned(value(at, self.element.0), self.element.1));
        }
        bytes
    }

    fn write(&self, file: &TeamFile, planner: &Planner, spec: &Spec, seed: u64) -> Result<MoveReport> {
        let (rank, size) = (file.team().rank(), file.team().size());
        let view = spec.view().resolve_joined(&self.shape, rank, size, spec.before());
        let (local, elements) = spec.model(&self.shape, rank);
        let mut memory = Strided::new(&mut Random::new(seed + rank as u64), &local, self.element.0);
        for (offset, element) in memory.offsets(&local).into_iter().zip(&elements) {
            if let Some((at, true)) = element {
                memory.bytes[offset..offset + self.element.0].copy_from_slice(&value(*at, self.element.0));
            }
        }
        let element = Element::new(self.element.0, self.element.1)?;
        let view = view?;
        assert_eq!(view.local_shape(), local);
        let from = Buffer::strided(&memory.bytes, element, &local, &memory.strides, memory.origin)?;
        let write = Write {
            view: &view,
            array: self.array,
            from: &from,
            fill: self.fill.as_deref(),
            settings: self.settings,
        };
        planner.write(file, "put", Ok(write))
    }

    fn read(
        &self,
        file: &TeamFile,
        planner: &Planner,
        spec: &Spec,
        seed: u64,
        bytes: &[u8],
    ) -> Result<MoveReport> {
        let (rank, ranks) = (file.team().rank(), file.team().size());
        let view = spec.view().resolve_joined(&self.shape, rank, ranks, spec.before())?;
        let (local, elements) = spec.model(&self.shape, rank);
        assert_eq!(view.local_shape(), local);
        let mut memory = Strided::new(&mut Random::new(seed + rank as u64), &local, self.element.0);
        let mut expected = memory.bytes.clone();
        let size = self.element.0;
        for (offset, element) in memory.offsets(&local).into_iter().zip(&elements) {
            if let Some((at, _)) = element {
                let from = self.offset(*at);
                let element: Vec<u8> =
                    (from..from + size).map(|n| bytes.get(n).copied().unwrap_or(0)).collect();
                expected[offset..offset + size].copy_from_slice(&turned(element, self.element.1));
            }
        }
        let element = Element::new(size, self.element.1)?;
        let (strides, origin) = (memory.strides.clone(), memory.origin);
        let mut into = BufferMut::strided(&mut memory.bytes, element, &local, &strides, origin)?;
        let (past_end, settings) = (PastFileEnd::Zeros, self.settings);
        let read = Read { view: &view, array: self.array, into: &mut into, past_end, settings };
        let report = planner.read(&file.reader(), "get", Ok(read))?;
        assert!(memory.bytes == expected, "rank {rank} reads {spec:?} of {:?} by {}", self.shape, report.why);
        Ok(report)
    }
}

/// Runs `body` on this number of ranks over the disk.
pub fn on_ranks<T: Send>(
    ranks: usize,
    disk: &Arc<dyn Disk>,
    body: impl Fn(&TeamFile) -> Result<T> + Sync,
) -> Vec<Result<T>> {
    threads::run(ranks, None, disk.clone(), Faults::none(), |comm| body(&open(comm)?))
}

fn one_case(seed: u64, ranks: usize, overlap: bool) {
    let mut random = seeded(seed);
    let case = Case::random(&mut random);
    let specs = match overlap {
        true => irregular(&mut random, &case.shape, ranks, true),
        false => exclusive(&mut random, &case.shape, ranks),
    };
    let models: Vec<_> = specs.iter().enumerate().map(|(rank, spec)| spec.model(&case.shape, rank)).collect();
    let before: Vec<u8> = (0..random.below(9000)).map(|n| n as u8).collect();
    let expected = case.expected(&before, &models);
    let mut written: Vec<u64> = models
        .iter()
        .flat_map(|(_, elements)| elements.iter().flatten().filter(|e| e.1).map(|e| e.0))
        .collect();
    let entries = written.len() as u64;
    written.sort_unstable();
    written.dedup();
    let read_ranks = 1 + random.below(9) as usize;
    let readers = reading(&mut random, &case.shape, read_ranks);
    for method in METHODS {
        let aggregators = Some(1 + random.below(ranks as u64) as usize).filter(|_| random.below(2) == 0);
        let case = Case { settings: Settings { method, aggregators, ..case.settings }, ..case.clone() };
        let disk = disk_with(&before);
        let reports = on_ranks(ranks, &disk, |file| {
            let planner = Planner::new();
            case.write(file, &planner, &specs[file.team().rank()], seed)
        });
        for report in reports {
            let report = report.unwrap();
            assert_eq!(report.holes, case.total() - written.len() as u64, "{specs:?}");
            assert_eq!(report.repeated, entries - written.len() as u64);
            assert!(method == Method::Auto || report.method == method || report.repeated > 0);
        }
        assert!(contents(&disk) == expected, "{method:?} {:?} {:?} {specs:?}", case.shape, case.array);
        let aggregators = aggregators.map(|aggregators| aggregators.min(read_ranks));
        let case = Case { settings: Settings { aggregators, ..case.settings }, ..case };
        let outcomes = on_ranks(read_ranks, &disk, |file| {
            let planner = Planner::new();
            case.read(file, &planner, &readers[file.team().rank()], seed, &expected)
        });
        outcomes.into_iter().for_each(|outcome| drop(outcome.unwrap()));
    }
}

#[test]
fn random_views_leave_what_the_model_says_with_every_method() {
    for seed in seeds(200) {
        one_case(seed, 1 + (seed % 16) as usize, false);
    }
}

#[test]
fn equal_elements_of_several_ranks_are_written_once() {
    for seed in seeds(60) {
        one_case(seed, 1 + (seed % 7) as usize, true);
    }
}

#[test]
fn sixty_four_ranks_leave_the_same_bytes() {
    for seed in seeds(6) {
        one_case(seed, 64, seed % 3 == 0);
    }
}

fn simple(method: Method, shape: &[u64]) -> Case {
    Case {
        shape: shape.to_vec(),
        array: FileArray::dense(8, 8),
        element: (8, 8),
        settings: Settings { method, ..Settings::default() },
        fill: None,
    }
}

#[test]
fn elements_that_differ_are_a_conflict_that_names_them_and_the_ranks() {
    for method in METHODS {
        let disk = disk_with(&[]);
        let outcomes = on_ranks(4, &disk, |file| {
            let rank = file.team().rank();
            let map: Vec<i64> = if rank == 3 { vec![7, 41, 8] } else { vec![40 + rank as i64] };
            let view = View::irregular(map.clone(), None, None).resolve(&[100], rank, 4)?;
            let values: Vec<u8> = map.iter().flat_map(|at| (*at + rank as i64 / 3).to_ne_bytes()).collect();
            let from = Buffer::new(&values, Element::new(8, 8)?, view.local_shape())?;
            let case = simple(method, &[100]);
            let write =
                Write { view: &view, array: case.array, from: &from, fill: None, settings: case.settings };
            Planner::new().write(file, "put", Ok(write))
        });
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict);
            let text = error.message();
            assert!(text.contains("element 41 ") && text.contains("ranks 1 and 3"), "{text}");
        }
    }
}

/// The view, and a part of the expected message.
fn bad_views() -> Vec<(View, &'static str)> {
    vec![
        (View::irregular(vec![0, 3, 5], None, Some(0)), "map[2] is 5"),
        (View::irregular(vec![0, -2], None, Some(1)), "map[1] is -2"),
        (View::irregular(vec![20], None, None), "map[0] is 20"),
        (View::irregular(vec![0], Some(2), None), "owned is 2, but the map has only 1 entries"),
        (View::irregular(vec![0], None, Some(2)), "dim is 2"),
        (View::block(&[0, 2], &[5, 3]), "dimension 1: 3 indices from 2 on"),
        (View::block(&[6, 0], &[0, 1]), "dimension 0: 0 indices from 6 on"),
        (View::block(&[0, u64::MAX], &[1, u64::MAX]), "dimension 1"),
        (View::block(&[0], &[1]), "start has 1 entries"),
        (View::block(&[0, 0], &[1]), "count has 1 entries"),
        (View::block(&[0, 0], &[2, 2]).stride(&[3, 4]), "dimension 1: 2 indices from 0 on, 4 apart"),
        (View::block(&[0, 0], &[2, 2]).stride(&[0, 1]), "stride[0] is 0"),
        (View::block(&[0, 0], &[2, 2]).stride(&[2, 1]).halo(1), "both a stride and a halo"),
        (View::block(&[0, 0], &[2, 2]).halo(vec![(1, 1)]), "halo has 1 entries"),
        (View::block(&[0, 0], &[2, 2]).halo(u64::MAX), "halo[0]"),
        (View::grid(&[3, 1]), "grid [3, 1] does not fit 2 ranks"),
        (View::grid(&[2]), "grid has 1 entries"),
        (View::cyclic(&[2, 1], &[1, 0]), "blocks[1] is 0"),
        (View::cyclic(&[2, 1], &[1]), "blocks has 1 entries"),
        (View::cyclic(&[2, 1], &[1, 1]).halo(1), "a cyclic view cannot have a halo"),
        (
            View::irregular(vec![0], None, None).stride(&[2]),
            "a irregular view cannot have a halo or a stride",
        ),
        (View::joined(6), "a joined view of 6 indices"),
    ]
}

#[test]
fn bad_views_name_position_and_value_on_every_rank() {
    for (view, text) in bad_views() {
        let disk = disk_with(&[]);
        let outcomes = on_ranks(2, &disk, |file| {
            let rank = file.team().rank();
            let own = if rank == 1 { view.clone() } else { View::joined(0) };
            let resolved = own.resolve(&[5, 4], rank, 2);
            let resolved = file.team().agree("put", resolved)?;
            Ok(resolved.local_shape().to_vec())
        });
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.message().starts_with("rank 1: ") && error.message().contains(text), "{error}");
        }
    }
}

#[test]
fn what_ranks_give_is_checked_together() {
    let disk = disk_with(&[]);
    let bytes = [0; 800];
    let element = Element::new(8, 8).unwrap();
    let write = |file: &TeamFile, shape: &[u64], view: View, settings: Settings| {
        let view = view.resolve(&[10], file.team().rank(), 2)?;
        let from = Buffer::new(&bytes, element, shape)?;
        let array = FileArray::dense(0, 8);
        Planner::new().write(file, "put", Ok(Write { view: &view, array, from: &from, fill: None, settings }))
    };
    let outcomes = on_ranks(2, &disk, |file| {
        let rank = file.team().rank() as u64;
        // Another shape of memory on one rank.
        let error = write(file, &[5 + rank], View::grid(&[2]), Settings::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains("rank 1: the view has the local shape [5], but 6"), "{error}");
        // A view with a stride is written.
        let strided = View::block(&[0], &[5]).stride(&[2]);
        let error = write(file, &[5], strided, Settings::default()).unwrap_err();
        assert!(error.message().contains("a view with a stride cannot be written"), "{error}");
        // Other settings.
        let settings = Settings { buffer: 100 + rank as usize, ..Settings::default() };
        let error = write(file, &[5], View::grid(&[2]), settings).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("buffer 100") && error.message().contains("buffer 101"), "{error}");
        // Afterwards everything works.
        write(file, &[5], View::grid(&[2]), Settings::default()).map(drop)
    });
    outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    assert!(Buffer::new(&bytes, element, &[101]).is_err(), "memory that is too short");
    assert!(Buffer::strided(&bytes, element, &[10], &[-8], 0).is_err(), "memory before its beginning");
    assert!(Element::new(17, 1).is_err() && Element::new(6, 4).is_err());
}

#[test]
fn a_failure_of_one_rank_at_any_step_reaches_all_and_the_ranks_go_on() {
    for method in [Method::Direct, Method::Exchange, Method::View] {
        let mut tried = 0;
        for nth in 3.. {
            let disk = disk_with(&[]);
            let faults = Faults::step(1, nth);
            let mut random = seeded(nth);
            let mut case = simple(method, &[2000]);
            case.settings.buffer = 5000;
            let specs = irregular(&mut random, &case.shape, 3, false);
            let models: Vec<_> =
                specs.iter().enumerate().map(|(rank, spec)| spec.model(&case.shape, rank)).collect();
            let expected = case.expected(&[], &models);
            let outcomes = threads::run(3, None, disk.clone(), faults.clone(), |comm| {
                let file = open(comm)?;
                let (planner, spec) = (Planner::new(), &specs[file.team().rank()]);
                let first = case.write(&file, &planner, spec, nth).map(drop);
                let first = first.and_then(|()| case.read(&file, &planner, spec, nth, &expected).map(drop));
                // After any error, the next call works.
                case.write(&file, &planner, spec, nth).or_else(|_| case.write(&file, &planner, spec, nth))?;
                Ok(first.err().map(|error| error.to_string()))
            });
            if !faults.struck() {
                break;
            }
            tried += 1;
            let errors: Vec<_> = outcomes.into_iter().map(|outcome| outcome.unwrap()).collect();
            if errors.iter().any(Option::is_some) {
                assert!(errors.iter().all(|error| error.as_ref().unwrap().contains("rank 1")), "{errors:?}");
            }
            assert!(contents(&disk) == expected, "after failure {nth} of {method:?}");
        }
        assert!(tried > 5, "{method:?}: {tried}");
    }
}

#[test]
fn a_plan_serves_all_arrays_of_its_shape_and_is_known_by_the_whole_map() {
    let disk = disk_with(&[]);
    let outcomes = on_ranks(4, &disk, |file| {
        let (rank, planner) = (file.team().rank(), Planner::new());
        let map: Vec<i64> = (0..500).map(|n| (n * 4 + rank as i64) * 7 % 2000).collect();
        let spec = |map: &[i64]| Spec::Irregular { map: map.to_vec(), owned: None, dim: Some(0) };
        let mut case = simple(Method::Exchange, &[2000]);
        assert!(case.write(file, &planner, &spec(&map), 1)?.planned);
        let first = file.team().counters().sent;
        assert!(
            !case.write(file, &planner, &spec(&map), 2)?.planned,
            "an equal map, at another place in memory"
        );
        let again = file.team().counters().sent - first;
        (case.element, case.array.size) = ((4, 4), 4);
        assert!(!case.write(file, &planner, &spec(&map), 3)?.planned, "elements of another size");
        let bytes = contents(&disk);
        assert!(!case.read(file, &planner, &spec(&map), 3, &bytes)?.planned, "reading with it");
        let mut other = map.clone();
        if rank == 2 {
            other.swap(3, 498);
        }
        assert!(case.write(file, &planner, &spec(&other), 4)?.planned, "another map on one rank");
        assert!(!case.write(file, &planner, &spec(&map), 4)?.planned);
        Ok((first, again, planner.kept()))
    });
    for outcome in outcomes {
        let (first, again, kept) = outcome.unwrap();
        assert_eq!(kept, 2);
        // For each element, four bytes for the index and eight for itself; three quarters go to others.
        assert!(again < 375 * 8 + 600 && first > again + 375 * 4 - 200, "{first} {again}");
    }
}

#[test]
fn what_is_sent_stays_within_the_bound_for_many_ranks() {
    for ranks in [2, 16, 64, 128] {
        let disk = disk_with(&[]);
        let each = 4096u64;
        let outcomes = on_ranks(ranks, &disk, |file| {
            let (rank, planner) = (file.team().rank() as u64, Planner::new());
            let total = each * ranks as u64;
            let map: Vec<i64> =
                (0..each).map(|n| ((n * ranks as u64 + rank) * 1_000_003 % total) as i64).collect();
            let spec = Spec::Irregular { map, owned: None, dim: None };
            let case = simple(Method::Exchange, &[total]);
            let before = file.team().counters().sent;
            case.write(file, &planner, &spec, 1)?;
            let first = file.team().counters().sent;
            case.write(file, &planner, &spec, 1)?;
            Ok((first - before, file.team().counters().sent - first))
        });
        for outcome in outcomes {
            let (first, later) = outcome.unwrap();
            let bound = each * 8 * 11 / 10;
            assert!(later <= bound && first <= bound + each * 8, "{ranks} ranks: {first}, then {later}");
        }
    }
}

#[test]
fn long_runs_go_direct_and_short_ones_through_aggregators() {
    let disk = disk_with(&[]);
    let outcomes = on_ranks(4, &disk, |file| {
        let (rank, planner) = (file.team().rank(), Planner::new());
        let case = simple(Method::Auto, &[400, 400]);
        let rows = case.write(file, &planner, &Spec::Grid { grid: vec![4, 1], halo: 0 }, 1)?;
        let columns = Spec::Cyclic { grid: vec![1, 4], blocks: vec![1, 2] };
        let columns = case.write(file, &planner, &columns, 1)?;
        assert!(rows.why.contains("1 runs of 320000 bytes"), "{}", rows.why);
        assert!(columns.exchanged > 0 && rows.written == 320_000 && rank < 4);
        Ok((rows.method, columns.method))
    });
    for outcome in outcomes {
        assert_eq!(outcome.unwrap(), (Method::Direct, Method::Exchange));
    }
}
