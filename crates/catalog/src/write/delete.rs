//! Deletions: a query selects what to delete, and removal records put that into the log. Everything below
//! goes too: steps, variables and attributes with their run, attributes with their step, variable or tag.
//!
//! Names here are literal, not patterns, and a name that several projects have is refused, so that nothing is
//! deleted by mistake.
//!
//! Each user deletes only what is theirs: attributes that they wrote, and everything in runs that they own.
//!
//! A deletion is a version like any other: an older version of the store still has the deleted objects, and
//! new objects may use the same names.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::catalog::{AttributeId, Record, Removal, RunName};
use fieldstone_journal::Session;

use super::deletion::{DeleteReport, Deletion};
use crate::engine::{self, Index, NO_STEP, RunSelect, Tables, TagRow};
use crate::follower::roles;
use crate::query::{self, Query, RunInfo};
use crate::reader::consistent_read::{OWN, OWN_TRANSACTION};
use crate::reader::{EngineReader, Visibility};
use crate::registry::{Registry, run_row, several_projects};

/// The steps of attributes, including attributes of runs.
const ALL_STEPS: RangeInclusive<i64> = NO_STEP..=i64::MAX;

/// Maximum number of attributes in one record.
pub(super) const IDS: usize = 65_536;

/// The objects to delete.
#[derive(Debug, Default)]
struct DeletionPlan {
    removals: Vec<Removal>,
    attributes: Vec<AttributeId>,
    /// Attributes of other users, each with its position in `runs`.
    of_others: Vec<(AttributeId, u32, usize)>,
    /// Runs that the caller must own, each with the user who declared it first.
    runs: Vec<(RunName, Option<u32>)>,
    /// Tags that others declared, each with one of those users.
    tags: Vec<(String, u32)>,
    /// Fields below the deleted objects.
    fields: Vec<Vec<(String, String)>>,
    report: DeleteReport,
}

/// Deletes the objects that a query finds, or reports what it would delete.
pub fn delete(
    registry: &Registry,
    what: &Deletion,
    fields: bool,
    doit: bool,
    session: &Session,
) -> Result<DeleteReport> {
    if doit {
        registry.store.journal.access().check_writable()?;
    }
    if fields && matches!(what, Deletion::Tags(_) | Deletion::Attributes(_)) {
        return Err(Error::invalid("tags and attributes have no fields")
            .with_hint("delete fields together with runs, steps or variables"));
    }
    // A pattern that was typed as a name must not delete more than that name.
    let what = &what.exact();
    let mut plan = registry.reader.look(Visibility::All(session), &mut |index| {
        plan(&registry.store.journal.schema().now(), index, what, registry.store.user(session))
    })?;
    only_own(registry, session, &mut plan, matches!(what, Deletion::Attributes(_)))?;
    if fields {
        for pairs in &plan.fields {
            let request = roles::request_of(pairs);
            plan.report.fields += match doit {
                true => registry.store.fields.remove(&request, session)?,
                false => registry.store.fields.count(&request, session)?,
            };
        }
    }
    if doit {
        let mut records: Vec<Record> = Vec::new();
        if !plan.removals.is_empty() {
            records.push(Record::Remove(plan.removals));
        }
        let ids = plan.attributes.iter().map(|id| named(*id, session)).collect::<Result<Vec<_>>>()?;
        let parts = ids.chunks(IDS);
        records.extend(parts.map(|ids| Record::Remove(vec![Removal::Attributes(ids.to_vec())])));
        if !records.is_empty() {
            registry.reader.pending.emit(session, records)?;
            registry.declarations().note_deletion(session.key());
        }
        plan.report.done = true;
    }
    Ok(plan.report)
}

/// Refuses objects of other users; leaves their attributes out if a query found them.
fn only_own(registry: &Registry, session: &Session, plan: &mut DeletionPlan, found: bool) -> Result<()> {
    if let Some((tag, user)) = plan.tags.first() {
        let name = registry.store.user_name(*user);
        return Err(Code::AttributeOwned
            .error(format!("{name} declared the tag '{tag}', too"))
            .with_hint(format!("ask {name}, or delete only your own attributes")));
    }
    let me = registry.store.user(session);
    let mut owners = Vec::with_capacity(plan.runs.len());
    for (run, first) in &plan.runs {
        let owner = registry.store.owner(run, *first)?;
        match owner.filter(|owner| *owner != me) {
            Some(owner) if !found => return Err(registry.owned_by(run, owner)),
            _ => owners.push(owner),
        }
    }
    // The owner of a run may delete everything in it; elsewhere attributes of others stay, and the report
    // counts them.
    let mut other = None;
    for (id, user, run) in std::mem::take(&mut plan.of_others) {
        if owners.get(run) == Some(&Some(me)) {
            plan.attributes.push(id);
        } else {
            other = other.or(Some(user));
            plan.report.others += 1;
        }
    }
    if found {
        plan.report.attributes = plan.attributes.len() as u64;
    }
    match other {
        Some(user) if plan.attributes.is_empty() => {
            let (n, name) = (plan.report.others, registry.store.user_name(user));
            Err(Code::AttributeOwned
                .error(format!("{n} attributes to delete belong to other users, the first of them to {name}"))
                .with_hint(format!(
                    "ask {name}; you can delete your own attributes and all in runs that you own"
                )))
        }
        _ => Ok(()),
    }
}

fn plan(schema: &Schema, tables: &mut Index, what: &Deletion, me: u32) -> Result<DeletionPlan> {
    check_projects(tables, what.query())?;
    let mut plan = DeletionPlan::default();
    match what {
        Deletion::Runs(query) => plan_runs(schema, tables, query, &mut plan)?,
        Deletion::Steps(query) => plan_steps(schema, tables, query, &mut plan)?,
        Deletion::Variables(query) => plan_variables(schema, tables, query, &mut plan)?,
        Deletion::Tags(query) => plan_tags(tables, query, me, &mut plan)?,
        Deletion::Attributes(query) => plan_attributes(tables, query, me, &mut plan)?,
    }
    Ok(plan)
}

fn plan_runs(schema: &Schema, tables: &mut Index, query: &Query, plan: &mut DeletionPlan) -> Result<()> {
    for run in query::runs(tables, query)? {
        plan.runs.push((run.decl.run.clone(), run.first));
        let run = run.decl.run;
        plan.report.runs += 1;
        plan.fields.push(roles::key_of(schema, &run, None, None)?);
        if let Some(row) = run_row(tables, &run)? {
            plan.report.steps += tables.steps(row.id, ALL_STEPS)?.len() as u64;
            plan.report.variables += tables.variables(row.id)?.len() as u64;
            let spans = tables.spans_of_run(row.id)?;
            plan.report.attributes += spans.iter().map(|span| span.n).sum::<u64>();
        }
        plan.removals.push(Removal::Run(run));
    }
    Ok(())
}

fn plan_steps(schema: &Schema, tables: &mut Index, query: &Query, plan: &mut DeletionPlan) -> Result<()> {
    for step in query::steps(tables, query)? {
        plan.report.steps += 1;
        plan.fields.push(roles::key_of(schema, &step.run, None, Some(step.step))?);
        if let Some(row) = run_row(tables, &step.run)? {
            plan.note_run(&step.run, row.first);
            for span in tables.spans_of_run(row.id)? {
                let series = tables.series(row.id, span.tag, step.step..=step.step)?;
                plan.report.attributes += series.iter().map(|series| series.n).sum::<u64>();
            }
        }
        plan.removals.push(Removal::Step(step.run, step.step));
    }
    Ok(())
}

fn plan_variables(schema: &Schema, tables: &mut Index, query: &Query, plan: &mut DeletionPlan) -> Result<()> {
    for variable in query::variables(tables, query)? {
        let name = variable.decl.variable;
        plan.report.variables += 1;
        let key = roles::key_of(schema, &variable.run, Some(&name.name), None)?;
        plan.fields.push(key);
        if let Some(row) = run_row(tables, &variable.run)? {
            plan.note_run(&variable.run, row.first);
            let known = tables.variables(row.id)?;
            let id = known.iter().find(|row| row.decl.variable == name).map(|row| row.id);
            for span in tables.spans_of_run(row.id)? {
                let series = tables.series(row.id, span.tag, ALL_STEPS)?;
                let of = series.iter().filter(|series| Some(series.variable) == id);
                plan.report.attributes += of.map(|series| series.n).sum::<u64>();
            }
        }
        plan.removals.push(Removal::Variable(variable.run, name));
    }
    Ok(())
}

fn plan_tags(tables: &mut Index, query: &Query, me: u32, plan: &mut DeletionPlan) -> Result<()> {
    let rows = tables.tags()?;
    for tag in query::tags(tables, query)? {
        plan.report.tags += 1;
        if let Some(row) = rows.iter().find(|row| row.decl == tag.decl) {
            let spans = tables.spans(row.id, None)?;
            plan.report.attributes += spans.iter().map(|span| span.n).sum::<u64>();
            tag_of_others(tables, row, me, plan)?;
        }
        plan.removals.push(Removal::Tag(tag.decl));
    }
    Ok(())
}

fn plan_attributes(tables: &mut Index, query: &Query, me: u32, plan: &mut DeletionPlan) -> Result<()> {
    let found = query::collect(tables, query)?;
    for (row, (id, user)) in found.id.iter().zip(&found.user).enumerate() {
        if *user == me {
            plan.attributes.push(*id);
            continue;
        }
        let Some(hit) = found.hit(row) else { continue };
        let run = RunName { project: hit.project.to_string(), name: hit.run.to_string() };
        if plan.runs.last().is_none_or(|(last, _)| *last != run) {
            let first = run_row(tables, &run)?.and_then(|row| row.first);
            plan.runs.push((run, first));
        }
        plan.of_others.push((*id, *user, plan.runs.len() - 1));
    }
    Ok(())
}

/// A tag can be deleted only if no other user declared it or used it outside the caller's own runs.
fn tag_of_others(index: &mut Index, tag: &TagRow, me: u32, plan: &mut DeletionPlan) -> Result<()> {
    let other = |users: BTreeSet<u32>| users.into_iter().find(|user| *user != me);
    if let Some(user) = other(engine::users_of_tag(index.database(), tag.id)?) {
        plan.tags.push((tag.decl.name.clone(), user));
    }
    if !engine::is_shared(index.database())? {
        return Ok(());
    }
    // Runs in which others used the tag must belong to the caller; `only_own` checks that.
    for span in index.spans(tag.id, None)? {
        if other(index.users_of(span.run, tag.id)?).is_some() {
            let runs = index.runs(&RunSelect::Ids(vec![span.run]))?;
            plan.runs.extend(runs.into_iter().map(|row| (row.decl.run, row.first)));
        }
    }
    Ok(())
}

impl DeletionPlan {
    /// Adds a run that the caller must own. Hits come run by run.
    fn note_run(&mut self, run: &RunName, first: Option<u32>) {
        if self.runs.last().is_none_or(|(last, _)| last != run) {
            self.runs.push((run.clone(), first));
        }
    }
}

/// Refuses a run that is named without its project if several projects have one.
fn check_projects(tables: &mut dyn Tables, query: &query::Query) -> Result<()> {
    for name in query.runs_without_project() {
        let rows = tables.runs(&RunSelect::Named(name.to_owned()))?;
        if rows.len() > 1 {
            return Err(several_projects(name, rows.iter().map(|row| row.decl.run.project.as_str())));
        }
    }
    Ok(())
}

/// An attribute as a removal record names it: an unflushed one is in the same commit.
fn named(id: AttributeId, session: &Session) -> Result<AttributeId> {
    if id.writer.is_some() {
        return Ok(id);
    }
    if id.sequence != if session.transaction().is_some() { OWN_TRANSACTION } else { OWN } {
        return Err(Error::conflict(
            "an attribute to delete is not flushed and belongs to another transaction",
        )
        .with_hint("flush first, or delete it outside of the transaction"));
    }
    Ok(AttributeId { sequence: 0, ..id })
}

/// Runs to change: names are literal, and one that several projects have is refused.
pub fn runs_to_change(reader: &EngineReader, query: &Query) -> Result<Vec<RunInfo>> {
    let query = query.exact();
    reader.ask(&query, |tables| {
        check_projects(tables, &query)?;
        query::runs(tables, &query)
    })
}
