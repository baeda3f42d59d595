//! Fields of random histories: those archived and removed under a few keys, and the ones that remain, in the
//! plainest form.

use std::collections::{BTreeMap, BTreeSet};

use fieldstone_catalog::engine::{FieldRow, HeldPlace, Index, Standing};
use fieldstone_core::dtype::DType;
use fieldstone_format::Id;
use fieldstone_format::catalog::{RunName, VariableName};
use fieldstone_format::log::kinds;
use fieldstone_testkit::Random;

use super::{Commit, History, Order, run_name, variable, visible};

/// A key: different levels at one place are different fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub run: RunName,
    pub variable: Option<VariableName>,
    pub step: Option<i64>,
    pub level: u64,
}

/// The change of a key in a commit.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    Removed,
    Opaque,
    Array(DType, Vec<u64>),
}

/// Changes of one commit, each key once.
pub type Changes = BTreeMap<Key, What>;

/// (stamp, decider, own stamp, writer, sequence).
type Version = (u64, Id, u64, Id, u64);

fn key(dice: &mut Random) -> Key {
    Key {
        run: run_name(dice),
        variable: (!dice.one_in(8)).then(|| variable(dice)),
        step: (!dice.one_in(8)).then(|| dice.below(4) as i64),
        level: dice.below(2),
    }
}

/// One call: fields of one kind at some keys, or the removal of the archived part of a variable.
pub fn change(dice: &mut Random, before: &[Commit], changes: &mut Changes) {
    let first = key(dice);
    let what = match dice.below(6) {
        0..=1 => What::Removed,
        2..=3 => What::Opaque,
        _ => What::Array([DType::F8, DType::F4][dice.below(2) as usize], vec![1 + dice.below(2)]),
    };
    let archived = before.iter().flat_map(|commit| commit.fields.keys()).cloned();
    let mut keys: Vec<Key> = match what {
        What::Removed if !dice.one_in(4) => archived
            .filter(|key| (&key.run, &key.variable) == (&first.run, &first.variable))
            .filter(|_| !dice.one_in(5))
            .collect(),
        _ => (0..dice.below(3)).map(|_| Key { step: key(dice).step, ..first.clone() }).collect(),
    };
    keys.push(first);
    changes.extend(keys.into_iter().map(|key| (key, what.clone())));
}

/// Rows of a commit in the form of the index.
pub fn rows(commit: &Commit) -> impl Iterator<Item = FieldRow> {
    commit.fields.iter().map(|(key, what)| {
        let (dtype, shape) = match what {
            What::Array(dtype, shape) => (Some(*dtype), Some(shape.clone())),
            _ => (None, None),
        };
        FieldRow {
            run: key.run.clone(),
            variable: key.variable.clone(),
            step: key.step,
            user: commit.user,
            sequence: commit.sequence,
            time: 0,
            transaction: commit.transaction,
            removal: *what == What::Removed,
            dtype,
            shape,
        }
    })
}

/// The field under each key after commits `..at` of each log and the decisions that are `known`.
pub fn standing(history: &History, at: &[usize], known: &BTreeMap<Id, usize>) -> Changes {
    let mut newest: BTreeMap<&Key, (Version, &What)> = BTreeMap::new();
    let commits = history.logs.iter().zip(at).flat_map(|(log, at)| &log[..*at]);
    for commit in commits {
        let order: Option<Order> = match commit.transaction {
            None => Some((commit.stamp, commit.writer)),
            Some(id) => {
                visible(&history.turns[&id][..known[&id]], kinds::FIELDS, commit.writer, commit.sequence)
            }
        };
        let Some((stamp, decider)) = order else { continue };
        let version = (stamp, decider, commit.stamp, commit.writer, commit.sequence);
        for (key, what) in &commit.fields {
            let entry = newest.entry(key).or_insert((version, what));
            if version > entry.0 {
                *entry = (version, what);
            }
        }
    }
    let there = newest.into_iter().filter(|(_, (_, what))| **what != What::Removed);
    there.map(|(key, (_, what))| (key.clone(), what.clone())).collect()
}

/// Answers the index's questions about places.
pub fn recheck(index: &mut Index, standing: &Changes, dice: &mut Random) {
    loop {
        let places = index.rechecks(1 + dice.below(4) as usize).unwrap();
        if places.is_empty() {
            return;
        }
        places.iter().for_each(|place| answer(index, standing, place));
    }
}

fn answer(index: &mut Index, standing: &Changes, place: &HeldPlace) {
    let here = standing
        .iter()
        .filter(|(key, _)| (&key.run, &key.variable, key.step) == (&place.run, &place.variable, place.step));
    let mut answer = Standing::default();
    for (_, what) in here {
        answer.held = true;
        if let What::Array(dtype, shape) = what
            && place.array
        {
            answer.array = Some((*dtype, shape.clone()));
        }
    }
    index.set_held(place, &answer).unwrap();
}

/// Type and shape of a variable: those of its last array, by step and then by key.
pub fn says(standing: &Changes, run: &RunName, variable: &VariableName) -> Option<(DType, Vec<u64>)> {
    let of = |key: &Key| key.run == *run && key.variable.as_ref() == Some(variable);
    let arrays = standing.iter().filter(|(key, _)| of(key)).filter_map(|(key, what)| match what {
        What::Array(dtype, shape) => Some(((key.step, key.level), (*dtype, shape.clone()))),
        _ => None,
    });
    arrays.max_by_key(|(at, _)| *at).map(|(_, says)| says)
}

/// Places that hold fields.
pub fn places(standing: &Changes) -> BTreeSet<(RunName, Option<VariableName>, Option<i64>)> {
    standing.keys().map(|key| (key.run.clone(), key.variable.clone(), key.step)).collect()
}
