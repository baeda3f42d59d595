//! Counting: of a selection as a whole, and summed up by owner, dataset, writer or value.

use std::collections::BTreeMap;
use std::sync::Arc;

use fieldstone_core::env::Identity;
use fieldstone_core::schema::Selection;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::keys::{decode_value, encode_name, find_value, level_ends, level_text};

use crate::api::{Stats, StatsBy, StatsRow};
use crate::files::Files;
use crate::read::{Part, Scan, Source, check_whole};
use crate::snapshot::{Snapshot, unwiped};

type BytesByGroup = BTreeMap<Option<Vec<u8>>, u64>;

/// Counts what a request selects, and the files of the whole store.
pub fn stats(files: &Arc<Files>, snapshot: &Arc<Snapshot>, selection: Selection) -> Result<Stats> {
    check_whole(snapshot, &selection)?;
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

/// Sums up what a request selects.
pub fn stats_by(
    files: &Arc<Files>,
    snapshot: &Arc<Snapshot>,
    selection: Selection,
    by: &StatsBy,
    identity: &dyn Identity,
) -> Result<Vec<StatsRow>> {
    check_whole(snapshot, &selection)?;
    let group = StatsGroup::new(by);
    // By the bytes of the group, which sort as its values do.
    let mut rows: BTreeMap<Option<Vec<u8>>, StatsRow> = BTreeMap::new();
    let mut scan = Scan::new(snapshot.clone(), selection.clone(), None)?.with_removed(true).lenient(true);
    while let Some(versions) = scan.next_key()? {
        let parts = versions.parts.iter().enumerate();
        for (at, part) in parts.filter(|(_, part)| !part.entry.is_removal()) {
            let row = rows.entry(group.of(&versions.key, part, snapshot)?).or_default();
            let stored = Source::new(files, part, &versions.key).stored_bytes()?;
            if at >= versions.live {
                row.dead = row.dead.saturating_add(stored);
                continue;
            }
            row.stored = row.stored.saturating_add(stored);
            if at == 0 {
                row.fields += 1;
                row.nbytes = row.nbytes.saturating_add(versions.nbytes().unwrap_or(0));
            }
        }
    }
    // Without a hide, what this walk met is all that wipes leave.
    let is_all = snapshot.wipes.hides().is_empty();
    let met = is_all.then(|| {
        let bytes = rows.iter().map(|(group, row)| (group.clone(), row.stored.saturating_add(row.dead)));
        bytes.collect()
    });
    for (group, bytes) in wiped_bytes(files, snapshot, &selection, (&group, met))? {
        let row = rows.entry(group).or_default();
        row.dead = row.dead.saturating_add(bytes);
    }
    let named = |(bytes, row): (Option<Vec<u8>>, StatsRow)| {
        Ok(StatsRow { name: bytes.map(|bytes| group.name(&bytes, identity)).transpose()?, ..row })
    };
    let mut rows = rows.into_iter().map(named).collect::<Result<Vec<StatsRow>>>()?;
    if *by == StatsBy::Owner {
        rows.sort_by(|a, b| a.name.cmp(&b.name));
    }
    Ok(rows)
}

/// The bytes that wiped entries take until a purge, by group: those that a walk without any range meets, without those that
/// wipes leave, which `met` are if they are known. Hidden entries are not dead.
fn wiped_bytes(
    files: &Arc<Files>,
    snapshot: &Arc<Snapshot>,
    selection: &Selection,
    (group, met): (&StatsGroup, Option<BytesByGroup>),
) -> Result<BytesByGroup> {
    if snapshot.wipes.is_empty() {
        return Ok(BTreeMap::new());
    }
    let bytes_in = |scan: Scan| {
        let (mut bytes, mut scan) = (BytesByGroup::new(), scan.with_removed(true).lenient(true));
        while let Some(versions) = scan.next_key()? {
            for part in versions.parts.iter().filter(|part| !part.entry.is_removal()) {
                let stored = Source::new(files, part, &versions.key).stored_bytes()?;
                let sum: &mut u64 = bytes.entry(group.of(&versions.key, part, snapshot)?).or_default();
                *sum = sum.saturating_add(stored);
            }
        }
        Ok::<_, Error>(bytes)
    };
    let mut wiped = bytes_in(Scan::new(unwiped(snapshot), selection.clone(), None)?)?;
    let left = match met {
        Some(met) => met,
        None => bytes_in(Scan::unhidden(snapshot, selection.clone())?)?,
    };
    for (group, left) in left {
        if let Some(bytes) = wiped.get_mut(&group) {
            *bytes = bytes.saturating_sub(left);
        }
    }
    wiped.retain(|_, bytes| *bytes > 0);
    Ok(wiped)
}

/// By which entries are summed up.
enum StatsGroup {
    Owner,
    Dataset,
    Writer,
    /// An encoded keyword.
    Keyword(Vec<u8>),
}

impl StatsGroup {
    fn new(by: &StatsBy) -> StatsGroup {
        match by {
            StatsBy::Owner => StatsGroup::Owner,
            StatsBy::Dataset => StatsGroup::Dataset,
            StatsBy::Writer => StatsGroup::Writer,
            StatsBy::Keyword(name) => StatsGroup::Keyword(encode_name(name)),
        }
    }

    /// The bytes of the group that an entry is in.
    fn of(&self, key: &[u8], part: &Part, snapshot: &Snapshot) -> Result<Option<Vec<u8>>> {
        Ok(match self {
            StatsGroup::Owner => {
                let owner = snapshot.hand_overs.owner(part.commit.user, part.commit.stamp);
                Some(owner.to_be_bytes().to_vec())
            }
            StatsGroup::Dataset => Some(key[..level_ends(key)?[0]].to_vec()),
            StatsGroup::Writer => Some(part.commit.writer.0.to_vec()),
            StatsGroup::Keyword(name) => find_value(key, name)?.map(<[u8]>::to_vec),
        })
    }

    /// The name of a group.
    fn name(&self, bytes: &[u8], identity: &dyn Identity) -> Result<String> {
        let short = || Error::internal("a row of statistics has too few bytes");
        Ok(match self {
            StatsGroup::Owner => {
                identity.user_name(u32::from_be_bytes(bytes.try_into().map_err(|_| short())?))
            }
            StatsGroup::Dataset => level_text(bytes),
            StatsGroup::Writer => Id(bytes.try_into().map_err(|_| short())?).to_string(),
            StatsGroup::Keyword(_) => decode_value(&mut &*bytes)?.to_string(),
        })
    }
}
