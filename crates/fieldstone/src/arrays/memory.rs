//! New memory for the elements that a rank reads.

use fieldstone_array::distributed::group::{MemoryMut, dense_strides};
use fieldstone_core::dtype::DType;
use fieldstone_core::{Code, Error, Result};

/// New dense memory in C order and this machine's byte order, which a collective read fills.
pub fn dense(
    dtype: DType,
    shape: &[u64],
    read: impl FnOnce(Result<MemoryMut<'_>>) -> Result<()>,
) -> Result<Vec<u8>> {
    let bytes = shape.iter().try_fold(dtype.size() as u64, |bytes, len| bytes.checked_mul(*len));
    let room = bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let mut out = Vec::new();
    let memory = room.is_some_and(|room| out.try_reserve_exact(room).is_ok());
    let strides = dense_strides(dtype, shape);
    if !memory {
        read(Err(Code::OutOfMemory.error("not enough memory for this rank's part")))?;
        return Err(Error::internal("a failed read went on"));
    }
    out.resize(room.unwrap_or(0), 0);
    read(Ok(MemoryMut { bytes: &mut out, dtype, shape, strides: &strides, origin: 0 }))?;
    Ok(out)
}
