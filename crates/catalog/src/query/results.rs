//! Answers of queries other than attributes: runs, steps, variables, tags, boxes, numbers; and their costs.

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
    /// Pairs of run and tag that were searched.
    pub partitions: u64,
    /// Hits that were passed on.
    pub returned: u64,
}

/// A found run.
#[derive(Debug, Clone)]
pub struct RunInfo {
    /// Its declaration, or only the name.
    pub decl: RunDecl,
    /// Whether `create_run` declared it; otherwise it exists through its fields.
    pub declared: bool,
    /// The user who declared it first; the owner, unless the store names another.
    pub first: Option<u32>,
}

impl RunInfo {
    /// The run in a row of the tables.
    pub fn of(row: RunRow) -> RunInfo {
        RunInfo { decl: row.decl, declared: row.declared, first: row.first }
    }
}

/// A found step.
#[derive(Debug, Clone)]
pub struct StepInfo {
    /// The run.
    pub run: RunName,
    /// The number.
    pub step: i64,
    /// The time.
    pub time: Option<f64>,
}

/// A found variable.
#[derive(Debug, Clone)]
pub struct VariableInfo {
    /// The run.
    pub run: RunName,
    /// Its declaration, or the facts of its fields.
    pub decl: VariableDecl,
    /// Whether `create_variable` declared it.
    pub declared: bool,
}

/// A found tag.
#[derive(Debug, Clone, PartialEq)]
pub struct TagInfo {
    /// Its declaration.
    pub decl: TagDecl,
    /// The version that is shown.
    pub version: i64,
}

/// A found box: the box of at least one hit, or the whole variable of a hit.
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

/// The keys by which an aggregate groups hits.
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
    /// The run, if grouped by it.
    pub run: Option<RunName>,
    /// The step, if grouped by it and there is one.
    pub step: Option<i64>,
    /// Time of the step, if grouped by run and step.
    pub time: Option<f64>,
    /// The variable, if grouped by it and there is one.
    pub variable: Option<Arc<str>>,
    /// The tag, if grouped by it.
    pub tag: Option<Arc<str>>,
    /// Hits.
    pub count: u64,
    /// Least number; `None` if no hit has one. NaN, moments and ranges do not count.
    pub min: Option<f64>,
    /// Greatest number.
    pub max: Option<f64>,
    /// Mean of the numbers.
    pub mean: Option<f64>,
}
