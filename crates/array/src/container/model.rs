//! Words shared by all of [`container`](super): formats, strategies, and what a reader is told of a
//! dimension or a variable, whichever way the file's header is kept.

use std::fmt;

use fieldstone_core::Result;
use fieldstone_format::netcdf::{Attrs, NcType, Version};

/// How a container's header is laid out on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// netCDF classic.
    Classic(Version),
    /// The partitioned header: an index table and metadata blocks.
    Partitioned,
}

/// How ranks come to one header at `enddef`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// Names are checked by ranks that own a part of all hashes; offsets come from scans; each rank writes
    /// its own part of a standard header. The default of CDF-5.
    Scalable,
    /// Everything is gathered everywhere and every rank defines everything; rank 0 writes. The paper's
    /// baseline at the level of the application.
    App,
    /// Gathered on rank 0, checked there by a hash table, written by it. The paper's baseline in the library.
    LibraryHash {
        /// Slots of the table.
        slots: usize,
    },
    /// As [`LibraryHash`](Strategy::LibraryHash), checked by sorting.
    LibrarySort,
    /// The partitioned header; the only strategy of [`Format::Partitioned`].
    Partitioned,
}

/// A dimension as a reader sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimInfo {
    /// Its number in the file.
    pub id: u64,
    /// Its path.
    pub name: String,
    /// Its length; for the record dimension the number of records when it was asked for.
    pub len: u64,
    /// Whether it is the record dimension.
    pub is_record: bool,
}

/// A variable as a reader sees it: enough to find every element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VarInfo {
    /// Its number in the file.
    pub id: u64,
    /// Its path.
    pub name: String,
    /// Its type.
    pub ty: NcType,
    /// Its dimensions, outermost first.
    pub dims: Vec<DimInfo>,
    /// Its attributes.
    pub attrs: Attrs,
    /// Offset of its first byte.
    pub begin: u64,
    /// Bytes from one of its records to the next; 0 for a variable without record dimension.
    pub record_stride: u64,
}

impl VarInfo {
    /// Lengths of the dimensions.
    pub fn shape(&self) -> Vec<u64> {
        self.dims.iter().map(|dim| dim.len).collect()
    }
    /// Whether it grows along the record dimension.
    pub fn is_record(&self) -> bool {
        self.dims.first().is_some_and(|dim| dim.is_record)
    }
}

/// How many objects a container has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Dimensions.
    pub dims: u64,
    /// Global attributes.
    pub attrs: u64,
    /// Variables.
    pub vars: u64,
}

/// What a container's header says, however it is kept: all in memory, found through a name index, or in
/// metadata blocks. Reads what it needs, when it needs it.
///
/// Errors of all calls: `Corrupt` with offset and rule where bytes are no header.
pub trait Metadata: Send + Sync + fmt::Debug {
    /// The layout it was read from.
    fn format(&self) -> Format;
    /// Number of objects.
    fn counts(&self) -> Result<Counts>;
    /// Number of records now.
    fn numrecs(&self) -> Result<u64>;
    /// The variable with this path; `None` only where it is certain that there is none.
    fn find_var(&self, path: &str) -> Result<Option<VarInfo>>;
    /// The dimension with this path.
    fn find_dim(&self, path: &str) -> Result<Option<DimInfo>>;
    /// At most `limit` variables from number `from` on, in order.
    fn vars(&self, from: u64, limit: usize) -> Result<Vec<VarInfo>>;
    /// At most `limit` dimensions from number `from` on, in order.
    fn dims(&self, from: u64, limit: usize) -> Result<Vec<DimInfo>>;
    /// Global attributes. The one that states how paths are spelled is not among them.
    fn attrs(&self) -> Result<Attrs>;
    /// Bytes of memory it holds.
    fn memory(&self) -> u64;
}
