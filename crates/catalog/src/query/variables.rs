//! The variables of a run as a query looks at them: what the run says of each, and what its mesh or grid has of the
//! regions that are asked for.

use std::rc::Rc;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::catalog::VariableDecl;

use super::lookup::Lookup;
use super::partition::VariableMap;
use super::variable_at::{PointsInRanges, VariableAt};
use crate::engine::{CoordinateRange, GridRegion, MeshRegion, PointSet, RunId, VariableRow};

impl Lookup<'_> {
    /// Variables with what a run says of them.
    pub(super) fn variables(&mut self, run: RunId) -> Result<Rc<VariableMap>> {
        if let Some((of, variables)) = &self.variables
            && *of == run
        {
            return Ok(variables.clone());
        }
        let names = self.names()?;
        let rows = self.tables.variables(run)?;
        let mut points = self.points(run, &rows, &names)?.into_iter();
        let own = rows.into_iter().filter_map(|row| {
            let points = points.next().unwrap_or_default();
            let at = names.get(&row.id)?;
            Some((row.id, Arc::new(VariableAt { row: Some(Arc::new(row)), points, ..(**at).clone() })))
        });
        let variables = Rc::new(own.collect::<VariableMap>());
        self.variables = Some((run, variables.clone()));
        Ok(variables)
    }

    /// What the meshes and grids of a run's variables have of the regions that are asked for.
    fn points(
        &mut self,
        run: RunId,
        rows: &[VariableRow],
        names: &VariableMap,
    ) -> Result<Vec<Vec<Arc<PointsInRanges>>>> {
        let mut found: Vec<Vec<Arc<PointsInRanges>>> = vec![Vec::new(); rows.len()];
        if self.regions.is_empty() {
            return Ok(found);
        }
        // What cannot match needs no points.
        let may_match = |row: &VariableRow| {
            let at = names.get(&row.id);
            let own =
                |at: &Arc<VariableAt>| VariableAt { row: Some(Arc::new(row.clone())), ..(**at).clone() };
            self.screen.as_ref().is_none_or(|cond| at.is_some_and(|at| !cond.rules_out(&own(at))))
        };
        let asked: Vec<bool> = rows.iter().map(may_match).collect();
        if !asked.contains(&true) {
            return Ok(found);
        }
        for ranges in self.regions.clone().iter() {
            for (variables, region) in self.tables.mesh_regions(run, ranges)? {
                for (row, found) in rows.iter().zip(&mut found) {
                    if variables.contains(&row.decl.variable) {
                        found.push(Arc::new(on_mesh(&row.decl, ranges, &region)));
                    }
                }
            }
            let grids = self.tables.grid_regions(run, rows, &asked, ranges)?;
            for (grid, found) in grids.into_iter().zip(&mut found) {
                if let Some(GridRegion { decided, sets, steps }) = grid
                    && found.iter().all(|other| other.ranges != *ranges)
                {
                    let ranges = ranges.clone();
                    found.push(Arc::new(PointsInRanges { ranges, decided, behind_dims: false, sets, steps }));
                }
            }
        }
        Ok(found)
    }
}

/// What a mesh has in ranges, of a variable on it. Of a mesh whose dimension is not named it is the first.
fn on_mesh(decl: &VariableDecl, ranges: &Arc<[CoordinateRange]>, region: &MeshRegion) -> PointsInRanges {
    let dim = decl.dims.iter().position(|name| *name == region.dimension).unwrap_or(0);
    let extent = decl
        .shape
        .as_ref()
        .and_then(|shape| shape.get(dim))
        .map_or(i64::MAX, |extent| i64::try_from(*extent).unwrap_or(i64::MAX));
    let sets = vec![PointSet::new(vec![dim], vec![extent], region.elements.clone())];
    let (ranges, decided) = (ranges.clone(), region.decided.clone());
    PointsInRanges { ranges, decided, behind_dims: true, sets, steps: None }
}
