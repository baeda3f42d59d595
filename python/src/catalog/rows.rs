//! Runs, steps, variables, tags, boxes and aggregates as Python objects: dicts and tables.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone::catalog::value::Value;
use fieldstone::catalog::{Aggregate, BoxInfo, By, RunInfo, StepInfo, TagInfo, VariableInfo};
use fieldstone::catalog::{Annotate, Coordinate, RunName, step_number};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use super::values::object;
use crate::data;
use crate::listing::time_object;
use crate::table::{Column, Table};

/// A text column with each distinct text stored once; empty texts are absent.
fn texts<'a>(all: impl Iterator<Item = Option<&'a str>>) -> Column {
    let mut known: HashMap<Option<&'a str>, u32> = HashMap::new();
    let mut distinct: Vec<Option<Arc<str>>> = Vec::new();
    let codes = all.map(|text| {
        let text = text.filter(|text| !text.is_empty());
        *known.entry(text).or_insert_with(|| {
            distinct.push(text.map(Arc::from));
            distinct.len() as u32 - 1
        })
    });
    let codes = codes.collect();
    Column::Text { codes, distinct }
}

fn table(columns: Vec<(&str, Column)>, rows: usize) -> Table {
    Table::new(columns.into_iter().map(|(name, column)| (name.to_owned(), column)).collect(), rows)
}

fn project(run: &RunName) -> Option<&str> {
    Some(&*run.project).filter(|project| !project.is_empty())
}

fn named<'py>(py: Python<'py>, pairs: &[(String, Value)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in pairs {
        dict.set_item(name, object(py, value)?)?;
    }
    Ok(dict)
}

fn optional<'py>(py: Python<'py>, value: &Option<Value>) -> PyResult<Option<Bound<'py, PyAny>>> {
    value.as_ref().map(|value| object(py, value)).transpose()
}

/// A run.
pub fn run<'py>(py: Python<'py>, run: &RunInfo) -> PyResult<Bound<'py, PyDict>> {
    let decl = &run.decl;
    let dict = PyDict::new(py);
    dict.set_item("project", project(&decl.run))?;
    dict.set_item("name", &decl.run.name)?;
    dict.set_item("job", &decl.job)?;
    dict.set_item("params", named(py, &decl.params)?)?;
    let created = (decl.created != 0).then(|| time_object(py, decl.created)).transpose()?;
    dict.set_item("created", created)?;
    dict.set_item("grid", optional(py, &decl.grid)?)?;
    dict.set_item("notes", &decl.notes)?;
    dict.set_item("outside", optional(py, &decl.outside)?)?;
    dict.set_item("declared", run.declared)?;
    dict.set_item("if_exists", decl.if_exists.map(fieldstone::IfExists::name))?;
    dict.set_item("annotate", if decl.annotate == Annotate::Owner { "owner" } else { "all" })?;
    Ok(dict)
}

/// A variable.
pub fn variable<'py>(py: Python<'py>, variable: &VariableInfo) -> PyResult<Bound<'py, PyDict>> {
    let decl = &variable.decl;
    let dict = PyDict::new(py);
    dict.set_item("project", project(&variable.run))?;
    dict.set_item("run", &variable.run.name)?;
    dict.set_item("name", &decl.variable.name)?;
    dict.set_item("version", decl.variable.version)?;
    dict.set_item("dtype", decl.dtype.map(|dtype| data::dtype_object(py, dtype)).transpose()?)?;
    let numbers = |all: &Option<Vec<u64>>| all.as_ref().map(|all| PyTuple::new(py, all)).transpose();
    dict.set_item("shape", numbers(&decl.shape)?)?;
    dict.set_item("dims", PyTuple::new(py, &decl.dims)?)?;
    dict.set_item("attrs", named(py, &decl.attrs)?)?;
    let coords = PyDict::new(py);
    let ours = py.import("fieldstone._values")?.getattr("Uniform")?;
    for (dim, coordinate) in &decl.coords {
        let value = match coordinate {
            Coordinate::Uniform { first, spacing } => ours.call1((*first, *spacing))?,
            Coordinate::Rectilinear(all) => {
                let all: Vec<Value> = all.iter().copied().map(Value::Float).collect();
                object(py, &Value::Array(all))?
            }
            Coordinate::Other(name) => name.into_pyobject(py)?.into_any(),
        };
        match decl.dims.get(*dim as usize) {
            Some(name) => coords.set_item(name, value)?,
            None => coords.set_item(*dim, value)?,
        }
    }
    dict.set_item("coords", coords)?;
    dict.set_item("decomposition", numbers(&decl.decomposition)?)?;
    dict.set_item("find", optional(py, &decl.finders)?)?;
    dict.set_item("declared", variable.declared)?;
    Ok(dict)
}

/// A tag's name, version asked for, type, unit and version to show.
pub type ShownTag = (String, i64, String, String, i64);

/// A tag.
pub fn tag_row(tag: TagInfo) -> ShownTag {
    let decl = tag.decl;
    (decl.name, decl.version, decl.kind.name().to_owned(), decl.unit, tag.version)
}

/// Columns project, run, step, time. If a step is not a whole number of hours, it is null in `step`, and another
/// column, `lead`, holds all steps as keys write them.
pub fn steps(all: Vec<StepInfo>) -> Table {
    let mut columns = vec![
        ("project", texts(all.iter().map(|row| project(&row.run)))),
        ("run", texts(all.iter().map(|row| Some(&*row.run.name)))),
        ("step", Column::Int(all.iter().map(|row| step_number::whole(row.step)).collect())),
        ("time", Column::Number(all.iter().map(|row| row.time).collect())),
    ];
    if all.iter().any(|row| step_number::whole(row.step).is_none()) {
        let leads: Vec<String> = all.iter().map(|row| step_number::text(row.step)).collect();
        columns.push(("lead", texts(leads.iter().map(|lead| Some(&**lead)))));
    }
    table(columns, all.len())
}

/// Columns project, run, step, variable, variable_version, start, count.
pub fn boxes(all: Vec<BoxInfo>) -> Table {
    let variable = |row: &BoxInfo| row.variable.as_ref().map(|variable| variable.version);
    let (mut offsets, mut start, mut count) = (vec![0], Vec::new(), Vec::new());
    for row in &all {
        start.extend(&row.start);
        count.extend(&row.count);
        offsets.push(start.len() as u64);
    }
    let columns = vec![
        ("project", texts(all.iter().map(|row| project(&row.run)))),
        ("run", texts(all.iter().map(|row| Some(&*row.run.name)))),
        ("step", Column::Int(all.iter().map(|row| row.step.and_then(step_number::whole)).collect())),
        ("variable", texts(all.iter().map(|row| row.variable.as_ref().map(|variable| &*variable.name)))),
        ("variable_version", Column::Int(all.iter().map(variable).collect())),
        ("start", Column::Ints { offsets: offsets.clone(), values: start }),
        ("count", Column::Ints { offsets, values: count }),
    ];
    table(columns, all.len())
}

/// The columns grouped by, then count, min, max, mean.
pub fn aggregates(all: Vec<Aggregate>, by: &[By]) -> Table {
    let mut columns = Vec::new();
    let number = |of: fn(&Aggregate) -> Option<f64>| Column::Number(all.iter().map(of).collect());
    if by.contains(&By::Run) {
        columns.push(("project", texts(all.iter().map(|row| row.run.as_ref().and_then(project)))));
        columns.push(("run", texts(all.iter().map(|row| row.run.as_ref().map(|run| &*run.name)))));
    }
    if by.contains(&By::Step) {
        columns.push(("step", Column::Int(all.iter().map(|row| row.step).collect())));
    }
    if by.contains(&By::Step) && by.contains(&By::Run) {
        columns.push(("time", number(|row| row.time)));
    }
    if by.contains(&By::Variable) {
        columns.push(("variable", texts(all.iter().map(|row| row.variable.as_deref()))));
    }
    if by.contains(&By::Tag) {
        columns.push(("tag", texts(all.iter().map(|row| row.tag.as_deref()))));
    }
    columns.push(("count", Column::Count(all.iter().map(|row| Some(row.count)).collect())));
    columns.push(("min", number(|row| row.min)));
    columns.push(("max", number(|row| row.max)));
    columns.push(("mean", number(|row| row.mean)));
    table(columns, all.len())
}
