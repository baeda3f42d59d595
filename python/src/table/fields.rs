//! The table of a listing: one column per keyword, then the index information of each field.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone::{FieldLocation, KeyValue, KeywordType, Level, ListEntry, Scalar, Schema};

use super::{Column, Table};

/// Columns other than keywords, in order; the guide documents them.
const FIXED: [&str; 12] = [
    "nbytes", "dtype", "shape", "complete", "masked", "location", "flushed", "owner", "min", "max",
    "missing", "attempt",
];

/// Collects entries into a table.
pub struct FieldTable {
    schema: Schema,
    rows: usize,
    keywords: Vec<Keyword>,
    by_name: HashMap<Arc<str>, usize>,
    last: Vec<Last>,
    nbytes: Vec<Option<u64>>,
    dtypes: Texts,
    shapes: Vec<Option<Arc<[u64]>>>,
    complete: Vec<bool>,
    masked: Vec<bool>,
    places: Vec<Option<FieldLocation>>,
    flushed: Vec<i64>,
    owners: Texts,
    min: Vec<Option<f64>>,
    max: Vec<Option<f64>>,
    missing: Vec<Option<u64>>,
    attempts: Texts,
}

/// The values of one keyword so far.
struct Keyword {
    name: Arc<str>,
    codes: Vec<u32>,
    distinct: Vec<KeyValue>,
    known: HashMap<KeyValue, u32>,
}

/// A level of the previous entry: neighbours mostly share levels, and therefore codes.
struct Last {
    level: Arc<Level>,
    places: Vec<(usize, u32)>,
}

/// Texts by code.
#[derive(Default)]
struct Texts {
    codes: Vec<u32>,
    distinct: Vec<Option<Arc<str>>>,
}

impl Texts {
    fn push(&mut self, text: Option<&str>) {
        let same = |known: &Option<Arc<str>>| known.as_deref() == text;
        let code = match self.distinct.iter().rposition(same) {
            Some(code) => code,
            None => {
                self.distinct.push(text.map(Arc::from));
                self.distinct.len() - 1
            }
        };
        self.codes.push(code as u32);
    }
}

impl Keyword {
    fn code(&mut self, value: &KeyValue) -> u32 {
        if let Some(code) = self.known.get(value) {
            return *code;
        }
        let code = self.distinct.len() as u32;
        self.distinct.push(value.clone());
        self.known.insert(value.clone(), code);
        code
    }

    /// Fills in rows that lacked the keyword.
    fn pad(&mut self, rows: usize) {
        if self.codes.len() < rows {
            let absent = self.code(&KeyValue::Absent);
            self.codes.resize(rows, absent);
        }
    }
}

impl FieldTable {
    pub fn new(schema: Schema) -> FieldTable {
        FieldTable {
            schema,
            rows: 0,
            keywords: Vec::new(),
            by_name: HashMap::new(),
            last: Vec::new(),
            nbytes: Vec::new(),
            dtypes: Texts::default(),
            shapes: Vec::new(),
            complete: Vec::new(),
            masked: Vec::new(),
            places: Vec::new(),
            flushed: Vec::new(),
            owners: Texts::default(),
            min: Vec::new(),
            max: Vec::new(),
            missing: Vec::new(),
            attempts: Texts::default(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, entry: ListEntry) {
        let depth = usize::from(entry.depth);
        self.last.truncate(depth);
        for (i, level) in entry.key.levels.iter().take(depth).enumerate() {
            match self.last.get(i) {
                Some(last) if Arc::ptr_eq(&last.level, level) => {}
                _ => {
                    let places = self.codes_of(level);
                    let last = Last { level: level.clone(), places };
                    match self.last.get_mut(i) {
                        Some(slot) => *slot = last,
                        None => self.last.push(last),
                    }
                }
            }
        }
        for last in &self.last {
            for (keyword, code) in &last.places {
                let keyword = &mut self.keywords[*keyword];
                keyword.pad(self.rows);
                // A keyword on several levels shows its deepest value.
                keyword.codes.truncate(self.rows);
                keyword.codes.push(*code);
            }
        }
        self.rows += 1;
        let dtype = entry.dtype.map(|dtype| dtype.to_string());
        self.dtypes.push(dtype.as_deref());
        self.nbytes.push(Some(entry.nbytes));
        self.shapes.push(entry.shape);
        self.complete.push(entry.complete);
        self.masked.push(entry.masked);
        self.places.push(entry.place);
        self.flushed.push(entry.time);
        self.owners.push(Some(&entry.owner));
        self.attempts.push(entry.attempt.as_deref());
        let number = |scalar: Option<Scalar>| match scalar? {
            Scalar::Int(i) => Some(i as f64),
            Scalar::UInt(u) => Some(u as f64),
            Scalar::Float(x) => Some(x),
        };
        self.min.push(entry.summary.as_ref().and_then(|summary| number(summary.min)));
        self.max.push(entry.summary.as_ref().and_then(|summary| number(summary.max)));
        self.missing.push(entry.summary.as_ref().and_then(|summary| summary.missing));
    }

    fn codes_of(&mut self, level: &Level) -> Vec<(usize, u32)> {
        let mut codes = Vec::with_capacity(level.names.len());
        for (name, value) in level.names.iter().zip(&level.values) {
            let place = *self.by_name.entry(name.clone()).or_insert_with(|| {
                let name = name.clone();
                let (codes, distinct, known) = (Vec::new(), Vec::new(), HashMap::new());
                self.keywords.push(Keyword { name, codes, distinct, known });
                self.keywords.len() - 1
            });
            codes.push((place, self.keywords[place].code(value)));
        }
        codes
    }

    /// An empty table with these columns: the rows served only to determine their types.
    pub fn finish_without_rows(self) -> Table {
        Table::new(self.columns().into_iter().map(|(name, column)| (name, column.emptied())).collect(), 0)
    }

    /// The table: keywords in the schema's order, then the fixed columns. If a keyword has the name of a fixed
    /// column, the fixed column gets a leading underscore.
    pub fn finish(self) -> Table {
        let rows = self.rows;
        Table::new(self.columns(), rows)
    }

    fn columns(mut self) -> Vec<(String, Column)> {
        let rows = self.rows;
        let order = self.schema.keywords();
        let place = |name: &str| order.iter().position(|known| **known == *name).unwrap_or(order.len());
        self.keywords.sort_by_key(|keyword| place(&keyword.name));
        let mut named: Vec<(String, Column)> = Vec::new();
        for mut keyword in self.keywords {
            keyword.pad(rows);
            if keyword.distinct.iter().all(KeyValue::is_absent) {
                continue;
            }
            let kind = self.schema.type_of(&keyword.name).unwrap_or(KeywordType::Text);
            named.push((keyword.name.to_string(), Column::keyword(keyword.codes, keyword.distinct, kind)));
        }
        let fixed = [
            Column::Count(self.nbytes),
            Column::Text { codes: self.dtypes.codes, distinct: self.dtypes.distinct },
            Column::Shape(self.shapes),
            Column::Flag(self.complete),
            Column::Flag(self.masked),
            Column::FieldLocation(self.places),
            Column::Time(self.flushed),
            Column::Text { codes: self.owners.codes, distinct: self.owners.distinct },
            Column::Number(self.min),
            Column::Number(self.max),
            Column::Count(self.missing),
            Column::Text { codes: self.attempts.codes, distinct: self.attempts.distinct },
        ];
        for (name, column) in FIXED.iter().zip(fixed) {
            let mut own = (*name).to_owned();
            while named.iter().any(|(taken, _)| *taken == own) {
                own.insert(0, '_');
            }
            named.push((own, column));
        }
        named
    }
}
