//! A caller's memory, as the sets of a group accept it: any strides, either byte order.

use fieldstone_core::dtype::{ByteOrder, DType};
use fieldstone_core::{Code, Error, Result};

use crate::distributed::buffer::{Buffer, BufferMut, Element};
use crate::distributed::files::sets::SetDecl;

/// Memory to write from.
#[derive(Debug, Clone, Copy)]
pub struct Memory<'a> {
    /// The bytes that hold all elements.
    pub bytes: &'a [u8],
    /// Type of the elements, with their byte order.
    pub dtype: DType,
    /// Shape.
    pub shape: &'a [u64],
    /// Bytes from one element to the next in each dimension.
    pub strides: &'a [isize],
    /// Offset of the first element.
    pub origin: usize,
}

/// Memory to read into.
#[derive(Debug)]
pub struct MemoryMut<'a> {
    /// The bytes that hold all elements.
    pub bytes: &'a mut [u8],
    /// Type of the elements, with their byte order.
    pub dtype: DType,
    /// Shape.
    pub shape: &'a [u64],
    /// Bytes from one element to the next in each dimension.
    pub strides: &'a [isize],
    /// Offset of the first element.
    pub origin: usize,
}

/// Strides of dense memory in C order.
pub fn dense_strides(dtype: DType, shape: &[u64]) -> Vec<isize> {
    let mut stride = dtype.size() as isize;
    let mut strides = vec![0; shape.len()];
    for (own, len) in strides.iter_mut().zip(shape).rev() {
        *own = stride;
        stride = stride.saturating_mul((*len).max(1) as isize);
    }
    strides
}

impl<'a> Memory<'a> {
    /// The elements of a set, for writing in `order`.
    ///
    /// Errors: `Invalid` for another type or shape.
    pub(super) fn buffer(
        &self,
        decl: &SetDecl,
        order: ByteOrder,
        local: &[u64],
        reversed: bool,
    ) -> Result<Buffer<'a>> {
        check(decl, self.dtype, self.shape, local)?;
        let element = Element::of(self.dtype, order)?;
        let made = if reversed { Buffer::transposed } else { Buffer::strided };
        made(self.bytes, element, self.shape, self.strides, self.origin)
    }
}

impl<'a> MemoryMut<'a> {
    /// The elements of a set, for reading from a file in `order`.
    ///
    /// Errors: `Invalid` for another type or shape.
    pub(super) fn buffer(
        self,
        decl: &SetDecl,
        order: ByteOrder,
        local: &[u64],
        reversed: bool,
    ) -> Result<BufferMut<'a>> {
        check(decl, self.dtype, self.shape, local)?;
        let element = Element::of(self.dtype, order)?;
        let made = if reversed { BufferMut::transposed } else { BufferMut::strided };
        made(self.bytes, element, self.shape, self.strides, self.origin)
    }
}

fn check(decl: &SetDecl, dtype: DType, shape: &[u64], local: &[u64]) -> Result<()> {
    let name = &decl.name;
    if dtype.to_native() != decl.dtype.to_native() {
        let (given, declared) = (dtype.name(), decl.dtype.name());
        return Err(Code::DtypeMismatch
            .error(format!("set {name} has elements of {declared}, but the buffer has {given}"))
            .with_hint(format!("give buffer.astype('{declared}')")));
    }
    match shape == local {
        true => Ok(()),
        false => Err(not_the_shape(name, shape, local)),
    }
}

fn not_the_shape(name: &str, given: &[u64], local: &[u64]) -> Error {
    Code::ShapeMismatch
        .error(format!(
            "set {name}: the view has the shape {local:?} on this rank, but the buffer has {given:?}"
        ))
        .with_hint(
            "a halo makes the buffer wider; without a view, a single process has everything, and several \
             ranks have nothing",
        )
}
