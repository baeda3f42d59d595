//! Hand-overs (takeovers.md, 6.6): from its record on, all that belonged to one user belongs to another (J-55).
//!
//! Nothing is moved or written again. Stamps say to whom something belongs: content of a user goes, one after
//! the other, to the users to whom later records hand over. So an entry counts if its user owned the dataset at its stamp:
//! * what the old owner wrote before the record counts as before, and what he writes later does not;
//! * what the new owner wrote before it did not count then, and does not count now: nobody can lay something into a dataset
//!   for the day on which it becomes his, or his dataset another's.
//!
//! Without hand-overs nothing here costs a reader anything.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::planted::{self, Planted};
use fieldstone_format::Id;
use fieldstone_format::log::SideRecord;
use fieldstone_format::owner::Owner;
use fieldstone_format::store_record::{self, StoreRecord};
use xxhash_rust::xxh3::Xxh3;

use super::ranges::ROOT;
use super::{Order, Snapshot, SnapshotLog, TakeoverContent, UserState};

/// A hand-over in a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreHandOver {
    /// The place of its commit.
    pub order: Order,
    /// When, nanoseconds since 1970, by its writer's clock.
    pub time: i64,
    /// The user whose log it is.
    pub user: u32,
    /// The owner before.
    pub from: u32,
    /// The owner after.
    pub to: u32,
}

impl StoreHandOver {
    /// The hand-over in a side record of a commit; `None` for a record of another kind, and for one of subjects, who own
    /// nothing in a store of this release.
    pub fn decode(
        order: Order,
        (user, time): (u32, i64),
        record: &SideRecord,
    ) -> Result<Option<StoreHandOver>> {
        // Other records of the store are their readers' to decode.
        if record.kind != store_record::HAND_OVER {
            return Ok(None);
        }
        Ok(match store_record::decode(record)? {
            Some(StoreRecord::HandOver(made)) => match (made.from, made.to) {
                (Owner::User(from), Owner::User(to)) => Some(StoreHandOver { order, time, user, from, to }),
                _ => None,
            },
            _ => None,
        })
    }

    fn stamp(&self) -> u64 {
        self.order.0
    }
}

/// The hand-overs of a snapshot that count: those of root and of the owner of the folder of logs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct HandOvers {
    /// In the order of their commits.
    all: Vec<StoreHandOver>,
}

impl HandOvers {
    /// Those of logs and takeovers; those of an earlier snapshot if they are the same.
    pub(super) fn find(
        logs: &[Arc<SnapshotLog>],
        taken: &TakeoverContent,
        folder_owner: Option<u32>,
        before: Option<&Arc<HandOvers>>,
    ) -> Arc<HandOvers> {
        let made = logs.iter().flat_map(|log| &log.hand_overs).chain(&taken.hand_overs);
        let found = HandOvers::of(made.copied(), folder_owner);
        match before {
            Some(before) if **before == found => before.clone(),
            _ => Arc::new(found),
        }
    }

    fn of(made: impl Iterator<Item = StoreHandOver>, folder_owner: Option<u32>) -> HandOvers {
        let counts = |one: &StoreHandOver| {
            let is_above = one.user == ROOT || folder_owner.is_none_or(|owner| owner == one.user);
            is_above && one.from != one.to && !planted::is(Planted::HandOverIgnored)
        };
        let mut all: Vec<StoreHandOver> = made.filter(counts).collect();
        all.sort_by_key(|one| one.order);
        HandOvers { all }
    }

    /// Whether there never was one.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &StoreHandOver> {
        self.all.iter()
    }

    /// Whether a user ever handed something over.
    #[inline]
    pub fn concern(&self, user: u32) -> bool {
        self.all.iter().any(|one| one.from == user)
    }

    /// Whether something was ever handed over to a user.
    pub fn reach(&self, user: u32) -> bool {
        self.all.iter().any(|one| one.to == user)
    }

    /// The user to whom belongs, at the stamp `at`, what a user made at the stamp `made`.
    #[inline]
    pub fn owner_at(&self, user: u32, made: u64, at: u64) -> u32 {
        let later = self.all.iter().filter(|one| made < one.stamp() && one.stamp() <= at);
        later.fold(user, |user, one| if one.from == user { one.to } else { user })
    }

    /// The user to whom belongs by now what a user made at a stamp.
    #[inline]
    pub fn owner(&self, user: u32, made: u64) -> u32 {
        self.owner_at(user, made, u64::MAX)
    }

    /// The other users of whose content at least a part belongs to a user at a stamp.
    pub fn predecessors(&self, user: u32, at: u64) -> Vec<u32> {
        let is_its = |one: &&StoreHandOver| {
            let before = one.stamp().saturating_sub(1);
            one.from != user && self.owner_at(one.from, before, at) == user
        };
        let mut found: Vec<u32> = self.all.iter().filter(is_its).map(|one| one.from).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Whether what a user wrote may count in a dataset of an owner of now.
    pub fn may_count(&self, user: u32, owner: u32) -> bool {
        user == owner || !self.is_empty() && self.predecessors(owner, u64::MAX).contains(&user)
    }

    /// A digest that differs between any two lists; empty for none.
    pub fn print(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut hasher = Xxh3::new();
        for one in &self.all {
            hasher.update(&one.stamp().to_le_bytes());
            hasher.update(&one.order.1.0);
            hasher.update(&one.from.to_le_bytes());
            hasher.update(&one.to.to_le_bytes());
        }
        format!("{:032x}", hasher.digest128())
    }
}

/// The user who may decide about a dataset, of two who have written into it first: the owner of the folder of logs unless it
/// was his by a hand-over when he began to write.
pub(super) fn takes_over(
    hand_overs: &HandOvers,
    (user, since): (u32, u64),
    (own, began): (u32, u64),
) -> bool {
    hand_overs.owner_at(user, since, began) != own
}

/// Whether an entry counts by hand-overs, given who wrote into its dataset first, and when.
pub(super) fn owned_then(
    hand_overs: &HandOvers,
    (first, since): (u32, u64),
    (user, stamp): (u32, u64),
) -> bool {
    hand_overs.owner_at(first, since, stamp) == user
}

/// The state of a transaction for a user who decides: of his own logs, or else of those that were handed over to him.
pub fn decided_for(snapshot: &Snapshot, transaction: Id, user: u32) -> Option<&Arc<UserState>> {
    let own = snapshot.transaction_state(transaction, user);
    own.or_else(|| {
        let before = snapshot.hand_overs.predecessors(user, u64::MAX);
        before.into_iter().find_map(|user| snapshot.transaction_state(transaction, user))
    })
}

/// Logs with commits prepared under a transaction about which a user decides: his own, and those that were handed over to
/// him. Each with the last one's sequence; by log.
pub fn prepared_for(snapshot: &Snapshot, transaction: Id, user: u32) -> Vec<(Id, u64)> {
    let mut all = snapshot.prepared(transaction, user);
    for user in snapshot.hand_overs.predecessors(user, u64::MAX) {
        all.extend(snapshot.prepared(transaction, user));
    }
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hand_overs(all: &[(u64, u32, u32)]) -> HandOvers {
        let made = all.iter().map(|(stamp, from, to)| StoreHandOver {
            order: (*stamp, Id::LEAST),
            time: 0,
            user: ROOT,
            from: *from,
            to: *to,
        });
        HandOvers::of(made, Some(9))
    }

    #[test]
    fn r77_what_was_made_before_a_record_goes_on_from_user_to_user() {
        let all = hand_overs(&[(20, 2, 3), (10, 1, 2)]);
        assert_eq!([5, 9, 10, 11].map(|made| all.owner(1, made)), [3, 3, 1, 1]);
        assert_eq!([5, 15, 20].map(|made| all.owner(2, made)), [3, 3, 2]);
        assert_eq!([9, 10, 19, 20].map(|at| all.owner_at(1, 5, at)), [1, 2, 2, 3]);
        assert_eq!((all.predecessors(3, u64::MAX), all.predecessors(2, u64::MAX)), (vec![1, 2], vec![]));
        assert_eq!((all.predecessors(2, 15), all.predecessors(3, 15)), (vec![1], vec![]));
        assert!(all.concern(1) && all.concern(2) && !all.concern(3) && all.reach(3) && !all.reach(1));
    }

    #[test]
    fn r77_there_and_back_again_is_as_it_was_for_all_but_the_time_between() {
        let all = hand_overs(&[(10, 1, 2), (20, 2, 1)]);
        assert_eq!([5, 15, 25].map(|at| all.owner_at(1, 5, at)), [1, 2, 1]);
        let counts = |user, stamp| owned_then(&all, (1, 5), (user, stamp));
        assert!(
            counts(1, 9)
                && !counts(1, 15)
                && counts(1, 20)
                && counts(2, 15)
                && !counts(2, 25)
                && !counts(2, 6)
        );
        assert_eq!((all.owner(2, 5), all.owner(2, 25)), (1, 2));
    }

    #[test]
    fn only_records_of_root_and_of_the_stores_owner_count() {
        let made = |user| StoreHandOver { order: (10, Id::LEAST), time: 0, user, from: 1, to: 2 };
        for (user, counts) in [(ROOT, true), (9, true), (1, false), (2, false)] {
            assert_eq!(!HandOvers::of([made(user)].into_iter(), Some(9)).is_empty(), counts, "{user}");
        }
        let to_oneself = StoreHandOver { to: 1, ..made(ROOT) };
        assert!(HandOvers::of([to_oneself].into_iter(), None).is_empty());
        assert_eq!(hand_overs(&[]).print(), "");
        assert_ne!(hand_overs(&[(10, 1, 2)]).print(), hand_overs(&[(10, 2, 1)]).print());
    }
}
