//! Ranges of the store: what its owners say of many entries at once (takeovers.md, 6.2).

use std::sync::Arc;

use fieldstone_core::key::{KeyValue, Level};
use fieldstone_core::{Code, Result};
use fieldstone_format::keys::level_text;
use fieldstone_format::log::SideRecord;
use fieldstone_format::schema_extension;
use fieldstone_format::store_record::{
    self, Erasure, Pointer, Range, RangeAction, Selection, SelectionItem, StoreRecord,
};

use super::commit::Committer;
use crate::session::Session;
use crate::snapshot::{Snapshot, StoreRange};

/// The user who may do anything.
const ROOT: u32 = 0;

/// The ranges of a store.
#[derive(Debug, Clone, Copy)]
pub struct Ranges<'a> {
    pub(super) committer: Committer<'a>,
}

impl Ranges<'_> {
    /// Denied for others than root, the owner of the folder of logs, and whoever owns the dataset with this encoded first
    /// level.
    pub fn check_may(&self, level: &[u8], snapshot: &Snapshot, what: &str, session: &Session) -> Result<()> {
        let access = self.committer.looks().access;
        access.check_user(session)?;
        let user = access.user(session);
        let Some(owner) = snapshot.owner(level).filter(|owner| *owner != user) else { return Ok(()) };
        if user == ROOT || snapshot.folder_owner == Some(user) {
            return Ok(());
        }
        let (name, dataset) = (access.env().identity.user_name(owner), level_text(level));
        Err(Code::DatasetOwned
            .error(format!("dataset {dataset} is owned by {name}: it is not yours to {what}"))
            .with_hint(format!("ask {name}")))
    }

    /// Denied for others than root, the owner of the folder of logs, and whoever made a range or was handed over what its maker
    /// had; `shown` says what that one did.
    pub fn check_may_end(
        &self,
        made: &StoreRange,
        snapshot: &Snapshot,
        shown: impl FnOnce(&str) -> String,
        session: &Session,
    ) -> Result<()> {
        let access = self.committer.looks().access;
        access.check_user(session)?;
        let user = access.user(session);
        let is_own = made.is_of(user, u64::MAX, &snapshot.hand_overs);
        if is_own || user == ROOT || snapshot.folder_owner == Some(user) {
            return Ok(());
        }
        let by = access.env().identity.user_name(made.user);
        let error = Code::DatasetOwned.error(format!("{}: it is not yours to end", shown(&by)));
        Err(error.with_hint(format!("ask {by}")))
    }

    /// Hides, durably, what a snapshot shows of these selections, by a wipe or by a hide; with an age, what is older than that
    /// time.
    pub fn hide(
        &self,
        action: &RangeAction,
        selections: Vec<Selection>,
        (shown, age): (&Snapshot, Option<i64>),
        session: &Session,
    ) -> Result<()> {
        let version = shown.version();
        // A takeover counts as soon as it has its name, which its maker may not have made durable yet. If a power cut took it, the
        // record would speak of nothing, and all that it hides would be back.
        if let Some(files) = self.committer.looks().medium.files().filter(|_| !version.takeovers().is_empty())
        {
            files.sync_logs()?;
        }
        let version = version.to_record();
        let range = |selection| Range { action: action.clone(), selection, version: version.clone(), age };
        self.put(selections.into_iter().map(range), session)
    }

    /// Ends hides durably: for each of these, the newest one of its selection.
    pub fn end_hides(&self, hides: &[Arc<StoreRange>], session: &Session) -> Result<()> {
        let range = |hide: &Arc<StoreRange>| Range {
            action: RangeAction::End(Box::new(RangeAction::Hide)),
            selection: hide.range.selection.clone(),
            version: Vec::new(),
            age: None,
        };
        self.put(hides.iter().map(range), session)
    }

    /// Sets locks on whole datasets, or ends them, durably: each dataset by its first level, with the bits of the lock.
    pub fn lock(&self, datasets: &[(Level, u8)], locks: bool, session: &Session) -> Result<()> {
        let range = |(level, what): &(Level, u8)| {
            let item = |(keyword, value): (&Arc<str>, &KeyValue)| SelectionItem {
                level: 0,
                keyword: keyword.clone(),
                values: vec![value.clone()],
            };
            let lock = RangeAction::Lock(*what);
            let action = if locks { lock } else { RangeAction::End(Box::new(lock)) };
            let items = level.names.iter().zip(&level.values).map(item).collect();
            Range { action, selection: Selection { items }, version: Vec::new(), age: None }
        };
        self.put(datasets.iter().map(range), session)
    }

    /// Makes overlays durably, or ends them: for each selection and its values the newest one.
    pub fn overlay(
        &self,
        overlays: Vec<(Selection, RangeAction)>,
        shows: bool,
        session: &Session,
    ) -> Result<()> {
        let range = |(selection, overlay): (Selection, RangeAction)| {
            let action = if shows { overlay } else { RangeAction::End(Box::new(overlay)) };
            Range { action, selection, version: Vec::new(), age: None }
        };
        self.put(overlays.into_iter().map(range), session)
    }

    fn put(&self, ranges: impl Iterator<Item = Range>, session: &Session) -> Result<()> {
        let records = ranges.map(|range| store_record::encode(&StoreRecord::Range(range))).collect();
        self.record(records, session)
    }

    /// Notes, durably, that another store names entries of this one, or names them no more.
    pub fn point(&self, pointers: Vec<Pointer>, session: &Session) -> Result<()> {
        let record = |pointer| store_record::encode(&StoreRecord::Pointer(pointer));
        self.record(pointers.into_iter().map(record).collect(), session)
    }

    /// Notes, durably, that something is made unreadable.
    pub fn note_erasure(&self, erasure: Erasure, session: &Session) -> Result<()> {
        self.record(vec![store_record::encode(&StoreRecord::Erasure(erasure))], session)
    }

    fn record(&self, records: Vec<SideRecord>, session: &Session) -> Result<()> {
        let looks = self.committer.looks();
        let (horizon, _) = looks.horizon()?;
        // It does not belong to a transaction: everybody sees it.
        self.committer.decide(schema_extension::flag(), records, horizon, &session.within(None))?;
        looks.snapshot().map(drop)
    }
}
