//! Writing to the catalog: each call converts its arguments, releases the interpreter's lock and calls the facade.

use fieldstone::catalog::Deletion;
use fieldstone::catalog::value::{Value, ValueType};
use fieldstone::catalog::{
    Annotate, Column, Coordinate, RunDecl, TagDecl, Values, VariableDecl, VariableName,
};
use fieldstone::outside::{Outside, repoint};
use fieldstone::{Array, Compression, Run, RunStatus, TagRef, WriteOptions};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

use super::columns::{self, Cells};
use super::read::PyQuery;
use super::{PyCatalog, RunPair, features, places, run_name, values};
use crate::data::{self, Data};
use crate::errors::{Raise, invalid, utf8};
use crate::log::Waiting as _;
use crate::opening;
use crate::request::type_name;
use crate::sequence::Several;
use crate::store::session;

/// Name, version, dtype, shape, dims, attributes, coordinates, decomposition and finders of a variable.
type VariableRow<'py> = (
    String,
    i64,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
    Option<Several<String>>,
    Option<Bound<'py, PyDict>>,
    Several<(u32, Bound<'py, PyAny>)>,
    Option<Bound<'py, PyAny>>,
    Option<Bound<'py, PyAny>>,
);

/// Name, version asked for, type and unit of a tag.
type TagRow = (String, i64, String, String);

fn optional<'a, 'py>(object: &'a Option<Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    object.as_ref().filter(|object| !object.is_none())
}

/// Coordinates along a dimension: (first, spacing), the name of another kind of grid, or one per element.
fn coordinate(object: &Bound<'_, PyAny>) -> PyResult<Coordinate> {
    if let Ok(name) = object.cast::<PyString>() {
        return Ok(Coordinate::Other(utf8(name)?.to_owned()));
    }
    if object.is_instance_of::<PyTuple>() && object.hasattr("spacing")? {
        let (first, spacing) = object.extract()?;
        return Ok(Coordinate::Uniform { first, spacing });
    }
    places::floats(object, "coords").map(Coordinate::Rectilinear)
}

fn variable(row: VariableRow<'_>) -> PyResult<VariableDecl> {
    let (name, version, dtype, shape, dims, attrs, coords, decomposition, finders) = row;
    let attrs = values::named(attrs.as_ref(), "attrs")?;
    let coords = coords.0.iter().map(|(dim, object)| Ok((*dim, coordinate(object)?)));
    let dtype = optional(&dtype).map(data::parse_dtype).transpose()?;
    let finders = optional(&finders).map(features::declared).transpose()?;
    if let (Some(dtype), Some(_)) = (dtype, &finders) {
        fieldstone::finders::check_dtype(dtype).or_raise()?;
    }
    Ok(VariableDecl {
        dtype,
        shape: data::numbers("shape", optional(&shape))?,
        dims: dims.map(|dims| dims.0).unwrap_or_default(),
        attrs,
        coords: coords.collect::<PyResult<_>>()?,
        decomposition: data::numbers("decomposition", optional(&decomposition))?,
        finders,
        variable: VariableName { name, version },
    })
}

/// The values of a batch for a tag of type `kind`: one for all rows, or one per row.
fn batch_values(
    value: &Bound<'_, PyAny>,
    cells: Option<Cells>,
    kind: ValueType,
    tag: &str,
) -> PyResult<(Values, bool)> {
    let what = format!("the value of tag {tag}");
    match cells {
        Some(cells) => Ok((columns::values(cells, kind, &what)?, false)),
        None => Ok((columns::typed(vec![values::of_kind(value, kind, &what)?], kind, &what)?, true)),
    }
}

#[pymethods]
impl PyCatalog {
    #[allow(clippy::too_many_arguments, reason = "the parts of a run")]
    fn create_run(
        &self,
        py: Python<'_>,
        run: RunPair,
        params: Option<&Bound<'_, PyDict>>,
        job: Option<String>,
        created: i64,
        grid: Option<&Bound<'_, PyAny>>,
        notes: Option<String>,
        outside: Option<&Bound<'_, PyAny>>,
        annotate: &str,
        if_exists: Option<&str>,
        exist_ok: bool,
        txn: Option<&str>,
    ) -> PyResult<()> {
        let annotate = match annotate {
            "all" => Annotate::All,
            "owner" => Annotate::Owner,
            other => return Err(invalid(format!("annotate={other:?}"), "give \"all\" or \"owner\"")),
        };
        let outside = outside.map(|outside| values::infer(outside, "outside")).transpose()?;
        if let Some(outside) = &outside {
            Outside::parse(outside).or_raise()?;
        }
        let decl = RunDecl {
            run: run_name(run),
            job,
            params: values::named(params, "params")?,
            created,
            grid: grid.map(|grid| values::infer(grid, "grid")).transpose()?,
            notes,
            outside,
            annotate,
            if_exists: opening::if_exists(if_exists)?,
            state: None,
        };
        let txn = session(txn)?;
        py.waiting(|| self.catalog().create_run(decl, exist_ok, &txn)).or_raise()
    }

    fn create_variables(
        &self,
        py: Python<'_>,
        run: RunPair,
        rows: Several<VariableRow<'_>>,
        txn: Option<&str>,
    ) -> PyResult<()> {
        let variables = rows.0.into_iter().map(variable).collect::<PyResult<Vec<_>>>()?;
        let (run, txn) = (run_name(run), session(txn)?);
        py.waiting(|| self.catalog().create_variables(&run, variables, &txn)).or_raise()
    }

    fn create_steps(
        &self,
        py: Python<'_>,
        run: RunPair,
        numbers: &Bound<'_, PyAny>,
        times: Option<&Bound<'_, PyAny>>,
        txn: Option<&str>,
    ) -> PyResult<()> {
        let numbers = match places::integers(numbers, "numbers")? {
            Column::One(number) => vec![number],
            Column::Each(numbers) => numbers,
        };
        let times = times.map(|times| places::floats(times, "times")).transpose()?;
        let run = Run::new(&self.handle, run_name(run), &session(txn)?);
        py.waiting(|| run.create_steps(numbers, times)).or_raise()
    }

    /// Creates tags and returns how they are shown: name, version asked for, type, unit, version to show.
    fn create_tags(
        &self,
        py: Python<'_>,
        rows: Several<TagRow>,
        txn: Option<&str>,
    ) -> PyResult<Vec<super::rows::ShownTag>> {
        let tags = rows.0.into_iter().map(|(name, version, kind, unit)| {
            Ok(TagDecl { name, version, kind: ValueType::parse(&kind).or_raise()?, unit })
        });
        let (tags, txn) = (tags.collect::<PyResult<Vec<_>>>()?, session(txn)?);
        let made = py.waiting(|| self.catalog().create_tags(tags, &txn)).or_raise()?;
        Ok(made.into_iter().map(super::rows::tag_row).collect())
    }

    /// Adds attributes; `tag` is a name, (name, version), or a tag's whole row.
    #[allow(clippy::too_many_arguments, reason = "the parts of an attribute")]
    fn annotate(
        &self,
        py: Python<'_>,
        run: RunPair,
        tag: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        variable: Option<&Bound<'_, PyAny>>,
        version: i64,
        step: Option<&Bound<'_, PyAny>>,
        start: Option<&Bound<'_, PyAny>>,
        count: Option<&Bound<'_, PyAny>>,
        cells: Option<&Bound<'_, PyAny>>,
        keywords: Option<&Bound<'_, PyAny>>,
        level: Option<&Bound<'_, PyAny>>,
        unit: Option<&str>,
        many: bool,
        txn: Option<&str>,
    ) -> PyResult<()> {
        let txn = session(txn)?;
        let run = Run::new(&self.handle, run_name(run), &txn);
        let name = tag_name(tag)?;
        let given = match many {
            true => columns::cells(value, &format!("the values of tag {name}"))?,
            false => None,
        };
        let tag = match tag.extract::<TagRow>() {
            Ok((name, _, _, own)) if unit.is_some_and(|unit| unit != own) => {
                let what =
                    format!("unit={:?} for tag {name}, whose values are in {own:?}", unit.unwrap_or(""));
                return Err(invalid(what, "give the name of the tag, or leave out unit="));
            }
            Ok((name, version, kind, unit)) => {
                TagDecl { name, version, kind: ValueType::parse(&kind).or_raise()?, unit }
            }
            Err(_) => {
                let version = match tag.cast::<PyString>() {
                    Ok(_) => None,
                    Err(_) => Some(tag.get_item(1)?.extract::<i64>()?),
                };
                let kind = match &given {
                    Some(cells) => cells.kind(),
                    None => kind_of(values::infer(value, &format!("the value of tag {name}"))?),
                };
                let made = py.waiting(|| match unit {
                    Some(unit) => self.catalog().tag_in_unit(&name, version, kind, unit, &txn),
                    None => run.tag(TagRef::Name(name.clone(), version), kind),
                });
                made.or_raise()?
            }
        };
        let one_array = tag.kind == ValueType::Array && many && is_flat(value, given.as_ref())?;
        let (values, one_value) = batch_values(value, given.filter(|_| !one_array), tag.kind, &tag.name)?;
        let target = places::target(variable, level, version, step, start, count, cells, keywords)?;
        py.waiting(|| match many {
            true => run.annotate_rows(tag, values, one_value, &target),
            false => run.annotate_one(tag, values, &target),
        })
        .or_raise()
    }

    /// Adds an array as a variable of a run at a step.
    #[allow(clippy::too_many_arguments, reason = "the parts of a piece")]
    fn write(
        &self,
        py: Python<'_>,
        run: RunPair,
        variable: &str,
        step: Option<i64>,
        array: &Bound<'_, PyAny>,
        start: Option<&Bound<'_, PyAny>>,
        chunks: Option<&Bound<'_, PyAny>>,
        compression: Option<&str>,
        if_exists: Option<&str>,
        txn: Option<&str>,
    ) -> PyResult<()> {
        let run = Run::new(&self.handle, run_name(run), &session(txn)?);
        let options = WriteOptions {
            start: data::numbers("start", start)?,
            chunks: data::numbers("chunks", chunks)?,
            compression: compression.map(Compression::parse).transpose().or_raise()?,
            if_exists: opening::if_exists(if_exists)?,
        };
        let data = Data::new(array)?;
        let Some((dtype, shape)) = &data.array else {
            return Err(invalid("a variable takes arrays", "give a numpy array"));
        };
        let array = Array::new(data.bytes(), *dtype, shape).or_raise()?;
        py.waiting(|| run.write(variable, step, array, &options)).or_raise()
    }

    /// The state of a run, and why it failed.
    fn state(
        &self,
        py: Python<'_>,
        run: RunPair,
        txn: Option<&str>,
    ) -> PyResult<(&'static str, Option<String>)> {
        let run = Run::new(&self.handle, run_name(run), &session(txn)?);
        let state = py.waiting(|| run.state()).or_raise()?;
        let why = if let RunStatus::Failed(why) = &state { Some(why.clone()) } else { None };
        Ok((state.name(), why))
    }

    /// Sets the state of a run, with a reason.
    fn set_state(
        &self,
        py: Python<'_>,
        run: RunPair,
        state: &str,
        why: &str,
        txn: Option<&str>,
    ) -> PyResult<()> {
        let run = Run::new(&self.handle, run_name(run), &session(txn)?);
        py.waiting(|| match state {
            "running" => run.begin(),
            "finished" => run.finish(),
            _ => run.fail(why),
        })
        .or_raise()
    }

    /// The newest complete step, for these variables or for those that count.
    fn last_step(
        &self,
        py: Python<'_>,
        run: RunPair,
        variables: Option<Vec<String>>,
        txn: Option<&str>,
    ) -> PyResult<Option<i64>> {
        let run = Run::new(&self.handle, run_name(run), &session(txn)?);
        py.waiting(|| run.last_step(variables.as_deref())).or_raise()
    }

    /// Records that outside files are now below another folder; returns the names of the runs.
    fn repoint(
        &self,
        py: Python<'_>,
        old: &str,
        new: &str,
        query: &Bound<'_, PyQuery>,
    ) -> PyResult<Vec<String>> {
        let (store, query) = (self.store.get().handle()?, &query.get().query);
        let runs = py.waiting(|| repoint(&store, old, new, query)).or_raise()?;
        Ok(runs.into_iter().map(|run| run.name).collect())
    }

    /// The deleted data, or the data that would be deleted: counts of runs, steps, variables, tags, attributes,
    /// fields; whether the deletion was done; attributes of other users that stay. `named`: the given terms,
    /// including `where`.
    fn delete(
        &self,
        py: Python<'_>,
        named: Several<String>,
        query: &Bound<'_, PyQuery>,
        fields: bool,
        doit: bool,
        txn: Option<&str>,
    ) -> PyResult<([u64; 6], bool, u64)> {
        let query = query.get().query.clone();
        let named: Vec<&str> = named.0.iter().map(String::as_str).collect();
        let what = Deletion::of_named(query, &named, fields).or_raise()?;
        let txn = session(txn)?;
        let report = py.waiting(|| self.catalog().delete(&what, fields, doit, &txn)).or_raise()?;
        let fieldstone::catalog::DeleteReport {
            runs,
            steps,
            variables,
            tags,
            attributes,
            fields,
            done,
            others,
        } = report;
        Ok(([runs, steps, variables, tags, attributes, fields], done, others))
    }
}

/// The type of a value as given; lists and maps are json.
fn kind_of(value: Value) -> ValueType {
    match value {
        Value::List(_) | Value::Map(_) => ValueType::Json,
        value => value.kind(),
    }
}

fn tag_name(tag: &Bound<'_, PyAny>) -> PyResult<String> {
    let wrong = |_| {
        let hint = "give its name, (name, version), or what create_tag returned";
        invalid(format!("{} is not a tag", type_name(tag)), hint)
    };
    match tag.cast::<PyString>() {
        Ok(name) => Ok(utf8(name)?.to_owned()),
        Err(_) => tag
            .extract::<(String, i64)>()
            .map(|(name, _)| name)
            .or_else(|_| tag.extract::<TagRow>().map(|(name, ..)| name).map_err(wrong)),
    }
}

/// Whether the argument given as a column is one array of numbers or texts, not of lists.
fn is_flat(value: &Bound<'_, PyAny>, cells: Option<&Cells>) -> PyResult<bool> {
    Ok(match cells {
        Some(Cells::Any(cells)) => !cells.iter().all(|cell| matches!(cell, Value::List(_) | Value::Array(_))),
        Some(_) => values::is_array(value)?,
        None => false,
    })
}
