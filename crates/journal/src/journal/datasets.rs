//! The owners of datasets, whom a writer looks up before it acts.
//!
//! A process remembers what it was allowed: which first levels it has claimed, and which datasets are its user's or nobody's.
//! Both are hints that save a look. A commit asks again, by the snapshot that it begins with, and strikes what does not hold
//! any more. The two locks are held for a moment each, and no other lock is taken under them.

use std::collections::{BTreeSet, HashSet};

use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::keys::level_text;

use super::looks::Looks;
use crate::session::Session;
use crate::snapshot::Snapshot;
use crate::writer::Writer;

/// The levels and datasets that one process may write to.
#[derive(Debug, Default)]
pub struct Allowed {
    /// Encoded first levels that are claimed, or need no claim.
    claimed: Mutex<HashSet<Vec<u8>>>,
    /// Datasets that we are known to own, or that nobody owns yet.
    own: Mutex<HashSet<Vec<u8>>>,
}

/// The datasets of a store, by the users who own them.
#[derive(Debug, Clone, Copy)]
pub struct Datasets<'a> {
    pub(super) looks: Looks<'a>,
    pub(super) allowed: &'a Allowed,
    pub(super) writer: &'a Mutex<Writer>,
}

impl Datasets<'_> {
    /// The user who owns what stands under an encoded first level of keys; `None` where nobody does yet.
    pub fn owner(&self, level: &[u8]) -> Result<Option<u32>> {
        Ok(self.looks.snapshot()?.owner(level))
    }

    /// Makes what stands under an encoded first level ours, from the session's next commit on. Denied where
    /// another user owns it.
    pub fn claim(&self, level: Vec<u8>, session: &Session) -> Result<()> {
        self.looks.access.check_writable()?;
        self.check_owned(level.clone(), session)?;
        self.writer.lock().sessions.take_claim(session.key(), level);
        Ok(())
    }

    /// Refuses a write to the dataset with this encoded first level where someone else made it, or a lock forbids it.
    pub fn check(&self, level: Vec<u8>, session: &Session) -> Result<()> {
        // A process that has seen no lock looks for one when it commits.
        if self.looks.state.has_locks() {
            self.check_unlocked(LockKind::Archive, &level, &*self.looks.snapshot()?)?;
        }
        self.check_owned(level, session)
    }

    /// Refuses what a lock forbids in the dataset with this encoded first level.
    pub fn check_unlocked(&self, kind: LockKind, level: &[u8], snapshot: &Snapshot) -> Result<()> {
        let identity = &self.looks.access.env().identity;
        let against = snapshot.locks.against(kind, level, snapshot)?;
        let heeded = against.filter(|_| kind != LockKind::Archive || !planted::is(Planted::LockIgnored));
        heeded.map_or(Ok(()), |lock| Err(lock.error(level, &**identity)))
    }

    /// Refuses the dataset with this encoded first level where someone else made it.
    pub fn check_owned(&self, level: Vec<u8>, session: &Session) -> Result<()> {
        let access = self.looks.access;
        access.check_user(session)?;
        if self.allowed.own.lock().contains(&level) {
            return Ok(());
        }
        let snapshot = self.looks.snapshot()?;
        access.check_versions(&snapshot)?;
        self.check_owner(&level, &snapshot, session)?;
        self.allowed.own.lock().insert(level);
        Ok(())
    }

    /// Forgets which datasets are ours: some may have become another's.
    pub(super) fn forget_owned(&self) {
        self.allowed.own.lock().clear();
    }

    /// Lets a commit write to the datasets of encoded first levels, and claims these where others may write into the store.
    /// Denied where somebody else owns one of them.
    pub(super) fn admit(
        &self,
        levels: &BTreeSet<Vec<u8>>,
        snapshot: &Snapshot,
        session: &Session,
    ) -> Result<()> {
        for level in levels {
            self.check_owner(level, snapshot, session).inspect_err(|_| {
                self.allowed.own.lock().remove(level);
            })?;
            self.check_unlocked(LockKind::Archive, level, snapshot)?;
        }
        let mut new: Vec<&Vec<u8>> = {
            let claimed = self.allowed.claimed.lock();
            levels.iter().filter(|level| !claimed.contains(*level)).collect()
        };
        if new.is_empty() {
            return Ok(());
        }
        loop {
            match self.looks.medium.claim(&new)? {
                Ok(true) => self.allowed.claimed.lock().extend(new.into_iter().cloned()),
                Ok(false) => {}
                Err((level, owner)) if self.is_handed_over(&level, owner, snapshot, session) => {
                    new.retain(|other| **other != level);
                    continue;
                }
                Err((level, owner)) => {
                    self.allowed.own.lock().remove(&level);
                    return Err(self.not_owner(&level, owner));
                }
            }
            return Ok(());
        }
    }

    /// Whether a hand-over overrides the claim of another user on an encoded first level, for the session's user.
    fn is_handed_over(&self, level: &[u8], claimed: u32, snapshot: &Snapshot, session: &Session) -> bool {
        let (user, hand_overs) = (self.looks.access.user(session), &snapshot.hand_overs);
        !hand_overs.is_empty()
            && (snapshot.owner(level) == Some(user)
                || hand_overs.predecessors(user, u64::MAX).contains(&claimed))
    }

    fn check_owner(&self, level: &[u8], snapshot: &Snapshot, session: &Session) -> Result<()> {
        let user = self.looks.access.user(session);
        match snapshot.owner(level) {
            Some(owner) if owner != user && !planted::is(Planted::OwnerUnchecked) => {
                Err(self.not_owner(level, owner))
            }
            _ => Ok(()),
        }
    }

    fn not_owner(&self, level: &[u8], owner: u32) -> Error {
        let name = self.looks.access.env().identity.user_name(owner);
        let dataset = level_text(level);
        Code::DatasetOwned
            .error(format!("dataset {dataset} is owned by {name}"))
            .with_hint(format!("ask {name}, or archive under another dataset"))
    }
}
