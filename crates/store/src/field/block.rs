//! A part of an array as it is stored.

use std::sync::Arc;

use fieldstone_core::{Code, Result};
use fieldstone_format::chunk;

use super::source::{BlockPlace, FieldSource};

/// A block that holds the elements of a box and no other ([`Field::stored_block`](super::Field::stored_block)).
#[derive(Debug, Clone)]
pub struct StoredBlock {
    source: Arc<dyn FieldSource>,
    place: BlockPlace,
}

impl StoredBlock {
    pub(super) fn new(source: Arc<dyn FieldSource>, place: BlockPlace) -> StoredBlock {
        StoredBlock { source, place }
    }

    /// Its position.
    pub fn place(&self) -> &BlockPlace {
        &self.place
    }

    /// Whether it is a frame of zstd; else it is its elements, in C order.
    pub fn is_packed(&self) -> bool {
        self.place.stored != self.place.raw
    }

    /// The bytes that are stored, compared with their checksum, into `out`, which has their length.
    pub fn read_into(&self, out: &mut [u8]) -> Result<()> {
        if out.len() as u64 != self.place.stored {
            let (has, given) = (self.place.stored, out.len());
            return Err(Code::BufferSize.error(format!("the block has {has} bytes, the buffer {given}")));
        }
        self.source.read_block(&self.place, out)
    }

    /// Bytes of it as a [`chunk`]; `None` where it is packed and the chunk is not to be.
    pub fn chunk_length(&self, packed: bool) -> Option<u64> {
        match (self.is_packed(), packed) {
            (true, false) => None,
            (true, true) => Some(self.place.stored + chunk::SUM as u64),
            (false, _) => Some(chunk::length(self.place.raw as usize, packed) as u64),
        }
    }

    /// It as a [`chunk`], into `out`, which has [`its length`](Self::chunk_length): the stored bytes and their
    /// checksum as they are, or, of a block that is not packed where the chunk is to be, a frame around them.
    pub fn chunk_into(&self, packed: bool, out: &mut [u8]) -> Result<()> {
        if self.chunk_length(packed) != Some(out.len() as u64) {
            return Err(Code::BufferSize.error("the buffer does not have the length of the chunk"));
        }
        if packed && !self.is_packed() {
            let mut raw = vec![0; self.place.raw as usize];
            self.read_into(&mut raw)?;
            chunk::encode(&raw, packed, out);
            return Ok(());
        }
        let (bytes, behind) = out.split_at_mut(out.len() - chunk::SUM);
        behind.copy_from_slice(&self.place.crc.to_le_bytes());
        self.read_into(bytes)
    }
}
