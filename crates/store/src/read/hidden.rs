//! The entries under one key that a purge may drop (takeovers.md, 10).
//!
//! An entry is *settled* if it counts, its commit is confirmed and a grace old, and no decision can change that any more. The
//! settled entries alone say what is hidden; the others only have to lie above them. Rules:
//! * entries go from the oldest up, and none that lies above one that stays (R62), in the order of now and in the order that
//!   older versions see, which lack newer attempts;
//! * entries that an older version shows as one field go together: it is there whole, or is "purged";
//! * what an unconfirmed commit, or a transaction that is not sealed, would hide stays (R17, R63);
//! * what a wipe hides goes like what an entry hides, once the wipe is confirmed and a grace old;
//! * a limit may keep older versions: generations that the visible one hides, down to the newest removal;
//! * where the newest attempt would go from a key, its mark stays (R64).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::lock_kind::LockKind;
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::entry::{AttemptTombstone, EntryId};
use fieldstone_format::keys::level_ends;
use fieldstone_journal::compact::{Judge, MetEntry, Verdict};
use fieldstone_journal::medium::clock_stamp;

use super::blocks::Source;
use super::matcher::{Match, Matcher};
use super::purged::selects;
use super::versions::{KeyVersions, Part, attempt_places};
use crate::files::Files;
use crate::snapshot::silent::{is_long_ago, oldest_attempt};
use crate::snapshot::{KeyWipes, Order, PointedKeys, Snapshot, Wiped};

/// Decides which entries go.
#[derive(Debug)]
pub struct HiddenEntries {
    files: Arc<Files>,
    snapshot: Arc<Snapshot>,
    user: u32,
    /// The number of versions that stay of keys that they select; other keys stay as they are.
    limits: Vec<Limit>,
    /// Younger entries hide nothing, nanoseconds since 1970; `None`: nothing is too young.
    before: Option<i64>,
    /// Whether a transaction is sealed.
    sealed: HashMap<Id, bool>,
    /// Logs that have ended.
    ended: HashSet<Id>,
    /// When the purge is made, by the file system's clock, and the oldest attempt that may flush yet; once it was looked for.
    attempts: Option<(i64, Option<Order>)>,
    /// Keys that other stores name, which stay as they are; `None` for a purge that leaves none.
    pointed: Option<PointedKeys>,
}

/// How many versions of the keys that a request selects stay.
#[derive(Debug)]
pub struct Limit {
    /// The request.
    pub matcher: Matcher,
    /// The visible version and those that it hides, down to the newest removal.
    pub versions: u64,
}

/// A part of a key as a purge sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It counts, and goes on to.
    Settled,
    /// It counts, for now.
    Unsettled,
    /// It never counts, or not yet: it is in nobody's way.
    Aside,
    /// It was aborted a grace ago.
    Aborted,
}

/// The reason why hidden content stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Residue {
    /// It is another user's.
    OfOthers,
    /// A process goes on with its log.
    Living,
    /// It is the mark of an attempt (R64).
    Mark,
    /// Its transaction can be switched yet.
    Open,
    /// Something below it stays.
    Below,
}

impl Residue {
    /// Whether it stays however often an erasure is made.
    pub fn stays(self) -> bool {
        self != Residue::Below
    }

    /// In words.
    pub fn why(self) -> &'static str {
        match self {
            Residue::OfOthers => "another user's log holds it: that user can erase it",
            Residue::Living => "a process still writes this log: close it, and erase again",
            Residue::Mark => "the mark of the field's newest attempt keeps its key",
            Residue::Open => "its transaction can be switched off yet: erase again in two days",
            Residue::Below => {
                "something hides it that is not final yet, or that is below something that stays"
            }
        }
    }
}

/// The place of a part among the parts of its key, the greater one being newer.
type Rank = (Order, u64, Id, u64, u64);

fn rank(part: &Part) -> Rank {
    (part.order, part.commit.stamp, part.commit.writer, part.commit.sequence, part.entry.ordinal)
}

impl HiddenEntries {
    /// For a purge of a user's logs at a time, of keys that one of these requests selects.
    pub fn new(files: &Arc<Files>, user: u32, matchers: Vec<Matcher>, at: (i64, u64)) -> HiddenEntries {
        let limits = matchers.into_iter().map(|matcher| Limit { matcher, versions: 1 });
        HiddenEntries::by(files, user, limits.collect(), at)
    }

    /// For a purge of entries that limits let go; the strictest counts, and none means one version of each key.
    pub fn by(files: &Arc<Files>, user: u32, limits: Vec<Limit>, (now, grace): (i64, u64)) -> HiddenEntries {
        let before = (grace > 0).then(|| now.saturating_sub(i64::try_from(grace).unwrap_or(i64::MAX)));
        let snapshot = Arc::new(Snapshot::empty());
        HiddenEntries {
            files: files.clone(),
            snapshot,
            user,
            limits,
            before,
            sealed: HashMap::new(),
            ended: HashSet::new(),
            attempts: None,
            pointed: None,
        }
    }

    /// Whether one of the requests selects a key.
    pub fn selects(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.versions(key)?.is_some())
    }

    /// The same, which leaves what other stores name (R34).
    pub fn leaving_pointed(mut self) -> HiddenEntries {
        self.pointed = Some(PointedKeys::default());
        self
    }

    /// Whether a lock on the dataset of a key forbids purges.
    fn is_locked(&self, key: &[u8]) -> Result<bool> {
        let locks = &self.snapshot.locks;
        if locks.is_empty() {
            return Ok(false);
        }
        Ok(locks.against(LockKind::Wipe, &key[..level_ends(key)?[0]], &self.snapshot)?.is_some())
    }

    /// How many versions of a key stay; `None` if all of it does.
    fn versions(&mut self, key: &[u8]) -> Result<Option<u64>> {
        let mut least = self.limits.is_empty().then_some(1);
        for limit in &mut self.limits {
            if limit.matcher.test(key)? == Match::Yes {
                least = Some(least.map_or(limit.versions, |least: u64| least.min(limit.versions)));
            }
        }
        Ok(least)
    }

    fn is_young(&self, part: &Part) -> bool {
        let Some(before) = self.before else { return false };
        // The time of a moved entry is that of its first store.
        let own = part
            .commit
            .moved
            .and_then(|_| self.snapshot.commit_at(part.source as usize, part.entry.commit).ok());
        own.map_or(part.commit.time, |own| own.time) > before
    }

    /// Whether a later commit, or the end of the log, confirms a commit.
    fn is_confirmed(&self, part: &Part) -> bool {
        let is_last = || {
            self.snapshot
                .log(part.commit.writer)
                .is_none_or(|log| log.record.sequence <= part.commit.sequence)
        };
        part.commit.taken > 0
            || self.ended.contains(&part.commit.writer)
            || !is_last()
            || planted::is(Planted::PurgeUnconfirmed)
    }

    fn is_sealed(&mut self, transaction: Id) -> bool {
        let (taken, user) = (&self.snapshot.taken, self.user);
        let sealed =
            || taken.sealed(transaction, user).is_ok_and(|sealed| sealed.is_some_and(|number| number > 0));
        *self.sealed.entry(transaction).or_insert_with(sealed)
    }

    /// The wipes among these that nothing can take back, and that are a grace old.
    fn settled(&self, wipes: &KeyWipes) -> KeyWipes {
        wipes.settled(|made| {
            let log = self.snapshot.log(made.log);
            let is_last = log.is_some_and(|log| log.record.sequence <= made.sequence);
            let is_confirmed = !is_last || self.ended.contains(&made.log);
            is_confirmed && self.before.is_none_or(|before| made.time <= before)
        })
    }

    /// Gives a part its place in the order and the word of wipes on it, and says what it is to a purge.
    fn standing(&mut self, part: &mut Part, [wipes, settled]: [&KeyWipes; 2]) -> Result<Standing> {
        if self.snapshot.gives_up(&part.commit, part.holder, &part.entry) {
            return Ok(Standing::Aside);
        }
        let Some(order) = self.snapshot.order(&part.commit, None) else {
            return Ok(match part.commit.transaction {
                Some(id) if self.is_aborted(id) => Standing::Aborted,
                _ => Standing::Aside,
            });
        };
        part.order = part.commit.moved.map_or(order, |moved| moved.order);
        let mut is_wiped_now = false;
        if !wipes.is_empty() {
            // Of moved entries, what their commit is here counts.
            let commit = self.snapshot.commit_at(part.source as usize, part.entry.commit)?;
            part.wiped = settled.say_of(&self.snapshot, &commit, order);
            is_wiped_now = wipes.say_of(&self.snapshot, &commit, order) != part.wiped;
        }
        let is_open = part.commit.transaction.is_some_and(|id| !self.is_sealed(id));
        Ok(match is_open || is_wiped_now || self.is_young(part) || !self.is_confirmed(part) {
            true => Standing::Unsettled,
            false => Standing::Settled,
        })
    }

    /// Whether a transaction was aborted by a decision that is a grace old.
    fn is_aborted(&self, transaction: Id) -> bool {
        let state = self.snapshot.transaction_state(transaction, self.user);
        let is_old = |order: Order| self.before.is_none_or(|before| order.0 <= clock_stamp(before));
        state.is_some_and(|state| state.aborted() && is_old(state.order()))
    }

    /// Whether a key needs no mark of an attempt any more: all that is older has ended, and nothing of it stays there (R64).
    fn has_outlived(
        &mut self,
        began: Order,
        counting: &Counting<'_>,
        going: &HashSet<usize>,
    ) -> Result<bool> {
        if planted::is(Planted::MarkDropped) {
            return Ok(true);
        }
        let is_older = |part: &Part| part.attempt.is_some_and(|attempt| attempt < began);
        let mut staying = counting.parts.iter().enumerate().filter(|(i, _)| !going.contains(i));
        if staying.any(|(_, (part, _))| is_older(part)) {
            return Ok(false);
        }
        let (now, oldest) = match self.attempts {
            Some(known) => known,
            None => {
                let files = self.files.medium().files();
                // Marks stay if nobody can say how late it is.
                let now = files.and_then(|files| files.file_system_time().ok()).unwrap_or(0);
                *self.attempts.insert((now, oldest_attempt(&self.snapshot, self.user, now)?))
            }
        };
        Ok(is_long_ago(began, now) && oldest.is_none_or(|oldest| oldest >= began))
    }

    /// Whether one of the requests selects a dataset, by its encoded first level.
    pub fn selects_dataset(&self, dataset: &[u8]) -> Result<bool> {
        for limit in &self.limits {
            if selects(limit.matcher.selection(), dataset)? {
                return Ok(true);
            }
        }
        Ok(self.limits.is_empty())
    }

    /// Whether nothing can switch the content of a transaction off any more.
    pub fn is_final(&mut self, transaction: Option<Id>) -> bool {
        transaction.is_none_or(|id| self.is_sealed(id))
    }

    /// Entries under a selected key that no reader of now sees, by the number of their source, each with the reason why it
    /// stays; and whether the key has a field. Content of open transactions is neither.
    pub fn residues(&mut self, key: &[u8], entries: &[MetEntry]) -> Result<(Vec<(usize, Residue)>, bool)> {
        if !self.selects(key)? {
            return Ok((Vec::new(), false));
        }
        let wipes = self.snapshot.wipes.of_key(key)?.final_ones();
        let mut parts = Vec::with_capacity(entries.len());
        for entry in entries {
            let mut part = Part::decode(&self.snapshot, entry.source, entry.place, &entry.value)?;
            let standing = self.standing(&mut part, [&wipes, &wipes])?;
            parts.push((part, standing));
        }
        let counts = |standing: &Standing| matches!(standing, Standing::Settled | Standing::Unsettled);
        let is_seen =
            |part: &Part| part.wiped != Wiped::Yes || part.attempt.is_some() && part.commit.moved.is_none();
        let seen = parts.iter().filter(|(part, standing)| counts(standing) && is_seen(part));
        let versions = KeyVersions::new(key, seen.map(|(part, _)| part.clone()).collect());
        let live: HashSet<EntryId> =
            versions.map(|versions| versions.live().iter().map(Part::id).collect()).unwrap_or_default();
        let is_live = |part: &Part| part.wiped != Wiped::Yes && live.contains(&part.id());
        let is_field = |(part, standing): &(Part, Standing)| {
            counts(standing)
                && is_live(part)
                && !part.entry.is_removal()
                && !part.entry.is_attempt_tombstone()
        };
        let has_field = parts.iter().any(is_field);
        let mut left = Vec::new();
        for (part, standing) in &parts {
            if *standing == Standing::Aside || has_field && counts(standing) && is_live(part) {
                continue;
            }
            left.push((part.source as usize, self.residue(part)));
        }
        Ok((left, has_field))
    }

    fn residue(&mut self, part: &Part) -> Residue {
        let is_living = part.commit.taken == 0
            && !self.ended.contains(&part.commit.writer)
            && part.commit.user == self.user;
        match part.commit.transaction {
            _ if part.commit.user != self.user => Residue::OfOthers,
            _ if is_living => Residue::Living,
            _ if part.entry.is_attempt_tombstone() => Residue::Mark,
            Some(id) if !self.is_sealed(id) => Residue::Open,
            _ => Residue::Below,
        }
    }

    /// The parts under a key with what they are; `None` if the key is left alone: another user has a part in it.
    fn parts(&mut self, key: &[u8], entries: &[MetEntry]) -> Result<Option<Vec<(Part, Standing)>>> {
        // Hides do not count: what they hide may be shown again.
        let wipes = self.snapshot.wipes.of_key(key)?.final_ones();
        let settled = self.settled(&wipes);
        let mut parts = Vec::with_capacity(entries.len());
        for entry in entries {
            let mut part = Part::decode(&self.snapshot, entry.source, entry.place, &entry.value)?;
            if part.commit.user != self.user {
                return Ok(None);
            }
            let standing = self.standing(&mut part, [&wipes, &settled])?;
            parts.push((part, standing));
        }
        Ok(Some(parts))
    }
}

impl Judge for HiddenEntries {
    fn look(&mut self, snapshot: &Arc<Snapshot>, ended: HashSet<Id>) -> Result<()> {
        (self.snapshot, self.ended) = (snapshot.clone(), ended);
        self.pointed = self.pointed.take().map(|_| PointedKeys::of(snapshot));
        self.sealed.clear();
        self.attempts = None;
        Ok(())
    }

    fn judge(&mut self, key: &[u8], entries: &[MetEntry], verdicts: &mut [Verdict]) -> Result<()> {
        let Some(versions) = self.versions(key)? else { return Ok(()) };
        let is_pointed = match &self.pointed {
            Some(pointed) => pointed.have(key, &self.snapshot)?,
            None => false,
        };
        if self.is_locked(key)? || is_pointed {
            return Ok(());
        }
        let Some(parts) = self.parts(key, entries)? else { return Ok(()) };
        for (i, (_, standing)) in parts.iter().enumerate() {
            if *standing == Standing::Aborted && entries[i].is_input {
                verdicts[i] = Verdict::Goes;
            }
        }
        let counting = Counting::of(key, &parts);
        let Some(mut going) = counting.hidden(entries, versions) else { return Ok(()) };
        if planted::is(Planted::PurgeDropsRemovalAlone) {
            going.retain(|i| parts[*i].0.entry.is_removal());
        }
        let mark = match counting.newest(&going, true) {
            Some((began, _)) if self.has_outlived(began, &counting, &going)? => Some(Mark::None),
            _ => counting.mark(&going, &self.snapshot),
        };
        let Some(mark) = mark else { return Ok(()) };
        going.iter().for_each(|i| verdicts[*i] = Verdict::Goes);
        match mark {
            Mark::None => {}
            Mark::Stays(i) => verdicts[i] = Verdict::Stays,
            Mark::Of(i, tombstone) => verdicts[i] = Verdict::Leaves(tombstone),
        }
        Ok(())
    }

    fn is_sound(&mut self, key: &[u8], entry: &MetEntry) -> Result<bool> {
        let part = Part::decode(&self.snapshot, entry.source, entry.place, &entry.value)?;
        match Source::new(&self.files, &part, key).verify() {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::Corrupt => Ok(false),
            Err(e) => Err(e),
        }
    }
}

/// The parts under a key that count, settled or not, by their numbers among all parts.
struct Counting<'a> {
    key: &'a [u8],
    parts: &'a [(Part, Standing)],
    /// From the oldest to the newest.
    by_time: Vec<usize>,
    /// The same with older attempts first, as a reader of now sees them.
    by_attempt: Vec<usize>,
}

/// The mark that an attempt leaves under a key.
enum Mark {
    /// None is needed.
    None,
    /// The one that is there.
    Stays(usize),
    /// A part becomes it.
    Of(usize, Box<AttemptTombstone>),
}

impl<'a> Counting<'a> {
    fn of(key: &'a [u8], parts: &'a [(Part, Standing)]) -> Counting<'a> {
        let counts = |i: &usize| matches!(parts[*i].1, Standing::Settled | Standing::Unsettled);
        let mut by_time: Vec<usize> = (0..parts.len()).filter(counts).collect();
        by_time.sort_unstable_by_key(|i| rank(&parts[*i].0));
        let newest = by_time.iter().filter_map(|i| parts[*i].0.attempt).max();
        let mut by_attempt = by_time.clone();
        if let Some(newest) = newest {
            let places = attempt_places(by_time.iter().map(|i| &parts[*i].0), newest);
            let mut placed: Vec<(Order, usize)> = places.into_iter().zip(by_time.iter().copied()).collect();
            placed.sort_by_key(|(place, _)| *place);
            by_attempt = placed.into_iter().map(|(_, i)| i).collect();
        }
        Counting { key, parts, by_time, by_attempt }
    }

    fn part(&self, i: usize) -> &Part {
        &self.parts[i].0
    }

    fn is_settled(&self, i: usize) -> bool {
        self.parts[i].1 == Standing::Settled
    }

    /// The parts that go; `None` if what is not settled does not lie above all that is.
    fn hidden(&self, entries: &[MetEntry], versions: u64) -> Option<HashSet<usize>> {
        let first_unsettled =
            self.by_time.iter().position(|i| !self.is_settled(*i)).unwrap_or(self.by_time.len());
        if self.by_time[first_unsettled..].iter().any(|i| self.is_settled(*i)) {
            return None;
        }
        // As a reader sees them: what is wiped says at most which attempt is the newest.
        let is_seen =
            |part: &&Part| part.wiped != Wiped::Yes || part.attempt.is_some() && part.commit.moved.is_none();
        let settled = self.by_time[..first_unsettled].iter().map(|i| self.part(*i));
        let settled = settled.filter(is_seen).cloned().collect();
        let mut live: HashSet<EntryId> = HashSet::new();
        let (mut key, mut left) = (KeyVersions::new(self.key, settled), versions);
        while let Some(shown) = key.as_mut().filter(|shown| left > 0 && shown.live > 0) {
            live.extend(shown.live().iter().map(Part::id));
            left -= 1;
            // Nobody keeps versions that a removal has hidden.
            if shown.is_over_removal() || !shown.go_back() {
                break;
            }
        }
        let is_hidden = |i: usize| self.is_settled(i) && !live.contains(&self.part(i).id());
        let mut going: HashSet<usize> =
            self.by_time.iter().copied().filter(|i| is_hidden(*i) && entries[*i].is_input).collect();
        if planted::is(Planted::PurgeAboveALivingEntry) {
            return Some(going);
        }
        // R62, in both orders: each may take something away from the other.
        loop {
            let before = going.len();
            for order in [&self.by_attempt, &self.by_time] {
                // A mark makes no field, and hides nothing that lies below it.
                let is_below = |i: &&usize| going.contains(*i) || self.part(**i).entry.is_attempt_tombstone();
                let below: HashSet<usize> = order.iter().take_while(is_below).copied().collect();
                going.retain(|i| below.contains(i));
            }
            self.keep_whole(&mut going);
            if going.len() == before {
                return Some(going);
            }
        }
    }

    /// Keeps parts that an older version shows together with one that stays: an older field is there whole, or not at all.
    fn keep_whole(&self, going: &mut HashSet<usize>) {
        if going.is_empty() || planted::is(Planted::PurgeCutsFields) {
            return;
        }
        // By generation, for wiped parts and for the others: the attempts of parts that stay.
        let mut staying: HashMap<(usize, bool), HashSet<Option<Order>>> = HashMap::new();
        let (mut generation, mut began) = (0, None);
        let mut places = HashMap::with_capacity(going.len());
        for &i in &self.by_time {
            let part = self.part(i);
            began = began.max(part.attempt);
            generation += usize::from(part.is_generation_since(began));
            let place = (generation, part.wiped == Wiped::Yes);
            match going.contains(&i) {
                true => drop(places.insert(i, place)),
                false if part.entry.is_attempt_tombstone() => {}
                false => drop(staying.entry(place).or_default().insert(part.attempt)),
            }
            // Nothing is together with a removal.
            generation += usize::from(part.entry.is_removal());
        }
        going.retain(|i| {
            let attempts = staying.get(&places[i]);
            // Of two attempts only one is shown.
            attempts.is_none_or(|attempts| match self.part(*i).attempt {
                None => attempts.is_empty(),
                own => !attempts.contains(&own) && !attempts.contains(&None),
            })
        });
    }

    /// The settled part of the newest attempt among those that go, or that stay, and when that attempt began.
    fn newest(&self, going: &HashSet<usize>, goes: bool) -> Option<(Order, usize)> {
        let those = self.by_time.iter().copied().filter(|i| self.is_settled(*i) && going.contains(i) == goes);
        those.filter_map(|i| Some((self.part(i).attempt?, i))).max_by_key(|(began, _)| *began)
    }

    /// The mark that has to stay if these parts go; `None` if nobody can make it.
    fn mark(&self, going: &HashSet<usize>, snapshot: &Snapshot) -> Option<Mark> {
        let settled = || self.by_time.iter().copied().filter(|i| self.is_settled(*i));
        let stays = self.newest(going, false);
        let Some((began, at)) = self.newest(going, true) else { return Some(Mark::None) };
        if stays.is_some_and(|(stays, _)| stays >= began) {
            return Some(Mark::None);
        }
        // One that was left by an earlier purge is as good.
        let is_mark = |i: &usize| {
            let part = self.part(*i);
            going.contains(i) && part.attempt == Some(began) && part.entry.is_attempt_tombstone()
        };
        if let Some(old) = settled().find(is_mark) {
            return Some(Mark::Stays(old));
        }
        let part = self.part(at);
        // The name of a moved entry's attempt is another store's.
        let name = snapshot.attempt_name(part.commit.writer).filter(|_| part.commit.moved.is_none())?;
        let (began, writer) = began;
        Some(Mark::Of(at, Box::new(AttemptTombstone { attempt: name, began, writer })))
    }
}
