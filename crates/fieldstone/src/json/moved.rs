//! Reports of fields and files that were moved into a store, out of one, or between stores.

use std::path::Path;

use fieldstone_core::key::FieldKey;
use fieldstone_core::request::ABSENT;
use fieldstone_store::Fields;
use serde_json::{Map, Value, json};

use super::fields::key;
use super::values;
use crate::catalog::RunName;
use crate::export::ExportReport;
use crate::transfer::{LeftBehind, TransferReport, Unreadable};
use crate::{IngestReport, Reason, Skipped, Taken};

/// A field that was archived: its key, its number of bytes, and the store's new version.
pub fn archived(key: &FieldKey, nbytes: usize, version: &str) -> Value {
    json!({"key": self::key(key, 3), "nbytes": nbytes, "version": version})
}

/// Fields whose bytes were written into the file at `path`.
pub fn written(fields: &Fields, nbytes: u64, path: &Path) -> Value {
    json!({
        "file": path.to_string_lossy(),
        "fields": fields.len(),
        "nbytes": nbytes,
        "missing": fields.missing_count(),
    })
}

/// The report of an ingest: files taken and left out; `interrupted` says whether it was stopped.
pub fn ingested(report: &IngestReport, interrupted: bool) -> Value {
    json!({
        "taken": report.taken.iter().map(taken).collect::<Vec<_>>(),
        "skipped": report.skipped.iter().map(skipped).collect::<Vec<_>>(),
        "reasons": report.reasons().iter().map(reason).collect::<Vec<_>>(),
        "totals": {
            "files": report.files,
            "taken": report.taken.len(),
            "skipped": report.missed(),
            "fields": report.fields(),
            "nbytes": report.nbytes(),
        },
        "interrupted": interrupted,
    })
}

/// A file that was taken, with the key that selects its fields.
pub fn taken(taken: &Taken) -> Value {
    let own = taken.key.iter().map(|(keyword, value)| (keyword.clone(), value.as_str().into()));
    let key = own.chain(taken.lacks.iter().map(|keyword| (keyword.clone(), ABSENT.into())));
    json!({
        "file": taken.path.to_string_lossy(),
        "key": key.collect::<Map<String, Value>>(),
        "fields": taken.fields,
        "bytes": taken.bytes,
        "unchanged": taken.unchanged,
        "meshes": taken.meshes,
    })
}

/// A file, or a part of one, that was skipped.
pub fn skipped(skipped: &Skipped) -> Value {
    json!({"file": skipped.path.to_string_lossy(), "what": skipped.what, "why": skipped.why})
}

fn reason(reason: &Reason<'_>) -> Value {
    let whole = reason.skipped.first().is_some_and(|first| first.is_whole());
    json!({"why": reason.why, "count": reason.skipped.len(), "whole": whole})
}

/// Files that an export wrote, and their omissions.
pub fn exported(report: &ExportReport) -> Value {
    json!({
        "files": report.files.iter().map(|file| file.to_string_lossy()).collect::<Vec<_>>(),
        "format": report.format,
        "fields": report.fields,
        "bytes": report.bytes,
        "skipped": report.skipped.iter().map(skipped).collect::<Vec<_>>(),
    })
}

/// The report of a copy into another store.
pub fn copied(report: &TransferReport) -> Value {
    transferred(report, Map::new())
}

/// The report of a move into another store, with the number of fields removed here, and those that were written again
/// during the move.
pub fn moved(report: &TransferReport) -> Value {
    let removed = [("removed", report.removed.into()), ("kept", report.kept.clone().into())];
    transferred(report, removed.map(|(name, value)| (name.to_owned(), value)).into_iter().collect())
}

fn transferred(report: &TransferReport, more: Map<String, Value>) -> Value {
    let mut object = Map::new();
    object.insert("fields".into(), report.fields.into());
    object.insert("bytes".into(), report.bytes.into());
    object.insert("unchanged".into(), report.unchanged.into());
    object.insert("versions".into(), report.versions.into());
    object.insert("attributes".into(), report.attributes.into());
    object.extend(more);
    object.insert("left".into(), report.left.iter().map(left).collect());
    object.insert("damaged".into(), report.damaged.iter().map(unreadable).collect());
    Value::Object(object)
}

fn left(left: &LeftBehind) -> Value {
    json!({"kind": left.kind, "count": left.count, "names": left.names, "why": left.why})
}

fn unreadable(field: &Unreadable) -> Value {
    json!({"key": field.key, "why": field.why})
}

/// Runs whose data outside the store are now in another folder.
pub fn repointed(runs: &[RunName]) -> Value {
    json!({"runs": runs.iter().map(values::run).collect::<Vec<_>>()})
}
