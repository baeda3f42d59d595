//! The names of a coordinate, and its values in a range, by the rules of queries.

use fieldstone::CoordinateAxis;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::data::{Data, new_bytes};

/// A coordinate: its name and its attributes `standard_name` and `units`, empty if it has none.
#[pyclass(frozen, name = "_CoordinateAxis", module = "fieldstone")]
pub struct PyCoordinateAxis {
    axis: CoordinateAxis,
}

#[pymethods]
impl PyCoordinateAxis {
    #[new]
    fn new(name: &str, standard_name: &str, units: &str) -> PyCoordinateAxis {
        PyCoordinateAxis { axis: CoordinateAxis::new(name, standard_name, units) }
    }

    /// Whether its values are periodic, as longitudes are.
    #[getter]
    fn is_longitude(&self) -> bool {
        self.axis.is_longitude()
    }

    /// Whether a query's coordinate name refers to this coordinate.
    fn is_called(&self, name: &str) -> bool {
        self.axis.is_called(name)
    }

    /// A mask of the values (an array of f8 in C order): 1 for a value from `low` to `high`, both included.
    fn within<'py>(
        &self,
        py: Python<'py>,
        low: f64,
        high: f64,
        values: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let data = Data::new(values)?;
        let (numbers, _) = data.bytes().as_chunks::<8>();
        new_bytes(py, numbers.len() as u64, |within| {
            for (lies, number) in within.iter_mut().zip(numbers) {
                *lies = u8::from(self.axis.holds((low, high), f64::from_ne_bytes(*number)));
            }
            Ok(())
        })
    }
}
