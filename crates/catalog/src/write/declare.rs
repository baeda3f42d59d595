//! Declarations: runs, variables, steps and tags, each checked against what is known.
//!
//! Equal to what is there: nothing is written. Otherwise than what is there: Conflict that names both.
//! Writers that do not see each other may contradict all the same; then the older one holds, and
//! [`Catalog::conflicts`](crate::live::Catalog::conflicts) names the other.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::engine::{Index, RunRow, RunSelect, Tables, TagRow, VariableRow};
use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::catalog::{Annotate, Record, RunDecl, RunName, StepDecl, VariableDecl, VariableName};
use fieldstone_format::setting::Exist;
use fieldstone_journal::Session;

use super::agreement::{check_variable, field_difference, run_difference, variable_difference};
use super::declaration_cache::Lookup;
use super::shown::{run_text, variable_text};
use crate::live::consistent_view::{ConsistentView, Visibility};
use crate::live::inner::Inner;
use crate::query::{RunInfo, TagInfo, VariableInfo};

/// Names that an error suggests are sought among so many.
const SUGGESTED: usize = 10_000;

/// The row of a run.
pub fn run_row(tables: &mut dyn Tables, run: &RunName) -> Result<Option<RunRow>> {
    let rows = tables.runs(&RunSelect::Named(run.name.clone()))?;
    Ok(rows.into_iter().find(|row| row.decl.run == *run))
}

fn variable_info(run: &RunName, row: VariableRow) -> VariableInfo {
    VariableInfo { run: run.clone(), decl: row.decl, declared: row.declared }
}

pub(super) fn tag_info(row: TagRow) -> TagInfo {
    TagInfo { decl: row.decl, version: row.version }
}

impl Inner {
    /// What a declaration is checked against: what everybody sees, and where that may not do also what a session
    /// holds.
    pub(super) fn visibility<'a>(&self, session: &'a Session) -> Visibility<'a> {
        let uncertain = self.declarations().deleted(session.key()) || session.transaction().is_some();
        if uncertain { Visibility::All(session) } else { Visibility::Synced }
    }

    /// Asks the engine as it stands, which costs no wait; then, where it does not know, after it has
    /// followed the logs, which are looked at once.
    fn search<T>(
        &self,
        session: &Session,
        mut find: impl FnMut(&mut Index) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        let visibility = self.visibility(session);
        self.search_from(self.consistent_view(visibility)?, visibility, &mut find)
    }

    fn search_from<T>(
        &self,
        view: ConsistentView,
        visibility: Visibility<'_>,
        find: &mut dyn FnMut(&mut Index) -> Result<Option<T>>,
    ) -> Result<Option<T>> {
        if matches!(visibility, Visibility::Synced)
            && let Some(found) = self.look_from(view.clone(), Visibility::AsIs, find)?
        {
            return Ok(Some(found));
        }
        self.look_from(view, visibility, find)
    }

    /// Who owns a run, by one look at the logs.
    pub fn run_owner(&self, session: &Session, run: &RunName) -> Result<Option<u32>> {
        let visibility = self.visibility(session);
        let view = self.consistent_view(visibility)?;
        let known = self.declarations().run(session.key(), run);
        let first = match known {
            Lookup::Hit(info) => info.first,
            // One that was deleted stays its owner's.
            _ => self.search_from(view.clone(), visibility, &mut |index| index.first_user(run))?,
        };
        Ok(self.owner_at(&view.seen.feed, run, first))
    }

    /// The run, where there is one.
    pub fn find_run(&self, session: &Session, run: &RunName) -> Result<Option<RunInfo>> {
        let known = self.declarations().run(session.key(), run);
        if let Lookup::Hit(info) = known {
            return Ok(Some(info));
        }
        let found = self.search(session, |tables| Ok(run_row(tables, run)?.map(RunInfo::of)));
        let found = or_stale(found, known)?;
        if let Some(info) = &found {
            self.declarations().cache_run(session.key(), info.clone(), false);
        }
        Ok(found)
    }

    /// The run, where there is one, and who owns it, by one look at the logs.
    fn run_and_owner(&self, session: &Session, run: &RunName) -> Result<(Option<RunInfo>, Option<u32>)> {
        let known = self.declarations().run(session.key(), run);
        if let Lookup::Hit(info) = known {
            let owner = if info.declared { None } else { self.run_owner(session, run)? };
            return Ok((Some(info), owner));
        }
        let visibility = self.visibility(session);
        let view = self.consistent_view(visibility)?;
        let mut first = None;
        let found = self.search_from(view.clone(), visibility, &mut |index| {
            first = index.first_user(run)?;
            Ok(run_row(index, run)?.map(RunInfo::of))
        });
        let found = or_stale(found, known)?;
        if let Some(info) = &found {
            first = info.first;
            self.declarations().cache_run(session.key(), info.clone(), false);
        }
        Ok((found, self.owner_at(&view.seen.feed, run, first)))
    }

    /// Refuses a run that is not there, naming those that are like it; else who may annotate it.
    pub fn need_run(&self, session: &Session, run: &RunName) -> Result<Annotate> {
        let known = self.declarations().has_run(session.key(), run);
        if let Lookup::Hit(annotate) = known {
            return Ok(annotate);
        }
        match self.find_run(session, run)? {
            Some(info) => Ok(info.decl.annotate),
            None => Err(self.no_run(session, &run.name, &run_text(run))),
        }
    }

    /// What writes to a run do where their field is there; `None` where neither it nor anybody says so.
    pub fn exist_of(&self, session: &Session, run: &RunName) -> Result<Option<Exist>> {
        let known = self.declarations().exist_of(session.key(), run);
        match known {
            Lookup::Hit(exist) => Ok(exist),
            _ => Ok(self.find_run(session, run)?.and_then(|info| info.decl.exist)),
        }
    }

    /// The error for a run that is not there.
    pub fn no_run(&self, session: &Session, name: &str, shown: &str) -> Error {
        let error = Code::RunNotFound.error(format!("there is no run {shown}"));
        let mut names: Vec<String> = Vec::new();
        let listed = self.look(Visibility::All(session), &mut |tables| {
            names.clear();
            tables.run_names(&mut |_, run| {
                names.push(run.name.clone());
                Ok(match names.len() < SUGGESTED {
                    true => crate::engine::Flow::More,
                    false => crate::engine::Flow::Stop,
                })
            })
        });
        drop(listed);
        match did_you_mean(name, names.iter().map(String::as_str)) {
            Some(hint) => error.with_hint(hint),
            None => error.with_hint("make it with create_run"),
        }
    }

    /// Declares a run.
    pub fn create_run(&self, mut run: RunDecl, exist_ok: bool, session: &Session) -> Result<()> {
        self.journal.check_writable()?;
        if run.created == 0 {
            run.created = self.env.clock.now();
        }
        Record::Runs(vec![run.clone()]).check()?;
        let _declaring = self.declaring();
        let (known, owner) = self.run_and_owner(session, &run.run)?;
        if let Some(known) = known.filter(|known| known.declared) {
            let text = run_text(&run.run);
            if !exist_ok {
                return Err(Code::RunExists
                    .error(format!("there is a run {text} already"))
                    .with_hint("say that it may exist (exist_ok), or choose another name"));
            }
            return match run_difference(&known.decl, &run) {
                None => Ok(()),
                Some(what) => Err(Code::RunDiffers
                    .error(format!("the run {text} is there with another {what}"))
                    .with_hint("choose another name, or keep what can change in attributes")),
            };
        }
        self.claim_run(session, &run.run, owner)?;
        self.emit(session, vec![Record::Runs(vec![run.clone()])])?;
        let first = Some(self.user(session));
        self.declarations().cache_run(session.key(), RunInfo { decl: run, declared: true, first }, true);
        Ok(())
    }

    /// Variables of a run by name: those asked for that are there.
    pub fn find_variables(
        &self,
        session: &Session,
        run: &RunName,
        names: &[VariableName],
    ) -> Result<HashMap<VariableName, VariableInfo>> {
        let mut found = HashMap::new();
        let mut old = HashMap::new();
        for name in names {
            match self.declarations().variable(session.key(), run, name) {
                Lookup::Hit(info) => drop(found.insert(name.clone(), info)),
                Lookup::Stale(info) => drop(old.insert(name.clone(), info)),
                Lookup::Miss => {}
            }
        }
        let missing: Vec<&VariableName> = names.iter().filter(|name| !found.contains_key(*name)).collect();
        if missing.is_empty() {
            return Ok(found);
        }
        let mut seen = HashMap::new();
        let searched = self.search(session, |tables| {
            seen.clear();
            let Some(row) = run_row(tables, run)? else { return Ok(None) };
            for variable in tables.variables(row.id)? {
                seen.insert(variable.decl.variable.clone(), variable_info(run, variable));
            }
            Ok(missing.iter().all(|name| seen.contains_key(*name)).then_some(()))
        });
        match searched {
            Err(e) if e.kind() == fieldstone_core::ErrorKind::Unavailable && old.len() == missing.len() => {
                seen = old;
            }
            other => drop(other?),
        }
        let mut known = self.declarations();
        for name in &missing {
            let versions = seen.values().filter(|info| info.decl.variable.name == name.name);
            let newest = versions.max_by_key(|info| info.decl.variable.version);
            known.cache_newest(session.key(), run, &name.name, newest.cloned().map(Arc::new));
        }
        for name in missing {
            if let Some(info) = seen.get(name) {
                known.cache_variable(session.key(), info.clone(), false);
                found.insert(name.clone(), info.clone());
            }
        }
        Ok(found)
    }

    /// The newest version of a variable, for who writes to it; `None` where there is none. What was declared here is known
    /// at once, what the engine said is believed for a while.
    pub fn variable_to_write(
        &self,
        session: &Session,
        run: &RunName,
        name: &str,
    ) -> Result<Option<Arc<VariableInfo>>> {
        let known = self.declarations().newest(session.key(), run, name);
        if known.is_some() {
            return Ok(known);
        }
        match self.variable(run, name, None, session) {
            Ok(info) => {
                let info = Arc::new(info);
                self.declarations().cache_newest(session.key(), run, name, Some(info.clone()));
                Ok(Some(info))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The error for a variable that is not there.
    pub fn no_variable(&self, session: &Session, run: &RunName, name: &VariableName) -> Error {
        let mut names: Vec<String> = Vec::new();
        let listed = self.look(Visibility::All(session), &mut |tables| {
            names.clear();
            if let Some(row) = run_row(tables, run)? {
                names.extend(tables.variables(row.id)?.into_iter().map(|row| row.decl.variable.name));
            }
            Ok(())
        });
        drop(listed);
        let text = format!("run {} has no variable {}", run_text(run), variable_text(name));
        let error = Code::VariableNotFound.error(text);
        if names.contains(&name.name) {
            return error.with_hint("it has other versions of it");
        }
        match did_you_mean(&name.name, names.iter().map(String::as_str)) {
            Some(hint) => error.with_hint(hint),
            None => error.with_hint("declare it with create_variable, or write a field of it"),
        }
    }

    /// Declares variables of a run.
    pub fn create_variables(
        &self,
        run: &RunName,
        variables: Vec<VariableDecl>,
        session: &Session,
    ) -> Result<()> {
        self.journal.check_writable()?;
        for variable in &variables {
            check_variable(variable)?;
        }
        Record::Variables(run.clone(), variables.clone()).check()?;
        let _declaring = self.declaring();
        self.need_run(session, run)?;
        let names: Vec<VariableName> = variables.iter().map(|decl| decl.variable.clone()).collect();
        let mut there = self.find_variables(session, run, &names)?;
        let mut fresh: Vec<VariableDecl> = Vec::new();
        for decl in variables {
            if let Some(known) = there.get(&decl.variable) {
                let difference = match known.declared {
                    true => variable_difference(&known.decl, &decl),
                    false => field_difference(&known.decl, &decl),
                };
                if let Some(what) = difference {
                    let (name, run) = (variable_text(&decl.variable), run_text(run));
                    return Err(Code::VariableDiffers
                        .error(format!("variable {name} of run {run} has another {what}"))
                        .with_hint("declare it as it is, or as another version"));
                }
                if known.declared {
                    continue;
                }
            }
            let info = VariableInfo { run: run.clone(), decl: decl.clone(), declared: true };
            there.insert(decl.variable.clone(), info);
            fresh.push(decl);
        }
        if fresh.is_empty() {
            return Ok(());
        }
        self.need_own(session, run)?;
        self.emit(session, vec![Record::Variables(run.clone(), fresh.clone())])?;
        let mut known = self.declarations();
        for decl in fresh {
            known.cache_variable(
                session.key(),
                VariableInfo { run: run.clone(), decl, declared: true },
                true,
            );
        }
        Ok(())
    }

    /// Declares steps of a run.
    pub fn create_steps(&self, run: &RunName, steps: Vec<StepDecl>, session: &Session) -> Result<()> {
        self.journal.check_writable()?;
        Record::Steps(run.clone(), steps.clone()).check()?;
        let _declaring = self.declaring();
        self.need_run(session, run)?;
        let (Some(first), Some(last)) =
            (steps.iter().map(|s| s.number).min(), steps.iter().map(|s| s.number).max())
        else {
            return Ok(());
        };
        let mut there: BTreeMap<i64, Option<f64>> = BTreeMap::new();
        self.look(self.visibility(session), &mut |tables| {
            there.clear();
            if let Some(row) = run_row(tables, run)? {
                there.extend(tables.steps(row.id, first..=last)?.into_iter().map(|row| (row.step, row.time)));
            }
            Ok(())
        })?;
        let mut fresh = Vec::new();
        for step in steps {
            let known = self.declarations().step(session.key(), run, step.number);
            let known = known.or_else(|| there.get(&step.number).copied());
            match (known, step.time) {
                (Some(Some(a)), Some(b)) if a.to_bits() != b.to_bits() => {
                    return Err(Code::StepDiffers
                        .error(format!(
                            "step {} of run {} is at time {a}, not {b}",
                            step.number,
                            run_text(run)
                        ))
                        .with_hint("a step has one time: declare another step"));
                }
                // What is there already, or says less than what is there.
                (Some(Some(_)), _) => {}
                (_, time) => {
                    there.insert(step.number, time);
                    fresh.push(step);
                }
            }
        }
        if fresh.is_empty() {
            return Ok(());
        }
        self.need_own(session, run)?;
        for step in &fresh {
            self.declarations().cache_step(session.key(), run, step.number, step.time);
        }
        self.emit(session, vec![Record::Steps(run.clone(), fresh)])
    }
}

/// What was found; where the engine cannot be asked, what was known a while ago.
fn or_stale<T>(found: Result<Option<T>>, known: Lookup<T>) -> Result<Option<T>> {
    match (found, known) {
        (Err(e), Lookup::Stale(old)) if e.kind() == fieldstone_core::ErrorKind::Unavailable => Ok(Some(old)),
        (found, _) => found,
    }
}
