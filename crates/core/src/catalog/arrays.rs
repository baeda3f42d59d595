//! Distributed arrays: groups of sets, imports, meshes and histories of partitions.

use std::sync::Arc;

use super::VariableName;
use crate::dtype::DType;
use crate::value::Value;

/// Storage of a group's arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrayLayout {
    /// In netCDF files that belong to the store.
    Files,
    /// In the store's own logs.
    Fields,
}

/// Order of an array's elements in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StorageOrder {
    /// The last dimension varies fastest.
    C,
    /// The first dimension varies fastest.
    Fortran,
}

/// Part of a mesh to which values belong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeshLocation {
    /// Nodes.
    Node,
    /// Edges.
    Edge,
    /// Faces.
    Face,
    /// Volumes.
    Volume,
}

/// Whether the ranks of a job hold boxes of a set, or elements by a map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BasicPattern {
    /// Boxes.
    Regular,
    /// A map.
    Irregular,
}

/// A set of a group: one variable, written step by step.
#[derive(Debug, Clone)]
pub struct ArraySet {
    /// Name and version of the variable.
    pub variable: VariableName,
    /// Element type.
    pub dtype: DType,
    /// Global shape; an extent of `None` is open: at each step it is the sum over the ranks' parts.
    pub shape: Vec<Option<u64>>,
    /// Names of the dimensions; empty if they have none.
    pub dims: Vec<String>,
    /// Value of unwritten elements.
    pub fill: Option<Value>,
    /// Its own attributes.
    pub attrs: Vec<(String, Value)>,
    /// Whether ranks write it by boxes or by a map.
    pub pattern: BasicPattern,
    /// Description of the view, such as `block 2x2x1 halo 1`; empty if none is known.
    pub view: String,
}

/// A group of sets that are written alike.
#[derive(Debug, Clone)]
pub struct ArrayGroup {
    /// Its name, unique in its run.
    pub name: String,
    /// 1: a file for each set and step; 2: for each set; 3: for each group.
    pub level: u8,
    /// Storage of the arrays.
    pub layout: ArrayLayout,
    /// How elements get to the ranks that write them, by name.
    pub method: String,
    /// Order of the elements.
    pub order: StorageOrder,
    /// The mesh to which values belong, by name.
    pub mesh: Option<String>,
    /// Part of the mesh to which they belong.
    pub location: Option<MeshLocation>,
    /// Extents of chunks.
    pub chunks: Option<Vec<u64>>,
    /// Compression, by name.
    pub compression: Option<String>,
    /// Attributes of the group.
    pub attrs: Vec<(String, Value)>,
    /// Its sets, in the order in which they were declared.
    pub sets: Vec<ArraySet>,
}

/// Format of an imported file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImportFormat {
    /// Concatenated arrays, without a header.
    Raw,
    /// A netCDF file.
    NetCdf,
}

/// A variable of an imported file.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedVariable {
    /// Its name.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Offset of its first byte in the file.
    pub offset: u64,
    /// Its shape.
    pub shape: Vec<u64>,
}

/// An outside file, and the variables that a run imports from it.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportDecl {
    /// Its name, unique in its run.
    pub name: String,
    /// Path or URL of the file.
    pub source: String,
    /// Format of the file.
    pub format: ImportFormat,
    /// Size of the file in bytes.
    pub size: u64,
    /// Time of the file's last change, nanoseconds since 1970.
    pub mtime: i64,
    /// Its checksum, if one was computed.
    pub checksum: Option<Vec<u8>>,
    /// Imported variables.
    pub variables: Vec<ImportedVariable>,
}

/// A mesh of the store.
#[derive(Debug, Clone)]
pub struct MeshDecl {
    /// Its name, unique in the store.
    pub name: String,
    /// Checksum of its content.
    pub checksum: Vec<u8>,
    /// Its file, relative to the store.
    pub path: String,
    /// Number of its nodes, edges, faces and volumes.
    pub counts: [u64; 4],
    /// Attributes.
    pub attrs: Vec<(String, Value)>,
    /// Checksums of its file; earlier releases kept none.
    pub sums: Option<FileSums>,
}

/// Size of one rank's part of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RankSizes {
    /// Own nodes.
    pub nodes: u64,
    /// Ghosts.
    pub ghosts: u64,
    /// Edges.
    pub edges: u64,
}

/// Content of a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HistoryContent {
    /// Edges sorted by node: they serve any vector and any number of ranks.
    Edges,
    /// Finished parts of one vector.
    Parts {
        /// Checksum of the partitioning vector.
        vector: Vec<u8>,
        /// Size of each rank's part.
        ranks: Vec<RankSizes>,
    },
}

/// A history of a partition, named by its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryDecl {
    /// Its file, relative to the store; no other history has the same one.
    pub path: String,
    /// Checksum of the mesh.
    pub mesh: Vec<u8>,
    /// Nodes of the mesh.
    pub nodes: u64,
    /// Edges of the mesh.
    pub edges: u64,
    /// Its content.
    pub content: HistoryContent,
}

macro_rules! words {
    ($($kind:ident { $($word:ident => $text:literal),+ })+) => {$(
        impl $kind {
            /// Its name in tables and programs.
            pub fn name(self) -> &'static str {
                match self {
                    $($kind::$word => $text),+
                }
            }
        }
    )+};
}

words! {
    ArrayLayout { Files => "files", Fields => "fields" }
    StorageOrder { C => "C", Fortran => "F" }
    MeshLocation { Node => "node", Edge => "edge", Face => "face", Volume => "volume" }
    BasicPattern { Regular => "regular", Irregular => "irregular" }
    ImportFormat { Raw => "raw", NetCdf => "netcdf" }
}

impl ArraySet {
    /// Elements of one step; `None` if an extent is open, or if the number exceeds 2^63.
    pub fn elements(&self) -> Option<u64> {
        let all = self.shape.iter().try_fold(1u64, |all, extent| all.checked_mul((*extent)?));
        all.filter(|all| i64::try_from(*all).is_ok())
    }
}

/// Checksums of the blocks of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSums {
    /// Size of the file in bytes.
    pub size: u64,
    /// Bytes of each block but the last one.
    pub block: u64,
    /// CRC-32C of each block.
    pub sums: Arc<[u32]>,
}
