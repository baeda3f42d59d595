//! Which ranges of an array's raw bytes a box of it is.
//!
//! An array whose blocks are ranges of its bytes in C order is read range by range: the *ranges* of a box are
//! its bytes that follow one another both there and in the buffer that they go to, in ascending order.

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{ChunkGrid, IndexBox};

/// Bytes that follow one another on both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// Their begins in the array.
    pub from: u64,
    /// Their begins in the buffer.
    pub to: u64,
    /// How many they are.
    pub length: u64,
}

impl ByteRange {
    /// Their ends in the array.
    pub fn end(&self) -> u64 {
        self.from + self.length
    }
}

/// The ranges of a box, which lies in both others and is not empty.
#[derive(Debug, Clone)]
pub struct ByteRanges {
    /// Extent, and bytes from one to the next on both sides, of the dimensions that a range does not span; the
    /// fastest first.
    axes: Vec<(u64, u64, u64)>,
    /// The position of the next range along each dimension.
    at: Vec<u64>,
    next: Option<ByteRange>,
}

impl ByteRanges {
    /// The ranges of `wanted` in an array that covers `own`, of elements of `item` bytes, into a buffer that
    /// covers `out`.
    pub fn new(own: &IndexBox, wanted: &IndexBox, out: &IndexBox, item: u64) -> ByteRanges {
        let mut first = ByteRange { from: 0, to: 0, length: item };
        let (mut own_step, mut out_step) = (item, item);
        let (mut axes, mut spans) = (Vec::new(), true);
        for d in (0..wanted.rank()).rev() {
            let count = wanted.count()[d];
            first.from += (wanted.start()[d] - own.start()[d]) * own_step;
            first.to += (wanted.start()[d] - out.start()[d]) * out_step;
            match spans {
                true => first.length *= count,
                false => axes.push((count, own_step, out_step)),
            }
            // Elements past the end of a dimension on either side end the range.
            spans &= count == own.count()[d] && count == out.count()[d];
            own_step *= own.count()[d];
            out_step *= out.count()[d];
        }
        ByteRanges { at: vec![0; axes.len()], axes, next: Some(first) }
    }
}

impl Iterator for ByteRanges {
    type Item = ByteRange;

    fn next(&mut self) -> Option<ByteRange> {
        let range = self.next?;
        let mut after = range;
        self.next = None;
        for ((count, own, out), at) in self.axes.iter().zip(&mut self.at) {
            if *at + 1 < *count {
                *at += 1;
                self.next = Some(ByteRange { from: after.from + own, to: after.to + out, ..range });
                break;
            }
            after.from -= *at * own;
            after.to -= *at * out;
            *at = 0;
        }
        Some(range)
    }
}

/// Chunk extents whose chunks are byte ranges of at most this number of bytes: ones, then a part of a dimension, then
/// whole dimensions. `None` for a single chunk.
pub fn slab(shape: &[u64], dtype: DType, most: u64) -> Option<Vec<u64>> {
    let mut inner = dtype.size() as u64;
    let mut chunk = vec![1; shape.len()];
    for (extent, own) in shape.iter().zip(&mut chunk).rev() {
        let whole = inner.saturating_mul((*extent).max(1));
        if whole > most {
            *own = (most / inner).max(1);
            return ChunkGrid::new(shape.to_vec(), chunk.clone()).is_ok().then_some(chunk);
        }
        *own = (*extent).max(1);
        inner = whole;
    }
    None
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use fieldstone_core::geometry::copy_box;

    use super::*;

    #[test]
    fn ranges_copy_what_a_box_copies() {
        let shapes: [&[u64]; 6] = [&[], &[7], &[3, 5], &[2, 3, 4], &[1, 4, 1, 3], &[4, 1, 5]];
        for shape in shapes {
            let own = IndexBox::whole(shape).unwrap();
            let source: Vec<u8> = (0..own.element_count().unwrap() * 2).map(|i| i as u8).collect();
            for cut in 0..27u64 {
                let start: Vec<u64> = shape.iter().map(|n| (n - 1).min(cut % 3)).collect();
                let count = shape.iter().zip(&start).map(|(n, s)| (n - s).saturating_sub(cut / 3 % 3).max(1));
                let wanted = IndexBox::unbounded(start.clone(), count.collect()).unwrap();
                for out_box in [&wanted, &own] {
                    let mut expected = vec![0; out_box.element_count().unwrap() as usize * 2];
                    let mut out = expected.clone();
                    copy_box(&source, &own, &mut expected, out_box, &wanted, 2).unwrap();
                    let mut behind = 0;
                    for range in ByteRanges::new(&own, &wanted, out_box, 2) {
                        assert!(range.from >= behind && range.length > 0, "{shape:?} [{wanted}]");
                        behind = range.end();
                        let bytes = &source[range.from as usize..range.end() as usize];
                        out[range.to as usize..][..bytes.len()].copy_from_slice(bytes);
                    }
                    assert_eq!(out, expected, "{shape:?} [{wanted}] into [{out_box}]");
                }
            }
        }
    }

    #[test]
    fn whole_dimensions_are_one_range() {
        let own = IndexBox::whole(&[4, 5, 6]).unwrap();
        let of = |start: [u64; 3], count: [u64; 3]| {
            let wanted = IndexBox::unbounded(start.to_vec(), count.to_vec()).unwrap();
            ByteRanges::new(&own, &wanted, &wanted, 8)
                .map(|range| (range.from, range.length))
                .collect::<Vec<_>>()
        };
        assert_eq!(of([0, 0, 0], [4, 5, 6]), [(0, 960)]);
        assert_eq!(of([1, 0, 0], [2, 5, 6]), [(240, 480)]);
        assert_eq!(of([0, 1, 0], [2, 2, 6]), [(48, 96), (288, 96)]);
    }
}
