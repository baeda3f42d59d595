//! The interface that a store implements to return fields (F-2).
//!
//! A store in a folder reads blocks of files, a client asks its server, a mirror asks any store that answers. They
//! share this interface and nothing more: a user of a [`Field`] or [`Fields`](super::Fields) sees no difference.
//!
//! Invariant: a source never changes. It is of one moment, and what it says of itself stays true while it
//! lives, whatever is flushed, removed or compacted meanwhile.

use std::any::Any;
use std::ffi::OsStr;
use std::fmt;
use std::path::PathBuf;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{IndexBox, Summary, Uncovered};
use fieldstone_core::{Error, Result};
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::entry::EntryId;
use fieldstone_format::origin::EntryOrigin;

use super::Field;

/// Which version of which field of which store. Two that are equal have the same bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FieldId<'a> {
    /// The store, by a text that all its handles have: a folder, a server's URL.
    pub store: &'a OsStr,
    /// The encoded key.
    pub key: &'a [u8],
    /// The name of its newest part within the store.
    pub entry: EntryId,
}

/// How an array field was declared and is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Outline {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
    /// The value of unwritten elements, if it is not the element type's own.
    pub fill: Option<Vec<u8>>,
    /// Extents of the chunks, where anybody chose them.
    pub chunks: Option<Vec<u64>>,
}

/// The location of a field's array, if it is whole and in a file of the store
/// ([`Field::stored_array`](super::Field::stored_array)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredArray {
    /// The file; absolute.
    pub path: PathBuf,
    /// The begin of the array.
    pub offset: u64,
    /// Element type, with the byte order that the file has.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
    /// Raw bytes of all blocks but the last.
    pub block: u64,
    /// CRC-32C of each block.
    pub sums: Vec<u32>,
    /// How many elements nobody wrote.
    pub holes: u64,
}

/// A part of a field, and the commit that wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct FieldPart {
    /// The commit, of this store or of the one that the part was moved from.
    pub origin: EntryOrigin,
    /// The box of an array that it covers; `None` for opaque bytes, and where it has no elements.
    pub region: Option<IndexBox>,
}

/// The location of a field's block, as its source reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlace {
    /// The part of the field that it is of, the newest being 0.
    pub part: usize,
    /// The file of the part's writer: 0 for the log, else the number of the data log.
    pub file: u32,
    /// Its begin.
    pub offset: u64,
    /// Its bytes there: as many as `raw`, or fewer where they are a zstd frame.
    pub stored: u64,
    /// Bytes of its elements.
    pub raw: u64,
    /// CRC-32C of the stored bytes.
    pub crc: u32,
}

/// One field, as whoever keeps it gives it out.
///
/// [`Field`] asks only for what is there: see the invariants of [the module](super).
pub trait FieldSource: Any + Send + Sync + fmt::Debug {
    /// Which version of which field it is: what a removal of this very version needs.
    fn id(&self) -> FieldId<'_>;

    /// The text that names the moment it belongs to.
    fn version(&self) -> String;

    /// The commits that its parts came by, each once and with its stamp; none where nobody knows them.
    fn commits(&self) -> Vec<(CommitId, u64)> {
        Vec::new()
    }

    /// Its parts, newest first, each with the commit that wrote it; none where nobody knows them.
    fn parts(&self) -> Result<Vec<FieldPart>> {
        Ok(Vec::new())
    }

    /// The newest of the older values of its key that it hides.
    fn older(&self) -> Result<Option<Field>> {
        Ok(None)
    }

    /// When its newest part was flushed, nanoseconds since 1970, by the writer's clock.
    fn time(&self) -> i64;

    /// Raw bytes of the field when whole. Conflict where its pieces disagree.
    fn nbytes(&self) -> Result<u64>;

    /// Element type and shape of an array; `None` for opaque bytes. Conflict where its pieces disagree.
    fn array(&self) -> Result<Option<(DType, &[u64])>>;

    /// Boxes outside of which every element was written, at most `limit` of them; none for opaque bytes.
    fn missing(&self, limit: usize) -> Result<Uncovered>;

    /// How many elements nobody wrote of which nobody knows where they are: boxes in which they lie are
    /// [`missing`](Self::missing).
    fn holes(&self) -> Result<u64> {
        Ok(0)
    }

    /// Extents of the chunks in which its newest part is stored; `None` for opaque bytes.
    fn chunks(&self) -> Option<Vec<u64>>;

    /// How an array was declared and is stored; `None` for opaque bytes.
    fn outline(&self) -> Result<Option<Outline>>;

    /// Whether any part is stored compressed.
    fn is_compressed(&self) -> Result<bool>;

    /// The location of its array, if it is whole and in a file of the store.
    fn stored_array(&self) -> Result<Option<StoredArray>> {
        Ok(None)
    }

    /// The stored block that holds the elements of `region` and no other, if there is one.
    fn block_place(&self, _region: &IndexBox) -> Result<Option<BlockPlace>> {
        Ok(None)
    }

    /// The stored bytes of a block that [`block_place`](Self::block_place) found, compared with their checksum,
    /// into `out`, which has their length.
    fn read_block(&self, _place: &BlockPlace, _out: &mut [u8]) -> Result<()> {
        Err(Error::internal("a field that has no blocks was asked for one"))
    }

    /// Extremes and missing elements over all parts, where each has them.
    fn summary(&self) -> Option<Summary>;

    /// Reads the raw bytes of a region of an array in C order, or of the whole field, into a buffer of their length.
    /// If `lenient`, it fills unwritten elements; otherwise they are NotFound, with their box. It compares every byte
    /// with its checksum; Corrupt names key and file.
    fn read(&self, region: Option<&IndexBox>, lenient: bool, out: &mut [u8]) -> Result<()>;

    /// Raw bytes from `start` on of an opaque field.
    fn read_range(&self, start: u64, out: &mut [u8]) -> Result<()>;

    /// Reads the first field of a batch, which is this one, and with it as many of those behind it as come at
    /// the same cost, one behind the other; returns how many in all. Each field stands with its length, and
    /// `out` has room for all of them. A store whose fields are each a read of their own leaves this as it is.
    fn read_first(&self, batch: &[(Field, usize)], out: &mut [u8]) -> Result<usize> {
        let Some((first, length)) = batch.first() else { return Ok(0) };
        self.read(None, first.is_lenient(), &mut out[..*length])?;
        Ok(1)
    }
}

/// The fields of one retrieve, as whoever keeps them gives them out: found, and not read.
pub trait FieldsSource: Send + Sync + fmt::Debug {
    /// How many there are.
    fn count(&self) -> usize;

    /// The field at a place below [`count`](Self::count), in request order.
    fn get(&self, index: usize) -> Result<Field>;

    /// The combinations of listed values that have no field, up to a number.
    fn missing(&self, limit: usize) -> Vec<String>;

    /// How many combinations have no field.
    fn missing_count(&self) -> u64;

    /// The text that names the moment these fields belong to.
    fn version(&self) -> String;
}
