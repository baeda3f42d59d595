//! OpenLineage: for each execution the events of its beginning and its end.
//!
//! Facts that every reader of OpenLineage understands are in the members and facets of its specification. Other facts
//! are in two facets of our own, by which `ingest` takes an export back as the same relations:
//!
//! * `fieldstone_execution`, of a run: its vertex, properties, users, job and programs;
//! * `fieldstone_relation`, of an input or output: its vertex, and the stamps and properties of each version.
//!
//! Files and directories are data sets of the namespace `file`; other data have the namespace `fieldstone`, except
//! those that came from OpenLineage, which keep their own.

use std::collections::BTreeMap;

use fieldstone_core::value::Value;
use fieldstone_graph::dossier::{Dossier, is_execution};
use fieldstone_graph::read::Relation;
use serde_json::{Map, Value as Json, json};
use xxhash_rust::xxh3::xxh3_128;

use super::names::{self, PRODUCER, stamp_text};
use crate::interop::lineage::units::{number, text};
use crate::interop::lineage::{VertexName, outcome};
use crate::values_json::{named as named_json, value as value_json};

/// The specification that events follow.
const EVENT: &str = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent";
/// Namespace of data without one of their own.
const NAMESPACE: &str = "fieldstone";

/// Maximum length in bytes of a name that readers must accept; our own facets have the whole id.
const NAME: usize = 16 << 10;

/// A name cut to the maximum length.
fn clipped(name: String) -> String {
    if name.len() > NAME { names::short(&name, NAME / 4) } else { name }
}

/// A facet of the specification.
fn facet(name: &str, version: &str, members: Json) -> Json {
    let url = format!("https://openlineage.io/spec/facets/{version}/{name}.json#/$defs/{name}");
    with_origin(&url, members)
}

/// A facet of our own.
fn own(name: &str, members: Json) -> Json {
    with_origin(&format!("{PRODUCER}/blob/main/docs/guide/sharing-lineage.md#{name}"), members)
}

fn with_origin(url: &str, members: Json) -> Json {
    let mut facet = Map::new();
    facet.insert("_producer".to_owned(), PRODUCER.into());
    facet.insert("_schemaURL".to_owned(), url.into());
    if let Json::Object(members) = members {
        facet.extend(members);
    }
    Json::Object(facet)
}

fn pair(vertex: &VertexName) -> Json {
    json!([&*vertex.kind, &*vertex.id])
}

/// Versions of a relation: stamps and properties.
fn versions(edges: &[&Relation]) -> Json {
    let version = |edge: &&Relation| json!({"stamp": edge.stamp, "until": edge.until, "props": named_json(&edge.props)});
    edges.iter().map(version).collect()
}

/// Relations that begin and end at each execution.
#[derive(Default)]
struct Ends<'a> {
    from: BTreeMap<&'a VertexName, Vec<&'a Relation>>,
    to: BTreeMap<&'a VertexName, Vec<&'a Relation>>,
}

impl<'a> Ends<'a> {
    fn of(dossier: &'a Dossier) -> Ends<'a> {
        let mut ends = Ends::default();
        for edge in dossier.relations() {
            ends.from.entry(&edge.near).or_default().push(edge);
            if is_execution(&edge.far.kind) {
                ends.to.entry(&edge.far).or_default().push(edge);
            }
        }
        ends
    }

    fn from(&self, execution: &VertexName) -> &[&'a Relation] {
        self.from.get(execution).map(Vec::as_slice).unwrap_or_default()
    }

    fn to(&self, execution: &VertexName) -> &[&'a Relation] {
        self.to.get(execution).map(Vec::as_slice).unwrap_or_default()
    }
}

/// The events, by execution.
pub fn events(dossier: &Dossier) -> Json {
    let ends = Ends::of(dossier);
    let mut events: Vec<(u64, bool, &VertexName, Json)> = Vec::new();
    for execution in dossier.vertices().filter(|name| is_execution(&name.kind)) {
        let run = RunParts::of(dossier, &ends, execution);
        let begins = run.begin.min(run.end.unwrap_or(u64::MAX));
        // Without a known end, the first event has all known facts.
        events.push((begins, false, execution, run.event("START", begins, run.end.is_none())));
        if let Some(end) = run.end {
            let kind = if run.failed { "FAIL" } else { "COMPLETE" };
            events.push((end, true, execution, run.event(kind, end, true)));
        }
    }
    events.sort_by(|a, b| (a.0, a.2, a.1).cmp(&(b.0, b.2, b.1)));
    events.into_iter().map(|(.., event)| event).collect()
}

struct RunParts {
    begin: u64,
    end: Option<u64>,
    failed: bool,
    run: Json,
    job: Json,
    inputs: Vec<Json>,
    outputs: Vec<Json>,
}

/// Namespace, name and id of an execution's run; if OpenLineage named it, the original ones.
fn identity(dossier: &Dossier, execution: &VertexName) -> [String; 3] {
    let of_text = |name: &str| match dossier.prop(execution, name) {
        Some(Value::Text(text)) if !text.is_empty() => Some(text.clone()),
        _ => None,
    };
    if let (Some(space), Some(name)) = (of_text("namespace"), of_text("name"))
        && let Some(run) = execution.id.strip_prefix(&format!("openlineage:{space}/{name}/"))
    {
        return [space, name, run.to_owned()];
    }
    let program = match dossier.prop(execution, "argv") {
        Some(Value::List(words) | Value::Array(words)) => match words.first() {
            Some(Value::Text(program)) => program.rsplit('/').next().map(str::to_owned),
            _ => None,
        },
        _ => None,
    };
    // The id as 128 bits in the form of a UUID of version 8.
    let bits = xxh3_128(execution.to_string().as_bytes());
    let bits = bits & !(0xf << 76) & !(0x3 << 62) | 8 << 76 | 2 << 62;
    let hex = format!("{bits:032x}");
    let uuid = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-");
    let name = of_text("name").or(program.filter(|name| !name.is_empty()));
    [NAMESPACE.to_owned(), clipped(name.unwrap_or_else(|| execution.id.to_string())), uuid]
}

impl RunParts {
    fn of(dossier: &Dossier, ends: &Ends<'_>, execution: &VertexName) -> RunParts {
        let edges: Vec<&Relation> =
            ends.from(execution).iter().copied().filter(|edge| edge.kind != "contains").collect();
        let moment = |name: &str| match dossier.prop(execution, name) {
            Some(Value::DateTime(moment)) => u64::try_from(*moment).ok(),
            _ => None,
        };
        // For a job without times and relations, those of its processes.
        let around = ends.from(execution).iter().chain(ends.to(execution));
        let first = edges.iter().map(|edge| edge.stamp).min().or(around.map(|edge| edge.stamp).min());
        let (begin, end) = (moment("start").or(first).unwrap_or_default(), moment("end"));
        let failure = outcome::failure(|name| dossier.prop(execution, name));
        let [namespace, name, id] = identity(dossier, execution);
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (kind, list) in [("read", &mut inputs), ("write", &mut outputs)] {
            let mut by_data: BTreeMap<&VertexName, Vec<&Relation>> = BTreeMap::new();
            for edge in edges.iter().filter(|edge| edge.kind == kind) {
                by_data.entry(&edge.far).or_default().push(edge);
            }
            list.extend(by_data.into_iter().map(|(data, edges)| dataset(data, &edges, kind == "write")));
        }
        let job_facets = job_facets(dossier, execution);
        RunParts {
            begin,
            end,
            failed: failure.is_some(),
            run: json!({"runId": id, "facets": run_facets(dossier, execution, (&edges, ends.to(execution)), failure)}),
            job: json!({"namespace": namespace, "name": name, "facets": job_facets}),
            inputs,
            outputs,
        }
    }

    /// An event; the last one also has the reads and writes.
    fn event(&self, kind: &str, time: u64, whole: bool) -> Json {
        let (inputs, outputs): (&[Json], &[Json]) =
            if whole { (&self.inputs, &self.outputs) } else { (&[], &[]) };
        json!({
            "eventType": kind,
            "eventTime": stamp_text(time),
            "run": self.run,
            "job": self.job,
            "inputs": inputs,
            "outputs": outputs,
            "producer": PRODUCER,
            "schemaURL": EVENT,
        })
    }
}

fn run_facets(
    dossier: &Dossier,
    execution: &VertexName,
    (edges, before): (&[&Relation], &[&Relation]),
    failure: Option<String>,
) -> Json {
    let mut facets = Map::new();
    let jobs: Vec<&Relation> = before.iter().copied().filter(|edge| edge.kind == "contains").collect();
    if let Some(job) = jobs.first() {
        let [namespace, name, id] = identity(dossier, &job.near);
        let members = json!({"run": {"runId": id}, "job": {"namespace": namespace, "name": name}});
        facets.insert("parent".to_owned(), facet("ParentRunFacet", "1-0-1", members));
    }
    if let Some(message) = failure {
        let members = json!({"message": message, "programmingLanguage": "unknown"});
        facets.insert("errorMessage".to_owned(), facet("ErrorMessageRunFacet", "1-0-1", members));
    }
    if let Some(Value::Map(env)) = dossier.prop(execution, "env") {
        let one = |(name, value): &(String, Value)| {
            let value = if let Value::Text(text) = value { text.clone() } else { value.to_string() };
            json!({"name": name, "value": value})
        };
        let members = json!({"environmentVariables": env.iter().map(one).collect::<Json>()});
        let own = facet("EnvironmentVariablesRunFacet", "1-0-0", members);
        facets.insert("environmentVariables".to_owned(), own);
    }
    let relations = |of: &mut dyn Iterator<Item = (&Relation, &VertexName)>| -> Json {
        of.map(|(edge, far)| json!({"vertex": pair(far), "versions": versions(&[edge])})).collect()
    };
    // Sorted by name: a program that takes them back may keep another order.
    let mut props = dossier.props.get(execution).cloned().unwrap_or_default();
    props.sort_by(|a, b| a.0.cmp(&b.0));
    let runs = before.iter().filter(|edge| edge.kind == "run");
    let programs = edges.iter().filter(|edge| edge.kind == "exe");
    let members = json!({
        "vertex": pair(execution),
        "props": named_json(&props),
        "users": relations(&mut runs.map(|run| (*run, &run.near))),
        "jobs": relations(&mut jobs.iter().map(|edge| (*edge, &edge.near))),
        "programs": relations(&mut programs.map(|edge| (*edge, &edge.far))),
    });
    facets.insert("fieldstone_execution".to_owned(), own("fieldstone_execution", members));
    Json::Object(facets)
}

fn job_facets(dossier: &Dossier, execution: &VertexName) -> Json {
    let mut facets = Map::new();
    let members = json!({"processingType": "BATCH", "integration": "FIELDSTONE", "jobType": execution.kind.to_uppercase()});
    facets.insert("jobType".to_owned(), facet("JobTypeJobFacet", "2-0-3", members));
    if let Some(Value::Map(git)) = dossier.prop(execution, "git") {
        let part =
            |name: &str| git.iter().find(|(known, _)| known == name).map(|(_, value)| value_json(value));
        if let (Some(url), Some(commit)) = (part("remote"), part("commit")) {
            let mut members = json!({"type": "git", "url": url, "repoUrl": url, "version": commit});
            if let (Some(branch), Json::Object(members)) = (part("branch"), &mut members) {
                members.insert("branch".to_owned(), branch);
            }
            let own = facet("SourceCodeLocationJobFacet", "1-0-1", members);
            facets.insert("sourceCodeLocation".to_owned(), own);
        }
    }
    Json::Object(facets)
}

/// Namespace and name of a data set.
fn named(data: &VertexName) -> (String, String) {
    match &*data.kind {
        "file" | "directory" if data.id.starts_with('/') => ("file".to_owned(), data.id.to_string()),
        "dataset" => {
            // `s3://bucket` and `postgres://host:5432` are namespaces; otherwise the first word is.
            let authority = data.id.find("://").map_or(0, |at| at + 3);
            match data.id[authority..].find('/').map(|at| data.id.split_at(authority + at)) {
                Some((space, name)) if !space.is_empty() && name.len() > 1 => {
                    (space.to_owned(), name[1..].to_owned())
                }
                _ => (NAMESPACE.to_owned(), data.to_string()),
            }
        }
        _ => (NAMESPACE.to_owned(), data.to_string()),
    }
}

/// A data set with its facets.
fn dataset(data: &VertexName, edges: &[&Relation], written: bool) -> Json {
    let (namespace, name) = named(data);
    let (namespace, name) = (clipped(namespace), clipped(name));
    let mut facets = Map::new();
    if let Some(checksum) = edges.iter().rev().find_map(|edge| text(edge, "checksum")) {
        let members = json!({"datasetVersion": checksum});
        facets.insert("version".to_owned(), facet("DatasetVersionDatasetFacet", "1-0-1", members));
    }
    let mut of_use = Map::new();
    let sizes: Vec<i64> = edges.iter().filter_map(|edge| number(edge, "bytes")).collect();
    let kind = if written { "Output" } else { "Input" };
    if !sizes.is_empty() {
        let size = sizes.into_iter().fold(0i64, i64::saturating_add);
        let name = format!("{kind}Statistics{kind}DatasetFacet");
        let version = if written { "1-0-2" } else { "1-0-0" };
        of_use.insert(
            format!("{}Statistics", kind.to_lowercase()),
            facet(&name, version, json!({"size": size})),
        );
    }
    let members = json!({"vertex": pair(data), "versions": versions(edges)});
    of_use.insert("fieldstone_relation".to_owned(), own("fieldstone_relation", members));
    let mut set = Map::new();
    set.insert("namespace".to_owned(), namespace.into());
    set.insert("name".to_owned(), name.into());
    set.insert("facets".to_owned(), Json::Object(facets));
    set.insert(format!("{}Facets", kind.to_lowercase()), Json::Object(of_use));
    Json::Object(set)
}
