//! All entries that count under a key, with their places in the order of versions.

use fieldstone_core::Result;
use fieldstone_format::{Id, schema_extension};

use super::lookup::{all_under, parts_under};
use super::versions::Part;
use crate::api::{KeyEntry, TransactionState};
use crate::snapshot::Snapshot;

/// The entries under an encoded key, newest first; removals are among them.
pub fn entries(snapshot: &Snapshot, key: &[u8], own: Option<Id>) -> Result<Vec<KeyEntry>> {
    let Some(versions) = all_under(snapshot, key, own)? else { return Ok(Vec::new()) };
    let live = versions.live;
    let entry = |(place, part): (usize, Part)| KeyEntry {
        id: part.id(),
        order: part.order,
        attempt: part.attempt,
        generation: part.entry.generation,
        removal: part.entry.is_removal(),
        live: place < live,
        length: part.entry.length,
        piece: part.entry.array.and_then(|array| array.piece),
    };
    Ok(versions.parts.into_iter().enumerate().map(entry).collect())
}

/// The greatest stamp of a place in the order that a visible entry under an encoded key has: of removals that count or
/// not, of wiped entries, and of every attempt.
pub fn newest_place(snapshot: &Snapshot, key: &[u8]) -> Result<Option<u64>> {
    let parts = parts_under(snapshot, key)?;
    let place = |part: &Part| {
        let order = snapshot.order(&part.commit, None)?;
        Some(part.commit.moved.map_or(order, |moved| moved.order).0)
    };
    Ok(parts.iter().filter_map(place).max())
}

/// The transactions that somebody decided about, or flushed into, user by user.
pub fn transactions(snapshot: &Snapshot) -> Vec<TransactionState> {
    // Commits with records of the store carry a decision on a reserved id.
    let states = snapshot.transaction_states().filter(|(id, ..)| *id != schema_extension::FLAG);
    let decided = states.map(|(id, user, state)| TransactionState {
        id,
        user,
        kinds: state.kinds(),
        aborted: state.aborted(),
        ended: state.closed(),
        order: Some(state.order()),
        // The end of a transaction covers its commits, or hides them for ever.
        prepared: if state.closed() { Vec::new() } else { snapshot.prepared(id, user) },
    });
    let mut all: Vec<TransactionState> = decided.collect();
    for (id, prepared) in snapshot.all_prepared() {
        let user = prepared.user;
        if snapshot.transaction_state(id, user).is_none()
            && !all.iter().any(|one| (one.id, one.user) == (id, user))
        {
            let (kinds, aborted, ended, order) = Default::default();
            all.push(TransactionState {
                id,
                user,
                kinds,
                aborted,
                ended,
                order,
                prepared: snapshot.prepared(id, user),
            });
        }
    }
    // The mark of records of the store is nobody's transaction.
    all.retain(|one| one.id != schema_extension::FLAG);
    all.sort_by_key(|one| (one.id, one.user));
    all
}
