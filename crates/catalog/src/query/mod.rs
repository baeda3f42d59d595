//! The query model: the questions that one call can ask the catalog.
//!
//! A query is an expression over terms. Terms test one attribute (or, if no term needs attributes, one
//! existing run, step, variable or tag); [`Expr::Related`] requires another attribute next to it. Rust code
//! builds queries with functions, Python with keywords, and [`parse`](text::parse) reads them from text.

mod batches;
mod bounds;
mod check;
mod cond;
mod exact;
mod exec;
mod explain;
mod hit_ref;
mod hits;
mod levels;
mod lists;
mod lookup;
mod matched;
mod missing;
mod pairs;
mod partition;
mod place;
mod plan;
mod region;
mod relate;
mod results;
mod rows;
mod size;
mod table;
#[cfg(test)]
mod tests;
pub mod text;
mod units;
mod variable_at;
mod walk;
mod writers;

use fieldstone_core::value::{Test, Value};
use fieldstone_journal::Session;

pub use crate::engine::stored::RowKeywords;

pub use explain::explain;
pub use hit_ref::HitRef;
pub use hits::{aggregate, collect, count, run};
pub use lists::{boxes, runs, steps, tags, variables};
pub use missing::{MissingName, missing_name};
pub use pairs::{PairTable, collect_pairs};
pub use results::{Aggregate, BoxInfo, By, RunInfo, Stats, StepInfo, TagInfo, VariableInfo};
pub use table::{Coded, HitTable, TableBuilder};
pub use units::check_units;

/// A test of a name: exact and case-sensitive, or a pattern.
#[derive(Debug, Clone, PartialEq)]
pub enum NameTest {
    /// Exactly this.
    Is(String),
    /// A pattern: `*`, `?`, `[…]`.
    Glob(String),
    /// A name with `*`, `?` or `[` as a user typed it: reads take it as a pattern, changes and removals as
    /// exactly that name.
    Typed(String),
    /// One of them.
    Any(Vec<NameTest>),
}

/// The object to which an attribute belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// A run.
    Run,
    /// A step.
    Step,
    /// A variable, at a step or at none.
    Variable,
}

/// A dimension, by name or by index.
#[derive(Debug, Clone, PartialEq)]
pub enum Dim {
    /// By the name that the variable declares.
    Name(String),
    /// By index, 0 first.
    Index(usize),
}

/// A range along a dimension.
#[derive(Debug, Clone, PartialEq)]
pub enum Range {
    /// Elements, half-open; an absent end is open.
    Index(Option<i64>, Option<i64>),
    /// Coordinates, both ends included; the variable's coordinates map them to elements. If no dimension has
    /// the name, the coordinates of the variable's mesh do. Longitudes from a greater to a lesser one go
    /// around the globe.
    Physical(f64, f64),
}

/// The part of a writer that a term tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterPart {
    /// Its name: host and number, separated by a colon; or the id of its log.
    Name,
    /// Its host.
    Host,
    /// Its number on the host.
    Process,
    /// Its rank in the job.
    Rank,
    /// The scheduler's name of the job.
    Job,
    /// The attempt.
    Attempt,
}

impl WriterPart {
    /// Each part except the name, by its word in queries.
    pub const WORDS: [(&'static str, WriterPart); 5] = [
        ("host", WriterPart::Host),
        ("process", WriterPart::Process),
        ("rank", WriterPart::Rank),
        ("job", WriterPart::Job),
        ("attempt", WriterPart::Attempt),
    ];
}

/// The required relation of an attribute's box to the requested box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Relation {
    /// They share an element.
    #[default]
    Overlaps,
    /// It lies inside the requested box.
    Within,
    /// It contains the requested box.
    Contains,
}

/// One term.
#[derive(Debug, Clone)]
pub enum Term {
    /// Name of the run.
    Run(NameTest),
    /// Its project.
    Project(NameTest),
    /// Its job.
    Job(NameTest),
    /// A parameter of the run.
    Param(String, Test),
    /// An attribute of the variable, from its declaration; in a list of runs, a parameter.
    Attr(String, Test),
    /// The time when the run was created.
    Created(Test),
    /// Steps, both ends included; an attribute of a run has none.
    Step(Vec<(i64, i64)>),
    /// Time of the step.
    Time(Test),
    /// Name of the variable.
    Variable(NameTest),
    /// Its version.
    VariableVersion(Vec<i64>),
    /// The level of an adaptive mesh, both ends included; made by [`Term::level`]. Terms about names that
    /// must hold together with it mean names on the level.
    Level(Vec<(i64, i64)>),
    /// Name of the tag.
    Tag(NameTest),
    /// Its version, as it is shown.
    TagVersion(Vec<i64>),
    /// Its unit.
    Unit(NameTest),
    /// The value.
    Value(Test),
    /// The object to which it belongs.
    Scope(Scope),
    /// The box. An attribute of a whole variable has the box of the variable's shape; other attributes
    /// without a box match none. Dimensions without a range match everywhere.
    Region(Vec<(Dim, Range)>, Relation),
    /// Extent of the box along a dimension, in elements.
    Extent(Dim, Test),
    /// Elements in the box; for a set of cells, the number of its elements.
    Volume(Test),
    /// A further keyword of the attribute: its text, or the number that the text represents.
    Keyword(String, Test),
    /// The user who wrote the attribute, by name or number.
    User(NameTest),
    /// The process that wrote it. A text that represents a number also counts as that number.
    Writer(WriterPart, Test),
}

/// The place of a related attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// In the same run.
    SameRun,
    /// At the same step of the same run, on any variable.
    SameStep,
    /// On the same variable at the same step.
    SameVariable,
    /// At the same step with a box that shares an element, on any variable.
    Overlapping,
}

/// An expression over terms. Every call refuses one that is larger than
/// [`Size::MOST`](fieldstone_core::value::Size::MOST).
#[derive(Debug, Clone)]
pub enum Expr {
    /// All hold; an empty list matches everything.
    All(Vec<Expr>),
    /// At least one holds.
    Any(Vec<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// One term.
    Term(Term),
    /// Another attribute at this place matches the expression.
    Related(Where, Box<Expr>),
}

/// The key by which results are ordered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// Name of the run.
    Run,
    /// The time when the run was created.
    Created,
    /// The step.
    Step,
    /// Time of the step.
    Time,
    /// Name of the variable.
    Variable,
    /// Name of the tag.
    Tag,
    /// The value: numbers, then texts, then the rest; NaN last, also in descending order.
    Value,
    /// Elements in the box.
    Volume,
}

/// First or last step of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// For each run, variable and tag: only hits of the first step that has one.
    First,
    /// Only hits of the last step.
    Last,
}

/// A query.
#[derive(Debug, Clone)]
pub struct Query {
    /// The condition.
    pub expr: Expr,
    /// The session that asks: its unflushed records are visible, and the content of its transaction.
    pub session: Session,
    /// First or last step only.
    pub pick: Option<Pick>,
    /// Order of the results; `true`: descending. If empty: by run, tag, step, variable, box.
    pub order: Vec<(Key, bool)>,
    /// The maximum number of results.
    pub limit: Option<u64>,
}

impl Query {
    /// A query for everything.
    pub fn all() -> Query {
        Query {
            expr: Expr::All(Vec::new()),
            session: Session::default(),
            pick: None,
            order: Vec::new(),
            limit: None,
        }
    }
}

/// A box, half-open, in elements.
pub type Box64 = (Vec<i64>, Vec<i64>);

/// A dimension, and indices along it, ascending.
pub type Cells = (usize, std::sync::Arc<[i64]>);

/// A found attribute. The hits of a query share their names.
#[derive(Debug, Clone)]
pub struct Hit {
    /// The project; empty for none.
    pub project: std::sync::Arc<str>,
    /// The run.
    pub run: std::sync::Arc<str>,
    /// The step.
    pub step: Option<i64>,
    /// Time of the step.
    pub time: Option<f64>,
    /// The variable.
    pub variable: Option<std::sync::Arc<str>>,
    /// Its version.
    pub variable_version: i64,
    /// The tag.
    pub tag: std::sync::Arc<str>,
    /// Its version, as it is shown.
    pub tag_version: i64,
    /// Its unit.
    pub unit: std::sync::Arc<str>,
    /// The value.
    pub value: Value,
    /// The box: start and count; `None` for the whole variable, step or run.
    pub region: Option<Box64>,
    /// Its cells, if the box does not hold all of its elements: a dimension, and indices along it, ascending.
    pub cells: Option<Cells>,
    /// Further keywords of the field key that it leads to, by name, each with its canonical value.
    pub keywords: Option<RowKeywords>,
    /// The user who wrote it, by number.
    pub user: u32,
    /// Which attribute it is.
    pub id: fieldstone_format::catalog::AttributeId,
}
