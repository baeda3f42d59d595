//! The plain model of a store: the commits that were asked for, and every order of them that may be true.
//!
//! A *history* is a list of commits, oldest first. While a call is under way, and after one whose outcome is unknown,
//! several histories are possible; each look at the store keeps those that explain what it shows. If none is left,
//! the store is wrong.
//!
//! * [`change`]: commits and their changes; [`state`]: the state that a history makes; `fields`, `catalog`, `graph`:
//!   its parts as a reader sees them.
//!
//! Invariants:
//! * the model shares no code with the store: it follows the specification;
//! * an acknowledged commit is in every history.

pub mod catalog;
pub mod change;
pub mod fields;
pub mod graph;
pub mod state;

use std::collections::{BTreeMap, BTreeSet};

use self::change::{Change, Commit, CommitId, Content};
use self::state::StoreState;

/// Commits, oldest first.
pub type History = Vec<CommitId>;

/// A commit whose call is under way, or whose outcome is unknown.
#[derive(Debug, Clone)]
struct Flight {
    /// Commits that were there when it began: it is newer than those.
    after: BTreeSet<CommitId>,
    /// A commit without which it does not exist.
    needs: Option<CommitId>,
}

/// The model.
#[derive(Debug, Clone)]
pub struct Model {
    commits: BTreeMap<CommitId, Commit>,
    histories: Vec<History>,
    acknowledged: BTreeSet<CommitId>,
    flights: BTreeMap<CommitId, Flight>,
    /// Commits whose call failed, and that nobody has seen: until their writer or a successor has written again, a
    /// power cut may bring them back.
    failed: BTreeMap<CommitId, Flight>,
}

impl Default for Model {
    fn default() -> Model {
        Model {
            commits: BTreeMap::new(),
            histories: vec![History::new()],
            acknowledged: BTreeSet::new(),
            flights: BTreeMap::new(),
            failed: BTreeMap::new(),
        }
    }
}

impl Model {
    /// A new commit, which is not under way yet.
    pub fn open(&mut self, commit: Commit) -> CommitId {
        let id = self.commits.len() as CommitId;
        self.commits.insert(id, commit);
        id
    }

    /// Adds changes to a commit that is not under way yet; returns the place of the first.
    pub fn add(&mut self, id: CommitId, changes: Vec<Change>) {
        if let Some(Content::Changes(all)) = self.commits.get_mut(&id).map(|commit| &mut commit.content) {
            all.extend(changes);
        }
    }

    /// A commit.
    pub fn commit(&self, id: CommitId) -> Option<&Commit> {
        self.commits.get(&id)
    }

    /// The number of changes of a commit.
    pub fn changes(&self, id: CommitId) -> usize {
        match self.commits.get(&id).map(|commit| &commit.content) {
            Some(Content::Changes(all)) => all.len(),
            _ => 0,
        }
    }

    /// Bytes of fields in all commits, and the number of commits.
    pub fn written(&self) -> (usize, usize) {
        let bytes = |commit: &Commit| match &commit.content {
            Content::Changes(changes) => changes.iter().map(Change::bytes).sum(),
            _ => 0,
        };
        (self.commits.values().map(bytes).sum(), self.commits.len())
    }

    /// Whether there is one possible history, and no call is under way.
    pub fn is_certain(&self) -> bool {
        self.histories.len() == 1 && self.flights.is_empty()
    }

    /// Whether an unacknowledged commit is visible in a possible history.
    pub fn shows_unacknowledged(&self) -> bool {
        !self.flights.is_empty() || self.histories.iter().flatten().any(|id| !self.acknowledged.contains(id))
    }

    /// The state of a possible history, the only one if [certain](Self::is_certain).
    pub fn state(&self) -> StoreState {
        self.histories.first().map(|history| self.state_of(history)).unwrap_or_default()
    }

    fn state_of(&self, history: &History) -> StoreState {
        self.state_within(history, None)
    }

    fn state_within(&self, history: &History, transaction: Option<u32>) -> StoreState {
        StoreState::of(history.iter().filter_map(|id| Some((*id, self.commits.get(id)?))), transaction)
    }

    /// The answers of the possible histories about a transaction: whether it was committed, if it has ended.
    pub fn ends(&self, transaction: u32) -> BTreeSet<Option<bool>> {
        self.histories.iter().map(|history| self.state_of(history).end(transaction)).collect()
    }

    /// Keeps the histories in which every acknowledged flush into a transaction is older than its end; returns whether
    /// there is one. While a decision is under way all are kept.
    pub fn keep_covered(&mut self, transaction: u32) -> bool {
        let of =
            |id: &CommitId| self.commits.get(id).filter(|commit| commit.transaction == Some(transaction));
        let is_decision = |id: &CommitId| of(id).is_some_and(|c| matches!(c.content, Content::Decision(_)));
        if self.flights.keys().any(is_decision) {
            return true;
        }
        let is_covered = |history: &&History| {
            let end = history.iter().position(is_decision).unwrap_or(history.len());
            let late = history[end..].iter().filter(|id| of(id).is_some() && !is_decision(id));
            late.filter(|id| self.acknowledged.contains(id)).count() == 0
        };
        self.histories = self.histories.iter().filter(is_covered).cloned().collect();
        !self.histories.is_empty()
    }

    /// A commit's call begins.
    pub fn depart(&mut self, id: CommitId, needs: Option<CommitId>) {
        let seen = self.histories.iter().flatten().copied();
        let mut after: BTreeSet<CommitId> = seen.filter(|id| !self.flights.contains_key(id)).collect();
        after.extend(needs);
        self.flights.insert(id, Flight { after, needs });
    }

    /// Whether a possible history has a commit in a transaction that was acknowledged.
    pub fn has_content(&self, transaction: u32) -> bool {
        let of = |id: &CommitId| self.commits.get(id).is_some_and(|c| c.transaction == Some(transaction));
        self.histories.iter().flatten().any(|id| of(id) && self.acknowledged.contains(id))
    }

    /// Whether calls of other commits are under way that belong to this transaction.
    pub fn has_flight_in(&self, transaction: u32, but: &[CommitId]) -> bool {
        let own = |id: &CommitId| self.commits.get(id).is_some_and(|c| c.transaction == Some(transaction));
        self.flights.keys().any(|id| !but.contains(id) && own(id))
    }

    /// The histories with a commit added at each place that it may have.
    fn with(&self, histories: &[History], id: CommitId, flight: &Flight, is_sure: bool) -> Vec<History> {
        let mut all = Vec::new();
        for history in histories {
            if history.contains(&id) {
                all.push(history.clone());
                continue;
            }
            if !is_sure {
                all.push(history.clone());
            }
            if flight.needs.is_some_and(|needs| !history.contains(&needs)) {
                continue;
            }
            let first = history.iter().rposition(|other| flight.after.contains(other)).map_or(0, |at| at + 1);
            for place in first..=history.len() {
                let mut longer = history.clone();
                longer.insert(place, id);
                all.push(longer);
            }
        }
        all
    }

    /// A commit's call has succeeded.
    pub fn arrive(&mut self, id: CommitId) {
        if let Some(flight) = self.flights.remove(&id) {
            self.histories = self.with(&self.histories, id, &flight, true);
            self.acknowledged.insert(id);
            self.cut_down();
        }
    }

    /// A commit's call has failed, in a way that leaves its outcome open.
    pub fn doubt(&mut self, id: CommitId) {
        if let Some(flight) = self.flights.remove(&id) {
            self.histories = self.with(&self.histories, id, &flight, false);
            self.failed.insert(id, flight);
            self.cut_down();
        }
    }

    /// A commit's call was refused: it does not exist.
    pub fn refuse(&mut self, id: CommitId) {
        self.flights.remove(&id);
        self.histories.retain(|history| !history.contains(&id));
    }

    /// The power has failed: commits that nobody acknowledged may be gone, or back.
    pub fn cut_power(&mut self) {
        let flights: Vec<CommitId> = self.flights.keys().copied().collect();
        flights.into_iter().for_each(|id| self.doubt(id));
        let seen: BTreeSet<CommitId> = self.histories.iter().flatten().copied().collect();
        let unsure: Vec<CommitId> = seen.difference(&self.acknowledged).copied().collect();
        for id in unsure {
            let without = |history: &History| -> History {
                history.iter().copied().filter(|other| *other != id).collect()
            };
            let lost: Vec<History> = self.histories.iter().map(without).collect();
            self.histories.extend(lost);
            self.cut_down();
        }
        for (id, flight) in std::mem::take(&mut self.failed) {
            self.histories = self.with(&self.histories, id, &flight, false);
            self.cut_down();
        }
    }

    /// Keeps one of histories that make the same state: the one whose older commits come latest. Only if no call is under
    /// way, because such a call may stand between commits whose order does not matter otherwise.
    fn cut_down(&mut self) {
        if !self.flights.is_empty() {
            self.histories.sort();
            self.histories.dedup();
            return;
        }
        let mut kept: BTreeMap<String, (usize, History)> = BTreeMap::new();
        for history in std::mem::take(&mut self.histories) {
            let state = format!("{:?}", self.state_of(&history));
            let age =
                |(place, id): (usize, &CommitId)| place * self.commits.len().saturating_sub(*id as usize);
            let late: usize = history.iter().enumerate().map(age).sum();
            match kept.get(&state) {
                Some((known, _)) if *known >= late => {}
                _ => drop(kept.insert(state, (late, history))),
            }
        }
        self.histories = kept.into_values().map(|(_, history)| history).collect();
    }

    /// Compares a look within a transaction, or none, with the possible histories, and keeps those that explain it. An
    /// error says how the look differs from one of them.
    pub fn explain(
        &mut self,
        within: Option<u32>,
        is_shown: impl Fn(&StoreState) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut possible = self.histories.clone();
        for (id, flight) in &self.flights {
            possible = self.with(&possible, *id, flight, false);
        }
        possible.sort();
        possible.dedup();
        let (mut kept, mut wrong) = (Vec::new(), None);
        for history in possible {
            match is_shown(&self.state_within(&history, within)) {
                Ok(()) => kept.push(history),
                Err(why) => drop(wrong.get_or_insert(why)),
            }
        }
        if kept.is_empty() {
            return Err(wrong.unwrap_or_default());
        }
        // One reader may see a call that is under way, and another not yet.
        for history in &mut kept {
            history.retain(|id| !self.flights.contains_key(id));
        }
        self.histories = kept;
        self.cut_down();
        Ok(())
    }
}
