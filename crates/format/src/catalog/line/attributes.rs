//! Attributes of one tag in one run as a line: columns, with one entry for each row.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::{Value, ValueType};
use serde_json::{Map, Value as Json, json};

use super::value::{float, float_of, value_json, value_of};
use super::{Facts, broken, list, run_json, tag, tag_json};
use crate::catalog::{
    AttributeBatch, Boxes, CellSets, Column, KeywordColumn, RANK_MAX, ROWS_MAX, Values, VariableName,
};

/// Writes a batch as a line.
pub fn line(batch: &AttributeBatch) -> Json {
    let rows = 0..batch.rows;
    let mut line = Map::new();
    let mut put = |name: &str, value: Json| drop(line.insert(name.to_owned(), value));
    put("kind", "attributes".into());
    put("run", run_json(&batch.run));
    put("tag", tag_json(&batch.tag));
    if batch.step.is_some() {
        put("steps", rows.clone().map(|row| batch.step_of(row)).collect());
    }
    if !batch.variables.is_empty() {
        put("variables", batch.variables.iter().map(|known| json!([known.name, known.version])).collect());
        put("variable", rows.clone().map(|row| batch.variable_index(row)).collect());
    }
    if let Some(boxes) = &batch.boxes {
        let of = |row: usize| batch.box_of(row).unwrap_or_default();
        put("start", rows.clone().map(|row| of(row).0).collect());
        put("count", rows.clone().map(|row| of(row).1).collect());
        if let Some(sets) = &boxes.cells {
            let cells = |row: usize| boxes.cells(row).map(|(_, cells)| cells.to_vec()).unwrap_or_default();
            put("along", sets.dim.into());
            put("cells", rows.clone().map(cells).collect());
        }
    }
    if !batch.keywords.is_empty() {
        let column = |keyword: &KeywordColumn| {
            let values = rows.clone().map(|row| keyword.get(row).map_or("", |text| text));
            (keyword.keyword.to_string(), values.collect::<Json>())
        };
        put("keywords", Json::Object(batch.keywords.iter().map(column).collect()));
    }
    let value = |row| match (batch.value_of(row), batch.tag.kind) {
        (Value::UInt(n), ValueType::UInt) => n.into(),
        (Value::DateTime(moment), ValueType::DateTime) => moment.into(),
        (Value::Float(x), ValueType::Float) => float(x),
        (value, _) => value_json(&value),
    };
    put("values", rows.clone().map(value).collect());
    if batch.continues {
        put("continues", true.into());
    }
    if batch.singles {
        put("singles", true.into());
    }
    Json::Object(line)
}

/// Reads the batch of a line.
pub fn batch(facts: &Facts<'_>) -> Result<AttributeBatch> {
    let tag = tag(&Facts::of(facts.need("tag", Some)?, "a tag")?)?;
    let kind = tag.kind;
    let value = |json: &Json| match kind {
        ValueType::UInt => json.as_u64().map(Value::UInt),
        ValueType::DateTime => json.as_i64().map(Value::DateTime),
        ValueType::Float => float_of(json).map(Value::Float),
        _ => value_of(json).filter(|value| kind == ValueType::Json || value.kind() == kind),
    };
    let values = facts.list("values", value)?;
    let rows = values.len();
    if rows == 0 || rows > ROWS_MAX {
        return Err(broken(&format!("{rows} attributes; 1 to {ROWS_MAX} are allowed")));
    }
    let variable = |json: &Json| match json.as_array().map(Vec::as_slice) {
        Some([name, version]) => {
            Some(VariableName { name: name.as_str()?.to_owned(), version: version.as_i64()? })
        }
        _ => None,
    };
    let variables = facts.maybe("variables", |json| list(json, variable))?.unwrap_or_default();
    let index = |json: &Json| u32::try_from(json.as_u64()?).ok();
    let flag = |name: &str| facts.maybe(name, Json::as_bool).map(|flag| flag.unwrap_or(false));
    Ok(AttributeBatch {
        run: facts.run()?,
        rows,
        step: facts.maybe("steps", |json| list(json, Json::as_i64))?.map(Column::Each),
        variable: match variables.is_empty() {
            true => Column::One(0),
            false => Column::Each(facts.list("variable", index)?),
        },
        variables,
        boxes: boxes(facts, rows)?,
        keywords: keywords(facts)?,
        values: Values::of(kind, values),
        one_value: false,
        continues: flag("continues")?,
        singles: flag("singles")?,
        tag,
    })
}

fn boxes(facts: &Facts<'_>, rows: usize) -> Result<Option<Boxes>> {
    let Some(start) = facts.maybe("start", |json| list(json, |row| list(row, Json::as_i64)))? else {
        return Ok(None);
    };
    let count = facts.list("count", |row| list(row, Json::as_i64))?;
    let rank = start.first().map_or(0, Vec::len);
    let alike = |all: &Vec<Vec<i64>>| all.len() == rows && all.iter().all(|row| row.len() == rank);
    if !(1..=RANK_MAX).contains(&rank) || !alike(&start) || !alike(&count) {
        return Err(broken("the boxes differ in rank"));
    }
    let cells = facts.maybe("cells", |json| list(json, |row| list(row, Json::as_i64)))?;
    let cells = match cells {
        Some(sets) => Some(CellSets {
            dim: facts.need("along", |json| usize::try_from(json.as_u64()?).ok())?,
            sets: sets.into_iter().map(Arc::from).collect(),
        }),
        None => None,
    };
    // A record has a box for each row, or one for all; with a single row both are the same.
    Ok(Some(Boxes { rank, start: start.concat(), count: count.concat(), cells }))
}

fn keywords(facts: &Facts<'_>) -> Result<Vec<KeywordColumn>> {
    let Some(columns) = facts.get("keywords") else { return Ok(Vec::new()) };
    let columns = Facts::of(columns, "keywords")?;
    let mut all = Vec::new();
    for keyword in columns.0.keys() {
        let values = columns.list(keyword, |text| text.as_str().map(Arc::from))?;
        all.push(KeywordColumn { keyword: Arc::from(keyword.as_str()), values });
    }
    Ok(all)
}
