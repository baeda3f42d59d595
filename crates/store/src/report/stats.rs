//! Counting.

use std::sync::Arc;

use fieldstone_core::env::{Env, FileKind};
use fieldstone_core::schema::Selection;
use fieldstone_core::{Error, Result};
use fieldstone_format::keys::level_ends;

use crate::api::Stats;
use crate::files::Files;
use crate::read::{Scan, Source};
use crate::snapshot::Snapshot;

/// Counts what a request selects, and the files of the whole store.
pub fn stats(env: &Env, files: &Arc<Files>, snapshot: &Arc<Snapshot>, selection: Selection) -> Result<Stats> {
    let mut stats =
        Stats { writers: snapshot.logs.len() as u64, runs: snapshot.runs.len() as u64, ..Stats::default() };
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
    let layout = files.layout();
    for folder in [layout.root().to_owned(), layout.logs(), layout.data(), layout.boards()] {
        let names = match env.disk.list_dir(&folder) {
            Ok(names) => names,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(Error::io("list", &folder, e)),
        };
        for (name, kind) in names {
            if kind == FileKind::File
                && let Ok(stat) = env.disk.stat(&folder.join(&name))
            {
                stats.files += 1;
                stats.file_bytes += stat.len;
            }
        }
    }
    Ok(stats)
}
