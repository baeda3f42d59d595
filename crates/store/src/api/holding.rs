//! Holds: until one expires, nothing of the store goes.

use fieldstone_journal::Session;

/// How a hold is set.
#[derive(Debug, Clone, Default)]
pub struct Holding {
    /// Its name; empty for a new one. A hold of the same name, such as an earlier one of the same call, is replaced.
    pub name: String,
    /// How long it lasts, nanoseconds.
    pub lasts: u64,
    /// The reason, for those who wait for it.
    pub why: String,
    /// On whose behalf.
    pub session: Session,
}

/// A hold that is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HoldInfo {
    /// Its name.
    pub name: String,
    /// The reason; empty if none was given.
    pub why: String,
    /// The name of the user who set it.
    pub by: String,
    /// When, nanoseconds since 1970, by the clock of that user's host.
    pub since: i64,
    /// When it expires.
    pub until: i64,
    /// The version of the store for which it was set.
    pub version: String,
}
