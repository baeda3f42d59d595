//! Random calls of several handles on one store, compared with a plain model that is computed from the calls alone: an
//! engine that followed them one by one, one that is queried now and then, one rebuilt from scratch and one in memory
//! must all agree with the model. Unflushed data are compared with a new catalog made for the question, which overlays
//! all of it at once.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use crate::shared::*;
use fieldstone::Session;
use fieldstone::catalog::value::Value;
use fieldstone::catalog::{CatalogAccess, CatalogSettings, Deletion, Query, query::Term};
use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, DType, ErrorKind, Id, RemoveOptions, Request};
use fieldstone_format::catalog::*;
use fieldstone_testkit::require::full;
use fieldstone_testkit::{Random, seeded};

/// Run, variable, step, member.
type Key = (String, String, String, String);
/// Run, tag, step, variable.
type CellKey = (String, String, Option<i64>, Option<String>);

/// One call.
#[derive(Debug, Clone)]
enum Call {
    Opaque(Key),
    Array(Key, DType, Vec<u64>),
    /// Run, and variable, step and member if named.
    Remove(String, [Option<String>; 3]),
    Annotate(CellKey, f64),
    CreateRun(String),
    CreateVariable(String, String, Vec<u64>),
    CreateStep(String, i64),
    DeleteRun(String, bool),
    DeleteStep(String, i64, bool),
    DeleteVariable(String, String, bool),
    DeleteTag(String, String),
}

fn call(dice: &mut Random) -> Call {
    let (run, tag) = (dice.pick(&["a", "b"]).to_string(), dice.pick(&["max", "min"]).to_string());
    let (variable, step) = (dice.pick(&["t", "u"]).to_string(), dice.below(4));
    let (text, member) = (step.to_string(), dice.below(2).to_string());
    let key = (run.clone(), variable.clone(), text.clone(), member.clone());
    let fields = dice.below(2) == 0;
    match dice.below(24) {
        0..=4 => Call::Opaque(key),
        5..=9 => Call::Array(key, *dice.pick(&[DType::F8, DType::F4]), vec![1 + dice.below(2)]),
        10..=13 => {
            let mut some = |value: String| (dice.below(2) == 0).then_some(value);
            Call::Remove(run, [some(variable), some(text), some(member)])
        }
        14..=16 => {
            let step = (dice.below(3) > 0).then_some(step as i64);
            let variable = (dice.below(2) == 0).then_some(variable);
            Call::Annotate((run, tag, step, variable), dice.below(9) as f64 / 4.0)
        }
        17 => Call::CreateRun(run),
        18 => Call::CreateVariable(run, variable, vec![7]),
        19 => Call::CreateStep(run, step as i64),
        20 => Call::DeleteRun(run, fields),
        21 => Call::DeleteStep(run, step as i64, fields),
        22 => Call::DeleteVariable(run, variable, fields),
        _ => Call::DeleteTag(run, tag),
    }
}

/// The state of the model.
#[derive(Debug, Default, Clone)]
struct Model {
    fields: BTreeMap<Key, Option<(DType, Vec<u64>)>>,
    attributes: BTreeMap<CellKey, f64>,
    runs: BTreeSet<String>,
    variables: BTreeMap<(String, String), Vec<u64>>,
    steps: BTreeSet<(String, i64)>,
}

fn number(step: &str) -> Option<i64> {
    step.parse().ok()
}

impl Model {
    fn all_steps(&self) -> BTreeSet<(String, i64)> {
        let fields = self.fields.keys().filter_map(|key| Some((key.0.clone(), number(&key.2)?)));
        let cells = self.attributes.keys().filter_map(|cell| Some((cell.0.clone(), cell.2?)));
        self.steps.iter().cloned().chain(fields).chain(cells).collect()
    }

    fn all_variables(&self) -> BTreeSet<(String, String)> {
        let fields = self.fields.keys().map(|key| (key.0.clone(), key.1.clone()));
        let cells = self.attributes.keys().filter_map(|cell| Some((cell.0.clone(), cell.3.clone()?)));
        self.variables.keys().cloned().chain(fields).chain(cells).collect()
    }

    fn all_runs(&self) -> BTreeSet<String> {
        let fields = self.fields.keys().map(|key| key.0.clone());
        let cells = self.attributes.keys().map(|cell| cell.0.clone());
        let steps = self.steps.iter().map(|step| step.0.clone());
        let variables = self.variables.keys().map(|key| key.0.clone());
        self.runs.iter().cloned().chain(fields).chain(cells).chain(steps).chain(variables).collect()
    }

    /// The array of a variable at its last step; of several the last by key.
    fn array(&self, run: &str, variable: &str) -> Option<(DType, Vec<u64>)> {
        let of = self.fields.iter().filter(|(key, _)| key.0 == run && key.1 == variable);
        let arrays = of.filter_map(|(key, says)| Some(((number(&key.2), key.3.clone()), says.clone()?)));
        arrays.max_by(|a, b| a.0.cmp(&b.0)).map(|(_, says)| says)
    }

    /// Keys that a removal names.
    fn named(&self, run: &str, [variable, step, member]: &[Option<String>; 3]) -> Vec<Key> {
        let fits = |asked: &Option<String>, value: &str| asked.as_deref().is_none_or(|asked| asked == value);
        let named =
            |key: &&Key| key.0 == run && fits(variable, &key.1) && fits(step, &key.2) && fits(member, &key.3);
        self.fields.keys().filter(named).cloned().collect()
    }

    /// Whether a call is valid now: its targets exist, and its declarations do not.
    fn takes(&self, call: &Call) -> bool {
        match call {
            Call::Annotate((run, _, _, variable), _) => {
                let known =
                    |variable: &String| self.all_variables().contains(&(run.clone(), variable.clone()));
                self.all_runs().contains(run) && variable.as_ref().is_none_or(known)
            }
            Call::CreateRun(run) => !self.runs.contains(run),
            Call::CreateVariable(run, name, shape) => {
                let key = (run.clone(), name.clone());
                let array = self.array(run, name);
                self.all_runs().contains(run)
                    && !self.variables.contains_key(&key)
                    && array.is_none_or(|array| array == (DType::F8, shape.clone()))
            }
            Call::CreateStep(run, step) => {
                self.all_runs().contains(run) && !self.steps.contains(&(run.clone(), *step))
            }
            Call::DeleteRun(run, _) => self.all_runs().contains(run),
            Call::DeleteStep(run, step, _) => self.all_steps().contains(&(run.clone(), *step)),
            Call::DeleteVariable(run, name, _) => self.all_variables().contains(&(run.clone(), name.clone())),
            _ => true,
        }
    }

    fn apply(&mut self, call: &Call) {
        match call.clone() {
            Call::Opaque(key) => drop(self.fields.insert(key, None)),
            Call::Array(key, dtype, shape) => drop(self.fields.insert(key, Some((dtype, shape)))),
            Call::Remove(run, parts) => {
                self.named(&run, &parts).iter().for_each(|key| drop(self.fields.remove(key)));
            }
            Call::Annotate(cell, value) => drop(self.attributes.insert(cell, value)),
            Call::CreateRun(run) => drop(self.runs.insert(run)),
            Call::CreateVariable(run, name, shape) => drop(self.variables.insert((run, name), shape)),
            Call::CreateStep(run, step) => drop(self.steps.insert((run, step))),
            Call::DeleteRun(run, fields) => {
                self.attributes.retain(|cell, _| cell.0 != run);
                self.runs.remove(&run);
                self.variables.retain(|key, _| key.0 != run);
                self.steps.retain(|key| key.0 != run);
                self.fields.retain(|key, _| !fields || key.0 != run);
            }
            Call::DeleteStep(run, step, fields) => {
                self.attributes.retain(|cell, _| cell.0 != run || cell.2 != Some(step));
                self.steps.remove(&(run.clone(), step));
                self.fields.retain(|key, _| !fields || key.0 != run || number(&key.2) != Some(step));
            }
            Call::DeleteVariable(run, name, fields) => {
                self.attributes.retain(|cell, _| cell.0 != run || cell.3.as_ref() != Some(&name));
                self.variables.remove(&(run.clone(), name.clone()));
                self.fields.retain(|key, _| !fields || key.0 != run || key.1 != name);
            }
            Call::DeleteTag(run, tag) => self.attributes.retain(|cell, _| cell.0 != run || cell.1 != tag),
        }
    }

    fn lines(&self) -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        let text = |step: &Option<i64>| step.map_or("-".into(), |step| step.to_string());
        for ((run, tag, step, variable), value) in &self.attributes {
            let variable = variable.as_deref().unwrap_or("-");
            lines.insert(format!(
                "attribute {run} {} {variable} {tag} {} -",
                text(step),
                Value::Float(*value)
            ));
        }
        for run in self.all_runs() {
            lines.insert(format!("run {run} {}", self.runs.contains(&run)));
        }
        for (run, step) in self.all_steps() {
            lines.insert(format!("step {run} {step}"));
        }
        for (run, name) in self.all_variables() {
            let declared = self.variables.get(&(run.clone(), name.clone()));
            let (mut dtype, mut shape) = self.array(&run, &name).unzip();
            if let Some(declared) = declared {
                (dtype, shape) = (Some(DType::F8), Some(declared.clone()));
            }
            lines.insert(format!("variable {run} {name} {} {dtype:?} {shape:?}", declared.is_some()));
        }
        lines
    }
}

/// A catalog's answers.
fn said(catalog: &dyn CatalogAccess) -> BTreeSet<String> {
    said_in(catalog, None)
}

/// A catalog's answers to callers that name a transaction.
fn said_in(catalog: &dyn CatalogAccess, transaction: Option<Id>) -> BTreeSet<String> {
    let all = Query { session: Session::from(transaction), ..Query::all() };
    let hits = lines(&catalog.attributes(&all).unwrap()).into_iter();
    let mut said: BTreeSet<String> = hits.map(|line| format!("attribute {line}")).collect();
    for run in catalog.runs(&all).unwrap() {
        said.insert(format!("run {} {}", run.decl.run.name, run.declared));
    }
    for step in catalog.steps(&all).unwrap() {
        said.insert(format!("step {} {}", step.run.name, step.step));
    }
    for variable in catalog.variables(&all).unwrap() {
        let VariableDecl { variable: name, dtype, shape, .. } = &variable.decl;
        let declared = variable.declared;
        said.insert(format!("variable {} {} {declared} {dtype:?} {shape:?}", variable.run.name, name.name));
    }
    said
}

fn step_is(step: i64) -> Term {
    Term::Step(vec![(step, step)])
}

fn variable_is(name: &str) -> Term {
    Term::Variable(fieldstone::catalog::query::NameTest::Is(name.into()))
}

fn perform(both: &Both, call: &Call, transaction: Option<Id>) -> fieldstone::Result<()> {
    let archive = |key: &Key, value: fieldstone::Value<'_>| {
        let pairs = [("run", &*key.0), ("variable", &*key.1), ("step", &*key.2), ("member", &*key.3)];
        both.store.archive(
            &pairs,
            value,
            &ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() },
        )
    };
    let delete = |what: Deletion, fields: bool| {
        both.catalog.delete(&what, fields, true, &Session::from(transaction)).map(drop)
    };
    let all_of = |terms| Query { session: Session::from(transaction), ..all_of(terms) };
    match call {
        Call::Opaque(key) => archive(key, fieldstone::Value::Bytes(b"bytes")),
        Call::Array(key, dtype, shape) => {
            let data = vec![0; dtype.size() * shape.iter().product::<u64>() as usize];
            archive(key, fieldstone::Value::Array { data: &data, dtype: *dtype, shape })
        }
        Call::Remove(run, [variable, step, member]) => {
            let mut request = format!("run={run}");
            for (keyword, value) in [("variable", variable), ("step", step), ("member", member)] {
                request += &value.as_ref().map_or(String::new(), |value| format!(",{keyword}={value}"));
            }
            let request = Request::parse(&request)?;
            both.store.remove(&request, &RemoveOptions { session: Session::from(transaction) }).map(drop)
        }
        Call::Annotate((run, tag, step, variable), value) => {
            let batch = AttributeBatch {
                step: step.map(Column::One),
                variables: variable.iter().map(|name| variable_name(name)).collect(),
                ..on_run(run, tag, *value)
            };
            both.catalog.annotate(batch, &Session::from(transaction))
        }
        Call::CreateRun(name) => {
            both.catalog.create_run(RunDecl::named(run(name)), false, &Session::from(transaction))
        }
        Call::CreateVariable(name, variable_name, shape) => both.catalog.create_variables(
            &run(name),
            vec![variable(variable_name, shape)],
            &Session::from(transaction),
        ),
        Call::CreateStep(name, step) => {
            let step = StepDecl { number: *step, time: None };
            both.catalog.create_steps(&run(name), vec![step], &Session::from(transaction))
        }
        Call::DeleteRun(run, fields) => delete(Deletion::Runs(all_of(vec![run_is(run)])), *fields),
        Call::DeleteStep(run, step, fields) => {
            delete(Deletion::Steps(all_of(vec![run_is(run), step_is(*step)])), *fields)
        }
        Call::DeleteVariable(run, name, fields) => {
            delete(Deletion::Variables(all_of(vec![run_is(run), variable_is(name)])), *fields)
        }
        Call::DeleteTag(run, tag) => {
            delete(Deletion::Attributes(all_of(vec![run_is(run), tag_is(tag)])), false)
        }
    }
}

/// In memory, from the logs.
fn replayed(both: &Both) -> Arc<dyn CatalogAccess> {
    let engine = Some("memory:".to_owned());
    both.store.catalog_with(CatalogSettings { engine })
}

fn history(seed: u64, folder: &Path) {
    let mut dice = seeded(seed);
    let mut model = Model::default();
    let mut calls: Vec<Call> = Vec::new();
    // This one is queried after each call, so its engine in memory has followed them one by one.
    let first = Both::at(folder);
    let stepwise = replayed(&first);
    for round in 0..60 {
        // A new handle has no outdated beliefs.
        let both = Both::at(folder);
        let mut batch = Vec::new();
        for _ in 0..1 + dice.below(3) {
            let next = call(&mut dice);
            // Declarations and attributes of one batch are checked against flushed data.
            let fits =
                batch.is_empty() || matches!(next, Call::Opaque(_) | Call::Array(..) | Call::Remove(..));
            if fits && model.takes(&next) {
                batch.push(next);
            }
        }
        // Fields of one flush: a removal only covers earlier fields.
        batch.truncate(batch.iter().position(|call| matches!(call, Call::Remove(..))).map_or(9, |at| at + 1));
        if matches!(batch.last(), Some(Call::Remove(..))) && batch.len() > 1 {
            batch.pop();
        }
        calls.extend(batch.iter().cloned());
        let alone = batch.iter().all(|call| matches!(call, Call::Opaque(_) | Call::Array(..)));
        if alone && dice.below(4) == 0 {
            let transaction = both.store.begin().unwrap();
            batch.iter().for_each(|call| perform(&both, call, Some(transaction)).unwrap());
            both.store.flush(Some(transaction)).unwrap();
            if dice.below(2) == 0 {
                drop(said(&*first.catalog));
            }
            let commit = dice.below(3) > 0;
            both.store.decide(transaction, commit).unwrap();
            if commit {
                batch.iter().for_each(|call| model.apply(call));
            }
        } else {
            for call in &batch {
                match perform(&both, call, None) {
                    Ok(()) => model.apply(call),
                    Err(e) => assert_eq!(e.kind(), ErrorKind::NotFound, "seed {seed}: {call:?}: {e}"),
                }
            }
            both.flush();
        }
        let expected = model.lines();
        let agree = |catalog: &dyn CatalogAccess, which: &str| {
            let said = said(catalog);
            let lacks: Vec<_> = expected.difference(&said).collect();
            let surplus: Vec<_> = said.difference(&expected).collect();
            let last = &calls[calls.len().saturating_sub(12)..];
            assert!(
                lacks.is_empty() && surplus.is_empty(),
                "seed {seed}, round {round}, {which}: lacks {lacks:#?}, surplus {surplus:#?} after {last:#?}"
            );
        };
        agree(&*stepwise, "followed call by call");
        if dice.below(4) == 0 {
            agree(&*both.catalog, "followed now and then");
        }
        if dice.below(6) == 0 {
            agree(&*replayed(&first), "rebuilt in memory");
        }
        if dice.below(15) == 0 {
            both.catalog.rebuild().unwrap();
            agree(&*first.catalog, "rebuilt");
        }
        if round == 59 {
            agree(&*first.catalog, "at last");
            let check = first.catalog.verify().unwrap();
            assert!(check.ok(), "seed {seed}: {check:#?}");
        }
    }
}

#[test]
fn every_engine_says_what_follows_from_the_calls() {
    for seed in 0..if full() { 8 } else { 4 } {
        let folder = tempfile::tempdir().unwrap();
        history(seed, folder.path());
    }
}

/// Unflushed data of one handle, its threads and its transactions: each answer comes from a copy of the engine that
/// already had a part of them, and equals that of a new catalog that overlays all of them. In between the handle
/// flushes, discards, aborts and commits, and another handle goes on.
fn unflushed(seed: u64, folder: &Path) {
    let mut dice = seeded(seed);
    let other = Both::at(folder);
    other.prepare("a");
    other.flush();
    let both = Both::at(folder);
    both.catalog.copy_overlays_at(0);
    let mut open: Vec<Id> = Vec::new();
    let mut extended = 0;
    for round in 0..150 {
        let session = (!open.is_empty() && dice.below(3) > 0).then(|| *dice.pick(&open));
        let mut what = format!("seed {seed}, round {round}: ");
        match dice.below(20) {
            0 if open.len() < 3 => open.push(both.store.begin().unwrap()),
            1 => both.store.flush(session).unwrap(),
            2 => both.store.discard(session.filter(|_| dice.below(2) == 0)).unwrap(),
            3 if !open.is_empty() => {
                let id = open.swap_remove(dice.below(open.len() as u64) as usize);
                let commit = dice.below(3) > 0;
                what += &format!("commit {commit} ");
                both.store.decide(id, commit).unwrap();
            }
            4 => {
                let next = call(&mut dice);
                what += &format!("elsewhere {next:?} ");
                drop(perform(&other, &next, None));
                other.flush();
                both.store.refresh().unwrap();
            }
            5 => drop(
                both.catalog.explain(&Query { session: Session::from(session), ..Query::all() }).unwrap(),
            ),
            _ => {
                let calls: Vec<Call> = (0..1 + dice.below(3)).map(|_| call(&mut dice)).collect();
                what += &format!("{calls:?} in {session:?} ");
                // An invalid call is refused.
                let all = || calls.iter().for_each(|call| drop(perform(&both, call, session)));
                if dice.below(4) == 0 {
                    std::thread::scope(|scope| scope.spawn(all).join().unwrap());
                } else {
                    all();
                }
            }
        }
        let sessions = open.iter().copied().map(Some).chain([None]);
        for session in sessions.filter(|_| dice.below(3) > 0).collect::<Vec<_>>() {
            let before = both.catalog.overlaid();
            let incremental = said_in(&*both.catalog, session);
            let laid = both.catalog.overlaid() - before;
            let fresh = replayed(&both);
            let rebuilt = said_in(&*fresh, session);
            extended += usize::from(laid * 4 < fresh.overlaid());
            let lacks: Vec<_> = rebuilt.difference(&incremental).collect();
            let surplus: Vec<_> = incremental.difference(&rebuilt).collect();
            assert!(
                lacks.is_empty() && surplus.is_empty(),
                "{what}, asked in {session:?}: lacks {lacks:#?}, surplus {surplus:#?}"
            );
        }
    }
    assert!(extended > 20, "seed {seed}: only {extended} reads went on from one before");
    open.into_iter().for_each(|id| both.store.decide(id, true).unwrap());
    both.flush();
    assert_eq!(said(&*both.catalog), said(&*replayed(&other)));
    let check = both.catalog.verify().unwrap();
    assert!(check.ok(), "seed {seed}: {check:#?}");
}

#[test]
fn what_is_not_flushed_is_what_all_of_it_laid_over_at_once_says() {
    for seed in 0..if full() { 6 } else { 2 } {
        let folder = tempfile::tempdir().unwrap();
        unflushed(seed, folder.path());
    }
}
