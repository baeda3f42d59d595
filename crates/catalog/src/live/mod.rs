//! The catalog of an open store. Writes become side records in the next commit of the journal. Reads use an
//! engine that has followed the logs as far as this handle sees them. The engine may be deleted at any time:
//! a replay builds it again, and no answer changes.
//!
//! | module | holds |
//! |---|---|
//! | `inner` | the state that all calls share, and each process's part |
//! | `arrays` | declarations of distributed arrays |
//! | `stream` | hits, one at a time |
//! | `whole` | calls about the engine or the logs as a whole |
//!
//! `reader` reads the engine, `registry` knows the declarations, and `write` checks writes. The facade makes
//! a [`Catalog`] of an open store, and has an example of it.

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
use fieldstone_format::setting::IfExists;
use fieldstone_journal::Journal;
use fieldstone_journal::Session;

pub use crate::reader::FieldPort;
pub use crate::reports::{CatalogCheck, CatalogSettings, RebuildReport};
pub use crate::write::deletion::{DeleteReport, Deletion};

use crate::access::{CatalogAdmin, CatalogLookup, CatalogQueries, CatalogWriter, Hits};
use crate::engine::{self, Interrupt, Selection, Writer};
pub use crate::engine::{DeclarationRow, Declared};
use crate::follower::roles;
use crate::query::{
    self as queries, Aggregate, BoxInfo, By, Expr, HitTable, MissingName, NameTest, PairTable, Query,
    RunInfo, StepInfo, TagInfo, Term, VariableInfo,
};
use crate::reader::{EngineReader, Visibility};
use crate::registry::Registry;
use crate::write::{annotate, carry, declare, delete, state, tags, versions};
use inner::Inner;

/// The catalog of an open store. Clones share their state.
#[derive(Debug, Clone)]
pub struct Catalog {
    inner: Arc<Inner>,
}

impl Catalog {
    /// The catalog over a journal and its fields. Opens nothing before it is needed.
    pub fn new(fields: Arc<dyn FieldPort>, journal: Arc<Journal>, settings: CatalogSettings) -> Catalog {
        Catalog { inner: Inner::new(fields, journal, settings) }
    }

    /// The declarations that this process knows.
    pub(crate) fn registry(&self) -> &Registry {
        self.inner.registry()
    }

    /// The reader of this process.
    pub(crate) fn reader(&self) -> &EngineReader {
        self.inner.reader()
    }
}

impl CatalogWriter for Catalog {
    fn create_run(&self, run: RunDecl, exist_ok: bool, session: &Session) -> Result<()> {
        declare::create_run(self.inner.registry(), run, exist_ok, session)?;
        self.inner.store.fields.changed(session)
    }

    fn move_outside(&self, moved: Vec<(RunName, Value)>, session: &Session) -> Result<()> {
        state::move_outside(self.inner.registry(), moved, session)?;
        self.inner.store.fields.changed(session)
    }

    fn set_state(&self, run: &RunName, state: RunState, session: &Session) -> Result<()> {
        state::set_state(self.inner.registry(), run, state, session)?;
        self.inner.store.fields.changed(session)
    }

    fn create_variables(&self, run: &RunName, variables: Vec<VariableDecl>, session: &Session) -> Result<()> {
        declare::create_variables(self.inner.registry(), run, variables, session)?;
        self.inner.store.fields.changed(session)
    }

    fn create_versions(&self, run: &RunName, variables: Vec<VariableDecl>, session: &Session) -> Result<()> {
        versions::create_versions(self.inner.registry(), run, variables, session)?;
        self.inner.store.fields.changed(session)
    }

    fn create_steps(&self, run: &RunName, steps: Vec<StepDecl>, session: &Session) -> Result<()> {
        declare::create_steps(self.inner.registry(), run, steps, session)?;
        self.inner.store.fields.changed(session)
    }

    fn create_tags(&self, tags: Vec<TagDecl>, session: &Session) -> Result<Vec<TagInfo>> {
        let declared = tags.clone();
        let made = tags::create_tags(self.inner.registry(), tags, session)?;
        declared
            .iter()
            .for_each(|tag| self.inner.registry().declarations().note_declared(session.key(), tag));
        self.inner.store.fields.changed(session)?;
        Ok(made)
    }

    fn tag_for(
        &self,
        name: &str,
        version: Option<i64>,
        kind: ValueType,
        session: &Session,
    ) -> Result<TagDecl> {
        tags::tag_for(self.inner.registry(), session, name, version, kind)
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
        let made = tags::create_tags(self.inner.registry(), vec![tag], session)?.pop();
        self.inner.store.fields.changed(session)?;
        made.map(|tag| tag.decl).ok_or_else(|| Error::internal("a tag that was just declared is missing"))
    }

    fn annotate(&self, batch: AttributeBatch, session: &Session) -> Result<()> {
        annotate::annotate(self.inner.registry(), batch, session)?;
        self.inner.store.fields.changed(session)
    }

    fn annotate_all(&self, batches: Vec<AttributeBatch>, session: &Session) -> Result<()> {
        annotate::annotate_all(self.inner.registry(), batches, session)?;
        self.inner.store.fields.changed(session)
    }

    fn carry(&self, batch: AttributeBatch, session: &Session) -> Result<()> {
        carry::carry(self.inner.registry(), batch, session)?;
        self.inner.store.fields.changed(session)
    }

    fn remove_attributes(
        &self,
        run: &RunName,
        attributes: &[(AttributeId, u32)],
        session: &Session,
    ) -> Result<()> {
        carry::remove_attributes(self.inner.registry(), run, attributes, session)?;
        self.inner.store.fields.changed(session)
    }

    fn remove_declarations(&self, run: &RunName, rows: &[DeclarationRow], session: &Session) -> Result<()> {
        carry::remove_declarations(self.inner.registry(), run, rows, session)?;
        self.inner.store.fields.changed(session)
    }

    fn declare_again(&self, run: &RunName, records: Vec<Record>, session: &Session) -> Result<()> {
        carry::declare_again(self.inner.registry(), run, records, session)?;
        self.inner.store.fields.changed(session)
    }

    fn delete(&self, what: &Deletion, fields: bool, doit: bool, session: &Session) -> Result<DeleteReport> {
        let report = delete::delete(self.inner.registry(), what, fields, doit, session)?;
        if doit {
            self.inner.store.fields.changed(session)?;
        }
        Ok(report)
    }

    fn activate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()> {
        self.inner.store.fields.set_active_kinds(transaction, kind_bits(kinds)?, 0, session)
    }

    fn deactivate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()> {
        self.inner.store.fields.set_active_kinds(transaction, 0, kind_bits(kinds)?, session)
    }
}

impl CatalogLookup for Catalog {
    fn run(&self, project: Option<&str>, name: &str, session: &Session) -> Result<RunInfo> {
        self.inner.registry().run(project, name, session)
    }

    fn if_exists_of(&self, run: &RunName, session: &Session) -> Result<Option<IfExists>> {
        self.inner.registry().if_exists_of(session, run)
    }

    fn variable(
        &self,
        run: &RunName,
        name: &str,
        version: Option<i64>,
        session: &Session,
    ) -> Result<VariableInfo> {
        self.inner.registry().variable(run, name, version, session)
    }

    fn declared_variable(
        &self,
        run: &RunName,
        variable: &VariableName,
        session: &Session,
    ) -> Result<VariableInfo> {
        let names = std::slice::from_ref(variable);
        let found = self.inner.registry().find_variables(session, run, names)?.remove(variable);
        found.ok_or_else(|| self.inner.registry().no_variable(session, run, variable))
    }

    fn variable_to_write(
        &self,
        run: &RunName,
        name: &str,
        session: &Session,
    ) -> Result<Option<Arc<VariableInfo>>> {
        self.inner.registry().variable_to_write(session, run, name)
    }

    fn declarations(&self, run: &RunName, session: &Session) -> Result<Vec<DeclarationRow>> {
        self.inner
            .reader()
            .look(Visibility::All(session), &mut |index| engine::declarations(index.database(), run))
    }

    fn user(&self, session: &Session) -> u32 {
        self.inner.store.user(session)
    }

    fn user_name(&self, user: u32) -> String {
        self.inner.store.user_name(user)
    }

    fn writer(&self, log: Option<Id>) -> Result<Option<Writer>> {
        self.inner.store.writer(log)
    }

    fn key_of(
        &self,
        run: &RunName,
        variable: Option<&str>,
        step: Option<i64>,
    ) -> Result<Vec<(String, String)>> {
        roles::key_of(&self.inner.store.journal.schema().now(), run, variable, step)
    }

    fn has_declarations(&self) -> Result<bool> {
        whole::has_declarations(self.inner.reader())
    }

    fn has_records(&self) -> Result<bool> {
        whole::has_records(self.inner.reader())
    }
}

impl CatalogQueries for Catalog {
    fn attributes(&self, query: &Query) -> Result<HitTable> {
        self.inner.reader().ask(query, |tables| {
            if query.is_by_value() {
                queries::check_units(tables, query)?;
            }
            queries::collect(tables, query)
        })
    }

    fn pairs(&self, query: &Query) -> Result<PairTable> {
        self.inner.reader().ask(query, |tables| queries::collect_pairs(tables, query))
    }

    fn stream(&self, query: &Query) -> Result<Hits> {
        if query.is_by_value() {
            self.inner.reader().ask(query, |tables| queries::check_units(tables, query))?;
        }
        stream::stream(self.inner.reader(), query)
    }

    fn value_kind(&self, query: &Query) -> Result<Option<ValueType>> {
        let Some(tags) = query.of_tags_alone() else { return Ok(None) };
        let mut kinds = self.tags(&tags)?.into_iter().map(|tag| tag.decl.kind);
        let first = kinds.next();
        Ok(first.filter(|first| kinds.all(|kind| kind == *first)))
    }

    fn count(&self, query: &Query) -> Result<u64> {
        Ok(self.inner.reader().ask(query, |tables| queries::count(tables, query))?.0)
    }

    fn aggregate(&self, query: &Query, by: &[By]) -> Result<Vec<Aggregate>> {
        self.inner.reader().ask(query, |tables| {
            queries::check_units(tables, query)?;
            queries::aggregate(tables, query, by)
        })
    }

    fn boxes(&self, query: &Query) -> Result<Vec<BoxInfo>> {
        self.inner.reader().ask(query, |tables| queries::boxes(tables, query))
    }

    fn runs(&self, query: &Query) -> Result<Vec<RunInfo>> {
        self.inner.reader().ask(query, |tables| queries::runs(tables, query))
    }

    fn runs_to_change(&self, query: &Query) -> Result<Vec<RunInfo>> {
        delete::runs_to_change(self.inner.reader(), query)
    }

    fn steps(&self, query: &Query) -> Result<Vec<StepInfo>> {
        self.inner.reader().ask(query, |tables| queries::steps(tables, query))
    }

    fn variables(&self, query: &Query) -> Result<Vec<VariableInfo>> {
        self.inner.reader().ask(query, |tables| queries::variables(tables, query))
    }

    fn tags(&self, query: &Query) -> Result<Vec<TagInfo>> {
        self.inner.reader().ask(query, |tables| queries::tags(tables, query))
    }

    fn missing_name(&self, query: &Query) -> Result<Option<MissingName>> {
        self.inner.reader().ask(query, |tables| queries::missing_name(tables, query))
    }

    fn explain(&self, query: &Query) -> Result<String> {
        self.inner.store.journal.check_there()?;
        self.inner.reader().raise_apply_error()?;
        let visibility = Visibility::All(&query.session);
        let moment = self.inner.reader().consistent_read(visibility)?;
        let heads = moment.seen.heads.clone();
        let text =
            self.inner.reader().look_from(moment, visibility, &mut |index| queries::explain(index, query))?;
        let place = self.inner.reader().connections.location_now(&heads)?;
        Ok(format!("engine: {place}\n{text}"))
    }

    fn sql_until(&self, statement: &str, stop: Option<&Interrupt>) -> Result<Selection> {
        self.inner.store.journal.check_there()?;
        self.inner.reader().raise_apply_error()?;
        self.inner
            .reader()
            .look(Visibility::All(&Session::default()), &mut |index| index.sql(statement, stop))
    }
}

impl CatalogAdmin for Catalog {
    fn rebuild(&self) -> Result<RebuildReport> {
        whole::rebuild(self.inner.reader())
    }

    fn verify(&self) -> Result<CatalogCheck> {
        whole::verify(self.inner.reader())
    }

    fn conflicts(&self) -> Result<Vec<String>> {
        self.inner.store.journal.check_there()?;
        self.inner.reader().raise_apply_error()?;
        self.inner
            .reader()
            .look(Visibility::All(&Session::default()), &mut |index| engine::conflicts(index.database()))
    }

    fn catch_up(&self) -> Result<bool> {
        self.inner.reader().raise_apply_error()?;
        self.inner.reader().catch_up()
    }

    fn overlaid(&self) -> u64 {
        self.inner.reader().overlays.laid()
    }

    fn join_applying(&self) {
        self.inner.reader().join_applying();
    }

    fn copy_overlays_at(&self, rows: u64) {
        self.inner.reader().overlays.copy_at(rows);
    }
}

/// The bits for kinds given by name.
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
            Error::invalid(format!("'{name}' is not a kind of content of a transaction"))
                .with_hint(format!("the kinds are {}", all.join(", ")))
        })
    })
}
