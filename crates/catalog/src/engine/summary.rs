//! Sums of attributes: `series` per (run, tag, step, variable) and `span` per (tag, run).
//!
//! While commits are applied, sums stay in memory and are written once. They are exact: after the deletion of
//! a row at an end of its series, the series is read again.

use std::collections::HashMap;
use std::collections::btree_map::{BTreeMap, Entry};

use fieldstone_core::Result;

use super::ground::Ground;
use super::stored::region_dims;
use super::{AttrRow, Cell, Flow, NO_CURVE, Probe, RunId, TagId, VariableId, curve};

/// Series in memory before they are written.
const HELD: usize = 100_000;
/// Up to this many series of a tag are looked up one by one.
const FEW: usize = 8;

/// Sum of a series, and the pending work on it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sum {
    pub n: i64,
    pub least: f64,
    pub greatest: f64,
    pub levels: u64,
    pub extent: i64,
    dirty: bool,
    again: bool,
}

/// Sum of a span.
#[derive(Debug, Clone, Copy)]
struct SpanSum {
    n: i64,
    least: f64,
    greatest: f64,
    first: i64,
    last: i64,
    dirty: bool,
    again: bool,
}

/// The contribution of rows to a series.
#[derive(Debug, Clone, Copy)]
pub(super) struct Delta {
    pub n: i64,
    pub least: f64,
    pub greatest: f64,
    pub levels: u64,
    pub extent: i64,
}

impl Default for Delta {
    fn default() -> Delta {
        Delta { n: 0, least: f64::INFINITY, greatest: f64::NEG_INFINITY, levels: 0, extent: 0 }
    }
}

impl Delta {
    pub fn number(&mut self, num: Option<f64>) {
        if let Some(num) = num {
            // Zero has one sign here, so that the sum does not depend on the order of rows.
            let num = num + 0.0;
            self.least = self.least.min(num);
            self.greatest = self.greatest.max(num);
        }
    }
}

const NOTHING: Sum = Sum {
    n: 0,
    least: f64::INFINITY,
    greatest: f64::NEG_INFINITY,
    levels: 0,
    extent: 0,
    dirty: false,
    again: false,
};

/// A series: step and variable.
pub(super) type Member = (i64, VariableId);

/// Sums in memory, by (run, tag).
#[derive(Debug, Default)]
pub(super) struct Sums {
    tags: BTreeMap<(RunId, TagId), OfTag>,
    held: usize,
}

#[derive(Debug)]
struct OfTag {
    /// Whether nothing of the run and tag existed before.
    fresh: bool,
    span: SpanSum,
    series: HashMap<Member, Sum>,
}

/// Least and greatest number as cells; NULL if there are no numbers.
fn ends<'a>(least: f64, greatest: f64) -> [Cell<'a>; 2] {
    if least <= greatest { [Cell::Real(least), Cell::Real(greatest)] } else { [Cell::Null, Cell::Null] }
}

fn numbers(least: &Cell<'_>, greatest: &Cell<'_>) -> Result<(f64, f64)> {
    Ok((
        least.real_or_null()?.unwrap_or(f64::INFINITY),
        greatest.real_or_null()?.unwrap_or(f64::NEG_INFINITY),
    ))
}

impl Sums {
    fn of_tag(&mut self, ground: &mut Ground, run: RunId, tag: TagId) -> Result<&mut OfTag> {
        let of = match self.tags.entry((run, tag)) {
            Entry::Occupied(of) => return Ok(of.into_mut()),
            Entry::Vacant(of) => of,
        };
        let mut span = SpanSum {
            n: 0,
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
            first: i64::MAX,
            last: i64::MIN,
            dirty: false,
            again: false,
        };
        let sql = "SELECT n, least, greatest, first, last FROM span WHERE tag = $1 AND run = $2";
        let found = ground.db.first(sql, &[tag, run].map(Cell::Int), |row| {
            (span.least, span.greatest) = numbers(&row[1], &row[2])?;
            (span.n, span.first, span.last) = (row[0].int()?, row[3].int()?, row[4].int()?);
            Ok(())
        })?;
        Ok(of.insert(OfTag { fresh: found.is_none(), span, series: HashMap::new() }))
    }

    /// Loads series of a run and tag into memory. `members` are ascending and distinct.
    pub fn load_series(
        &mut self,
        ground: &mut Ground,
        run: RunId,
        tag: TagId,
        members: &[Member],
    ) -> Result<()> {
        if self.held > HELD {
            self.flush(ground)?;
        }
        let of = self.of_tag(ground, run, tag)?;
        let missing: Vec<Member> =
            members.iter().filter(|member| !of.series.contains_key(member)).copied().collect();
        let (Some(first), Some(last)) = (missing.first(), missing.last()) else { return Ok(()) };
        let mut found: Vec<(Member, Sum)> = Vec::new();
        if !of.fresh {
            let mut take = |row: &[Cell<'_>]| {
                let (least, greatest) = numbers(&row[3], &row[4])?;
                let sum = Sum {
                    n: row[2].int()?,
                    least,
                    greatest,
                    levels: row[5].int()? as u64,
                    extent: row[6].int()?,
                    ..NOTHING
                };
                found.push(((row[0].int()?, row[1].int()?), sum));
                Ok(Flow::More)
            };
            const COLUMNS: &str = "SELECT step, variable, n, least, greatest, levels, extent FROM series \
                                   WHERE run = $1 AND tag = $2 AND ";
            if missing.len() > FEW {
                let cells = [Cell::Int(run), Cell::Int(tag), Cell::Int(first.0), Cell::Int(last.0)];
                ground.db.query(&format!("{COLUMNS}step BETWEEN $3 AND $4"), &cells, &mut take)?;
            } else {
                for (step, variable) in &missing {
                    let cells = [Cell::Int(run), Cell::Int(tag), Cell::Int(*step), Cell::Int(*variable)];
                    ground.db.query(&format!("{COLUMNS}step = $3 AND variable = $4"), &cells, &mut take)?;
                }
            }
        }
        let of = self.of_tag(ground, run, tag)?;
        let before = of.series.len();
        for (member, sum) in found {
            of.series.entry(member).or_insert(sum);
        }
        for member in missing {
            of.series.entry(member).or_insert(NOTHING);
        }
        let more = of.series.len() - before;
        self.held += more;
        Ok(())
    }

    /// Rows of a series that was loaded.
    pub fn series_rows(&self, run: RunId, tag: TagId, member: Member) -> i64 {
        self.tags.get(&(run, tag)).and_then(|of| of.series.get(&member)).map_or(0, |sum| sum.n)
    }

    /// Adds rows to a loaded series; returns whether it was empty.
    pub fn add_rows(
        &mut self,
        ground: &mut Ground,
        run: RunId,
        tag: TagId,
        member: Member,
        delta: &Delta,
    ) -> Result<bool> {
        let of = self.of_tag(ground, run, tag)?;
        let sum = of.series.entry(member).or_insert(NOTHING);
        let new = sum.n == 0;
        sum.n += delta.n;
        sum.least = sum.least.min(delta.least);
        sum.greatest = sum.greatest.max(delta.greatest);
        sum.levels |= delta.levels;
        sum.extent = sum.extent.max(delta.extent);
        sum.dirty = true;
        let span = &mut of.span;
        span.n += delta.n;
        span.least = span.least.min(delta.least);
        span.greatest = span.greatest.max(delta.greatest);
        span.first = span.first.min(member.0);
        span.last = span.last.max(member.0);
        if of.fresh && !span.dirty {
            ground.dirty.tag(tag);
        }
        let of = self.of_tag(ground, run, tag)?;
        of.span.dirty = true;
        Ok(new)
    }

    /// Subtracts a row from its series. `alike`: rows with the same boxes replace it.
    pub fn take_row(&mut self, ground: &mut Ground, row: &AttrRow<'_>, alike: bool) -> Result<()> {
        let (run, tag, member, num) = (row.run, row.tag, (row.step, row.variable), row.num);
        self.load_series(ground, run, tag, &[member])?;
        let of = self.of_tag(ground, run, tag)?;
        let sum = of.series.entry(member).or_insert(NOTHING);
        sum.n -= 1;
        sum.dirty = true;
        let at_end = num.is_some_and(|num| num <= sum.least || num >= sum.greatest);
        sum.again |= at_end || !alike;
        of.span.n -= 1;
        of.span.dirty = true;
        of.span.again |= sum.again || sum.n == 0;
        Ok(())
    }

    /// Writes the sums that changed.
    pub fn flush(&mut self, ground: &mut Ground) -> Result<()> {
        let tags = std::mem::take(&mut self.tags);
        self.held = 0;
        for ((run, tag), of) in tags {
            let mut members: Vec<(Member, Sum)> =
                of.series.into_iter().filter(|(_, sum)| sum.dirty).collect();
            members.sort_unstable_by_key(|(member, _)| *member);
            let mut written = Vec::with_capacity(members.len() * SERIES_WIDTH);
            for (member, sum) in members {
                let sum = if sum.again && sum.n > 0 { series_again(ground, run, tag, member)? } else { sum };
                if sum.n == 0 {
                    let key = [run, tag, member.0, member.1].map(Cell::Int);
                    let sql =
                        "DELETE FROM series WHERE run = $1 AND tag = $2 AND step = $3 AND variable = $4";
                    ground.db.execute(sql, &key)?;
                    ground.dirty.step(run, member.0);
                    ground.dirty.variable(run, member.1);
                } else {
                    written.extend(series_cells(run, tag, member, &sum));
                }
            }
            ground.db.execute_many(WRITE_SERIES, SERIES_WIDTH, &written)?;
            if of.span.dirty {
                write_span(ground, run, tag, of.span)?;
            }
        }
        Ok(())
    }
}

fn series_again(ground: &mut Ground, run: RunId, tag: TagId, (step, variable): Member) -> Result<Sum> {
    let probe = Probe::Key { run, tag, steps: step..=step, variable: Some(variable), curve: None };
    let mut delta = Delta::default();
    ground.db.scan(&[probe], &mut |row| {
        delta.n += 1;
        delta.number(row.num);
        let mut rank = 0;
        for dim in region_dims(row.region) {
            rank += 1;
            let count = dim?.1;
            if row.curve != NO_CURVE {
                delta.extent = delta.extent.max(count);
            }
        }
        delta.levels |= curve::levels_of_key(row.curve, rank);
        Ok(Flow::More)
    })?;
    let Delta { n, least, greatest, levels, extent } = delta;
    Ok(Sum { n, least, greatest, levels, extent, ..NOTHING })
}

fn write_span(ground: &mut Ground, run: RunId, tag: TagId, mut span: SpanSum) -> Result<()> {
    let key = [Cell::Int(tag), Cell::Int(run)];
    if span.n == 0 {
        ground.dirty.tag(tag);
        return ground.db.execute("DELETE FROM span WHERE tag = $1 AND run = $2", &key).map(|_| ());
    }
    if span.again {
        let sql = "SELECT MIN(least), MAX(greatest), MIN(step), MAX(step) FROM series \
                   WHERE tag = $1 AND run = $2";
        ground.db.query(sql, &key, &mut |row| {
            (span.least, span.greatest) = numbers(&row[0], &row[1])?;
            (span.first, span.last) = (row[2].int()?, row[3].int()?);
            Ok(Flow::Stop)
        })?;
    }
    let [tag, run] = key;
    let [least, greatest] = ends(span.least, span.greatest);
    let cells = [tag, run, Cell::Int(span.n), least, greatest, Cell::Int(span.first), Cell::Int(span.last)];
    let sql = "INSERT INTO span (tag, run, n, least, greatest, first, last) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (tag, run) DO UPDATE SET \
               n = excluded.n, least = excluded.least, greatest = excluded.greatest, \
               first = excluded.first, last = excluded.last";
    ground.db.execute(sql, &cells).map(|_| ())
}

const SERIES_WIDTH: usize = 9;
const WRITE_SERIES: &str = "INSERT INTO series (run, tag, step, variable, n, least, greatest, levels, extent) \
                            VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                            ON CONFLICT (run, tag, step, variable) DO UPDATE SET n = excluded.n, \
                            least = excluded.least, greatest = excluded.greatest, levels = excluded.levels, \
                            extent = excluded.extent";

fn series_cells(
    run: RunId,
    tag: TagId,
    (step, variable): Member,
    sum: &Sum,
) -> [Cell<'static>; SERIES_WIDTH] {
    let [run, tag, step, variable] = [run, tag, step, variable].map(Cell::Int);
    let [least, greatest] = ends(sum.least, sum.greatest);
    let (n, levels) = (Cell::Int(sum.n), Cell::Int(sum.levels as i64));
    [run, tag, step, variable, n, least, greatest, levels, Cell::Int(sum.extent)]
}
