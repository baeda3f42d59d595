//! The facts by which a store of several stores merges the answers of its lanes: plain data.

use std::collections::BTreeMap;

use fieldstone_core::geometry::IndexBox;
use fieldstone_format::Id;
use fieldstone_format::entry::EntryId;

/// A place in the order of all versions: stamp, then log. The greater one is newer.
pub type VersionOrder = (u64, Id);

/// One entry that counts under a key: a whole value, a piece, the beginning of a generation, or a removal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry {
    /// Its name within the store.
    pub id: EntryId,
    /// Its place among all versions; of a prepared or decided transaction the transaction's.
    pub order: VersionOrder,
    /// When the attempt it is of began; `None` where its writer named none.
    pub attempt: Option<VersionOrder>,
    /// Whether it begins a generation: what is older is hidden.
    pub generation: bool,
    /// Whether it removes the field.
    pub removal: bool,
    /// Whether it is of the generation that is visible.
    pub live: bool,
    /// Raw bytes of the field, or of the piece.
    pub length: u64,
    /// The box of a piece; `None` for whole values.
    pub piece: Option<IndexBox>,
}

/// The decision of one user about a transaction, or the parts of it that wait for one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionState {
    /// The transaction.
    pub id: Id,
    /// The user whose logs it concerns.
    pub user: u32,
    /// Kinds of content that are visible, as bits.
    pub kinds: u32,
    /// Whether it was aborted.
    pub aborted: bool,
    /// Whether it has ended: later flushes into it are never visible.
    pub ended: bool,
    /// The place of the decision in force; `None` before the first.
    pub order: Option<VersionOrder>,
    /// Logs with prepared commits, each with the last one's sequence.
    pub prepared: Vec<(Id, u64)>,
}

/// The settings of a store by their names, such as `format` and `exist`.
pub type StoreSettings = BTreeMap<String, String>;
