//! Checks a batch of attributes against the type of its tag, the shapes of its variables, and the schema.
//!
//! Columns are checked as columns, so that a million rows do not need an allocation each.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::request::{self, Request};
use fieldstone_core::schema::Schema;
use fieldstone_core::value::{Value, ValueType};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{AttributeBatch, Column, KeywordColumn, RunName, TagDecl, Values};

/// The values in the tag's type; Invalid names the tag, its type and the first value that it does not accept.
pub fn values(tag: &TagDecl, values: Values) -> Result<Values> {
    use ValueType as T;
    let kept = matches!(
        (&values, tag.kind),
        (Values::Bool(_), T::Bool)
            | (Values::Int(_), T::Int | T::DateTime)
            | (Values::UInt(_), T::UInt)
            | (Values::Float(_), T::Float)
            | (Values::Text(_), T::Text)
    );
    if kept {
        return Ok(values);
    }
    let refuse = |value: &Value| refused(tag, value);
    // The exact widenings of whole columns; everything else goes value by value.
    match (values, tag.kind) {
        (Values::Int(column), T::Float) => {
            let exact = |n: &i64| (*n as f64) as i128 == i128::from(*n);
            match column.iter().find(|n| !exact(n)) {
                Some(n) => Err(refuse(&Value::Int(*n))),
                None => Ok(Values::Float(column.into_iter().map(|n| n as f64).collect())),
            }
        }
        (Values::Int(column), T::UInt) => match column.iter().find(|n| **n < 0) {
            Some(n) => Err(refuse(&Value::Int(*n))),
            None => Ok(Values::UInt(column.into_iter().map(|n| n as u64).collect())),
        },
        (column, kind) => {
            let given = match column {
                Values::Bool(v) => v.into_iter().map(Value::Bool).collect(),
                Values::Int(v) => v.into_iter().map(Value::Int).collect(),
                Values::UInt(v) => v.into_iter().map(Value::UInt).collect(),
                Values::Float(v) => v.into_iter().map(Value::Float).collect(),
                Values::Text(v) => v.into_iter().map(Value::Text).collect(),
                Values::Any(v) => v,
            };
            let fitted = |value: Value| -> Result<Value> {
                value.check().map_err(|e| e.context(format!("tag '{}'", tag.name)))?;
                match value {
                    Value::Null if kind != T::Json => Err(refuse(&value)),
                    value => value.fits(kind).ok_or_else(|| refuse(&value)),
                }
            };
            Ok(Values::of(kind, given.into_iter().map(fitted).collect::<Result<Vec<Value>>>()?))
        }
    }
}

fn refused(tag: &TagDecl, value: &Value) -> Error {
    let (name, kind) = (&tag.name, tag.kind.name());
    Code::ValueType
        .error(format!("tag '{name}' takes {kind}, not {} ({})", shown(value), value.kind().name()))
        .with_hint(format!("give a value of type {kind}, or declare another version of the tag"))
}

/// The value, shortened for quoting in an error.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

/// Keywords of a run's attributes in the schema's words: canonical values, by name. Invalid for a keyword
/// that the schema does not know or that the run, the step or the variable gives, and for a value that the
/// keyword cannot have.
pub fn keywords(schema: &Schema, run: &RunName, columns: Vec<KeywordColumn>) -> Result<Vec<KeywordColumn>> {
    let roles = schema.roles_of_run(&run.project, &run.name).cloned().unwrap_or_default();
    let given = roles.run.iter().chain(&roles.project).chain(&roles.step).chain(&roles.variable);
    let mut found: Vec<KeywordColumn> = Vec::with_capacity(columns.len());
    for KeywordColumn { keyword, values } in columns {
        // Members repeat: each distinct value is read once.
        let mut known: HashMap<Arc<str>, Arc<str>> = HashMap::new();
        let mut own = keyword.clone();
        for value in values.iter().filter(|value| !value.is_empty()) {
            if known.contains_key(value) {
                continue;
            }
            let mut request = Request::new();
            request.set(&*keyword, request::Values::list([&**value]));
            let listed = schema.select(&request)?.listed();
            let Some((name, texts)) = listed.into_iter().next().filter(|(_, texts)| texts.len() == 1) else {
                return Err(Code::KeywordValue
                    .error(format!("{keyword}={value:?} is not a single value"))
                    .with_hint("an attribute belongs to one field: give one value for each keyword"));
            };
            own = name;
            known.insert(value.clone(), texts.into_iter().next().unwrap_or_default().into());
        }
        if let Some(role) = given.clone().find(|role| **role == own) {
            return Err(Code::KeyContradiction
                .error(format!("the run, the step or the variable gives `{role}`"))
                .with_hint("give it with run, step= or variable=, and only other keywords here"));
        }
        if found.iter().any(|column| column.keyword == own) {
            return Err(Code::KeyContradiction.error(format!("keyword `{own}` is given twice")));
        }
        let values = values.iter().map(|value| known.get(value).cloned().unwrap_or_default()).collect();
        found.push(KeywordColumn { keyword: own, values });
    }
    found.retain(|column| column.values.iter().any(|value| !value.is_empty()));
    found.sort_by(|a, b| a.keyword.cmp(&b.keyword));
    Ok(found)
}

/// Refuses boxes that are not inside their variables; `shapes` are those of the batch's variables, as far as
/// they are known.
pub fn boxes(batch: &AttributeBatch, shapes: &[Option<Vec<u64>>]) -> Result<()> {
    let Some(boxes) = &batch.boxes else { return Ok(()) };
    let outside = |row: usize, variable: usize, why: String| {
        let name = batch.variables.get(variable).map_or("", |variable| variable.name.as_str());
        let row = if batch.rows > 1 { format!(", row {row}") } else { String::new() };
        Err(Error::invalid(format!("variable '{name}'{row}: {why}")))
    };
    let check = |row: usize, variable: usize| -> Result<()> {
        let Some(Some(shape)) = shapes.get(variable) else { return Ok(()) };
        if shape.len() != boxes.rank {
            return outside(
                row,
                variable,
                format!("the box has rank {}, the array has rank {}", boxes.rank, shape.len()),
            );
        }
        let Some((start, count)) = boxes.get(row) else { return Ok(()) };
        for d in 0..boxes.rank {
            let end = i128::from(start[d]) + i128::from(count[d]);
            if end > i128::from(shape[d]) {
                let why = format!("the box ends at {end} in dimension {d}, outside the shape {shape:?}");
                return outside(row, variable, why);
            }
        }
        Ok(())
    };
    match &batch.variable {
        Column::One(variable) if boxes.is_one() => check(0, *variable as usize),
        Column::One(variable) => (0..batch.rows).try_for_each(|row| check(row, *variable as usize)),
        Column::Each(each) => (0..batch.rows).try_for_each(|row| check(row, each[row] as usize)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use fieldstone_format::catalog::{Boxes, RunName, VariableName};

    fn tag(kind: ValueType) -> TagDecl {
        TagDecl { name: "m".into(), version: 0, kind, unit: String::new() }
    }

    #[test]
    fn values_widen_where_it_is_exact() {
        let float = tag(ValueType::Float);
        assert!(
            matches!(values(&float, Values::Int(vec![1, -2])).unwrap(), Values::Float(v) if v == [1.0, -2.0])
        );
        let error = values(&float, Values::Int(vec![1, (1 << 53) + 1])).unwrap_err();
        assert_eq!(error.message(), "tag 'm' takes float, not 9007199254740993 (int)");
        let error = values(&tag(ValueType::UInt), Values::Int(vec![3, -1])).unwrap_err();
        assert!(error.message().contains("takes uint, not -1"), "{error}");
        let mixed = Values::Any(vec![Value::Int(1), Value::UInt(2), Value::Float(f64::NAN)]);
        assert!(matches!(values(&float, mixed).unwrap(), Values::Float(v) if v[..2] == [1.0, 2.0]));
        for (kind, wrong) in [
            (ValueType::Int, Values::Bool(vec![true])),
            (ValueType::Float, Values::Text(vec!["1".into()])),
            (ValueType::Text, Values::Any(vec![Value::Null])),
        ] {
            assert!(values(&tag(kind), wrong).is_err(), "{kind:?}");
        }
        assert!(matches!(values(&tag(ValueType::Json), Values::Int(vec![1])).unwrap(), Values::Any(_)));
    }

    #[test]
    fn boxes_lie_inside_of_their_variables() {
        let name = |name: &str| VariableName { name: name.into(), version: 0 };
        let batch = |variable, start: Vec<i64>, count: Vec<i64>, rank| AttributeBatch {
            keywords: Vec::new(),
            run: RunName { project: String::new(), name: "a".into() },
            tag: tag(ValueType::Int),
            rows: 2,
            step: None,
            variables: vec![name("t"), name("u")],
            variable,
            boxes: Some(Boxes { rank, start, count, cells: None }),
            values: Values::Int(vec![1, 2]),
            one_value: false,
            continues: false,
            singles: false,
        };
        let shapes = [Some(vec![4, 4]), None];
        let fine = batch(Column::One(0), vec![0, 0, 2, 2], vec![4, 4, 2, 2], 2);
        boxes(&fine, &shapes).unwrap();
        let beyond = batch(Column::One(0), vec![0, 0, 2, 2], vec![4, 4, 2, 3], 2);
        let error = boxes(&beyond, &shapes).unwrap_err();
        assert!(error.message().starts_with("variable 't', row 1: the box ends at 5"), "{error}");
        boxes(&batch(Column::One(1), vec![0, 0, 2, 2], vec![4, 4, 2, 3], 2), &shapes).unwrap();
        let each = batch(Column::Each(vec![1, 0]), vec![9, 9, 2, 2], vec![1, 1, 2, 3], 2);
        assert!(boxes(&each, &shapes).is_err());
        assert!(boxes(&batch(Column::One(0), vec![0], vec![1], 1), &shapes).is_err(), "another rank");
    }
}
