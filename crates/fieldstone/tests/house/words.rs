//! One meaning a word: a type's name says what it is, and stands for few things.

use std::collections::BTreeMap;

use super::{is_test, none, sources};

/// Names that say nothing of what they name.
const EMPTY: &[&str] = &["Place", "Known", "Held", "Found", "Seen", "Kept", "Told", "Met"];
/// How many types may share a name.
const SHARED_MAX: usize = 4;
/// The arguments of each verb of the program.
const VERBS: &str = "Arguments";

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
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
            // In C's header an argument may be of `struct NAME *`.
            if !name[end..].trim_start().starts_with('*') {
                found.push(&name[..end]);
            }
        }
    }
    found
}

fn complaint(name: &str, n: usize) -> Option<String> {
    if EMPTY.contains(&name) {
        return Some(format!("{n} types are called {name}: say what they are"));
    }
    (n > SHARED_MAX).then(|| format!("{n} types are called {name}"))
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
    none(counts.iter().filter_map(|(name, n)| complaint(name, *n)).collect());
}

#[test]
fn checks_of_names_can_fail() {
    let text = "pub struct A;\n    enum B {\npub(super) trait C: D {\ntype Item = u8;\n// struct E\nstruct F<'a>(u8);\n  struct G *g,";
    assert_eq!(types(text), ["A", "B", "C", "F"]);
    assert_eq!(complaint("Part", 5).as_deref(), Some("5 types are called Part"));
    assert_eq!(complaint("Part", 4), None);
    assert_eq!(complaint("Place", 1).as_deref(), Some("1 types are called Place: say what they are"));
}

/// Words that we used alone in our field, or for two things, and what to say instead. `docs/glossary.md` has the
/// others' words.
const RETIRED: &[(&str, &str)] = &[
    ("index run", "segment"),
    ("grave", "tombstone"),
    ("tangled", "not revertible"),
    ("walker", "log reader"),
    ("laid over", "overlay"),
    ("told", "reported, or learned"),
    ("tells", "says, shows or distinguishes"),
];

fn retired(path: &str, text: &str) -> Vec<String> {
    let words = |line: &str, word: &str| match word.contains(' ') {
        true => line.contains(word),
        false => line.split(|c: char| !c.is_alphanumeric()).any(|found| found.eq_ignore_ascii_case(word)),
    };
    let lines = text.lines().enumerate();
    lines
        .flat_map(|(i, line)| {
            RETIRED.iter().filter(move |(word, _)| words(line, word)).map(move |at| (i + 1, at))
        })
        .map(|(line, (word, instead))| format!("{path}:{line}: {word}: say {instead}"))
        .collect()
}

#[test]
fn retired_words_stay_retired() {
    let sources = sources();
    let code = sources.iter().filter(|(path, _)| path.starts_with("crates/") && !path.contains("/tests/"));
    none(code.flat_map(|(path, text)| retired(path, text)).collect());
    assert_eq!(retired("a.rs", "// what the Walker tells\nlet graves = 1;").len(), 2);
    assert_eq!(retired("a.rs", "/// An index run."), ["a.rs:1: index run: say segment"]);
}
