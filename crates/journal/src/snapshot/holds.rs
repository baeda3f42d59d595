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
    /// The hold itself.
    pub hold: Hold,
}

impl StoreHold {
    /// The hold in a side record of a commit; `None` for a record of another kind.
    pub fn decode(order: Order, record: &SideRecord) -> Result<Option<StoreHold>> {
        // Other records of the store are their readers' to decode.
        if record.kind != store_record::HOLD {
            return Ok(None);
        }
        Ok(match store_record::decode(record)? {
            Some(StoreRecord::Hold(hold)) => Some(StoreHold { order, hold }),
            _ => None,
        })
    }
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
