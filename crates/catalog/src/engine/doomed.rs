//! Deletion of attribute rows: finds them by their batches, deletes them, and subtracts them from their sums.

use std::collections::BTreeSet;

use fieldstone_core::Result;

use super::ground::Ground;
use super::order::UserAt;
use super::summary::Sums;
use super::{AttrRow, Cell, Flow, Probe, RunId, TagId, VariableId};

/// Key of a row of attr, its number, and its box if needed.
pub(super) struct Doomed {
    step: i64,
    variable: VariableId,
    curve: i64,
    pub batch: i64,
    pub row: i64,
    num: Option<f64>,
    kind: fieldstone_core::value::ValueType,
    region: Vec<u8>,
}

impl Doomed {
    pub fn of(row: &AttrRow<'_>) -> Doomed {
        let AttrRow { step, variable, curve, batch, row: number, num, kind, region, .. } = *row;
        Doomed { step, variable, curve, batch, row: number, num, kind, region: region.to_vec() }
    }

    pub fn row(&self, run: RunId, tag: TagId) -> AttrRow<'_> {
        AttrRow {
            run,
            tag,
            step: self.step,
            variable: self.variable,
            curve: self.curve,
            batch: self.batch,
            row: self.row,
            kind: self.kind,
            num: self.num,
            payload: Cell::Null,
            region: &self.region,
        }
    }
}

/// The existing rows of some batches.
pub(super) fn rows_of_batches(
    ground: &mut Ground,
    run: RunId,
    tag: TagId,
    steps: std::ops::RangeInclusive<i64>,
    wanted: &dyn Fn(i64, i64) -> bool,
) -> Result<Vec<Doomed>> {
    let mut doomed = Vec::new();
    let probe = Probe::Key { run, tag, steps, variable: None, curve: None };
    ground.db.scan(&[probe], &mut |row| {
        if wanted(row.batch, row.row) {
            doomed.push(Doomed::of(row));
        }
        Ok(Flow::More)
    })?;
    Ok(doomed)
}

/// Batches that have rows of a tag in a run, with their users.
pub(super) fn batches_of(ground: &mut Ground, run: RunId, tag: TagId) -> Result<Vec<(i64, UserAt)>> {
    let mut batches = BTreeSet::new();
    let steps = i64::MIN..=i64::MAX;
    let probe = Probe::Key { run, tag, steps, variable: None, curve: None };
    ground.db.scan(&[probe], &mut |row| {
        batches.insert(row.batch);
        Ok(Flow::More)
    })?;
    let mut found = Vec::with_capacity(batches.len());
    for batch in batches {
        found.push((batch, ground.batch(batch)?.by()));
    }
    Ok(found)
}

/// Deletes one row and subtracts it from its sums.
pub(super) fn delete_row(ground: &mut Ground, sums: &mut Sums, row: &AttrRow<'_>, alike: bool) -> Result<()> {
    sums.take_row(ground, row, alike)?;
    let cells = [row.run, row.tag, row.step, row.variable, row.curve, row.batch, row.row].map(Cell::Int);
    let sql = "DELETE FROM attr WHERE run = $1 AND tag = $2 AND step = $3 AND variable = $4 \
               AND curve = $5 AND batch = $6 AND row = $7";
    ground.db.execute(sql, &cells).map(|_| ())
}

pub(super) fn delete_rows(
    ground: &mut Ground,
    sums: &mut Sums,
    run: RunId,
    tag: TagId,
    rows: &[Doomed],
    leave: bool,
) -> Result<()> {
    for row in rows {
        if leave {
            let key = (run, tag, row.step, row.variable, row.curve);
            leave_tombstone(ground, key, row.batch, row.row, &row.region)?;
        }
        delete_row(ground, sums, &row.row(run, tag), false)?;
    }
    Ok(())
}

/// Records the place of a deleted row and its order, so that older rows that arrive later stay hidden.
pub(super) fn leave_tombstone(
    ground: &mut Ground,
    (run, tag, step, variable, curve): (RunId, TagId, i64, i64, i64),
    batch: i64,
    row: i64,
    region: &[u8],
) -> Result<()> {
    let [run, tag, step, variable, curve, batch, row] =
        [run, tag, step, variable, curve, batch, row].map(Cell::Int);
    let cells = [run, tag, step, variable, curve, batch, row, Cell::Bytes(region)];
    let sql = "INSERT INTO tombstone_cell (run, tag, step, variable, curve, batch, row, region) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING";
    ground.db.execute(sql, &cells).map(|_| ())
}
