//! Chunks for Zarr readers: blocks of fields as stored, and elements encoded in the same way.

use fieldstone::{ReadOptions, StoredBlock, chunk};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::data::{self, Data, numbers};
use crate::errors::Raise;
use crate::fields::PyField;
use crate::request::KeyText;
use crate::store::{Store, found};

/// A stored block of an array, as a chunk encoded by the codecs `zstd`, if `packed`, and `crc32c`.
#[pyclass(frozen, name = "_Block", module = "fieldstone._native")]
pub struct PyBlock {
    block: StoredBlock,
    packed: bool,
    /// Bytes of the chunk.
    #[pyo3(get)]
    nbytes: u64,
}

#[pymethods]
impl PyBlock {
    /// The chunk. Raises Corrupt if the stored bytes do not match their checksum.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        data::new_bytes(py, self.nbytes, |out| self.block.chunk_into(self.packed, out))
    }
}

/// The one field that a full key names, to be read in parts.
#[pyfunction]
#[pyo3(name = "_field")]
pub fn field(py: Python<'_>, store: &Bound<'_, Store>, key: &Bound<'_, PyAny>) -> PyResult<PyField> {
    Ok(PyField::alone(found(py, &store.get().handle()?, &KeyText::new(key)?, &ReadOptions::default())?))
}

#[pymethods]
impl PyField {
    /// The stored block that equals the box from `start` with `count` elements per dimension; None if there is none,
    /// or if it is compressed and the caller asks for a chunk without `zstd`.
    fn _block(
        &self,
        py: Python<'_>,
        start: &Bound<'_, PyAny>,
        count: &Bound<'_, PyAny>,
        packed: bool,
    ) -> PyResult<Option<PyBlock>> {
        let shape = self.field().shape().or_raise()?.unwrap_or_default();
        let (start, count) = (numbers("start", Some(start))?, numbers("count", Some(count))?);
        let Some(region) = data::box_of(&shape, start, count)? else { return Ok(None) };
        let Some(block) = py.detach(|| self.field().stored_block(&region)).or_raise()? else {
            return Ok(None);
        };
        Ok(block.chunk_length(packed).map(|nbytes| PyBlock { block, packed, nbytes }))
    }
}

/// Encodes elements as a chunk by the codecs `zstd`, if `packed`, and `crc32c`.
#[pyfunction(name = "_chunk")]
pub fn made<'py>(
    py: Python<'py>,
    elements: &Bound<'py, PyAny>,
    packed: bool,
) -> PyResult<Bound<'py, PyBytes>> {
    let elements = Data::new(elements)?;
    let raw = elements.bytes();
    data::new_bytes(py, chunk::length(raw.len(), packed) as u64, |out| {
        chunk::encode(raw, packed, out);
        Ok(())
    })
}

/// Bytes of the chunk that `_chunk` makes from `raw` bytes.
#[pyfunction(name = "_chunk_length")]
pub fn length(raw: usize, packed: bool) -> usize {
    chunk::length(raw, packed)
}
