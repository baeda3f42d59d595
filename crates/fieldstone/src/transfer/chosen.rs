//! The catalog's share of a transfer.
//!
//! By request: everything on the selected fields, and on the steps, variables and runs with a selected field.
//! Declarations and attributes without a field (external data, a step with only an attribute) are selected by the
//! keywords of run, variable and step alone. By hits: these attributes, and their targets.
//!
//! An attribute that names further keywords (a member, a level) belongs to the fields with these values.
//!
//! Invariant: memory holds the place of each field (`places`), 50 bytes per hit, and the names of runs, variables and
//! steps.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use fieldstone_core::key::{FieldKey, KeyValue};
use fieldstone_core::request::{Item, Request, Values};
use fieldstone_core::schema::{CatalogRoles, OneOf, Schema, Selection};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::catalog::{AttributeId, RunName};
use fieldstone_store::api::FieldAccess;

use super::What;
use super::places::{Further, Places, further_of, named_by};
use crate::Store;
use crate::catalog::query::{Expr, NameTest, Term};
use crate::catalog::{Hit, Query};

/// Maximum number of ranges of steps that a query names; beyond it the whole run is read.
const RANGES: usize = 128;
/// Maximum number of runs queried by name; if a request lists more, all are queried.
const NAMED: usize = 1000;

/// The share of each run.
#[derive(Default)]
pub struct Chosen {
    pub runs: BTreeMap<RunName, OfRun>,
    /// By hits: their ids.
    ids: Option<HashSet<AttributeId>>,
    /// By request: whether it selects the whole store.
    pub everything: bool,
    /// Requests that select a run by its name, with or without a field.
    matching: HashSet<usize>,
}

/// The share of one run.
#[derive(Default)]
pub struct OfRun {
    /// All of it.
    whole: bool,
    /// Places of its fields; by hits, places of the hits.
    places: Places,
    /// Variables and steps that a request names, possibly without a field.
    named: Vec<Named>,
    /// Its variables.
    pub variables: BTreeSet<String>,
    /// Its steps.
    pub steps: BTreeSet<i64>,
}

/// Variables and steps of one request; `None` for all.
struct Named {
    variables: Option<HashSet<String>>,
    steps: Option<HashSet<i64>>,
}

impl OfRun {
    fn add(&mut self, variable: Option<&str>, step: Option<i64>, further: Further) {
        if let Some(name) = variable.filter(|name| !self.variables.contains(*name)) {
            self.variables.insert(name.to_owned());
        }
        self.steps.extend(step);
        self.places.add(variable, step, further);
    }

    /// Whether all of it is taken.
    pub fn is_whole(&self) -> bool {
        self.whole
    }

    /// Steps of fields.
    pub fn field_steps(&self) -> BTreeSet<i64> {
        self.places.steps()
    }

    /// Whether an attribute is taken.
    fn takes(&self, hit: &Hit) -> bool {
        match (hit.variable.as_deref(), hit.step) {
            _ if self.whole => true,
            (None, None) => true,
            (None, Some(step)) => self.steps.contains(&step),
            (Some(name), None) => self.variables.contains(name),
            (variable @ Some(name), Some(step)) => {
                let named = |one: &Named| {
                    one.variables.as_ref().is_none_or(|names| names.contains(name))
                        && one.steps.as_ref().is_none_or(|steps| steps.contains(&step))
                };
                self.places.has(variable, Some(step), &named_by(hit)) || self.named.iter().any(named)
            }
        }
    }

    /// A condition that all taken attributes satisfy, if it is short.
    fn narrow(&self) -> Option<Expr> {
        let mut ranges: Vec<(i64, i64)> = Vec::new();
        for step in &self.steps {
            match ranges.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(*step) => *last = *step,
                _ => ranges.push((*step, *step)),
            }
        }
        let short = !self.whole && ranges.len() <= RANGES;
        let none = Expr::Not(Box::new(Expr::Term(Term::Step(vec![(i64::MIN + 1, i64::MAX)]))));
        short.then(|| match ranges.is_empty() {
            true => none,
            false => Expr::Any(vec![none.clone(), Expr::Term(Term::Step(ranges))]),
        })
    }
}

impl Chosen {
    /// The share that requests name, with or without fields.
    pub fn of_requests(from: &Store, requests: &[Request]) -> Result<Chosen> {
        let mut chosen = Chosen::default();
        let schema = from.schema();
        for (number, request) in requests.iter().enumerate() {
            for asked in RunRequest::of(&schema, request)? {
                chosen.everything |= asked.is_everything();
                if chosen.add_named(from, &asked)? {
                    chosen.matching.insert(number);
                }
            }
        }
        Ok(chosen)
    }

    fn add_named(&mut self, from: &Store, asked: &RunRequest<'_>) -> Result<bool> {
        let catalog = from.catalog();
        let mut any = false;
        for info in catalog.runs(&asked.runs())? {
            let run = info.decl.run;
            if !asked.takes_run(&run) {
                continue;
            }
            let mut expr = of_run(&run);
            let of_variables = asked.variable.as_ref().map(texts);
            if let Some(names) = &of_variables {
                let names = names.iter().cloned().map(NameTest::Is).collect();
                expr.push(Expr::Term(Term::Variable(NameTest::Any(names))));
            }
            let found = catalog.steps(&query(expr.clone()))?;
            let taken = found.into_iter().map(|row| row.step).filter(|step| asked.takes_step(*step));
            let steps: BTreeSet<i64> = taken.collect();
            if asked.step.is_some() {
                let of_steps = OfRun { steps: steps.clone(), ..OfRun::default() };
                if steps.is_empty() {
                    continue;
                }
                expr.extend(of_steps.narrow());
                expr.push(Expr::Term(Term::Step(vec![(i64::MIN + 1, i64::MAX)])));
            }
            let rows = catalog.variables(&query(expr))?;
            let variables: BTreeSet<String> = rows.into_iter().map(|row| row.decl.variable.name).collect();
            if of_variables.is_some() && variables.is_empty() {
                continue;
            }
            any = true;
            let own = self.runs.entry(run).or_default();
            own.whole |= asked.variable.is_none() && asked.step.is_none();
            let steps_asked = asked.step.as_ref().map(|_| steps.iter().copied().collect());
            own.named.push(Named { variables: of_variables, steps: steps_asked });
            own.steps.extend(steps);
            own.variables.extend(variables);
        }
        Ok(any)
    }

    /// The whole of these runs.
    pub fn of_runs(runs: impl IntoIterator<Item = RunName>) -> Chosen {
        let whole = || OfRun { whole: true, ..OfRun::default() };
        Chosen { runs: runs.into_iter().map(|run| (run, whole())).collect(), ..Chosen::default() }
    }

    /// Adds a field of the transfer.
    pub fn add_field(&mut self, schema: &Schema, key: &FieldKey) {
        let Some((project, name)) = schema.run_of(key) else { return };
        let run = RunName { project, name };
        let further = further_of(schema, &run, key);
        let own = self.runs.entry(run).or_default();
        own.add(schema.variable_of(key).as_deref(), schema.step_of(key), further);
    }

    /// Whether a request selects more than fields.
    pub fn is_named(&self, request: usize) -> bool {
        self.matching.contains(&request)
    }

    /// Hits, and their targets.
    pub fn of_hits(from: &Store, what: &What) -> Result<Chosen> {
        let mut chosen = Chosen { ids: Some(HashSet::new()), ..Chosen::default() };
        match what {
            What::Requests(_) | What::Under(_) => {}
            What::Hits(hits) => hits.iter().for_each(|hit| chosen.add_hit(hit)),
            What::Query(query) if query.session.transaction().is_some() => {
                return Err(Error::invalid("cannot copy the hits of a transaction")
                    .with_hint("commit it first, then copy"));
            }
            What::Query(query) => {
                for hit in from.catalog().stream(query)? {
                    chosen.add_hit(&hit?);
                }
            }
        }
        Ok(chosen)
    }

    fn add_hit(&mut self, hit: &Hit) {
        let run = RunName { project: hit.project.to_string(), name: hit.run.to_string() };
        let own = self.runs.entry(run).or_default();
        match &hit.variable {
            Some(_) => own.add(hit.variable.as_deref(), hit.step, named_by(hit)),
            None => own.steps.extend(hit.step),
        }
        self.ids.get_or_insert_default().insert(hit.id);
    }

    /// Number of attributes that were chosen one by one.
    pub fn hits(&self) -> Option<u64> {
        self.ids.as_ref().map(|ids| ids.len() as u64)
    }

    /// Whether a key's field lies under a hit.
    pub fn is_under(&self, schema: &Schema, key: &FieldKey) -> bool {
        let Some((project, name)) = schema.run_of(key) else { return false };
        let run = RunName { project, name };
        let Some(own) = self.runs.get(&run) else { return false };
        let further = further_of(schema, &run, key);
        own.places.has_within(schema.variable_of(key).as_deref(), schema.step_of(key), &further)
    }

    /// Requests that select the fields under hits, and possibly others.
    pub fn fields_under(&self, from: &Store) -> Result<Vec<Request>> {
        let mut requests = Vec::new();
        let schema = from.schema();
        for (run, own) in &self.runs {
            let step =
                schema.roles_of_run(&run.project, &run.name).ok().and_then(|roles| roles.step.as_ref());
            for (name, steps) in own.places.variables() {
                let pairs = match from.catalog().key_of(run, Some(name), None) {
                    // This schema has no key with such a run.
                    Err(e) if e.kind() == ErrorKind::Invalid => continue,
                    pairs => pairs?,
                };
                let mut request = Request::new();
                for (keyword, value) in pairs {
                    request.set(keyword, Values::list([value]));
                }
                if let Some(keyword) = step
                    && !steps.contains(&None)
                {
                    let items = steps.iter().flatten().map(|step| Item::One(step.to_string()));
                    request.set(&**keyword, Values::List(items.collect()));
                }
                requests.push(request);
            }
        }
        Ok(requests)
    }

    /// Whether an attribute of a run is taken.
    pub fn takes(&self, own: &OfRun, hit: &Hit) -> bool {
        match &self.ids {
            Some(ids) => ids.contains(&hit.id),
            None => own.takes(hit),
        }
    }

    /// Conditions for the run's taken attributes, and possibly others; `all`: without restriction.
    pub fn attributes(&self, run: &RunName, own: &OfRun, all: bool) -> Vec<Expr> {
        let mut expr = of_run(run);
        expr.extend(own.narrow().filter(|_| !all));
        expr
    }
}

/// Conditions for the attributes of a run.
pub fn of_run(run: &RunName) -> Vec<Expr> {
    vec![
        Expr::Term(Term::Run(NameTest::Is(run.name.clone()))),
        Expr::Term(Term::Project(NameTest::Is(run.project.clone()))),
    ]
}

/// The query for attributes that satisfy all of these.
pub fn query(expr: Vec<Expr>) -> Query {
    Query { expr: Expr::All(expr), ..Query::all() }
}

fn texts(values: &Arc<OneOf>) -> HashSet<String> {
    values.values().map(|value| value.text().into_owned()).collect()
}

/// A request that only names run, variable and step, by one set of the schema's roles.
struct RunRequest<'a> {
    schema: &'a Schema,
    roles: &'a CatalogRoles,
    run: Vec<(Arc<str>, Arc<OneOf>)>,
    variable: Option<Arc<OneOf>>,
    step: Option<Arc<OneOf>>,
}

impl RunRequest<'_> {
    /// One for each set of roles by which the request names no other keyword.
    fn of<'a>(schema: &'a Schema, request: &Request) -> Result<Vec<RunRequest<'a>>> {
        let selection = schema.select(request)?;
        let bounds =
            request.bounds().iter().map(|bound| schema.select(bound)).collect::<Result<Vec<Selection>>>()?;
        let by = |roles: &'a Arc<CatalogRoles>| {
            let mut asked = RunRequest::by(schema, roles, &selection)?;
            for bound in &bounds {
                let bound = RunRequest::by(schema, roles, bound)?;
                // For runs alone: keys, and so fields, match other bound keywords.
                if bound.variable.is_some() || bound.step.is_some() {
                    return None;
                }
                asked.run.extend(bound.run);
            }
            Some(asked)
        };
        Ok(schema.catalog_roles().iter().filter_map(by).collect())
    }

    fn by<'a>(schema: &'a Schema, roles: &'a CatalogRoles, selection: &Selection) -> Option<RunRequest<'a>> {
        let mut asked = RunRequest { schema, roles, run: Vec::new(), variable: None, step: None };
        for (keyword, values) in selection.listed_values() {
            let values = Arc::new(values.clone());
            if roles.run.contains(keyword) || roles.project.as_ref() == Some(keyword) {
                asked.run.push((keyword.clone(), values));
            } else if roles.variable.as_ref() == Some(keyword) {
                asked.variable = Some(values);
            } else if roles.step.as_ref() == Some(keyword) {
                asked.step = Some(values);
            } else {
                return None;
            }
        }
        Some(asked)
    }

    fn is_everything(&self) -> bool {
        self.run.is_empty() && self.variable.is_none() && self.step.is_none()
    }

    /// Finds the runs, and possibly others.
    fn runs(&self) -> Query {
        // A value that looks like the name of another section is spelled differently in a name.
        let single = self.roles.run.len() == 1 && self.schema.catalog_roles().len() == 1;
        let names = self.run.iter().find(|(keyword, _)| self.roles.run.contains(keyword));
        match names {
            Some((_, values)) if single && values.len() <= NAMED => {
                let names = values.values().map(|value| NameTest::Is(value.text().into_owned()));
                query(vec![Expr::Term(Term::Run(NameTest::Any(names.collect())))])
            }
            _ => Query::all(),
        }
    }

    fn takes_run(&self, run: &RunName) -> bool {
        if self.schema.roles_of_run(&run.project, &run.name).is_ok_and(|roles| roles != self.roles) {
            return false;
        }
        let Ok(pairs) = self.schema.pairs_of(&run.project, &run.name) else { return self.is_everything() };
        self.run.iter().all(|(keyword, values)| {
            let own = pairs.iter().find(|(own, _)| own == keyword);
            own.is_some_and(|(keyword, text)| self.lists(values, keyword, text))
        })
    }

    fn takes_step(&self, step: i64) -> bool {
        let (Some(values), Some(keyword)) = (&self.step, &self.roles.step) else {
            return true;
        };
        match values.min() {
            Some(KeyValue::Int(_)) => values.position(&KeyValue::Int(step)).is_some(),
            _ => self.lists(values, keyword, &step.to_string()),
        }
    }

    /// Whether a text, as a value of the keyword, is among values.
    fn lists(&self, values: &OneOf, keyword: &str, text: &str) -> bool {
        let mut one = Request::new();
        one.set(keyword, Values::list([text]));
        let Ok(selected) = self.schema.select(&one) else { return false };
        let value = selected.listed_values().next().and_then(|(_, value)| value.get(0));
        value.is_some_and(|value| values.position(&value).is_some())
    }
}
