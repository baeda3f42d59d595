//! Values of a catalog, as calls take and return them: declarations of runs, steps, variables and tags, attributes in
//! columns, distributed arrays.
//!
//! Nothing here has an order of bytes: the crate `fieldstone-format` encodes these values in records.
//!
//! ```
//! use fieldstone_core::catalog::{RunDecl, RunName};
//!
//! let run = RunDecl::named(RunName { project: String::new(), name: "demo".into() });
//! assert!(run.params.is_empty() && run.if_exists.is_none());
//! ```

mod arrays;
mod columns;

pub use arrays::{
    ArrayGroup, ArrayLayout, ArraySet, BasicPattern, FileSums, HistoryContent, HistoryDecl, ImportDecl,
    ImportFormat, ImportedVariable, MeshDecl, MeshLocation, RankSizes, StorageOrder,
};
pub use columns::{AttributeBatch, Boxes, CellSets, Column, KeywordColumn, Values};

use crate::dtype::DType;
use crate::id::Id;
use crate::if_exists::IfExists;
use crate::value::{Value, ValueType};

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

/// One attribute or declaration, named by its position in the logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AttributeId {
    /// The log; `None` for unflushed rows, and in a deletion for rows of the same commit.
    pub writer: Option<Id>,
    /// The commit's sequence.
    pub sequence: u64,
    /// Index among the commit's side records.
    pub record: u32,
    /// Row of the record, or the position of a declaration in it.
    pub row: u32,
}
