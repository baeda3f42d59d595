//! The executor: from a condition to the rows that match it.
//!
//! ```text
//! walk     runs and tags that can hold a hit       names, spans            a Partition each
//! plan     which rows of a partition to read            series, curve, index    probes
//! flush    reads probes, decides rows, sorts       scan                    Found
//! ```
//!
//! Units come by project, run, tag and version; the rows of a partition by step, variable and box. Rows are
//! read in batches of about [`BATCH`] and decided by [`Cond::test`]; so memory is bounded by a batch,
//! or by one series where that is larger. SQL has narrowed by keys alone.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_format::catalog::{AttributeId, RunName};

use super::bounds::{self, ALL_STEPS, Steps, Values};
use super::cond::{Cond, KnownRow, Leaf, Names, Related, RunAt, Series, TagAt};
use super::place::RowRegion;
use super::plan::{Piece, Plan, merge};
use super::region::shape_of;
use super::rows::Reader;
use super::variable_at::VariableAt;
use super::{Cells, RowKeywords};
use crate::engine::stored;
use crate::engine::{
    CoordinateRange, Flow, NO_STEP, NO_VARIABLE, Probe, RunId, RunSelect, Span, Tables, VariableId, curve,
};

/// Rows that are read before hits are handed on, about.
const BATCH: u64 = 50_000;
/// Spans of more tags than this are read by run.
const TAGS: usize = 16;

/// What it took to answer.
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

/// What to look for.
pub(super) struct Ask<'a> {
    pub(super) cond: &'a Cond,
    /// Only in this run.
    pub(super) run: Option<&'a RunAt>,
    /// Only at these steps; [`NO_STEP`] is one.
    pub(super) steps: Option<&'a Steps>,
    /// Boxes of whole variables are asked for.
    pub(super) boxes: bool,
    /// How many are wanted, about: read in small batches.
    pub(super) few: Option<u64>,
}

/// A level, and the first and last cells asked for.
pub(super) type Asked = (u32, Vec<u64>, Vec<u64>);

/// Variables of a run, by number.
pub(super) type VariableMap = HashMap<VariableId, Arc<VariableAt>>;

/// One run and one tag.
#[derive(Debug)]
pub(super) struct Partition {
    pub(super) run: Rc<RunAt>,
    pub(super) tag: Rc<TagAt>,
    pub(super) span: Span,
    /// What is left to decide, but for the steps.
    pub(super) cond: Cond,
    pub(super) steps: Steps,
    pub(super) values: Values,
    /// Every name of a variable.
    names: Rc<VariableMap>,
    /// What the run says of its variables, where that is asked for.
    own: Option<Rc<VariableMap>>,
    times: Option<Rc<HashMap<i64, f64>>>,
    /// Whether the condition hangs on the step related `steps`.
    by_step: bool,
    cells: RefCell<HashMap<(i64, VariableId), Rc<CellCondition>>>,
}

/// A place of rows: one step and variable, or all steps of a variable.
#[derive(Debug)]
pub(super) struct CellCondition {
    pub(super) cond: Cond,
    pub(super) variable: Option<Arc<VariableAt>>,
    /// Start and count of the whole variable.
    pub(super) whole: Option<(Vec<i64>, Vec<i64>)>,
}

impl Partition {
    /// Run and tag.
    pub(super) fn key(&self) -> (i64, i64) {
        (self.run.id, self.tag.id)
    }

    /// A variable, with what the run says of it where that was asked for.
    pub(super) fn variable(&self, id: VariableId) -> Option<&Arc<VariableAt>> {
        let own = self.own.as_ref().and_then(|own| own.get(&id));
        own.or_else(|| self.names.get(&id).filter(|_| id != NO_VARIABLE))
    }

    /// What is asked of rows at this step and variable.
    pub(super) fn cell(&self, step: i64, variable: VariableId) -> Result<Rc<CellCondition>> {
        let key = (if self.by_step { step } else { NO_STEP }, variable);
        if let Some(cell) = self.cells.borrow().get(&key) {
            return Ok(cell.clone());
        }
        let at = self.variable(variable).cloned();
        let place = Series {
            step: (step != NO_STEP).then_some(step),
            time: self.times.as_ref().and_then(|times| times.get(&step).copied()),
            variable: at.as_deref(),
        };
        let known = KnownRow { run: Some(&self.run), tag: Some(&self.tag), place: Some(place) };
        let cond = self.cond.known(&known)?;
        let whole = shape_of(at.as_deref()).map(|shape| (vec![0; shape.len()], shape));
        let cell = Rc::new(CellCondition { cond, variable: at, whole });
        let mut cells = self.cells.borrow_mut();
        if cells.len() > 100_000 {
            cells.clear(); // bounded, whatever the number of steps
        }
        cells.insert(key, cell.clone());
        Ok(cell)
    }
}

/// A row that matches, or may.
#[derive(Debug)]
pub(super) struct MatchedRow {
    pub(super) partition: usize,
    pub(super) step: i64,
    pub(super) variable: VariableId,
    rank: u32,
    curve: i64,
    pub(super) batch: i64,
    pub(super) row: i64,
    pub(super) value: Value,
    /// Where its box is among the batch's: start, then count.
    at: usize,
    dims: usize,
    /// Its cells, where its box does not hold all of its elements.
    pub(super) cells: Option<Cells>,
    /// Its further keywords.
    pub(super) keywords: Option<RowKeywords>,
    /// Whether the box is its own, not that of the whole variable.
    pub(super) own: bool,
    /// Whether it hangs on a related attribute.
    pub(super) open: bool,
}

/// Rows of a batch, with their boxes.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) partitions: Vec<Rc<Partition>>,
    probes: Vec<Probe>,
    expected: u64,
    /// Whether it holds probes whose rows were guessed from least and greatest value.
    guessed: bool,
    pub(super) found: Vec<MatchedRow>,
    boxes: Vec<i64>,
}

impl Batch {
    /// A row's box, or that of its whole variable where that is known.
    pub(super) fn bounds<'b>(&'b self, found: &'b MatchedRow) -> Option<RowRegion<'b>> {
        (found.dims > 0).then(|| {
            let both = &self.boxes[found.at..found.at + 2 * found.dims];
            let (start, count) = both.split_at(found.dims);
            let cells = found.cells.as_ref().map(|(dim, cells)| (*dim, &**cells));
            RowRegion { start, count, cells }
        })
    }
}

/// Who takes the rows that match.
pub(super) trait Out {
    fn take(&mut self, exec: &mut Exec<'_>, batch: &mut Batch) -> Result<Flow>;
}

/// What answers a query, over the tables of one state.
pub(super) struct Exec<'t> {
    pub(super) tables: &'t mut dyn Tables,
    pub(super) stats: Stats,
    pub(super) related: Rc<Vec<Related>>,
    /// Ranges of coordinates, a list for each region that is asked for.
    pub(super) regions: Rc<[Arc<[CoordinateRange]>]>,
    /// What is asked of every variable that is looked at, where that is one condition.
    pub(super) screen: Option<Cond>,
    tags: Option<Rc<Vec<Rc<TagAt>>>>,
    names: Option<Rc<VariableMap>>,
    pub(super) variables: Option<(RunId, Rc<VariableMap>)>,
    times: Option<(RunId, Rc<HashMap<i64, f64>>)>,
    sources: HashMap<i64, (AttributeId, u32)>,
    /// What runs declared is asked for, whatever the condition.
    pub(super) by_decl: bool,
    /// Ranges of the curve that were worked out: many series have boxes of the same levels.
    pub(super) curves: HashMap<Asked, curve::Cover>,
    /// What was decided, in words.
    pub(super) notes: Option<Vec<String>>,
}

impl<'t> Exec<'t> {
    pub(super) fn new(tables: &'t mut dyn Tables, cond: &Cond, related: Vec<Related>) -> Exec<'t> {
        let mut regions: Vec<Arc<[CoordinateRange]>> = Vec::new();
        for cond in [cond].into_iter().chain(related.iter().map(|one| &one.cond)) {
            cond.regions(&mut regions);
        }
        let by_decl = related.iter().any(|one| one.cond.has(&Leaf::of_declared_run));
        let screen = related.is_empty().then(|| cond.clone());
        Exec {
            tables,
            stats: Stats::default(),
            screen,
            related: Rc::new(related),
            regions: regions.into(),
            tags: None,
            names: None,
            variables: None,
            times: None,
            sources: HashMap::new(),
            by_decl,
            curves: HashMap::new(),
            notes: None,
        }
    }

    // ---- what there is

    /// Every tag, by name and version.
    pub(super) fn tags(&mut self) -> Result<Rc<Vec<Rc<TagAt>>>> {
        if let Some(tags) = &self.tags {
            return Ok(tags.clone());
        }
        let rows = self.tables.tags()?.into_iter();
        let mut tags: Vec<Rc<TagAt>> = rows
            .map(|row| {
                let (name, unit) = (Arc::from(row.decl.name.as_str()), Arc::from(row.decl.unit.as_str()));
                Rc::new(TagAt { id: row.id, version: row.version, name, unit, decl: row.decl })
            })
            .collect();
        tags.sort_by(|a, b| (&a.decl.name, a.version).cmp(&(&b.decl.name, b.version)));
        let tags = Rc::new(tags);
        self.tags = Some(tags.clone());
        Ok(tags)
    }

    /// Every name and version of a variable, ranked by them.
    pub(super) fn names(&mut self) -> Result<Rc<VariableMap>> {
        if let Some(names) = &self.names {
            return Ok(names.clone());
        }
        let mut rows = self.tables.variable_names()?;
        rows.sort_by(|a, b| a.1.cmp(&b.1));
        let ranked = rows.into_iter().zip(0u32..);
        let names = ranked.map(|((id, name), rank)| {
            let at = VariableAt {
                id,
                name: name.name.into(),
                version: name.version,
                rank,
                row: None,
                points: Vec::new(),
            };
            (id, Arc::new(at))
        });
        let names: Rc<VariableMap> = Rc::new(names.collect());
        self.names = Some(names.clone());
        Ok(names)
    }

    /// Times of the steps of a run, where they have one.
    pub(super) fn times(&mut self, run: RunId) -> Result<Rc<HashMap<i64, f64>>> {
        if let Some((of, times)) = &self.times
            && *of == run
        {
            return Ok(times.clone());
        }
        let rows = self.tables.steps(run, NO_STEP + 1..=i64::MAX)?.into_iter();
        let times = Rc::new(rows.filter_map(|row| Some((row.step, row.time?))).collect::<HashMap<_, _>>());
        self.times = Some((run, times.clone()));
        Ok(times)
    }

    /// Times of few steps of a run, without reading those of all.
    pub(super) fn times_at(&mut self, run: RunId, steps: &[i64]) -> Result<Rc<HashMap<i64, f64>>> {
        const FEW: usize = 8;
        let cached = self.times.as_ref().is_some_and(|(of, _)| *of == run);
        if cached || steps.len() > FEW {
            return self.times(run);
        }
        let mut times = HashMap::new();
        for step in steps.iter().filter(|step| **step != NO_STEP) {
            let rows = self.tables.steps(run, *step..=*step)?;
            times.extend(rows.into_iter().filter_map(|row| Some((row.step, row.time?))));
        }
        Ok(Rc::new(times))
    }

    /// Which attribute a row is.
    pub(super) fn ids(&mut self, batch: &Batch) -> Result<()> {
        const KEPT: usize = 200_000;
        if self.sources.len() > KEPT {
            self.sources.clear();
        }
        let mut new: Vec<i64> = batch.found.iter().map(|found| found.batch).collect();
        new.dedup();
        new.retain(|id| !self.sources.contains_key(id));
        new.sort_unstable();
        new.dedup();
        if !new.is_empty() {
            let sources = self.tables.sources(&new)?;
            self.sources.extend(new.into_iter().zip(sources));
        }
        Ok(())
    }

    /// The id of a row whose batch [`Exec::ids`] has seen, and the user who wrote it.
    pub(super) fn id(&self, batch: i64, row: i64) -> (AttributeId, u32) {
        let none = AttributeId { writer: None, sequence: 0, record: 0, row: 0 };
        let (first, user) = self.sources.get(&batch).copied().unwrap_or((none, u32::MAX));
        (AttributeId { row: first.row.wrapping_add(u32::try_from(row).unwrap_or(0)), ..first }, user)
    }

    /// Runs that a condition does not rule out, by project and name; what they declared only where the
    /// condition asks for it.
    pub(super) fn runs(&mut self, cond: &Cond, ids: Option<&BTreeMap<RunId, ()>>) -> Result<Vec<Rc<RunAt>>> {
        let mut found = Vec::new();
        let mut take = |id: RunId, name: &RunName, decl| {
            let run =
                RunAt { id, project: name.project.as_str().into(), name: name.name.as_str().into(), decl };
            let left = cond.known(&KnownRow { run: Some(&run), ..KnownRow::default() })?;
            if !left.is(false) {
                found.push(Rc::new(run));
            }
            Ok(Flow::More)
        };
        let by_decl = self.by_decl || cond.has(&Leaf::of_declared_run);
        let rows = match exact_runs(cond) {
            Some(mut names) => {
                names.sort_unstable();
                names.dedup();
                let mut rows = Vec::new();
                for name in names {
                    rows.extend(self.tables.runs(&RunSelect::Named(name))?);
                }
                Some(rows)
            }
            None => match ids {
                Some(ids) if by_decl || ids.len() <= 64 => {
                    let mut rows = Vec::new();
                    let all: Vec<RunId> = ids.keys().copied().collect();
                    for some in all.chunks(512) {
                        rows.extend(self.tables.runs(&RunSelect::Ids(some.to_vec()))?);
                    }
                    Some(rows)
                }
                None if by_decl => Some(self.tables.runs(&RunSelect::All)?),
                _ => None,
            },
        };
        match rows {
            Some(rows) => {
                for row in rows.into_iter().filter(|row| ids.is_none_or(|ids| ids.contains_key(&row.id))) {
                    let name = row.decl.run.clone();
                    take(row.id, &name, by_decl.then(|| Arc::new((row.decl, row.declared))))?;
                }
            }
            None => self.tables.run_names(&mut |id, name| {
                if ids.is_none_or(|ids| ids.contains_key(&id)) {
                    take(id, name, None)
                } else {
                    Ok(Flow::More)
                }
            })?,
        }
        found.sort_by(|a, b| (&a.project, &a.name).cmp(&(&b.project, &b.name)));
        Ok(found)
    }

    // ---- walk

    /// Every run and tag that can hold a hit, in order.
    pub(super) fn walk(
        &mut self,
        ask: &Ask<'_>,
        each: &mut dyn FnMut(&mut Exec<'t>, Rc<Partition>) -> Result<Flow>,
    ) -> Result<Flow> {
        let mut tags = Vec::new();
        for tag in self.tags()?.iter() {
            let left = ask.cond.known(&KnownRow { tag: Some(tag), ..KnownRow::default() })?;
            if !left.is(false) {
                tags.push(tag.clone());
            }
        }
        if tags.is_empty() {
            return Ok(Flow::More);
        }
        // Few tags and any run: their spans name the runs. Otherwise runs come first.
        let by_tag = tags.len() <= TAGS && ask.run.is_none() && exact_runs(ask.cond).is_none();
        let mut spans: HashMap<RunId, Vec<(usize, Span)>> = HashMap::new();
        let runs = if by_tag {
            for (index, tag) in tags.iter().enumerate() {
                let cond = ask.cond.known(&KnownRow { tag: Some(tag), ..KnownRow::default() })?;
                let (values, steps) = (bounds::values(&cond, tag.decl.kind), bounds::steps(&cond));
                for span in self.tables.spans(tag.id, None)? {
                    // Most runs go by their sums, before anything else of them is read.
                    if can_match(&span, &values, &steps) {
                        spans.entry(span.run).or_default().push((index, span));
                    }
                }
            }
            let ids = spans.keys().map(|run| (*run, ())).collect();
            self.runs(ask.cond, Some(&ids))?
        } else {
            match ask.run {
                Some(run) => vec![Rc::new(run.clone())],
                None => self.runs(ask.cond, None)?,
            }
        };
        for run in runs {
            let own = match by_tag {
                true => spans.remove(&run.id).unwrap_or_default(),
                false => self.spans_of(&run, &tags)?,
            };
            for (index, span) in own {
                let Some(tag) = tags.get(index) else { continue };
                if let Some(partition) = self.partition(ask, &run, tag, span)?
                    && each(self, partition)? == Flow::Stop
                {
                    return Ok(Flow::Stop);
                }
            }
        }
        Ok(Flow::More)
    }

    /// Spans of a run, in the order of the tags.
    fn spans_of(&mut self, run: &RunAt, tags: &[Rc<TagAt>]) -> Result<Vec<(usize, Span)>> {
        const FEW: usize = 4;
        let mut own = Vec::new();
        if tags.len() <= FEW {
            for (index, tag) in tags.iter().enumerate() {
                own.extend(self.tables.spans(tag.id, Some(run.id))?.into_iter().map(|span| (index, span)));
            }
            return Ok(own);
        }
        let indexes: HashMap<i64, usize> =
            tags.iter().enumerate().map(|(index, tag)| (tag.id, index)).collect();
        for span in self.tables.spans_of_run(run.id)? {
            own.extend(indexes.get(&span.tag).map(|index| (*index, span)));
        }
        own.sort_by_key(|(index, _)| *index);
        Ok(own)
    }

    /// One run and tag, unless its span rules it out.
    fn partition(
        &mut self,
        ask: &Ask<'_>,
        run: &Rc<RunAt>,
        tag: &Rc<TagAt>,
        span: Span,
    ) -> Result<Option<Rc<Partition>>> {
        let cond = ask.cond.known(&KnownRow { run: Some(run), tag: Some(tag), place: None })?;
        if span.n == 0 || cond.is(false) {
            return Ok(None);
        }
        let mut steps = bounds::common(&bounds::steps(&cond), &[span.steps]);
        if let Some(asked) = ask.steps {
            steps = bounds::common(&steps, asked);
        }
        let values = bounds::values(&cond, tag.decl.kind);
        if steps.is_empty() || !can_hold(&values, span.numbers) {
            return Ok(None);
        }
        let cond = bounds::without_steps(cond);
        let names = self.names()?;
        let own = match ask.boxes || cond.has(&Leaf::of_declared_variable) {
            true => Some(self.variables(run.id)?),
            false => None,
        };
        let times = match cond.has(&|leaf| matches!(leaf, Leaf::Time(_))) {
            true => Some(self.times(run.id)?),
            false => None,
        };
        // Where grids move, a region lies elsewhere at each step.
        let moves = |at: &Arc<VariableAt>| at.points.iter().any(|points| points.steps.is_some());
        let by_step = cond.has(&Leaf::of_step) || own.iter().any(|own| own.values().any(moves));
        self.stats.partitions += 1;
        let cells = RefCell::default();
        let (run, tag) = (run.clone(), tag.clone());
        Ok(Some(Rc::new(Partition {
            run,
            tag,
            span,
            cond,
            steps,
            values,
            names,
            own,
            times,
            by_step,
            cells,
        })))
    }

    // ---- rows

    /// Everything that matches, in order, to `out`.
    pub(super) fn ask(&mut self, ask: &Ask<'_>, out: &mut dyn Out) -> Result<Flow> {
        let mut batch = Batch::default();
        let mut limit = ask.few.map_or(BATCH, |few| few.saturating_mul(2).clamp(256, BATCH));
        let flow = self.walk(ask, &mut |exec, partition| {
            let plan = exec.plan(&partition, false)?;
            exec.feed(&mut batch, &partition, plan, &mut limit, out)
        })?;
        if flow == Flow::Stop {
            return Ok(Flow::Stop);
        }
        self.flush(&mut batch, out)
    }

    /// Adds a partition to a batch, and reads the batch whenever it is full.
    fn feed(
        &mut self,
        batch: &mut Batch,
        partition: &Rc<Partition>,
        plan: Plan,
        limit: &mut u64,
        out: &mut dyn Out,
    ) -> Result<Flow> {
        const PARTITIONS: usize = 512;
        const PROBES: usize = 8_192;
        batch.partitions.push(partition.clone());
        let pieces = match plan {
            Plan::Direct { probes, expected, guessed } => {
                batch.guessed |= guessed;
                vec![Piece { probes, expected, ..Piece::default() }]
            }
            Plan::Series(pieces) => merge(partition, pieces),
        };
        for piece in pieces {
            let full = batch.expected + piece.expected > *limit
                || batch.partitions.len() > PARTITIONS
                || batch.probes.len() > PROBES;
            if full && !batch.probes.is_empty() {
                if self.flush(batch, out)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
                batch.partitions.push(partition.clone());
                *limit = limit.saturating_mul(4).min(BATCH);
            }
            batch.expected += piece.expected;
            batch.probes.extend(piece.probes);
        }
        Ok(Flow::More)
    }

    /// Reads the batch, and hands on what matches; leaves it empty.
    fn flush(&mut self, batch: &mut Batch, out: &mut dyn Out) -> Result<Flow> {
        let mut batch = std::mem::take(batch);
        // Guesses may be far off: beyond this, reading by series is better in time and memory.
        let most = if batch.guessed { batch.expected.saturating_mul(4) + 4 * BATCH } else { u64::MAX };
        if !self.read(&mut batch, most)? {
            let (mut again, mut limit) = (Batch::default(), BATCH);
            for partition in std::mem::take(&mut batch.partitions) {
                let plan = self.plan(&partition, true)?;
                if self.feed(&mut again, &partition, plan, &mut limit, out)? == Flow::Stop {
                    return Ok(Flow::Stop);
                }
            }
            return self.flush(&mut again, out);
        }
        if batch.found.is_empty() {
            return Ok(Flow::More);
        }
        if batch.found.iter().any(|found| found.open) {
            self.relate(&mut batch)?;
        }
        out.take(self, &mut batch)
    }

    /// Reads the probes of a batch into `found`; `false` where there are more than `most` rows.
    fn read(&mut self, batch: &mut Batch, most: u64) -> Result<bool> {
        let index: HashMap<(i64, i64), usize> = batch
            .partitions
            .iter()
            .enumerate()
            .map(|(i, partition)| ((partition.run.id, partition.tag.id), i))
            .collect();
        let (partitions, probes) = (&batch.partitions, std::mem::take(&mut batch.probes));
        let (found, boxes) = (&mut batch.found, &mut batch.boxes);
        let mut reader = Reader::default();
        let (mut last, mut rows) = (usize::MAX, 0u64);
        let visited = self.tables.scan(&probes, &mut |row| {
            rows += 1;
            if rows > most {
                return Ok(Flow::Stop);
            }
            let same = partitions
                .get(last)
                .is_some_and(|partition| partition.run.id == row.run && partition.tag.id == row.tag);
            if !same {
                let Some(at) = index.get(&(row.run, row.tag)) else { return Ok(Flow::More) };
                last = *at;
                reader.cell = None;
            }
            let Some(partition) = partitions.get(last) else { return Ok(Flow::More) };
            let Some((cell, open)) = reader.matches(partition, row)? else { return Ok(Flow::More) };
            let value = match reader.value.take() {
                Some(value) => value,
                None => row.value()?,
            };
            let at = boxes.len();
            let own = stored::region_rank(row.region) > 0;
            let (dims, cells) = reader.take_box(row, &cell, boxes)?;
            let rank = cell.variable.as_ref().map_or(0, |variable| variable.rank + 1);
            found.push(MatchedRow {
                partition: last,
                step: row.step,
                variable: row.variable,
                rank,
                curve: row.curve,
                batch: row.batch,
                row: row.row,
                value,
                at,
                dims,
                cells,
                keywords: stored::region_keywords(row.region)?,
                own,
                open,
            });
            Ok(Flow::More)
        })?;
        self.stats.visited += visited;
        self.stats.probes += probes.len() as u64;
        if rows > most {
            return Ok(false);
        }
        self.sort(batch)?;
        Ok(true)
    }

    /// By partition, step, variable, box along the curve, box, id: the same on every engine.
    fn sort(&mut self, batch: &mut Batch) -> Result<()> {
        self.ids(batch)?;
        let mut found = std::mem::take(&mut batch.found);
        found.sort_by(|a, b| {
            (a.partition, a.step, a.rank, a.curve)
                .cmp(&(b.partition, b.step, b.rank, b.curve))
                .then_with(|| a.own.cmp(&b.own))
                .then_with(|| batch.bounds(a).cmp(&batch.bounds(b)))
                .then_with(|| a.keywords.cmp(&b.keywords))
                .then_with(|| match a.batch == b.batch {
                    true => a.row.cmp(&b.row),
                    false => self.id(a.batch, a.row).cmp(&self.id(b.batch, b.row)),
                })
        });
        batch.found = found;
        Ok(())
    }

    /// Whether some row that these probes reach matches: reads no further than the first.
    pub(super) fn any(&mut self, partition: &Partition, probes: &[Probe]) -> Result<bool> {
        let (mut reader, mut hit) = (Reader::default(), false);
        self.stats.visited += self.tables.scan(probes, &mut |row| {
            hit = reader.matches(partition, row)?.is_some();
            Ok(if hit { Flow::Stop } else { Flow::More })
        })?;
        self.stats.probes += probes.len() as u64;
        Ok(hit)
    }

    /// Step and variable of every row that these probes reach and that matches.
    pub(super) fn each(
        &mut self,
        partition: &Partition,
        probes: &[Probe],
        take: &mut dyn FnMut(i64, VariableId) -> Flow,
    ) -> Result<()> {
        let mut reader = Reader::default();
        self.stats.visited += self.tables.scan(probes, &mut |row| {
            Ok(match reader.matches(partition, row)? {
                Some(_) => take(row.step, row.variable),
                None => Flow::More,
            })
        })?;
        self.stats.probes += probes.len() as u64;
        Ok(())
    }

    /// How many rows that these probes reach match.
    pub(super) fn count(&mut self, partition: &Partition, probes: &[Probe]) -> Result<u64> {
        let (mut reader, mut hits) = (Reader::default(), 0);
        self.stats.visited += self.tables.scan(probes, &mut |row| {
            hits += u64::from(reader.matches(partition, row)?.is_some());
            Ok(Flow::More)
        })?;
        self.stats.probes += probes.len() as u64;
        Ok(hits)
    }
}

/// Names of runs outside of which nothing matches, where the condition names them.
pub(super) fn exact_runs(cond: &Cond) -> Option<Vec<String>> {
    match cond {
        Cond::Const(false) => Some(Vec::new()),
        Cond::Leaf(Leaf::Run(names)) => Names::exact(names),
        Cond::All(list) => list.iter().filter_map(exact_runs).min_by_key(Vec::len),
        Cond::Any(list) => {
            let all: Option<Vec<_>> = list.iter().map(exact_runs).collect();
            all.map(|lists| lists.concat())
        }
        _ => None,
    }
}

/// Whether a row of a run and tag can match, by their sums.
fn can_match(span: &Span, values: &Values, steps: &Steps) -> bool {
    span.n > 0
        && can_hold(values, span.numbers)
        && !bounds::common(steps, std::slice::from_ref(&span.steps)).is_empty()
}

/// Whether rows with these least and greatest numbers can match.
pub(super) fn can_hold(values: &Values, numbers: Option<(f64, f64)>) -> bool {
    match values {
        Values::Any => true,
        Values::Texts(ranges) => !ranges.is_empty(),
        Values::Numbers(ranges) => numbers.is_some_and(|(least, greatest)| {
            ranges.iter().any(|(from, to)| *from <= greatest && least <= *to)
        }),
    }
}

/// First and last of ranges of steps.
pub(super) fn hull(steps: &Steps) -> RangeInclusive<i64> {
    let first = steps.first().map_or(ALL_STEPS.0, |range| range.0);
    let last = steps.last().map_or(ALL_STEPS.1, |range| range.1);
    first..=last
}
