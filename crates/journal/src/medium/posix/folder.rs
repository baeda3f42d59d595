//! The names in a folder, read again only when they may have changed.

use fieldstone_core::env::{Env, FileKind};
use fieldstone_core::{Error, Result};

use crate::medium::Problem;

/// A folder that changed less than this long ago, nanoseconds, may change again without a new time: where the
/// file system's clock counts seconds, and where it counts finer.
const FRESH: u64 = 2_000_000_000;
const FRESH_FINE: u64 = 20_000_000;
/// How long a host may be shown the old names of a folder whose new time it sees already.
const STALE: u64 = 60_000_000_000;
/// How often a folder is listed again in the meantime.
const AGAIN: u64 = 1_000_000_000;

/// When a folder was last listed, and what it was then.
#[derive(Debug, Default)]
pub struct Listing {
    mtime: i64,
    /// When that time was first seen, and when the names were last read; never 0 once they were.
    seen_at: u64,
    listed_at: u64,
    stable: bool,
    /// Names of plain files, in order.
    pub names: Vec<String>,
    /// Names of links, pipes and other things that a store never makes.
    strange: Vec<String>,
}

impl Listing {
    /// Whether there was no folder at the last look.
    pub fn is_absent(&self) -> bool {
        self.seen_at == 0
    }

    /// Entries that have the name of a file of the store, and are not plain files.
    pub fn problems(&self, folder: &str, is_ours: impl Fn(&str) -> bool) -> Vec<Problem> {
        let ours = self.strange.iter().filter(|name| is_ours(name));
        ours.map(|name| Problem {
            file: format!("{folder}/{name}"),
            why: "it is not read: it is a link or a pipe, which no writer makes".to_owned(),
            damage: false,
            skipped: folder == "logs",
        })
        .collect()
    }
}

/// Lists a folder again if it changed, or may have changed within the grain of its clock; whether
/// its names did change.
pub fn list_if_changed(env: &Env, folder: &std::path::Path, listing: &mut Listing) -> Result<bool> {
    let mtime = match env.disk.stat_with_time(folder) {
        Ok((_, mtime)) => mtime,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            let had_names = !listing.names.is_empty();
            *listing = Listing::default();
            return Ok(had_names);
        }
        Err(e) => return Err(Error::io("look at", folder, e)),
    };
    let now = env.clock.monotonic();
    if mtime != listing.mtime || listing.seen_at == 0 {
        (listing.mtime, listing.seen_at, listing.stable) = (mtime, now.max(1), false);
    }
    if listing.stable {
        return Ok(false);
    }
    let age = now.saturating_sub(listing.seen_at);
    // A time with a part of a second comes of a clock that ticks at least a hundred times in one.
    let fresh = if mtime % 1_000_000_000 == 0 { FRESH } else { FRESH_FINE };
    if age > fresh && now.saturating_sub(listing.listed_at) < AGAIN {
        return Ok(false);
    }
    (listing.listed_at, listing.stable) = (now, age > STALE);
    let entries = match env.disk.list_dir(folder) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        outcome => outcome.map_err(|e| Error::io("list", folder, e))?,
    };
    let of_kind = |kind: FileKind| {
        let names = entries.iter().filter(move |(_, k)| *k == kind).map(|(name, _)| name.clone());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    };
    let (names, strange) = (of_kind(FileKind::File), of_kind(FileKind::Other));
    let moved = names != listing.names || strange != listing.strange;
    (listing.names, listing.strange) = (names, strange);
    Ok(moved)
}
