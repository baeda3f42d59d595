//! Deletions. Deleting a run, step, variable or tag also deletes everything older below it that the same user
//! wrote, and, if the user owns the run, everything that others wrote there. A tombstone hides older content
//! that arrives later. Attributes can be deleted individually, by the places where they were written; values
//! that they had replaced stay hidden. Declarations can be deleted in the same way; nothing else is deleted
//! with them.

use std::collections::{BTreeMap, HashMap, HashSet};

use fieldstone_core::Result;
use fieldstone_format::catalog::{AttributeId, Removal};

use super::doomed::{Doomed, delete_row, delete_rows, rows_of_batches};
use super::ground::Tombstone;
use super::kinds::{GROUP, IMPORT, MOVED, RUN, STATE, STEP, TAG, VARIABLE, goes_alone};
use super::order::{EntrySource, OrderKey, UserAt};
use super::rows::ints;
use super::workspace::Workspace;
use super::{Cell, Flow, Probe, RunId, TagId, VariableId};

/// Applies one record of deletions.
pub(super) fn apply_removals(work: &mut Workspace, source: EntrySource, removals: &[Removal]) -> Result<()> {
    // Rows that a transaction has deleted come back only by a replay.
    work.ground.not_revertible(source.txn)?;
    for (i, removal) in removals.iter().enumerate() {
        let (place, user) = (source.place(source.record, i as i64), source.user);
        match removal {
            Removal::Run(run) => {
                let run = work.ground.run(run)?;
                work.owners.act(&mut work.ground, run, user)?;
                dig(work, source, place, (RUN, run, 0))?;
                for tag in tags_within(work, run)? {
                    kill(work, run, tag, i64::MIN..=i64::MAX, None, (place, source.by()))?;
                }
            }
            Removal::Step(run, step) => {
                let run = work.ground.run(run)?;
                work.owners.act(&mut work.ground, run, user)?;
                dig(work, source, place, (STEP, run, *step))?;
                for tag in tags_within(work, run)? {
                    kill(work, run, tag, *step..=*step, None, (place, source.by()))?;
                }
            }
            Removal::Variable(run, variable) => {
                let run = work.ground.run(run)?;
                work.owners.act(&mut work.ground, run, user)?;
                let variable = work.ground.variable(variable)?;
                dig(work, source, place, (VARIABLE, run, variable))?;
                for tag in tags_within(work, run)? {
                    kill(work, run, tag, i64::MIN..=i64::MAX, Some(variable), (place, source.by()))?;
                }
            }
            Removal::Tag(tag) => {
                let tag = work.ground.tag(tag)?;
                dig(work, source, place, (TAG, 0, tag))?;
                // The spans must be in the table to find every run with the tag.
                work.sums.flush(&mut work.ground)?;
                let sql = "SELECT run FROM span WHERE tag = $1";
                for run in work.ground.db.all(sql, &[Cell::Int(tag)], |row| row[0].int())? {
                    kill(work, run, tag, i64::MIN..=i64::MAX, None, (place, source.by()))?;
                }
            }
            Removal::Attributes(ids) => remove_ids(work, source, ids)?,
        }
    }
    Ok(())
}

fn tags_within(work: &mut Workspace, run: RunId) -> Result<Vec<TagId>> {
    work.sums.flush(&mut work.ground)?;
    work.ground.tags_of(run)
}

/// Writes a tombstone, and deletes older declarations below it.
fn dig(
    work: &mut Workspace,
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
    work.ground.db.execute(sql, &cells)?;
    work.ground.names.tombstones.entry((kind, run, item)).or_default().push(Tombstone {
        place,
        txn: source.txn,
        user: source.user,
    });
    // Only a run has declarations of other kinds below it.
    let below: &[i64] = if kind == RUN {
        &[RUN, STEP, VARIABLE, GROUP, IMPORT, MOVED, STATE]
    } else {
        std::slice::from_ref(&kind)
    };
    for &kind in below {
        let mut older: Vec<([i64; 7], i64, UserAt)> = Vec::new();
        let (names, which) = (&work.ground.names, if below.len() > 1 { "" } else { " AND item = $3" });
        let sql = format!(
            "SELECT stamp, decider, own, log, sequence, record, place, item, txn FROM decl \
             WHERE kind = $1 AND run = $2{which}"
        );
        let cells = [kind, run, item].map(Cell::Int);
        let cells = if below.len() > 1 { &cells[..2] } else { &cells[..] };
        work.ground.db.query(&sql, cells, &mut |row| {
            let its = names.place(&row[..7])?;
            if its < place {
                let key =
                    [kind, run, row[7].int()?, row[3].int()?, row[4].int()?, row[5].int()?, row[6].int()?];
                let by = UserAt { user: names.user(row[3].int()?), stamp: its.own };
                older.push((key, row[8].int()?, by));
            }
            Ok(Flow::More)
        })?;
        for (key, txn, of) in older {
            delete_declaration(work, key, txn, (source.by(), of))?;
        }
    }
    Ok(())
}

/// Deletes attributes within steps (and of one variable) that are older than `place`, as far as the user `by` may.
fn kill(
    work: &mut Workspace,
    run: RunId,
    tag: TagId,
    steps: std::ops::RangeInclusive<i64>,
    variable: Option<VariableId>,
    (place, by): (OrderKey, UserAt),
) -> Result<()> {
    let probes = match variable {
        None => vec![Probe::Key { run, tag, steps, variable, curve: None }],
        Some(of) => {
            // A variable without a step is not a prefix of the key: read each of its series.
            let sql = "SELECT step FROM series WHERE run = $1 AND tag = $2 AND variable = $3";
            work.ground.db.all(sql, &[run, tag, of].map(Cell::Int), |row| {
                let step = row[0].int()?;
                Ok(Probe::Key { run, tag, steps: step..=step, variable, curve: None })
            })?
        }
    };
    let mut found = Vec::new();
    work.ground.db.scan(&probes, &mut |row| {
        found.push(Doomed::of(row));
        Ok(Flow::More)
    })?;
    for row in found {
        let info = work.ground.batch(row.batch)?;
        if info.place(row.row) < place && work.owners.takes(&mut work.ground, run, by, info.by())? {
            work.ground.not_revertible(info.txn)?;
            delete_row(&mut work.ground, &mut work.sums, &row.row(run, tag), false)?;
        }
    }
    Ok(())
}

/// Deletes declarations of one record.
fn remove_declarations(
    work: &mut Workspace,
    source: EntrySource,
    (log, sequence, record): (i64, i64, i64),
    rows: &HashSet<i64>,
) -> Result<()> {
    let sql =
        "SELECT kind, run, item, place, txn, own FROM decl WHERE log = $1 AND sequence = $2 AND record = $3";
    let found = work.ground.db.all(sql, &[log, sequence, record].map(Cell::Int), ints)?;
    let writer = work.ground.names.user(log);
    for [kind, run, item, place, txn, own] in found {
        let users = (source.by(), UserAt { user: writer, stamp: own as u64 });
        if goes_alone(kind) && rows.contains(&place) {
            delete_declaration(work, [kind, run, item, log, sequence, record, place], txn, users)?;
        }
    }
    Ok(())
}

/// Deletes a declaration by its key, if the deleting user (`by`) may delete what its writer (`of`) wrote.
fn delete_declaration(
    work: &mut Workspace,
    key: [i64; 7],
    txn: i64,
    (by, of): (UserAt, UserAt),
) -> Result<()> {
    let [kind, run, item, ..] = key;
    if !work.owners.takes(&mut work.ground, run, by, of)? {
        return Ok(());
    }
    work.ground.not_revertible(txn)?;
    let sql = "DELETE FROM decl WHERE kind = $1 AND run = $2 AND item = $3 AND log = $4 AND sequence = $5 \
               AND record = $6 AND place = $7";
    work.ground.db.execute(sql, &key.map(Cell::Int))?;
    work.ground.dirty.declaration(kind, run, item);
    Ok(())
}

/// Deletes attributes and declarations individually.
fn remove_ids(work: &mut Workspace, source: EntrySource, ids: &[AttributeId]) -> Result<()> {
    let mut of_record: BTreeMap<(i64, u64, u32), HashSet<i64>> = BTreeMap::new();
    // A new list invalidates the rows that were remembered for the record of the last one.
    work.deleted_alone = None;
    for id in ids {
        // Without a log: an attribute of the commit that deletes it.
        let (log, sequence) = match id.writer {
            None => (source.log, source.sequence),
            Some(writer) => (work.ground.log(writer)?, id.sequence),
        };
        of_record.entry((log, sequence, id.record)).or_default().insert(id.row.into());
    }
    // Look up the rows of one run and tag once, however many records wrote them.
    let mut of_tag = BTreeMap::new();
    for ((log, sequence, record), rows) in of_record {
        let (log, sequence, record) = (log, sequence as i64, i64::from(record));
        // Keep the deletion even if the row is not here yet: it may arrive later.
        for row in &rows {
            let own = source.own as i64;
            let cells = [log, sequence, record, *row, source.user, own, source.txn].map(Cell::Int);
            let sql = "INSERT INTO tombstone_row (log, sequence, record, row, uid, own, txn) \
                       VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING";
            work.ground.db.execute(sql, &cells)?;
        }
        let sql = "SELECT batch, run, tag, first, last, txn, own FROM batch \
                   WHERE log = $1 AND sequence = $2 AND record = $3";
        let found = work.ground.db.first(sql, &[log, sequence, record].map(Cell::Int), ints)?;
        // A record is either a batch of attributes or a list of declarations.
        let Some([batch, run, tag, first, last, txn, own]) = found else {
            remove_declarations(work, source, (log, sequence, record), &rows)?;
            continue;
        };
        let of = UserAt { user: work.ground.names.user(log), stamp: own as u64 };
        if !work.owners.takes(&mut work.ground, run, source.by(), of)? {
            continue;
        }
        work.ground.not_revertible(txn)?;
        let wanted = of_tag.entry((run, tag)).or_insert((i64::MAX, i64::MIN, HashMap::new()));
        (wanted.0, wanted.1) = (wanted.0.min(first), wanted.1.max(last));
        wanted.2.insert(batch, rows);
    }
    for ((run, tag), (first, last, wanted)) in of_tag {
        let doomed = rows_of_batches(&mut work.ground, run, tag, first..=last, &|batch, row| {
            wanted.get(&batch).is_some_and(|rows| rows.contains(&row))
        })?;
        delete_rows(&mut work.ground, &mut work.sums, run, tag, &doomed, true)?;
    }
    Ok(())
}

/// Undoes a record of a transaction. Only for transactions that are not `not_revertible`.
pub(super) fn undo(work: &mut Workspace, log: i64, sequence: i64, record: i64, txn: i64) -> Result<()> {
    let source = [log, sequence, record].map(Cell::Int);
    let sql = "SELECT batch, run, tag, first, last FROM batch \
               WHERE log = $1 AND sequence = $2 AND record = $3";
    if let Some([batch, run, tag, first, last]) = work.ground.db.first(sql, &source, ints)? {
        let rows = rows_of_batches(&mut work.ground, run, tag, first..=last, &|of, _| of == batch)?;
        delete_rows(&mut work.ground, &mut work.sums, run, tag, &rows, false)?;
        work.ground.db.execute("DELETE FROM batch WHERE batch = $1", &[Cell::Int(batch)])?;
    }
    let sql =
        "SELECT kind, run, item FROM decl WHERE txn = $1 AND log = $2 AND sequence = $3 AND record = $4";
    let declared = work.ground.db.all(sql, &[txn, log, sequence, record].map(Cell::Int), ints)?;
    for [kind, run, item] in declared {
        if kind == RUN {
            let writer = work.ground.names.writer(log)?;
            work.owners.undeclared(&mut work.ground, run, writer, sequence as u64, record)?;
        }
        let sql = "DELETE FROM decl WHERE kind = $1 AND run = $2 AND item = $3 AND log = $4 \
                   AND sequence = $5 AND record = $6";
        work.ground.db.execute(sql, &[kind, run, item, log, sequence, record].map(Cell::Int))?;
        work.ground.dirty.declaration(kind, run, item);
    }
    Ok(())
}
