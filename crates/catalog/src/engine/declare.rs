//! Takes declarations of runs, steps, variables, tags and distributed arrays.
//!
//! `decl` keeps every declaration that is visible and not deleted; `derive` decides which of them count.

use fieldstone_core::Result;
use fieldstone_format::catalog::Record;

use super::declaration::{content, nameless};
use super::ground::Tombstone;
use super::kinds::{
    GROUP, HISTORY, IMPORT, MESH, MOVED, RUN, STATE, STEP, TAG, VARIABLE, goes_alone, of_run,
};
use super::order::{EntrySource, UserAt};
use super::workspace::Workspace;
use super::{Cell, RunId};

/// Takes a record of declarations, and stores each under its kind, its run and its number.
pub(super) fn declare_record(work: &mut Workspace, source: EntrySource, said: &Record) -> Result<()> {
    let run = match said {
        Record::Steps(run, _) | Record::Variables(run, _) => work.ground.run(run)?,
        Record::Groups(run, _) | Record::Imports(run, _) => work.ground.run(run)?,
        _ => 0,
    };
    match said {
        Record::Runs(runs) => runs.iter().enumerate().try_for_each(|(i, decl)| {
            let run = work.ground.run(&decl.run)?;
            work.owners.declared_by(
                &mut work.ground,
                run,
                source.place(source.record, i as i64),
                source.user,
            )?;
            declare(work, source, i, (RUN, run, 0), &content(&Record::Runs(vec![decl.clone()])))
        }),
        Record::Moved(moved) => moved.iter().enumerate().try_for_each(|(i, one)| {
            let run = work.ground.run(&one.0)?;
            declare(work, source, i, (MOVED, run, 0), &content(&Record::Moved(vec![one.clone()])))
        }),
        Record::States(states) => states.iter().enumerate().try_for_each(|(i, one)| {
            let run = work.ground.run(&one.0)?;
            declare(work, source, i, (STATE, run, 0), &content(&Record::States(vec![one.clone()])))
        }),
        Record::Steps(_, steps) => steps.iter().enumerate().try_for_each(|(i, step)| {
            let time = step.time.map(|time| time.to_bits().to_le_bytes().to_vec()).unwrap_or_default();
            declare(work, source, i, (STEP, run, step.number), &time)
        }),
        Record::Variables(_, variables) => variables.iter().enumerate().try_for_each(|(i, decl)| {
            let variable = work.ground.variable(&decl.variable)?;
            let bytes = content(&Record::Variables(nameless(), vec![decl.clone()]));
            declare(work, source, i, (VARIABLE, run, variable), &bytes)
        }),
        Record::Tags(tags) => tags.iter().enumerate().try_for_each(|(i, decl)| {
            let tag = work.ground.tag(decl)?;
            declare(work, source, i, (TAG, 0, tag), &[])
        }),
        Record::Groups(_, groups) => groups.iter().enumerate().try_for_each(|(i, group)| {
            let item = work.ground.array_item(GROUP, &group.name)?;
            let bytes = content(&Record::Groups(nameless(), vec![group.clone()]));
            declare(work, source, i, (GROUP, run, item), &bytes)
        }),
        Record::Imports(_, imports) => imports.iter().enumerate().try_for_each(|(i, import)| {
            let item = work.ground.array_item(IMPORT, &import.name)?;
            let bytes = content(&Record::Imports(nameless(), vec![import.clone()]));
            declare(work, source, i, (IMPORT, run, item), &bytes)
        }),
        Record::Meshes(meshes) => meshes.iter().enumerate().try_for_each(|(i, mesh)| {
            let item = work.ground.array_item(MESH, &mesh.name)?;
            declare(work, source, i, (MESH, 0, item), &content(&Record::Meshes(vec![mesh.clone()])))
        }),
        Record::Histories(histories) => histories.iter().enumerate().try_for_each(|(i, history)| {
            let item = work.ground.array_item(HISTORY, &history.path)?;
            declare(work, source, i, (HISTORY, 0, item), &content(&Record::Histories(vec![history.clone()])))
        }),
        Record::Attributes(_) | Record::Remove(_) => Ok(()),
    }
}

pub(super) fn declare(
    work: &mut Workspace,
    source: EntrySource,
    i: usize,
    (kind, run, item): (i64, i64, i64),
    content: &[u8],
) -> Result<()> {
    let place = source.place(source.record, i as i64);
    if i == 0 {
        work.deleted_alone = None;
    }
    let tombstones = [(RUN, run, 0), (kind, run, item)];
    let relevant = if of_run(kind) { &tombstones[..] } else { &tombstones[1..] };
    if of_run(kind) {
        work.owners.act(&mut work.ground, run, source.user)?;
    }
    let newer = relevant.iter().filter_map(|key| work.ground.names.tombstones.get(key)).flatten();
    let newer: Vec<Tombstone> = newer.filter(|tombstone| tombstone.place > place).copied().collect();
    for tombstone in newer {
        if work.owners.takes(&mut work.ground, run, tombstone.by(), source.by())? {
            work.ground.not_revertible(tombstone.txn)?;
            return work.ground.not_revertible(source.txn);
        }
    }
    if goes_alone(kind) && is_deleted_alone(work, source, i as i64, run)? {
        return work.ground.not_revertible(source.txn);
    }
    let [a, b, c, d, e, f, g, h, j, k, l] = [
        kind,
        run,
        item,
        source.log,
        source.sequence as i64,
        source.record,
        i as i64,
        source.order.0 as i64,
        source.decider,
        source.own as i64,
        source.txn,
    ]
    .map(Cell::Int);
    let sql = "INSERT INTO decl (kind, run, item, log, sequence, record, place, stamp, decider, own, txn, \
               content) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING";
    work.ground.db.execute(sql, &[a, b, c, d, e, f, g, h, j, k, l, Cell::Bytes(content)])?;
    work.ground.dirty.declaration(kind, run, item);
    Ok(())
}

/// Whether a declaration was deleted individually, by its place in the logs, by a user who may do so.
fn is_deleted_alone(work: &mut Workspace, source: EntrySource, place: i64, run: RunId) -> Result<bool> {
    let record = (source.log, source.sequence, source.record);
    if work.deleted_alone.as_ref().is_none_or(|(known, _)| *known != record) {
        work.deleted_alone = Some((record, work.ground.deleted_rows(record)?));
    }
    let rows = work.deleted_alone.iter().flat_map(|(_, rows)| rows);
    let users: Vec<UserAt> = rows.filter(|(row, _)| *row == place).map(|(_, by)| *by).collect();
    for by in users {
        if work.owners.takes(&mut work.ground, run, by, source.by())? {
            return Ok(true);
        }
    }
    Ok(false)
}
