//! Random records of a history, with few names, so that they interact.

use std::sync::Arc;

use fieldstone_core::value::{Value, ValueType};
use fieldstone_format::catalog::{
    Annotate, AttributeBatch, AttributeId, Boxes, CellSets, Column, KeywordColumn, Record, Removal, RunDecl,
    RunName, RunPhase, RunState, StepDecl, TagDecl, Values, VariableDecl, VariableName,
};
use fieldstone_testkit::Random;

use super::{arrays, writer_id};

pub fn run_name(dice: &mut Random) -> RunName {
    let project = if dice.one_in(3) { "p" } else { "" };
    RunName { project: project.into(), name: ["a", "b"][dice.below(2) as usize].into() }
}

fn tag(dice: &mut Random) -> TagDecl {
    let (name, version, kind, unit) = match dice.below(5) {
        0 => ("max", 1, ValueType::Float, "K"),
        1 => ("max", 1, ValueType::Float, "degC"),
        2 => ("max", 2, ValueType::Int, ""),
        3 => ("note", 1, ValueType::Text, ""),
        _ => ("any", 1, ValueType::Json, ""),
    };
    TagDecl { name: name.into(), version, kind, unit: unit.into() }
}

pub fn variable(dice: &mut Random) -> VariableName {
    VariableName { name: ["t", "u"][dice.below(2) as usize].into(), version: 1 }
}

fn values(dice: &mut Random, kind: ValueType, n: usize) -> Values {
    let floats = [1.5, -2.0, f64::NAN, f64::INFINITY, 0.0, -0.0];
    match kind {
        ValueType::Float => Values::Float((0..n).map(|_| floats[dice.below(6) as usize]).collect()),
        ValueType::Int => Values::Int((0..n).map(|_| dice.below(9) as i64 - 4).collect()),
        ValueType::Text => Values::Text((0..n).map(|_| format!("x{}", dice.below(4))).collect()),
        _ => Values::Any((0..n).map(|_| Value::List(vec![Value::Int(dice.below(4) as i64)])).collect()),
    }
}

fn attributes(dice: &mut Random) -> AttributeBatch {
    let (run, tag) = (run_name(dice), tag(dice));
    let rows = 1 + dice.below(4) as usize;
    let scope = dice.below(4);
    let step = (scope > 0).then(|| match dice.one_in(2) {
        true => Column::One(dice.below(3) as i64),
        false => Column::Each((0..rows).map(|_| dice.below(3) as i64).collect()),
    });
    let variables = if scope > 1 { vec![variable(dice)] } else { Vec::new() };
    let boxes = (scope > 2).then(|| {
        let shared = dice.one_in(3);
        let n = if shared { 1 } else { rows };
        let start: Vec<i64> = (0..n * 2).map(|_| dice.below(2) as i64 * 10).collect();
        let count: Vec<i64> = (0..n * 2).map(|_| 1 + dice.below(2) as i64 * 40).collect();
        // Equal boxes often hold other cells.
        let cells = dice.one_in(2).then(|| CellSets {
            dim: 1,
            sets: (0..n)
                .map(|row| {
                    let (first, last) = (start[2 * row + 1], start[2 * row + 1] + count[2 * row + 1] - 1);
                    let mut set = vec![first, first + dice.below(2) as i64 * 20, last];
                    set.dedup();
                    if set.is_sorted() { set.into() } else { [first].into() }
                })
                .collect(),
        });
        Boxes { rank: 2, start, count, cells }
    });
    let one_value = dice.one_in(4);
    let values = values(dice, tag.kind, if one_value { 1 } else { rows });
    let number = |dice: &mut Random| -> Arc<str> { dice.pick(&["", "1", "2"]).to_string().into() };
    let keywords = dice.one_in(3).then(|| {
        let mut values: Vec<Arc<str>> = (0..rows).map(|_| number(dice)).collect();
        if values.iter().all(|value| value.is_empty()) || dice.one_in(3) {
            values = vec!["1".into()];
        }
        KeywordColumn { keyword: "number".into(), values }
    });
    AttributeBatch {
        keywords: keywords.into_iter().collect(),
        run,
        tag,
        rows,
        step,
        variables,
        variable: Column::One(0),
        boxes,
        values,
        one_value,
        continues: false,
        singles: dice.one_in(3),
    }
}

pub fn record(dice: &mut Random, before: Option<&Record>, writers: u64) -> Record {
    match dice.below(25) {
        16 | 17 => Record::Groups(run_name(dice), vec![arrays::group(dice)]),
        18 => Record::Imports(run_name(dice), vec![arrays::import(dice)]),
        19 => Record::Meshes(vec![arrays::mesh(dice)]),
        20 => Record::Histories(vec![arrays::kept_partition(dice)]),
        21 | 22 => Record::Moved(vec![(run_name(dice), Value::Int(dice.below(5) as i64))]),
        23 | 24 => {
            let phase = [RunPhase::Running, RunPhase::Finished, RunPhase::Failed][dice.below(3) as usize];
            let state = RunState { phase, note: String::new(), writer: None };
            Record::States(vec![(run_name(dice), state)])
        }
        0 => Record::Runs(vec![RunDecl {
            run: run_name(dice),
            job: None,
            params: vec![("nx".into(), Value::Int(dice.below(2) as i64))],
            created: dice.below(1000) as i64,
            grid: None,
            notes: None,
            outside: dice.one_in(2).then_some(Value::Int(9)),
            annotate: if dice.one_in(4) { Annotate::Owner } else { Annotate::All },
            if_exists: None,
            state: None,
        }]),
        1 => {
            let time = [None, Some(1.0), Some(2.0)][dice.below(3) as usize];
            Record::Steps(run_name(dice), vec![StepDecl { number: dice.below(3) as i64, time }])
        }
        2 => Record::Variables(
            run_name(dice),
            vec![VariableDecl {
                variable: variable(dice),
                dtype: None,
                shape: Some(vec![100 + dice.below(2)]),
                dims: Vec::new(),
                attrs: Vec::new(),
                coords: Vec::new(),
                decomposition: None,
                finders: None,
            }],
        ),
        3 => Record::Tags(vec![tag(dice)]),
        4 => Record::Remove(vec![match dice.below(4) {
            0 => Removal::Run(run_name(dice)),
            1 => Removal::Step(run_name(dice), dice.below(3) as i64),
            2 => Removal::Variable(run_name(dice), variable(dice)),
            _ => Removal::Tag(tag(dice)),
        }]),
        5 | 6 => {
            // Without a log: an attribute of the commit that deletes it.
            let one = |dice: &mut Random| AttributeId {
                writer: (!dice.one_in(4)).then(|| writer_id(dice.below(writers))),
                sequence: 1 + dice.below(8),
                record: dice.below(3) as u32,
                row: dice.below(3) as u32,
            };
            Record::Remove(vec![Removal::Attributes((0..3).map(|_| one(dice)).collect())])
        }
        _ => match before {
            Some(Record::Attributes(before)) if dice.one_in(3) => {
                let mut more = before.clone();
                more.continues = true;
                Record::Attributes(more)
            }
            _ => Record::Attributes(attributes(dice)),
        },
    }
}
