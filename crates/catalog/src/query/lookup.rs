//! Rows of one state's tables for runs, tags, steps and variables, each read once and kept; and the cost of
//! reading them.

use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::catalog::{AttributeId, RunName, VariableDecl};

use super::cond::{Cond, KnownRow, Leaf, Names, Related, RunAt, TagAt};
use super::partition::VariableMap;
use super::results::Stats;
use super::variable_at::{PointsInRanges, VariableAt};
use crate::engine::{
    CoordinateRange, Flow, GridRegion, MeshRegion, NO_STEP, PointSet, RunId, RunSelect, Tables, VariableRow,
};

/// The tables, and the rows that were read from them.
pub(super) struct Lookup<'t> {
    pub(super) tables: &'t mut dyn Tables,
    pub(super) stats: Stats,
    /// Ranges of coordinates, a list for each requested region.
    regions: Rc<[Arc<[CoordinateRange]>]>,
    /// The condition on every variable, if all lookups share one.
    screen: Option<Cond>,
    /// Whether declarations of runs are read whatever the condition.
    pub(super) by_decl: bool,
    tags: Option<Rc<Vec<Rc<TagAt>>>>,
    names: Option<Rc<VariableMap>>,
    variables: Option<(RunId, Rc<VariableMap>)>,
    times: Option<(RunId, Rc<HashMap<i64, f64>>)>,
    sources: HashMap<i64, (AttributeId, u32)>,
}

impl<'t> Lookup<'t> {
    pub(super) fn new(tables: &'t mut dyn Tables, cond: &Cond, related: &[Related]) -> Lookup<'t> {
        let mut regions: Vec<Arc<[CoordinateRange]>> = Vec::new();
        for cond in [cond].into_iter().chain(related.iter().map(|one| &one.cond)) {
            cond.regions(&mut regions);
        }
        Lookup {
            tables,
            stats: Stats::default(),
            regions: regions.into(),
            screen: related.is_empty().then(|| cond.clone()),
            by_decl: related.iter().any(|one| one.cond.has(&Leaf::of_declared_run)),
            tags: None,
            names: None,
            variables: None,
            times: None,
            sources: HashMap::new(),
        }
    }

    /// Every tag, by name and version.
    pub(super) fn tags(&mut self) -> Result<Rc<Vec<Rc<TagAt>>>> {
        if let Some(tags) = &self.tags {
            return Ok(tags.clone());
        }
        let rows = self.tables.tags()?.into_iter();
        let mut tags: Vec<Rc<TagAt>> = rows
            .map(|row| {
                let (name, unit) = (Arc::from(row.decl.name.as_str()), Arc::from(row.decl.unit.as_str()));
                Rc::new(TagAt { id: row.id, version: row.version, name, unit, decl: row.decl })
            })
            .collect();
        tags.sort_by(|a, b| (&a.decl.name, a.version).cmp(&(&b.decl.name, b.version)));
        let tags = Rc::new(tags);
        self.tags = Some(tags.clone());
        Ok(tags)
    }

    /// Every name and version of a variable, ranked by them.
    pub(super) fn names(&mut self) -> Result<Rc<VariableMap>> {
        if let Some(names) = &self.names {
            return Ok(names.clone());
        }
        let mut rows = self.tables.variable_names()?;
        rows.sort_by(|a, b| a.1.cmp(&b.1));
        let ranked = rows.into_iter().zip(0u32..);
        let names = ranked.map(|((id, name), rank)| {
            let at = VariableAt {
                id,
                name: name.name.into(),
                version: name.version,
                rank,
                row: None,
                points: Vec::new(),
            };
            (id, Arc::new(at))
        });
        let names: Rc<VariableMap> = Rc::new(names.collect());
        self.names = Some(names.clone());
        Ok(names)
    }

    /// Times of the steps of a run, for steps that have one.
    pub(super) fn times(&mut self, run: RunId) -> Result<Rc<HashMap<i64, f64>>> {
        if let Some((of, times)) = &self.times
            && *of == run
        {
            return Ok(times.clone());
        }
        let rows = self.tables.steps(run, NO_STEP + 1..=i64::MAX)?.into_iter();
        let times = Rc::new(rows.filter_map(|row| Some((row.step, row.time?))).collect::<HashMap<_, _>>());
        self.times = Some((run, times.clone()));
        Ok(times)
    }

    /// Times of a few steps of a run, without reading those of all.
    pub(super) fn times_at(&mut self, run: RunId, steps: &[i64]) -> Result<Rc<HashMap<i64, f64>>> {
        const FEW: usize = 8;
        let cached = self.times.as_ref().is_some_and(|(of, _)| *of == run);
        if cached || steps.len() > FEW {
            return self.times(run);
        }
        let mut times = HashMap::new();
        for step in steps.iter().filter(|step| **step != NO_STEP) {
            let rows = self.tables.steps(run, *step..=*step)?;
            times.extend(rows.into_iter().filter_map(|row| Some((row.step, row.time?))));
        }
        Ok(Rc::new(times))
    }

    /// Reads the ids of the attributes in these batches.
    pub(super) fn ids(&mut self, mut new: Vec<i64>) -> Result<()> {
        const KEPT: usize = 200_000;
        if self.sources.len() > KEPT {
            self.sources.clear();
        }
        new.dedup();
        new.retain(|id| !self.sources.contains_key(id));
        new.sort_unstable();
        new.dedup();
        if !new.is_empty() {
            let sources = self.tables.sources(&new)?;
            self.sources.extend(new.into_iter().zip(sources));
        }
        Ok(())
    }

    /// The id of a row whose batch [`Lookup::ids`] has read, and the user who wrote it.
    pub(super) fn id(&self, batch: i64, row: i64) -> (AttributeId, u32) {
        let none = AttributeId { writer: None, sequence: 0, record: 0, row: 0 };
        let (first, user) = self.sources.get(&batch).copied().unwrap_or((none, u32::MAX));
        (AttributeId { row: first.row.wrapping_add(u32::try_from(row).unwrap_or(0)), ..first }, user)
    }

    /// Variables, with a run's declarations of them.
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

    /// Elements of a run's meshes and grids in the requested regions.
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
        // A variable that cannot match needs no points.
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

    /// Runs that a condition does not exclude, by project and name; their declarations only if the condition
    /// needs them.
    pub(super) fn runs(&mut self, cond: &Cond, ids: Option<&BTreeMap<RunId, ()>>) -> Result<Vec<Rc<RunAt>>> {
        let mut found = Vec::new();
        let mut take = |id: RunId, name: &RunName, decl| {
            let run =
                RunAt { id, project: name.project.as_str().into(), name: name.name.as_str().into(), decl };
            let left = cond.known(&KnownRow { run: Some(&run), ..KnownRow::default() })?;
            if !left.is(false) {
                found.push(Rc::new(run));
            }
            Ok(Flow::More)
        };
        let by_decl = self.by_decl || cond.has(&Leaf::of_declared_run);
        let rows = match exact_runs(cond) {
            Some(mut names) => {
                names.sort_unstable();
                names.dedup();
                let mut rows = Vec::new();
                for name in names {
                    rows.extend(self.tables.runs(&RunSelect::Named(name))?);
                }
                Some(rows)
            }
            None => match ids {
                Some(ids) if by_decl || ids.len() <= 64 => {
                    let mut rows = Vec::new();
                    let all: Vec<RunId> = ids.keys().copied().collect();
                    for some in all.chunks(512) {
                        rows.extend(self.tables.runs(&RunSelect::Ids(some.to_vec()))?);
                    }
                    Some(rows)
                }
                None if by_decl => Some(self.tables.runs(&RunSelect::All)?),
                _ => None,
            },
        };
        match rows {
            Some(rows) => {
                for row in rows.into_iter().filter(|row| ids.is_none_or(|ids| ids.contains_key(&row.id))) {
                    let name = row.decl.run.clone();
                    take(row.id, &name, by_decl.then(|| Arc::new((row.decl, row.declared))))?;
                }
            }
            None => self.tables.run_names(&mut |id, name| {
                if ids.is_none_or(|ids| ids.contains_key(&id)) {
                    take(id, name, None)
                } else {
                    Ok(Flow::More)
                }
            })?,
        }
        found.sort_by(|a, b| (&a.project, &a.name).cmp(&(&b.project, &b.name)));
        Ok(found)
    }
}

/// The names of all runs that can match, if the condition lists them.
pub(super) fn exact_runs(cond: &Cond) -> Option<Vec<String>> {
    match cond {
        Cond::Const(false) => Some(Vec::new()),
        Cond::Leaf(Leaf::Run(names)) => Names::exact(names),
        Cond::All(list) => list.iter().filter_map(exact_runs).min_by_key(Vec::len),
        Cond::Any(list) => {
            let all: Option<Vec<_>> = list.iter().map(exact_runs).collect();
            all.map(|lists| lists.concat())
        }
        _ => None,
    }
}

/// Elements of a mesh in ranges, for a variable on it. If no dimension of the variable has the mesh's
/// dimension name, the elements are along the first one.
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
