//! Overlays: fields that appear under other values, too.

use fieldstone_journal::Session;

/// An overlay that is made, or ended.
#[derive(Debug, Clone)]
pub struct Overlaying {
    /// Keywords, each with the value under which fields appear.
    pub values: Vec<(String, String)>,
    /// Whether it is made; otherwise it ends.
    pub shows: bool,
    /// On whose behalf.
    pub session: Session,
}

/// An overlay that is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OverlaidFields {
    /// The fields, as the request that selects them by their own keys: `run=a`.
    pub request: String,
    /// The values under which they appear: `run=b`.
    pub values: String,
    /// The name of the user who made it.
    pub by: String,
    /// When, nanoseconds since 1970, by the clock of that user's host.
    pub since: i64,
}
