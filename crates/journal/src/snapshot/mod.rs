//! Snapshots: which commits of which logs a read sees.
//!
//! A snapshot names, for every log, its last commit that belongs to it. Everything else follows from
//! the commit records: the segments to search, the states of transactions, the order of versions. A
//! snapshot never changes; a refresh makes a new one that shares what did not move.

mod accepted;
mod attempts;
mod chain;
mod forgotten;
mod format;
mod hand_overs;
mod hides;
mod holds;
mod locks;
mod overlays;
mod owners;
mod pointers;
mod ranges;
mod refresh;
mod rules;
pub mod silent;
mod snapshot_log;
mod taken;
mod user_state;
mod version_commits;
mod wipes;

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::entry::{Entry, Location};
use fieldstone_format::log::LogHeader;
use fieldstone_format::log::{Prepared as Listed, kinds};
use fieldstone_format::origin::EntryOrigin;
use fieldstone_format::version::Version;

pub use accepted::Accepted;
use attempts::Attempts;
use chain::Layers;
pub use forgotten::may_be_below_a_floor;
pub use format::{Pin, StoreFormat};
pub use hand_overs::{HandOvers, StoreHandOver, decided_for, prepared_for};
pub use hides::{unhidden, unwiped};
pub use holds::{StoreHold, longest_hold, newest_holds, standing_holds};
pub use locks::{Lock, Locks};
pub use overlays::{Overlay, Overlays};
use owners::WrittenLogs;
pub use owners::{DatasetOwners, Owners, datasets_of, entry_counts, first_owner, owner_then};
pub use pointers::{PointedKeys, StorePointer, standing_pointers};
pub use ranges::{Selected, StoreRange, purged_beyond};
pub use refresh::{Flushed, Refresher};
pub use rules::{StoreRule, newest_rules, rules_for};
pub use snapshot_log::{AcceptedLoss, SchemaExtension, SnapshotLog, StoreSetting};
pub use taken::{TakenDecision, TakeoverContent};
pub use user_state::{ALL_KINDS, Decided, UserState};
pub use wipes::{KeyWipes, Wipe, Wiped, Wipes, is_older};

use crate::entry_source::{EntryCommit, EntrySource, Moved};
use crate::medium::Claims;
pub use crate::medium::{LogsGone, Look, Loss, Problem};
pub use crate::order::Order;
use crate::takeover::Takeover;

/// The state of the store that a read sees.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Logs with at least one commit that no takeover replaces, by writer id.
    pub logs: Vec<Arc<SnapshotLog>>,
    /// Takeovers, and what they say.
    pub taken: Arc<TakeoverContent>,
    /// The sources of all index entries: the segments of the logs, then the takeovers.
    pub sources: Vec<EntrySource>,
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
    /// Wipes, and hides that have not ended.
    pub wipes: Arc<Wipes>,
    /// Locks on datasets, those that ended among them.
    pub locks: Arc<Locks>,
    /// Overlays that have not ended.
    pub overlays: Arc<Overlays>,
    /// Since when the attempt of each log is there.
    attempts: Attempts,
    /// Users who own datasets.
    pub owners: Owners,
    /// Hand-overs from user to user.
    pub hand_overs: Arc<HandOvers>,
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
            taken: Arc::default(),
            sources: Vec::new(),
            states: Layers::default(),
            extensions: Arc::default(),
            settings: Arc::default(),
            format: StoreFormat::NEW,
            accepted: Arc::default(),
            wipes: Arc::default(),
            locks: Arc::default(),
            overlays: Arc::default(),
            attempts: Attempts::default(),
            owners: Owners::One(None),
            hand_overs: Arc::default(),
            folder_owner: None,
            problems: Vec::new(),
            foreign: Vec::new(),
            losses: Vec::new(),
            without_logs: None,
        }
    }

    /// A snapshot of these logs and takeovers, which shares with one before it what did not change.
    fn new(
        mut logs: Vec<Arc<SnapshotLog>>,
        taken: Arc<TakeoverContent>,
        claims: &Arc<dyn Claims>,
        folder_owner: Option<u32>,
        before: Option<&Snapshot>,
    ) -> Result<Snapshot> {
        logs.sort_by_key(|log| log.writer);
        let of_logs = logs.iter().enumerate().flat_map(|(i, log)| {
            log.segments.iter().map(move |segment| EntrySource::Segment(segment.clone(), i as u32))
        });
        let of_takeovers = taken.takeovers().all().iter().cloned().map(EntrySource::Takeover);
        let sources: Vec<EntrySource> = of_logs.chain(of_takeovers).collect();
        let hand_overs =
            HandOvers::find(&logs, &taken, folder_owner, before.map(|before| &before.hand_overs));
        let states = match before.and_then(|before| states((&logs, &taken), &hand_overs, before)) {
            Some(states) => states,
            None => all_states((&logs, &taken), &hand_overs),
        };
        let written = WrittenLogs { logs: &logs, sources: &sources, taken: &taken };
        let owners = Owners::find(written, claims, folder_owner, &hand_overs)?;
        let extensions = extensions(&logs, &taken, folder_owner);
        let set = counted_settings(&logs, &taken, folder_owner);
        let format = StoreFormat::find(&logs, !taken.takeovers().is_empty(), &set);
        let settings = by_name(&set);
        let known = before.map(|before| &before.settings).filter(|known| ***known == settings);
        let settings = known.cloned().unwrap_or_else(|| settings.into());
        let attempts = Attempts::of(&logs, &taken);
        let ranges = logs.iter().flat_map(|log| &log.ranges).chain(&taken.ranges).cloned();
        let locks = Locks::of(ranges.clone(), &hand_overs, before.map(|before| &before.locks));
        let known = before.map(|before| &before.overlays);
        let overlays = Overlays::of(ranges.clone(), (folder_owner, &hand_overs), known);
        let known = before.map(|before| &before.wipes);
        let wipes = Wipes::of(ranges, taken.takeovers(), (folder_owner, &hand_overs), known);
        // A caller that knows these already sees that without comparing them.
        let known = before.map(|before| &before.extensions).filter(|known| ***known == extensions[..]);
        let extensions = known.cloned().unwrap_or_else(|| extensions.into());
        Ok(Snapshot {
            logs,
            taken,
            sources,
            states,
            extensions,
            settings,
            format,
            wipes,
            locks,
            overlays,
            attempts,
            owners,
            hand_overs,
            folder_owner,
            ..Snapshot::empty()
        })
    }

    /// Whether there is a commit.
    pub fn has_commits(&self) -> bool {
        !self.logs.is_empty() || !self.taken.takeovers().is_empty()
    }

    /// The greatest stamp of a commit.
    pub fn newest_stamp(&self) -> u64 {
        let living = self.logs.iter().map(|log| log.record.stamp).max().unwrap_or(0);
        living.max(self.taken.newest())
    }

    /// The store that a source says to belong to.
    pub fn store_of(&self, source: usize) -> Id {
        match &self.sources[source] {
            EntrySource::Segment(_, log) => self.logs[*log as usize].header.store,
            EntrySource::Takeover(takeover) => takeover.header.store,
        }
    }

    /// The user whose entries a source holds.
    #[inline]
    pub fn user_of_source(&self, source: usize) -> u32 {
        match &self.sources[source] {
            EntrySource::Segment(_, log) => self.logs[*log as usize].uid,
            EntrySource::Takeover(takeover) => takeover.user,
        }
    }

    /// The commit that entries of a source name by a number.
    #[inline]
    pub fn commit_at(&self, source: usize, number: u64) -> Result<EntryCommit> {
        match &self.sources[source] {
            EntrySource::Segment(segment, log) => {
                let meta = segment.meta()?;
                let info = usize::try_from(number).ok().and_then(|i| meta.commits.get(i));
                let info = info.ok_or_else(|| Error::corrupt("an index entry names no commit"))?;
                let owner = &self.logs[*log as usize];
                let mut commit = EntryCommit::new(owner.writer, owner.uid, info);
                commit.attempt = self.attempts.began(*log as usize);
                let origin = info.origin.and_then(|origin| meta.origins.get(origin as usize));
                commit.moved = origin.map(moved);
                Ok(commit)
            }
            EntrySource::Takeover(takeover) => self.taken_commit(takeover, number),
        }
    }

    fn taken_commit(&self, takeover: &Arc<Takeover>, number: u64) -> Result<EntryCommit> {
        let (mut commit, taken) = self.taken.commit(takeover, number)?;
        commit.attempt = taken.attempt.and_then(|name| self.attempt_began(takeover.user, &name));
        commit.moved = taken.origin.as_deref().map(moved);
        Ok(commit)
    }

    /// The writer whose file holds the bytes of an entry of a source, or the takeover that does.
    #[inline]
    pub fn holder(&self, source: usize, entry: &Entry) -> Result<Id> {
        match (&self.sources[source], entry.holder) {
            (EntrySource::Segment(segment, _), _) => Ok(segment.writer),
            (EntrySource::Takeover(takeover), None) => Ok(takeover.header.id),
            (EntrySource::Takeover(takeover), Some(number)) => Ok(takeover.log_by_number(number)?.writer),
        }
    }

    /// Checks that an entry of a source is not newer than the source's version.
    #[inline]
    pub fn check_version(&self, source: usize, entry: &Entry) -> Result<()> {
        if let EntrySource::Segment(segment, _) = &self.sources[source]
            && entry.location.version() > u32::from(segment.meta()?.version)
        {
            return Err(Error::corrupt("an index entry is newer than its segment's version"));
        }
        Ok(())
    }

    /// When an attempt of a user began: the greater one is newer, and hides what older ones wrote under the same key
    /// (J-32).
    fn attempt_began(&self, user: u32, name: &str) -> Option<Order> {
        self.attempts.of_user(user, name, &self.taken)
    }

    /// Whether any log of a user is of an attempt.
    pub fn knows_attempt(&self, user: u32, name: &str) -> bool {
        self.attempt_began(user, name).is_some()
    }

    /// The name of the attempt that a commit's log is of.
    pub fn attempt_name(&self, writer: Id) -> Option<String> {
        match self.log(writer) {
            Some(log) => log.record.attempt.as_ref().map(|attempt| attempt.name.clone()),
            None => self.taken.log(writer).and_then(|(takeover, log)| takeover.attempt_name(&log).ok()?),
        }
    }

    /// The log of `writer`, where no takeover replaces it.
    pub fn log(&self, writer: Id) -> Option<&Arc<SnapshotLog>> {
        self.logs.binary_search_by_key(&writer, |log| log.writer).ok().map(|i| &self.logs[i])
    }

    /// Whether a takeover replaces the log of a writer, also one without a commit.
    pub fn is_replaced(&self, writer: Id) -> bool {
        self.log(writer).is_none() && matches!(self.taken.takeovers().log(writer), Ok(Some(_)))
    }

    /// The user whose the log of a writer is.
    pub fn user_of(&self, writer: Id) -> Option<u32> {
        match self.log(writer) {
            Some(log) => Some(log.uid),
            None => self.taken.log(writer).map(|(takeover, _)| takeover.user),
        }
    }

    /// The header of the log of a writer, as far as it is kept.
    pub fn header(&self, writer: Id) -> Option<Arc<LogHeader>> {
        match self.log(writer) {
            Some(log) => Some(log.header.clone()),
            None => {
                let (takeover, log) = self.taken.log(writer)?;
                takeover.log_header(&log).ok().map(Arc::new)
            }
        }
    }

    /// The last commit of the log of a writer; 0 for none.
    pub fn head(&self, writer: Id) -> u64 {
        match self.log(writer) {
            Some(log) => log.record.sequence,
            None => self.taken.log(writer).map_or(0, |(takeover, log)| self.taken.head(takeover, &log)),
        }
    }

    /// Whether the snapshot has a commit that another one found.
    pub fn holds(&self, commit: &EntryCommit) -> bool {
        match commit.taken {
            0 => self.log(commit.writer).is_some_and(|log| log.record.sequence >= commit.sequence),
            _ => self.taken.holds(commit),
        }
    }

    /// The order of a commit's entries among all versions; `None` where they are not visible.
    /// Entries of a transaction count from the decision on that shows fields; one's own transaction sees
    /// them before.
    #[inline]
    pub fn order(&self, commit: &EntryCommit, own: Option<Id>) -> Option<Order> {
        if commit.taken > 0 && !self.taken.holds(commit) {
            return None;
        }
        let Some(id) = commit.transaction else {
            return commit.forgotten.or(Some((commit.stamp, commit.writer)));
        };
        // All alike, so that the commits' own stamps count, as they will after the decision.
        let undecided = (own == Some(id)).then_some((u64::MAX, Id::LEAST));
        let Some(state) = self.transaction_state(id, commit.user) else {
            // R16: what comes late for a forgotten transaction is nobody's.
            return undecided.filter(|_| !self.taken.is_forgotten(id, commit.user));
        };
        state
            .visible(kinds::FIELDS, commit.writer, commit.sequence)
            .or_else(|| undecided.filter(|_| state.is_open_for(commit.writer, commit.sequence)))
    }

    /// Whether an entry of a commit is among what was lost and given up; `holder`: the writer whose file holds its bytes.
    #[inline]
    pub fn gives_up(&self, commit: &EntryCommit, holder: Id, entry: &Entry) -> bool {
        if !self.accepted.has_entries() {
            return false;
        }
        let file = match entry.location {
            Location::Blocks { file, .. } if file > 0 => Some((holder, file)),
            _ => None,
        };
        self.accepted.hides((commit.writer, commit.sequence, entry.ordinal), file)
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
            || self.taken.is_forgotten(transaction, user)
    }

    /// Logs of a user with commits prepared under a transaction, each with the last one's sequence; by log.
    pub fn prepared(&self, transaction: Id, user: u32) -> Vec<(Id, u64)> {
        let own = self.prepared_by_all(transaction).filter(|prepared| prepared.user == user);
        let mut own: Vec<(Id, u64)> = own.map(|prepared| (prepared.writer, prepared.sequence)).collect();
        own.sort_unstable();
        own
    }

    /// Logs with commits prepared under a transaction.
    pub fn prepared_by_all(&self, transaction: Id) -> impl Iterator<Item = Prepared> {
        self.all_prepared().filter(move |(id, _)| *id == transaction).map(|(_, prepared)| prepared)
    }

    /// All logs with commits prepared under transactions, as far as their writers do not know these to be decided.
    pub fn all_prepared(&self) -> impl Iterator<Item = (Id, Prepared)> {
        let living = self.logs.iter().flat_map(move |log| {
            let listed = log.record.prepared.iter();
            let counts = |prepared: &&Listed| !self.taken.is_forgotten(prepared.transaction, log.uid);
            listed.filter(counts).map(|prepared| {
                let (writer, user, sequence) = (log.writer, log.uid, prepared.sequence);
                let (fields, since) = (prepared.fields, prepared.since);
                (prepared.transaction, Prepared { writer, user, sequence, fields, since })
            })
        });
        living.chain(self.taken.prepared.iter().copied())
    }

    /// A log that lost commits which may have held something under an encoded first level.
    pub fn loss(&self, level: &[u8]) -> Option<&Loss> {
        if self.losses.is_empty() {
            return None;
        }
        let owner = self.owner(level);
        let concerns = |owner: u32, loss: &Loss| self.hand_overs.may_count(loss.owner, owner);
        self.losses.iter().find(|loss| owner.is_none_or(|owner| concerns(owner, loss)))
    }

    /// Whether anything stands under an encoded first level.
    pub fn has_dataset(&self, prefix: &[u8]) -> bool {
        self.sources.iter().any(|source| source.has_prefix(prefix))
    }

    /// The user who owns what stands under an encoded first level; `None` where nobody does yet.
    pub fn owner(&self, level: &[u8]) -> Option<u32> {
        owner_then(self, level, u64::MAX)
    }

    /// The text that names this snapshot.
    pub fn version(&self) -> Version {
        // One that is cut back says what it was cut back to: its takeovers may be newer.
        if let Some(version) = self.taken.cut_back_to() {
            return version.clone();
        }
        let living = self.logs.iter().map(|log| (log.writer, log.record.sequence)).collect();
        let newest = self.taken.takeovers().newest().map(|takeover| takeover.name()).collect();
        Version::new(living).with_takeovers(newest)
    }

    /// The logs, in the order of their ids, each with its last commit; those that takeovers replace are among them.
    pub fn heads(&self) -> Vec<(Id, u64)> {
        let living = self.logs.iter().map(|log| (log.writer, log.record.sequence));
        let mut heads: Vec<(Id, u64)> = living.chain(self.taken.heads().iter().copied()).collect();
        heads.sort_unstable();
        heads
    }

    /// Whether there are commits that a version does not hold.
    pub fn has_news(&self, version: &Version) -> Result<bool> {
        let is_new = |writer: Id, head: u64| head > version.sequence(writer);
        if self.logs.iter().any(|log| is_new(log.writer, log.record.sequence)) {
            return Ok(true);
        }
        for takeover in self.taken.takeovers().all() {
            let named = version.takeovers().iter().find(|name| name.owner == takeover.owner());
            let since = named.map_or(0, |name| name.number);
            if since >= takeover.number() {
                continue;
            }
            for writer in takeover.taken_since(since)? {
                if takeover.log(writer)?.is_some_and(|log| is_new(writer, log.row.sequence)) {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether all commits that a version names are here.
    fn reaches(&self, version: &Version) -> bool {
        version.takeovers().iter().all(|name| self.taken.takeovers().reach(name))
            && (version.is_reached(&self.living_heads()) || version.is_reached(&self.heads()))
    }

    /// Damage that may hide commits which a version names: nobody knows then whether they are gone.
    fn unreadable_names(&self) -> Option<Error> {
        let is_takeover = |loss: &&Loss| loss.file.ends_with(".takeover");
        let lost = self.losses.iter().find(is_takeover);
        let lost = lost.map(|loss| Error::corrupt(format!("{}: {}", loss.file, loss.why)));
        let names =
            || self.taken.takeovers().all().iter().find_map(|takeover| takeover.each_log(|_| Ok(())).err());
        lost.or_else(names)
    }

    fn living_heads(&self) -> Vec<(Id, u64)> {
        self.logs.iter().map(|log| (log.writer, log.record.sequence)).collect()
    }

    /// This snapshot cut back to an older version.
    pub fn at(&self, version: &Version, refresher: &Refresher) -> Result<Snapshot> {
        if !self.reaches(version) {
            return Err(self.unreadable_names().unwrap_or_else(|| gone(None)));
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
        let taken = Arc::new(TakeoverContent::at(self.taken.takeovers().clone(), version)?);
        // Locks are of now, whatever the version.
        let (problems, locks) = (self.problems.clone(), self.locks.clone());
        Ok(Snapshot { problems, locks, ..refresher.snapshot_of(logs, taken)? })
    }
}

/// Commits of one log that are prepared under a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prepared {
    /// The log.
    pub writer: Id,
    /// The user whose log it is.
    pub user: u32,
    /// The last of them.
    pub sequence: u64,
    /// Entries in all of them.
    pub fields: u64,
    /// Time of the first, nanoseconds since 1970.
    pub since: i64,
}

/// The commit of another store from which the entries of a source with a number were moved.
pub fn origin_at(snapshot: &Snapshot, source: usize, number: u64) -> Result<Option<EntryOrigin>> {
    match &snapshot.sources[source] {
        EntrySource::Segment(segment, _) => {
            let meta = segment.meta()?;
            let info = usize::try_from(number).ok().and_then(|i| meta.commits.get(i));
            let origin = info.and_then(|info| meta.origins.get(info.origin? as usize));
            Ok(origin.cloned())
        }
        EntrySource::Takeover(takeover) => {
            let (_, taken) = snapshot.taken.commit(takeover, number)?;
            Ok(taken.origin.as_deref().cloned())
        }
    }
}

fn moved(origin: &EntryOrigin) -> Moved {
    let attempt = origin.attempt.as_ref().map(|attempt| (attempt.began, attempt.writer));
    let EntryOrigin { store, sequence, time, .. } = *origin;
    Moved { store, sequence, order: (origin.stamp, origin.writer), time, attempt }
}

/// The decisions in all logs, living or taken over.
fn all_states(
    (logs, taken): (&[Arc<SnapshotLog>], &TakeoverContent),
    hand_overs: &HandOvers,
) -> Layers<(Id, u32), Arc<UserState>> {
    let empty = Snapshot { taken: Arc::default(), ..Snapshot::empty() };
    let mut states = Layers::default();
    for TakenDecision { user, writer, decided } in &taken.decisions {
        let users = deciders((logs, taken), hand_overs, *user, decided);
        add_decision(&mut states, &users, *writer, decided);
    }
    add_decisions(states, (logs, taken), hand_overs, &empty).unwrap_or_default()
}

/// The decisions in these logs, given those of an earlier snapshot; `None` if a log is not an extension of its
/// earlier self, or takeovers differ.
fn states(
    (logs, taken): (&[Arc<SnapshotLog>], &Arc<TakeoverContent>),
    hand_overs: &Arc<HandOvers>,
    before: &Snapshot,
) -> Option<Layers<(Id, u32), Arc<UserState>>> {
    let same_user = |log: &Arc<SnapshotLog>| {
        let at = logs.binary_search_by_key(&log.writer, |log| log.writer);
        at.is_ok_and(|at| logs[at].uid == log.uid)
    };
    let same_users = Arc::ptr_eq(hand_overs, &before.hand_overs) && before.logs.iter().all(same_user);
    if !Arc::ptr_eq(taken, &before.taken) || !same_users {
        return None;
    }
    add_decisions(before.states.clone(), (logs, taken), hand_overs, before)
}

/// Adds decisions of logs that an earlier snapshot does not have.
fn add_decisions(
    mut states: Layers<(Id, u32), Arc<UserState>>,
    (logs, taken): (&[Arc<SnapshotLog>], &TakeoverContent),
    hand_overs: &HandOvers,
    before: &Snapshot,
) -> Option<Layers<(Id, u32), Arc<UserState>>> {
    for log in logs {
        let known = before.log(log.writer).map_or(0, |log| log.decisions.len());
        if let Some(last) = known.checked_sub(1) {
            let same = before.log(log.writer).and_then(|log| log.decisions.get(last));
            let same = same.zip(log.decisions.get(last)).is_some_and(|(then, now)| Arc::ptr_eq(then, now));
            same.then_some(())?;
        }
        // R16: a decision that comes late for a forgotten transaction does not count.
        let is_late = |decided: &&Arc<Decided>| taken.is_forgotten(decided.decision.transaction, log.uid);
        for decided in log.decisions.since(known).filter(|decided| !is_late(decided)) {
            let users = deciders((logs, taken), hand_overs, log.uid, decided);
            add_decision(&mut states, &users, log.writer, decided);
        }
    }
    Some(states)
}

fn add_decision(
    states: &mut Layers<(Id, u32), Arc<UserState>>,
    users: &[u32],
    writer: Id,
    decided: &Arc<Decided>,
) {
    for user in users {
        let id = (decided.decision.transaction, *user);
        let state = states.get(&id).cloned().unwrap_or_default();
        states.insert(id, Arc::new(state.with((decided.stamp, writer), decided.clone())));
    }
}

/// The users for whose logs a user's decision counts: his own, and of those that were handed over to him what it covers.
fn deciders(
    (logs, taken): (&[Arc<SnapshotLog>], &TakeoverContent),
    hand_overs: &HandOvers,
    user: u32,
    decided: &Decided,
) -> Vec<u32> {
    let (mut users, before) = (vec![user], hand_overs.predecessors(user, decided.stamp));
    if before.is_empty() {
        return users;
    }
    for (writer, _) in &decided.decision.covers {
        let living = logs.binary_search_by_key(writer, |log| log.writer).ok().map(|at| logs[at].uid);
        match living.or_else(|| taken.log(*writer).map(|(takeover, _)| takeover.user)) {
            Some(of) => users.extend(before.contains(&of).then_some(of)),
            // Its log shows late.
            None => users.extend(&before),
        }
    }
    users.sort_unstable();
    users.dedup();
    users
}

/// Extensions of the schema, by stamp and writer. The schema belongs to the owner of the folder of logs.
fn extensions(
    logs: &[Arc<SnapshotLog>],
    taken: &TakeoverContent,
    folder_owner: Option<u32>,
) -> Vec<Arc<SchemaExtension>> {
    let counts = |user: u32| folder_owner.is_none_or(|owner| owner == user);
    let living = logs.iter().filter(|log| counts(log.uid)).flat_map(|log| log.extensions.iter().cloned());
    let older =
        taken.extensions.iter().filter(|(user, _)| counts(*user)).map(|(_, extension)| extension.clone());
    let mut all: Vec<_> = living.chain(older).collect();
    all.sort_by_key(|extension| (extension.stamp, extension.writer));
    all
}

/// The store's settings, which belong to the owner of the folder of logs, in its order.
fn counted_settings<'a>(
    logs: &'a [Arc<SnapshotLog>],
    taken: &'a TakeoverContent,
    folder_owner: Option<u32>,
) -> Vec<&'a Arc<StoreSetting>> {
    let all = logs.iter().flat_map(|log| &log.settings).chain(&taken.settings);
    let mut all: Vec<_> = all.filter(|set| folder_owner.is_none_or(|owner| owner == set.user)).collect();
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
