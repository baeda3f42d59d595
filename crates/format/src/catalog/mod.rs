//! Side records of the catalog: what a commit says of runs, steps, variables, tags, attributes and distributed
//! arrays.
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
use crate::setting::Exist;
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

/// A run's name, unique within its project.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RunName {
    /// The project; empty for none.
    pub project: String,
    /// The name.
    pub name: String,
}

/// A run, as it is declared.
#[derive(Debug, Clone)]
pub struct RunDecl {
    /// Its name.
    pub run: RunName,
    /// The job that made it, as the batch system names it.
    pub job: Option<String>,
    /// Parameters, in the order they were given.
    pub params: Vec<(String, Value)>,
    /// When it was created, nanoseconds since 1970.
    pub created: i64,
    /// What its grid is; free.
    pub grid: Option<Value>,
    /// Notes.
    pub notes: Option<String>,
    /// Where its data lie, if outside of the store: free here, read by the facade.
    pub outside: Option<Value>,
    /// Who may annotate it.
    pub annotate: Annotate,
    /// What a write does where its field is there; as the store says where absent.
    pub exist: Option<Exist>,
    /// How it goes, as its writers said last. No part of a declaration: a record of its own says so.
    pub state: Option<RunState>,
}

/// How a run goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunState {
    /// As its writer says.
    pub phase: RunPhase,
    /// Why, of a run that failed.
    pub note: String,
    /// The log that says so; `None` in a record, and before its flush.
    pub writer: Option<Id>,
}

/// What is said of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunPhase {
    /// It is being written.
    Running = 1,
    /// It came to its end.
    Finished = 2,
    /// It came to none.
    Failed = 3,
}

impl RunPhase {
    pub(crate) fn from_u8(byte: u8) -> Option<RunPhase> {
        [RunPhase::Running, RunPhase::Finished, RunPhase::Failed]
            .into_iter()
            .find(|phase| *phase as u8 == byte)
    }
}

/// Who may annotate a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Annotate {
    /// Everybody, each under the own name.
    #[default]
    All,
    /// Its owner alone: attributes of others do not count.
    Owner,
}

impl RunDecl {
    /// A run of which nothing is said but its name; created now, as whoever takes it says.
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
            exist: None,
            state: None,
        }
    }
}

/// A step, as it is declared.
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
    /// Element i lies at first + i * spacing.
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

/// A variable of a run, as it is declared.
#[derive(Debug, Clone)]
pub struct VariableDecl {
    /// Its name and version.
    pub variable: VariableName,
    /// Element type.
    pub dtype: Option<DType>,
    /// Global shape, in elements.
    pub shape: Option<Vec<u64>>,
    /// Names of the dimensions; empty where not named.
    pub dims: Vec<String>,
    /// Its own attributes, such as units.
    pub attrs: Vec<(String, Value)>,
    /// Coordinates of dimensions, by the dimension's index.
    pub coords: Vec<(u32, Coordinate)>,
    /// Extents of the pieces in which it is written.
    pub decomposition: Option<Vec<u64>>,
    /// Features that are looked for while it is written; free here, read by the facade.
    pub finders: Option<Value>,
}

impl VariableDecl {
    /// A variable of which nothing is said but its name.
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

/// A tag, as it is declared. Two that differ in any part are two tags.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TagDecl {
    /// The name.
    pub name: String,
    /// The version asked for. Where another type or unit holds this number already, the next free one is
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
    /// One a row.
    Each(Vec<T>),
}

/// Boxes of a batch, half-open: `start[row * rank + d]`, `count[row * rank + d]`; one row's worth where
/// all rows have the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Boxes {
    /// Dimensions.
    pub rank: usize,
    /// Starts, in elements.
    pub start: Vec<i64>,
    /// Extents, in elements.
    pub count: Vec<i64>,
    /// The cells that the boxes hold, where those are not all of their elements.
    pub cells: Option<CellSets>,
}

/// Cells along one dimension: a set for each box, which is the least that holds it there. All elements of other
/// dimensions belong to it that the box holds.
#[derive(Debug, Clone, PartialEq)]
pub struct CellSets {
    /// The dimension.
    pub dim: usize,
    /// Indices along it, ascending, none twice; a set for each box.
    pub sets: Vec<Arc<[i64]>>,
}

/// A keyword of a batch, with its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeywordColumn {
    /// The keyword.
    pub keyword: Arc<str>,
    /// Its canonical values: one a row, or a single one for all. Empty where a row's key is not said to have it.
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
/// variables, each with a box or without.
#[derive(Debug, Clone)]
pub struct AttributeBatch {
    /// The run.
    pub run: RunName,
    /// The tag; its kind says what the values are.
    pub tag: TagDecl,
    /// Rows.
    pub rows: usize,
    /// The steps; `None` for attributes of the run, or of a variable at no step.
    pub step: Option<Column<i64>>,
    /// The variables that rows name by index; empty for attributes of the run or of steps.
    pub variables: Vec<VariableName>,
    /// Index into `variables`, a row; means nothing where that is empty.
    pub variable: Column<u32>,
    /// The boxes; `None` for the whole variable.
    pub boxes: Option<Boxes>,
    /// Further keywords of the keys that rows lead to, beside those of run, step and variable; by name, ascending.
    pub keywords: Vec<KeywordColumn>,
    /// The values: one a row, or a single one for all rows where `one_value` is set.
    pub values: Values,
    /// Whether all rows have the same value.
    pub one_value: bool,
    /// Whether this goes on with the call of the record before: rows of one call never replace each
    /// other, those of a later call replace earlier ones at the same place.
    pub continues: bool,
    /// Whether each row is a call of its own.
    pub singles: bool,
}

/// One attribute, or one declaration, named by where it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttributeId {
    /// The log; `None` of what is not flushed, and in a deletion of what its own commit holds.
    pub writer: Option<crate::Id>,
    /// The commit's sequence.
    pub sequence: u64,
    /// Index among the commit's side records.
    pub record: u32,
    /// Row of the record, or the place of a declaration in it.
    pub row: u32,
}

/// What is deleted; each takes with it all that stands below.
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
    /// These attributes, and these declarations of runs, steps and variables: nothing else goes with them.
    Attributes(Vec<AttributeId>),
}

/// A side record of the catalog.
// Records are made, written and read one at a time: a box would only be in the way.
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
    /// Where data outside of the store lie from now on.
    Moved(Vec<(RunName, Value)>),
    /// How runs go.
    States(Vec<(RunName, RunState)>),
}
