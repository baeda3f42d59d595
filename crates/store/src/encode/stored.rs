//! Arrays that stand in a file of the store already: an entry that says where, and nothing is read.

use fieldstone_core::geometry::element_count;
use fieldstone_core::key::FieldKey;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::block::{Block, INLINE_BLOCKS, put_blocks};
use fieldstone_format::entry::{ArrayInfo, Blocks, Grown, Location};
use fieldstone_format::keys::encode_key;
use fieldstone_journal::writer::{Encoded, Payload};

use super::blocks::new_entry;
use crate::api::StoredArraySpec;

/// Prepares the entry that a spec describes.
pub fn stored(key: &FieldKey, spec: &StoredArraySpec<'_>) -> Result<Encoded<'static>> {
    prepare(key, spec).map_err(|e| e.context(format!("{key}, at {} of {}", spec.offset, spec.path)))
}

fn prepare(key: &FieldKey, spec: &StoredArraySpec<'_>) -> Result<Encoded<'static>> {
    let item = spec.dtype.size();
    let length = element_count(spec.shape)?.checked_mul(item as u64);
    let length = length.ok_or_else(|| Code::Shape.error("the array exceeds 64 bits"))?;
    if length == 0 {
        return Err(Code::Shape
            .error(format!("an array of shape {:?} has no elements in a file", spec.shape))
            .with_hint("archive it as an array without bytes"));
    }
    if let Some(fill) = spec.fill.filter(|fill| fill.len() != item) {
        return Err(Code::BufferSize.error(format!(
            "the fill value has {} bytes, an element of {} has {item}",
            fill.len(),
            spec.dtype
        )));
    }
    let grown = Grown {
        path: spec.path.to_owned(),
        offset: spec.offset,
        size: spec.block,
        holes: spec.holes,
        file: 0,
        blocks: Blocks::Inline(Vec::new()),
    };
    grown.check(length, item as u64).map_err(|e| Error::invalid(e.message()))?;
    let array = ArrayInfo {
        dtype: spec.dtype,
        shape: spec.shape.to_vec(),
        piece: None,
        chunk: None,
        fill: spec.fill.map(<[u8]>::to_vec),
        summary: None,
    };
    let mut entry = new_entry(true, length, Some(array));
    entry.location = Location::Grown(Box::new(grown));
    let layout = entry.layout(spec.block)?;
    if layout.count()? != spec.sums.len() as u64 {
        return Err(Error::invalid(format!(
            "{} checksums were given for the {} blocks of {} bytes that {length} bytes have",
            spec.sums.len(),
            layout.count()?,
            spec.block
        )));
    }
    let block = |(index, crc): (usize, &u32)| -> Result<Block> {
        Ok(Block { stored: layout.raw_len(index as u64)?, crc: *crc, summary: None })
    };
    let blocks = spec.sums.iter().enumerate().map(block).collect::<Result<Vec<_>>>()?;
    let mut table = Vec::new();
    if blocks.len() > INLINE_BLOCKS {
        put_blocks(&blocks, true, &mut table);
    }
    let payload = Payload::default();
    Ok(Encoded { key: encode_key(key), entry, size: 0, blocks, payload, table, digest: None, origin: None })
}
