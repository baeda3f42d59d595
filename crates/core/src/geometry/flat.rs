//! A range of elements, counted in C order, as boxes.

use super::IndexBox;
use crate::Result;

/// The boxes that contain the elements from `first` up to, but not including, `end` of an array of this shape, in C
/// order inside each box and from box to box: at most two boxes for each dimension. An `end` beyond the array means
/// its end.
///
/// ```
/// use fieldstone_core::geometry::flat_boxes;
/// let boxes = flat_boxes(&[3, 4], 2, 9)?;
/// let text: Vec<String> = boxes.iter().map(|part| part.to_string()).collect();
/// assert_eq!(text, ["0:1,2:4", "1:2,0:4", "2:3,0:1"]);
/// # Ok::<(), fieldstone_core::Error>(())
/// ```
pub fn flat_boxes(shape: &[u64], first: u64, end: u64) -> Result<Vec<IndexBox>> {
    let total: u64 = shape.iter().product();
    let (mut at, end) = (first, end.min(total));
    let mut boxes = Vec::new();
    while at < end {
        // The slowest dimension along which a whole row begins here and fits: its rows below are included whole.
        let mut row = 1u64;
        let mut dim = shape.len();
        while dim > 0 {
            let wider = row * shape[dim - 1];
            if !at.is_multiple_of(wider) || at + wider > end {
                break;
            }
            (row, dim) = (wider, dim - 1);
        }
        let mut start = vec![0; shape.len()];
        let mut count: Vec<u64> = vec![1; shape.len()];
        count[dim..].copy_from_slice(&shape[dim..]);
        let mut rest = at / row;
        for d in (0..dim).rev() {
            start[d] = rest % shape[d];
            rest /= shape[d];
        }
        if dim > 0 {
            // The rows left in that dimension or in the range, whichever are fewer.
            count[dim - 1] = (shape[dim - 1] - start[dim - 1]).min((end - at) / row);
        }
        at += row * dim.checked_sub(1).map_or(1, |d| count[d]);
        boxes.push(IndexBox::new(start, count, shape)?);
    }
    Ok(boxes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For every range of small arrays, the elements of the boxes are those of the range, in order.
    #[test]
    fn boxes_are_the_range_in_order() {
        for shape in [&[][..], &[5], &[1], &[3, 4], &[2, 3, 4], &[4, 1, 3], &[2, 2, 2, 2], &[0, 3]] {
            let total: u64 = shape.iter().product();
            for first in 0..=total {
                for end in first..=total + 1 {
                    let boxes = flat_boxes(shape, first, end).unwrap();
                    assert!(boxes.len() <= 2 * shape.len().max(1), "{shape:?} {first} {end}");
                    let mut found = Vec::new();
                    for part in &boxes {
                        for n in 0..part.element_count().unwrap() {
                            let (mut rest, mut flat, mut stride) = (n, 0, 1);
                            for d in (0..shape.len()).rev() {
                                flat += (part.start()[d] + rest % part.count()[d]) * stride;
                                rest /= part.count()[d];
                                stride *= shape[d];
                            }
                            found.push(flat);
                        }
                    }
                    assert_eq!(found, (first..end.min(total)).collect::<Vec<_>>(), "{shape:?} {first} {end}");
                }
            }
        }
    }
}
