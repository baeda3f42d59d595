//! All hits of a query in columns: for Arrow, for the other ranks of a job, and one by one.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fieldstone::Id;
use fieldstone::catalog::query::{Coded, RowKeywords};
use fieldstone::catalog::step_number;
use fieldstone::catalog::value::{Value, ValueType};
use fieldstone::catalog::{AttributeId, HitTable, Writer};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyType};

use super::hits::{PyHit, Source, Users};
use super::values;
use crate::errors::{Raise, invalid};
use crate::sequence::Several;
use crate::store::Store;
use crate::table::{Column, Table, ValueColumn};

/// All hits of a query, in columns. It pickles without its store.
#[pyclass(frozen, name = "_HitTable", module = "fieldstone._native")]
pub struct PyHitTable {
    pub table: Arc<HitTable>,
    pub users: Arc<Users>,
}

/// Builds a text column; empty words are absent if `empty_is_none`.
fn texts(coded: &Coded, empty_is_none: bool) -> Column {
    let mut distinct: Vec<Option<Arc<str>>> = coded.words.iter().cloned().map(Some).collect();
    if empty_is_none {
        distinct.iter_mut().for_each(|word| *word = word.take().filter(|word| !word.is_empty()));
    }
    let none = distinct.len() as u32;
    distinct.push(None);
    let codes = coded.codes.iter().map(|code| (*code).min(none)).collect();
    Column::Text { codes, distinct }
}

impl PyHitTable {
    /// The distinct variables, and each row's index into them.
    #[allow(clippy::type_complexity, reason = "the rows of variables()")]
    fn grouped(&self) -> (Vec<(String, String, Option<String>, i64)>, Vec<usize>) {
        let table = &*self.table;
        let mut known = HashMap::new();
        let mut all = Vec::new();
        let places = (0..table.step.len()).map(|row| {
            let codes = (table.project.codes[row], table.run.codes[row], table.variable.codes[row]);
            *known.entry((codes, table.variable_version[row])).or_insert_with(|| {
                let text = |coded: &Coded| coded.text(row).map(|word| word.to_string());
                let (project, run) = (text(&table.project), text(&table.run));
                let name = text(&table.variable);
                let version = table.variable_version[row];
                all.push((project.unwrap_or_default(), run.unwrap_or_default(), name, version));
                all.len() - 1
            })
        });
        let places = places.collect();
        (all, places)
    }

    /// The writers of the logs that the hits came from, and each row's index into them.
    fn writers(&self) -> PyResult<(Vec<u32>, Vec<WriterState>)> {
        let (codes, logs) = logs_of(&self.table);
        let state = |log: &Option<Id>| -> PyResult<WriterState> {
            let writer = self.users.writer(*log).or_raise()?;
            let of = |writer: Arc<Writer>| {
                let Writer { host, process, rank, job, attempt } = (*writer).clone();
                (host, process, rank, job, attempt)
            };
            Ok((log.unwrap_or(Id::LEAST).to_string(), writer.map(of)))
        };
        Ok((codes, logs.iter().map(state).collect::<PyResult<_>>()?))
    }

    /// The names of the users who annotated.
    fn names(&self) -> BTreeMap<u32, String> {
        let users: BTreeSet<u32> = self.table.user.iter().copied().collect();
        users.into_iter().map(|user| (user, self.users.name(user).to_string())).collect()
    }
}

#[pymethods]
impl PyHitTable {
    fn __len__(&self) -> usize {
        self.table.step.len()
    }

    /// The number of rows that the engine read to find these hits.
    #[getter]
    fn visited(&self) -> u64 {
        self.table.visited
    }

    /// The hit of a row.
    fn hit(slf: &Bound<'_, Self>, store: Py<Store>, txn: Option<String>, row: usize) -> PyResult<PyHit> {
        let own = slf.get();
        match own.table.hit(row) {
            Some(hit) => {
                let users = own.users.clone();
                Ok(PyHit { hit, source: Arc::new(Source { store, txn, users }) })
            }
            None => Err(PyIndexError::new_err(format!("there are {} hits", own.table.step.len()))),
        }
    }

    /// The hits of the given rows.
    fn chosen(&self, rows: Several<usize>) -> PyResult<PyHitTable> {
        let all = self.table.step.len();
        if let Some(row) = rows.0.iter().find(|row| **row >= all) {
            return Err(PyIndexError::new_err(format!("there are {all} hits, none has index {row}")));
        }
        Ok(PyHitTable { table: Arc::new(chosen(&self.table, &rows.0)), users: self.users.clone() })
    }

    /// All hits as a Table; `kind` is the type of the value column if the table is empty.
    #[pyo3(signature = (truncated, kind=None))]
    fn table(&self, py: Python<'_>, truncated: bool, kind: Option<&str>) -> PyResult<Table> {
        let (table, users) = (self.table.clone(), self.users.clone());
        let kind = kind.map(ValueType::parse).transpose().or_raise()?;
        Ok(py.detach(move || {
            let rows = table.step.len();
            Table::new(columns(&table, &users, kind), rows).truncated_to(truncated)
        }))
    }

    /// Puts these columns next to those of other tables with the same rows, which are named `also.NAME`, or
    /// `also1.NAME` … for several tables; all tables share run and project.
    fn beside(&self, py: Python<'_>, others: Several<Py<PyHitTable>>) -> PyResult<Table> {
        if others.0.iter().any(|other| other.get().table.step.len() != self.table.step.len()) {
            return Err(invalid("the tables of hits have different rows", "give those of one result"));
        }
        let tables = |of: &PyHitTable| (of.table.clone(), of.users.clone());
        let own = tables(self);
        let others: Vec<_> = others.0.iter().map(|other| tables(other.get())).collect();
        Ok(py.detach(move || {
            let mut all = columns(&own.0, &own.1, None);
            for (at, (table, users)) in others.iter().enumerate() {
                let prefix =
                    if others.len() == 1 { "related".to_owned() } else { format!("related{}", at + 1) };
                let further = columns(table, users, None).into_iter();
                let further = further.filter(|(name, _)| name != "project" && name != "run");
                all.extend(further.map(|(name, column)| (format!("{prefix}.{name}"), column)));
            }
            Table::new(all, own.0.step.len())
        }))
    }

    /// The distinct variables of the hits: project, run, name, version; the name is absent for the other hits.
    fn variables(&self) -> Vec<(String, String, Option<String>, i64)> {
        self.grouped().0
    }

    /// The hits that share an element with the box of their variable. Boxes are in the order of `variables` and given
    /// as first element and end along dimensions; a variable without a box selects none of its hits.
    fn touching(&self, boxes: Several<Option<Several<(usize, i64, i64)>>>) -> PyHitTable {
        let (table, (_, places)) = (&*self.table, self.grouped());
        let touches = |row: usize| {
            let Some(Some(along)) = boxes.0.get(places[row]) else { return false };
            let ends = table.offsets[row] as usize..table.offsets[row + 1] as usize;
            let (start, count) = (&table.start[ends.clone()], &table.count[ends]);
            along.0.iter().all(|(dim, low, high)| match (start.get(*dim), count.get(*dim)) {
                (Some(first), Some(extent)) => first < high && first.saturating_add(*extent) > *low,
                // An attribute without a box covers the whole variable, so any range that is not empty touches
                // it.
                _ => low < high,
            })
        };
        let rows: Vec<usize> = (0..table.step.len()).filter(|row| touches(*row)).collect();
        PyHitTable { table: Arc::new(chosen(table, &rows)), users: self.users.clone() }
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let table = &*self.table;
        let value = |value: &Value| -> PyResult<(u8, Bound<'py, PyAny>)> {
            Ok((value.kind() as u8, values::object(py, value)?))
        };
        let coded = |coded: &Coded| {
            (coded.codes.clone(), coded.words.iter().map(|word| word.to_string()).collect::<Vec<_>>())
        };
        let cells: Vec<(u64, usize, Vec<i64>)> =
            table.cells.iter().map(|(row, (dim, cells))| (*row, *dim, cells.to_vec())).collect();
        let keywords: Vec<(u64, Vec<(String, String)>)> = (table.keywords.iter())
            .map(|(row, all)| (*row, all.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()))
            .collect();
        let names = [&table.project, &table.run, &table.variable, &table.tag, &table.unit].map(coded);
        let state = (
            names.to_vec(),
            (table.step.clone(), table.time.clone()),
            (table.variable_version.clone(), table.tag_version.clone()),
            table.value.iter().map(value).collect::<PyResult<Vec<_>>>()?,
            (table.offsets.clone(), table.start.clone(), table.count.clone(), cells, keywords),
            (table.user.clone(), self.names(), self.writers()?),
        );
        let restore = py.get_type::<PyHitTable>().getattr("_restore")?;
        Ok((restore, state.into_pyobject(py)?))
    }

    #[classmethod]
    fn _restore(
        _class: &Bound<'_, PyType>,
        names: Several<(Several<u32>, Several<String>)>,
        when: (Several<Option<i64>>, Several<Option<f64>>),
        versions: (Several<i64>, Several<i64>),
        values: Several<(u8, Bound<'_, PyAny>)>,
        boxes: BoxColumns,
        users: UserColumns,
    ) -> PyResult<PyHitTable> {
        let coded = |(Several(codes), Several(words)): (Several<u32>, Several<String>)| Coded {
            codes,
            words: words.into_iter().map(Arc::from).collect(),
        };
        let foreign = || invalid("hits that were pickled by something else", "pickle them again");
        let Ok([project, run, variable, tag, unit]) = <[_; 5]>::try_from(names.0) else {
            return Err(foreign());
        };
        let values = values.0.iter().map(|(kind, object)| {
            values::of_kind(object, ValueType::from_u8(*kind).unwrap_or(ValueType::Json), "a value")
        });
        let (Several(codes), Several(states)) = users.2;
        let (mut logs, mut writers) = (Vec::new(), BTreeMap::new());
        for (log, writer) in states {
            let log = Some(Id::parse(&log).ok_or_else(foreign)?).filter(|log| *log != Id::LEAST);
            let of = |(host, process, rank, job, attempt)| Writer { host, process, rank, job, attempt };
            writers.insert(log, writer.map(|writer| Arc::new(of(writer))));
            logs.push(log);
        }
        let ids =
            codes.iter().map(|code| logs.get(*code as usize).map(|log| of_log(*log)).ok_or_else(foreign));
        let table = HitTable {
            project: coded(project),
            run: coded(run),
            step: when.0.0,
            time: when.1.0,
            variable: coded(variable),
            variable_version: versions.0.0,
            tag: coded(tag),
            tag_version: versions.1.0,
            unit: coded(unit),
            value: values.collect::<PyResult<_>>()?,
            offsets: boxes.0.0,
            start: boxes.1.0,
            count: boxes.2.0,
            cells: boxes.3.0.into_iter().map(|(row, dim, cells)| (row, (dim, cells.0.into()))).collect(),
            keywords: boxes.4.0.into_iter().map(|(row, all)| (row, keywords_of(all))).collect(),
            user: users.0.0,
            id: ids.collect::<PyResult<_>>()?,
            visited: 0,
        };
        if !is_whole(&table) {
            return Err(foreign());
        }
        let names = users.1.into_iter().map(|(user, name)| (user, name.into()));
        Ok(PyHitTable { table: Arc::new(table), users: Users::known(names.collect(), writers) })
    }
}

/// Offsets, starts and counts of boxes, and the cells and keywords of the rows that have some.
type BoxColumns = (Several<u64>, Several<i64>, Several<i64>, Several<CellsOfRow>, Several<KeywordsOfRow>);

/// The user of each row, the names of users, and the log of each row with the state of its writer.
type UserColumns = (Several<u32>, BTreeMap<u32, String>, (Several<u32>, Several<WriterState>));

/// Row, dimension and cells.
type CellsOfRow = (u64, usize, Several<i64>);

/// Row, and keywords with their values.
type KeywordsOfRow = (u64, Several<(String, String)>);

fn keywords_of(all: Several<(String, String)>) -> RowKeywords {
    all.0.into_iter().map(|(keyword, value)| (keyword.into(), value.into())).collect()
}

/// Whether all columns have the same number of rows and boxes are consistent.
fn is_whole(table: &HitTable) -> bool {
    let rows = table.step.len();
    let coded = [&table.project, &table.run, &table.variable, &table.tag, &table.unit];
    let (offsets, ends) = (&table.offsets, table.start.len() as u64);
    coded.iter().all(|column| column.codes.len() == rows)
        && [table.time.len(), table.value.len(), table.user.len(), table.id.len()] == [rows; 4]
        && [table.variable_version.len(), table.tag_version.len()] == [rows; 2]
        && offsets.len() == rows + 1
        && offsets.is_sorted()
        && offsets.last() == Some(&ends)
        && table.count.len() == table.start.len()
        && table.cells.is_sorted_by(|a, b| a.0 < b.0)
        && table.cells.last().is_none_or(|(row, _)| (*row as usize) < rows)
        && table.keywords.is_sorted_by(|a, b| a.0 < b.0)
        && table.keywords.last().is_none_or(|(row, _)| (*row as usize) < rows)
}

/// Id of a log, and its writer where that is known: host, process, rank, job, attempt.
type WriterState = (String, Option<(String, u32, Option<u32>, String, String)>);

/// A placeholder identity for hits from another process, of which only the log is known.
fn of_log(log: Option<Id>) -> AttributeId {
    AttributeId { writer: log, sequence: 0, record: 0, row: 0 }
}

/// The logs that hits came from, `None` for unflushed hits, and each row's index into them.
fn logs_of(table: &HitTable) -> (Vec<u32>, Vec<Option<Id>>) {
    let mut logs: Vec<Option<Id>> = table.id.iter().map(|id| id.writer).collect();
    logs.sort_unstable();
    logs.dedup();
    let place = |id: &AttributeId| logs.binary_search(&id.writer).unwrap_or_default() as u32;
    (table.id.iter().map(place).collect(), logs)
}

/// The rows at these indices.
fn chosen(table: &HitTable, rows: &[usize]) -> HitTable {
    fn at<T: Clone>(all: &[T], rows: &[usize]) -> Vec<T> {
        rows.iter().map(|row| all[*row].clone()).collect()
    }
    let coded = |coded: &Coded| Coded { codes: at(&coded.codes, rows), words: coded.words.clone() };
    let mut out = HitTable {
        project: coded(&table.project),
        run: coded(&table.run),
        step: at(&table.step, rows),
        time: at(&table.time, rows),
        variable: coded(&table.variable),
        variable_version: at(&table.variable_version, rows),
        tag: coded(&table.tag),
        tag_version: at(&table.tag_version, rows),
        unit: coded(&table.unit),
        value: at(&table.value, rows),
        offsets: vec![0],
        start: Vec::new(),
        count: Vec::new(),
        cells: Vec::new(),
        keywords: Vec::new(),
        user: at(&table.user, rows),
        id: at(&table.id, rows),
        visited: table.visited,
    };
    for (at, row) in rows.iter().enumerate() {
        out.keywords.extend(table.keywords_of(*row).map(|keywords| (at as u64, keywords.clone())));
        out.cells.extend(table.cells_of(*row).map(|cells| (at as u64, cells.clone())));
        let ends = table.offsets[*row] as usize..table.offsets[*row + 1] as usize;
        out.start.extend(&table.start[ends.clone()]);
        out.count.extend(&table.count[ends]);
        out.offsets.push(out.start.len() as u64);
    }
    out
}

/// The cells, for the rows that have some.
fn cells(table: &HitTable) -> Column {
    let (mut offsets, mut values) = (vec![0], Vec::new());
    for row in 0..table.step.len() {
        values.extend(table.cells_of(row).iter().flat_map(|(_, cells)| cells.iter()));
        offsets.push(values.len() as u64);
    }
    Column::Ints { offsets, values }
}

/// One column for each further keyword, `keyword.NAME`, sorted by name.
fn keyword_columns(table: &HitTable) -> Vec<(String, Column)> {
    type TextCodes = (Vec<u32>, Vec<Option<Arc<str>>>);
    let mut columns: BTreeMap<Arc<str>, TextCodes> = BTreeMap::new();
    let rows = table.step.len();
    for (row, keywords) in &table.keywords {
        for (keyword, value) in keywords.iter() {
            let new = || (vec![0; rows], vec![None]);
            let (codes, distinct) = columns.entry(keyword.clone()).or_insert_with(new);
            let same = |known: &Option<Arc<str>>| known.as_ref().is_some_and(|known| **known == **value);
            let at = distinct.iter().rposition(same).unwrap_or_else(|| {
                distinct.push(Some(value.clone()));
                distinct.len() - 1
            });
            codes[*row as usize] = at as u32;
        }
    }
    let column =
        |(keyword, (codes, distinct))| (format!("keyword.{keyword}"), Column::Text { codes, distinct });
    columns.into_iter().map(column).collect()
}

/// The columns that the guide documents.
fn columns(table: &HitTable, users: &Users, kind_of_none: Option<ValueType>) -> Vec<(String, Column)> {
    let rows = table.step.len();
    let kinds: Vec<&str> = table.value.iter().map(|value| value.kind().name()).collect();
    let mut words: Vec<&str> = kinds.clone();
    words.sort_unstable();
    words.dedup();
    let place = |kind: &&str| words.iter().position(|word| word == kind).unwrap_or_default() as u32;
    let kind = Column::Text {
        codes: kinds.iter().map(place).collect(),
        distinct: words.iter().map(|word| Some(Arc::from(*word))).collect(),
    };
    let mut known: Vec<u32> = table.user.clone();
    known.sort_unstable();
    known.dedup();
    let place = |user: &u32| known.binary_search(user).unwrap_or_default() as u32;
    let user = Column::Text {
        codes: table.user.iter().map(place).collect(),
        distinct: known.iter().map(|user| Some(users.name(*user))).collect(),
    };
    let (codes, logs) = logs_of(table);
    // A damaged log has no writer name; its hits are still shown.
    let named =
        |log: &Option<Id>| users.writer(*log).ok().flatten().map(|writer| Arc::from(writer.to_string()));
    let writer = Column::Text { codes, distinct: logs.iter().map(named).collect() };
    let has_variable = |row: &usize| table.variable.text(*row).is_some();
    let versions = (0..rows).map(|row| has_variable(&row).then(|| table.variable_version[row]));
    let boxes = |ends: &Vec<i64>| Column::Ints { offsets: table.offsets.clone(), values: ends.clone() };
    let columns = vec![
        ("project", texts(&table.project, true)),
        ("run", texts(&table.run, false)),
        ("step", Column::Int(table.step.iter().map(|step| step.and_then(step_number::whole)).collect())),
        ("time", Column::Number(table.time.clone())),
        ("variable", texts(&table.variable, false)),
        ("variable_version", Column::Int(versions.collect())),
        ("tag", texts(&table.tag, false)),
        ("tag_version", Column::Int(table.tag_version.iter().copied().map(Some).collect())),
        ("unit", texts(&table.unit, true)),
        (
            "value",
            Column::Value(ValueColumn::of_kind(table.value.clone(), kind_of_none.filter(|_| rows == 0))),
        ),
        ("type", kind),
        ("start", boxes(&table.start)),
        ("count", boxes(&table.count)),
        ("cells", cells(table)),
        ("user", user),
        ("writer", writer),
    ];
    let columns = columns.into_iter().map(|(name, column)| (name.to_owned(), column));
    columns.chain(keyword_columns(table)).collect()
}
