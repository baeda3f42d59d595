//! `fieldstone show`: everything known of one field, or an overview of many.

use std::sync::Arc;

use clap::Args;
use fieldstone::{FieldStore, KeyValue, ListEntry, ListOptions, ReadOptions, Request, Result, Summary};
use serde_json::{Map, Value, json};

use crate::arguments::{Reading, Selecting, one_field};
use crate::content::Content;
use crate::explain::some_of;
use crate::output::{Done, Out, count};
use crate::table::{Column, Table};
use crate::{json, time};

/// Versions that are listed.
const VERSIONS: usize = 5;

const EXAMPLES: &str = "\
Examples:
  fieldstone show store
  fieldstone show store run=a variable=t step=6
  fieldstone show store run=a --json | jq .axes

A request that names one field shows it: key, type, shape, times, owner, place, extremes, versions, the
first values and, for variables of an ingested netCDF file, their attributes; for GRIB messages what
eccodes says of them. Any other shows what it selects: counts, and the values of each keyword.

With --json a field has what list --json has, and chunks, stored, versions, content, attributes and values;
an overview has url, schema, version, counts as in stats, and axes: per keyword count, first and last.";

/// Show one field, or an overview
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
}

/// Shows.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let request = arguments.selecting.parse()?;
    let store = arguments.store.open()?;
    if !request.is_empty() {
        let entries = store.list(&request, &ListOptions::default())?;
        let mut found = entries.take(2).collect::<Result<Vec<ListEntry>>>()?;
        if found.len() < 2 {
            // Absent: the error says why.
            let field = one_field(&*store, &request)?.lenient();
            let Some(entry) = found.pop() else { return Ok(()) };
            let content = Content::of(&store, &field)?;
            return one(&*store, &entry, field.chunks(), &content, out);
        }
    }
    overview(&*store, &request, out)
}

fn one(
    store: &dyn FieldStore,
    entry: &ListEntry,
    chunks: Option<Vec<u64>>,
    content: &Content,
    out: &mut Out,
) -> Done {
    let versions = versions(store, entry)?;
    if out.json() {
        let mut object = json::entry(entry);
        if let Some(object) = object.as_object_mut() {
            object.insert("chunks".into(), json!(chunks));
            object.insert("versions".into(), versions.iter().map(json::entry).map(version_json).collect());
            object.insert("content".into(), content.what.clone().into());
            let attributes = content.attributes.iter().cloned();
            object.insert("attributes".into(), Value::Object(attributes.collect::<Map<_, _>>()));
            object.insert("values".into(), content.values.clone().into());
        }
        return out.document(&object);
    }
    out.line(&entry.key)?;
    let schema = store.schema();
    let mut facts: Vec<(String, String)> = Vec::new();
    for (name, value) in entry.key.iter() {
        let kind = schema.type_of(name).map_or("Text", |kind| kind.name());
        facts.push((name.to_string(), format!("{value}  ({kind})")));
    }
    facts.push((String::new(), String::new()));
    let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
    let list = |extents: &[u64]| extents.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
    fact("content", content.what.clone());
    if let (Some(dtype), Some(shape)) = (entry.dtype, &entry.shape) {
        fact("type", dtype.to_string());
        fact("shape", if shape.is_empty() { "scalar".to_owned() } else { list(shape) });
    }
    if let Some(chunks) = chunks.filter(|chunks| entry.shape.as_deref() != Some(&chunks[..])) {
        fact("chunks", list(&chunks));
    }
    fact("bytes", entry.nbytes.to_string());
    if let Some(summary) = &entry.summary {
        fact("values", extremes(summary));
    }
    if !entry.complete {
        fact("complete", "no: pieces are missing".to_owned());
    }
    fact("flushed", time::utc(entry.time, true));
    fact("owner", entry.owner.to_string());
    if let Some(attempt) = &entry.attempt {
        fact("attempt", attempt.to_string());
    }
    fact("location", entry.place.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string));
    if versions.len() > 1 {
        let older = versions[1..].iter().take(VERSIONS).map(|e| time::utc(e.time, true));
        let more = versions.len().saturating_sub(VERSIONS + 1);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let older = older.collect::<Vec<_>>().join(", ");
        fact("versions", format!("{}; older: {older}{more}", versions.len()));
    }
    for (name, value) in &content.attributes {
        fact(name, value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    }
    if !content.values.is_empty() {
        let texts = content.values.iter().map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned));
        let more = if content.more { " …" } else { "" };
        fact("first", format!("{}{more}", texts.collect::<Vec<_>>().join("  ")));
    }
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(16);
    facts.iter().try_for_each(|(name, text)| out.line(format!("  {name:<width$}  {text}").trim_end()))?;
    content.note.iter().for_each(|note| out.note(note));
    Ok(())
}

fn version_json(mut entry: Value) -> Value {
    let mut part = |name: &str| (name.to_owned(), entry[name].take());
    Value::Object([part("time"), part("owner"), part("location"), part("masked")].into_iter().collect())
}

/// The versions of the entry's own key, the newest first. Its key as a request may name longer keys, too.
fn versions(store: &dyn FieldStore, entry: &ListEntry) -> Result<Vec<ListEntry>> {
    let mut request = Request::new();
    for (name, value) in entry.key.iter() {
        request.set(&**name, fieldstone::Values::list([value.text()]));
    }
    let options = ListOptions { masked: true, ..ListOptions::default() };
    let all = store.list(&request, &options)?;
    all.filter(|other| other.as_ref().map_or(true, |other| other.key == entry.key)).collect()
}

fn extremes(summary: &Summary) -> String {
    let text = |value: Option<fieldstone::Scalar>| {
        value.map_or_else(|| "nothing".to_owned(), |value| json::scalar(value).to_string())
    };
    let missing = match summary.missing {
        0 => String::new(),
        n => format!(", {n} missing"),
    };
    format!("{} to {}{missing}", text(summary.min), text(summary.max))
}

fn overview(store: &dyn FieldStore, request: &Request, out: &mut Out) -> Done {
    let stats = store.stats(request)?;
    let axes = store.axes(request, &ReadOptions::default())?;
    let version = store.version()?;
    let schema = store.schema();
    let name = schema.name().unwrap_or("custom");
    if out.json() {
        let axis = |(name, values): &(Arc<str>, Vec<KeyValue>)| {
            let text = |value: Option<&KeyValue>| value.map(|value| value.text().into_owned());
            let ends =
                json!({"count": values.len(), "first": text(values.first()), "last": text(values.last())});
            (name.to_string(), ends)
        };
        return out.document(&json!({
            "url": store.url(),
            "schema": name,
            "version": version,
            "request": request.to_string(),
            "datasets": stats.datasets,
            "indexes": stats.indexes,
            "fields": stats.fields,
            "bytes": stats.bytes,
            "stored_bytes": stats.stored_bytes,
            "axes": axes.iter().map(axis).collect::<Map<_, _>>(),
        }));
    }
    let (fields, datasets) = (count(stats.fields, "field"), count(stats.datasets, "dataset"));
    out.line(format_args!("{}: {fields} in {datasets}, {} bytes, schema {name}", store.url(), stats.bytes))?;
    let columns = [Column::text("keyword"), Column::number("values"), Column::text("").least(10).rank(6)];
    let mut table = Table::new(columns);
    for (keyword, values) in &axes {
        let some = some_of(keyword, values);
        let some = some.split_once('=').map_or("", |(_, values)| values);
        // The count stands beside them.
        let some = some.split_once(" (").map_or(some, |(values, _)| values).to_owned();
        table.row(vec![keyword.to_string(), values.len().to_string(), some], out)?;
    }
    table.finish(out)
}
