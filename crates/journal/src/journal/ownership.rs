//! Whose a dataset and a transaction are, as a writer asks before it acts.

use std::collections::BTreeSet;

use fieldstone_core::env::Identity;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::level_text;

use super::Journal;
use crate::session::Session;
use crate::snapshot::Snapshot;

impl Journal {
    /// The user who owns what stands under an encoded first level of keys; `None` where nobody does yet.
    pub fn owner(&self, level: &[u8]) -> Result<Option<u32>> {
        Ok(self.snapshot()?.owner(level))
    }

    /// Makes what stands under an encoded first level ours, from the session's next commit on. Denied where
    /// another user owns it.
    pub fn claim(&self, level: Vec<u8>, session: &Session) -> Result<()> {
        self.check_writable()?;
        self.check_prefix(level.clone(), session)?;
        check_user(&*self.env.identity, session)?;
        self.state().writer.lock().take_claim(session.key(), level);
        Ok(())
    }

    /// Refuses datasets that someone else made.
    pub(super) fn check_owner(&self, prefix: &[u8], snapshot: &Snapshot, session: &Session) -> Result<()> {
        let uid = session.user(&*self.env.identity);
        match snapshot.owner(prefix) {
            Some(owner) if owner != uid => Err(self.not_owner(prefix, owner)),
            _ => Ok(()),
        }
    }

    /// Claims encoded first levels where others may write into the store; Denied where somebody else did.
    pub(super) fn claim_levels(&self, levels: &BTreeSet<Vec<u8>>) -> Result<()> {
        let state = self.state();
        let new: Vec<&Vec<u8>> = {
            let claimed = state.claimed.lock();
            levels.iter().filter(|level| !claimed.contains(*level)).collect()
        };
        if new.is_empty() {
            return Ok(());
        }
        match self.medium().claim(&new)? {
            Ok(true) => state.claimed.lock().extend(new.into_iter().cloned()),
            Ok(false) => {}
            Err((level, owner)) => {
                state.own_datasets.lock().remove(&level);
                return Err(self.not_owner(&level, owner));
            }
        }
        Ok(())
    }

    pub(super) fn not_owner(&self, prefix: &[u8], owner: u32) -> Error {
        let name = self.env.identity.user_name(owner);
        let dataset = level_text(prefix);
        Code::DatasetOwned
            .error(format!("dataset {dataset} is owned by {name}"))
            .with_hint(format!("ask {name}, or archive under another dataset"))
    }

    /// Refuses the dataset with this encoded first level where someone else made it.
    pub fn check_prefix(&self, prefix: Vec<u8>, session: &Session) -> Result<()> {
        check_user(&*self.env.identity, session)?;
        if self.state().own_datasets.lock().contains(&prefix) {
            return Ok(());
        }
        let snapshot = self.snapshot()?;
        self.check_versions(&snapshot)?;
        self.check_owner(&prefix, &snapshot, session)?;
        self.state().own_datasets.lock().insert(prefix);
        Ok(())
    }

    /// Denied where a transaction holds what other users flushed and nothing of ours: a user decides for his
    /// own logs.
    pub(super) fn check_decider(
        &self,
        transaction: Id,
        covers: &[(Id, u64)],
        snapshot: &Snapshot,
    ) -> Result<()> {
        let other = snapshot.prepared_by_all(transaction).next();
        let Some((log, _)) = other.filter(|_| covers.is_empty()) else { return Ok(()) };
        if self.state().begun.lock().contains(&transaction) {
            return Ok(());
        }
        let name = self.env.identity.user_name(log.uid);
        Err(Code::TransactionOwned
            .error(format!("transaction {transaction} is {name}'s: each user decides for his own logs"))
            .with_hint(format!("ask {name} to commit or abort it")))
    }
}

/// Denied where a session's user is not the one who owns what this process writes: a log is its file's owner's.
pub(super) fn check_user(identity: &dyn Identity, session: &Session) -> Result<()> {
    let (user, own) = (session.user(identity), identity.uid());
    if user == own {
        return Ok(());
    }
    let (user, own) = (identity.user_name(user), identity.user_name(own));
    Err(Code::StoreOwned
        .error(format!("a session of {user} cannot write here: what this process writes is owned by {own}"))
        .with_hint(format!("let {user} write from a process of their own")))
}
