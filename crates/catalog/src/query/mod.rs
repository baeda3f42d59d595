//! The query model: what one call can ask of the catalog.
//!
//! A query is an expression over terms. Terms look at one attribute (or one run, step, variable or tag
//! that exists, where no term needs attributes); [`Expr::Related`] asks for another attribute beside it.
//! Functions build it in Rust, keywords in Python, and [`parse`](text::parse) reads it as text.

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

/// A test of a name: exact, with case; or a glob.
#[derive(Debug, Clone, PartialEq)]
pub enum NameTest {
    /// Exactly this.
    Is(String),
    /// A pattern: `*`, `?`, `[…]`.
    Glob(String),
    /// A name with `*`, `?` or `[` as a user typed it: a pattern to what reads, that name to what changes or removes.
    Typed(String),
    /// One of them.
    Any(Vec<NameTest>),
}

/// What an attribute stands on.
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
    /// Elements, half-open; an end that is not given is open.
    Index(Option<i64>, Option<i64>),
    /// Coordinates, both ends included; mapped to elements by the variable's coordinates. Where no dimension has the
    /// name, by those of the mesh that the variable stands on; longitudes from a greater to a lesser one go around.
    Physical(f64, f64),
}

/// The part of a writer that a term compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriterPart {
    /// Its name, host and number with a colon between; or the id of its log.
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
    /// Each part but the name, by the word for it.
    pub const WORDS: [(&'static str, WriterPart); 5] = [
        ("host", WriterPart::Host),
        ("process", WriterPart::Process),
        ("rank", WriterPart::Rank),
        ("job", WriterPart::Job),
        ("attempt", WriterPart::Attempt),
    ];
}

/// How the box of an attribute lies to the box asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Relation {
    /// They have an element in common.
    #[default]
    Overlaps,
    /// It lies inside of the box asked for.
    Within,
    /// It holds the box asked for.
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
    /// An attribute of the variable, as its declaration has it; where runs are listed, a parameter.
    Attr(String, Test),
    /// When the run was created.
    Created(Test),
    /// Steps, both ends included; an attribute of a run has none.
    Step(Vec<(i64, i64)>),
    /// Time of the step.
    Time(Test),
    /// Name of the variable.
    Variable(NameTest),
    /// Its version.
    VariableVersion(Vec<i64>),
    /// The level of an adaptive mesh that it is on, both ends included; made by [`Term::level`]. Of terms that all must
    /// hold, those of names then mean names on the level.
    Level(Vec<(i64, i64)>),
    /// Name of the tag.
    Tag(NameTest),
    /// Its version, as it is shown.
    TagVersion(Vec<i64>),
    /// Its unit.
    Unit(NameTest),
    /// The value.
    Value(Test),
    /// What it stands on.
    Scope(Scope),
    /// The box. An attribute of a whole variable has the box of its shape; others have none and match no
    /// box. Dimensions that are not named are not looked at.
    Region(Vec<(Dim, Range)>, Relation),
    /// Extent of the box along a dimension, in elements.
    Extent(Dim, Test),
    /// Elements in the box; of a set of cells, those that it has.
    Volume(Test),
    /// A further keyword of the attribute: its text, or the number that it says.
    Keyword(String, Test),
    /// The user who wrote the attribute, by name or number.
    User(NameTest),
    /// The process that wrote it. A text that says a number is one, too.
    Writer(WriterPart, Test),
}

/// Where a related attribute must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Where {
    /// In the same run.
    SameRun,
    /// At the same step of the same run, on any variable.
    SameStep,
    /// On the same variable at the same step.
    SameVariable,
    /// At the same step with a box that has an element in common, on any variable.
    Overlapping,
}

/// An expression over terms, as large as [`Size::MOST`](fieldstone_core::value::Size::MOST) says: every call refuses
/// a larger one.
#[derive(Debug, Clone)]
pub enum Expr {
    /// All hold; of none: everything.
    All(Vec<Expr>),
    /// One holds at least.
    Any(Vec<Expr>),
    /// It does not hold.
    Not(Box<Expr>),
    /// One term.
    Term(Term),
    /// There is another attribute for which the expression holds, placed like this.
    Related(Where, Box<Expr>),
}

/// What results are ordered by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key {
    /// Name of the run.
    Run,
    /// When the run was created.
    Created,
    /// The step.
    Step,
    /// Time of the step.
    Time,
    /// Name of the variable.
    Variable,
    /// Name of the tag.
    Tag,
    /// The value: numbers, then texts, then the rest; NaN last, also in falling order.
    Value,
    /// Elements in the box.
    Volume,
}

/// First or last step of a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pick {
    /// Per run, variable and tag: only hits of the first step that has one.
    First,
    /// Only of the last.
    Last,
}

/// A query.
#[derive(Debug, Clone)]
pub struct Query {
    /// What must hold.
    pub expr: Expr,
    /// For whom it is asked: what the session has not flushed is seen, too, and what its transaction holds.
    pub session: Session,
    /// First or last step only.
    pub pick: Option<Pick>,
    /// Order of the results; `true`: descending. By run, tag, step, variable, box where empty.
    pub order: Vec<(Key, bool)>,
    /// At most so many.
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

/// An attribute that was found. Names are shared by the hits of a query.
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
    /// Its cells, where the box does not hold all of its elements: a dimension, and indices along it, ascending.
    pub cells: Option<Cells>,
    /// Further keywords of the key that it leads to, by name, each with its canonical value.
    pub keywords: Option<RowKeywords>,
    /// The user who wrote it, by number.
    pub user: u32,
    /// Which attribute it is.
    pub id: fieldstone_format::catalog::AttributeId,
}
