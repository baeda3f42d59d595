//! Owners of datasets (promise 10). Logs of other users do not count for a dataset, whatever they hold.
//!
//! If users differ, the first owner is the first of these that exists:
//! * the owner of the folder of logs, if one of the owner's logs has entries in the dataset: that user could replace
//!   all others' files;
//! * the user who claimed it ([`Claims`]);
//! * the user whose log holds the oldest commit into it. This rule serves stores into which others could not write
//!   when the dataset was made; a date proves nothing.
//!
//! Hand-overs make it another's from a stamp on ([`super::hand_overs`]): an entry counts if its user owned the dataset at its
//! stamp. Then, too:
//! * the owner of the folder does not own it first by entries that he wrote while the dataset was his by a hand-over;
//! * a claim of a user who handed over what he had says nothing of a dataset without entries: he may begin it, as may those
//!   to whom he handed over, and whoever does owns it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::Id;

use super::hand_overs::{HandOvers, owned_then, takes_over};
use super::{Order, Snapshot, SnapshotLog, TakeoverContent};
use crate::entry_source::{EntryCursor, EntrySource};
use crate::medium::Claims;

/// Owners of datasets, as far as they matter.
#[derive(Debug, Clone)]
pub enum Owners {
    /// All logs are of one user (or there is none).
    One(Option<u32>),
    /// Users differ, or did.
    Many(DatasetOwners),
}

/// Owners by the encoded first level of the keys.
#[derive(Debug, Clone)]
pub struct DatasetOwners {
    first: HashMap<Vec<u8>, FirstOwner>,
    /// For levels without entries.
    claims: Arc<dyn Claims>,
    hand_overs: Arc<HandOvers>,
}

/// The user whom a dataset belonged to first, and the stamp of his oldest commit into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FirstOwner {
    user: u32,
    since: u64,
}

/// The content of a snapshot in which owners are looked up.
#[derive(Debug, Clone, Copy)]
pub(super) struct WrittenLogs<'a> {
    pub logs: &'a [Arc<SnapshotLog>],
    pub sources: &'a [EntrySource],
    pub taken: &'a TakeoverContent,
}

impl Owners {
    /// Looks the owners up; reads no index and no claim while there is only one user.
    pub(super) fn find(
        written: WrittenLogs<'_>,
        claims: &Arc<dyn Claims>,
        folder: Option<u32>,
        hand_overs: &Arc<HandOvers>,
    ) -> Result<Owners> {
        let of_takeovers = written.taken.takeovers().all().iter().map(|takeover| takeover.user);
        let mut users = written.logs.iter().map(|log| log.uid).chain(of_takeovers);
        let first = users.next();
        if hand_overs.is_empty() && users.all(|user| Some(user) == first) {
            return Ok(Owners::One(first));
        }
        let (claims, hand_overs) = (claims.clone(), hand_overs.clone());
        Ok(Owners::Many(DatasetOwners::find(written, claims, folder, hand_overs)?))
    }

    /// The owner at a stamp of the dataset with this encoded first level, by these hand-overs; `None` where it has none yet.
    pub fn of(
        &self,
        prefix: &[u8],
        (hand_overs, at): (&HandOvers, u64),
        exists: impl FnOnce() -> bool,
    ) -> Option<u32> {
        match self {
            // A dataset of an older snapshot was there before them: else they were among its own.
            Owners::One(owner) => owner.filter(|_| exists()).map(|owner| hand_overs.owner_at(owner, 0, at)),
            Owners::Many(owners) => owners.of(prefix, hand_overs, at),
        }
    }

    /// Whether an entry that a user's log holds counts in the dataset with this encoded first level; `stamp`: that of its
    /// commit, which is asked for where the dataset was handed over.
    #[inline]
    pub fn counts(&self, prefix: &[u8], uid: u32, stamp: impl FnOnce() -> Result<u64>) -> Result<bool> {
        let Owners::Many(owners) = self else { return Ok(true) };
        let Some(first) = owners.first.get(prefix) else { return Ok(false) };
        match owners.says(*first, uid) {
            Some(counts) => Ok(counts),
            None => Ok(owned_then(&owners.hand_overs, (first.user, first.since), (uid, stamp()?))),
        }
    }

    /// Whether entries of a user may count in the dataset with this encoded first level.
    #[inline]
    pub fn may_count(&self, prefix: &[u8], uid: u32) -> bool {
        let Owners::Many(owners) = self else { return true };
        owners.first.get(prefix).is_some_and(|first| owners.says(*first, uid) != Some(false))
    }
}

/// Whether the entry under a cursor on a source counts in the dataset with this encoded first level.
#[inline]
pub fn entry_counts(snapshot: &Snapshot, dataset: &[u8], cursor: &EntryCursor) -> Result<bool> {
    let stamp = || Ok(snapshot.commit_at(cursor.index, cursor.commit()?)?.stamp);
    snapshot.owners.counts(dataset, snapshot.user_of_source(cursor.index), stamp)
}

/// The owner at a stamp of the dataset with this encoded first level.
pub fn owner_then(snapshot: &Snapshot, level: &[u8], at: u64) -> Option<u32> {
    snapshot.owners.of(level, (&snapshot.hand_overs, at), || snapshot.has_dataset(level))
}

/// The user who owned the dataset with this encoded first level first, and since which stamp.
pub fn first_owner(snapshot: &Snapshot, level: &[u8]) -> Option<(u32, u64)> {
    match &snapshot.owners {
        Owners::One(owner) => owner.filter(|_| snapshot.has_dataset(level)).map(|owner| (owner, 0)),
        Owners::Many(owners) => {
            owners.first(level, &owners.hand_overs).map(|first| (first.user, first.since))
        }
    }
}

/// The number of datasets with entries that a user owns.
pub fn datasets_of(snapshot: &Snapshot, user: u32) -> Result<u64> {
    let count = match &snapshot.owners {
        Owners::Many(owners) => owners.all().filter(|(_, owner)| *owner == user).count(),
        Owners::One(owner) if *owner == Some(user) => {
            let Snapshot { logs, sources, taken, .. } = snapshot;
            let mut all: HashSet<Vec<u8>> = HashSet::new();
            each_dataset(WrittenLogs { logs, sources, taken }, |prefix, _, _| {
                if !all.contains(prefix) {
                    all.insert(prefix.to_vec());
                }
            })?;
            all.len()
        }
        Owners::One(_) => 0,
    };
    Ok(count as u64)
}

impl DatasetOwners {
    fn find(
        written: WrittenLogs<'_>,
        claims: Arc<dyn Claims>,
        folder: Option<u32>,
        hand_overs: Arc<HandOvers>,
    ) -> Result<DatasetOwners> {
        let mut oldest: HashMap<Vec<u8>, Vec<Candidate>> = HashMap::new();
        let note = |prefix: &[u8], (stamp, writer): Order, uid: u32| {
            let candidate = Candidate { guest: Some(uid) != folder, stamp, writer, uid };
            let Some(known) = oldest.get_mut(prefix) else {
                oldest.insert(prefix.to_vec(), vec![candidate]);
                return;
            };
            // Only hand-overs ask for others than the least.
            match known.iter_mut().find(|known| hand_overs.is_empty() || known.uid == uid) {
                Some(known) => *known = (*known).min(candidate),
                None => known.push(candidate),
            }
        };
        each_dataset(written, note)?;
        let owner = |(prefix, mut all): (Vec<u8>, Vec<Candidate>)| {
            all.sort_unstable();
            let first = first_of(&all, || claims.owner(&prefix), &hand_overs);
            first.map(|first| (prefix, first))
        };
        let first = oldest.into_iter().filter_map(owner).collect();
        Ok(DatasetOwners { first, claims, hand_overs })
    }

    fn of(&self, prefix: &[u8], hand_overs: &HandOvers, at: u64) -> Option<u32> {
        let first = self.first(prefix, hand_overs)?;
        Some(hand_overs.owner_at(first.user, first.since, at))
    }

    fn first(&self, prefix: &[u8], hand_overs: &HandOvers) -> Option<FirstOwner> {
        self.first.get(prefix).copied().or_else(|| {
            let claimed = self.claims.owner(prefix).filter(|user| !hand_overs.concern(*user))?;
            Some(FirstOwner { user: claimed, since: 0 })
        })
    }

    /// Each dataset with entries, by its encoded first level, and its owner.
    pub fn all(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.first.iter().map(|(prefix, first)| (&prefix[..], self.hand_overs.owner(first.user, first.since)))
    }

    /// Whether entries of a user count in a dataset that began so, as far as that is one and the same for all of them.
    #[inline]
    fn says(&self, first: FirstOwner, uid: u32) -> Option<bool> {
        if self.hand_overs.is_empty() {
            return Some(first.user == uid);
        }
        match first.user == uid {
            true if !self.hand_overs.concern(uid) => Some(true),
            false if !self.hand_overs.reach(uid) => Some(false),
            _ => None,
        }
    }
}

/// Notes for each dataset the oldest commits into it: of each source at least the oldest one, with its user.
fn each_dataset(written: WrittenLogs<'_>, mut note: impl FnMut(&[u8], Order, u32)) -> Result<()> {
    for source in written.sources {
        let EntrySource::Segment(segment, log) = source else { continue };
        let log = &written.logs[*log as usize];
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
    written.taken.each_dataset(|takeover, prefix, row| note(prefix, (row.stamp, row.writer), takeover.user))
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

/// The first owner of a dataset, among those who wrote into it, in their order.
fn first_of(
    all: &[Candidate],
    claimed: impl FnOnce() -> Option<u32>,
    hand_overs: &HandOvers,
) -> Option<FirstOwner> {
    let by = |one: &Candidate| FirstOwner { user: one.uid, since: one.stamp };
    let own = all.first().filter(|one| !one.guest);
    if let Some(own) = own.filter(|_| hand_overs.is_empty() || all.len() == 1) {
        return Some(by(own));
    }
    let oldest = all.iter().find(|one| one.guest)?;
    let first = match claimed() {
        None => by(oldest),
        Some(user) => match all.iter().find(|one| one.uid == user) {
            Some(claimed) => by(claimed),
            // Somebody to whom the claim's owner handed over began it.
            None if hand_overs.predecessors(oldest.uid, oldest.stamp).contains(&user) => by(oldest),
            None => FirstOwner { user, since: oldest.stamp },
        },
    };
    let is_above = |own: &&Candidate| takes_over(hand_overs, (first.user, first.since), (own.uid, own.stamp));
    Some(own.filter(is_above).map_or(first, by))
}
