//! The catalog: runs, steps, variables, tags, and attributes, single, grouped and counted.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use fieldstone_core::value::Value;
use fieldstone_store::api::Id;
use serde_json::{Map, Value as Json, json};

use super::values::{float, moment, named, project, step, text, value};
use crate::catalog::{
    Aggregate, BoxInfo, By, CatalogAccess, DeleteReport, Hit, RebuildReport, RunInfo, StepInfo, TagInfo,
    VariableInfo, Writer,
};
use crate::facts::CatalogFacts;

/// Names of users, and processes that wrote logs: each is looked up once.
pub struct Users<'a> {
    catalog: &'a dyn CatalogAccess,
    names: RefCell<HashMap<u32, Rc<str>>>,
    writers: RefCell<HashMap<Option<Id>, Option<Rc<Writer>>>>,
}

impl<'a> Users<'a> {
    /// The users of a store.
    pub fn of(catalog: &'a dyn CatalogAccess) -> Users<'a> {
        Users { catalog, names: RefCell::default(), writers: RefCell::default() }
    }

    /// The name of one.
    pub fn name(&self, user: u32) -> Rc<str> {
        let name = || self.catalog.user_name(user).into();
        self.names.borrow_mut().entry(user).or_insert_with(name).clone()
    }

    /// The process that wrote a hit; `None` if the header of its log is damaged, or unreadable by now.
    pub fn writer(&self, hit: &Hit) -> Option<Rc<Writer>> {
        let log = hit.id.writer;
        let writer = || self.catalog.writer(log).ok().flatten().map(Rc::new);
        self.writers.borrow_mut().entry(log).or_insert_with(writer).clone()
    }
}

/// A found attribute.
pub fn hit(hit: &Hit, users: &Users<'_>) -> Json {
    Json::Object(hit_object(hit, users))
}

/// An attribute that was found, with those found by `with …` under `also`.
pub fn hit_beside(hit: &Hit, beside: &[Hit], users: &Users<'_>) -> Json {
    let mut object = hit_object(hit, users);
    let related: Vec<Json> = beside.iter().map(|mate| self::hit(mate, users)).collect();
    object.insert("related".into(), related.into());
    Json::Object(object)
}

fn hit_object(hit: &Hit, users: &Users<'_>) -> Map<String, Json> {
    let mut object = Map::new();
    object.insert("project".into(), text(&hit.project));
    object.insert("run".into(), hit.run.as_ref().into());
    object.insert("step".into(), step(hit.step));
    object.insert("time".into(), hit.time.map_or(Json::Null, float));
    object.insert("variable".into(), hit.variable.as_deref().into());
    object.insert("variable_version".into(), hit.variable.as_ref().map(|_| hit.variable_version).into());
    object.insert("tag".into(), hit.tag.as_ref().into());
    object.insert("tag_version".into(), hit.tag_version.into());
    object.insert("unit".into(), text(&hit.unit));
    object.insert("type".into(), hit.value.kind().name().into());
    object.insert("value".into(), value(&hit.value));
    let (start, count) = hit.region.clone().map_or((None, None), |(start, count)| (Some(start), Some(count)));
    object.insert("start".into(), start.into());
    object.insert("count".into(), count.into());
    let cells = hit.cells.as_ref().map(|(_, cells)| cells.to_vec());
    object.insert("cells".into(), cells.into());
    let keywords = hit.keywords.iter().flat_map(|all| all.iter());
    let keywords = keywords.map(|(keyword, value)| (keyword.to_string(), Json::from(&**value)));
    object.insert("keywords".into(), keywords.collect::<Map<_, _>>().into());
    object.insert("user".into(), users.name(hit.user).as_ref().into());
    object.insert("writer".into(), users.writer(hit).map_or(Json::Null, |writer| self::writer(&writer)));
    object
}

/// The process that wrote.
pub fn writer(writer: &Writer) -> Json {
    json!({
        "host": writer.host,
        "process": writer.process,
        "rank": writer.rank,
        "job": text(&writer.job),
        "attempt": text(&writer.attempt),
    })
}

/// The number of attributes.
pub fn count(count: u64) -> Json {
    json!({"count": count})
}

/// A group of attributes: their common values, the values that group them, and the numbers.
pub fn group(group: &Aggregate, by: &[By]) -> Json {
    let mut object = Map::new();
    for part in by {
        match part {
            By::Run => {
                object.insert("project".into(), group.run.as_ref().map_or(Json::Null, project));
                object.insert("run".into(), group.run.as_ref().map(|run| run.name.clone()).into());
            }
            By::Step => {
                object.insert("step".into(), step(group.step));
                object.insert("time".into(), group.time.map_or(Json::Null, float));
            }
            By::Variable => drop(object.insert("variable".into(), group.variable.as_deref().into())),
            By::Tag => drop(object.insert("tag".into(), group.tag.as_deref().into())),
        }
    }
    object.insert("count".into(), group.count.into());
    for (name, number) in [("min", group.min), ("max", group.max), ("mean", group.mean)] {
        object.insert(name.into(), number.map_or(Json::Null, float));
    }
    Json::Object(object)
}

/// The number of attributes of each tag.
pub fn tag_counts(tags: &[Aggregate]) -> Json {
    let pair = |tag: &Aggregate| Some((tag.tag.as_deref()?.to_owned(), Json::from(tag.count)));
    Json::Object(tags.iter().filter_map(pair).collect())
}

/// An overview of a catalog: the number of runs, the first and the last time of their steps, and tags.
pub fn overview(catalog: &CatalogFacts) -> Json {
    let times = catalog.times.map(|(first, last)| json!([first, last]));
    json!({"runs": catalog.runs, "times": times, "tags": tag_counts(&catalog.tags)})
}

/// A box with attributes.
pub fn region(found: &BoxInfo) -> Json {
    json!({
        "project": project(&found.run),
        "run": found.run.name,
        "step": step(found.step),
        "variable": found.variable.as_ref().map(|variable| &variable.name),
        "variable_version": found.variable.as_ref().map(|variable| variable.version),
        "start": found.start,
        "count": found.count,
    })
}

/// A run.
pub fn run(run: &RunInfo) -> Json {
    let decl = &run.decl;
    json!({
        "project": project(&decl.run),
        "name": decl.run.name,
        "job": decl.job,
        "created": (decl.created != 0).then(|| moment(decl.created)),
        "params": named(&decl.params),
        "grid": decl.grid.as_ref().map(value),
        "notes": decl.notes,
        "declared": run.declared,
    })
}

/// A step of a run.
pub fn run_step(found: &StepInfo) -> Json {
    json!({
        "project": project(&found.run),
        "run": found.run.name,
        "step": step(Some(found.step)),
        "time": found.time.map(float),
    })
}

/// A variable of a run.
pub fn variable(found: &VariableInfo) -> Json {
    let decl = &found.decl;
    json!({
        "project": project(&found.run),
        "run": found.run.name,
        "name": decl.variable.name,
        "version": decl.variable.version,
        "dtype": decl.dtype.map(|dtype| dtype.to_string()),
        "shape": decl.shape,
        "dims": decl.dims,
        "attrs": named(&decl.attrs),
        "decomposition": decl.decomposition,
        "declared": found.declared,
    })
}

/// A tag.
pub fn tag(tag: &TagInfo) -> Json {
    json!({
        "name": tag.decl.name,
        "version": tag.version,
        "type": tag.decl.kind.name(),
        "unit": text(&tag.decl.unit),
    })
}

/// A row of an SQL statement's result, by the names of its columns.
pub fn row(names: &[String], row: &[Value]) -> Json {
    Json::Object(names.iter().zip(row).map(|(name, cell)| (name.clone(), value(cell))).collect())
}

/// The result of annotating: the numbers of attributes, runs and tags, and the store's new version.
pub fn annotated(attributes: u64, runs: usize, tags: usize, version: &str) -> Json {
    json!({"attributes": attributes, "runs": runs, "tags": tags, "version": version})
}

/// The counts of a deletion, or of one that would take place.
pub fn deleted(report: &DeleteReport) -> Json {
    json!({
        "runs": report.runs,
        "steps": report.steps,
        "variables": report.variables,
        "tags": report.tags,
        "attributes": report.attributes,
        "fields": report.fields,
        "others": report.others,
        "done": report.done,
    })
}

/// The counts of a rebuild from the logs: for the catalog's engine, and `relations` of the graph.
pub fn rebuilt(report: &RebuildReport, relations: u64) -> Json {
    json!({
        "logs": report.logs,
        "commits": report.commits,
        "attributes": report.attributes,
        "fields": report.fields,
        "engine": report.engine,
        "relations": relations,
    })
}
