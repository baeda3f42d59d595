//! Many vertices or relations as columns: one value for all rows, or one a row.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone::catalog::value::Value;
use fieldstone::graph::{Props, RelationPut, VertexName, VertexPut};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::catalog::columns::cells;
use crate::catalog::values;
use crate::errors::{Raise, invalid};

/// One value for all rows, or one a row.
enum GraphColumn {
    One(Value),
    Each(Vec<Value>),
}

impl GraphColumn {
    fn read(object: &Bound<'_, PyAny>, what: &str) -> PyResult<GraphColumn> {
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
        }
    }

    fn get(&self, row: usize) -> &Value {
        match self {
            GraphColumn::One(value) => value,
            GraphColumn::Each(values) => &values[row],
        }
    }
}

/// GraphColumns by name, and how many rows there are.
struct GraphColumns {
    columns: HashMap<String, GraphColumn>,
    /// By the column that they stand in, then by name.
    nested: HashMap<&'static str, Vec<(String, GraphColumn)>>,
    rows: usize,
    /// Texts that were seen: types are few.
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
                "columns are equally long, or one value for all rows",
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
                return Err(invalid(format!("'{key}' is no column"), &format!("the columns are {known}")));
            }
        }
        all.rows = rows.map_or(1, |(n, _)| n);
        Ok(all)
    }

    fn text(&self, name: &str, row: usize) -> PyResult<&str> {
        match self.columns.get(name).map(|column| column.get(row)) {
            Some(Value::Text(text)) => Ok(text),
            Some(other) => Err(invalid(
                format!("{name} of row {row} is {}, which is no text", other.kind().name()),
                "types and ids are text",
            )),
            None => Err(invalid(format!("there is no column {name}"), "types and ids are needed")),
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
            || invalid(format!("{name} of row {row} is no time"), "give seconds, datetimes or stamps");
        Ok(match self.columns.get(name).map_or(&Value::Null, |column| column.get(row)) {
            Value::Null => None,
            Value::Int(n) | Value::DateTime(n) => Some(u64::try_from(*n).map_err(|_| wrong())?),
            Value::UInt(n) => Some(*n),
            _ => return Err(wrong()),
        })
    }

    fn props(&self, name: &'static str, row: usize) -> PyResult<Option<Props>> {
        let Some(columns) = self.nested.get(name) else { return Ok(None) };
        let props = Props::of(columns.iter().map(|(name, column)| (name.as_str(), column.get(row))));
        props.or_raise().map(Some)
    }
}

/// Vertices of columns `type`, `id`, `static`, `props`, `time`.
pub fn vertices(given: &Bound<'_, PyDict>) -> PyResult<Vec<VertexPut>> {
    let mut columns = GraphColumns::read(given, &["type", "id", "time"], &["static", "props"])?;
    let mut all = Vec::with_capacity(columns.rows);
    for row in 0..columns.rows {
        let vertex = VertexName { kind: columns.kind("type", row)?, id: columns.text("id", row)?.into() };
        let (fixed, props) =
            (columns.props("static", row)?, columns.props("props", row)?.unwrap_or_default());
        all.push(VertexPut { vertex, fixed, props, time: columns.stamp("time", row)? });
    }
    Ok(all)
}

/// Relations of columns `type`, `src_type`, `src_id`, `dst_type`, `dst_id`, `props`, `time`, `until`.
pub fn edges(given: &Bound<'_, PyDict>) -> PyResult<Vec<RelationPut>> {
    let plain = ["type", "src_type", "src_id", "dst_type", "dst_id", "time", "until"];
    let mut columns = GraphColumns::read(given, &plain, &["props"])?;
    let mut all = Vec::with_capacity(columns.rows);
    for row in 0..columns.rows {
        let source =
            VertexName { kind: columns.kind("src_type", row)?, id: columns.text("src_id", row)?.into() };
        let target =
            VertexName { kind: columns.kind("dst_type", row)?, id: columns.text("dst_id", row)?.into() };
        all.push(RelationPut {
            kind: columns.kind("type", row)?,
            source,
            target,
            props: columns.props("props", row)?.unwrap_or_default(),
            time: columns.stamp("time", row)?,
            until: columns.stamp("until", row)?,
        });
    }
    Ok(all)
}
