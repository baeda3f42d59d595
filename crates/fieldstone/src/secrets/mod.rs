//! Secrets in a command line, an environment, a parameter or an imported record, which are masked so that none is ever
//! written.
//!
//! A secret is known by the name before it (`--password=X`, `API_KEY=X`, `"secret": "X"`), by the option of a program
//! that takes one (`curl -u user:X`, `mysql -pX`), by where it stands (`https://user:X@host`, `Authorization: token X`,
//! `echo X | sudo -S`), by its shape (keys of AWS, tokens of GitHub and others, JSON web tokens, private keys), or
//! because a variable of the environment with such a name has it as its value.
//!
//! | module | |
//! |---|---|
//! | here | [`mask`] for arguments, [`hide`] for a text, [`shown`] for properties: all that is written passes one of them |
//! | `names` | which names are of secrets |
//! | `arguments`, `words` | options of programs; a text as words of a shell |
//! | `text`, `shapes` | what stands within a text |
//!
//! Invariants:
//! * it is a guess: when in doubt something is a secret, and a script that asks for it once is the price (G-33);
//! * of a secret nothing is kept, neither its length nor a digest;
//! * what is masked stays as it is when it is masked again.

mod arguments;
mod names;
mod shapes;
mod text;
mod words;

use std::ops::Range;

use fieldstone_core::value::Value;

pub use names::is_secret;
use text::TextKind;

/// Stands for a secret that is not an argument.
pub const HIDDEN: &str = "***";
/// What a placeholder of an argument begins with.
const PLACEHOLDER: &str = "${FIELDSTONE_SECRET_";
/// Values of the environment that are shorter may stand in an argument by chance.
const VALUE_MIN: usize = 6;
/// Texts in quotes within texts in quotes, at most.
const QUOTES: u32 = 5;

/// Arguments with what stands for their secrets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MaskedArguments {
    /// The arguments; the k-th secret stands as `${FIELDSTONE_SECRET_k}`.
    pub argv: Vec<String>,
    /// Which arguments have any, from 0.
    pub masked: Vec<usize>,
}

/// Masks secrets in arguments. `known`: values that are secrets wherever they stand.
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

/// A text in which secrets are hidden.
pub fn hide(text: &str) -> String {
    replaced(text, &secrets(text, &[], TextKind::Line), &mut || HIDDEN.to_owned())
}

/// Values of variables of the environment whose names are of secrets.
pub fn values(environment: &[(String, String)]) -> Vec<String> {
    let secret = |(name, value): &&(String, String)| value.len() >= VALUE_MIN && is_secret(name, value);
    environment.iter().filter(secret).map(|(_, value)| value.clone()).collect()
}

/// Properties without the secrets among them: of `argv` as arguments, whose numbers `masked` gets.
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

/// A value that has this name, without the secrets in it.
pub fn shown_value(name: &str, value: &Value) -> Value {
    let hidden = || Value::Text(HIDDEN.to_owned());
    match value {
        Value::Null | Value::Bool(_) | Value::DateTime(_) => value.clone(),
        Value::Text(text) if is_secret(name, text) && !is_placeholder(text) => hidden(),
        Value::Text(text) => Value::Text(hide(text)),
        Value::Map(pairs) => {
            // A list of variables has a name and a value each.
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

/// A list that holds texts alone.
fn texts(value: &Value) -> Option<Vec<String>> {
    let (Value::List(items) | Value::Array(items)) = value else { return None };
    let text = |item: &Value| if let Value::Text(text) = item { Some(text.clone()) } else { None };
    items.iter().map(text).collect()
}

/// The secrets of each argument, of which the first that may be an option is given.
fn of_arguments(argv: &[String], first: usize, known: &[String]) -> Vec<Vec<Range<usize>>> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let mut all = arguments::secrets(&words, first);
    for (argument, ranges) in argv.iter().zip(&mut all) {
        ranges.extend(secrets(argument, known, TextKind::Argument));
        *ranges = apart(argument, std::mem::take(ranges));
    }
    all
}

/// The secrets of a text, in order and apart from one another.
fn secrets(text: &str, known: &[String], kind: TextKind) -> Vec<Range<usize>> {
    within(text, known, kind, QUOTES)
}

/// The same, where the text stands in quotes within another one, and this many levels are left.
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

/// Ranges in order, joined where they touch; without those that are masked.
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

/// A text with something else in place of ranges.
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

/// Whether nothing of a text is left but what stands for secrets.
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
