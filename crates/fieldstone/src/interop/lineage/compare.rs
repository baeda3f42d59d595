//! Differences between executions: the given ones, or the writers of given results.
//!
//! | what | name | values |
//! |---|---|---|
//! | `executable` | `program`, `checksum` | path of the program, its checksum |
//! | `argument` | an option, the number of another argument, a parameter, a redirected stream | its value |
//! | `environment` | a variable | its value |
//! | `folder`, `host` | `cwd`, `host` | where it ran |
//! | `input` | a file or other data | checksum of the bytes read, else the write that they came from |
//! | `version` | `commit`, `dirty` | of the code's git repository |
//!
//! Only rows with different values are returned. A value that an execution lacks is [`None`].

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_core::value::{Value, moment_text};
use fieldstone_core::{Code, Result};
use fieldstone_graph::dossier::{Dossier, is_execution};
use fieldstone_graph::read::Relation;
use fieldstone_graph::trace::{TraceOptions, Way};

use super::VertexName;
use super::export::names::{roots_text, short};
use super::units::{Unit, end, text, units};
use crate::graph::LineageSubject;

/// A fact that differs between executions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// `executable`, `argument`, `environment`, `folder`, `host`, `input` or `version`.
    pub what: String,
    /// The name of the argument, variable or input.
    pub name: String,
    /// Their values, in the order of the executions.
    pub values: Vec<Option<String>>,
}

/// The compared facts, in the order of the rows.
const ORDER: [&str; 7] = ["executable", "argument", "environment", "folder", "host", "input", "version"];

/// Facts of one execution by kind and name; several values come from several of its processes, or from several writers.
type Facts = BTreeMap<(usize, String), BTreeSet<String>>;

/// Options for the dossier of something to compare: with its reads, and the writers of these.
pub fn compared_by(subject: &LineageSubject, at: Option<u64>) -> TraceOptions {
    let execution = matches!(subject, LineageSubject::Vertex(vertex) if is_execution(&vertex.kind));
    let depth = Some(if execution { 2 } else { 3 });
    TraceOptions { way: Way::Up, depth, at, limit: 1_000_000, ..TraceOptions::default() }
}

/// The differences. NotFound for a result that no execution wrote.
pub fn compare(dossiers: &[Dossier]) -> Result<Vec<Difference>> {
    let facts = dossiers.iter().map(facts).collect::<Result<Vec<Facts>>>()?;
    let keys: BTreeSet<&(usize, String)> = facts.iter().flat_map(Facts::keys).collect();
    let mut differences = Vec::new();
    for key in keys {
        let joined =
            |values: &BTreeSet<String>| values.iter().map(String::as_str).collect::<Vec<_>>().join(" | ");
        let values: Vec<Option<String>> = facts.iter().map(|own| own.get(key).map(joined)).collect();
        if values.windows(2).any(|pair| pair[0] != pair[1]) {
            let what = ORDER.get(key.0).copied().unwrap_or_default();
            differences.push(Difference { what: what.to_owned(), name: key.1.clone(), values });
        }
    }
    Ok(differences)
}

/// The facts of a dossier: those of the execution, or of the writers of the result or a part of it.
fn facts(dossier: &Dossier) -> Result<Facts> {
    let root = &dossier.lineage.root;
    let roots: BTreeSet<&VertexName> = dossier.lineage.roots.iter().collect();
    let all = units(dossier);
    let chosen: Vec<&Unit> = match is_execution(&root.kind) {
        true => all.iter().filter(|unit| unit.name == *root || unit.parts.contains(root)).collect(),
        false => {
            all.iter().filter(|unit| unit.writes.iter().any(|write| roots.contains(&write.data))).collect()
        }
    };
    if chosen.is_empty() {
        return Err(Code::VertexNotFound
            .error(format!("no execution wrote {}", roots_text(&dossier.lineage)))
            .with_hint("compare executions, or results that executions wrote"));
    }
    let mut facts = Facts::new();
    for unit in chosen {
        let alone = (*root != unit.name).then_some(root).filter(|_| is_execution(&root.kind));
        of_unit(&mut facts, dossier, unit, alone);
    }
    Ok(facts)
}

fn shown(value: &Value) -> String {
    match value {
        Value::Text(text) => text.clone(),
        Value::DateTime(moment) => moment_text(*moment),
        value => value.to_string(),
    }
}

/// Facts of a unit, or of the one process of it that was asked for.
fn of_unit(facts: &mut Facts, dossier: &Dossier, unit: &Unit, alone: Option<&VertexName>) {
    let mut add = |what: &str, name: &str, value: String| {
        let place = ORDER.iter().position(|known| *known == what).unwrap_or_default();
        facts.entry((place, name.to_owned())).or_default().insert(value);
    };
    for program in &unit.programs {
        add("executable", "program", program.data.id.to_string());
        if let Some(checksum) = &program.checksum {
            add("executable", "checksum", checksum.clone());
        }
    }
    // If a process lacks a fact, its job's fact counts.
    let own = |name: &str| alone.and_then(|alone| dossier.prop(alone, name));
    let runners = unit.runners(dossier);
    let each = |name: &str| -> Vec<&Value> {
        match own(name) {
            Some(value) => vec![value],
            None => {
                let said: Vec<&Value> =
                    runners.iter().filter_map(|runner| dossier.prop(runner, name)).collect();
                if said.is_empty() { unit.prop(dossier, name).into_iter().collect() } else { said }
            }
        }
    };
    for words in each("argv") {
        if let Value::List(words) | Value::Array(words) = words {
            let words: Vec<String> = words.iter().map(shown).collect();
            if unit.programs.is_empty()
                && let Some(program) = words.first()
            {
                add("executable", "program", program.clone());
            }
            arguments(&words).into_iter().for_each(|(name, value)| add("argument", &name, value));
        }
    }
    for (name, what) in [("params", "argument"), ("env", "environment")] {
        for pairs in each(name) {
            let Value::Map(pairs) = pairs else { continue };
            pairs.iter().for_each(|(name, value)| add(what, name, shown(value)));
        }
    }
    for streams in each("streams") {
        let Value::Map(streams) = streams else { continue };
        for (name, facts) in streams {
            let Value::Map(facts) = facts else { continue };
            let path = facts.iter().find(|(known, _)| known == "path");
            path.into_iter().for_each(|(_, path)| add("argument", name, shown(path)));
        }
    }
    for (name, what) in [("cwd", "folder"), ("host", "host")] {
        each(name).into_iter().for_each(|value| add(what, name, shown(value)));
    }
    for git in each("git") {
        let Value::Map(git) = git else { continue };
        for (name, value) in git.iter().filter(|(name, _)| matches!(name.as_str(), "commit" | "dirty")) {
            add("version", name, shown(value));
        }
    }
    let members: BTreeSet<&VertexName> = match alone {
        Some(alone) => BTreeSet::from([alone]),
        None => std::iter::once(&unit.name).chain(&unit.parts).collect(),
    };
    for read in
        dossier.lineage.edges.iter().filter(|edge| edge.kind == "read" && members.contains(&edge.near))
    {
        add("input", &read.far.to_string(), version(dossier, read));
    }
}

/// The version of its input that a read took: by checksum, else by the write that it read, else empty.
fn version(dossier: &Dossier, read: &Relation) -> String {
    if let Some(checksum) = text(read, "checksum") {
        return checksum.to_owned();
    }
    let ended = end(read);
    let read_from = |edge: &&Relation| edge.kind == "write" && edge.far == read.far && edge.stamp <= ended;
    match dossier.lineage.edges.iter().rfind(read_from) {
        Some(write) => match text(write, "checksum") {
            Some(checksum) => checksum.to_owned(),
            None => {
                let when = moment_text(i64::try_from(write.stamp).unwrap_or(i64::MAX));
                format!("written by {} at {when}", short(&write.near.to_string(), 200))
            }
        },
        None => "its writer is not recorded".to_owned(),
    }
}

/// Arguments by name: an option by itself, with its value; others by their number among these.
fn arguments(words: &[String]) -> Vec<(String, String)> {
    let mut named: Vec<(String, String)> = Vec::new();
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut add = |name: String, value: String| {
        let n = times.entry(name.clone()).or_default();
        *n += 1;
        named.push((if *n > 1 { format!("{name} ({n})") } else { name }, value));
    };
    let is_option = |word: &str| word.len() > 1 && word.starts_with('-') && word.parse::<f64>().is_err();
    let (mut at, mut plain, mut options) = (1, 0, true);
    while let Some(word) = words.get(at) {
        at += 1;
        if options && word == "--" {
            options = false;
        } else if options && is_option(word) {
            if let Some((name, value)) = word.split_once('=') {
                add(name.to_owned(), value.to_owned());
            } else if let Some(value) = words.get(at).filter(|next| !is_option(next) && *next != "--") {
                at += 1;
                add(word.clone(), value.clone());
            } else {
                add(word.clone(), String::new());
            }
        } else {
            plain += 1;
            add(plain.to_string(), word.clone());
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_known_by_their_options_or_their_number() {
        let words = "prog -v in.nc --n=3 out.nc --shift -2 -D a -D b -- -x";
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let named = arguments(&words);
        let pairs: Vec<(&str, &str)> =
            named.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [
            ("-v", "in.nc"),
            ("--n", "3"),
            ("1", "out.nc"),
            ("--shift", "-2"),
            ("-D", "a"),
            ("-D (2)", "b"),
            ("2", "-x"),
        ];
        assert_eq!(pairs, expected);
        assert!(arguments(&[]).is_empty());
    }
}
