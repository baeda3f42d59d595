//! Views: the part of a variable that a rank holds, and the transfer of its elements to and from numpy arrays.

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone::container::NcType;
use fieldstone::container::views::{Decomposition, Halo, Method, MoveReport, Settings, VarView, View};
use fieldstone::env::comm::Team;
use fieldstone::{Code, DType, Result};
use pyo3::prelude::*;

use super::variable::{Filled, PyVar, dtype_of, type_of_array};
use crate::data::{Data, NewArray, Target};
use crate::errors::{Raise, invalid};

/// A view. Its definition was checked; whether it fits an array is checked on use.
#[pyclass(frozen, name = "View", module = "fieldstone._native")]
pub struct PyView {
    view: View,
    text: String,
}

impl PyView {
    /// A view and its text for `repr`.
    pub fn of(view: View, text: String) -> PyView {
        PyView { view, text }
    }

    /// The view.
    pub fn view(&self) -> &View {
        &self.view
    }
}

#[pymethods]
impl PyView {
    fn __repr__(&self) -> &str {
        &self.text
    }

    /// `block`, `cyclic`, `irregular` or `joined`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.view.word()
    }
}

/// A box or, with `grid`, a balanced partition. `halo` is one width, or the widths before and after each dimension.
#[pyfunction]
#[pyo3(name = "_view_block", signature = (start, count, grid, halo, stride, text))]
pub fn view_block(
    start: Vec<u64>,
    count: Vec<u64>,
    grid: Option<Vec<u64>>,
    halo: (u64, Option<Vec<(u64, u64)>>),
    stride: Vec<u64>,
    text: String,
) -> PyView {
    let view = grid.map_or_else(|| View::block(&start, &count), |grid| View::grid(&grid));
    let (width, each) = halo;
    let halo = each.map_or(Halo::All(width), Halo::Each);
    PyView { view: view.halo(halo).stride(&stride), text }
}

/// Blocks dealt out round-robin.
#[pyfunction]
#[pyo3(name = "_view_cyclic")]
pub fn view_cyclic(grid: Vec<u64>, blocks: Vec<u64>, text: String) -> PyView {
    PyView { view: View::cyclic(&grid, &blocks), text }
}

/// Indices given by a map, an array of int64 in C order.
#[pyfunction]
#[pyo3(name = "_view_irregular")]
pub fn view_irregular(
    map: &Bound<'_, PyAny>,
    owned: Option<u64>,
    dim: Option<usize>,
    text: String,
) -> PyResult<PyView> {
    let data = Data::new(map)?;
    if data.array.as_ref().is_none_or(|(dtype, shape)| *dtype != DType::I8 || shape.len() != 1) {
        return Err(invalid("the map is not a one-dimensional array of int64", "give whole numbers"));
    }
    let map: Arc<[i64]> = data.bytes().as_chunks().0.iter().map(|bytes| i64::from_ne_bytes(*bytes)).collect();
    Ok(PyView { view: View::irregular(map, owned, dim), text })
}

/// Concatenates parts.
#[pyfunction]
#[pyo3(name = "_view_joined")]
pub fn view_joined(count: u64, text: String) -> PyView {
    PyView { view: View::joined(count), text }
}

/// This rank's part, from a decomposition file of ParallelIO. Collective.
#[pyfunction]
#[pyo3(name = "_view_decomposition")]
pub fn view_decomposition(py: Python<'_>, path: PathBuf, comm: &Bound<'_, PyAny>) -> PyResult<PyView> {
    let comm = crate::comm::comm_from_python(comm)?;
    let found = py.detach(|| Decomposition::read(&Team::new(comm), &path)).or_raise()?;
    let (tasks, shape, entries) = (found.tasks, &found.shape, found.map.len());
    let text = format!("pio_decomposition(tasks={tasks}, shape={shape:?}, map=<{entries} entries>)");
    Ok(PyView { view: found.view(), text })
}

/// Method, buffer and owners, as Python passes them.
type Chosen = (String, u64, Option<usize>);
/// The record of a call: method, reason, bytes exchanged, written and read, whether it made a plan, holes.
type Moved = (&'static str, String, u64, u64, u64, bool, u64);

fn settings((method, buffer, aggregators): Chosen) -> PyResult<Settings> {
    let buffer = usize::try_from(buffer).unwrap_or(usize::MAX);
    Ok(Settings { method: Method::parse(&method).or_raise()?, buffer, aggregators })
}

fn moved(report: MoveReport) -> Moved {
    let MoveReport { method, why, exchanged, written, read, planned, holes, .. } = report;
    (method.word(), why, exchanged, written, read, planned, holes)
}

fn check_shape(name: &str, given: &[u64], local: &[u64]) -> Result<()> {
    match given == local {
        true => Ok(()),
        false => Err(Code::ShapeMismatch
            .error(format!(
                "variable {name}: an array of shape {given:?}, and the view has {local:?} on this rank"
            ))
            .with_hint(
                "a halo makes the array wider; a single record has one dimension fewer than the variable",
            )),
    }
}

#[pymethods]
impl PyVar {
    fn put_view(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        view: &Bound<'_, PyView>,
        record: Option<u64>,
        chosen: Chosen,
    ) -> PyResult<Moved> {
        let found = (|| {
            let data = Data::new(values)?;
            let (dtype, shape) = data.array.clone().ok_or_else(|| invalid("no array", "give an array"))?;
            let memory = type_of_array(dtype, self.path())?;
            let info = py.detach(|| self.info()).or_raise()?;
            Ok((data, shape, memory, info, settings(chosen)?))
        })();
        let file = self.shared();
        let (data, shape, memory, info, settings) = file.ready(py, true, found)?;
        let asked = &view.get().view;
        let var_view = py.detach(|| file.container.elements().view(&info, asked, record, true)).or_raise()?;
        let fits = check_shape(self.path(), &shape, var_view.local_shape()).or_raise();
        file.ready(py, true, fits)?;
        let bytes = data.bytes();
        let report =
            py.detach(|| file.container.elements().put_view(&info, &var_view, (bytes, memory), settings));
        report.or_raise().map(moved)
    }

    fn get_view<'py>(
        &self,
        py: Python<'py>,
        view: &Bound<'_, PyView>,
        record: Option<u64>,
        chosen: Chosen,
        dtype: Option<&str>,
        into: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyAny>, Moved)> {
        let found = (|| {
            let info = py.detach(|| self.info()).or_raise()?;
            let memory = match dtype {
                None => info.ty,
                Some(text) => NcType::from_numpy(text)
                    .ok_or_else(|| invalid(format!("{text} is not a type"), "such as f4"))?,
            };
            Ok((info, memory, settings(chosen)?))
        })();
        let file = self.shared();
        let (info, memory, settings) = file.ready(py, true, found)?;
        let asked = &view.get().view;
        let var_view =
            py.detach(|| file.container.elements().view(&info, asked, record, false)).or_raise()?;
        let filled = file.ready(py, true, self.filled(py, &var_view, memory, into))?;
        let mut filled = filled;
        let out = filled.bytes();
        let report =
            py.detach(|| file.container.elements().get_view(&info, &var_view, (out, memory), settings));
        let report = report.or_raise().map(moved)?;
        Ok((filled.done(), report))
    }
}

impl PyVar {
    /// The destination of elements: a new array of zeros, or the caller's.
    fn filled<'py>(
        &self,
        py: Python<'py>,
        view: &VarView,
        memory: NcType,
        into: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Filled<'py>> {
        let Some(into) = into else {
            let mut array = NewArray::new(py, dtype_of(memory).or_raise()?, view.local_shape())?;
            // Elements that the view does not name keep their values.
            array.bytes().fill(0);
            return Ok(Filled::New(array));
        };
        let shape: Vec<u64> = into.getattr("shape")?.extract()?;
        check_shape(self.path(), &shape, view.local_shape()).or_raise()?;
        Ok(Filled::Given(Target::new(&into)?, into))
    }
}
