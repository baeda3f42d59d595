//! Serves the xarray engine: arranges a store's fields in cubes, in one pass over the index.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone::prelude::*;
use fieldstone::{Axis, FieldKey, Grouping, KeyValue, ReadOptions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyString, PyTuple};

use crate::data;
use crate::errors::{Raise, invalid};
use crate::log::Waiting as _;
use crate::request::requests;
use crate::sequence::Several;

/// Fields whose keys differ only in some keywords, the axes.
#[pyclass(frozen, name = "_Cube", module = "fieldstone._native")]
pub struct Cube {
    /// Keyword → value, for the values that all fields share: a dict.
    #[pyo3(get)]
    key: Py<PyDict>,
    /// The numpy dtype of the first field; None for opaque bytes.
    #[pyo3(get)]
    dtype: Option<Py<PyAny>>,
    /// Extents of the first field; None for opaque bytes.
    #[pyo3(get)]
    shape: Option<Py<PyTuple>>,
    /// Extents of the chunks of the first field; None if it is one block.
    #[pyo3(get)]
    chunks: Option<Py<PyTuple>>,
    /// Whether any field has compressed blocks; None if no field has blocks that are chunks of an array.
    #[pyo3(get)]
    packed: Option<bool>,
    shortest: FieldKey,
    longest: FieldKey,
    /// Key as text, dtype and shape of the first field with a different type or shape; or None.
    #[pyo3(get)]
    odd: Option<Py<PyTuple>>,
    /// Keyword → values along it, a tuple of text in typed order (None: absent); equal tuples are shared.
    #[pyo3(get)]
    axes: Py<PyDict>,
    /// The existing combinations: ascending positions in C order as native int64; None: all.
    #[pyo3(get)]
    places: Option<Py<PyBytes>>,
}

#[pymethods]
impl Cube {
    /// The key of the field with the fewest bytes: (keyword, value) pairs.
    #[getter]
    fn shortest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        pairs(py, &self.shortest)
    }

    /// The key of the field with the most bytes: (keyword, value) pairs.
    #[getter]
    fn longest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        pairs(py, &self.longest)
    }
}

fn pairs<'py>(py: Python<'py>, key: &FieldKey) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, key.iter().map(|(keyword, value)| (&**keyword, value.text())).collect::<Vec<_>>())
}

/// The fields of `request` as cubes, in key order, and the values of each axis over all cubes. Keywords in `by`
/// separate cubes, and all others are axes; alternatively, the keywords in `along` are the axes.
pub fn cubes<'py>(
    py: Python<'py>,
    handle: &fieldstone::Store,
    request: Option<&Bound<'py, PyAny>>,
    by: Option<Several<String>>,
    along: Option<Several<String>>,
) -> PyResult<(Vec<Cube>, Bound<'py, PyDict>)> {
    let requests = requests(request)?;
    let names: Vec<&str> = by.iter().chain(&along).flat_map(|words| &words.0).map(String::as_str).collect();
    let grouping = match (&by, &along) {
        (Some(_), None) => Grouping::By(&names),
        (None, Some(_)) => Grouping::Along(&names),
        _ => return Err(invalid("_cubes takes either by or along", "give the keywords of one of them")),
    };
    let options = ReadOptions::default();
    let found = py.waiting(|| fieldstone::cubes(handle, &requests, grouping, &options)).or_raise()?;
    let mut maker = Maker { py, known: HashMap::new(), dtypes: Vec::new() };
    let axes = maker.axes(&found.axes)?;
    let cubes = found.cubes.into_iter().map(|cube| maker.cube(cube)).collect::<PyResult<_>>()?;
    Ok((cubes, axes))
}

/// The keywords that mean project, run (one or several), step and variable in the store's schema; None if it has
/// none. If its rules differ in them, the keywords of runs that one keyword names: those of arrays. Then whether the
/// schema has both rules for GRIB keys and rules for such runs.
pub fn roles(handle: &fieldstone::Store) -> Roles {
    let schema = handle.schema();
    let sets = schema.catalog_roles();
    let one = sets.iter().find(|roles| roles.run.len() == 1);
    let Some(roles) = one.or(sets.first()) else { return (None, Vec::new(), None, None, false) };
    let text = |name: &Option<Arc<str>>| name.as_deref().map(str::to_owned);
    let run = roles.run.iter().map(|keyword| keyword.to_string()).collect();
    (text(&roles.project), run, text(&roles.step), text(&roles.variable), sets.len() > 1)
}

/// Keywords of project, run, step and variable, and whether the schema is mixed.
pub type Roles = (Option<String>, Vec<String>, Option<String>, Option<String>, bool);

/// Makes Python objects, one for equal values.
struct Maker<'py> {
    py: Python<'py>,
    /// Keyed by the address of the shared values, which are kept alive with them.
    known: HashMap<*const KeyValue, (Arc<[KeyValue]>, Py<PyTuple>)>,
    dtypes: Vec<(fieldstone::DType, Py<PyAny>)>,
}

impl<'py> Maker<'py> {
    fn axes(&mut self, axes: &[Axis]) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        for axis in axes {
            let values = match self.known.get(&axis.values.as_ptr()) {
                Some((_, values)) => values.clone_ref(self.py),
                None => {
                    let texts = axis.values.iter().map(|value| (!value.is_absent()).then(|| value.text()));
                    let values = PyTuple::new(self.py, texts.collect::<Vec<_>>())?.unbind();
                    let kept = (axis.values.clone(), values.clone_ref(self.py));
                    self.known.insert(axis.values.as_ptr(), kept);
                    values
                }
            };
            dict.set_item(PyString::intern(self.py, &axis.keyword), values)?;
        }
        Ok(dict)
    }

    fn dtype(&mut self, dtype: fieldstone::DType) -> PyResult<Py<PyAny>> {
        if let Some((_, object)) = self.dtypes.iter().find(|(known, _)| *known == dtype) {
            return Ok(object.clone_ref(self.py));
        }
        let object = data::dtype_object(self.py, dtype)?;
        self.dtypes.push((dtype, object.clone_ref(self.py)));
        Ok(object)
    }

    fn extents(&self, extents: Option<&Arc<[u64]>>) -> PyResult<Option<Py<PyTuple>>> {
        extents.map(|extents| Ok(PyTuple::new(self.py, extents.iter())?.unbind())).transpose()
    }

    fn cube(&mut self, cube: fieldstone::Cube) -> PyResult<Cube> {
        let py = self.py;
        let key = PyDict::new(py);
        for (keyword, value) in &cube.key {
            key.set_item(PyString::intern(py, keyword), value.text())?;
        }
        let odd = match &cube.odd {
            None => None,
            Some(entry) => {
                let dtype = entry.dtype.map(|dtype| self.dtype(dtype)).transpose()?;
                let shape = self.extents(entry.shape.as_ref())?;
                Some((entry.key.to_string(), dtype, shape).into_pyobject(py)?.unbind())
            }
        };
        let places = cube.places.map(|places| {
            let bytes: Vec<u8> = places.iter().flat_map(|place| (*place as i64).to_ne_bytes()).collect();
            PyBytes::new(py, &bytes).unbind()
        });
        Ok(Cube {
            key: key.unbind(),
            dtype: cube.dtype.map(|dtype| self.dtype(dtype)).transpose()?,
            shape: self.extents(cube.shape.as_ref())?,
            chunks: self.extents(cube.chunks.as_ref())?,
            packed: cube.packed,
            shortest: cube.shortest.1,
            longest: cube.longest.1,
            odd,
            axes: self.axes(&cube.axes)?.unbind(),
            places,
        })
    }
}
