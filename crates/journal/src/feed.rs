//! The content of the logs, commit by commit: the source of every index over side records and fields.
//!
//! A feed is pinned to one snapshot (J-23), so that an index that has followed it to its end shows one moment. An
//! index follows each log separately, from the sequence that it reached before. The content of a log never changes;
//! only the decisions on transactions do. A feed skips damaged parts and names them in [`Feed::problems`].
//!
//! ```text
//! for (writer, head) in feed.taken_since(marks)     logs that takeovers replace, since the marks
//!     for commit in feed.commits(writer, known)     side records, oldest first
//! for entry in feed.taken_entries(known)            fields and removals of all of them, in the order of their keys
//! for (writer, head) in feed.heads().logs           living logs
//!     for commit in feed.commits(writer, known)
//!     for entry in feed.entries(writer, known)
//! for decision in feed.decisions()                  what of the prepared ones is visible
//! ```
//!
//! | module | |
//! |---|---|
//! | `taken` | the logs that takeovers replace: how far they go, and which are new to whom |

mod asked;
mod taken;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::dtype::DType;
use fieldstone_core::key::FieldKey;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::entry::Entry;
use fieldstone_format::keys::{KeyDecoder, level_ends};
use fieldstone_format::log::{self, CommitRecord, Decision, Section, SideRecord};
use fieldstone_format::segment::CommitInfo;
use fieldstone_format::store_record::Selection;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::{parse_side_key, side_key};
use fieldstone_format::{Id, crc};
use xxhash_rust::xxh3::Xxh3;

use self::asked::EntriesAsked;
use crate::entry_source::{EntryCommit, EntryCursor, EntrySource};
use crate::marks::Marks;
use crate::medium::Medium;
use crate::snapshot::{
    ALL_KINDS, Decided, KeyWipes, Order, Owners, Problem, Selected, Snapshot, SnapshotLog, UserState, Wiped,
};
use crate::takeover::{Rows, Takeover};

/// The log of commits that are not flushed yet: one that no writer has, the least of all.
pub const OWN_LOG: Id = Id::LEAST;

/// A commit that carries side records.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The log; [`OWN_LOG`] for unflushed content.
    pub writer: Id,
    /// The user who owns the log.
    pub owner: u32,
    /// Its number in the log.
    pub sequence: u64,
    /// Its stamp.
    pub stamp: u64,
    /// The writer's clock, nanoseconds since 1970.
    pub time: i64,
    /// The transaction it is prepared under.
    pub transaction: Option<Id>,
    /// Its place in the order, where the decision that made it visible is forgotten.
    pub order: Option<Order>,
    /// The records and fields that it carries.
    pub side: Vec<SideRecord>,
}

/// The effect of an entry on its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryEffect {
    /// A field, or a piece of one.
    Field,
    /// From here on the key has no field.
    Removal,
    /// Nothing by itself, as a purge freed what it was: it only hides entries of older attempts, however late they come.
    AttemptTombstone,
}

impl EntryEffect {
    fn of(entry: &Entry) -> EntryEffect {
        if entry.is_attempt_tombstone() {
            EntryEffect::AttemptTombstone
        } else if entry.is_removal() {
            EntryEffect::Removal
        } else {
            EntryEffect::Field
        }
    }
}

/// A field, a piece of one, a removal or an attempt's tombstone.
#[derive(Debug, Clone)]
pub struct EntryChange {
    /// The key.
    pub key: FieldKey,
    /// The log.
    pub writer: Id,
    /// The user who owns the log.
    pub owner: u32,
    /// Number of its commit in the log.
    pub sequence: u64,
    /// Stamp of its commit.
    pub stamp: u64,
    /// The writer's clock at its commit, nanoseconds since 1970.
    pub time: i64,
    /// The transaction it is prepared under.
    pub transaction: Option<Id>,
    /// Its place in the order, where the decision that made it visible is forgotten.
    pub order: Option<Order>,
    /// Its effect on the key.
    pub effect: EntryEffect,
    /// The word of wipes on it; the field store knows more where they are unsure.
    pub wiped: Wiped,
    /// Element type; `None` for opaque bytes, removals and tombstones.
    pub dtype: Option<DType>,
    /// Shape of the whole array; `None` for opaque bytes, removals and tombstones.
    pub shape: Option<Vec<u64>>,
}

/// The decisions on a transaction, by each user for the user's own logs.
#[derive(Debug, Clone)]
pub struct TransactionState {
    /// The transaction.
    pub transaction: Id,
    /// Whether not all of it is aborted: what it covers is visible by kind.
    pub committed: bool,
    /// Whether all of it has ended; else more may be prepared under it and covered by later decisions.
    pub closed: bool,
    /// The kinds that are visible of all that is not aborted, as bits.
    pub kinds: u32,
    /// The greatest place of a decision in force.
    pub order: Order,
    /// The highest sequence that is covered, by writer.
    pub covers: Vec<(Id, u64)>,
    /// By user, in the order of their numbers.
    by_user: Vec<(u32, Arc<UserState>)>,
    users: Users,
}

/// The owner of a log.
#[derive(Debug, Clone)]
enum Users {
    /// All logs are of the one user who decides.
    One,
    /// As a snapshot has it.
    Of(Arc<Snapshot>),
}

impl Users {
    fn user(&self, writer: Id) -> Option<u32> {
        match self {
            Users::One => Some(0),
            Users::Of(snapshot) => snapshot.user_of(writer),
        }
    }
}

impl TransactionState {
    /// The result of these decisions, each with its position in the order of commits, if all logs belong to one user:
    /// for tests, and for media other than files.
    pub fn of_one_user(transaction: Id, decisions: &[(Order, Decision)]) -> TransactionState {
        let decided = |decision: &Decision, order: &Order| {
            Arc::new(Decided { decision: decision.clone(), stamp: order.0, sequence: 0 })
        };
        let with = |state: UserState, (order, decision): &(Order, Decision)| {
            state.with(*order, decided(decision, order))
        };
        let state = decisions.iter().fold(UserState::default(), with);
        TransactionState::new(&Users::One, transaction, vec![(0, Arc::new(state))], &[])
    }

    /// `joined` are users whose logs have prepared something under the transaction.
    fn new(
        users: &Users,
        transaction: Id,
        by_user: Vec<(u32, Arc<UserState>)>,
        joined: &[u32],
    ) -> TransactionState {
        let decided = |user: &u32| by_user.iter().any(|(of, _)| of == user);
        let closed = by_user.iter().all(|(_, state)| state.closed()) && joined.iter().all(decided);
        let live = || by_user.iter().map(|(_, state)| state).filter(|state| !state.aborted());
        let own = |(user, state): &(u32, Arc<UserState>)| {
            let covers = state.covers().iter().copied();
            let theirs = |writer: Id| users.user(writer).is_none_or(|owner| owner == *user);
            covers.filter(|(writer, _)| theirs(*writer)).collect::<Vec<_>>()
        };
        TransactionState {
            transaction,
            committed: live().next().is_some(),
            closed,
            kinds: live().map(|state| state.kinds()).reduce(|all, kinds| all & kinds).unwrap_or(0),
            order: by_user.iter().map(|(_, state)| state.order()).max().unwrap_or((0, Id::LEAST)),
            covers: by_user.iter().flat_map(own).collect(),
            by_user,
            users: users.clone(),
        }
    }

    fn state(&self, writer: Id) -> Option<&Arc<UserState>> {
        let user = self.users.user(writer)?;
        self.by_user.iter().find(|(of, _)| *of == user).map(|(_, state)| state)
    }

    /// Whether all of it is visible, for good unless a later decision switches something off.
    pub fn is_whole(&self) -> bool {
        self.committed && self.closed && self.kinds == ALL_KINDS
    }

    /// Whether no user aborted it: [`covers`](Self::covers) then names all that was ever visible.
    pub fn is_kept(&self) -> bool {
        self.by_user.iter().all(|(_, state)| !state.aborted())
    }

    /// The position, in the order of all commits, of the content of kinds `bits` of a commit: the decision that last
    /// made it visible. `None` if it is not visible.
    pub fn visible(&self, bits: u32, writer: Id, sequence: u64) -> Option<Order> {
        self.state(writer)?.visible(bits, writer, sequence)
    }

    /// Whether what a commit holds may become visible later, or is seen by those who name the transaction.
    pub fn is_open_for(&self, writer: Id, sequence: u64) -> bool {
        self.state(writer).is_none_or(|state| state.is_open_for(writer, sequence))
    }

    /// A digest that differs between any two states of decisions on a transaction.
    pub fn print(&self) -> Vec<u8> {
        let mut hasher = Xxh3::new();
        for (user, state) in &self.by_user {
            let print = state.print();
            hasher.update(&user.to_le_bytes());
            hasher.update(&(print.len() as u64).to_le_bytes());
            hasher.update(&print);
        }
        hasher.digest128().to_le_bytes().to_vec()
    }
}

/// The content of a store's logs at one moment. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Feed {
    snapshot: Arc<Snapshot>,
    medium: Arc<dyn Medium>,
    /// Damaged or unreadable parts that were skipped.
    passed: Arc<Mutex<Vec<Problem>>>,
}

impl Feed {
    /// The content of the logs when a snapshot was taken.
    pub fn new(snapshot: Arc<Snapshot>, medium: Arc<dyn Medium>) -> Feed {
        Feed { snapshot, medium, passed: Arc::default() }
    }

    /// The snapshot it is pinned to.
    pub fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// All logs, each with its last commit; those that takeovers replace are among them.
    pub fn logs(&self) -> Vec<(Id, u64)> {
        self.snapshot.heads()
    }

    /// The text that names the snapshot.
    pub fn version(&self) -> String {
        self.snapshot.version().encode()
    }

    /// The user who owns what stands under an encoded first level; `None` where nobody does yet.
    pub fn owner(&self, level: &[u8]) -> Option<u32> {
        self.snapshot.owner(level)
    }

    /// The owner of the folder of logs, who could replace files that others wrote into it.
    pub fn folder_owner(&self) -> Option<u32> {
        self.snapshot.folder_owner
    }

    /// The user whose the log of a writer is.
    pub fn user_of(&self, writer: Id) -> Option<u32> {
        self.snapshot.user_of(writer)
    }

    /// The store, where there are commits.
    pub fn store(&self) -> Option<Id> {
        let living = self.snapshot.logs.first().map(|log| log.header.store);
        living.or_else(|| self.snapshot.taken.takeovers().all().first().map(|takeover| takeover.header.store))
    }

    /// Whether logs are of several users.
    pub fn is_shared(&self) -> bool {
        matches!(self.snapshot.owners, Owners::Many(..))
    }

    /// Whether all logs are of this user.
    pub fn is_of(&self, user: u32) -> bool {
        let taken = self.snapshot.taken.takeovers().all();
        self.snapshot.logs.iter().all(|log| log.uid == user)
            && taken.iter().all(|takeover| takeover.user == user)
    }

    /// Commits of a log behind `after` that carry side records, oldest first. Commits of fields alone are
    /// not looked at.
    pub fn commits(&self, writer: Id, after: u64) -> Result<Commits> {
        let left = match self.snapshot.log(writer) {
            Some(log) if log.record.sequence > after => Left::Living(self.side_commits(log, after)?),
            Some(_) => Left::Living(Vec::new()),
            None => self.taken_commits(writer, after)?,
        };
        Ok(Commits { feed: self.clone(), writer, left })
    }

    /// The commits of a log that hold fields, oldest first, where the index cannot be read. This reads the whole log; it does not find commits after a damaged one, except for the last.
    pub fn commits_of_fields(&self, writer: Id) -> Result<Vec<EntryCommit>> {
        let mut commits = Vec::new();
        let Some(log) = self.snapshot.log(writer) else {
            let Some((takeover, log)) = self.snapshot.taken.log(writer) else { return Ok(commits) };
            let head = self.snapshot.taken.head(takeover, &log);
            takeover.each_commit(writer, |commit| {
                let is_held = commit.order.is_none_or(|order| self.snapshot.taken.holds_decision(order));
                if commit.info.sequence <= head && commit.published.0 > 0 && is_held {
                    let of = EntryCommit::new(writer, takeover.user, &commit.info);
                    commits.push(EntryCommit { forgotten: commit.order, taken: commit.taken, ..of });
                }
                Ok(())
            })?;
            return Ok(commits);
        };
        let ahead = self.medium.first_commits(writer, log.ends.frame)?;
        let last = (*log.record).clone();
        for record in
            ahead.into_iter().map(|(_, record)| record).chain([last]).filter(|record| record.fields > 0)
        {
            let CommitRecord { sequence, stamp, time, transaction, view, .. } = record;
            let info = CommitInfo { sequence, stamp, time, transaction, origin: None, view };
            commits.push(EntryCommit::new(writer, log.uid, &info));
        }
        Ok(commits)
    }

    /// Index entries of a log, of commits behind `after`, by key. An entry that a later one of the same
    /// log hides is there all the same. Of many logs that takeovers replace, [`taken_entries`](Self::taken_entries)
    /// gives all at once.
    pub fn entries(&self, writer: Id, after: u64) -> Entries {
        self.entries_that(EntriesAsked::Log { writer, after })
    }

    /// Index entries of these logs that takeovers replace, of commits behind a sequence of each; without a list, of all.
    /// Takeovers that hold none of them are not read.
    pub fn taken_entries(&self, behind: Option<HashMap<Id, u64>>) -> Entries {
        self.entries_that(EntriesAsked::Taken(behind))
    }

    /// Index entries of some logs, or of all, that are prepared under a transaction, or were before its decision.
    pub fn entries_under(&self, transaction: Id, logs: Option<HashSet<Id>>) -> Entries {
        self.entries_that(EntriesAsked::Under { transaction, logs })
    }

    /// Index entries that one of these selections selects.
    pub fn entries_selected(&self, selections: &[Selection]) -> Entries {
        self.entries_that(EntriesAsked::Selected(selections.iter().map(Selected::new).collect()))
    }

    fn entries_that(&self, asked: EntriesAsked) -> Entries {
        let sources =
            (0..self.snapshot.sources.len()).filter(|i| asked.may_be_in(&self.snapshot, *i)).rev().collect();
        Entries {
            feed: self.clone(),
            asked,
            sources,
            cursor: None,
            decoder: KeyDecoder::new(),
            wipes: Default::default(),
        }
    }

    /// Whether a log is one that a takeover replaces.
    pub fn is_taken(&self, writer: Id) -> bool {
        self.snapshot.log(writer).is_none()
    }

    /// Whether those who name a transaction see what a log has prepared under it by a commit: it may become visible later, or
    /// is visible.
    pub fn is_open(&self, transaction: Id, writer: Id, sequence: u64) -> bool {
        let user = self.snapshot.user_of(writer);
        let state = user.and_then(|user| self.snapshot.transaction_state(transaction, user));
        let is_forgotten = || user.is_some_and(|user| self.snapshot.taken.is_forgotten(transaction, user));
        state.map_or_else(|| !is_forgotten(), |state| state.is_open_for(writer, sequence))
    }

    /// Whether nothing speaks of a transaction any more, as takeovers have forgotten it.
    pub fn forgets(&self, transaction: Id) -> bool {
        self.snapshot.forgets(transaction)
    }

    /// Whether a follower that has applied each log up to a mark has commits that were given up since.
    pub fn gives_up(&self, marks: &Marks) -> bool {
        marks.logs.iter().any(|(log, mark)| self.snapshot.accepted.is_beyond(*log, *mark))
    }

    /// The decisions on transactions.
    pub fn decisions(&self) -> Vec<TransactionState> {
        let mut by_user: HashMap<Id, Vec<(u32, Arc<UserState>)>> = HashMap::new();
        for (transaction, user, state) in self.snapshot.transaction_states() {
            by_user.entry(transaction).or_default().push((user, state.clone()));
        }
        let mut joined: HashMap<Id, Vec<u32>> = HashMap::new();
        for (transaction, prepared) in self.snapshot.all_prepared() {
            joined.entry(transaction).or_default().push(prepared.user);
        }
        let users = Users::Of(self.snapshot.clone());
        let state = |(transaction, mut by_user): (Id, Vec<(u32, Arc<UserState>)>)| {
            by_user.sort_unstable_by_key(|(user, _)| *user);
            let joined = joined.get(&transaction).map_or(&[][..], Vec::as_slice);
            TransactionState::new(&users, transaction, by_user, joined)
        };
        let mut all: Vec<TransactionState> = by_user.into_iter().map(state).collect();
        all.sort_by_key(|decision| decision.order);
        all
    }

    /// All damage: found in the logs by the snapshot, or skipped since.
    pub fn problems(&self) -> Vec<Problem> {
        let passed = self.passed.lock();
        self.snapshot.problems.iter().chain(passed.iter()).cloned().collect()
    }

    fn pass(&self, file: String, error: &Error) {
        let problem = Problem { file, why: error.message().to_owned(), damage: true, skipped: false };
        let mut passed = self.passed.lock();
        if !passed.contains(&problem) {
            passed.push(problem);
        }
    }

    /// Keeps damage as a problem; other errors end the reading.
    fn tolerate<T>(&self, file: impl FnOnce() -> String, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                self.pass(file(), &e);
                Ok(None)
            }
            Err(e) => Err(e),
        }
    }

    /// Commits with side records behind `after`, newest first.
    fn side_commits(&self, log: &SnapshotLog, after: u64) -> Result<Vec<SideCommit>> {
        let (mut ends, mut record) = (log.ends, (*log.record).clone());
        let mut commits = Vec::new();
        loop {
            if ends.sequence <= after {
                return Ok(commits);
            }
            let before = record.previous_side;
            let found = match before {
                0 => None,
                before => Some(self.medium.commit_before(log.writer, before, &ends, &record)),
            };
            if record.side_count > 0 {
                commits.push(SideCommit::of(&record));
            }
            let Some(found) = found else { return Ok(commits) };
            match self.tolerate(|| self.medium.shown(log.writer, 0), found)? {
                Some(earlier) => (ends, record) = earlier,
                None => {
                    // The way back is broken: what stands before the damage is found from the front.
                    let mut ahead = self.medium.first_commits(log.writer, ends.frame)?;
                    ahead.retain(|(_, record)| record.side_count > 0 && record.sequence > after);
                    commits.extend(ahead.iter().rev().map(|(_, record)| SideCommit::of(record)));
                    return Ok(commits);
                }
            }
        }
    }

    fn commit(&self, log: &SnapshotLog, found: &SideCommit) -> Result<Commit> {
        let bytes = self.medium.read_vec(log.writer, 0, found.side.offset, found.side.length)?;
        let named = |e: Error| e.context(format!("side records of commit {}", found.sequence));
        if crc(&bytes) != found.side.crc {
            return Err(named(Code::Checksum.error("they do not match their checksum")));
        }
        Ok(Commit {
            writer: log.writer,
            owner: log.uid,
            sequence: found.sequence,
            stamp: found.stamp,
            time: found.time,
            transaction: found.transaction,
            order: None,
            side: log::decode_side(&bytes, found.count).map_err(named)?,
        })
    }
}

/// Commits of one log, oldest first. Holds the places of all, and reads one at a time.
#[derive(Debug)]
pub struct Commits {
    feed: Feed,
    writer: Id,
    left: Left,
}

/// The commits that are still to be read.
#[derive(Debug)]
enum Left {
    /// Of a living log; the next one is the last.
    Living(Vec<SideCommit>),
    /// Of a log that a takeover replaces, up to a sequence; the rows from the current one on. None at the end.
    Taken(Option<(Arc<Takeover>, Rows)>, u64),
}

/// A commit with side records, and where these stand.
#[derive(Debug)]
struct SideCommit {
    sequence: u64,
    stamp: u64,
    time: i64,
    transaction: Option<Id>,
    side: Section,
    count: u64,
}

impl SideCommit {
    fn of(record: &CommitRecord) -> SideCommit {
        let CommitRecord { sequence, stamp, time, transaction, side, side_count: count, .. } = *record;
        SideCommit { sequence, stamp, time, transaction, side, count }
    }
}

impl Feed {
    /// Commits with side records of a log that a takeover replaces, behind `after`.
    fn taken_commits(&self, writer: Id, after: u64) -> Result<Left> {
        let Some((takeover, log)) = self.snapshot.taken.log(writer) else { return Ok(Left::Taken(None, 0)) };
        let head = self.snapshot.taken.head(takeover, &log);
        let Some(mut rows) = takeover.cursor(TakeoverTable::Side) else { return Ok(Left::Taken(None, 0)) };
        let found = rows.seek(&side_key(writer, after + 1)).map_err(|e| takeover.named(e));
        let found = self.tolerate(|| takeover.shown.clone(), found)?.unwrap_or(false);
        Ok(Left::Taken(found.then(|| (takeover.clone(), rows)), head))
    }

    /// The commit with side records at the current row; `None` where the row is of another log.
    fn taken_commit(&self, takeover: &Arc<Takeover>, rows: &Rows, writer: Id) -> Result<Option<Commit>> {
        let (of, sequence) = parse_side_key(rows.key())?;
        if of != writer {
            return Ok(None);
        }
        let found = takeover.commit_of(writer, sequence)?;
        let found = found.ok_or_else(|| Error::corrupt("side records are of a missing commit"))?;
        Ok(Some(Commit {
            writer,
            owner: takeover.user,
            sequence,
            stamp: found.info.stamp,
            time: found.info.time,
            transaction: found.info.transaction,
            order: found.order,
            side: log::decode_all_side(rows.value())?,
        }))
    }
}

impl Commits {
    fn next_living(&mut self) -> Option<Result<Commit>> {
        let Left::Living(left) = &mut self.left else { return None };
        let log = self.feed.snapshot.log(self.writer)?;
        loop {
            let outcome = self.feed.commit(log, &left.pop()?);
            let file = || self.feed.medium.shown(self.writer, 0);
            // R16: a commit comes too late for a forgotten transaction.
            let is_late = |id: Id| self.feed.snapshot.taken.is_forgotten(id, log.uid);
            match self.feed.tolerate(file, outcome) {
                Ok(Some(commit)) if commit.transaction.is_some_and(is_late) => {}
                Ok(Some(commit)) => return Some(Ok(commit)),
                Ok(None) => {}
                Err(e) => return Some(Err(e)),
            }
        }
    }

    fn next_taken(&mut self) -> Result<Option<Commit>> {
        let Left::Taken(left, head) = &mut self.left else { return Ok(None) };
        while let Some((takeover, rows)) = left {
            let file = || takeover.shown.clone();
            let commit = self.feed.taken_commit(takeover, rows, self.writer).map_err(|e| takeover.named(e));
            let is_damaged = commit.as_ref().is_err_and(|e| e.kind() == ErrorKind::Corrupt);
            let commit = self.feed.tolerate(file, commit)?.flatten();
            let is_last = commit.as_ref().map_or(!is_damaged, |commit| commit.sequence > *head);
            let more = rows.advance().map_err(|e| takeover.named(e));
            if is_last || !self.feed.tolerate(file, more)?.unwrap_or(false) {
                *left = None;
            }
            if is_last {
                return Ok(None);
            }
            // An older version may lack the decision that made it visible.
            let order = commit.as_ref().and_then(|commit| commit.order);
            let is_held = order.is_none_or(|order| self.feed.snapshot.taken.holds_decision(order));
            if commit.is_some() && is_held {
                return Ok(commit);
            }
        }
        Ok(None)
    }
}

impl Iterator for Commits {
    type Item = Result<Commit>;

    fn next(&mut self) -> Option<Result<Commit>> {
        match self.left {
            Left::Living(_) => self.next_living(),
            Left::Taken(..) => self.next_taken().transpose(),
        }
    }
}

/// Index entries that somebody asked for. Holds one block of one source.
#[derive(Debug)]
pub struct Entries {
    feed: Feed,
    asked: EntriesAsked,
    /// Sources still to be read, by index; the next one is the last.
    sources: Vec<usize>,
    cursor: Option<EntryCursor>,
    decoder: KeyDecoder,
    /// The wipes that select keys with the first two levels that were read last.
    wipes: (Vec<u8>, KeyWipes),
}

impl Entries {
    /// The word of wipes on an entry of the key under the cursor.
    fn wiped(&mut self, commit: &EntryCommit) -> Result<Wiped> {
        let (snapshot, (prefix, wipes)) = (&self.feed.snapshot, &mut self.wipes);
        let Some(cursor) = self.cursor.as_ref().filter(|_| !snapshot.wipes.is_empty()) else {
            return Ok(Wiped::No);
        };
        if prefix.is_empty() || !cursor.key().starts_with(prefix) {
            *prefix = cursor.key()[..level_ends(cursor.key())?[1]].to_vec();
            *wipes = snapshot.wipes.of_key(cursor.key())?;
        }
        // No version shows an entry that is not visible.
        let order = snapshot.order(commit, None).filter(|_| !wipes.is_empty());
        let said = order.map_or(Wiped::No, |order| wipes.say_of(snapshot, commit, order));
        // A wiped entry of a newer attempt still hides it; an attempt that began after the wipe is newer than all of those.
        let attempt = commit.moved.map_or(commit.attempt, |moved| moved.attempt);
        let is_before = |(began, _): Order| wipes.newest().is_some_and(|stamp| began < stamp);
        let is_unsure = said == Wiped::No && attempt.is_some_and(is_before);
        Ok(if is_unsure { Wiped::Unsure } else { said })
    }

    /// Opens the next source with a commit that is asked for; `false` at the end.
    fn open(&mut self) -> Result<bool> {
        while let Some(index) = self.sources.pop() {
            let snapshot = &self.feed.snapshot;
            let source = &snapshot.sources[index];
            if let EntrySource::Segment(segment, _) = source {
                let Some(meta) = self.feed.tolerate(|| source.shown(), segment.meta())? else { continue };
                if !self.asked.is_in(&meta.commits) {
                    continue;
                }
            }
            self.cursor = Some(EntryCursor::tolerant(source, index));
            return Ok(true);
        }
        Ok(false)
    }

    /// The entry under the cursor, if it is asked for.
    fn entry(&mut self) -> Result<Option<EntryChange>> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let snapshot = &self.feed.snapshot;
        let commit = snapshot.commit_at(cursor.index, cursor.commit()?)?;
        let is_late = |id: Id| commit.taken == 0 && snapshot.taken.is_forgotten(id, commit.user);
        if !self.asked.is(&commit)
            || !self.asked.is_under(cursor.key())
            || !snapshot.taken.holds(&commit)
            || commit.transaction.is_some_and(is_late)
        {
            return Ok(None);
        }
        if let Owners::Many(..) = snapshot.owners
            && !snapshot
                .owners
                .counts(&cursor.key()[..cursor.dataset_end()?], commit.user, || Ok(commit.stamp))?
        {
            return Ok(None);
        }
        let entry = Entry::decode(cursor.value())?;
        let holder = snapshot.holder(cursor.index, &entry)?;
        if snapshot.gives_up(&commit, holder, &entry) {
            return Ok(None);
        }
        let wiped = self.wiped(&commit)?;
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let (stamp, time) =
            commit.moved.map_or((commit.stamp, commit.time), |moved| (moved.order.0, moved.time));
        let effect = EntryEffect::of(&entry);
        let (dtype, shape) = entry.array.map(|array| (array.dtype, array.shape)).unzip();
        Ok(Some(EntryChange {
            key: self.decoder.decode(cursor.key())?,
            writer: commit.writer,
            owner: commit.user,
            sequence: commit.sequence,
            stamp,
            time,
            transaction: commit.transaction,
            order: commit.forgotten,
            effect,
            wiped,
            dtype,
            shape,
        }))
    }

    fn step(&mut self) -> Result<Option<EntryChange>> {
        loop {
            let Some(cursor) = &mut self.cursor else {
                if self.open()? {
                    continue;
                }
                return Ok(None);
            };
            let index = cursor.index;
            let more = cursor.advance();
            let file = || self.feed.snapshot.sources[index].shown();
            for damage in cursor.take_damage() {
                self.feed.pass(file(), &damage);
            }
            if !self.feed.tolerate(file, more)?.unwrap_or(false) {
                self.cursor = None;
                continue;
            }
            let entry = self.entry();
            let file = || self.feed.snapshot.sources[index].shown();
            if let Some(Some(entry)) = self.feed.tolerate(file, entry)? {
                return Ok(Some(entry));
            }
        }
    }
}

impl Iterator for Entries {
    type Item = Result<EntryChange>;

    fn next(&mut self) -> Option<Result<EntryChange>> {
        let outcome = self.step();
        if outcome.is_err() {
            // An error other than damage may come back each time, so it ends the reading.
            self.sources.clear();
            self.cursor = None;
        }
        outcome.transpose()
    }
}
