//! Declarations and attributes of fields as lines of text in a file, and from such lines into a store
//! (`spec/exported-metadata.md`).
//!
//! Invariants:
//! * by request the share is the same as with [`copy`](super::copy);
//! * lines are read and checked completely before any of them reaches a target, and follow the rules of a copy: a
//!   contradiction of the target's declarations is Conflict, facts that it already has are not written again;
//! * memory holds the lines, and their content in a store of its own.
//!
//! ```
//! use fieldstone::{OpenOptions, Request, transfer};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! store.create_run("demo").param("nx", 4).create()?.annotate("quality", "good", &Default::default())?;
//! store.flush(None)?;
//! let lines = transfer::written(&store, &[Request::parse("run=demo")?])?;
//! assert!(lines[0].contains(r#"["nx",4]"#) && lines[1].contains("quality"));
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::request::Request;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{Record, RunName, RunPhase, RunState, line_of, record_of};
use fieldstone_store::api::{FieldAccess, ListOptions};

use super::attributes::{Carrier, Rows, names};
use super::chosen::{Chosen, query};
use super::declared::{DeclaredRun, Outcome, STEPS, Tags, declared};
use crate::Session;
use crate::Store;
use crate::catalog::Query;
use crate::catalog::query::{Expr, NameTest, Term};
use crate::open::OpenOptions;

/// Everything on the fields that requests select, and on the steps, variables and runs with a selected field.
pub fn written(from: &Store, requests: &[Request]) -> Result<Vec<String>> {
    if !from.catalog().has_records()? {
        return Ok(Vec::new());
    }
    let (mut chosen, schema) = (Chosen::of_requests(from, requests)?, from.schema());
    for request in requests {
        for entry in from.list(request, &ListOptions::default())? {
            chosen.add_field(&schema, &entry?.key);
        }
    }
    let mut lines = Vec::new();
    for of in declared(from, &chosen)? {
        let state = of.decl.as_ref().and_then(|decl| decl.state.clone());
        // Only its writer can mark it as running, while that runs.
        let state = state.filter(|state| state.phase != RunPhase::Running);
        let DeclaredRun { run, decl, steps, variables, .. } = of;
        lines.extend(line_of(&Record::Runs(decl.into_iter().collect())));
        lines.extend(line_of(&Record::States(state.map(|state| (run.clone(), state)).into_iter().collect())));
        for steps in steps.chunks(STEPS) {
            lines.extend(line_of(&Record::Steps(run.clone(), steps.to_vec())));
        }
        lines.extend(line_of(&Record::Variables(run, variables)));
    }
    attributes(from, &chosen, &mut lines)?;
    Ok(lines)
}

/// Attributes, each tag before its first one.
fn attributes(from: &Store, chosen: &Chosen, lines: &mut Vec<String>) -> Result<()> {
    let tags = Tags::of(from, from)?;
    let mut named = BTreeSet::new();
    for (run, own) in &chosen.runs {
        let scope = chosen.attributes(run, own, false);
        for name in names(from, &scope)? {
            let mut asked = scope.clone();
            asked.push(Expr::Term(Term::Tag(NameTest::Is(name.clone()))));
            let (mut rows, mut some) = (Rows::default(), Vec::new());
            let mut keep = |batch| {
                some.extend(line_of(&Record::Attributes(batch)));
                Ok(())
            };
            for hit in from.catalog().stream(&query(asked))? {
                let hit = hit?;
                if chosen.takes(own, &hit)
                    && let Some(tag) = tags.get(&name, hit.tag_version, true)
                {
                    rows.push(run, tag.clone(), hit, &mut keep)?;
                }
            }
            rows.give(run, &mut keep)?;
            // All tags of the name, so that each keeps its number.
            if !some.is_empty() && named.insert(name.clone()) {
                lines.extend(line_of(&Record::Tags(tags.of_name(&name))));
            }
            lines.append(&mut some);
        }
    }
    Ok(())
}

/// The checked content of lines, on its way into a store.
#[derive(Debug)]
pub struct Written {
    runs: BTreeMap<RunName, DeclaredRun>,
    states: Vec<(RunName, RunState)>,
    /// Tags and attributes.
    held: Store,
    /// Runs that attributes name.
    annotated: BTreeSet<RunName>,
    /// Runs that do not exist before their fields do.
    late: Vec<RunName>,
}

impl Written {
    /// Reads lines; `place` gives a run's name in the target. Corrupt if one is damaged.
    pub fn read(text: &str, to: &Store, place: &dyn Fn(RunName) -> Result<RunName>) -> Result<Written> {
        let options = OpenOptions { schema: Some(to.schema().text().to_owned()), ..OpenOptions::default() };
        let mut written = Written {
            runs: BTreeMap::new(),
            states: Vec::new(),
            held: crate::open("memory:", &options)?,
            annotated: BTreeSet::new(),
            late: Vec::new(),
        };
        let mut places: BTreeMap<RunName, RunName> = BTreeMap::new();
        let mut placed = |run: RunName| {
            if let Some(place) = places.get(&run) {
                return Ok(place.clone());
            }
            let there = place(run.clone())?;
            if places.values().any(|other| *other == there) {
                return Err(Error::invalid(format!("two runs would both be named '{}' here", there.name)));
            }
            places.insert(run, there.clone());
            Ok(there)
        };
        for (number, line) in text.lines().enumerate() {
            let record = record_of(line).map_err(|e| e.context(format!("line {}", number + 1)))?;
            written.add(record, &mut placed)?;
        }
        written.held.flush(None)?;
        Ok(written)
    }

    fn add(&mut self, record: Record, placed: &mut dyn FnMut(RunName) -> Result<RunName>) -> Result<()> {
        match record {
            Record::Runs(runs) => {
                for mut decl in runs {
                    decl.run = placed(decl.run)?;
                    let run = decl.run.clone();
                    self.of(&run).decl = Some(decl);
                }
            }
            Record::States(states) => {
                for (run, state) in states {
                    self.states.push((placed(run)?, state));
                }
            }
            Record::Steps(run, steps) => self.of(&placed(run)?).steps.extend(steps),
            Record::Variables(run, variables) => self.of(&placed(run)?).variables.extend(variables),
            Record::Tags(tags) => drop(self.held.catalog().create_tags(tags, &Session::default())?),
            Record::Attributes(mut batch) => {
                batch.run = placed(batch.run)?;
                self.annotated.insert(batch.run.clone());
                self.held.catalog().carry(batch, &Session::default())?;
            }
            _ => {}
        }
        Ok(())
    }

    fn of(&mut self, run: &RunName) -> &mut DeclaredRun {
        self.runs.entry(run.clone()).or_insert_with(|| DeclaredRun {
            run: run.clone(),
            decl: None,
            steps: Vec::new(),
            variables: Vec::new(),
            groups: Vec::new(),
            imports: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// Whether it declares a variable of a run.
    pub fn declares(&self, run: &RunName, variable: &str) -> bool {
        self.runs.get(run).is_some_and(|of| of.variables.iter().any(|decl| decl.variable.name == variable))
    }

    /// Declares runs, steps and variables, before the fields.
    pub fn declare(&mut self, to: &Store, transaction: Id) -> Result<()> {
        for (run, of) in &self.runs {
            if of.put(to, transaction, false)? == Outcome::Later {
                self.late.push(run.clone());
            }
        }
        Ok(())
    }

    /// Carries the rest over, once the fields exist; returns the number of attributes that the target lacked.
    pub fn carry(self, to: &Store, transaction: Id) -> Result<u64> {
        for run in &self.late {
            if let Some(of) = self.runs.get(run) {
                of.put(to, transaction, false)?;
            }
        }
        let catalog = to.catalog();
        for (run, state) in &self.states {
            let there = catalog.run(Some(&run.project), &run.name, &Session::from(transaction))?;
            if there.declared && there.decl.state.is_none() {
                catalog.set_state(run, state.clone(), &Session::from(transaction))?;
            }
        }
        let chosen = Chosen::of_runs(self.annotated);
        let tags = Tags::of(&self.held, to)?;
        let mut carrier = Carrier::new(&self.held, to, &chosen, tags, transaction, false);
        for name in self.held.catalog().tags(&Query::all())?.into_iter().map(|tag| tag.decl.name) {
            carrier.tags.put(&self.held, to, transaction, &name)?;
        }
        for (run, own) in &chosen.runs {
            carrier.carry(run, own, &mut |_, _| Ok(()))?;
        }
        Ok(carrier.written)
    }
}
