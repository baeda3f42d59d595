//! Applies the records of transactions. `pending` keeps them until the whole transaction is decided;
//! each is applied as soon as its kind is visible. If a decision hides rows again that neither hid other rows
//! nor were hidden, they are deleted; otherwise the tables are built again from the logs. Once all of a
//! transaction is visible, its records are no longer kept: a later decision reads those again from its logs.

use fieldstone_core::Result;
use fieldstone_format::catalog::{Record, rows_erased};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::feed::TransactionState;
use fieldstone_journal::snapshot::Order;

use super::order::EntrySource;
use super::workspace::Workspace;
use super::{Cell, attributes, declare, remove};

/// A stored record of a transaction.
pub(super) struct Pending {
    pub log: i64,
    pub sequence: i64,
    pub record: i64,
    pub own: i64,
    pub call: i64,
    pub bit: i64,
    /// The order of the decision under which it is applied; `None` if it is not applied.
    pub applied: Option<(u64, i64)>,
}

/// Applies a record; `erased`: rows of attributes that are as if they had been deleted.
pub(super) fn apply_record(
    work: &mut Workspace,
    source: EntrySource,
    record: &Record,
    erased: &[u32],
) -> Result<()> {
    match record {
        Record::Attributes(batch) => {
            attributes::apply_attributes(work, source, record.kind_bit(), batch, erased)
        }
        Record::Remove(removals) => remove::apply_removals(work, source, removals),
        _ => declare::declare_record(work, source, record),
    }
}

/// Takes a record of a transaction: applies it if it is visible, keeps it if that may change.
pub(super) fn apply_prepared(
    work: &mut Workspace,
    mut source: EntrySource,
    (record, erased): (&Record, &[u32]),
    side: &SideRecord,
    decision: Option<&TransactionState>,
) -> Result<()> {
    let bit = record.kind_bit();
    let seen = decision.and_then(|decision| decision.visible(bit, source.writer, source.sequence));
    let mut applied = None;
    if let Some(order) = seen {
        source.order = order;
        source.decider = work.ground.log(order.1)?;
        apply_record(work, source, record, erased)?;
        applied = Some((order.0, source.decider));
    }
    // Also for records that the decision does not cover: a decision that is read late may be older than the
    // end, and cover them.
    if decision.is_some_and(|decision| decision.is_whole() || !decision.committed) {
        return Ok(());
    }
    let kept = Pending {
        log: source.log,
        sequence: source.sequence as i64,
        record: source.record,
        own: source.own as i64,
        call: source.call,
        bit: bit.into(),
        applied,
    };
    keep(work, source.txn, &kept, side)
}

/// Keeps a record of a transaction.
pub(super) fn keep(work: &mut Workspace, txn: i64, kept: &Pending, side: &SideRecord) -> Result<()> {
    let Pending { log, sequence, record, own, call, bit, applied } = *kept;
    let (stamp, decider) = applied.map_or((0, 0), |(stamp, decider)| (stamp as i64, decider));
    let applied = i64::from(applied.is_some());
    let kind = i64::from(side.kind);
    let [a, b, c, d, e, f, g, h, i, j, k] =
        [txn, log, sequence, record, own, call, bit, applied, stamp, decider, kind].map(Cell::Int);
    let cells = [a, b, c, d, e, f, g, h, i, j, k, Cell::Bytes(&side.bytes)];
    let sql = "INSERT INTO pending (txn, log, sequence, record, own, call, bit, applied, stamp, decider, kind, \
               content) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING";
    work.ground.db.execute(sql, &cells).map(|_| ())
}

/// Updates the rows of a transaction to the present decision; `false` if that is not possible.
pub(super) fn change(
    work: &mut Workspace,
    txn: i64,
    not_revertible: bool,
    decision: &TransactionState,
) -> Result<bool> {
    let mut now = Vec::new();
    for kept in pending(work, txn)? {
        let writer = work.ground.names.writer(kept.log)?;
        let seen = decision.visible(kept.bit as u32, writer, kept.sequence as u64);
        let seen = match seen {
            Some(order) => Some((order, work.ground.log(order.1)?)),
            None => None,
        };
        // Most rows stay as they are when a decision changes.
        if kept.applied == seen.map(|(order, decider)| (order.0, decider)) {
            continue;
        }
        if kept.applied.is_some() {
            if not_revertible {
                return Ok(false);
            }
            // All are undone before any is applied again: a row must not meet others that the decision hides.
            remove::undo(work, kept.log, kept.sequence, kept.record, txn)?;
        }
        now.push((kept, seen));
    }
    for (kept, seen) in now {
        if let Some((order, decider)) = seen {
            apply_kept(work, txn, &kept, order, decider)?;
        }
        let (applied, order) = (i64::from(seen.is_some()), seen.map_or(0, |(order, _)| order.0 as i64));
        let decider = seen.map_or(0, |(_, decider)| decider);
        let cells = [txn, kept.log, kept.sequence, kept.record, applied, order, decider].map(Cell::Int);
        let sql = "UPDATE pending SET applied = $5, stamp = $6, decider = $7 \
                   WHERE txn = $1 AND log = $2 AND sequence = $3 AND record = $4";
        work.ground.db.execute(sql, &cells)?;
    }
    Ok(true)
}

pub(super) fn pending(work: &mut Workspace, txn: i64) -> Result<Vec<Pending>> {
    let sql = "SELECT log, sequence, record, own, call, bit, applied, stamp, decider FROM pending \
               WHERE txn = $1 ORDER BY log, sequence, record";
    work.ground.db.all(sql, &[Cell::Int(txn)], |row| {
        let applied = (row[7].int()? as u64, row[8].int()?);
        Ok(Pending {
            log: row[0].int()?,
            sequence: row[1].int()?,
            record: row[2].int()?,
            own: row[3].int()?,
            call: row[4].int()?,
            bit: row[5].int()?,
            applied: Some(applied).filter(|_| matches!(row[6], Cell::Int(1))),
        })
    })
}

pub(super) fn apply_kept(
    work: &mut Workspace,
    txn: i64,
    kept: &Pending,
    order: Order,
    decider: i64,
) -> Result<()> {
    let sql = "SELECT kind, content FROM pending \
               WHERE txn = $1 AND log = $2 AND sequence = $3 AND record = $4";
    let side =
        work.ground.db.first(sql, &[txn, kept.log, kept.sequence, kept.record].map(Cell::Int), |row| {
            Ok(SideRecord { kind: row[0].int()? as u16, bytes: row[1].bytes()?.into() })
        })?;
    let Some(side) = side else { return Ok(()) };
    let source = EntrySource {
        log: kept.log,
        writer: work.ground.names.writer(kept.log)?,
        sequence: kept.sequence as u64,
        record: kept.record,
        call: kept.call,
        own: kept.own as u64,
        user: work.ground.names.user(kept.log),
        txn,
        order,
        decider,
    };
    apply_record(work, source, &Record::decode(&side)?, &rows_erased(&side)?)
}
