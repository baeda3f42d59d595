//! Side records of the catalog: the runs, steps, variables, tags, attributes and distributed arrays of a
//! commit.
//! The normative text is `spec/catalog-records.md`.
//!
//! Records name runs, variables and tags by their names, so that writers need not agree on numbers.
//! Attributes travel in columns, compressed: one record for the rows of one call.
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
mod declarations;
mod file_sums;
mod keywords;
mod line;
mod record;

use std::sync::Arc;

use fieldstone_core::dtype::DType;
use fieldstone_core::value::{Value, ValueType};

use crate::Id;
use crate::setting::IfExists;
pub use crate::value::{put_value, read_value};
pub use arrays::{
    ArrayGroup, ArrayLayout, ArraySet, BasicPattern, HistoryContent, HistoryDecl, ImportDecl, ImportFormat,
    ImportedVariable, MeshDecl, MeshLocation, RankSizes, StorageOrder,
};
pub use attributes::{CELLS_MAX, RANK_MAX};
pub use file_sums::FileSums;
pub use keywords::{KEYWORD_VALUE_MAX, KEYWORDS_MAX};
pub use line::{line_of, record_of};
pub use record::{KINDS, ROWS_MAX, declares, is_catalog, keeps_runs};

/// A run's name, unique in its project.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunName {
    /// The project; empty for none.
    pub project: String,
    /// The name.
    pub name: String,
}

/// Declaration of a run.
#[derive(Debug, Clone)]
pub struct RunDecl {
    /// Its name.
    pub run: RunName,
    /// The job that created it, in the batch system's name.
    pub job: Option<String>,
    /// Parameters, in the caller's order.
    pub params: Vec<(String, Value)>,
    /// When it was created, nanoseconds since 1970.
    pub created: i64,
    /// Description of its grid; free.
    pub grid: Option<Value>,
    /// Notes.
    pub notes: Option<String>,
    /// Location of its data outside the store: free here, interpreted by the facade.
    pub outside: Option<Value>,
    /// Users who may annotate it.
    pub annotate: Annotate,
    /// Behaviour of a write to an existing field; `None` for the store's setting.
    pub if_exists: Option<IfExists>,
    /// Its state, as its writers last reported it. A separate record holds it; a declaration does not.
    pub state: Option<RunState>,
}

/// State of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunState {
    /// Phase that its writer reported.
    pub phase: RunPhase,
    /// Reason, for a failed run.
    pub note: String,
    /// The log that reported it; `None` in a record, and before its flush.
    pub writer: Option<Id>,
}

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPhase {
    /// A writer is writing it.
    Running = 1,
    /// It finished.
    Finished = 2,
    /// It failed.
    Failed = 3,
}

impl RunPhase {
    pub(crate) fn from_u8(byte: u8) -> Option<RunPhase> {
        [RunPhase::Running, RunPhase::Finished, RunPhase::Failed]
            .into_iter()
            .find(|phase| *phase as u8 == byte)
    }
}

/// Users who may annotate a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Annotate {
    /// Everyone, each under their own name.
    #[default]
    All,
    /// Its owner only: attributes of others do not count.
    Owner,
}

impl RunDecl {
    /// A run with nothing but a name; its writer sets `created`.
    pub fn named(run: RunName) -> RunDecl {
        RunDecl {
            run,
            job: None,
            params: Vec::new(),
            created: 0,
            grid: None,
            notes: None,
            outside: None,
            annotate: Annotate::All,
            if_exists: None,
            state: None,
        }
    }
}

/// Declaration of a step.
#[derive(Debug, Clone, Copy)]
pub struct StepDecl {
    /// Its number.
    pub number: i64,
    /// Its time, in the unit that the run declares.
    pub time: Option<f64>,
}

/// A variable's name and version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VariableName {
    /// The name.
    pub name: String,
    /// The version.
    pub version: i64,
}

/// Coordinates along one dimension.
#[derive(Debug, Clone)]
pub enum Coordinate {
    /// Element i is at first + i * spacing.
    Uniform {
        /// Coordinate of element 0.
        first: f64,
        /// Distance of two elements; not 0.
        spacing: f64,
    },
    /// A coordinate for each element, strictly rising or falling.
    Rectilinear(Vec<f64>),
    /// Another kind of grid, by name: physical ranges are refused.
    Other(String),
}

/// Declaration of a variable of a run.
#[derive(Debug, Clone)]
pub struct VariableDecl {
    /// Its name and version.
    pub variable: VariableName,
    /// Element type.
    pub dtype: Option<DType>,
    /// Global shape, in elements.
    pub shape: Option<Vec<u64>>,
    /// Names of the dimensions; empty if they have none.
    pub dims: Vec<String>,
    /// Its own attributes, such as units.
    pub attrs: Vec<(String, Value)>,
    /// Coordinates of dimensions, by the dimension's index.
    pub coords: Vec<(u32, Coordinate)>,
    /// Extents of the pieces in which it is written.
    pub decomposition: Option<Vec<u64>>,
    /// Features that finders look for during writes; free here, interpreted by the facade.
    pub finders: Option<Value>,
}

impl VariableDecl {
    /// A variable with nothing but a name.
    pub fn named(variable: VariableName) -> VariableDecl {
        VariableDecl {
            variable,
            dtype: None,
            shape: None,
            dims: Vec::new(),
            attrs: Vec::new(),
            coords: Vec::new(),
            decomposition: None,
            finders: None,
        }
    }
}

/// Declaration of a tag. Two tags that differ in any part are different tags.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TagDecl {
    /// The name.
    pub name: String,
    /// The requested version. If a tag of another type or unit has this number already, the next free one is
    /// shown.
    pub version: i64,
    /// Type of its values.
    pub kind: ValueType,
    /// Unit of its values; empty for none.
    pub unit: String,
}

/// A column of a batch: one value for all rows, or one for each.
#[derive(Debug, Clone, PartialEq)]
pub enum Column<T> {
    /// The same in all rows.
    One(T),
    /// One for each row.
    Each(Vec<T>),
}

/// Boxes of a batch, half-open: `start[row * rank + d]`, `count[row * rank + d]`; only one row if all rows
/// have the same box.
#[derive(Debug, Clone, PartialEq)]
pub struct Boxes {
    /// Dimensions.
    pub rank: usize,
    /// Starts, in elements.
    pub start: Vec<i64>,
    /// Extents, in elements.
    pub count: Vec<i64>,
    /// The cells inside the boxes, if those are not all of their elements.
    pub cells: Option<CellSets>,
}

/// Cells along one dimension: a set for each box, which is the smallest box around its cells in that
/// dimension. In other dimensions the cells cover the whole box.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSets {
    /// The dimension.
    pub dim: usize,
    /// Indices along the dimension, ascending and unique; a set for each box.
    pub sets: Vec<Arc<[i64]>>,
}

/// A keyword of a batch, with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeywordColumn {
    /// The keyword.
    pub keyword: Arc<str>,
    /// Its canonical values: one for each row, or a single one for all. Empty if a row's key does not have
    /// the keyword.
    pub values: Vec<Arc<str>>,
}

/// Values of a batch, by type. [`Values::Any`] holds types that have no column of their own.
#[derive(Debug, Clone)]
pub enum Values {
    /// Bools.
    Bool(Vec<bool>),
    /// Integers; datetimes too, as nanoseconds since 1970.
    Int(Vec<i64>),
    /// Unsigned integers.
    UInt(Vec<u64>),
    /// Floats.
    Float(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
    /// All others.
    Any(Vec<Value>),
}

/// Attributes of one run and one tag: a typed value on the run (no step, no variable), on steps, or on
/// variables, each with or without a box.
#[derive(Debug, Clone)]
pub struct AttributeBatch {
    /// The run.
    pub run: RunName,
    /// The tag, with the type of the values.
    pub tag: TagDecl,
    /// Number of rows.
    pub rows: usize,
    /// The steps; `None` for attributes of the run, or of a variable at no step.
    pub step: Option<Column<i64>>,
    /// The variables, which rows name by index; empty for attributes of the run or of steps.
    pub variables: Vec<VariableName>,
    /// Index into `variables` for each row; without meaning if that is empty.
    pub variable: Column<u32>,
    /// The boxes; `None` for the whole variable.
    pub boxes: Option<Boxes>,
    /// Further keywords of the rows' keys, in addition to those of run, step and variable; by name,
    /// ascending.
    pub keywords: Vec<KeywordColumn>,
    /// The values: one for each row, or a single one for all rows if `one_value` is set.
    pub values: Values,
    /// Whether all rows have the same value.
    pub one_value: bool,
    /// Whether this continues the call of the previous record: rows of one call never replace each other;
    /// rows of a later call replace earlier ones in the same cell.
    pub continues: bool,
    /// Whether each row is a call of its own.
    pub singles: bool,
}

/// One attribute or declaration, named by its position in the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttributeId {
    /// The log; `None` for unflushed rows, and in a deletion for rows of the same commit.
    pub writer: Option<crate::Id>,
    /// The commit's sequence.
    pub sequence: u64,
    /// Index among the commit's side records.
    pub record: u32,
    /// Row of the record, or the position of a declaration in it.
    pub row: u32,
}

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
