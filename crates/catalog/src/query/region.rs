//! Boxes: a region on one variable, and whether a box has the required relation to it.
//!
//! Index ranges are half-open; an absent end is open. Coordinate ranges include both ends and become the
//! elements whose coordinates are in them, for ascending and descending coordinates alike.

use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::Coordinate;

use super::place::{RowRegion, are_among, have_common, within};
use super::variable_at::VariableAt;
use super::{Dim, Range, Relation};
use crate::engine::PointSet;

/// The reason why a variable cannot have a region.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Misfit {
    /// It has no dimension of this name.
    Dimension(String),
    /// The dimension has no coordinates.
    Coordinates(String),
}

/// Dimension, first element and the one after the last.
pub(super) type Side = (usize, Option<i64>, Option<i64>);

/// A region on one variable.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoxTest {
    /// `None` is an open end.
    pub(super) sides: Vec<Side>,
    /// If not empty, only these elements: those of a mesh or grid in ranges of coordinates.
    pub(super) points: Vec<PointSet>,
    pub(super) relation: Relation,
}

/// The dimension, on one variable, whose extent is tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Lengths(usize);

/// Extents of a variable as a box counts them.
pub(super) fn shape_of(variable: Option<&VariableAt>) -> Option<Vec<i64>> {
    let shape = variable?.row.as_ref()?.decl.shape.as_ref()?;
    Some(shape.iter().map(|extent| i64::try_from(*extent).unwrap_or(i64::MAX)).collect())
}

fn index_of(dim: &Dim, variable: Option<&VariableAt>) -> std::result::Result<usize, Misfit> {
    match dim {
        Dim::Index(index) => Ok(*index),
        Dim::Name(name) => {
            let dims = variable.and_then(|variable| variable.row.as_ref()).map(|row| &row.decl.dims);
            let found = dims.and_then(|dims| dims.iter().position(|own| own == name));
            found.ok_or_else(|| Misfit::Dimension(name.clone()))
        }
    }
}

impl Lengths {
    pub(super) fn of(dim: &Dim, variable: Option<&VariableAt>) -> std::result::Result<Lengths, Misfit> {
        Ok(Lengths(index_of(dim, variable)?))
    }

    pub(super) fn of_box(self, count: &[i64]) -> Option<i64> {
        count.get(self.0).copied()
    }
}

impl BoxTest {
    /// The region on this variable at a step, or at any step; the inner error says why there is none.
    ///
    /// # Errors
    /// Invalid for coordinates on a grid that does not map them to elements.
    pub(super) fn of(
        dims: &[(Dim, Range)],
        relation: Relation,
        variable: Option<&VariableAt>,
        step: Option<i64>,
    ) -> Result<std::result::Result<BoxTest, Misfit>> {
        let shape = shape_of(variable);
        let mut sides = Vec::with_capacity(dims.len());
        let found = variable.and_then(|variable| variable.points_for(dims));
        for (dim, range) in dims {
            let decided = found.filter(|points| points.decides(dim, range));
            let index = match index_of(dim, variable) {
                _ if decided.is_some_and(|points| !points.behind_dims) => continue,
                Ok(index) => index,
                Err(_) if decided.is_some() => continue,
                Err(misfit) => return Ok(Err(misfit)),
            };
            let extent = shape.as_ref().and_then(|shape| shape.get(index).copied());
            let (mut from, mut to) = match range {
                Range::Index(from, to) => (*from, *to),
                Range::Physical(low, high) => {
                    let row = variable.and_then(|variable| variable.row.as_ref());
                    let coords = row.map_or(&[][..], |row| &row.decl.coords);
                    let found = coords.iter().find(|(of, _)| usize::try_from(*of) == Ok(index));
                    let Some((_, coordinate)) = found else {
                        return Ok(Err(Misfit::Coordinates(named(dim, variable))));
                    };
                    let (from, to) = elements(coordinate, extent, *low, *high)
                        .map_err(|kind| refused(&kind, dim, variable))?;
                    (Some(from), Some(to))
                }
            };
            if relation == Relation::Contains {
                from = from.or(Some(0));
                // Without a shape no end is known: an empty side, which matches nothing.
                to = to.or(extent).or(from);
            }
            sides.push((index, from, to));
        }
        let sets = found.map(|found| found.at(step)).unwrap_or_default();
        let points = sets.iter().map(|set| match relation {
            // A single element must satisfy all conditions.
            Relation::Overlaps => within_sides(set, &sides),
            _ => set.clone(),
        });
        let points = points.collect();
        Ok(Ok(BoxTest { sides, points, relation }))
    }

    /// Whether a box, or a set of cells, has the required relation to the region.
    pub(super) fn matches(&self, place: &RowRegion<'_>) -> bool {
        self.matches_box(place)
            && self.points.iter().all(|set| match set.dims[..] {
                [dim] => self.matches_points(place, dim, &set.elements),
                _ => self.matches_grid(place, set),
            })
            && place.cells.is_none_or(|(dim, cells)| self.matches_cells(dim, cells))
    }

    fn matches_box(&self, place: &RowRegion<'_>) -> bool {
        self.sides.iter().all(|(dim, from, to)| {
            let Some((first, end)) = place.side(*dim) else { return false };
            if let (Some(from), Some(to)) = (from, to)
                && from >= to
            {
                return false;
            }
            match self.relation {
                Relation::Overlaps => to.is_none_or(|to| first < to) && from.is_none_or(|from| end > from),
                Relation::Within => from.is_none_or(|from| first >= from) && to.is_none_or(|to| end <= to),
                Relation::Contains => from.is_none_or(|from| first <= from) && to.is_none_or(|to| end >= to),
            }
        })
    }

    /// Tests a box along a dimension against the requested points.
    fn matches_points(&self, place: &RowRegion<'_>, dim: usize, points: &[i64]) -> bool {
        let Some(side) = place.side(dim) else { return false };
        match (self.relation, place.cells_along(dim)) {
            (_, _) if points.is_empty() => false,
            (Relation::Overlaps, None) => within(points, side).next().is_some(),
            (Relation::Overlaps, Some(cells)) => have_common(cells, points),
            (Relation::Within, None) => within(points, side).count() as i64 == side.1 - side.0,
            (Relation::Within, Some(cells)) => are_among(cells, points),
            (Relation::Contains, None) => {
                points.first().is_some_and(|first| *first >= side.0)
                    && points.last().is_some_and(|last| *last < side.1)
            }
            (Relation::Contains, Some(cells)) => are_among(points, cells),
        }
    }

    /// Tests a box against points along several dimensions, or along none.
    fn matches_grid(&self, place: &RowRegion<'_>, set: &PointSet) -> bool {
        let sides: Option<Vec<_>> =
            set.dims.iter().map(|dim| Some((place.side(*dim)?, place.cells_along(*dim)))).collect();
        let Some(sides) = sides else { return false };
        let is_inside = |element: &&i64| {
            let mut rest = **element;
            sides.iter().zip(&set.extents).rev().all(|(((from, to), cells), extent)| {
                let at = rest.rem_euclid(*extent);
                rest = rest.div_euclid(*extent);
                (*from..*to).contains(&at) && cells.is_none_or(|cells| cells.binary_search(&at).is_ok())
            })
        };
        let mut elements = set.elements.iter();
        match self.relation {
            _ if set.elements.is_empty() => false,
            Relation::Overlaps => elements.any(|element| is_inside(&element)),
            Relation::Contains => elements.all(|element| is_inside(&element)),
            Relation::Within => {
                let lengths = sides.iter().map(|((from, to), cells)| {
                    cells.map_or(to.saturating_sub(*from), |cells| cells.len() as i64)
                });
                elements.filter(is_inside).count() as i64 == lengths.fold(1, i64::saturating_mul)
            }
        }
    }

    /// Tests cells, after their box has passed.
    fn matches_cells(&self, dim: usize, cells: &[i64]) -> bool {
        let sides = self.sides.iter().filter(|(of, ..)| *of == dim);
        let ranges = sides.map(|(_, from, to)| (from.unwrap_or(i64::MIN), to.unwrap_or(i64::MAX)));
        match self.relation {
            Relation::Within => true,
            Relation::Overlaps => ranges.into_iter().all(|range| within(cells, range).next().is_some()),
            Relation::Contains => ranges
                .into_iter()
                .all(|(from, to)| within(cells, (from, to)).count() as i64 == to.saturating_sub(from)),
        }
    }

    /// A region that holds all elements that a box must touch to match, as `(first, one past the last)` for
    /// each of `rank` dimensions; `None` if no box of that rank matches.
    pub(super) fn reach(&self, rank: usize) -> Option<(Vec<i64>, Vec<i64>)> {
        let (mut from, mut to) = (vec![0; rank], vec![i64::MAX; rank]);
        for (dim, first, end) in &self.sides {
            let (low, high) = (from.get_mut(*dim)?, to.get_mut(*dim)?);
            let (first, end) = (first.unwrap_or(0).max(0), end.unwrap_or(i64::MAX));
            if first >= end {
                return None;
            }
            // A dimension named twice: a box may touch both ranges and nothing between them, so only the
            // narrower range is safe.
            if end - first < *high - *low {
                (*low, *high) = (first, end);
            }
        }
        for set in &self.points {
            set.elements.first()?;
            for (dim, (first, end)) in set.dims.iter().zip(&set.hull) {
                let (low, high) = (from.get_mut(*dim)?, to.get_mut(*dim)?);
                if end - first < *high - *low {
                    (*low, *high) = (*first, *end);
                }
            }
        }
        Some((from, to))
    }
}

/// The elements of a set that also lie inside the sides along its dimensions.
fn within_sides(set: &PointSet, sides: &[Side]) -> PointSet {
    let range_along = |dim: &usize| {
        let of_dim = sides.iter().filter(|(of, ..)| of == dim);
        of_dim.fold((i64::MIN, i64::MAX), |all, (_, from, to)| {
            (all.0.max(from.unwrap_or(i64::MIN)), all.1.min(to.unwrap_or(i64::MAX)))
        })
    };
    let ranges: Vec<(i64, i64)> = set.dims.iter().map(range_along).collect();
    if ranges.iter().all(|range| *range == (i64::MIN, i64::MAX)) {
        return set.clone();
    }
    let is_inside = |element: &i64| {
        let mut rest = *element;
        ranges.iter().zip(&set.extents).rev().all(|((from, to), extent)| {
            let at = rest.rem_euclid((*extent).max(1));
            rest = rest.div_euclid((*extent).max(1));
            (*from..*to).contains(&at)
        })
    };
    let elements = set.elements.iter().copied().filter(is_inside).collect();
    PointSet::new(set.dims.clone(), set.extents.clone(), elements)
}

/// The elements whose coordinate is from `low` to `high`: the first, and one past the last.
fn elements(
    coordinate: &Coordinate,
    extent: Option<i64>,
    low: f64,
    high: f64,
) -> std::result::Result<(i64, i64), String> {
    let (count, at): (i64, &dyn Fn(i64) -> f64) = match coordinate {
        Coordinate::Uniform { first, spacing } => {
            (extent.unwrap_or(i64::MAX), &move |element| first + element as f64 * spacing)
        }
        Coordinate::Rectilinear(values) => {
            (extent.unwrap_or(i64::MAX).min(i64::try_from(values.len()).unwrap_or(i64::MAX)), &|element| {
                usize::try_from(element).ok().and_then(|i| values.get(i)).copied().unwrap_or(f64::NAN)
            })
        }
        Coordinate::Other(kind) => return Err(kind.clone()),
    };
    if count <= 0 || low.is_nan() || high.is_nan() {
        return Ok((0, 0));
    }
    // Two binary searches over ascending or descending coordinates.
    let rising = match coordinate {
        Coordinate::Uniform { spacing, .. } => *spacing >= 0.0,
        _ => at(count - 1) >= at(0),
    };
    let first = |passed: &dyn Fn(f64) -> bool| {
        let (mut from, mut to) = (0, count);
        while from < to {
            let middle = from + (to - from) / 2;
            if passed(at(middle)) { to = middle } else { from = middle + 1 }
        }
        from
    };
    Ok(match rising {
        true => (first(&|x| x >= low), first(&|x| x > high)),
        false => (first(&|x| x <= high), first(&|x| x < low)),
    })
}

fn named(dim: &Dim, variable: Option<&VariableAt>) -> String {
    match dim {
        Dim::Name(name) => name.clone(),
        Dim::Index(index) => {
            let row = variable.and_then(|variable| variable.row.as_ref());
            row.and_then(|row| row.decl.dims.get(*index).cloned()).unwrap_or_else(|| index.to_string())
        }
    }
}

fn refused(kind: &str, dim: &Dim, variable: Option<&VariableAt>) -> Error {
    let name = variable.map_or("", |variable| &variable.name);
    Error::invalid(format!(
        "a range of coordinates along '{}' of variable '{name}' has no elements: its grid is '{kind}'",
        named(dim, variable)
    ))
    .with_hint("give elements, as in box=z:50:100, or select variables on a uniform or rectilinear grid")
}
