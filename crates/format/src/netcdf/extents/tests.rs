use fieldstone_testkit::seeded;

use super::*;

fn place<'a>(dims: &'a [Dim<'a>], ty: NcType, record_stride: u64) -> VariableExtent<'a> {
    VariableExtent { name: "v", ty, dims, begin: 1000, record_stride }
}

fn dims(lens: &[u64], is_record: bool) -> Vec<Dim<'static>> {
    lens.iter()
        .enumerate()
        .map(|(i, len)| Dim { name: "d", len: *len, is_record: is_record && i == 0 })
        .collect()
}

/// Offset of every element of a box, by the definition of the format.
fn offsets(place: &VariableExtent<'_>, start: &[u64], count: &[u64], stride: &[u64]) -> Vec<u64> {
    let size = place.ty.size() as u64;
    let (mut found, mut index) = (Vec::new(), vec![0; count.len()]);
    if count.contains(&0) {
        return found;
    }
    loop {
        let mut offset = place.begin;
        for (i, dim) in place.dims.iter().enumerate() {
            let inner: u64 = place.dims[i + 1..].iter().map(|dim| dim.len).product::<u64>() * size;
            let step = if i == 0 && dim.is_record { place.record_stride } else { inner };
            offset += (start[i] + index[i] * stride[i]) * step;
        }
        found.push(offset);
        let Some(i) = (0..count.len()).rev().find(|i| index[*i] + 1 < count[*i]) else { return found };
        index[i] += 1;
        index[i + 1..].fill(0);
    }
}

#[test]
fn runs_cover_random_boxes_exactly_in_order_and_are_longest() {
    let mut cases = [0; 3];
    for seed in 1..3000u64 {
        let mut random = seeded(seed);
        let rank = random.below(5) as usize;
        let lens: Vec<u64> = (0..rank).map(|_| random.below(6)).collect();
        let is_record = random.below(2) == 0;
        let dims = dims(&lens, is_record);
        let ty = NcType::ALL[random.below(11) as usize];
        let inner: u64 = lens.iter().skip(1).product::<u64>() * ty.size() as u64;
        let place = place(&dims, ty, inner + [0, 4, 100][random.below(3) as usize]);
        let (mut start, mut count, mut stride) = (Vec::new(), Vec::new(), Vec::new());
        for len in &lens {
            stride.push(1 + [0, 0, 1, 2][random.below(4) as usize]);
            start.push(random.below(len + 1));
            let left = (len - start[start.len() - 1]).div_ceil(stride[stride.len() - 1]);
            count.push(if random.below(3) == 0 { left } else { random.below(left + 1) });
        }
        let runs = extents(&place, &start, &count, &stride, Reach::Existing).unwrap();
        let expected = offsets(&place, &start, &count, &stride);
        assert_eq!(runs.elements(), expected.len() as u64, "seed {seed}");
        let size = ty.size() as u64;
        assert_eq!(runs.end(), expected.last().map_or(0, |last| last + size), "seed {seed}");
        let runs: Vec<Run> = runs.collect();
        let mut found = Vec::new();
        for run in &runs {
            assert_eq!(run.at, found.len() as u64, "seed {seed}");
            assert!(run.elements > 0, "seed {seed}");
            found.extend((0..run.elements).map(|i| run.offset + i * size));
        }
        assert_eq!(found, expected, "seed {seed}");
        // With a stride, the last element of a row and the first of the next may touch by chance.
        for pair in runs.windows(2).filter(|_| stride.iter().all(|stride| *stride == 1)) {
            assert!(pair[0].offset + pair[0].elements * size < pair[1].offset, "seed {seed}: {pair:?}");
        }
        cases[runs.len().min(2)] += 1;
    }
    assert!(cases.iter().all(|cases| *cases > 100), "{cases:?}");
}

#[test]
fn a_scalar_is_one_element() {
    let runs: Vec<Run> =
        extents(&place(&[], NcType::Double, 0), &[], &[], &[], Reach::Existing).unwrap().collect();
    assert_eq!(runs, [Run { offset: 1000, elements: 1, at: 0 }]);
}

#[test]
fn a_lone_record_variable_is_one_run_over_its_records() {
    let dims = dims(&[7, 5], true);
    let runs = extents(&place(&dims, NcType::Byte, 5), &[2, 0], &[4, 5], &[], Reach::Existing).unwrap();
    assert_eq!(runs.collect::<Vec<_>>(), [Run { offset: 1010, elements: 20, at: 0 }]);
}

#[test]
fn a_thousand_dimensions() {
    let mut lens = vec![1; 1000];
    (lens[3], lens[500], lens[999]) = (4, 3, 2);
    let dims = dims(&lens, false);
    let mut count = lens.clone();
    count[500] = 2;
    let place = place(&dims, NcType::Short, 0);
    let runs: Vec<Run> = extents(&place, &vec![0; 1000], &count, &[], Reach::Existing).unwrap().collect();
    assert_eq!(runs.len(), 4);
    assert_eq!(runs[1], Run { offset: 1012, elements: 4, at: 4 });
}

#[test]
fn writing_adds_records_and_reading_does_not() {
    let dims = [Dim { name: "time", len: 3, is_record: true }, Dim { name: "x", len: 2, is_record: false }];
    let place = place(&dims, NcType::Int, 20);
    let grown = extents(&place, &[5, 0], &[2, 2], &[4, 1], Reach::Growing).unwrap();
    assert_eq!((grown.records(), grown.end()), (10, 1000 + 9 * 20 + 8));
    let refused = extents(&place, &[1, 0], &[3, 2], &[], Reach::Existing).unwrap_err();
    assert_eq!(refused.message(), "variable `v`, dimension `time`: index 3 is outside, there are 3 records");
    let refused = extents(&place, &[9, 1], &[1, 2], &[], Reach::Growing).unwrap_err();
    assert_eq!(refused.message(), "variable `v`, dimension `x`: index 2 is outside, its length is 2");
    let empty = extents(&place, &[3, 0], &[0, 2], &[], Reach::Existing).unwrap();
    assert_eq!((empty.elements(), empty.records()), (0, 0));
    assert!(extents(&place, &[4, 0], &[0, 2], &[], Reach::Existing).is_err());
}

#[test]
fn what_no_file_can_hold_is_refused() {
    let dims = dims(&[0, 1 << 40], true);
    let place = place(&dims, NcType::Double, 1 << 43);
    let most = u64::MAX;
    for (start, count, stride) in [
        ([most, 0], [1, 1], [1, 1]),
        ([most, 0], [2, 1], [1, 1]),
        ([1, 0], [most, 1], [1, 1]),
        ([1, 0], [2, 1], [most, 1]),
        ([1 << 21, 0], [1, 1], [1, 1]),
        ([1 << 20, 0], [1, 1], [1, 1]),
        ([0, 0], [(1 << 20) + 1, 1], [1, 1]),
    ] {
        let result = extents(&place, &start, &count, &stride, Reach::Growing);
        assert!(
            result.is_err_and(|error| error.message().contains("2^63")),
            "{start:?} {count:?} {stride:?}"
        );
    }
    // An index inside the variable's shape is inside only according to the header.
    let dims = self::dims(&[1 << 60, 1 << 40], true);
    let lied = self::place(&dims, NcType::Double, 1 << 43);
    let error = extents(&lied, &[1 << 50, 0], &[1, 1], &[], Reach::Existing).unwrap_err();
    assert_eq!(error.kind(), fieldstone_core::ErrorKind::Corrupt, "{error}");
    let fits = extents(&place, &[(1 << 20) - 2, 0], &[1, 1 << 40], &[], Reach::Growing).unwrap();
    assert_eq!(fits.end(), 1000 + ((1 << 20) - 1) * (1 << 43));
}

#[test]
fn lists_of_another_length_are_named() {
    let dims = dims(&[2, 2], false);
    let place = place(&dims, NcType::Int, 0);
    for (start, count, stride, what) in [
        (&[0][..], &[1, 1][..], &[][..], "start has 1 values"),
        (&[0, 0], &[1, 1, 1], &[], "count has 3 values"),
        (&[0, 0], &[1, 1], &[1], "stride has 1 values"),
        (&[0, 0], &[1, 1], &[1, 0], "dimension `d`: stride 0"),
    ] {
        let error = extents(&place, start, count, stride, Reach::Existing).unwrap_err();
        assert!(error.message().contains(what), "{error}");
    }
}
