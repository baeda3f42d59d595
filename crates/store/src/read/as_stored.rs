//! Blocks of arrays as they are stored, for readers that decode them (F-15).
//!
//! A block is given out where it is all there is of a box: its elements are those of the box, in C order,
//! and no newer part lies upon them. Its bytes are compared with their checksum like any others.

use fieldstone_core::geometry::IndexBox;
use fieldstone_core::{Error, Result};
use fieldstone_format::block::{Block, check, check_raw_len};
use fieldstone_format::entry::{Layout, Location};

use super::blocks::{Holder, Source};
use crate::field::BlockPlace;

impl Source<'_> {
    /// The block that holds the elements of `region` (in the field's index space) and no other; `part` is the
    /// place of this entry among those of its field.
    pub fn block_of(&self, region: &IndexBox, part: usize) -> Result<Option<BlockPlace>> {
        let (Some(own), Location::Blocks { file, .. }) = (self.entry().index_box()?, &self.entry().location)
        else {
            return Ok(None);
        };
        if !own.contains(region) {
            return Ok(None);
        }
        let Layout::Chunks(grid, item) = self.entry().layout(0)? else { return Ok(None) };
        let local = region.relative_to(&own)?;
        let mut touched = grid.overlapping(&local)?;
        let (Some(index), None) = (touched.next(), touched.next()) else { return Ok(None) };
        if grid.chunk_box(index)? != local {
            return Ok(None);
        }
        let places = self.places()?;
        let at = index as usize;
        let (Some(block), Some(&offset)) = (places.blocks.get(at), places.offsets.get(at)) else {
            return Err(self.too_few());
        };
        let raw = local
            .element_count()?
            .checked_mul(item)
            .ok_or_else(|| Error::corrupt("a chunk exceeds 64 bits"))?;
        let whole = match block.stored > raw {
            true => Err(Error::corrupt(format!("a block of {raw} bytes is stored in {}", block.stored))),
            false => check_raw_len(block.stored, raw),
        };
        whole.map_err(|e| self.placed(&places.holder, offset, e))?;
        Ok(Some(BlockPlace { part, file: *file, offset, stored: block.stored, raw, crc: block.crc }))
    }

    /// The stored bytes of a block into `out`, which has their length.
    pub fn read_stored(&self, place: &BlockPlace, out: &mut [u8]) -> Result<()> {
        let holder = Holder::Own(place.file);
        self.fetch(&holder, out, place.offset)?;
        let block = Block { stored: place.stored, crc: place.crc, summary: None };
        check(out, &block).map_err(|e| self.placed(&holder, place.offset, e))
    }
}
