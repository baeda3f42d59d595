//! Fields of one store as entries of another one, without a copy.

use fieldstone_format::Id;
use fieldstone_journal::Session;

/// A field that another store is to name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedField {
    /// Its key: keywords with their values.
    pub key: Vec<(String, String)>,
    /// Its encoded key.
    pub encoded: Vec<u8>,
    /// The entries of its visible generation, oldest first, as index entries that name this store.
    pub parts: Vec<Vec<u8>>,
}

/// A store that names, or named, entries of this one.
#[derive(Debug, Clone)]
pub struct Pointing {
    /// The other store.
    pub store: Id,
    /// The place of that store.
    pub url: String,
    /// Whether it names them; otherwise it does so no more.
    pub names: bool,
    /// On whose behalf.
    pub session: Session,
}

/// A store that names entries of this one, which purges leave for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PointedFields {
    /// The fields, as the request that selects them.
    pub request: String,
    /// The id of the other store.
    pub store: Id,
    /// The place of that store.
    pub url: String,
    /// The name of the user who recorded it.
    pub by: String,
    /// When, nanoseconds since 1970, by the clock of that user's host.
    pub since: i64,
}
