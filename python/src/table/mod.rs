//! Tables of results: named columns in memory, passed to Arrow consumers without building Python rows.
//!
//! A table holds a keyword column as codes into its distinct values (4 bytes per row), so a listing of millions of
//! fields stays small; it makes Arrow batches of [`BATCH_ROWS`] rows one at a time. pyarrow, pandas, polars and
//! DuckDB read it through the Arrow PyCapsule interface (`__arrow_c_stream__`,
//! <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>).
//!
//! Invariants: all columns have the same number of rows; names are unique; a table never changes.

mod column;
mod fields;
mod stream;
mod values;

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

pub use column::Column;
pub use fields::FieldTable;
pub use values::ValueColumn;

/// Rows of one Arrow batch.
pub const BATCH_ROWS: usize = 65_536;

/// A table of results in memory: named, typed columns.
///
/// It implements the Arrow PyCapsule interface, so ``pyarrow.table(t)``, ``polars.DataFrame(t)``,
/// ``duckdb.sql("select * from t")`` and every other Arrow consumer can read it; creating a table needs none of these
/// packages. ``to_pandas()`` returns a pandas DataFrame without pyarrow.
#[pyclass(frozen, name = "Table", module = "fieldstone")]
pub struct Table {
    inner: Arc<Columns>,
    truncated: bool,
}

/// Columns of equal length.
pub struct Columns {
    schema: Arc<Schema>,
    columns: Vec<Column>,
    rows: usize,
}

impl Table {
    /// A table of named columns, each of `rows` rows.
    pub fn new(named: Vec<(String, Column)>, rows: usize) -> Table {
        let field = |(name, column): &(String, Column)| Field::new(name, column.data_type(), true);
        let schema = Arc::new(Schema::new(named.iter().map(field).collect::<Vec<_>>()));
        let columns = named.into_iter().map(|(_, column)| column).collect();
        Table { inner: Arc::new(Columns { schema, columns, rows }), truncated: false }
    }
}

impl Table {
    /// The same table, marked as truncated or not.
    pub fn truncated_to(self, truncated: bool) -> Table {
        Table { truncated, ..self }
    }
}

#[pymethods]
impl Table {
    /// The number of rows.
    fn __len__(&self) -> usize {
        self.inner.rows
    }

    /// Names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.inner.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Arrow types of the columns by name, as text: "int64", "double", "string", "date32" …
    #[getter]
    fn types(&self) -> Vec<(String, &'static str)> {
        let fields = self.inner.schema.fields().iter();
        fields.map(|field| (field.name().clone(), type_name(field.data_type()))).collect()
    }

    /// Approximate bytes that the table uses in memory.
    #[getter]
    fn nbytes(&self) -> usize {
        self.inner.columns.iter().map(Column::nbytes).sum()
    }

    /// Whether rows were left out because the result exceeded the query's ``limit``.
    #[getter(truncated)]
    fn is_truncated(&self) -> bool {
        self.truncated
    }

    /// The table's Arrow C stream, in a PyCapsule. The interface allows ignoring `requested_schema`, and this does.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = stream::Batches::new(self.inner.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    /// The table's Arrow C schema, in a PyCapsule.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.inner.schema).map_err(arrow_error)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Up to `count` values of a column as a list, from row `start`; None if absent.
    #[pyo3(signature = (name, start=0, count=None))]
    fn values<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        start: usize,
        count: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let place = self.inner.schema.index_of(name).map_err(|_| {
            let have = self.columns().join(", ");
            crate::errors::invalid(format!("no column {name:?}"), &format!("the table has {have}"))
        })?;
        let end = start.saturating_add(count.unwrap_or(self.inner.rows)).min(self.inner.rows);
        let rows = (start..end.max(start)).map(|row| self.inner.columns[place].value(py, row));
        PyList::new(py, rows.collect::<PyResult<Vec<_>>>()?)
    }

    /// A column as a numpy array, or as indices into distinct texts; None if neither fits.
    fn _fast<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Ok(place) = self.inner.schema.index_of(name) else { return Ok(None) };
        let column = &self.inner.columns[place];
        match column.coded(py)? {
            Some((places, distinct)) => {
                let distinct: Vec<Option<&str>> = distinct.iter().map(|text| text.as_deref()).collect();
                Ok(Some((places, distinct).into_pyobject(py)?.into_any()))
            }
            None => column.numpy(py),
        }
    }

    /// Converts the table to a pandas DataFrame, without pyarrow.
    pub fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("fieldstone._table")?.getattr("to_pandas")?.call1((slf,))
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        slf.py().import("fieldstone._table")?.getattr("text")?.call1((slf,))?.extract()
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        crate::html(slf.py(), "table", slf)
    }
}

fn type_name(kind: &DataType) -> &'static str {
    match kind {
        DataType::Boolean => "bool",
        DataType::Int64 => "int64",
        DataType::UInt64 => "uint64",
        DataType::Float64 => "double",
        DataType::Date32 => "date32",
        DataType::Timestamp(..) => "timestamp[ns, UTC]",
        DataType::Binary => "binary",
        DataType::List(field) => match field.data_type() {
            DataType::UInt64 => "list<uint64>",
            DataType::Int64 => "list<int64>",
            DataType::Float64 => "list<double>",
            DataType::Boolean => "list<bool>",
            DataType::Timestamp(..) => "list<timestamp[ns, UTC]>",
            _ => "list<string>",
        },
        _ => "string",
    }
}

fn arrow_error(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
