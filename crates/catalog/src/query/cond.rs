//! A query expression in the executor. It shrinks as the executor descends to a run, a tag and a series.
//!
//! [`Cond::of`] reads the expression once and refuses one that is too large for recursion. [`Cond::known`]
//! inserts known facts — the run, the tag, the place of a series — and folds constants: whole runs, tags and
//! series drop out if nothing in them can match, and only tests of the value and the box remain for the rows.
//! [`Cond::test`] decides a row.
//!
//! Invariant: `known` never changes the result of `test` for a row at the known place.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::amr;
use fieldstone_core::schema::step_number;
use fieldstone_core::value::{Glob, Test, Value};

use super::batches::Batches;
use super::levels::short_name;
use super::place::RowRegion;
use super::region::{BoxTest, Lengths};
use super::variable_at::{VariableAt, coordinate_ranges};
use super::{Dim, Expr, NameTest, Range, Relation, Scope, Term, Where, WriterPart};
use crate::engine::{CoordinateRange, RunId, TagId, VariableId};
use fieldstone_format::catalog::{RunDecl, TagDecl};

/// A test of a name, with its patterns parsed.
#[derive(Debug)]
pub(super) enum Names {
    Is(String),
    Glob(Glob),
    Any(Vec<Names>),
}

impl Names {
    fn of(test: &NameTest) -> Names {
        match test {
            NameTest::Is(name) => Names::Is(name.clone()),
            NameTest::Glob(pattern) | NameTest::Typed(pattern) => Names::Glob(Glob::new(pattern)),
            NameTest::Any(tests) => Names::Any(tests.iter().map(Names::of).collect()),
        }
    }

    pub(super) fn matches(&self, name: &str) -> bool {
        match self {
            Names::Is(is) => is == name,
            Names::Glob(glob) => glob.matches(name),
            Names::Any(tests) => tests.iter().any(|test| test.matches(name)),
        }
    }

    /// The names that it can match, if it lists them.
    pub(super) fn exact(&self) -> Option<Vec<String>> {
        match self {
            Names::Is(name) => Some(vec![name.clone()]),
            Names::Glob(_) => None,
            Names::Any(tests) => {
                let all: Option<Vec<_>> = tests.iter().map(Names::exact).collect();
                all.map(|lists| lists.concat())
            }
        }
    }
}

/// A run, as the executor knows it.
#[derive(Debug, Clone)]
pub(super) struct RunAt {
    pub(super) id: RunId,
    pub(super) project: Arc<str>,
    pub(super) name: Arc<str>,
    /// Its declaration, if requested.
    pub(super) decl: Option<Arc<(RunDecl, bool)>>,
}

/// A tag.
#[derive(Debug, Clone)]
pub(super) struct TagAt {
    pub(super) id: TagId,
    pub(super) decl: TagDecl,
    pub(super) name: Arc<str>,
    pub(super) unit: Arc<str>,
    pub(super) version: i64,
}

/// Step and variable, each if there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Series<'a> {
    pub(super) step: Option<i64>,
    pub(super) time: Option<f64>,
    pub(super) variable: Option<&'a VariableAt>,
}

/// The known facts about the place of a row.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct KnownRow<'a> {
    pub(super) run: Option<&'a RunAt>,
    pub(super) tag: Option<&'a TagAt>,
    pub(super) place: Option<Series<'a>>,
}

/// A term, or the undecided part of one.
#[derive(Debug, Clone)]
pub(super) enum Leaf {
    Run(Arc<Names>),
    Project(Arc<Names>),
    Job(Arc<Names>),
    Param(Arc<(String, Test)>),
    Created(Arc<Test>),
    Step(Arc<[(i64, i64)]>),
    Time(Arc<Test>),
    Variable(Arc<Names>),
    /// Its name, or its name on its level.
    NameOnLevel(Arc<Names>),
    Level(Arc<[(i64, i64)]>),
    VariableVersion(Arc<[i64]>),
    Attr(Arc<(String, Test)>),
    Tag(Arc<Names>),
    TagVersion(Arc<[i64]>),
    Unit(Arc<Names>),
    Value(Arc<Test>),
    Scope(Scope),
    /// On one of these variables, by number, ascending.
    On(Arc<[VariableId]>),
    Region(Arc<(Vec<(Dim, Range)>, Relation)>),
    Extent(Arc<(Dim, Test)>),
    Volume(Arc<Test>),
    Keyword(Arc<(String, Test)>),
    /// A region on a known variable.
    Boxed(Arc<BoxTest>),
    /// An extent on a known variable.
    Length(Arc<(Lengths, Test)>),
    /// The user who wrote it; replaced by batches later.
    User(Arc<Names>),
    /// The process that wrote it; replaced by batches later.
    Writer(Arc<(WriterPart, Test)>),
    /// In one of these batches.
    Batches(Arc<Batches>),
    /// Index into the related expressions.
    Related(usize),
}

/// An expression, partly decided.
#[derive(Debug, Clone)]
pub(super) enum Cond {
    Const(bool),
    All(Vec<Cond>),
    Any(Vec<Cond>),
    Not(Box<Cond>),
    Leaf(Leaf),
}

/// A query for a related attribute.
#[derive(Debug, Clone)]
pub(super) struct Related {
    pub(super) place: Where,
    pub(super) cond: Cond,
}

/// A row, or the stored part of one, for [`Cond::test`].
pub(super) trait Row {
    /// Its box, or that of the whole variable; `None` if there is neither.
    fn bounds(&mut self) -> Result<Option<RowRegion<'_>>>;
    /// The value of a further keyword.
    fn keyword(&mut self, name: &str) -> Result<Option<Arc<str>>>;
    /// The batch in which it came; `None` for rows other than attributes.
    fn batch(&self) -> Option<i64>;
    /// Its value.
    fn value(&mut self) -> Result<&Value>;
    /// Whether the related attribute exists; `None` if that is not known yet.
    fn related(&self, index: usize) -> Option<bool>;
}

impl Cond {
    /// Reads an expression, and the related ones in it.
    ///
    /// # Errors
    /// Invalid if it is larger than [`Size::MOST`](fieldstone_core::value::Size::MOST).
    pub(super) fn of(expr: &Expr) -> Result<(Cond, Vec<Related>)> {
        expr.size().check()?;
        let mut related = Vec::new();
        Ok((Cond::read(expr, false, &mut related), related))
    }

    /// `on_level`: another term that must hold as well gives the level.
    fn read(expr: &Expr, on_level: bool, related: &mut Vec<Related>) -> Cond {
        match expr {
            Expr::All(list) => {
                let on_level = on_level || expr.says_level();
                Cond::All(list.iter().map(|one| Cond::read(one, on_level, related)).collect())
            }
            Expr::Any(list) => Cond::Any(list.iter().map(|one| Cond::read(one, on_level, related)).collect()),
            Expr::Not(inner) => Cond::Not(Box::new(Cond::read(inner, on_level, related))),
            Expr::Term(Term::Variable(test)) if on_level => {
                Cond::Leaf(Leaf::NameOnLevel(Arc::new(Names::of(test))))
            }
            Expr::Term(term) => Cond::Leaf(Leaf::of(term)),
            Expr::Related(place, inner) => {
                let cond = Cond::read(inner, false, related);
                related.push(Related { place: *place, cond });
                Cond::Leaf(Leaf::Related(related.len() - 1))
            }
        }
    }

    /// The undecided rest of the condition, given these known facts.
    pub(super) fn known(&self, known: &KnownRow<'_>) -> Result<Cond> {
        Ok(match self {
            Cond::Const(is) => Cond::Const(*is),
            Cond::All(list) => join(list, known, true)?,
            Cond::Any(list) => join(list, known, false)?,
            Cond::Not(inner) => match inner.known(known)? {
                Cond::Const(is) => Cond::Const(!is),
                Cond::Not(inner) => *inner,
                inner => Cond::Not(Box::new(inner)),
            },
            Cond::Leaf(leaf) => leaf.known(known)?,
        })
    }

    pub(super) fn is(&self, value: bool) -> bool {
        matches!(self, Cond::Const(is) if *is == value)
    }

    /// Whether a row is a hit; `None` if that depends on a related attribute that was not searched for yet.
    pub(super) fn test(&self, row: &mut dyn Row) -> Result<Option<bool>> {
        Ok(match self {
            Cond::Const(is) => Some(*is),
            Cond::All(list) => fold(list, row, false)?,
            Cond::Any(list) => fold(list, row, true)?,
            Cond::Not(inner) => inner.test(row)?.map(|is| !is),
            Cond::Leaf(leaf) => leaf.test(row)?,
        })
    }

    /// Whether some leaf is one of these.
    pub(super) fn has(&self, what: &dyn Fn(&Leaf) -> bool) -> bool {
        match self {
            Cond::Const(_) => false,
            Cond::All(list) | Cond::Any(list) => list.iter().any(|one| one.has(what)),
            Cond::Not(inner) => inner.has(what),
            Cond::Leaf(leaf) => what(leaf),
        }
    }

    /// Adds the ranges of coordinates that each region names, each distinct list once.
    pub(super) fn regions(&self, found: &mut Vec<Arc<[CoordinateRange]>>) {
        match self {
            Cond::Const(_) => {}
            Cond::All(list) | Cond::Any(list) => list.iter().for_each(|one| one.regions(found)),
            Cond::Not(inner) => inner.regions(found),
            Cond::Leaf(Leaf::Region(term)) => {
                let ranges: Arc<[CoordinateRange]> = coordinate_ranges(&term.0).into();
                if !ranges.is_empty() && !found.contains(&ranges) {
                    found.push(ranges);
                }
            }
            Cond::Leaf(_) => {}
        }
    }

    /// Whether a test of the variable alone excludes this one.
    pub(super) fn rules_out(&self, variable: &VariableAt) -> bool {
        match self {
            Cond::Const(is) => !is,
            Cond::All(list) => list.iter().any(|one| one.rules_out(variable)),
            Cond::Any(list) => list.iter().all(|one| one.rules_out(variable)),
            Cond::Not(_) => false,
            Cond::Leaf(leaf) if leaf.of_variable() => {
                let place = Series { step: None, time: None, variable: Some(variable) };
                let known = KnownRow { place: Some(place), ..KnownRow::default() };
                leaf.known(&known).is_ok_and(|left| left.is(false))
            }
            Cond::Leaf(_) => false,
        }
    }

    /// Both must hold.
    pub(super) fn and(self, other: Cond) -> Cond {
        match (self, other) {
            (Cond::Const(true), one) | (one, Cond::Const(true)) => one,
            (Cond::Const(false), _) | (_, Cond::Const(false)) => Cond::Const(false),
            (Cond::All(mut list), one) => {
                list.push(one);
                Cond::All(list)
            }
            (one, other) => Cond::All(vec![one, other]),
        }
    }

    /// The rough cost of testing a row: tests of boxes come before those of values.
    fn cost(&self) -> u32 {
        match self {
            Cond::Const(_) => 0,
            Cond::All(list) | Cond::Any(list) => list.iter().map(Cond::cost).max().unwrap_or(0),
            Cond::Not(inner) => inner.cost(),
            Cond::Leaf(Leaf::Value(_)) => 2,
            Cond::Leaf(Leaf::Related(_)) => 3,
            Cond::Leaf(_) => 1,
        }
    }
}

/// Joins a list by "all" (`all`) or "any", with the known facts inserted.
fn join(list: &[Cond], known: &KnownRow<'_>, all: bool) -> Result<Cond> {
    let mut left = Vec::with_capacity(list.len());
    for one in list {
        match one.known(known)? {
            Cond::Const(is) if is == all => {}
            Cond::Const(is) => return Ok(Cond::Const(is)),
            Cond::All(inner) if all => left.extend(inner),
            Cond::Any(inner) if !all => left.extend(inner),
            other => left.push(other),
        }
    }
    if left.len() == 1
        && let Some(only) = left.pop()
    {
        return Ok(only);
    }
    left.sort_by_key(Cond::cost);
    Ok(match (left.is_empty(), all) {
        (true, _) => Cond::Const(all),
        (_, true) => Cond::All(left),
        (_, false) => Cond::Any(left),
    })
}

/// "All" or "any" over a row: the first result equal to `decides` decides.
fn fold(list: &[Cond], row: &mut dyn Row, decides: bool) -> Result<Option<bool>> {
    let mut open = false;
    for one in list {
        match one.test(row)? {
            Some(is) if is == decides => return Ok(Some(decides)),
            Some(_) => {}
            None => open = true,
        }
    }
    Ok((!open).then_some(!decides))
}

/// A moment as the time of a step: seconds since 1970, as ingest declares them.
fn in_seconds(value: &Value) -> Value {
    match value {
        Value::DateTime(moment) => Value::Float(*moment as f64 / 1e9),
        other => other.clone(),
    }
}

/// Whether a keyword's text passes a test, either as a text or as the number that it represents.
pub(super) fn says(text: &str, test: &Test) -> bool {
    if test.matches(&Value::Text(text.to_owned())) {
        return true;
    }
    let whole = text.parse::<i64>().ok().filter(|number| number.to_string() == text).map(Value::Int);
    let number =
        whole.or_else(|| text.parse::<f64>().ok().filter(|n| n.to_string() == text).map(Value::Float));
    number.is_some_and(|number| test.matches(&number))
}

impl Leaf {
    fn of(term: &Term) -> Leaf {
        let names = |test: &NameTest| Arc::new(Names::of(test));
        match term {
            Term::Run(test) => Leaf::Run(names(test)),
            Term::Project(test) => Leaf::Project(names(test)),
            Term::Job(test) => Leaf::Job(names(test)),
            Term::Param(name, test) => Leaf::Param(Arc::new((name.clone(), test.clone()))),
            Term::Attr(name, test) => Leaf::Attr(Arc::new((name.clone(), test.clone()))),
            Term::Created(test) => Leaf::Created(Arc::new(test.clone())),
            Term::Step(ranges) => Leaf::Step(ranges.iter().map(of_hours).collect()),
            Term::Time(test) => Leaf::Time(Arc::new(test.map(&in_seconds))),
            Term::Variable(test) => Leaf::Variable(names(test)),
            Term::VariableVersion(versions) => Leaf::VariableVersion(versions.clone().into()),
            Term::Level(ranges) => Leaf::Level(ranges.clone().into()),
            Term::Tag(test) => Leaf::Tag(names(test)),
            Term::TagVersion(versions) => Leaf::TagVersion(versions.clone().into()),
            Term::Unit(test) => Leaf::Unit(names(test)),
            Term::Value(test) => Leaf::Value(Arc::new(test.clone())),
            Term::Scope(scope) => Leaf::Scope(*scope),
            Term::Region(dims, relation) => Leaf::Region(Arc::new((dims.clone(), *relation))),
            Term::Extent(dim, test) => Leaf::Extent(Arc::new((dim.clone(), test.clone()))),
            Term::Volume(test) => Leaf::Volume(Arc::new(test.clone())),
            Term::Keyword(name, test) => Leaf::Keyword(Arc::new((name.clone(), test.clone()))),
            Term::User(test) => Leaf::User(names(test)),
            Term::Writer(part, test) => Leaf::Writer(Arc::new((*part, test.clone()))),
        }
    }

    /// The undecided rest of the term, given these known facts.
    fn known(&self, known: &KnownRow<'_>) -> Result<Cond> {
        match (self, known.place) {
            (Leaf::Region(term), Some(place)) => {
                Ok(match BoxTest::of(&term.0, term.1, place.variable, place.step)? {
                    Ok(test) => Cond::Leaf(Leaf::Boxed(Arc::new(test))),
                    Err(_) => Cond::Const(false),
                })
            }
            (Leaf::Extent(term), Some(place)) => Ok(match Lengths::of(&term.0, place.variable) {
                Ok(lengths) => Cond::Leaf(Leaf::Length(Arc::new((lengths, term.1.clone())))),
                Err(_) => Cond::Const(false),
            }),
            _ => Ok(self.decided(known).map_or_else(|| Cond::Leaf(self.clone()), Cond::Const)),
        }
    }

    /// Whether it holds, if the known facts alone decide that.
    fn decided(&self, known: &KnownRow<'_>) -> Option<bool> {
        let run = known.run;
        let decl = run.and_then(|run| run.decl.as_deref());
        let (tag, place) = (known.tag, known.place);
        match self {
            Leaf::Run(names) => run.map(|run| names.matches(&run.name)),
            Leaf::Project(names) => run.map(|run| names.matches(&run.project)),
            Leaf::Job(names) => decl.map(|(run, _)| run.job.as_ref().is_some_and(|job| names.matches(job))),
            Leaf::Param(test) => decl.map(|(run, _)| {
                let value = run.params.iter().find(|(name, _)| *name == test.0);
                test.1.matches_maybe(value.map(|(_, value)| value))
            }),
            Leaf::Created(test) => decl.map(|(run, _)| {
                test.matches_maybe((run.created != 0).then_some(Value::DateTime(run.created)).as_ref())
            }),
            Leaf::Step(ranges) => place.map(|place| {
                place.step.is_some_and(|step| ranges.iter().any(|(from, to)| (*from..=*to).contains(&step)))
            }),
            Leaf::Time(test) => place.map(|place| {
                place.step.is_some() && test.matches_maybe(place.time.map(Value::Float).as_ref())
            }),
            Leaf::Variable(names) => {
                place.map(|place| place.variable.is_some_and(|variable| names.matches(&variable.name)))
            }
            Leaf::NameOnLevel(names) => place.map(|place| {
                let is = |name: &str| names.matches(name) || names.matches(short_name(name));
                place.variable.is_some_and(|variable| is(&variable.name))
            }),
            Leaf::Level(ranges) => place.map(|place| {
                let level = place.variable.and_then(|variable| amr::split(&variable.name));
                level.is_some_and(|(level, _)| ranges.iter().any(|(from, to)| (*from..=*to).contains(&level)))
            }),
            Leaf::VariableVersion(versions) => {
                place.map(|place| place.variable.is_some_and(|variable| versions.contains(&variable.version)))
            }
            Leaf::Attr(test) => place.map(|place| {
                let row = place.variable.and_then(|variable| variable.row.as_ref());
                let value = row.and_then(|row| row.decl.attrs.iter().find(|(name, _)| *name == test.0));
                place.variable.is_some() && test.1.matches_maybe(value.map(|(_, value)| value))
            }),
            Leaf::On(ids) => place
                .map(|place| place.variable.is_some_and(|variable| ids.binary_search(&variable.id).is_ok())),
            Leaf::Tag(names) => tag.map(|tag| names.matches(&tag.name)),
            Leaf::TagVersion(versions) => tag.map(|tag| versions.contains(&tag.version)),
            Leaf::Unit(names) => tag.map(|tag| names.matches(&tag.unit)),
            Leaf::Value(test) => matches!(**test, Test::Exists).then_some(true),
            Leaf::Scope(scope) => place.map(|place| match (place.step, place.variable) {
                (_, Some(_)) => *scope == Scope::Variable,
                (Some(_), None) => *scope == Scope::Step,
                (None, None) => *scope == Scope::Run,
            }),
            // Only attributes have a writer.
            Leaf::Batches(batches) => tag.and_then(|_| batches.decided()),
            Leaf::User(_) | Leaf::Writer(_) => None,
            Leaf::Region(_) | Leaf::Extent(_) | Leaf::Volume(_) | Leaf::Keyword(_) => None,
            Leaf::Boxed(_) | Leaf::Length(_) | Leaf::Related(_) => None,
        }
    }

    fn test(&self, row: &mut dyn Row) -> Result<Option<bool>> {
        Ok(Some(match self {
            Leaf::Value(test) => test.matches(row.value()?),
            Leaf::Boxed(test) => row.bounds()?.is_some_and(|place| test.matches(&place)),
            Leaf::Length(term) => row
                .bounds()?
                .and_then(|place| term.0.of_box(place.count))
                .is_some_and(|length| term.1.matches(&Value::Int(length))),
            Leaf::Volume(test) => {
                row.bounds()?.is_some_and(|place| test.matches(&Value::UInt(place.volume())))
            }
            Leaf::Keyword(term) => match row.keyword(&term.0)? {
                Some(value) => says(&value, &term.1),
                None => term.1.matches_absent(),
            },
            Leaf::Batches(batches) => row.batch().is_some_and(|batch| batches.contains(batch)),
            Leaf::Related(index) => return Ok(row.related(*index)),
            // The place decides all other terms, and it is known before rows are read.
            _ => false,
        }))
    }

    /// Whether it tests a place by coordinates, which variables have even without attributes.
    pub(super) fn of_coordinates(&self) -> bool {
        matches!(self, Leaf::Region(term) if term.0.iter().any(|(_, range)| matches!(range, Range::Physical(..))))
    }

    /// Whether it tests an attribute, not only a run, step or variable.
    pub(super) fn of_attributes(&self) -> bool {
        matches!(
            self,
            Leaf::Tag(_)
                | Leaf::TagVersion(_)
                | Leaf::Unit(_)
                | Leaf::Value(_)
                | Leaf::Scope(_)
                | Leaf::Region(_)
                | Leaf::Extent(_)
                | Leaf::Volume(_)
                | Leaf::Keyword(_)
                | Leaf::Boxed(_)
                | Leaf::Length(_)
                | Leaf::User(_)
                | Leaf::Writer(_)
                | Leaf::Batches(_)
                | Leaf::Related(_)
        )
    }

    /// Whether it needs the run's declaration.
    pub(super) fn of_declared_run(&self) -> bool {
        matches!(self, Leaf::Job(_) | Leaf::Param(_) | Leaf::Created(_))
    }

    /// Whether it needs the run's declared variables: their attributes and, for boxes, their shapes.
    pub(super) fn of_declared_variable(&self) -> bool {
        let boxes = matches!(self, Leaf::Region(_) | Leaf::Extent(_) | Leaf::Volume(_) | Leaf::Related(_));
        boxes || matches!(self, Leaf::Attr(_))
    }

    /// Whether it depends on the step.
    pub(super) fn of_step(&self) -> bool {
        matches!(self, Leaf::Step(_) | Leaf::Time(_) | Leaf::Scope(_))
    }

    /// Whether it depends on the variable.
    pub(super) fn of_variable(&self) -> bool {
        matches!(
            self,
            Leaf::Variable(_)
                | Leaf::NameOnLevel(_)
                | Leaf::Level(_)
                | Leaf::VariableVersion(_)
                | Leaf::Attr(_)
                | Leaf::On(_)
        )
    }
}

/// A range of steps: one that begins before all whole hours and ends among them covers whole hours only.
fn of_hours((from, to): &(i64, i64)) -> (i64, i64) {
    let ends_among = (step_number::WHOLE..i64::MAX).contains(to);
    (if ends_among { (*from).max(step_number::WHOLE) } else { *from }, *to)
}
