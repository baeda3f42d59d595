//! An array in the store's logs, which the ranks of a job read like a file: elements in C order from byte 0 on.
//!
//! Each rank reads the blocks that it touches, and checks them as every read of the store does.

use fieldstone_core::env::comm::CommReader;
use fieldstone_core::geometry::flat_boxes;
use fieldstone_core::{Error, Result};
use fieldstone_store::Field;

/// A field that is read as bytes.
#[derive(Debug)]
pub struct LoggedArray {
    field: Field,
    shape: Vec<u64>,
    /// Bytes of an element.
    size: u64,
}

impl LoggedArray {
    /// An array field; unwritten elements have its fill.
    pub fn new(field: Field, shape: Vec<u64>, size: u64) -> LoggedArray {
        LoggedArray { field: field.lenient(), shape, size: size.max(1) }
    }

    fn total(&self) -> u64 {
        self.shape.iter().product::<u64>() * self.size
    }
}

impl CommReader for LoggedArray {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let end = self.total().min(offset.saturating_add(buffer.len() as u64));
        let Some(len) = end.checked_sub(offset).filter(|len| *len > 0) else { return Ok(0) };
        if !offset.is_multiple_of(self.size) || !len.is_multiple_of(self.size) {
            return Err(Error::internal("a read covers a part of an element of a field"));
        }
        let mut done = 0;
        for part in flat_boxes(&self.shape, offset / self.size, end / self.size)? {
            let bytes = (part.element_count()? * self.size) as usize;
            self.field.read_box_into(&part, &mut buffer[done..done + bytes])?;
            done += bytes;
        }
        Ok(done)
    }

    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        parts.iter_mut().try_for_each(|(offset, part)| match self.read_at(part, *offset)? {
            n if n == part.len() => Ok(()),
            _ => Err(Error::internal("a read goes past the end of a field")),
        })
    }

    fn len(&self) -> Result<u64> {
        Ok(self.total())
    }
}
