//! Columns that locate attributes: steps, variables, boxes.

use std::collections::HashMap;

use fieldstone::catalog::value::{Value, ValueType};
use fieldstone::catalog::{Column, Values, VariableName};
use fieldstone::{Target, amr};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PySequence, PyTuple};

use super::columns::{self, Cells, cells, from_numpy};
use super::values;
use crate::errors::{Raise, Refuse, invalid};
use crate::request::{KeyText, type_name};
use crate::sequence::Several;

/// Whole numbers: one for all rows, or one per row.
pub fn integers(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Column<i64>> {
    let wrong = || {
        invalid(
            format!("{what} is {}, not a whole number", type_name(object)),
            "give integers, one, or one per row",
        )
    };
    if object.is_instance_of::<PyBool>() {
        return Err(wrong());
    }
    match cells(object, what)? {
        None => match float(object)? {
            Some(number) => whole(number, what).map(Column::One),
            None => object.extract().map(Column::One).or_refuse(object.py(), wrong),
        },
        Some(Cells::Float(cells)) => {
            let numbers = cells.into_iter().enumerate().map(|(row, cell)| match cell.is_nan() {
                true => Err(columns::absent(what, row)),
                false => whole(cell, what),
            });
            numbers.collect::<PyResult<_>>().map(Column::Each)
        }
        Some(Cells::Int(cells)) => Ok(Column::Each(cells)),
        Some(Cells::UInt(cells)) => {
            let cells = cells.into_iter().map(i64::try_from).collect::<Result<_, _>>();
            cells.map(Column::Each).map_err(|_| wrong())
        }
        Some(Cells::Any(cells)) if cells.is_empty() => Ok(Column::Each(Vec::new())),
        Some(_) => Err(wrong()),
    }
}

/// The number that an object holds, if it is a float of Python or numpy.
pub fn float(object: &Bound<'_, PyAny>) -> PyResult<Option<f64>> {
    let is_float = object.is_instance_of::<PyFloat>()
        || (object.hasattr("is_integer")? && object.extract::<i64>().is_err());
    if is_float { object.extract::<f64>().if_it_is(object.py()) } else { Ok(None) }
}

/// A float as a whole number: pandas stores an integer column with gaps as floats.
pub fn whole(number: f64, what: &str) -> PyResult<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.fract() == 0.0 && number.abs() <= EXACT {
        true => Ok(number as i64),
        false => Err(invalid(format!("{what} has {number:?}, which is not a whole number"), "give integers")),
    }
}

/// Floats: one for all rows, or one per row; integers if they convert exactly.
pub fn floats(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<f64>> {
    let cells = match cells(object, what)? {
        None => Cells::Any(vec![values::infer(object, what)?]),
        Some(cells) => cells,
    };
    match columns::values(cells, ValueType::Float, what)? {
        Values::Float(cells) => Ok(cells),
        _ => Ok(Vec::new()),
    }
}

/// The distinct names, and each row's index into them.
fn names(object: &Bound<'_, PyAny>, what: &str) -> PyResult<(Vec<String>, Option<Vec<u32>>)> {
    let wrong =
        || invalid(format!("{what} is {}, not text", type_name(object)), "give names, one, or one per row");
    match cells(object, what)? {
        None => Ok((vec![object.extract().or_refuse(object.py(), wrong)?], None)),
        Some(Cells::Coded(codes, words)) => Ok((words, Some(codes))),
        Some(Cells::Text(texts)) => {
            let mut known: HashMap<String, u32> = HashMap::new();
            let mut distinct = Vec::new();
            let mut codes = Vec::with_capacity(texts.len());
            let mut last: Option<(String, u32)> = None;
            for text in texts {
                let code = match &last {
                    Some((before, code)) if *before == text => *code,
                    _ => *known.entry(text.clone()).or_insert_with(|| {
                        distinct.push(text.clone());
                        distinct.len() as u32 - 1
                    }),
                };
                codes.push(code);
                if last.as_ref().is_none_or(|(_, before)| *before != code) {
                    last = Some((text, code));
                }
            }
            Ok((distinct, Some(codes)))
        }
        Some(Cells::Any(cells)) if cells.is_empty() => Ok((Vec::new(), Some(Vec::new()))),
        Some(_) => Err(wrong()),
    }
}

/// One end of boxes: the numbers of one box for all rows, or of one box per row, with the rank.
fn ends(object: &Bound<'_, PyAny>, what: &str) -> PyResult<(usize, Vec<i64>, bool)> {
    let wrong = || {
        invalid(
            format!("{what} is {}", type_name(object)),
            "give one whole number per dimension, such as (0, 64), or an array with a row of these per attribute",
        )
    };
    if let Some(Several(numbers)) = object.extract().if_it_is(object.py())?
        && !values::is_array(object)?
    {
        return Ok((numbers.len(), numbers, false));
    }
    let array = values::asarray(object)?;
    let shape: Vec<usize> = array.getattr("shape")?.extract()?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !matches!(&*kind, "i" | "u") && shape.iter().product::<usize>() > 0 {
        return Err(wrong());
    }
    let flat = match from_numpy(&array.call_method1("reshape", (-1,))?, what)? {
        Cells::Int(cells) => cells,
        Cells::UInt(cells) => {
            cells.into_iter().map(i64::try_from).collect::<Result<_, _>>().map_err(|_| wrong())?
        }
        _ => Vec::new(),
    };
    match shape[..] {
        [] => Ok((1, flat, false)),
        [rank] => Ok((rank, flat, false)),
        [_, rank] => Ok((rank, flat, true)),
        _ => Err(wrong()),
    }
}

/// Distinct names and each row's index into them, with the levels of the names.
fn on_levels(
    (names, of_row): (Vec<String>, Option<Vec<u32>>),
    level: &Bound<'_, PyAny>,
) -> PyResult<(Vec<String>, Option<Vec<u32>>)> {
    let there = |name: &String, level: i64| amr::name_at(name, level).or_raise();
    let levels = match integers(level, "level")? {
        Column::One(level) => {
            let names = names.iter().map(|name| there(name, level)).collect::<PyResult<_>>()?;
            return Ok((names, of_row));
        }
        Column::Each(levels) => levels,
    };
    let codes = of_row.unwrap_or_else(|| vec![0; levels.len()]);
    if codes.len() != levels.len() {
        let (rows, levels) = (codes.len(), levels.len());
        return Err(invalid(
            format!("variable has {rows} rows and level has {levels}"),
            "give columns of equal length, or one value for all rows",
        ));
    }
    let (mut known, mut distinct) = (HashMap::new(), Vec::new());
    let mut row = |(code, level): (u32, i64)| -> PyResult<u32> {
        if let Some(known) = known.get(&(code, level)) {
            return Ok(*known);
        }
        let name = names.get(code as usize).map(|name| there(name, level)).transpose()?;
        distinct.push(name.unwrap_or_default());
        let code = *known.entry((code, level)).or_insert(distinct.len() as u32 - 1);
        Ok(code)
    };
    let codes = codes.into_iter().zip(levels).map(&mut row).collect::<PyResult<_>>()?;
    Ok((distinct, Some(codes)))
}

/// Builds the target of attributes.
#[allow(clippy::too_many_arguments, reason = "the parts of a place")]
pub fn target(
    variable: Option<&Bound<'_, PyAny>>,
    level: Option<&Bound<'_, PyAny>>,
    version: i64,
    step: Option<&Bound<'_, PyAny>>,
    start: Option<&Bound<'_, PyAny>>,
    count: Option<&Bound<'_, PyAny>>,
    cells: Option<&Bound<'_, PyAny>>,
    keywords: Option<&Bound<'_, PyAny>>,
) -> PyResult<Target> {
    let target = match variable {
        Some(variable) => {
            let found = names(variable, "variable")?;
            let (names, of_row) = match level {
                Some(level) => on_levels(found, level)?,
                None => found,
            };
            let names = names.into_iter().map(|name| VariableName { name, version }).collect();
            Target::variables(names, of_row)
        }
        None if level.is_some() => return Err(invalid("level without a variable", "give variable=")),
        None => Target::run(),
    };
    let target = match step.map(|step| integers(step, "step")).transpose()? {
        Some(Column::One(step)) => target.step(step),
        Some(Column::Each(steps)) => target.steps(steps),
        None => target,
    };
    let target = with_keywords(target, keywords)?;
    match cells.filter(|cells| !cells.is_none()) {
        Some(cells) if start.or(count).is_none_or(PyAnyMethods::is_none) => on_cells(target, cells),
        Some(_) => Err(invalid("cells and a box", "give cells=, or start= and count=")),
        None => boxes(target, start, count),
    }
}

/// Adds further keywords: a mapping of each keyword to its value, or to one value per row.
fn with_keywords(mut target: Target, keywords: Option<&Bound<'_, PyAny>>) -> PyResult<Target> {
    let Some(keywords) = keywords.filter(|keywords| !keywords.is_none()) else { return Ok(target) };
    let keywords = keywords.cast::<PyDict>().map_err(|_| {
        invalid(format!("keywords={}", type_name(keywords)), "give a dict: keywords={\"number\": 3}")
    })?;
    for (keyword, given) in keywords.iter() {
        let keyword: String = keyword.extract()?;
        let what = format!("keywords[{keyword:?}]");
        if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
            let texts = given.try_iter()?.map(|item| one_text(&keyword, &item?));
            target = target.keyword_each(&keyword, texts.collect::<PyResult<Vec<_>>>()?);
            continue;
        }
        match cells(&given, &what)? {
            Some(column) => {
                let texts = column.singly().into_iter().map(|value| keyword_text(&value, &what));
                target = target.keyword_each(&keyword, texts.collect::<PyResult<Vec<_>>>()?);
            }
            None if given.is_none() => {}
            None => target = target.keyword(&keyword, &one_text(&keyword, &given)?),
        }
    }
    Ok(target)
}

/// The text of a keyword's value; empty for None.
fn one_text(keyword: &str, given: &Bound<'_, PyAny>) -> PyResult<String> {
    let one = PyDict::new(given.py());
    one.set_item(keyword, given)?;
    let text = KeyText::new(&one)?;
    Ok(text.pairs()?.first().map(|(_, value)| (*value).to_owned()).unwrap_or_default())
}

/// The text of a keyword's value in a column; empty for a row without one.
fn keyword_text(value: &Value, what: &str) -> PyResult<String> {
    match value {
        Value::Null => Ok(String::new()),
        Value::Text(text) => Ok(text.clone()),
        Value::Int(_) | Value::UInt(_) | Value::Float(_) => Ok(value.to_string()),
        value => Err(invalid(format!("{what} has a {}", value.kind().name()), "give numbers or texts")),
    }
}

/// Restricts the target to a set of cells, or to one set per row: a list or tuple of sets.
fn on_cells(target: Target, cells: &Bound<'_, PyAny>) -> PyResult<Target> {
    let one = |set: &Bound<'_, PyAny>| -> PyResult<Vec<i64>> {
        let array = values::asarray(set)?;
        let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
        let wrong = || {
            invalid(format!("cells are {}", type_name(set)), "give indices: whole numbers in one dimension")
        };
        if array.getattr("ndim")?.extract::<usize>()? != 1 {
            return Err(wrong());
        }
        match from_numpy(&array, "cells")? {
            Cells::Int(cells) => Ok(cells),
            Cells::UInt(cells) => {
                cells.into_iter().map(i64::try_from).collect::<Result<_, _>>().map_err(|_| wrong())
            }
            _ if array.len()? == 0 => Ok(Vec::new()),
            _ if matches!(&*kind, "i" | "u") => Ok(Vec::new()),
            _ => Err(wrong()),
        }
    };
    if !values::is_array(cells)?
        && let Ok(sets) = cells.cast::<PySequence>()
        && sets.len()? > 0
        && (values::is_array(&sets.get_item(0)?)? || sets.get_item(0)?.cast::<PySequence>().is_ok())
    {
        let sets = sets.try_iter()?.map(|set| one(&set?)).collect::<PyResult<Vec<_>>>()?;
        return Ok(target.on_cells_each(sets));
    }
    Ok(target.on_cells(one(cells)?))
}

/// Restricts the target to its box, or to one box per row.
fn boxes(
    target: Target,
    start: Option<&Bound<'_, PyAny>>,
    count: Option<&Bound<'_, PyAny>>,
) -> PyResult<Target> {
    let (start, count) = match (start.filter(|s| !s.is_none()), count.filter(|c| !c.is_none())) {
        (None, None) => return Ok(target),
        (Some(start), Some(count)) => (ends(start, "start")?, ends(count, "count")?),
        (Some(_), None) => return Err(invalid("a box has a start but no count", "give count=, its extents")),
        (None, Some(_)) => {
            return Err(invalid("a box has a count but no start", "give start=, its first element"));
        }
    };
    let ((rank, start, start_each), (other, count, count_each)) = (start, count);
    if rank != other || rank == 0 {
        return Err(invalid(
            format!("start has {rank} dimensions and count has {other}"),
            "give both one number per dimension of the variable",
        ));
    }
    let rows = match (start_each, count_each) {
        (false, false) => return Ok(target.within(&start, &count)),
        (true, true) if start.len() != count.len() => {
            return Err(invalid(
                format!("start has {} rows and count has {}", start.len() / rank, count.len() / rank),
                "give as many counts as starts, or one for all",
            ));
        }
        (true, _) => start.len() / rank,
        (false, true) => count.len() / rank,
    };
    let spread = |ends: Vec<i64>, each: bool| match each {
        true => ends,
        false => ends.repeat(rows),
    };
    Ok(target.within_each(rank, spread(start, start_each), spread(count, count_each)))
}
