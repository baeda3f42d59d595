//! One meaning a word: a type's name says what it is, and stands for few things.

use std::collections::BTreeMap;

use super::{is_test, none, sources};

/// Names that say nothing of what they name.
const EMPTY: &[&str] = &["Place", "Known", "Held", "Found", "Seen", "Kept", "Told", "Met"];
/// How many types may share a name.
const SHARED_MAX: usize = 4;
/// The arguments of each verb of the program.
const VERBS: &str = "Arguments";
/// Names that more types share, and how many do. Numbers only fall.
const SHARED: &[(&str, usize)] = &[
    ("Axis", 6),
    ("Kind", 5),
    ("Names", 6),
    ("Part", 10),
    ("Piece", 7),
    ("Plan", 6),
    ("Reader", 6),
    ("Run", 5),
    ("Source", 6),
    ("State", 7),
    ("Table", 6),
];

/// The types that a file defines; not those of traits and their implementations.
fn types(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let line = line.trim_start();
        let rest = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or("", |(_, rest)| rest),
            Some(rest) => rest.trim_start(),
            None => line,
        };
        let name = ["struct ", "enum ", "trait "].iter().find_map(|word| rest.strip_prefix(word));
        if let Some(name) = name {
            found.extend(name.split(|c: char| !c.is_alphanumeric() && c != '_').next());
        }
    }
    found
}

fn complaints(counts: &BTreeMap<&str, usize>, listed: &[(&str, usize)]) -> Vec<String> {
    let allowed = |name: &str| listed.iter().find(|(known, _)| *known == name).map(|(_, n)| *n);
    let mut complaints = Vec::new();
    for (name, &n) in counts {
        if EMPTY.contains(name) {
            complaints.push(format!("{n} types are called {name}: say what they are"));
        }
        match allowed(name) {
            Some(most) if n > most => complaints.push(format!("{n} types are called {name}, {most} were")),
            None if n > SHARED_MAX => complaints.push(format!("{n} types are called {name}")),
            _ => {}
        }
    }
    for &(name, most) in listed {
        let n = counts.get(name).copied().unwrap_or(0);
        if n < most {
            complaints.push(format!("{n} types are called {name} by now: lower its number, {most}, here"));
        }
    }
    complaints
}

#[test]
fn names_of_types_are_shared_by_few() {
    let sources = sources();
    let code: Vec<_> = sources.iter().filter(|(path, _)| !is_test(path)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in code.iter().flat_map(|(_, text)| types(text)).filter(|name| *name != VERBS) {
        *counts.entry(name).or_default() += 1;
    }
    assert!(counts.len() > 500, "the check finds {} names", counts.len());
    none(complaints(&counts, SHARED));
}

#[test]
fn checks_of_names_can_fail() {
    let text = "pub struct A;\n    enum B {\npub(super) trait C: D {\ntype Item = u8;\n// struct E\nstruct F<'a>(u8);";
    assert_eq!(types(text), ["A", "B", "C", "F"]);
    let counts = |n: usize, name: &'static str| BTreeMap::from([(name, n)]);
    assert_eq!(complaints(&counts(5, "Part"), &[]), ["5 types are called Part"]);
    assert!(complaints(&counts(4, "Part"), &[]).is_empty());
    assert_eq!(complaints(&counts(1, "Place"), &[]), ["1 types are called Place: say what they are"]);
    assert_eq!(complaints(&counts(7, "Part"), &[("Part", 6)]), ["7 types are called Part, 6 were"]);
    assert_eq!(
        complaints(&counts(5, "Part"), &[("Part", 6)]),
        ["5 types are called Part by now: lower its number, 6, here"]
    );
}
