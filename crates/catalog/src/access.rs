//! The calls of a catalog, whatever answers them: an engine of this process, or a store at the far end of a connection.
//!
//! | trait | calls |
//! |---|---|
//! | [`CatalogWriter`] | declarations, attributes, deletions |
//! | [`CatalogLookup`] | runs, variables, users and writers by their names |
//! | [`CatalogQueries`] | answers to queries |
//! | [`CatalogArrays`] | groups, imports, meshes and histories of distributed arrays |
//! | [`CatalogAdmin`] | the engine beneath |
//! | [`CatalogAccess`] | all of them |
//!
//! Invariant: no call has a body here, so that an implementation decides on each (F-1).
//!
//! ```
//! use fieldstone_catalog::access::CatalogAccess;
//! use fieldstone_catalog::query::Query;
//!
//! fn hits(catalog: &dyn CatalogAccess) -> fieldstone_core::Result<u64> {
//!     catalog.count(&Query::all())
//! }
//! # let _ = hits;
//! ```

use std::fmt::Debug;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::{Value, ValueType};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    ArrayGroup, AttributeBatch, AttributeId, HistoryDecl, ImportDecl, MeshDecl, Record, RunDecl, RunName,
    RunState, StepDecl, TagDecl, VariableDecl, VariableName,
};
use fieldstone_format::setting::Exist;
use fieldstone_journal::Session;

use crate::engine::{DeclarationRow, Interrupt, Selection, Writer};
use crate::query::{
    Aggregate, BoxInfo, By, Hit, HitTable, MissingName, PairTable, Query, RunInfo, StepInfo, TagInfo,
    VariableInfo,
};
use crate::reports::{CatalogCheck, RebuildReport};
use crate::write::deletion::{DeleteReport, Deletion};

/// All calls of a catalog. Whatever has them is one.
pub trait CatalogAccess:
    CatalogWriter + CatalogLookup + CatalogQueries + CatalogArrays + CatalogAdmin
{
}

impl<C: CatalogWriter + CatalogLookup + CatalogQueries + CatalogArrays + CatalogAdmin> CatalogAccess for C {}

impl dyn CatalogAccess + '_ {
    /// Rows of a read-only SQL statement over the documented views: names of columns, each once, then rows.
    pub fn sql(&self, statement: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
        let Selection { names, rows, .. } = self.sql_until(statement, None)?;
        Ok((names, rows))
    }
}

/// Hits one after another.
pub type Hits = Box<dyn Iterator<Item = Result<Hit>> + Send>;

/// Declarations, attributes and deletions, checked before they are taken.
///
/// All of it is visible to this process at once and to everybody at the flush; within a transaction at its commit.
pub trait CatalogWriter: Send + Sync + Debug {
    /// Declares a run, which is the caller's from then on. Denied where its fields are another's; Conflict where the run is there, unless `exist_ok`: then it must not contradict.
    fn create_run(&self, run: RunDecl, exist_ok: bool, session: &Session) -> Result<()>;

    /// Says where data of runs that are outside of the store lie from now on. Denied where one run is another's.
    fn move_outside(&self, moved: Vec<(RunName, Value)>, session: &Session) -> Result<()>;

    /// Says how a declared run goes: what was said last counts. Denied where it is another's.
    fn set_state(&self, run: &RunName, state: RunState, session: &Session) -> Result<()>;

    /// Declares variables of a run; Denied where it is another's. Declared again with other content: Conflict.
    fn create_variables(&self, run: &RunName, variables: Vec<VariableDecl>, session: &Session) -> Result<()>;

    /// Declares variables from what their fields' files say: each under its version, or the next one that is free
    /// where that is declared otherwise. Denied where the run is another's.
    fn create_versions(&self, run: &RunName, variables: Vec<VariableDecl>, session: &Session) -> Result<()>;

    /// Declares steps of a run; Denied where it is another's. Declared again with another time: Conflict.
    fn create_steps(&self, run: &RunName, steps: Vec<StepDecl>, session: &Session) -> Result<()>;

    /// Declares tags; gives them as they are shown: one of another type or unit under a number that is
    /// taken gets its own.
    fn create_tags(&self, tags: Vec<TagDecl>, session: &Session) -> Result<Vec<TagInfo>>;

    /// The tag under a name that takes values of this kind; made where there is none of the name. `kind`
    /// is what the values are as they were given; int goes into float where it is exact, and a number that no number of
    /// the name takes gets a version of its own. Conflict where the name is declared in several units: then the one counts
    /// that this handle declared, or the one without a unit. Tags of the session's transaction count, too.
    fn tag_for(
        &self,
        name: &str,
        version: Option<i64>,
        kind: ValueType,
        session: &Session,
    ) -> Result<TagDecl>;

    /// The tag of a name and a unit that takes values of this kind; made where there is none, beside those of the name that
    /// have another unit.
    fn tag_in_unit(
        &self,
        name: &str,
        version: Option<i64>,
        kind: ValueType,
        unit: &str,
        session: &Session,
    ) -> Result<TagDecl>;

    /// Takes attributes, under the caller's name; run and variables must be there, boxes inside of the
    /// variable's shape. They replace what this user said at the same place before. Denied where the run is
    /// another's who lets nobody else annotate it.
    fn annotate(&self, batch: AttributeBatch, session: &Session) -> Result<()>;

    /// Takes attributes of several tags, as [`annotate`](Self::annotate) takes those of each.
    fn annotate_all(&self, batches: Vec<AttributeBatch>, session: &Session) -> Result<()>;

    /// Takes attributes that another store has, under the caller's name, also on a variable that nothing names here. Of
    /// rows at one place all hold where their records are of one call and one commit. Conflict where a box does not fit
    /// what is declared here.
    fn carry(&self, batch: AttributeBatch, session: &Session) -> Result<()>;

    /// Removes attributes of a run by their ids, each with the user who wrote it; what was written meanwhile stays.
    fn remove_attributes(
        &self,
        run: &RunName,
        attributes: &[(AttributeId, u32)],
        session: &Session,
    ) -> Result<()>;

    /// Removes these declarations of a run; what was declared meanwhile, and all that stands below, stays. Denied where
    /// the run is another's.
    fn remove_declarations(&self, run: &RunName, rows: &[DeclarationRow], session: &Session) -> Result<()>;

    /// Declares again what is declared alike, so that it stays when the older declarations are removed. Denied where the
    /// run is another's.
    fn declare_again(&self, run: &RunName, records: Vec<Record>, session: &Session) -> Result<()>;

    /// Deletes what a query finds, with all that stands below; with `fields` also the fields there.
    /// Without `doit` only the report.
    ///
    /// Names of the query are taken as they stand, with `*`, `?` and `[`: a pattern goes by
    /// [`NameTest::Glob`](crate::query::NameTest::Glob), `like` in text. Invalid where a run is named that several
    /// projects have, and no project beside it.
    ///
    /// Runs, steps and variables of others are Denied, and so is a tag that others declared or that has
    /// attributes of others in runs of others. Of attributes, those that the caller wrote go, and all in his
    /// own runs; the report counts the others that the query finds, and where it finds nothing else it is
    /// Denied.
    fn delete(&self, what: &Deletion, fields: bool, doit: bool, session: &Session) -> Result<DeleteReport>;

    /// Makes what a transaction holds of some kinds visible to all: `run`, `step`, `variable`, `tag`,
    /// `run_attribute`, `step_attribute`, `variable_attribute`, `fields`, `relation`.
    fn activate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()>;

    /// Hides what a transaction holds of some kinds again.
    fn deactivate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()>;
}

/// Runs, variables, users and writers by their names.
pub trait CatalogLookup {
    /// The run of this name; NotFound, or Invalid where several projects have one and none is given.
    fn run(&self, project: Option<&str>, name: &str, session: &Session) -> Result<RunInfo>;

    /// The rule for a write to a run whose field is there; `None` where the run does not say.
    fn exist_of(&self, run: &RunName, session: &Session) -> Result<Option<Exist>>;

    /// A variable of a run; its newest version where none is given.
    fn variable(
        &self,
        run: &RunName,
        name: &str,
        version: Option<i64>,
        session: &Session,
    ) -> Result<VariableInfo>;

    /// A variable that was declared, as this handle knows it: what it declared itself at once, what the engine said for a
    /// while (Q-15).
    fn declared_variable(
        &self,
        run: &RunName,
        variable: &VariableName,
        session: &Session,
    ) -> Result<VariableInfo>;

    /// The newest version of a variable, for who writes to it; `None` where there is none. It may be ten seconds old (Q-15).
    fn variable_to_write(
        &self,
        run: &RunName,
        name: &str,
        session: &Session,
    ) -> Result<Option<Arc<VariableInfo>>>;

    /// Where the declarations of a run, its steps and its variables were written.
    fn declarations(&self, run: &RunName, session: &Session) -> Result<Vec<DeclarationRow>>;

    /// The user who calls, as a hit has its number.
    fn user(&self, session: &Session) -> u32;

    /// The name of a user, as a hit has its number.
    fn user_name(&self, user: u32) -> String;

    /// The process that wrote a hit, by the writer that its id names; `None` where the header of that log is damaged.
    fn writer(&self, log: Option<Id>) -> Result<Option<Writer>>;

    /// Key of the field that an attribute of a run, variable and step stands on, as keyword and value.
    fn key_of(
        &self,
        run: &RunName,
        variable: Option<&str>,
        step: Option<i64>,
    ) -> Result<Vec<(String, String)>>;

    /// Whether the store's logs declare runs, steps, variables or groups of arrays. The engine is not asked, and not made.
    fn has_declarations(&self) -> Result<bool>;

    /// Whether the logs, or this handle, hold anything for the catalog. The engine is not asked, and not made.
    fn has_records(&self) -> Result<bool>;
}

/// Answers to queries.
pub trait CatalogQueries {
    /// All hits, in columns. Conflict where they are ordered by values of one tag in several units.
    fn attributes(&self, query: &Query) -> Result<HitTable>;

    /// All hits beside what `with …` of the query found related to them.
    fn pairs(&self, query: &Query) -> Result<PairTable>;

    /// Hits one after another, in bounded memory. Hits that are not visible to everybody, and those of an
    /// engine in memory, is collected first.
    fn stream(&self, query: &Query) -> Result<Hits>;

    /// The type of the values that a query asks for, where all tags that it names have one; `None` else.
    fn value_kind(&self, query: &Query) -> Result<Option<ValueType>>;

    /// How many hits there are.
    fn count(&self, query: &Query) -> Result<u64>;

    /// Count, least, greatest and mean number of groups of hits. Conflict for values of one tag in several units.
    fn aggregate(&self, query: &Query, by: &[By]) -> Result<Vec<Aggregate>>;

    /// Boxes of hits, each once.
    fn boxes(&self, query: &Query) -> Result<Vec<BoxInfo>>;

    /// Runs: those that exist, or those that matching attributes touch.
    fn runs(&self, query: &Query) -> Result<Vec<RunInfo>>;

    /// Runs that are to be changed. Names of the query are taken as they stand, as [`delete`](CatalogWriter::delete) takes them.
    fn runs_to_change(&self, query: &Query) -> Result<Vec<RunInfo>>;

    /// Steps: those that exist, or those that matching attributes touch.
    fn steps(&self, query: &Query) -> Result<Vec<StepInfo>>;

    /// Variables: those that exist, or those that matching attributes touch.
    fn variables(&self, query: &Query) -> Result<Vec<VariableInfo>>;

    /// Tags: those that exist, or those that matching attributes have.
    fn tags(&self, query: &Query) -> Result<Vec<TagInfo>>;

    /// Why a query finds nothing: a name in it that nothing has.
    fn missing_name(&self, query: &Query) -> Result<Option<MissingName>>;

    /// How a query is answered: probes, plans of the SQL used, rows visited and returned.
    fn explain(&self, query: &Query) -> Result<String>;

    /// Rows of a read-only SQL statement over the documented views: names of columns, each once, their types, then rows.
    /// In every ORDER BY NULL is last unless the statement says otherwise, and NaN is NULL: on both engines. It ends with
    /// Invalid once `stop` says so.
    fn sql_until(&self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection>;
}

/// The engine beneath, for the store's owner and for tests.
pub trait CatalogAdmin {
    /// Builds the engine's tables again from the logs. Unavailable where another process has the engine and
    /// does not get on; the message names it, where the system says.
    fn rebuild(&self) -> Result<RebuildReport>;

    /// Compares the engine with a replay of the logs in memory, line by line: it takes memory of about ten
    /// times the bytes of the engine. Errors that were written, which its pages' checksums do not show, are
    /// found here, and mended by [`rebuild`](Self::rebuild).
    fn verify(&self) -> Result<CatalogCheck>;

    /// Contradicting definitions that were found, in words.
    fn conflicts(&self) -> Result<Vec<String>>;

    /// Applies what the logs hold and the engine does not, if no other process does so at this moment.
    fn catch_up(&self) -> Result<bool>;

    /// How many records that were not flushed this process has overlaid on the engine so far: what reading them
    /// has cost.
    fn overlaid(&self) -> u64;

    /// For tests: waits until nothing is applied beside the caller.
    #[doc(hidden)]
    fn join_applying(&self);

    /// For tests: a session's overlay gets a copy of the engine once `rows` rows of it were overlaid on the shared
    /// one, whether that pays or not.
    #[doc(hidden)]
    fn copy_overlays_at(&self, rows: u64);
}

/// Distributed arrays: groups of sets and imports of runs, meshes and histories of the store.
///
/// To declare again what is there writes nothing; to declare it otherwise is Conflict.
pub trait CatalogArrays {
    /// Declares groups of a run; Denied where it is another's. A group that is there takes the sets that it has not;
    /// its properties and the sets that it has must be equal.
    fn create_groups(&self, run: &RunName, groups: Vec<ArrayGroup>, session: &Session) -> Result<()>;

    /// Declares files that a run imports; Denied where it is another's.
    fn create_imports(&self, run: &RunName, imports: Vec<ImportDecl>, session: &Session) -> Result<()>;

    /// Declares meshes of the store.
    fn create_meshes(&self, meshes: Vec<MeshDecl>, session: &Session) -> Result<()>;

    /// Declares histories of partitions, each by its file.
    fn create_histories(&self, histories: Vec<HistoryDecl>, session: &Session) -> Result<()>;

    /// Groups of a run, by name, each with all its sets; NotFound where there is no such run.
    fn array_groups(&self, run: &RunName, session: &Session) -> Result<Vec<ArrayGroup>>;

    /// A group of a run; NotFound where there is none of the name.
    fn array_group(&self, run: &RunName, name: &str, session: &Session) -> Result<ArrayGroup>;

    /// Files that a run imports, by name; NotFound where there is no such run.
    fn imports(&self, run: &RunName, session: &Session) -> Result<Vec<ImportDecl>>;

    /// Meshes of the store, by name.
    fn meshes(&self, session: &Session) -> Result<Vec<MeshDecl>>;

    /// A mesh of the store; NotFound where there is none of the name.
    fn mesh(&self, name: &str, session: &Session) -> Result<MeshDecl>;

    /// Histories of partitions, by path.
    fn histories(&self, session: &Session) -> Result<Vec<HistoryDecl>>;

    /// One of the six tables of SDM's database ([`ARRAY_TABLES`]): names of columns, then rows.
    fn array_table(&self, name: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)>;
}
