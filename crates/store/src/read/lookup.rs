//! Finding one key: filters rule most segments out, one block of the others is searched.

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::{key_text, level_ends};
use fieldstone_format::segment::key_hash;

use fieldstone_journal::entry_source::EntryCursor;

use super::purged::{is_dataset_purged, purged};
use super::versions::{KeyVersions, LastCommit, Part};
use crate::files::Files;
use crate::snapshot::{Snapshot, entry_counts};

/// The field under an encoded key; `None` where there is none, or a removal counts.
pub fn lookup(snapshot: &Snapshot, key: &[u8], own: Option<Id>) -> Result<Option<KeyVersions>> {
    Ok(all_under(snapshot, key, own)?.filter(|versions| versions.live > 0))
}

/// The same; where its files are gone because takeovers moved their commits, in the snapshot that has them now, which takes the
/// place of the one before.
pub fn lookup_moved(
    files: &Files,
    snapshot: &mut Arc<Snapshot>,
    key: &[u8],
    own: Option<Id>,
) -> Result<Option<KeyVersions>> {
    let gone = match lookup(snapshot, key, own) {
        Err(gone) if gone.code() == Code::DataGone => gone,
        found => return found,
    };
    let Some(again) = files.again(snapshot)? else { return Err(gone) };
    *snapshot = again;
    match lookup(snapshot, key, own)? {
        None if is_dataset_purged(snapshot, &key[..level_ends(key)?[0]])? => Err(purged(key_text(key))),
        found => Ok(found),
    }
}

/// The same with removals: `None` where nothing counts.
pub fn all_under(snapshot: &Snapshot, key: &[u8], own: Option<Id>) -> Result<Option<KeyVersions>> {
    let hash = key_hash(key);
    let dataset = &key[..level_ends(key)?[0]];
    let wipes = snapshot.wipes.of_key(key)?;
    let (mut parts, mut last) = (Vec::new(), LastCommit::default());
    for (index, source) in snapshot.sources.iter().enumerate() {
        // Logs that do not count are not read: damage in them is not reported here.
        if !snapshot.owners.may_count(dataset, snapshot.user_of_source(index))
            || !source.may_contain(key, hash)?
            || wipes.levels_hidden(snapshot, index).is_some()
        {
            continue;
        }
        let mut cursor = EntryCursor::new(source, index);
        let mut more = cursor.seek(key)? && cursor.key() == key;
        while more {
            let named = |e: Error| e.context(key_text(key));
            if entry_counts(snapshot, dataset, &cursor).map_err(named)? {
                let place = (index, cursor.place());
                KeyVersions::collect(snapshot, place, cursor.value(), (own, &wipes), &mut last, &mut parts)
                    .map_err(named)?;
            }
            more = cursor.advance_under(key)?;
        }
    }
    Ok(KeyVersions::new(key, parts))
}

/// All entries under an encoded key, visible or not, in no order.
pub fn parts_under(snapshot: &Snapshot, key: &[u8]) -> Result<Vec<Part>> {
    let hash = key_hash(key);
    let mut parts = Vec::new();
    for (index, source) in snapshot.sources.iter().enumerate() {
        if !source.may_contain(key, hash)? {
            continue;
        }
        let mut cursor = EntryCursor::new(source, index);
        let mut more = cursor.seek(key)? && cursor.key() == key;
        while more {
            parts.push(Part::decode(snapshot, index, cursor.place(), cursor.value())?);
            more = cursor.advance_under(key)?;
        }
    }
    Ok(parts)
}
