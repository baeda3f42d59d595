//! Answers of queries beside attributes: runs, steps, variables, tags, boxes, numbers; and their costs.

use std::sync::Arc;

use crate::engine::RunRow;
use fieldstone_format::catalog::{RunDecl, RunName, TagDecl, VariableDecl, VariableName};

/// The cost of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Rows of attr that were read.
    pub visited: u64,
    /// Ranges of keys that were read.
    pub probes: u64,
    /// Rows of series that were read.
    pub series: u64,
    /// Pairs of run and tag that were looked into.
    pub partitions: u64,
    /// Hits that were handed on.
    pub returned: u64,
}

/// A run that was found.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// What was declared, or only the name.
    pub decl: RunDecl,
    /// Whether `create_run` declared it; else fields name it.
    pub declared: bool,
    /// The user who declared it first; the owner, where the store names no other.
    pub first: Option<u32>,
}

impl RunInfo {
    /// What a row of the tables says.
    pub fn of(row: RunRow) -> RunInfo {
        RunInfo { decl: row.decl, declared: row.declared, first: row.first }
    }
}

/// A step that was found.
#[derive(Debug, Clone)]
pub struct StepInfo {
    /// The run.
    pub run: RunName,
    /// The number.
    pub step: i64,
    /// The time.
    pub time: Option<f64>,
}

/// A variable that was found.
#[derive(Debug, Clone)]
pub struct VariableInfo {
    /// The run.
    pub run: RunName,
    /// What was declared, or what its fields say.
    pub decl: VariableDecl,
    /// Whether `create_variable` declared it.
    pub declared: bool,
}

/// A tag that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct TagInfo {
    /// What was declared.
    pub decl: TagDecl,
    /// The version to show.
    pub version: i64,
}

/// A box that was found: the box of at least one hit, or the whole variable that a hit stands on.
#[derive(Debug, Clone, PartialEq)]
pub struct BoxInfo {
    /// The run.
    pub run: RunName,
    /// The step.
    pub step: Option<i64>,
    /// The variable.
    pub variable: Option<VariableName>,
    /// Start.
    pub start: Vec<i64>,
    /// Extents.
    pub count: Vec<i64>,
}

/// What an aggregate is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum By {
    /// Name of the run, within its project.
    Run,
    /// The step.
    Step,
    /// The variable, all its versions.
    Variable,
    /// The tag, all its versions.
    Tag,
}

/// Numbers of a group of hits.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// The run, where grouped by it.
    pub run: Option<RunName>,
    /// The step, where grouped by it and there is one.
    pub step: Option<i64>,
    /// Time of the step, where grouped by run and step.
    pub time: Option<f64>,
    /// The variable, where grouped by it and there is one.
    pub variable: Option<Arc<str>>,
    /// The tag, where grouped by it.
    pub tag: Option<Arc<str>>,
    /// Hits.
    pub count: u64,
    /// Least number; `None` where no hit has one. NaN is none, and neither are moments and ranges.
    pub min: Option<f64>,
    /// Greatest number.
    pub max: Option<f64>,
    /// Mean of the numbers.
    pub mean: Option<f64>,
}
