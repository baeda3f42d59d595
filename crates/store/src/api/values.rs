//! The input of a store: keys, values, and descriptions of arrays and of files outside.
//!
//! ```
//! use fieldstone_core::dtype::DType;
//! use fieldstone_store::api::Value;
//! let elements: Vec<u8> = [1.5f64, 2.5].into_iter().flat_map(f64::to_ne_bytes).collect();
//! let value = Value::Array { data: &elements, dtype: DType::F8, shape: &[2] };
//! # let _ = value;
//! ```

use std::path::Path;

use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::IndexBox;
use fieldstone_core::{Code, Result};

#[cfg(doc)]
use super::FieldAccess;

/// Keyword → value pairs in any order.
pub type Pairs<'a> = [(&'a str, &'a str)];

/// A value to archive under a key.
#[derive(Debug, Clone, Copy)]
pub enum Value<'a> {
    /// Opaque bytes: a GRIB message, a file.
    Bytes(&'a [u8]),
    /// A whole array, in C order.
    Array {
        /// The elements' bytes.
        data: &'a [u8],
        /// Element type.
        dtype: DType,
        /// Extents.
        shape: &'a [u64],
    },
    /// A piece of an array whose other pieces come from elsewhere.
    Piece {
        /// The elements' bytes, C order within the box.
        data: &'a [u8],
        /// Element type.
        dtype: DType,
        /// Start of the piece in the array.
        start: &'a [u64],
        /// Extents of the piece.
        count: &'a [u64],
        /// Shape of the whole array.
        shape: &'a [u64],
    },
}

impl Value<'_> {
    /// The box of a piece.
    pub fn piece(&self) -> Result<Option<IndexBox>> {
        match self {
            Value::Piece { start, count, shape, .. } => {
                IndexBox::new(start.to_vec(), count.to_vec(), shape).map(Some)
            }
            _ => Ok(None),
        }
    }
}

/// Opaque bytes for [`FieldStreams::archive_stream`](super::FieldStreams::archive_stream) that are read part by part.
#[derive(Clone, Copy)]
pub struct ByteStream<'a> {
    /// Their number.
    pub nbytes: u64,
    /// Reads the bytes from an offset on into a buffer; the same each time.
    pub read: &'a dyn Fn(u64, &mut [u8]) -> Result<()>,
}

impl ByteStream<'_> {
    /// All of them.
    pub fn bytes(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let len = usize::try_from(self.nbytes).ok().filter(|len| bytes.try_reserve_exact(*len).is_ok());
        let Some(len) = len else {
            return Err(Code::OutOfMemory.error(format!("memory does not hold {} bytes", self.nbytes)));
        };
        bytes.resize(len, 0);
        (self.read)(0, &mut bytes)?;
        Ok(bytes)
    }
}

/// A declaration for [`FieldAccess::create_field`].
#[derive(Debug, Clone)]
pub struct FieldSpec<'a> {
    /// Element type.
    pub dtype: DType,
    /// Shape of the whole array.
    pub shape: &'a [u64],
    /// One element for what nobody writes; the type's missing value (NaN, NaT, else zero) if absent.
    pub fill: Option<&'a [u8]>,
    /// Extents of the chunks that pieces are cut by.
    pub chunks: Option<&'a [u64]>,
}

/// The content of a file outside.
#[derive(Debug, Clone, Copy)]
pub enum ExternalContent<'a> {
    /// Opaque bytes of this length.
    Bytes(u64),
    /// A whole array, in C order.
    Array {
        /// Element type, with the byte order that the file has.
        dtype: DType,
        /// Extents.
        shape: &'a [u64],
    },
}

/// The state of a file when it was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    /// Bytes of the file.
    pub nbytes: u64,
    /// Its change time, nanoseconds since 1970.
    pub mtime: i64,
}

/// The argument of [`FieldAccess::archive_external`]: `parts` ranges of equal length, `stride` bytes from beginning
/// to beginning, that together are a field's bytes in order.
#[derive(Debug, Clone, Copy)]
pub struct ExternalSpec<'a> {
    /// The file.
    pub path: &'a Path,
    /// The begin of the first part.
    pub offset: u64,
    /// How many parts there are; 1 for bytes that follow one another.
    pub parts: u64,
    /// Distance of the parts; means nothing for one.
    pub stride: u64,
    /// The content of the parts.
    pub content: ExternalContent<'a>,
    /// The state that the file must still have; by default its present one.
    pub seen: Option<FileState>,
}

/// The argument of [`FieldAccess::archive_stored`]: a whole array in C order that is in a file of the store's folder,
/// and is durable there.
#[derive(Debug, Clone, Copy)]
pub struct StoredArraySpec<'a> {
    /// The file, relative to the store's folder, with `/` between its parts.
    pub path: &'a str,
    /// The begin of the array.
    pub offset: u64,
    /// Element type, with the byte order that the file has.
    pub dtype: DType,
    /// Extents, none of them 0.
    pub shape: &'a [u64],
    /// One element: what stands where nobody wrote.
    pub fill: Option<&'a [u8]>,
    /// Raw bytes of all blocks but the last: whole elements.
    pub block: u64,
    /// CRC-32C of each block.
    pub sums: &'a [u32],
    /// How many elements nobody wrote.
    pub holes: u64,
}
