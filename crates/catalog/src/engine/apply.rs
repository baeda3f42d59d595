//! Commits, entries and decisions, applied; and what is not visible to all, overlaid.

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{Record, is_catalog};
use fieldstone_journal::feed::{Commit, TransactionState};
use fieldstone_journal::snapshot::Order;

use super::fields::{FieldRow, HeldPlace, Standing};
use super::ground::LogUser;
use super::index::{Doing, Index};
use super::order::{Decided, EntrySource, User};
use super::prepared::{apply_kept, apply_prepared, apply_record, change, pending};
use super::workspace::Workspace;
use super::writers::describe;
use super::{Cell, Wait};

/// The place of what is not visible to all: behind everything else, the own process's last.
const PREPARED: Order = (u64::MAX - 1, Id::LEAST);
const UNFLUSHED: Order = (u64::MAX, Id::LEAST);

impl Index {
    /// Applies a commit. Commits of one log must come in their order; one that is applied already is
    /// passed over, and so are records that cannot be read: see [`Index::take_problems`].
    pub fn apply_commit(&mut self, commit: &Commit) -> Result<()> {
        if self.work.ground.names.known_log(commit.writer).is_some_and(|log| commit.sequence <= log.sequence)
        {
            return Ok(());
        }
        self.apply_records(commit, 0)
    }

    /// Applies records of a commit; there are `first` before them.
    fn apply_records(&mut self, commit: &Commit, first: usize) -> Result<()> {
        let user = User::from(commit.owner);
        let log = match self.work.ground.log_of(commit.writer, user)? {
            LogUser::Same(log) => log,
            LogUser::First(log) => {
                let writer = self.writer_of.as_ref().and_then(|of| (of.0)(commit.writer));
                writer.map_or(Ok(()), |writer| describe(&mut *self.work.ground.db, log, &writer))?;
                log
            }
            LogUser::Another(log) => {
                self.work.owners.user_changed(&mut self.work.ground)?;
                log
            }
        };
        self.work.ground.names.applied(commit.writer, commit.sequence);
        let decision = commit.transaction.and_then(|id| self.decisions.get(id).cloned());
        self.decisions.note_undecided(&mut self.work.ground, commit.transaction)?;
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
                None => apply_record(&mut self.work, source, &record)?,
                Some(id) => {
                    source.txn = self.work.ground.txn(id)?.number;
                    apply_prepared(&mut self.work, source, &record, side, decision.as_ref())?;
                }
            }
        }
        Ok(())
    }

    /// Applies entries of one log, in any order and as often as you like. Entries of a transaction count
    /// as far as its decision says so now.
    pub fn apply_entries(&mut self, writer: Id, rows: &[FieldRow]) -> Result<()> {
        let Workspace { ground, owners, .. } = &mut self.work;
        self.fields.apply(ground, owners, &self.decisions, writer, rows)
    }

    /// Places that the store must be asked for, at most `limit`: say what stands there with
    /// [`Index::set_held`], until there are none. Each answer may ask for more.
    pub fn rechecks(&mut self, limit: usize) -> Result<Vec<HeldPlace>> {
        self.fields.rechecks(&mut self.work.ground, limit)
    }

    /// All places that are said to hold fields, behind `after`, at most `limit`: for a store of which a
    /// part was wiped.
    pub fn held_places(&mut self, after: Option<&HeldPlace>, limit: usize) -> Result<Vec<HeldPlace>> {
        self.fields.held_places(&mut self.work.ground, after, limit)
    }

    /// Says what stands at a place.
    pub fn set_held(&mut self, place: &HeldPlace, standing: &Standing) -> Result<()> {
        self.fields.set_held(&mut self.work.ground, place, standing)
    }

    /// Takes decisions, before commits: at first all, later those that may have changed. After `rebuild`
    /// the tables are unfinished: [`Index::clear`] and apply everything, or [`Index::abort`].
    pub fn apply_decisions(&mut self, decisions: &[TransactionState]) -> Result<Decided> {
        let mut decided = Decided::default();
        for decision in decisions {
            let (id, print) = (decision.transaction, decision.print());
            self.decisions.know(decision.clone());
            let mut txn = self.work.ground.txn(id)?;
            if txn.decided == print {
                continue;
            }
            decided.fields.push(id);
            if txn.dropped {
                // It was visible as a whole, and what it said is not kept.
                decided.rebuild = true;
                return Ok(decided);
            }
            if !change(&mut self.work, txn.number, txn.not_revertible, decision)? {
                decided.rebuild = true;
                return Ok(decided);
            }
            txn = self.work.ground.txn(id)?;
            txn.decided = print;
            if decision.is_whole() || !decision.committed {
                let sql = "DELETE FROM pending WHERE txn = $1";
                self.work.ground.db.execute(sql, &[Cell::Int(txn.number)])?;
                txn.dropped = true;
            }
            self.work.ground.set_txn(id, txn)?;
        }
        Ok(decided)
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
        self.decisions.know(state);
    }

    /// Brings what is derived up to date after fields were overlaid on the tables, too: entries of the
    /// transaction that [`Index::overlay`] named, by [`Index::apply_entries`].
    pub fn finish_overlay(&mut self) -> Result<()> {
        self.update_derived()
    }

    fn apply_overlay(&mut self, transaction: Option<Id>, own: &[Commit]) -> Result<()> {
        if let Some(id) = transaction {
            let txn = self.work.ground.txn(id)?;
            let decider = self.work.ground.log(PREPARED.1)?;
            for kept in pending(&mut self.work, txn.number)? {
                let writer = self.work.ground.names.writer(kept.log)?;
                let state = self.decisions.get(id);
                let open = state.is_none_or(|state| state.is_open_for(writer, kept.sequence as u64));
                if kept.applied.is_none() && open {
                    apply_kept(&mut self.work, txn.number, &kept, PREPARED, decider)?;
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
