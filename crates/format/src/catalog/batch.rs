//! Rules of attributes in columns: the content that a record may hold, and the division of a batch into parts that fit
//! one.

use fieldstone_core::catalog::{AttributeBatch, Boxes, CellSets, Column, Values};
use fieldstone_core::value::{Value, ValueType};
use fieldstone_core::{Error, Result};

use super::{ROWS_MAX, keywords};
use crate::log::kinds;

/// Most dimensions of a box.
pub const RANK_MAX: usize = 64;
/// Most rows of a record times dimensions of their boxes.
pub(super) const EXTENTS_MAX: usize = 16 * ROWS_MAX;
/// Most cells of a record.
pub const CELLS_MAX: usize = 1 << 24;
/// Bytes of values after which a batch is split.
const SPLIT_BYTES: usize = 16 << 20;

/// The bit of [`kinds`] that makes a batch visible.
pub fn batch_kind(batch: &AttributeBatch) -> u32 {
    match (batch.variables.is_empty(), &batch.step) {
        (false, _) => kinds::VARIABLE_ATTRIBUTE,
        (true, Some(_)) => kinds::STEP_ATTRIBUTE,
        (true, None) => kinds::RUN_ATTRIBUTE,
    }
}

/// Refuses content that a record may not hold: columns without exactly `rows` rows, empty names, boxes
/// that are empty or outside 0 to 2^63 - 1, boxes without a variable, values of another type than the
/// tag's.
pub fn check_batch(batch: &AttributeBatch) -> Result<()> {
    let what = || format!("attributes '{}' of run '{}'", batch.tag.name, batch.run.name);
    let wrong = |why: String| Err(Error::invalid(format!("{}: {why}", what())));
    if batch.rows == 0 {
        return wrong("there are no rows".into());
    }
    if batch.run.name.is_empty() || batch.tag.name.is_empty() {
        return wrong("a run and a tag need a name".into());
    }
    if batch.variables.iter().any(|variable| variable.name.is_empty()) {
        return wrong("a variable needs a name".into());
    }
    let columns = [
        (batch.step.as_ref().is_some_and(|step| is_uneven(step, batch.rows)), "step"),
        (!batch.variables.is_empty() && is_uneven(&batch.variable, batch.rows), "variable"),
        (batch.values.len() != if batch.one_value { 1 } else { batch.rows }, "value"),
    ];
    if let Some((_, name)) = columns.iter().find(|(wrong, _)| *wrong) {
        return wrong(format!("the column '{name}' does not have {} rows", batch.rows));
    }
    match &batch.step {
        Some(Column::One(i64::MIN)) => return wrong(format!("{} is not a valid step", i64::MIN)),
        Some(Column::Each(steps)) if steps.contains(&i64::MIN) => {
            return wrong(format!("{} is not a valid step", i64::MIN));
        }
        _ => {}
    }
    let points = match &batch.variable {
        _ if batch.variables.is_empty() => None,
        Column::One(index) => Some(*index),
        Column::Each(indices) => indices.iter().max().copied(),
    };
    if points.is_some_and(|index| index as usize >= batch.variables.len()) {
        return wrong("a row names a missing variable".into());
    }
    check_boxes(batch).or_else(wrong)?;
    keywords::check(&batch.keywords, batch.rows).or_else(wrong)?;
    check_values(batch).or_else(wrong)
}

fn check_boxes(batch: &AttributeBatch) -> std::result::Result<(), String> {
    let Some(boxes) = &batch.boxes else { return Ok(()) };
    let rank = boxes.rank;
    if !(1..=RANK_MAX).contains(&rank) {
        return Err(format!("a box has 1 to {RANK_MAX} dimensions, not {rank}"));
    }
    if batch.variables.is_empty() {
        return Err("a box needs a variable".into());
    }
    let len = if boxes.is_one() { Some(rank) } else { batch.rows.checked_mul(rank) };
    if Some(boxes.start.len()) != len || Some(boxes.count.len()) != len {
        return Err(format!("the number of boxes does not match {} rows of {rank} dimensions", batch.rows));
    }
    for (i, (start, count)) in boxes.start.iter().zip(&boxes.count).enumerate() {
        if *start < 0 || *count < 1 || start.checked_add(*count).is_none() {
            return Err(format!(
                "row {}: a box from {start} with {count} elements in dimension {} is not valid",
                i / rank,
                i % rank
            ));
        }
    }
    check_cells(boxes)?;
    match most_cells(boxes) {
        most if most > CELLS_MAX => Err(format!("an attribute on {most} cells: {CELLS_MAX} at most")),
        _ => Ok(()),
    }
}

/// Refuses sets of cells whose boxes are not the smallest around them.
fn check_cells(boxes: &Boxes) -> std::result::Result<(), String> {
    let Some(CellSets { dim, sets }) = &boxes.cells else { return Ok(()) };
    if *dim >= boxes.rank {
        return Err(format!("the cells are along dimension {dim} of boxes of rank {}", boxes.rank));
    }
    if sets.len() * boxes.rank != boxes.start.len() {
        return Err(format!(
            "there are {} sets of cells for {} boxes",
            sets.len(),
            boxes.start.len() / boxes.rank
        ));
    }
    for (row, set) in sets.iter().enumerate() {
        let (start, count) = (boxes.start[row * boxes.rank + dim], boxes.count[row * boxes.rank + dim]);
        if let Some(at) = set.windows(2).position(|two| two[0] >= two[1]) {
            return Err(format!(
                "row {row}: cell {} follows cell {}; cells must ascend",
                set[at + 1],
                set[at]
            ));
        }
        if set.first() != Some(&start) || set.last() != Some(&(start + (count - 1))) {
            return Err(format!(
                "row {row}: a box from {start} with {count} is not the smallest around its cells"
            ));
        }
    }
    Ok(())
}

fn check_values(batch: &AttributeBatch) -> std::result::Result<(), String> {
    let kind = batch.tag.kind;
    let fits = match &batch.values {
        Values::Bool(_) => kind == ValueType::Bool,
        Values::Int(_) => matches!(kind, ValueType::Int | ValueType::DateTime),
        Values::UInt(_) => kind == ValueType::UInt,
        Values::Float(_) => kind == ValueType::Float,
        Values::Text(_) => kind == ValueType::Text,
        Values::Any(values) => {
            for (row, value) in values.iter().enumerate() {
                value.check().map_err(|error| format!("row {row}: {}", error.message()))?;
                if value.kind() != kind && kind != ValueType::Json {
                    return Err(format!("row {row}: {value} is not of type {kind}"));
                }
            }
            !matches!(
                kind,
                ValueType::Bool
                    | ValueType::Int
                    | ValueType::UInt
                    | ValueType::Float
                    | ValueType::Text
                    | ValueType::DateTime
            )
        }
    };
    if fits { Ok(()) } else { Err(format!("the values are not of type {kind}")) }
}

/// Number of cells of the largest set.
fn most_cells(boxes: &Boxes) -> usize {
    boxes.cells.iter().flat_map(|cells| &cells.sets).map(|set| set.len()).max().unwrap_or(0)
}

/// Number of cells of all boxes.
fn cell_count(boxes: &Boxes) -> usize {
    boxes.cells.iter().flat_map(|cells| &cells.sets).map(|set| set.len()).sum()
}

/// Whether a column has one value for each row, but not for exactly `rows`.
fn is_uneven<T>(column: &Column<T>, rows: usize) -> bool {
    matches!(column, Column::Each(values) if values.len() != rows)
}

/// Rows `from..to` of a batch, as a batch. Unless they begin its call, they continue that call.
pub fn batch_rows(batch: &AttributeBatch, from: usize, to: usize) -> AttributeBatch {
    AttributeBatch {
        run: batch.run.clone(),
        tag: batch.tag.clone(),
        rows: to - from,
        step: batch.step.as_ref().map(|step| slice_column(step, from, to)),
        variables: batch.variables.clone(),
        variable: slice_column(&batch.variable, from, to),
        boxes: batch.boxes.as_ref().map(|boxes| slice_boxes(boxes, from, to)),
        keywords: keywords::slice(&batch.keywords, from, to),
        values: if batch.one_value { batch.values.clone() } else { slice_values(&batch.values, from, to) },
        one_value: batch.one_value,
        continues: batch.continues || (from > 0 && !batch.singles),
        singles: batch.singles,
    }
}

fn slice_values(values: &Values, from: usize, to: usize) -> Values {
    match values {
        Values::Bool(v) => Values::Bool(v[from..to].to_vec()),
        Values::Int(v) => Values::Int(v[from..to].to_vec()),
        Values::UInt(v) => Values::UInt(v[from..to].to_vec()),
        Values::Float(v) => Values::Float(v[from..to].to_vec()),
        Values::Text(v) => Values::Text(v[from..to].to_vec()),
        Values::Any(v) => Values::Any(v[from..to].to_vec()),
    }
}

fn slice_column<T: Copy>(column: &Column<T>, from: usize, to: usize) -> Column<T> {
    match column {
        Column::One(value) => Column::One(*value),
        Column::Each(values) => Column::Each(values[from..to].to_vec()),
    }
}

fn slice_boxes(boxes: &Boxes, from: usize, to: usize) -> Boxes {
    if boxes.is_one() {
        return boxes.clone();
    }
    let range = from * boxes.rank..to * boxes.rank;
    Boxes {
        rank: boxes.rank,
        start: boxes.start[range.clone()].to_vec(),
        count: boxes.count[range].to_vec(),
        cells: boxes
            .cells
            .as_ref()
            .map(|cells| CellSets { dim: cells.dim, sets: cells.sets[from..to].to_vec() }),
    }
}

/// Splits a batch into parts that fit a record, each but the first with `continues`. The batch has
/// passed [`check_batch`].
pub fn split_batch(batch: AttributeBatch) -> Vec<AttributeBatch> {
    let rank = batch.boxes.as_ref().map_or(1, |boxes| if boxes.is_one() { 1 } else { boxes.rank });
    let most = ROWS_MAX.min(EXTENTS_MAX / rank.max(1));
    let heavy = |from: usize, to: usize| {
        let mut sum = 0usize;
        (from..to).find(|row| {
            sum = sum.saturating_add(weight_at(&batch.values, *row));
            sum > SPLIT_BYTES && *row > from
        })
    };
    let weighs = !batch.one_value && matches!(batch.values, Values::Text(_) | Values::Any(_));
    let sets = batch.boxes.as_ref().filter(|boxes| !boxes.is_one() && cell_count(boxes) > CELLS_MAX);
    let crowded = |boxes: &Boxes, from: usize, to: usize| {
        let mut sum = 0usize;
        (from..to).find(|row| {
            sum += boxes.cells(*row).map_or(0, |(_, set)| set.len());
            sum > CELLS_MAX && *row > from
        })
    };
    let (mut cuts, mut from) = (vec![0], 0);
    while from < batch.rows {
        let mut to = batch.rows.min(from + most);
        to = if weighs { heavy(from, to).unwrap_or(to) } else { to };
        to = sets.and_then(|boxes| crowded(boxes, from, to)).unwrap_or(to);
        from = to;
        cuts.push(from);
    }
    if cuts.len() <= 2 {
        return vec![batch];
    }
    cuts.windows(2).map(|two| batch_rows(&batch, two[0], two[1])).collect()
}

/// Approximate number of bytes that the value at `index` takes.
fn weight_at(values: &Values, index: usize) -> usize {
    match values {
        Values::Text(v) => v[index].len(),
        Values::Any(v) => weight(&v[index]),
        _ => 8,
    }
}

fn weight(value: &Value) -> usize {
    match value {
        Value::Text(text) => 8 + text.len(),
        Value::Bytes(bytes) => 8 + bytes.len(),
        Value::Array(items) | Value::List(items) => 8 + items.iter().map(weight).sum::<usize>(),
        Value::Map(pairs) => 8 + pairs.iter().map(|(key, item)| 8 + key.len() + weight(item)).sum::<usize>(),
        _ => 16,
    }
}
