//! Process Run Crate 0.5: the metadata of an RO-Crate 1.1 that lists the actions behind a result.
//!
//! A job with its processes is one action. It has an instrument, the program; objects, the data that it read; results,
//! the data that it wrote; and an agent, the user who ran it. Files have `file://` addresses: the crate describes them
//! and does not contain them.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::value::{Value, moment_text};
use fieldstone_graph::dossier::Dossier;
use serde_json::{Map, Value as Json, json};

use super::names::{self, base, percent, stamp_text};
use crate::interop::lineage::VertexName;
use crate::interop::lineage::units::{Contact, Unit, units};
use crate::values_json::value as value_json;

/// The profile.
const PROFILE: &str = "https://w3id.org/ro/wfrun/process/0.5";

fn entity(id: &str, kind: impl Into<Json>, members: Json) -> Json {
    let mut entity = Map::new();
    entity.insert("@id".to_owned(), id.into());
    entity.insert("@type".to_owned(), kind.into());
    if let Json::Object(members) = members {
        entity.extend(members.into_iter().filter(|(_, value)| !value.is_null()));
    }
    Json::Object(entity)
}

fn reference(id: &str) -> Json {
    json!({"@id": id})
}

/// The id of a vertex in the crate.
fn id(vertex: &VertexName) -> String {
    let path = || percent(&vertex.id, "/-._~");
    match &*vertex.kind {
        "file" if vertex.id.starts_with('/') => format!("file://{}", path()),
        "directory" if vertex.id.starts_with('/') => format!("file://{}/", path().trim_end_matches('/')),
        kind => format!("#{}/{}", percent(kind, "-_"), path()),
    }
}

/// A time as validators of the profile accept it: with milliseconds and an offset.
fn iso(moment: &Value) -> String {
    let text = match moment {
        Value::DateTime(moment) => moment_text(*moment),
        other => return other.to_string(),
    };
    let (seconds, fraction) =
        text.trim_end_matches('Z').split_once('.').unwrap_or((text.trim_end_matches('Z'), ""));
    let milliseconds: String = fraction.chars().chain("000".chars()).take(3).collect();
    format!("{seconds}.{milliseconds}+00:00")
}

/// The media type for a file's suffix.
fn encoding(path: &str) -> &'static str {
    let suffix =
        path.rsplit('/').next().unwrap_or_default().rsplit_once('.').map_or("", |(_, suffix)| suffix);
    match suffix.to_ascii_lowercase().as_str() {
        "nc" | "nc4" | "cdf" => "application/netcdf",
        "grib" | "grb" | "grib1" | "grib2" | "grb2" => "application/wmo-grib",
        "h5" | "hdf5" | "he5" => "application/x-hdf5",
        "csv" => "text/csv",
        "txt" | "log" | "nml" | "cfg" | "ini" => "text/plain",
        "json" => "application/json",
        "yaml" | "yml" => "application/yaml",
        "pdf" => "application/pdf",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "svg" => "image/svg+xml",
        "tif" | "tiff" => "image/tiff",
        "py" => "text/x-python",
        "sh" => "application/x-sh",
        _ => "application/octet-stream",
    }
}

/// Several references, or one, or none.
fn references(ids: impl Iterator<Item = String>) -> Json {
    let all: Vec<Json> = ids.map(|id| reference(&id)).collect();
    match all.as_slice() {
        [] => Json::Null,
        [one] => one.clone(),
        _ => Json::Array(all),
    }
}

/// Entities by id, in the order of their ids.
#[derive(Default)]
struct Crate {
    entities: BTreeMap<String, Json>,
    parts: BTreeSet<String>,
    mentions: Vec<String>,
}

impl Crate {
    fn put(&mut self, id: String, kind: impl Into<Json>, members: Json) {
        self.entities.insert(id.clone(), entity(&id, kind, members));
    }

    /// Data, with size and checksum if known.
    fn data(&mut self, dossier: &Dossier, contact: &Contact, written: bool) {
        let (data, id) = (&contact.data, id(&contact.data));
        let kind = match &*data.kind {
            "file" => "File",
            "directory" => "Dataset",
            _ => "CreativeWork",
        };
        if kind != "CreativeWork" {
            self.parts.insert(id.clone());
        }
        let size = match dossier.prop(data, "size") {
            Some(Value::Int(size)) => Some(*size),
            _ => contact.bytes.filter(|_| written && contact.count == 1),
        };
        let sum = contact.checksum.as_ref().map(|checksum| {
            let sum = format!("#checksum/{}", percent(checksum, "-_."));
            let (method, value) = checksum.split_once(':').unwrap_or(("checksum", checksum));
            let members = json!({"propertyID": method, "name": "checksum", "value": value});
            self.put(sum.clone(), "PropertyValue", members);
            reference(&sum)
        });
        let mut known = self.entities.remove(&id).unwrap_or_else(|| {
            let name = if kind == "CreativeWork" { data.to_string() } else { base(data).to_owned() };
            let encoding = (kind == "File").then(|| encoding(&data.id));
            entity(&id, kind, json!({"name": name, "encodingFormat": encoding}))
        });
        if let Json::Object(members) = &mut known {
            for (name, value) in
                [("contentSize", size.map(|size| size.to_string().into())), ("identifier", sum)]
            {
                if let Some(value) = value.filter(|_| kind != "Dataset") {
                    members.entry(name).or_insert(value);
                }
            }
        }
        self.entities.insert(id, known);
    }

    /// The program of an action.
    fn instrument(&mut self, dossier: &Dossier, unit: &Unit) -> String {
        let program = unit.programs.first();
        let git = match unit.prop(dossier, "git") {
            Some(Value::Map(git)) => git.as_slice(),
            _ => &[],
        };
        let part =
            |name: &str| git.iter().find(|(known, _)| known == name).map(|(_, value)| value_json(value));
        let checksum = program.and_then(|program| program.checksum.as_deref());
        let version = part("commit").or(checksum.map(Json::from)).unwrap_or_else(|| "unknown".into());
        let name = match program {
            Some(program) => base(&program.data).to_owned(),
            None => unit.title(dossier),
        };
        let path = program.map_or_else(|| name.clone(), |program| program.data.id.to_string());
        // The path of the file, and its version.
        let id = format!(
            "{}{}#{}",
            if path.starts_with('/') { "file://" } else { "#program/" },
            percent(&path, "/-._~"),
            percent(version.as_str().unwrap_or_default(), "-._")
        );
        let members = json!({
            "name": name,
            "version": version,
            "description": program.map(|program| program.data.id.to_string()),
            "url": part("remote"),
        });
        self.put(id.clone(), "SoftwareApplication", members);
        id
    }

    fn action(&mut self, dossier: &Dossier, unit: &Unit) {
        let id = id(&unit.name);
        let instrument = self.instrument(dossier, unit);
        for (contacts, written) in [(&unit.reads, false), (&unit.writes, true)] {
            contacts.iter().for_each(|contact| self.data(dossier, contact, written));
        }
        let mut agents = Vec::new();
        for user in &unit.users {
            let agent = format!("#user/{}", percent(&user.id, "-_."));
            self.put(agent.clone(), "Person", json!({"name": dossier.user(&user.id)}));
            agents.push(agent);
        }
        let mut variables = Vec::new();
        if let Some(Value::Map(env)) = unit.prop(dossier, "env") {
            for (name, value) in env {
                let variable = format!("{id}/environment/{}", percent(name, "-_"));
                let value = if let Value::Text(text) = value { text.clone() } else { value.to_string() };
                self.put(variable.clone(), "PropertyValue", json!({"name": name, "value": value}));
                variables.push(variable);
            }
        }
        let moment =
            |name: &str| unit.prop(dossier, name).filter(|value| matches!(value, Value::DateTime(_)));
        let (start, end) = (moment("start").map(iso), moment("end").map(iso));
        let failure = unit.failure(dossier);
        let status = match (&failure, &end) {
            (Some(_), _) => "http://schema.org/FailedActionStatus",
            (None, Some(_)) => "http://schema.org/CompletedActionStatus",
            (None, None) => "",
        };
        let command = match unit.prop(dossier, "argv") {
            Some(words @ (Value::List(_) | Value::Array(_))) => Some(value_json(words).to_string()),
            _ => None,
        };
        let data = |contacts: &[Contact]| {
            references(contacts.iter().map(|contact| self::id(&contact.data)).collect::<Vec<_>>().into_iter())
        };
        let members = json!({
            "name": unit.title(dossier),
            "description": command.unwrap_or_else(|| format!("{} as recorded, without its command", unit.name)),
            "instrument": reference(&instrument),
            "agent": references(agents.into_iter()),
            "object": data(&unit.reads),
            "result": data(&unit.writes),
            "startTime": start,
            "endTime": end,
            "actionStatus": (!status.is_empty()).then_some(status),
            "error": failure,
            "environment": references(variables.into_iter()),
        });
        // A unit without shown results is still an action.
        let kind = if unit.writes.is_empty() { "ActivateAction" } else { "CreateAction" };
        self.put(id.clone(), kind, members);
        self.mentions.push(id);
    }
}

/// The metadata document.
pub fn metadata(dossier: &Dossier) -> Json {
    let mut all = Crate::default();
    for unit in units(dossier) {
        all.action(dossier, &unit);
    }
    let root = &dossier.lineage.root;
    let asked = names::short(&names::roots_text(&dossier.lineage), 200);
    let newest = dossier.relations().map(|edge| edge.stamp.max(edge.until.unwrap_or(0))).max().unwrap_or(0);
    let cut = if dossier.lineage.truncated { " It stops at a limit." } else { "" };
    let mut graph = vec![
        entity(
            "ro-crate-metadata.json",
            "CreativeWork",
            json!({"conformsTo": reference("https://w3id.org/ro/crate/1.1"), "about": reference("./")}),
        ),
        entity(
            "./",
            "Dataset",
            json!({
                "name": format!("Lineage of {}", asked),
                "description": format!("The origins of {}: data, and the executions that read and wrote them.{cut}", asked),
                "datePublished": stamp_text(newest),
                "license": "not stated",
                "conformsTo": reference(PROFILE),
                "mainEntity": all.entities.contains_key(&id(root)).then(|| reference(&id(root))),
                "hasPart": all.parts.iter().map(|id| reference(id)).collect::<Json>(),
                "mentions": references(all.mentions.iter().cloned()),
            }),
        ),
        entity(PROFILE, "CreativeWork", json!({"name": "Process Run Crate", "version": "0.5"})),
    ];
    graph.extend(all.entities.into_values());
    json!({
        "@context": ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"],
        "@graph": graph,
    })
}
