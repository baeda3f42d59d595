//! Ranges of the store: what its owners say of many entries at once (takeovers.md, 6.2).

use fieldstone_core::{Code, Result};
use fieldstone_format::keys::level_text;
use fieldstone_format::log::SideRecord;
use fieldstone_format::schema_extension;
use fieldstone_format::store_record::{self, Erasure, Range, RangeAction, Selection, StoreRecord};

use super::commit::Committer;
use crate::session::Session;
use crate::snapshot::Snapshot;

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

    /// Hides for good, durably, what a snapshot shows of these selections; with an age, what is older than that time.
    pub fn wipe(
        &self,
        selections: Vec<Selection>,
        shown: &Snapshot,
        age: Option<i64>,
        session: &Session,
    ) -> Result<()> {
        let version = shown.version().to_record();
        let record = |selection| {
            let range = Range { action: RangeAction::Wipe, selection, version: version.clone(), age };
            store_record::encode(&StoreRecord::Range(range))
        };
        self.record(selections.into_iter().map(record).collect(), session)
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
