//! What a file says of its fields, into the catalog: its variables with dimensions, attributes and coordinates, its own
//! attributes as parameters of the run, and the times of its steps. All of it is in the transaction of the file's fields.
//!
//! Invariants:
//! * what is declared already stays: of a run its parameters, of a step its time; another variable of a name that the
//!   run has is another version of it;
//! * a file is never refused for what it says here.

use std::collections::HashSet;

use fieldstone_core::schema::Schema;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    Annotate, Coordinate, Record, RunDecl, RunName, StepDecl, VariableDecl, VariableName,
};
use fieldstone_format::helper::DeclaredFile;

use super::netcdf::HEADER;
use crate::catalog::Catalog;
use crate::catalog::query::{Expr, NameTest, Query, Term};
use crate::catalog::value::Value;
use crate::interop::grib::borrowed;
use crate::interop::helper::Texts;

/// Most variables, or steps, of one record.
const MANY: usize = 4096;

/// Where a file goes: the store's schema, the keywords of its fields, the transaction.
pub(super) type Place<'a> = (&'a Schema, &'a Texts, Option<Id>);

/// Declares what a netCDF file says, where the schema gives its fields a run.
pub(super) fn netcdf(
    catalog: &Catalog,
    (schema, base, transaction): Place<'_>,
    file: DeclaredFile,
    payload: &[u8],
) -> Result<()> {
    let mut pairs = borrowed(base);
    pairs.push(("variable", HEADER));
    let Some((project, name)) = schema.run_of(&schema.resolve(&pairs)?) else { return Ok(()) };
    let run = RunName { project, name };
    let arrays = file.values(payload);
    let there = declare_run(catalog, &run, file.attrs, transaction)?;
    let coordinate = |at: usize| arrays.get(at).map(|values| coordinate(values));
    let variables = file.variables.into_iter().map(|variable| VariableDecl {
        variable: VariableName { name: variable.name, version: 0 },
        dtype: Some(variable.dtype),
        shape: Some(variable.shape),
        dims: variable.dims,
        attrs: variable.attrs,
        coords: variable.coords.into_iter().filter_map(|(dim, at)| Some((dim, coordinate(at)?))).collect(),
        decomposition: None,
        finders: None,
    });
    let good = |decl: &VariableDecl| Record::Variables(run.clone(), vec![decl.clone()]).check().is_ok();
    let variables: Vec<VariableDecl> = variables.filter(good).collect();
    for some in variables.chunks(MANY) {
        catalog.create_versions(&run, some.to_vec(), transaction)?;
    }
    match file.times.and_then(|at| arrays.get(at)) {
        Some(times) => declare_times(catalog, &run, times, there, transaction),
        None => Ok(()),
    }
}

/// Declares a run with these parameters, unless it is declared; whether it was there.
pub(super) fn declare_run(
    catalog: &Catalog,
    run: &RunName,
    params: Vec<(String, Value)>,
    transaction: Option<Id>,
) -> Result<bool> {
    let there = match catalog.run(Some(&run.project), &run.name, transaction) {
        Ok(info) if info.declared => return Ok(true),
        Ok(_) => true,
        Err(error) if error.kind() == ErrorKind::NotFound => false,
        Err(error) => return Err(error),
    };
    let decl = |params| RunDecl {
        run: run.clone(),
        job: None,
        params,
        created: 0,
        grid: None,
        notes: None,
        outside: None,
        annotate: Annotate::All,
    };
    // Names that nothing can ask for, and what is too large to be kept, are left to the file's header.
    let good = |pair: &(String, Value)| Record::Runs(vec![decl(vec![pair.clone()])]).check().is_ok();
    let params: Vec<(String, Value)> = params.into_iter().filter(good).collect();
    catalog.create_run(decl(params), true, transaction)?;
    Ok(there)
}

/// Declares the times of steps that have none, `there` where the run may have some.
fn declare_times(
    catalog: &Catalog,
    run: &RunName,
    times: &[f64],
    there: bool,
    transaction: Option<Id>,
) -> Result<()> {
    let mut known = HashSet::new();
    if there {
        let is = |name: &str| NameTest::Is(name.to_owned());
        let terms = [Term::Project(is(&run.project)), Term::Run(is(&run.name))];
        let expr = Expr::All(terms.into_iter().map(Expr::Term).collect());
        let steps = catalog.steps(&Query { expr, transaction, ..Query::all() })?;
        known.extend(steps.into_iter().filter(|step| step.time.is_some()).map(|step| step.step));
    }
    let steps = (0i64..).zip(times).filter(|(number, time)| !known.contains(number) && time.is_finite());
    let steps: Vec<StepDecl> = steps.map(|(number, time)| StepDecl { number, time: Some(*time) }).collect();
    for some in steps.chunks(MANY) {
        catalog.create_steps(run, some.to_vec(), transaction)?;
    }
    Ok(())
}

/// A coordinate: its first value and its spacing where these give each value to the last bit.
fn coordinate(values: &[f64]) -> Coordinate {
    if let [first, second, ..] = values {
        let spacing = second - first;
        let at = |i: usize| first + i as f64 * spacing;
        if values.iter().enumerate().all(|(i, value)| at(i).to_bits() == value.to_bits()) {
            return Coordinate::Uniform { first: *first, spacing };
        }
    }
    Coordinate::Rectilinear(values.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinate_is_uniform_where_nothing_is_lost() {
        let even: Vec<f64> = (0..5).map(|i| -90.0 + 0.25 * f64::from(i)).collect();
        assert!(
            matches!(coordinate(&even), Coordinate::Uniform { first, spacing } if first == -90.0 && spacing == 0.25)
        );
        for values in [vec![0.0], vec![0.0, 1.0, 3.0], vec![0.0, 0.1, 0.2, 0.3]] {
            assert!(matches!(coordinate(&values), Coordinate::Rectilinear(kept) if kept == values));
        }
    }
}
