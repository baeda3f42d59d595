//! Side records of the graph: the vertices and relations of a commit. The normative text is
//! `spec/graph-records.md`.
//!
//! A row is one version: a put or a deletion of a vertex or of a relation, with the stamp of that moment. A
//! relation is written once; the index keeps it at both of its ends. Rows travel in columns, compressed.
//!
//! ```
//! use fieldstone_format::graph::{Props, Record, RelationRow, Version, VertexName};
//! let [job, file] = [VertexName::new("job", "17"), VertexName::new("file", "/data/a.nc")];
//! let version = Version { stamp: 5, time: 5, deleted: false };
//! let row = RelationRow {
//!     kind: "write".into(), source: job, target: file.clone(), version, until: None, props: Props::default(),
//! };
//! let side = Record::Relations(vec![row]).encode();
//! assert!(matches!(Record::decode(&side)?, Record::Relations(rows) if rows[0].target == file));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod batch;
mod columns;
mod props;
mod record;
mod types;

use std::sync::Arc;

pub use batch::{batch_row, encode_batch, push_props};
pub use columns::{ROWS_MAX, RelationColumns};
pub use fieldstone_core::graph::{
    Archive, EdgeType, PropValue, RelationBatch, TextColumn, TypeDecl, VertexName, VertexType,
};
pub use props::{Props, check_props, props_bytes, props_of_bytes, put_props, read_props};
pub use record::{KINDS, Record, RelationParts, RelationsBody, is_graph, put_relation_parts};

/// The moment of a version, and whether it is a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    /// Its position among all versions: nanoseconds since 1970 if clocks are right, and always above every
    /// stamp that its process had read.
    pub stamp: u64,
    /// The clock of its process, nanoseconds since 1970; the time that people see.
    pub time: i64,
    /// Whether it is a deletion.
    pub deleted: bool,
}

/// One version of a vertex.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VertexRow {
    /// The vertex.
    pub vertex: VertexName,
    /// When.
    pub version: Version,
    /// Static properties; `None` keeps the earlier ones.
    pub fixed: Option<Props>,
    /// The user's properties.
    pub props: Props,
}

/// One version of a relation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RelationRow {
    /// Its type, never a reverse one.
    pub kind: Arc<str>,
    /// The vertex it leads from.
    pub source: VertexName,
    /// The vertex it leads to.
    pub target: VertexName,
    /// When it began.
    pub version: Version,
    /// The stamp at which it ended, such as a file's last read.
    pub until: Option<u64>,
    /// Its properties.
    pub props: Props,
}
