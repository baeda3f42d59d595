//! A variable of a run in the executor, with the points of its mesh or grid in the ranges of a query.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Dim, Range};
use crate::engine::{CoordinateRange, PointSet, VariableId, VariableRow};

/// A variable of a run.
#[derive(Debug, Clone)]
pub(super) struct VariableAt {
    pub(super) id: VariableId,
    pub(super) name: Arc<str>,
    pub(super) version: i64,
    /// Its position among all names, sorted.
    pub(super) rank: u32,
    /// Its declaration by the run, if requested and there is one.
    pub(super) row: Option<Arc<VariableRow>>,
    /// The points of its mesh or grid in the requested regions.
    pub(super) points: Vec<Arc<PointsInRanges>>,
}

/// The ranges of a region that are given by name in coordinates.
pub(super) fn coordinate_ranges(dims: &[(Dim, Range)]) -> Vec<CoordinateRange> {
    let named = dims.iter().filter_map(|(dim, range)| match (dim, range) {
        (Dim::Name(name), Range::Physical(low, high)) => Some((name.clone(), *low, *high)),
        _ => None,
    });
    named.collect()
}

/// The points of a variable's mesh or grid in the ranges of a region.
#[derive(Debug)]
pub(super) struct PointsInRanges {
    /// All ranges of the region that name a coordinate.
    pub(super) ranges: Arc<[CoordinateRange]>,
    /// Which of them these points decide.
    pub(super) decided: Vec<bool>,
    /// Whether a dimension with the name of a range takes precedence. This is so for meshes, which call their
    /// coordinates x, y and z.
    pub(super) behind_dims: bool,
    /// The elements in all of those ranges; if they differ between steps, at any step.
    pub(super) sets: Vec<PointSet>,
    /// The elements of each step that has some, if they differ.
    pub(super) steps: Option<BTreeMap<i64, Vec<PointSet>>>,
}

impl PointsInRanges {
    /// Whether the points decide this range.
    pub(super) fn decides(&self, dim: &Dim, range: &Range) -> bool {
        let (Dim::Name(name), Range::Physical(low, high)) = (dim, range) else { return false };
        let mut both = self.ranges.iter().zip(&self.decided);
        both.any(|(one, decided)| *decided && one.0 == *name && one.1 == *low && one.2 == *high)
    }

    /// The elements at a step, or at any step; none if this step has no elements there.
    pub(super) fn at(&self, step: Option<i64>) -> Cow<'_, [PointSet]> {
        match (step, &self.steps) {
            (Some(step), Some(steps)) => match steps.get(&step) {
                Some(sets) => Cow::Borrowed(sets),
                None => Cow::Owned(vec![PointSet::new(Vec::new(), Vec::new(), Arc::from([]))]),
            },
            _ => Cow::Borrowed(&self.sets),
        }
    }
}

impl VariableAt {
    /// The points found for this region, if the variable's mesh or grid has one of its coordinates.
    pub(super) fn points_for(&self, dims: &[(Dim, Range)]) -> Option<&PointsInRanges> {
        if self.points.is_empty() {
            return None;
        }
        let ranges = coordinate_ranges(dims);
        self.points.iter().find(|points| *points.ranges == *ranges).map(|points| &**points)
    }
}
