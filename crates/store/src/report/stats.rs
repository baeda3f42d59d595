//! Counting.

use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::schema::Selection;
use fieldstone_format::keys::level_ends;

use crate::api::Stats;
use crate::files::Files;
use crate::read::{Scan, Source};
use crate::snapshot::Snapshot;

/// Counts what a request selects, and the files of the whole store.
pub fn stats(files: &Arc<Files>, snapshot: &Arc<Snapshot>, selection: Selection) -> Result<Stats> {
    let mut stats = Stats {
        writers: (snapshot.logs.len() + snapshot.taken.heads().len()) as u64,
        segments: snapshot.sources.len() as u64,
        ..Stats::default()
    };
    let mut last: (Vec<u8>, Vec<u8>) = Default::default();
    let mut scan = Scan::new(snapshot.clone(), selection, None)?.with_removed(true).lenient(true);
    while let Some(versions) = scan.next_key()? {
        stats.masked += versions.hidden() as u64;
        if versions.live == 0 {
            continue;
        }
        let ends = level_ends(&versions.key)?;
        let (dataset, index) = (&versions.key[..ends[0]], &versions.key[..ends[1]]);
        if last.0 != dataset {
            stats.datasets += 1;
            last.0 = dataset.to_vec();
        }
        if last.1 != index {
            stats.indexes += 1;
            last.1 = index.to_vec();
        }
        stats.fields += 1;
        stats.bytes = stats.bytes.saturating_add(versions.nbytes().unwrap_or(0));
        for part in versions.live() {
            stats.stored_bytes += Source::new(files, part, &versions.key).stored_bytes()?;
        }
    }
    (stats.files, stats.file_bytes) = files.medium().inspect().size()?;
    Ok(stats)
}
