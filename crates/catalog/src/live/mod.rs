//! The catalog of an open store: what is written goes into the next commit of its journal as side records; what
//! is read comes from an engine that has followed the logs as far as this handle sees them. An engine may be
//! deleted at any time: it is built again by replay, and no answer changes.
//!
//! | module | holds |
//! |---|---|
//! | `port` | what it asks of the store's fields, and what the store reports to it |
//! | `inner` | what all calls share, and what each process has of it |
//! | `consistent_view`, `following` | the engine: brought up to the logs, and read |
//! | `overlay` | what is not flushed, at the cost of what is new |
//! | `connection`, `lock_holders` | its connections, and what is done while other processes have it |
//! | `location`, `engine_file` | where it is, its file set aside and cleared |
//! | `arrays` | declarations of distributed arrays |
//! | `query`, `run_answers` | queries and streams; runs by name |
//!
//! What writing checks and remembers is in `write`. The facade makes a [`Catalog`] of an open store, with an
//! example of it.

mod arrays;
mod connection;
pub(crate) mod consistent_view;
mod engine_file;
mod following;
pub(crate) mod inner;
mod location;
mod lock_holders;
mod overlay;
mod port;
mod query;
mod run_answers;

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

pub use crate::deletion::Deletion;
pub use crate::reports::{CatalogCheck, CatalogSettings, DeleteReport, RebuildReport};
pub use port::FieldPort;

use crate::access::{CatalogAdmin, CatalogLookup, CatalogQueries, CatalogWriter, Hits};
pub use crate::engine::{DeclarationRow, Declared};
use crate::engine::{Interrupt, Selection, Writer};
use crate::query::{
    self as queries, Aggregate, BoxInfo, By, Expr, HitTable, MissingName, NameTest, PairTable, Query,
    RunInfo, StepInfo, TagInfo, Term, VariableInfo,
};
use crate::view::roles;
use consistent_view::Visibility;
use inner::Inner;

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
}

impl CatalogWriter for Catalog {
    fn create_run(&self, run: RunDecl, exist_ok: bool, session: &Session) -> Result<()> {
        self.inner.create_run(run, exist_ok, session)?;
        self.inner.fields.changed(session)
    }

    fn move_outside(&self, moved: Vec<(RunName, Value)>, session: &Session) -> Result<()> {
        self.inner.move_outside(moved, session)?;
        self.inner.fields.changed(session)
    }

    fn set_state(&self, run: &RunName, state: RunState, session: &Session) -> Result<()> {
        self.inner.set_state(run, state, session)?;
        self.inner.fields.changed(session)
    }

    fn create_variables(&self, run: &RunName, variables: Vec<VariableDecl>, session: &Session) -> Result<()> {
        self.inner.create_variables(run, variables, session)?;
        self.inner.fields.changed(session)
    }

    fn create_versions(&self, run: &RunName, variables: Vec<VariableDecl>, session: &Session) -> Result<()> {
        self.inner.create_versions(run, variables, session)?;
        self.inner.fields.changed(session)
    }

    fn create_steps(&self, run: &RunName, steps: Vec<StepDecl>, session: &Session) -> Result<()> {
        self.inner.create_steps(run, steps, session)?;
        self.inner.fields.changed(session)
    }

    fn create_tags(&self, tags: Vec<TagDecl>, session: &Session) -> Result<Vec<TagInfo>> {
        let declared = tags.clone();
        let made = self.inner.create_tags(tags, session)?;
        declared.iter().for_each(|tag| self.inner.declarations().note_declared(session.key(), tag));
        self.inner.fields.changed(session)?;
        Ok(made)
    }

    fn tag_for(
        &self,
        name: &str,
        version: Option<i64>,
        kind: ValueType,
        session: &Session,
    ) -> Result<TagDecl> {
        self.inner.tag_for(session, name, version, kind)
    }

    fn tag_in_unit(
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
        let made = self.inner.create_tags(vec![tag], session)?.pop();
        self.inner.fields.changed(session)?;
        made.map(|tag| tag.decl).ok_or_else(|| Error::internal("a tag was made and is not there"))
    }

    fn annotate(&self, batch: AttributeBatch, session: &Session) -> Result<()> {
        self.inner.annotate(batch, session)?;
        self.inner.fields.changed(session)
    }

    fn annotate_all(&self, batches: Vec<AttributeBatch>, session: &Session) -> Result<()> {
        self.inner.annotate_all(batches, session)?;
        self.inner.fields.changed(session)
    }

    fn carry(&self, batch: AttributeBatch, session: &Session) -> Result<()> {
        self.inner.carry(batch, session)?;
        self.inner.fields.changed(session)
    }

    fn remove_attributes(
        &self,
        run: &RunName,
        attributes: &[(AttributeId, u32)],
        session: &Session,
    ) -> Result<()> {
        self.inner.remove_attributes(run, attributes, session)?;
        self.inner.fields.changed(session)
    }

    fn remove_declarations(&self, run: &RunName, rows: &[DeclarationRow], session: &Session) -> Result<()> {
        self.inner.remove_declarations(run, rows, session)?;
        self.inner.fields.changed(session)
    }

    fn declare_again(&self, run: &RunName, records: Vec<Record>, session: &Session) -> Result<()> {
        self.inner.declare_again(run, records, session)?;
        self.inner.fields.changed(session)
    }

    fn delete(&self, what: &Deletion, fields: bool, doit: bool, session: &Session) -> Result<DeleteReport> {
        let report = self.inner.delete(what, fields, doit, session)?;
        if doit {
            self.inner.fields.changed(session)?;
        }
        Ok(report)
    }

    fn activate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()> {
        self.inner.fields.decide_kinds(transaction, kind_bits(kinds)?, 0, session)
    }

    fn deactivate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()> {
        self.inner.fields.decide_kinds(transaction, 0, kind_bits(kinds)?, session)
    }
}

impl CatalogLookup for Catalog {
    fn run(&self, project: Option<&str>, name: &str, session: &Session) -> Result<RunInfo> {
        self.inner.run(project, name, session)
    }

    fn exist_of(&self, run: &RunName, session: &Session) -> Result<Option<Exist>> {
        self.inner.exist_of(session, run)
    }

    fn variable(
        &self,
        run: &RunName,
        name: &str,
        version: Option<i64>,
        session: &Session,
    ) -> Result<VariableInfo> {
        self.inner.variable(run, name, version, session)
    }

    fn declared_variable(
        &self,
        run: &RunName,
        variable: &VariableName,
        session: &Session,
    ) -> Result<VariableInfo> {
        let names = std::slice::from_ref(variable);
        let found = self.inner.find_variables(session, run, names)?.remove(variable);
        found.ok_or_else(|| self.inner.no_variable(session, run, variable))
    }

    fn variable_to_write(
        &self,
        run: &RunName,
        name: &str,
        session: &Session,
    ) -> Result<Option<Arc<VariableInfo>>> {
        self.inner.variable_to_write(session, run, name)
    }

    fn declarations(&self, run: &RunName, session: &Session) -> Result<Vec<DeclarationRow>> {
        self.inner.look(Visibility::All(session), &mut |index| index.declarations(run))
    }

    fn user(&self, session: &Session) -> u32 {
        self.inner.user(session)
    }

    fn user_name(&self, user: u32) -> String {
        self.inner.user_name(user)
    }

    fn writer(&self, log: Option<Id>) -> Result<Option<Writer>> {
        self.inner.writer(log)
    }

    fn key_of(
        &self,
        run: &RunName,
        variable: Option<&str>,
        step: Option<i64>,
    ) -> Result<Vec<(String, String)>> {
        roles::key_of(&self.inner.journal.schema(), run, variable, step)
    }

    fn has_declarations(&self) -> Result<bool> {
        self.inner.has_declarations()
    }

    fn has_records(&self) -> Result<bool> {
        self.inner.has_records()
    }
}

impl CatalogQueries for Catalog {
    fn attributes(&self, query: &Query) -> Result<HitTable> {
        self.inner.ask(query, |tables| {
            if query.is_by_value() {
                queries::check_units(tables, query)?;
            }
            queries::collect(tables, query)
        })
    }

    fn pairs(&self, query: &Query) -> Result<PairTable> {
        self.inner.ask(query, |tables| queries::collect_pairs(tables, query))
    }

    fn stream(&self, query: &Query) -> Result<Hits> {
        if query.is_by_value() {
            self.inner.ask(query, |tables| queries::check_units(tables, query))?;
        }
        self.inner.stream(query)
    }

    fn value_kind(&self, query: &Query) -> Result<Option<ValueType>> {
        let Some(tags) = query.of_tags_alone() else { return Ok(None) };
        let mut kinds = self.tags(&tags)?.into_iter().map(|tag| tag.decl.kind);
        let first = kinds.next();
        Ok(first.filter(|first| kinds.all(|kind| kind == *first)))
    }

    fn count(&self, query: &Query) -> Result<u64> {
        Ok(self.inner.ask(query, |tables| queries::count(tables, query))?.0)
    }

    fn aggregate(&self, query: &Query, by: &[By]) -> Result<Vec<Aggregate>> {
        self.inner.ask(query, |tables| {
            queries::check_units(tables, query)?;
            queries::aggregate(tables, query, by)
        })
    }

    fn boxes(&self, query: &Query) -> Result<Vec<BoxInfo>> {
        self.inner.ask(query, |tables| queries::boxes(tables, query))
    }

    fn runs(&self, query: &Query) -> Result<Vec<RunInfo>> {
        self.inner.ask(query, |tables| queries::runs(tables, query))
    }

    fn runs_to_change(&self, query: &Query) -> Result<Vec<RunInfo>> {
        self.inner.runs_to_change(query)
    }

    fn steps(&self, query: &Query) -> Result<Vec<StepInfo>> {
        self.inner.ask(query, |tables| queries::steps(tables, query))
    }

    fn variables(&self, query: &Query) -> Result<Vec<VariableInfo>> {
        self.inner.ask(query, |tables| queries::variables(tables, query))
    }

    fn tags(&self, query: &Query) -> Result<Vec<TagInfo>> {
        self.inner.ask(query, |tables| queries::tags(tables, query))
    }

    fn missing_name(&self, query: &Query) -> Result<Option<MissingName>> {
        self.inner.ask(query, |tables| queries::missing_name(tables, query))
    }

    fn explain(&self, query: &Query) -> Result<String> {
        self.inner.journal.check_there()?;
        self.inner.raise_apply_error()?;
        let visibility = Visibility::All(&query.session);
        let view = self.inner.consistent_view(visibility)?;
        let heads = view.seen.heads.clone();
        let text = self.inner.look_from(view, visibility, &mut |index| queries::explain(index, query))?;
        let place = self.inner.location_now(&heads)?;
        Ok(format!("engine: {place}\n{text}"))
    }

    fn sql_until(&self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection> {
        self.inner.journal.check_there()?;
        self.inner.raise_apply_error()?;
        self.inner.look(Visibility::All(&Session::default()), &mut |index| index.sql(statement, stop))
    }
}

impl CatalogAdmin for Catalog {
    fn rebuild(&self) -> Result<RebuildReport> {
        self.inner.rebuild()
    }

    fn verify(&self) -> Result<CatalogCheck> {
        self.inner.verify()
    }

    fn conflicts(&self) -> Result<Vec<String>> {
        self.inner.journal.check_there()?;
        self.inner.raise_apply_error()?;
        self.inner.look(Visibility::All(&Session::default()), &mut |index| index.conflicts())
    }

    fn catch_up(&self) -> Result<bool> {
        self.inner.raise_apply_error()?;
        self.inner.catch_up()
    }

    fn overlaid(&self) -> u64 {
        self.inner.overlays().laid()
    }

    fn join_applying(&self) {
        self.inner.join_applying();
    }

    fn copy_overlays_at(&self, rows: u64) {
        self.inner.overlays().copy_at(rows);
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
