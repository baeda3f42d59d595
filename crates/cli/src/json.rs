//! The JSON shapes that verbs share; `docs/guide/cli.md` shows them.

use fieldstone::{FieldKey, ListEntry, Scalar};
use serde_json::{Map, Number, Value, json};

use crate::time;

/// Keyword → canonical text, in the schema's order, down to `depth` levels.
pub fn key(key: &FieldKey, depth: u8) -> Value {
    let levels = key.levels.iter().take(usize::from(depth));
    let pairs = levels.flat_map(|level| level.names.iter().zip(&level.values));
    let present = pairs.filter(|(_, value)| !value.is_absent());
    Value::Object(present.map(|(name, value)| (name.to_string(), Value::from(value.text()))).collect())
}

/// A number out of an array; null for what JSON has no number for.
pub fn scalar(value: Scalar) -> Value {
    match value {
        Scalar::Int(i) => i.into(),
        Scalar::UInt(u) => u.into(),
        Scalar::Float(f) => Number::from_f64(f).map_or(Value::Null, Value::Number),
    }
}

/// One entry of a list. Above the fields it is its key alone.
pub fn entry(entry: &ListEntry) -> Value {
    let mut object = Map::new();
    object.insert("key".into(), key(&entry.key, entry.depth));
    if usize::from(entry.depth) < entry.key.levels.len() {
        return Value::Object(object);
    }
    let place = |p: &fieldstone::FieldLocation| json!({"file": p.file.to_string(), "offset": p.offset, "length": p.length});
    object.insert("nbytes".into(), entry.nbytes.into());
    object.insert("dtype".into(), entry.dtype.map(|d| d.to_string()).into());
    object.insert("shape".into(), entry.shape.as_ref().map(|s| s.to_vec()).into());
    object.insert("complete".into(), entry.complete.into());
    object.insert("masked".into(), entry.masked.into());
    object.insert("time".into(), time::utc(entry.time, false).into());
    object.insert("owner".into(), entry.owner.to_string().into());
    object.insert("attempt".into(), entry.attempt.as_deref().into());
    object.insert("location".into(), entry.place.as_ref().map_or(Value::Null, place));
    if let Some(summary) = &entry.summary {
        object.insert("min".into(), summary.min.map_or(Value::Null, scalar));
        object.insert("max".into(), summary.max.map_or(Value::Null, scalar));
        object.insert("missing".into(), summary.missing.into());
    }
    Value::Object(object)
}
