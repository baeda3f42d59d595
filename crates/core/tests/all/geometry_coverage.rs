//! Holes left by boxes, compared with a bitmap of the shape.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions, too

use fieldstone_core::geometry::{IndexBox, uncovered};
use proptest::prelude::*;

fn tiles(n: u64, extent: u64) -> Vec<IndexBox> {
    let shape = [n * extent; 2];
    // An order that is neither sorted nor reversed.
    let order = (0..n * n).map(|i| i * 7919 % (n * n));
    order
        .map(|i| IndexBox::new(vec![i / n * extent, i % n * extent], vec![extent; 2], &shape).unwrap())
        .collect()
}

#[test]
fn tiles_that_cover_leave_no_hole() {
    let mut boxes = tiles(100, 1 << 20);
    let shape = [100 << 20; 2];
    assert!(uncovered(&shape, &boxes, 0).unwrap().is_complete());
    let lost = boxes.swap_remove(1234);
    let found = uncovered(&shape, &boxes, 5).unwrap();
    assert_eq!((found.boxes, found.truncated), (vec![lost], false));
}

#[test]
fn neighbouring_holes_are_one_box() {
    let shape = [100, 100];
    // Tiles everywhere except in rows 40 to 59.
    let boxes: Vec<IndexBox> =
        tiles(10, 10).into_iter().filter(|t| !(40..60).contains(&t.start()[0])).collect();
    let found = uncovered(&shape, &boxes, 1).unwrap();
    assert_eq!(found.boxes, [IndexBox::parse("40:60,0:100").unwrap()]);
    assert!(!found.truncated);
}

#[test]
fn the_limit_is_kept_and_told() {
    let boxes: Vec<IndexBox> =
        (0..1000).map(|i| IndexBox::new(vec![2 * i], vec![1], &[2000]).unwrap()).collect();
    let found = uncovered(&[2000], &boxes, 1000).unwrap();
    assert_eq!((found.boxes.len(), found.truncated), (1000, false));
    // One hole next to very many tiles, which exhaust the search: the reported parts are missing, and the result is
    // marked as incomplete.
    let rows: Vec<IndexBox> =
        (0..40_000).map(|i| IndexBox::new(vec![i, 0], vec![1, 1], &[40_000, 2]).unwrap()).collect();
    let found = uncovered(&[40_000, 2], &rows, 1).unwrap();
    assert!(found.boxes == [IndexBox::parse("0:40000,1:2").unwrap()] || found.truncated);

    for limit in [0, 1, 999] {
        let found = uncovered(&[2000], &boxes, limit).unwrap();
        assert_eq!((found.boxes.len(), found.truncated), (limit, true));
        assert!(!found.is_complete());
    }
}

#[test]
fn scalars_empty_arrays_and_huge_shapes() {
    let scalar = IndexBox::whole(&[]).unwrap();
    assert_eq!(uncovered(&[], &[], 9).unwrap().boxes, std::slice::from_ref(&scalar));
    assert!(uncovered(&[], std::slice::from_ref(&scalar), 9).unwrap().is_complete());
    assert!(uncovered(&[3, 0], &[], 9).unwrap().is_complete());
    assert!(uncovered(&[3], &[scalar], 9).is_err());
    assert!(uncovered(&[1; 33], &[], 9).is_err());
    let corner = IndexBox::parse("0:1,0:1,0:1").unwrap();
    let found = uncovered(&[u64::MAX; 3], &[corner], 9).unwrap();
    assert_eq!(found.boxes.len(), 3);
    // A box without elements covers nothing; a box that extends beyond the shape covers its part inside.
    let flat = IndexBox::parse("0:5,3:3").unwrap();
    let wide = IndexBox::parse("0:50,0:2").unwrap();
    let found = uncovered(&[5, 5], &[flat, wide], 9).unwrap();
    assert_eq!(found.boxes, [IndexBox::parse("0:5,2:5").unwrap()]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn holes_are_disjoint_and_exact(
        shape in prop::collection::vec(0_u64..7, 0..4),
        corners in prop::collection::vec(prop::collection::vec((0_u64..9, 0_u64..6), 4), 0..9),
        limit in 0_usize..12,
    ) {
        let boxes: Vec<IndexBox> = corners
            .iter()
            .map(|axes| {
                let (start, count) = axes[..shape.len()].iter().copied().unzip();
                IndexBox::unbounded(start, count).unwrap()
            })
            .collect();
        let points = shape.iter().fold(vec![Vec::new()], |points: Vec<Vec<u64>>, &extent| {
            points.iter().flat_map(|p| (0..extent).map(move |i| [p.as_slice(), &[i]].concat())).collect()
        });
        let has = |b: &IndexBox, p: &[u64]| (0..p.len()).all(|d| (b.start()[d]..b.end(d)).contains(&p[d]));
        let all = uncovered(&shape, &boxes, 10_000).unwrap();
        prop_assert!(!all.truncated);
        for p in &points {
            let covered = boxes.iter().any(|b| has(b, p));
            prop_assert_eq!(all.boxes.iter().filter(|b| has(b, p)).count(), usize::from(!covered));
        }
        prop_assert!(all.boxes.iter().all(|b| !b.is_empty() && b.check_within(&shape).is_ok()));
        prop_assert!(all.boxes.is_sorted());

        let some = uncovered(&shape, &boxes, limit).unwrap();
        prop_assert!(some.boxes.len() <= limit);
        prop_assert_eq!(some.truncated, all.boxes.len() > limit);
        prop_assert_eq!(some.boxes.is_empty() && !some.truncated, all.boxes.is_empty());
    }
}
