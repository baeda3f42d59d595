//! Transactions that have ended: one takeover seals them, a later one forgets them (takeovers.md, 9.2).
//!
//! A forgotten transaction costs nothing: its visible commits have their place in the order, its other commits are gone, and
//! no row speaks of it. Invariants:
//! * a transaction is sealed only once everything of it is in the takeover that seals it, and nothing of it in a living log;
//! * only what was sealed a grace before is forgotten, so that a decision that was made meanwhile has shown (R17);
//! * only what began before the floor is sealed, so that whoever comes later knows that it is forgotten (R16);
//! * only one plain decision is forgotten: each version then shows the content if it holds that decision's commit.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::planted::{self, Planted};
use fieldstone_format::Id;
use fieldstone_format::bytes::Cursor;
use fieldstone_format::log::Decision;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::TransactionRow;
use fieldstone_format::transaction_id::begun;

use super::ended_log::EndedLog;
use crate::order::Order;
use crate::snapshot::{ALL_KINDS, Snapshot};
use crate::takeover::Takeover;

/// A takeover is made again for its ended transactions alone, if one of this number of its commits has one.
const DUE_ONE_IN: u64 = 8;

/// A commit that was prepared under a transaction, in the new takeover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It stays as it is.
    Stays,
    /// Its transaction is forgotten, and it is visible from this place of the order on.
    Visible(Order),
    /// Its transaction is forgotten, and it never was visible.
    Gone,
}

/// The ended transactions, as a new takeover treats them.
#[derive(Debug, Default)]
pub struct Endings {
    /// Transactions that began before this stamp and have no row are forgotten.
    pub floor: u64,
    sealed: BTreeSet<Id>,
    /// The decision on each that this takeover forgets.
    forgotten: HashMap<Id, (Order, Decision)>,
    /// Transactions that were forgotten before, and that something came late for.
    late: HashSet<Id>,
}

impl Endings {
    /// Whether this takeover seals a transaction.
    pub fn seals(&self, transaction: Id) -> bool {
        self.sealed.contains(&transaction)
    }

    /// Whether nothing may speak of a transaction any more.
    pub fn is_over(&self, transaction: Id) -> bool {
        self.forgotten.contains_key(&transaction) || self.late.contains(&transaction)
    }

    /// The fate of a commit.
    pub fn fate(&self, transaction: Id, writer: Id, sequence: u64) -> Fate {
        let Some((order, decision)) = self.forgotten.get(&transaction) else {
            return if self.late.contains(&transaction) { Fate::Gone } else { Fate::Stays };
        };
        let covers = |(of, upto): &(Id, u64)| *of == writer && *upto >= sequence;
        match decision.committed && decision.covers.iter().any(covers) {
            true => Fate::Visible(*order),
            false => Fate::Gone,
        }
    }

    /// Finds them, for a takeover of these inputs that is made at a time.
    pub fn find(
        snapshot: &Snapshot,
        user: u32,
        (logs, takeovers): (&[EndedLog], &[Arc<Takeover>]),
        (now, grace): (i64, u64),
    ) -> Result<Endings> {
        let mut all = BTreeMap::<Id, Spoken>::new();
        for takeover in snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user) {
            let is_input = takeovers.iter().any(|input| input.number() == takeover.number());
            add_takeover(&mut all, takeover, is_input)?;
        }
        let mut endings = Endings::default();
        let late = &mut endings.late;
        add_logs(&mut all, logs, |id| {
            let is_late = snapshot.taken.is_forgotten(id, user);
            if is_late {
                late.insert(id);
            }
            is_late
        });
        let living = living(snapshot, user, logs);
        endings.floor = floor(snapshot, user, (now, grace), (&living, &all));
        let others = of_others(snapshot, user);
        let is_input = |writer: Id| -> Result<bool> {
            if logs.iter().any(|ended| ended.log.writer == writer) {
                return Ok(true);
            }
            for takeover in takeovers {
                if takeover.log(writer)?.is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        for (id, known) in all {
            let abort = Decision { transaction: id, committed: false, kinds: 0, covers: Vec::new() };
            let decided = match known.plain() {
                None if planted::is(Planted::OpenOneSealed) => Some(((0, Id::LEAST), &abort)),
                decided => decided,
            };
            let Some((order, decision)) = decided else { continue };
            let mut is_living = living.contains(&id);
            for (writer, _) in &decision.covers {
                is_living |= !is_input(*writer)?;
            }
            if begun(id) >= endings.floor || known.is_outside || is_living || others.contains(&id) {
                continue;
            }
            if known.is_due(now, grace) {
                endings.forgotten.insert(id, (order, decision.clone()));
            } else if known.sealed == 0 {
                endings.sealed.insert(id);
            }
        }
        Ok(endings)
    }
}

/// A transaction, as logs and takeovers of a user speak of it.
#[derive(Debug, Default)]
struct Spoken {
    sealed: u64,
    /// When the newest takeover with a row of it was made.
    since: i64,
    decisions: Vec<(Order, Decision)>,
    /// Whether a takeover has a row of it that stays.
    is_outside: bool,
}

impl Spoken {
    /// The decision, where there is one alone, which ended all of it.
    fn plain(&self) -> Option<(Order, &Decision)> {
        match &self.decisions[..] {
            [(order, decision)] if is_end(decision) => Some((*order, decision)),
            _ => None,
        }
    }

    fn is_due(&self, now: i64, grace: u64) -> bool {
        let is_old = u64::try_from(now.saturating_sub(self.since)).is_ok_and(|age| age >= grace);
        self.sealed > 0 && is_old || planted::is(Planted::ForgottenUnsealed)
    }
}

fn is_end(decision: &Decision) -> bool {
    !decision.committed || decision.kinds == ALL_KINDS
}

fn add_takeover(all: &mut BTreeMap<Id, Spoken>, takeover: &Arc<Takeover>, is_input: bool) -> Result<()> {
    takeover.each_below(TakeoverTable::Transactions, &[], |key, value| {
        let id = Cursor::new(key).id()?;
        let row = TransactionRow::decode(id, value)?;
        let known = all.entry(id).or_default();
        known.sealed = known.sealed.max(row.sealed);
        known.since = known.since.max(takeover.header.created);
        known.is_outside |= !is_input;
        known.decisions.extend(row.decisions.into_iter().map(|row| ((row.stamp, row.writer), row.decision)));
        Ok(())
    })
}

/// Adds what ended logs say, without what came late for transactions that are forgotten.
fn add_logs(all: &mut BTreeMap<Id, Spoken>, logs: &[EndedLog], mut is_late: impl FnMut(Id) -> bool) {
    for ended in logs {
        for commit in &ended.commits {
            let decided = commit.decision.as_ref().map(|decision| decision.transaction);
            for id in decided.into_iter().chain(commit.transaction) {
                if !is_late(id) {
                    let known = all.entry(id).or_default();
                    let decision = commit.decision.iter().filter(|decision| decision.transaction == id);
                    let order = (commit.stamp, ended.log.writer);
                    known.decisions.extend(decision.map(|decision| (order, decision.clone())));
                }
            }
        }
    }
}

/// Transactions that living logs speak of: they are open, prepared, or decided there.
fn living(snapshot: &Snapshot, user: u32, inputs: &[EndedLog]) -> HashSet<Id> {
    let mut found = HashSet::new();
    for log in &snapshot.logs {
        if inputs.iter().any(|ended| ended.log.writer == log.writer) {
            continue;
        }
        found.extend(&log.record.open);
        found.extend(log.record.prepared.iter().map(|prepared| prepared.transaction));
        if log.uid == user {
            found.extend(log.decisions.since(0).map(|decided| decided.decision.transaction));
        }
    }
    found.retain(|id| !snapshot.taken.is_forgotten(*id, user));
    found
}

/// Transactions that other users have a part in.
fn of_others(snapshot: &Snapshot, user: u32) -> HashSet<Id> {
    let decided = snapshot.transaction_states().filter(|(_, of, _)| *of != user).map(|(id, ..)| id);
    let prepared = snapshot.all_prepared().filter(|(_, prepared)| prepared.user != user).map(|(id, _)| id);
    decided.chain(prepared).collect()
}

/// The stamp before which nothing is open: one that an older takeover announced a grace ago, so that whoever flushed into a
/// transaction before it is seen here or has seen that; below all that is listed, and never less than before.
fn floor(
    snapshot: &Snapshot,
    user: u32,
    (now, grace): (i64, u64),
    (living, all): (&HashSet<Id>, &BTreeMap<Id, Spoken>),
) -> u64 {
    if planted::is(Planted::FloorTooHigh) {
        return snapshot.newest_stamp();
    }
    let before = now.saturating_sub(i64::try_from(grace).unwrap_or(i64::MAX));
    let announced = snapshot.taken.announced_floor(user, before);
    let is_open = |known: &Spoken| {
        let has_ended = known.decisions.iter().any(|(_, decision)| is_end(decision));
        !has_ended && !planted::is(Planted::OpenOneSealed)
    };
    let open = all.iter().filter(|(_, known)| is_open(known)).map(|(id, _)| *id);
    let least = living.iter().copied().chain(open).map(begun).min().unwrap_or(u64::MAX);
    announced.min(least).max(snapshot.taken.floor(user))
}

/// The floor of a takeover of a user that is made now and takes over no log.
pub fn next_floor(snapshot: &Snapshot, user: u32, at: (i64, u64)) -> Result<u64> {
    let mut all = BTreeMap::new();
    for takeover in snapshot.taken.takeovers().all().iter().filter(|takeover| takeover.user == user) {
        add_takeover(&mut all, takeover, true)?;
    }
    Ok(floor(snapshot, user, at, (&living(snapshot, user, &[]), &all)))
}

/// Whether a takeover is made again for the transactions alone that it can seal or forget.
pub fn is_due(takeover: &Arc<Takeover>, floor: u64, (now, grace): (i64, u64)) -> Result<bool> {
    let most = takeover.rows(TakeoverTable::Commits);
    if takeover.rows(TakeoverTable::Transactions).saturating_mul(DUE_ONE_IN) < most {
        return Ok(false);
    }
    let mut rows = BTreeMap::new();
    add_takeover(&mut rows, takeover, true)?;
    // Transactions before its own floor were not sealed for a reason that may last: it is not made again for them.
    let is_new = |id: Id, known: &Spoken| known.sealed == 0 && begun(id) >= takeover.header.floor;
    let is_next = |id: Id, known: &Spoken| is_new(id, known) || known.is_due(now, grace);
    let due =
        |(id, known): &(&Id, &Spoken)| begun(**id) < floor && known.plain().is_some() && is_next(**id, known);
    let due = rows.iter().filter(due).count() as u64;
    Ok(due > 0 && due.saturating_mul(DUE_ONE_IN) >= most)
}
