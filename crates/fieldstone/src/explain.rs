//! Why a request finds nothing: the keyword or value that no field has, the values that exist instead, and a call that
//! shows more.
//!
//! Only requests that failed anyway pay for this: it looks at the values present, which the store's segments list, and
//! reads entries only if each value exists but their combination does not.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, OpenOptions, Request, Value, explain};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let key = [("run", "a"), ("variable", "temperature")];
//! store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! let why = explain::why(&store, &Request::parse("variable=temprature")?);
//! assert!(why.is_some_and(|why| why.reason.ends_with("did you mean `temperature`?")));
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::sync::Arc;

use fieldstone_core::key::{KeyValue, Quoted};
use fieldstone_core::nearest::did_you_mean;
use fieldstone_core::request::{Item, Request, Values};
use fieldstone_core::schema::Schema;
use fieldstone_store::api::{FieldStore, ListOptions, ReadOptions};

/// Number of values named in full; of more, only the first and the last.
const NAMED: usize = 8;
/// Characters of a value that are shown.
const SHOWN: usize = 40;

type Axes = Vec<(Arc<str>, Vec<KeyValue>)>;

/// A call that shows more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look {
    /// The state of the store.
    Status,
    /// The values of each keyword in the fields that a request selects.
    Axes(Request),
    /// A list of the fields that a request selects.
    List(Request),
}

/// Why a request finds nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// The missing value, and those that exist.
    pub reason: String,
    /// A call that shows more.
    pub look: Look,
}

impl Why {
    /// The reason as a hint, with the call that shows more in the caller's words.
    pub fn hint(&self, show: impl Fn(&Look) -> String) -> String {
        let end = if self.reason.ends_with('?') { "" } else { ";" };
        format!("{}{end} {}", self.reason, show(&self.look))
    }
}

/// Why `request` finds nothing in a store, or only some of the values that it lists. `None` if the reason is unknown.
pub fn why(store: &dyn FieldStore, request: &Request) -> Option<Why> {
    let axes = store.axes(&Request::new(), &ReadOptions::default()).ok()?;
    if axes.is_empty() {
        let reason = "the store holds no fields".to_owned();
        return Some(Why { reason, look: Look::Status });
    }
    let request = &spelled(&store.schema(), request);
    for (keyword, values) in request.iter().filter(|(_, values)| **values != Values::Absent) {
        let found = axes.iter().find(|(name, _)| **name == *keyword);
        let Some((_, present)) = found else {
            let reason = absent_keyword(store, &axes, keyword);
            return Some(Why { reason, look: Look::Axes(Request::new()) });
        };
        if matches!(values, Values::Like(_)) && is_empty_alone(store, keyword, values)? {
            let reason = format!("no field has {keyword}={values}: there is {}", some_of(keyword, present));
            return Some(Why { reason, look: Look::Axes(without(request, keyword)) });
        }
        let Values::List(items) = values else { continue };
        if let Some(reason) = items.iter().find_map(|item| absent_value(store, keyword, item, present)) {
            return Some(Why { reason, look: Look::Axes(without(request, keyword)) });
        }
    }
    // Each value exists, but not their combination: name the deepest keyword whose other keywords exist together.
    for (keyword, values) in request.iter().collect::<Vec<_>>().into_iter().rev() {
        let others = without(request, keyword);
        if others.is_empty() {
            continue;
        }
        let axes = store.axes(&others, &ReadOptions::default()).ok()?;
        if let Some((_, present)) = axes.iter().find(|(name, _)| **name == *keyword)
            && *values != Values::Any
        {
            let reason = format!("with {others} there is {}", some_of(keyword, present));
            return Some(Why { reason, look: Look::List(others) });
        }
    }
    None
}

/// The request with keywords in the schema's spelling.
fn spelled(schema: &Schema, request: &Request) -> Request {
    let mut own = Request::new();
    for (keyword, values) in request.iter() {
        own.set(schema.spelling(keyword), values.clone());
    }
    own
}

/// The request without a keyword.
pub fn without(request: &Request, keyword: &str) -> Request {
    let mut others = Request::new();
    for (name, values) in request.iter().filter(|(name, _)| *name != keyword) {
        others.set(name, values.clone());
    }
    others
}

fn absent_keyword(store: &dyn FieldStore, axes: &Axes, keyword: &str) -> String {
    let known = store.schema().keywords();
    let names = || axes.iter().map(|(name, _)| &**name).chain(known.iter().map(|k| &**k));
    match did_you_mean(keyword, names().filter(|name| *name != keyword)) {
        Some(meant) if !known.iter().any(|k| **k == *keyword) => {
            format!("the schema has no keyword `{keyword}`: {meant}")
        }
        _ => {
            let present: Vec<&str> = axes.iter().map(|(name, _)| &**name).collect();
            format!("no field has the keyword `{keyword}`: the fields have {}", present.join(", "))
        }
    }
}

/// Whether no field has one of these values.
fn is_empty_alone(store: &dyn FieldStore, keyword: &str, values: &Values) -> Option<bool> {
    let mut alone = Request::new();
    alone.set(keyword, values.clone());
    Some(store.list(&alone, &ListOptions::default()).ok()?.next().is_none())
}

fn absent_value(store: &dyn FieldStore, keyword: &str, item: &Item, present: &[KeyValue]) -> Option<String> {
    let text = match item {
        Item::One(text) => text,
        Item::Range { .. } => {
            let alone = Values::List(vec![item.clone()]);
            let nothing = is_empty_alone(store, keyword, &alone)?;
            return nothing
                .then(|| format!("no field has {keyword}={alone}: there is {}", some_of(keyword, present)));
        }
    };
    let canonical = store.schema().type_of(keyword).and_then(|kind| kind.canonical(keyword, text).ok());
    let wanted = canonical.as_ref().map_or(text.as_str().into(), KeyValue::text);
    if present.iter().any(|value| canonical.as_ref() == Some(value) || value.text() == wanted) {
        return None;
    }
    let texts: Vec<_> = present.iter().map(KeyValue::text).collect();
    // A number close to another is not a typing error, nor is a single letter.
    let word = text.parse::<f64>().is_err() && text.chars().count() > 2;
    let near = if word { did_you_mean(text, texts.iter().map(|t| &**t)) } else { None };
    let there = match near {
        // The user may have meant a pattern, and hidden it from the shell in the quotes of the request language.
        _ if text.contains('*') => format!(
            "a star in quotes or in a list is an ordinary character; without them {keyword}={} is a pattern; there is {}",
            shown(text),
            some_of(keyword, present)
        ),
        near => near.unwrap_or_else(|| format!("there is {}", some_of(keyword, present))),
    };
    Some(format!("no field has {keyword}={}: {there}", Quoted(&shown(text))))
}

/// `step=0/6/12/…/240 (41 values)`
pub fn some_of(keyword: &str, values: &[KeyValue]) -> String {
    let text = |value: &KeyValue| Quoted(&shown(&value.text())).to_string();
    let join = |values: &[KeyValue]| values.iter().map(text).collect::<Vec<_>>().join("/");
    match values {
        [first @ .., last] if values.len() > NAMED => {
            let first = join(&first[..NAMED - 2]);
            format!("{keyword}={first}/…/{} ({} values)", text(last), values.len())
        }
        _ => format!("{keyword}={}", join(values)),
    }
}

/// A text, with `…` for the middle of a long one.
fn shown(text: &str) -> String {
    let length = text.chars().count();
    if length <= SHOWN {
        return text.to_owned();
    }
    let head: String = text.chars().take(SHOWN / 2).collect();
    let tail: String = text.chars().skip(length - (SHOWN / 2 - 1)).collect();
    format!("{head}…{tail}")
}
