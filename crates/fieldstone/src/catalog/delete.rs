//! Deletions: a query says what goes, and records of removal say so in the log. What stands below goes
//! with it: steps, variables and attributes with their run, attributes with their step, variable or tag.
//!
//! A deletion is a version like any other: an older version of the store still has what was deleted, and
//! what is made under the same name later lives.

use fieldstone_catalog::engine::{NO_STEP, Tables};
use fieldstone_catalog::query;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{AttributeId, Record, Removal};
use fieldstone_store::api::{ListOptions, RemoveOptions};

use super::engine::{OWN, OWN_TRANSACTION, View};
use super::inner::Inner;
use super::{DeleteReport, Deletion};

/// Attributes that one record names.
const IDS: usize = 65_536;

/// What is to go.
#[derive(Debug, Default)]
struct Plan {
    removals: Vec<Removal>,
    attributes: Vec<AttributeId>,
    /// Fields below what goes.
    fields: Vec<Vec<(String, String)>>,
    report: DeleteReport,
}

impl Inner {
    /// Deletes what a query finds, or says what it would delete.
    pub fn delete(
        &self,
        what: &Deletion,
        fields: bool,
        doit: bool,
        session: Option<Id>,
    ) -> Result<DeleteReport> {
        if doit {
            self.store.archive_side(Vec::new(), session)?;
        }
        if fields && matches!(what, Deletion::Tags(_) | Deletion::Attributes(_)) {
            return Err(Error::invalid("no field belongs to a tag or an attribute")
                .with_hint("fields go with runs, steps and variables"));
        }
        let mut plan = self.look(View::All(session), &mut |index| self.plan(index, what))?;
        if fields {
            for pairs in &plan.fields {
                let request = request_of(pairs);
                plan.report.fields += match doit {
                    true => self.store.remove(&request, &RemoveOptions { transaction: session })?,
                    false => self.count_fields(&request, session)?,
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
                self.emit(session, records)?;
                self.known().note_deletion(session);
            }
            plan.report.done = true;
        }
        Ok(plan.report)
    }

    fn plan(&self, tables: &mut dyn Tables, what: &Deletion) -> Result<Plan> {
        let mut plan = Plan::default();
        let all = NO_STEP..=i64::MAX;
        match what {
            Deletion::Runs(query) => {
                for run in query::runs(tables, query)? {
                    let run = run.decl.run;
                    plan.report.runs += 1;
                    plan.fields.push(self.key_of(&run, None, None)?);
                    if let Some(row) = super::declare::run_row(tables, &run)? {
                        plan.report.steps += tables.steps(row.id, all.clone())?.len() as u64;
                        plan.report.variables += tables.variables(row.id)?.len() as u64;
                        let spans = tables.spans_of_run(row.id)?;
                        plan.report.attributes += spans.iter().map(|span| span.n).sum::<u64>();
                    }
                    plan.removals.push(Removal::Run(run));
                }
            }
            Deletion::Steps(query) => {
                for step in query::steps(tables, query)? {
                    plan.report.steps += 1;
                    plan.fields.push(self.key_of(&step.run, None, Some(step.step))?);
                    if let Some(row) = super::declare::run_row(tables, &step.run)? {
                        for span in tables.spans_of_run(row.id)? {
                            let series = tables.series(row.id, span.tag, step.step..=step.step)?;
                            plan.report.attributes += series.iter().map(|series| series.n).sum::<u64>();
                        }
                    }
                    plan.removals.push(Removal::Step(step.run, step.step));
                }
            }
            Deletion::Variables(query) => {
                for variable in query::variables(tables, query)? {
                    let name = variable.decl.variable;
                    plan.report.variables += 1;
                    plan.fields.push(self.key_of(&variable.run, Some(&name.name), None)?);
                    if let Some(row) = super::declare::run_row(tables, &variable.run)? {
                        let known = tables.variables(row.id)?;
                        let id = known.iter().find(|row| row.decl.variable == name).map(|row| row.id);
                        for span in tables.spans_of_run(row.id)? {
                            let series = tables.series(row.id, span.tag, all.clone())?;
                            let of = series.iter().filter(|series| Some(series.variable) == id);
                            plan.report.attributes += of.map(|series| series.n).sum::<u64>();
                        }
                    }
                    plan.removals.push(Removal::Variable(variable.run, name));
                }
            }
            Deletion::Tags(query) => {
                let rows = tables.tags()?;
                for tag in query::tags(tables, query)? {
                    plan.report.tags += 1;
                    if let Some(row) = rows.iter().find(|row| row.decl == tag.decl) {
                        let spans = tables.spans(row.id, None)?;
                        plan.report.attributes += spans.iter().map(|span| span.n).sum::<u64>();
                    }
                    plan.removals.push(Removal::Tag(tag.decl));
                }
            }
            Deletion::Attributes(query) => {
                plan.attributes = query::collect(tables, query)?.id;
                plan.report.attributes = plan.attributes.len() as u64;
            }
        }
        Ok(plan)
    }

    fn count_fields(&self, request: &Request, session: Option<Id>) -> Result<u64> {
        let options = ListOptions { transaction: session, ..ListOptions::default() };
        let mut fields = 0;
        for entry in self.store.list(request, &options)? {
            entry?;
            fields += 1;
        }
        Ok(fields)
    }
}

/// An attribute as a record of removal names it: one that is not flushed is of the same commit.
fn named(id: AttributeId, session: Option<Id>) -> Result<AttributeId> {
    if id.writer != Id::NONE {
        return Ok(id);
    }
    if id.sequence != if session.is_some() { OWN_TRANSACTION } else { OWN } {
        return Err(Error::conflict("an attribute to delete is not flushed, and not of this transaction")
            .with_hint("flush first, or delete it outside of the transaction"));
    }
    Ok(AttributeId { sequence: 0, ..id })
}

/// The request for all fields with these values.
pub fn request_of(pairs: &[(String, String)]) -> Request {
    let mut request = Request::new();
    for (keyword, value) in pairs {
        request.set(keyword.as_str(), Values::list([value.as_str()]));
    }
    request
}
