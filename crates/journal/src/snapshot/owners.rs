//! Owners of datasets (promise 10). Logs of other users do not count for a dataset, whatever they hold.
//!
//! If users differ, the owner is the first of these that exists:
//! * the owner of the folder of logs, if one of the owner's logs has entries in the dataset: that user could replace
//!   all others' files;
//! * the user who claimed it ([`Claims`]);
//! * the user whose log holds the oldest commit into it. This rule serves stores into which others could not write
//!   when the dataset was made; a date proves nothing.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::Id;

use super::{Order, SnapshotLog, TakeoverContent};
use crate::entry_source::{EntryCursor, EntrySource};
use crate::medium::Claims;

/// Owners of datasets, as far as they matter.
#[derive(Debug, Clone)]
pub enum Owners {
    /// All logs are of one user (or there is none).
    One(Option<u32>),
    /// Owner by the encoded first level of the keys; and claims, for levels without entries.
    Many(HashMap<Vec<u8>, u32>, Arc<dyn Claims>),
}

impl Owners {
    /// Looks the owners up; reads no index and no claim while there is only one user.
    pub fn find(
        logs: &[Arc<SnapshotLog>],
        sources: &[EntrySource],
        taken: &TakeoverContent,
        claims: &Arc<dyn Claims>,
        folder: Option<u32>,
    ) -> Result<Owners> {
        let of_takeovers = taken.takeovers().all().iter().map(|takeover| takeover.user);
        let mut users = logs.iter().map(|log| log.uid).chain(of_takeovers);
        let first = users.next();
        if users.all(|user| Some(user) == first) {
            return Ok(Owners::One(first));
        }
        let mut oldest: HashMap<Vec<u8>, Candidate> = HashMap::new();
        let mut note = |prefix: &[u8], (stamp, writer): Order, uid: u32| {
            let candidate = Candidate { guest: Some(uid) != folder, stamp, writer, uid };
            match oldest.get_mut(prefix) {
                Some(known) => *known = (*known).min(candidate),
                None => drop(oldest.insert(prefix.to_vec(), candidate)),
            }
        };
        for source in sources {
            let EntrySource::Segment(segment, log) = source else { continue };
            let log = &logs[*log as usize];
            // A segment that cannot be read holds nothing that could be owned.
            let Ok(meta) = segment.meta() else { continue };
            let mut note = |prefix: &[u8], commit: u64| {
                if let Some(info) = meta.commits.get(commit as usize) {
                    note(prefix, (info.stamp, log.writer), log.uid);
                }
            };
            if let Some(datasets) = &meta.datasets {
                datasets.iter().for_each(|(prefix, commit)| note(prefix, *commit));
                continue;
            }
            let mut cursor = EntryCursor::tolerant(source, 0);
            while cursor.advance()? {
                note(&cursor.key()[..cursor.dataset_end()?], cursor.commit()?);
            }
        }
        // R22: who owns a dataset stays on record when its oldest entry goes.
        taken.each_dataset(|takeover, prefix, row| note(prefix, (row.stamp, row.writer), takeover.user))?;
        let owner = |(prefix, candidate): (Vec<u8>, Candidate)| {
            let claimed = if candidate.guest { claims.owner(&prefix) } else { None };
            (prefix, claimed.unwrap_or(candidate.uid))
        };
        Ok(Owners::Many(oldest.into_iter().map(owner).collect(), claims.clone()))
    }

    /// The owner of the dataset with this encoded first level; `None` where it has none yet.
    pub fn of(&self, prefix: &[u8], exists: impl FnOnce() -> bool) -> Option<u32> {
        match self {
            Owners::One(owner) => owner.filter(|_| exists()),
            Owners::Many(owners, claims) => owners.get(prefix).copied().or_else(|| claims.owner(prefix)),
        }
    }

    /// Whether entries of a log of `uid` count in the dataset with this encoded first level.
    #[inline]
    pub fn counts(&self, prefix: &[u8], uid: u32) -> bool {
        match self {
            Owners::One(_) => true,
            Owners::Many(owners, _) => owners.get(prefix) == Some(&uid),
        }
    }
}

/// A user who wrote into a dataset; the least one owns it where nobody claimed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Candidate {
    /// Whether he does not own the folder.
    guest: bool,
    stamp: u64,
    writer: Id,
    uid: u32,
}
