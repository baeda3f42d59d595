//! Hides of datasets and indexes.

use fieldstone_journal::Session;

/// Whether fields are hidden, or shown again.
#[derive(Debug, Clone)]
pub struct Hiding {
    /// Whether they are hidden; otherwise they are shown again.
    pub hides: bool,
    /// On whose behalf.
    pub session: Session,
}

/// A hide that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HiddenFields {
    /// The datasets or indexes, as the request that selects them: `run=a/b`.
    pub request: String,
    /// The name of the user who hid them.
    pub by: String,
    /// When, nanoseconds since 1970, by the clock of that user's host.
    pub since: i64,
}
