//! Visits the runs and tags that can hold a hit, by project, run, tag and version, each with its sums.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use fieldstone_core::Result;

use super::bounds::{self, Steps, Values, can_hold};
use super::cond::{Cond, KnownRow, Leaf, RunAt, TagAt};
use super::lookup::{Lookup, exact_runs};
use super::partition::Partition;
use super::variable_at::VariableAt;
use crate::engine::{RunId, Span};

/// Spans of more tags than this are read by run.
const TAGS: usize = 16;

/// The request to the executor.
#[derive(Clone, Copy)]
pub(super) struct Ask<'a> {
    pub(super) cond: &'a Cond,
    /// Only in this run.
    pub(super) run: Option<&'a RunAt>,
    /// Only at these steps; [`NO_STEP`](crate::engine::NO_STEP) is one.
    pub(super) steps: Option<&'a Steps>,
    /// Whether boxes of whole variables are needed.
    pub(super) boxes: bool,
    /// The approximate number of wanted hits, which makes batches small.
    pub(super) few: Option<u64>,
}

/// Runs and tags that are still to be visited.
pub(super) struct Walk<'a> {
    ask: Ask<'a>,
    tags: Vec<Rc<TagAt>>,
    runs: std::vec::IntoIter<Rc<RunAt>>,
    /// The tags of each run that can match, by their index, if the tags determine the runs.
    by_run: Option<HashMap<RunId, Vec<(usize, Span)>>>,
    /// The present run, and its remaining spans.
    run: Option<Rc<RunAt>>,
    spans: std::vec::IntoIter<(usize, Span)>,
}

impl<'a> Walk<'a> {
    pub(super) fn of(lookup: &mut Lookup<'_>, ask: Ask<'a>) -> Result<Walk<'a>> {
        let mut tags = Vec::new();
        for tag in lookup.tags()?.iter() {
            let left = ask.cond.known(&KnownRow { tag: Some(tag), ..KnownRow::default() })?;
            if !left.is(false) {
                tags.push(tag.clone());
            }
        }
        let mut walk = Walk {
            ask,
            tags,
            runs: Vec::new().into_iter(),
            by_run: None,
            run: None,
            spans: Vec::new().into_iter(),
        };
        if walk.tags.is_empty() {
            return Ok(walk);
        }
        // With few tags and any run, the spans determine the runs. Otherwise runs come first.
        let runs = match ask.run {
            Some(run) => vec![Rc::new(run.clone())],
            None if walk.tags.len() <= TAGS && exact_runs(ask.cond).is_none() => {
                let by_run = walk.spans_by_run(lookup)?;
                let ids = by_run.keys().map(|run| (*run, ())).collect();
                walk.by_run = Some(by_run);
                lookup.runs(ask.cond, Some(&ids))?
            }
            None => lookup.runs(ask.cond, None)?,
        };
        walk.runs = runs.into_iter();
        Ok(walk)
    }

    /// The next run and tag; `None` at the end.
    pub(super) fn next(&mut self, lookup: &mut Lookup<'_>) -> Result<Option<Rc<Partition>>> {
        loop {
            while let Some(run) = &self.run
                && let Some((index, span)) = self.spans.next()
            {
                let Some(tag) = self.tags.get(index) else { continue };
                if let Some(partition) = partition(lookup, &self.ask, run, tag, span)? {
                    return Ok(Some(partition));
                }
            }
            let Some(run) = self.runs.next() else { return Ok(None) };
            let own = match &mut self.by_run {
                Some(spans) => spans.remove(&run.id).unwrap_or_default(),
                None => self.spans_of(lookup, &run)?,
            };
            (self.run, self.spans) = (Some(run), own.into_iter());
        }
    }

    /// Spans of the tags by run, without those that cannot match.
    fn spans_by_run(&self, lookup: &mut Lookup<'_>) -> Result<HashMap<RunId, Vec<(usize, Span)>>> {
        let mut spans: HashMap<RunId, Vec<(usize, Span)>> = HashMap::new();
        for (index, tag) in self.tags.iter().enumerate() {
            let cond = self.ask.cond.known(&KnownRow { tag: Some(tag), ..KnownRow::default() })?;
            let (values, steps) = (bounds::values(&cond, tag.decl.kind), bounds::steps(&cond));
            for span in lookup.tables.spans(tag.id, None)? {
                // The sums exclude most runs before anything else about them is read.
                if can_match(&span, &values, &steps) {
                    spans.entry(span.run).or_default().push((index, span));
                }
            }
        }
        Ok(spans)
    }

    /// Spans of a run, in the order of the tags.
    fn spans_of(&self, lookup: &mut Lookup<'_>, run: &RunAt) -> Result<Vec<(usize, Span)>> {
        const FEW: usize = 4;
        let (tags, mut own) = (&self.tags, Vec::new());
        if tags.len() <= FEW {
            for (index, tag) in tags.iter().enumerate() {
                own.extend(lookup.tables.spans(tag.id, Some(run.id))?.into_iter().map(|span| (index, span)));
            }
            return Ok(own);
        }
        let indexes: HashMap<i64, usize> =
            tags.iter().enumerate().map(|(index, tag)| (tag.id, index)).collect();
        for span in lookup.tables.spans_of_run(run.id)? {
            own.extend(indexes.get(&span.tag).map(|index| (*index, span)));
        }
        own.sort_by_key(|(index, _)| *index);
        Ok(own)
    }
}

/// One run and tag, unless its span excludes it.
fn partition(
    lookup: &mut Lookup<'_>,
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
    let names = lookup.names()?;
    let own = match ask.boxes || cond.has(&Leaf::of_declared_variable) {
        true => Some(lookup.variables(run.id)?),
        false => None,
    };
    let times = match cond.has(&|leaf| matches!(leaf, Leaf::Time(_))) {
        true => Some(lookup.times(run.id)?),
        false => None,
    };
    // If grids move, a region is elsewhere at each step.
    let moves = |at: &Arc<VariableAt>| at.points.iter().any(|points| points.steps.is_some());
    let by_step = cond.has(&Leaf::of_step) || own.iter().any(|own| own.values().any(moves));
    lookup.stats.partitions += 1;
    let cells = RefCell::default();
    let (run, tag) = (run.clone(), tag.clone());
    Ok(Some(Rc::new(Partition { run, tag, span, cond, steps, values, names, own, times, by_step, cells })))
}

/// Whether a row of a run and tag can match, judging by their sums.
fn can_match(span: &Span, values: &Values, steps: &Steps) -> bool {
    span.n > 0
        && can_hold(values, span.numbers)
        && !bounds::common(steps, std::slice::from_ref(&span.steps)).is_empty()
}
