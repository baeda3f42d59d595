//! Numbers of fields of whole datasets, where a takeover says that each entry in it is a field of its own: nothing is walked.

use fieldstone_core::Result;
use fieldstone_core::schema::Selection;
use fieldstone_format::keys::decode_names;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_format::takeover::rows::DatasetRow;
use fieldstone_journal::entry_source::EntrySource;

use crate::snapshot::Snapshot;

/// The fields of a dataset, by its encoded first level, and their raw bytes, where a selection that selects one of its keys
/// selects all of them; `None` where a walk must count them.
pub fn all_of_dataset(
    snapshot: &Snapshot,
    selection: &Selection,
    dataset: &[u8],
) -> Result<Option<(u64, u64)>> {
    // Lost commits, and losses that were given up, may be of any dataset; a dataset that was handed over counts entry by entry.
    if !snapshot.losses.is_empty() || snapshot.accepted.has_entries() || !snapshot.hand_overs.is_empty() {
        return Ok(None);
    }
    if !selection.demands_only(&decode_names(&mut &*dataset)?) || snapshot.wipes.may_select_in(dataset)? {
        return Ok(None);
    }
    let mut counted = None;
    for (index, source) in snapshot.sources.iter().enumerate() {
        let row = match source {
            EntrySource::Takeover(takeover) => match takeover.value(TakeoverTable::Datasets, dataset)? {
                Some(row) => Some(DatasetRow::decode(&row)?).filter(|row| row.entries > 0),
                None => continue,
            },
            EntrySource::Segment(..) if source.has_prefix(dataset) => return Ok(None),
            EntrySource::Segment(..) => continue,
        };
        let Some(row) = row else { continue };
        let counts = row.single && snapshot.owners.may_count(dataset, snapshot.user_of_source(index));
        if !counts || counted.is_some() {
            return Ok(None);
        }
        counted = Some((row.entries, row.bytes));
    }
    Ok(counted)
}
