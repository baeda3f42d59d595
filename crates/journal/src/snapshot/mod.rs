//! Snapshots: which commits of which logs a read sees.
//!
//! A snapshot names, for every log, its last commit that belongs to it. Everything else follows from
//! the commit records: the segments to search, the states of transactions, the order of versions. A
//! snapshot never changes; a refresh makes a new one that shares what did not move.

mod accepted;
mod attempts;
mod chain;
mod format;
mod owners;
mod refresh;
mod snapshot_log;
mod user_state;

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::entry::{Entry, Location};
use fieldstone_format::log::kinds;
use fieldstone_format::segment::CommitInfo;
use fieldstone_format::version::Version;

pub use accepted::Accepted;
use attempts::Attempts;
use chain::Layers;
pub use format::{Pin, StoreFormat};
pub use owners::Owners;
pub use refresh::{Flushed, Refresher};
pub use snapshot_log::{AcceptedLoss, SchemaExtension, SnapshotLog, StoreSetting};
pub use user_state::{ALL_KINDS, Decided, UserState};

use crate::medium::Claims;
pub use crate::medium::{LogsGone, Look, Loss, Problem};
use crate::segment::{Segment, SegmentCursor};

/// The position of a version of a field in the order of all versions; the greater one is newer.
pub type Order = (u64, Id);

/// The state of the store that a read sees.
#[derive(Debug)]
pub struct Snapshot {
    /// Logs with at least one commit, by writer id.
    pub logs: Vec<Arc<SnapshotLog>>,
    /// Runs of all logs; `run_log[i]` is the index of run i's log.
    pub segments: Vec<Arc<Segment>>,
    /// Index into `logs` for each segment.
    pub run_log: Vec<u32>,
    /// States by transaction and user: one decides for his own logs and for no other's.
    states: Layers<(Id, u32), Arc<UserState>>,
    /// Extensions of the schema, in the order in which they count, from logs of the owner of the folder of logs.
    pub extensions: Arc<[Arc<SchemaExtension>]>,
    /// Settings of the whole store, by name: the newest of each, from the same logs.
    pub settings: Arc<BTreeMap<String, String>>,
    /// The version of the format that the store is of.
    pub format: StoreFormat,
    /// Losses that are given up.
    pub accepted: Arc<Accepted>,
    /// Since when the attempt of each log is there.
    attempts: Attempts,
    /// Users who own datasets.
    pub owners: Owners,
    /// The owner of the folder of logs.
    pub folder_owner: Option<u32>,
    /// The problems that were found.
    pub problems: Vec<Problem>,
    /// Files and slots of a version of the format that is not known here.
    pub foreign: Vec<String>,
    /// Logs that lost commits.
    pub losses: Vec<Loss>,
    /// The error of every read, where the folder of logs is gone.
    pub without_logs: Option<LogsGone>,
}

impl Snapshot {
    /// The snapshot of a store without commits.
    pub fn empty() -> Snapshot {
        Snapshot {
            logs: Vec::new(),
            segments: Vec::new(),
            run_log: Vec::new(),
            states: Layers::default(),
            extensions: Arc::default(),
            settings: Arc::default(),
            format: StoreFormat::NEW,
            accepted: Arc::default(),
            attempts: Attempts::default(),
            owners: Owners::One(None),
            folder_owner: None,
            problems: Vec::new(),
            foreign: Vec::new(),
            losses: Vec::new(),
            without_logs: None,
        }
    }

    /// A snapshot of these logs, which shares with one before it what did not change.
    fn new(
        mut logs: Vec<Arc<SnapshotLog>>,
        claims: &Arc<dyn Claims>,
        folder_owner: Option<u32>,
        before: Option<&Snapshot>,
    ) -> Result<Snapshot> {
        logs.sort_by_key(|log| log.writer);
        let (mut segments, mut run_log) = (Vec::new(), Vec::new());
        for (i, log) in logs.iter().enumerate() {
            segments.extend(log.segments.iter().cloned());
            run_log.resize(segments.len(), i as u32);
        }
        let states = match before.and_then(|before| states(&logs, before)) {
            Some(states) => states,
            None => states(&logs, &Snapshot::empty()).unwrap_or_default(),
        };
        let owners = Owners::find(&logs, claims, folder_owner)?;
        let extensions = extensions(&logs, folder_owner);
        let set = counted_settings(&logs, folder_owner);
        let format = StoreFormat::find(&logs, &set);
        let settings = by_name(&set);
        let known = before.map(|before| &before.settings).filter(|known| ***known == settings);
        let settings = known.cloned().unwrap_or_else(|| settings.into());
        let attempts = Attempts::of(&logs);
        // A caller that knows these already sees that without comparing them.
        let known = before.map(|before| &before.extensions).filter(|known| ***known == extensions[..]);
        let extensions = known.cloned().unwrap_or_else(|| extensions.into());
        Ok(Snapshot {
            logs,
            segments,
            run_log,
            states,
            extensions,
            settings,
            format,
            attempts,
            owners,
            folder_owner,
            ..Snapshot::empty()
        })
    }

    /// The log that segment `index` belongs to.
    pub fn log_of(&self, segment: usize) -> &Arc<SnapshotLog> {
        &self.logs[self.run_log[segment] as usize]
    }

    /// When the attempt that segment `index` is of began: the greater one is newer, and hides what older ones wrote
    /// under the same key (J-32). `None` where its writer named none.
    #[inline]
    pub fn attempt_of(&self, segment: usize) -> Option<Order> {
        self.attempts.began(self.run_log[segment] as usize)
    }

    /// The log of `writer`.
    pub fn log(&self, writer: Id) -> Option<&Arc<SnapshotLog>> {
        self.logs.binary_search_by_key(&writer, |log| log.writer).ok().map(|i| &self.logs[i])
    }

    /// The order of a commit's entries among all versions; `None` where they are not visible.
    /// Entries of a transaction count from the decision on that shows fields; one's own transaction sees
    /// them before.
    pub fn order(&self, writer: Id, commit: &CommitInfo, own: Option<Id>) -> Option<Order> {
        let Some(id) = commit.transaction else { return Some((commit.stamp, writer)) };
        // All alike, so that the commits' own stamps count, as they will after the decision.
        let undecided = (own == Some(id)).then_some((u64::MAX, Id::LEAST));
        let Some(state) = self.log(writer).and_then(|log| self.transaction_state(id, log.uid)) else {
            return undecided;
        };
        state
            .visible(kinds::FIELDS, writer, commit.sequence)
            .or_else(|| undecided.filter(|_| state.is_open_for(writer, commit.sequence)))
    }

    /// Whether an entry of a writer, by a commit of this number, is among what was lost and given up.
    #[inline]
    pub fn gives_up(&self, writer: Id, sequence: u64, entry: &Entry) -> bool {
        if !self.accepted.has_entries() {
            return false;
        }
        let file = match entry.location {
            Location::Blocks { file, .. } if file > 0 => Some(file),
            _ => None,
        };
        self.accepted.hides(writer, (sequence, entry.ordinal), file)
    }

    /// The decisions of a user on a transaction, for the user's own logs.
    pub fn transaction_state(&self, transaction: Id, user: u32) -> Option<&Arc<UserState>> {
        self.states.get(&(transaction, user))
    }

    /// All decisions: transaction, user, and what he decided.
    pub fn transaction_states(&self) -> impl Iterator<Item = (Id, u32, &Arc<UserState>)> {
        self.states.iter().map(|((id, user), state)| (*id, *user, state))
    }

    /// Whether a transaction has ended for the logs of a user.
    pub fn has_ended(&self, transaction: Id, user: u32) -> bool {
        self.transaction_state(transaction, user).is_some_and(|state| state.closed())
    }

    /// Logs of a user with commits prepared under a transaction, each with the last one's sequence.
    pub fn prepared(&self, transaction: Id, user: u32) -> Vec<(Id, u64)> {
        self.prepared_by_all(transaction)
            .filter(|(log, _)| log.uid == user)
            .map(|(log, sequence)| (log.writer, sequence))
            .collect()
    }

    /// Logs with commits prepared under a transaction, each with the last one's sequence.
    pub fn prepared_by_all(&self, transaction: Id) -> impl Iterator<Item = (&Arc<SnapshotLog>, u64)> {
        self.logs.iter().filter_map(move |log| {
            let prepared = log.record.prepared.iter().find(|p| p.transaction == transaction)?;
            Some((log, prepared.sequence))
        })
    }

    /// A log that lost commits which may have held something under an encoded first level.
    pub fn loss(&self, level: &[u8]) -> Option<&Loss> {
        if self.losses.is_empty() {
            return None;
        }
        let owner = self.owner(level);
        self.losses.iter().find(|loss| owner.is_none_or(|owner| owner == loss.owner))
    }

    /// Whether anything stands under an encoded first level.
    pub fn has_dataset(&self, prefix: &[u8]) -> bool {
        self.segments.iter().any(|segment| {
            let Ok(meta) = segment.meta() else { return true };
            match &meta.datasets {
                Some(datasets) => datasets.iter().any(|(known, _)| known == prefix),
                None => {
                    let mut cursor = SegmentCursor::new(segment.clone(), 0);
                    matches!(cursor.seek(prefix), Ok(true)) && cursor.key().starts_with(prefix)
                }
            }
        })
    }

    /// The user who owns what stands under an encoded first level; `None` where nobody does yet.
    pub fn owner(&self, level: &[u8]) -> Option<u32> {
        self.owners.of(level, || self.has_dataset(level))
    }

    /// The text that names this snapshot.
    pub fn version(&self) -> Version {
        Version::new(self.heads())
    }

    /// The logs, in the order of their ids, each with its last commit.
    pub fn heads(&self) -> Vec<(Id, u64)> {
        self.logs.iter().map(|log| (log.writer, log.record.sequence)).collect()
    }

    /// This snapshot cut back to an older version.
    pub fn at(&self, version: &Version, refresher: &Refresher) -> Result<Snapshot> {
        if !version.is_reached(&self.heads()) {
            return Err(gone(None));
        }
        let mut logs = Vec::new();
        for log in &self.logs {
            let mut sequence = version.sequence(log.writer).min(log.record.sequence);
            if planted::is(Planted::AtMixesNewer) && sequence > 0 {
                sequence = log.record.sequence;
            }
            if sequence > 0 {
                logs.push(refresher.log_at(log, sequence)?.ok_or_else(|| gone(Some(log.writer)))?);
            }
        }
        Ok(Snapshot { problems: self.problems.clone(), ..refresher.snapshot_of(logs)? })
    }
}

/// The decisions in these logs, given those of an earlier snapshot; `None` if a log is not an extension of its
/// earlier self.
fn states(logs: &[Arc<SnapshotLog>], before: &Snapshot) -> Option<Layers<(Id, u32), Arc<UserState>>> {
    let same_user = |log: &Arc<SnapshotLog>| {
        let at = logs.binary_search_by_key(&log.writer, |log| log.writer);
        at.is_ok_and(|at| logs[at].uid == log.uid)
    };
    if !before.logs.iter().all(same_user) {
        return None;
    }
    let mut states = before.states.clone();
    for log in logs {
        let known = before.log(log.writer).map_or(0, |log| log.decisions.len());
        if let Some(last) = known.checked_sub(1) {
            let same = before.log(log.writer).and_then(|log| log.decisions.get(last));
            let same = same.zip(log.decisions.get(last)).is_some_and(|(then, now)| Arc::ptr_eq(then, now));
            same.then_some(())?;
        }
        for decided in log.decisions.since(known) {
            let id = (decided.decision.transaction, log.uid);
            let state = states.get(&id).cloned().unwrap_or_default();
            states.insert(id, Arc::new(state.with((decided.stamp, log.writer), decided.clone())));
        }
    }
    Some(states)
}

/// Extensions of the schema, by stamp and writer. The schema belongs to the owner of the folder of logs.
fn extensions(logs: &[Arc<SnapshotLog>], folder_owner: Option<u32>) -> Vec<Arc<SchemaExtension>> {
    let counts = |log: &&Arc<SnapshotLog>| folder_owner.is_none_or(|owner| owner == log.uid);
    let mut all: Vec<_> = logs.iter().filter(counts).flat_map(|log| log.extensions.iter().cloned()).collect();
    all.sort_by_key(|extension| (extension.stamp, extension.writer));
    all
}

/// The store's settings, which belong to the owner of the folder of logs, in its order.
fn counted_settings(logs: &[Arc<SnapshotLog>], folder_owner: Option<u32>) -> Vec<&Arc<StoreSetting>> {
    let counts = |log: &&Arc<SnapshotLog>| folder_owner.is_none_or(|owner| owner == log.uid);
    let mut all: Vec<_> = logs.iter().filter(counts).flat_map(|log| &log.settings).collect();
    all.sort_by_key(|set| (set.stamp, set.writer));
    all
}

/// The last one of each name.
fn by_name(set: &[&Arc<StoreSetting>]) -> BTreeMap<String, String> {
    set.iter().map(|set| (set.setting.name.clone(), set.setting.value.clone())).collect()
}

fn gone(writer: Option<Id>) -> Error {
    let what = writer.map_or_else(|| "a log".to_owned(), |writer| format!("log {writer}"));
    Code::VersionNotFound
        .error(format!("this version of the store is not there: {what} does not reach it"))
        .with_hint("the version belongs to another store, or has been purged")
}
