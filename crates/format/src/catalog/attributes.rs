//! Attributes in columns: their bytes.
//!
//! ```text
//! attributes = project: text  run: text  tag  flags: u8  rows: varint
//!              n: varint  n x { name: text  version: zigzag }              the variables
//!              [steps: ints(rows)]                                         flag 1
//!              [variable: ints(rows)]                                      if n is 2 or more
//!              [rank: varint  rank x { start: ints(b)  count: ints(b) }]   flag 2; b = 1 with flag 16
//!              [dim: varint  sizes: ints(b)  b x cells: ints(size)]        flag 64
//!              [keywords]                                                  flag 128, see `keywords`
//!              form: u8  values(v)                                         v = 1 with flag 32
//! flags      = 1 steps  2 boxes  4 continues the previous record's call  8 each row is a call
//!              16 all rows have the same box  32 all rows have the same value  64 boxes hold sets of cells
//!              128 rows have further keywords
//! values(v)  = 0 bits(v, 1) | 1 ints(v) | 2 ints(v) of the bits | 3 floats(v) | 4 texts(v)
//!            | 5 v x value | 6 ints(v) ints(v): first, last - first | 7 floats(v) floats(v)
//!            | 8 texts(v), any bytes
//! ```

use fieldstone_core::catalog::{AttributeBatch, Boxes, CellSets, Column, Values, VariableName};
use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};

use super::batch::{CELLS_MAX, EXTENTS_MAX, RANK_MAX, check_batch};
use super::declarations::{put_run, put_tag, read_run, read_tag};
use super::{ROWS_MAX, keywords};
use crate::bytes::{Cursor, Put};
use crate::columns::{
    put_floats, put_ints, put_strings, put_zigzag, read_floats, read_ints, read_strings, read_zigzag, texts,
};
use crate::value::{put_value, read_value};

const STEPS: u8 = 1;
const BOXES: u8 = 2;
const CONTINUES: u8 = 4;
const SINGLES: u8 = 8;
const ONE_BOX: u8 = 16;
const ONE_VALUE: u8 = 32;
const CELLS: u8 = 64;
const KEYWORDS: u8 = 128;

/// Appends a batch that has passed its check.
pub(super) fn put_batch(out: &mut Vec<u8>, batch: &AttributeBatch) {
    put_run(out, &batch.run);
    put_tag(out, &batch.tag);
    let one_box = batch.boxes.as_ref().is_some_and(|boxes| same_boxes(boxes, batch.rows));
    let flags = [
        (batch.step.is_some(), STEPS),
        (batch.boxes.is_some(), BOXES),
        (batch.continues, CONTINUES),
        (batch.singles, SINGLES),
        (one_box, ONE_BOX),
        (batch.one_value || batch.rows == 1, ONE_VALUE),
        (batch.boxes.as_ref().is_some_and(|boxes| boxes.cells.is_some()), CELLS),
        (!batch.keywords.is_empty(), KEYWORDS),
    ];
    out.push(flags.iter().filter(|(set, _)| *set).fold(0, |sum, (_, bit)| sum | bit));
    out.put_varint(batch.rows as u64);
    out.put_varint(batch.variables.len() as u64);
    for variable in &batch.variables {
        out.put_bytes(variable.name.as_bytes());
        put_zigzag(out, variable.version);
    }
    match &batch.step {
        None => {}
        Some(Column::One(step)) => put_ints(out, &[*step]),
        Some(Column::Each(steps)) => put_ints(out, steps),
    }
    if batch.variables.len() > 1 {
        match &batch.variable {
            Column::One(index) => put_ints(out, &[i64::from(*index)]),
            Column::Each(indices) => {
                put_ints(out, &indices.iter().map(|index| i64::from(*index)).collect::<Vec<i64>>());
            }
        }
    }
    if let Some(boxes) = &batch.boxes {
        out.put_varint(boxes.rank as u64);
        let rows = if one_box { 1 } else { batch.rows };
        let mut column = Vec::with_capacity(rows);
        for dim in 0..boxes.rank {
            for side in [&boxes.start, &boxes.count] {
                column.clear();
                column.extend(side.iter().skip(dim).step_by(boxes.rank).take(rows));
                put_ints(out, &column);
            }
        }
        if let Some(CellSets { dim, sets }) = &boxes.cells {
            let sets = &sets[..rows];
            out.put_varint(*dim as u64);
            put_ints(out, &sets.iter().map(|set| set.len() as i64).collect::<Vec<i64>>());
            sets.iter().for_each(|set| put_ints(out, set));
        }
    }
    if !batch.keywords.is_empty() {
        keywords::put(out, &batch.keywords, batch.rows);
    }
    put_values(out, &batch.values);
}

/// Whether all rows have the same box, in either form.
fn same_boxes(boxes: &Boxes, rows: usize) -> bool {
    let same = |side: &[i64]| side.chunks_exact(boxes.rank.max(1)).all(|one| one == &side[..boxes.rank]);
    let same_sets = || boxes.cells.iter().all(|cells| cells.sets.windows(2).all(|two| two[0] == two[1]));
    boxes.is_one() || rows == 1 || (same(&boxes.start) && same(&boxes.count) && same_sets())
}

fn put_values(out: &mut Vec<u8>, values: &Values) {
    match values {
        Values::Bool(v) => {
            out.push(0);
            out.extend(
                v.chunks(8)
                    .map(|bits| bits.iter().enumerate().fold(0, |byte, (i, bit)| byte | u8::from(*bit) << i)),
            );
        }
        Values::Int(v) => {
            out.push(1);
            put_ints(out, v);
        }
        Values::UInt(v) => {
            out.push(2);
            put_ints(out, &v.iter().map(|n| *n as i64).collect::<Vec<i64>>());
        }
        Values::Float(v) => {
            out.push(3);
            put_floats(out, v);
        }
        Values::Text(v) => {
            out.push(4);
            put_strings(out, v);
        }
        Values::Any(v) => put_any(out, v),
    }
}

/// Writes ranges and bytes in columns if all values are of one of these types; else one value after another.
fn put_any(out: &mut Vec<u8>, values: &[Value]) {
    macro_rules! all {
        ($pattern:pat => $part:expr) => {
            values
                .iter()
                .map(|value| if let $pattern = value { Some($part) } else { None })
                .collect::<Option<Vec<_>>>()
        };
    }
    if let Some(ends) = all!(Value::IntRange(a, b) => (*a, b.wrapping_sub(*a))) {
        let (first, length): (Vec<i64>, Vec<i64>) = ends.into_iter().unzip();
        out.push(6);
        put_ints(out, &first);
        put_ints(out, &length);
    } else if let Some(ends) = all!(Value::FloatRange(a, b) => (*a, *b)) {
        let (first, last): (Vec<f64>, Vec<f64>) = ends.into_iter().unzip();
        out.push(7);
        put_floats(out, &first);
        put_floats(out, &last);
    } else if let Some(strings) = all!(Value::Bytes(bytes) => bytes.as_slice()) {
        out.push(8);
        put_strings(out, &strings);
    } else {
        out.push(5);
        values.iter().for_each(|value| put_value(out, value));
    }
}

/// Reads a batch and checks it.
pub(super) fn read_batch(cursor: &mut Cursor<'_>) -> Result<AttributeBatch> {
    let run = read_run(cursor)?;
    let tag = read_tag(cursor)?;
    let flags = cursor.u8()?;
    let cells_alone = flags & (CELLS | BOXES) == CELLS;
    if cells_alone {
        return Err(cursor.fail("attributes have an unknown flag"));
    }
    let has = |flag: u8| flags & flag != 0;
    let rows = cursor.size()?;
    if !(1..=ROWS_MAX).contains(&rows) {
        return Err(cursor.fail("attributes have an impossible number of rows"));
    }
    let mut variables = Vec::new();
    for _ in 0..cursor.count(2)? {
        variables.push(VariableName { name: cursor.text()?.to_owned(), version: read_zigzag(cursor)? });
    }
    let step = if has(STEPS) { Some(column(read_ints(cursor, rows)?)) } else { None };
    let variable = if variables.len() > 1 {
        let indices = read_ints(cursor, rows)?.into_iter().map(u32::try_from);
        column(
            indices
                .collect::<std::result::Result<Vec<u32>, _>>()
                .map_err(|_| cursor.fail("a row names a missing variable"))?,
        )
    } else {
        Column::One(0)
    };
    let sets = if has(ONE_BOX) { 1 } else { rows };
    let mut boxes = if has(BOXES) { Some(read_boxes(cursor, sets)?) } else { None };
    if let (Some(boxes), true) = (&mut boxes, has(CELLS)) {
        boxes.cells = Some(read_cells(cursor, sets)?);
    }
    let keywords = if has(KEYWORDS) { keywords::read(cursor, rows)? } else { Vec::new() };
    let values = read_values(cursor, if has(ONE_VALUE) { 1 } else { rows })?;
    let batch = AttributeBatch {
        run,
        tag,
        rows,
        step,
        variables,
        variable,
        boxes,
        keywords,
        values,
        one_value: has(ONE_VALUE),
        continues: has(CONTINUES),
        singles: has(SINGLES),
    };
    check_batch(&batch).map_err(|error| Error::corrupt(error.message()))?;
    Ok(batch)
}

/// One value if all rows have the same.
fn column<T: Copy + PartialEq>(values: Vec<T>) -> Column<T> {
    match values.first() {
        Some(first) if values.iter().all(|value| value == first) => Column::One(*first),
        _ => Column::Each(values),
    }
}

fn read_boxes(cursor: &mut Cursor<'_>, rows: usize) -> Result<Boxes> {
    let rank = cursor.size()?;
    if !(1..=RANK_MAX).contains(&rank) || rows * rank > EXTENTS_MAX {
        return Err(cursor.fail("boxes have an impossible number of dimensions"));
    }
    let mut boxes = Boxes { rank, start: vec![0; rows * rank], count: vec![0; rows * rank], cells: None };
    for dim in 0..rank {
        for side in [&mut boxes.start, &mut boxes.count] {
            for (row, value) in read_ints(cursor, rows)?.into_iter().enumerate() {
                side[row * rank + dim] = value;
            }
        }
    }
    Ok(boxes)
}

fn read_cells(cursor: &mut Cursor<'_>, sets: usize) -> Result<CellSets> {
    let dim = cursor.size()?;
    let mut left = CELLS_MAX;
    let mut cells = CellSets { dim, sets: Vec::with_capacity(sets) };
    for size in read_ints(cursor, sets)? {
        let size = usize::try_from(size).ok().filter(|size| (1..=left).contains(size));
        let size = size.ok_or_else(|| cursor.fail("sets have an impossible number of cells"))?;
        left -= size;
        cells.sets.push(read_ints(cursor, size)?.into());
    }
    Ok(cells)
}

fn read_values(cursor: &mut Cursor<'_>, rows: usize) -> Result<Values> {
    Ok(match cursor.u8()? {
        0 => {
            let bits = cursor.take(rows.div_ceil(8))?;
            Values::Bool((0..rows).map(|i| bits[i / 8] >> (i % 8) & 1 == 1).collect())
        }
        1 => Values::Int(read_ints(cursor, rows)?),
        2 => Values::UInt(read_ints(cursor, rows)?.into_iter().map(|n| n as u64).collect()),
        3 => Values::Float(read_floats(cursor, rows)?),
        4 => Values::Text(texts(read_strings(cursor, rows)?)?),
        5 => {
            let mut values = Vec::new();
            for _ in 0..rows {
                values.push(read_value(cursor)?);
            }
            Values::Any(values)
        }
        6 => {
            let (first, length) = (read_ints(cursor, rows)?, read_ints(cursor, rows)?);
            let range = |(a, n): (i64, i64)| Value::IntRange(a, a.wrapping_add(n));
            Values::Any(first.into_iter().zip(length).map(range).collect())
        }
        7 => {
            let (first, last) = (read_floats(cursor, rows)?, read_floats(cursor, rows)?);
            Values::Any(first.into_iter().zip(last).map(|(a, b)| Value::FloatRange(a, b)).collect())
        }
        8 => {
            let strings = read_strings(cursor, rows)?;
            Values::Any(strings.into_iter().map(|bytes| Value::Bytes(bytes.to_vec())).collect())
        }
        _ => return Err(cursor.fail("values have an unknown form")),
    })
}
