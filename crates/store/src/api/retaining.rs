//! Rules of retention: which fields a store keeps for how long, and how many versions of them.

use std::fmt;

use fieldstone_journal::Session;

/// How a rule is made, or ended.
#[derive(Debug, Clone, Default)]
pub struct Retaining {
    /// A query of the catalog: the rule is about the fields under its hits, and has no request.
    pub query: Option<String>,
    /// The store to which fields move in place of being wiped.
    pub to: Option<String>,
    /// Fields go that are older than this number of nanoseconds.
    pub older_than: Option<u64>,
    /// Versions of a field that stay, the visible one among them.
    pub versions: Option<u64>,
    /// Whether the rule of this request, or query, ends.
    pub drop: bool,
    /// Whether a request that names nothing means everything.
    pub all: bool,
    /// On whose behalf.
    pub session: Session,
}

/// A rule of retention that is in force.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RetentionRule {
    /// The request, which is also the rule's name; empty for everything, and for a rule of a query.
    pub request: String,
    /// The query of the catalog under whose hits the fields are.
    pub query: Option<String>,
    /// The store to which fields move; else they are wiped.
    pub to: Option<String>,
    /// Fields go that are older than this number of nanoseconds.
    pub older_than: Option<u64>,
    /// Versions of a field that stay, the visible one among them.
    pub versions: Option<u64>,
    /// The user who made it.
    pub owner: String,
    /// When it was made, nanoseconds since 1970, by that user's clock.
    pub since: i64,
}

impl fmt::Display for RetentionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.query, &self.request[..]) {
            (Some(query), _) => write!(f, "fields under {query}:")?,
            (None, "") => f.write_str("everything:")?,
            (None, request) => write!(f, "{request}:")?,
        }
        if let Some(to) = &self.to {
            write!(f, " moved to {to}")?;
        }
        if let Some(age) = self.older_than {
            let goes = if self.to.is_some() { "" } else { " wiped" };
            write!(f, "{goes} when older than {} s", age / 1_000_000_000)?;
        }
        let comma = if self.older_than.is_some() && self.versions.is_some() { "," } else { "" };
        match self.versions {
            None => {}
            Some(1) => write!(f, "{comma} 1 version stays")?,
            Some(versions) => write!(f, "{comma} {versions} versions stay")?,
        }
        write!(f, "; by {}", self.owner)
    }
}
