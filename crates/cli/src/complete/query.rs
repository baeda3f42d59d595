//! Completion inside a query: words that begin a term, and the names that the catalog holds.

use std::sync::mpsc::channel;
use std::thread;

use fieldstone::catalog::Query;
use fieldstone::{Mode, OpenOptions, Result};

use super::Candidate;
use super::live::patience;

/// The beginnings of terms, each with a description.
const TERMS: [(&str, &str); 17] = [
    ("tag=", "name of the tag"),
    ("run=", "name of the run"),
    ("variable=", "name of the variable"),
    ("step=", "6, 0:10, 0/to/24/by/6"),
    ("value>", "also = != >= < <= in between contains like"),
    ("box=", "z:50:100,y:0:20"),
    ("time>", "time of the step"),
    ("unit=", "unit of the values"),
    ("scope=", "run, step or variable"),
    ("project=", "project of the run"),
    ("created>", "when the run was created"),
    ("param.", "a parameter of the run"),
    ("attr.", "an attribute of the variable, such as units; of runs, a parameter"),
    ("keyword.", "a further keyword of the field"),
    ("extent.", "extent of the box along a dimension"),
    ("volume>", "elements in the box"),
    ("version=", "version of the variable"),
];
/// Words that stand between terms, or behind them.
const JOINTS: [&str; 9] = ["and", "or", "not", "with", "without", "first", "last", "order", "limit"];

/// The candidates for the last word of a query.
pub fn candidates(store: &str, before: &[&str], current: &str) -> Vec<Candidate> {
    for (subject, list) in [("tag", 0), ("run", 1), ("variable", 2)] {
        if let Some(begun) = current.strip_prefix(subject).and_then(|rest| rest.strip_prefix('=')) {
            let names = names(store, list).into_iter().filter(|name| name.starts_with(begun));
            return names.map(|name| Candidate::new(format!("{subject}={name}"), "")).collect();
        }
    }
    let joint = before.last().is_none_or(|word| JOINTS[..5].contains(word));
    let terms = TERMS.iter().map(|(word, about)| Candidate::new(*word, *about));
    let joints = JOINTS.iter().map(|word| Candidate::new(*word, ""));
    let all: Vec<Candidate> = if joint { terms.collect() } else { joints.collect() };
    all.into_iter().filter(|candidate| candidate.word.starts_with(current)).collect()
}

/// Names that need no quotes, as far as the catalog answers in time.
fn names(store: &str, list: usize) -> Vec<String> {
    if patience().is_zero() {
        return Vec::new();
    }
    let (sender, answers) = channel();
    let url = store.to_owned();
    thread::spawn(move || {
        // Nobody may listen any more.
        let _ = sender.send(ask(&url, list).unwrap_or_default());
    });
    let mut names = answers.recv_timeout(patience()).unwrap_or_default();
    names.retain(|name| name.chars().all(|c| c.is_alphanumeric() || "_-./:".contains(c)));
    names.sort_unstable();
    names.dedup();
    names
}

fn ask(url: &str, list: usize) -> Result<Vec<String>> {
    let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    let store = fieldstone::open(url, &reading)?;
    let catalog = store.catalog();
    let all = Query::all();
    Ok(match list {
        0 => catalog.tags(&all)?.into_iter().map(|tag| tag.decl.name).collect(),
        1 => catalog.runs(&all)?.into_iter().map(|run| run.decl.run.name).collect(),
        _ => catalog.variables(&all)?.into_iter().map(|found| found.decl.variable.name).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(before: &[&str], current: &str) -> Vec<String> {
        candidates("nowhere", before, current).into_iter().map(|candidate| candidate.word).collect()
    }

    #[test]
    fn terms_come_first_and_joints_behind_them() {
        assert_eq!(words(&[], "v"), ["variable=", "value>", "volume>", "version="]);
        assert_eq!(words(&["tag=a"], "o"), ["or", "order"]);
        assert_eq!(words(&["tag=a", "and"], "b"), ["box="]);
        assert!(words(&[], "tag=x").is_empty());
    }
}
