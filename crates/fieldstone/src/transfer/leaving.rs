//! What goes from the catalog of a store whose fields were moved away.
//!
//! By request: attributes on a variable at a step go with the last field there; those on a step, a whole variable or
//! the run go with it, when nothing of it stays. By hits: these attributes go. A run, step or variable whose last field
//! and attribute went is removed with its declaration, by who owns it; a run with groups of arrays or imports stays.
//!
//! Invariant: attributes are removed by their ids, so that a newer one stays. What others write on a step or run in
//! the moment that its declaration is removed is older than the removal or newer, as with every deletion.

use std::collections::{BTreeSet, HashSet};

use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{AttributeId, Removal, RunName, VariableName};
use fieldstone_store::api::ListOptions;

use super::chosen::{OfRun, of_run, query};
use super::fields::FieldPlan;
use crate::Store;
use crate::catalog::Hit;
use fieldstone_core::request::{Request, Values};

/// Attributes that are removed by one flush.
const FLUSH: usize = 65_536;

/// What goes from one run, and what stays.
pub struct Leaving<'a> {
    from: &'a Store,
    run: &'a RunName,
    transaction: Id,
    by_hits: bool,
    /// Variables and steps of fields that stay.
    fields: HashSet<(Option<String>, Option<i64>)>,
    variables: BTreeSet<String>,
    steps: BTreeSet<i64>,
    any: bool,
    gone: Vec<(AttributeId, u32)>,
    /// Those that go with a step, a variable or the run.
    later: Vec<(Option<String>, Option<i64>, AttributeId, u32)>,
}

impl<'a> Leaving<'a> {
    /// Looks for the fields of a run that stay.
    pub fn new(
        from: &'a Store,
        run: &'a RunName,
        plan: &FieldPlan,
        transaction: Id,
        by_hits: bool,
    ) -> Result<Leaving<'a>> {
        let mut leaving = Leaving {
            from,
            run,
            transaction,
            by_hits,
            fields: HashSet::new(),
            variables: BTreeSet::new(),
            steps: BTreeSet::new(),
            any: false,
            gone: Vec::new(),
            later: Vec::new(),
        };
        let schema = from.schema();
        let pairs = match from.catalog().key_of(run, None, None) {
            // No key has such a run, by this schema.
            Err(e) if e.kind() == ErrorKind::Invalid => return Ok(leaving),
            pairs => pairs?,
        };
        let mut request = Request::new();
        for (keyword, value) in pairs {
            request.set(keyword, Values::list([value]));
        }
        for entry in from.list(&request, &ListOptions::default())? {
            let key = entry?.key;
            let of_run = schema
                .run_of(&key)
                .is_some_and(|(project, name)| (&project, &name) == (&run.project, &run.name));
            if of_run && !plan.holds(&key) {
                let variable = schema.variable_of(&key).map(|name| name.into_owned());
                let step = schema.step_of(&key);
                leaving.stays(variable.as_deref(), step);
                leaving.fields.insert((variable, step));
            }
        }
        Ok(leaving)
    }

    fn stays(&mut self, variable: Option<&str>, step: Option<i64>) {
        self.any = true;
        self.steps.extend(step);
        if let Some(name) = variable
            && !self.variables.contains(name)
        {
            self.variables.insert(name.to_owned());
        }
    }

    /// An attribute of the run, and whether it was carried over.
    pub fn hear(&mut self, hit: &Hit, taken: bool) -> Result<()> {
        let variable = hit.variable.as_deref();
        let place = || (variable.map(str::to_owned), hit.step);
        if taken && (self.by_hits || (variable.is_some() && hit.step.is_some())) {
            if !self.by_hits && self.fields.contains(&place()) {
                self.stays(variable, hit.step);
                return Ok(());
            }
            self.gone.push((hit.id, hit.user));
            return if self.gone.len() >= FLUSH { self.remove() } else { Ok(()) };
        }
        match taken {
            true => {
                let (name, step) = place();
                self.later.push((name, step, hit.id, hit.user));
            }
            false => self.stays(variable, hit.step),
        }
        Ok(())
    }

    fn remove(&mut self) -> Result<()> {
        let gone = std::mem::take(&mut self.gone);
        if gone.is_empty() {
            return Ok(());
        }
        self.from.catalog().remove_attributes(self.run, &gone, Some(self.transaction))?;
        self.from.flush(Some(self.transaction))
    }

    /// Removes the rest, once all attributes of the run were heard of.
    pub fn end(mut self, own: &OfRun) -> Result<()> {
        let catalog = self.from.catalog();
        let groups = catalog.array_groups(self.run, None)?;
        self.any |= !groups.is_empty() || !catalog.imports(self.run, None)?.is_empty();
        self.variables.extend(groups.into_iter().flat_map(|group| group.sets).map(|set| set.variable.name));
        let mut rows = Vec::new();
        let mut gone_steps = BTreeSet::new();
        for row in catalog.steps(&query(of_run(self.run)))? {
            if own.steps.contains(&row.step) && !self.steps.contains(&row.step) {
                gone_steps.insert(row.step);
                rows.push(Removal::Step(self.run.clone(), row.step));
            } else {
                self.any = true;
            }
        }
        let mut gone_variables: BTreeSet<VariableName> = BTreeSet::new();
        for row in catalog.variables(&query(of_run(self.run)))? {
            let name = row.decl.variable;
            if own.variables.contains(&name.name) && !self.variables.contains(&name.name) {
                rows.push(Removal::Variable(self.run.clone(), name.clone()));
                gone_variables.insert(name);
            } else {
                self.any = true;
            }
        }
        if !self.any {
            rows = vec![Removal::Run(self.run.clone())];
        }
        for (variable, step, id, user) in std::mem::take(&mut self.later) {
            let goes = match (variable, step) {
                (Some(name), _) => !self.variables.contains(&name),
                (None, Some(step)) => gone_steps.contains(&step),
                (None, None) => !self.any,
            };
            if goes {
                self.gone.push((id, user));
            }
        }
        self.remove()?;
        if rows.is_empty() {
            return Ok(());
        }
        match catalog.remove_rows(self.run, rows, Some(self.transaction)) {
            // Somebody moved what he wrote in another's run.
            Err(e) if e.kind() == ErrorKind::Denied && self.by_hits => Ok(()),
            removed => removed,
        }
    }
}
