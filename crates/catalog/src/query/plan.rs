//! Chooses the rows of a partition to read: by its series, along the curve, or by value.
//!
//! A row that is read but is not a hit counts [`ROW`] times as much as starting a range of keys. That is
//! about its time once its box is checked, and the promise is that few rows are read beyond the hits. By
//! value, rows are scattered, and each costs as much as about [`APART`] neighbours. The estimates come from
//! spans and series; a wrong one costs time, never a hit.

use std::collections::HashMap;

use fieldstone_core::Result;

use super::bounds::{self, Steps, Values, can_hold, hull};
use super::lookup::Lookup;
use super::partition::{CellCondition, Partition};
use super::region::BoxTest;
use crate::engine::{NO_CURVE, Probe, Series, curve};

/// A partition with at most this many rows is read whole.
const FEW: u64 = 48;
/// The cost of reading a row beyond the hits, in ranges.
const ROW: u64 = 10;
/// The cost of a row that is found by its value.
const APART: u64 = 3;

/// How a partition is read.
#[derive(Debug)]
pub(crate) enum Plan {
    /// These ranges, with about this many rows; and whether that was estimated from least and greatest value.
    Direct { probes: Vec<Probe>, expected: u64, guessed: bool },
    /// Series by series, in order.
    Series(Vec<Piece>),
}

/// The rows to read from one series, or from several that are adjacent.
#[derive(Debug, Default)]
pub(crate) struct Piece {
    pub(crate) step: i64,
    pub(crate) variable: i64,
    pub(crate) probes: Vec<Probe>,
    /// The estimated number of rows that will be read.
    pub(crate) expected: u64,
    /// The number of rows of the series, if all are hits.
    pub(crate) all: Option<u64>,
    /// If not `None`: all series of the step are read whole; steps with equal numbers are adjacent.
    pub(crate) side_by_side: Option<u32>,
}

/// A level, and the first and last requested cells.
type Asked = (u32, Vec<u64>, Vec<u64>);

/// Decides how partitions are read.
#[derive(Default)]
pub(super) struct Planner {
    /// Ranges of the curve that were computed: many series have boxes of the same levels.
    curves: HashMap<Asked, curve::Cover>,
    /// The decisions as text, if requested.
    pub(super) notes: Option<Vec<String>>,
}

impl Planner {
    /// Decides how to read a partition; `by_series`: not by value.
    pub(super) fn plan(
        &mut self,
        lookup: &mut Lookup<'_>,
        partition: &Partition,
        by_series: bool,
    ) -> Result<Plan> {
        let n = partition.span.n;
        let (run, tag) = (partition.run.id, partition.tag.id);
        if n <= FEW {
            let probe = Probe::Key { run, tag, steps: hull(&partition.steps), variable: None, curve: None };
            return Ok(Plan::Direct { probes: vec![probe], expected: n, guessed: false });
        }
        let by_value = if by_series { None } else { by_value(partition) };
        if let Some((probes, expected)) = &by_value
            && expected.saturating_mul(APART) <= FEW.max(n / 2000)
        {
            self.note(partition, || format!("by value, about {expected} of {n} rows"));
            return Ok(Plan::Direct { probes: probes.clone(), expected: *expected, guessed: true });
        }
        let pieces = self.pieces(lookup, partition)?;
        let total: u64 = pieces.iter().map(|piece| piece.expected + piece.probes.len() as u64 / ROW).sum();
        if let Some((probes, expected)) = by_value
            && expected.saturating_mul(APART) < total
        {
            self.note(partition, || format!("by value, about {expected} of {n} rows"));
            return Ok(Plan::Direct { probes, expected, guessed: true });
        }
        self.note(partition, || {
            let ranges: usize = pieces.iter().map(|piece| piece.probes.len()).sum();
            let rows: u64 = pieces.iter().map(|piece| piece.expected).sum();
            format!("{} series in {ranges} ranges, about {rows} of {n} rows", pieces.len())
        });
        Ok(Plan::Series(pieces))
    }

    fn note(&mut self, partition: &Partition, what: impl Fn() -> String) {
        if let Some(notes) = &mut self.notes {
            notes.push(format!("run '{}', tag '{}': {}", partition.run.name, partition.tag.name, what()));
        }
    }

    /// The series of a partition that can hold a hit, by step and name of the variable.
    fn pieces(&mut self, lookup: &mut Lookup<'_>, partition: &Partition) -> Result<Vec<Piece>> {
        const RANGES: usize = 8;
        let (run, tag) = (partition.run.id, partition.tag.id);
        let mut rows: Vec<Series> = Vec::new();
        if partition.steps.len() <= RANGES {
            for (from, to) in &partition.steps {
                rows.extend(lookup.tables.series(run, tag, *from..=*to)?);
            }
        } else {
            rows = lookup.tables.series(run, tag, hull(&partition.steps))?;
        }
        lookup.stats.series += rows.len() as u64;
        let mut pieces: Vec<(u32, Piece)> = Vec::with_capacity(rows.len());
        let mut group = 0u32;
        for of_step in rows.chunk_by(|a, b| a.step == b.step) {
            let from = pieces.len();
            let mut whole = true;
            for series in of_step {
                let Some(piece) = self.piece(partition, series)? else {
                    whole = false;
                    continue;
                };
                let by_key = |probe: &Probe| matches!(probe, Probe::Key { curve: None, .. });
                whole &= piece.probes.iter().all(by_key) && !piece.probes.is_empty();
                let rank = partition.variable(series.variable).map_or(0, |variable| variable.rank + 1);
                pieces.push((rank, piece));
            }
            let own = pieces.get_mut(from..).unwrap_or_default();
            own.sort_by_key(|(rank, _)| *rank);
            if whole {
                own.iter_mut().for_each(|(_, piece)| piece.side_by_side = Some(group));
            } else {
                group += 1;
            }
        }
        Ok(pieces.into_iter().map(|(_, piece)| piece).collect())
    }

    /// One series, unless nothing in it can be a hit.
    fn piece(&mut self, partition: &Partition, series: &Series) -> Result<Option<Piece>> {
        if series.n == 0 || !bounds::within(&partition.steps, series.step) {
            return Ok(None);
        }
        let cell = partition.cell(series.step, series.variable)?;
        if cell.cond.is(false) || !can_hold(&partition.values, series.numbers) {
            return Ok(None);
        }
        let at = |curve| Probe::Key {
            run: series.run,
            tag: series.tag,
            steps: series.step..=series.step,
            variable: Some(series.variable),
            curve,
        };
        let mut piece = Piece { step: series.step, variable: series.variable, ..Piece::default() };
        piece.all = cell.cond.is(true).then_some(series.n);
        const FEW: u64 = 8;
        if series.n > FEW
            && let Some(regions) = bounds::regions(&cell.cond)
            && let Some((ranges, expected)) = self.curve(series, &cell, &regions)
        {
            piece.expected = expected;
            piece.probes = ranges.into_iter().map(|(from, to)| at(Some(from..=to))).collect();
            return Ok(Some(piece));
        }
        piece.expected = series.n;
        piece.probes = vec![at(None)];
        Ok(Some(piece))
    }

    /// Ranges of the curve for regions, and the estimated number of rows in them; `None` if reading the whole
    /// series costs less.
    fn curve(&mut self, series: &Series, cell: &CellCondition, regions: &[&BoxTest]) -> Option<(Steps, u64)> {
        let mut ranges: Steps = Vec::new();
        let mut rows = 0.0;
        for region in regions {
            for rank in curve::ranks(series.levels) {
                let Some((from, to)) = region.reach(rank) else { continue };
                let shape = cell.whole.as_ref().map(|(_, shape)| shape.as_slice());
                let volume = shape.filter(|shape| shape.len() == rank).map(volume);
                rows += self.ranges(series, (&from, &to), volume, &mut ranges);
            }
        }
        if curve::outside(series.levels) {
            ranges.push((NO_CURVE, NO_CURVE));
        }
        let ranges = merged(ranges);
        let rows = rows.ceil() as u64 + 1;
        (ranges.len() as u64 + ROW * rows < ROW * series.n).then_some((ranges, rows))
    }

    /// Adds ranges of the curve for a region; returns the estimated number of rows in them, assuming that
    /// boxes are spread evenly over the variable's `volume`.
    fn ranges(
        &mut self,
        series: &Series,
        (from, to): (&[i64], &[i64]),
        volume: Option<f64>,
        ranges: &mut Steps,
    ) -> f64 {
        const KEPT: usize = 1_024;
        let levels: Vec<u32> = curve::levels_in(series.levels).collect();
        // If extents differ, few boxes are much smaller than the greatest: assume that each lower level has
        // half as many.
        let mut rows = series.n as f64 / if levels.len() > 1 { 2.0 } else { 1.0 };
        let mut all = 0.0;
        for level in levels.into_iter().rev() {
            let Some((low, high)) = curve::cells(level, series.extent, from, to) else { continue };
            let cell = 2f64.powi(level as i32).powi(from.len() as i32);
            let needed: f64 = low.iter().zip(&high).map(|(a, b)| (b - a) as f64 + 1.0).product();
            // Rows in a cell; without a shape, as if the query covered a tenth of the variable.
            let density = volume.map_or(0.1 * rows / needed, |volume| rows * (cell / volume).min(1.0));
            if self.curves.len() > KEPT {
                self.curves.clear();
            }
            let key = (level, low, high);
            let cover = match self.curves.get(&key) {
                Some(cover) => cover,
                None => {
                    let cover = curve::Cover::of(key.0, &key.1, &key.2);
                    self.curves.entry(key).or_insert(cover)
                }
            };
            // Reading the cells of a gap costs less than starting another range.
            let widest = (1.0 / (ROW as f64 * density)) as u64;
            let mut held = 0.0;
            ranges.extend(cover.ranges(widest).map(|range| {
                held += (range.end() - range.start()) as f64 + 1.0;
                (*range.start(), *range.end())
            }));
            all += (held * density).min(rows);
            rows /= 2.0;
        }
        all
    }
}

/// The number of elements, as a float.
fn volume(shape: &[i64]) -> f64 {
    shape.iter().map(|extent| (*extent).max(1) as f64).product()
}

/// Sorts ranges, and merges those that touch.
fn merged(mut ranges: Vec<(i64, i64)>) -> Steps {
    ranges.sort_unstable();
    let mut apart: Steps = Vec::with_capacity(ranges.len());
    for (from, to) in ranges {
        match apart.last_mut() {
            Some(last) if from <= last.1.saturating_add(1) => last.1 = last.1.max(to),
            _ => apart.push((from, to)),
        }
    }
    apart
}

/// Ranges of the index of numbers or texts that hold all hits, and the estimated number of rows in them.
fn by_value(partition: &Partition) -> Option<(Vec<Probe>, u64)> {
    let (run, tag, n) = (partition.run.id, partition.tag.id, partition.span.n as f64);
    match &partition.values {
        Values::Any => None,
        Values::Numbers(ranges) => {
            let (least, greatest) = partition.span.numbers?;
            let mut share = 0.0;
            for (from, to) in ranges {
                let (from, to) = (from.max(least), to.min(greatest));
                let width = greatest - least;
                share += match () {
                    () if from > to => 0.0,
                    () if from == to => 0.01,
                    () if width.is_finite() && width > 0.0 => (to - from) / width,
                    () => 1.0,
                };
            }
            let number = |(from, to): &(f64, f64)| Probe::Number { run, tag, numbers: *from..=*to };
            let expected = (share.min(1.0) * n).ceil() as u64 + 1;
            Some((ranges.iter().map(number).collect(), expected))
        }
        Values::Texts(ranges) => {
            let text = |(from, to): &(String, Option<String>)| Probe::Text {
                run,
                tag,
                from: from.clone(),
                to: to.clone(),
            };
            let open = ranges.iter().any(|(_, to)| to.is_none());
            let expected = n / if open { 2.0 } else { 20.0 };
            Some((ranges.iter().map(text).collect(), expected.ceil() as u64))
        }
    }
}

/// Joins adjacent pieces that are read whole, up to a batch.
pub(super) fn merge(partition: &Partition, pieces: Vec<Piece>) -> Vec<Piece> {
    const MOST: u64 = 25_000;
    let mut joined: Vec<Piece> = Vec::new();
    let mut pieces = pieces.into_iter().peekable();
    while let Some(first) = pieces.next() {
        let Some(group) = first.side_by_side else {
            joined.push(first);
            continue;
        };
        // Whole steps at a time, so that one range holds exactly these series.
        let (from, mut to, mut expected, mut series) = (first.step, first.step, first.expected, 1);
        while let Some(next) = pieces.next_if(|next| {
            next.side_by_side == Some(group) && (next.step == to || expected + next.expected <= MOST)
        }) {
            to = next.step;
            expected += next.expected;
            series += 1;
        }
        let probes = match series {
            1 => first.probes,
            _ => {
                let (run, tag) = (partition.run.id, partition.tag.id);
                vec![Probe::Key { run, tag, steps: from..=to, variable: None, curve: None }]
            }
        };
        joined.push(Piece { expected, probes, ..Piece::default() });
    }
    joined
}
