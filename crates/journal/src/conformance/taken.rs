//! Followers while takeovers replace the logs that they follow (R24): whatever is taken over, and whenever, a follower gets
//! each commit once, and says in the end what a rebuilt one says.

use std::collections::HashSet;

use fieldstone_core::Result;
use fieldstone_core::env::sim::Random;
use fieldstone_format::Id;
use fieldstone_format::keys::encode_key;
use fieldstone_format::log::SideRecord;
use fieldstone_format::version::TakeoverName;

use super::harness::Harness;
use super::history::{History, Standing};
use crate::feed::{Commit, EntryChange, Feed, TransactionState};
use crate::follow::{Followed, Following, Pace, follow, rebuild};
use crate::follower::{Again, FieldLookup, Follower, Marks, Wait};

/// A follower, and a record of all that it was given.
struct Counted {
    inner: Box<dyn Follower>,
    /// Commits since it was last emptied.
    commits: HashSet<(Id, u64)>,
    /// Fields and removals outside of transactions since then: a decision may ask for others again.
    entries: HashSet<(Id, u64, Vec<u8>)>,
    /// Commits, entries and whole beginnings that it was given.
    given: u64,
}

impl Counted {
    fn new(inner: Box<dyn Follower>) -> Counted {
        Counted { inner, commits: HashSet::new(), entries: HashSet::new(), given: 0 }
    }

    /// Follows a store to its end.
    fn follow(&mut self, (feed, fields): &(Feed, Standing), history: &History, time: u64) -> Result<()> {
        let pace = Pace { time, ..Pace::usual(&*history.env().clock) };
        let how = Following { wait: Wait::Yes, newest: false, pace };
        assert_eq!(follow(self, feed, fields, &how)?, Followed::Done);
        let (marks, heads) = (self.marks()?, feed.heads());
        assert!(marks.covers(&heads) && !feed.is_behind(&marks), "{marks:?} {heads:?}");
        assert_eq!(marks.taken, heads.taken);
        let living = |log: &Id| heads.logs.iter().any(|(living, _)| living == log);
        assert!(marks.logs.keys().all(living), "a log that is taken over has a mark: {marks:?} {heads:?}");
        Ok(())
    }
}

/// Logs end and are taken over while one follower follows at once, and another now and then.
pub fn r24_takeovers_are_applied_once(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let shared = dice.one_in(2);
    let mut history = History::begun(dice, shared)?;
    let mut quick = Counted::new(harness.open(0, &history)?);
    let mut slow = Counted::new(harness.open(1, &history)?);
    for round in 0..6 {
        let steps = 1 + dice.below(8);
        history.go_on(dice, steps, &mut |dice, heads| harness.side(dice, heads))?;
        quick.follow(&history.now()?, &history, time(dice))?;
        if dice.one_in(3) {
            slow.follow(&history.now()?, &history, time(dice))?;
        }
        let (before, said) = (quick.given, quick.dump()?);
        history.close_some(dice)?;
        history.take_over()?;
        let now = history.now()?;
        quick.follow(&now, &history, time(dice))?;
        assert_eq!(quick.given, before, "round {round}: it was given again what it had applied");
        assert_eq!(quick.dump()?, said, "round {round}: a takeover changed what it says");
    }
    let now = history.now()?;
    slow.follow(&now, &history, time(dice))?;
    let mut whole = Counted::new(harness.open(2, &history)?);
    let pace = Pace::usual(&*history.env().clock);
    let (followed, applied) =
        rebuild(&mut whole, &now.0, &now.1, &Following { wait: Wait::Yes, newest: false, pace })?;
    assert_eq!((followed, applied.logs), (Followed::Done, history.heads().len() as u64));
    let said = whole.dump()?;
    assert_eq!(quick.dump()?, said, "one that followed all the time says something else");
    assert_eq!(slow.dump()?, said, "one that followed now and then says something else");
    Ok(())
}

/// Of many closed logs, each with one commit of side records that `records` gives, a follower applies each once, and none
/// again after a takeover; its marks are one number then.
pub fn r24_counted(
    harness: &mut dyn Harness,
    logs: u64,
    records: &mut dyn FnMut(u64) -> Vec<SideRecord>,
) -> Result<()> {
    const TIME: u64 = 500_000_000;
    let mut history = History::begun(&mut Random::new(1), false)?;
    let mut before = Counted::new(harness.open(0, &history)?);
    let mut behind = Counted::new(harness.open(1, &history)?);
    for n in 0..logs {
        history.add_log(records(n))?;
        if n + 1 == logs / 2 {
            behind.follow(&history.now()?, &history, TIME)?;
        }
    }
    before.follow(&history.now()?, &history, TIME)?;
    assert_eq!((before.commits.len() as u64, before.marks()?.logs.len() as u64), (logs, logs));
    let (given, said) = (before.given, before.dump()?);
    history.take_over()?;
    let now = history.now()?;
    let mut after = Counted::new(harness.open(2, &history)?);
    let half = behind.given;
    for follower in [&mut before, &mut behind, &mut after] {
        follower.follow(&now, &history, TIME)?;
        let marks = follower.marks()?;
        assert_eq!((marks.logs.len(), marks.taken.len()), (0, 1));
        assert!(follower.dump()? == said, "it says something else after a takeover");
    }
    assert_eq!(before.given, given, "it was given again what it had applied");
    assert_eq!((half, behind.given), (logs / 2, logs), "it was given more than what it lacked");
    assert_eq!(after.given, logs);
    Ok(())
}

/// A follower that has applied what the logs do not hold, or another store's takeovers, is made from scratch, once nobody can
/// give a newer feed.
pub fn r24_what_contradicts_the_logs_goes(harness: &mut dyn Harness, dice: &mut Random) -> Result<()> {
    let mut history = History::begun(dice, false)?;
    for _ in 0..3 {
        history.add_log(some_records(harness, dice, history.heads()))?;
    }
    for (engine, is_beyond) in [(0, true), (1, false)] {
        let mut follower = Counted::new(harness.open(engine, &history)?);
        follower.follow(&history.now()?, &history, 500_000_000)?;
        let beyond = history.heads().iter().map(|(log, head)| (*log, head + 1)).next_back();
        history.add_log(some_records(harness, dice, history.heads()))?;
        history.take_over()?;
        let (feed, fields) = history.now()?;
        assert!(follower.begin(Wait::Yes)?);
        follower.decide(&feed.decisions())?;
        match beyond.filter(|_| is_beyond) {
            Some((log, sequence)) => follower.mark(log, sequence)?,
            None => {
                let other = |name: TakeoverName| TakeoverName { digest: !name.digest, ..name };
                let names: Vec<TakeoverName> = feed.heads().taken.into_iter().map(other).collect();
                follower.take(&names, &[])?;
            }
        }
        follower.end()?;
        let pace = Pace::usual(&*history.env().clock);
        let how = Following { wait: Wait::Yes, newest: false, pace };
        assert_eq!(follow(&mut follower, &feed, &fields, &how)?, Followed::Behind);
        let given = follower.given;
        assert_eq!(
            follow(&mut follower, &feed, &fields, &Following { newest: true, ..how })?,
            Followed::Done
        );
        assert!(follower.given > given, "it was not made from scratch");
        let mut whole = harness.open(2 + engine, &history)?;
        rebuild(&mut *whole, &feed, &fields, &how)?;
        assert_eq!((follower.dump()?, follower.marks()?), (whole.dump()?, whole.marks()?));
    }
    Ok(())
}

/// Side records of a commit, at least one: without any there would be no commit.
fn some_records(harness: &mut dyn Harness, dice: &mut Random, heads: &[(Id, u64)]) -> Vec<SideRecord> {
    loop {
        let records = harness.side(dice, heads);
        if !records.is_empty() {
            return records;
        }
    }
}

/// How long a transaction of the follower lasts: one commit, or as long as usual.
fn time(dice: &mut Random) -> u64 {
    if dice.one_in(2) { 0 } else { 500_000_000 }
}

impl Follower for Counted {
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
        let sound = self.inner.sound()?;
        if !sound {
            self.begin_again();
        }
        Ok(sound)
    }

    fn decide(&mut self, states: &[TransactionState]) -> Result<Again> {
        self.inner.decide(states)
    }

    fn entries(&mut self, entries: &mut dyn Iterator<Item = Result<EntryChange>>) -> Result<u64> {
        let (mut twice, mut given) = (Vec::new(), 0);
        let (own, inner) = (&mut self.entries, &mut self.inner);
        let seen = inner.entries(&mut entries.inspect(|entry| {
            let Ok(entry) = entry else { return };
            given += 1;
            let place = (entry.writer, entry.sequence, encode_key(&entry.key).bytes);
            if entry.transaction.is_none() && !own.insert(place) {
                twice.push((entry.writer, entry.sequence));
            }
        }))?;
        self.given += given;
        assert!(twice.is_empty(), "entries of these commits were applied twice: {twice:?}");
        Ok(seen)
    }

    fn commit(&mut self, commit: &Commit) -> Result<()> {
        let Commit { writer, sequence, .. } = commit;
        assert!(self.commits.insert((*writer, *sequence)), "{writer} {sequence} was applied twice");
        self.given += 1;
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
        self.inner.end()
    }

    fn abort(&mut self) -> Result<()> {
        self.inner.abort()
    }

    fn clear(&mut self) -> Result<()> {
        self.begin_again();
        self.inner.clear()
    }

    fn overlay(&mut self, transaction: Option<Id>, own: &[Commit]) -> Result<bool> {
        self.inner.overlay(transaction, own)
    }

    fn dump(&mut self) -> Result<String> {
        self.inner.dump()
    }
}

impl Counted {
    fn begin_again(&mut self) {
        self.given += 1;
        self.commits.clear();
        self.entries.clear();
    }
}
