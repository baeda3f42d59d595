//! Many vertices or relations as columns: one value for all rows, or one per row.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone::catalog::value::Value;
use fieldstone::graph::{PropValue, Props, RelationBatch, TextColumn, VertexName, VertexPut, push_props};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::catalog::columns::cells;
use crate::catalog::values;
use crate::errors::{Raise, invalid};

/// One value for all rows, or one per row.
enum GraphColumn {
    One(Value),
    Each(Vec<Value>),
    /// A list of texts, copied once into one buffer.
    Texts(TextColumn, usize),
}

/// The texts of a list that holds only texts.
fn texts(object: &Bound<'_, PyAny>) -> Option<GraphColumn> {
    let list = object.cast_exact::<PyList>().ok()?;
    let mut column = TextColumn::default();
    for item in list.iter() {
        column.push(item.cast::<PyString>().ok()?.to_str().ok()?);
    }
    Some(GraphColumn::Texts(column, list.len()))
}

impl GraphColumn {
    fn read(object: &Bound<'_, PyAny>, what: &str) -> PyResult<GraphColumn> {
        if let Some(column) = texts(object) {
            return Ok(column);
        }
        match cells(object, what)? {
            Some(cells) => Ok(GraphColumn::Each(cells.singly())),
            None if object.is_none() => Ok(GraphColumn::One(Value::Null)),
            None => values::infer(object, what).map(GraphColumn::One),
        }
    }

    fn len(&self) -> Option<usize> {
        match self {
            GraphColumn::One(_) => None,
            GraphColumn::Each(values) => Some(values.len()),
            GraphColumn::Texts(_, rows) => Some(*rows),
        }
    }

    /// The value of a row.
    fn get(&self, row: usize) -> PyResult<PropValue<'_>> {
        Ok(match self {
            GraphColumn::One(Value::Text(text)) => PropValue::Text(text),
            GraphColumn::One(value) => PropValue::Any(value),
            GraphColumn::Each(values) => match &values[row] {
                Value::Text(text) => PropValue::Text(text),
                value => PropValue::Any(value),
            },
            GraphColumn::Texts(texts, _) => PropValue::Text(texts.text(row).or_raise()?),
        })
    }

    /// The texts of all rows.
    fn into_texts(self, name: &str) -> PyResult<TextColumn> {
        match self {
            GraphColumn::Texts(texts, _) => Ok(texts),
            GraphColumn::One(Value::Text(text)) => Ok(TextColumn::One(text.into_bytes())),
            GraphColumn::One(value) => Err(no_text(name, 0, &value)),
            GraphColumn::Each(values) => {
                let mut column = TextColumn::default();
                for (row, value) in values.iter().enumerate() {
                    match value {
                        Value::Text(text) => column.push(text),
                        other => return Err(no_text(name, row, other)),
                    }
                }
                Ok(column)
            }
        }
    }
}

fn no_text(name: &str, row: usize, value: &Value) -> PyErr {
    invalid(
        format!("{name} of row {row} is {}, which is not text", value.kind().name()),
        "types and ids are text",
    )
}

fn no_column(name: &str) -> PyErr {
    invalid(format!("the column {name} is missing"), "types and ids are needed")
}

/// Names and values of a row.
fn pairs(columns: &[(String, GraphColumn)], row: usize) -> PyResult<Vec<(&str, PropValue<'_>)>> {
    columns.iter().map(|(name, column)| Ok((name.as_str(), column.get(row)?))).collect()
}

/// Columns by name, and the number of rows.
struct GraphColumns {
    columns: HashMap<String, GraphColumn>,
    /// By the column that contains them, then by name.
    nested: HashMap<&'static str, Vec<(String, GraphColumn)>>,
    rows: usize,
    /// Texts seen so far: there are few distinct types.
    known: HashMap<String, Arc<str>>,
}

impl GraphColumns {
    fn read(given: &Bound<'_, PyDict>, plain: &[&str], nested: &[&'static str]) -> PyResult<GraphColumns> {
        let mut all =
            GraphColumns { columns: HashMap::new(), nested: HashMap::new(), rows: 0, known: HashMap::new() };
        let mut rows: Option<(usize, String)> = None;
        let mut note = |column: &GraphColumn, what: &str| match (column.len(), &rows) {
            (Some(n), Some((known, other))) if n != *known => Err(invalid(
                format!("the column {what} has {n} rows, {other} has {known}"),
                "give columns of equal length, or one value for all rows",
            )),
            (Some(n), None) => {
                rows = Some((n, what.to_owned()));
                Ok(())
            }
            _ => Ok(()),
        };
        for (key, object) in given.iter() {
            let key = key.cast::<PyString>()?.to_str()?.to_owned();
            if let Some(name) = nested.iter().find(|name| **name == key) {
                if object.is_none() {
                    continue;
                }
                let mut columns = Vec::new();
                for (name, object) in object.cast::<PyDict>()?.iter() {
                    let name = name.cast::<PyString>()?.to_str()?.to_owned();
                    let what = format!("{key}[{name:?}]");
                    let column = GraphColumn::read(&object, &what)?;
                    note(&column, &what)?;
                    columns.push((name, column));
                }
                all.nested.insert(*name, columns);
            } else if plain.contains(&key.as_str()) {
                let column = GraphColumn::read(&object, &key)?;
                note(&column, &key)?;
                all.columns.insert(key, column);
            } else {
                let known = plain.iter().chain(nested).copied().collect::<Vec<&str>>().join(", ");
                return Err(invalid(format!("'{key}' is not a column"), &format!("the columns are {known}")));
            }
        }
        all.rows = rows.map_or(1, |(n, _)| n);
        Ok(all)
    }

    fn text(&self, name: &str, row: usize) -> PyResult<&str> {
        match self.columns.get(name).map(|column| column.get(row)).transpose()? {
            Some(PropValue::Text(text)) => Ok(text),
            Some(PropValue::Any(other)) => Err(no_text(name, row, other)),
            None => Err(no_column(name)),
        }
    }

    fn kind(&mut self, name: &str, row: usize) -> PyResult<Arc<str>> {
        let text = self.text(name, row)?;
        if let Some(known) = self.known.get(text) {
            return Ok(known.clone());
        }
        let text = text.to_owned();
        let shared: Arc<str> = text.as_str().into();
        self.known.insert(text, shared.clone());
        Ok(shared)
    }

    fn stamp(&self, name: &str, row: usize) -> PyResult<Option<u64>> {
        let wrong =
            || invalid(format!("{name} of row {row} is not a time"), "give seconds, datetimes or stamps");
        let Some(column) = self.columns.get(name) else { return Ok(None) };
        Ok(match column.get(row)? {
            PropValue::Any(Value::Null) => None,
            PropValue::Any(Value::Int(n) | Value::DateTime(n)) => {
                Some(u64::try_from(*n).map_err(|_| wrong())?)
            }
            PropValue::Any(Value::UInt(n)) => Some(*n),
            _ => return Err(wrong()),
        })
    }

    /// Checks that no property name is empty; keys of a dict are unique already.
    fn check_nested(&self, name: &str) -> PyResult<()> {
        let empty =
            self.nested.get(name).is_some_and(|columns| columns.iter().any(|(name, _)| name.is_empty()));
        if empty { Err(invalid(format!("a column of {name} has no name"), "give it one")) } else { Ok(()) }
    }

    fn push_props(&self, props: &mut TextColumn, row: usize) -> PyResult<()> {
        match self.nested.get("props").map(Vec::as_slice) {
            None => Ok(()),
            // Most rows have one property, so no room is reserved for more.
            Some([(name, column)]) => {
                push_props(props, [(name.as_str(), column.get(row)?)].into_iter()).or_raise()
            }
            Some(columns) => push_props(props, pairs(columns, row)?.into_iter()).or_raise(),
        }
    }

    fn props(&self, name: &'static str, row: usize) -> PyResult<Option<Props>> {
        let Some(columns) = self.nested.get(name) else { return Ok(None) };
        Props::of(pairs(columns, row)?.iter().copied()).map(Some).or_raise()
    }

    fn stamps(&self, name: &str) -> PyResult<Option<Vec<Option<u64>>>> {
        let all = || (0..self.rows).map(|row| self.stamp(name, row)).collect();
        self.columns.contains_key(name).then(all).transpose()
    }

    fn texts(&mut self, name: &str) -> PyResult<TextColumn> {
        self.columns.remove(name).ok_or_else(|| no_column(name))?.into_texts(name)
    }
}

/// Vertices from columns `type`, `id`, `static`, `props`, `time`.
pub fn vertices(given: &Bound<'_, PyDict>) -> PyResult<Vec<VertexPut>> {
    let mut columns = GraphColumns::read(given, &["type", "id", "time"], &["static", "props"])?;
    ["static", "props"].into_iter().try_for_each(|name| columns.check_nested(name))?;
    let mut all = Vec::with_capacity(columns.rows);
    for row in 0..columns.rows {
        let vertex = VertexName { kind: columns.kind("type", row)?, id: columns.text("id", row)?.into() };
        let (fixed, props) =
            (columns.props("static", row)?, columns.props("props", row)?.unwrap_or_default());
        all.push(VertexPut { vertex, fixed, props, time: columns.stamp("time", row)? });
    }
    Ok(all)
}

/// Relations from columns `type`, `src_type`, `src_id`, `dst_type`, `dst_id`, `props`, `time`, `until`.
pub fn edges(given: &Bound<'_, PyDict>) -> PyResult<RelationBatch> {
    let plain = ["type", "src_type", "src_id", "dst_type", "dst_id", "time", "until"];
    let mut columns = GraphColumns::read(given, &plain, &["props"])?;
    columns.check_nested("props")?;
    let mut props = TextColumn::One(Vec::new());
    if columns.nested.contains_key("props") {
        props = TextColumn::default();
        for row in 0..columns.rows {
            columns.push_props(&mut props, row)?;
        }
    }
    Ok(RelationBatch {
        times: columns.stamps("time")?,
        until: columns.stamps("until")?,
        kinds: columns.texts("type")?,
        source_kinds: columns.texts("src_type")?,
        source_ids: columns.texts("src_id")?,
        target_kinds: columns.texts("dst_type")?,
        target_ids: columns.texts("dst_id")?,
        props,
        rows: columns.rows,
    })
}
