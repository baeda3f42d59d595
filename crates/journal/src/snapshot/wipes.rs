//! Wipes: ranges that hide what a version of the store showed (R26), for good, or until they end ([`super::hides`]).
//!
//! A wipe names what it hides by its version alone, so that nothing that came later, or was under way, is concerned. It
//! counts for entries of its own user, and for all if it is of root or of the owner of the folder of logs: an entry of
//! another user in a dataset of his would not count anyway. An entry that was handed over to him before is his own.
//!
//! A wipe costs no reader more than the wiped entries did (R27): which wipes select a key is looked up by the values of its
//! first two levels, once for all keys with these; and a source of which a wipe hides everything is passed over.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::sync::Mutex;
use fieldstone_format::Id;
use fieldstone_format::log::kinds;
use fieldstone_format::store_record::{RangeAction, Selection};
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::DatasetRow;
use fieldstone_format::version::Version;

use super::hides::{InForce, concerns_entries, in_force, is_end};
use super::ranges::{Item, ROOT, StoreRange, absent, items, level_values, selects};
use super::version_commits::VersionCommits;
use super::{Decided, HandOvers, Order, Snapshot, UserState};
use crate::entry_source::{EntryCommit, EntrySource};
use crate::marks::Marks;
use crate::medium::clock_stamp;
use crate::takeover::{Takeover, Takeovers};

/// The word of wipes on an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wiped {
    /// Nothing: it stays.
    No,
    /// Other entries of its key decide: it is old enough for a wipe with an age, and hidden if everything is that belongs to its
    /// generation; or a newer attempt may hide it whose own entry is wiped.
    Unsure,
    /// It is hidden.
    Yes,
}

/// The state of a transaction as it is, and as a version has it.
type NowAndThen = (Arc<UserState>, Arc<UserState>);

/// A wipe that counts.
#[derive(Debug)]
pub struct Wipe {
    /// Its record.
    pub made: Arc<StoreRange>,
    commits: VersionCommits,
    items: Vec<Item>,
    /// Whether a later one hides all that it does, but for content of transactions.
    is_superseded: bool,
    /// Users whose entries it hides no longer, each as of a stamp: they ended it.
    ended_for: Vec<(u32, u64)>,
    /// States of transactions: as they are, and as its version has them.
    states: Mutex<HashMap<(Id, u32), NowAndThen>>,
    /// Whether its version shows all of a takeover.
    taken: Mutex<HashMap<Id, bool>>,
}

impl Wipe {
    fn new(InForce { made, ended_for }: InForce, takeovers: &Takeovers) -> Result<Wipe> {
        let version = Version::from_record(&made.range.version)?;
        // Another takeover under a number says nothing of the one that the version means.
        let commits = VersionCommits::new(version, |name| !takeovers.contradict(name));
        let (states, taken) = Default::default();
        let items = items(&made.range.selection);
        Ok(Wipe { made, commits, items, is_superseded: false, ended_for, states, taken })
    }

    /// Whether somebody may end it.
    pub fn is_hide(&self) -> bool {
        self.made.range.action == RangeAction::Hide
    }

    /// The first levels of keys that its selection speaks of: keys that share them are hidden alike.
    pub fn levels(&self) -> usize {
        self.items.iter().map(|(level, ..)| level + 1).max().unwrap_or(0)
    }

    /// Whether the version of a later one holds all that its own does, as far as names tell.
    fn is_within(&self, later: &Wipe, takeovers: &Takeovers) -> bool {
        let (own, its) = (&self.commits, &later.commits);
        let is_named = |(writer, sequence): &(Id, u64)| {
            its.version().sequence(*writer) >= *sequence
                || takeovers.log(*writer).is_ok_and(|found| {
                    found.is_some_and(|(takeover, log)| log.row.taken <= its.number(takeover.user))
                })
        };
        own.version().takeovers().iter().all(|name| {
            its.version().takeovers().iter().any(|of| of.owner == name.owner && of.number >= name.number)
        }) && own.version().writers().iter().all(is_named)
    }

    /// Whether its version shows what a commit holds.
    fn shows(&self, snapshot: &Snapshot, commit: &EntryCommit) -> bool {
        if planted::is(Planted::WipeByStamp) {
            return commit.stamp < self.made.stamp;
        }
        let takeovers = snapshot.taken.takeovers();
        if !self.commits.holds(commit.user, (commit.writer, commit.sequence), commit.taken) {
            return false;
        }
        if let Some(order) = commit.forgotten {
            return self.commits.holds_decision(takeovers, order);
        }
        let Some(id) = commit.transaction else { return true };
        let Some(now) = snapshot.transaction_state(id, commit.user) else { return false };
        self.state((id, commit.user), now, snapshot)
            .visible(kinds::FIELDS, commit.writer, commit.sequence)
            .is_some()
    }

    /// The state of a transaction as its version has it.
    fn state(&self, of: (Id, u32), now: &Arc<UserState>, snapshot: &Snapshot) -> Arc<UserState> {
        let mut states = self.states.lock();
        if let Some((known, then)) = states.get(&of)
            && Arc::ptr_eq(known, now)
        {
            return then.clone();
        }
        let is_in = |(_, writer): Order, decided: &Decided| {
            let taken = match snapshot.log(writer) {
                Some(_) => 0,
                None => snapshot.taken.log(writer).map_or(0, |(_, log)| log.row.taken),
            };
            let user = match snapshot.hand_overs.is_empty() {
                true => of.1,
                // The one to whom it was handed over may have decided.
                false => snapshot.user_of(writer).unwrap_or(of.1),
            };
            self.commits.holds(user, (writer, decided.sequence), taken)
        };
        let then = Arc::new(now.of_those(is_in));
        states.insert(of, (now.clone(), then.clone()));
        then
    }

    /// Whether it hides every entry of a takeover that it selects.
    fn shows_all_of(&self, takeover: &Arc<Takeover>) -> bool {
        let (attempts, transactions) = (TakeoverTable::Attempts, TakeoverTable::Transactions);
        if takeover.rows(attempts) > 0 || takeover.rows(transactions) > 0 {
            return false;
        }
        *self.taken.lock().entry(takeover.header.id).or_insert_with(|| {
            let number = self.commits.number(takeover.user);
            let is_held = |writer: &Id| {
                let log = takeover.log(*writer).ok().flatten();
                log.is_none_or(|log| log.row.sequence <= self.commits.version().sequence(*writer))
            };
            number >= takeover.number()
                || takeover.taken_since(number).is_ok_and(|writers| writers.iter().all(is_held))
        })
    }

    /// Whether it hides every entry of a source that it selects. Wiped entries of attempts still say which attempt is the
    /// newest, so that they are looked at.
    fn hides_all(&self, snapshot: &Snapshot, source: usize) -> bool {
        let user = snapshot.user_of_source(source);
        // If a part of it is another's by now, each commit says whose it is.
        let is_parted = snapshot.hand_overs.concern(user);
        if self.is_superseded
            || self.made.range.age.is_some()
            || !is_parted && !self.may_hide(snapshot, (user, 0))
        {
            return false;
        }
        match &snapshot.sources[source] {
            EntrySource::Takeover(takeover) => {
                let hides = !is_parted || self.is_above(snapshot) && self.ended_for.is_empty();
                hides && self.shows_all_of(takeover)
            }
            EntrySource::Segment(segment, log) => {
                let Ok(meta) = segment.meta() else { return false };
                let hides = |commit: EntryCommit| {
                    (!is_parted || self.may_hide(snapshot, (user, commit.stamp)))
                        && self.shows(snapshot, &commit)
                };
                snapshot.logs[*log as usize].record.attempt.is_none()
                    && (0..meta.commits.len() as u64)
                        .all(|number| snapshot.commit_at(source, number).is_ok_and(hides))
            }
        }
    }

    /// Whether its user may hide everybody's entries.
    fn is_above(&self, snapshot: &Snapshot) -> bool {
        let own = self.made.user;
        own == ROOT || snapshot.folder_owner.is_none_or(|owner| owner == own)
    }

    /// Whether it counts for what a user wrote at a stamp.
    fn may_hide(&self, snapshot: &Snapshot, (user, stamp): (u32, u64)) -> bool {
        let is_of = |by: u32, at: u64| snapshot.hand_overs.owner_at(user, stamp, at) == by;
        (is_of(self.made.user, self.made.stamp) || self.is_above(snapshot))
            && !self.ended_for.iter().any(|(by, at)| is_of(*by, *at))
    }
}

/// Wipes with an item on the same keyword: by the values that the item lists.
#[derive(Debug)]
struct ByKeyword {
    level: usize,
    keyword: Arc<str>,
    wipes: HashMap<Box<[u8]>, Vec<usize>>,
    /// Those that select also keys without the keyword.
    absent: Vec<usize>,
}

/// The wipes of a snapshot.
#[derive(Debug, Default)]
pub struct Wipes {
    /// Newest first.
    all: Vec<Arc<Wipe>>,
    /// Those that select every key.
    of_everything: Vec<usize>,
    by_keyword: Vec<ByKeyword>,
    /// The ranges that they come from, oldest first, those that ended and their ends among them.
    made: Vec<Arc<StoreRange>>,
    takeovers: Takeovers,
    folder_owner: Option<u32>,
    hand_overs: Arc<HandOvers>,
    /// Takeovers that are wiped as a whole, and others.
    gone: Mutex<HashMap<Id, bool>>,
}

/// The wipes that select a key, and all keys with the same first two levels; newest first.
#[derive(Debug, Clone, Default)]
pub struct KeyWipes(Vec<Arc<Wipe>>);

impl KeyWipes {
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The stamp of the newest of them.
    pub fn newest(&self) -> Option<u64> {
        self.0.first().map(|wipe| wipe.made.stamp)
    }

    /// Those of them that hide for good.
    pub fn final_ones(&self) -> KeyWipes {
        KeyWipes(self.0.iter().filter(|wipe| !wipe.is_hide()).cloned().collect())
    }

    /// Those of them that a purge may go by.
    pub fn settled(&self, is_settled: impl Fn(&StoreRange) -> bool) -> KeyWipes {
        KeyWipes(self.0.iter().filter(|wipe| is_settled(&wipe.made)).cloned().collect())
    }

    /// Their word on an entry under the key, given its own commit and its place in the order.
    pub fn say_of(&self, snapshot: &Snapshot, commit: &EntryCommit, order: Order) -> Wiped {
        let mut wiped = Wiped::No;
        let needs_decision = commit.transaction.is_some() || commit.forgotten.is_some();
        for wipe in &self.0 {
            if wipe.is_superseded && !needs_decision
                || !wipe.may_hide(snapshot, (commit.user, commit.stamp))
                || !wipe.shows(snapshot, commit)
            {
                continue;
            }
            match wipe.made.range.age {
                None => return Wiped::Yes,
                Some(age) if is_older(commit, order, age) => wiped = Wiped::Unsure,
                Some(_) => {}
            }
        }
        wiped
    }

    /// The number of first levels that keys of a source share with the key if one of the wipes hides all of them there. None
    /// if no wipe does.
    pub fn levels_hidden(&self, snapshot: &Snapshot, source: usize) -> Option<usize> {
        self.0.iter().filter(|wipe| wipe.hides_all(snapshot, source)).map(|wipe| wipe.levels()).min()
    }
}

impl Wipes {
    /// The wipes among ranges; those of an earlier snapshot if they are the same.
    pub(super) fn of(
        ranges: impl Iterator<Item = Arc<StoreRange>>,
        takeovers: &Takeovers,
        (folder_owner, hand_overs): (Option<u32>, &Arc<HandOvers>),
        before: Option<&Arc<Wipes>>,
    ) -> Arc<Wipes> {
        let mut made: Vec<Arc<StoreRange>> = ranges.filter(|made| concerns_entries(&made.range)).collect();
        made.sort_by_key(|made| (made.stamp, made.log, made.sequence));
        let is_same = |before: &&Arc<Wipes>| {
            before.made.len() == made.len()
                && before.made.iter().zip(&made).all(|(a, b)| Arc::ptr_eq(a, b))
                && (made.is_empty()
                    || before.takeovers.is_same(takeovers)
                        && before.folder_owner == folder_owner
                        && before.hand_overs == *hand_overs)
        };
        if let Some(before) = before.filter(is_same) {
            return before.clone();
        }
        let in_force = in_force(&made, (folder_owner, hand_overs));
        Arc::new(Wipes::sorted(in_force, made, (takeovers, folder_owner, hand_overs)))
    }

    /// The wipes of these ranges, oldest first, ready to be looked up.
    fn sorted(
        in_force: Vec<InForce>,
        made: Vec<Arc<StoreRange>>,
        (takeovers, folder_owner, hand_overs): (&Takeovers, Option<u32>, &Arc<HandOvers>),
    ) -> Wipes {
        let mut all: Vec<Wipe> = Vec::with_capacity(in_force.len());
        let mut last: HashMap<(u32, bool, Vec<Item>), usize> = HashMap::new();
        // A version that cannot be understood was refused where the record was read.
        for mut wipe in in_force.into_iter().rev().filter_map(|made| Wipe::new(made, takeovers).ok()) {
            let of = (wipe.made.user, wipe.is_hide(), wipe.items.clone());
            // A later one does not count for what its user had handed over.
            wipe.is_superseded = last.get(&of).is_some_and(|later| wipe.is_within(&all[*later], takeovers))
                && !hand_overs.concern(wipe.made.user);
            if wipe.made.range.age.is_none() && wipe.ended_for.is_empty() {
                last.entry(of).or_insert(all.len());
            }
            all.push(wipe);
        }
        let all = all.into_iter().map(Arc::new).collect();
        let (takeovers, hand_overs) = (takeovers.clone(), hand_overs.clone());
        let mut wipes = Wipes { all, made, takeovers, folder_owner, hand_overs, ..Wipes::default() };
        wipes.sort_in();
        wipes
    }

    /// The hides in force, oldest first.
    pub fn hides(&self) -> Vec<Arc<StoreRange>> {
        let hides = self.all.iter().rev().filter(|wipe| wipe.is_hide());
        hides.map(|wipe| wipe.made.clone()).collect()
    }

    /// The wipes without these hides, as they were if somebody ended them.
    pub fn without(&self, hides: &[Arc<StoreRange>]) -> Arc<Wipes> {
        let left = self.all.iter().rev().filter(|wipe| !hides.iter().any(|one| Arc::ptr_eq(one, &wipe.made)));
        let left = left.map(|wipe| InForce { made: wipe.made.clone(), ended_for: wipe.ended_for.clone() });
        let of = (&self.takeovers, self.folder_owner, &self.hand_overs);
        Arc::new(Wipes::sorted(left.collect(), self.made.clone(), of))
    }

    /// Sorts the wipes by the values that they need.
    fn sort_in(&mut self) {
        for (index, wipe) in self.all.iter().enumerate() {
            let Some((level, keyword, values)) = wipe.items.iter().min_by_key(|(.., values)| values.len())
            else {
                self.of_everything.push(index);
                continue;
            };
            let is_its = |known: &ByKeyword| (known.level, &known.keyword) == (*level, keyword);
            let at = self.by_keyword.iter().position(is_its).unwrap_or_else(|| {
                let (keyword, wipes) = (keyword.clone(), HashMap::new());
                self.by_keyword.push(ByKeyword { level: *level, keyword, wipes, absent: Vec::new() });
                self.by_keyword.len() - 1
            });
            let known = &mut self.by_keyword[at];
            for value in values {
                known.wipes.entry(value.clone()).or_default().push(index);
                if **value == *absent() {
                    known.absent.push(index);
                }
            }
        }
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The selections of those that a follower with these marks has not met: of wipes and hides, and of ended hides.
    pub fn beyond(&self, marks: &Marks, snapshot: &Snapshot) -> [Vec<Selection>; 2] {
        let is_known = |made: &StoreRange| {
            let known = || match snapshot.taken.log(made.log) {
                Some((takeover, log)) => log.row.taken <= marks.number(takeover.owner()),
                None => false,
            };
            made.sequence <= marks.of(made.log) || (snapshot.log(made.log).is_none() && known())
        };
        let mut beyond = [Vec::new(), Vec::new()];
        for made in self.made.iter().filter(|made| !is_known(made)) {
            beyond[usize::from(is_end(&made.range))].push(made.range.selection.clone());
        }
        beyond
    }

    /// The wipes that select a key, or keys that begin with this first level alone: those that select all of them.
    pub fn of_key(&self, key: &[u8]) -> Result<KeyWipes> {
        if self.is_empty() {
            return Ok(KeyWipes::default());
        }
        let levels = level_values(key)?;
        let mut found = self.of_everything.clone();
        for known in &self.by_keyword {
            let value = levels.get(known.level).and_then(|level| {
                level.iter().find(|(name, _)| *name == known.keyword).map(|(_, value)| *value)
            });
            let candidates = match value {
                Some(value) => known.wipes.get(value),
                None => Some(&known.absent),
            };
            let selects = |index: &&usize| {
                self.all[**index].levels() <= levels.len() && selects(&self.all[**index].items, &levels)
            };
            found.extend(candidates.into_iter().flatten().filter(selects));
        }
        found.sort_unstable();
        Ok(KeyWipes(found.into_iter().map(|index| self.all[index].clone()).collect()))
    }

    /// Whether one of them may select a key in a dataset, by its encoded first level.
    pub fn may_select_in(&self, dataset: &[u8]) -> Result<bool> {
        if self.is_empty() {
            return Ok(false);
        }
        let levels = level_values(dataset)?;
        let may_select = |wipe: &Arc<Wipe>| {
            let mut of_dataset = wipe.items.iter().filter(|(level, ..)| *level == 0);
            of_dataset.all(|item| selects(std::slice::from_ref(item), &levels))
        };
        Ok(self.all.iter().any(may_select))
    }

    /// Whether they hide all that a source holds: no reader needs to look into it.
    pub fn hide_source(&self, snapshot: &Snapshot, source: usize) -> bool {
        if self.is_empty() {
            return false;
        }
        if self.of_everything.iter().any(|index| self.all[*index].hides_all(snapshot, source)) {
            return true;
        }
        let is_gone = |level: &[u8]| {
            self.of_key(level).is_ok_and(|wipes| wipes.levels_hidden(snapshot, source).is_some())
        };
        match &snapshot.sources[source] {
            EntrySource::Segment(segment, _) => segment.meta().is_ok_and(|meta| {
                let datasets = meta.datasets.as_ref();
                datasets.is_some_and(|datasets| datasets.iter().all(|(level, _)| is_gone(level)))
            }),
            EntrySource::Takeover(takeover) => {
                *self.gone.lock().entry(takeover.header.id).or_insert_with(|| {
                    let mut all = true;
                    let read = takeover.each_below(TakeoverTable::Datasets, &[], |level, row| {
                        let row = DatasetRow::decode(row)?;
                        all = all && (row.entries == 0 || is_gone(level));
                        Ok(())
                    });
                    read.is_ok() && all
                })
            }
        }
    }

    /// Whether they may hide a part of a source.
    pub fn may_concern(&self, snapshot: &Snapshot, source: usize) -> bool {
        let user = snapshot.user_of_source(source);
        let is_parted = snapshot.hand_overs.concern(user);
        let concerns = |wipe: &&Arc<Wipe>| is_parted || wipe.may_hide(snapshot, (user, 0));
        let EntrySource::Segment(segment, _) = &snapshot.sources[source] else {
            return self.all.iter().any(|wipe| concerns(&wipe));
        };
        let Ok(meta) = segment.meta() else { return !self.is_empty() };
        self.all.iter().filter(concerns).any(|wipe| {
            (0..meta.commits.len() as u64).any(|number| {
                snapshot.commit_at(source, number).map_or(true, |commit| wipe.shows(snapshot, &commit))
            })
        })
    }
}

/// Whether an entry is older than an age: the youngest of its times counts.
pub fn is_older(commit: &EntryCommit, order: Order, age: i64) -> bool {
    let stamp = clock_stamp(age);
    // Moved entries have the place that they had in their store.
    let is_placed_before = commit.moved.is_some() || order.0 < stamp;
    planted::is(Planted::WipeWithoutAge) || commit.time < age && commit.stamp < stamp && is_placed_before
}
