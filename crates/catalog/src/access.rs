//! The calls of a catalog as traits. An engine of this process implements them, or a store at the far end of
//! a connection.
//!
//! | trait | calls |
//! |---|---|
//! | [`CatalogWriter`] | declarations, attributes, deletions |
//! | [`CatalogLookup`] | runs, variables, users and writers by their names |
//! | [`CatalogQueries`] | answers to queries |
//! | [`CatalogArrays`] | groups, imports, meshes and histories of distributed arrays |
//! | [`CatalogAdmin`] | calls about the engine itself |
//! | [`CatalogAccess`] | all of them |
//!
//! Invariant: no call has a default body, so that each implementation decides on every call (F-1).
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
use fieldstone_format::setting::IfExists;
use fieldstone_journal::Session;

use crate::engine::{DeclarationRow, Interrupt, Selection, Writer};
use crate::query::{
    Aggregate, BoxInfo, By, Hit, HitTable, MissingName, PairTable, Query, RunInfo, StepInfo, TagInfo,
    VariableInfo,
};
use crate::reports::{CatalogCheck, RebuildReport};
use crate::write::deletion::{DeleteReport, Deletion};

/// All calls of a catalog. Every type that has the five traits has this one.
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

/// Hits, one at a time.
pub type Hits = Box<dyn Iterator<Item = Result<Hit>> + Send>;

/// Declarations, attributes and deletions. Each call checks its arguments before it accepts them.
///
/// This process sees the result at once. Everybody sees it after the flush or, in a transaction, after the
/// commit.
pub trait CatalogWriter: Send + Sync + Debug {
    /// Declares a run; the caller owns it from then on. Denied if another user owns its fields. Conflict if
    /// the run exists, unless `exist_ok` is set and the declarations agree.
    fn create_run(&self, run: RunDecl, exist_ok: bool, session: &Session) -> Result<()>;

    /// Records new places for the data of runs that keep them outside the store. Denied if another user owns
    /// one of the runs.
    fn move_outside(&self, moved: Vec<(RunName, Value)>, session: &Session) -> Result<()>;

    /// Sets the state of a declared run; the newest state counts. Denied if another user owns the run.
    fn set_state(&self, run: &RunName, state: RunState, session: &Session) -> Result<()>;

    /// Declares variables of a run. Denied if another user owns the run; Conflict if a variable is declared
    /// with other content.
    fn create_variables(&self, run: &RunName, variables: Vec<VariableDecl>, session: &Session) -> Result<()>;

    /// Declares variables from the files of their fields. Each gets the version that it names, or the next
    /// free one if that version has another declaration. Denied if another user owns the run.
    fn create_versions(&self, run: &RunName, variables: Vec<VariableDecl>, session: &Session) -> Result<()>;

    /// Declares steps of a run. Denied if another user owns the run; Conflict if a step is declared with
    /// another time.
    fn create_steps(&self, run: &RunName, steps: Vec<StepDecl>, session: &Session) -> Result<()>;

    /// Declares tags and returns them as they are shown: if another tag of the name has taken the version
    /// with another type or unit, the new tag gets a version of its own.
    fn create_tags(&self, tags: Vec<TagDecl>, session: &Session) -> Result<Vec<TagInfo>>;

    /// The tag of a name that takes values of this kind; declares one if the name has none. `kind` is the
    /// type of the values as given: integers go into a float tag if they are exact there, and a number that
    /// fits no tag of the name gets a version of its own. If the name has several units, the one that this
    /// handle declared counts, else the one without a unit, else the call is a Conflict. Tags of the
    /// session's transaction count, too.
    fn tag_for(
        &self,
        name: &str,
        version: Option<i64>,
        kind: ValueType,
        session: &Session,
    ) -> Result<TagDecl>;

    /// The tag of a name and a unit that takes values of this kind; declares one if there is none, next to
    /// the tags of the name that have other units.
    fn tag_in_unit(
        &self,
        name: &str,
        version: Option<i64>,
        kind: ValueType,
        unit: &str,
        session: &Session,
    ) -> Result<TagDecl>;

    /// Adds attributes under the caller's name. The run and the variables must exist, and boxes must lie
    /// inside the shapes of the variables. The attributes replace those that this user wrote at the same
    /// places before. Denied if another user owns the run and lets only its owner annotate it.
    fn annotate(&self, batch: AttributeBatch, session: &Session) -> Result<()>;

    /// Adds attributes of several tags, as [`annotate`](Self::annotate) does for one.
    fn annotate_all(&self, batches: Vec<AttributeBatch>, session: &Session) -> Result<()>;

    /// Adds attributes of another store under the caller's name, also on variables that do not exist here.
    /// Several rows at one place all count if their records belong to one call and one commit. Conflict if a
    /// box does not fit the declarations of this store.
    fn carry(&self, batch: AttributeBatch, session: &Session) -> Result<()>;

    /// Removes attributes of a run by their ids, each given with the user who wrote it; attributes that were
    /// written since stay.
    fn remove_attributes(
        &self,
        run: &RunName,
        attributes: &[(AttributeId, u32)],
        session: &Session,
    ) -> Result<()>;

    /// Removes these declarations of a run. Newer declarations, and everything below the removed ones, stay.
    /// Denied if another user owns the run.
    fn remove_declarations(&self, run: &RunName, rows: &[DeclarationRow], session: &Session) -> Result<()>;

    /// Repeats declarations, so that they survive the removal of the older ones. Denied if another user owns
    /// the run.
    fn declare_again(&self, run: &RunName, records: Vec<Record>, session: &Session) -> Result<()>;

    /// Deletes what a query finds, with everything below it; with `fields`, the fields there too. Without
    /// `doit` the call only reports.
    ///
    /// Names in the query are exact, also with `*`, `?` and `[`. Patterns need
    /// [`NameTest::Glob`](crate::query::NameTest::Glob), in text `like`. Invalid if several projects have a
    /// run of the name and the query does not give the project.
    ///
    /// Denied for runs, steps and variables of others, and for a tag that others declared or that others used
    /// in runs of others. Attributes are deleted if the caller wrote them or owns their run. The report
    /// counts the other attributes that the query finds; if it finds only such attributes, the call is
    /// Denied.
    fn delete(&self, what: &Deletion, fields: bool, doit: bool, session: &Session) -> Result<DeleteReport>;

    /// Makes the content of a transaction visible to all, by kinds: `run`, `step`, `variable`, `tag`,
    /// `run_attribute`, `step_attribute`, `variable_attribute`, `fields`, `relation`.
    fn activate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()>;

    /// Hides content of a transaction again, by kinds.
    fn deactivate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()>;
}

/// Runs, variables, users and writers by their names.
pub trait CatalogLookup {
    /// The run of this name. NotFound if there is none; Invalid if several projects have one and `project` is
    /// absent.
    fn run(&self, project: Option<&str>, name: &str, session: &Session) -> Result<RunInfo>;

    /// The rule for a write to an existing field of a run; `None` if the run does not set one.
    fn if_exists_of(&self, run: &RunName, session: &Session) -> Result<Option<IfExists>>;

    /// A variable of a run; its newest version if `version` is absent.
    fn variable(
        &self,
        run: &RunName,
        name: &str,
        version: Option<i64>,
        session: &Session,
    ) -> Result<VariableInfo>;

    /// A declared variable as this handle knows it: its own declarations at once, those of the engine from a
    /// cache that may be some seconds old (Q-15).
    fn declared_variable(
        &self,
        run: &RunName,
        variable: &VariableName,
        session: &Session,
    ) -> Result<VariableInfo>;

    /// The newest version of a variable, for a writer; `None` if there is none. It may be ten seconds old
    /// (Q-15).
    fn variable_to_write(
        &self,
        run: &RunName,
        name: &str,
        session: &Session,
    ) -> Result<Option<Arc<VariableInfo>>>;

    /// The places in the logs that hold the declarations of a run, its steps and its variables.
    fn declarations(&self, run: &RunName, session: &Session) -> Result<Vec<DeclarationRow>>;

    /// The number of the calling user, as hits carry it.
    fn user(&self, session: &Session) -> u32;

    /// The name of a user, from the number in a hit.
    fn user_name(&self, user: u32) -> String;

    /// The process that wrote a hit, by the writer in its id; `None` if the header of that log is damaged.
    fn writer(&self, log: Option<Id>) -> Result<Option<Writer>>;

    /// The key of the field to which an attribute of a run, variable and step belongs, as keywords and
    /// values.
    fn key_of(
        &self,
        run: &RunName,
        variable: Option<&str>,
        step: Option<i64>,
    ) -> Result<Vec<(String, String)>>;

    /// Whether the store's logs declare runs, steps, variables or groups of arrays. Does not use or create
    /// the engine.
    fn has_declarations(&self) -> Result<bool>;

    /// Whether the logs, or this handle, hold anything for the catalog. Does not use or create the engine.
    fn has_records(&self) -> Result<bool>;
}

/// Answers to queries.
pub trait CatalogQueries {
    /// All hits, in columns. Conflict if the query orders them by values of one tag in several units.
    fn attributes(&self, query: &Query) -> Result<HitTable>;

    /// All hits, each with the related attributes that `with …` of the query found.
    fn pairs(&self, query: &Query) -> Result<PairTable>;

    /// Hits one at a time, in bounded memory. Hits that are not visible to everybody, and hits of an engine
    /// in memory, are collected first.
    fn stream(&self, query: &Query) -> Result<Hits>;

    /// The type of the values that a query asks for, if all tags that it names have the same type; else
    /// `None`.
    fn value_kind(&self, query: &Query) -> Result<Option<ValueType>>;

    /// The number of hits.
    fn count(&self, query: &Query) -> Result<u64>;

    /// Count, least, greatest and mean value of groups of hits. Conflict for values of one tag in several
    /// units.
    fn aggregate(&self, query: &Query, by: &[By]) -> Result<Vec<Aggregate>>;

    /// The distinct boxes of hits.
    fn boxes(&self, query: &Query) -> Result<Vec<BoxInfo>>;

    /// Runs: all that exist, or those that matching attributes touch.
    fn runs(&self, query: &Query) -> Result<Vec<RunInfo>>;

    /// Runs to change. Names in the query are exact, as in [`delete`](CatalogWriter::delete).
    fn runs_to_change(&self, query: &Query) -> Result<Vec<RunInfo>>;

    /// Steps: all that exist, or those that matching attributes touch.
    fn steps(&self, query: &Query) -> Result<Vec<StepInfo>>;

    /// Variables: all that exist, or those that matching attributes touch.
    fn variables(&self, query: &Query) -> Result<Vec<VariableInfo>>;

    /// Tags: all that exist, or those that matching attributes have.
    fn tags(&self, query: &Query) -> Result<Vec<TagInfo>>;

    /// The reason why a query finds nothing: a name in it that nothing has.
    fn missing_name(&self, query: &Query) -> Result<Option<MissingName>>;

    /// The plan of a query: probes, plans of the SQL used, rows visited and returned.
    fn explain(&self, query: &Query) -> Result<String>;

    /// Rows of a read-only SQL statement over the documented views: distinct column names, their types, then
    /// rows. On both engines, every ORDER BY puts NULL last unless the statement says otherwise, and NaN is
    /// NULL. The statement ends with Invalid once `stop` asks for it.
    fn sql_until(&self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection>;
}

/// Calls about the engine itself, for the store's owner and for tests.
pub trait CatalogAdmin {
    /// Builds the engine's tables again from the logs. Unavailable if another process holds the engine and
    /// makes no progress; the message names that process if the system reveals it.
    fn rebuild(&self) -> Result<RebuildReport>;

    /// Compares the engine with a replay of the logs in memory, line by line. The replay takes about ten
    /// times the bytes of the engine. This finds wrong content whose page checksums are right;
    /// [`rebuild`](Self::rebuild) repairs it.
    fn verify(&self) -> Result<CatalogCheck>;

    /// Contradicting definitions, as text.
    fn conflicts(&self) -> Result<Vec<String>>;

    /// Applies commits that the engine lacks, unless another process is doing so at this moment. Returns
    /// whether the engine is up to date.
    fn catch_up(&self) -> Result<bool>;

    /// The number of unflushed records that this process has overlaid on the engine so far: the cost of
    /// reading them.
    fn overlaid(&self) -> u64;

    /// For tests: waits until no thread applies commits in the background.
    #[doc(hidden)]
    fn join_applying(&self);

    /// For tests: gives a session's overlay its own copy of the engine once `rows` rows were overlaid on the
    /// shared one, whether that pays or not.
    #[doc(hidden)]
    fn copy_overlays_at(&self, rows: u64);
}

/// Distributed arrays: groups of sets and imports of runs, meshes and histories of the store.
///
/// Repeating a declaration writes nothing; a different declaration of the same name is a Conflict.
pub trait CatalogArrays {
    /// Declares groups of a run; Denied if another user owns it. An existing group gets the sets that it
    /// lacks; its properties and its other sets must be equal.
    fn create_groups(&self, run: &RunName, groups: Vec<ArrayGroup>, session: &Session) -> Result<()>;

    /// Declares files that a run imports; Denied if another user owns the run.
    fn create_imports(&self, run: &RunName, imports: Vec<ImportDecl>, session: &Session) -> Result<()>;

    /// Declares meshes of the store.
    fn create_meshes(&self, meshes: Vec<MeshDecl>, session: &Session) -> Result<()>;

    /// Declares histories of partitions, each named by its file.
    fn create_histories(&self, histories: Vec<HistoryDecl>, session: &Session) -> Result<()>;

    /// Groups of a run, by name, each with all its sets; NotFound if the run does not exist.
    fn array_groups(&self, run: &RunName, session: &Session) -> Result<Vec<ArrayGroup>>;

    /// A group of a run; NotFound if there is none of this name.
    fn array_group(&self, run: &RunName, name: &str, session: &Session) -> Result<ArrayGroup>;

    /// Files that a run imports, by name; NotFound if the run does not exist.
    fn imports(&self, run: &RunName, session: &Session) -> Result<Vec<ImportDecl>>;

    /// Meshes of the store, by name.
    fn meshes(&self, session: &Session) -> Result<Vec<MeshDecl>>;

    /// A mesh of the store; NotFound if there is none of this name.
    fn mesh(&self, name: &str, session: &Session) -> Result<MeshDecl>;

    /// Histories of partitions, by path.
    fn histories(&self, session: &Session) -> Result<Vec<HistoryDecl>>;

    /// One of the six tables of SDM's database ([`ARRAY_TABLES`]): column names, then rows.
    fn array_table(&self, name: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)>;
}
