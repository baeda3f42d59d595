//! Lists of runs, steps, variables, tags and boxes: those that matching attributes touch or, if no term is
//! about attributes, all that exist and match. A box in coordinates does not need attributes if no other term
//! does: a variable matches by its own points.
//!
//! Without a term about attributes, a run, step or variable is tested together with what the terms need: with
//! a step term, a run at each of its steps; with a variable term, with each of its variables; with both, with
//! the pairs that hold fields. A run whose data are outside of the store holds all its variables at all its
//! steps.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_format::catalog::{RunName, VariableDecl, VariableName};

use super::bounds;
use super::check::check;
use super::cond::{Cond, KnownRow, Leaf, Row, RunAt, Series, TagAt};
use super::exec::Exec;
use super::hits::hits;
use super::partition::Partition;
use super::place::RowRegion;
use super::plan::{Piece, Plan};
use super::region::shape_of;
use super::results::{BoxInfo, RunInfo, StepInfo, TagInfo, VariableInfo};
use super::rows;
use super::variable_at::VariableAt;
use super::walk::{Ask, Walk};
use super::{Expr, Key, Pick, Query, Term};
use crate::engine::{Flow, NO_STEP, NO_VARIABLE, RunId, RunSelect, Tables, VariableId};

/// The kind of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Runs,
    Steps,
    Variables,
    Tags,
}

/// A found object; a step or variable with its run.
type Thing = (i64, i64);

impl Kind {
    fn of(self, partition: &Partition, step: i64, variable: VariableId) -> Option<Thing> {
        match self {
            Kind::Runs => Some((partition.run.id, 0)),
            Kind::Steps => (step != NO_STEP).then_some((partition.run.id, step)),
            Kind::Variables => (variable != NO_VARIABLE).then_some((partition.run.id, variable)),
            Kind::Tags => Some((partition.tag.id, 0)),
        }
    }
}

/// Distinct objects, in the order in which they were found.
#[derive(Default)]
struct Things {
    seen: HashSet<Thing>,
    runs: BTreeMap<RunId, Rc<RunAt>>,
    tags: Vec<Rc<TagAt>>,
}

impl Things {
    fn add(&mut self, kind: Kind, partition: &Partition, thing: Thing) {
        if self.seen.insert(thing) {
            if kind == Kind::Tags {
                self.tags.push(partition.tag.clone());
            }
            self.runs.entry(partition.run.id).or_insert_with(|| partition.run.clone());
        }
    }
}

struct Listing<'t, 'q> {
    exec: Exec<'t>,
    query: &'q Query,
    cond: Cond,
    attributes: bool,
}

impl<'t, 'q> Listing<'t, 'q> {
    fn new(tables: &'t mut dyn Tables, query: &'q Query) -> Result<Listing<'t, 'q>> {
        let (mut exec, cond) = Exec::of(tables, &query.expr)?;
        // A box in coordinates alone selects variables inside it, not variables of attributes there.
        let attributes = cond.has(&|leaf| leaf.of_attributes() && !leaf.of_coordinates());
        if cond.has(&Leaf::of_attributes) {
            check(&mut exec.lookup, &cond, &exec.related)?;
        }
        Ok(Listing { exec, query, cond, attributes })
    }

    /// The objects that matching attributes touch.
    fn touched(&mut self, kind: Kind) -> Result<Things> {
        let mut things = Things::default();
        // A pick and related attributes depend on several rows, so every hit must be found.
        if self.query.pick.is_some() || self.cond.has(&|leaf| matches!(leaf, Leaf::Related(_))) {
            let query = Query { order: Vec::new(), limit: None, ..self.query.clone() };
            hits(&mut self.exec, &self.cond, &query, false, &mut |row| {
                let step = row.hit.step.unwrap_or(NO_STEP);
                if let Some(thing) = kind.of(row.partition, step, row.found_variable) {
                    things.add(kind, row.partition, thing);
                }
                Ok(Flow::More)
            })?;
            return Ok(things);
        }
        let ask = Ask { cond: &self.cond, run: None, steps: None, boxes: false, few: None };
        let mut walk = Walk::of(&mut self.exec.lookup, ask)?;
        while let Some(partition) = walk.next(&mut self.exec.lookup)? {
            touch(&mut self.exec, kind, &partition, &mut things)?;
        }
        Ok(things)
    }

    /// Tests the condition on each run at each place that exists; `take` says whether to continue.
    fn places(
        &mut self,
        with_steps: bool,
        with_variables: bool,
        take: &mut dyn FnMut(&Rc<RunAt>, Series<'_>) -> Flow,
    ) -> Result<()> {
        let with_steps = with_steps || self.cond.has(&|leaf| matches!(leaf, Leaf::Step(_) | Leaf::Time(_)));
        let of_variable = |leaf: &Leaf| leaf.of_variable() || leaf.of_coordinates();
        let with_variables = with_variables || self.cond.has(&of_variable);
        for run in self.exec.lookup.runs(&self.cond, None)? {
            let left = self.cond.known(&KnownRow { run: Some(&run), ..KnownRow::default() })?;
            self.places_of(&run, &left, with_steps, with_variables, take)?;
        }
        Ok(())
    }

    fn places_of(
        &mut self,
        run: &Rc<RunAt>,
        left: &Cond,
        with_steps: bool,
        with_variables: bool,
        take: &mut dyn FnMut(&Rc<RunAt>, Series<'_>) -> Flow,
    ) -> Result<()> {
        let mut at = |place: Series<'_>| -> Result<Flow> {
            let known = KnownRow { run: Some(run), place: Some(place), ..KnownRow::default() };
            let left = left.known(&known)?;
            let is = match &left {
                // A test of the variable's box is left over if the box is given in coordinates.
                Cond::Const(is) => *is,
                left => left.test(&mut WholeVariable::of(place.variable))? == Some(true),
            };
            Ok(if is { take(run, place) } else { Flow::More })
        };
        let none = Series { step: None, time: None, variable: None };
        if !with_steps && !with_variables {
            at(none)?;
            return Ok(());
        }
        let reach = bounds::steps(left);
        let mut steps = Vec::new();
        if with_steps {
            // `NO_STEP` stands for attributes of the run, which is not a step to list.
            for (from, to) in &reach {
                let rows = self.exec.lookup.tables.steps(run.id, (*from).max(NO_STEP + 1)..=*to)?;
                steps.extend(rows.into_iter().map(|row| (row.step, row.time)));
            }
        }
        if !with_variables {
            for (step, time) in steps {
                if at(Series { step: Some(step), time, variable: None })? == Flow::Stop {
                    break;
                }
            }
            return Ok(());
        }
        let outside = with_steps && self.outside(run.id)?;
        let mut variables: Vec<Arc<VariableAt>> =
            self.exec.lookup.variables(run.id)?.values().cloned().collect();
        variables.sort_by_key(|variable| variable.rank);
        for variable in variables {
            if !with_steps {
                if at(Series { variable: Some(&variable), ..none })? == Flow::Stop {
                    return Ok(());
                }
                continue;
            }
            // No fields show which steps a variable outside of the store has: assume all of them.
            let held = if outside { BTreeSet::new() } else { self.held(run.id, &variable)? };
            for (step, time) in steps.iter().filter(|(step, _)| outside || held.contains(step)) {
                let place = Series { step: Some(*step), time: *time, variable: Some(&variable) };
                if at(place)? == Flow::Stop {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Steps at which a run holds fields of a variable: keys name no version, so all versions share the
    /// fields.
    fn held(&mut self, run: RunId, variable: &VariableAt) -> Result<BTreeSet<i64>> {
        let mut held: BTreeSet<i64> = self.exec.lookup.tables.held(run, variable.id)?.into_iter().collect();
        if variable.version != 0 {
            let names = self.exec.lookup.names()?;
            // Fields are recorded under the name without a version.
            let first = names.values().find(|other| other.version == 0 && other.name == variable.name);
            if let Some(first) = first {
                held.extend(self.exec.lookup.tables.held(run, first.id)?);
            }
        }
        Ok(held)
    }

    /// Whether a run declares that its data are outside of the store.
    fn outside(&mut self, run: RunId) -> Result<bool> {
        let rows = self.exec.lookup.tables.runs(&RunSelect::Ids(vec![run]))?;
        Ok(rows.first().is_some_and(|row| row.decl.outside.is_some()))
    }

    /// Whether the results are ordered by this key and, if so, in descending order.
    fn falling(&self, key: &Key) -> Option<bool> {
        self.query.order.iter().find(|(of, _)| of == key).map(|(_, down)| *down)
    }

    fn limit<T>(&self, mut rows: Vec<T>) -> Vec<T> {
        rows.truncate(self.query.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX));
        rows
    }
}

/// A variable in place of a row: its box is all of it, and it has no value.
struct WholeVariable {
    start: Vec<i64>,
    shape: Option<Vec<i64>>,
}

impl WholeVariable {
    fn of(variable: Option<&VariableAt>) -> WholeVariable {
        let shape = shape_of(variable);
        WholeVariable { start: vec![0; shape.as_ref().map_or(0, Vec::len)], shape }
    }
}

impl Row for WholeVariable {
    fn bounds(&mut self) -> Result<Option<RowRegion<'_>>> {
        let region = |count| RowRegion { start: &self.start, count, cells: None };
        Ok(self.shape.as_deref().map(region))
    }

    fn keyword(&mut self, _: &str) -> Result<Option<Arc<str>>> {
        Ok(None)
    }

    fn batch(&self) -> Option<i64> {
        None
    }

    fn value(&mut self) -> Result<&Value> {
        Ok(&Value::Null)
    }

    fn related(&self, _: usize) -> Option<bool> {
        Some(false)
    }
}

/// Adds the objects that matching rows of a partition touch, reading only as much as that needs.
fn touch(exec: &mut Exec<'_>, kind: Kind, partition: &Partition, things: &mut Things) -> Result<()> {
    if matches!(kind, Kind::Runs | Kind::Tags)
        && kind.of(partition, NO_STEP, NO_VARIABLE).is_some_and(|thing| things.seen.contains(&thing))
    {
        return Ok(());
    }
    let pieces = match exec.planner.plan(&mut exec.lookup, partition, false)? {
        Plan::Direct { probes, .. } => {
            // One hit is enough to list a run or a tag.
            let stop = matches!(kind, Kind::Runs | Kind::Tags);
            return rows::each(&mut exec.lookup, partition, &probes, &mut |step, variable| {
                if let Some(thing) = kind.of(partition, step, variable) {
                    things.add(kind, partition, thing);
                }
                if stop { Flow::Stop } else { Flow::More }
            });
        }
        Plan::Series(pieces) => pieces,
    };
    // The certain results come first, because they need no read.
    let (sure, open): (Vec<Piece>, Vec<Piece>) = pieces.into_iter().partition(|piece| piece.all.is_some());
    for thing in sure.iter().filter_map(|piece| kind.of(partition, piece.step, piece.variable)) {
        things.add(kind, partition, thing);
    }
    let mut by_thing: BTreeMap<Thing, Vec<Piece>> = BTreeMap::new();
    for piece in open {
        if let Some(thing) = kind.of(partition, piece.step, piece.variable)
            && !things.seen.contains(&thing)
        {
            by_thing.entry(thing).or_default().push(piece);
        }
    }
    for (thing, pieces) in by_thing {
        // The first hit ends the search: try few series first, then more if they had none.
        let mut some = 1;
        let mut rest = pieces.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(some.min(rest.len()));
            let probes: Vec<_> = now.iter().flat_map(|piece| piece.probes.iter().cloned()).collect();
            if rows::any(&mut exec.lookup, partition, &probes)? {
                things.add(kind, partition, thing);
                break;
            }
            rest = later;
            some *= 4;
        }
    }
    Ok(())
}

fn name_of(run: &RunAt) -> RunName {
    RunName { project: run.project.to_string(), name: run.name.to_string() }
}

/// In a list of runs, `attr` means parameters of the run. Inside a term for related attributes it means
/// variables.
fn params_for_attrs(expr: &Expr) -> Result<Expr> {
    expr.size().check()?;
    Ok(of_run(expr))
}

fn of_run(expr: &Expr) -> Expr {
    let all = |list: &[Expr]| list.iter().map(of_run).collect();
    match expr {
        Expr::All(list) => Expr::All(all(list)),
        Expr::Any(list) => Expr::Any(all(list)),
        Expr::Not(inner) => Expr::Not(Box::new(of_run(inner))),
        Expr::Term(Term::Attr(name, test)) => Expr::Term(Term::Param(name.clone(), test.clone())),
        Expr::Term(_) | Expr::Related(..) => expr.clone(),
    }
}

/// Runs, by project and name, or by `order`: name or creation.
///
/// # Errors
/// See [`run`](super::run).
pub fn runs(tables: &mut dyn Tables, query: &Query) -> Result<Vec<RunInfo>> {
    let query = &Query { expr: params_for_attrs(&query.expr)?, ..query.clone() };
    let mut list = Listing::new(tables, query)?;
    let mut ids: BTreeSet<RunId> = BTreeSet::new();
    if list.attributes || query.pick.is_some() {
        ids = list.touched(Kind::Runs)?.seen.into_iter().map(|(run, _)| run).collect();
    } else {
        list.places(false, false, &mut |run, _| {
            ids.insert(run.id);
            Flow::Stop
        })?;
    }
    let mut rows = Vec::with_capacity(ids.len());
    let ids: Vec<RunId> = ids.into_iter().collect();
    for some in ids.chunks(512) {
        let found = list.exec.lookup.tables.runs(&RunSelect::Ids(some.to_vec()))?;
        rows.extend(found.into_iter().map(RunInfo::of));
    }
    rows.sort_by(|a, b| a.decl.run.cmp(&b.decl.run));
    for (key, down) in query.order.iter().rev() {
        let turn = |order: std::cmp::Ordering| if *down { order.reverse() } else { order };
        match key {
            Key::Run => rows.sort_by(|a, b| turn(a.decl.run.name.cmp(&b.decl.run.name))),
            Key::Created => {
                let created = |row: &RunInfo| (row.decl.created != 0).then_some(row.decl.created);
                rows.sort_by(|a, b| turn(created(a).cmp(&created(b))));
            }
            _ => {}
        }
    }
    Ok(list.limit(rows))
}

/// Steps, by run and number, or by `order`: run, step or time. First and last are those of each run or, with
/// a variable term, of each variable of a run.
///
/// # Errors
/// See [`run`](super::run).
pub fn steps(tables: &mut dyn Tables, query: &Query) -> Result<Vec<StepInfo>> {
    let mut list = Listing::new(tables, query)?;
    let mut found: BTreeMap<(RunId, i64), Option<f64>> = BTreeMap::new();
    let mut runs: BTreeMap<RunId, Rc<RunAt>> = BTreeMap::new();
    if list.attributes {
        let things = list.touched(Kind::Steps)?;
        runs = things.runs;
        let mut by_run: BTreeMap<RunId, Vec<i64>> = BTreeMap::new();
        for (run, step) in things.seen {
            by_run.entry(run).or_default().push(step);
        }
        for (run, steps) in by_run {
            let times = list.exec.lookup.times_at(run, &steps)?;
            found.extend(steps.into_iter().map(|step| ((run, step), times.get(&step).copied())));
        }
    } else {
        let mut ends: BTreeMap<(RunId, VariableId), (i64, Option<f64>)> = BTreeMap::new();
        list.places(true, false, &mut |run, place| {
            let Some(step) = place.step else { return Flow::More };
            runs.entry(run.id).or_insert_with(|| run.clone());
            let end = (step, place.time);
            let Some(pick) = query.pick else {
                found.insert((run.id, step), place.time);
                return Flow::More;
            };
            let of = (run.id, place.variable.map_or(NO_VARIABLE, |variable| variable.id));
            let kept = ends.entry(of).or_insert(end);
            if (pick == Pick::First && step < kept.0) || (pick == Pick::Last && step > kept.0) {
                *kept = end;
            }
            Flow::More
        })?;
        found.extend(ends.into_iter().map(|((run, _), (step, time))| ((run, step), time)));
    }
    let row = |((run, step), time): ((RunId, i64), Option<f64>)| {
        Some(StepInfo { run: name_of(runs.get(&run)?), step, time })
    };
    let mut rows: Vec<StepInfo> = found.into_iter().filter_map(row).collect();
    rows.sort_by(|a, b| (&a.run, a.step).cmp(&(&b.run, b.step)));
    for (key, down) in query.order.iter().rev() {
        let turn = |order: std::cmp::Ordering| if *down { order.reverse() } else { order };
        match key {
            Key::Run => rows.sort_by(|a, b| turn(a.run.name.cmp(&b.run.name))),
            Key::Step => rows.sort_by(|a, b| turn(a.step.cmp(&b.step))),
            Key::Time => rows.sort_by(|a, b| {
                let nan = |row: &StepInfo| row.time.is_some_and(f64::is_nan);
                let both = a.time.is_some().cmp(&b.time.is_some());
                let times = both.then_with(|| a.time.unwrap_or(0.0).total_cmp(&b.time.unwrap_or(0.0)));
                nan(a).cmp(&nan(b)).then(turn(times))
            }),
            _ => {}
        }
    }
    Ok(list.limit(rows))
}

/// Variables, by run, name and version, or by `order`: run or variable.
///
/// # Errors
/// See [`run`](super::run).
pub fn variables(tables: &mut dyn Tables, query: &Query) -> Result<Vec<VariableInfo>> {
    let mut list = Listing::new(tables, query)?;
    let mut found: BTreeSet<Thing> = BTreeSet::new();
    let mut runs: BTreeMap<RunId, Rc<RunAt>> = BTreeMap::new();
    if list.attributes || query.pick.is_some() {
        let things = list.touched(Kind::Variables)?;
        found.extend(things.seen);
        runs = things.runs;
    } else {
        list.places(false, true, &mut |run, place| {
            if let Some(variable) = place.variable {
                found.insert((run.id, variable.id));
                runs.entry(run.id).or_insert_with(|| run.clone());
            }
            Flow::More
        })?;
    }
    let names = list.exec.lookup.names()?;
    let mut rows = Vec::with_capacity(found.len());
    for (run, variable) in found {
        let own = list.exec.lookup.variables(run)?;
        let (Some(of), Some(at)) = (runs.get(&run), own.get(&variable).or_else(|| names.get(&variable)))
        else {
            continue;
        };
        let (decl, declared) = match &at.row {
            Some(row) => (row.decl.clone(), row.declared),
            None => (bare(at), false),
        };
        rows.push(VariableInfo { run: name_of(of), decl, declared });
    }
    rows.sort_by(|a, b| (&a.run, &a.decl.variable).cmp(&(&b.run, &b.decl.variable)));
    for (key, down) in query.order.iter().rev() {
        let turn = |order: std::cmp::Ordering| if *down { order.reverse() } else { order };
        match key {
            Key::Run => rows.sort_by(|a, b| turn(a.run.name.cmp(&b.run.name))),
            Key::Variable => rows.sort_by(|a, b| turn(a.decl.variable.name.cmp(&b.decl.variable.name))),
            _ => {}
        }
    }
    Ok(list.limit(rows))
}

/// A variable of which only the name is known.
fn bare(at: &VariableAt) -> VariableDecl {
    VariableDecl::named(VariableName { name: at.name.to_string(), version: at.version })
}

/// Tags, by name and version. With any term, only those of matching attributes.
///
/// # Errors
/// See [`run`](super::run).
pub fn tags(tables: &mut dyn Tables, query: &Query) -> Result<Vec<TagInfo>> {
    let mut list = Listing::new(tables, query)?;
    let all = !list.cond.has(&|_| true) && query.pick.is_none();
    let found = match all {
        true if list.cond.known(&KnownRow::default())?.is(false) => Vec::new(),
        true => list.exec.lookup.tags()?.to_vec(),
        false => list.touched(Kind::Tags)?.tags,
    };
    let mut rows: Vec<TagInfo> =
        found.iter().map(|tag| TagInfo { decl: tag.decl.clone(), version: tag.version }).collect();
    rows.sort_by(|a, b| (&a.decl.name, a.version).cmp(&(&b.decl.name, b.version)));
    if list.falling(&Key::Tag) == Some(true) {
        rows.sort_by(|a, b| b.decl.name.cmp(&a.decl.name));
    }
    Ok(list.limit(rows))
}

/// Distinct boxes of hits, by run, step, variable and box: their own, or that of the whole variable.
///
/// # Errors
/// See [`run`](super::run).
pub fn boxes(tables: &mut dyn Tables, query: &Query) -> Result<Vec<BoxInfo>> {
    let mut list = Listing::new(tables, query)?;
    type BoxKey = (RunId, i64, VariableId, Vec<i64>, Vec<i64>);
    let mut seen: HashSet<BoxKey> = HashSet::new();
    let mut rows = Vec::new();
    let wanted = query.limit.unwrap_or(u64::MAX);
    let hit_query = Query { limit: None, ..query.clone() };
    if wanted == 0 {
        return Ok(rows);
    }
    hits(&mut list.exec, &list.cond, &hit_query, true, &mut |row| {
        let Some(RowRegion { start, count, .. }) = row.bounds else { return Ok(Flow::More) };
        let step = row.hit.step.unwrap_or(NO_STEP);
        if seen.insert((row.partition.run.id, step, row.found_variable, start.to_vec(), count.to_vec())) {
            let variable = row
                .hit
                .variable
                .map(|name| VariableName { name: name.to_string(), version: row.hit.variable_version });
            rows.push(BoxInfo {
                run: name_of(&row.partition.run),
                step: row.hit.step,
                variable,
                start: start.to_vec(),
                count: count.to_vec(),
            });
        }
        Ok(if rows.len() as u64 == wanted { Flow::Stop } else { Flow::More })
    })?;
    if query.order.is_empty() && query.limit.is_none() {
        rows.sort_by(|a, b| {
            (&a.run, a.step, &a.variable, &a.start, &a.count).cmp(&(
                &b.run,
                b.step,
                &b.variable,
                &b.start,
                &b.count,
            ))
        });
    }
    Ok(rows)
}
