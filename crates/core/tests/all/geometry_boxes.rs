//! Shapes, boxes and chunk grids, compared with models that visit every element or chunk.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions, too

use fieldstone_core::ErrorKind;
use fieldstone_core::geometry::{ChunkGrid, IndexBox, MAX_RANK, byte_count, element_count};
use proptest::prelude::*;

fn parsed(text: &str) -> IndexBox {
    IndexBox::parse(text).unwrap()
}

#[test]
fn element_counts_are_checked() {
    assert_eq!(element_count(&[]).unwrap(), 1);
    assert_eq!(element_count(&[3, 0, 5]).unwrap(), 0);
    assert_eq!(element_count(&[3, 4, 5]).unwrap(), 60);
    assert_eq!(element_count(&[1 << 32, (1 << 32) - 1]).unwrap(), ((1 << 32) - 1) << 32);
    assert_eq!(element_count(&[u64::MAX, u64::MAX, 0]).unwrap(), 0);
    assert_eq!(element_count(&[1 << 32, 1 << 32]).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(element_count(&[1; MAX_RANK]).unwrap(), 1);
    assert!(element_count(&[1; MAX_RANK + 1]).unwrap_err().message().contains("33 dimensions"));
    assert_eq!(byte_count(&[2, 3], 8).unwrap(), 48);
    assert!(byte_count(&[1 << 61], 8).is_err());
    assert!(byte_count(&[1 << 62], 2).is_err(), "no buffer exceeds isize::MAX bytes");
}

#[test]
fn a_box_outside_its_shape_is_named_by_dimension_and_numbers() {
    let error = IndexBox::new(vec![0, 10], vec![50, 31], &[50, 40]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    for word in ["0:50,10:41", "dimension 1", "40"] {
        assert!(error.message().contains(word), "{error}");
    }
    assert!(IndexBox::new(vec![0, 10], vec![50, 30], &[50, 40]).is_ok());
    assert!(IndexBox::new(vec![40], vec![0], &[40]).is_ok(), "an empty box may lie at the end");
    assert!(IndexBox::new(vec![41], vec![0], &[40]).is_err());
    assert!(IndexBox::new(vec![0], vec![1, 1], &[4]).is_err());
    assert!(IndexBox::new(vec![0], vec![1], &[4, 4]).unwrap_err().message().contains("1 dimensions"));
    let error = IndexBox::unbounded(vec![0, u64::MAX], vec![1, 1]).unwrap_err();
    assert!(error.message().contains("dimension 1"), "{error}");
    assert!(IndexBox::unbounded(vec![0; 33], vec![1; 33]).is_err());
}

#[test]
fn boxes_are_written_as_half_open_ranges() {
    let piece = IndexBox::new(vec![0, 10], vec![50, 10], &[50, 40]).unwrap();
    assert_eq!(piece.to_string(), "0:50,10:20");
    assert_eq!(parsed(" 0:50 , 10 : 20 "), piece);
    assert_eq!(IndexBox::whole(&[]).unwrap().to_string(), "()");
    assert_eq!(parsed("()"), IndexBox::whole(&[]).unwrap());
    assert_eq!(parsed("3:3").element_count().unwrap(), 0);
    assert_eq!(parsed("0:18446744073709551615").end(0), u64::MAX);
    let long = ["0:1"; 33].join(",");
    for (text, word) in [
        ("0:5,7", "dimension 1"),
        ("5:4", "ends before"),
        ("-1:4", "whole number"),
        ("+1:4", "whole number"),
        ("0:18446744073709551616", "whole number"),
        ("1:2:3", "whole number"),
        (":", "whole number"),
        ("0:1,", "dimension 1"),
        (long.as_str(), "33 dimensions"),
    ] {
        let error = IndexBox::parse(text).unwrap_err();
        assert!(error.message().contains(word), "{text}: {error}");
    }
}

#[test]
fn a_scalar_has_one_box_and_one_chunk() {
    let scalar = IndexBox::whole(&[]).unwrap();
    assert!(!scalar.is_empty());
    assert_eq!(scalar.element_count().unwrap(), 1);
    assert_eq!(scalar.intersect(&scalar), Some(scalar.clone()));
    assert!(scalar.contains(&scalar) && scalar.overlaps(&scalar));
    assert!(!scalar.contains(&parsed("0:1")) && scalar.intersect(&parsed("0:1")).is_none());
    let grid = ChunkGrid::choose(&[], 8, 1).unwrap();
    assert_eq!(grid.chunk_count(), 1);
    assert_eq!(grid.chunk_box(0).unwrap(), scalar);
    assert_eq!(grid.overlapping(&scalar).unwrap().collect::<Vec<_>>(), [0]);
}

#[test]
fn an_empty_array_has_no_chunk() {
    let grid = ChunkGrid::choose(&[5, 0, 1 << 40], 8, 64).unwrap();
    assert_eq!((grid.chunk_count(), grid.chunk()), (0, [5, 1, 1 << 40].as_slice()));
    assert!(grid.chunk_box(0).is_err());
    assert_eq!(grid.overlapping(&IndexBox::whole(&[5, 0, 9]).unwrap()).unwrap().next(), None);
    assert_eq!(grid.overlapping(&parsed("0:5,0:1,0:9")).unwrap().next(), None);
}

#[test]
fn chosen_chunks_stay_balanced_between_dimensions() {
    for (shape, item, target, chunk) in [
        (vec![1000, 1000], 8, 1 << 20, vec![250, 500]),
        (vec![100, 100], 8, 1 << 20, vec![100, 100]),
        (vec![5], 1, 1, vec![1]),
        (vec![1, 1 << 20], 8, 1 << 20, vec![1, 1 << 17]),
        (vec![2, 1 << 20], 8, 1 << 20, vec![1, 1 << 17]),
        (vec![10, 10], 16, 4, vec![1, 1]),
        (vec![721, 1440], 4, 1 << 18, vec![181, 360]),
        (vec![3, 3], 0, 0, vec![3, 3]),
    ] {
        assert_eq!(ChunkGrid::choose(&shape, item, target).unwrap().chunk(), chunk, "{shape:?}");
    }
}

#[test]
fn huge_grids_work_without_visiting_them() {
    let shape = [u64::MAX >> 1, 2];
    let grid = ChunkGrid::new(shape.to_vec(), vec![1, 1]).unwrap();
    assert_eq!(grid.chunk_count(), u64::MAX - 1);
    let last = grid.chunk_box(u64::MAX - 2).unwrap();
    assert_eq!((last.start(), last.end(0)), ([shape[0] - 1, 1].as_slice(), shape[0]));
    assert_eq!(grid.overlapping(&last).unwrap().collect::<Vec<_>>(), [u64::MAX - 2]);
    let whole = grid.overlapping(&IndexBox::whole(&shape).unwrap()).unwrap();
    assert_eq!(whole.remaining(), u64::MAX - 1);
    assert_eq!(whole.take(3).collect::<Vec<_>>(), [0, 1, 2]);

    // The last chunk would end beyond u64.
    let grid = ChunkGrid::new(vec![u64::MAX], vec![u64::MAX - 1]).unwrap();
    assert_eq!(grid.chunk_box(1).unwrap().to_string(), "18446744073709551614:18446744073709551615");

    let grid = ChunkGrid::choose(&[1 << 20, 1 << 20, 1 << 20], 16, 1 << 20).unwrap();
    assert!(grid.chunk().iter().product::<u64>() * 16 <= 1 << 20);
    assert!(ChunkGrid::choose(&[1 << 40, 1 << 40], 8, 1 << 20).is_err());
    assert!(ChunkGrid::new(vec![4], vec![0]).is_err());
    assert!(ChunkGrid::new(vec![4], vec![1, 1]).is_err());
    assert!(grid.overlapping(&parsed("0:1")).is_err());

    // The part of a box outside the shape is ignored.
    let grid = ChunkGrid::new(vec![10, 10], vec![5, 5]).unwrap();
    assert_eq!(grid.overlapping(&parsed("7:90,0:40")).unwrap().collect::<Vec<_>>(), [2, 3]);
    assert_eq!(grid.overlapping(&parsed("7:90,10:40")).unwrap().next(), None);
}

/// A shape and `n` boxes inside it.
fn shape_and_boxes(n: usize) -> impl Strategy<Value = (Vec<u64>, Vec<IndexBox>)> {
    prop::collection::vec(0_u64..7, 0..4).prop_flat_map(move |shape| {
        let ranges: Vec<_> = shape.iter().map(|&extent| (0..=extent, 0..=extent)).collect();
        let one = ranges.prop_map(|ranges| {
            let start = ranges.iter().map(|(a, b)| *a.min(b)).collect();
            let count = ranges.iter().map(|(a, b)| a.abs_diff(*b)).collect();
            IndexBox::unbounded(start, count).unwrap()
        });
        (Just(shape), prop::collection::vec(one, n))
    })
}

fn points(shape: &[u64]) -> Vec<Vec<u64>> {
    shape.iter().fold(vec![Vec::new()], |points, &extent| {
        points.iter().flat_map(|p| (0..extent).map(move |i| [p.as_slice(), &[i]].concat())).collect()
    })
}

fn has(b: &IndexBox, point: &[u64]) -> bool {
    (0..point.len()).all(|d| (b.start()[d]..b.end(d)).contains(&point[d]))
}

proptest! {
    #[test]
    fn boxes_behave_as_sets_of_points((shape, boxes) in shape_and_boxes(2)) {
        let (a, b) = (&boxes[0], &boxes[1]);
        let points = points(&shape);
        let common = points.iter().filter(|p| has(a, p) && has(b, p)).count();
        prop_assert_eq!(a.element_count().unwrap() as usize, points.iter().filter(|p| has(a, p)).count());
        prop_assert_eq!(a.is_empty(), a.element_count().unwrap() == 0);
        prop_assert_eq!(a.overlaps(b), common > 0);
        match a.intersect(b) {
            None => prop_assert_eq!(common, 0),
            Some(part) => {
                prop_assert_eq!(part.element_count().unwrap(), common as u64);
                prop_assert!(common > 0);
                for p in &points {
                    prop_assert_eq!(has(&part, p), has(a, p) && has(b, p));
                }
            }
        }
        if !a.is_empty() {
            prop_assert_eq!(b.contains(a), common as u64 == a.element_count().unwrap());
        }
        prop_assert_eq!(&parsed(&a.to_string()), a);
        match a.relative_to(b) {
            Ok(local) => {
                prop_assert!(b.contains(a));
                prop_assert!(local.check_within(b.count()).is_ok());
                prop_assert_eq!(&local.shifted_into(b).unwrap(), a);
            }
            Err(_) => prop_assert!(!b.contains(a)),
        }
    }

    #[test]
    fn the_chunks_that_overlap_a_box_are_found_as_by_a_scan(
        (shape, boxes) in shape_and_boxes(1),
        extents in prop::collection::vec(1_u64..9, 4),
    ) {
        let chunk = extents[..shape.len()].to_vec();
        let grid = ChunkGrid::new(shape.clone(), chunk).unwrap();
        let chunks: Vec<IndexBox> = (0..grid.chunk_count()).map(|i| grid.chunk_box(i).unwrap()).collect();
        // Every element is in exactly one chunk, and no chunk is empty.
        for p in points(&shape) {
            prop_assert_eq!(chunks.iter().filter(|c| has(c, &p)).count(), 1);
        }
        prop_assert!(chunks.iter().all(|c| !c.is_empty() && c.check_within(&shape).is_ok()));
        let scan: Vec<u64> =
            (0..grid.chunk_count()).filter(|&i| chunks[i as usize].overlaps(&boxes[0])).collect();
        let found = grid.overlapping(&boxes[0]).unwrap();
        prop_assert_eq!(found.remaining() as usize, scan.len());
        prop_assert_eq!(found.collect::<Vec<_>>(), scan);
    }

    #[test]
    fn chosen_chunks_fit_the_target_and_are_not_needlessly_small(
        shape in prop::collection::vec(1_u64..5000, 0..5),
        item in 1_usize..17,
        target in 1_u64..100_000,
    ) {
        let grid = ChunkGrid::choose(&shape, item, target).unwrap();
        let bytes = grid.chunk().iter().product::<u64>() * item as u64;
        prop_assert!(bytes <= target || bytes == item as u64);
        // One halving fewer would have been too large; rounding up may cost a little more than half.
        let all = shape.iter().product::<u64>() * item as u64;
        prop_assert!(all <= target || bytes * 2 + (bytes / 8) >= target / 2 || bytes == item as u64);
    }

    #[test]
    fn any_text_is_a_box_or_refused(text in "[0-9:, ()+-]{0,30}|\\PC{0,10}") {
        if let Ok(b) = IndexBox::parse(&text) {
            prop_assert_eq!(parsed(&b.to_string()), b);
        }
    }
}
