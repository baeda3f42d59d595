//! OpenLineage: events of runs, with their inputs and outputs.
//!
//! A file holds one event, a list of them, or one after another (one per line). The events of a run count together,
//! whichever files and ingests they are in ([`runs`]):
//!
//! * the run is the job `openlineage:<namespace>/<name>/<run id>`; it began with its event START, else with the first
//!   known one, and ended with COMPLETE, FAIL or ABORT; its facet `parent` names the job that contains it;
//! * inputs are read, outputs written, from its first event to its last; there is no relation between an input and an
//!   output, as no event says which input went into which output;
//! * a data set of the namespace `file` (of this host) is the file of that path, every other one is
//!   `dataset:<namespace>/<name>`; it is also read or written under each name in its facet `symlinks`;
//! * its facet `lifecycleStateChange` gives its change: OVERWRITE, CREATE, TRUNCATE and DROP replace the earlier
//!   content, RENAME reads the old name just before and replaces both, ALTER is a write;
//! * facets that are a text, a number or a bool become properties `<facet>.<name>`: those of the run and its job at the
//!   job, those of a data set at the relation; others are ignored;
//! * events without a run (of jobs, of data sets) are noted;
//! * events that Fieldstone itself exported come back as their original vertices and relations
//!   ([`openlineage_own`](super::openlineage_own)).
//!
//! An incomplete event is Invalid, with its line, and nothing of its text is taken.

mod runs;

use std::collections::BTreeMap;

use fieldstone_core::value::{Value, parse_moment};
use fieldstone_core::{Code, Result};
use serde_json::{Map, Value as Json};

use self::runs::RunEvents;
use super::openlineage_own::{self as own, OwnExecution};
use super::props::{clip, count};
use super::{GraphRows, RelationPut, VertexName};
use crate::graph::{Relation, Vertex};
use crate::secrets;

/// Maximum length of a name; an id has three names, and the graph allows 64 KiB.
const NAME: usize = 16 << 10;
/// Maximum number of properties from facets at a vertex or relation.
pub const FACETS: usize = 64;
/// The property with the change of a data set.
pub const STATE: &str = "lifecycleStateChange.lifecycleStateChange";
/// Members of every facet that do not describe the run.
const EMPTY: [&str; 3] = ["_producer", "_schemaURL", "_deleted"];

/// Whether this begins like an event, or a list of events.
pub fn is_event(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let begins = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    begins
        && text.contains("\"eventTime\"")
        && (text.contains("\"runId\"") || text.contains("openlineage.io/spec"))
}

/// Runs, combined from their events.
#[derive(Debug, Clone, Default)]
pub struct OpenLineage {
    runs: BTreeMap<String, RunEvents>,
    other: u64,
}

/// Scalars of facets, by name.
pub type Scalars = Vec<(String, Value)>;

/// An event, checked.
pub struct Event {
    pub time: u64,
    pub kind: String,
    pub job: String,
    /// The job that the run is part of.
    pub parent: Option<String>,
    pub facets: Scalars,
    pub data: Vec<DataMention>,
    pub own: Option<OwnExecution>,
    pub exact: Vec<RelationPut>,
}

/// A data set in an event.
pub struct DataMention {
    /// Whether it is an output.
    pub written: bool,
    pub vertex: VertexName,
    pub facets: Scalars,
    pub change: Change,
}

/// The change of a data set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It was read, or written to.
    None,
    /// Its earlier content was replaced.
    Replaced,
    /// It was removed, or came from another name: nothing was written to its earlier content.
    Removed,
    /// It was read just before, because another data set got its content by a rename.
    Renamed,
}

impl OpenLineage {
    /// Takes the events of a text; none of them if one is incomplete.
    pub fn add(&mut self, text: &[u8]) -> Result<()> {
        let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
        let line_at = |at: usize| {
            let before = text.get(..at).unwrap_or(text);
            before.iter().filter(|byte| **byte == b'\n').count() + 1
        };
        let (mut events, mut other) = (Vec::new(), 0u64);
        let mut values = serde_json::Deserializer::from_slice(text).into_iter::<Json>();
        loop {
            let space = text.get(values.byte_offset()..).unwrap_or_default();
            let begin = values.byte_offset() + space.len() - space.trim_ascii_start().len();
            let Some(value) = values.next() else { break };
            let value = value.map_err(|e| {
                // The error's own line counts from the beginning of the text.
                Code::Value.error(format!("line {}: not valid JSON: {e}", e.line().max(1)))
            })?;
            let (list, within) = match value {
                Json::Array(list) => (list, true),
                value => (vec![value], false),
            };
            for (i, value) in list.iter().enumerate() {
                let place = if within { format!(", event {}", i + 1) } else { String::new() };
                match event(value) {
                    Ok(Some(event)) => events.push(event),
                    Ok(None) => other += 1,
                    Err(why) => {
                        let why = format!("line {}{place}: {why}", line_at(begin));
                        let hint = "see the OpenLineage specification of a RunEvent";
                        return Err(Code::Value.error(why).with_hint(hint));
                    }
                }
            }
        }
        self.other += other;
        events.into_iter().for_each(|event| self.take(event));
        Ok(())
    }

    fn take(&mut self, event: Event) {
        self.runs.entry(event.job.clone()).or_default().take(event);
    }

    /// The jobs of the runs; a graph may have further events of them.
    pub fn jobs(&self) -> Vec<VertexName> {
        let others = self.runs.iter().filter(|(_, run)| !run.is_own());
        others.map(|(id, _)| VertexName::new("job", id)).collect()
    }

    /// Takes a graph's versions of a job, and all versions of its relations. The rows then also include events of
    /// earlier ingests.
    pub fn remember(&mut self, job: &VertexName, versions: &[Vertex], relations: &[Relation]) {
        if let Some(run) = self.runs.get_mut(&*job.id) {
            run.remember(versions, relations);
        }
    }

    /// The rows of all runs.
    pub fn rows(&self) -> Result<GraphRows> {
        let mut rows = GraphRows { whole: true, ..GraphRows::default() };
        for (id, run) in &self.runs {
            run.put(&VertexName::new("job", id), &mut rows)?;
        }
        if self.other > 0 {
            rows.notes.push(format!("left out {} OpenLineage events that name no run", self.other));
        }
        Ok(rows)
    }
}

/// An event; `None` for one without a run; an error says why it is incomplete.
fn event(value: &Json) -> std::result::Result<Option<Event>, String> {
    let event = value.as_object().ok_or("not a JSON object")?;
    let time = text(event, "eventTime")?;
    let time = parse_moment(&time)
        .and_then(|time| u64::try_from(time).ok())
        .ok_or_else(|| format!("eventTime '{}' is not an RFC 3339 time", clip(&time)))?;
    if !event.contains_key("run") {
        let known = event.contains_key("job") || event.contains_key("dataset");
        return if known { Ok(None) } else { Err("it has no run".to_owned()) };
    }
    let (run, job) = (object(event, "run")?, object(event, "job")?);
    let (namespace, name) = (text(job, "namespace")?, text(job, "name")?);
    let id = format!("openlineage:{namespace}/{name}/{}", text(run, "runId")?);
    let kind = match event.get("eventType") {
        None | Some(Json::Null) => String::new(),
        Some(kind) => kind.as_str().ok_or("eventType is not a text")?.to_ascii_uppercase(),
    };
    let mut facets = vec![
        ("name".to_owned(), Value::Text(clip(&name))),
        ("namespace".to_owned(), Value::Text(clip(&namespace))),
    ];
    facets.extend(scalars(run.get("facets")));
    facets.extend(scalars(job.get("facets")));
    let parent = parent(run);
    facets.extend(parent.iter().map(|parent| ("parent".to_owned(), Value::Text(clip(parent)))));
    let ours = own::execution(run.get("facets"))?;
    let near = ours.as_ref().map_or_else(|| VertexName::new("job", &id), |ours| ours.vertex.clone());
    let mut exact = ours.as_ref().map(|ours| ours.relations.clone()).unwrap_or_default();
    let mut data = Vec::new();
    for (member, written) in [("inputs", false), ("outputs", true)] {
        let sets = match event.get(member) {
            None | Some(Json::Null) => continue,
            Some(sets) => sets.as_array().ok_or_else(|| format!("{member} is not a list"))?,
        };
        for (i, set) in sets.iter().enumerate() {
            let named = |why: String| format!("{member}, number {}: {why}", i + 1);
            let set = set.as_object().ok_or_else(|| named("not a JSON object".to_owned()))?;
            let vertex = identifier(set).map_err(named)?;
            let of_use = set.get(if written { "outputFacets" } else { "inputFacets" });
            let kind = if written { "write" } else { "read" };
            if let Some(relations) = own::relations(kind, &near, of_use).map_err(named)? {
                exact.extend(relations);
                continue;
            }
            mentions(written, vertex, set, of_use, &mut data).map_err(named)?;
        }
    }
    Ok(Some(Event { time, kind, job: id, parent, facets, data, own: ours, exact }))
}

/// The vertex for an object with a namespace and a name.
fn identifier(object: &Map<String, Json>) -> std::result::Result<VertexName, String> {
    Ok(dataset(&text(object, "namespace")?, &text(object, "name")?))
}

/// An input or output of an event, under each of its names.
fn mentions(
    written: bool,
    vertex: VertexName,
    set: &Map<String, Json>,
    of_use: Option<&Json>,
    data: &mut Vec<DataMention>,
) -> std::result::Result<(), String> {
    let facets = set.get("facets");
    let facet = |name: &str| facets.and_then(|facets| facets.get(name)).and_then(Json::as_object);
    let state = facet("lifecycleStateChange");
    let word = state.and_then(|state| state.get("lifecycleStateChange")?.as_str()).unwrap_or_default();
    let change = match (word.to_ascii_uppercase().as_str(), written) {
        ("DROP", _) => Change::Removed,
        ("RENAME", true) => Change::Removed,
        ("TRUNCATE", _) | ("OVERWRITE" | "CREATE", true) => Change::Replaced,
        _ => Change::None,
    };
    // A change of an input is a write.
    let written = written || change != Change::None;
    let mut all = scalars(facets);
    let state: Scalars = all.iter().filter(|(name, _)| name == STATE).cloned().collect();
    if word.eq_ignore_ascii_case("RENAME")
        && let Some(before) = state_before(facet("lifecycleStateChange"))?
    {
        let mention = |written, change| {
            let (vertex, facets) = (before.clone(), state.clone());
            DataMention { written, vertex, facets, change }
        };
        data.extend([mention(false, Change::Renamed), mention(true, Change::Removed)]);
    }
    let links = facet("symlinks").and_then(|facet| facet.get("identifiers")?.as_array());
    for link in links.into_iter().flatten().filter_map(Json::as_object) {
        let (vertex, facets, change) = (identifier(link)?, state.clone(), change.clone());
        data.push(DataMention { written, vertex, facets, change });
    }
    all.extend(scalars(of_use));
    data.push(DataMention { written, vertex, facets: all, change });
    Ok(())
}

/// The name of a data set before it was renamed.
fn state_before(state: Option<&Map<String, Json>>) -> std::result::Result<Option<VertexName>, String> {
    let before = state.and_then(|state| state.get("previousIdentifier")?.as_object());
    before.map(identifier).transpose()
}

/// The job that contains a run, from its facet `parent`.
fn parent(run: &Map<String, Json>) -> Option<String> {
    let parent = run.get("facets")?.get("parent")?;
    let (job, run) = (parent.get("job")?, parent.get("run")?);
    let (namespace, name) = (job.get("namespace")?.as_str()?, job.get("name")?.as_str()?);
    Some(format!("openlineage:{namespace}/{name}/{}", run.get("runId")?.as_str()?))
}

/// The vertex of a data set.
fn dataset(namespace: &str, name: &str) -> VertexName {
    // `file://host` belongs to another host.
    let here = ["file", "file:", "file://", "file:///", "file://localhost"].contains(&namespace);
    match (here, name.strip_prefix("file://").unwrap_or(name)) {
        // A namespace may be a URL that contains a password.
        (false, _) => VertexName::new("dataset", &secrets::hide(&format!("{namespace}/{name}"))),
        (true, path) if path.starts_with('/') => VertexName::new("file", path),
        (true, path) => VertexName::new("file", &format!("/{path}")),
    }
}

/// Members of facets that are a text, a number or a bool, as `<facet>.<name>`.
fn scalars(facets: Option<&Json>) -> Scalars {
    let mut found = Vec::new();
    let all = facets.and_then(Json::as_object).into_iter().flatten();
    for (facet, members) in
        all.filter(|(facet, _)| ![own::EXECUTION, own::RELATION].contains(&facet.as_str()))
    {
        for (name, member) in members.as_object().into_iter().flatten() {
            let value = match member {
                _ if EMPTY.contains(&name.as_str()) || found.len() == FACETS => continue,
                Json::Bool(yes) => Value::Bool(*yes),
                Json::String(text) => Value::Text(clip(text)),
                Json::Number(number) => match (number.as_i64(), number.as_u64(), number.as_f64()) {
                    (Some(n), ..) => Value::Int(n),
                    (None, Some(n), _) => count(n),
                    (None, None, Some(x)) => Value::Float(x),
                    (None, None, None) => continue,
                },
                _ => continue,
            };
            found.push((format!("{facet}.{name}"), value));
        }
    }
    found
}

fn text(object: &Map<String, Json>, name: &str) -> std::result::Result<String, String> {
    match object.get(name).and_then(Json::as_str) {
        Some(text) if text.len() > NAME => Err(format!("its {name} is longer than {NAME} bytes")),
        Some(text) if !text.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("its {name} is missing or not a text")),
    }
}

fn object<'a>(
    event: &'a Map<String, Json>,
    name: &str,
) -> std::result::Result<&'a Map<String, Json>, String> {
    event.get(name).and_then(Json::as_object).ok_or_else(|| format!("{name} is not a JSON object"))
}

#[cfg(test)]
mod tests;
