//! Following the logs: what they hold beyond a view's marks is applied, decisions first, then each log's
//! entries and commits.
//!
//! Invariants:
//! * a log's mark moves in the same transaction of the view that holds the rows up to it;
//! * a long replay is several transactions: between them others read nothing, because the marks do not reach
//!   the logs' heads, and any of them may go on with it;
//! * a feed that is behind the marks is not applied: it knows neither the decisions nor the removals that
//!   the view has, and would take them back;
//! * damaged parts are passed over, the same ones by everybody.
//!
//! ```text
//! let feed = journal.looks().feed()?;
//! match follow(&mut view, &feed, &fields, &Following { wait: Wait::Yes, newest: false, pace })? {
//!     Followed::Done => …             the view shows the feed's moment, or a later one
//!     Followed::Busy => …             another process has it; only without waiting
//!     Followed::Behind => …           take a newer feed
//! }
//! ```

use fieldstone_core::Result;
use fieldstone_core::env::Clock;
use fieldstone_format::Id;
use tracing::field::{Empty, debug};
use tracing::{Span, debug_span};

use crate::feed::{Commit, Feed, TransactionState};
use crate::view::{Again, Holds, Marks, View, Wait};

/// How much one transaction of a view holds, about.
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
    /// Whether nobody can give a newer feed: marks beyond it are of logs that lost commits.
    pub newest: bool,
    /// How much is done at once.
    pub pace: Pace<'a>,
}

/// What following came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// The marks reach the heads of all logs.
    Done,
    /// Another process has the view.
    Busy,
    /// The view has applied what the feed does not know of.
    Behind,
}

/// What was applied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Applied {
    /// Logs of the feed.
    pub logs: u64,
    /// Commits with side records.
    pub commits: u64,
    /// Fields and removals.
    pub entries: u64,
}

/// Whether marks reach the heads of all logs.
pub fn covers(marks: &Marks, heads: &[(Id, u64)]) -> bool {
    heads.iter().all(|(writer, head)| marks.get(writer).is_some_and(|mark| mark >= head))
}

/// Whether a view has applied something that lies beyond these heads, given in the order of their logs.
pub fn is_ahead(marks: &Marks, heads: &[(Id, u64)]) -> bool {
    let head = |writer: &Id| heads.binary_search_by_key(writer, |(log, _)| *log).map_or(0, |i| heads[i].1);
    marks.iter().any(|(writer, mark)| *mark > head(writer))
}

/// Brings a view up to a feed.
pub fn follow(view: &mut dyn View, feed: &Feed, fields: &dyn Holds, how: &Following<'_>) -> Result<Followed> {
    let heads = feed.heads();
    let marks = view.marks()?;
    // The view is made again without what was given up.
    let again = feed.gives_up(&marks);
    if !again && covers(&marks, &heads) {
        return Ok(Followed::Done);
    }
    let span = debug_span!("follow", logs = heads.len(), commits = Empty, entries = Empty, outcome = Empty);
    let _within = span.enter();
    view.attend(feed);
    let mut replay = Replay { feed, fields, how: *how, heads, begun: 0, applied: Applied::default() };
    let followed = replay.run(view, again);
    view.leave();
    note(&span, &replay.applied, &followed);
    followed
}

/// Makes a view anew, from the first commit on.
pub fn rebuild(
    view: &mut dyn View,
    feed: &Feed,
    fields: &dyn Holds,
    how: &Following<'_>,
) -> Result<(Followed, Applied)> {
    let heads = feed.heads();
    let applied = Applied { logs: heads.len() as u64, ..Applied::default() };
    let span = debug_span!("rebuild", logs = heads.len(), commits = Empty, entries = Empty, outcome = Empty);
    let _within = span.enter();
    view.attend(feed);
    let mut replay = Replay { feed, fields, how: *how, heads, begun: 0, applied };
    let followed = replay.run(view, true);
    view.leave();
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

/// Lays over a view what a transaction has prepared, and commits that are not made yet; `false` where there
/// is nothing of it, and nothing was begun. [`View::abort`] takes it away again.
pub fn overlay(
    view: &mut dyn View,
    feed: &Feed,
    fields: &dyn Holds,
    transaction: Option<Id>,
    own: &[Commit],
) -> Result<bool> {
    view.attend(feed);
    let laid = view.overlay(transaction, own)?;
    if !laid {
        view.leave();
    }
    let Some(id) = transaction.filter(|_| laid && view.wants_entries()) else { return Ok(laid) };
    let outcome = lay_fields(view, feed, fields, id);
    if outcome.is_err() {
        // The first error says more than what giving up may add.
        let _ = view.abort();
    }
    outcome.map(|()| laid)
}

fn lay_fields(view: &mut dyn View, feed: &Feed, fields: &dyn Holds, transaction: Id) -> Result<()> {
    let mut laid = 0;
    for (writer, _) in feed.heads() {
        laid += view.entries(writer, &mut feed.entries_under(writer, transaction))?;
    }
    if laid > 0 { view.ask(fields, Some(transaction)) } else { Ok(()) }
}

/// How one round of applying ended.
enum Round {
    /// All is applied.
    Done,
    /// Somebody else was there in a pause, or the view had to be emptied: its marks say where to go on.
    Again,
    /// It cannot go on.
    Stopped(Followed),
}

struct Replay<'a> {
    feed: &'a Feed,
    fields: &'a dyn Holds,
    how: Following<'a>,
    heads: Vec<(Id, u64)>,
    /// When the view's transaction was begun, by the monotonic clock.
    begun: u64,
    applied: Applied,
}

impl Replay<'_> {
    fn run(&mut self, view: &mut dyn View, anew: bool) -> Result<Followed> {
        if !self.begin(view)? {
            return Ok(Followed::Busy);
        }
        let outcome = self.within(view, anew);
        match outcome {
            Ok(Followed::Done) => view.end().map(|()| Followed::Done),
            // In a pause that another process did not end nothing is begun; giving up takes no notice.
            Ok(stopped) => view.abort().map(|()| stopped),
            Err(error) => {
                // The first error says more than what giving up may add.
                let _ = view.abort();
                Err(error)
            }
        }
    }

    fn now(&self) -> u64 {
        self.how.pace.clock.monotonic()
    }

    /// Begins a transaction of the view.
    fn begin(&mut self, view: &mut dyn View) -> Result<bool> {
        let begun = view.begin(self.how.wait)?;
        self.begun = self.now();
        Ok(begun)
    }

    fn within(&mut self, view: &mut dyn View, anew: bool) -> Result<Followed> {
        if anew {
            view.clear()?;
        }
        loop {
            match self.go_on_from_marks(view)? {
                Round::Done => return Ok(Followed::Done),
                Round::Stopped(how) => return Ok(how),
                // Others may go on meanwhile, or begin anew: then the marks say where.
                Round::Again => {}
            }
        }
    }

    /// Applies what lies beyond the marks.
    fn go_on_from_marks(&mut self, view: &mut dyn View) -> Result<Round> {
        // J-25: an older feed would take back what the view has from a newer one.
        if !self.how.newest && is_ahead(&view.applied()?, &self.heads) {
            return Ok(Round::Stopped(Followed::Behind));
        }
        view.sound()?;
        let states = self.feed.decisions();
        self.decide(view, &states)?;
        let marks = view.marks()?;
        let mut bytes = 0;
        for (writer, head) in self.heads.clone() {
            let after = marks.get(&writer).copied().unwrap_or(0);
            if after >= head {
                continue;
            }
            if view.wants_entries() {
                self.applied.entries += view.entries(writer, &mut self.feed.entries(writer, after))?;
            }
            for commit in self.feed.commits(writer, after)? {
                let commit = commit?;
                view.commit(&commit)?;
                self.applied.commits += 1;
                bytes += commit.side.iter().map(|record| record.bytes.len()).sum::<usize>();
                if self.is_long(&mut bytes) {
                    view.mark(writer, commit.sequence)?;
                    if let Some(round) = self.pause(view, &states)? {
                        return Ok(round);
                    }
                }
            }
            view.mark(writer, head)?;
            if self.is_long(&mut bytes)
                && let Some(round) = self.pause(view, &states)?
            {
                return Ok(round);
            }
        }
        view.ask(self.fields, None)?;
        Ok(if view.sound()? { Round::Done } else { Round::Again })
    }

    /// Gives the view what is decided, and gives it again what that may change.
    fn decide(&mut self, view: &mut dyn View, states: &[TransactionState]) -> Result<()> {
        let mut again = view.decide(states)?;
        if again == Again::Everything {
            view.clear()?;
            again = view.decide(states)?;
        }
        let Again::Entries(transactions) = again else { return Ok(()) };
        for transaction in transactions {
            let state = states.iter().find(|state| state.transaction == transaction);
            for (writer, _) in state.iter().flat_map(|state| &state.covers) {
                let entries = &mut self.feed.entries_under(*writer, transaction);
                self.applied.entries += view.entries(*writer, entries)?;
            }
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

    /// Ends one transaction of the view and begins the next; how the round ends where that changes anything.
    fn pause(&mut self, view: &mut dyn View, states: &[TransactionState]) -> Result<Option<Round>> {
        // The marks say to others that all up to them is there.
        view.ask(self.fields, None)?;
        let before = view.generation()?;
        view.end()?;
        if self.how.pace.rest > 0 {
            self.how.pace.clock.sleep(self.how.pace.rest);
        }
        if !self.begin(view)? {
            return Ok(Some(Round::Stopped(Followed::Busy)));
        }
        if view.generation()? != before.wrapping_add(1) {
            return Ok(Some(Round::Again));
        }
        // What is decided is known per transaction of the view.
        view.decide(states)?;
        Ok(None)
    }
}
