//! Memory that a collective read fills: the caller's array, or a new one.

use fieldstone::arrays::{MemoryMut, dense_strides};
use fieldstone::{DType, Error, Result};
use pyo3::prelude::*;

use super::local;
use crate::data::{NewArray, Strided};
use crate::errors::{Raise, exception};
use crate::log::Waiting as _;

/// Reads elements of this type and shape into the caller's array, or into a new one of native elements. `read`
/// reports an error with either array to the other ranks.
pub fn read_into<'py>(
    py: Python<'py>,
    (dtype, shape): (DType, &[u64]),
    into: Option<Bound<'py, PyAny>>,
    read: impl FnOnce(Result<MemoryMut<'_>>) -> Result<()> + Send,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(array) = into {
        let mut target = local(py, Strided::writable(&array));
        let memory = match &mut target {
            Ok(target) => {
                let (dtype, origin) = (target.dtype, target.origin);
                let (shape, strides) = (target.shape.clone(), target.strides.clone());
                local(py, target.bytes_mut()).map(|bytes| (bytes, dtype, shape, strides, origin))
            }
            Err(error) => Err(error.replicate()),
        };
        let done = py.waiting(|| match memory {
            Ok((bytes, dtype, shape, strides, origin)) => {
                read(Ok(MemoryMut { bytes, dtype, shape: &shape, strides: &strides, origin }))
            }
            Err(error) => read(Err(error)),
        });
        done.or_raise()?;
        return Ok(array);
    }
    let dtype = dtype.to_native();
    // The read skips a halo outside the array and entries that name no element, so these must be zero.
    let mut made = match local(py, NewArray::zeros(py, dtype, shape)) {
        Ok(made) => made,
        Err(error) => {
            py.waiting(|| read(Err(error))).or_raise()?;
            return Err(exception(Error::internal("a failed read continued")));
        }
    };
    let strides = dense_strides(dtype, shape);
    let bytes = made.bytes();
    py.waiting(|| read(Ok(MemoryMut { bytes, dtype, shape, strides: &strides, origin: 0 }))).or_raise()?;
    Ok(made.done())
}
