//! Older versions of a store after a purge: keys that are absent there may have had a field (R31).

use fieldstone_core::schema::Selection;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::keys::{decode_names, decode_value};

use crate::snapshot::Snapshot;

/// Whether a request may select fields of the dataset with this encoded first level.
pub fn selects(selection: &Selection, dataset: &[u8]) -> Result<bool> {
    let mut rest = dataset;
    for name in decode_names(&mut rest)?.iter() {
        let value = decode_value(&mut rest)?;
        let mut lists = selection.listed_values().filter(|(keyword, _)| **keyword == *name);
        if lists.any(|(_, list)| list.position(&value).is_none()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a purge has dropped, since the version that a snapshot is cut back to, entries in datasets that a request may select.
pub fn is_purged(snapshot: &Snapshot, selection: &Selection) -> Result<bool> {
    snapshot.taken.is_purged(|dataset| selects(selection, dataset))
}

/// NotFound where a purge may have dropped fields that a request selects: an answer that sums it up cannot end with a part.
pub fn check_whole(snapshot: &Snapshot, selection: &Selection) -> Result<()> {
    match is_purged(snapshot, selection)? {
        true => Err(purged("a field that the request selects")),
        false => Ok(()),
    }
}

/// The same of one dataset.
pub fn is_dataset_purged(snapshot: &Snapshot, dataset: &[u8]) -> Result<bool> {
    snapshot.taken.is_purged(|purged| Ok(purged == dataset))
}

/// Why a field is not there.
pub fn purged(what: impl std::fmt::Display) -> Error {
    Code::VersionPurged
        .error(format!("{what} may have been there in this version of the store: it has been purged since"))
        .with_hint("read a later version")
}
