//! The behaviours that every follower of the logs must show: whatever the way to the last commit, it says the
//! same in the end.
//!
//! A follower implements [`Harness`] and hands it to [`run_all`], or to one behaviour of [`BEHAVIOURS`] at a time. Each
//! behaviour makes random histories ([`History`]) and compares the answers of a follower that got there in one way with
//! those of a rebuilt follower. The harness decides the content of side records: records that contradict each other,
//! delete one another and come in transactions find most.
//!
//! A behaviour that is not shown panics in an `assert`, or returns the error that the follower gave.
//!
//! ```text
//! struct Tables(Vec<Database>);
//! impl Harness for Tables {
//!     fn open(&mut self, engine: usize, history: &History) -> Result<Box<dyn Follower>> { … }
//!     fn side(&mut self, dice: &mut Random, heads: &[(Id, u64)]) -> Vec<SideRecord> { … }
//! }
//! run_all(Tables::default, 0..20)?;
//! ```

use std::ops::Range;

use fieldstone_core::env::sim::Random;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::version::TakeoverName;

pub use super::harness::Harness;
use super::history::{History, Standing};
use super::taken::{r24_takeovers_are_applied_once, r24_what_contradicts_the_logs_goes};
use crate::feed::{Commit, EntryChange, Feed, OWN_LOG, TransactionState};
use crate::follow::{Followed, Following, Pace, follow, overlay, rebuild};
use crate::follower::{Again, FieldLookup, Follower, Marks, Wait};

/// How often one tries to go on where others went on.
const ROUNDS: usize = 100;

/// A behaviour, of the history that follows from a die.
pub type Behaviour = fn(&mut dyn Harness, &mut Random) -> Result<()>;

macro_rules! behaviours {
    ($($name:ident),+ $(,)?) => {
        /// All behaviours by name.
        pub const BEHAVIOURS: &[(&str, Behaviour)] = &[$((stringify!($name), $name)),+];
    };
}

behaviours! {
    any_order_of_logs, portions, each_commit_alone, applied_twice, made_from_scratch, marks_stand_for_rows,
    given_up, others_in_pauses, an_older_feed_changes_nothing, overlays_go, what_is_decided_shows,
    side_records_show, r24_takeovers_are_applied_once, r24_what_contradicts_the_logs_goes,
}

/// Runs all behaviours, each with a harness of its own, on the histories of these seeds. An error or a panic
/// names the behaviour and the seed.
pub fn run_all<H: Harness>(fresh: impl Fn() -> H, seeds: Range<u64>) -> Result<()> {
    for (name, _) in BEHAVIOURS {
        for seed in seeds.clone() {
            run(name, &mut fresh(), seed)?;
        }
    }
    Ok(())
}

/// Runs one behaviour by name.
pub fn run(name: &str, harness: &mut dyn Harness, seed: u64) -> Result<()> {
    let Some((_, behaviour)) = BEHAVIOURS.iter().find(|(known, _)| *known == name) else {
        return Err(Error::invalid(format!("there is no behaviour {name}")));
    };
    let named = Named(name, seed);
    let outcome =
        behaviour(harness, &mut Random::new(seed)).map_err(|e| e.context(format!("{name}, seed {seed}")));
    std::mem::forget(named);
    outcome
}

/// Says which behaviour it was where an assertion fails.
struct Named<'a>(&'a str, u64);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        eprintln!("behaviour {}, seed {}", self.0, self.1);
    }
}

/// A history, and what a follower says that was made from it in one go.
struct World {
    history: History,
    feed: Feed,
    fields: Standing,
    dump: String,
}

impl World {
    fn new(harness: &mut dyn Harness, dice: &mut Random) -> Result<World> {
        let shared = dice.one_in(2);
        let history = History::random(dice, shared, &mut |dice, heads| harness.side(dice, heads))?;
        let (feed, fields) = history.at(history.heads())?;
        let mut world = World { history, feed, fields, dump: String::new() };
        let mut follower = harness.open(usize::MAX, &world.history)?;
        let (followed, _) = rebuild(&mut *follower, &world.feed, &world.fields, &world.how())?;
        assert_eq!(followed, Followed::Done);
        world.dump = follower.dump()?;
        Ok(world)
    }

    fn how(&self) -> Following<'_> {
        let pace = Pace::usual(&*self.history.env().clock);
        Following { wait: Wait::Yes, newest: false, pace }
    }

    fn heads(&self) -> &[(Id, u64)] {
        self.history.heads()
    }

    /// Follows the store with these commits of each log.
    fn follow(&self, follower: &mut dyn Follower, heads: &[(Id, u64)]) -> Result<Followed> {
        let (feed, fields) = self.history.at(heads)?;
        follow(follower, &feed, &fields, &self.how())
    }

    /// Follows all of it, and compares.
    fn finish(&self, follower: &mut dyn Follower) -> Result<()> {
        assert_eq!(follow(follower, &self.feed, &self.fields, &self.how())?, Followed::Done);
        self.check(follower)
    }

    fn check(&self, follower: &mut dyn Follower) -> Result<()> {
        let dump = follower.dump()?;
        let lacks: Vec<&str> = self.dump.lines().filter(|line| !dump.lines().any(|l| l == *line)).collect();
        let more: Vec<&str> = dump.lines().filter(|line| !self.dump.lines().any(|l| l == *line)).collect();
        assert!(dump == self.dump, "it lacks {lacks:#?}\nand says {more:#?}");
        assert!(follower.marks()?.covers(&self.feed.heads()), "its marks do not reach the heads");
        Ok(())
    }

    /// Some commits of each log, at least those of `from`.
    fn part(&self, dice: &mut Random, from: &[(Id, u64)]) -> Vec<(Id, u64)> {
        let least = |writer: Id| from.iter().find(|(of, _)| *of == writer).map_or(0, |(_, at)| *at);
        let more = |(writer, head): &(Id, u64)| {
            let at = least(*writer);
            (*writer, if dice.one_in(2) { at } else { at + dice.below(head - at + 1) })
        };
        self.heads().iter().map(more).collect()
    }
}

/// One log after the other, in any order: decisions come long before what they cover, and long after.
fn any_order_of_logs(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let world = World::new(harness, dice)?;
    let mut follower = harness.open(0, &world.history)?;
    let mut heads = Vec::new();
    for head in dice.shuffled(world.heads().to_vec()) {
        heads.push(head);
        heads.sort_unstable();
        assert_eq!(world.follow(&mut *follower, &heads)?, Followed::Done);
    }
    world.finish(&mut *follower)
}

/// Some of each log, then some more.
fn portions(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let world = World::new(harness, dice)?;
    let mut follower = harness.open(0, &world.history)?;
    let mut heads = Vec::new();
    for _ in 0..1 + dice.below(6) {
        heads = world.part(dice, &heads);
        assert_eq!(world.follow(&mut *follower, &heads)?, Followed::Done);
    }
    world.finish(&mut *follower)
}

/// A transaction of the follower for each commit.
fn each_commit_alone(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let world = World::new(harness, dice)?;
    let mut follower = harness.open(0, &world.history)?;
    let how = world.how();
    let how = Following { pace: Pace { time: 0, ..how.pace }, ..how };
    assert_eq!(follow(&mut *follower, &world.feed, &world.fields, &how)?, Followed::Done);
    world.check(&mut *follower)
}

/// Everything once more, after it was applied.
fn applied_twice(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let world = World::new(harness, dice)?;
    let mut follower = harness.open(0, &world.history)?;
    world.finish(&mut *follower)?;
    follower.attend(&world.feed);
    assert!(follower.begin(Wait::Yes)?);
    assert!(follower.sound()?);
    assert_eq!(
        follower.decide(&world.feed.decisions())?,
        Again::Entries(Vec::new(), Vec::new()),
        "nothing is new"
    );
    for (writer, _) in dice.shuffled(world.heads().to_vec()) {
        if follower.wants_entries() {
            follower.entries(&mut world.feed.entries(writer, 0))?;
        }
        for commit in world.feed.commits(writer, 0)? {
            follower.commit(&commit?)?;
        }
    }
    follower.ask(&world.fields, None)?;
    assert!(follower.sound()?);
    follower.end()?;
    follower.leave();
    world.check(&mut *follower)
}

/// Rebuilt by a follower that has applied something before.
fn made_from_scratch(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let world = World::new(harness, dice)?;
    let mut follower = harness.open(0, &world.history)?;
    let part = world.part(dice, &[]);
    world.follow(&mut *follower, &part)?;
    let (followed, applied) = rebuild(&mut *follower, &world.feed, &world.fields, &world.how())?;
    assert_eq!((followed, applied.logs), (Followed::Done, world.heads().len() as u64));
    world.check(&mut *follower)
}

/// Marks reach as far as the rows, not less and not more.
fn marks_stand_for_rows(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let world = World::new(harness, dice)?;
    let mut follower = harness.open(0, &world.history)?;
    let mut heads = Vec::new();
    for round in 0..3 {
        heads = world.part(dice, &heads);
        world.follow(&mut *follower, &heads)?;
        let (feed, fields) = world.history.at(&heads)?;
        let marks = follower.marks()?;
        assert!(marks.covers(&feed.heads()), "marks lag behind what was followed");
        assert!(!feed.is_behind(&marks), "marks are ahead of the followed commits");
        let mut other = harness.open(1 + round, &world.history)?;
        rebuild(&mut *other, &feed, &fields, &world.how())?;
        assert_eq!(follower.dump()?, other.dump()?, "rows of other commits than the marks say");
    }
    Ok(())
}

/// An accepted loss leaves no trace.
fn given_up(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let world = World::new(harness, dice)?;
    let mut follower = harness.open(0, &world.history)?;
    let part = world.part(dice, &[]);
    world.follow(&mut *follower, &part)?;
    let (dump, marks) = (follower.dump()?, follower.marks()?);
    let clear = dice.one_in(2);
    follower.attend(&world.feed);
    assert!(follower.begin(Wait::Yes)?);
    if clear || follower.decide(&world.feed.decisions())? == Again::Everything {
        follower.clear()?;
        follower.decide(&world.feed.decisions())?;
    }
    for (writer, head) in world.heads() {
        let after = if clear { 0 } else { marks.of(*writer) };
        follower.entries(&mut world.feed.entries(*writer, after))?;
        for commit in world.feed.commits(*writer, after)? {
            follower.commit(&commit?)?;
        }
        follower.mark(*writer, *head)?;
    }
    follower.abort()?;
    follower.leave();
    assert_eq!((follower.dump()?, follower.marks()?), (dump, marks));
    world.finish(&mut *follower)
}

/// Between two transactions of one process, other processes go on, rebuild everything or look at less.
fn others_in_pauses(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let world = World::new(harness, dice)?;
    if !harness.shares() {
        return Ok(());
    }
    let inner = harness.open(0, &world.history)?;
    let other = harness.open(0, &world.history)?;
    let mut follower = Interrupted { inner, other, world: &world, dice: dice.clone(), left: 12 };
    let how = world.how();
    let how = Following { pace: Pace { time: 0, ..how.pace }, ..how };
    // A feed that is behind what others did comes to an end; the newest one is never behind.
    assert_eq!(follow(&mut follower, &world.feed, &world.fields, &how)?, Followed::Done);
    for _ in 0..ROUNDS {
        if follower.marks()?.covers(&world.feed.heads()) {
            break;
        }
        world.follow(&mut follower, world.heads())?;
    }
    world.check(&mut follower)
}

/// A process with an older feed neither takes back later decisions nor asks for the content before them.
fn an_older_feed_changes_nothing(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let world = World::new(harness, dice)?;
    let mut follower = harness.open(0, &world.history)?;
    for _ in 0..4 {
        let (one, two) = (world.part(dice, &[]), world.part(dice, &[]));
        world.follow(&mut *follower, &one)?;
        let (before, marks) = (follower.dump()?, follower.marks()?);
        let (feed, _) = world.history.at(&two)?;
        let ahead = feed.is_behind(&marks);
        let expected = match (marks.covers(&feed.heads()), ahead) {
            (false, true) => Followed::Behind,
            _ => Followed::Done,
        };
        assert_eq!(world.follow(&mut *follower, &two)?, expected);
        if ahead {
            assert_eq!(follower.dump()?, before);
            assert_eq!(follower.marks()?, marks);
        }
    }
    world.finish(&mut *follower)
}

/// A session that names a transaction sees its prepared content, the same in any order of logs; afterwards the
/// content is gone.
fn overlays_go(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let world = World::new(harness, dice)?;
    let mut follower = harness.open(0, &world.history)?;
    let part = world.part(dice, &[]);
    world.follow(&mut *follower, &part)?;
    world.finish(&mut *follower)?;
    let mut other = harness.open(1, &world.history)?;
    rebuild(&mut *other, &world.feed, &world.fields, &world.how())?;
    let own = Commit {
        writer: OWN_LOG,
        owner: 1,
        sequence: 1,
        stamp: u64::MAX,
        time: 0,
        transaction: None,
        order: None,
        side: harness.side(dice, world.heads()),
    };
    assert!(!overlay(&mut *follower, &world.feed, &world.fields, None, &[])?, "there is nothing to overlay");
    let sessions = world.history.transactions().iter().map(|id| Some(*id)).chain([None]);
    for session in sessions {
        let mut shown = Vec::new();
        for follower in [&mut follower, &mut other] {
            let own = std::slice::from_ref(&own);
            assert!(overlay(&mut **follower, &world.feed, &world.fields, session, own)?);
            shown.push(follower.dump()?);
            follower.abort()?;
            follower.leave();
            world.check(&mut **follower)?;
        }
        assert_eq!(shown[0], shown[1], "overlaid in another order");
    }
    Ok(())
}

/// Prepared content is visible only to a session that names its transaction; committed content is visible to all and
/// looks the same; aborted content is never visible.
fn what_is_decided_shows(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let example = History::of_one_transaction(dice, &mut |dice, heads| harness.side(dice, heads))?;
    let mut follower = harness.open(0, &example.history)?;
    let mut empty = harness.open(1, &example.history)?;
    let pace = Pace::usual(&*example.history.env().clock);
    let how = Following { wait: Wait::Yes, newest: false, pace };
    let nothing = empty.dump()?;
    let (feed, fields) = example.history.at(&example.prepared)?;
    assert_eq!(follow(&mut *follower, &feed, &fields, &how)?, Followed::Done);
    assert_eq!(follower.dump()?, nothing, "what is prepared shows");
    assert!(overlay(&mut *follower, &feed, &fields, Some(example.transaction), &[])?);
    let laid = follower.dump()?;
    follower.abort()?;
    follower.leave();
    let (feed, fields) = example.history.at(example.history.heads())?;
    assert_eq!(follow(&mut *follower, &feed, &fields, &how)?, Followed::Done);
    if example.committed {
        assert!(
            !follower.wants_entries() || laid != nothing,
            "a field does not show to who names its transaction"
        );
        assert_eq!(follower.dump()?, laid, "what is committed is not what was prepared");
    } else {
        assert_eq!(follower.dump()?, nothing, "what is aborted shows");
    }
    Ok(())
}

/// Of some stores that differ in their side records alone, one at least differs in what the follower says.
fn side_records_show(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let mut differ = false;
    for round in 0..8 {
        let (seed, mut own) = (Random::new(dice.below(u64::MAX)), Random::new(dice.below(u64::MAX)));
        let mut side = |_: &mut Random, heads: &[(Id, u64)]| harness.side(&mut own, heads);
        let with = History::random(&mut seed.clone(), false, &mut side)?;
        let without = History::random(&mut seed.clone(), false, &mut |_, _| Vec::new())?;
        let mut dumps = Vec::new();
        for (history, engine) in [(with, 2 * round), (without, 2 * round + 1)] {
            let mut follower = harness.open(engine, &history)?;
            let (feed, fields) = history.at(history.heads())?;
            let pace = Pace::usual(&*history.env().clock);
            follow(&mut *follower, &feed, &fields, &Following { wait: Wait::Yes, newest: false, pace })?;
            dumps.push(follower.dump()?);
        }
        differ |= dumps[0] != dumps[1];
    }
    assert!(differ, "no side record shows");
    Ok(())
}

/// A follower that another process comes upon whenever it has ended a transaction.
struct Interrupted<'a> {
    inner: Box<dyn Follower>,
    other: Box<dyn Follower>,
    world: &'a World,
    dice: Random,
    /// How often others still come: for ever would be too long for anybody.
    left: usize,
}

impl Interrupted<'_> {
    fn interrupt(&mut self) -> Result<()> {
        if self.left == 0 || self.dice.one_in(2) {
            return Ok(());
        }
        self.left -= 1;
        let part = match self.dice.below(3) {
            0 => self.world.heads().to_vec(),
            _ => self.world.part(&mut self.dice, &[]),
        };
        let (feed, fields) = self.world.history.at(&part)?;
        let how = self.world.how();
        let pace = Pace { time: if self.dice.one_in(2) { 0 } else { how.pace.time }, ..how.pace };
        let how = Following { pace, ..how };
        if self.dice.one_in(4) {
            rebuild(&mut *self.other, &feed, &fields, &how)?;
        } else {
            follow(&mut *self.other, &feed, &fields, &how)?;
        }
        Ok(())
    }
}

impl Follower for Interrupted<'_> {
    fn wants_entries(&self) -> bool {
        self.inner.wants_entries()
    }

    fn is_shared_by_hosts(&mut self) -> bool {
        self.inner.is_shared_by_hosts()
    }

    fn marks(&mut self) -> Result<Marks> {
        self.inner.marks()
    }

    fn applied(&mut self) -> Result<Marks> {
        self.inner.applied()
    }

    fn attend(&mut self, feed: &Feed) {
        self.inner.attend(feed);
    }

    fn leave(&mut self) {
        self.inner.leave();
    }

    fn begin(&mut self, wait: Wait) -> Result<bool> {
        self.inner.begin(wait)
    }

    fn sound(&mut self) -> Result<bool> {
        self.inner.sound()
    }

    fn decide(&mut self, states: &[TransactionState]) -> Result<Again> {
        self.inner.decide(states)
    }

    fn entries(&mut self, entries: &mut dyn Iterator<Item = Result<EntryChange>>) -> Result<u64> {
        self.inner.entries(entries)
    }

    fn commit(&mut self, commit: &Commit) -> Result<()> {
        self.inner.commit(commit)
    }

    fn mark(&mut self, log: Id, sequence: u64) -> Result<()> {
        self.inner.mark(log, sequence)
    }

    fn take(&mut self, newest: &[TakeoverName], logs: &[Id]) -> Result<()> {
        self.inner.take(newest, logs)
    }

    fn ask(&mut self, fields: &dyn FieldLookup, transaction: Option<Id>) -> Result<()> {
        self.inner.ask(fields, transaction)
    }

    fn revision(&mut self) -> Result<u64> {
        self.inner.revision()
    }

    fn end(&mut self) -> Result<()> {
        self.inner.end()?;
        self.interrupt()
    }

    fn abort(&mut self) -> Result<()> {
        self.inner.abort()
    }

    fn clear(&mut self) -> Result<()> {
        self.inner.clear()
    }

    fn overlay(&mut self, transaction: Option<Id>, own: &[Commit]) -> Result<bool> {
        self.inner.overlay(transaction, own)
    }

    fn dump(&mut self) -> Result<String> {
        self.inner.dump()
    }
}
