//! Why a request finds nothing: which keyword or value no field has, what there is in its place, and a
//! command that shows it.
//!
//! Only what failed anyway pays for this: it looks at the values present, which the store's segments
//! know, and reads entries only where each value exists and their combination does not.

use std::sync::Arc;

use fieldstone::nearest::did_you_mean;
use fieldstone::{FieldStore, Item, KeyValue, ListOptions, Quoted, ReadOptions, Request, Values};

use crate::table::cut;

/// Values that are named in full; of more the first and the last.
const NAMED: usize = 8;
/// Characters of a value that are shown.
const SHOWN: usize = 40;

type Axes = Vec<(Arc<str>, Vec<KeyValue>)>;

/// What is known of a request that finds nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// What is not there, and what is.
    pub reason: String,
    /// A command that shows more.
    pub command: String,
}

impl Why {
    /// The two as a hint.
    pub fn hint(&self) -> String {
        let end = if self.reason.ends_with('?') { "" } else { ";" };
        format!("{}{end} try: {}", self.reason, self.command)
    }
}

/// Why `request` finds nothing in a store, or not all that it lists. `None` where nothing can be said.
pub fn why(store: &dyn FieldStore, request: &Request) -> Option<Why> {
    let axes = store.axes(&Request::new(), &ReadOptions::default()).ok()?;
    let command = |verb: &str, request: &Request| command(verb, store.url(), request);
    if axes.is_empty() {
        let reason = "the store holds no field".to_owned();
        return Some(Why { reason, command: command("status", &Request::new()) });
    }
    for (keyword, values) in request.iter() {
        let found = axes.iter().find(|(name, _)| **name == *keyword);
        let Some((_, present)) = found else {
            let reason = absent_keyword(store, &axes, keyword);
            return Some(Why { reason, command: command("axes", &Request::new()) });
        };
        let Values::List(items) = values else { continue };
        if let Some(reason) = items.iter().find_map(|item| absent_value(store, keyword, item, present)) {
            return Some(Why { reason, command: command("axes", &without(request, keyword)) });
        }
    }
    // Each exists somewhere, but not together: the deepest keyword whose others are there together.
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
            return Some(Why { reason, command: command("list", &others) });
        }
    }
    None
}

/// `fieldstone VERB STORE REQUEST` as a shell reads it.
pub fn command(verb: &str, store: &str, request: &Request) -> String {
    let mut text = format!("fieldstone {verb} {}", shell_word(store));
    if !request.is_empty() {
        text.push(' ');
        text.push_str(&shell_word(&request.to_string()));
    }
    text
}

/// A word that a shell takes as one and does not change.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_./:=,+-@%".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
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
            format!("no field has the keyword `{keyword}`: theirs are {}", present.join(", "))
        }
    }
}

fn absent_value(store: &dyn FieldStore, keyword: &str, item: &Item, present: &[KeyValue]) -> Option<String> {
    let text = match item {
        Item::One(text) => text,
        Item::Range { .. } => {
            let mut alone = Request::new();
            alone.set(keyword, Values::List(vec![item.clone()]));
            let mut found = store.list(&alone, &ListOptions::default()).ok()?;
            let nothing = found.next().is_none();
            return nothing.then(|| format!("no field has {alone}: there is {}", some_of(keyword, present)));
        }
    };
    let canonical = store.schema().type_of(keyword).and_then(|kind| kind.canonical(keyword, text).ok());
    let wanted = canonical.as_ref().map_or(text.as_str().into(), KeyValue::text);
    if present.iter().any(|value| canonical.as_ref() == Some(value) || value.text() == wanted) {
        return None;
    }
    let texts: Vec<_> = present.iter().map(KeyValue::text).collect();
    // A number near a number is no typing error, nor is a letter for another.
    let word = text.parse::<f64>().is_err() && text.chars().count() > 2;
    let near = if word { did_you_mean(text, texts.iter().map(|t| &**t)) } else { None };
    let there = near.unwrap_or_else(|| format!("there is {}", some_of(keyword, present)));
    Some(format!("no field has {keyword}={}: {there}", Quoted(&cut(text, SHOWN))))
}

/// `step=0/6/12/…/240 (41 values)`
pub fn some_of(keyword: &str, values: &[KeyValue]) -> String {
    let text = |value: &KeyValue| Quoted(&cut(&value.text(), SHOWN)).to_string();
    let join = |values: &[KeyValue]| values.iter().map(text).collect::<Vec<_>>().join("/");
    match values {
        [first @ .., last] if values.len() > NAMED => {
            let first = join(&first[..NAMED - 2]);
            format!("{keyword}={first}/…/{} ({} values)", text(last), values.len())
        }
        _ => format!("{keyword}={}", join(values)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fieldstone::{ArchiveOptions, OpenOptions, Value};

    fn store() -> fieldstone::Store {
        let store = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
        for (run, variable, steps) in [("a", "temperature", 0..20), ("b", "wind speed", 40..42)] {
            for step in steps {
                let key = [("run", run), ("variable", variable), ("step", &step.to_string())];
                store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
            }
        }
        store.flush(None).unwrap();
        store
    }

    #[test]
    fn what_is_not_there_is_named_beside_what_is() {
        let store = store();
        for (request, reason, command) in [
            (
                "varable=t",
                "the schema has no keyword `varable`: did you mean `variable`?",
                "fieldstone axes memory:",
            ),
            (
                "member=1",
                "no field has the keyword `member`: theirs are run, variable, step",
                "fieldstone axes memory:",
            ),
            (
                "run=a,variable=temprature",
                "no field has variable=temprature: did you mean `temperature`?",
                "fieldstone axes memory: run=a",
            ),
            (
                "run=a,step=0/99",
                "no field has step=99: there is step=0/1/2/3/4/5/…/41 (22 values)",
                "fieldstone axes memory: run=a",
            ),
            (
                "step=100/to/200",
                "no field has step=100/to/200: there is step=0/1/2/3/4/5/…/41 (22 values)",
                "fieldstone axes memory:",
            ),
            (
                "run=b,variable=\"wind speed\",step=3",
                "with run=b,variable=\"wind speed\" there is step=40/41",
                "fieldstone list memory: 'run=b,variable=\"wind speed\"'",
            ),
            (
                "run=b,variable=temperature",
                "with run=b there is variable=\"wind speed\"",
                "fieldstone list memory: run=b",
            ),
        ] {
            let found = why(&*store, &Request::parse(request).unwrap()).unwrap();
            assert_eq!((found.reason.as_str(), found.command.as_str()), (reason, command), "{request}");
        }
        assert_eq!(why(&*store, &Request::new()), None);
    }

    #[test]
    fn an_empty_store_says_so() {
        let store = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
        let found = why(&*store, &Request::parse("run=a").unwrap()).unwrap();
        assert_eq!(found.hint(), "the store holds no field; try: fieldstone status memory:");
    }

    #[test]
    fn words_are_quoted_for_a_shell() {
        assert_eq!(shell_word("run=a,step=0/to/6"), "run=a,step=0/to/6");
        assert_eq!(shell_word("my store"), "'my store'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
