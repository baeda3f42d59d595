//! Elements of a caller's array, at any strides from its pointer, also before it.

use std::ffi::{c_int, c_void};

use fieldstone::arrays::{Memory, MemoryMut, dense_strides};
use fieldstone::catalog::StorageOrder;
use fieldstone::{Code, DType, Result};

use crate::arguments::{FS_MAX_RANK, buffer, bytes, count, items};

/// The positions of a caller's elements in memory.
#[derive(Debug)]
pub struct ElementLayout {
    dtype: DType,
    shape: Vec<u64>,
    strides: Vec<isize>,
    /// Bytes from the pointer to the lowest byte of an element; never positive.
    low: isize,
    /// Number of bytes from the lowest byte to the highest one.
    length: usize,
}

/// Extents and strides from a caller, each null or of `ndim` numbers.
#[derive(Debug, Clone, Copy)]
pub struct GivenLayout {
    pub ndim: c_int,
    pub shape: *const u64,
    pub strides: *const i64,
}

impl ElementLayout {
    /// Layout of an array with the local shape `local`; without strides the elements are contiguous, in this
    /// order.
    ///
    /// # Safety
    /// The lists are null or have `ndim` numbers that no thread changes during the call.
    pub unsafe fn new(
        order: StorageOrder,
        dtype: DType,
        local: &[u64],
        given: GivenLayout,
    ) -> Result<ElementLayout> {
        let mut shape = local.to_vec();
        if !given.shape.is_null() || !given.strides.is_null() {
            let ndim = count(given.ndim, "dimensions")?;
            if ndim != local.len() || ndim > FS_MAX_RANK {
                return Err(Code::ShapeMismatch
                    .error(format!(
                        "data of {ndim} dimensions, where this rank's part has the shape {local:?}"
                    ))
                    .with_hint("fs_group_local_shape gives it, fs_import_local_shape of an import"));
            }
        }
        if !given.shape.is_null() {
            // SAFETY: not null, and the caller promises that `ndim` numbers are there.
            shape = unsafe { items(given.shape, local.len(), "shape of the data") }?.to_vec();
        }
        let strides = match given.strides.is_null() {
            true => close_strides(order, dtype, &shape),
            false => {
                // SAFETY: as above.
                let strides = unsafe { items(given.strides, local.len(), "strides") }?;
                let wide = |stride: &i64| isize::try_from(*stride).map_err(|_| too_far(&shape));
                strides.iter().map(wide).collect::<Result<_>>()?
            }
        };
        ElementLayout::of(dtype, shape, strides)
    }

    fn of(dtype: DType, shape: Vec<u64>, strides: Vec<isize>) -> Result<ElementLayout> {
        let (mut low, mut high) = (0_i128, dtype.size() as i128);
        if shape.contains(&0) {
            return Ok(ElementLayout { dtype, shape, strides, low: 0, length: 0 });
        }
        for (len, stride) in shape.iter().zip(&strides) {
            let reach = (i128::from(*len) - 1).checked_mul(*stride as i128).ok_or_else(|| too_far(&shape))?;
            low = low.saturating_add(reach.min(0));
            high = high.saturating_add(reach.max(0));
        }
        match (isize::try_from(low), usize::try_from(high.saturating_sub(low))) {
            (Ok(low), Ok(length)) if length <= isize::MAX as usize => {
                Ok(ElementLayout { dtype, shape, strides, low, length })
            }
            _ => Err(too_far(&shape)),
        }
    }

    fn origin(&self) -> usize {
        self.low.unsigned_abs()
    }

    /// The elements, for writing them to a file.
    ///
    /// # Safety
    /// `data` is null or leads to the first element. The caller owns all bytes from the lowest to the highest
    /// element and leaves them unchanged during the call.
    pub unsafe fn memory<'a>(&'a self, data: *const c_void) -> Result<Memory<'a>> {
        let lowest = self.lowest(data)?;
        // SAFETY: null, or the caller promises `length` bytes.
        let bytes = unsafe { bytes(lowest, self.length, "data") }?;
        let ElementLayout { dtype, shape, strides, .. } = self;
        Ok(Memory { bytes, dtype: *dtype, shape, strides, origin: self.origin() })
    }

    /// The elements, for reading into them.
    ///
    /// # Safety
    /// As for [`memory`](Self::memory), and no other code uses these bytes during the call.
    pub unsafe fn memory_mut<'a>(&'a self, data: *mut c_void) -> Result<MemoryMut<'a>> {
        let lowest = self.lowest(data)?.cast_mut();
        // SAFETY: null, or the caller promises `length` bytes that no other code uses.
        let bytes = unsafe { buffer(lowest, self.length) }?;
        let ElementLayout { dtype, shape, strides, .. } = self;
        Ok(MemoryMut { bytes, dtype: *dtype, shape, strides, origin: self.origin() })
    }

    fn lowest(&self, data: *const c_void) -> Result<*const c_void> {
        match data.is_null() && self.length > 0 {
            true => Err(Code::Argument
                .error(format!("the data is null, and this rank's part has the shape {:?}", self.shape))),
            false => Ok(data.wrapping_byte_offset(self.low)),
        }
    }
}

/// Strides of contiguous elements in an order.
fn close_strides(order: StorageOrder, dtype: DType, shape: &[u64]) -> Vec<isize> {
    if order == StorageOrder::C {
        return dense_strides(dtype, shape);
    }
    let reversed: Vec<u64> = shape.iter().rev().copied().collect();
    let mut strides = dense_strides(dtype, &reversed);
    strides.reverse();
    strides
}

fn too_far(shape: &[u64]) -> fieldstone::Error {
    Code::Shape.error(format!("data of the shape {shape:?} with these strides do not fit memory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(shape: &[u64], strides: &[isize]) -> Result<ElementLayout> {
        ElementLayout::of(DType::F8, shape.to_vec(), strides.to_vec())
    }

    #[test]
    fn elements_may_stand_before_the_pointer() {
        let both = layout(&[2, 3], &[-32, 8]).unwrap();
        assert_eq!((both.low, both.length, both.origin()), (-32, 56, 32));
        let data: Vec<u8> = (0..56).collect();
        // SAFETY: the first element is 32 bytes from the beginning of 56.
        let memory = unsafe { both.memory(data[32..].as_ptr().cast()) }.unwrap();
        assert_eq!((memory.bytes, memory.origin), (&data[..], 32));
        let none = layout(&[0, 3], &[isize::MIN, 8]).unwrap();
        // SAFETY: the array is empty, so no byte is read.
        assert!(unsafe { none.memory(std::ptr::null()) }.unwrap().bytes.is_empty());
        // SAFETY: null is refused.
        let refused = unsafe { both.memory(std::ptr::null()) }.unwrap_err();
        assert!(refused.message().contains("[2, 3]"), "{refused}");
    }

    #[test]
    fn strides_beyond_memory_are_refused() {
        assert!(layout(&[1 << 40, 2], &[1 << 40, 8]).is_err());
        assert!(layout(&[u64::MAX], &[isize::MAX]).is_err());
        assert!(layout(&[u64::MAX, u64::MAX], &[isize::MIN, isize::MIN]).is_err());
    }

    #[test]
    fn close_elements_stand_in_the_order_of_their_group() {
        assert_eq!(close_strides(StorageOrder::C, DType::F8, &[2, 3, 4]), [96, 32, 8]);
        assert_eq!(close_strides(StorageOrder::Fortran, DType::F8, &[2, 3, 4]), [8, 16, 48]);
    }
}
