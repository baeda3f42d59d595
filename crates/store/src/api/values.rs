//! What goes into a store: keys, values, and what is said of arrays and of files outside.
//!
//! ```
//! use fieldstone_core::dtype::DType;
//! use fieldstone_store::api::Value;
//! let elements: Vec<u8> = [1.5f64, 2.5].into_iter().flat_map(f64::to_ne_bytes).collect();
//! let value = Value::Array { data: &elements, dtype: DType::F8, shape: &[2] };
//! # let _ = value;
//! ```

use std::path::Path;

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::IndexBox;

#[cfg(doc)]
use super::FieldAccess;

/// Keyword → value pairs in any order.
pub type Pairs<'a> = [(&'a str, &'a str)];

/// What is archived under a key.
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

/// What [`FieldAccess::create_field`] declares.
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

/// What stands in a file outside.
#[derive(Debug, Clone, Copy)]
pub enum ExternalContent<'a> {
    /// So many opaque bytes.
    Bytes(u64),
    /// A whole array, in C order.
    Array {
        /// Element type, with the byte order that the file has.
        dtype: DType,
        /// Extents.
        shape: &'a [u64],
    },
}

/// What a file was when somebody looked at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    /// Bytes of the file.
    pub nbytes: u64,
    /// Its change time, nanoseconds since 1970.
    pub mtime: i64,
}

/// What [`FieldAccess::archive_external`] takes: `parts` ranges of equal length, `stride` bytes from
/// beginning to beginning, that together are a field's bytes in order.
#[derive(Debug, Clone, Copy)]
pub struct ExternalSpec<'a> {
    /// The file.
    pub path: &'a Path,
    /// Where the first part begins.
    pub offset: u64,
    /// How many parts there are; 1 for bytes that follow one another.
    pub parts: u64,
    /// Distance of the parts; means nothing for one.
    pub stride: u64,
    /// What they hold.
    pub content: ExternalContent<'a>,
    /// What the file must still be; as it is now where absent.
    pub seen: Option<FileState>,
}

/// What [`FieldAccess::archive_stored`] takes: a whole array in C order that stands in a file of the store's
/// folder, and is durable there.
#[derive(Debug, Clone, Copy)]
pub struct StoredArraySpec<'a> {
    /// The file, relative to the store's folder, with `/` between its parts.
    pub path: &'a str,
    /// Where the array begins.
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
