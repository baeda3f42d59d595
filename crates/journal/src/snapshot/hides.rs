//! Hides: ranges that hide what a version of the store showed until somebody who may ends them (J-52).
//!
//! A hide counts for the same entries as a wipe by its user would. Its end, by the same user, by root or by the owner of the
//! folder of logs, shows all of them again; that of anybody else shows again those that he owns. A user to whom its maker's
//! things were handed over ends it as he could.

use std::sync::Arc;

use fieldstone_core::planted::{self, Planted};
use fieldstone_format::store_record::{Range, RangeAction};

use super::ranges::{ROOT, StoreRange, is_shallow};
use super::{HandOvers, Snapshot};

/// A wipe, or a hide that has not ended.
#[derive(Debug, Clone)]
pub(super) struct InForce {
    pub made: Arc<StoreRange>,
    /// Users whose entries it hides no longer, each as of a stamp.
    pub ended_for: Vec<(u32, u64)>,
}

/// Whether a range hides entries, or ends one that does, as far as this release obeys it.
pub(super) fn concerns_entries(range: &Range) -> bool {
    let concerns = match &range.action {
        RangeAction::Wipe | RangeAction::Hide => true,
        RangeAction::End(ended) => **ended == RangeAction::Hide,
        _ => false,
    };
    concerns && is_shallow(range)
}

/// Whether it ends a hide.
pub(super) fn is_end(range: &Range) -> bool {
    matches!(range.action, RangeAction::End(_))
}

/// Of wipes, hides and ends of hides, oldest first, those that hide something still.
pub(super) fn in_force(
    made: &[Arc<StoreRange>],
    (folder_owner, hand_overs): (Option<u32>, &HandOvers),
) -> Vec<InForce> {
    let is_above = |user: u32| user == ROOT || folder_owner.is_none_or(|owner| owner == user);
    let mut all: Vec<InForce> = Vec::with_capacity(made.len());
    for made in made {
        if !is_end(&made.range) {
            all.push(InForce { made: made.clone(), ended_for: Vec::new() });
            continue;
        }
        let by = made.user;
        let is_its = |hide: &InForce| {
            hide.made.range.action == RangeAction::Hide
                && hide.made.range.selection == made.range.selection
                && !hide.ended_for.iter().any(|(user, _)| *user == by)
        };
        let Some(at) = all.iter().rposition(is_its) else { continue };
        if planted::is(Planted::HideOutlivesEnd) {
            continue;
        }
        let hide = &all[at].made;
        let is_own = hide.is_of(by, made.stamp, hand_overs) && !is_above(hide.user);
        if is_above(by) || is_own {
            all.remove(at);
        } else {
            all[at].ended_for.push((by, made.stamp));
        }
    }
    all
}

/// A snapshot as if nobody had hidden anything: wiped entries stay hidden.
pub fn unhidden(snapshot: &Arc<Snapshot>) -> Arc<Snapshot> {
    let hides = snapshot.wipes.hides();
    if hides.is_empty() {
        return snapshot.clone();
    }
    Arc::new(Snapshot { wipes: snapshot.wipes.without(&hides), ..(**snapshot).clone() })
}

/// The same snapshot without any range: wiped entries that no purge has dropped are there again.
pub fn unwiped(snapshot: &Snapshot) -> Arc<Snapshot> {
    Arc::new(Snapshot { wipes: Arc::default(), ..snapshot.clone() })
}
