//! Hits: the rows that match, with their names, in the requested order and number.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::rc::Rc;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_format::catalog::{AttributeId, RunName};

use super::check::check;
use super::cond::Cond;
use super::exec::{Exec, Out};
use super::hit_ref::HitRef;
use super::lookup::Lookup;
use super::matched::{Batch, MatchedRow};
use super::partition::Partition;
use super::place::{OwnedRegion, RowRegion};
use super::plan::Plan;
use super::results::{Aggregate, By, Stats};
use super::rows;
use super::table::{HitTable, TableBuilder};
use super::walk::{Ask, Walk};
use super::{Hit, Key, Pick, Query};
use crate::engine::{Flow, NO_STEP, Tables};

/// Passes every hit to `sink`, in the requested order, until the sink has enough.
///
/// Without an order, hits come by project, run, tag, step, variable, box and id, and a batch bounds the
/// memory. With an order, hits are kept until the last is found, at most `limit` of them.
///
/// # Errors
/// Invalid for a dimension that no matching variable has, and for coordinates on a grid without elements for
/// them; and any error of the tables or the sink.
pub fn run(
    tables: &mut dyn Tables,
    query: &Query,
    sink: &mut dyn FnMut(HitRef<'_>) -> Result<Flow>,
) -> Result<Stats> {
    let (mut exec, cond) = Exec::of(tables, &query.expr)?;
    hits(&mut exec, &cond, query, false, &mut |row| sink(row.hit))?;
    Ok(exec.lookup.stats)
}

/// All hits, in columns.
///
/// # Errors
/// See [`run`].
pub fn collect(tables: &mut dyn Tables, query: &Query) -> Result<HitTable> {
    let mut table = TableBuilder::default();
    let stats = run(tables, query, &mut |hit| {
        table.push(hit);
        Ok(Flow::More)
    })?;
    Ok(table.finish(stats.visited))
}

/// The number of hits. Series that match as a whole are not read.
///
/// # Errors
/// See [`run`].
pub fn count(tables: &mut dyn Tables, query: &Query) -> Result<(u64, Stats)> {
    let (mut exec, cond) = Exec::of(tables, &query.expr)?;
    let plain = query.pick.is_none() && query.limit.is_none() && exec.related.is_empty();
    let mut hit_count = 0;
    if !plain {
        let unordered = Query { order: Vec::new(), ..query.clone() };
        hits(&mut exec, &cond, &unordered, false, &mut |_| {
            hit_count += 1;
            Ok(Flow::More)
        })?;
        return Ok((hit_count, exec.lookup.stats));
    }
    check(&mut exec.lookup, &cond, &exec.related)?;
    let ask = Ask { cond: &cond, run: None, steps: None, boxes: false, few: None };
    let mut walk = Walk::of(&mut exec.lookup, ask)?;
    while let Some(partition) = walk.next(&mut exec.lookup)? {
        hit_count += count_unit(&mut exec, &partition)?;
    }
    exec.lookup.stats.returned = hit_count;
    Ok((hit_count, exec.lookup.stats))
}

/// The number of hits of one partition, for a query without related attributes.
fn count_unit(exec: &mut Exec<'_>, partition: &Partition) -> Result<u64> {
    // `n` of the span counts all steps, so it is the answer only if the condition allows each of them.
    let all = partition
        .steps
        .first()
        .is_some_and(|(from, to)| *from <= partition.span.steps.0 && *to >= partition.span.steps.1);
    if all && partition.cond.is(true) {
        return Ok(partition.span.n);
    }
    let pieces = match exec.planner.plan(&mut exec.lookup, partition, false)? {
        Plan::Direct { probes, .. } => return rows::count(&mut exec.lookup, partition, &probes),
        Plan::Series(pieces) => pieces,
    };
    let mut hits = 0;
    let mut probes = Vec::new();
    for piece in pieces {
        match piece.all {
            Some(n) => hits += n,
            None => probes.extend(piece.probes),
        }
    }
    if !probes.is_empty() {
        hits += rows::count(&mut exec.lookup, partition, &probes)?;
    }
    Ok(hits)
}

/// Count, least, greatest and mean number of groups of hits, by run, step, variable and tag.
///
/// # Errors
/// See [`run`].
pub fn aggregate(tables: &mut dyn Tables, query: &Query, by: &[By]) -> Result<Vec<Aggregate>> {
    let has = |one: By| by.contains(&one);
    let (runs, steps, variables, tags) = (has(By::Run), has(By::Step), has(By::Variable), has(By::Tag));
    type Names = (Option<(Arc<str>, Arc<str>)>, Option<i64>, Option<Arc<str>>, Option<Arc<str>>);
    type Addresses = (usize, Option<i64>, usize, usize);
    // By address first, because the names of a query are shared.
    let mut groups: HashMap<Addresses, (Names, Sum)> = HashMap::new();
    let address = |name: &Arc<str>| Arc::as_ptr(name).cast::<u8>() as usize;
    run(tables, query, &mut |hit| {
        let step = hit.step.filter(|_| steps);
        let run = if runs { address(hit.run) } else { 0 };
        let variable = hit.variable.filter(|_| variables);
        let tag = if tags { address(hit.tag) } else { 0 };
        let group = groups.entry((run, step, variable.map_or(0, address), tag)).or_insert_with(|| {
            let run = runs.then(|| (hit.project.clone(), hit.run.clone()));
            ((run, step, variable.cloned(), tags.then(|| hit.tag.clone())), Sum::default())
        });
        group.1.time = hit.time.filter(|_| runs && steps);
        group.1.add(&hit.value);
        Ok(Flow::More)
    })?;
    // Names that are equal but not shared, as those of two versions of a variable, fall into one group here.
    let mut named: BTreeMap<Names, Sum> = BTreeMap::new();
    for (names, sum) in groups.into_values() {
        named.entry(names).or_default().join(&sum);
    }
    let row = |((run, step, variable, tag), sum): (Names, Sum)| Aggregate {
        run: run.map(|(project, name)| RunName { project: project.to_string(), name: name.to_string() }),
        step,
        time: sum.time,
        variable,
        tag,
        count: sum.hits,
        min: (sum.numbers > 0).then_some(sum.min),
        max: (sum.numbers > 0).then_some(sum.max),
        mean: (sum.numbers > 0).then(|| sum.mean()),
    };
    Ok(named.into_iter().map(row).collect())
}

/// A running sum of the numbers of a group.
#[derive(Debug, Clone, Default)]
struct Sum {
    hits: u64,
    numbers: u64,
    min: f64,
    max: f64,
    sum: f64,
    /// The part of the sum that rounding lost (Neumaier), so that the mean does not depend on the order of
    /// hits.
    lost: f64,
    time: Option<f64>,
}

impl Sum {
    fn add(&mut self, value: &Value) {
        self.hits += 1;
        let number = match value {
            Value::Int(number) => *number as f64,
            Value::UInt(number) => *number as f64,
            Value::Float(number) if !number.is_nan() => *number,
            _ => return,
        };
        if self.numbers == 0 {
            (self.min, self.max) = (number, number);
        }
        self.numbers += 1;
        (self.min, self.max) = (self.min.min(number), self.max.max(number));
        self.plus(number);
    }

    fn plus(&mut self, number: f64) {
        let sum = self.sum + number;
        // Once the sum is infinite there is no rounding error to compute; `inf - inf` would give NaN.
        if sum.is_finite() {
            let (large, small) =
                if self.sum.abs() >= number.abs() { (self.sum, number) } else { (number, self.sum) };
            self.lost += (large - sum) + small;
        }
        self.sum = sum;
    }

    fn join(&mut self, other: &Sum) {
        self.hits += other.hits;
        self.time = self.time.or(other.time);
        if other.numbers > 0 {
            let first = self.numbers == 0;
            self.min = if first { other.min } else { self.min.min(other.min) };
            self.max = if first { other.max } else { self.max.max(other.max) };
            self.numbers += other.numbers;
            self.plus(other.sum);
            self.lost += other.lost;
        }
    }

    fn mean(&self) -> f64 {
        let sum = if self.sum.is_finite() { self.sum + self.lost } else { self.sum };
        sum / self.numbers as f64
    }
}

/// A hit with its row and partition.
pub(super) struct RowRef<'a> {
    pub(super) hit: HitRef<'a>,
    pub(super) partition: &'a Rc<Partition>,
    pub(super) found_variable: i64,
    /// Its box, or that of the whole variable if requested.
    pub(super) bounds: Option<RowRegion<'a>>,
}

type Sink<'s> = dyn FnMut(RowRef<'_>) -> Result<Flow> + 's;

/// Passes every hit of a query to `sink`.
pub(super) fn hits(
    exec: &mut Exec<'_>,
    cond: &Cond,
    query: &Query,
    boxes: bool,
    sink: &mut Sink<'_>,
) -> Result<()> {
    check(&mut exec.lookup, cond, &exec.related)?;
    let ordered = !query.order.is_empty();
    if query.limit == Some(0) {
        return Ok(());
    }
    exec.lookup.by_decl |= query.order.iter().any(|(key, _)| *key == Key::Created);
    let volume = query.order.iter().any(|(key, _)| *key == Key::Volume);
    // A pick may drop most rows, and an order needs all of them.
    let few = query.limit.filter(|_| !ordered && query.pick.is_none());
    let ask = Ask { cond, run: None, steps: None, boxes: boxes || volume, few };
    let left = query.limit.unwrap_or(u64::MAX);
    if !ordered {
        let mut out = Emit { pick: Picked::of(query.pick), left, sink };
        exec.ask(&ask, &mut out)?;
        return out.finish(&mut exec.lookup);
    }
    let directions: Rc<[bool]> = query.order.iter().map(|(_, down)| *down).collect();
    let most = usize::try_from(left).unwrap_or(usize::MAX);
    // A heap of the best `most` hits, the worst of them on top: memory does not grow with the number of hits.
    let mut top: BinaryHeap<Ranked> = BinaryHeap::new();
    let mut seen = 0;
    {
        let mut keep = |row: RowRef<'_>| {
            let keys = query.order.iter().map(|(key, _)| Sort::of(key, &row)).collect();
            let (partition, variable) = (row.partition, row.found_variable);
            let bounds = row.bounds.filter(|_| boxes).map(RowRegion::to_own);
            seen += 1;
            let ranked = Ranked { keys, seen, directions: directions.clone(), kept: None };
            // Compare before copying: most hits of a large result are worse than all that are kept.
            if top.len() == most && top.peek().is_some_and(|last| ranked >= *last) {
                return Ok(Flow::More);
            }
            let held = KeptHit { hit: row.hit.to_hit(), partition: partition.clone(), variable, bounds };
            top.push(Ranked { kept: Some(Box::new(held)), ..ranked });
            if top.len() > most {
                top.pop();
            }
            Ok(Flow::More)
        };
        let mut out = Emit { pick: Picked::of(query.pick), left: u64::MAX, sink: &mut keep };
        exec.ask(&ask, &mut out)?;
        out.finish(&mut exec.lookup)?;
    }
    // The heap counted every candidate; only the hits that are passed on count.
    exec.lookup.stats.returned = 0;
    for ranked in top.into_sorted_vec() {
        let Some(held) = ranked.kept else { continue };
        exec.lookup.stats.returned += 1;
        if held.pass_to(sink)? == Flow::Stop {
            break;
        }
    }
    Ok(())
}

/// A stored hit.
struct KeptHit {
    hit: Hit,
    partition: Rc<Partition>,
    variable: i64,
    bounds: Option<OwnedRegion>,
}

impl KeptHit {
    fn pass_to(self, sink: &mut Sink<'_>) -> Result<Flow> {
        let KeptHit { mut hit, partition, variable, bounds } = self;
        let value = std::mem::replace(&mut hit.value, Value::Null);
        sink(RowRef {
            hit: hit.with_value(value),
            partition: &partition,
            found_variable: variable,
            bounds: bounds.as_ref().map(OwnedRegion::as_ref),
        })
    }
}

/// The sort key of a hit; an absent key comes first, NaN last in either direction.
#[derive(Debug)]
enum Sort {
    Text(Option<Arc<str>>),
    Int(Option<i64>),
    Real(Option<f64>),
    Count(Option<u64>),
    Value(Value),
}

impl Sort {
    fn of(key: &Key, row: &RowRef<'_>) -> Sort {
        let hit = &row.hit;
        match key {
            Key::Run => Sort::Text(Some(hit.run.clone())),
            Key::Created => {
                let decl = row.partition.run.decl.as_ref().filter(|decl| decl.0.created != 0);
                Sort::Int(decl.map(|decl| decl.0.created))
            }
            Key::Step => Sort::Int(hit.step),
            Key::Time => Sort::Real(hit.time),
            Key::Variable => Sort::Text(hit.variable.cloned()),
            Key::Tag => Sort::Text(Some(hit.tag.clone())),
            Key::Value => Sort::Value(hit.value.clone()),
            Key::Volume => Sort::Count(row.bounds.map(|place| place.volume())),
        }
    }

    fn compare(&self, other: &Sort) -> Ordering {
        match (self, other) {
            (Sort::Text(a), Sort::Text(b)) => a.cmp(b),
            (Sort::Int(a), Sort::Int(b)) => a.cmp(b),
            (Sort::Count(a), Sort::Count(b)) => a.cmp(b),
            (Sort::Real(Some(a)), Sort::Real(Some(b))) => a.total_cmp(b),
            (Sort::Real(a), Sort::Real(b)) => a.is_some().cmp(&b.is_some()),
            (Sort::Value(a), Sort::Value(b)) => a.order(b),
            _ => Ordering::Equal,
        }
    }

    /// Compares in ascending or descending order; NaN comes last in either.
    fn compare_in(&self, other: &Sort, down: bool) -> Ordering {
        if let (Sort::Value(a), Sort::Value(b)) = (self, other) {
            return a.order_in(b, down);
        }
        let is_nan = |sort: &Sort| matches!(sort, Sort::Real(Some(number)) if number.is_nan());
        let nan = is_nan(self).cmp(&is_nan(other));
        nan.then_with(|| if down { other.compare(self) } else { self.compare(other) })
    }
}

/// A hit to rank; the least is the first in order.
struct Ranked {
    keys: Vec<Sort>,
    seen: u64,
    directions: Rc<[bool]>,
    kept: Option<Box<KeptHit>>,
}

impl Ord for Ranked {
    fn cmp(&self, other: &Ranked) -> Ordering {
        let keys = self.keys.iter().zip(&other.keys).zip(self.directions.iter());
        let differing = keys.map(|((a, b), down)| a.compare_in(b, *down));
        let first = differing.into_iter().find(|order| order.is_ne());
        // Equal keys keep the order in which the hits were found, which is the same on every engine.
        first.unwrap_or_else(|| self.seen.cmp(&other.seen))
    }
}
impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Ranked) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Ranked {
    fn eq(&self, other: &Ranked) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Ranked {}

/// The first or last step of each variable in the present run and tag.
enum Picked {
    All,
    /// The first step of each variable in this partition.
    First(Option<(i64, i64)>, HashMap<i64, i64>),
    /// Hits of the last step so far, by variable, in this partition.
    Last(Option<Rc<Partition>>, HashMap<i64, (i64, Vec<KeptHit>)>),
}

impl Picked {
    fn of(pick: Option<Pick>) -> Picked {
        match pick {
            None => Picked::All,
            Some(Pick::First) => Picked::First(None, HashMap::new()),
            Some(Pick::Last) => Picked::Last(None, HashMap::new()),
        }
    }

    /// Whether a pick excludes a row: it has no step, or its step is later than the first of its variable.
    fn passes_over(&mut self, partition: &Partition, row: &MatchedRow) -> bool {
        match self {
            Picked::All => false,
            _ if row.step == NO_STEP => true,
            Picked::First(of, firsts) => {
                if *of != Some(partition.key()) {
                    *of = Some(partition.key());
                    firsts.clear();
                }
                *firsts.entry(row.variable).or_insert(row.step) != row.step
            }
            Picked::Last(..) => false,
        }
    }
}

/// Adds names to rows and passes them on.
struct Emit<'a, 's> {
    pick: Picked,
    left: u64,
    sink: &'a mut Sink<'s>,
}

impl Emit<'_, '_> {
    fn give(&mut self, lookup: &mut Lookup<'_>, row: RowRef<'_>) -> Result<Flow> {
        lookup.stats.returned += 1;
        self.left -= 1;
        let flow = (self.sink)(row)?;
        Ok(if self.left == 0 { Flow::Stop } else { flow })
    }

    /// Passes on the hits that wait for the end of their partition.
    fn finish(&mut self, lookup: &mut Lookup<'_>) -> Result<()> {
        self.next_partition(lookup, None).map(|_| ())
    }

    fn next_partition(&mut self, lookup: &mut Lookup<'_>, next: Option<&Rc<Partition>>) -> Result<Flow> {
        let waiting = match &mut self.pick {
            // Hits wait until the partition changes: a later step of the same variable may still replace
            // them.
            Picked::Last(of, waiting) if of.as_ref().map(|of| of.key()) != next.map(|next| next.key()) => {
                *of = next.cloned();
                std::mem::take(waiting)
            }
            _ => return Ok(Flow::More),
        };
        if self.left == 0 {
            return Ok(Flow::Stop);
        }
        let mut rows: Vec<(i64, u32, Vec<KeptHit>)> = Vec::with_capacity(waiting.len());
        for (variable, (step, held)) in waiting {
            // Number of the variable among all names, so that the order equals that of a query without a
            // pick.
            let rank =
                held.first().and_then(|held| held.partition.variable(variable)).map_or(0, |at| at.rank + 1);
            rows.push((step, rank, held));
        }
        rows.sort_by_key(|(step, rank, _)| (*step, *rank));
        for held in rows.into_iter().flat_map(|(.., held)| held) {
            lookup.stats.returned += 1;
            self.left -= 1;
            if held.pass_to(self.sink)? == Flow::Stop || self.left == 0 {
                self.left = 0;
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }
}

/// The steps of the rows of each run, ascending.
fn steps_by_run(batch: &Batch, rows: &[MatchedRow]) -> HashMap<i64, BTreeSet<i64>> {
    let mut steps: HashMap<i64, BTreeSet<i64>> = HashMap::new();
    let mut last = None;
    for row in rows {
        let Some(partition) = batch.partitions.get(row.partition) else { continue };
        let place = Some((partition.run.id, row.step));
        if last != place {
            last = place;
            steps.entry(partition.run.id).or_default().insert(row.step);
        }
    }
    steps
}

/// A row with the names from its partition, ready to be passed on.
fn row_ref<'a>(
    partition: &'a Rc<Partition>,
    row: &'a MatchedRow,
    value: Value,
    time: Option<f64>,
    bounds: Option<RowRegion<'a>>,
    (id, user): (AttributeId, u32),
) -> RowRef<'a> {
    let variable = partition.variable(row.variable);
    let hit = HitRef {
        project: &partition.run.project,
        run: &partition.run.name,
        step: (row.step != NO_STEP).then_some(row.step),
        time,
        variable: variable.map(|variable| &variable.name),
        variable_version: variable.map_or(0, |variable| variable.version),
        tag: &partition.tag.name,
        tag_version: partition.tag.version,
        unit: &partition.tag.unit,
        region: bounds.filter(|_| row.own).map(|place| (place.start, place.count)),
        cells: row.cells.as_ref().map(|(dim, cells)| (*dim, cells)),
        keywords: row.keywords.as_ref(),
        user,
        id,
        value,
    };
    RowRef { hit, partition, found_variable: row.variable, bounds }
}

impl Out for Emit<'_, '_> {
    fn take(&mut self, lookup: &mut Lookup<'_>, batch: &mut Batch) -> Result<Flow> {
        let rows = std::mem::take(&mut batch.found);
        let mut steps = steps_by_run(batch, &rows);
        // Times of the found steps, one run at a time.
        let mut times = Rc::new(HashMap::new());
        let mut of: Option<i64> = None;
        for mut row in rows {
            let value = std::mem::replace(&mut row.value, Value::Null);
            let Some(partition) = batch.partitions.get(row.partition).cloned() else { continue };
            if of != Some(partition.run.id) {
                of = Some(partition.run.id);
                let own = steps.remove(&partition.run.id).unwrap_or_default();
                times = lookup.times_at(partition.run.id, &own.into_iter().collect::<Vec<_>>())?;
            }
            if self.pick.passes_over(&partition, &row) {
                continue;
            }
            if self.next_partition(lookup, Some(&partition))? == Flow::Stop {
                return Ok(Flow::Stop);
            }
            let bounds = batch.bounds(&row);
            let time = times.get(&row.step).copied();
            let row_ref = row_ref(&partition, &row, value, time, bounds, lookup.id(row.batch, row.row));
            if let Picked::Last(_, waiting) = &mut self.pick {
                let last = waiting.entry(row.variable).or_insert_with(|| (row.step, Vec::new()));
                // Steps ascend within a variable, so another step is a later one.
                if last.0 != row.step {
                    *last = (row.step, Vec::new());
                }
                let bounds = bounds.map(RowRegion::to_own);
                last.1.push(KeptHit {
                    hit: row_ref.hit.to_hit(),
                    partition: partition.clone(),
                    variable: row.variable,
                    bounds,
                });
                continue;
            }
            if self.give(lookup, row_ref)? == Flow::Stop {
                self.left = 0;
                return Ok(Flow::Stop);
            }
        }
        Ok(Flow::More)
    }
}
