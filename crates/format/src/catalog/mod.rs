//! Side records of the catalog: the runs, steps, variables, tags, attributes and distributed arrays of a
//! commit.
//! The normative text is `spec/catalog-records.md`.
//!
//! Records name runs, variables and tags by their names, so that writers need not agree on numbers.
//! Attributes travel in columns, compressed: one record for the rows of one call. The values themselves are those
//! of [`fieldstone_core::catalog`]; their bytes and the rules of records are here.
//!
//! ```
//! use fieldstone_format::catalog::{Record, TagDecl};
//! # use fieldstone_core::value::ValueType;
//! let tag = TagDecl { name: "maximum".into(), version: 0, kind: ValueType::Float, unit: "K".into() };
//! let side = Record::Tags(vec![tag]).encode();
//! assert!(matches!(Record::decode(&side)?, Record::Tags(tags) if tags[0].unit == "K"));
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod arrays;
mod attributes;
mod batch;
mod declarations;
mod erasing;
mod file_sums;
mod keywords;
mod line;
mod record;

pub use crate::value::{put_value, read_value};
pub use arrays::{merge_group, mesh_difference};
pub use batch::{CELLS_MAX, RANK_MAX, batch_kind, batch_rows, check_batch, split_batch};
pub use erasing::{erase_rows, rows_erased};
pub use fieldstone_core::catalog::{
    Annotate, ArrayGroup, ArrayLayout, ArraySet, AttributeBatch, AttributeId, BasicPattern, Boxes, CellSets,
    Column, Coordinate, FileSums, HistoryContent, HistoryDecl, ImportDecl, ImportFormat, ImportedVariable,
    KeywordColumn, MeshDecl, MeshLocation, RankSizes, RunDecl, RunName, RunPhase, RunState, StepDecl,
    StorageOrder, TagDecl, Values, VariableDecl, VariableName,
};
use fieldstone_core::value::Value;
pub use file_sums::{decode_sums, encode_sums, sums_block};
pub use keywords::{KEYWORD_VALUE_MAX, KEYWORDS_MAX};
pub use line::{line_of, record_of};
pub use record::{KINDS, ROWS_MAX, declares, is_catalog, keeps_runs};

/// The subject of a deletion; everything inside it is deleted with it.
#[derive(Debug, Clone, PartialEq)]
pub enum Removal {
    /// A run: its steps, variables and attributes.
    Run(RunName),
    /// A step of a run, with its attributes.
    Step(RunName, i64),
    /// A variable of a run, with its attributes.
    Variable(RunName, VariableName),
    /// A tag, with its attributes in all runs.
    Tag(TagDecl),
    /// These attributes, and these declarations of runs, steps and variables, and nothing else.
    Attributes(Vec<AttributeId>),
}

/// A side record of the catalog.
// Records are made, written and read one at a time, so a box would save nothing.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone)]
pub enum Record {
    /// Runs.
    Runs(Vec<RunDecl>),
    /// Steps of a run.
    Steps(RunName, Vec<StepDecl>),
    /// Variables of a run.
    Variables(RunName, Vec<VariableDecl>),
    /// Tags.
    Tags(Vec<TagDecl>),
    /// Attributes.
    Attributes(AttributeBatch),
    /// Deletions.
    Remove(Vec<Removal>),
    /// Groups of distributed arrays of a run.
    Groups(RunName, Vec<ArrayGroup>),
    /// Files that a run imports.
    Imports(RunName, Vec<ImportDecl>),
    /// Meshes.
    Meshes(Vec<MeshDecl>),
    /// Histories of partitions.
    Histories(Vec<HistoryDecl>),
    /// New locations of data outside the store.
    Moved(Vec<(RunName, Value)>),
    /// States of runs.
    States(Vec<(RunName, RunState)>),
}
