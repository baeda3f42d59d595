//! Boxes of a query: the forms that `box=` accepts.
//!
//! Slices and whole numbers are half-open and in index space; `fst.between(a, b)` is in coordinates and includes both
//! ends.

use fieldstone::catalog::query::{Dim, Expr, Range, Relation, Term};
use fieldstone::catalog::value::{Test, Value};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyInt, PyList, PyRange, PySlice, PyString, PyTuple};

use super::tests::PyTest;
use crate::errors::{Refuse, invalid, utf8};
use crate::request::type_name;
use crate::sequence::{is_mapping, pairs};

const TAKEN: &str = "give {\"z\": slice(50, 100)}, slices in the order of the dimensions, or fst.between(a, b) \
                     in place of a slice for coordinates";

/// A box of a query, and the relation that attributes must have to it. Made by ``fieldstone.within``, ``covers`` and
/// ``overlaps``; a plain box means ``overlaps``.
#[pyclass(frozen, name = "Region", module = "fieldstone")]
pub struct Region {
    /// The box, as it was given.
    pub region: Vec<(Dim, Range)>,
    /// The relation.
    pub relation: Relation,
}

#[pymethods]
impl Region {
    #[new]
    fn new(region: &Bound<'_, PyAny>, relation: &str) -> PyResult<Region> {
        let relation = match relation {
            "overlaps" => Relation::Overlaps,
            "within" => Relation::Within,
            "covers" => Relation::Contains,
            other => {
                return Err(invalid(
                    format!("{other:?} is not a relation of boxes"),
                    "within, covers or overlaps",
                ));
            }
        };
        Ok(Region { region: ranges(region)?, relation })
    }

    /// The box as (dimension, whether in coordinates, (from, to)).
    fn ranges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        listed(py, &self.region)
    }

    /// "overlaps", "within" or "covers".
    #[getter]
    fn relation(&self) -> &'static str {
        match self.relation {
            Relation::Overlaps => "overlaps",
            Relation::Within => "within",
            Relation::Contains => "covers",
        }
    }

    fn __repr__(&self) -> String {
        format!("<fieldstone.Region {} {} dimensions>", self.relation(), self.region.len())
    }
}

/// The query expression of a box.
pub fn expr(object: &Bound<'_, PyAny>) -> PyResult<Expr> {
    if let Ok(region) = object.cast::<Region>() {
        let region = region.get();
        return Ok(Expr::Term(Term::Region(region.region.clone(), region.relation)));
    }
    Ok(Expr::Term(Term::Region(ranges(object)?, Relation::Overlaps)))
}

/// A dimension: its name or index.
pub fn dim(object: &Bound<'_, PyAny>) -> PyResult<Dim> {
    if let Ok(name) = object.cast::<PyString>() {
        return Ok(Dim::Name(utf8(name)?.to_owned()));
    }
    match object.extract::<usize>().if_it_is(object.py())? {
        Some(index) if !object.is_instance_of::<PyBool>() => Ok(Dim::Index(index)),
        _ => Err(invalid(format!("{} is not a dimension", type_name(object)), "give its name or its index")),
    }
}

/// The ranges of a box, by dimension.
pub fn ranges(object: &Bound<'_, PyAny>) -> PyResult<Vec<(Dim, Range)>> {
    if let Ok(text) = object.cast::<PyString>() {
        return utf8(text)?.split(',').map(|part| from_text(part.trim())).collect();
    }
    if is_mapping(object)? {
        let mut ranges = Vec::new();
        pairs(object, |name, along| {
            let named = dim(&name)?;
            if let Some(along) = range(&along, &name.to_string())? {
                ranges.push((named, along));
            }
            Ok(())
        })?;
        return Ok(ranges);
    }
    let all: Vec<Bound<'_, PyAny>> = match object.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![object.clone()],
    };
    let mut ranges = Vec::new();
    for (index, along) in all.iter().enumerate() {
        if let Some(along) = range(along, &index.to_string())? {
            ranges.push((Dim::Index(index), along));
        }
    }
    Ok(ranges)
}

fn from_text(part: &str) -> PyResult<(Dim, Range)> {
    let wrong =
        || invalid(format!("the box's part {part:?} is not a range"), "write z:50:100,y:0:20, half-open");
    let words: Vec<&str> = part.split(':').collect();
    let end = |word: &str| match word.trim() {
        "" => Ok(None),
        word => word.parse::<i64>().map(Some).map_err(|_| wrong()),
    };
    match words[..] {
        [name, start, stop] if !name.is_empty() => {
            let dim = name.parse::<usize>().map_or_else(|_| Dim::Name(name.to_owned()), Dim::Index);
            index(end(start)?, end(stop)?, name).map(|range| (dim, range))
        }
        _ => Err(wrong()),
    }
}

fn index(start: Option<i64>, stop: Option<i64>, name: &str) -> PyResult<Range> {
    let from = start.unwrap_or(0);
    if from < 0 || stop.is_some_and(|stop| stop <= from) {
        let stop = stop.map_or(String::new(), |stop| stop.to_string());
        return Err(invalid(
            format!("the box is empty along {name}: {from}:{stop}"),
            "boxes are half-open and start at 0: 50:100 holds the elements 50 to 99",
        ));
    }
    Ok(Range::Index(start, stop))
}

/// A range along one dimension; `None` for Python's `None`.
fn range(object: &Bound<'_, PyAny>, name: &str) -> PyResult<Option<Range>> {
    let wrong = || invalid(format!("the box has {} along {name}", type_name(object)), TAKEN);
    if object.is_none() {
        return Ok(None);
    }
    if object.is_instance_of::<PySlice>() || object.is_instance_of::<PyRange>() {
        let end = |end: &str| -> PyResult<Option<i64>> {
            let end = object.getattr(end)?;
            let whole = || {
                invalid(
                    format!("the box has a slice with {end} along {name}; slices are for integers only"),
                    "give fst.between(a, b) for coordinates, both ends included",
                )
            };
            if end.is_none() { Ok(None) } else { end.extract().map(Some).or_refuse(object.py(), whole) }
        };
        if end("step")?.is_some_and(|step| step != 1) {
            return Err(invalid(
                format!("the box has a slice with a step along {name}"),
                "leave the step out",
            ));
        }
        return index(end("start")?, end("stop")?, name).map(Some);
    }
    if let Ok(test) = object.cast::<PyTest>() {
        return physical(&test.get().test()).map(Some).ok_or_else(wrong);
    }
    match object.extract::<i64>().if_it_is(object.py())? {
        Some(at) if !object.is_instance_of::<PyBool>() && object.hasattr("__index__")? => {
            index(Some(at), at.checked_add(1), name).map(Some)
        }
        _ if object.is_instance_of::<PyInt>() => Err(wrong()),
        _ => Err(wrong()),
    }
}

/// The range of coordinates that a test selects, both ends included.
fn physical(test: &Test) -> Option<Range> {
    let number = |value: &Value| match value {
        Value::Int(n) => Some(*n as f64),
        Value::UInt(n) => Some(*n as f64),
        Value::Float(x) if !x.is_nan() => Some(*x),
        _ => None,
    };
    match test {
        Test::Between(a, b) => Some(Range::Physical(number(a)?, number(b)?)),
        Test::AtLeast(a) => Some(Range::Physical(number(a)?, f64::INFINITY)),
        Test::AtMost(b) => Some(Range::Physical(f64::NEG_INFINITY, number(b)?)),
        Test::Equal(a) => Some(Range::Physical(number(a)?, number(a)?)),
        _ => None,
    }
}

/// Ranges for Python: dimension, whether in coordinates, and (from, to); an open end is None.
pub fn listed<'py>(py: Python<'py>, ranges: &[(Dim, Range)]) -> PyResult<Bound<'py, PyList>> {
    let named = ranges.iter().map(|(dim, range)| {
        let dim = match dim {
            Dim::Name(name) => name.into_pyobject(py)?.into_any(),
            Dim::Index(index) => index.into_pyobject(py)?.into_any(),
        };
        let (physical, ends) = match range {
            Range::Index(start, stop) => (false, (*start, *stop).into_pyobject(py)?),
            Range::Physical(from, to) => (true, (*from, *to).into_pyobject(py)?),
        };
        (dim, physical, ends).into_pyobject(py)
    });
    PyList::new(py, named.collect::<PyResult<Vec<_>>>()?)
}
