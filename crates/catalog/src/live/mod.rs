//! The catalog of an open store: what is written goes into the next commit of its journal as side records; what
//! is read comes from an engine that has followed the logs as far as this handle sees them. An engine may be
//! deleted at any time: it is built again by replay, and no answer changes.
//!
//! | module | holds |
//! |---|---|
//! | `inner` | what all calls share, and what each process has of it |
//! | `arrays` | declarations of distributed arrays |
//! | `stream` | hits one after another |
//! | `whole` | the engine and the logs, looked at as a whole |
//!
//! The engine is read by `reader`, what is declared is known to `registry`, and what writing checks is in `write`. The
//! facade makes a [`Catalog`] of an open store, with an example of it.

mod arrays;
mod inner;
mod stream;
#[cfg(test)]
mod tests;
mod whole;

use std::sync::Arc;

use fieldstone_core::value::{Value, ValueType};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    AttributeBatch, AttributeId, Record, RunDecl, RunName, RunState, StepDecl, TagDecl, VariableDecl,
    VariableName,
};
use fieldstone_format::log::kinds;
use fieldstone_format::setting::Exist;
use fieldstone_journal::Journal;
use fieldstone_journal::Session;

pub use crate::reader::FieldPort;
pub use crate::write::deletion::{DeleteReport, Deletion};

use crate::engine::{self, Interrupt, Selection, Writer};
pub use crate::engine::{DeclarationRow, Declared};
use crate::query::{
    self as queries, Aggregate, BoxInfo, By, Expr, Hit, HitTable, MissingName, NameTest, PairTable, Query,
    RunInfo, StepInfo, TagInfo, Term, VariableInfo,
};
use crate::reader::Visibility;
use crate::view::roles;
use crate::write::{annotate, carry, declare, delete, state, tags, versions};
use inner::Inner;

/// Where the engine is.
#[derive(Debug, Clone, Default)]
pub struct CatalogSettings {
    /// `postgresql://…`; the embedded engine where absent.
    pub engine: Option<String>,
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

/// What [`Catalog::verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CatalogCheck {
    /// Lines of the tables that were compared.
    pub lines: u64,
    /// Where the engine says otherwise than the logs: its line, or the one it lacks. At most 100.
    pub different: Vec<String>,
    /// Side records that cannot be read, each with its log; the rest is readable.
    pub damaged: Vec<String>,
}

impl CatalogCheck {
    /// Whether the engine says what the logs say, and all of it could be read.
    pub fn ok(&self) -> bool {
        self.different.is_empty() && self.damaged.is_empty()
    }
}

/// The catalog of an open store. Clones share what they have.
#[derive(Debug, Clone)]
pub struct Catalog {
    inner: Arc<Inner>,
}

impl Catalog {
    /// The catalog over a journal and the fields that it holds. Nothing is opened before it is needed.
    pub fn new(fields: Arc<dyn FieldPort>, journal: Arc<Journal>, settings: CatalogSettings) -> Catalog {
        Catalog { inner: Inner::new(fields, journal, settings) }
    }

    // ---- writing: visible to this process at once, to all at flush; with a transaction, at its commit

    /// Declares a run, which is the caller's from then on. Denied where its fields are another's; Conflict where the run is there, unless `exist_ok`: then it must not contradict.
    pub fn create_run(&self, run: RunDecl, exist_ok: bool, session: &Session) -> Result<()> {
        declare::create_run(self.inner.registry(), run, exist_ok, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Says where data of runs that are outside of the store lie from now on. Denied where one run is another's.
    pub fn move_outside(&self, moved: Vec<(RunName, Value)>, session: &Session) -> Result<()> {
        state::move_outside(self.inner.registry(), moved, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Says how a declared run goes: what was said last counts. Denied where it is another's.
    pub fn set_state(&self, run: &RunName, state: RunState, session: &Session) -> Result<()> {
        state::set_state(self.inner.registry(), run, state, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Declares variables of a run; Denied where it is another's. Declared again with other content: Conflict.
    pub fn create_variables(
        &self,
        run: &RunName,
        variables: Vec<VariableDecl>,
        session: &Session,
    ) -> Result<()> {
        declare::create_variables(self.inner.registry(), run, variables, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Declares variables from what their fields' files say: each under its version, or the next one that is free
    /// where that is declared otherwise. Denied where the run is another's.
    pub fn create_versions(
        &self,
        run: &RunName,
        variables: Vec<VariableDecl>,
        session: &Session,
    ) -> Result<()> {
        versions::create_versions(self.inner.registry(), run, variables, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Declares steps of a run; Denied where it is another's. Declared again with another time: Conflict.
    pub fn create_steps(&self, run: &RunName, steps: Vec<StepDecl>, session: &Session) -> Result<()> {
        declare::create_steps(self.inner.registry(), run, steps, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Declares tags; gives them as they are shown: one of another type or unit under a number that is
    /// taken gets its own.
    pub fn create_tags(&self, tags: Vec<TagDecl>, session: &Session) -> Result<Vec<TagInfo>> {
        let declared = tags.clone();
        let made = tags::create_tags(self.inner.registry(), tags, session)?;
        declared
            .iter()
            .for_each(|tag| self.inner.registry().declarations().note_declared(session.key(), tag));
        self.inner.store.fields.changed(session)?;
        Ok(made)
    }

    /// The tag under a name that takes values of this kind; made where there is none of the name. `kind`
    /// is what the values are as they were given; int goes into float where it is exact, and a number that no number of
    /// the name takes gets a version of its own. Conflict where the name is declared in several units: then the one counts
    /// that this handle declared, or the one without a unit. Tags of the session's transaction count, too.
    pub fn tag_for(
        &self,
        name: &str,
        version: Option<i64>,
        kind: ValueType,
        session: &Session,
    ) -> Result<TagDecl> {
        tags::tag_for(self.inner.registry(), session, name, version, kind)
    }

    /// The tag of a name and a unit that takes values of this kind; made where there is none, beside those of the name that
    /// have another unit.
    pub fn tag_in_unit(
        &self,
        name: &str,
        version: Option<i64>,
        kind: ValueType,
        unit: &str,
        session: &Session,
    ) -> Result<TagDecl> {
        let expr = Expr::Term(Term::Tag(NameTest::Is(name.to_owned())));
        let known = self.tags(&Query { expr, session: session.clone(), ..Query::all() })?;
        let known = known
            .into_iter()
            .map(|tag| tag.decl)
            .filter(|tag| tag.unit == unit && version.is_none_or(|version| tag.version == version));
        let known: Vec<TagDecl> = known.collect();
        let takes = |kind| known.iter().find(|tag| tag.kind == kind);
        let floats = || takes(ValueType::Float).filter(|_| kind == ValueType::Int);
        if let Some(tag) = takes(kind).or_else(floats) {
            return Ok(tag.clone());
        }
        let tag =
            TagDecl { name: name.to_owned(), version: version.unwrap_or(0), kind, unit: unit.to_owned() };
        let made = tags::create_tags(self.inner.registry(), vec![tag], session)?.pop();
        self.inner.store.fields.changed(session)?;
        made.map(|tag| tag.decl).ok_or_else(|| Error::internal("a tag was made and is not there"))
    }

    /// Takes attributes, under the caller's name; run and variables must be there, boxes inside of the
    /// variable's shape. They replace what this user said at the same place before. Denied where the run is
    /// another's who lets nobody else annotate it.
    pub fn annotate(&self, batch: AttributeBatch, session: &Session) -> Result<()> {
        annotate::annotate(self.inner.registry(), batch, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Takes attributes of several tags, as [`Catalog::annotate`] takes those of each.
    pub fn annotate_all(&self, batches: Vec<AttributeBatch>, session: &Session) -> Result<()> {
        annotate::annotate_all(self.inner.registry(), batches, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Takes attributes that another store has, under the caller's name, also on a variable that nothing names here. Of
    /// rows at one place all hold where their records are of one call and one commit. Conflict where a box does not fit
    /// what is declared here.
    pub fn carry(&self, batch: AttributeBatch, session: &Session) -> Result<()> {
        carry::carry(self.inner.registry(), batch, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Removes attributes of a run by their ids, each with the user who wrote it; what was written meanwhile stays.
    pub fn remove_attributes(
        &self,
        run: &RunName,
        attributes: &[(AttributeId, u32)],
        session: &Session,
    ) -> Result<()> {
        carry::remove_attributes(self.inner.registry(), run, attributes, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Where the declarations of a run, its steps and its variables were written.
    pub fn declarations(&self, run: &RunName, session: &Session) -> Result<Vec<DeclarationRow>> {
        self.inner
            .reader()
            .look(Visibility::All(session), &mut |index| engine::declarations(index.database(), run))
    }

    /// Removes these declarations of a run; what was declared meanwhile, and all that stands below, stays. Denied where
    /// the run is another's.
    pub fn remove_declarations(
        &self,
        run: &RunName,
        rows: &[DeclarationRow],
        session: &Session,
    ) -> Result<()> {
        carry::remove_declarations(self.inner.registry(), run, rows, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Declares again what is declared alike, so that it stays when the older declarations are removed. Denied where the
    /// run is another's.
    pub fn declare_again(&self, run: &RunName, records: Vec<Record>, session: &Session) -> Result<()> {
        carry::declare_again(self.inner.registry(), run, records, session)?;
        self.inner.store.fields.changed(session)
    }

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
    pub fn delete(
        &self,
        what: &Deletion,
        fields: bool,
        doit: bool,
        session: &Session,
    ) -> Result<DeleteReport> {
        let report = delete::delete(self.inner.registry(), what, fields, doit, session)?;
        if doit {
            self.inner.store.fields.changed(session)?;
        }
        Ok(report)
    }

    /// Makes what a transaction holds of some kinds visible to all: `run`, `step`, `variable`, `tag`,
    /// `run_attribute`, `step_attribute`, `variable_attribute`, `fields`, `relation`.
    pub fn activate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()> {
        self.inner.store.fields.decide_kinds(transaction, kind_bits(kinds)?, 0, session)
    }

    /// Hides what a transaction holds of some kinds again.
    pub fn deactivate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()> {
        self.inner.store.fields.decide_kinds(transaction, 0, kind_bits(kinds)?, session)
    }

    // ---- reading

    /// The run of this name; NotFound, or Invalid where several projects have one and none is given.
    pub fn run(&self, project: Option<&str>, name: &str, session: &Session) -> Result<RunInfo> {
        self.inner.registry().run(project, name, session)
    }

    /// What writes to a run do where their field is there; `None` where the run does not say.
    pub fn exist_of(&self, run: &RunName, session: &Session) -> Result<Option<Exist>> {
        self.inner.registry().exist_of(session, run)
    }

    /// A variable of a run; its newest version where none is given.
    pub fn variable(
        &self,
        run: &RunName,
        name: &str,
        version: Option<i64>,
        session: &Session,
    ) -> Result<VariableInfo> {
        self.inner.registry().variable(run, name, version, session)
    }

    /// A variable that was declared, as this handle knows it: what it declared itself at once, what the engine said for a
    /// while.
    pub fn declared_variable(
        &self,
        run: &RunName,
        variable: &VariableName,
        session: &Session,
    ) -> Result<VariableInfo> {
        let names = std::slice::from_ref(variable);
        let found = self.inner.registry().find_variables(session, run, names)?.remove(variable);
        found.ok_or_else(|| self.inner.registry().no_variable(session, run, variable))
    }

    /// The newest version of a variable, for who writes to it; `None` where there is none. It may be ten seconds old.
    pub fn variable_to_write(
        &self,
        run: &RunName,
        name: &str,
        session: &Session,
    ) -> Result<Option<Arc<VariableInfo>>> {
        self.inner.registry().variable_to_write(session, run, name)
    }

    /// All hits, in columns. Conflict where they are ordered by values of one tag in several units.
    pub fn attributes(&self, query: &Query) -> Result<HitTable> {
        self.inner.reader().ask(query, |tables| {
            if query.is_by_value() {
                queries::check_units(tables, query)?;
            }
            queries::collect(tables, query)
        })
    }

    /// All hits beside what `with …` of the query found related to them.
    pub fn pairs(&self, query: &Query) -> Result<PairTable> {
        self.inner.reader().ask(query, |tables| queries::collect_pairs(tables, query))
    }

    /// Hits one after another, in bounded memory. What is not visible to everybody, and what stands in an
    /// engine in memory, is collected first.
    pub fn stream(&self, query: &Query) -> Result<Box<dyn Iterator<Item = Result<Hit>> + Send>> {
        if query.is_by_value() {
            self.inner.reader().ask(query, |tables| queries::check_units(tables, query))?;
        }
        stream::stream(self.inner.reader(), query)
    }

    /// The type of the values that a query asks for, where all tags that it names have one; `None` else.
    pub fn value_kind(&self, query: &Query) -> Result<Option<ValueType>> {
        let Some(tags) = query.of_tags_alone() else { return Ok(None) };
        let mut kinds = self.tags(&tags)?.into_iter().map(|tag| tag.decl.kind);
        let first = kinds.next();
        Ok(first.filter(|first| kinds.all(|kind| kind == *first)))
    }

    /// How many hits there are.
    pub fn count(&self, query: &Query) -> Result<u64> {
        Ok(self.inner.reader().ask(query, |tables| queries::count(tables, query))?.0)
    }

    /// Count, least, greatest and mean number of groups of hits. Conflict for values of one tag in several units.
    pub fn aggregate(&self, query: &Query, by: &[By]) -> Result<Vec<Aggregate>> {
        self.inner.reader().ask(query, |tables| {
            queries::check_units(tables, query)?;
            queries::aggregate(tables, query, by)
        })
    }

    /// Boxes of hits, each once.
    pub fn boxes(&self, query: &Query) -> Result<Vec<BoxInfo>> {
        self.inner.reader().ask(query, |tables| queries::boxes(tables, query))
    }

    /// Runs: those that exist, or those that matching attributes touch.
    pub fn runs(&self, query: &Query) -> Result<Vec<RunInfo>> {
        self.inner.reader().ask(query, |tables| queries::runs(tables, query))
    }

    /// Runs that are to be changed. Names of the query are taken as they stand, as [`Catalog::delete`] takes them.
    pub fn runs_to_change(&self, query: &Query) -> Result<Vec<RunInfo>> {
        delete::runs_to_change(self.inner.reader(), query)
    }

    /// Steps: those that exist, or those that matching attributes touch.
    pub fn steps(&self, query: &Query) -> Result<Vec<StepInfo>> {
        self.inner.reader().ask(query, |tables| queries::steps(tables, query))
    }

    /// Variables: those that exist, or those that matching attributes touch.
    pub fn variables(&self, query: &Query) -> Result<Vec<VariableInfo>> {
        self.inner.reader().ask(query, |tables| queries::variables(tables, query))
    }

    /// Tags: those that exist, or those that matching attributes have.
    pub fn tags(&self, query: &Query) -> Result<Vec<TagInfo>> {
        self.inner.reader().ask(query, |tables| queries::tags(tables, query))
    }

    /// Why a query finds nothing: a name in it that nothing has.
    pub fn missing_name(&self, query: &Query) -> Result<Option<MissingName>> {
        self.inner.reader().ask(query, |tables| queries::missing_name(tables, query))
    }

    /// The user who calls, as a hit has its number.
    pub fn user(&self, session: &Session) -> u32 {
        self.inner.store.user(session)
    }

    /// The name of a user, as a hit has its number.
    pub fn user_name(&self, user: u32) -> String {
        self.inner.store.user_name(user)
    }

    /// The process that wrote a hit, by the writer that its id names; `None` where the header of that log is damaged.
    pub fn writer(&self, log: Option<Id>) -> Result<Option<Writer>> {
        self.inner.store.writer(log)
    }

    /// Key of the field that an attribute of a run, variable and step stands on, as keyword and value.
    pub fn key_of(
        &self,
        run: &RunName,
        variable: Option<&str>,
        step: Option<i64>,
    ) -> Result<Vec<(String, String)>> {
        roles::key_of(&self.inner.store.journal.schema(), run, variable, step)
    }

    // ---- the engine

    /// Makes the engine's tables anew from the logs. Unavailable where another process has the engine and
    /// does not get on; the message names it, where the system says.
    pub fn rebuild(&self) -> Result<RebuildReport> {
        whole::rebuild(self.inner.reader())
    }

    /// Compares the engine with a replay of the logs in memory, line by line: it takes memory of about ten
    /// times the bytes of the engine. What its pages' checksums do not show, because it was written so, is
    /// found here, and mended by [`rebuild`](Catalog::rebuild).
    pub fn verify(&self) -> Result<CatalogCheck> {
        whole::verify(self.inner.reader())
    }

    /// Rows of a read-only SQL statement over the documented views: names of columns, each once, then rows. In every ORDER
    /// BY NULL is last unless the statement says otherwise, and NaN is NULL: on both engines.
    pub fn sql(&self, statement: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
        let Selection { names, rows, .. } = self.sql_until(statement, None)?;
        Ok((names, rows))
    }

    /// The same with the types of columns; it ends with Invalid once `stop` says so.
    pub fn sql_until(&self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection> {
        self.inner.store.journal.check_there()?;
        self.inner.reader().raise_apply_error()?;
        self.inner
            .reader()
            .look(Visibility::All(&Session::default()), &mut |index| index.sql(statement, stop))
    }

    /// How a query is answered: probes, plans of the SQL used, rows visited and returned.
    pub fn explain(&self, query: &Query) -> Result<String> {
        self.inner.store.journal.check_there()?;
        self.inner.reader().raise_apply_error()?;
        let visibility = Visibility::All(&query.session);
        let view = self.inner.reader().consistent_view(visibility)?;
        let heads = view.seen.heads.clone();
        let text =
            self.inner.reader().look_from(view, visibility, &mut |index| queries::explain(index, query))?;
        let place = self.inner.reader().connections.location_now(&heads)?;
        Ok(format!("engine: {place}\n{text}"))
    }

    /// For tests: waits until nothing is applied beside the caller.
    #[doc(hidden)]
    pub fn join_applying(&self) {
        self.inner.reader().join_applying();
    }

    /// For tests: a session's overlay gets a copy of the engine when so many rows of it were overlaid on the shared
    /// one, whether that pays or not.
    #[doc(hidden)]
    pub fn copy_overlays_at(&self, rows: u64) {
        self.inner.reader().overlays.copy_at(rows);
    }

    /// How many records that were not flushed this process has overlaid on the engine so far: what reading them
    /// has cost.
    pub fn overlaid(&self) -> u64 {
        self.inner.reader().overlays.laid()
    }

    /// Contradicting definitions that were found, in words.
    pub fn conflicts(&self) -> Result<Vec<String>> {
        self.inner.store.journal.check_there()?;
        self.inner.reader().raise_apply_error()?;
        self.inner
            .reader()
            .look(Visibility::All(&Session::default()), &mut |index| engine::conflicts(index.database()))
    }

    /// Whether the store's logs declare runs, steps, variables or groups of arrays. The engine is not asked, and not made.
    pub fn has_declarations(&self) -> Result<bool> {
        whole::has_declarations(self.inner.reader())
    }

    /// Whether the logs, or this handle, hold anything for the catalog. The engine is not asked, and not made.
    pub fn has_records(&self) -> Result<bool> {
        whole::has_records(self.inner.reader())
    }

    /// Applies what the logs hold and the engine does not, if no other process does so at this moment.
    pub fn catch_up(&self) -> Result<bool> {
        self.inner.reader().raise_apply_error()?;
        self.inner.reader().catch_up()
    }
}

/// The bits of kinds given by name.
fn kind_bits(names: &[&str]) -> Result<u32> {
    use kinds::*;
    const KINDS: [(&str, u32); 9] = [
        ("run", RUN),
        ("step", STEP),
        ("variable", VARIABLE),
        ("tag", TAG),
        ("run_attribute", RUN_ATTRIBUTE),
        ("step_attribute", STEP_ATTRIBUTE),
        ("variable_attribute", VARIABLE_ATTRIBUTE),
        ("fields", FIELDS),
        ("relation", RELATION),
    ];
    names.iter().try_fold(0, |bits, name| {
        let known = KINDS.iter().find(|(kind, _)| kind == name);
        let all: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
        known.map(|(_, bit)| bits | bit).ok_or_else(|| {
            Error::invalid(format!("'{name}' is no kind of what a transaction holds"))
                .with_hint(format!("the kinds are {}", all.join(", ")))
        })
    })
}
