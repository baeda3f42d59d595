//! Declares a file's metadata to the catalog: its variables with dimensions, attributes and coordinates, its own
//! attributes as parameters of the run, and the times of its steps. All of it is in the transaction of the file's
//! fields.
//!
//! Invariants:
//! * existing declarations stay: parameters of a run, times of a step; another variable of a name that the run has
//!   becomes another version of it;
//! * a file is never refused because of its metadata.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use fieldstone_core::key::FieldKey;
use fieldstone_core::schema::{Schema, step_number};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::catalog::{
    Annotate, Coordinate, Record, RunDecl, RunName, StepDecl, VariableDecl, VariableName,
};
use fieldstone_format::helper::DeclaredFile;

use super::netcdf::HEADER;
use crate::Session;
use crate::catalog::CatalogAccess;
use crate::catalog::query::{Expr, NameTest, Query, Term};
use crate::catalog::value::{Value, parse_moment};
use crate::interop::grib::{GRID, borrowed, grid_name};
use crate::interop::helper::Texts;
use crate::interop::shared_helper::SharedHelper;

/// Maximum number of variables, or steps, in one record.
const MANY: usize = 4096;
/// Messages in one question to the helper, and their bytes; both are approximate.
const ASKED: usize = 32;
const ASKED_BYTES: usize = 32 << 20;

/// The destination of a file: the store's schema, the keywords of its fields, the session.
pub(super) type Place<'a> = (&'a Schema, &'a Texts, &'a Session);

/// Declares a netCDF file's metadata, if the schema gives its fields a run, except variables that are `known`.
pub(super) fn netcdf(
    catalog: &dyn CatalogAccess,
    (schema, base, session): Place<'_>,
    file: DeclaredFile,
    payload: &[u8],
    known: &dyn Fn(&RunName, &str) -> bool,
) -> Result<()> {
    let mut pairs = borrowed(base);
    pairs.push(("variable", HEADER));
    let Some((project, name)) = schema.run_of(&schema.resolve(&pairs)?) else { return Ok(()) };
    let run = RunName { project, name };
    let arrays = file.values(payload);
    let there = declare_run(catalog, &run, file.attrs, session)?;
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
    let variables = variables.filter(|decl| !known(&run, &decl.variable.name));
    let variables: Vec<VariableDecl> = variables.filter(good).collect();
    for some in variables.chunks(MANY) {
        catalog.create_versions(&run, some.to_vec(), session)?;
    }
    match file.times.and_then(|at| arrays.get(at)) {
        Some(times) => declare_times(catalog, &run, (0..).zip(times.iter().copied()), there, session),
        None => Ok(()),
    }
}

/// The declarations for the messages of a GRIB file: gathered while they are archived.
#[derive(Default)]
pub(super) struct GribDeclared {
    /// The first message of each run, parameter and grid, until eccodes is asked about it.
    messages: Vec<(RunName, String, String, Vec<u8>)>,
    bytes: usize,
    variables: BTreeMap<RunName, Vec<VariableDecl>>,
    seen: HashSet<(RunName, String, String, String)>,
    /// The steps of each run, with the times for which they are valid.
    times: BTreeMap<RunName, BTreeMap<i64, StepTime>>,
}

/// The time for which the fields of a step are valid, in seconds since 1970; NaN if they differ.
struct StepTime {
    time: f64,
    /// Whether the header gives it, contrary to date, time and step of the key.
    by_header: bool,
}

impl StepTime {
    /// From a key's date, or that of a hindcast, time and step, or from its `validity`.
    fn of(key: &FieldKey, step: i64) -> Option<StepTime> {
        let text = |keyword: &str| key.get(keyword).map(|value| value.text());
        if let Some(validity) = text("validity") {
            let (date, time) = validity.split_at_checked(8)?;
            return Some(StepTime { time: start(Some(date), Some(time))?, by_header: true });
        }
        let date = text("hdate").or_else(|| text("date"));
        let start = start(date.as_deref(), text("time").as_deref())?;
        Some(StepTime { time: start + step_number::end(step) as f64, by_header: false })
    }

    /// Adds another field of the step: if only headers disagree with their keys, the keys decide the step's time.
    fn meet(&mut self, other: &StepTime) {
        if self.by_header && !other.by_header {
            *self = StepTime { ..*other };
        } else if self.by_header == other.by_header && self.time != other.time {
            self.time = f64::NAN;
        }
    }
}

impl GribDeclared {
    /// Adds a message that was archived under a key.
    pub(super) fn add(&mut self, schema: &Schema, key: &Texts, message: &[u8]) -> Result<()> {
        let resolved = schema.resolve(&borrowed(key))?;
        let (Some((project, name)), Some(variable)) =
            (schema.run_of(&resolved), schema.variable_of(&resolved))
        else {
            return Ok(());
        };
        let run = RunName { project, name };
        let text = |keyword: &str| key.iter().find(|(own, _)| own == keyword).map(|(_, text)| text.as_str());
        if let Some(step) = schema.step_of(&resolved)
            && let Some(time) = StepTime::of(&resolved, step)
        {
            let times = self.times.entry(run.clone()).or_default();
            times.entry(step).and_modify(|known| known.meet(&time)).or_insert(time);
        }
        let grid = grid_name(message);
        // If eccodes has no name for a parameter, further numbers identify it.
        let parameter = text("parameter").unwrap_or_default().to_owned();
        if self.seen.insert((run.clone(), variable.to_string(), parameter, grid.clone())) {
            self.bytes += message.len();
            self.messages.push((run, variable.into_owned(), grid, message.to_vec()));
        }
        Ok(())
    }

    /// Asks the helper about the messages, if there are enough of them or `all` is set. Messages that it cannot
    /// describe stay undeclared, but are still fields.
    pub(super) fn ask(&mut self, reader: &mut SharedHelper<'_>, all: bool) {
        if self.messages.is_empty() || !(all || self.messages.len() >= ASKED || self.bytes >= ASKED_BYTES) {
            return;
        }
        self.bytes = 0;
        let messages = std::mem::take(&mut self.messages);
        let bytes: Vec<&[u8]> = messages.iter().map(|(.., message)| message.as_slice()).collect();
        let Ok((file, payload)) = reader.get().and_then(|helper| helper.grib_declared(&bytes)) else {
            reader.helper = None;
            return;
        };
        let arrays = file.values(&payload);
        for ((run, name, grid, _), said) in messages.into_iter().zip(file.variables) {
            if said.name.is_empty() {
                continue;
            }
            let mut attrs = said.attrs;
            attrs.push((GRID.to_owned(), Value::Text(grid)));
            let coord = |(dim, at): (u32, usize)| Some((dim, coordinate(arrays.get(at).map(Vec::as_slice)?)));
            self.variables.entry(run).or_default().push(VariableDecl {
                variable: VariableName { name, version: 0 },
                dtype: None,
                shape: Some(said.shape),
                dims: said.dims,
                attrs,
                coords: said.coords.into_iter().filter_map(coord).collect(),
                decomposition: None,
                finders: None,
            });
        }
    }
}

/// Declares the messages of a GRIB file: each parameter with its name, unit and grid, and the times of steps.
pub(super) fn grib(
    catalog: &dyn CatalogAccess,
    reader: &mut SharedHelper<'_>,
    mut declared: GribDeclared,
    session: &Session,
) -> Result<()> {
    declared.ask(reader, true);
    let GribDeclared { variables: by_run, times, .. } = declared;
    let mut there = BTreeMap::new();
    for run in by_run.keys().chain(times.keys()).collect::<BTreeSet<_>>() {
        there.insert(run.clone(), declare_run(catalog, run, Vec::new(), session)?);
    }
    for (run, mut variables) in by_run {
        variables.retain(|decl| Record::Variables(run.clone(), vec![decl.clone()]).check().is_ok());
        for some in variables.chunks(MANY) {
            catalog.create_versions(&run, some.to_vec(), session)?;
        }
    }
    for (run, times) in times {
        let there = there.get(&run).copied().unwrap_or(true);
        let times = times.into_iter().map(|(step, own)| (step, own.time));
        declare_times(catalog, &run, times, there, session)?;
    }
    Ok(())
}

/// Seconds from 1970 to the date and time of a key, such as `20240229` and `1200`.
fn start(date: Option<&str>, time: Option<&str>) -> Option<f64> {
    let number =
        |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<i64>().ok()).flatten();
    let date = date.filter(|date| date.len() == 8).and_then(number)?;
    let time = time.map_or(Some(0), |time| number(time).filter(|_| time.len() <= 4))?;
    let (year, month, day) = (date / 10_000, date / 100 % 100, date % 100);
    let midnight = parse_moment(&format!("{year:04}-{month:02}-{day:02}"))?;
    Some(midnight as f64 / 1e9 + (3600 * (time / 100) + 60 * (time % 100)) as f64)
}

/// Declares a run with these parameters, unless it is declared; true if it was.
pub(super) fn declare_run(
    catalog: &dyn CatalogAccess,
    run: &RunName,
    params: Vec<(String, Value)>,
    session: &Session,
) -> Result<bool> {
    let there = match catalog.run(Some(&run.project), &run.name, session) {
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
        if_exists: None,
        state: None,
    };
    // Names that no request can use, and values too large for the catalog, stay in the file's header.
    let good = |pair: &(String, Value)| Record::Runs(vec![decl(vec![pair.clone()])]).check().is_ok();
    let params: Vec<(String, Value)> = params.into_iter().filter(good).collect();
    catalog.create_run(decl(params), true, session)?;
    Ok(there)
}

/// Declares the times of steps without one; `there`: the run may have some.
fn declare_times(
    catalog: &dyn CatalogAccess,
    run: &RunName,
    times: impl Iterator<Item = (i64, f64)>,
    there: bool,
    session: &Session,
) -> Result<()> {
    let mut known = HashSet::new();
    if there {
        let is = |name: &str| NameTest::Is(name.to_owned());
        let terms = [Term::Project(is(&run.project)), Term::Run(is(&run.name))];
        let expr = Expr::All(terms.into_iter().map(Expr::Term).collect());
        let steps = catalog.steps(&Query { expr, session: session.clone(), ..Query::all() })?;
        known.extend(steps.into_iter().filter(|step| step.time.is_some()).map(|step| step.step));
    }
    let steps = times.filter(|(number, time)| !known.contains(number) && time.is_finite());
    let steps: Vec<StepDecl> = steps.map(|(number, time)| StepDecl { number, time: Some(time) }).collect();
    for some in steps.chunks(MANY) {
        catalog.create_steps(run, some.to_vec(), session)?;
    }
    Ok(())
}

/// A coordinate: its first value and its spacing if these give each value to the last bit.
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
