//! `fieldstone show`: everything known of one field, or an overview of many.

use clap::Args;
use fieldstone::catalog::query::Aggregate;
use fieldstone::facts::{CatalogFacts, FieldFacts, Overview};
use fieldstone::json::values::{scalar, time_in_seconds};
use fieldstone::prelude::*;
use fieldstone::{Extremes, ListEntry, ListOptions, Result, Scalar, Store, json};
use serde_json::Value;

use crate::arguments::{Reading, Selecting, one_field};
use crate::explain::some_of;
use crate::output::{Done, Out, count, size};
use crate::table::{Column, Table};

/// Versions, and tags, that are listed.
const VERSIONS: usize = 5;
const TAGS: usize = 12;

const EXAMPLES: &str = "\
Examples:
  fieldstone show store
  fieldstone show store run=a variable=t step=6
  fieldstone show store run=a --json | jq .axes

If the request names one field, it shows the field: key, type, shape, times, owner, location, extremes, versions, tags
of its attributes, the first values and, for variables of an ingested netCDF file, their attributes; for GRIB messages
it shows the keys that eccodes reads. For any other request it shows an overview: counts, and the values of each
keyword; for a whole store also its runs, the times of their steps, and the number of attributes of each tag.

With --json, a field has the members of list --json, and chunks, stored, versions, content, attributes, values and
tags. An overview has url, schema, version, counts as in stats, axes (count, first and last of each keyword), and
catalog (runs, times and tags).";

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
            let field = one_field(&store, &request)?.lenient();
            let Some(entry) = found.pop() else { return Ok(()) };
            return one(&store, &FieldFacts::of(&store, entry, &field)?, out);
        }
    }
    overview(&Overview::of(&store, &request)?, out)
}

/// Tags with how many attributes each has: `hot (3), maximum (1)`.
fn tags_text(tags: &[Aggregate]) -> String {
    let one = |tag: &Aggregate| format!("{} ({})", tag.tag.as_deref().unwrap_or("-"), tag.count);
    let more = tags.len().saturating_sub(TAGS);
    let shown = tags.iter().take(TAGS).map(one).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn one(store: &Store, field: &FieldFacts, out: &mut Out) -> Done {
    if out.json() {
        return out.document(&json::fields::field(field));
    }
    let entry = &field.entry;
    out.line(&entry.key)?;
    let schema = store.schema();
    let mut facts: Vec<(String, String)> = Vec::new();
    for (name, value) in entry.key.iter() {
        let kind = schema.type_of(name).map_or("Text", |kind| kind.name());
        facts.push((name.to_string(), format!("{value}  ({kind})")));
    }
    facts.push((String::new(), String::new()));
    facts.extend(of_array(field));
    facts.extend(of_storage(field));
    facts.extend(of_content(field));
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(16);
    facts.iter().try_for_each(|(name, text)| out.line(format!("  {name:<width$}  {text}").trim_end()))?;
    field.content.note.iter().for_each(|note| out.note(note));
    Ok(())
}

/// Its kind, and of an array type, shape and extremes.
fn of_array(field: &FieldFacts) -> Vec<(String, String)> {
    let entry = &field.entry;
    let mut facts = Vec::new();
    let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
    let list = |extents: &[u64]| extents.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
    fact("content", field.content.kind.clone());
    if let (Some(dtype), Some(shape)) = (entry.dtype, &entry.shape) {
        fact("type", dtype.to_string());
        fact("shape", if shape.is_empty() { "scalar".to_owned() } else { list(shape) });
    }
    if let Some(chunks) = field.chunks.as_deref().filter(|chunks| entry.shape.as_deref() != Some(*chunks)) {
        fact("chunks", list(chunks));
    }
    fact("bytes", entry.nbytes.to_string());
    if let Some(summary) = &entry.summary {
        fact("values", extremes(summary));
    }
    if !entry.complete {
        fact("complete", "no: pieces are missing".to_owned());
    }
    facts
}

/// Its time, owner, place and older versions.
fn of_storage(field: &FieldFacts) -> Vec<(String, String)> {
    let (entry, versions) = (&field.entry, &field.versions);
    let mut facts = Vec::new();
    let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
    fact("flushed", time_in_seconds(entry.time));
    fact("owner", entry.owner.to_string());
    if let Some(attempt) = &entry.attempt {
        fact("attempt", attempt.to_string());
    }
    fact("location", entry.place.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string));
    if versions.len() > 1 {
        let older = versions[1..].iter().take(VERSIONS).map(|e| time_in_seconds(e.time));
        let more = versions.len().saturating_sub(VERSIONS + 1);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let older = older.collect::<Vec<_>>().join(", ");
        fact("versions", format!("{}; older: {older}{more}", versions.len()));
    }
    facts
}

/// Tags of the attributes on it, its own attributes and its first values.
fn of_content(field: &FieldFacts) -> Vec<(String, String)> {
    let content = &field.content;
    let mut facts = Vec::new();
    let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if !field.tags.is_empty() {
        fact("tagged", tags_text(&field.tags));
    }
    for (name, value) in &content.attributes {
        fact(name, text(value));
    }
    if !content.values.is_empty() {
        let texts: Vec<String> = content.values.iter().map(text).collect();
        let more = if content.more { " …" } else { "" };
        fact("first", format!("{}{more}", texts.join("  ")));
    }
    facts
}

fn extremes(summary: &Extremes) -> String {
    let text =
        |value: Option<Scalar>| value.map_or_else(|| "nothing".to_owned(), |value| scalar(value).to_string());
    let missing = match summary.missing {
        None => ", missing ones among them".to_owned(),
        Some(0) => String::new(),
        Some(n) => format!(", {n} missing"),
    };
    format!("{} to {}{missing}", text(summary.min), text(summary.max))
}

fn catalogued(catalog: &CatalogFacts, out: &mut Out) -> Done {
    let times = catalog.times.map_or_else(String::new, |(first, last)| format!(", times {first} to {last}"));
    out.line(format_args!("catalog: {}{times}", count(catalog.runs, "run")))?;
    match catalog.tags.is_empty() {
        true => out.line("tags: none"),
        false => out.line(format_args!("tags: {}", tags_text(&catalog.tags))),
    }
}

fn overview(facts: &Overview, out: &mut Out) -> Done {
    if out.json() {
        return out.document(&json::reports::overview(facts));
    }
    let stats = &facts.stats;
    let (fields, datasets) = (count(stats.fields, "field"), count(stats.datasets, "dataset"));
    out.line(format_args!(
        "{}: {fields} in {datasets}, {}, schema {}",
        facts.url,
        size(stats.bytes),
        facts.schema
    ))?;
    facts.catalog.as_ref().map_or(Ok(()), |catalog| catalogued(catalog, out))?;
    let columns = [Column::text("keyword"), Column::number("values"), Column::text("").least(10).rank(6)];
    let mut table = Table::new(columns);
    for (keyword, values) in &facts.axes {
        let some = some_of(keyword, values);
        let some = some.split_once('=').map_or("", |(_, values)| values);
        // The count stands beside them.
        let some = some.split_once(" (").map_or(some, |(values, _)| values).to_owned();
        table.row(vec![keyword.to_string(), values.len().to_string(), some], out)?;
    }
    table.finish(out)
}
