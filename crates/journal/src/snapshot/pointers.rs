//! Pointers (takeovers.md, 6.5): other stores name entries of this one, which a purge leaves (R34).

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::planted::{self, Planted};
use fieldstone_format::keys::level_ends;
use fieldstone_format::log::SideRecord;
use fieldstone_format::store_record::{self, Pointer, StoreRecord};

use super::overlays::all_values;
use super::ranges::{Item, ROOT, items, selects};
use super::{Order, Snapshot, owner_then};

/// A pointer in a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorePointer {
    /// The place of its commit.
    pub order: Order,
    /// When, nanoseconds since 1970, by its writer's clock.
    pub time: i64,
    /// The user whose log it is.
    pub user: u32,
    /// The pointer itself.
    pub pointer: Pointer,
}

impl StorePointer {
    /// The pointer in a side record of a commit; `None` for a record of another kind.
    pub fn decode(
        order: Order,
        (user, time): (u32, i64),
        record: &SideRecord,
    ) -> Result<Option<StorePointer>> {
        // Other records of the store are their readers' to decode.
        if record.kind != store_record::POINTER {
            return Ok(None);
        }
        Ok(match store_record::decode(record)? {
            Some(StoreRecord::Pointer(pointer)) => Some(StorePointer { order, time, user, pointer }),
            _ => None,
        })
    }

    fn is_of(&self, other: &StorePointer) -> bool {
        self.pointer.store == other.pointer.store && self.pointer.selection == other.pointer.selection
    }
}

/// The pointers that have not ended, oldest first: of those of one store with one selection the newest counts.
pub fn standing_pointers(snapshot: &Snapshot) -> Vec<Arc<StorePointer>> {
    let made = snapshot.logs.iter().flat_map(|log| &log.pointers).chain(&snapshot.taken.pointers);
    let mut made: Vec<&Arc<StorePointer>> = made.collect();
    made.sort_by_key(|pointer| pointer.order);
    let mut left: Vec<Arc<StorePointer>> = Vec::new();
    for pointer in made {
        left.retain(|known| !known.is_of(pointer));
        if !pointer.pointer.version.is_empty() {
            left.push(pointer.clone());
        }
    }
    left
}

/// The keys that pointers select.
#[derive(Debug, Default)]
pub struct PointedKeys(Vec<(Arc<StorePointer>, Vec<Item>)>);

impl PointedKeys {
    /// Those of a snapshot.
    pub fn of(snapshot: &Snapshot) -> PointedKeys {
        let with_items = |pointer: Arc<StorePointer>| {
            let items = items(&pointer.pointer.selection);
            (pointer, items)
        };
        PointedKeys(standing_pointers(snapshot).into_iter().map(with_items).collect())
    }

    /// Whether a pointer that counts in its dataset selects an encoded key.
    pub fn have(&self, key: &[u8], snapshot: &Snapshot) -> Result<bool> {
        if self.0.is_empty() || planted::is(Planted::PointerIgnored) {
            return Ok(false);
        }
        let (levels, dataset) = (all_values(key)?, &key[..level_ends(key)?[0]]);
        let counts = |pointer: &StorePointer| {
            let by = pointer.user;
            by == ROOT
                || snapshot.folder_owner.is_none_or(|owner| owner == by)
                || Some(by) == owner_then(snapshot, dataset, pointer.order.0)
        };
        Ok(self.0.iter().any(|(pointer, items)| selects(items, &levels) && counts(pointer)))
    }
}
