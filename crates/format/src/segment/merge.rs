//! Merging segments of one log into one.

use std::cmp::Ordering;

use fieldstone_core::Result;

use super::meta::CommitInfo;
use super::{BlockCursor, SegmentBuilder, SegmentMeta, SegmentRef};
use crate::bytes::{Cursor, Put};
use crate::origin::{EntryOrigin, OriginRank};
use crate::{FIRST_VERSION, crc};
use fieldstone_core::{Code, Error};

/// A whole segment in memory.
#[derive(Debug)]
struct MergeSource<'a> {
    data: &'a [u8],
    meta: SegmentMeta,
    next_block: usize,
    cursor: Option<BlockCursor<&'a [u8]>>,
    /// Index of each of the segment's commits in the merged table.
    commits: Vec<u64>,
}

impl<'a> MergeSource<'a> {
    fn advance(&mut self) -> Result<bool> {
        loop {
            if let Some(cursor) = &mut self.cursor
                && cursor.advance()?
            {
                return Ok(true);
            }
            let Some(block) = self.meta.directory.get(self.next_block) else {
                self.cursor = None;
                return Ok(false);
            };
            let bytes = usize::try_from(block.offset)
                .ok()
                .zip(usize::try_from(block.length).ok())
                .and_then(|(offset, length)| self.data.get(offset..offset.checked_add(length)?))
                .filter(|bytes| crc(bytes) == block.crc)
                .ok_or_else(|| Code::Checksum.error("an index block does not match its checksum"))?;
            self.next_block += 1;
            self.cursor = Some(BlockCursor::new(bytes));
        }
    }

    fn key(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], |c| c.key())
    }
}

/// The origin of a commit's moved entries.
fn origin_of(meta: &SegmentMeta, commit: &CommitInfo) -> Option<EntryOrigin> {
    meta.origins.get(commit.origin? as usize).cloned()
}

/// The place of a row in the commit table: rows with an origin come before the one without.
fn place_of((commit, origin): &(CommitInfo, Option<EntryOrigin>)) -> (u64, bool, Option<OriginRank>) {
    (commit.sequence, origin.is_none(), origin.as_ref().map(EntryOrigin::rank))
}

/// Merges the commit tables, and notes in each source where its commits went.
fn merge_tables(
    mut rows: Vec<(CommitInfo, Option<EntryOrigin>)>,
    sources: &mut [MergeSource<'_>],
) -> (Vec<CommitInfo>, Vec<EntryOrigin>) {
    rows.sort_by_key(place_of);
    rows.dedup_by(|a, b| place_of(a) == place_of(b));
    for source in sources {
        let index = |commit: &CommitInfo| {
            let row = (*commit, origin_of(&source.meta, commit));
            rows.partition_point(|known| place_of(known) < place_of(&row)) as u64
        };
        source.commits = source.meta.commits.iter().map(index).collect();
    }
    let (mut commits, mut origins) = (Vec::with_capacity(rows.len()), Vec::new());
    for (commit, origin) in rows {
        let index = origin.as_ref().map(|_| origins.len() as u32);
        commits.push(CommitInfo { origin: index, ..commit });
        origins.extend(origin);
    }
    (commits, origins)
}

/// Merges whole segments of one log, oldest first, into one with all their entries. Returns the bytes and the
/// reference for offset 0 of file 0.
pub fn merge_segments(segments: &[(&[u8], SegmentRef)]) -> Result<(Vec<u8>, SegmentRef)> {
    let mut sources = Vec::with_capacity(segments.len());
    let mut rows: Vec<(CommitInfo, Option<EntryOrigin>)> = Vec::new();
    for (data, segment) in segments {
        let meta_len = usize::try_from(segment.meta_len).unwrap_or(usize::MAX);
        let (meta, between) = data
            .get(..meta_len)
            .zip((data.len() as u64).checked_sub(segment.meta_len.saturating_mul(2)))
            .ok_or_else(|| Error::corrupt("a segment is shorter than its meta parts"))?;
        let meta = SegmentMeta::decode(meta, segment.meta_crc, between)?;
        rows.extend(meta.commits.iter().map(|commit| (*commit, origin_of(&meta, commit))));
        sources.push(MergeSource { data, meta, next_block: 0, cursor: None, commits: Vec::new() });
    }
    let (commits, origins) = merge_tables(rows, &mut sources);
    // Entries of the newest source may need its version.
    let version = sources.iter().map(|source| u32::from(source.meta.version)).max();
    let mut builder = SegmentBuilder::of(version.unwrap_or(FIRST_VERSION));
    let mut live = Vec::new();
    for mut source in sources {
        if source.advance()? {
            live.push(source);
        }
    }
    let mut value = Vec::new();
    while !live.is_empty() {
        // Few segments are merged at a time, so a linear scan of their heads beats a heap. Of equal keys the
        // youngest segment (the last one) comes first, because entries are sorted newest first.
        let mut best = 0;
        for i in 1..live.len() {
            if live[i].key().cmp(live[best].key()) != Ordering::Greater {
                best = i;
            }
        }
        let source = &mut live[best];
        if let Some(cursor) = &source.cursor {
            // An entry begins with the index of its commit, the only part that a merge changes.
            let mut head = Cursor::new(cursor.value());
            let index = head.size()?;
            let commit =
                *source.commits.get(index).ok_or_else(|| head.fail("an entry names a missing commit"))?;
            let rest = &cursor.value()[head.position()..];
            head.varint()?;
            head.u8()?;
            let length = head.varint()?;
            value.clear();
            value.put_varint(commit);
            value.extend_from_slice(rest);
            builder.push(cursor.key(), &value, commit, length)?;
        }
        if !source.advance()? {
            live.remove(best);
        }
    }
    builder.finish_with(
        commits,
        origins,
        segments.iter().fold(0, |sum: u64, (_, segment)| sum.saturating_add(segment.weight)),
    )
}
