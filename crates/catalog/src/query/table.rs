//! Hits in columns.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_format::catalog::AttributeId;

use super::hit_ref::HitRef;
use super::{Cells, Hit, RowKeywords};

/// Texts of a column, each distinct text stored once.
#[derive(Debug, Clone, Default)]
pub struct Coded {
    /// An index into `words` for each row; `u32::MAX` for none.
    pub codes: Vec<u32>,
    /// The distinct texts.
    pub words: Vec<Arc<str>>,
}

/// Hits in columns, all of the same length.
#[derive(Debug, Clone, Default)]
pub struct HitTable {
    /// The project; empty for none.
    pub project: Coded,
    /// The run.
    pub run: Coded,
    /// The step.
    pub step: Vec<Option<i64>>,
    /// Time of the step.
    pub time: Vec<Option<f64>>,
    /// The variable.
    pub variable: Coded,
    /// Its version.
    pub variable_version: Vec<i64>,
    /// The tag.
    pub tag: Coded,
    /// Its version, as it is shown.
    pub tag_version: Vec<i64>,
    /// Its unit; empty for none.
    pub unit: Coded,
    /// The value.
    pub value: Vec<Value>,
    /// Row i's box is `start[offsets[i]..offsets[i + 1]]` and the same part of `count`; empty for none. It
    /// has one entry more than there are rows.
    pub offsets: Vec<u64>,
    /// Starts, in elements.
    pub start: Vec<i64>,
    /// Extents, in elements.
    pub count: Vec<i64>,
    /// The cells of the rows that have some, in row order: row, then dimension and indices along it.
    pub cells: Vec<(u64, Cells)>,
    /// The further keywords of the rows that have some, in row order.
    pub keywords: Vec<(u64, RowKeywords)>,
    /// The user who wrote it, by number.
    pub user: Vec<u32>,
    /// Which attribute it is.
    pub id: Vec<AttributeId>,
    /// Rows of attr that were read to find these.
    pub visited: u64,
}

/// Assigns the codes of one column as hits come in.
#[derive(Debug, Default)]
struct Coder {
    coded: Coded,
    /// Codes by address, which hits of one query share, then by text.
    known: HashMap<usize, u32>,
    words: HashMap<Arc<str>, u32>,
    last: Option<(usize, u32)>,
}

impl Coder {
    fn push(&mut self, word: Option<&Arc<str>>) {
        let Some(word) = word else {
            self.coded.codes.push(u32::MAX);
            return;
        };
        let address = Arc::as_ptr(word).cast::<u8>() as usize;
        let code = match self.last {
            Some((last, code)) if last == address => code,
            _ => match self.known.get(&address) {
                Some(code) => *code,
                None => {
                    // The words are kept, so that no address can be reused for another text.
                    let next = u32::try_from(self.coded.words.len()).unwrap_or(u32::MAX);
                    let code = *self.words.entry(word.clone()).or_insert(next);
                    if code == next {
                        self.coded.words.push(word.clone());
                        self.known.insert(address, code);
                    }
                    code
                }
            },
        };
        if self.coded.words.get(code as usize).is_some_and(|kept| Arc::ptr_eq(kept, word)) {
            self.last = Some((address, code));
        }
        self.coded.codes.push(code);
    }
}

impl Coded {
    /// The text of a row.
    pub fn text(&self, row: usize) -> Option<Arc<str>> {
        self.words.get(*self.codes.get(row)? as usize).cloned()
    }
}

impl HitTable {
    /// The cells of a row; `None` if its box holds all of its elements.
    pub fn cells_of(&self, row: usize) -> Option<&Cells> {
        let at = self.cells.binary_search_by_key(&(row as u64), |(row, _)| *row).ok()?;
        self.cells.get(at).map(|(_, cells)| cells)
    }

    /// The further keywords of a row.
    pub fn keywords_of(&self, row: usize) -> Option<&RowKeywords> {
        let at = self.keywords.binary_search_by_key(&(row as u64), |(row, _)| *row).ok()?;
        self.keywords.get(at).map(|(_, keywords)| keywords)
    }

    /// One row as a hit of its own; `None` after the last row.
    pub fn hit(&self, row: usize) -> Option<Hit> {
        let value = self.value.get(row)?.clone();
        let (from, to) = (*self.offsets.get(row)? as usize, *self.offsets.get(row + 1)? as usize);
        let region = (to > from).then(|| (self.start[from..to].to_vec(), self.count[from..to].to_vec()));
        Some(Hit {
            project: self.project.text(row)?,
            run: self.run.text(row)?,
            step: self.step[row],
            time: self.time[row],
            variable: self.variable.text(row),
            variable_version: self.variable_version[row],
            tag: self.tag.text(row)?,
            tag_version: self.tag_version[row],
            unit: self.unit.text(row)?,
            value,
            region,
            cells: self.cells_of(row).cloned(),
            keywords: self.keywords_of(row).cloned(),
            user: self.user[row],
            id: self.id[row],
        })
    }
}

/// Collects hits, one at a time.
#[derive(Debug)]
pub struct TableBuilder {
    table: HitTable,
    names: [Coder; 5],
}

impl Default for TableBuilder {
    fn default() -> TableBuilder {
        let table = HitTable { offsets: vec![0], ..HitTable::default() };
        TableBuilder { table, names: Default::default() }
    }
}

impl TableBuilder {
    /// Adds a hit.
    pub fn push(&mut self, hit: HitRef<'_>) {
        let [project, run, variable, tag, unit] = &mut self.names;
        project.push(Some(hit.project));
        run.push(Some(hit.run));
        variable.push(hit.variable);
        tag.push(Some(hit.tag));
        unit.push(Some(hit.unit));
        let table = &mut self.table;
        table.step.push(hit.step);
        table.time.push(hit.time);
        table.variable_version.push(hit.variable_version);
        table.tag_version.push(hit.tag_version);
        table.value.push(hit.value);
        if let Some((start, count)) = hit.region {
            table.start.extend_from_slice(start);
            table.count.extend_from_slice(count);
        }
        if let Some((dim, cells)) = hit.cells {
            table.cells.push((table.user.len() as u64, (dim, cells.clone())));
        }
        if let Some(keywords) = hit.keywords {
            let last = table.keywords.last().filter(|(_, last)| last == keywords);
            let shared = last.map_or(keywords, |(_, last)| last).clone();
            table.keywords.push((table.user.len() as u64, shared));
        }
        table.offsets.push(table.start.len() as u64);
        table.user.push(hit.user);
        table.id.push(hit.id);
    }

    /// Hits so far.
    pub fn len(&self) -> usize {
        self.table.value.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The hits, with the number of rows read to find them.
    pub fn finish(self, visited: u64) -> HitTable {
        let [project, run, variable, tag, unit] = self.names.map(|coder| coder.coded);
        HitTable { project, run, variable, tag, unit, visited, ..self.table }
    }
}
