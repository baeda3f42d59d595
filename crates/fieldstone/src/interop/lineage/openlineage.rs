//! OpenLineage: events of runs, what they read and wrote.
//!
//! A file holds one event, a list of them, or one after another (one a line). The events of a run count as one,
//! whichever files they are in:
//!
//! * the run is the job `openlineage:<namespace>/<name>/<run id>`; it began with its event START, else with the first that
//!   is known, and ended with COMPLETE, FAIL or ABORT;
//! * inputs are read, outputs written, from its beginning to its end; there is no relation between an input and an
//!   output, as no event says which went into which;
//! * a data set of the namespace `file` (of this host) is the file of that path, every other one is
//!   `dataset:<namespace>/<name>`;
//! * facets that are a text, a number or a bool are kept as properties `<facet>.<name>`, of the run and its job at the job, of a
//!   data set at the relation; others, and what is not known here, are passed over;
//! * events without a run (of jobs, of data sets) are noted;
//! * events that Fieldstone itself exported come back as the vertices and relations they were made of
//!   ([`openlineage_own`](super::openlineage_own)).
//!
//! An event that is not whole is Invalid and named by its line, and nothing of its text is taken.

use std::collections::BTreeMap;

use fieldstone_core::value::{Value, parse_moment};
use fieldstone_core::{Code, Result};
use serde_json::{Map, Value as Json};

use super::openlineage_own::{self as own, OwnExecution};
use super::props::{PropList, Span, clip, count, put_execution, relation};
use super::{GraphRows, RelationPut, VertexName, VertexPut};

/// Longest name, of which an id has three and the graph takes 64 KiB.
const NAME: usize = 16 << 10;
/// Most properties that facets give a vertex or relation.
const FACETS: usize = 64;
/// Members of every facet that say nothing of the run.
const EMPTY: [&str; 3] = ["_producer", "_schemaURL", "_deleted"];

/// Whether this begins like an event, or a list of them.
pub fn is_event(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head);
    let begins = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    begins
        && text.contains("\"eventTime\"")
        && (text.contains("\"runId\"") || text.contains("openlineage.io/spec"))
}

/// Runs, put together from their events.
#[derive(Debug, Clone, Default)]
pub struct OpenLineage {
    runs: BTreeMap<String, RunEvents>,
    other: u64,
}

/// What is known of a run.
#[derive(Debug, Clone, Default)]
struct RunEvents {
    start: Option<u64>,
    first: Option<u64>,
    end: Option<(u64, String)>,
    /// Facets, of the events of its beginning and of all, each with the time of its event: the latest counts.
    begun: Facets,
    all: Facets,
    /// Relations: whether it was written, the data set.
    data: BTreeMap<(bool, VertexName), Facets>,
    /// What an export of ours says of the execution, of the newest event.
    own: Option<(u64, OwnExecution)>,
    /// Relations as such an export has them, by type, ends and stamp.
    exact: BTreeMap<(VertexName, std::sync::Arc<str>, VertexName, Option<u64>), RelationPut>,
}

/// Properties with the times of their events.
type Facets = BTreeMap<String, (u64, Value)>;

/// Scalars of facets, by name.
type Scalars = Vec<(String, Value)>;

/// An event, checked.
struct Event {
    time: u64,
    kind: String,
    job: String,
    facets: Scalars,
    data: Vec<(bool, VertexName, Scalars)>,
    own: Option<OwnExecution>,
    exact: Vec<RelationPut>,
}

impl OpenLineage {
    /// Takes the events of a text; nothing of it where one of them is not whole.
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
                // Its own line counts from the beginning of the text.
                Code::Value.error(format!("line {}: no JSON: {e}", e.line().max(1)))
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
        let Event { time, kind, job, facets, data, own, exact } = event;
        let run = self.runs.entry(job).or_default();
        run.first = Some(run.first.map_or(time, |first| first.min(time)));
        match kind.as_str() {
            "START" => {
                run.start = Some(run.start.map_or(time, |start| start.min(time)));
                merge(&mut run.begun, time, &facets);
            }
            "COMPLETE" | "FAIL" | "ABORT" => {
                let end = (time, kind);
                run.end = Some(run.end.take().map_or(end.clone(), |known| known.max(end)));
            }
            _ => {}
        }
        merge(&mut run.all, time, &facets);
        if let Some(own) = own.filter(|_| run.own.as_ref().is_none_or(|(known, _)| *known <= time)) {
            run.own = Some((time, own));
        }
        for put in exact {
            run.exact.insert((put.source.clone(), put.kind.clone(), put.target.clone(), put.time), put);
        }
        for (written, vertex, facets) in data {
            merge(run.data.entry((written, vertex)).or_default(), time, &facets);
        }
    }

    /// The rows of all runs.
    pub fn rows(&self) -> Result<GraphRows> {
        let mut rows = GraphRows::default();
        for (id, run) in &self.runs {
            let Some(begin) = run.start.or(run.first) else { continue };
            let span = Span { begin, end: run.end.as_ref().map(|(end, _)| *end) };
            rows.relations.extend(run.exact.values().cloned());
            let vertex = match &run.own {
                Some((_, own)) => own.vertex.clone(),
                None => VertexName::new("job", id),
            };
            if let Some((_, own)) = &run.own {
                put_own(&mut rows, own, span)?;
            }
            let (begun, mut ended) = (list(&run.begun), list(&run.all));
            ended.set_some("state", run.end.as_ref().map(|(_, state)| Value::Text(state.clone())));
            if run.own.is_none() {
                put_execution(&mut rows, &vertex, span, begun, &ended)?;
            }
            for ((written, data), facets) in &run.data {
                let kind = if *written { "write" } else { "read" };
                let mut put = relation(kind, &vertex, data, span);
                let mut props = list(facets);
                let size = ["outputStatistics.size", "inputStatistics.size"].map(|name| facets.get(name));
                if let Some((_, bytes @ (Value::Int(_) | Value::UInt(_)))) = size.into_iter().flatten().next()
                {
                    props.set("bytes", bytes.clone());
                }
                put.props = props.props()?;
                rows.relations.push(put);
            }
        }
        if self.other > 0 {
            rows.notes.push(format!("{} OpenLineage events are of no run and are left out", self.other));
        }
        Ok(rows)
    }
}

/// Puts an execution that an export of ours describes: with its times, where it had any.
fn put_own(rows: &mut GraphRows, own: &OwnExecution, span: Span) -> Result<()> {
    let (mut begun, mut ended) = (PropList::default(), PropList::default());
    let has = |name: &str| own.props.iter().any(|(known, _)| known == name);
    for (name, value) in own.props.iter().filter(|(name, _)| !matches!(name.as_str(), "start" | "end")) {
        let late = matches!(name.as_str(), "exit" | "signal" | "error" | "state");
        if late { ended.set(name, value.clone()) } else { begun.set(name, value.clone()) }
    }
    if span.end.is_none() {
        begun.merge(&ended);
    }
    if has("start") {
        return put_execution(rows, &own.vertex, span, begun, &ended);
    }
    begun.merge(&ended);
    if begun.len() > 0 {
        let props = begun.props()?;
        let time = Some(span.begin);
        rows.vertices.push(VertexPut { vertex: own.vertex.clone(), fixed: None, props, time });
    }
    Ok(())
}

/// Adds properties; where two events have one, that of the later counts, whichever was read first.
fn merge(into: &mut Facets, time: u64, facets: &Scalars) {
    for (name, value) in facets {
        let newer = |(known, held): &(u64, Value)| known.cmp(&time).then_with(|| held.order(value)).is_lt();
        if into.get(name).is_none_or(newer) {
            into.insert(name.clone(), (time, value.clone()));
        }
    }
}

fn list(facets: &Facets) -> PropList {
    let mut props = PropList::default();
    // Names with a dot are facets'; what an event itself says is always there.
    let (more, own): (Vec<_>, Vec<_>) = facets.iter().partition(|(name, _)| name.contains('.'));
    let kept = own.into_iter().chain(more.into_iter().take(FACETS));
    kept.for_each(|(name, (_, value))| props.set(name, value.clone()));
    props
}

/// An event; `None` for one of no run, and why it is not whole.
fn event(value: &Json) -> std::result::Result<Option<Event>, String> {
    let event = value.as_object().ok_or("not a JSON object")?;
    let time = text(event, "eventTime")?;
    let time = parse_moment(&time)
        .and_then(|time| u64::try_from(time).ok())
        .ok_or_else(|| format!("eventTime '{}' is no RFC 3339 time", clip(&time)))?;
    if !event.contains_key("run") {
        let known = event.contains_key("job") || event.contains_key("dataset");
        return if known { Ok(None) } else { Err("it has no run".to_owned()) };
    }
    let (run, job) = (object(event, "run")?, object(event, "job")?);
    let (namespace, name) = (text(job, "namespace")?, text(job, "name")?);
    let id = format!("openlineage:{namespace}/{name}/{}", text(run, "runId")?);
    let kind = match event.get("eventType") {
        None | Some(Json::Null) => String::new(),
        Some(kind) => kind.as_str().ok_or("eventType is no text")?.to_ascii_uppercase(),
    };
    let mut facets = vec![
        ("name".to_owned(), Value::Text(clip(&name))),
        ("namespace".to_owned(), Value::Text(clip(&namespace))),
    ];
    facets.extend(scalars(run.get("facets")));
    facets.extend(scalars(job.get("facets")));
    facets.extend(parent(run).map(|parent| ("parent".to_owned(), Value::Text(clip(&parent)))));
    let ours = own::execution(run.get("facets"))?;
    let near = ours.as_ref().map_or_else(|| VertexName::new("job", &id), |ours| ours.vertex.clone());
    let mut exact = ours.as_ref().map(|ours| ours.relations.clone()).unwrap_or_default();
    let mut data = Vec::new();
    for (member, written) in [("inputs", false), ("outputs", true)] {
        let sets = match event.get(member) {
            None | Some(Json::Null) => continue,
            Some(sets) => sets.as_array().ok_or_else(|| format!("{member} is no list"))?,
        };
        for (i, set) in sets.iter().enumerate() {
            let named = |why: String| format!("{member}, number {}: {why}", i + 1);
            let set = set.as_object().ok_or_else(|| named("not a JSON object".to_owned()))?;
            let vertex = dataset(&text(set, "namespace").map_err(named)?, &text(set, "name").map_err(named)?);
            let mut facets = scalars(set.get("facets"));
            let of_use = set.get(if written { "outputFacets" } else { "inputFacets" });
            let kind = if written { "write" } else { "read" };
            if let Some(relations) = own::relations(kind, &near, of_use).map_err(named)? {
                exact.extend(relations);
                continue;
            }
            facets.extend(scalars(of_use));
            data.push((written, vertex, facets));
        }
    }
    Ok(Some(Event { time, kind, job: id, facets, data, own: ours, exact }))
}

/// The job that a run is part of, by its facet `parent`.
fn parent(run: &Map<String, Json>) -> Option<String> {
    let parent = run.get("facets")?.get("parent")?;
    let (job, run) = (parent.get("job")?, parent.get("run")?);
    let (namespace, name) = (job.get("namespace")?.as_str()?, job.get("name")?.as_str()?);
    Some(format!("openlineage:{namespace}/{name}/{}", run.get("runId")?.as_str()?))
}

/// The vertex of a data set.
fn dataset(namespace: &str, name: &str) -> VertexName {
    // `file://host` is another host's.
    let here = ["file", "file:", "file://", "file:///", "file://localhost"].contains(&namespace);
    match (here, name.strip_prefix("file://").unwrap_or(name)) {
        (false, _) => VertexName::new("dataset", &format!("{namespace}/{name}")),
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
        _ => Err(format!("it has no text {name}")),
    }
}

fn object<'a>(
    event: &'a Map<String, Json>,
    name: &str,
) -> std::result::Result<&'a Map<String, Json>, String> {
    event.get(name).and_then(Json::as_object).ok_or_else(|| format!("{name} is no JSON object"))
}

#[cfg(test)]
#[path = "openlineage_tests.rs"]
mod tests;
