//! The place of an attribute on its variable: a box, or a set of cells in one.
//!
//! A set of cells lists indices along one dimension; along the others it has everything in its box. So it
//! shares an element with a box, or with another set, if it shares an index along each dimension.

use std::sync::Arc;

/// A box of a row, with its cells if it does not hold all of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct RowRegion<'a> {
    pub(super) start: &'a [i64],
    pub(super) count: &'a [i64],
    /// A dimension, and the indices along it, ascending.
    pub(super) cells: Option<(usize, &'a [i64])>,
}

/// An owned copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnedRegion {
    pub(super) start: Vec<i64>,
    pub(super) count: Vec<i64>,
    pub(super) cells: Option<(usize, Arc<[i64]>)>,
}

impl OwnedRegion {
    pub(super) fn as_ref(&self) -> RowRegion<'_> {
        let cells = self.cells.as_ref().map(|(dim, cells)| (*dim, &**cells));
        RowRegion { start: &self.start, count: &self.count, cells }
    }
}

impl<'a> RowRegion<'a> {
    pub(super) fn to_own(self) -> OwnedRegion {
        let cells = self.cells.map(|(dim, cells)| (dim, cells.into()));
        OwnedRegion { start: self.start.to_vec(), count: self.count.to_vec(), cells }
    }

    /// First index and one past the last along a dimension, if it has that dimension.
    pub(super) fn side(&self, dim: usize) -> Option<(i64, i64)> {
        let (first, extent) = (self.start.get(dim)?, self.count.get(dim)?);
        Some((*first, first.saturating_add(*extent)))
    }

    /// The cells, if they are along this dimension.
    pub(super) fn cells_along(&self, dim: usize) -> Option<&'a [i64]> {
        self.cells.filter(|(of, _)| *of == dim).map(|(_, cells)| cells)
    }

    /// The number of its elements, at most `u64::MAX`.
    pub(super) fn volume(&self) -> u64 {
        let extents = self.count.iter().enumerate().map(|(dim, extent)| {
            self.cells_along(dim)
                .map_or_else(|| u64::try_from(*extent).unwrap_or(0), |cells| cells.len() as u64)
        });
        extents.fold(1, u64::saturating_mul)
    }

    /// Whether they share an element. Both have the same rank.
    pub(super) fn overlaps(&self, other: &RowRegion<'_>) -> bool {
        (0..self.start.len()).all(|dim| {
            let (Some(mine), Some(theirs)) = (self.side(dim), other.side(dim)) else { return false };
            if mine.0 >= theirs.1 || theirs.0 >= mine.1 {
                return false;
            }
            match (self.cells_along(dim), other.cells_along(dim)) {
                (None, None) => true,
                (Some(cells), None) => within(cells, theirs).next().is_some(),
                (None, Some(cells)) => within(cells, mine).next().is_some(),
                (Some(cells), Some(others)) => have_common(cells, others),
            }
        })
    }
}

/// The ascending numbers that are at least `from` and below `to`.
pub(super) fn within(sorted: &[i64], (from, to): (i64, i64)) -> impl Iterator<Item = i64> + '_ {
    let at = sorted.partition_point(|one| *one < from);
    sorted.iter().skip(at).copied().take_while(move |one| *one < to)
}

/// Whether two ascending lists share a number.
pub(super) fn have_common(a: &[i64], b: &[i64]) -> bool {
    let (few, many) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let mut rest = many;
    few.iter().any(|one| {
        let at = rest.partition_point(|other| other < one);
        rest = rest.get(at..).unwrap_or_default();
        rest.first() == Some(one)
    })
}

/// Whether all of the ascending numbers `few` are among `many`.
pub(super) fn are_among(few: &[i64], many: &[i64]) -> bool {
    let mut rest = many;
    few.iter().all(|one| {
        let at = rest.partition_point(|other| other < one);
        rest = rest.get(at..).unwrap_or_default();
        rest.first() == Some(one)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place<'a>(start: &'a [i64], count: &'a [i64], cells: Option<(usize, &'a [i64])>) -> RowRegion<'a> {
        RowRegion { start, count, cells }
    }

    #[test]
    fn cells_overlap_where_they_have_an_element_in_common() {
        let odd = place(&[0, 1], &[9, 5], Some((1, &[1, 3, 5])));
        let even = place(&[0, 2], &[9, 3], Some((1, &[2, 4])));
        let hull = place(&[8, 1], &[1, 5], None);
        assert!(!odd.overlaps(&even) && !even.overlaps(&odd));
        assert!(odd.overlaps(&hull) && hull.overlaps(&even));
        assert!(!odd.overlaps(&place(&[0, 2], &[9, 1], None)));
        // Cells along different dimensions: each list has an index in the other's range.
        let rows = place(&[4, 0], &[2, 9], Some((0, &[4, 5])));
        assert!(rows.overlaps(&odd) && !rows.overlaps(&place(&[0, 3], &[4, 1], Some((1, &[3])))));
        assert_eq!((odd.volume(), hull.volume()), (27, 5));
    }

    #[test]
    fn ascending_numbers_are_compared() {
        assert!(have_common(&[1, 5, 9], &[0, 2, 4, 9]) && !have_common(&[1, 5], &[0, 2, 4, 6]));
        assert!(are_among(&[2, 6], &[0, 2, 4, 6]) && !are_among(&[2, 5], &[0, 2, 4, 6]));
        assert!(are_among(&[], &[]) && !have_common(&[], &[]));
        assert_eq!(within(&[1, 3, 5, 7], (3, 7)).collect::<Vec<_>>(), [3, 5]);
    }
}
