//! Settings of the whole store and hand-overs, which its owner makes (J-33, J-55), holds, which anybody sets, and rules of
//! retention (J-47).

use fieldstone_core::Result;
use fieldstone_format::owner::Owner;
use fieldstone_format::schema_extension;
use fieldstone_format::setting::{self, Setting};
use fieldstone_format::store_record::{self, HandOver, Hold, Rule, STORE_RECORDS_SINCE, StoreRecord};

use super::commit::Committer;
use crate::session::Session;
use crate::snapshot::datasets_of;
use crate::writer::check_format;

/// The user who may do anything.
const ROOT: u32 = 0;

/// The settings of a store.
#[derive(Debug, Clone, Copy)]
pub struct StoreSettings<'a> {
    pub(super) committer: Committer<'a>,
}

impl StoreSettings<'_> {
    /// How something is set, as far as this handle has looked; the first call looks.
    pub fn get(&self, name: &str) -> Option<String> {
        let looks = self.committer.looks();
        looks.follow_first();
        looks.schema.setting(name)
    }

    /// Sets something, durably. Denied for others than the store's owner.
    pub fn set(&self, setting: &Setting, session: &Session) -> Result<()> {
        let looks = self.committer.looks();
        looks.access.check_writable()?;
        let (horizon, snapshot) = looks.horizon()?;
        looks.access.check_store_owner(&snapshot, "set", session)?;
        let records = vec![setting::encode(setting)];
        self.committer.decide(schema_extension::flag(), records, horizon, session)?;
        looks.snapshot().map(drop)
    }

    /// Keeps a purge from dropping anything until the hold expires, durably; a newer hold of the same name takes its place.
    pub fn hold(&self, hold: &Hold, session: &Session) -> Result<()> {
        let looks = self.committer.looks();
        looks.access.check_writable()?;
        let (horizon, snapshot) = looks.horizon()?;
        check_format(STORE_RECORDS_SINCE, snapshot.format.version, "a hold")?;
        let records = vec![store_record::encode(&StoreRecord::Hold(hold.clone()))];
        self.committer.decide(schema_extension::flag(), records, horizon, session).map(drop)
    }

    /// Makes a rule of retention, or ends one, durably; it takes the place of this user's rule of the same name.
    pub fn retain(&self, rule: &Rule, session: &Session) -> Result<()> {
        let looks = self.committer.looks();
        looks.access.check_writable()?;
        let (horizon, snapshot) = looks.horizon()?;
        check_format(STORE_RECORDS_SINCE, snapshot.format.version, "a rule of retention")?;
        let records = vec![store_record::encode(&StoreRecord::Rule(rule.clone()))];
        // It does not belong to a transaction, as wipes do not.
        self.committer.decide(schema_extension::flag(), records, horizon, &session.within(None))?;
        looks.snapshot().map(drop)
    }

    /// Denied for others than the store's owner and root, who alone hand over.
    pub fn check_may_hand_over(&self, session: &Session) -> Result<()> {
        let looks = self.committer.looks();
        looks.access.check_user(session)?;
        match looks.access.user(session) {
            ROOT => Ok(()),
            _ => looks.access.check_store_owner(&*looks.snapshot()?, "hand over", session),
        }
    }

    /// Hands over what belongs to a user to another one, durably; returns how many datasets that are. Denied for others than
    /// the store's owner and root.
    pub fn hand_over(&self, (from, to): (u32, u32), session: &Session) -> Result<u64> {
        let looks = self.committer.looks();
        looks.access.check_writable()?;
        self.check_may_hand_over(session)?;
        let (horizon, snapshot) = looks.horizon()?;
        check_format(STORE_RECORDS_SINCE, snapshot.format.version, "a hand-over")?;
        let datasets = datasets_of(&snapshot, from)?;
        let made = HandOver { from: Owner::User(from), to: Owner::User(to) };
        let records = vec![store_record::encode(&StoreRecord::HandOver(made))];
        // It does not belong to a transaction, as wipes do not.
        self.committer.decide(schema_extension::flag(), records, horizon, &session.within(None))?;
        self.committer.datasets.forget_owned();
        looks.snapshot().map(|_| datasets)
    }
}
