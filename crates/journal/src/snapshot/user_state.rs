//! The state of a transaction: the decisions on it, folded in their order (J-20).
//!
//! A decision says which kinds of content are visible from it on, and of which commits. Rules:
//! * an abort ends the transaction, and so does a commit of all kinds; before that, decisions cover what
//!   was prepared meanwhile, and nothing that they cover is uncovered again;
//! * an abort after the end, and everything after an abort, does not count;
//! * after a commit of all kinds, further decisions change which kinds are visible, and nothing else;
//! * content counts as new at the decision that made its kind visible last: of the decisions on its
//!   transaction that have its kind's bit and cover it, the first behind the last one that has not.
//!
//! ```text
//! decision      1: attributes    2: attributes, fields    3: fields    4: all (the end)    5: not fields
//! attributes    visible since 1                           not visible  visible since 4
//! fields                         visible since 2                                           not visible
//! ```

use std::sync::Arc;

use fieldstone_format::Id;
use fieldstone_format::log::Decision;

use super::Order;

/// All kinds: a decision with these ends its transaction.
pub const ALL_KINDS: u32 = u32::MAX;

/// A decision, and its place in the order of commits.
#[derive(Debug, Clone)]
pub struct Decided {
    /// The decision.
    pub decision: Decision,
    /// Stamp of its commit.
    pub stamp: u64,
    /// Number of its commit in the log.
    pub sequence: u64,
}

/// One decision that counts.
#[derive(Debug, Clone)]
struct Epoch {
    order: Order,
    kinds: u32,
    /// All that is covered from here on, by writer: up to which sequence.
    covers: Arc<Vec<(Id, u64)>>,
}

impl Epoch {
    fn covers(&self, writer: Id, sequence: u64) -> bool {
        let found = self.covers.binary_search_by_key(&writer, |(w, _)| *w);
        found.is_ok_and(|i| self.covers[i].1 >= sequence)
    }
}

/// The state of one transaction.
#[derive(Debug, Clone, Default)]
pub struct UserState {
    /// All decisions on it, in their order.
    all: Vec<(Order, Arc<Decided>)>,
    /// Decisions that count, oldest first; of an aborted transaction the abort alone.
    epochs: Vec<Epoch>,
    aborted: bool,
    closed: bool,
}

impl UserState {
    /// This state and one decision more, which may be older than those it knows.
    pub fn with(&self, order: Order, decided: Arc<Decided>) -> UserState {
        let mut all = self.all.clone();
        let place = all.partition_point(|(known, _)| *known < order);
        all.insert(place, (order, decided));
        let mut state = UserState::default();
        all.iter().for_each(|(order, decided)| state.take(*order, &decided.decision));
        UserState { all, ..state }
    }

    /// The state as those decisions leave it that pass.
    pub fn of_those(&self, counts: impl Fn(Order, &Decided) -> bool) -> UserState {
        let all: Vec<_> =
            self.all.iter().filter(|(order, decided)| counts(*order, decided)).cloned().collect();
        let mut state = UserState::default();
        all.iter().for_each(|(order, decided)| state.take(*order, &decided.decision));
        UserState { all, ..state }
    }

    fn take(&mut self, order: Order, decision: &Decision) {
        if self.aborted || (self.closed && !decision.committed) {
            return;
        }
        if !decision.committed {
            (self.aborted, self.closed) = (true, true);
            self.epochs = vec![Epoch { order, kinds: 0, covers: sorted(&decision.covers) }];
            return;
        }
        let covers = match self.epochs.last() {
            Some(last) if self.closed => last.covers.clone(),
            Some(last) => sorted(&[&last.covers, &decision.covers[..]].concat()),
            None => sorted(&decision.covers),
        };
        self.closed |= decision.kinds == ALL_KINDS;
        self.epochs.push(Epoch { order, kinds: decision.kinds, covers });
    }

    /// All decisions on it, also those that change nothing, in their order.
    pub fn decisions(&self) -> impl Iterator<Item = (Order, &Decided)> {
        self.all.iter().map(|(order, decided)| (*order, &**decided))
    }

    /// Whether nothing of the transaction ever becomes visible.
    pub fn aborted(&self) -> bool {
        self.aborted
    }

    /// Whether the transaction has ended: what is flushed into it later is never visible.
    pub fn closed(&self) -> bool {
        self.closed
    }

    /// The kinds that are visible.
    pub fn kinds(&self) -> u32 {
        self.epochs.last().map_or(0, |epoch| epoch.kinds)
    }

    /// The place of the decision in force.
    pub fn order(&self) -> Order {
        self.epochs.last().map_or((0, Id::LEAST), |epoch| epoch.order)
    }

    /// The highest sequence that is covered, by writer.
    pub fn covers(&self) -> &[(Id, u64)] {
        self.epochs.last().map_or(&[], |epoch| &epoch.covers)
    }

    /// Whether a commit is covered: visible by kind, or not at all where the transaction is aborted.
    pub fn covers_commit(&self, writer: Id, sequence: u64) -> bool {
        self.epochs.last().is_some_and(|epoch| epoch.covers(writer, sequence))
    }

    /// Whether those who name the transaction see what a commit holds and others do not: it is prepared, or
    /// its kind is switched off.
    pub fn is_open_for(&self, writer: Id, sequence: u64) -> bool {
        !self.aborted && (!self.closed || self.covers_commit(writer, sequence))
    }

    /// Bytes that differ between any two states: a decision that comes late may be older than the one in
    /// force, and change since when something is visible, or what is covered, but nothing else.
    pub fn print(&self) -> Vec<u8> {
        let mut print = vec![u8::from(!self.aborted), u8::from(self.closed)];
        for epoch in &self.epochs {
            print.extend(epoch.order.0.to_le_bytes());
            print.extend(epoch.order.1.0);
            print.extend(epoch.kinds.to_le_bytes());
            print.extend((epoch.covers.len() as u64).to_le_bytes());
            for (writer, sequence) in epoch.covers.iter() {
                print.extend(writer.0);
                print.extend(sequence.to_le_bytes());
            }
        }
        print
    }

    /// The position of the content of kinds `bits` of a commit in the order; `None` if it is not visible.
    pub fn visible(&self, bits: u32, writer: Id, sequence: u64) -> Option<Order> {
        let shows = |epoch: &&Epoch| epoch.kinds & bits == bits && epoch.covers(writer, sequence);
        let since = self.epochs.iter().rev().take_while(shows).last()?;
        (!self.aborted).then_some(since.order)
    }
}

/// By writer, each with the greatest sequence.
fn sorted(covers: &[(Id, u64)]) -> Arc<Vec<(Id, u64)>> {
    let mut all = covers.to_vec();
    all.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.cmp(&a.1)));
    all.dedup_by_key(|(writer, _)| *writer);
    Arc::new(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: u32 = 1;
    const ATTRIBUTES: u32 = 6;
    const A: Id = Id([1; 16]);
    const B: Id = Id([2; 16]);

    /// Stamp, whether it commits, kinds, and what it covers.
    type Made<'a> = (u64, bool, u32, &'a [(Id, u64)]);

    fn state(decisions: &[Made<'_>]) -> UserState {
        let with = |state: UserState, (stamp, committed, kinds, covers): &Made<'_>| {
            let decision = Decision {
                transaction: Id([3; 16]),
                committed: *committed,
                kinds: *kinds,
                covers: covers.to_vec(),
            };
            state.with((*stamp, A), Arc::new(Decided { decision, stamp: *stamp, sequence: 1 }))
        };
        // The order in which they are found means nothing.
        decisions.iter().rev().fold(UserState::default(), with)
    }

    #[test]
    fn kinds_are_visible_since_they_were_switched_on_last() {
        let all: &[(Id, u64)] = &[(A, 5)];
        let v = state(&[
            (10, true, ATTRIBUTES, all),
            (20, true, ATTRIBUTES | FIELDS, all),
            (30, true, FIELDS, all),
            (40, true, ALL_KINDS, all),
            (50, true, !FIELDS, &[]),
        ]);
        assert!(v.closed() && !v.aborted());
        assert_eq!(v.visible(ATTRIBUTES, A, 5), Some((40, A)));
        assert_eq!(v.visible(FIELDS, A, 5), None);
        assert_eq!(v.visible(ATTRIBUTES, A, 6), None);
        assert_eq!(v.visible(ATTRIBUTES, B, 1), None);
        assert_eq!((v.kinds(), v.order()), (!FIELDS, (50, A)));
        let v = state(&[(10, true, ATTRIBUTES, all), (20, true, ATTRIBUTES | FIELDS, all)]);
        assert_eq!(v.visible(ATTRIBUTES, A, 1), Some((10, A)));
        assert_eq!(v.visible(FIELDS, A, 1), Some((20, A)));
        assert_eq!(v.visible(ATTRIBUTES | FIELDS, A, 1), Some((20, A)));
    }

    #[test]
    fn what_a_later_decision_covers_counts_from_it_on() {
        let v = state(&[(10, true, FIELDS, &[(A, 3)]), (20, true, FIELDS, &[(A, 5), (B, 1)])]);
        assert_eq!(v.visible(FIELDS, A, 3), Some((10, A)));
        assert_eq!(v.visible(FIELDS, A, 4), Some((20, A)));
        assert_eq!(v.visible(FIELDS, B, 1), Some((20, A)));
        // A decision that names less uncovers nothing; one after the end covers nothing more.
        let v = state(&[
            (10, true, FIELDS, &[(A, 3)]),
            (20, true, ALL_KINDS, &[(B, 1)]),
            (30, true, FIELDS, &[(A, 9)]),
        ]);
        assert_eq!(v.visible(FIELDS, A, 3), Some((10, A)));
        assert_eq!(v.visible(FIELDS, A, 4), None);
        assert_eq!(v.visible(ATTRIBUTES, A, 3), None);
    }

    #[test]
    fn a_decision_that_comes_late_changes_the_print() {
        let all: &[(Id, u64)] = &[(A, 5)];
        let one = state(&[(20, true, ALL_KINDS, all)]);
        let late = state(&[(10, true, FIELDS, all), (20, true, ALL_KINDS, all)]);
        assert_eq!((one.kinds(), one.order()), (late.kinds(), late.order()));
        assert_ne!(one.visible(FIELDS, A, 5), late.visible(FIELDS, A, 5));
        assert_ne!(one.print(), late.print());
        let more = state(&[(20, true, ALL_KINDS, &[(A, 6)])]);
        assert_ne!(one.print(), more.print());
        assert_eq!(one.print(), state(&[(20, true, ALL_KINDS, all)]).print());
    }

    #[test]
    fn an_abort_is_final_unless_the_end_came_before_it() {
        let all: &[(Id, u64)] = &[(A, 5)];
        let v = state(&[(10, true, FIELDS, all), (20, false, ALL_KINDS, all), (30, true, ALL_KINDS, all)]);
        assert!(v.aborted() && v.closed());
        assert_eq!((v.visible(FIELDS, A, 1), v.kinds()), (None, 0));
        let v = state(&[(10, true, ALL_KINDS, all), (20, false, ALL_KINDS, all)]);
        assert!(!v.aborted() && v.closed());
        assert_eq!(v.visible(FIELDS, A, 1), Some((10, A)));
    }
}
