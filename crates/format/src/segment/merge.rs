//! Merging segments of one log into one.

use std::cmp::Ordering;

use fieldstone_core::Result;

use super::meta::CommitInfo;
use super::{BlockCursor, SegmentBuilder, SegmentMeta, SegmentRef};
use crate::bytes::{Cursor, Put};
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

/// Merges whole segments of one log, oldest first, into one with all their entries. Returns the bytes and the
/// reference for offset 0 of file 0.
pub fn merge_segments(segments: &[(&[u8], SegmentRef)]) -> Result<(Vec<u8>, SegmentRef)> {
    let mut sources = Vec::with_capacity(segments.len());
    let mut commits: Vec<CommitInfo> = Vec::new();
    for (data, segment) in segments {
        let meta_len = usize::try_from(segment.meta_len).unwrap_or(usize::MAX);
        let (meta, between) = data
            .get(..meta_len)
            .zip((data.len() as u64).checked_sub(segment.meta_len.saturating_mul(2)))
            .ok_or_else(|| Error::corrupt("a segment is shorter than its meta parts"))?;
        let meta = SegmentMeta::decode(meta, segment.meta_crc, between)?;
        commits.extend(&meta.commits);
        sources.push(MergeSource { data, meta, next_block: 0, cursor: None, commits: Vec::new() });
    }
    commits.sort_by_key(|c| c.sequence);
    commits.dedup_by_key(|c| c.sequence);
    for source in &mut sources {
        source.commits = source
            .meta
            .commits
            .iter()
            .map(|c| commits.partition_point(|d| d.sequence < c.sequence) as u64)
            .collect();
    }
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
    builder
        .finish(commits, segments.iter().fold(0, |sum: u64, (_, segment)| sum.saturating_add(segment.weight)))
}
