//! Removes catalog entries from a store whose fields were moved away.
//!
//! By request: attributes on a variable at a step go with the last field there; those on a step, a whole variable or
//! the run go with it, when nothing of it stays. By hits: these attributes go. A run, step or variable that lost its
//! last field and attribute is removed with its declaration, if the caller owns it. So is a group of arrays that lost the last
//! field of its sets, unless a job has its run open; imports go with their run.
//!
//! Invariant: attributes and declarations are identified by the place where they were written, so that later writes and
//! declarations stay, even those of a move that brings the run back.

use std::collections::BTreeSet;

use fieldstone_core::key::FieldKey;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::catalog::{ArrayGroup, AttributeId, RunName, RunPhase, VariableName};
use fieldstone_store::api::{FieldAccess, ListOptions};

use super::chosen::{OfRun, of_run, query};
use super::fields::FieldPlan;
use super::places::{Places, further_of, named_by};
use super::removal::Removal;
use crate::Session;
use crate::Store;
use crate::catalog::{DeclarationRow, Declared, Hit};

/// Number of attributes removed by one flush.
const FLUSH: usize = 65_536;

/// The part of one run that goes, and the part that stays.
pub struct Leaving<'a> {
    from: &'a Store,
    run: &'a RunName,
    removal: &'a Removal,
    by_hits: bool,
    /// Places at which fields stay.
    fields: Places,
    variables: BTreeSet<String>,
    steps: BTreeSet<i64>,
    any: bool,
    gone: Vec<(AttributeId, u32)>,
    /// Attributes that go with a step, a variable or the run.
    later: Vec<(Option<String>, Option<i64>, AttributeId, u32)>,
}

impl<'a> Leaving<'a> {
    /// Finds the fields of a run that stay.
    pub fn new(
        from: &'a Store,
        run: &'a RunName,
        plan: &FieldPlan,
        removal: &'a Removal,
        by_hits: bool,
    ) -> Result<Leaving<'a>> {
        let mut leaving = Leaving {
            from,
            run,
            removal,
            by_hits,
            fields: Places::default(),
            variables: BTreeSet::new(),
            steps: BTreeSet::new(),
            any: false,
            gone: Vec::new(),
            later: Vec::new(),
        };
        let schema = from.schema();
        let pairs = match from.catalog().key_of(run, None, None) {
            // This schema has no key with such a run.
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
                leaving.field_stays(&key);
            }
        }
        Ok(leaving)
    }

    /// Records that fields of these keys stay, if they belong to the run.
    pub fn fields_stay<'k>(&mut self, keys: impl Iterator<Item = &'k FieldKey>) {
        let schema = self.from.schema();
        for key in keys {
            let of = schema.run_of(key);
            if of.is_some_and(|(project, name)| (&project, &name) == (&self.run.project, &self.run.name)) {
                self.field_stays(key);
            }
        }
    }

    /// Records that the field of a key of the run stays.
    fn field_stays(&mut self, key: &FieldKey) {
        let schema = self.from.schema();
        let (variable, step) = (schema.variable_of(key), schema.step_of(key));
        self.stays(variable.as_deref(), step);
        self.fields.add(variable.as_deref(), step, further_of(&schema, self.run, key));
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

    /// Takes an attribute of the run, and whether it was carried over.
    pub fn hear(&mut self, hit: &Hit, taken: bool) -> Result<()> {
        let variable = hit.variable.as_deref();
        let place = || (variable.map(str::to_owned), hit.step);
        if taken && (self.by_hits || (variable.is_some() && hit.step.is_some())) {
            if !self.by_hits && self.fields.has(variable, hit.step, &named_by(hit)) {
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
        self.from.catalog().remove_attributes(self.run, &gone, self.removal.session())?;
        self.removal.relieve(self.from)
    }

    /// Removes the rest, after all attributes of the run were passed, and the target has all fields. `rows`: the
    /// declarations that the target received; `None` if none of them go.
    pub fn end(mut self, own: &OfRun, rows: Option<&[DeclarationRow]>, taken: &[ArrayGroup]) -> Result<()> {
        let catalog = self.from.catalog();
        let groups = catalog.array_groups(self.run, &Session::default())?;
        let is_open = !groups.is_empty() && is_open(self.from, self.run)?;
        let mut gone_groups = BTreeSet::new();
        for group in groups {
            let mut sets = group.sets.iter();
            // A group only gains sets.
            let is_taken =
                taken.iter().any(|known| known.name == group.name && known.sets.len() == group.sets.len());
            let goes = is_taken && !sets.any(|set| self.variables.contains(&set.variable.name));
            if goes && !is_open {
                gone_groups.insert(group.name);
                continue;
            }
            self.any = true;
            self.variables.extend(group.sets.into_iter().map(|set| set.variable.name));
        }
        let mut gone_steps = BTreeSet::new();
        for row in catalog.steps(&query(of_run(self.run)))? {
            match own.steps.contains(&row.step) && !self.steps.contains(&row.step) {
                true => drop(gone_steps.insert(row.step)),
                false => self.any = true,
            }
        }
        let mut gone_variables: BTreeSet<VariableName> = BTreeSet::new();
        for row in catalog.variables(&query(of_run(self.run)))? {
            let name = row.decl.variable;
            match own.variables.contains(&name.name) && !self.variables.contains(&name.name) {
                true => drop(gone_variables.insert(name)),
                false => self.any = true,
            }
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
        let goes = |row: &&DeclarationRow| match &row.of {
            Declared::Run => !self.any,
            Declared::Step(step) => gone_steps.contains(step),
            Declared::Variable(name) => gone_variables.contains(name),
            Declared::Group(name) => gone_groups.contains(name),
            Declared::Import(_) => !self.any,
        };
        let rows: Vec<DeclarationRow> = rows.unwrap_or_default().iter().filter(goes).cloned().collect();
        if rows.is_empty() {
            return Ok(());
        }
        match catalog.remove_declarations(self.run, &rows, self.removal.session()) {
            // The caller moved attributes in another user's run.
            Err(e) if e.kind() == ErrorKind::Denied && self.by_hits => Ok(()),
            removed => removed,
        }
    }

    /// Its run.
    pub fn run(&self) -> &RunName {
        self.run
    }
}

/// Whether a job may write further steps of a run: the run says so, or a folder of its files does.
fn is_open(from: &Store, run: &RunName) -> Result<bool> {
    let info = match from.catalog().run(Some(&run.project), &run.name, &Session::default()) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(false),
        info => info?,
    };
    let is_running = info.decl.state.is_some_and(|state| state.phase == RunPhase::Running);
    Ok(is_running || crate::arrays::is_open(from, run))
}
