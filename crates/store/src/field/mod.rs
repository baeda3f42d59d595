//! Fields that a store returns, wherever their bytes are.
//!
//! * here: [`Field`], one field, read lazily and checked;
//! * `source`: what a store implements so that it can give fields out;
//! * `fields`: [`Fields`], what a retrieve gives;
//! * `block`: [`StoredBlock`], a part of an array as it is stored;
//! * `bulk` reads many fields into one buffer, `stream` gives them as one file.
//!
//! Invariants:
//! * the arguments of calls to a [`FieldSource`] are valid: a buffer has the length of the bytes read into it, a
//!   region lies within the shape, a range within the bytes. The checks are here, once for all stores;
//! * a read is one call of the source, however many blocks or messages it takes.
//!
//! ```
//! use std::sync::Arc;
//! use fieldstone_core::dtype::DType;
//! use fieldstone_core::geometry::{IndexBox, Summary, Uncovered};
//! use fieldstone_core::{Error, Result};
//! use fieldstone_format::Id;
//! use fieldstone_store::{Field, FieldId, FieldSource, Outline};
//! use fieldstone_store::api::EntryId;
//!
//! /// A field that somebody has in memory.
//! #[derive(Debug)]
//! struct InMemory(Vec<u8>);
//!
//! impl FieldSource for InMemory {
//!     fn id(&self) -> FieldId<'_> {
//!         let entry = EntryId { writer: Id::LEAST, sequence: 1, ordinal: 0 };
//!         FieldId { store: "held".as_ref(), key: &[], entry }
//!     }
//!     fn version(&self) -> String {
//!         "1".into()
//!     }
//!     fn time(&self) -> i64 {
//!         0
//!     }
//!     fn nbytes(&self) -> Result<u64> {
//!         Ok(self.0.len() as u64)
//!     }
//!     fn array(&self) -> Result<Option<(DType, &[u64])>> {
//!         Ok(None)
//!     }
//!     fn missing(&self, _limit: usize) -> Result<Uncovered> {
//!         Ok(Uncovered::default())
//!     }
//!     fn chunks(&self) -> Option<Vec<u64>> {
//!         None
//!     }
//!     fn outline(&self) -> Result<Option<Outline>> {
//!         Ok(None)
//!     }
//!     fn is_compressed(&self) -> Result<bool> {
//!         Ok(false)
//!     }
//!     fn summary(&self) -> Option<Summary> {
//!         None
//!     }
//!     fn read(&self, _region: Option<&IndexBox>, _lenient: bool, out: &mut [u8]) -> Result<()> {
//!         out.copy_from_slice(&self.0);
//!         Ok(())
//!     }
//!     fn read_range(&self, start: u64, out: &mut [u8]) -> Result<()> {
//!         out.copy_from_slice(&self.0[start as usize..][..out.len()]);
//!         Ok(())
//!     }
//! }
//!
//! let field = Field::new(Arc::new(InMemory(b"hello".to_vec())));
//! assert_eq!(field.read()?, b"hello");
//! assert!(field.read_range(3, &mut [0; 3]).is_err(), "it ends before");
//! # Ok::<(), Error>(())
//! ```

mod block;
mod bulk;
mod fields;
mod source;
mod stream;

use std::sync::Arc;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Summary, uncovered};
use fieldstone_core::key::FieldKey;
use fieldstone_core::{Code, Result};
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::keys::{KeyDecoder, key_text};

pub use block::StoredBlock;
pub use fields::Fields;
pub use source::{BlockPlace, FieldId, FieldPart, FieldSource, FieldsSource, Outline, StoredArray};
pub use stream::FieldsReader;

/// More boxes than any field has holes.
const ALL: usize = usize::MAX >> 8;

/// Bytes that a field is read ahead by at a time.
const WARMED: u64 = 16 << 20;

/// A field as it was at one moment. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Field {
    source: Arc<dyn FieldSource>,
    lenient: bool,
}

impl Field {
    /// The field of a source; reading refuses unwritten elements.
    pub fn new(source: Arc<dyn FieldSource>) -> Field {
        Field { source, lenient: false }
    }

    /// The source that keeps its bytes.
    pub fn source(&self) -> &Arc<dyn FieldSource> {
        &self.source
    }

    /// The same field, with what nobody wrote filled instead of refused.
    pub fn lenient(mut self) -> Field {
        self.lenient = true;
        self
    }

    /// The same field, with what nobody wrote refused.
    pub fn strict(mut self) -> Field {
        self.lenient = false;
        self
    }

    /// Whether what nobody wrote is filled.
    pub fn is_lenient(&self) -> bool {
        self.lenient
    }

    /// Which version of which field of which store it is.
    pub fn id(&self) -> FieldId<'_> {
        self.source.id()
    }

    /// Its key.
    pub fn key(&self) -> Result<FieldKey> {
        KeyDecoder::new().decode(self.id().key)
    }

    fn name(&self) -> String {
        key_text(self.id().key)
    }

    /// The commits that its parts came by, each once and with its stamp.
    pub fn commits(&self) -> Vec<(CommitId, u64)> {
        self.source.commits()
    }

    /// Its parts, newest first, each with the commit that wrote it; none where nobody knows them.
    pub fn parts(&self) -> Result<Vec<FieldPart>> {
        self.source.parts()
    }

    /// How many older values of its key it hides.
    pub fn older_count(&self) -> Result<usize> {
        let (mut next, mut count) = (self.older()?, 0);
        while let Some(older) = next {
            (next, count) = (older.older()?, count + 1);
        }
        Ok(count)
    }

    /// The newest of the older values of its key that it hides.
    pub fn older(&self) -> Result<Option<Field>> {
        let older = self.source.older()?;
        Ok(older.map(|older| Field { lenient: self.lenient, ..older }))
    }

    /// The text that names the moment this field belongs to.
    pub fn version(&self) -> String {
        self.source.version()
    }

    /// Raw bytes.
    pub fn nbytes(&self) -> Result<u64> {
        self.source.nbytes()
    }

    /// Element type; `None` for opaque bytes.
    pub fn dtype(&self) -> Result<Option<DType>> {
        Ok(self.source.array()?.map(|(dtype, _)| dtype))
    }

    /// Extents; `None` for opaque bytes.
    pub fn shape(&self) -> Result<Option<Vec<u64>>> {
        Ok(self.source.array()?.map(|(_, shape)| shape.to_vec()))
    }

    /// Whether every element is there.
    pub fn is_complete(&self) -> Result<bool> {
        Ok(self.source.missing(1)?.is_complete())
    }

    /// When its newest part was flushed, nanoseconds since 1970, by the writer's clock.
    pub fn time(&self) -> i64 {
        self.source.time()
    }

    /// Extents of the chunks in which its newest part is stored; `None` for opaque bytes.
    pub fn chunks(&self) -> Option<Vec<u64>> {
        self.source.chunks()
    }

    /// How an array was declared and is stored, so that another store can have it the same way; `None`
    /// for opaque bytes.
    pub fn outline(&self) -> Result<Option<Outline>> {
        self.source.outline()
    }

    /// Whether any part is stored compressed.
    pub fn is_compressed(&self) -> Result<bool> {
        self.source.is_compressed()
    }

    /// The location of its array, if the array is whole except for unwritten elements, and in a file of the store.
    pub fn stored_array(&self) -> Result<Option<StoredArray>> {
        self.source.stored_array()
    }

    /// The stored block that holds the elements of `region` and no others, if there is one. There is none if several
    /// parts of the field lie in the region, or if a block reaches beyond it or does not fill it.
    pub fn stored_block(&self, region: &IndexBox) -> Result<Option<StoredBlock>> {
        let (_, shape) = self.array()?;
        region.check_within(shape)?;
        let found = self.source.block_place(region)?;
        Ok(found.map(|place| StoredBlock::new(self.source.clone(), place)))
    }

    /// How many elements nobody wrote of which nobody knows where they are.
    pub fn holes(&self) -> Result<u64> {
        self.source.holes()
    }

    /// Boxes that together hold every element which somebody wrote, and no other; they do not overlap. NotFound
    /// where that is not known.
    pub fn written(&self) -> Result<Vec<IndexBox>> {
        let (_, shape) = self.array()?;
        let unknown = self.holes()?;
        if unknown > 0 {
            return Err(Code::FieldIncomplete
                .error(format!(
                    "nobody has written {unknown} elements of {}, and where they are is not known",
                    self.name()
                ))
                .with_hint("archive what a lenient read gives as a new version, which is whole"));
        }
        let holes = self.source.missing(ALL)?;
        match holes.is_complete() {
            true => Ok(vec![IndexBox::whole(shape)?]),
            false => Ok(uncovered(shape, &holes.boxes, ALL)?.boxes),
        }
    }

    /// Extremes and missing elements over all parts, where each has them. Of overlapping parts all
    /// count, so that the extremes may be wider than what is visible.
    pub fn summary(&self) -> Option<Summary> {
        self.source.summary()
    }

    /// The whole field.
    pub fn read(&self) -> Result<Vec<u8>> {
        let mut out = self.buffer(self.nbytes()?)?;
        self.source.read(None, self.lenient, &mut out)?;
        Ok(out)
    }

    /// The whole field into a buffer of exactly its length.
    pub fn read_into(&self, out: &mut [u8]) -> Result<()> {
        let nbytes = self.nbytes()?;
        if out.len() as u64 != nbytes {
            return Err(Code::BufferSize.error(format!(
                "{} has {nbytes} bytes, the buffer {}",
                self.name(),
                out.len()
            )));
        }
        self.source.read(None, self.lenient, out)
    }

    /// Bytes from `start` on of an opaque field; `out` must lie inside it.
    pub fn read_range(&self, start: u64, out: &mut [u8]) -> Result<()> {
        if self.source.array()?.is_some() {
            return Err(Code::Dtype
                .error(format!("{} is an array", self.name()))
                .with_hint("read a box of it"));
        }
        let nbytes = self.nbytes()?;
        if start.checked_add(out.len() as u64).is_none_or(|end| end > nbytes) {
            return Err(Code::Box.error(format!(
                "{} has {nbytes} bytes: {} at {start} reach beyond",
                self.name(),
                out.len()
            )));
        }
        self.source.read_range(start, out)
    }

    /// Reads all of it, compares every byte with its checksum, and gives up what it read; returns the raw
    /// bytes. Memory holds 16 MiB of it, or a block.
    pub fn warm(&self) -> Result<u64> {
        let nbytes = self.nbytes()?;
        let Some((dtype, shape)) = self.source.array()? else {
            let mut at = 0;
            while at < nbytes {
                let part = WARMED.min(nbytes - at);
                self.source.read_range(at, &mut self.buffer(part)?)?;
                at += part;
            }
            return Ok(nbytes);
        };
        let (item, shape) = (dtype.size() as u64, shape.to_vec());
        let chunks = self.chunks().unwrap_or_default();
        // Slabs along the first dimension, of whole chunks.
        let chunk = chunks.first().copied().unwrap_or(1).max(1);
        let row: u64 = shape.iter().skip(1).fold(item, |product, extent| product.saturating_mul(*extent));
        let rows = chunk.saturating_mul((WARMED / row.saturating_mul(chunk).max(1)).max(1));
        let Some(extent) = shape.first().copied() else {
            self.source.read(None, true, &mut self.buffer(nbytes)?)?;
            return Ok(nbytes);
        };
        let mut at = 0;
        while at < extent && nbytes > 0 {
            let (mut start, mut count) = (vec![0; shape.len()], shape.clone());
            (start[0], count[0]) = (at, rows.min(extent - at));
            let region = IndexBox::new(start, count, &shape)?;
            let bytes = region.element_count()?.saturating_mul(item);
            self.source.read(Some(&region), true, &mut self.buffer(bytes)?)?;
            at = at.saturating_add(rows);
        }
        Ok(nbytes)
    }

    /// A box of an array in C order (all of it without one); the bytes of an opaque field without one.
    pub fn read_box(&self, region: Option<&IndexBox>) -> Result<Vec<u8>> {
        let Some(region) = region else { return self.read() };
        let bytes = self.bytes_of(region)?;
        let mut out =
            self.buffer(bytes.ok_or_else(|| Code::Box.error(format!("box [{region}] is too large")))?)?;
        self.read_region(region, &mut out)?;
        Ok(out)
    }

    /// A box of an array into a buffer of exactly its bytes, in C order.
    pub fn read_box_into(&self, region: &IndexBox, out: &mut [u8]) -> Result<()> {
        if self.bytes_of(region)? != Some(out.len() as u64) {
            return Err(Code::BufferSize.error(format!(
                "box [{region}] of {} does not have the buffer's {} bytes",
                self.name(),
                out.len()
            )));
        }
        self.read_region(region, out)
    }

    fn read_region(&self, region: &IndexBox, out: &mut [u8]) -> Result<()> {
        if region.is_empty() {
            return Ok(());
        }
        self.source.read(Some(region), self.lenient, out)
    }

    /// Bytes of a box, which must lie within the array; `None` beyond 64 bits.
    fn bytes_of(&self, region: &IndexBox) -> Result<Option<u64>> {
        let (dtype, shape) = self.array()?;
        region.check_within(shape)?;
        Ok(region.element_count()?.checked_mul(dtype.size() as u64))
    }

    fn array(&self) -> Result<(DType, &[u64])> {
        match self.source.array()? {
            Some(array) => Ok(array),
            None => Err(Code::NotAnArray.error(format!("{} is opaque bytes, not an array", self.name()))),
        }
    }

    fn buffer(&self, bytes: u64) -> Result<Vec<u8>> {
        let mut buffer = Vec::new();
        let fits = usize::try_from(bytes).is_ok_and(|n| buffer.try_reserve_exact(n).is_ok());
        if !fits {
            return Err(Code::OutOfMemory
                .error(format!("{} takes {bytes} bytes, more than this machine's memory", self.name()))
                .with_hint("read it box by box"));
        }
        buffer.resize(bytes as usize, 0);
        Ok(buffer)
    }
}
