//! Which version of the format a store is of (J-34): what its owner pinned, else what its logs have.
//!
//! A store stays of the version that it was made with until its owner upgrades it, so that releases of several hosts
//! write one store, and nobody else takes that from them.

use std::sync::Arc;

use fieldstone_format::{FORMAT_VERSION, setting};

use super::{SnapshotLog, StoreSetting};

/// The version of the format that a store is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreFormat {
    /// The version that its logs are written in.
    pub version: u32,
    /// Its pin; none where the version is that of its logs.
    pub pin: Option<Pin>,
    /// Whether there is no log yet, and nobody has pinned it: whoever commits first decides.
    pub is_open: bool,
}

/// By whom a version of the format was pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pin {
    /// The user.
    pub user: u32,
    /// When, nanoseconds since 1970, by his clock.
    pub time: i64,
}

impl StoreFormat {
    /// That of a store without commits.
    pub const NEW: StoreFormat = StoreFormat { version: FORMAT_VERSION, pin: None, is_open: true };

    /// That of a store with these logs, given whether it has takeovers, and the settings that count, the last one of each
    /// name last.
    pub fn find(
        logs: &[Arc<SnapshotLog>],
        has_takeovers: bool,
        settings: &[&Arc<StoreSetting>],
    ) -> StoreFormat {
        let pin = settings.iter().rev().find(|set| set.setting.name == setting::FORMAT);
        // Takeovers are of version 2 and later.
        let of_takeovers = has_takeovers.then_some(FORMAT_VERSION);
        let highest = logs.iter().map(|log| log.header.version).max().max(of_takeovers);
        match (pin, highest) {
            (Some(set), _) => StoreFormat {
                // A text that is none of ours is a later release's.
                version: set.setting.value.parse().unwrap_or(u32::MAX),
                pin: Some(Pin { user: set.user, time: set.time }),
                is_open: false,
            },
            (None, Some(version)) => StoreFormat { version, pin: None, is_open: false },
            (None, None) => StoreFormat::NEW,
        }
    }
}
