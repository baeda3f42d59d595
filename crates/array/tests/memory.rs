//! Memory of a rank while it writes a random map, reads one, or partitions a mesh: counted by the allocator, which
//! requires a program of its own. Ranks are threads; data sent between them are copied, as between processes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Arc, Mutex};

use fieldstone_array::distributed::buffer::{Buffer, BufferMut, Element};
use fieldstone_array::distributed::partition::source::EdgeArrays;
use fieldstone_array::distributed::partition::vector::{NodeRanks, Vector};
use fieldstone_array::distributed::partition::{PartitionSettings, partition};
use fieldstone_array::distributed::plan::model::ExchangeCase;
use fieldstone_array::distributed::plan::{
    FileArray, Method, PastFileEnd, Planner, Read, RoundMemory, Settings, Write,
};
use fieldstone_array::distributed::view::View;
use fieldstone_core::Result;
use fieldstone_core::env::comm::layer::FileLayer;
use fieldstone_core::env::comm::threads::{self, Faults};
use fieldstone_core::env::comm::{Comm, CommFile, FileMode, Parts, PartsMut, Reduce, Team, Teams};
use fieldstone_core::env::sim::SimWorld;

/// Maximum number of ranks; the last entry counts memory that belongs to none.
const MOST: usize = 256;

/// Bytes allocated by each rank's thread, and their maximum since it was last reset.
static LIVE: [AtomicIsize; MOST + 1] = [const { AtomicIsize::new(0) }; MOST + 1];
static PEAK: [AtomicIsize; MOST + 1] = [const { AtomicIsize::new(0) }; MOST + 1];

thread_local! {
    static OWNER: Cell<usize> = const { Cell::new(MOST) };
}

/// Tests take turns, because they share the counters.
static TURN: Mutex<()> = Mutex::new(());

/// The system's allocator, which records the owner in front of each allocation.
struct Counting;

/// Bytes in front of an allocation.
fn head(layout: Layout) -> usize {
    layout.align().max(16)
}

fn with_head(layout: Layout, size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(head(layout))?, head(layout)).ok()
}

fn count(owner: usize, bytes: isize) {
    let live = LIVE[owner].fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK[owner].fetch_max(live, Ordering::Relaxed);
}

// SAFETY: every block comes from the system, enlarged by a head with the same alignment; the head holds the owner,
// and the same layout finds it again.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(whole) = with_head(layout, layout.size()) else { return std::ptr::null_mut() };
        // SAFETY: the size is not 0, because of the head.
        let block = unsafe { System.alloc(whole) };
        if block.is_null() {
            return block;
        }
        let owner = OWNER.try_with(Cell::get).unwrap_or(MOST);
        count(owner, layout.size() as isize);
        // SAFETY: the head has at least 16 bytes, and is aligned to 16.
        unsafe {
            block.cast::<usize>().write(owner);
            block.add(head(layout))
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        let Some(whole) = with_head(layout, layout.size()) else { return };
        // SAFETY: `alloc` or `realloc` returned it, with this layout.
        unsafe {
            let block = pointer.sub(head(layout));
            count(block.cast::<usize>().read(), -(layout.size() as isize));
            System.dealloc(block, whole);
        }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let whole = with_head(layout, layout.size()).zip(with_head(layout, size));
        let Some((old, new)) = whole else { return std::ptr::null_mut() };
        // SAFETY: as in `dealloc`; the head moves with the block.
        unsafe {
            let block = System.realloc(pointer.sub(head(layout)), old, new.size());
            if block.is_null() {
                return block;
            }
            count(block.cast::<usize>().read(), size as isize - layout.size() as isize);
            block.add(head(layout))
        }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The maximum memory that `act` takes at any time, in addition to the memory in use before, on this rank.
fn peak<T>(rank: usize, act: impl FnOnce() -> T) -> (T, u64) {
    let before = LIVE[rank].load(Ordering::Relaxed);
    PEAK[rank].store(before, Ordering::Relaxed);
    let done = act();
    (done, (PEAK[rank].load(Ordering::Relaxed) - before).max(0) as u64)
}

/// A communicator whose ranks share nothing: a message belongs to its sender until all have theirs.
#[derive(Debug)]
struct Apart(Arc<dyn Comm>);

/// Copies without an owner: they represent messages on their way.
fn on_the_way<T>(act: impl FnOnce() -> T) -> T {
    let owner = OWNER.replace(MOST);
    let done = act();
    OWNER.set(owner);
    done
}

impl Comm for Apart {
    fn rank(&self) -> usize {
        self.0.rank()
    }
    fn size(&self) -> usize {
        self.0.size()
    }
    fn before_step(&self, step: &str) -> Result<()> {
        self.0.before_step(step)
    }
    fn teams(&self) -> Arc<Teams> {
        self.0.teams()
    }
    fn barrier(&self) -> Result<()> {
        on_the_way(|| self.0.barrier())
    }
    fn broadcast(&self, root: usize, data: Vec<u8>, len: usize) -> Result<Vec<u8>> {
        on_the_way(|| self.0.broadcast(root, data, len))
    }
    fn allgather(&self, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        on_the_way(|| self.0.allgather(data))
    }
    fn gather(&self, root: usize, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        on_the_way(|| self.0.gather(root, data))
    }
    fn exscan(&self, values: &mut [u64]) -> Result<()> {
        on_the_way(|| self.0.exscan(values))
    }
    fn allreduce(&self, reduce: Reduce, values: &mut [u64]) -> Result<()> {
        on_the_way(|| self.0.allreduce(reduce, values))
    }
    fn alltoallv(&self, parts: Vec<Vec<u8>>, longest: usize) -> Result<Vec<Vec<u8>>> {
        let came = on_the_way(|| self.0.alltoallv(parts.clone(), longest))?;
        let own = came.clone();
        drop(parts);
        on_the_way(|| drop(came));
        Ok(own)
    }
    fn exchange(&self, sent: Parts<'_>, taken: PartsMut<'_>, longest: usize) -> Result<()> {
        on_the_way(|| self.0.exchange(sent, taken, longest))
    }
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>> {
        on_the_way(|| Ok(Arc::new(ElsewhereFile(self.0.open(path, mode)?)) as Arc<dyn CommFile>))
    }
}

/// A file whose bytes do not count as memory of a rank, although the disk is simulated.
#[derive(Debug)]
struct ElsewhereFile(Arc<dyn CommFile>);

impl FileLayer for ElsewhereFile {
    fn below(&self) -> &dyn CommFile {
        &*self.0
    }
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        on_the_way(|| self.0.write_at(data, offset))
    }
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        on_the_way(|| self.0.read_at(buffer, offset))
    }
}

/// Runs ranks whose allocations are counted separately; returns the result of each.
fn on_ranks<T: Send>(ranks: usize, body: impl Fn(&Team) -> Result<T> + Sync) -> Vec<T> {
    let disk = on_the_way(|| SimWorld::memory().disk);
    let outcomes = threads::run(ranks, None, disk, Faults::none(), |comm| {
        OWNER.set(comm.rank());
        body(&Team::new(Arc::new(Apart(comm))))
    });
    outcomes.into_iter().map(|outcome| outcome.unwrap()).collect()
}

const SIZE: u64 = 8;

/// For the rank that takes most: a first write, a later one, a read by another map, and a write in the memory of the
/// one before.
fn exchange(case: &ExchangeCase) -> [u64; 4] {
    let (ranks, own) = (case.ranks, case.elements / case.ranks as u64);
    let peaks = on_ranks(ranks, |team| {
        let rank = team.rank() as u64;
        let file = team.open("create", Path::new("/f"), FileMode::CreateNew)?;
        // An odd factor distributes the elements evenly, in an order that never ascends for long.
        let map = |factor: u64| -> Vec<i64> {
            (rank * own..(rank + 1) * own).map(|n| (n * factor % case.elements) as i64).collect()
        };
        let written = map(7919);
        let bytes: Vec<u8> = written.iter().flat_map(|at| at.to_be_bytes()).collect();
        let view = View::irregular(written, None, None).resolve(&[case.elements], team.rank(), ranks)?;
        let element = Element::new(SIZE as usize, 1)?;
        let from = Buffer::new(&bytes, element, view.local_shape())?;
        let aggregators = Some(case.aggregators).filter(|aggregators| *aggregators < ranks);
        let settings = Settings { method: Method::Exchange, buffer: case.buffer, aggregators };
        // Memory that a call keeps for the next one is released between them, so that each is counted completely.
        let memory = RoundMemory::default();
        let (planner, array) = (Planner::in_memory(memory.clone()), FileArray::dense(0, SIZE));
        let write = || {
            let write = Write { view: &view, array, from: &from, fill: None, settings };
            planner.write(&file, "put", Ok(write))
        };
        let (first, took_first) = peak(team.rank(), write);
        memory.release();
        let (later, took_later) = peak(team.rank(), write);
        first?;
        later?;
        let (again, took_again) = peak(team.rank(), write);
        again?;
        memory.release();
        let asked = map(104_729);
        let view =
            View::irregular(asked.clone(), None, None).resolve(&[case.elements], team.rank(), ranks)?;
        let mut found = vec![0; bytes.len()];
        let mut into = BufferMut::new(&mut found, element, view.local_shape())?;
        let read = Read { view: &view, array, into: &mut into, past_end: PastFileEnd::Corrupt, settings };
        let (done, took_read) = peak(team.rank(), || planner.read(&file.reader(), "get", Ok(read)));
        done?;
        assert!(found.as_chunks().0.iter().zip(&asked).all(|(bytes, at)| i64::from_be_bytes(*bytes) == *at));
        Ok([took_first, took_later, took_read, took_again])
    });
    [0, 1, 2, 3].map(|n| peaks.iter().map(|peaks| peaks[n]).max().unwrap())
}

#[test]
fn an_exchange_takes_two_buffers_and_24_bytes_an_element_at_most_and_what_the_model_says() {
    let _turn = TURN.lock().unwrap();
    for (ranks, aggregators, own, buffer) in [
        (1, 1, 1 << 17, 64 << 20),
        (1, 1, 1 << 17, 300_000),
        (2, 2, 1 << 17, 300_000),
        (4, 4, 1 << 17, 64 << 20),
        (4, 1, 1 << 16, 300_000),
        (16, 16, 1 << 15, 300_000),
        (16, 4, 1 << 15, 64 << 20),
        (64, 64, 1 << 13, 100_000),
        (256, 256, 1 << 12, 64 << 20),
    ] {
        let elements = own * ranks as u64;
        let case = ExchangeCase { ranks, aggregators, elements, size: SIZE, buffer };
        let found = exchange(&case);
        println!(
            "{case:?}: {found:?}, model {} and {}",
            case.first_write().memory,
            case.later_write().memory
        );
        let lists = 64 * ranks as u64;
        assert!(found[3] <= lists + found[1] / 8, "{case:?}: memory is allocated again: {found:?}");
        for took in found {
            // An owner of more than its share has the indices of its elements.
            let entries = own.max(elements / aggregators as u64);
            assert!(took <= 2 * buffer as u64 + 24 * entries, "{case:?}: {found:?}");
        }
        for (took, expected) in [(found[0], case.first_write().memory), (found[1], case.later_write().memory)]
        {
            assert!(took.abs_diff(expected) * 10 <= took.max(expected), "{case:?}: {took}, model {expected}");
        }
    }
}

/// For the rank that takes most: a write with an existing plan, of the elements that `map` assigns to each rank.
fn later_write(ranks: usize, elements: u64, buffer: usize, map: impl Fn(usize) -> Vec<i64> + Sync) -> u64 {
    let peaks = on_ranks(ranks, |team| {
        let file = team.open("create", Path::new("/f"), FileMode::CreateNew)?;
        let map = map(team.rank());
        let bytes: Vec<u8> = map.iter().flat_map(|at| at.to_be_bytes()).collect();
        let view = View::irregular(map, None, None).resolve(&[elements], team.rank(), ranks)?;
        let from = Buffer::new(&bytes, Element::new(SIZE as usize, 1)?, view.local_shape())?;
        let settings = Settings { method: Method::Exchange, buffer, aggregators: None };
        let memory = RoundMemory::default();
        let planner = Planner::in_memory(memory.clone());
        let write = || {
            let array = FileArray::dense(0, SIZE);
            planner.write(&file, "put", Ok(Write { view: &view, array, from: &from, fill: None, settings }))
        };
        write()?;
        memory.release();
        let (later, took) = peak(team.rank(), write);
        later.map(|_| took)
    });
    peaks.into_iter().max().unwrap()
}

#[test]
fn a_rank_that_has_all_elements_or_gets_them_many_times_stays_within_two_buffers() {
    let _turn = TURN.lock().unwrap();
    let (ranks, buffer) = (64, 4 << 20);
    let elements = 1 << 21;
    // Every index once, none next to the following one.
    let all = |rank: usize| match rank {
        0 => (0..elements).map(|n| (n * 7919 % elements) as i64).collect(),
        _ => Vec::new(),
    };
    let took = later_write(ranks, elements, buffer, all);
    assert!(took <= 2 * buffer as u64, "one rank has all: {took}");
    let same = |_: usize| (0..elements as i64 / ranks as i64).collect();
    let took = later_write(ranks, elements, buffer, same);
    assert!(took <= 2 * buffer as u64, "all ranks have the same: {took}");
}

/// The maximum memory of a rank for a mesh, whose vector is given in shares.
fn partitioned(ranks: usize, nodes: u64) -> u64 {
    let edges = 8 * nodes;
    let peaks = on_ranks(ranks, |team| {
        let (rank, size) = (team.rank() as u64, ranks as u64);
        let cut = |total: u64| rank * total / size..(rank + 1) * total / size;
        // Neighbours have near numbers, as after a partitioner of such a mesh.
        let first: Vec<i64> = cut(edges).map(|edge| (edge / 8) as i64).collect();
        let second: Vec<i64> =
            cut(edges).map(|edge| ((edge / 8 + 1 + edge * 31 % 61) % nodes) as i64).collect();
        let vector: Vec<i32> = cut(nodes).map(|node| (node * size / nodes) as i32).collect();
        let settings = PartitionSettings { buffer: 1 << 16, ..PartitionSettings::default() };
        let (part, took) = peak(team.rank(), || {
            let vector = NodeRanks::new(team, &Vector::Shares(vector[..].into()), Some(nodes))?;
            partition(team, &mut EdgeArrays { first: &first, second: &second }, &vector, &settings)
        });
        part.map(|_| took)
    });
    peaks.into_iter().max().unwrap()
}

#[test]
fn a_rank_of_a_partition_takes_less_the_more_ranks_share_the_vector() {
    let _turn = TURN.lock().unwrap();
    let took: Vec<(usize, u64)> =
        [1, 2, 4, 16, 64].map(|ranks| (ranks, partitioned(ranks, 1 << 16))).to_vec();
    println!("{took:?}");
    let alone = took[0].1;
    for (ranks, took) in &took[1..] {
        // Its part of everything, the rounds of its buffer, and ghosts.
        let share = alone / *ranks as u64;
        assert!(*took <= share * 3 / 2 + (4 << 16), "{ranks} ranks: {took}, {alone} alone");
    }
}
