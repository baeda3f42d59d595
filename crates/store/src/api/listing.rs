//! The lines of a list. All fields are public: whatever store answers a list makes them itself.

use std::fmt;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::geometry::{Scalar, Summary};
use fieldstone_core::key::FieldKey;
use fieldstone_format::Id;

/// The file that holds a field's bytes. Its text is the path relative to the store's folder, or a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PlaceFile {
    /// A file of a writer: 0 is its log, n its data log n.
    Own(Id, u32),
    /// The path of a file of the store that belongs to no writer, to which arrays are added.
    Grown(Arc<str>),
    /// A file outside the store.
    Outside(Arc<str>),
    /// The path of a takeover, whose index entry holds the bytes.
    Takeover(Arc<str>),
}

impl fmt::Display for PlaceFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlaceFile::Own(writer, 0) => write!(f, "logs/{}", fieldstone_format::log::file_name(*writer)),
            PlaceFile::Own(writer, n) => {
                write!(f, "data/{}", fieldstone_format::data::file_name(*writer, *n))
            }
            PlaceFile::Grown(name) | PlaceFile::Outside(name) | PlaceFile::Takeover(name) => {
                f.write_str(name)
            }
        }
    }
}

/// The position of a field's first bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldLocation {
    /// The file.
    pub file: PlaceFile,
    /// Offset of the first byte.
    pub offset: u64,
    /// Stored bytes, where known without reading more.
    pub length: Option<u64>,
}

impl fmt::Display for FieldLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.offset)
    }
}

/// One line of a list.
#[derive(Debug, Clone)]
pub struct ListEntry {
    /// The key; only its first `depth` levels count.
    pub key: FieldKey,
    /// How many levels of the key are listed.
    pub depth: u8,
    /// Raw bytes of the field when whole.
    pub nbytes: u64,
    /// Element type; `None` for opaque bytes.
    pub dtype: Option<DType>,
    /// Shape; `None` for opaque bytes.
    pub shape: Option<Arc<[u64]>>,
    /// Extents of the chunks it is stored in; `None` where it is one block, and for opaque bytes. Of a
    /// field in pieces: those it was created with, else of its largest piece.
    pub chunks: Option<Arc<[u64]>>,
    /// Whether blocks of its newest part are compressed, as far as that is known without reading more; `None`
    /// where it has no blocks of its own that are chunks of an array.
    pub packed: Option<bool>,
    /// Whether every element is there.
    pub complete: bool,
    /// The position of its newest piece; none for a created field without pieces.
    pub place: Option<FieldLocation>,
    /// When it was flushed, nanoseconds since 1970, by the writer's clock.
    pub time: i64,
    /// The user who wrote it.
    pub owner: Arc<str>,
    /// Extremes and missing elements, where every piece has them.
    pub summary: Option<Extremes>,
    /// The attempt that wrote it; of a field in pieces the one whose pieces it shows.
    pub attempt: Option<Arc<str>>,
    /// Whether a newer version hides it.
    pub masked: bool,
}

/// The index's summary of an array's elements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes {
    /// Smallest element that is not missing; `None` where all are, or where it is not known.
    pub min: Option<Scalar>,
    /// Largest element that is not missing; the same.
    pub max: Option<Scalar>,
    /// Elements that are missing; `None` where it is not known.
    pub missing: Option<u64>,
}

impl From<Summary> for Extremes {
    fn from(summary: Summary) -> Extremes {
        Extremes { min: summary.min, max: summary.max, missing: Some(summary.missing) }
    }
}

/// A stream of list entries.
pub type Listing = Box<dyn Iterator<Item = Result<ListEntry>> + Send>;
