//! Views: what a rank holds equals the plain model, and what cannot be held is refused with rank, place and value.

use fieldstone_array::distributed::view::{LocalView, Run, View, Whole};
use fieldstone_core::ErrorKind;
use fieldstone_testkit::seeded;

use super::model::{held, random_case, random_shape};

fn runs(of: impl Fn(&mut dyn FnMut(Run))) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    of(&mut |run| all.extend((0..run.len).map(|i| (run.local + i, run.global + i))));
    all.sort_unstable();
    all
}

#[test]
fn runs_are_those_of_the_plain_model() {
    for seed in 0..3_000 {
        let dice = &mut *seeded(seed);
        let ranks = 1 + dice.below(8) as usize;
        let shape = random_shape(dice, false);
        let case = random_case(dice, &shape, ranks, true);
        let whole = Whole::new(&case.shape).unwrap();
        for (rank, view) in case.views.iter().enumerate() {
            let local = view.local_behind(&whole, case.before[rank], rank, ranks).unwrap();
            let expected = held(view, &case.shape, case.before[rank], rank);
            assert_eq!(local.elements(), expected.len() as u64, "seed {seed}, rank {rank}: {view:?}");
            let with = |written: bool| -> Vec<(u64, u64)> {
                let each = (0..).zip(&expected);
                each.filter_map(|(i, held)| held.filter(|held| held.1 || !written).map(|held| (i, held.0)))
                    .collect()
            };
            assert_eq!(runs(|each| local.written(each)), with(true), "seed {seed}, rank {rank}: {view:?}");
            assert_eq!(runs(|each| local.read(each)), with(false), "seed {seed}, rank {rank}: {view:?}");
            assert_eq!(local.written_len(), with(true).len() as u64, "seed {seed}");
        }
    }
}

#[test]
fn what_is_whole_in_the_last_dimensions_is_one_run() {
    let whole = Whole::new(&[4, 5, 6]).unwrap();
    let count = |view: View| {
        let mut n = 0;
        view.local(&whole, 0, 1).unwrap().written(&mut |_| n += 1);
        n
    };
    assert_eq!(count(View::grid(&[1, 1, 1])), 1);
    assert_eq!(count(View::block(&[1, 0, 0], &[2, 5, 6])), 1);
    assert_eq!(count(View::block(&[1, 1, 0], &[2, 3, 6])), 2);
    assert_eq!(count(View::block(&[1, 1, 1], &[2, 3, 4])), 6);
    assert_eq!(count(View::irregular(vec![1, 2, 0], None, Some(0))), 2);
}

#[test]
fn every_n_th_index_is_read() {
    let whole = Whole::new(&[7, 9]).unwrap();
    let view = View::block(&[1, 0], &[3, 4]).with_stride(&[2, 2]);
    let local = view.local(&whole, 0, 1).unwrap();
    let expected = (0..3u64).flat_map(|i| (0..4u64).map(move |j| (i * 4 + j, (1 + 2 * i) * 9 + 2 * j)));
    assert_eq!(runs(|each| local.read(each)), expected.collect::<Vec<_>>());
}

#[test]
fn what_cannot_be_held_names_rank_place_and_value() {
    let whole = Whole::new(&[4, 5]).unwrap();
    let says = |view: View| {
        let error = view.local(&whole, 2, 3).map(|_: LocalView| ()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        error.message().to_owned()
    };
    for (view, text) in [
        (View::block(&[0], &[1, 1]), "rank 2: start has 1 dimensions, and the array 2"),
        (View::block(&[0, 3], &[1, 3]), "rank 2: dimension 1: 3 indices from 3 are not within 5"),
        (
            View::block(&[0, 0], &[4, 3]).with_stride(&[1, 3]),
            "dimension 1: 3 indices from 0, 3 apart, are not within 5",
        ),
        (View::block(&[0, 0], &[4, 3]).with_stride(&[1, 0]), "rank 2: dimension 1: a stride of 0"),
        (View::block(&[0, 0], &[4, 3]).with_halo(vec![(1, 1)]), "rank 2: a halo of 1 dimensions for 2"),
        (View::block(&[0, 0], &[1, u64::MAX]), "18446744073709551615 indices from 0"),
        (View::grid(&[2, 2]), "rank 2: a grid of [2, 2] is for 4 ranks, and there are 3"),
        (View::cyclic(&[3, 1], &[1, 0]), "rank 2: dimension 1: a block of 0 elements"),
        (
            View::irregular(vec![0, 20], None, None),
            "rank 2: position 1 of its map is 20, and there are 20 indices",
        ),
        (
            View::irregular(vec![-2], None, Some(0)),
            "rank 2: position 0 of its map is -2, and there are 4 indices",
        ),
        (View::irregular(vec![1], Some(2), None), "rank 2: 2 owned elements of a map of 1"),
        (View::irregular(vec![1], None, Some(2)), "rank 2: a map along dimension 2 of an array of 2"),
    ] {
        let said = says(view);
        assert!(said.contains(text), "{said}");
    }
    let error = Whole::new(&[1 << 40, 1 << 40]).unwrap_err();
    assert!(error.message().contains("more than 2^63 elements"));
    assert_eq!(Whole::new(&[1 << 40, 1 << 40, 0]).unwrap().elements(), 0);
}
