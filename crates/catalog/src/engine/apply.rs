//! Applies commits, entries and decisions, and overlays what is not visible to all.

use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{Record, is_catalog, rows_erased};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::feed::{Commit, TransactionState};
use fieldstone_journal::snapshot::Order;

use super::fields::{FieldRow, HeldFields, HeldPlace, Standing};
use super::ground::LogUser;
use super::index::{Doing, Index};
use super::order::{Decided, EntrySource, User};
use super::prepared::{Pending, apply_kept, apply_prepared, apply_record, change, keep, pending};
use super::workspace::Workspace;
use super::writers::describe;
use super::{Cell, Wait};

/// The place of content that is not visible to all: after everything else; only the process's own content
/// comes later.
const PREPARED: Order = (u64::MAX - 1, Id::LEAST);
const UNFLUSHED: Order = (u64::MAX, Id::LEAST);

/// A record of the catalog in a commit.
struct CommitRecord<'a> {
    index: i64,
    /// The index of the record that began its call.
    call: i64,
    side: &'a SideRecord,
    decoded: Result<Record>,
}

/// The catalog's records of a commit, of which the first given one has the index `first`.
fn records(commit: &Commit, first: usize) -> impl Iterator<Item = CommitRecord<'_>> {
    let mut begun = first as i64;
    let records = commit.side.iter().enumerate().map(move |(i, side)| ((first + i) as i64, side));
    records.filter(|(_, side)| is_catalog(side)).map(move |(index, side)| {
        let decoded = Record::decode(side);
        let call = match &decoded {
            Ok(Record::Attributes(batch)) if batch.continues => begun,
            Ok(Record::Attributes(_)) => {
                begun = index;
                index
            }
            _ => index,
        };
        CommitRecord { index, call, side, decoded }
    })
}

/// Keeps the records of a [lacking](Decided::lacking) transaction by kinds again; `commits` are those that
/// were applied. The next [`Index::apply_decisions`] applies them by the present decision.
pub fn restore(
    index: &mut Index,
    transaction: Id,
    commits: &mut dyn Iterator<Item = Result<Commit>>,
) -> Result<()> {
    let mut txn = index.work.ground.txn(transaction)?;
    for commit in commits {
        let commit = commit?;
        let Some(log) = index.work.ground.names.known_log(commit.writer) else { continue };
        let number = log.number;
        for CommitRecord { index: record, call, side, decoded } in records(&commit, 0) {
            // One that cannot be read was reported when it was applied.
            let Ok(decoded) = decoded else { continue };
            let kept = Pending {
                log: number,
                sequence: commit.sequence as i64,
                record,
                own: commit.stamp as i64,
                call,
                bit: decoded.kind_bit().into(),
                // Which decision applied it is not known any more; another order than any makes it go first.
                applied: Some((0, 0)),
            };
            keep(&mut index.work, txn.number, &kept, side)?;
        }
    }
    txn.dropped = false;
    index.work.ground.set_txn(transaction, txn)
}

/// Whether the tables are those of the hand-overs that are set; empty tables become theirs.
pub fn heeds_hand_overs(index: &mut Index) -> Result<bool> {
    let is_empty = index.watermarks()?.is_empty();
    let Workspace { ground, owners, .. } = &mut index.work;
    let (sql, print) = ("SELECT value FROM meta WHERE name = 'hand_overs'", owners.hand_overs.print());
    let known = ground.db.first(sql, &[], |row| Ok(row[0].text()?.to_owned()))?.unwrap_or_default();
    if known == print || !is_empty {
        return Ok(known == print);
    }
    ground.db.execute("DELETE FROM meta WHERE name = 'hand_overs'", &[])?;
    let cells = [Cell::Text("hand_overs"), Cell::Text(&print)];
    ground.db.execute("INSERT INTO meta (name, value) VALUES ($1, $2)", &cells)?;
    Ok(true)
}

impl Index {
    /// Applies a commit. Commits of one log must come in their order. A commit that is already applied is
    /// skipped, and so are records that cannot be read: see [`Index::take_problems`].
    pub fn apply_commit(&mut self, commit: &Commit) -> Result<()> {
        if self.work.ground.names.known_log(commit.writer).is_some_and(|log| commit.sequence <= log.sequence)
        {
            return Ok(());
        }
        self.apply_records(commit, 0)
    }

    /// Applies records of a commit; `first` is the index of the first one in the commit.
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
        for CommitRecord { index, call, side, decoded } in records(commit, first) {
            let (record, erased) = match decoded.and_then(|record| Ok((record, rows_erased(side)?))) {
                Ok(decoded) => decoded,
                Err(error) => {
                    let place = format!("side record {index} of commit {}", commit.sequence);
                    self.problems.push(error.context(format!("log {}, {place}", commit.writer)));
                    continue;
                }
            };
            // The place that a forgotten decision gave it.
            let order = commit.order.unwrap_or((commit.stamp, commit.writer));
            let decider = if order.1 == commit.writer { log } else { self.work.ground.log(order.1)? };
            let mut source = EntrySource {
                log,
                writer: commit.writer,
                sequence: commit.sequence,
                record: index,
                call,
                own: commit.stamp,
                user,
                txn: 0,
                order,
                decider,
            };
            match commit.transaction {
                None => apply_record(&mut self.work, source, &record, &erased)?,
                Some(id) => {
                    source.txn = self.work.ground.txn(id)?.number;
                    apply_prepared(&mut self.work, source, (&record, &erased), side, decision.as_ref())?;
                }
            }
        }
        Ok(())
    }

    /// Applies entries of one log, in any order and any number of times. Entries of a transaction count as
    /// far as its decision allows at this moment.
    pub fn apply_entries(&mut self, writer: Id, rows: &[FieldRow]) -> Result<()> {
        let Workspace { ground, owners, .. } = &mut self.work;
        self.fields.apply(ground, owners, &self.decisions, writer, rows)
    }

    /// Places that the store must be asked about, at most `limit`. Report each answer with
    /// [`Index::set_held`], until this list is empty: an answer may add further places.
    pub fn rechecks(&mut self, limit: usize) -> Result<Vec<HeldPlace>> {
        self.fields.rechecks(&mut self.work.ground, limit)
    }

    /// The places that are recorded as holding fields: for a store of which a part was wiped.
    pub fn held_fields(&mut self) -> HeldFields<'_> {
        HeldFields { fields: &mut self.fields, ground: &mut self.work.ground }
    }

    /// Reports the fields at a place.
    pub fn set_held(&mut self, place: &HeldPlace, standing: &Standing) -> Result<()> {
        self.fields.set_held(&mut self.work.ground, place, standing)
    }

    /// Takes decisions, before commits: at first all, later those that may have changed. If the answer has
    /// `rebuild`, the tables are unfinished: call [`Index::clear`] and apply everything, or call
    /// [`Index::abort`].
    pub fn apply_decisions(&mut self, decisions: &[TransactionState]) -> Result<Decided> {
        let mut decided = Decided::default();
        for decision in decisions {
            let (id, print) = (decision.transaction, decision.print());
            self.decisions.know(decision.clone());
            let mut txn = self.work.ground.txn(id)?;
            if txn.decided == print {
                continue;
            }
            if txn.dropped && !txn.not_revertible && decision.is_kept() {
                // The transaction was visible as a whole, and its content is not kept by kinds.
                decided.lacking.push(id);
                continue;
            }
            decided.fields.push(id);
            if txn.dropped || !change(&mut self.work, txn.number, txn.not_revertible, decision)? {
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

    /// Whether content of a transaction was applied, and no decision on it, although takeovers have forgotten it meanwhile:
    /// then only the commits themselves say which of them are visible.
    pub fn missed_decision(&self, is_forgotten: impl Fn(Id) -> bool) -> bool {
        self.work.ground.names.undecided().any(is_forgotten)
    }

    /// Begins a read with content that is not visible to all overlaid on the tables: the prepared content of
    /// a transaction, and commits that are not made yet. Returns `false` if there is no such content; no read
    /// has begun then. [`Index::end_read`] removes the overlay again.
    ///
    /// A commit of `own` has the writer and a sequence that the log has not reached; ids of its attributes
    /// refer to it. Waits for a process that applies.
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

    /// Adds to an [overlay](Index::overlay): for each commit, the records that follow those that were
    /// overlaid before, and how many those were. After an error nothing of the overlay is left.
    pub fn extend_overlay(&mut self, own: &[(usize, Commit)]) -> Result<()> {
        if !matches!(self.doing, Doing::Overlay(_)) {
            return Err(Error::internal("an overlay was extended before it was begun"));
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

    /// Takes the state of a transaction that will be overlaid on the tables next.
    pub fn know(&mut self, state: TransactionState) {
        self.decisions.know(state);
    }

    /// Updates derived rows after fields were added to the overlay by [`Index::apply_entries`]: entries of
    /// the transaction that [`Index::overlay`] named.
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
