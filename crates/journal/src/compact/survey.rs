//! All entries of a snapshot, key by key: for those who look for what is left of fields.

use fieldstone_core::{ErrorKind, Result};

use super::walk::MetEntry;
use crate::entry_source::{EntryCursor, EntryHeap};
use crate::snapshot::Snapshot;

/// Takes a key and all entries under it.
pub type EachKey<'a> = dyn FnMut(&[u8], &[MetEntry]) -> Result<()> + 'a;

/// Calls `each` with every key and all entries under it, wherever they are. Returns the sources of which a part cannot be read.
pub fn survey(snapshot: &Snapshot, each: &mut EachKey<'_>) -> Result<Vec<usize>> {
    let (mut damaged, mut cursors) = (Vec::new(), Vec::with_capacity(snapshot.sources.len()));
    for (index, source) in snapshot.sources.iter().enumerate() {
        let mut cursor = EntryCursor::tolerant(source, index);
        if advanced(&mut cursor, &mut damaged)? {
            cursors.push(cursor);
        }
    }
    let mut heap = EntryHeap::new(cursors);
    let (mut key, mut entries) = (Vec::new(), Vec::new());
    while let Some(first) = heap.first() {
        key.clear();
        key.extend_from_slice(first.key());
        entries.clear();
        while let Some(cursor) = heap.first_mut().filter(|cursor| cursor.key() == key) {
            let value = cursor.value().to_vec();
            entries.push(MetEntry { source: cursor.index, place: cursor.place(), value, is_input: false });
            let more = advanced(cursor, &mut damaged)?;
            heap.settle(more);
        }
        each(&key, &entries)?;
    }
    damaged.sort_unstable();
    damaged.dedup();
    Ok(damaged)
}

/// Moves a cursor on; notes its source where something cannot be read.
fn advanced(cursor: &mut EntryCursor, damaged: &mut Vec<usize>) -> Result<bool> {
    let more = match cursor.advance() {
        Err(e) if e.kind() == ErrorKind::Corrupt => {
            damaged.push(cursor.index);
            return Ok(false);
        }
        more => more?,
    };
    if !cursor.take_damage().is_empty() {
        damaged.push(cursor.index);
    }
    Ok(more)
}
