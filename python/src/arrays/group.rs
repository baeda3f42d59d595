//! A group of a job.

use std::path::PathBuf;

use fieldstone::arrays::{ArrayGroup, Memory, READ, View, WriteOptions};
use pyo3::prelude::*;

use super::local;
use super::memory::read_into;
use crate::comm::hints_of;
use crate::container::{PyView, told};
use crate::data::{Strided, dtype_object};
use crate::errors::Raise;
use crate::log::Waiting as _;

/// A group of array sets that ranks write and read.
#[pyclass(frozen, name = "_ArrayGroup", module = "fieldstone._native")]
pub struct PyArrayGroup {
    group: ArrayGroup,
}

impl PyArrayGroup {
    pub fn new(group: ArrayGroup) -> PyArrayGroup {
        PyArrayGroup { group }
    }
}

/// Name, dtype, extents and names of dimensions of a set.
type SetShown = (String, Py<PyAny>, Vec<Option<u64>>, Vec<String>);

#[pymethods]
impl PyArrayGroup {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.group.name()
    }

    /// Its sets, in order.
    fn sets(&self, py: Python<'_>) -> PyResult<Vec<SetShown>> {
        let shown = |set: &fieldstone::catalog::ArraySet| {
            let dtype = dtype_object(py, set.dtype.to_native())?;
            Ok((set.variable.name.clone(), dtype, set.shape.clone(), set.dims.clone()))
        };
        self.group.sets().iter().map(shown).collect()
    }

    /// The level: 1, 2 or 3; None if the arrays lie in the logs.
    #[getter]
    fn level(&self) -> Option<u8> {
        self.group.level()
    }

    /// The method that moves elements to files.
    #[getter]
    fn method(&self) -> String {
        self.group.method()
    }

    /// The reason for the level and the method.
    #[getter]
    fn why(&self) -> String {
        self.group.why()
    }

    /// Paths of the files that this job made for the group.
    #[getter]
    fn files(&self) -> Vec<PathBuf> {
        self.group.files()
    }

    /// Sets the view of this rank.
    fn view(&self, view: &Bound<'_, PyView>, names: Option<Vec<String>>) -> PyResult<()> {
        let names: Option<Vec<&str>> = names.as_ref().map(|names| names.iter().map(String::as_str).collect());
        self.group.view(view.get().view(), names.as_deref()).or_raise()
    }

    /// Writes a set at a step.
    fn write(
        &self,
        py: Python<'_>,
        name: &str,
        step: i64,
        values: &Bound<'_, PyAny>,
        wait: bool,
        hints: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let data = local(py, Strided::new(values));
        let options = local(py, hints_of(hints)).map(|hints| WriteOptions { wait, hints });
        let memory = data.as_ref().map_err(fieldstone::Error::replicate).map(|data| Memory {
            bytes: data.bytes(),
            dtype: data.dtype,
            shape: &data.shape,
            strides: &data.strides,
            origin: data.origin,
        });
        let moved = py.waiting(|| match options {
            Ok(options) => self.group.write_with(name, step, memory, &options),
            Err(error) => self.group.write(name, step, Err(error)),
        });
        moved.or_raise().map(drop)
    }

    /// Reports an error of this rank before a write to the other ranks.
    fn fail_write(&self, py: Python<'_>, name: &str, step: i64, wrong: &Bound<'_, PyAny>) -> PyResult<()> {
        let error = told(py, &PyErr::from_value(wrong.clone())).0;
        py.waiting(|| self.group.write(name, step, Err(error))).or_raise().map(drop)
    }

    /// Reads a set at a step.
    fn read<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        step: i64,
        view: Option<&Bound<'_, PyView>>,
        into: Option<Bound<'py, PyAny>>,
        hints: &Bound<'_, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let view: Option<&View> = view.map(|view| view.get().view());
        let hints = local(py, hints_of(hints));
        let request = py.waiting(|| match hints {
            Ok(hints) => self.group.begin_read_with(name, step, view, &hints),
            Err(error) => Err(self.group.refuse(READ, error)),
        });
        let request = request.or_raise()?;
        let form = (request.dtype(), request.local_shape());
        read_into(py, form, into, |memory| self.group.read(&request, memory).map(drop))
    }

    /// Steps at which a set is complete.
    fn steps(&self, py: Python<'_>, name: &str) -> PyResult<Vec<i64>> {
        py.waiting(|| self.group.steps(name)).or_raise()
    }

    /// The newest step at which all sets are complete.
    fn last_step(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        py.waiting(|| self.group.last_step()).or_raise()
    }

    /// The shape of this rank's part of a set.
    fn local_shape(&self, name: &str) -> PyResult<Vec<u64>> {
        self.group.local_shape(name).or_raise()
    }
}
