//! Reads variables whose data lie outside the store.

use fieldstone::catalog::RunName;
use fieldstone::outside::{Format, Plan, plan_of, read_raw};
use fieldstone::{Env, IndexBox};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use super::{PyCatalog, RunPair};
use crate::data;
use crate::errors::Raise;
use crate::log::Waiting as _;
use crate::store::session;

fn numbers<'py>(py: Python<'py>, numbers: &[u64]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, numbers)
}

fn ends<'py>(py: Python<'py>, region: &IndexBox) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, [numbers(py, region.start())?, numbers(py, region.count())?])
}

#[pymethods]
impl PyCatalog {
    /// A box of a variable outside the store: an array if the files are raw, otherwise (format, dtype, (start,
    /// count), [(path, data set, step's index, piece, part)]); None if the run does not declare outside data.
    #[allow(clippy::too_many_arguments, reason = "the parts that name a box of a variable")]
    fn outside<'py>(
        &self,
        py: Python<'py>,
        run: RunPair,
        variable: &str,
        version: Option<i64>,
        step: Option<i64>,
        start: Option<&Bound<'py, PyAny>>,
        count: Option<&Bound<'py, PyAny>>,
        txn: Option<&str>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (start, count) = (data::numbers("start", start)?, data::numbers("count", count)?);
        let txn = session(txn)?;
        let (project, name) = (run.0.unwrap_or_default(), run.1);
        let run = RunName { project, name };
        let of = (variable, version);
        let found = py.waiting(|| plan_of(self.catalog(), &run, of, step, (start, count), &txn));
        let Some(plan) = found.or_raise()? else { return Ok(None) };
        if plan.format == Format::Raw {
            let disk = Env::real().disk;
            let fill = |out: &mut [u8]| read_raw(&*disk, &plan, out);
            return data::new_array(py, plan.dtype, plan.region.count(), fill).map(Some);
        }
        let reads = plan.reads.iter().map(|read| {
            let (piece, part) = (ends(py, &read.piece)?, ends(py, &read.part)?);
            (&read.path, &read.dataset, read.lead, piece, part).into_pyobject(py)
        });
        let reads = PyList::new(py, reads.collect::<PyResult<Vec<_>>>()?)?;
        let Plan { format, dtype, region, .. } = &plan;
        let plan = (format.name(), data::dtype_object(py, *dtype)?, ends(py, region)?, reads);
        Ok(Some(plan.into_pyobject(py)?.into_any()))
    }

    /// The objects that hold a box of a variable: (path, data set, (start, count) of the piece, (start, count) of the
    /// part of the box in it); None if the run does not declare outside data. No file is opened.
    #[allow(clippy::too_many_arguments, reason = "the parts that name a box of a variable")]
    fn objects<'py>(
        &self,
        py: Python<'py>,
        run: RunPair,
        variable: &str,
        version: Option<i64>,
        step: Option<i64>,
        start: Option<&Bound<'py, PyAny>>,
        count: Option<&Bound<'py, PyAny>>,
        txn: Option<&str>,
    ) -> PyResult<Option<Bound<'py, PyList>>> {
        let ends_of = (data::numbers("start", start)?, data::numbers("count", count)?);
        let txn = session(txn)?;
        let run = RunName { project: run.0.unwrap_or_default(), name: run.1 };
        let of = (variable, version);
        let found = py.waiting(|| plan_of(self.catalog(), &run, of, step, ends_of, &txn));
        let Some(plan) = found.or_raise()? else { return Ok(None) };
        let objects = plan.reads.iter().map(|read| {
            let (piece, part) = (ends(py, &read.piece)?, ends(py, &read.part)?);
            (&read.path, &read.dataset, piece, part).into_pyobject(py)
        });
        PyList::new(py, objects.collect::<PyResult<Vec<_>>>()?).map(Some)
    }
}
