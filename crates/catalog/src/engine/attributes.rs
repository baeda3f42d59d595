//! Attributes of one record: their rows, the rows that they replace, and deletions that came before them.
//!
//! An attribute's *cell* is its run, tag, step, variable, box and the user who wrote it. Of the calls that
//! wrote to a cell, the newest counts; all rows of one call stay. A row that arrives late with an older place
//! is dropped.

use std::collections::{HashMap, HashSet};

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{AttributeBatch, Values};

use super::doomed::{Doomed, delete_row, leave_tombstone};
use super::ground::{Batch, Tombstone};
use super::kinds::{RUN, STEP, TAG, VARIABLE};
use super::order::{EntrySource, User, UserAt};
use super::stored::{Stored, encode_cells, encode_keywords, encode_region};
use super::summary::{Delta, Member};
use super::workspace::Workspace;
use super::{AttrRow, Cell, Flow, NO_CURVE, NO_STEP, NO_VARIABLE, Probe, RunId, TagId, curve};

/// A row to insert.
#[derive(Debug, Clone, Copy)]
struct Line {
    step: i64,
    variable: i64,
    curve: i64,
    row: u32,
    /// The position of its box in the buffer of boxes.
    region: (u32, u32),
    /// The greatest extent of the box.
    extent: i64,
}

impl Line {
    fn member(&self) -> Member {
        (self.step, self.variable)
    }

    fn region<'a>(&self, regions: &'a [u8]) -> &'a [u8] {
        &regions[self.region.0 as usize..self.region.1 as usize]
    }
}

type Cells<'a> = HashMap<(i64, i64, &'a [u8]), usize>;

/// Applies one record of attributes.
pub(super) fn apply_attributes(
    work: &mut Workspace,
    source: EntrySource,
    bit: u32,
    batch: &AttributeBatch,
    erased: &[u32],
) -> Result<()> {
    if batch.rows == 0 {
        return Ok(());
    }
    let values = if batch.one_value { 1 } else { batch.rows };
    if batch.values.len() < values || batch.rows > u32::MAX as usize {
        return Err(Error::corrupt(format!(
            "a record of attributes '{}' of run '{}' has {} values for {} rows",
            batch.tag.name,
            batch.run.name,
            batch.values.len(),
            batch.rows
        )));
    }
    let run = work.ground.run(&batch.run)?;
    let tag = work.ground.tag(&batch.tag)?;
    // Rows of one call may be spread over several records, which share the place of the first.
    let call = if batch.singles { source.record } else { source.call };
    let (place, user) = (source.place(call, 0), source.user);
    let info = Batch { place, singles: batch.singles, txn: source.txn, user };
    if !work.owners.may_annotate(&mut work.ground, run, source.by())? {
        return Ok(());
    }
    let (mut lines, regions) = lines(work, batch)?;
    let (first, last) =
        lines.iter().fold((i64::MAX, i64::MIN), |(a, b), line| (a.min(line.step), b.max(line.step)));
    keep_living(work, run, tag, info, &mut lines)?;
    if batch.singles {
        newest(&mut lines, &regions);
    }
    let members = members(&lines);
    work.sums.load_series(&mut work.ground, run, tag, &members)?;
    let mut deleted_rows = deleted_rows(work, source, run)?;
    // They go on hiding what they replaced (R36).
    deleted_rows.extend(erased.iter().map(|row| i64::from(*row)));
    correct(work, run, tag, info, &mut lines, &regions, &deleted_rows)?;
    let number = work.ground.next("batch", "SELECT MAX(batch) FROM batch")?;
    work.ground.names.keep_batch(number, info);
    write_batch(work, number, source, call, bit, batch.singles, (run, tag, first, last))?;
    if !deleted_rows.is_empty() {
        for line in lines.iter().filter(|line| deleted_rows.contains(&i64::from(line.row))) {
            let key = (run, tag, line.step, line.variable, line.curve);
            leave_tombstone(&mut work.ground, key, number, line.row.into(), line.region(&regions))?;
            work.ground.not_revertible(source.txn)?;
        }
        lines.retain(|line| !deleted_rows.contains(&i64::from(line.row)));
    }
    sum_lines(work, run, tag, batch, &lines)?;
    insert_lines(work, (run, tag, number), batch, &lines, &regions)?;
    work.attributes += lines.len() as u64;
    Ok(())
}

/// A line for each row, in key order, and the boxes that the lines refer to.
fn lines(work: &mut Workspace, batch: &AttributeBatch) -> Result<(Vec<Line>, Vec<u8>)> {
    let mut variables = Vec::with_capacity(batch.variables.len());
    for variable in &batch.variables {
        variables.push(work.ground.variable(variable)?);
    }
    let mut regions = Vec::with_capacity(batch.boxes.as_ref().map_or(0, |b| b.start.len() * 4));
    let mut lines: Vec<Line> = Vec::with_capacity(batch.rows);
    // Rows with the same box share its bytes: a million rows on one box store it once.
    let shared = batch.boxes.as_ref().is_none_or(|boxes| boxes.start.len() == boxes.rank)
        && batch.keywords.iter().all(|column| column.values.len() == 1);
    for row in 0..batch.rows {
        let (region, curve, extent) = match lines.first() {
            Some(line) if shared => (line.region, line.curve, line.extent),
            _ => {
                let from = regions.len();
                let (mut curve, mut extent) = (NO_CURVE, 0);
                if let Some((start, count)) = batch.box_of(row) {
                    encode_region(start, count, &mut regions);
                    extent = count.iter().copied().max().unwrap_or(0);
                    curve = curve::key(start, count);
                }
                let keywords: Vec<_> = batch.keywords_of(row).collect();
                encode_keywords(keywords.into_iter(), from, &mut regions);
                if let Some((dim, cells)) = batch.boxes.as_ref().and_then(|boxes| boxes.cells(row)) {
                    encode_cells(dim, cells, &mut regions);
                }
                ((from as u32, regions.len() as u32), curve, extent)
            }
        };
        lines.push(Line {
            step: batch.step_of(row).unwrap_or(NO_STEP),
            variable: batch.variable_index(row).map_or(NO_VARIABLE, |index| variables[index]),
            curve,
            row: row as u32,
            region,
            extent,
        });
    }
    let key = |line: &Line| (line.step, line.variable, line.curve, line.row);
    if !lines.is_sorted_by_key(key) {
        lines.sort_unstable_by_key(key);
    }
    // Key order makes the rows of a series adjacent, and lets the database append them.
    Ok((lines, regions))
}

/// Drops lines that a newer deletion of a whole run, step, variable or tag covers.
fn keep_living(
    work: &mut Workspace,
    run: RunId,
    tag: TagId,
    info: Batch,
    lines: &mut Vec<Line>,
) -> Result<()> {
    if work.ground.names.tombstones.is_empty() {
        return Ok(());
    }
    let mut not_revertible = HashSet::new();
    // Which users other than the writer may delete these lines.
    let mut takers: HashMap<(User, u64), bool> = HashMap::new();
    if work.owners.has_users() {
        let mut users = HashSet::new();
        for line in lines.iter() {
            let met = tombstones_over(run, tag, line)
                .into_iter()
                .filter_map(|key| work.ground.names.tombstones.get(&key));
            users.extend(met.flatten().map(|tombstone| (tombstone.user, work.owners.era(tombstone.by()))));
        }
        for (user, stamp) in users {
            let takes = work.owners.takes(&mut work.ground, run, UserAt { user, stamp }, info.by())?;
            takers.insert((user, stamp), takes);
        }
    }
    let (tombstones, owners) = (&work.ground.names.tombstones, &work.owners);
    let takes = |tombstone: &&Tombstone| match takers.get(&(tombstone.user, owners.era(tombstone.by()))) {
        Some(takes) => *takes,
        None => tombstone.user == info.user,
    };
    lines.retain(|line| {
        let place = info.place(line.row.into());
        let all =
            tombstones_over(run, tag, line).into_iter().filter_map(|key| tombstones.get(&key)).flatten();
        // Only an order decides, not arrival: a deletion that was read first also hides rows that come later.
        let newer = all.filter(takes).find(|tombstone| tombstone.place > place);
        not_revertible.extend(newer.map(|tombstone| tombstone.txn));
        newer.is_none()
    });
    // The deletion hid a row: neither side can be undone row by row any more.
    if !not_revertible.is_empty() {
        work.ground.not_revertible(info.txn)?;
    }
    not_revertible.into_iter().try_for_each(|txn| work.ground.not_revertible(txn))
}

/// Rows of this record that were deleted individually.
fn deleted_rows(work: &mut Workspace, source: EntrySource, run: RunId) -> Result<HashSet<i64>> {
    let found = work.ground.deleted_rows((source.log, source.sequence, source.record))?;
    let mut rows = HashSet::new();
    for (row, by) in found {
        if work.owners.takes(&mut work.ground, run, by, source.by())? {
            rows.insert(row);
        }
    }
    Ok(rows)
}

/// Deletes rows that the lines replace, and drops lines that existing rows replace.
fn correct(
    work: &mut Workspace,
    run: RunId,
    tag: TagId,
    info: Batch,
    lines: &mut Vec<Line>,
    regions: &[u8],
    deleted_rows: &HashSet<i64>,
) -> Result<()> {
    let (probes, cells) = probes(work, run, tag, lines, regions);
    let mut met = Vec::new();
    if !probes.is_empty() {
        work.ground.db.scan(&probes, &mut |row| {
            if let Some(&line) = cells.get(&(row.step, row.variable, row.region)) {
                met.push((Doomed::of(&AttrRow { region: &[], ..*row }), line));
            }
            Ok(Flow::More)
        })?;
    }
    let mut hidden = vec![false; lines.len()];
    for (met, at) in &met {
        let (line, theirs) = (lines[*at], work.ground.batch(met.batch)?);
        let (ours, its) = (info.place(line.row.into()), theirs.place(met.row));
        // A user replaces only rows of that user.
        // Equal places belong to one call, whose rows all stay.
        let (older, newer) = if ours > its { (theirs.by(), info.by()) } else { (info.by(), theirs.by()) };
        if ours == its || !work.owners.is_his(newer, older) {
            continue;
        }
        work.ground.not_revertible(info.txn)?;
        work.ground.not_revertible(theirs.txn)?;
        if ours > its {
            // If the new row was deleted itself, nothing takes the place of the old one in the sums.
            let alike = !deleted_rows.contains(&line.row.into());
            delete_row(&mut work.ground, &mut work.sums, &met.row(run, tag), alike)?;
        } else {
            hidden[*at] = true;
        }
    }
    hidden_by_tombstones(work, run, tag, info, lines, regions, &mut hidden)?;
    if hidden.contains(&true) {
        // Lines on one cell are kept or dropped together.
        let gone: HashSet<(i64, i64, &[u8])> = (lines.iter().zip(&hidden).filter(|(_, hidden)| **hidden))
            .map(|(line, _)| (line.step, line.variable, line.region(regions)))
            .collect();
        lines.retain(|line| !gone.contains(&(line.step, line.variable, line.region(regions))));
    }
    Ok(())
}

/// The probes that find every row on the cell of a line, and a line for each cell. Series that were empty
/// cost nothing.
fn probes<'a>(
    work: &Workspace,
    run: RunId,
    tag: TagId,
    lines: &[Line],
    regions: &'a [u8],
) -> (Vec<Probe>, Cells<'a>) {
    let (mut probes, mut cells) = (Vec::new(), Cells::new());
    let mut at = 0;
    for group in lines.chunk_by(|a, b| a.member() == b.member()) {
        let from = at;
        at += group.len();
        let (step, variable) = group[0].member();
        // A series without rows cannot hold anything to replace; this is the case in a first write.
        let n = work.sums.series_rows(run, tag, (step, variable));
        if n == 0 {
            continue;
        }
        for (i, line) in group.iter().enumerate() {
            cells.entry((step, variable, line.region(regions))).or_insert(from + i);
        }
        let key = |curve| Probe::Key { run, tag, steps: step..=step, variable: Some(variable), curve };
        // Reading the whole series costs less than a probe for each curve key once many rows are new.
        if group.len() as i64 * 4 >= n {
            probes.push(key(None));
        } else {
            let curves = group.chunk_by(|a, b| a.curve == b.curve).map(|same| same[0].curve);
            probes.extend(curves.map(|curve| key(Some(curve..=curve))));
        }
    }
    (probes, cells)
}

/// Marks lines that are older than a deleted row of the same cell.
fn hidden_by_tombstones(
    work: &mut Workspace,
    run: RunId,
    tag: TagId,
    info: Batch,
    lines: &[Line],
    regions: &[u8],
    hidden: &mut [bool],
) -> Result<()> {
    let (Some(first), Some(last)) = (lines.first(), lines.last()) else { return Ok(()) };
    let cells = [Cell::Int(run), Cell::Int(tag), Cell::Int(first.step), Cell::Int(last.step)];
    let sql = "SELECT step, variable, region, batch, row FROM tombstone_cell \
               WHERE run = $1 AND tag = $2 AND step BETWEEN $3 AND $4";
    let found = work.ground.db.all(sql, &cells, |row| {
        let cell = (row[0].int()?, row[1].int()?, row[2].bytes()?.to_vec());
        Ok((cell, row[3].int()?, row[4].int()?))
    })?;
    if found.is_empty() {
        return Ok(());
    }
    let mut cells = Cells::new();
    for (i, line) in lines.iter().enumerate() {
        // Of several lines on one cell any one will do, because they are dropped together.
        cells.entry((line.step, line.variable, line.region(regions))).or_insert(i);
    }
    for ((step, variable, region), batch, row) in found {
        let Some(&line) = cells.get(&(step, variable, region.as_slice())) else { continue };
        let theirs = work.ground.batch(batch)?;
        if theirs.place(row) > info.place(lines[line].row.into())
            && work.owners.is_his(theirs.by(), info.by())
        {
            hidden[line] = true;
            work.ground.not_revertible(info.txn)?;
            work.ground.not_revertible(theirs.txn)?;
        }
    }
    Ok(())
}

fn write_batch(
    work: &mut Workspace,
    number: i64,
    source: EntrySource,
    call: i64,
    bit: u32,
    singles: bool,
    (run, tag, first, last): (RunId, TagId, i64, i64),
) -> Result<()> {
    let cells = [
        number,
        source.log,
        source.sequence as i64,
        source.record,
        call,
        singles.into(),
        source.order.0 as i64,
        source.decider,
        source.own as i64,
        source.txn,
        bit.into(),
        run,
        tag,
        first,
        last,
    ]
    .map(Cell::Int);
    let sql = "INSERT INTO batch (batch, log, sequence, record, call, singles, stamp, decider, own, txn, \
               bit, run, tag, first, last) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";
    work.ground.db.execute(sql, &cells).map(|_| ())
}

fn sum_lines(
    work: &mut Workspace,
    run: RunId,
    tag: TagId,
    batch: &AttributeBatch,
    lines: &[Line],
) -> Result<()> {
    for group in lines.chunk_by(|a, b| a.member() == b.member()) {
        let mut delta = Delta { n: group.len() as i64, ..Delta::default() };
        for line in group {
            delta.number(number(batch, line.row as usize));
            let rank = batch.boxes.as_ref().map_or(0, |boxes| boxes.rank);
            delta.levels |= curve::levels_of_key(line.curve, rank);
            if line.curve != NO_CURVE {
                delta.extent = delta.extent.max(line.extent);
            }
        }
        let member = group[0].member();
        // The series was empty: its step and variable may need a row.
        if work.sums.add_rows(&mut work.ground, run, tag, member, &delta)? {
            work.ground.dirty.used_step(run, member.0);
            work.ground.dirty.used_variable(run, member.1);
        }
    }
    Ok(())
}

fn insert_lines(
    work: &mut Workspace,
    (run, tag, number): (RunId, TagId, i64),
    batch: &AttributeBatch,
    lines: &[Line],
    regions: &[u8],
) -> Result<()> {
    let kind = batch.tag.kind;
    // Values without a column of their own need memory for their bytes.
    let any: &[Value] = if let Values::Any(values) = &batch.values { values } else { &[] };
    let mut buffers = vec![Vec::new(); any.len()];
    let any: Vec<Stored<'_>> =
        any.iter().zip(&mut buffers).map(|(value, buffer)| Stored::value(value, buffer)).collect();
    let stored = |row: u32| {
        let at = if batch.one_value { 0 } else { row as usize };
        match &batch.values {
            Values::Bool(values) => Stored::bool(values[at]),
            Values::Int(values) => Stored::int(values[at], kind),
            Values::UInt(values) => Stored::uint(values[at]),
            Values::Float(values) => Stored::float(values[at]),
            Values::Text(values) => Stored::text(&values[at]),
            Values::Any(_) => any[at],
        }
    };
    let mut rows = lines.iter().map(|line| {
        let Stored { kind, num, payload } = stored(line.row);
        AttrRow {
            run,
            tag,
            step: line.step,
            variable: line.variable,
            curve: line.curve,
            batch: number,
            row: line.row.into(),
            kind,
            num,
            payload,
            region: line.region(regions),
        }
    });
    work.ground.db.insert_attrs(&mut rows).map(|_| ())
}

/// The places of tombstones that may cover a line.
fn tombstones_over(run: RunId, tag: TagId, line: &Line) -> [(i64, i64, i64); 4] {
    [(RUN, run, 0), (STEP, run, line.step), (VARIABLE, run, line.variable), (TAG, 0, tag)]
}

/// The number by which a row's value is ordered.
fn number(batch: &AttributeBatch, row: usize) -> Option<f64> {
    let at = if batch.one_value { 0 } else { row };
    match &batch.values {
        Values::Bool(_) | Values::Text(_) => None,
        Values::Int(values) => Some(values[at] as f64),
        Values::UInt(values) => Some(values[at] as f64),
        Values::Float(values) => Some(values[at]).filter(|value| !value.is_nan()),
        Values::Any(values) => Stored::value(&values[at], &mut Vec::new()).num,
    }
}

/// Keeps the last of several lines on one cell, if each is a call of its own.
fn newest(lines: &mut Vec<Line>, regions: &[u8]) {
    let mut last: HashMap<(i64, i64, &[u8]), u32> = HashMap::with_capacity(lines.len());
    for line in lines.iter() {
        let row = last.entry((line.step, line.variable, line.region(regions))).or_insert(line.row);
        *row = line.row.max(*row);
    }
    lines.retain(|line| last.get(&(line.step, line.variable, line.region(regions))) == Some(&line.row));
}

fn members(lines: &[Line]) -> Vec<Member> {
    lines.chunk_by(|a, b| a.member() == b.member()).map(|group| group[0].member()).collect()
}
