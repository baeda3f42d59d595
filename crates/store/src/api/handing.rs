//! Hand-overs: what belongs to a user belongs to another one from now on.

use fieldstone_journal::Session;

/// A hand-over that is made.
#[derive(Debug, Clone, Default)]
pub struct HandingOver {
    /// The user who owns the datasets and runs, by name or number.
    pub from: String,
    /// The user who is to own them.
    pub to: String,
    /// On whose behalf.
    pub session: Session,
}

/// The result of a hand-over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOverReport {
    /// The name of the user who owned them.
    pub from: String,
    /// The name of the user who owns them.
    pub to: String,
    /// How many datasets with fields these are.
    pub datasets: u64,
}

/// A hand-over on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandOverInfo {
    /// The name of the user who owned what was handed over.
    pub from: String,
    /// The name of the user to whom it was.
    pub to: String,
    /// The name of the user who recorded it.
    pub by: String,
    /// When, nanoseconds since 1970, by the clock of that user's host.
    pub since: i64,
}
