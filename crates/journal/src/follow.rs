//! Following the logs: what they hold beyond a follower's marks is applied, decisions first, then each log's
//! entries and commits.
//!
//! Invariants:
//! * a log's mark moves in the same transaction of the follower that holds the rows up to it;
//! * a long replay is several transactions: between them others read nothing, because the marks do not reach
//!   the logs' heads, and any of them may go on with it;
//! * a feed that is behind the marks is not applied: it knows neither the decisions nor the removals that
//!   the follower has, and would take them back;
//! * damaged parts are skipped, the same ones by everybody;
//! * of logs that takeovers replace only those are looked at that were taken over since the follower's number, and of these
//!   only what lies beyond their marks.
//!
//! ```text
//! let feed = journal.looks().feed()?;
//! match follow(&mut follower, &feed, &fields, &Following { wait: Wait::Yes, newest: false, pace })? {
//!     Followed::Done => …             the follower shows the feed's moment, or a later one
//!     Followed::Busy => …             another process has it; only without waiting
//!     Followed::Behind => …           take a newer feed
//! }
//! ```

use std::collections::HashMap;

use fieldstone_core::Result;
use fieldstone_core::env::Clock;
use fieldstone_core::planted::{self, Planted};
use fieldstone_format::Id;
use fieldstone_format::version::TakeoverName;
use tracing::field::{Empty, debug};
use tracing::{Span, debug_span};

use crate::feed::{Commit, EntryChange, Feed, TransactionState};
use crate::follower::{Again, FieldLookup, Follower, Wait};
use crate::marks::{Heads, Marks};

/// How much one transaction of a follower holds, about.
#[derive(Debug, Clone, Copy)]
pub struct Pace<'a> {
    /// The time.
    pub clock: &'a dyn Clock,
    /// Bytes of side records.
    pub bytes: usize,
    /// Nanoseconds that it lasts: others see by the marks that one gets on.
    pub time: u64,
    /// Nanoseconds between two of them, for others to get their turn.
    pub rest: u64,
}

impl<'a> Pace<'a> {
    /// 64 MiB or half a second.
    pub fn usual(clock: &'a dyn Clock) -> Pace<'a> {
        Pace { clock, bytes: 64 << 20, time: 500_000_000, rest: 0 }
    }
}

/// How a feed is followed.
#[derive(Debug, Clone, Copy)]
pub struct Following<'a> {
    /// Whether other processes are waited for.
    pub wait: Wait,
    /// Whether nobody can give a newer feed: a follower with marks beyond it applied what logs have lost since, and is made
    /// from scratch; one that hosts share may also have what shows late here.
    pub newest: bool,
    /// How much is done at once.
    pub pace: Pace<'a>,
}

/// The outcome of following.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// The marks reach the heads of all logs.
    Done,
    /// Another process has the follower.
    Busy,
    /// The follower has applied what the feed does not know of.
    Behind,
}

/// Counts of applied commits and records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Logs of the feed.
    pub logs: u64,
    /// Commits with side records.
    pub commits: u64,
    /// Fields and removals.
    pub entries: u64,
}

/// Brings a follower up to a feed.
pub fn follow(
    follower: &mut dyn Follower,
    feed: &Feed,
    fields: &dyn FieldLookup,
    how: &Following<'_>,
) -> Result<Followed> {
    let heads = feed.heads();
    let marks = follower.marks()?;
    // The follower is made again without what was given up.
    let again = feed.gives_up(&marks);
    if !again && marks.covers(&heads) {
        return Ok(Followed::Done);
    }
    let span =
        debug_span!("follow", logs = heads.logs.len(), commits = Empty, entries = Empty, outcome = Empty);
    let _within = span.enter();
    follower.attend(feed);
    let mut replay = Replay { feed, fields, how: *how, heads, begun: 0, applied: Applied::default() };
    let followed = replay.run(follower, again);
    follower.leave();
    note(&span, &replay.applied, &followed);
    followed
}

/// Rebuilds a follower from the first commit on.
pub fn rebuild(
    follower: &mut dyn Follower,
    feed: &Feed,
    fields: &dyn FieldLookup,
    how: &Following<'_>,
) -> Result<(Followed, Applied)> {
    let applied = Applied { logs: feed.number_of_logs(), ..Applied::default() };
    let heads = feed.heads();
    let span = debug_span!("rebuild", logs = applied.logs, commits = Empty, entries = Empty, outcome = Empty);
    let _within = span.enter();
    follower.attend(feed);
    let mut replay = Replay { feed, fields, how: *how, heads, begun: 0, applied };
    let followed = replay.run(follower, true);
    follower.leave();
    note(&span, &replay.applied, &followed);
    Ok((followed?, replay.applied))
}

fn note(span: &Span, applied: &Applied, followed: &Result<Followed>) {
    span.record("commits", applied.commits);
    span.record("entries", applied.entries);
    if let Ok(followed) = followed {
        span.record("outcome", debug(followed));
    }
}

/// Lays over a follower what a transaction has prepared, and commits that are not made yet; `false` where there
/// is nothing of it, and nothing was begun. [`Follower::abort`] takes it away again.
pub fn overlay(
    follower: &mut dyn Follower,
    feed: &Feed,
    fields: &dyn FieldLookup,
    transaction: Option<Id>,
    own: &[Commit],
) -> Result<bool> {
    follower.attend(feed);
    let laid = follower.overlay(transaction, own)?;
    if !laid {
        follower.leave();
    }
    let Some(id) = transaction.filter(|_| laid && follower.wants_entries()) else { return Ok(laid) };
    let outcome = lay_fields(follower, feed, fields, id);
    if outcome.is_err() {
        // The first error says more than what giving up may add.
        let _ = follower.abort();
    }
    outcome.map(|()| laid)
}

fn lay_fields(
    follower: &mut dyn Follower,
    feed: &Feed,
    fields: &dyn FieldLookup,
    transaction: Id,
) -> Result<()> {
    // Nobody sees entries that an abort or a late flush left out, not even those who name the transaction.
    let is_open = |entry: &Result<EntryChange>| {
        let open = |entry: &EntryChange| feed.is_open(transaction, entry.writer, entry.sequence);
        entry.as_ref().map_or(true, open)
    };
    let laid = follower.entries(&mut feed.entries_under(transaction, None).filter(is_open))?;
    if laid > 0 { follower.ask(fields, Some(transaction)) } else { Ok(()) }
}

/// How one round of applying ended.
enum Round {
    /// All is applied.
    Done,
    /// Somebody else was there in a pause, or the follower had to be emptied: its marks say where to go on.
    Again,
    /// It cannot go on.
    Stopped(Followed),
}

struct Replay<'a> {
    feed: &'a Feed,
    fields: &'a dyn FieldLookup,
    how: Following<'a>,
    heads: Heads,
    /// When the follower's transaction was begun, by the monotonic clock.
    begun: u64,
    applied: Applied,
}

impl Replay<'_> {
    fn run(&mut self, follower: &mut dyn Follower, from_scratch: bool) -> Result<Followed> {
        if !self.begin(follower)? {
            return Ok(Followed::Busy);
        }
        let outcome = self.within(follower, from_scratch);
        match outcome {
            Ok(Followed::Done) => follower.end().map(|()| Followed::Done),
            // In a pause that another process did not end nothing is begun; giving up takes no notice.
            Ok(stopped) => follower.abort().map(|()| stopped),
            Err(error) => {
                // The first error says more than what giving up may add.
                let _ = follower.abort();
                Err(error)
            }
        }
    }

    fn now(&self) -> u64 {
        self.how.pace.clock.monotonic()
    }

    /// Begins a transaction of the follower.
    fn begin(&mut self, follower: &mut dyn Follower) -> Result<bool> {
        let begun = follower.begin(self.how.wait)?;
        self.begun = self.now();
        Ok(begun)
    }

    fn within(&mut self, follower: &mut dyn Follower, from_scratch: bool) -> Result<Followed> {
        if from_scratch {
            follower.clear()?;
        }
        loop {
            match self.go_on_from_marks(follower)? {
                Round::Done => return Ok(Followed::Done),
                Round::Stopped(how) => return Ok(how),
                // Other processes may go on or rebuild meanwhile; the marks then say how far.
                Round::Again => {}
            }
        }
    }

    /// Applies what lies beyond the marks.
    fn go_on_from_marks(&mut self, follower: &mut dyn Follower) -> Result<Round> {
        // J-25: an older feed would take back what the follower has from a newer one.
        let applied = follower.applied()?;
        if self.feed.is_behind(&applied) {
            if !self.how.newest {
                return Ok(Round::Stopped(Followed::Behind));
            }
            // Logs have lost what it applied, and nothing says which of its rows that was; unless another host applied what
            // shows late here.
            if !follower.is_shared_by_hosts() || self.feed.contradicts(&applied) {
                follower.clear()?;
            }
        }
        follower.sound()?;
        let states = self.feed.decisions();
        self.decide(follower, &states)?;
        let marks = follower.marks()?;
        let taken = self.feed.taken_since(&marks)?;
        self.entries_of_taken(follower, &marks, &taken)?;
        let logs: Vec<(Id, u64)> = taken.iter().chain(&self.heads.logs).copied().collect();
        let mut bytes = 0;
        for (writer, head) in logs {
            let after = marks.of(writer);
            if after >= head {
                continue;
            }
            if follower.wants_entries() && !self.feed.is_taken(writer) {
                self.applied.entries += follower.entries(&mut self.feed.entries(writer, after))?;
            }
            for commit in self.feed.commits(writer, after)? {
                let commit = commit?;
                if planted::is(Planted::ViewSkipsCommit) && commit.sequence % 5 == 4 {
                    continue;
                }
                follower.commit(&commit)?;
                self.applied.commits += 1;
                bytes += commit.side.iter().map(|record| record.bytes.len()).sum::<usize>();
                if self.is_long(&mut bytes) {
                    follower.mark(writer, commit.sequence)?;
                    if let Some(round) = self.pause(follower, &states)? {
                        return Ok(round);
                    }
                }
            }
            follower.mark(writer, head)?;
            if self.is_long(&mut bytes)
                && let Some(round) = self.pause(follower, &states)?
            {
                return Ok(round);
            }
        }
        self.take(follower, &marks, &taken)?;
        follower.ask(self.fields, None)?;
        Ok(if follower.sound()? { Round::Done } else { Round::Again })
    }

    /// Ends the marks of logs that takeovers replace, once all that these hold is applied.
    fn take(&self, follower: &mut dyn Follower, marks: &Marks, taken: &[(Id, u64)]) -> Result<()> {
        // An older takeover than the applied one is there where files show late.
        let is_new = |newest: &&TakeoverName| marks.number(newest.owner) < newest.number;
        let newest: Vec<TakeoverName> = self.heads.taken.iter().filter(is_new).copied().collect();
        let mut logs = self.feed.taken_with_marks(marks);
        logs.extend(taken.iter().map(|(log, _)| *log));
        if newest.is_empty() && logs.is_empty() { Ok(()) } else { follower.take(&newest, &logs) }
    }

    /// Gives the follower the entries, beyond its marks, of logs that takeovers replace: one walk over a takeover serves all
    /// of them.
    fn entries_of_taken(
        &mut self,
        follower: &mut dyn Follower,
        marks: &Marks,
        taken: &[(Id, u64)],
    ) -> Result<()> {
        if !follower.wants_entries() {
            return Ok(());
        }
        // At an older version such logs are among the heads.
        let older = self.heads.logs.iter().filter(|(log, _)| self.feed.is_taken(*log));
        let is_behind = |(log, head): &&(Id, u64)| marks.of(*log) < *head;
        let behind = taken.iter().chain(older).filter(is_behind);
        let behind: HashMap<Id, u64> = behind.map(|(log, _)| (*log, marks.of(*log))).collect();
        if !behind.is_empty() {
            self.applied.entries += follower.entries(&mut self.feed.taken_entries(Some(behind)))?;
        }
        Ok(())
    }

    /// Gives the follower what is decided, and gives it again what that may change.
    fn decide(&mut self, follower: &mut dyn Follower, states: &[TransactionState]) -> Result<()> {
        let mut again = follower.decide(states)?;
        if again == Again::Everything {
            follower.clear()?;
            again = follower.decide(states)?;
        }
        let Again::Entries(transactions, selections) = again else { return Ok(()) };
        if !selections.is_empty() {
            self.applied.entries += follower.entries(&mut self.feed.entries_selected(&selections))?;
        }
        for transaction in transactions {
            let state = states.iter().find(|state| state.transaction == transaction);
            let covered = state.iter().flat_map(|state| &state.covers).map(|(writer, _)| *writer).collect();
            let entries = &mut self.feed.entries_under(transaction, Some(covered));
            self.applied.entries += follower.entries(entries)?;
        }
        Ok(())
    }

    /// Whether a transaction has become long, by the side records applied or by time.
    fn is_long(&self, bytes: &mut usize) -> bool {
        let Pace { bytes: most, time, .. } = self.how.pace;
        let long = *bytes >= most || self.now().saturating_sub(self.begun) >= time;
        if long {
            *bytes = 0;
        }
        long
    }

    /// Ends one transaction of the follower and begins the next; how the round ends where that changes anything.
    fn pause(&mut self, follower: &mut dyn Follower, states: &[TransactionState]) -> Result<Option<Round>> {
        // The marks say to others that all up to them is there.
        follower.ask(self.fields, None)?;
        let before = follower.revision()?;
        follower.end()?;
        if self.how.pace.rest > 0 {
            self.how.pace.clock.sleep(self.how.pace.rest);
        }
        if !self.begin(follower)? {
            return Ok(Some(Round::Stopped(Followed::Busy)));
        }
        if follower.revision()? != before.wrapping_add(1) {
            return Ok(Some(Round::Again));
        }
        // Decisions are known for each transaction of the follower.
        follower.decide(states)?;
        Ok(None)
    }
}
