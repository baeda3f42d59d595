//! Looks at a store as a reader makes them, in the words of the model.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone::catalog::Query;
use fieldstone::graph::{Versions, VertexName};
use fieldstone::prelude::*;
use fieldstone::{Code, ErrorKind, ListOptions, Request, Result, RetrieveOptions, Session, Store};

use crate::model::catalog::attribute_line;
use crate::model::fields::Shown;
use crate::model::graph::{now_line, version_line};
use crate::model::state::{StoreState, compare};

/// The names of executions and of files that relations connect.
pub const JOBS: [&str; 2] = ["1", "2"];
/// The names of files.
pub const FILES: [&str; 2] = ["x", "y"];

/// The content of a store, as far as somebody looked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Look {
    /// Fields, by the texts of their keys.
    pub fields: BTreeMap<String, Shown>,
    /// The number of versions of each opaque field, hidden ones included.
    pub versions: BTreeMap<String, usize>,
    /// Lines of the catalog.
    pub catalog: Option<BTreeSet<String>>,
    /// Lines of the graph.
    pub graph: Option<BTreeSet<String>>,
    /// Whether the lists said that a purge may have taken something away.
    pub is_purged: bool,
}

impl Look {
    /// Looks at fields, and at catalog and graph if asked to.
    pub fn at(store: &Store, session: &Session, catalog: bool, graph: bool) -> Result<Look> {
        let (fields, is_purged) = fields(store, session)?;
        Ok(Look {
            fields,
            is_purged,
            versions: versions(store, session)?,
            catalog: if catalog { Some(catalog_lines(store, session)?) } else { None },
            graph: if graph { Some(graph_lines(store, session)?) } else { None },
        })
    }

    /// Whether this is what an earlier look at the same version saw, or what a purge has left of it; `lacks_attributes`: an
    /// erasure may have taken some, also in runs without fields, of which no list ends with a word about purges.
    pub fn is_left_of(&self, before: &Look, lacks_attributes: bool) -> bool {
        if !self.is_purged {
            let catalog = if lacks_attributes && self.has_no_other_line(before) {
                &self.catalog
            } else {
                &before.catalog
            };
            return *self == Look { catalog: catalog.clone(), ..before.clone() };
        }
        let is_same = |(key, shown): (&String, &Shown)| before.fields.get(key) == Some(shown);
        let is_rest =
            |(key, seen): (&String, &usize)| before.versions.get(key).is_some_and(|most| seen <= most);
        // Steps and variables that nobody declared are there with their fields.
        self.fields.iter().all(is_same)
            && self.versions.iter().all(is_rest)
            && self.has_no_other_line(before)
            && self.graph == before.graph
    }

    /// Whether the catalog shows nothing that it did not show then.
    fn has_no_other_line(&self, before: &Look) -> bool {
        match (&self.catalog, &before.catalog) {
            (Some(now), Some(before)) => now.is_subset(before),
            (now, before) => now == before,
        }
    }

    /// Compares the look with a state of the model; `is_purged`: whether hidden versions may be gone.
    pub fn is_of(&self, state: &StoreState, is_purged: bool) -> std::result::Result<(), String> {
        let line = |(key, shown): (&String, &Shown)| format!("{key} {shown:?}");
        let expected = state.shown_fields();
        if self.fields != expected {
            compare("fields", &self.fields.iter().map(line).collect(), &expected.iter().map(line).collect())?;
        }
        let versions = state.versions_of_opaque();
        // A purge drops hidden versions, and keeps at least the one that is shown.
        let is_right = |(key, seen): (&String, &usize)| versions.get(key).is_some_and(|most| seen <= most);
        let is_some = is_purged && self.versions.iter().all(is_right);
        if self.is_purged || self.versions != versions && !is_some {
            return Err(format!("numbers of versions: {:?}, expected {versions:?}", self.versions));
        }
        if let Some(seen) = &self.catalog {
            compare("catalog", seen, &state.catalog_lines())?;
        }
        if let Some(seen) = &self.graph {
            compare("graph", seen, &state.graph_lines())?;
        }
        Ok(())
    }
}

/// The entry, unless the list ends because a purge may have taken something away.
fn unless_purged<T>(entry: Result<T>) -> Result<Option<T>> {
    match entry {
        Err(error) if error.code() == Code::VersionPurged => Ok(None),
        entry => entry.map(Some),
    }
}

/// The fields, and whether the list said that a purge may have taken something away.
fn fields(store: &Store, session: &Session) -> Result<(BTreeMap<String, Shown>, bool)> {
    let options = RetrieveOptions { strict: false, session: session.clone() };
    let mut shown = BTreeMap::new();
    for field in store.retrieve(&Request::new(), &options)?.iter() {
        let field = field?;
        let complete = field.is_complete()?;
        shown.insert(field.key()?.to_string(), Shown::of(&field.read()?, complete));
    }
    let options = ListOptions { session: session.clone(), ..ListOptions::default() };
    let (mut listed, mut is_purged) = (BTreeSet::new(), false);
    for entry in store.list(&Request::new(), &options)? {
        match unless_purged(entry)? {
            Some(entry) => drop(listed.insert(entry.key.to_string())),
            None => is_purged = true,
        }
    }
    match listed.iter().eq(shown.keys()) {
        true => Ok((shown, is_purged)),
        false => Err(fieldstone::Error::internal(format!("list {listed:?}, retrieve {:?}", shown.keys()))),
    }
}

fn versions(store: &Store, session: &Session) -> Result<BTreeMap<String, usize>> {
    let options = ListOptions { session: session.clone(), masked: true, ..ListOptions::default() };
    let mut versions = BTreeMap::new();
    for entry in store.list(&Request::new(), &options)? {
        let Some(entry) = unless_purged(entry)? else { break };
        if entry.dtype.is_none() {
            *versions.entry(entry.key.to_string()).or_default() += 1;
        }
    }
    Ok(versions)
}

fn catalog_lines(store: &Store, session: &Session) -> Result<BTreeSet<String>> {
    let catalog = store.catalog();
    let all = Query { session: session.clone(), ..Query::all() };
    let mut lines = BTreeSet::new();
    let table = catalog.attributes(&all)?;
    for hit in (0..).map_while(|row| table.hit(row)) {
        let value = hit.value.to_string().parse().unwrap_or(f64::NAN);
        let (run, tag, variable) = (&hit.run, &hit.tag, hit.variable.as_deref());
        let line = attribute_line(run, tag, hit.step, variable, hit.user, value);
        let twice = if lines.contains(&line) { " twice" } else { "" };
        lines.insert(line + twice);
    }
    for run in catalog.runs(&all)? {
        lines.insert(format!("run {} {}", run.decl.run.name, run.declared));
    }
    for step in catalog.steps(&all)? {
        lines.insert(format!("step {} {}", step.run.name, step.step));
    }
    for variable in catalog.variables(&all)? {
        lines.insert(format!("variable {} {}", variable.run.name, variable.decl.variable.name));
    }
    Ok(lines)
}

fn graph_lines(store: &Store, session: &Session) -> Result<BTreeSet<String>> {
    let graph = store.graph();
    let mut lines = BTreeSet::new();
    for job in JOBS {
        let source = VertexName::new("job", job);
        for edge in graph.edges(&source, None, Versions::ALL, None, session)? {
            let link = (edge.kind.clone(), job.to_owned(), edge.far.id.to_string());
            lines.insert(version_line(&link, edge.stamp, edge.user, edge.deleted));
        }
    }
    // The relations of now are read from their other ends.
    for file in FILES {
        let target = VertexName::new("file", file);
        let edges = match graph.edges(&target, None, Versions::NOW, None, session) {
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            edges => edges?,
        };
        for edge in edges {
            let kind = if edge.kind == "wasWrittenBy" { "write" } else { "read" };
            let link = (kind.to_owned(), edge.far.id.to_string(), file.to_owned());
            lines.insert(now_line(&link, edge.stamp, edge.user));
        }
    }
    Ok(lines)
}
