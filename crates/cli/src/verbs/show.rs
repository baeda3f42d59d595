//! `fieldstone show`: everything known of one field, or an overview of many.

use clap::Args;
use fieldstone::catalog::query::{Aggregate, By, Expr, NameTest, Query, Term};
use fieldstone::json::reports::Overview;
use fieldstone::json::values::{scalar, time_in_seconds};
use fieldstone::unpacked::unpack;
use fieldstone::{
    Extremes, Field, FieldStore, ListEntry, ListOptions, ReadOptions, Request, Result, Scalar, Store, json,
};
use serde_json::{Map, Value};

use crate::arguments::{Reading, Selecting, one_field};
use crate::content::Content;
use crate::explain::some_of;
use crate::output::{Done, Out, count, size};
use crate::table::{Column, Table};

/// Versions, and tags, that are listed.
const VERSIONS: usize = 5;
const TAGS: usize = 12;
/// Longest field that is read for its extremes.
const READ_MAX: u64 = 256 << 20;

const EXAMPLES: &str = "\
Examples:
  fieldstone show store
  fieldstone show store run=a variable=t step=6
  fieldstone show store run=a --json | jq .axes

A request that names one field shows it: key, type, shape, times, owner, place, extremes, versions, tags of
attributes on it, the first values and, for variables of an ingested netCDF file, their attributes; for GRIB
messages what eccodes says of them. Any other shows what it selects: counts, and the values of each keyword;
of a whole store also its runs, the times of their steps, and how many attributes each tag has.

With --json a field has what list --json has, and chunks, stored, versions, content, attributes, values and
tags; an overview has url, schema, version, counts as in stats, axes: per keyword count, first and last, and
catalog: runs, times and tags.";

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
            let Some(mut entry) = found.pop() else { return Ok(()) };
            let content = Content::of(&store, &field)?;
            entry.summary = meant(&entry, &field, &content)?;
            return one(&store, &entry, field.chunks(), &content, out);
        }
    }
    overview(&store, &request, out)
}

/// Extremes of what the elements stand for: from the index, or from the field where the index has a fill value alone.
fn meant(entry: &ListEntry, field: &Field, content: &Content) -> Result<Option<Extremes>> {
    let (Some(stored), Some(packing), Some(dtype)) = (&entry.summary, &content.packing, entry.dtype) else {
        return Ok(entry.summary);
    };
    let known = unpack(packing, stored);
    if known.missing.is_some() || !entry.complete || entry.nbytes > READ_MAX {
        return Ok(Some(known));
    }
    let values = packing.decode(dtype, &field.read()?)?;
    let there = || values.iter().copied().filter(|value| !value.is_nan());
    let missing = values.len() as u64 - there().count() as u64;
    let ends = [there().reduce(f64::min), there().reduce(f64::max)].map(|end| end.map(Scalar::Float));
    Ok(Some(Extremes { min: ends[0], max: ends[1], missing: Some(missing) }))
}

/// Tags of the attributes that stand on a field, each with how many there are.
fn tagged(store: &Store, entry: &ListEntry) -> Result<Vec<Aggregate>> {
    let schema = store.schema();
    let (Some((project, run)), Some(variable)) = (schema.run_of(&entry.key), schema.variable_of(&entry.key))
    else {
        return Ok(Vec::new());
    };
    let mut terms = vec![
        Term::Run(NameTest::Is(run)),
        Term::Project(NameTest::Is(project)),
        Term::Variable(NameTest::Is(variable.into_owned())),
    ];
    terms.extend(schema.step_of(&entry.key).map(|step| Term::Step(vec![(step, step)])));
    let query = Query { expr: Expr::All(terms.into_iter().map(Expr::Term).collect()), ..Query::all() };
    store.catalog().aggregate(&query, &[By::Tag])
}

/// Tags with how many attributes each has: `hot (3), maximum (1)`.
fn tags_text(tags: &[Aggregate]) -> String {
    let one = |tag: &Aggregate| format!("{} ({})", tag.tag.as_deref().unwrap_or("-"), tag.count);
    let more = tags.len().saturating_sub(TAGS);
    let shown = tags.iter().take(TAGS).map(one).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn one(store: &Store, entry: &ListEntry, chunks: Option<Vec<u64>>, content: &Content, out: &mut Out) -> Done {
    let versions = versions(&**store, entry)?;
    let tags = match store.catalog().has_records()? {
        true => tagged(store, entry)?,
        false => Vec::new(),
    };
    let field = FieldFacts { entry, chunks, content, versions, tags };
    if out.json() {
        return out.document(&field.json());
    }
    out.line(&entry.key)?;
    let schema = store.schema();
    let mut facts: Vec<(String, String)> = Vec::new();
    for (name, value) in entry.key.iter() {
        let kind = schema.type_of(name).map_or("Text", |kind| kind.name());
        facts.push((name.to_string(), format!("{value}  ({kind})")));
    }
    facts.push((String::new(), String::new()));
    facts.extend(field.of_array());
    facts.extend(field.of_storage());
    facts.extend(field.of_content());
    let width = facts.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(16);
    facts.iter().try_for_each(|(name, text)| out.line(format!("  {name:<width$}  {text}").trim_end()))?;
    content.note.iter().for_each(|note| out.note(note));
    Ok(())
}

/// The facts of one field, as they are shown.
struct FieldFacts<'a> {
    entry: &'a ListEntry,
    chunks: Option<Vec<u64>>,
    content: &'a Content,
    /// The newest first.
    versions: Vec<ListEntry>,
    tags: Vec<Aggregate>,
}

impl FieldFacts<'_> {
    fn json(&self) -> Value {
        let mut object = json::fields::entry(self.entry);
        if let Some(object) = object.as_object_mut() {
            let versions = self.versions.iter().map(json::fields::version).collect();
            object.insert("chunks".into(), self.chunks.clone().into());
            object.insert("versions".into(), versions);
            object.insert("content".into(), self.content.what.clone().into());
            let attributes = self.content.attributes.iter().cloned();
            object.insert("attributes".into(), Value::Object(attributes.collect::<Map<_, _>>()));
            object.insert("values".into(), self.content.values.clone().into());
            object.insert("tags".into(), json::catalog::tag_counts(&self.tags));
        }
        object
    }

    /// Its kind, and of an array type, shape and extremes.
    fn of_array(&self) -> Vec<(String, String)> {
        let entry = self.entry;
        let mut facts = Vec::new();
        let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
        let list = |extents: &[u64]| extents.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
        fact("content", self.content.what.clone());
        if let (Some(dtype), Some(shape)) = (entry.dtype, &entry.shape) {
            fact("type", dtype.to_string());
            fact("shape", if shape.is_empty() { "scalar".to_owned() } else { list(shape) });
        }
        if let Some(chunks) = self.chunks.as_deref().filter(|chunks| entry.shape.as_deref() != Some(*chunks))
        {
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
    fn of_storage(&self) -> Vec<(String, String)> {
        let (entry, versions) = (self.entry, &self.versions);
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
    fn of_content(&self) -> Vec<(String, String)> {
        let content = self.content;
        let mut facts = Vec::new();
        let mut fact = |name: &str, text: String| facts.push((name.to_owned(), text));
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        if !self.tags.is_empty() {
            fact("tagged", tags_text(&self.tags));
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

fn extremes(summary: &Extremes) -> String {
    let text = |value: Option<fieldstone::Scalar>| {
        value.map_or_else(|| "nothing".to_owned(), |value| scalar(value).to_string())
    };
    let missing = match summary.missing {
        None => ", missing ones among them".to_owned(),
        Some(0) => String::new(),
        Some(n) => format!(", {n} missing"),
    };
    format!("{} to {}{missing}", text(summary.min), text(summary.max))
}

/// What the catalog has, where a whole store is shown: counts of runs, and of attributes by tag.
struct Catalogued {
    runs: u64,
    times: Option<(f64, f64)>,
    tags: Vec<Aggregate>,
}

impl Catalogued {
    fn of(store: &Store, request: &Request) -> Result<Option<Catalogued>> {
        let catalog = store.catalog();
        if !request.is_empty() || !catalog.has_records()? {
            return Ok(None);
        }
        let all = Query::all();
        let times = catalog.steps(&all)?.into_iter().filter_map(|step| step.time);
        let times = times.fold(None, |ends: Option<(f64, f64)>, time| {
            Some(ends.map_or((time, time), |(first, last)| (first.min(time), last.max(time))))
        });
        let runs = catalog.runs(&all)?.len() as u64;
        Ok(Some(Catalogued { runs, times, tags: catalog.aggregate(&all, &[By::Tag])? }))
    }

    fn json(&self) -> Value {
        json::catalog::overview(self.runs, self.times, &self.tags)
    }

    fn print(&self, out: &mut Out) -> Done {
        let times = self.times.map_or_else(String::new, |(first, last)| format!(", times {first} to {last}"));
        out.line(format_args!("catalog: {}{times}", count(self.runs, "run")))?;
        match self.tags.is_empty() {
            true => out.line("tags: none"),
            false => out.line(format_args!("tags: {}", tags_text(&self.tags))),
        }
    }
}

fn overview(store: &Store, request: &Request, out: &mut Out) -> Done {
    let stats = store.stats(request)?;
    let axes = store.axes(request, &ReadOptions::default())?;
    let version = store.version()?;
    let schema = store.schema();
    let name = schema.name().unwrap_or("custom");
    let catalogued = Catalogued::of(store, request)?;
    if out.json() {
        return out.document(&json::reports::overview(Overview {
            url: store.url(),
            schema: name,
            version: &version,
            request,
            stats: &stats,
            axes: &axes,
            catalog: catalogued.map(|found| found.json()),
        }));
    }
    let (fields, datasets) = (count(stats.fields, "field"), count(stats.datasets, "dataset"));
    out.line(format_args!("{}: {fields} in {datasets}, {}, schema {name}", store.url(), size(stats.bytes)))?;
    catalogued.map_or(Ok(()), |found| found.print(out))?;
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
