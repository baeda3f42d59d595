//! Attributes in columns: their bytes, their rules, and access by row.
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

use std::sync::Arc;

use fieldstone_core::value::{Value, ValueType};
use fieldstone_core::{Error, Result};

use super::declarations::{put_run, put_tag, read_run, read_tag};
use super::keywords;
use super::{AttributeBatch, Boxes, CellSets, Column, ROWS_MAX, Values, VariableName};
use crate::bytes::{Cursor, Put};
use crate::columns::{
    put_floats, put_ints, put_strings, put_zigzag, read_floats, read_ints, read_strings, read_zigzag, texts,
};
use crate::log::kinds;
use crate::value::{put_value, read_value};

const STEPS: u8 = 1;
const BOXES: u8 = 2;
const CONTINUES: u8 = 4;
const SINGLES: u8 = 8;
const ONE_BOX: u8 = 16;
const ONE_VALUE: u8 = 32;
const CELLS: u8 = 64;
const KEYWORDS: u8 = 128;

/// Most dimensions of a box.
pub const RANK_MAX: usize = 64;
/// Most rows of a record times dimensions of their boxes.
const EXTENTS_MAX: usize = 16 * ROWS_MAX;
/// Most cells of a record.
pub const CELLS_MAX: usize = 1 << 24;
/// Bytes of values after which a batch is split.
const SPLIT_BYTES: usize = 16 << 20;

impl Values {
    /// Number of values.
    pub fn len(&self) -> usize {
        match self {
            Values::Bool(v) => v.len(),
            Values::Int(v) => v.len(),
            Values::UInt(v) => v.len(),
            Values::Float(v) => v.len(),
            Values::Text(v) => v.len(),
            Values::Any(v) => v.len(),
        }
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `index`, of type `kind`; `Null` if there is none.
    pub fn get(&self, index: usize, kind: ValueType) -> Value {
        let value = match self {
            Values::Bool(v) => v.get(index).map(|b| Value::Bool(*b)),
            Values::Int(v) if kind == ValueType::DateTime => v.get(index).map(|n| Value::DateTime(*n)),
            Values::Int(v) => v.get(index).map(|n| Value::Int(*n)),
            Values::UInt(v) => v.get(index).map(|n| Value::UInt(*n)),
            Values::Float(v) => v.get(index).map(|n| Value::Float(*n)),
            Values::Text(v) => v.get(index).map(|text| Value::Text(text.clone())),
            Values::Any(v) => v.get(index).cloned(),
        };
        value.unwrap_or(Value::Null)
    }

    /// A column for values of type `kind`, each of that type already.
    pub fn of(kind: ValueType, values: Vec<Value>) -> Values {
        macro_rules! column {
            ($to:ident, $($from:ident)|+) => {
                Values::$to(values.into_iter().filter_map(|value| match value {
                    $(Value::$from(v))|+ => Some(v),
                    _ => None,
                }).collect())
            };
        }
        match kind {
            ValueType::Bool => column!(Bool, Bool),
            ValueType::Int | ValueType::DateTime => column!(Int, Int | DateTime),
            ValueType::UInt => column!(UInt, UInt),
            ValueType::Float => column!(Float, Float),
            ValueType::Text => column!(Text, Text),
            _ => Values::Any(values),
        }
    }

    fn slice(&self, from: usize, to: usize) -> Values {
        match self {
            Values::Bool(v) => Values::Bool(v[from..to].to_vec()),
            Values::Int(v) => Values::Int(v[from..to].to_vec()),
            Values::UInt(v) => Values::UInt(v[from..to].to_vec()),
            Values::Float(v) => Values::Float(v[from..to].to_vec()),
            Values::Text(v) => Values::Text(v[from..to].to_vec()),
            Values::Any(v) => Values::Any(v[from..to].to_vec()),
        }
    }

    /// Approximate number of bytes that the value at `index` takes.
    fn weight(&self, index: usize) -> usize {
        match self {
            Values::Text(v) => v[index].len(),
            Values::Any(v) => weight(&v[index]),
            _ => 8,
        }
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

impl<T: Copy + PartialEq> Column<T> {
    /// The value of a row.
    pub fn get(&self, row: usize) -> Option<T> {
        match self {
            Column::One(value) => Some(*value),
            Column::Each(values) => values.get(row).copied(),
        }
    }

    fn slice(&self, from: usize, to: usize) -> Column<T> {
        match self {
            Column::One(value) => Column::One(*value),
            Column::Each(values) => Column::Each(values[from..to].to_vec()),
        }
    }

    fn fits(&self, rows: usize) -> bool {
        matches!(self, Column::Each(values) if values.len() != rows)
    }
}

impl Boxes {
    /// Whether one box holds for all of `rows`.
    pub fn is_one(&self) -> bool {
        self.start.len() == self.rank
    }

    /// Start and count of a row.
    pub fn get(&self, row: usize) -> Option<(&[i64], &[i64])> {
        let at = if self.is_one() { 0 } else { row.checked_mul(self.rank)? };
        Some((self.start.get(at..at + self.rank)?, self.count.get(at..at + self.rank)?))
    }

    /// The dimension and the indices of a row's cells; `None` if its box contains all of its elements.
    pub fn cells(&self, row: usize) -> Option<(usize, &Arc<[i64]>)> {
        let cells = self.cells.as_ref()?;
        Some((cells.dim, cells.sets.get(if self.is_one() { 0 } else { row })?))
    }

    /// Number of cells of the largest set.
    fn most_cells(&self) -> usize {
        self.cells.iter().flat_map(|cells| &cells.sets).map(|set| set.len()).max().unwrap_or(0)
    }

    /// Number of cells of all boxes.
    fn cell_count(&self) -> usize {
        self.cells.iter().flat_map(|cells| &cells.sets).map(|set| set.len()).sum()
    }

    fn slice(&self, from: usize, to: usize) -> Boxes {
        if self.is_one() {
            return self.clone();
        }
        let range = from * self.rank..to * self.rank;
        Boxes {
            rank: self.rank,
            start: self.start[range.clone()].to_vec(),
            count: self.count[range].to_vec(),
            cells: self
                .cells
                .as_ref()
                .map(|cells| CellSets { dim: cells.dim, sets: cells.sets[from..to].to_vec() }),
        }
    }

    /// Refuses sets of cells whose boxes are not the smallest around them.
    fn check_cells(&self) -> std::result::Result<(), String> {
        let Some(CellSets { dim, sets }) = &self.cells else { return Ok(()) };
        if *dim >= self.rank {
            return Err(format!("the cells are along dimension {dim} of boxes of rank {}", self.rank));
        }
        if sets.len() * self.rank != self.start.len() {
            return Err(format!(
                "there are {} sets of cells for {} boxes",
                sets.len(),
                self.start.len() / self.rank
            ));
        }
        for (row, set) in sets.iter().enumerate() {
            let (start, count) = (self.start[row * self.rank + dim], self.count[row * self.rank + dim]);
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
}

impl AttributeBatch {
    /// Step of a row.
    pub fn step_of(&self, row: usize) -> Option<i64> {
        self.step.as_ref()?.get(row)
    }

    /// Index of a row's variable in `variables`.
    pub fn variable_index(&self, row: usize) -> Option<usize> {
        let index = self.variable.get(row)? as usize;
        (index < self.variables.len()).then_some(index)
    }

    /// Variable of a row.
    pub fn variable_of(&self, row: usize) -> Option<&VariableName> {
        self.variables.get(self.variable_index(row)?)
    }

    /// Start and count of a row's box.
    pub fn box_of(&self, row: usize) -> Option<(&[i64], &[i64])> {
        self.boxes.as_ref()?.get(row)
    }

    /// Value of a row, of the tag's type.
    pub fn value_of(&self, row: usize) -> Value {
        self.values.get(if self.one_value { 0 } else { row }, self.tag.kind)
    }

    /// The bit of [`kinds`] that makes it visible.
    pub fn kind_bit(&self) -> u32 {
        match (self.variables.is_empty(), &self.step) {
            (false, _) => kinds::VARIABLE_ATTRIBUTE,
            (true, Some(_)) => kinds::STEP_ATTRIBUTE,
            (true, None) => kinds::RUN_ATTRIBUTE,
        }
    }

    /// Refuses content that a record may not hold: columns without exactly `rows` rows, empty names, boxes
    /// that are empty or outside 0 to 2^63 - 1, boxes without a variable, values of another type than the
    /// tag's.
    pub fn check(&self) -> Result<()> {
        let what = || format!("attributes '{}' of run '{}'", self.tag.name, self.run.name);
        let wrong = |why: String| Err(Error::invalid(format!("{}: {why}", what())));
        if self.rows == 0 {
            return wrong("there are no rows".into());
        }
        if self.run.name.is_empty() || self.tag.name.is_empty() {
            return wrong("a run and a tag need a name".into());
        }
        if self.variables.iter().any(|variable| variable.name.is_empty()) {
            return wrong("a variable needs a name".into());
        }
        let columns = [
            (self.step.as_ref().is_some_and(|step| step.fits(self.rows)), "step"),
            (!self.variables.is_empty() && self.variable.fits(self.rows), "variable"),
            (self.values.len() != if self.one_value { 1 } else { self.rows }, "value"),
        ];
        if let Some((_, name)) = columns.iter().find(|(wrong, _)| *wrong) {
            return wrong(format!("the column '{name}' does not have {} rows", self.rows));
        }
        match &self.step {
            Some(Column::One(i64::MIN)) => return wrong(format!("{} is not a valid step", i64::MIN)),
            Some(Column::Each(steps)) if steps.contains(&i64::MIN) => {
                return wrong(format!("{} is not a valid step", i64::MIN));
            }
            _ => {}
        }
        let points = match &self.variable {
            _ if self.variables.is_empty() => None,
            Column::One(index) => Some(*index),
            Column::Each(indices) => indices.iter().max().copied(),
        };
        if points.is_some_and(|index| index as usize >= self.variables.len()) {
            return wrong("a row names a missing variable".into());
        }
        self.check_boxes().or_else(wrong)?;
        keywords::check(&self.keywords, self.rows).or_else(wrong)?;
        self.check_values().or_else(wrong)
    }

    fn check_boxes(&self) -> std::result::Result<(), String> {
        let Some(boxes) = &self.boxes else { return Ok(()) };
        let rank = boxes.rank;
        if !(1..=RANK_MAX).contains(&rank) {
            return Err(format!("a box has 1 to {RANK_MAX} dimensions, not {rank}"));
        }
        if self.variables.is_empty() {
            return Err("a box needs a variable".into());
        }
        let len = if boxes.is_one() { Some(rank) } else { self.rows.checked_mul(rank) };
        if Some(boxes.start.len()) != len || Some(boxes.count.len()) != len {
            return Err(format!(
                "the number of boxes does not match {} rows of {rank} dimensions",
                self.rows
            ));
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
        boxes.check_cells()?;
        match boxes.most_cells() {
            most if most > CELLS_MAX => Err(format!("an attribute on {most} cells: {CELLS_MAX} at most")),
            _ => Ok(()),
        }
    }

    fn check_values(&self) -> std::result::Result<(), String> {
        let kind = self.tag.kind;
        let fits = match &self.values {
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

    /// Rows `from..to` as a batch. Unless it begins this batch's call, it continues that call.
    pub fn rows(&self, from: usize, to: usize) -> AttributeBatch {
        AttributeBatch {
            run: self.run.clone(),
            tag: self.tag.clone(),
            rows: to - from,
            step: self.step.as_ref().map(|step| step.slice(from, to)),
            variables: self.variables.clone(),
            variable: self.variable.slice(from, to),
            boxes: self.boxes.as_ref().map(|boxes| boxes.slice(from, to)),
            keywords: keywords::slice(&self.keywords, from, to),
            values: if self.one_value { self.values.clone() } else { self.values.slice(from, to) },
            one_value: self.one_value,
            continues: self.continues || (from > 0 && !self.singles),
            singles: self.singles,
        }
    }

    /// Splits the batch into parts that fit a record, each but the first with `continues`. The batch has
    /// passed [`check`](AttributeBatch::check).
    pub fn split(self) -> Vec<AttributeBatch> {
        let rank = self.boxes.as_ref().map_or(1, |boxes| if boxes.is_one() { 1 } else { boxes.rank });
        let most = ROWS_MAX.min(EXTENTS_MAX / rank.max(1));
        let heavy = |from: usize, to: usize| {
            let mut sum = 0usize;
            (from..to).find(|row| {
                sum = sum.saturating_add(self.values.weight(*row));
                sum > SPLIT_BYTES && *row > from
            })
        };
        let weighs = !self.one_value && matches!(self.values, Values::Text(_) | Values::Any(_));
        let sets = self.boxes.as_ref().filter(|boxes| !boxes.is_one() && boxes.cell_count() > CELLS_MAX);
        let crowded = |boxes: &Boxes, from: usize, to: usize| {
            let mut sum = 0usize;
            (from..to).find(|row| {
                sum += boxes.cells(*row).map_or(0, |(_, set)| set.len());
                sum > CELLS_MAX && *row > from
            })
        };
        let (mut cuts, mut from) = (vec![0], 0);
        while from < self.rows {
            let mut to = self.rows.min(from + most);
            to = if weighs { heavy(from, to).unwrap_or(to) } else { to };
            to = sets.and_then(|boxes| crowded(boxes, from, to)).unwrap_or(to);
            from = to;
            cuts.push(from);
        }
        if cuts.len() <= 2 {
            return vec![self];
        }
        cuts.windows(2).map(|two| self.rows(two[0], two[1])).collect()
    }
}

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
    batch.check().map_err(|error| Error::corrupt(error.message()))?;
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
