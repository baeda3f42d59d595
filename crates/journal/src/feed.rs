//! The content of the logs, commit by commit: the source of every index over side records and fields.
//!
//! A feed is pinned to one snapshot (J-23), so that an index that has followed it to its end shows one moment. An
//! index follows each log separately, from the sequence that it reached before. The content of a log never changes;
//! only the decisions on transactions do. A feed skips damaged parts and names them in [`Feed::problems`].
//!
//! ```text
//! for (writer, head) in feed.heads()
//!     for commit in feed.commits(writer, known)     side records, oldest first
//!     for entry in feed.entries(writer, known)      fields and removals, in the order of their keys
//! for decision in feed.decisions()                  what of the prepared ones is visible
//! ```

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::dtype::DType;
use fieldstone_core::key::FieldKey;
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::bytes::Cursor;
use fieldstone_format::entry::Entry;
use fieldstone_format::keys::{KeyDecoder, level_ends};
use fieldstone_format::log::{self, CommitRecord, Decision, Section, SideRecord};
use fieldstone_format::{Id, crc};
use xxhash_rust::xxh3::Xxh3;

use crate::medium::Medium;
use crate::segment::SegmentCursor;
use crate::snapshot::{ALL_KINDS, Decided, Order, Owners, Problem, Snapshot, SnapshotLog, UserState};

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
    /// The records and fields that it carries.
    pub side: Vec<SideRecord>,
}

/// A field, a piece of one or a removal.
#[derive(Debug, Clone)]
pub struct EntryChange {
    /// The key.
    pub key: FieldKey,
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
    /// Whether from here on the key has no field.
    pub removal: bool,
    /// Element type; `None` for opaque bytes and removals.
    pub dtype: Option<DType>,
    /// Shape of the whole array; `None` for opaque bytes and removals.
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
            Users::Of(snapshot) => snapshot.log(writer).map(|log| log.uid),
        }
    }
}

impl TransactionState {
    /// The result of these decisions, each with its position in the order of commits, if all logs belong to one user:
    /// for tests, and for media other than files.
    pub fn of_one_user(transaction: Id, decisions: &[(Order, Decision)]) -> TransactionState {
        let decided = |decision: &Decision, order: &Order| {
            Arc::new(Decided { decision: decision.clone(), stamp: order.0 })
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

    /// The logs, each with its last commit.
    pub fn heads(&self) -> Vec<(Id, u64)> {
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

    /// Whether logs are of several users.
    pub fn is_shared(&self) -> bool {
        matches!(self.snapshot.owners, Owners::Many(..))
    }

    /// Whether all logs are of this user.
    pub fn is_of(&self, user: u32) -> bool {
        self.snapshot.logs.iter().all(|log| log.uid == user)
    }

    /// Commits of a log behind `after` that carry side records, oldest first. Commits of fields alone are
    /// not looked at.
    pub fn commits(&self, writer: Id, after: u64) -> Result<Commits> {
        let left = match self.snapshot.log(writer) {
            Some(log) if log.record.sequence > after => self.side_commits(log, after)?,
            _ => Vec::new(),
        };
        Ok(Commits { feed: self.clone(), writer, left })
    }

    /// Records of commits that are no longer in the log's index, with the stamps of their commits, oldest first. This
    /// reads the whole log; it does not find records after a damaged one, except for the last.
    pub fn records(&self, writer: Id) -> Result<Vec<CommitRecord>> {
        let Some(log) = self.snapshot.log(writer) else { return Ok(Vec::new()) };
        let ahead = self.medium.first_commits(writer, log.ends.frame)?;
        let last = (*log.record).clone();
        Ok(ahead.into_iter().map(|(_, record)| record).chain([last]).collect())
    }

    /// Index entries of a log, of commits behind `after`, by key. An entry that a later one of the same
    /// log hides is there all the same.
    pub fn entries(&self, writer: Id, after: u64) -> Entries {
        self.entries_of(writer, after, None)
    }

    /// Index entries of a log that are prepared under a transaction, or were before its decision.
    pub fn entries_under(&self, writer: Id, transaction: Id) -> Entries {
        self.entries_of(writer, 0, Some(transaction))
    }

    fn entries_of(&self, writer: Id, after: u64, under: Option<Id>) -> Entries {
        let segments = match self.snapshot.log(writer) {
            Some(log) if log.record.sequence > after => {
                let of_log = |i: &usize| self.snapshot.segments[*i].writer == writer;
                (0..self.snapshot.segments.len()).filter(of_log).rev().collect()
            }
            _ => Vec::new(),
        };
        let decoder = KeyDecoder::new();
        Entries { feed: self.clone(), writer, after, under, segments, cursor: None, decoder }
    }

    /// Whether those who name a transaction see what a log has prepared under it by a commit: it may become visible later, or
    /// is visible.
    pub fn is_open(&self, transaction: Id, writer: Id, sequence: u64) -> bool {
        let state =
            self.snapshot.log(writer).and_then(|log| self.snapshot.transaction_state(transaction, log.uid));
        state.is_none_or(|state| state.is_open_for(writer, sequence))
    }

    /// Whether a follower that has applied each log up to a mark has commits that were given up since.
    pub fn gives_up(&self, marks: &HashMap<Id, u64>) -> bool {
        marks.iter().any(|(log, mark)| self.snapshot.accepted.is_beyond(*log, *mark))
    }

    /// The decisions on transactions.
    pub fn decisions(&self) -> Vec<TransactionState> {
        let mut by_user: HashMap<Id, Vec<(u32, Arc<UserState>)>> = HashMap::new();
        for (transaction, user, state) in self.snapshot.transaction_states() {
            by_user.entry(transaction).or_default().push((user, state.clone()));
        }
        let mut joined: HashMap<Id, Vec<u32>> = HashMap::new();
        for log in &self.snapshot.logs {
            for prepared in &log.record.prepared {
                joined.entry(prepared.transaction).or_default().push(log.uid);
            }
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

    fn pass(&self, writer: Id, file: u32, error: &Error) {
        let problem = Problem {
            file: self.medium.shown(writer, file),
            why: error.message().to_owned(),
            damage: true,
            skipped: false,
        };
        let mut passed = self.passed.lock();
        if !passed.contains(&problem) {
            passed.push(problem);
        }
    }

    /// Keeps damage as a problem; other errors end the reading.
    fn tolerate<T>(&self, writer: Id, file: u32, outcome: Result<T>) -> Result<Option<T>> {
        match outcome {
            Ok(value) => Ok(Some(value)),
            Err(e) if e.kind() == ErrorKind::Corrupt => {
                self.pass(writer, file, &e);
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
            match self.tolerate(log.writer, 0, found)? {
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
            side: log::decode_side(&bytes, found.count).map_err(named)?,
        })
    }
}

/// Commits of one log, oldest first. Holds the places of all, and reads one at a time.
#[derive(Debug)]
pub struct Commits {
    feed: Feed,
    writer: Id,
    /// The next one is the last.
    left: Vec<SideCommit>,
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

impl Iterator for Commits {
    type Item = Result<Commit>;

    fn next(&mut self) -> Option<Result<Commit>> {
        let log = self.feed.snapshot.log(self.writer)?;
        loop {
            let next = self.left.pop()?;
            let outcome = self.feed.commit(log, &next);
            match self.feed.tolerate(self.writer, 0, outcome) {
                Ok(Some(commit)) => return Some(Ok(commit)),
                Ok(None) => {}
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

/// Index entries of one log. Holds one block of one segment.
#[derive(Debug)]
pub struct Entries {
    feed: Feed,
    writer: Id,
    after: u64,
    under: Option<Id>,
    /// Segments still to be read, by index; the next one is the last.
    segments: Vec<usize>,
    cursor: Option<SegmentCursor>,
    decoder: KeyDecoder,
}

impl Entries {
    /// Opens the next segment with a commit that is asked for; `false` at the end.
    fn open(&mut self) -> Result<bool> {
        while let Some(index) = self.segments.pop() {
            let segment = &self.feed.snapshot.segments[index];
            let Some(meta) = self.feed.tolerate(self.writer, segment.reference.file, segment.meta())? else {
                continue;
            };
            let asked = match self.under {
                Some(_) => meta.commits.iter().any(|commit| commit.transaction == self.under),
                None => meta.commits.last().is_some_and(|commit| commit.sequence > self.after),
            };
            if asked {
                self.cursor = Some(SegmentCursor::tolerant(segment.clone(), index));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The entry under the cursor, if it is asked for.
    fn entry(&mut self) -> Result<Option<EntryChange>> {
        let Some(cursor) = &self.cursor else { return Ok(None) };
        let snapshot = &self.feed.snapshot;
        let meta = snapshot.segments[cursor.index].meta()?;
        let commit = Cursor::new(cursor.value()).varint()?;
        let commit = usize::try_from(commit).ok().and_then(|i| meta.commits.get(i));
        let commit = commit.ok_or_else(|| Error::corrupt("an index entry names no commit"))?;
        let asked = self.under.is_none_or(|id| commit.transaction == Some(id));
        if commit.sequence <= self.after || !asked {
            return Ok(None);
        }
        if let Owners::Many(..) = snapshot.owners {
            let end = level_ends(cursor.key())?[0];
            if !snapshot.owners.counts(&cursor.key()[..end], snapshot.log_of(cursor.index).uid) {
                return Ok(None);
            }
        }
        let entry = Entry::decode(cursor.value())?;
        if snapshot.gives_up(self.writer, commit.sequence, &entry) {
            return Ok(None);
        }
        if entry.is_attempt_tombstone() {
            return Ok(None);
        }
        let origin = commit.origin.and_then(|origin| meta.origins.get(origin as usize));
        let (stamp, time) = origin.map_or((commit.stamp, commit.time), |origin| (origin.stamp, origin.time));
        let removal = entry.is_removal();
        let (dtype, shape) = entry.array.map(|array| (array.dtype, array.shape)).unzip();
        Ok(Some(EntryChange {
            key: self.decoder.decode(cursor.key())?,
            owner: snapshot.log_of(cursor.index).uid,
            sequence: commit.sequence,
            stamp,
            time,
            transaction: commit.transaction,
            removal,
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
            let file = self.feed.snapshot.segments[cursor.index].reference.file;
            let more = cursor.advance();
            for damage in cursor.take_damage() {
                self.feed.pass(self.writer, file, &damage);
            }
            if !self.feed.tolerate(self.writer, file, more)?.unwrap_or(false) {
                self.cursor = None;
                continue;
            }
            let entry = self.entry();
            if let Some(Some(entry)) = self.feed.tolerate(self.writer, file, entry)? {
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
            self.segments.clear();
            self.cursor = None;
        }
        outcome.transpose()
    }
}
