//! Commits, decisions on transactions, and what is not visible to all.
//!
//! A record of a transaction is kept in `pending` until all of the transaction is decided, and applied as
//! soon as its kind is visible. Where a decision takes something back that nothing else met, its rows are
//! deleted again; else the tables are made again from the logs.

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{Record, is_catalog};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::feed::{Commit, TransactionState};
use fieldstone_journal::snapshot::Order;

use super::index::{Doing, Index};
use super::names::{LogUser, Txn};
use super::order::{Decided, EntrySource};
use super::owners::User;
use super::writers::describe;
use super::{Cell, Flow, Wait};

/// The place of what is not visible to all: behind everything else, the own process's last.
const PREPARED: Order = (u64::MAX - 1, Id::LEAST);
const UNFLUSHED: Order = (u64::MAX, Id::LEAST);

/// A record of a transaction, as it is kept.
struct Pending {
    log: i64,
    sequence: i64,
    record: i64,
    own: i64,
    call: i64,
    bit: i64,
    /// Since when it is applied.
    applied: Option<(u64, i64)>,
}

impl Index {
    /// Applies a commit. Commits of one log must come in their order; one that is applied already is
    /// passed over, and so are records that cannot be read: see [`Index::take_problems`].
    pub fn apply_commit(&mut self, commit: &Commit) -> Result<()> {
        if self.names.known_log(commit.writer).is_some_and(|log| commit.sequence <= log.sequence) {
            return Ok(());
        }
        self.apply_records(commit, 0)
    }

    /// Applies records of a commit; there are `first` before them.
    fn apply_records(&mut self, commit: &Commit, first: usize) -> Result<()> {
        let user = User::from(commit.owner);
        let log = match self.names.log_of(&mut *self.db, commit.writer, user)? {
            LogUser::Same(log) => log,
            LogUser::First(log) => {
                let writer = self.writer_of.as_ref().and_then(|of| (of.0)(commit.writer));
                writer.map_or(Ok(()), |writer| describe(&mut *self.db, log, &writer))?;
                log
            }
            LogUser::Another(log) => {
                self.user_changed()?;
                log
            }
        };
        self.names.applied(commit.writer, commit.sequence);
        let decision = commit.transaction.and_then(|id| self.decisions.get(&id).cloned());
        self.note_undecided(commit.transaction)?;
        let mut call = first as i64;
        let records = commit.side.iter().enumerate().map(|(i, side)| (first + i, side));
        for (i, side) in records.filter(|(_, side)| is_catalog(side)) {
            let record = match Record::decode(side) {
                Ok(record) => record,
                Err(error) => {
                    let place = format!("side record {i} of commit {}", commit.sequence);
                    self.problems.push(error.context(format!("log {}, {place}", commit.writer)));
                    continue;
                }
            };
            let of_call = match &record {
                Record::Attributes(batch) if batch.continues => call,
                Record::Attributes(_) => {
                    call = i as i64;
                    call
                }
                _ => i as i64,
            };
            let mut source = EntrySource {
                log,
                writer: commit.writer,
                sequence: commit.sequence,
                record: i as i64,
                call: of_call,
                own: commit.stamp,
                user,
                txn: 0,
                order: (commit.stamp, commit.writer),
                decider: log,
            };
            match commit.transaction {
                None => self.apply_record(source, &record)?,
                Some(id) => {
                    source.txn = self.names.txn(&mut *self.db, id)?.number;
                    self.apply_prepared(source, &record, side, decision.as_ref())?;
                }
            }
        }
        Ok(())
    }

    fn apply_record(&mut self, source: EntrySource, record: &Record) -> Result<()> {
        match record {
            Record::Runs(runs) => self.declare_runs(source, runs),
            Record::Steps(run, steps) => self.declare_steps(source, run, steps),
            Record::Variables(run, variables) => self.declare_variables(source, run, variables),
            Record::Tags(tags) => self.declare_tags(source, tags),
            Record::Attributes(batch) => self.apply_attributes(source, record.kind_bit(), batch),
            Record::Remove(removals) => self.apply_removals(source, removals),
            Record::Groups(run, groups) => self.declare_groups(source, run, groups),
            Record::Imports(run, imports) => self.declare_imports(source, run, imports),
            Record::Meshes(meshes) => self.declare_meshes(source, meshes),
            Record::Histories(histories) => self.declare_histories(source, histories),
            Record::Moved(moved) => self.declare_moved(source, moved),
            Record::States(states) => self.declare_states(source, states),
        }
    }

    /// A record of a transaction: applied if it is visible, kept if that may change.
    fn apply_prepared(
        &mut self,
        mut source: EntrySource,
        record: &Record,
        side: &SideRecord,
        decision: Option<&TransactionState>,
    ) -> Result<()> {
        let bit = record.kind_bit();
        let seen = decision.and_then(|decision| decision.visible(bit, source.writer, source.sequence));
        let mut applied = (0, 0, 0);
        if let Some(order) = seen {
            source.order = order;
            source.decider = self.names.log(&mut *self.db, order.1)?;
            self.apply_record(source, record)?;
            applied = (1, order.0 as i64, source.decider);
        }
        // Also what is not covered: a decision that is read late may be older than the end, and cover it.
        if decision.is_some_and(|decision| decision.is_whole() || !decision.committed) {
            return Ok(());
        }
        let [a, b, c, d, e, f, g, h, i, j, k] = [
            source.txn,
            source.log,
            source.sequence as i64,
            source.record,
            source.own as i64,
            source.call,
            bit.into(),
            applied.0,
            applied.1,
            applied.2,
            side.kind.into(),
        ]
        .map(Cell::Int);
        let cells = [a, b, c, d, e, f, g, h, i, j, k, Cell::Bytes(&side.bytes)];
        let sql = "INSERT INTO pending (txn, log, sequence, record, own, call, bit, applied, stamp, decider, kind, \
                   content) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING";
        self.db.execute(sql, &cells).map(|_| ())
    }

    /// Takes decisions, before commits: at first all, later those that may have changed. After `rebuild`
    /// the tables are unfinished: [`Index::clear`] and apply everything, or [`Index::abort`].
    pub fn apply_decisions(&mut self, decisions: &[TransactionState]) -> Result<Decided> {
        let mut decided = Decided::default();
        for decision in decisions {
            let (id, print) = (decision.transaction, decision.print());
            self.decisions.insert(id, decision.clone());
            let mut txn = self.names.txn(&mut *self.db, id)?;
            if txn.decided == print {
                continue;
            }
            decided.fields.push(id);
            if txn.dropped {
                // It was visible as a whole, and what it said is not kept.
                decided.rebuild = true;
                return Ok(decided);
            }
            if !self.change(txn.number, txn.not_revertible, decision)? {
                decided.rebuild = true;
                return Ok(decided);
            }
            txn = self.names.txn(&mut *self.db, id)?;
            txn.decided = print;
            if decision.is_whole() || !decision.committed {
                self.db.execute("DELETE FROM pending WHERE txn = $1", &[Cell::Int(txn.number)])?;
                txn.dropped = true;
            }
            self.names.set_txn(&mut *self.db, id, txn)?;
        }
        Ok(decided)
    }

    /// Something of a transaction is applied. Where nothing is known to be decided about it and the tables were
    /// decided otherwise, by one who follows a newer feed and has not come to an end, they are decided again.
    pub(super) fn note_undecided(&mut self, transaction: Option<Id>) -> Result<()> {
        let Some(id) = transaction.filter(|id| !self.decisions.contains_key(id)) else { return Ok(()) };
        match self.names.known_txn(id) {
            Some(txn) if !txn.decided.is_empty() => {
                let txn = Txn { decided: Vec::new(), ..txn.clone() };
                self.names.set_txn(&mut *self.db, id, txn)
            }
            _ => Ok(()),
        }
    }

    /// Brings the rows of a transaction to what is decided now; `false` where that cannot be done.
    fn change(&mut self, txn: i64, not_revertible: bool, decision: &TransactionState) -> Result<bool> {
        let mut now = Vec::new();
        for kept in self.pending(txn)? {
            let writer = self.names.writer(kept.log)?;
            let seen = decision.visible(kept.bit as u32, writer, kept.sequence as u64);
            let seen = match seen {
                Some(order) => Some((order, self.names.log(&mut *self.db, order.1)?)),
                None => None,
            };
            if kept.applied == seen.map(|(order, decider)| (order.0, decider)) {
                continue;
            }
            if kept.applied.is_some() {
                if not_revertible {
                    return Ok(false);
                }
                self.undo(kept.log, kept.sequence, kept.record, txn)?;
            }
            now.push((kept, seen));
        }
        for (kept, seen) in now {
            if let Some((order, decider)) = seen {
                self.apply_kept(txn, &kept, order, decider)?;
            }
            let (applied, order) = (i64::from(seen.is_some()), seen.map_or(0, |(order, _)| order.0 as i64));
            let decider = seen.map_or(0, |(_, decider)| decider);
            let cells = [txn, kept.log, kept.sequence, kept.record, applied, order, decider].map(Cell::Int);
            let sql = "UPDATE pending SET applied = $5, stamp = $6, decider = $7 \
                       WHERE txn = $1 AND log = $2 AND sequence = $3 AND record = $4";
            self.db.execute(sql, &cells)?;
        }
        Ok(true)
    }

    fn pending(&mut self, txn: i64) -> Result<Vec<Pending>> {
        let mut found = Vec::new();
        let sql = "SELECT log, sequence, record, own, call, bit, applied, stamp, decider FROM pending \
                   WHERE txn = $1 ORDER BY log, sequence, record";
        self.db.query(sql, &[Cell::Int(txn)], &mut |row| {
            let applied = (row[7].int()? as u64, row[8].int()?);
            found.push(Pending {
                log: row[0].int()?,
                sequence: row[1].int()?,
                record: row[2].int()?,
                own: row[3].int()?,
                call: row[4].int()?,
                bit: row[5].int()?,
                applied: Some(applied).filter(|_| matches!(row[6], Cell::Int(1))),
            });
            Ok(Flow::More)
        })?;
        Ok(found)
    }

    fn apply_kept(&mut self, txn: i64, kept: &Pending, order: Order, decider: i64) -> Result<()> {
        let mut side = None;
        let sql = "SELECT kind, content FROM pending \
                   WHERE txn = $1 AND log = $2 AND sequence = $3 AND record = $4";
        self.db.query(sql, &[txn, kept.log, kept.sequence, kept.record].map(Cell::Int), &mut |row| {
            side = Some(SideRecord { kind: row[0].int()? as u16, bytes: row[1].bytes()?.into() });
            Ok(Flow::Stop)
        })?;
        let Some(side) = side else { return Ok(()) };
        let source = EntrySource {
            log: kept.log,
            writer: self.names.writer(kept.log)?,
            sequence: kept.sequence as u64,
            record: kept.record,
            call: kept.call,
            own: kept.own as u64,
            user: self.names.user(kept.log),
            txn,
            order,
            decider,
        };
        self.apply_record(source, &Record::decode(&side)?)
    }

    /// Begins to read with what is not visible to all overlaid on the tables: what a transaction has
    /// prepared, and commits that are not made yet. `false`: there is nothing of it and no read was
    /// begun. [`Index::end_read`] takes it away again.
    ///
    /// A commit of `own` has the writer and a sequence that the log has not reached; ids of its attributes
    /// are of it. Waits for a process that applies.
    pub fn overlay(&mut self, transaction: Option<Id>, own: &[Commit]) -> Result<bool> {
        if transaction.is_none() && own.is_empty() {
            return Ok(false);
        }
        self.begin_write(Wait::Yes, Doing::Overlay(transaction))?;
        match self.apply_overlay(transaction, own) {
            Ok(()) => Ok(true),
            Err(error) => {
                let _ = self.abort();
                Err(error)
            }
        }
    }

    /// Adds to what is overlaid on the tables, within an [overlay](Index::overlay): records of its commits that stand behind
    /// those that were overlaid before, which are so many. After an error nothing of the overlay is left.
    pub fn extend_overlay(&mut self, own: &[(usize, Commit)]) -> Result<()> {
        if !matches!(self.doing, Doing::Overlay(_)) {
            return Err(Error::internal("an overlay is extended that was not begun"));
        }
        let apply = |index: &mut Index| -> Result<()> {
            for (first, commit) in own {
                let commit = Commit { stamp: UNFLUSHED.0, transaction: None, ..commit.clone() };
                index.apply_records(&commit, *first)?;
            }
            index.update_derived()
        };
        let outcome = apply(self);
        if outcome.is_err() {
            let _ = self.abort();
        }
        outcome
    }

    /// Takes the state of a transaction that is overlaid on the tables next.
    pub fn know(&mut self, state: TransactionState) {
        self.decisions.insert(state.transaction, state);
    }

    /// Brings what is derived up to date after fields were overlaid on the tables, too: entries of the
    /// transaction that [`Index::overlay`] named, by [`Index::apply_entries`].
    pub fn finish_overlay(&mut self) -> Result<()> {
        self.update_derived()
    }

    fn apply_overlay(&mut self, transaction: Option<Id>, own: &[Commit]) -> Result<()> {
        if let Some(id) = transaction {
            let txn = self.names.txn(&mut *self.db, id)?;
            let decider = self.names.log(&mut *self.db, PREPARED.1)?;
            for kept in self.pending(txn.number)? {
                let writer = self.names.writer(kept.log)?;
                let state = self.decisions.get(&id);
                let open = state.is_none_or(|state| state.is_open_for(writer, kept.sequence as u64));
                if kept.applied.is_none() && open {
                    self.apply_kept(txn.number, &kept, PREPARED, decider)?;
                }
            }
        }
        for commit in own {
            let commit = Commit { stamp: UNFLUSHED.0, transaction: None, ..commit.clone() };
            self.apply_commit(&commit)?;
        }
        self.update_derived()
    }
}
