//! Declarations of a transfer: runs with their parameters, steps with their times, variables, tags.
//!
//! Invariants:
//! * the target's own declarations count. A contradiction is Conflict, before any field moves;
//! * a move declares all of it again, including equal declarations of the target, and removes from the source exactly
//!   the declarations that it saw before it read their content.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use fieldstone_core::value::Value;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    ArrayGroup, ImportDecl, Record, RunDecl, RunName, RunPhase, StepDecl, TagDecl, VariableDecl, VariableName,
};
use fieldstone_store::api::FieldAccess;

use super::chosen::{Chosen, of_run, query};
use crate::Session;
use crate::Store;
use crate::catalog::{DeclarationRow, Query, TagInfo};

/// Maximum number of steps in one record.
pub const STEPS: usize = 50_000;

/// The declarations of one run.
#[derive(Debug)]
pub struct DeclaredRun {
    pub run: RunName,
    /// `None` if only fields name it.
    pub decl: Option<RunDecl>,
    /// The steps without a field in the transfer.
    pub steps: Vec<StepDecl>,
    pub variables: Vec<VariableDecl>,
    /// The groups of arrays of which a variable is taken, with all their sets.
    pub groups: Vec<ArrayGroup>,
    pub imports: Vec<ImportDecl>,
    /// The places of all declarations of the run.
    pub rows: Vec<DeclarationRow>,
}

/// The declarations of all runs of a transfer.
pub fn declared(from: &Store, chosen: &Chosen) -> Result<Vec<DeclaredRun>> {
    let catalog = from.catalog();
    let mut all = Vec::with_capacity(chosen.runs.len());
    for (run, own) in &chosen.runs {
        let rows = catalog.declarations(run, &Session::default())?;
        let info = match catalog.run(Some(&run.project), &run.name, &Session::default()) {
            // Removed in between; its fields are in the snapshot.
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            info => Some(info?),
        };
        let session = Session::default();
        let (groups, imports) = match info {
            Some(_) => (catalog.array_groups(run, &session)?, catalog.imports(run, &session)?),
            None => (Vec::new(), Vec::new()),
        };
        let is_taken = |group: &ArrayGroup| {
            own.is_whole() || group.sets.iter().any(|set| own.variables.contains(&set.variable.name))
        };
        let groups: Vec<ArrayGroup> = groups.into_iter().filter(is_taken).collect();
        let in_group = |name: &VariableName| {
            groups.iter().flat_map(|group| &group.sets).any(|set| set.variable == *name)
        };
        let of_fields = own.field_steps();
        let steps = catalog.steps(&query(of_run(run)))?.into_iter();
        let steps = steps.filter(|row| own.steps.contains(&row.step));
        let shown = |row: &StepDecl| row.time.is_none() && of_fields.contains(&row.number);
        let steps = steps.map(|row| StepDecl { number: row.step, time: row.time }).filter(|row| !shown(row));
        let variables = catalog.variables(&query(of_run(run)))?.into_iter();
        let variables = variables.filter(|row| {
            let name = &row.decl.variable;
            row.declared && (own.variables.contains(&name.name) || in_group(name))
        });
        all.push(DeclaredRun {
            run: run.clone(),
            decl: info.filter(|info| info.declared).map(|info| info.decl),
            steps: steps.collect(),
            variables: variables.map(|row| row.decl).map(|decl| without_extent(decl, &groups)).collect(),
            groups,
            imports,
            rows,
        });
    }
    Ok(all)
}

/// A variable as its group declares it: if its first extent is open, the catalog shows the shape of one of its fields.
fn without_extent(decl: VariableDecl, groups: &[ArrayGroup]) -> VariableDecl {
    match is_open(&decl, groups) {
        true => VariableDecl { shape: None, ..decl },
        false => decl,
    }
}

/// Whether a set of one of some groups leaves the extent of a variable open.
fn is_open(decl: &VariableDecl, groups: &[ArrayGroup]) -> bool {
    let mut sets = groups.iter().flat_map(|group| &group.sets);
    sets.any(|set| set.variable == decl.variable && set.shape.contains(&None))
}

/// The result of declarations in the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The target has them.
    Declared,
    /// Their run does not exist before its fields do.
    Later,
    /// Another user has declared them, and may remove them.
    Foreign,
}

impl DeclaredRun {
    /// Declares it in the target, too. `again`: including declarations that the target has.
    pub fn put(&self, to: &Store, transaction: Id, again: bool) -> Result<Outcome> {
        let catalog = to.catalog();
        let known = match catalog.run(Some(&self.run.project), &self.run.name, &Session::from(transaction)) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            found => Some(found?),
        };
        let mut alike = Vec::new();
        if let Some(decl) = &self.decl {
            let bare = RunDecl { state: None, ..decl.clone() };
            catalog.create_run(bare.clone(), true, &Session::from(transaction))?;
            if known.as_ref().is_some_and(|known| known.declared) {
                alike.push(Record::Runs(vec![bare]));
            }
        } else if !self.is_empty() && known.is_none() {
            return Ok(Outcome::Later);
        }
        self.put_state(to, transaction, &mut alike)?;
        let there = catalog.steps(&query(of_run(&self.run)))?;
        let there: BTreeSet<i64> = there.into_iter().map(|row| row.step).collect();
        let (known, new): (Vec<StepDecl>, Vec<StepDecl>) =
            self.steps.iter().cloned().partition(|step| there.contains(&step.number));
        let timed = known.iter().filter(|step| step.time.is_some()).cloned();
        let new: Vec<StepDecl> = new.into_iter().chain(timed).collect();
        for steps in new.chunks(STEPS) {
            catalog.create_steps(&self.run, steps.to_vec(), &Session::from(transaction))?;
        }
        alike.extend(known.chunks(STEPS).map(|steps| Record::Steps(self.run.clone(), steps.to_vec())));
        if !self.variables.is_empty() {
            let there = catalog.variables(&query(of_run(&self.run)))?.into_iter().filter(|row| row.declared);
            let there: Vec<VariableName> = there.map(|row| row.decl.variable).collect();
            // Of an open extent the target shows another field's.
            let is_shown =
                |decl: &&VariableDecl| !(is_open(decl, &self.groups) && there.contains(&decl.variable));
            let new = self.variables.iter().filter(is_shown).cloned().collect();
            catalog.create_variables(&self.run, new, &Session::from(transaction))?;
            let known = self.variables.iter().filter(|decl| there.contains(&decl.variable));
            let known: Vec<VariableDecl> = known.cloned().collect();
            if !known.is_empty() {
                alike.push(Record::Variables(self.run.clone(), known));
            }
        }
        self.put_arrays(to, transaction, &mut alike)?;
        if !again || alike.is_empty() {
            return Ok(Outcome::Declared);
        }
        match catalog.declare_again(&self.run, alike, &Session::from(transaction)) {
            Err(e) if e.kind() == ErrorKind::Denied => Ok(Outcome::Foreign),
            declared => declared.map(|()| Outcome::Declared),
        }
    }

    fn is_empty(&self) -> bool {
        let DeclaredRun { steps, variables, groups, imports, .. } = self;
        steps.is_empty() && variables.is_empty() && groups.is_empty() && imports.is_empty()
    }

    /// Its groups and imports.
    fn put_arrays(&self, to: &Store, transaction: Id, alike: &mut Vec<Record>) -> Result<()> {
        let (catalog, session) = (to.catalog(), Session::from(transaction));
        if !self.groups.is_empty() {
            let there = catalog.array_groups(&self.run, &session)?;
            catalog.create_groups(&self.run, self.groups.clone(), &session)?;
            let is_known = |group: &&ArrayGroup| there.iter().any(|other| other.name == group.name);
            let known: Vec<ArrayGroup> = self.groups.iter().filter(is_known).cloned().collect();
            alike.extend((!known.is_empty()).then(|| Record::Groups(self.run.clone(), known)));
        }
        if !self.imports.is_empty() {
            let there = catalog.imports(&self.run, &session)?;
            catalog.create_imports(&self.run, self.imports.clone(), &session)?;
            let known: Vec<ImportDecl> =
                self.imports.iter().filter(|import| there.contains(import)).cloned().collect();
            alike.extend((!known.is_empty()).then(|| Record::Imports(self.run.clone(), known)));
        }
        Ok(())
    }

    /// The run's end, if the target does not record it. Only its writer can mark it as running.
    fn put_state(&self, to: &Store, transaction: Id, alike: &mut Vec<Record>) -> Result<()> {
        let state = self.decl.as_ref().and_then(|decl| decl.state.clone());
        let Some(state) = state.filter(|state| state.phase != RunPhase::Running) else { return Ok(()) };
        let there = to.catalog().run(Some(&self.run.project), &self.run.name, &Session::from(transaction))?;
        match there.decl.state {
            None => match to.catalog().set_state(&self.run, state, &Session::from(transaction)) {
                // Another user's run: its attributes are still taken.
                Err(e) if e.kind() == ErrorKind::Denied => {}
                said => said?,
            },
            Some(other) if (other.phase, &other.note) == (state.phase, &state.note) => {
                alike.push(Record::States(vec![(self.run.clone(), state)]));
            }
            Some(_) => {}
        }
        Ok(())
    }
}

/// Tags of both stores, by name.
pub struct Tags {
    ours: BTreeMap<String, Vec<TagInfo>>,
    theirs: BTreeMap<String, Vec<TagInfo>>,
    /// Names whose tags are all in the target.
    there: HashSet<String>,
}

impl Tags {
    pub fn of(from: &Store, to: &Store) -> Result<Tags> {
        Ok(Tags { ours: by_name(from)?, theirs: by_name(to)?, there: HashSet::new() })
    }

    /// Their names in the source.
    pub fn names(&self) -> Vec<String> {
        self.ours.keys().cloned().collect()
    }

    /// The tag with a name and a number in the source, or in the target.
    pub fn get(&self, name: &str, version: i64, in_source: bool) -> Option<&TagDecl> {
        let tags = if in_source { &self.ours } else { &self.theirs };
        tags.get(name)?.iter().find(|tag| tag.version == version).map(|tag| &tag.decl)
    }

    /// All tags of a name in the source.
    pub fn of_name(&self, name: &str) -> Vec<TagDecl> {
        self.ours.get(name).into_iter().flatten().map(|tag| tag.decl.clone()).collect()
    }

    /// Gives the target all tags of a name. Conflict if it has a different one under such a number.
    pub fn put(&mut self, from: &Store, to: &Store, transaction: Id, name: &str) -> Result<()> {
        if !self.there.insert(name.to_owned()) {
            return Ok(());
        }
        let theirs = self.theirs.entry(name.to_owned()).or_default();
        for tag in self.ours.get(name).into_iter().flatten() {
            if theirs.iter().any(|known| known.decl == tag.decl) {
                continue;
            }
            if let Some(other) = theirs.iter().find(|known| known.version == tag.version) {
                return Err(Error::conflict(format!(
                    "tag '{name}' version {} is {} in {}, but {} in {}",
                    tag.version,
                    text(&tag.decl),
                    from.url(),
                    text(&other.decl),
                    to.url()
                ))
                .with_hint(
                    "nothing was copied; declare the tag under another version, or use another store",
                ));
            }
            theirs.extend(to.catalog().create_tags(vec![tag.decl.clone()], &Session::from(transaction))?);
        }
        Ok(())
    }
}

fn by_name(store: &Store) -> Result<BTreeMap<String, Vec<TagInfo>>> {
    let mut tags: BTreeMap<String, Vec<TagInfo>> = BTreeMap::new();
    for tag in store.catalog().tags(&Query::all())? {
        tags.entry(tag.decl.name.clone()).or_default().push(tag);
    }
    Ok(tags)
}

fn text(tag: &TagDecl) -> String {
    match tag.unit.as_str() {
        "" => format!("{} without unit", tag.kind.name()),
        unit => format!("{} in {unit}", tag.kind.name()),
    }
}

/// The names of meshes that runs use.
pub fn mesh_names(runs: &[DeclaredRun]) -> BTreeSet<String> {
    let groups = runs.iter().flat_map(|of| &of.groups).filter_map(|group| group.mesh.clone());
    let attrs = runs.iter().flat_map(|of| &of.variables).flat_map(|decl| &decl.attrs);
    let of_attrs = attrs.filter_map(|(name, value)| match value {
        Value::Text(mesh) if name == "mesh" => Some(mesh.clone()),
        _ => None,
    });
    groups.chain(of_attrs).collect()
}
