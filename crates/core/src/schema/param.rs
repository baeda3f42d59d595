//! Parameters: numbers in ECMWF's parameter database, and the names that people type.
//!
//! `data/params.tsv` has a line for each parameter: its number, short name and further names. A name of several
//! parameters means the one that lists it earliest in its line, then the one on the earliest line.
//! `data/param-contexts.tsv` lists contexts in which a name means another parameter: in the ocean with `levtype=o2d`,
//! or in a stream of monthly means. Any number is allowed, because data are newer than tables.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::calendar::digits;
use crate::nearest::{closest, nearest};

const TABLE: &str = include_str!("../../data/params.tsv");
const CONTEXTS: &str = include_str!("../../data/param-contexts.tsv");

/// The keywords that form a context, as the columns of its table.
pub(crate) const CONTEXT: [&str; 4] = ["class", "levtype", "stream", "type"];

/// The meaning of a parameter's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Param {
    /// A number of ECMWF's.
    Number(i64),
    /// A number of another centre, in a table below 128: `11.2`.
    Foreign(String),
}

/// Parses `130`, `130.128` (table 128 is the default), `229.140` (140229), `11.2`, or a name.
pub(crate) fn read(text: &str) -> Option<Param> {
    if let Some(number) = digits(text) {
        return Some(Param::Number(i64::from(number)));
    }
    if let Some((param, table)) = text.split_once('.')
        && let (Some(param), Some(table)) = (digits(param), digits(table))
    {
        return match (param, table) {
            (0..=999, 128) => Some(Param::Number(i64::from(param))),
            (0..=999, 129..=999) => Some(Param::Number(i64::from(table) * 1000 + i64::from(param))),
            (0..=999, 0..=127) => Some(Param::Foreign(format!("{param}.{table}"))),
            _ => None,
        };
    }
    find(names(), text).map(Param::Number)
}

/// Whether a text is a name, so that its meaning may depend on other keywords.
pub(crate) fn is_name(text: &str) -> bool {
    !text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// The number of a name in this context of class, levtype, stream and type; `None` if it has its usual number.
pub(crate) fn in_context(name: &str, context: [Option<&str>; 4]) -> Option<i64> {
    let fits = |line: &&Context| {
        line.keys.iter().zip(context).all(|(key, given)| *key == "-" || Some(*key) == given)
    };
    find(&contexts().iter().find(fits)?.names, name)
}

/// Suggests names close to a mistyped one.
pub(crate) fn hint(text: &str) -> String {
    let short = || TABLE.lines().filter_map(|line| line.split('\t').nth(1));
    let mut close = nearest(text, short());
    if close.is_empty() {
        close = closest(text, short(), 3);
    }
    format!("the nearest names are {}; any number is valid", close.join(", "))
}

/// Names as the table spells them, and in lower case.
struct ParamNames {
    exact: HashMap<&'static str, i64>,
    lower: HashMap<String, i64>,
}

impl ParamNames {
    /// The first of equal names counts.
    fn new(names: impl Iterator<Item = (&'static str, i64)>) -> ParamNames {
        let mut found = ParamNames { exact: HashMap::new(), lower: HashMap::new() };
        for (name, number) in names {
            found.exact.entry(name).or_insert(number);
            found.lower.entry(name.to_lowercase()).or_insert(number);
        }
        found
    }
}

fn find(names: &ParamNames, text: &str) -> Option<i64> {
    names.exact.get(text).or_else(|| names.lower.get(&text.to_lowercase())).copied()
}

fn names() -> &'static ParamNames {
    static NAMES: OnceLock<ParamNames> = OnceLock::new();
    NAMES.get_or_init(|| {
        let mut all: Vec<(usize, &str, i64)> = Vec::new();
        for line in TABLE.lines() {
            let mut cells = line.split('\t');
            let Some(number) = cells.next().and_then(|n| n.parse::<i64>().ok()) else { continue };
            all.extend(cells.enumerate().map(|(place, name)| (place, name, number)));
        }
        all.sort_by_key(|(place, ..)| *place);
        ParamNames::new(all.into_iter().map(|(_, name, number)| (name, number)))
    })
}

struct Context {
    keys: [&'static str; 4],
    names: ParamNames,
}

fn contexts() -> &'static [Context] {
    static LINES: OnceLock<Vec<Context>> = OnceLock::new();
    LINES.get_or_init(|| {
        let mut lines = Vec::new();
        for line in CONTEXTS.lines() {
            let mut cells = line.split('\t');
            let (Some(a), Some(b), Some(c), Some(d)) =
                (cells.next(), cells.next(), cells.next(), cells.next())
            else {
                continue;
            };
            let pair = |cell: &'static str| {
                let (name, number) = cell.rsplit_once('=')?;
                Some((name, number.parse::<i64>().ok()?))
            };
            lines.push(Context { keys: [a, b, c, d], names: ParamNames::new(cells.filter_map(pair)) });
        }
        lines
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_read_whole() {
        let lines = TABLE.lines().count();
        let numbers: std::collections::HashSet<&str> =
            TABLE.lines().filter_map(|line| line.split('\t').next()).collect();
        assert_eq!((lines, numbers.len()), (8286, 8286));
        assert!(numbers.iter().all(|n| digits(n).is_some()));
        assert_eq!(contexts().len(), CONTEXTS.lines().count());
        assert!(contexts().iter().any(|c| c.keys.contains(&"-")));
    }

    #[test]
    fn no_name_reads_as_a_number() {
        for line in TABLE.lines() {
            for name in line.split('\t').skip(1).filter(|name| is_name(name)) {
                assert!(matches!(read(name), Some(Param::Number(_))), "{name}");
            }
        }
    }
}
