//! PROV-JSON, as submitted to the W3C in 2013.
//!
//! | here | there |
//! |---|---|
//! | job, process | activity; a process was started by its job |
//! | user | agent, a `prov:Person`; the execution was associated with it |
//! | everything else | entity |
//! | read, exe | `used`; of a program with the role `fst:executable` |
//! | write | `wasGeneratedBy` |
//!
//! An entity of PROV is generated once. Data that several executions wrote have an entity for each of them, which is a
//! specialization of the data: a revision of the previous one, unless it replaced that. A read used the newest one
//! (G-42).

use std::collections::BTreeMap;

use fieldstone_core::value::Value;
use fieldstone_graph::dossier::{Dossier, is_execution};
use fieldstone_graph::read::Relation;
use serde_json::{Map, Value as Json, json};

use super::names::{PRODUCER, local, percent, stamp_text};
use crate::interop::lineage::VertexName;
use crate::interop::lineage::units::{end, replaces};
use crate::values_json::value as value_json;

/// Data as one unit wrote them.
struct Generation<'a> {
    id: String,
    begin: u64,
    replaces: bool,
    writes: Vec<&'a Relation>,
}

/// The jobs of processes.
type JobOf<'a> = BTreeMap<&'a VertexName, &'a VertexName>;

/// Records by section and id.
#[derive(Default)]
struct Document(BTreeMap<&'static str, Map<String, Json>>);

impl Document {
    fn put(&mut self, section: &'static str, id: String, record: Json) {
        self.0.entry(section).or_default().insert(id, record);
    }

    /// A record without a name of its own.
    fn relate(&mut self, section: &'static str, record: Json) {
        let id = format!("_:{section}{}", self.0.get(section).map_or(0, Map::len) + 1);
        self.put(section, id, record);
    }
}

fn qualified(vertex: &VertexName) -> String {
    format!("fst:{}", local(vertex))
}

fn typed(name: &str) -> Json {
    json!({"$": name, "type": "xsd:QName"})
}

/// A property's value: a number, a bool, a text, a time; everything else as JSON text.
fn value(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) | Value::Text(_) => value_json(value),
        Value::Int(n) => json!({"$": n.to_string(), "type": "xsd:long"}),
        Value::UInt(n) => json!({"$": n.to_string(), "type": "xsd:unsignedLong"}),
        Value::Float(x) => {
            let text = match x {
                x if x.is_nan() => "NaN".to_owned(),
                x if x.is_infinite() => if *x > 0.0 { "INF" } else { "-INF" }.to_owned(),
                x => format!("{x:?}"),
            };
            json!({"$": text, "type": "xsd:double"})
        }
        Value::DateTime(_) => json!({"$": value_json(value), "type": "xsd:dateTime"}),
        other => Json::String(value_json(other).to_string()),
    })
}

fn attributes(record: &mut Map<String, Json>, props: &[(String, Value)], leave: &[&str]) {
    for (name, own) in props.iter().filter(|(name, _)| !leave.contains(&name.as_str())) {
        if let Some(own) = value(own) {
            record.insert(format!("fst:{}", percent(name, "_-")), own);
        }
    }
}

/// The document.
pub fn document(dossier: &Dossier) -> Json {
    let mut document = Document::default();
    let mut jobs = JobOf::new();
    for edge in dossier.relations().filter(|edge| edge.kind == "contains") {
        jobs.entry(&edge.far).or_insert(&edge.near);
    }
    let generations = generations(dossier, &jobs);
    for vertex in dossier.vertices() {
        describe(&mut document, dossier, vertex);
    }
    for (vertex, versions) in &generations {
        for (i, version) in versions.iter().enumerate().filter(|(_, version)| version.id != qualified(vertex))
        {
            let label = format!("{vertex} as of {}", stamp_text(version.begin));
            let kind = format!("fst:{}", percent(&vertex.kind, "_-"));
            document.put(
                "entity",
                version.id.clone(),
                json!({"prov:label": label, "prov:type": typed(&kind)}),
            );
            document.relate(
                "specializationOf",
                json!({"prov:specificEntity": version.id, "prov:generalEntity": qualified(vertex)}),
            );
            if let Some(before) = i.checked_sub(1).and_then(|i| versions.get(i)).filter(|_| !version.replaces)
            {
                document.relate(
                    "wasDerivedFrom",
                    json!({
                        "prov:generatedEntity": version.id,
                        "prov:usedEntity": before.id,
                        "prov:type": typed("prov:Revision"),
                    }),
                );
            }
        }
    }
    for version in generations.values().flatten() {
        generate(&mut document, &jobs, version);
    }
    for edge in dossier.relations() {
        relate(&mut document, dossier, &generations, edge);
    }
    let mut all = Map::new();
    all.insert(
        "prefix".to_owned(),
        json!({
            "fst": format!("{PRODUCER}/graph/"),
            "prov": "http://www.w3.org/ns/prov#",
            "xsd": "http://www.w3.org/2001/XMLSchema#",
        }),
    );
    for section in [
        "entity",
        "activity",
        "agent",
        "wasGeneratedBy",
        "used",
        "wasAssociatedWith",
        "wasStartedBy",
        "wasDerivedFrom",
        "specializationOf",
    ] {
        if let Some(records) = document.0.remove(section) {
            all.insert(section.to_owned(), Json::Object(records));
        }
    }
    Json::Object(all)
}

/// The writers of data, by data: each unit in turn makes a version.
fn generations<'a>(dossier: &'a Dossier, jobs: &JobOf<'a>) -> BTreeMap<&'a VertexName, Vec<Generation<'a>>> {
    let mut all: BTreeMap<&VertexName, Vec<Generation<'a>>> = BTreeMap::new();
    for edge in dossier.lineage.edges.iter().filter(|edge| edge.kind == "write") {
        let unit =
            |edge: &Relation| jobs.get(&edge.near).map_or_else(|| edge.near.clone(), |job| (*job).clone());
        let versions = all.entry(&edge.far).or_default();
        match versions
            .last_mut()
            .filter(|last| last.writes.last().is_some_and(|known| unit(known) == unit(edge)))
        {
            Some(last) => last.writes.push(edge),
            None => versions.push(Generation {
                id: format!("{}@{}", qualified(&edge.far), edge.stamp),
                begin: edge.stamp,
                replaces: replaces(edge),
                writes: vec![edge],
            }),
        }
    }
    for (vertex, versions) in &mut all {
        if let [only] = versions.as_mut_slice() {
            only.id = qualified(vertex);
        }
        // Two versions that began at one stamp need two names.
        for i in 1..versions.len() {
            if versions[i - 1].id.split('!').next() == Some(versions[i].id.as_str()) {
                versions[i].id = format!("{}!{i}", versions[i].id);
            }
        }
    }
    all
}

fn describe(document: &mut Document, dossier: &Dossier, vertex: &VertexName) {
    let mut record = Map::new();
    let execution = is_execution(&vertex.kind);
    let of_text = |name: &str| match dossier.prop(vertex, name) {
        Some(Value::Text(text)) => Some(text.clone()),
        _ => None,
    };
    record.insert("prov:label".to_owned(), of_text("name").unwrap_or_else(|| vertex.to_string()).into());
    record.insert("prov:type".to_owned(), typed(&format!("fst:{}", percent(&vertex.kind, "_-"))));
    record.insert("fst:id".to_owned(), (&*vertex.id).into());
    let times = if execution { ["start", "end"] } else { ["", ""] };
    for (name, to) in times.iter().zip(["prov:startTime", "prov:endTime"]) {
        if let Some(moment @ Value::DateTime(_)) = dossier.prop(vertex, name) {
            record.insert(to.to_owned(), value_json(moment));
        }
    }
    let props = dossier.props.get(vertex).map(Vec::as_slice).unwrap_or_default();
    attributes(&mut record, props, &["start", "end", "id"]);
    document.put(if execution { "activity" } else { "entity" }, qualified(vertex), Json::Object(record));
}

/// The relation between a version of data and its writer; if several members of a job wrote it, the job.
fn generate(document: &mut Document, jobs: &JobOf<'_>, version: &Generation<'_>) {
    let (Some(first), Some(last)) = (version.writes.first(), version.writes.last()) else { return };
    let several = version.writes.iter().any(|write| write.near != first.near);
    let activity = match jobs.get(&first.near).filter(|_| several) {
        Some(job) => *job,
        None => &first.near,
    };
    let ended = version.writes.iter().map(|write| end(write)).max().unwrap_or(last.stamp);
    let mut record = Map::new();
    record.insert("prov:entity".to_owned(), version.id.as_str().into());
    record.insert("prov:activity".to_owned(), qualified(activity).into());
    record.insert("prov:time".to_owned(), stamp_text(ended).into());
    attributes(&mut record, &last.props, &[]);
    document.relate("wasGeneratedBy", Json::Object(record));
}

fn relate(
    document: &mut Document,
    dossier: &Dossier,
    generations: &BTreeMap<&VertexName, Vec<Generation<'_>>>,
    edge: &Relation,
) {
    match edge.kind.as_str() {
        "read" | "exe" => {
            let versions = generations.get(&edge.far).map(Vec::as_slice).unwrap_or_default();
            let by = if edge.kind == "exe" { edge.stamp } else { end(edge) };
            let newest = versions.iter().rev().find(|version| version.begin <= by);
            let entity = newest.map_or_else(|| qualified(&edge.far), |version| version.id.clone());
            let mut record = Map::new();
            record.insert("prov:activity".to_owned(), qualified(&edge.near).into());
            record.insert("prov:entity".to_owned(), entity.into());
            record.insert("prov:time".to_owned(), stamp_text(edge.stamp).into());
            if edge.kind == "exe" {
                record.insert("prov:role".to_owned(), typed("fst:executable"));
            }
            attributes(&mut record, &edge.props, &[]);
            document.relate("used", Json::Object(record));
        }
        "contains" => document.relate(
            "wasStartedBy",
            json!({"prov:activity": qualified(&edge.far), "prov:starter": qualified(&edge.near)}),
        ),
        "run" => {
            let label = dossier.user(&edge.near.id);
            document.put(
                "agent",
                qualified(&edge.near),
                json!({"prov:type": typed("prov:Person"), "prov:label": label, "fst:id": &*edge.near.id}),
            );
            document.relate(
                "wasAssociatedWith",
                json!({"prov:activity": qualified(&edge.far), "prov:agent": qualified(&edge.near)}),
            );
        }
        _ => {}
    }
}
