//! Masks secrets in command lines, environments, parameters and imported records, so that none is ever written.
//!
//! Signs of a secret are the name before it (`--password=X`, `API_KEY=X`, `"secret": "X"`), a program's option that
//! takes one (`curl -u user:X`, `mysql -pX`), its position (`https://user:X@host`, `Authorization: token X`, `echo X |
//! sudo -S`), its shape (keys of AWS, tokens of GitHub and others, JSON web tokens, private keys), or an environment
//! variable with a secret's name and the same value.
//!
//! | module | |
//! |---|---|
//! | here | [`mask`] for arguments, [`hide`] for a text, [`shown`] for properties: all written data pass one of them |
//! | `names` | names of secrets |
//! | `arguments`, `words` | options of programs; a text as words of a shell |
//! | `text`, `shapes` | secrets inside a text |
//!
//! Invariants:
//! * it is a guess: in doubt a text is a secret; the price is a script that asks for it once (G-33);
//! * nothing of a secret is kept, neither its length nor a digest;
//! * masking a masked text again changes nothing.

mod arguments;
mod names;
mod shapes;
mod text;
mod words;

use std::ops::Range;

use fieldstone_core::value::Value;

pub use names::is_secret;
use text::TextKind;

/// The replacement for a secret that is not an argument.
pub const HIDDEN: &str = "***";
/// Prefix of an argument's placeholder.
const PLACEHOLDER: &str = "${FIELDSTONE_SECRET_";
/// Shorter values of the environment may appear in an argument by chance.
const VALUE_MIN: usize = 6;
/// Maximum nesting of quoted texts.
const QUOTES: u32 = 5;

/// Arguments with placeholders for their secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaskedArguments {
    /// The arguments; `${FIELDSTONE_SECRET_k}` replaces the k-th secret.
    pub argv: Vec<String>,
    /// Indices of the arguments with secrets, from 0.
    pub masked: Vec<usize>,
}

/// Masks secrets in arguments. `known`: values that are secrets anywhere.
pub fn mask(argv: &[String], known: &[String]) -> MaskedArguments {
    let mut out = MaskedArguments::default();
    let mut number = argv.iter().flat_map(|argument| placeholders(argument)).max().unwrap_or(0);
    for (index, (argument, ranges)) in argv.iter().zip(of_arguments(argv, 1, known)).enumerate() {
        let masked = replaced(argument, &ranges, &mut || {
            number += 1;
            format!("{PLACEHOLDER}{number}}}")
        });
        out.argv.push(masked);
        if !ranges.is_empty() {
            out.masked.push(index);
        }
    }
    out
}

/// A text with its secrets hidden.
pub fn hide(text: &str) -> String {
    replaced(text, &secrets(text, &[], TextKind::Line), &mut || HIDDEN.to_owned())
}

/// Values of environment variables with names of secrets.
pub fn values(environment: &[(String, String)]) -> Vec<String> {
    let secret = |(name, value): &&(String, String)| value.len() >= VALUE_MIN && is_secret(name, value);
    environment.iter().filter(secret).map(|(_, value)| value.clone()).collect()
}

/// Properties without their secrets: `argv` is masked as arguments, with their indices in `masked`.
pub fn shown(props: &[(String, Value)]) -> Vec<(String, Value)> {
    let mut out: Vec<(String, Value)> = Vec::with_capacity(props.len());
    let mut more = Vec::new();
    for (name, value) in props {
        match (name.as_str(), texts(value)) {
            ("argv", Some(argv)) => {
                let masked = mask(&argv, &[]);
                more = masked.masked;
                out.push((name.clone(), Value::List(masked.argv.into_iter().map(Value::Text).collect())));
            }
            _ => out.push((name.clone(), shown_value(name, value))),
        }
    }
    if more.is_empty() {
        return out;
    }
    let number = |index: usize| Value::Int(i64::try_from(index).unwrap_or(i64::MAX));
    let more = more.into_iter().map(number);
    match out.iter_mut().find(|(name, _)| name == "masked") {
        Some((_, Value::List(known))) => {
            let fresh: Vec<Value> = more.filter(|index| !known.contains(index)).collect();
            known.extend(fresh);
        }
        _ => out.push(("masked".to_owned(), Value::List(more.collect()))),
    }
    out
}

/// A value with this name, without the secrets in it.
pub fn shown_value(name: &str, value: &Value) -> Value {
    let hidden = || Value::Text(HIDDEN.to_owned());
    match value {
        Value::Null | Value::Bool(_) | Value::DateTime(_) => value.clone(),
        Value::Text(text) if is_secret(name, text) && !is_placeholder(text) => hidden(),
        Value::Text(text) => Value::Text(hide(text)),
        Value::Map(pairs) => {
            // A list of variables has a name and a value for each.
            let pair = |member: &str| pairs.iter().find(|(known, _)| known == member).map(|(_, value)| value);
            let named = match (pair("name").or(pair("key")), pair("value")) {
                (Some(Value::Text(named)), Some(_)) => Some(named.as_str()),
                _ => None,
            };
            let of_member = |member: &str| match named {
                Some(named) if member == "value" => named.to_owned(),
                _ if names::is_strong(name) => name.to_owned(),
                _ => member.to_owned(),
            };
            Value::Map(pairs.iter().map(|(m, v)| (m.clone(), shown_value(&of_member(m), v))).collect())
        }
        Value::List(items) | Value::Array(items) => match texts(value) {
            Some(words) if !names::is_strong(name) => {
                let ranges = of_arguments(&words, 0, &[]);
                let word = |(word, ranges): (&String, Vec<Range<usize>>)| {
                    Value::Text(replaced(word, &ranges, &mut || HIDDEN.to_owned()))
                };
                Value::List(words.iter().zip(ranges).map(word).collect())
            }
            _ => Value::List(items.iter().map(|item| shown_value(name, item)).collect()),
        },
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if is_secret(name, text) || hide(text) != text => hidden(),
            _ => value.clone(),
        },
        number if is_secret(name, &number.to_string()) => hidden(),
        number => number.clone(),
    }
}

/// A list that only holds texts.
fn texts(value: &Value) -> Option<Vec<String>> {
    let (Value::List(items) | Value::Array(items)) = value else { return None };
    let text = |item: &Value| if let Value::Text(text) = item { Some(text.clone()) } else { None };
    items.iter().map(text).collect()
}

/// The secrets of each argument; `first` is the first one that may be an option.
fn of_arguments(argv: &[String], first: usize, known: &[String]) -> Vec<Vec<Range<usize>>> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut all = arguments::secrets(&words, first);
    for (argument, ranges) in argv.iter().zip(&mut all) {
        ranges.extend(secrets(argument, known, TextKind::Argument));
        *ranges = apart(argument, std::mem::take(ranges));
    }
    all
}

/// The secrets of a text, in order and without overlaps.
fn secrets(text: &str, known: &[String], kind: TextKind) -> Vec<Range<usize>> {
    within(text, known, kind, QUOTES)
}

/// The same for a text in quotes inside another one, with this many levels left.
fn within(text: &str, known: &[String], kind: TextKind, levels: u32) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    text::secrets(text, kind, &mut found);
    shapes::secrets(text, &mut found);
    if let Some(levels) = levels.checked_sub(1).filter(|_| text.contains(char::is_whitespace)) {
        words::secrets(text, levels, &mut found);
    }
    for value in known.iter().filter(|value| !value.is_empty()) {
        found.extend(text.match_indices(value.as_str()).map(|(at, value)| at..at + value.len()));
    }
    apart(text, found)
}

/// Ranges in order, joined if they touch; without those that are masked already.
fn apart(text: &str, mut found: Vec<Range<usize>>) -> Vec<Range<usize>> {
    found.retain(|range| {
        let part = text.get(range.clone()).unwrap_or_default();
        !part.is_empty() && !is_placeholder(part)
    });
    found.sort_by_key(|range| (range.start, range.end));
    let mut apart: Vec<Range<usize>> = Vec::new();
    for range in found {
        match apart.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => apart.push(range),
        }
    }
    apart
}

/// A text with replacements for ranges.
fn replaced(text: &str, ranges: &[Range<usize>], instead: &mut dyn FnMut() -> String) -> String {
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for range in ranges {
        out.push_str(&text[at..range.start]);
        out.push_str(&instead());
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// The numbers of placeholders in a text.
fn placeholders(text: &str) -> impl Iterator<Item = usize> + '_ {
    let behind = text.match_indices(PLACEHOLDER).map(|(at, open)| &text[at + open.len()..]);
    behind.filter_map(|rest| rest.split_once('}')?.0.parse().ok())
}

/// Whether a text consists of placeholders only.
fn is_placeholder(text: &str) -> bool {
    if !text.contains(PLACEHOLDER) {
        return text.contains(HIDDEN) && !text.contains(char::is_alphanumeric);
    }
    let mut rest = text.to_owned();
    while let Some(begin) = rest.find(PLACEHOLDER) {
        let end = rest[begin..].find('}').map_or(rest.len(), |length| begin + length + 1);
        rest.replace_range(begin..end, "");
    }
    !rest.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests;
