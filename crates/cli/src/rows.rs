//! Rows of a table on their way to be attributes: sorted into batches, one for each run, tag and kind of
//! place.
//!
//! Invariants:
//! * a row is whole or an error that names its line; nothing of a file is taken where one is wrong;
//! * rows are kept in columns until [`Rows::take`]: a batch is one call, so that rows of one file do not
//!   replace each other.

use std::collections::HashMap;

use fieldstone::catalog::query::text::{parse_value, parse_value_of};
use fieldstone::catalog::value::{Value, ValueType};
use fieldstone::catalog::{RunName, TagDecl, Values, VariableName};
use fieldstone::{Code, Error, Result, Target, nearest};

use crate::catalog::parse_box;
use crate::csv::Cell;

/// The columns that a table may have. `start` and `count` also one by one: `start_0`, `start_1`.
pub const COLUMNS: [&str; 14] = [
    "tag",
    "value",
    "run",
    "project",
    "variable",
    "version",
    "step",
    "box",
    "start",
    "count",
    "unit",
    "type",
    "tag_version",
    "cells",
];

/// The values for rows without a cell of their own.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// In the order of [`COLUMNS`].
    pub cells: [Option<String>; COLUMNS.len()],
}

/// The values that all rows of a batch share.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Group {
    /// The run.
    pub run: RunName,
    /// The tag's name.
    pub tag: String,
    /// Its version, if given.
    pub tag_version: Option<i64>,
    /// Its unit, if given.
    pub unit: Option<String>,
    /// The type of the values, if given.
    pub kind: Option<ValueType>,
    stepped: bool,
    on_variable: bool,
    on_cells: bool,
    rank: usize,
}

/// Columns of one batch.
#[derive(Debug, Default)]
struct Columns {
    lines: Vec<u64>,
    step: Vec<i64>,
    variable: Vec<u32>,
    variables: Vec<VariableName>,
    start: Vec<i64>,
    count: Vec<i64>,
    cells: Vec<Vec<i64>>,
    values: Vec<Cell>,
}

/// The attributes of one call.
#[derive(Debug)]
pub struct Batch {
    /// The run.
    pub run: RunName,
    /// The tag.
    pub tag: TagDecl,
    /// How many there are.
    pub rows: usize,
    /// The run, step or variable that they describe.
    pub target: Target,
    /// Their values.
    pub values: Values,
}

/// Rows so far.
#[derive(Debug)]
pub struct Rows {
    defaults: Defaults,
    /// For each column of the table, what it is.
    head: Vec<Meaning>,
    /// The type of the values, where the table itself knows it.
    kind: Option<ValueType>,
    groups: Vec<(Group, Columns)>,
    index: HashMap<Group, usize>,
    rows: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    /// Index into [`COLUMNS`].
    Named(usize),
    Start(usize),
    Count(usize),
}

const TAG: usize = 0;
const VALUE: usize = 1;
const RUN: usize = 2;
const PROJECT: usize = 3;
const VARIABLE: usize = 4;
const VERSION: usize = 5;
const STEP: usize = 6;
const BOX: usize = 7;
const START: usize = 8;
const COUNT: usize = 9;
const UNIT: usize = 10;
const TYPE: usize = 11;
const TAG_VERSION: usize = 12;
const CELLS: usize = 13;

impl Rows {
    /// Of a table with these columns; `kind` is the type of its values where it says that.
    pub fn new(names: &[String], kind: Option<ValueType>, defaults: Defaults) -> Result<Rows> {
        let meaning = |name: &String| {
            let name = name.trim().to_ascii_lowercase();
            let numbered = |prefix: &str| name.strip_prefix(prefix).and_then(|n| n.parse::<usize>().ok());
            if let Some(at) = COLUMNS.iter().position(|known| *known == name) {
                return Ok(Meaning::Named(at));
            }
            match (numbered("start_"), numbered("count_")) {
                (Some(dim), _) if dim < 64 => Ok(Meaning::Start(dim)),
                (_, Some(dim)) if dim < 64 => Ok(Meaning::Count(dim)),
                _ => Err(Error::invalid(format!("the table has a column '{name}'")).with_hint(
                    nearest::did_you_mean(&name, COLUMNS).unwrap_or_else(|| {
                        format!("columns are {}, start_0 …, count_0 …", COLUMNS.join(", "))
                    }),
                )),
            }
        };
        let head: Vec<Meaning> = names.iter().map(meaning).collect::<Result<_>>()?;
        for (i, one) in head.iter().enumerate() {
            if head[..i].contains(one) {
                return Err(Error::invalid(format!("the table has the column '{}' twice", names[i])));
            }
        }
        for (at, name) in [(TAG, "tag"), (VALUE, "value"), (RUN, "run")] {
            if !head.contains(&Meaning::Named(at)) && defaults.cells[at].is_none() {
                return Err(Error::invalid(format!("the table has no column '{name}'")).with_hint(
                    match at {
                        RUN => "give the run of all rows: --run NAME".to_owned(),
                        _ => format!("its first line names the columns: {}", COLUMNS.join(",")),
                    },
                ));
            }
        }
        Ok(Rows { defaults, head, kind, groups: Vec::new(), index: HashMap::new(), rows: 0 })
    }

    /// Rows that wait.
    pub fn len(&self) -> u64 {
        self.rows
    }

    /// Whether none wait.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Takes a row; `line` is where it stands.
    pub fn push(&mut self, line: u64, cells: &[Cell]) -> Result<()> {
        let at_line = |error: Error| error.context(format!("line {line}"));
        if cells.len() != self.head.len() {
            return Err(Error::invalid(format!(
                "line {line} has {} cells, the head has {}",
                cells.len(),
                self.head.len()
            ))
            .with_hint("a cell that holds a comma stands in quotes"));
        }
        let row = self.row(cells).map_err(at_line)?;
        let Row { group, variable, step, start, count, cells, value } = row;
        let at = *self.index.entry(group.clone()).or_insert_with(|| {
            self.groups.push((group, Columns::default()));
            self.groups.len() - 1
        });
        let columns = &mut self.groups[at].1;
        if let Some(variable) = variable {
            // Rows of a variable mostly follow one another.
            let last = columns.variable.last().map(|last| *last as usize);
            let known = last
                .filter(|last| columns.variables[*last] == variable)
                .or_else(|| columns.variables.iter().position(|known| *known == variable));
            let index = known.unwrap_or_else(|| {
                columns.variables.push(variable);
                columns.variables.len() - 1
            });
            columns.variable.push(index as u32);
        }
        columns.step.extend(step);
        columns.start.extend(start);
        columns.count.extend(count);
        columns.cells.extend(cells);
        columns.values.push(value);
        columns.lines.push(line);
        self.rows += 1;
        Ok(())
    }

    fn row(&self, cells: &[Cell]) -> Result<Row> {
        let mut named: [Option<&Cell>; COLUMNS.len()] = [None; COLUMNS.len()];
        let (mut starts, mut counts) = (Vec::new(), Vec::new());
        for (cell, meaning) in cells.iter().zip(&self.head) {
            let there = !cell.text.is_empty() || cell.quoted;
            match meaning {
                Meaning::Named(at) if there => named[*at] = Some(cell),
                Meaning::Start(dim) if there => starts.push((*dim, integer("start", &cell.text)?)),
                Meaning::Count(dim) if there => counts.push((*dim, integer("count", &cell.text)?)),
                _ => {}
            }
        }
        let text =
            |at: usize| named[at].map(|cell| cell.text.as_str()).or(self.defaults.cells[at].as_deref());
        let needed =
            |at: usize| text(at).ok_or_else(|| Error::invalid(format!("there is no {}", COLUMNS[at])));
        let number = |at: usize| text(at).map(|word| integer(COLUMNS[at], word)).transpose();
        let (start, count) = region(&text, starts, counts)?;
        let cells = text(CELLS).map(|words| list("cells", words)).transpose()?;
        if cells.is_some() && !start.is_empty() {
            return Err(Error::invalid("cells and a box").with_hint("give one of them"));
        }
        let variable = text(VARIABLE)
            .map(|name| Ok(VariableName { name: name.to_owned(), version: number(VERSION)?.unwrap_or(0) }))
            .transpose()?;
        let step = number(STEP)?;
        let value = match (named[VALUE], &self.defaults.cells[VALUE]) {
            (Some(cell), _) => cell.clone(),
            (None, Some(text)) => unquoted(text),
            (None, None) => return Err(Error::invalid("there is no value")),
        };
        let group = Group {
            run: RunName { project: text(PROJECT).unwrap_or("").to_owned(), name: needed(RUN)?.to_owned() },
            tag: needed(TAG)?.to_owned(),
            tag_version: number(TAG_VERSION)?,
            unit: text(UNIT).map(str::to_owned),
            kind: text(TYPE).map(ValueType::parse).transpose()?.or(self.kind),
            stepped: step.is_some(),
            on_variable: variable.is_some(),
            on_cells: cells.is_some(),
            rank: start.len(),
        };
        Ok(Row { group, variable, step, start, count, cells, value })
    }

    /// Every batch, and no row any more. `tag_of` finds or makes the tag of a group, given the type of
    /// its values, which `kind_of` may know from the tag.
    pub fn take(
        &mut self,
        mut kind_of: impl FnMut(&Group) -> Result<Option<ValueType>>,
        mut tag_of: impl FnMut(&Group, ValueType) -> Result<TagDecl>,
    ) -> Result<Vec<Batch>> {
        self.rows = 0;
        self.index.clear();
        let mut batches = Vec::new();
        for (group, columns) in std::mem::take(&mut self.groups) {
            let known = match group.kind {
                Some(kind) => Some(kind),
                None => kind_of(&group)?,
            };
            let read = || columns.values.iter().map(read).collect::<Vec<Value>>();
            let kind = match known {
                // The type that is there for the name decides, unless it takes numbers and these are others.
                Some(kind) if group.kind.is_some() || !(is_number(kind) && other_numbers(&read(), kind)) => {
                    kind
                }
                _ => kept(&read()),
            };
            let tag = tag_of(&group, kind)?;
            batches.push(columns.batch(group, tag)?);
        }
        Ok(batches)
    }
}

struct Row {
    group: Group,
    variable: Option<VariableName>,
    step: Option<i64>,
    start: Vec<i64>,
    count: Vec<i64>,
    cells: Option<Vec<i64>>,
    value: Cell,
}

impl Columns {
    fn batch(self, group: Group, tag: TagDecl) -> Result<Batch> {
        let rows = self.values.len();
        let mut values = Vec::with_capacity(rows);
        for (cell, line) in self.values.iter().zip(&self.lines) {
            values.push(typed(cell, tag.kind).ok_or_else(|| {
                Error::invalid(format!("line {line}: '{}' is not of type {}", cell.text, tag.kind)).with_hint(
                    format!(
                        "the tag '{}' takes values of type {}; --type, or a column type, says another one",
                        tag.name, tag.kind
                    ),
                )
            })?);
        }
        let mut target = match group.on_variable {
            true => Target::variables(self.variables, Some(self.variable)),
            false => Target::run(),
        };
        if group.stepped {
            target = target.steps(self.step);
        }
        if group.rank > 0 {
            target = target.within_each(group.rank, self.start, self.count);
        }
        if group.on_cells {
            target = target.on_cells_each(self.cells);
        }
        Ok(Batch { run: group.run, rows, target, values: Values::of(tag.kind, values), tag })
    }
}

/// A cell as a value of a type.
fn typed(cell: &Cell, kind: ValueType) -> Option<Value> {
    match kind {
        ValueType::Text => Some(Value::Text(cell.text.clone())),
        ValueType::Json => Some(read(cell)),
        kind => parse_value_of(&cell.text, kind),
    }
}

/// The value that a cell expresses. A quoted cell is text, except for lists and maps, whose commas CSV has to quote.
fn read(cell: &Cell) -> Value {
    let nested = cell.text.trim_start().starts_with(['[', '{']);
    let value = if cell.quoted && !nested { None } else { parse_value(&cell.text).ok() };
    value.unwrap_or_else(|| Value::Text(cell.text.clone()))
}

/// The value of the command line as a cell: text where it stands in quotes of its own.
fn unquoted(text: &str) -> Cell {
    match (text.trim().starts_with(['"', '\'']), parse_value(text)) {
        (true, Ok(Value::Text(inner))) => Cell { text: inner, quoted: true },
        _ => Cell { text: text.to_owned(), quoted: false },
    }
}

/// The type of values that nobody declared: one that keeps all of each.
fn kept(values: &[Value]) -> ValueType {
    let kind = ValueType::narrowest(values);
    let keeps = |value: &Value| value.stands_for(kind).is_some();
    if values.iter().all(keeps) { kind } else { ValueType::Text }
}

/// Whether all values are numbers and some is none that a tag of numbers takes.
fn other_numbers(values: &[Value], kind: ValueType) -> bool {
    values.iter().all(Value::is_number) && values.iter().any(|value| value.stands_for(kind).is_none())
}

fn is_number(kind: ValueType) -> bool {
    matches!(kind, ValueType::Int | ValueType::UInt | ValueType::Float)
}

fn integer(what: &str, word: &str) -> Result<i64> {
    let word = word.trim();
    // Tables write whole numbers as floats where a column has gaps.
    let whole = word.strip_suffix(".0").unwrap_or(word);
    whole.parse().map_err(|_| Code::CommandLine.error(format!("{what}: '{word}' is not a whole number")))
}

/// `75 60 200`, with blanks, commas, semicolons or `x` between, in brackets or not.
fn list(what: &str, text: &str) -> Result<Vec<i64>> {
    let inner = text.trim().trim_start_matches(['[', '(']).trim_end_matches([']', ')']);
    let words = inner.split([' ', ',', ';', 'x']).filter(|word| !word.is_empty());
    words.map(|word| integer(what, word)).collect()
}

/// The box of a row, in one of its three forms; nothing where it has none.
fn region<'a>(
    text: &dyn Fn(usize) -> Option<&'a str>,
    starts: Vec<(usize, i64)>,
    counts: Vec<(usize, i64)>,
) -> Result<(Vec<i64>, Vec<i64>)> {
    if let Some(whole) = text(BOX) {
        return parse_box(whole);
    }
    let side = |what: &str, at: usize, mut one_by_one: Vec<(usize, i64)>| {
        if let Some(words) = text(at) {
            return list(what, words);
        }
        one_by_one.sort_unstable();
        match one_by_one.iter().enumerate().all(|(i, (dim, _))| i == *dim) {
            true => Ok(one_by_one.into_iter().map(|(_, n)| n).collect()),
            false => Err(Error::invalid(format!("{what}: a dimension is missing"))),
        }
    };
    let (start, count) = (side("start", START, starts)?, side("count", COUNT, counts)?);
    if start.len() != count.len() {
        return Err(Error::invalid(format!(
            "start has {} dimensions, count has {}",
            start.len(),
            count.len()
        ))
        .with_hint("a box has a start and a count for each dimension"));
    }
    Ok((start, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(words: &[&str]) -> Vec<Cell> {
        words.iter().map(|word| Cell { text: (*word).to_owned(), quoted: false }).collect()
    }

    fn names(text: &str) -> Vec<String> {
        text.split(',').map(str::to_owned).collect()
    }

    fn taken(head: &str, rows: &[&[&str]]) -> Result<Vec<Batch>> {
        let mut table = Rows::new(&names(head), None, Defaults::default())?;
        for (i, row) in rows.iter().enumerate() {
            table.push(i as u64 + 2, &cells(row))?;
        }
        table.take(
            |_| Ok(None),
            |group, kind| {
                let unit = group.unit.clone().unwrap_or_default();
                Ok(TagDecl { name: group.tag.clone(), version: 0, kind, unit })
            },
        )
    }

    #[test]
    fn rows_become_batches_of_one_run_tag_and_kind_of_place() {
        let batches = taken(
            "run,tag,value,variable,step,box",
            &[
                &["a", "max", "1", "t", "6", "0:5,1:3"],
                &["a", "max", "2.5", "u", "6", "5:6,0:1"],
                &["a", "max", "3", "", "6", ""],
                &["a", "note", "hot", "", "", ""],
                &["b", "max", "4", "t", "6", "0:5,1:3"],
            ],
        )
        .unwrap();
        assert_eq!(batches.len(), 4);
        let first = &batches[0];
        assert_eq!((first.rows, first.tag.kind), (2, ValueType::Float));
        let names = ["t", "u"].map(|name| VariableName { name: name.to_owned(), version: 0 });
        let of_both = Target::variables(names.to_vec(), Some(vec![0, 1])).steps(vec![6, 6]);
        assert_eq!(first.target, of_both.within_each(2, vec![0, 1, 5, 0], vec![5, 2, 1, 1]));
        assert_eq!(first.values.get(0, ValueType::Float), Value::Float(1.0));
        assert_eq!(batches[1].target, Target::run().steps(vec![6]));
        assert_eq!((&batches[2].target, batches[2].tag.kind), (&Target::run(), ValueType::Text));
        assert_eq!(batches[3].run.name, "b");
    }

    #[test]
    fn boxes_have_three_forms() {
        for (head, row) in [
            ("tag,value,run,variable,box", &["t", "1", "r", "v", "2:5,7:8"][..]),
            ("tag,value,run,variable,start,count", &["t", "1", "r", "v", "[2, 7]", "3 1"]),
            ("tag,value,run,variable,start,count", &["t", "1", "r", "v", "2;7", "3x1"]),
            (
                "tag,value,run,variable,start_1,start_0,count_0,count_1",
                &["t", "1", "r", "v", "7", "2", "3", "1.0"],
            ),
        ] {
            let batches = taken(head, &[row]).unwrap();
            let variable = VariableName { name: "v".to_owned(), version: 0 };
            let of_it = Target::variables(vec![variable], Some(vec![0]));
            assert_eq!(batches[0].target, of_it.within_each(2, vec![2, 7], vec![3, 1]), "{head}");
        }
    }

    #[test]
    fn types_are_guessed_from_all_values() {
        for (words, kind) in [
            (&["1", "2"][..], ValueType::Int),
            (&["1", "18446744073709551615"], ValueType::UInt),
            (&["1", "nan"], ValueType::Float),
            (&["1..2", "7"], ValueType::IntRange),
            (&["1..2", "0.5..0.75"], ValueType::FloatRange),
            (&["true", "false"], ValueType::Bool),
            (&["2026-11-21", "2026-11-21T06:00"], ValueType::DateTime),
            (&["1", "x"], ValueType::Text),
            (&["[1, 2]", "[3]"], ValueType::Array),
            (&["[1, 2]", "[3, [4]]"], ValueType::Json),
            (&["0x00", "0xff"], ValueType::Bytes),
        ] {
            let rows: Vec<Vec<&str>> = words.iter().map(|word| vec!["r", "t", *word]).collect();
            let rows: Vec<&[&str]> = rows.iter().map(Vec::as_slice).collect();
            let batches = taken("run,tag,value", &rows).unwrap();
            assert_eq!(batches[0].tag.kind, kind, "{words:?}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (head, row, part) in [
            ("run,tag,valeu", &["r", "t", "1"][..], "column 'valeu'"),
            ("run,tag", &["r", "t"], "no column 'value'"),
            ("tag,value", &["t", "1"], "no column 'run'"),
            ("run,tag,value,run", &["r", "t", "1", "r"], "'run' twice"),
            ("run,tag,value", &["r", "t"], "line 2 has 2 cells, the head has 3"),
            ("run,tag,value", &["r", "", "1"], "line 2: there is no tag"),
            ("run,tag,value", &["r", "t", ""], "line 2: there is no value"),
            ("run,tag,value,step", &["r", "t", "1", "1.5"], "line 2: step: '1.5' is not a whole number"),
            ("run,tag,value,type", &["r", "t", "x", "float"], "line 2: 'x' is not of type float"),
            ("run,tag,value,type", &["r", "t", "x", "flaot"], "'flaot' is not a type"),
            (
                "run,tag,value,variable,start",
                &["r", "t", "1", "v", "1 2"],
                "start has 2 dimensions, count has 0",
            ),
            (
                "run,tag,value,variable,start_1,count_1",
                &["r", "t", "1", "v", "1", "2"],
                "a dimension is missing",
            ),
            ("run,tag,value,variable,box", &["r", "t", "1", "v", "z:1:2"], "'z:1:2' is not a box"),
        ] {
            let error = taken(head, &[row]).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
    }
}
