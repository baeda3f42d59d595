//! Copies and fills of boxes, compared with loops over single elements.
#![allow(clippy::unwrap_used)] // helpers outside #[test] functions, too

use fieldstone_core::ErrorKind;
use fieldstone_core::geometry::{IndexBox, copy_box, fill_box};
use proptest::prelude::*;

fn parsed(text: &str) -> IndexBox {
    IndexBox::parse(text).unwrap()
}

fn points(region: &IndexBox) -> Vec<Vec<u64>> {
    (0..region.rank()).fold(vec![Vec::new()], |points, d| {
        let range = region.start()[d]..region.end(d);
        points.iter().flat_map(|p| range.clone().map(move |i| [p.as_slice(), &[i]].concat())).collect()
    })
}

/// Position of the element at `point` in a buffer that covers `covers`.
fn place(covers: &IndexBox, point: &[u64], item: usize) -> std::ops::Range<usize> {
    let index = (0..point.len())
        .fold(0, |index, d| index * covers.count()[d] as usize + (point[d] - covers.start()[d]) as usize);
    index * item..(index + 1) * item
}

fn bytes(covers: &IndexBox, item: usize, seed: u8) -> Vec<u8> {
    let length = covers.element_count().unwrap() as usize * item;
    (0..length).map(|i| (i as u8).wrapping_mul(37).wrapping_add(seed)).collect()
}

/// Source, destination and a region inside both, of up to five dimensions, far from the origin.
fn boxes() -> impl Strategy<Value = (IndexBox, IndexBox, IndexBox)> {
    // For each dimension: start and count of the region, and how far the two boxes extend beyond it on either side.
    // Zeros are frequent, so that dimensions join in all combinations.
    let margin = || {
        let side = prop_oneof![3 => Just(0_u64), 1 => 1_u64..3];
        (side.clone(), side)
    };
    let axis = (1_u64 << 40..(1 << 40) + 5, 0_u64..5, margin(), margin());
    prop::collection::vec(axis, 0..6).prop_map(|axes| {
        let boxed = |ranges: Vec<(u64, u64)>| {
            let (start, count) = ranges.into_iter().unzip();
            IndexBox::unbounded(start, count).unwrap()
        };
        (
            boxed(axes.iter().map(|&(at, n, (low, high), _)| (at - low, low + n + high)).collect()),
            boxed(axes.iter().map(|&(at, n, _, (low, high))| (at - low, low + n + high)).collect()),
            boxed(axes.iter().map(|&(at, n, _, _)| (at, n)).collect()),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn copy_is_the_copy_of_every_element(
        (src_box, dst_box, region) in boxes(),
        item in prop::sample::select(vec![1_usize, 2, 3, 4, 8, 12, 16]),
    ) {
        let src = bytes(&src_box, item, 1);
        let mut dst = bytes(&dst_box, item, 100);
        let mut expected = dst.clone();
        for p in points(&region) {
            expected[place(&dst_box, &p, item)].copy_from_slice(&src[place(&src_box, &p, item)]);
        }
        copy_box(&src, &src_box, &mut dst, &dst_box, &region, item).unwrap();
        prop_assert_eq!(dst, expected);
    }

    #[test]
    fn fill_sets_every_element_and_no_other(
        (_, dst_box, region) in boxes(),
        item in prop::collection::vec(0_u8..3, 1..17),
    ) {
        let mut dst = bytes(&dst_box, item.len(), 9);
        let mut expected = dst.clone();
        for p in points(&region) {
            expected[place(&dst_box, &p, item.len())].copy_from_slice(&item);
        }
        fill_box(&mut dst, &dst_box, &region, &item).unwrap();
        prop_assert_eq!(dst, expected);
    }
}

#[test]
fn scalars_and_empty_regions() {
    let scalar = parsed("()");
    let mut dst = [0; 4];
    copy_box(&[1, 2, 3, 4], &scalar, &mut dst, &scalar, &scalar, 4).unwrap();
    assert_eq!(dst, [1, 2, 3, 4]);
    fill_box(&mut dst, &scalar, &scalar, &[7, 8, 9, 10]).unwrap();
    assert_eq!(dst, [7, 8, 9, 10]);
    let empty = parsed("2:2,0:3");
    copy_box(&[], &empty, &mut [], &empty, &empty, 8).unwrap();
    let mut dst = [5; 12];
    copy_box(&[], &empty, &mut dst, &parsed("0:4,0:3"), &empty, 1).unwrap();
    assert_eq!(dst, [5; 12]);
}

#[test]
fn wrong_arguments_are_refused_and_change_nothing() {
    let (small, large) = (parsed("0:2,0:2"), parsed("0:3,0:3"));
    let huge = parsed("0:4294967296,0:4294967296");
    let mut dst = [9; 9];
    for (src, src_box, region, item, word) in [
        (&[1; 4][..], &small, &large, 1, "not inside the source's box 0:2,0:2"),
        (&[1; 3][..], &small, &small, 1, "source buffer has 3 bytes"),
        (&[1; 8][..], &small, &small, 1, "source buffer has 8 bytes"),
        (&[1; 8][..], &small, &small, 2, "destination buffer has 9 bytes"),
        (&[1; 4][..], &small, &parsed("0:1"), 1, "not inside"),
        (&[1; 4][..], &small, &small, 0, "size zero"),
        (&[][..], &huge, &small, 1, "2^64"),
    ] {
        let error = copy_box(src, src_box, &mut dst, &large, region, item).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.message().contains(word), "{error}");
    }
    let source = [1; 16];
    let error = copy_box(&source, &parsed("0:4,0:4"), &mut dst, &large, &parsed("0:4,0:1"), 1).unwrap_err();
    assert!(error.message().contains("destination's box 0:3,0:3"), "{error}");
    assert!(fill_box(&mut dst, &large, &large, &[]).is_err());
    assert!(fill_box(&mut dst, &large, &parsed("0:4,0:1"), &[0]).is_err());
    assert!(fill_box(&mut dst, &small, &small, &[0]).is_err());
    assert_eq!(dst, [9; 9]);
}
