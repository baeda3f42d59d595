//! Coordinates that have the dimension along which a variable is split: grids that move, trajectories, files that
//! repeat their grid at each time (WRF).
//!
//! If such a coordinate is also split, its field of a step has the places of the variable's field of that step; if it
//! is one field, its slice at that index does. Both are split along one dimension, from the header of their file
//! (`spec/netcdf-header.md`); in a run without a header, steps mean the same for all variables.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone_catalog::engine::{GridRegion, PointSet};
use fieldstone_core::Result;
use fieldstone_format::catalog::VariableDecl;
use fieldstone_store::api::RetrieveOptions;

use super::{CoordinateSource, Coordinates, FieldsBySteps, GridAxis, ReadField, RunGrids, Together};
use crate::interop::ingest::HEADER;
use crate::unpacked::header_of;

/// The source of a coordinate's values at each step.
pub(super) enum Stepped<'a> {
    /// In a field of its own.
    Fields(&'a VariableDecl, Arc<FieldsBySteps>),
    /// In a slice of fields of this shape, along one of their dimensions.
    Slices { fields: Arc<Vec<ReadField>>, shape: Vec<usize>, dim: usize },
}

impl Stepped<'_> {
    fn steps(&self) -> BTreeSet<i64> {
        match self {
            Stepped::Fields(_, steps) => steps.keys().copied().collect(),
            Stepped::Slices { shape, dim, .. } => {
                (0..shape.get(*dim).map_or(0, |n| i64::try_from(*n).unwrap_or(i64::MAX))).collect()
            }
        }
    }

    fn at(&self, step: i64, grids: &RunGrids<'_>) -> Result<Vec<ReadField>> {
        match self {
            Stepped::Fields(variable, steps) => {
                steps.get(&step).map_or(Ok(Vec::new()), |fields| grids.read_all(variable, fields))
            }
            Stepped::Slices { fields, shape, dim } => Ok(fields
                .iter()
                .map(|(others, all)| {
                    let values = slice(&all.values, shape, *dim, usize::try_from(step).unwrap_or(usize::MAX));
                    (others.clone(), Arc::new(Coordinates::new(values)))
                })
                .collect()),
        }
    }
}

/// The elements of an array at an index along one of its dimensions, in C order.
fn slice(values: &[f64], shape: &[usize], dim: usize, index: usize) -> Vec<f64> {
    let inner: usize = shape.iter().skip(dim + 1).product();
    let rows = shape.get(dim).copied().unwrap_or(0);
    let blocks = values.chunks_exact(inner.max(1)).skip(index).step_by(rows.max(1));
    blocks.flatten().copied().collect()
}

impl<'a> RunGrids<'a> {
    /// The fields of a coordinate by steps, if it is split along the variable's split dimension.
    pub(super) fn of_steps(
        &mut self,
        coordinate: &'a VariableDecl,
        variable: &VariableDecl,
    ) -> Result<Option<CoordinateSource<'a>>> {
        let steps = self.stepped_fields(coordinate)?;
        if steps.is_empty() || self.leading(coordinate)? != self.leading(variable)? {
            return Ok(None);
        }
        Ok(Some(CoordinateSource::Steps(Stepped::Fields(coordinate, steps))))
    }

    /// The slices of a coordinate along the variable's split dimension, and the variable's dimensions along which they
    /// lie.
    pub(super) fn slices(
        &mut self,
        coordinate: &'a VariableDecl,
        variable: &VariableDecl,
    ) -> Result<Option<(Vec<usize>, CoordinateSource<'a>)>> {
        let Some(lead) = self.leading(variable)? else { return Ok(None) };
        let (Some(shape), Some(own)) = (&coordinate.shape, &variable.shape) else { return Ok(None) };
        let Some(dim) = coordinate.dims.iter().position(|name| *name == lead) else { return Ok(None) };
        if coordinate.dims.len() != shape.len() {
            return Ok(None);
        }
        let rest = coordinate.dims.iter().zip(shape).enumerate().filter(|(at, _)| *at != dim);
        let place = |(_, (name, extent)): (usize, (&String, &u64))| {
            let at = variable.dims.iter().position(|other| other == name)?;
            (own.get(at) == Some(extent)).then_some(at)
        };
        let Some(dims) = rest.map(place).collect::<Option<Vec<usize>>>() else { return Ok(None) };
        let shape: Vec<usize> = shape.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
        let fields = self.whole_fields(coordinate)?;
        Ok((!fields.is_empty())
            .then(|| (dims, CoordinateSource::Steps(Stepped::Slices { fields, shape, dim }))))
    }

    /// The dimension along which a variable is split, from its file.
    fn leading(&mut self, variable: &VariableDecl) -> Result<Option<String>> {
        if self.leading.is_none() {
            self.leading = Some(leading_dims(self)?);
        }
        Ok(self.leading.as_ref().and_then(|all| all.get(&variable.variable.name)).cloned())
    }

    /// The elements in ranges at each step; `fixed` are the sets of coordinates that are the same at all steps.
    pub(super) fn moving(
        &self,
        decided: Vec<bool>,
        fixed: Vec<PointSet>,
        groups: &[Together<'_, 'a>],
    ) -> Result<GridRegion> {
        let mut steps: BTreeMap<i64, Vec<PointSet>> = BTreeMap::new();
        for step in steps_of(groups) {
            let mut sets = fixed.clone();
            for group in groups {
                let set = self.at_step(group, step)?;
                if set.elements.is_empty() {
                    break;
                }
                sets.push(set);
            }
            if sets.len() == fixed.len() + groups.len() {
                steps.insert(step, sets);
            }
        }
        let mut sets = fixed;
        for (place, group) in (sets.len()..).zip(groups) {
            let mut all: BTreeSet<i64> = BTreeSet::new();
            let mut last: Option<&Arc<[i64]>> = None;
            for set in steps.values().filter_map(|sets| sets.get(place)) {
                if !last.is_some_and(|last| Arc::ptr_eq(last, &set.elements)) {
                    all.extend(set.elements.iter());
                }
                last = Some(&set.elements);
            }
            let elements = all.into_iter().collect();
            sets.push(PointSet::new(group.dims.clone(), group.extents.clone(), elements));
        }
        Ok(GridRegion { decided, sets, steps: Some(steps) })
    }

    /// The elements of one step.
    fn at_step(&self, group: &Together<'_, 'a>, step: i64) -> Result<PointSet> {
        let mut axes = Vec::with_capacity(group.members.len());
        for (axis, _) in &group.members {
            axes.push(match &axis.values {
                CoordinateSource::Steps(stepped) => Some(GridAxis {
                    axis: axis.axis.clone(),
                    dims: axis.dims.clone(),
                    values: CoordinateSource::Fields(Arc::new(stepped.at(step, self)?)),
                }),
                _ => None,
            });
        }
        let members: Vec<(&GridAxis<'_>, (f64, f64))> = group
            .members
            .iter()
            .zip(&axes)
            .map(|((axis, range), own)| (own.as_ref().unwrap_or(axis), *range))
            .collect();
        self.elements(&group.dims, &group.extents, &members)
    }
}

/// The steps at which all coordinates that vary by step have values.
fn steps_of(groups: &[Together<'_, '_>]) -> BTreeSet<i64> {
    let stepped = groups.iter().flat_map(|group| &group.members).filter_map(|(axis, _)| match &axis.values {
        CoordinateSource::Steps(stepped) => Some(stepped.steps()),
        _ => None,
    });
    stepped.reduce(|all, own| all.intersection(&own).copied().collect()).unwrap_or_default()
}

/// The dimension along which each variable of a run's files is split, by its path.
fn leading_dims(grids: &RunGrids<'_>) -> Result<HashMap<String, String>> {
    let mut found = HashMap::new();
    let Some(request) = grids.request_for(HEADER) else { return Ok(found) };
    let all = RetrieveOptions { strict: false, ..RetrieveOptions::default() };
    for field in grids.fields.retrieve(&request, &all)?.iter() {
        let Some(header) = header_of(&field?) else { continue };
        for group in header["groups"].as_array().into_iter().flatten() {
            let path = group["path"].as_str().unwrap_or_default();
            for variable in group["variables"].as_array().into_iter().flatten() {
                let (name, lead) = (variable["name"].as_str(), variable["dims"][0].as_str());
                if let (Some(name), Some(lead), Some(true)) = (name, lead, variable["split"].as_bool()) {
                    let whole = if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") };
                    found.entry(whole).or_insert_with(|| lead.to_owned());
                }
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::slice;

    #[test]
    fn slices_are_those_of_the_array() {
        let values: Vec<f64> = (0..24).map(f64::from).collect();
        assert_eq!(slice(&values, &[2, 3, 4], 0, 1), values[12..]);
        assert_eq!(slice(&values, &[2, 3, 4], 1, 2), [8.0, 9.0, 10.0, 11.0, 20.0, 21.0, 22.0, 23.0]);
        assert_eq!(slice(&values, &[2, 3, 4], 2, 3), [3.0, 7.0, 11.0, 15.0, 19.0, 23.0]);
        assert_eq!(slice(&values, &[24], 0, 5), [5.0]);
        assert!(slice(&values, &[24], 0, 24).is_empty());
    }
}
