//! Reading the catalog: each call releases the interpreter's lock and calls the facade.

use std::sync::Arc;

use fieldstone::catalog::value::{Value, ValueType};
use fieldstone::catalog::{By, Query, Selection, VariableName};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::hit_table::PyHitTable;
use super::hits::{HitStream, Source, Users, key_of};
use super::{PyCatalog, RunPair, boxes, rows, run_name, terms, values};
use crate::describe::{Roles, roles};
use crate::errors::{Raise, invalid};
use crate::interrupt;
use crate::log::Waiting as _;
use crate::sequence::Several;
use crate::store::session;
use crate::table::{Column, Table, ValueColumn};

/// A prepared query. Made from a condition and keywords, or from text.
#[pyclass(frozen, name = "_Query", module = "fieldstone")]
#[derive(Clone)]
pub struct PyQuery {
    pub query: Query,
}

#[pymethods]
impl PyQuery {
    #[new]
    #[pyo3(signature = (r#where=None, terms=None))]
    fn new(r#where: Option<&Bound<'_, PyAny>>, terms: Option<&Bound<'_, PyDict>>) -> PyResult<PyQuery> {
        Ok(PyQuery { query: terms::query(r#where, terms)? })
    }

    /// Parses text in the syntax of ``store.find``.
    #[staticmethod]
    fn parse(text: &str, txn: Option<&str>) -> PyResult<PyQuery> {
        let mut query = fieldstone::catalog::query::text::parse(text).or_raise()?;
        if txn.is_some() {
            query.session = session(txn)?;
        }
        Ok(PyQuery { query })
    }

    /// The same query with another limit.
    fn limited(&self, limit: Option<u64>) -> PyQuery {
        PyQuery { query: Query { limit, ..self.query.clone() } }
    }

    /// The query as text that parses back to it.
    fn __str__(&self) -> String {
        self.query.to_string()
    }

    /// Its limit, if any.
    #[getter]
    fn limit(&self) -> Option<u64> {
        self.query.limit
    }

    /// The transaction whose content it sees.
    #[getter]
    fn txn(&self) -> Option<String> {
        self.query.session.transaction().map(|id| id.to_string())
    }
}

#[pymethods]
impl PyCatalog {
    /// The keywords of project, run, step and variable in the schema, and whether its rules differ in them.
    fn roles(&self) -> Roles {
        roles(&self.handle)
    }

    fn hits(&self, py: Python<'_>, query: &Bound<'_, PyQuery>) -> PyResult<PyHitTable> {
        let query = &query.get().query;
        let table = py.waiting(|| self.catalog().attributes(query)).or_raise()?;
        Ok(PyHitTable { table: Arc::new(table), users: Users::of(&self.handle) })
    }

    /// The hits, and for each related attribute that the query asks for, a table with the same rows.
    fn pairs(&self, py: Python<'_>, query: &Bound<'_, PyQuery>) -> PyResult<(PyHitTable, Vec<PyHitTable>)> {
        let query = &query.get().query;
        let found = py.waiting(|| self.catalog().pairs(query)).or_raise()?;
        let users = Users::of(&self.handle);
        let table = |table| PyHitTable { table: Arc::new(table), users: users.clone() };
        Ok((table(found.hits), found.related.into_iter().map(table).collect()))
    }

    /// The type of the queried values, if all tags share one type.
    fn value_kind(&self, py: Python<'_>, query: &Bound<'_, PyQuery>) -> PyResult<Option<&'static str>> {
        let query = &query.get().query;
        let kind = py.waiting(|| self.catalog().value_kind(query)).or_raise()?;
        Ok(kind.map(ValueType::name))
    }

    fn stream(&self, py: Python<'_>, query: &Bound<'_, PyQuery>) -> PyResult<HitStream> {
        let query = query.get();
        let hits = py.waiting(|| self.catalog().stream(&query.query)).or_raise()?;
        Ok(HitStream::new(
            hits,
            Arc::new(Source {
                store: self.store.clone_ref(py),
                txn: query.txn(),
                users: Users::of(&self.handle),
            }),
        ))
    }

    fn count(&self, py: Python<'_>, query: &Bound<'_, PyQuery>) -> PyResult<u64> {
        let query = &query.get().query;
        py.waiting(|| self.catalog().count(query)).or_raise()
    }

    fn aggregate(&self, py: Python<'_>, query: &Bound<'_, PyQuery>, by: Several<String>) -> PyResult<Table> {
        let groups = by.0.iter().map(|word| match &**word {
            "run" => Ok(By::Run),
            "step" => Ok(By::Step),
            "variable" => Ok(By::Variable),
            "tag" => Ok(By::Tag),
            other => Err(invalid(format!("by={other:?}"), "group by run, step, variable and tag")),
        });
        let (groups, query) = (groups.collect::<PyResult<Vec<_>>>()?, &query.get().query);
        let found = py.waiting(|| self.catalog().aggregate(query, &groups)).or_raise()?;
        Ok(rows::aggregates(found, &groups))
    }

    fn boxes(&self, py: Python<'_>, query: &Bound<'_, PyQuery>) -> PyResult<Table> {
        let query = &query.get().query;
        Ok(rows::boxes(py.waiting(|| self.catalog().boxes(query)).or_raise()?))
    }

    /// A dict for each run.
    fn runs<'py>(&self, py: Python<'py>, query: &Bound<'py, PyQuery>) -> PyResult<Bound<'py, PyList>> {
        let query = &query.get().query;
        let found = py.waiting(|| self.catalog().runs(query)).or_raise()?;
        let found = found.iter().map(|run| rows::run(py, run)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, found)
    }

    fn steps(&self, py: Python<'_>, query: &Bound<'_, PyQuery>) -> PyResult<Table> {
        let query = &query.get().query;
        Ok(rows::steps(py.waiting(|| self.catalog().steps(query)).or_raise()?))
    }

    /// A newly declared variable.
    fn declared<'py>(
        &self,
        py: Python<'py>,
        run: RunPair,
        name: &str,
        version: i64,
        txn: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (run, txn) = (run_name(run), session(txn)?);
        let variable = VariableName { name: name.to_owned(), version };
        let found = py.waiting(|| self.catalog().declared_variable(&run, &variable, &txn)).or_raise()?;
        rows::variable(py, &found)
    }

    /// A dict for each variable.
    fn variables<'py>(&self, py: Python<'py>, query: &Bound<'py, PyQuery>) -> PyResult<Bound<'py, PyList>> {
        let query = &query.get().query;
        let found = py.waiting(|| self.catalog().variables(query)).or_raise()?;
        let found =
            found.iter().map(|variable| rows::variable(py, variable)).collect::<PyResult<Vec<_>>>()?;
        PyList::new(py, found)
    }

    /// Name, version asked for, type, unit and version to show of each tag.
    fn tags(&self, py: Python<'_>, query: &Bound<'_, PyQuery>) -> PyResult<Vec<super::rows::ShownTag>> {
        let query = &query.get().query;
        let found = py.waiting(|| self.catalog().tags(query)).or_raise()?;
        Ok(found.into_iter().map(rows::tag_row).collect())
    }

    fn run<'py>(
        &self,
        py: Python<'py>,
        project: Option<&str>,
        name: &str,
        txn: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let txn = session(txn)?;
        let found = py.waiting(|| self.catalog().run(project, name, &txn)).or_raise()?;
        rows::run(py, &found)
    }

    fn variable<'py>(
        &self,
        py: Python<'py>,
        run: RunPair,
        name: &str,
        version: Option<i64>,
        txn: Option<&str>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (run, txn) = (run_name(run), session(txn)?);
        let found = py.waiting(|| self.catalog().variable(&run, name, version, &txn)).or_raise()?;
        rows::variable(py, &found)
    }

    /// The reason why a query finds nothing: the kind of the unknown name, the name, and a question that offers
    /// similar names; None if all names are known.
    fn missing(
        &self,
        py: Python<'_>,
        query: &Bound<'_, PyQuery>,
    ) -> PyResult<Option<(&'static str, String, Option<String>)>> {
        let query = &query.get().query;
        let found = py.waiting(|| self.catalog().missing_name(query)).or_raise()?;
        Ok(found.map(|missing| (missing.what, missing.name, missing.did_you_mean)))
    }

    /// Like `missing`, for a query of data to delete or change, in which names are literal.
    fn missing_to_change(
        &self,
        py: Python<'_>,
        query: &Bound<'_, PyQuery>,
    ) -> PyResult<Option<(&'static str, String, Option<String>)>> {
        let query = &query.get().query;
        let found = py.waiting(|| self.catalog().missing_name(&query.exact())).or_raise()?;
        Ok(found.map(|missing| {
            let pattern = query.typed() == Some(missing.name.as_str());
            let ask = || format!("fst.glob({:?}) asks for the pattern", missing.name);
            (missing.what, missing.name.clone(), if pattern { Some(ask()) } else { missing.did_you_mean })
        }))
    }

    fn key_of<'py>(
        &self,
        py: Python<'py>,
        run: RunPair,
        variable: Option<&str>,
        step: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        key_of(py, self.store.get(), &run_name(run), variable, step, &[])
    }

    /// Counts of logs, commits, attributes and fields, and the path of the engine.
    fn rebuild(&self, py: Python<'_>) -> PyResult<(u64, u64, u64, u64, String)> {
        let done = py.waiting(|| self.catalog().rebuild()).or_raise()?;
        Ok((done.logs, done.commits, done.attributes, done.fields, done.engine))
    }

    fn sql(&self, py: Python<'_>, statement: &str) -> PyResult<Table> {
        let (stop, raised) = interrupt::stop();
        let found = py.waiting(|| self.catalog().sql_until(statement, Some(&stop)));
        if let Some(raised) = raised.take() {
            return Err(raised);
        }
        let Selection { names, kinds, rows: found } = found.or_raise()?;
        let rows = found.len();
        let mut columns: Vec<Vec<Value>> = names.iter().map(|_| Vec::with_capacity(rows)).collect();
        for row in found {
            columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
        }
        let columns = columns.into_iter().zip(kinds);
        let columns = columns.map(|(column, kind)| Column::Value(ValueColumn::of_kind(column, kind)));
        Ok(Table::new(names.into_iter().zip(columns).collect(), rows))
    }

    fn explain(&self, py: Python<'_>, query: &Bound<'_, PyQuery>) -> PyResult<String> {
        let query = &query.get().query;
        py.waiting(|| self.catalog().explain(query)).or_raise()
    }

    /// Whether the store's logs declare runs, steps, variables or groups.
    fn has_declarations(&self, py: Python<'_>) -> PyResult<bool> {
        py.waiting(|| self.catalog().has_declarations()).or_raise()
    }

    fn conflicts(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        py.waiting(|| self.catalog().conflicts()).or_raise()
    }

    /// A box as (dimension, whether in coordinates, (from, to)).
    #[staticmethod]
    fn ranges<'py>(py: Python<'py>, region: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        boxes::listed(py, &boxes::ranges(region)?)
    }

    /// A table of value columns; None is absent. `kinds` are the types of the columns: names of value types, or
    /// "ints" and "texts" for lists of these. `empty` keeps only the columns' types, without rows.
    #[staticmethod]
    #[pyo3(signature = (names, columns, kinds, empty=false))]
    fn table(
        names: Several<String>,
        columns: Several<Several<Bound<'_, PyAny>>>,
        kinds: Several<Option<String>>,
        empty: bool,
    ) -> PyResult<Table> {
        let rows = columns.0.first().map_or(0, |column| column.0.len());
        let columns = columns.0.iter().zip(&kinds.0).map(|(column, kind)| {
            let cells = column.0.iter().map(|cell| match cell.is_none() {
                true => Ok(Value::Null),
                false => values::infer(cell, "a cell"),
            });
            let cells = cells.collect::<PyResult<Vec<_>>>()?;
            let column = match kind.as_deref() {
                Some(lists @ ("ints" | "texts")) => ValueColumn::of_lists(cells, lists == "texts"),
                kind => {
                    let kind = kind.map(ValueType::parse).transpose().or_raise()?;
                    ValueColumn::of_kind(cells, kind)
                }
            };
            Ok(Column::Value(if empty { column.emptied() } else { column }))
        });
        let columns = columns.collect::<PyResult<Vec<_>>>()?;
        Ok(Table::new(names.0.into_iter().zip(columns).collect(), if empty { 0 } else { rows }))
    }
}
