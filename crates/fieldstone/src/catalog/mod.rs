//! The catalog of a store: joins its side records, its fields and an engine.
//!
//! What is written goes into the store's next commit as side records; what is read comes from an engine
//! that has followed the store's logs as far as this handle sees them.

mod gather;
mod place;

use std::sync::Arc;

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{AttributeBatch, RunDecl, RunName, StepDecl, TagDecl, VariableDecl};
use fieldstone_store::api::FieldStore;

pub use fieldstone_catalog::query::{self, Aggregate, BoxInfo, By, Hit, HitTable, Query};
pub use fieldstone_catalog::query::{RunInfo, StepInfo, TagInfo, VariableInfo};
pub use fieldstone_core::value;
pub use fieldstone_format::catalog as records;

/// Where the engine is.
#[derive(Debug, Clone, Default)]
pub struct CatalogSettings {
    /// `postgresql://…`; the embedded engine where absent.
    pub engine: Option<String>,
}

/// What is to be deleted.
#[derive(Debug, Clone)]
pub enum Deletion {
    /// Runs with all that stands below; their fields too, if asked for.
    Runs(Query),
    /// Steps.
    Steps(Query),
    /// Variables.
    Variables(Query),
    /// Tags.
    Tags(Query),
    /// Attributes.
    Attributes(Query),
}

/// What a deletion took away, or would.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteReport {
    /// Runs.
    pub runs: u64,
    /// Steps.
    pub steps: u64,
    /// Variables.
    pub variables: u64,
    /// Tags.
    pub tags: u64,
    /// Attributes.
    pub attributes: u64,
    /// Fields.
    pub fields: u64,
    /// Whether it was done.
    pub done: bool,
}

/// What a rebuild did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RebuildReport {
    /// Logs read.
    pub logs: u64,
    /// Commits with side records.
    pub commits: u64,
    /// Attributes applied.
    pub attributes: u64,
    /// Fields seen.
    pub fields: u64,
    /// Where the engine is.
    pub engine: String,
}

/// The catalog of an open store.
#[derive(Debug)]
pub struct Catalog {
    store: Arc<dyn FieldStore>,
    settings: CatalogSettings,
}

fn absent<T>() -> Result<T> {
    Err(Error::internal("not built"))
}

#[allow(missing_docs, unused_variables, clippy::missing_errors_doc)]
impl Catalog {
    pub fn of(store: Arc<dyn FieldStore>, settings: CatalogSettings) -> Result<Catalog> {
        Ok(Catalog { store, settings })
    }
    // ---- writing: visible to this process at once, to all at flush; with a transaction, at its commit
    /// Conflict where the run is there, unless `exist_ok`: then it must not contradict.
    pub fn create_run(&self, run: RunDecl, exist_ok: bool, transaction: Option<Id>) -> Result<()> {
        absent()
    }
    /// Declared again with other content: Conflict.
    pub fn create_variables(
        &self,
        run: &RunName,
        variables: Vec<VariableDecl>,
        transaction: Option<Id>,
    ) -> Result<()> {
        absent()
    }
    pub fn create_steps(&self, run: &RunName, steps: Vec<StepDecl>, transaction: Option<Id>) -> Result<()> {
        absent()
    }
    /// The tags as they are shown: one of another type or unit under a number that is taken gets its own.
    pub fn create_tags(&self, tags: Vec<TagDecl>, transaction: Option<Id>) -> Result<Vec<TagInfo>> {
        absent()
    }
    /// The tag under a name that takes values of this kind; made where there is none of the name. `kind`
    /// is what the values are as they were given; int goes into float where it is exact.
    pub fn tag_for(
        &self,
        name: &str,
        version: Option<i64>,
        kind: fieldstone_core::value::ValueType,
    ) -> Result<TagDecl> {
        absent()
    }
    /// Takes attributes; run and variables must be there, boxes inside of the variable's shape.
    pub fn annotate(&self, batch: AttributeBatch, transaction: Option<Id>) -> Result<()> {
        absent()
    }
    pub fn delete(
        &self,
        what: &Deletion,
        fields: bool,
        doit: bool,
        transaction: Option<Id>,
    ) -> Result<DeleteReport> {
        absent()
    }
    // ---- reading
    /// The run of this name; NotFound, or Invalid where several projects have one and none is given.
    pub fn run(&self, project: Option<&str>, name: &str, transaction: Option<Id>) -> Result<RunInfo> {
        absent()
    }
    pub fn variable(
        &self,
        run: &RunName,
        name: &str,
        version: Option<i64>,
        transaction: Option<Id>,
    ) -> Result<VariableInfo> {
        absent()
    }
    /// All hits, in columns.
    pub fn attributes(&self, query: &Query) -> Result<HitTable> {
        absent()
    }
    /// Hits one after another, in bounded memory.
    pub fn stream(&self, query: &Query) -> Result<Box<dyn Iterator<Item = Result<Hit>> + Send>> {
        absent()
    }
    pub fn count(&self, query: &Query) -> Result<u64> {
        absent()
    }
    pub fn aggregate(&self, query: &Query, by: &[By]) -> Result<Vec<Aggregate>> {
        absent()
    }
    pub fn boxes(&self, query: &Query) -> Result<Vec<BoxInfo>> {
        absent()
    }
    pub fn runs(&self, query: &Query) -> Result<Vec<RunInfo>> {
        absent()
    }
    pub fn steps(&self, query: &Query) -> Result<Vec<StepInfo>> {
        absent()
    }
    pub fn variables(&self, query: &Query) -> Result<Vec<VariableInfo>> {
        absent()
    }
    pub fn tags(&self, query: &Query) -> Result<Vec<TagInfo>> {
        absent()
    }
    /// Key of the field that an attribute of a run, variable and step stands on, as keyword and value.
    pub fn key_of(
        &self,
        run: &RunName,
        variable: Option<&str>,
        step: Option<i64>,
    ) -> Result<Vec<(String, String)>> {
        absent()
    }
    // ---- the engine
    pub fn rebuild(&self) -> Result<RebuildReport> {
        absent()
    }
    /// Rows of a read-only SQL statement over the documented views: names of columns, then rows.
    pub fn sql(&self, statement: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
        absent()
    }
    /// How a query is answered: probes, plans of the SQL used, rows visited and returned.
    pub fn explain(&self, query: &Query) -> Result<String> {
        absent()
    }
    /// Contradicting definitions that were found, in words.
    pub fn conflicts(&self) -> Result<Vec<String>> {
        absent()
    }
}
