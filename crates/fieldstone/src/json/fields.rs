//! Fields: keys, entries of a list, places, axes; and the schema that keys follow.

use std::sync::Arc;

use fieldstone_core::Error;
use fieldstone_core::key::{FieldKey, KeyValue, Level};
use fieldstone_core::schema::{CatalogRoles, KeywordDescription, RuleDescription, Schema};
use fieldstone_store::api::{FieldLocation, ListEntry, Stats, StatsRow};
use serde_json::{Map, Value, json};

use super::catalog::tag_counts;
use super::values::{scalar, texts, time};
use crate::facts::FieldFacts;

/// Keywords and their canonical text, in the schema's order, down to `depth` levels.
pub fn key(key: &FieldKey, depth: u8) -> Value {
    let levels = key.levels.iter().take(usize::from(depth));
    Value::Object(levels.flat_map(|level| pairs(level)).collect())
}

/// A key as a whole, and each of its levels separately.
pub fn key_in_levels(key: &FieldKey) -> Value {
    let levels = key.levels.iter().map(|level| Value::Object(pairs(level).collect()));
    json!({"key": self::key(key, 3), "levels": levels.collect::<Vec<_>>()})
}

/// Keywords of a level with their values.
fn pairs(level: &Level) -> impl Iterator<Item = (String, Value)> {
    let pairs = level.names.iter().zip(&level.values).filter(|(_, value)| !value.is_absent());
    pairs.map(|(name, value)| (name.to_string(), Value::from(value.text())))
}

/// An entry of a list; for levels above fields, its key alone.
pub fn entry(entry: &ListEntry) -> Value {
    let mut object = Map::new();
    object.insert("key".into(), key(&entry.key, entry.depth));
    if usize::from(entry.depth) < entry.key.levels.len() {
        return Value::Object(object);
    }
    object.insert("nbytes".into(), entry.nbytes.into());
    object.insert("dtype".into(), entry.dtype.map(|d| d.to_string()).into());
    object.insert("shape".into(), entry.shape.as_ref().map(|s| s.to_vec()).into());
    object.insert("complete".into(), entry.complete.into());
    object.insert("masked".into(), entry.masked.into());
    object.insert("time".into(), time(entry.time).into());
    object.insert("owner".into(), entry.owner.to_string().into());
    object.insert("attempt".into(), entry.attempt.as_deref().into());
    object.insert("location".into(), location(entry.place.as_ref()));
    if let Some(summary) = &entry.summary {
        object.insert("min".into(), summary.min.map_or(Value::Null, scalar));
        object.insert("max".into(), summary.max.map_or(Value::Null, scalar));
        object.insert("missing".into(), summary.missing.into());
    }
    Value::Object(object)
}

/// The facts of one field: its entry, and further facts.
pub fn field(facts: &FieldFacts) -> Value {
    let content = &facts.content;
    let mut object = entry(&facts.entry);
    object["chunks"] = facts.chunks.clone().into();
    object["versions"] = facts.versions.iter().map(version).collect();
    object["content"] = content.kind.clone().into();
    object["attributes"] = Value::Object(content.attributes.iter().cloned().collect());
    object["values"] = content.values.clone().into();
    object["tags"] = tag_counts(&facts.tags);
    object
}

/// An entry as one of the versions of a field.
pub fn version(entry: &ListEntry) -> Value {
    json!({
        "time": time(entry.time),
        "owner": entry.owner.to_string(),
        "location": location(entry.place.as_ref()),
        "masked": entry.masked,
    })
}

/// The place where the bytes of a field begin; null if there is none.
pub fn location(place: Option<&FieldLocation>) -> Value {
    place.map_or(Value::Null, |p| json!({"file": p.file.to_string(), "offset": p.offset, "length": p.length}))
}

/// The key and the place of an entry.
pub fn located(entry: &ListEntry) -> Value {
    json!({"key": key(&entry.key, 3), "location": location(entry.place.as_ref())})
}

/// Keywords with their values.
pub fn axes(axes: &[(Arc<str>, Vec<KeyValue>)]) -> Value {
    Value::Object(axes.iter().map(|(name, values)| (name.to_string(), texts(values))).collect())
}

/// A keyword with its values, each as an item of its own.
pub fn axis((name, values): &(Arc<str>, Vec<KeyValue>)) -> Value {
    json!({"keyword": **name, "values": texts(values)})
}

/// Keywords with the number of their values, the first and the last.
pub fn axes_ends(axes: &[(Arc<str>, Vec<KeyValue>)]) -> Value {
    let text = |value: Option<&KeyValue>| value.map(|value| value.text().into_owned());
    let ends = |values: &[KeyValue]| json!({"count": values.len(), "first": text(values.first()), "last": text(values.last())});
    Value::Object(axes.iter().map(|(name, values)| (name.to_string(), ends(values))).collect())
}

/// A request that names fields of a list exactly: its text, the values of each keyword, the number of fields, and their
/// bytes.
pub fn compact<'a>(
    request: &str,
    keywords: impl Iterator<Item = (&'a str, &'a [KeyValue])>,
    fields: u64,
    nbytes: u64,
) -> Value {
    let key: Map<String, Value> = keywords.map(|(name, values)| (name.to_owned(), texts(values))).collect();
    json!({"request": request, "key": key, "fields": fields, "nbytes": nbytes})
}

/// The counts of the fields that a request selects, and of the store's files.
pub fn stats(stats: &Stats) -> Value {
    json!({
        "datasets": stats.datasets,
        "indexes": stats.indexes,
        "fields": stats.fields,
        "bytes": stats.bytes,
        "stored_bytes": stats.stored_bytes,
        "masked": stats.masked,
        "writers": stats.writers,
        "segments": stats.segments,
        "files": stats.files,
        "file_bytes": stats.file_bytes,
    })
}

/// One row of counts by owner, dataset, writer or keyword.
pub fn stats_row(row: &StatsRow) -> Value {
    json!({
        "name": row.name,
        "fields": row.fields,
        "nbytes": row.nbytes,
        "stored": row.stored,
        "dead": row.dead,
    })
}

/// A schema: its text, and its rules with all their keywords' properties.
pub fn schema(schema: &Schema) -> Value {
    json!({
        "name": schema.name(),
        "text": schema.text(),
        "catalog": schema.catalog_roles().first().map(|first| roles(first)),
        "rules": schema.rules().iter().map(rule).collect::<Vec<_>>(),
    })
}

fn rule(rule: &RuleDescription) -> Value {
    let levels = rule.levels.iter().map(|level| {
        json!({"keywords": level.keywords.iter().map(keyword).collect::<Vec<_>>(), "open": level.open})
    });
    json!({"levels": levels.collect::<Vec<_>>(), "catalog": roles(&rule.roles)})
}

fn keyword(keyword: &KeywordDescription) -> Value {
    json!({
        "name": *keyword.name,
        "type": keyword.kind.name(),
        "required": keyword.required,
        "hidden": keyword.hidden,
        "default": keyword.default.as_ref().map(|value| value.text()),
        "only": keyword.only.as_deref().map(texts),
        "except": texts(&keyword.except),
    })
}

/// Keywords for the run, the step and the variable of the catalog.
fn roles(roles: &CatalogRoles) -> Value {
    let run: Vec<&str> = roles.run.iter().map(|keyword| &**keyword).collect();
    json!({
        "project": roles.project.as_deref(),
        "run": run,
        "step": roles.step.as_deref(),
        "variable": roles.variable.as_deref(),
    })
}

/// A schema that was checked and can be used.
pub fn schema_checked(rules: usize, warnings: &[String]) -> Value {
    json!({"ok": true, "errors": [], "warnings": warnings, "rules": rules})
}

/// A schema that cannot be used: `place` has the line and column of the error, and the message without them.
pub fn schema_refused(error: &Error, place: Option<(usize, usize, &str)>) -> Value {
    let (line, column, message) = place.unwrap_or((0, 0, error.message()));
    let finding = json!({"line": line, "column": column, "message": message, "hint": error.hint()});
    json!({"ok": false, "errors": [finding], "warnings": [], "rules": 0})
}

/// The schema of a store that was extended: its number of rules, and the added ones.
pub fn schema_extended(url: &str, rules: usize, added: &[String]) -> Value {
    json!({"url": url, "rules": rules, "added": added})
}
