//! Holds (takeovers.md, 6.4): until one expires, a purge drops nothing, whoever set it.

use std::collections::HashMap;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_format::log::SideRecord;
use fieldstone_format::store_record::{self, Hold, StoreRecord};

use super::{Order, Snapshot};

/// A hold in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreHold {
    /// The place of its commit.
    pub order: Order,
    /// When, nanoseconds since 1970, by its writer's clock.
    pub time: i64,
    /// The user whose log it is.
    pub user: u32,
    /// The hold itself.
    pub hold: Hold,
}

impl StoreHold {
    /// The hold in a side record of a commit; `None` for a record of another kind.
    pub fn decode(order: Order, (user, time): (u32, i64), record: &SideRecord) -> Result<Option<StoreHold>> {
        // Other records of the store are their readers' to decode.
        if record.kind != store_record::HOLD {
            return Ok(None);
        }
        Ok(match store_record::decode(record)? {
            Some(StoreRecord::Hold(hold)) => Some(StoreHold { order, time, user, hold }),
            _ => None,
        })
    }
}

/// The holds that stand at a moment.
pub fn standing_holds(snapshot: &Snapshot, now: i64) -> impl Iterator<Item = Arc<StoreHold>> {
    newest_holds(snapshot).into_iter().filter(move |hold| hold.hold.expires > now)
}

/// The hold that stands longest at a moment, if one stands.
pub fn longest_hold(snapshot: &Snapshot, now: i64) -> Option<Arc<StoreHold>> {
    standing_holds(snapshot, now).max_by(|a, b| (a.hold.expires, a.order).cmp(&(b.hold.expires, b.order)))
}

/// The newest hold of each name.
pub fn newest_holds(snapshot: &Snapshot) -> Vec<Arc<StoreHold>> {
    let mut newest: HashMap<&str, &Arc<StoreHold>> = HashMap::new();
    for hold in snapshot.logs.iter().flat_map(|log| &log.holds).chain(&snapshot.taken.holds) {
        let known = newest.entry(&hold.hold.name).or_insert(hold);
        if hold.order > known.order {
            *known = hold;
        }
    }
    newest.into_values().cloned().collect()
}
