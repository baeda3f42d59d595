//! The tables of the catalog and the databases that keep them.
//!
//! ```text
//! Database    one SQL connection: Sqlite (bundled) | Postgres        raw SQL, bulk insert, range scans
//! Index       applies side records to a Database and serves Tables   the same code for both
//! Workspace   the state for applying: Ground, Sums, Owners           tables and names, sums of rows, owners of runs
//! Tables      the interface for the query executor, in one read
//! ```
//!
//! `schema.rs` lists the tables and their columns.
//!
//! Indexes on attr: (run, tag, num) for rows with num; (run, tag, text) for text values. Numbers of runs,
//! variables and tags belong to one engine; nothing outside it knows them.

mod apply;
mod arrays;
mod attributes;
mod cell;
mod checked;
mod compare;
mod conflicts;
pub mod curve;
mod decisions;
mod declaration;
mod declare;
mod derive;
mod dirty;
mod doomed;
mod dump;
mod fields;
mod fork;
mod ground;
mod index;
mod kinds;
mod layout;
mod lists;
mod marks;
mod order;
mod owners;
mod page;
mod points;
mod postgres;
mod prepared;
mod read;
mod remove;
mod rows;
pub mod schema;
mod sqlite;
mod statement;
pub mod stored;
mod summary;
#[cfg(test)]
mod tests;
mod vfs;
mod views;
mod workspace;
mod writers;

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use fieldstone_core::value::{Value, ValueType};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{AttributeId, RunDecl, RunName, TagDecl, VariableDecl, VariableName};

/// How long a write transaction may wait for other processes: not at all, or for the database's
/// [patience](Database::set_patience). After that it fails with an error for which [`is_busy`] is true.
pub use fieldstone_journal::follower::Wait;

pub use apply::{heeds_hand_overs, restore};
pub use arrays::FileDecl;
pub use arrays::{array_groups, histories, imports, meshes};
pub(crate) use arrays::{declared_files, declared_runs, imports_of, meshes_of_groups};
pub use compare::compare;
pub use conflicts::conflicts;
pub use dump::dump;
pub use fields::{FieldRow, HeldFields, HeldPlace, Standing};
pub use index::Index;
pub use lists::{DeclarationRow, Declared, declarations, first_user, is_shared, users_of_tag};
pub use order::Decided;
pub use owners::OwnerOf;
pub(crate) use page::PAGE;
pub use points::{CoordinateRange, GridRegion, MeshRegion, PointSet, PointSource};
pub use postgres::{ATTR_COLUMNS, ATTR_DEFINITION, Postgres};
pub use sqlite::Sqlite;
pub use views::ARRAY_TABLES;
pub use writers::{UserNames, Writer, WriterOf, WriterRow};

/// Number of a run in one engine.
pub type RunId = i64;
/// Number of a tag in one engine.
pub type TagId = i64;
/// Number of a variable's name and version in one engine; [`NO_VARIABLE`] for attributes without one.
pub type VariableId = i64;

/// The variable of an attribute of a run or a step.
pub const NO_VARIABLE: VariableId = 0;
/// The step of an attribute of a run, or of a variable at no step.
pub const NO_STEP: i64 = i64::MIN;
/// The curve key of an attribute without a box.
pub const NO_CURVE: i64 = -1;

/// One cell of a row, as a database accepts and returns it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'a> {
    /// NULL.
    Null,
    /// An integer.
    Int(i64),
    /// A float, never NaN.
    Real(f64),
    /// Text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}

/// Whether a scan continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Continue with the next row.
    More,
    /// Stop.
    Stop,
}

/// A row of attr, as stored; see [`AttrRow::value`].
#[derive(Debug, Clone, Copy)]
pub struct AttrRow<'a> {
    /// The run.
    pub run: RunId,
    /// The tag.
    pub tag: TagId,
    /// The step, or [`NO_STEP`].
    pub step: i64,
    /// The variable, or [`NO_VARIABLE`].
    pub variable: VariableId,
    /// The curve key, or [`NO_CURVE`].
    pub curve: i64,
    /// The batch.
    pub batch: i64,
    /// The row in the batch's record.
    pub row: i64,
    /// Type of the value.
    pub kind: ValueType,
    /// The number by which the value is ordered: the number itself, rounded to a float, or a range's lower
    /// end. `None` for NaN and for values that are not numbers.
    pub num: Option<f64>,
    /// The rest of the value, if `num` is not exact.
    pub payload: Cell<'a>,
    /// The box, encoded; empty if there is none.
    pub region: &'a [u8],
}

/// A range of attr to read, in key order.
#[derive(Debug, Clone, PartialEq)]
pub enum Probe {
    /// By the table's key. A part may be open only if all later parts are.
    Key {
        /// The run.
        run: RunId,
        /// The tag.
        tag: TagId,
        /// Steps, both ends included; `NO_STEP..=i64::MAX` for all.
        steps: RangeInclusive<i64>,
        /// The variable; only if `steps` is one step.
        variable: Option<VariableId>,
        /// Curve keys, both ends included; only with a variable.
        curve: Option<RangeInclusive<i64>>,
    },
    /// By the number of the value, both ends included; rows come in the order of their numbers.
    Number {
        /// The run.
        run: RunId,
        /// The tag.
        tag: TagId,
        /// Numbers.
        numbers: RangeInclusive<f64>,
    },
    /// By the text of the value, both ends included if given; rows come in the order of their bytes.
    Text {
        /// The run.
        run: RunId,
        /// The tag.
        tag: TagId,
        /// Least text.
        from: String,
        /// Greatest text; `None` for no end.
        to: Option<String>,
    },
}

/// Source of an error that another process causes by holding the engine or a lock of it.
#[derive(Debug)]
pub struct Busy(pub String);

impl std::fmt::Display for Busy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Busy {}

/// Whether an error means that another process held the engine for longer than the caller waits.
pub fn is_busy(error: &Error) -> bool {
    std::error::Error::source(error).is_some_and(|source| source.is::<Busy>())
}

/// Whether an engine in memory can replace one that failed with this error: others hold it, or its disk is
/// full.
pub fn can_stand_in(error: &Error) -> bool {
    is_busy(error) || error.code() == Code::DiskFull
}

/// Differences of SQL that cannot be avoided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// SQLite.
    Sqlite,
    /// PostgreSQL.
    Postgres,
}

/// One connection to a database. SQL has parameters `$1`, `$2` ….
pub trait Database: Send + std::fmt::Debug {
    /// The SQL dialect of the database.
    fn dialect(&self) -> Dialect;
    /// Sets how long each wait for other processes may take from now on. A database that never waits ignores
    /// this.
    fn set_patience(&mut self, _limit: Duration) -> Result<()> {
        Ok(())
    }
    /// Begins a transaction that reads one state; `false` if another process writes and `wait` is No.
    fn begin(&mut self, write: bool, wait: Wait) -> Result<bool>;
    /// Commits the transaction.
    fn commit(&mut self) -> Result<()>;
    /// Rolls the transaction back.
    fn rollback(&mut self) -> Result<()>;
    /// Runs several statements without parameters: definitions.
    fn batch(&mut self, sql: &str) -> Result<()>;
    /// Runs one statement; returns how many rows it changed.
    fn execute(&mut self, sql: &str, parameters: &[Cell<'_>]) -> Result<u64>;
    /// Runs one statement once for every `width` cells. No two rows have the same key.
    fn execute_many(&mut self, sql: &str, width: usize, cells: &[Cell<'_>]) -> Result<u64> {
        let mut n = 0;
        for row in cells.chunks_exact(width.max(1)) {
            n += self.execute(sql, row)?;
        }
        Ok(n)
    }
    /// Runs a query, row by row.
    fn query(
        &mut self,
        sql: &str,
        parameters: &[Cell<'_>],
        row: &mut dyn FnMut(&[Cell<'_>]) -> Result<Flow>,
    ) -> Result<()>;
    /// Reads ranges of attr, one after another; returns how many rows were read.
    fn scan(&mut self, probes: &[Probe], row: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>) -> Result<u64>;
    /// Inserts rows of attr, given in key order, as fast as the database can.
    fn insert_attrs(&mut self, rows: &mut dyn Iterator<Item = AttrRow<'_>>) -> Result<u64>;
    /// The number of its pages; `None` if it cannot be copied.
    fn pages(&mut self) -> Result<Option<u64>> {
        Ok(None)
    }
    /// A copy of its present content in this process's memory; `None` if it cannot be copied. Only outside of
    /// transactions.
    fn copy(&mut self) -> Result<Option<Box<dyn Database>>> {
        Ok(None)
    }
    /// The plan of a query, as text, for tests and for people.
    fn explain(&mut self, sql: &str) -> Result<String>;
    /// The SQL that a probe of this shape runs, for [`explain`](Database::explain).
    fn probe_sql(&self, probe: &Probe) -> String;
    /// The result of one SQL statement of a user over the views. Invalid if it is not one statement that only
    /// reads, or if `stop` ended it. (A database that does not allow interruption runs the statement to its
    /// end.)
    fn select(&mut self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection>;
}

/// The result of a user's statement.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Distinct names of the columns: the second of several equal names ends in `_2`, and so on.
    pub names: Vec<String>,
    /// The type of each column's values, if the engine knows it without a value.
    pub kinds: Vec<Option<ValueType>>,
    /// The rows.
    pub rows: Vec<Vec<Value>>,
}

/// A check that the waiting thread repeats while a statement runs: `true` ends the statement.
#[derive(Clone)]
pub struct Interrupt(Arc<dyn Fn() -> bool + Send + Sync>);

impl Interrupt {
    /// An interrupt that ends a statement once `when` returns `true`.
    pub fn new(when: impl Fn() -> bool + Send + Sync + 'static) -> Interrupt {
        Interrupt(Arc::new(when))
    }

    /// Whether to end the statement now.
    pub fn is_due(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupt")
    }
}

/// A run, as a query sees it.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// Its number.
    pub id: RunId,
    /// Its declaration; for a run that exists only through its fields, nothing but the name.
    pub decl: RunDecl,
    /// Whether `create_run` declared it.
    pub declared: bool,
    /// The user who declared it first; the owner, unless the store names another.
    pub first: Option<u32>,
}

/// A step of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepRow {
    /// The run.
    pub run: RunId,
    /// The number.
    pub step: i64,
    /// The time.
    pub time: Option<f64>,
}

/// A variable of a run.
#[derive(Debug, Clone)]
pub struct VariableRow {
    /// The run.
    pub run: RunId,
    /// The number of its name and version.
    pub id: VariableId,
    /// Its declaration, or the type and shape of its fields.
    pub decl: VariableDecl,
    /// Whether `create_variable` declared it.
    pub declared: bool,
}

/// A tag.
#[derive(Debug, Clone, PartialEq)]
pub struct TagRow {
    /// Its number.
    pub id: TagId,
    /// Its declaration.
    pub decl: TagDecl,
    /// The version that is shown.
    pub version: i64,
}

/// A sum of the rows of one (run, tag, step, variable).
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// The run.
    pub run: RunId,
    /// The tag.
    pub tag: TagId,
    /// The step, or [`NO_STEP`].
    pub step: i64,
    /// The variable, or [`NO_VARIABLE`].
    pub variable: VariableId,
    /// Rows.
    pub n: u64,
    /// Least and greatest number, if there are numbers.
    pub numbers: Option<(f64, f64)>,
    /// Bit k: there are boxes at level k of the curve.
    pub levels: u64,
    /// Greatest extent of a box, in any dimension.
    pub extent: i64,
}

/// A sum of the rows of one (tag, run).
#[derive(Debug, Clone, PartialEq)]
pub struct Span {
    /// The tag.
    pub tag: TagId,
    /// The run.
    pub run: RunId,
    /// Rows.
    pub n: u64,
    /// Least and greatest number, if there are numbers; after deletions the range may be wider than the rows.
    pub numbers: Option<(f64, f64)>,
    /// First and last step; [`NO_STEP`] counts as first.
    pub steps: (i64, i64),
}

/// A selection of runs.
#[derive(Debug, Clone, PartialEq)]
pub enum RunSelect {
    /// All, by number.
    All,
    /// Those with this name, in any project.
    Named(String),
    /// These.
    Ids(Vec<RunId>),
}

/// The data that a query reads, all from one state.
pub trait Tables {
    /// The elements of a run's meshes in ranges of coordinates, and the variables on each mesh.
    fn mesh_regions(
        &mut self,
        run: RunId,
        ranges: &[CoordinateRange],
    ) -> Result<Vec<(Vec<VariableName>, MeshRegion)>>;
    /// The elements of the grids of a run's variables in ranges of coordinates, for each requested variable.
    fn grid_regions(
        &mut self,
        run: RunId,
        variables: &[VariableRow],
        asked: &[bool],
        ranges: &[CoordinateRange],
    ) -> Result<Vec<Option<GridRegion>>>;
    /// Runs, by number.
    fn runs(&mut self, which: &RunSelect) -> Result<Vec<RunRow>>;
    /// Names and numbers of runs only: cheap even for many.
    fn run_names(&mut self, row: &mut dyn FnMut(RunId, &RunName) -> Result<Flow>) -> Result<()>;
    /// Steps of a run within a range, ascending.
    fn steps(&mut self, run: RunId, steps: RangeInclusive<i64>) -> Result<Vec<StepRow>>;
    /// Variables of a run, by name.
    fn variables(&mut self, run: RunId) -> Result<Vec<VariableRow>>;
    /// Every name and version of a variable in any run.
    fn variable_names(&mut self) -> Result<Vec<(VariableId, VariableName)>>;
    /// Steps at which a run holds fields of a variable, ascending.
    fn held(&mut self, run: RunId, variable: VariableId) -> Result<Vec<i64>>;
    /// Every tag.
    fn tags(&mut self) -> Result<Vec<TagRow>>;
    /// Sums per run of one tag, by run.
    fn spans(&mut self, tag: TagId, run: Option<RunId>) -> Result<Vec<Span>>;
    /// Sums of all tags of one run.
    fn spans_of_run(&mut self, run: RunId) -> Result<Vec<Span>>;
    /// Sums per series, by step and variable.
    fn series(&mut self, run: RunId, tag: TagId, steps: RangeInclusive<i64>) -> Result<Vec<Series>>;
    /// Rows of attr; returns how many were read.
    fn scan(&mut self, probes: &[Probe], row: &mut dyn FnMut(&AttrRow<'_>) -> Result<Flow>) -> Result<u64>;
    /// The source of a batch's rows: the id of its row 0, and the user who wrote them.
    fn source(&mut self, batch: i64) -> Result<(AttributeId, u32)>;
    /// The sources of several batches, ascending.
    fn sources(&mut self, batches: &[i64]) -> Result<Vec<(AttributeId, u32)>> {
        batches.iter().map(|batch| self.source(*batch)).collect()
    }
    /// Every log, by number, with its user and its process.
    fn writers(&mut self) -> Result<Vec<WriterRow>>;
    /// Batches of these logs, ascending: ranges of numbers, both ends included, ascending.
    fn batches_of(&mut self, logs: &[i64]) -> Result<Vec<(i64, i64)>>;
}
