//! Cutting a value into blocks: compressed, checksummed and summarised before any lock is taken (F-5).

use std::borrow::Cow;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{ChunkGrid, IndexBox, Summary, copy_box, element_count, summarize_without};
use fieldstone_core::key::FieldKey;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::block::{
    ARRAY_CHUNK, ARRAY_WHOLE, Block, INLINE_BLOCKS, OPAQUE_BLOCK, OPAQUE_SPLIT, pack, put_blocks,
};
use fieldstone_format::crc;
use fieldstone_format::entry::{ArrayInfo, Entry, EntryId, Location};
use fieldstone_format::keys::{EncodedKey, encode_key};

use fieldstone_journal::writer::{Encoded, Payload};

use crate::api::{Compression, FieldSpec, Value};

/// Encodes a value; `missing` are elements that its summary leaves out.
pub fn value<'a>(
    key: &FieldKey,
    value: Value<'a>,
    compression: Compression,
    chunks: Option<&[u64]>,
    missing: &[u8],
) -> Result<Encoded<'a>> {
    let prepare = || match value {
        Value::Bytes(_) if chunks.is_some() => Err(Code::NotAnArray.error("opaque bytes have no chunks")),
        Value::Bytes(data) => Ok(bytes(key, data, compression)),
        Value::Array { data, dtype, shape } => {
            let whole = IndexBox::whole(shape)?;
            array(key, data, dtype, shape, whole, true, compression, chunks, missing)
        }
        Value::Piece { data, dtype, start, count, shape } => {
            let piece = IndexBox::new(start.to_vec(), count.to_vec(), shape)?;
            array(key, data, dtype, shape, piece, false, compression, chunks, missing)
        }
    };
    prepare().map_err(|e: Error| e.context(key))
}

fn bytes<'a>(key: &FieldKey, data: &'a [u8], compression: Compression) -> Encoded<'a> {
    let length = data.len() as u64;
    let size = if length > OPAQUE_BLOCK { OPAQUE_SPLIT } else { 0 };
    let parts = data.chunks(if size == 0 { data.len().max(1) } else { size as usize });
    let mut packed = Packed::new(compression, Some(data));
    parts.for_each(|part| packed.push(part, None));
    packed.finish(key, new_entry(true, length, None), size)
}

#[allow(clippy::too_many_arguments)] // One caller; the arguments are the parts of a value.
fn array<'a>(
    key: &FieldKey,
    data: &'a [u8],
    dtype: DType,
    shape: &[u64],
    piece: IndexBox,
    whole: bool,
    compression: Compression,
    chunks: Option<&[u64]>,
    missing: &[u8],
) -> Result<Encoded<'a>> {
    element_count(shape)?;
    let length = piece
        .element_count()?
        .checked_mul(dtype.size() as u64)
        .filter(|n| *n == data.len() as u64)
        .ok_or_else(|| {
            Code::BufferSize.error(format!("{} bytes do not fill [{piece}] of {dtype}", data.len()))
        })?;
    let grid = grid(&piece, dtype, length, chunks)?;
    let single = grid.chunk_count() == 1;
    let mut packed = Packed::new(compression, single.then_some(data));
    let mut sum: Option<Summary> = None;
    let mut all = true;
    let mut add = |packed: &mut Packed<'a>, raw: &[u8]| {
        let part = summarize_without(dtype, raw, missing);
        match (&mut sum, &part) {
            (Some(sum), Some(part)) => sum.merge(part),
            (None, Some(part)) => sum = Some(*part),
            (_, None) => all = false,
        }
        packed.push(raw, part);
    };
    if single {
        add(&mut packed, data);
    } else {
        let own = IndexBox::whole(piece.count())?;
        let mut raw = Vec::new();
        for index in 0..grid.chunk_count() {
            let chunk = grid.chunk_box(index)?;
            raw.resize((chunk.element_count()? * dtype.size() as u64) as usize, 0);
            copy_box(data, &own, &mut raw, &chunk, &chunk, dtype.size())?;
            add(&mut packed, &raw);
        }
    }
    let array = ArrayInfo {
        dtype,
        shape: shape.to_vec(),
        piece: (!whole).then_some(piece),
        chunk: (!single).then(|| grid.chunk().to_vec()),
        fill: None,
        summary: if all { sum } else { None },
    };
    let entry = new_entry(whole, length, Some(array));
    Ok(packed.finish(key, entry, 0))
}

/// Prepares a removal; `only`: the entry that is to be the newest for it to count.
pub fn removal(key: EncodedKey, only: Option<EntryId>) -> Encoded<'static> {
    let mut entry = new_entry(true, 0, None);
    entry.location = Location::Removed { only };
    Encoded {
        key,
        entry,
        size: 0,
        blocks: Vec::new(),
        payload: Payload::default(),
        table: Vec::new(),
        digest: None,
        origin: None,
    }
}

/// Prepares a new generation without pieces.
pub fn created(key: &FieldKey, spec: &FieldSpec<'_>) -> Result<Encoded<'static>> {
    element_count(spec.shape)?;
    if let Some(fill) = spec.fill
        && fill.len() != spec.dtype.size()
    {
        return Err(Error::invalid(format!(
            "the fill value has {} bytes, {} takes {}",
            fill.len(),
            spec.dtype,
            spec.dtype.size()
        )));
    }
    if let Some(chunks) = spec.chunks {
        ChunkGrid::new(spec.shape.to_vec(), chunks.to_vec())?;
    }
    let array = ArrayInfo {
        dtype: spec.dtype,
        shape: spec.shape.to_vec(),
        piece: None,
        chunk: spec.chunks.map(<[u64]>::to_vec),
        fill: Some(spec.fill.map_or_else(|| spec.dtype.default_fill(), <[u8]>::to_vec)),
        summary: None,
    };
    let bytes = element_count(spec.shape)?
        .checked_mul(spec.dtype.size() as u64)
        .ok_or_else(|| Code::Shape.error("the array exceeds 64 bits"))?;
    Ok(Encoded {
        key: encode_key(key),
        entry: new_entry(true, bytes, Some(array)),
        size: 0,
        blocks: Vec::new(),
        payload: Payload::default(),
        table: Vec::new(),
        digest: None,
        origin: None,
    })
}

pub(super) fn new_entry(generation: bool, length: u64, array: Option<ArrayInfo>) -> Entry {
    let array = array.map(Box::new);
    Entry { commit: 0, ordinal: 0, generation, length, array, location: Location::None, holder: None }
}

/// How the box of an array is cut.
fn grid(piece: &IndexBox, dtype: DType, length: u64, chunks: Option<&[u64]>) -> Result<ChunkGrid> {
    match chunks {
        Some(chunks) => {
            if chunks.len() != piece.rank() {
                return Err(Code::Shape.error(format!(
                    "chunks {chunks:?} have {} dimensions, the array has {}",
                    chunks.len(),
                    piece.rank()
                )));
            }
            // A piece may be smaller than a chunk of the field.
            let cut = chunks.iter().zip(piece.count()).map(|(c, n)| (*c).min((*n).max(1))).collect();
            ChunkGrid::new(piece.count().to_vec(), cut)
        }
        None if length <= ARRAY_WHOLE => {
            let one = piece.count().iter().map(|&n| n.max(1)).collect();
            ChunkGrid::new(piece.count().to_vec(), one)
        }
        None => ChunkGrid::choose(piece.count(), dtype.size(), ARRAY_CHUNK),
    }
}

/// Collects blocks. While all of them are the caller's bytes as they are, nothing is copied.
struct Packed<'a> {
    level: Option<i32>,
    blocks: Vec<Block>,
    bytes: Vec<u8>,
    /// The caller's bytes, where the blocks are cut from them in order and none has shrunk so far.
    kept: Option<&'a [u8]>,
    /// Raw bytes so far.
    taken: usize,
}

impl<'a> Packed<'a> {
    /// `data`: the caller's bytes, if blocks are cut from them in order.
    fn new(compression: Compression, data: Option<&'a [u8]>) -> Packed<'a> {
        let level = match compression {
            Compression::None => None,
            Compression::Zstd(level) => Some(level),
        };
        Packed { level, blocks: Vec::new(), bytes: Vec::new(), kept: data, taken: 0 }
    }

    fn push(&mut self, raw: &[u8], summary: Option<Summary>) {
        let packed = pack(raw, self.level);
        self.blocks.push(Block { stored: packed.len() as u64, crc: crc(&packed), summary });
        if let Some(data) = self.kept
            && packed.len() != raw.len()
        {
            self.bytes.extend_from_slice(&data[..self.taken]);
            self.kept = None;
        }
        if self.kept.is_none() {
            self.bytes.extend_from_slice(&packed);
        }
        self.taken += raw.len();
    }

    fn finish(self, key: &FieldKey, entry: Entry, size: u64) -> Encoded<'a> {
        let mut table = Vec::new();
        if self.blocks.len() > INLINE_BLOCKS {
            put_blocks(&self.blocks, entry.array.is_some(), &mut table);
        }
        let payload = Payload::from(self.kept.map_or(Cow::Owned(self.bytes), Cow::Borrowed));
        Encoded {
            key: encode_key(key),
            entry,
            size,
            blocks: self.blocks,
            payload,
            table,
            digest: None,
            origin: None,
        }
    }
}
