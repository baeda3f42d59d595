//! Arrays stored in Fortran order: the same elements of a caller's array, with the dimensions of the file reversed.

use fieldstone_array::distributed::buffer::{Buffer, BufferMut, Element};
use fieldstone_array::distributed::plan::{FileArray, Method, PastFileEnd, Planner, Read, Settings, Write};
use fieldstone_array::distributed::view::{Halo, View};
use fieldstone_core::env::sim::Random;
use fieldstone_testkit::random::seeds;
use fieldstone_testkit::seeded;

use crate::distributed::{contents, disk_with, on_ranks};
use crate::distributed_memory::{Strided, value};
use crate::distributed_model::{exclusive, reading, stored};

const SIZE: usize = 4;
const BEGIN: u64 = 12;

#[test]
fn views_of_arrays_in_fortran_order_are_what_loops_over_indices_say() {
    for seed in seeds(150) {
        let mut random = seeded(seed);
        let dims = 1 + random.below(3) as usize;
        let shape: Vec<u64> = (0..dims).map(|_| 1 + random.below([500, 30, 9][dims - 1])).collect();
        let (ranks, readers) = (1 + (seed % 6) as usize, 1 + random.below(5) as usize);
        let specs = exclusive(&mut random, &shape, ranks);
        // Joined counts are along the first dimension of the caller's array.
        let asked = reading(&mut random, &shape, readers);
        let method = [Method::Direct, Method::Exchange, Method::View][random.below(3) as usize];
        let settings = Settings { method, ..Settings::default() };
        let array = FileArray::dense(BEGIN, SIZE as u64);
        let total: u64 = shape.iter().product();
        let mut expected = vec![0; BEGIN as usize];
        let element = Element::new(SIZE, 1).unwrap();
        let disk = disk_with(&expected);
        let outcomes = on_ranks(ranks, &disk, |file| {
            let rank = file.team().rank();
            let spec = &specs[rank];
            let (local, elements) = spec.model(&shape, rank);
            let mut memory = Strided::new(&mut Random::new(seed + rank as u64), &local, SIZE);
            for (offset, element) in memory.offsets(&local).into_iter().zip(&elements) {
                if let Some((at, _)) = element {
                    let bytes = value(stored(spec, &shape, *at), SIZE);
                    memory.bytes[offset..offset + SIZE].copy_from_slice(&bytes);
                }
            }
            let view = spec.view().resolve_joined(&shape, rank, ranks, spec.before())?.transposed();
            let reversed: Vec<u64> = local.iter().rev().copied().collect();
            assert_eq!(view.local_shape(), reversed);
            let from = Buffer::transposed(&memory.bytes, element, &local, &memory.strides, memory.origin)?;
            Planner::new().write(
                file,
                "put",
                Ok(Write { view: &view, array, from: &from, fill: None, settings }),
            )
        });
        for (rank, outcome) in outcomes.into_iter().enumerate() {
            outcome.unwrap();
            for (at, is_written) in specs[rank].model(&shape, rank).1.into_iter().flatten() {
                let place = stored(&specs[rank], &shape, at);
                let offset = BEGIN as usize + place as usize * SIZE;
                if is_written {
                    expected.resize(expected.len().max(offset + SIZE), 0);
                    expected[offset..offset + SIZE].copy_from_slice(&value(place, SIZE));
                }
            }
        }
        assert!(contents(&disk) == expected, "seed {seed}: {method:?} {shape:?} {specs:?}");
        expected.resize(BEGIN as usize + total as usize * SIZE, 0);
        let outcomes = on_ranks(readers, &disk, |file| {
            let rank = file.team().rank();
            let spec = &asked[rank];
            let (local, elements) = spec.model(&shape, rank);
            let mut memory = Strided::new(&mut Random::new(seed + rank as u64), &local, SIZE);
            let mut wanted = memory.bytes.clone();
            for (offset, element) in memory.offsets(&local).into_iter().zip(&elements) {
                if let Some((at, _)) = element {
                    let from = BEGIN as usize + stored(spec, &shape, *at) as usize * SIZE;
                    wanted[offset..offset + SIZE].copy_from_slice(&expected[from..from + SIZE]);
                }
            }
            let view = spec.view().resolve_joined(&shape, rank, readers, spec.before())?.transposed();
            let (strides, origin) = (memory.strides.clone(), memory.origin);
            let mut into = BufferMut::transposed(&mut memory.bytes, element, &local, &strides, origin)?;
            let past_end = PastFileEnd::Zeros;
            let read = Read { view: &view, array, into: &mut into, past_end, settings };
            Planner::new().read(&file.reader(), "get", Ok(read))?;
            assert!(memory.bytes == wanted, "seed {seed}: rank {rank} {spec:?} {shape:?}");
            Ok(())
        });
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    }
}

#[test]
fn a_view_that_is_transposed_twice_is_what_it_was() {
    let views = [
        View::grid(&[2, 1]).halo(1),
        View::cyclic(&[1, 2], &[2, 2]),
        View::irregular(vec![1, -1, 0], Some(1), Some(1)),
        View::irregular(vec![1, -1, 0], Some(1), None),
    ];
    for view in views {
        let local = view.resolve(&[6, 5], 1, 2).unwrap();
        assert_eq!(local.transposed().transposed(), local);
        assert_eq!(local.transposed().written().elements(), local.written().elements());
        let deals = (local.deal(), local.transposed().deal());
        assert!(deals == (0, 0) || deals.0 != deals.1, "ranks of both kinds do not deal out one array");
    }
}

#[test]
fn views_are_described_by_what_is_equal_on_all_ranks() {
    let described = [
        (View::grid(&[2, 2, 1]).halo(1), "block 2x2x1 halo 1"),
        (View::grid(&[4]), "block 4"),
        (View::block(&[1, 2], &[3, 4]).stride(&[1, 2]), "block stride 1x2"),
        (View::block(&[1, 2], &[3, 4]).halo(Halo::Each(vec![(1, 2), (0, 0)])), "block halo 1/2x0/0"),
        (View::cyclic(&[2, 2], &[4, 4]), "cyclic 2x2 blocks 4x4"),
        (View::irregular(vec![3], None, Some(0)), "irregular"),
        (View::joined(7), "joined"),
    ];
    for (view, text) in described {
        assert_eq!(view.describe(), text);
    }
}
