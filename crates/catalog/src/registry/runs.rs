//! Lookup of runs and their owners by name.

use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::catalog::{Annotate, RunName};
use fieldstone_format::setting::IfExists;
use fieldstone_journal::Session;

use super::Registry;
use super::declaration_cache::Lookup;
use super::shown::run_text;
use crate::engine::{Flow, RunRow, RunSelect, Tables, first_user};
use crate::query::RunInfo;
use crate::reader::Visibility;

/// An error searches at most this number of names for suggestions.
const SUGGESTED: usize = 10_000;

/// The row of a run.
pub fn run_row(tables: &mut dyn Tables, run: &RunName) -> Result<Option<RunRow>> {
    let rows = tables.runs(&RunSelect::Named(run.name.clone()))?;
    Ok(rows.into_iter().find(|row| row.decl.run == *run))
}

/// The error for the name of a run that several projects have.
pub fn several_projects<'a>(name: &str, projects: impl Iterator<Item = &'a str>) -> Error {
    let projects: Vec<String> = projects.map(|project| format!("'{project}'")).collect();
    Code::RequestTooBroad
        .error(format!("several projects have a run '{name}': {}", projects.join(", ")))
        .with_hint("give the project ('' for none)")
}

/// The found runs; if the engine cannot answer, those known from a while ago.
fn or_stale<T>(found: Result<Option<T>>, known: Lookup<T>) -> Result<Option<T>> {
    match (found, known) {
        (Err(e), Lookup::Stale(old)) if e.kind() == ErrorKind::Unavailable => Ok(Some(old)),
        (found, _) => found,
    }
}

impl Registry {
    /// The run of a name.
    pub fn run(&self, project: Option<&str>, name: &str, session: &Session) -> Result<RunInfo> {
        self.store.journal.check_there()?;
        self.reader.raise_apply_error()?;
        let visibility = Visibility::All(session);
        let moment = self.reader.consistent_read(visibility)?;
        let asked = (project.map(str::to_owned), name.to_owned());
        if let Some(run) = self.run_answers.find(&self.store.journal, &moment, session, &asked) {
            return Ok(run);
        }
        let named = RunSelect::Named(name.to_owned());
        let mut rows = self.reader.look_from(moment.clone(), visibility, &mut |index| index.runs(&named))?;
        rows.retain(|row| project.is_none_or(|project| row.decl.run.project == project));
        if rows.len() > 1 {
            return Err(several_projects(name, rows.iter().map(|row| row.decl.run.project.as_str())));
        }
        match rows.pop() {
            Some(row) => {
                let run = RunInfo::of(row);
                self.run_answers.note(moment, session, asked, &run);
                Ok(run)
            }
            None => {
                let shown = match project {
                    Some(project) if !project.is_empty() => format!("'{name}' of project '{project}'"),
                    _ => format!("'{name}'"),
                };
                Err(self.no_run(session, name, &shown))
            }
        }
    }

    /// The owner of a run, with one look at the logs.
    pub fn run_owner(&self, session: &Session, run: &RunName) -> Result<Option<u32>> {
        let visibility = self.visibility(session);
        let moment = self.reader.consistent_read(visibility)?;
        let known = self.declarations().run(session.key(), run);
        let first = match known {
            Lookup::Hit(info) => info.first,
            // A deleted run keeps its owner.
            _ => {
                self.search_from(moment.clone(), visibility, &mut |index| first_user(index.database(), run))?
            }
        };
        Ok(self.store.owner_at(&moment.seen.feed, run, first))
    }

    /// The run, if it exists.
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

    /// The run, if it exists, and its owner, with one look at the logs.
    pub fn run_and_owner(&self, session: &Session, run: &RunName) -> Result<(Option<RunInfo>, Option<u32>)> {
        let known = self.declarations().run(session.key(), run);
        if let Lookup::Hit(info) = known {
            // The caller needs the owner only to claim a run that is not declared.
            let owner = if info.declared { None } else { self.run_owner(session, run)? };
            return Ok((Some(info), owner));
        }
        let visibility = self.visibility(session);
        let moment = self.reader.consistent_read(visibility)?;
        let mut first = None;
        let found = self.search_from(moment.clone(), visibility, &mut |index| {
            first = first_user(index.database(), run)?;
            Ok(run_row(index, run)?.map(RunInfo::of))
        });
        let found = or_stale(found, known)?;
        if let Some(info) = &found {
            first = info.first;
            self.declarations().cache_run(session.key(), info.clone(), false);
        }
        Ok((found, self.store.owner_at(&moment.seen.feed, run, first)))
    }

    /// Refuses a run that does not exist, and suggests similar names; otherwise returns who may annotate it.
    pub fn need_run(&self, session: &Session, run: &RunName) -> Result<Annotate> {
        let known = self.declarations().has_run(session.key(), run);
        if let Lookup::Hit(annotate) = known {
            return Ok(annotate);
        }
        Ok(self.known_run(session, run)?.decl.annotate)
    }

    /// The run; if there is none, the error with similar names.
    pub fn known_run(&self, session: &Session, run: &RunName) -> Result<RunInfo> {
        self.find_run(session, run)?.ok_or_else(|| self.no_run(session, &run.name, &run_text(run)))
    }

    /// The rule for a write to an existing field of a run; `None` if no declaration sets one.
    pub fn if_exists_of(&self, session: &Session, run: &RunName) -> Result<Option<IfExists>> {
        let known = self.declarations().if_exists_of(session.key(), run);
        match known {
            Lookup::Hit(if_exists) => Ok(if_exists),
            _ => Ok(self.find_run(session, run)?.and_then(|info| info.decl.if_exists)),
        }
    }

    /// The error for a run that does not exist.
    pub fn no_run(&self, session: &Session, name: &str, shown: &str) -> Error {
        let error = Code::RunNotFound.error(format!("there is no run {shown}"));
        let mut names: Vec<String> = Vec::new();
        let listed = self.reader.look(Visibility::All(session), &mut |tables| {
            names.clear();
            tables.run_names(&mut |_, run| {
                names.push(run.name.clone());
                Ok(match names.len() < SUGGESTED {
                    true => Flow::More,
                    false => Flow::Stop,
                })
            })
        });
        drop(listed);
        match did_you_mean(name, names.iter().map(String::as_str)) {
            Some(hint) => error.with_hint(hint),
            None => error.with_hint("create it with create_run"),
        }
    }
}
