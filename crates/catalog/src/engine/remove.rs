//! Deletions. A run, step, variable or tag takes with it all that stands below it and is older, of what the
//! user who deletes it wrote, and where he owns the run of what others wrote there, too; a tombstone stays for what arrives later and is older. Attributes that are deleted one by one are named by where
//! they were written; what they had replaced stays hidden. Declarations can be deleted so, too: nothing else goes with them.

use std::collections::{BTreeMap, HashMap, HashSet};

use fieldstone_core::Result;
use fieldstone_format::catalog::{AttributeId, Removal};

use super::index::Index;
use super::names::Tombstone;
use super::order::{EntrySource, OrderKey};
use super::owners::User;
use super::{AttrRow, Cell, Flow, Probe, RunId, TagId, VariableId};

/// Kinds of declarations and of what is deleted as a whole.
pub(super) const RUN: i64 = 1;
pub(super) const STEP: i64 = 2;
pub(super) const VARIABLE: i64 = 3;
pub(super) const TAG: i64 = 4;
pub(super) const GROUP: i64 = 5;
pub(super) const IMPORT: i64 = 6;
pub(super) const MESH: i64 = 7;
pub(super) const HISTORY: i64 = 8;
pub(super) const MOVED: i64 = 9;
/// How a run goes.
pub(super) const STATE: i64 = 10;

/// Whether a declaration of a kind can be deleted alone, by where it was written.
pub(super) fn goes_alone(kind: i64) -> bool {
    [RUN, STEP, VARIABLE, MOVED, STATE].contains(&kind)
}

/// Whether declarations of a kind belong to a run; others are the store's.
pub(super) fn of_run(kind: i64) -> bool {
    ![TAG, MESH, HISTORY].contains(&kind)
}

/// Key of a row of attr, its number, and its box where that is needed.
pub(super) struct Doomed {
    step: i64,
    variable: VariableId,
    curve: i64,
    batch: i64,
    row: i64,
    num: Option<f64>,
    kind: fieldstone_core::value::ValueType,
    region: Vec<u8>,
}

impl Doomed {
    fn of(row: &AttrRow<'_>) -> Doomed {
        let AttrRow { step, variable, curve, batch, row: number, num, kind, region, .. } = *row;
        Doomed { step, variable, curve, batch, row: number, num, kind, region: region.to_vec() }
    }

    fn row(&self, run: RunId, tag: TagId) -> AttrRow<'_> {
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

impl Index {
    /// Applies one record of deletions.
    pub(super) fn apply_removals(&mut self, source: EntrySource, removals: &[Removal]) -> Result<()> {
        // What a transaction has deleted comes back only by replay.
        self.names.not_revertible(&mut *self.db, source.txn)?;
        for (i, removal) in removals.iter().enumerate() {
            let (place, user) = (source.place(source.record, i as i64), source.user);
            match removal {
                Removal::Run(run) => {
                    let run = self.names.run(&mut *self.db, run)?;
                    self.act(run, user)?;
                    self.dig(source, place, (RUN, run, 0))?;
                    for tag in self.tags_within(run)? {
                        self.kill(run, tag, i64::MIN..=i64::MAX, None, (place, user))?;
                    }
                }
                Removal::Step(run, step) => {
                    let run = self.names.run(&mut *self.db, run)?;
                    self.act(run, user)?;
                    self.dig(source, place, (STEP, run, *step))?;
                    for tag in self.tags_within(run)? {
                        self.kill(run, tag, *step..=*step, None, (place, user))?;
                    }
                }
                Removal::Variable(run, variable) => {
                    let run = self.names.run(&mut *self.db, run)?;
                    self.act(run, user)?;
                    let variable = self.names.variable(&mut *self.db, variable)?;
                    self.dig(source, place, (VARIABLE, run, variable))?;
                    for tag in self.tags_within(run)? {
                        self.kill(run, tag, i64::MIN..=i64::MAX, Some(variable), (place, user))?;
                    }
                }
                Removal::Tag(tag) => {
                    let tag = self.names.tag(&mut *self.db, tag)?;
                    self.dig(source, place, (TAG, 0, tag))?;
                    self.flush_sums()?;
                    let mut runs = Vec::new();
                    self.db.query("SELECT run FROM span WHERE tag = $1", &[Cell::Int(tag)], &mut |row| {
                        runs.push(row[0].int()?);
                        Ok(Flow::More)
                    })?;
                    for run in runs {
                        self.kill(run, tag, i64::MIN..=i64::MAX, None, (place, user))?;
                    }
                }
                Removal::Attributes(ids) => self.remove_ids(source, ids)?,
            }
        }
        Ok(())
    }

    fn tags_within(&mut self, run: RunId) -> Result<Vec<TagId>> {
        self.flush_sums()?;
        self.tags_of(run)
    }

    /// Leaves a tombstone, and deletes declarations below it that are older.
    fn dig(
        &mut self,
        source: EntrySource,
        place: OrderKey,
        (kind, run, item): (i64, i64, i64),
    ) -> Result<()> {
        let cells = [
            kind,
            run,
            item,
            source.log,
            source.sequence as i64,
            source.record,
            place.row,
            source.order.0 as i64,
            source.decider,
            source.own as i64,
            source.txn,
        ]
        .map(Cell::Int);
        let sql = "INSERT INTO tombstone (kind, run, item, log, sequence, record, place, stamp, decider, own, txn) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";
        self.db.execute(sql, &cells)?;
        self.names.tombstones.entry((kind, run, item)).or_default().push(Tombstone {
            place,
            txn: source.txn,
            user: source.user,
        });
        let below: &[i64] = if kind == RUN {
            &[RUN, STEP, VARIABLE, GROUP, IMPORT, MOVED, STATE]
        } else {
            std::slice::from_ref(&kind)
        };
        for &kind in below {
            let mut older: Vec<([i64; 7], i64, User)> = Vec::new();
            let (names, which) = (&self.names, if below.len() > 1 { "" } else { " AND item = $3" });
            let sql = format!(
                "SELECT stamp, decider, own, log, sequence, record, place, item, txn FROM decl \
                 WHERE kind = $1 AND run = $2{which}"
            );
            let cells = [kind, run, item].map(Cell::Int);
            let cells = if below.len() > 1 { &cells[..2] } else { &cells[..] };
            self.db.query(&sql, cells, &mut |row| {
                if names.place(&row[..7])? < place {
                    let key = [
                        kind,
                        run,
                        row[7].int()?,
                        row[3].int()?,
                        row[4].int()?,
                        row[5].int()?,
                        row[6].int()?,
                    ];
                    older.push((key, row[8].int()?, names.user(row[3].int()?)));
                }
                Ok(Flow::More)
            })?;
            for (key, txn, user) in older {
                if !self.takes(run, source.user, user)? {
                    continue;
                }
                self.names.not_revertible(&mut *self.db, txn)?;
                let sql = "DELETE FROM decl WHERE kind = $1 AND run = $2 AND item = $3 AND log = $4 \
                           AND sequence = $5 AND record = $6 AND place = $7";
                self.db.execute(sql, &key.map(Cell::Int))?;
                self.dirty.declaration(kind, run, key[2]);
            }
        }
        Ok(())
    }

    /// Deletes attributes within steps (and of one variable) that are older than `place`, as `user` may.
    fn kill(
        &mut self,
        run: RunId,
        tag: TagId,
        steps: std::ops::RangeInclusive<i64>,
        variable: Option<VariableId>,
        (place, user): (OrderKey, User),
    ) -> Result<()> {
        let mut probes = vec![Probe::Key { run, tag, steps: steps.clone(), variable: None, curve: None }];
        if let Some(variable) = variable {
            probes.clear();
            let sql = "SELECT step FROM series WHERE run = $1 AND tag = $2 AND variable = $3";
            self.db.query(sql, &[run, tag, variable].map(Cell::Int), &mut |row| {
                let step = row[0].int()?;
                let steps = step..=step;
                probes.push(Probe::Key { run, tag, steps, variable: Some(variable), curve: None });
                Ok(Flow::More)
            })?;
        }
        let mut found = Vec::new();
        self.db.scan(&probes, &mut |row| {
            found.push(Doomed::of(row));
            Ok(Flow::More)
        })?;
        for row in found {
            let info = self.names.batch(&mut *self.db, row.batch)?;
            if info.place(row.row) < place && self.takes(run, user, info.user)? {
                self.names.not_revertible(&mut *self.db, info.txn)?;
                self.delete_row(&row.row(run, tag), false)?;
            }
        }
        Ok(())
    }

    /// Deletes declarations of one record.
    fn remove_declarations(
        &mut self,
        source: EntrySource,
        (log, sequence, record): (i64, i64, i64),
        rows: &HashSet<i64>,
    ) -> Result<()> {
        let mut found: Vec<[i64; 5]> = Vec::new();
        let sql =
            "SELECT kind, run, item, place, txn FROM decl WHERE log = $1 AND sequence = $2 AND record = $3";
        self.db.query(sql, &[log, sequence, record].map(Cell::Int), &mut |row| {
            let place = row[3].int()?;
            if goes_alone(row[0].int()?) && rows.contains(&place) {
                found.push([row[0].int()?, row[1].int()?, row[2].int()?, place, row[4].int()?]);
            }
            Ok(Flow::More)
        })?;
        let writer = self.names.user(log);
        for [kind, run, item, place, txn] in found {
            if !self.takes(run, source.user, writer)? {
                continue;
            }
            self.names.not_revertible(&mut *self.db, txn)?;
            let sql = "DELETE FROM decl WHERE kind = $1 AND run = $2 AND item = $3 AND log = $4 \
                       AND sequence = $5 AND record = $6 AND place = $7";
            self.db.execute(sql, &[kind, run, item, log, sequence, record, place].map(Cell::Int))?;
            self.dirty.declaration(kind, run, item);
        }
        Ok(())
    }

    /// Deletes attributes and declarations one by one.
    fn remove_ids(&mut self, source: EntrySource, ids: &[AttributeId]) -> Result<()> {
        let mut of_record: BTreeMap<(i64, u64, u32), HashSet<i64>> = BTreeMap::new();
        self.deleted_alone = None;
        for id in ids {
            // Without a log: an attribute of the commit that deletes it.
            let (log, sequence) = match id.writer {
                None => (source.log, source.sequence),
                Some(writer) => (self.names.log(&mut *self.db, writer)?, id.sequence),
            };
            of_record.entry((log, sequence, id.record)).or_default().insert(id.row.into());
        }
        // Rows of one run and tag are looked for once, however many records wrote them.
        let mut of_tag = BTreeMap::new();
        for ((log, sequence, record), rows) in of_record {
            let (log, sequence, record) = (log, sequence as i64, i64::from(record));
            for row in &rows {
                let cells = [log, sequence, record, *row, source.user, source.txn].map(Cell::Int);
                let sql = "INSERT INTO tombstone_row (log, sequence, record, row, uid, txn) \
                           VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
                self.db.execute(sql, &cells)?;
            }
            let sql = "SELECT batch, run, tag, first, last, txn FROM batch \
                       WHERE log = $1 AND sequence = $2 AND record = $3";
            let mut found = None;
            self.db.query(sql, &[log, sequence, record].map(Cell::Int), &mut |row| {
                found = Some([0, 1, 2, 3, 4, 5].map(|i| row[i].int()));
                Ok(Flow::Stop)
            })?;
            let Some([batch, run, tag, first, last, txn]) = found else {
                self.remove_declarations(source, (log, sequence, record), &rows)?;
                continue;
            };
            let (run, writer) = (run?, self.names.user(log));
            if !self.takes(run, source.user, writer)? {
                continue;
            }
            self.names.not_revertible(&mut *self.db, txn?)?;
            let wanted = of_tag.entry((run, tag?)).or_insert((i64::MAX, i64::MIN, HashMap::new()));
            (wanted.0, wanted.1) = (wanted.0.min(first?), wanted.1.max(last?));
            wanted.2.insert(batch?, rows);
        }
        for ((run, tag), (first, last, wanted)) in of_tag {
            let doomed = self.rows_of_batches(run, tag, first..=last, &|batch, row| {
                wanted.get(&batch).is_some_and(|rows| rows.contains(&row))
            })?;
            self.delete_rows(run, tag, &doomed, true)?;
        }
        Ok(())
    }

    /// Rows of some batches that are there.
    pub(super) fn rows_of_batches(
        &mut self,
        run: RunId,
        tag: TagId,
        steps: std::ops::RangeInclusive<i64>,
        wanted: &dyn Fn(i64, i64) -> bool,
    ) -> Result<Vec<Doomed>> {
        let mut doomed = Vec::new();
        let probe = Probe::Key { run, tag, steps, variable: None, curve: None };
        self.db.scan(&[probe], &mut |row| {
            if wanted(row.batch, row.row) {
                doomed.push(Doomed::of(row));
            }
            Ok(Flow::More)
        })?;
        Ok(doomed)
    }

    pub(super) fn delete_rows(
        &mut self,
        run: RunId,
        tag: TagId,
        rows: &[Doomed],
        leave_tombstone: bool,
    ) -> Result<()> {
        for row in rows {
            if leave_tombstone {
                let key = (run, tag, row.step, row.variable, row.curve);
                self.leave_tombstone(key, row.batch, row.row, &row.region)?;
            }
            self.delete_row(&row.row(run, tag), false)?;
        }
        Ok(())
    }

    /// Takes back what a record of a transaction said. Only for transactions that are not not_revertible.
    pub(super) fn undo(&mut self, log: i64, sequence: i64, record: i64, txn: i64) -> Result<()> {
        let source = [log, sequence, record].map(Cell::Int);
        let mut batch = None;
        let sql = "SELECT batch, run, tag, first, last FROM batch \
                   WHERE log = $1 AND sequence = $2 AND record = $3";
        self.db.query(sql, &source, &mut |row| {
            batch = Some([0, 1, 2, 3, 4].map(|i| row[i].int()));
            Ok(Flow::Stop)
        })?;
        if let Some([batch, run, tag, first, last]) = batch {
            let batch = batch?;
            let (run, tag) = (run?, tag?);
            let rows = self.rows_of_batches(run, tag, first?..=last?, &|of, _| of == batch)?;
            self.delete_rows(run, tag, &rows, false)?;
            self.db.execute("DELETE FROM batch WHERE batch = $1", &[Cell::Int(batch)])?;
        }
        let mut declared = Vec::new();
        let sql =
            "SELECT kind, run, item FROM decl WHERE txn = $1 AND log = $2 AND sequence = $3 AND record = $4";
        self.db.query(sql, &[txn, log, sequence, record].map(Cell::Int), &mut |row| {
            declared.push((row[0].int()?, row[1].int()?, row[2].int()?));
            Ok(Flow::More)
        })?;
        for (kind, run, item) in declared {
            if kind == RUN {
                self.undeclared(run, self.names.writer(log)?, sequence as u64, record)?;
            }
            let sql = "DELETE FROM decl WHERE kind = $1 AND run = $2 AND item = $3 AND log = $4 \
                       AND sequence = $5 AND record = $6";
            self.db.execute(sql, &[kind, run, item, log, sequence, record].map(Cell::Int))?;
            self.dirty.declaration(kind, run, item);
        }
        Ok(())
    }
}
