//! Lookup of the variables of runs by name.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::catalog::{RunName, VariableDecl, VariableName};
use fieldstone_format::keys::KeyDecoder;
use fieldstone_journal::Session;

use super::Registry;
use super::declaration_cache::Lookup;
use super::runs::run_row;
use super::shown::{run_text, variable_text};
use crate::engine::{Tables, VariableRow};
use crate::follower::roles::place_of;
use crate::query::VariableInfo;
use crate::reader::Visibility;

fn variable_info(run: &RunName, row: VariableRow) -> VariableInfo {
    VariableInfo { run: run.clone(), decl: row.decl, declared: row.declared }
}

impl Registry {
    /// A variable of a run; the newest version if `version` is absent.
    pub fn variable(
        &self,
        run: &RunName,
        name: &str,
        version: Option<i64>,
        session: &Session,
    ) -> Result<VariableInfo> {
        self.store.journal.check_there()?;
        self.reader.raise_apply_error()?;
        let found = self.reader.look(Visibility::All(session), &mut |index| {
            let Some(row) = run_row(index, run)? else { return Ok(None) };
            let all = index.variables(row.id)?.into_iter();
            let named = all.filter(|row| row.decl.variable.name == name);
            let asked =
                named.filter(|row| version.is_none_or(|version| row.decl.variable.version == version));
            Ok(Some(asked.max_by_key(|row| row.decl.variable.version)))
        })?;
        match found {
            None => Err(self.no_run(session, &run.name, &run_text(run))),
            Some(Some(row)) => Ok(VariableInfo { run: run.clone(), decl: row.decl, declared: row.declared }),
            Some(None) => {
                let asked = VariableName { name: name.to_owned(), version: version.unwrap_or(0) };
                Err(self.no_variable(session, run, &asked))
            }
        }
    }

    /// The requested variables of a run that exist, by name.
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
            Err(e) if e.kind() == ErrorKind::Unavailable && old.len() == missing.len() => {
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

    /// The newest version of a variable, for its writer; `None` if there is none. Declarations of this
    /// process are known at once; an answer of the engine is trusted for a while.
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

    /// A variable that exists only through fields that this process has archived and not flushed: it will
    /// exist together with its attributes, which are in the same commit.
    pub fn archived_variable(
        &self,
        session: &Session,
        run: &RunName,
        name: &VariableName,
    ) -> Result<Option<VariableInfo>> {
        let schema = self.store.journal.schema().now();
        let place = (run, Some(name));
        let outside = session.within(None);
        let sessions = [&outside, session];
        let mut decoder = KeyDecoder::new();
        for session in &sessions[..if session.transaction().is_some() { 2 } else { 1 }] {
            for (key, array) in self.store.journal.unflushed().arrays(session) {
                let found = place_of(&schema, &decoder.decode(&key)?);
                if found.as_ref().map(|found| (&found.run, found.variable.as_ref())) != Some(place) {
                    continue;
                }
                let (dtype, shape) = array.unzip();
                let decl = VariableDecl { dtype, shape, ..VariableDecl::named(name.clone()) };
                let info = VariableInfo { run: run.clone(), decl, declared: false };
                self.declarations().cache_variable(session.key(), info.clone(), true);
                return Ok(Some(info));
            }
        }
        Ok(None)
    }

    /// The error for a variable that does not exist.
    pub fn no_variable(&self, session: &Session, run: &RunName, name: &VariableName) -> Error {
        let mut names: Vec<String> = Vec::new();
        let listed = self.reader.look(Visibility::All(session), &mut |tables| {
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
            return error.with_hint("the run has other versions of this variable");
        }
        match did_you_mean(&name.name, names.iter().map(String::as_str)) {
            Some(hint) => error.with_hint(hint),
            None => error.with_hint("declare it with create_variable, or write a field of it"),
        }
    }
}
