//! Takeovers as a snapshot shows them: those that count, up to the version that it is cut back to.
//!
//! Decisions, prepared commits, and the store's own records of all takeovers are read once, when the takeovers change: no
//! snapshot looks for them again. Everything else is looked up when it is asked for.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use fieldstone_core::sync::Mutex;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::store_record::StoreRecord;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::{
    DatasetRow, DecisionRow, PreparedRow, StoreRecordRow, TransactionRow,
};
use fieldstone_format::version::Version;
use fieldstone_format::{Id, acceptance, schema_extension, setting, store_record};

use super::ranges::checked;
use super::version_commits::VersionCommits;
use super::{
    AcceptedLoss, Decided, Order, Prepared, SchemaExtension, StoreHandOver, StoreHold, StorePointer,
    StoreRange, StoreRule, StoreSetting,
};
use crate::entry_source::EntryCommit;
use crate::medium::{Loss, Problem};
use crate::takeover::{TakenCommit, TakenLog, Takeover, Takeovers};

/// A decision in a log that is taken over.
#[derive(Debug, Clone)]
pub struct TakenDecision {
    /// The user whose log it is.
    pub user: u32,
    /// The log.
    pub writer: Id,
    /// The decision.
    pub decided: Arc<Decided>,
}

/// The takeovers of a snapshot.
#[derive(Debug, Default)]
pub struct TakeoverContent {
    takeovers: Takeovers,
    /// The version that the snapshot is cut back to.
    cut: Option<VersionCommits>,
    /// Decisions in logs that are taken over.
    pub decisions: Vec<TakenDecision>,
    /// Commits in such logs that are prepared under transactions, whether or not these are decided.
    pub prepared: Vec<(Id, Prepared)>,
    /// Extensions of the schema in them, with the users whose logs they are.
    pub extensions: Vec<(u32, Arc<SchemaExtension>)>,
    /// Settings of the store in them.
    pub settings: Vec<Arc<StoreSetting>>,
    /// Acceptances in them.
    pub accepted: Vec<Arc<AcceptedLoss>>,
    /// Holds in them.
    pub holds: Vec<Arc<StoreHold>>,
    /// Ranges in them.
    pub ranges: Vec<Arc<StoreRange>>,
    /// Rules of retention in them.
    pub rules: Vec<Arc<StoreRule>>,
    /// Pointers of other stores in them.
    pub pointers: Vec<Arc<StorePointer>>,
    /// Hand-overs in them.
    pub hand_overs: Vec<StoreHandOver>,
    /// Tables that could not be read whole.
    pub problems: Vec<Problem>,
    /// Takeovers whose decisions could not be read: they may hide anything of their users.
    pub losses: Vec<Loss>,
    heads: OnceLock<Vec<(Id, u64)>>,
    attempts: Mutex<HashMap<(u32, String), Option<Order>>>,
}

impl TakeoverContent {
    /// All that takeovers say.
    pub fn new(takeovers: Takeovers) -> Result<TakeoverContent> {
        TakeoverContent::of(takeovers, None)
    }

    /// The part of it that belongs to a version.
    pub fn at(takeovers: Takeovers, version: &Version) -> Result<TakeoverContent> {
        TakeoverContent::of(takeovers, Some(VersionCommits::new(version.clone(), |_| true)))
    }

    fn of(takeovers: Takeovers, cut: Option<VersionCommits>) -> Result<TakeoverContent> {
        let mut taken = TakeoverContent { cut, ..TakeoverContent::default() };
        for takeover in takeovers.all() {
            for (table, read) in [
                (TakeoverTable::Transactions, TakeoverContent::read_transactions(&mut taken, takeover)),
                (TakeoverTable::StoreRecords, TakeoverContent::read_records(&mut taken, takeover)),
            ] {
                match read {
                    Err(e) if e.kind() == ErrorKind::Corrupt => {
                        let why = format!("{table:?}: {}", e.message());
                        taken.note_damage(takeover, table, why);
                    }
                    read => read?,
                }
            }
        }
        taken.takeovers = takeovers;
        Ok(taken)
    }

    /// Notes a table that cannot be read. Without its decisions a takeover seems to lack what they make visible.
    fn note_damage(&mut self, takeover: &Takeover, table: TakeoverTable, why: String) {
        let file = takeover.shown.clone();
        if table == TakeoverTable::Transactions {
            let (log, owner, known) = (takeover.header.id, takeover.user, takeover.number());
            self.losses.push(Loss { log, owner, seen: 0, known, file: file.clone(), why: why.clone() });
        }
        self.problems.push(Problem { file, why, damage: true, skipped: false });
    }

    fn read_transactions(&mut self, takeover: &Arc<Takeover>) -> Result<()> {
        let user = takeover.user;
        takeover.each_below(TakeoverTable::Transactions, &[], |key, value| {
            let transaction = fieldstone_format::bytes::Cursor::new(key).id()?;
            let row = TransactionRow::decode(transaction, value)?;
            for DecisionRow { stamp, writer, sequence, decision } in row.decisions {
                if self.has(takeover, writer, sequence)? {
                    let decided = Arc::new(Decided { decision, stamp, sequence });
                    self.decisions.push(TakenDecision { user, writer, decided });
                }
            }
            for PreparedRow { writer, sequence, fields, since } in row.prepared {
                let prepared = match self.has(takeover, writer, sequence)? {
                    true => Some(Prepared { writer, user, sequence, fields, since }),
                    false => self.prepared_before(takeover, writer, transaction)?,
                };
                self.prepared.extend(prepared.map(|prepared| (transaction, prepared)));
            }
            Ok(())
        })
    }

    /// The commits that a log had prepared under a transaction in the version that the snapshot is cut back to.
    fn prepared_before(
        &self,
        takeover: &Arc<Takeover>,
        writer: Id,
        transaction: Id,
    ) -> Result<Option<Prepared>> {
        let head = self.cut.as_ref().map_or(0, |cut| cut.version().sequence(writer));
        let mut found: Option<Prepared> = None;
        takeover.each_commit(writer, |commit| {
            let (info, (fields, _)) = (commit.info, commit.published);
            if info.sequence <= head && info.transaction == Some(transaction) {
                let (sequence, since, user) = (info.sequence, info.time, takeover.user);
                let first = Prepared { writer, user, sequence, fields: 0, since };
                let prepared = found.get_or_insert(first);
                (prepared.sequence, prepared.fields) = (sequence, prepared.fields + fields);
            }
            Ok(())
        })?;
        Ok(found)
    }

    fn read_records(&mut self, takeover: &Arc<Takeover>) -> Result<()> {
        let user = takeover.user;
        takeover.each_below(TakeoverTable::StoreRecords, &[], |key, value| {
            let row = StoreRecordRow::decode(key, value)?;
            let (stamp, writer, sequence, time) = (row.stamp, row.writer, row.sequence, row.time);
            if !self.has(takeover, writer, sequence)? {
                return Ok(());
            }
            if let Some(text) = schema_extension::decode(&row.record)? {
                self.extensions.push((user, Arc::new(SchemaExtension { stamp, writer, text })));
            }
            if let Some(setting) = setting::decode(&row.record)? {
                self.settings.push(Arc::new(StoreSetting { stamp, writer, time, user, setting }));
            }
            if let Some(acceptance) = acceptance::decode(&row.record)? {
                let log = writer;
                self.accepted.push(Arc::new(AcceptedLoss { stamp, log, sequence, time, user, acceptance }));
            }
            self.holds.extend(StoreHold::decode((stamp, writer), (user, time), &row.record)?.map(Arc::new));
            self.rules.extend(StoreRule::decode((stamp, writer), (user, time), &row.record)?.map(Arc::new));
            let pointer = StorePointer::decode((stamp, writer), (user, time), &row.record)?;
            self.pointers.extend(pointer.map(Arc::new));
            self.hand_overs.extend(StoreHandOver::decode((stamp, writer), (user, time), &row.record)?);
            if let Some(StoreRecord::Range(range)) = store_record::decode(&row.record)? {
                self.ranges.push(checked(StoreRange { stamp, log: writer, sequence, time, user, range })?);
            }
            Ok(())
        })
    }

    /// Gives each record of the store in takeovers, with its user. A table that cannot be read is named among the problems, and
    /// gives nothing beyond the damage.
    pub fn store_records(&self, each: &mut dyn FnMut(u32, StoreRecordRow)) -> Result<()> {
        for takeover in self.takeovers.all() {
            let read = takeover.each_below(TakeoverTable::StoreRecords, &[], |key, value| {
                let row = StoreRecordRow::decode(key, value)?;
                if self.has(takeover, row.writer, row.sequence)? {
                    each(takeover.user, row);
                }
                Ok(())
            });
            match read {
                Err(e) if e.kind() == ErrorKind::Corrupt => {}
                read => read?,
            }
        }
        Ok(())
    }

    /// Whether the snapshot has a commit of a log that a takeover replaces.
    fn has(&self, takeover: &Arc<Takeover>, writer: Id, sequence: u64) -> Result<bool> {
        let Some(cut) = &self.cut else { return Ok(true) };
        let taken = takeover.log(writer)?.map_or(0, |log| log.row.taken);
        Ok(cut.holds(takeover.user, (writer, sequence), taken))
    }

    /// The takeovers.
    pub fn takeovers(&self) -> &Takeovers {
        &self.takeovers
    }

    /// Whether the snapshot has all that its takeovers hold.
    pub fn is_whole(&self) -> bool {
        self.cut.is_none()
    }

    /// The version that the snapshot is cut back to, where takeovers hold more than that.
    pub fn cut_back_to(&self) -> Option<&Version> {
        self.cut.as_ref().filter(|_| !self.takeovers.is_empty()).map(VersionCommits::version)
    }

    /// Whether the snapshot has a commit, given that its log is one that the snapshot knows.
    #[inline]
    pub fn holds(&self, commit: &EntryCommit) -> bool {
        match &self.cut {
            Some(cut) if commit.taken > 0 => {
                cut.holds(commit.user, (commit.writer, commit.sequence), commit.taken)
                    && commit.forgotten.is_none_or(|order| self.holds_decision(order))
            }
            _ => true,
        }
    }

    /// Whether the snapshot has the decision that gave a commit its place in the order.
    pub(crate) fn holds_decision(&self, order: Order) -> bool {
        self.cut.as_ref().is_none_or(|cut| cut.holds_decision(&self.takeovers, order))
    }

    /// Whether the version that the snapshot is cut back to has all that a takeover has.
    pub fn holds_all(&self, takeover: &Takeover) -> bool {
        self.cut.as_ref().is_none_or(|cut| takeover.number() <= cut.number(takeover.user))
    }

    /// The log of a writer that a takeover replaces; none where no table says so, or the snapshot has no commit of it.
    pub fn log(&self, writer: Id) -> Option<(&Arc<Takeover>, TakenLog)> {
        let (takeover, log) = self.takeovers.log(writer).ok().flatten()?;
        (self.head(takeover, &log) > 0).then_some((takeover, log))
    }

    /// The last commit of a log that the snapshot has; 0 for none.
    pub fn head(&self, takeover: &Takeover, log: &TakenLog) -> u64 {
        let (last, taken) = (log.row.sequence, log.row.taken);
        match &self.cut {
            Some(cut) if !cut.holds(takeover.user, (log.writer, last), taken) => {
                cut.version().sequence(log.writer)
            }
            _ => last,
        }
    }

    /// The logs that takeovers replace, each with its last commit that the snapshot has. Those that cannot be read are left
    /// out.
    pub fn heads(&self) -> &[(Id, u64)] {
        self.heads.get_or_init(|| {
            let mut heads = Vec::new();
            for takeover in self.takeovers.all() {
                let _ = takeover.each_log(|log| {
                    let head = self.head(takeover, &log);
                    heads.extend((head > 0).then_some((log.writer, head)));
                    Ok(())
                });
            }
            heads.sort_unstable();
            heads
        })
    }

    /// When an attempt of a user began, as far as takeovers know it.
    pub fn attempt(&self, user: u32, name: &str) -> Option<Order> {
        if self.takeovers.all().iter().all(|takeover| takeover.rows(TakeoverTable::Attempts) == 0) {
            return None;
        }
        let mut known = self.attempts.lock();
        *known.entry((user, name.to_owned())).or_insert_with(|| {
            let own = self.takeovers.all().iter().filter(|takeover| takeover.user == user);
            own.filter_map(|takeover| takeover.attempt(name).ok().flatten()).min()
        })
    }

    /// The row of a dataset in each takeover that has one, by its encoded first level.
    pub fn each_dataset(&self, mut each: impl FnMut(&Takeover, &[u8], &DatasetRow)) -> Result<()> {
        for takeover in self.takeovers.all() {
            takeover.each_below(TakeoverTable::Datasets, &[], |key, value| {
                each(takeover, key, &DatasetRow::decode(value)?);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Whether purges have dropped entries since the version that the snapshot is cut back to, in a dataset that is wanted (R31).
    pub fn is_purged(&self, mut is_wanted: impl FnMut(&[u8]) -> Result<bool>) -> Result<bool> {
        let Some(cut) = &self.cut else { return Ok(false) };
        let mut is_purged = false;
        for takeover in self.takeovers.all() {
            let known = cut.number(takeover.user);
            if takeover.number() <= known {
                continue;
            }
            takeover.each_below(TakeoverTable::Datasets, &[], |key, value| {
                is_purged = is_purged || DatasetRow::decode(value)?.purged > known && is_wanted(key)?;
                Ok(())
            })?;
        }
        Ok(is_purged)
    }

    /// A commit of a log that a takeover replaces, as entries name it by its number.
    pub fn commit(&self, takeover: &Arc<Takeover>, number: u64) -> Result<(EntryCommit, TakenCommit)> {
        let taken = takeover.commit(number)?;
        let mut commit = EntryCommit::new(taken.writer, takeover.user, &taken.info);
        (commit.forgotten, commit.taken) = (taken.order, taken.taken);
        Ok((commit, taken))
    }

    /// The greatest stamp of a commit in a takeover.
    pub fn newest(&self) -> u64 {
        self.takeovers.all().iter().map(|takeover| takeover.header.newest).max().unwrap_or(0)
    }
}
