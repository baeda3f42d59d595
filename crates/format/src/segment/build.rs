//! Building a segment from entries in order.

use std::collections::HashSet;

use fieldstone_core::key::{KeyValue, Names};
use fieldstone_core::{Error, Result};

use super::meta::{Axis, CommitInfo, Directory, SegmentMeta, shared_prefix};
use super::{AXIS_MAX, BLOCK_TARGET, DATASETS_MAX, Filter, SegmentRef, key_hash};
use crate::bytes::Put;
use crate::entry::is_removal;
use crate::keys::{decode_names, decode_value, level_ends, skip_value};
use crate::origin::EntryOrigin;
use crate::{FIRST_VERSION, crc};

/// Makes a segment from entries sorted by key, then newest first.
#[derive(Debug)]
pub struct SegmentBuilder {
    version: u8,
    out: Vec<u8>,
    block_start: usize,
    block_entries: u64,
    block_first: Vec<u8>,
    last_key: Vec<u8>,
    /// The ends of the last key's levels.
    ends: [usize; 3],
    first_key: Vec<u8>,
    hashes: Vec<u64>,
    directory: Vec<Directory>,
    entries: u64,
    bytes: u64,
    datasets: Option<Vec<(Vec<u8>, u64)>>,
    removals: bool,
    axes: AxesBuilder,
}

impl Default for SegmentBuilder {
    fn default() -> Self {
        SegmentBuilder::new()
    }
}

impl SegmentBuilder {
    /// A builder without entries, of a segment of the first version.
    pub fn new() -> SegmentBuilder {
        SegmentBuilder::of(FIRST_VERSION)
    }

    /// A builder without entries, for a segment in a log of a version.
    pub fn of(version: u32) -> SegmentBuilder {
        SegmentBuilder {
            version: version as u8,
            out: Vec::new(),
            block_start: 0,
            block_entries: 0,
            block_first: Vec::new(),
            last_key: Vec::new(),
            ends: [0; 3],
            first_key: Vec::new(),
            hashes: Vec::new(),
            directory: Vec::new(),
            entries: 0,
            bytes: 0,
            datasets: Some(Vec::new()),
            removals: false,
            axes: AxesBuilder::default(),
        }
    }

    /// Adds an entry: `value` is an encoded [`Entry`](crate::entry::Entry) of `length` raw bytes that belongs
    /// to commit number `commit` of the table passed to [`finish`](Self::finish).
    pub fn push(&mut self, key: &[u8], value: &[u8], commit: u64, length: u64) -> Result<()> {
        let new_key = self.entries == 0 || key != self.last_key;
        if self.entries > 0 && key < &self.last_key[..] {
            return Err(Error::internal("index entries are not in order"));
        }
        let common = shared_prefix(&self.last_key, key);
        if new_key {
            self.hashes.push(key_hash(key));
            // Neighbours usually differ only in their last level.
            if self.entries > 0 && common >= self.ends[1] {
                self.ends[2] = key.len();
            } else {
                self.ends = level_ends(key)?;
            }
            self.axes.add(key, self.ends)?;
            self.add_dataset(self.ends[0], key, commit);
        } else if let Some(datasets) = &mut self.datasets
            && let Some((_, first)) = datasets.last_mut()
        {
            *first = (*first).min(commit);
        }
        if self.entries == 0 {
            self.first_key = key.to_vec();
        }
        if self.block_entries == 0 {
            self.block_first = key.to_vec();
        }
        let shared = if self.block_entries == 0 { 0 } else { common };
        self.out.put_varint(shared as u64);
        self.out.put_bytes(&key[shared..]);
        self.out.put_bytes(value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.block_entries += 1;
        self.entries += 1;
        self.bytes = self.bytes.saturating_add(length);
        self.removals |= length == 0 && is_removal(value)?;
        if self.out.len() - self.block_start >= BLOCK_TARGET {
            self.close_block();
        }
        Ok(())
    }

    fn add_dataset(&mut self, end: usize, key: &[u8], commit: u64) {
        let prefix = &key[..end];
        let Some(datasets) = &mut self.datasets else { return };
        if let Some((last, first)) = datasets.last_mut()
            && last == prefix
        {
            *first = (*first).min(commit);
        } else if datasets.len() < DATASETS_MAX {
            datasets.push((prefix.to_vec(), commit));
        } else {
            self.datasets = None;
        }
    }

    fn close_block(&mut self) {
        if self.block_entries == 0 {
            return;
        }
        let block = &self.out[self.block_start..];
        self.directory.push(Directory {
            offset: self.block_start as u64,
            length: block.len() as u64,
            crc: crc(block),
            entries: self.block_entries,
            first_key: std::mem::take(&mut self.block_first).into(),
        });
        self.block_start = self.out.len();
        self.block_entries = 0;
    }

    /// Number of entries so far.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// The segment's bytes, and its reference for offset 0 of file 0.
    pub fn finish(self, commits: Vec<CommitInfo>, weight: u64) -> Result<(Vec<u8>, SegmentRef)> {
        self.finish_with(commits, Vec::new(), weight)
    }

    /// The same, of a segment with moved entries: `commits` name their origins by index.
    pub fn finish_with(
        mut self,
        commits: Vec<CommitInfo>,
        origins: Vec<EntryOrigin>,
        weight: u64,
    ) -> Result<(Vec<u8>, SegmentRef)> {
        self.close_block();
        let filter = Filter::build(&self.hashes);
        let meta = SegmentMeta {
            version: self.version,
            entries: self.entries,
            bytes: self.bytes,
            commits,
            origins,
            first_key: self.first_key,
            last_key: self.last_key,
            datasets: self.datasets,
            removals: self.removals,
            axes: self.axes.finish()?,
            filter_offset: self.out.len() as u64,
            filter_len: filter.bytes().len() as u64,
            filter_hashes: filter.hashes(),
            filter_crc: crc(filter.bytes()),
            directory: self.directory,
        };
        let meta_bytes = meta.encode();
        // The meta part goes to both ends, so that damage to one copy loses nothing.
        let out = [&meta_bytes[..], &self.out, filter.bytes(), &meta_bytes].concat();
        let reference = SegmentRef {
            file: 0,
            offset: 0,
            length: out.len() as u64,
            meta_len: meta_bytes.len() as u64,
            meta_crc: crc(&meta_bytes),
            weight,
            entries: self.entries,
        };
        Ok((out, reference))
    }
}

/// Collects the distinct values for each level and keyword, as bytes; most keys repeat most values.
#[derive(Debug, Default)]
struct AxesBuilder {
    shapes: Vec<Shape>,
    /// Values of the previous key for each level, and the index of their shape.
    last: [(Vec<u8>, usize); 3],
}

/// One list of keywords at one level.
#[derive(Debug)]
struct Shape {
    level: u8,
    encoded: Box<[u8]>,
    names: Names,
    /// Encoded values for each name; `None` if there are too many.
    values: Vec<Option<HashSet<Box<[u8]>>>>,
}

impl AxesBuilder {
    fn add(&mut self, key: &[u8], ends: [usize; 3]) -> Result<()> {
        let mut start = 0;
        for (level, end) in ends.into_iter().enumerate() {
            let bytes = &key[start..end];
            start = end;
            // Neighbours usually share the outer levels, whose values are collected already.
            if self.last[level].0 == bytes {
                continue;
            }
            let index = self.shape(level as u8, bytes)?;
            let (last, last_shape) = &mut self.last[level];
            let shape = &mut self.shapes[index];
            let mut rest = &bytes[shape.encoded.len()..];
            // The values of the previous key are known already.
            let same_shape = *last_shape == index && last.len() > shape.encoded.len();
            let mut before = if same_shape { &last[shape.encoded.len()..] } else { &[] };
            for slot in &mut shape.values {
                let value = skip_value(&mut rest)?;
                if same_shape && skip_value(&mut before)? == value {
                    continue;
                }
                if let Some(set) = slot
                    && !set.contains(value)
                {
                    if set.len() == AXIS_MAX {
                        *slot = None;
                    } else {
                        set.insert(value.into());
                    }
                }
            }
            last.clear();
            last.extend_from_slice(bytes);
            *last_shape = index;
        }
        Ok(())
    }

    fn shape(&mut self, level: u8, bytes: &[u8]) -> Result<usize> {
        let fits = |shape: &Shape| shape.level == level && bytes.starts_with(&shape.encoded);
        let last = self.last[level as usize].1;
        if self.shapes.get(last).is_some_and(fits) {
            return Ok(last);
        }
        if let Some(index) = self.shapes.iter().position(fits) {
            return Ok(index);
        }
        let mut rest = bytes;
        let names = decode_names(&mut rest)?;
        let values = names.iter().map(|_| Some(HashSet::new())).collect();
        let encoded = bytes[..bytes.len() - rest.len()].into();
        self.shapes.push(Shape { level, encoded, names, values });
        Ok(self.shapes.len() - 1)
    }

    fn finish(self) -> Result<Vec<Axis>> {
        let mut merged: Vec<Axis> = Vec::new();
        let mut shapes = self.shapes;
        // The order must not depend on the order of keys that introduced the shapes.
        shapes.sort_by(|a, b| (a.level, &a.encoded).cmp(&(b.level, &b.encoded)));
        for shape in shapes {
            for (name, set) in shape.names.iter().zip(shape.values) {
                let values = set
                    .map(|set| {
                        set.iter().map(|v| decode_value(&mut &v[..])).collect::<Result<Vec<KeyValue>>>()
                    })
                    .transpose()?;
                let known = merged.iter().position(|a| a.level == shape.level && a.keyword == *name);
                let index = known.unwrap_or_else(|| {
                    merged.push(Axis { level: shape.level, keyword: name.clone(), values: Some(vec![]) });
                    merged.len() - 1
                });
                let axis = &mut merged[index];
                axis.values = match (axis.values.take(), values) {
                    (Some(mut old), Some(new)) => {
                        old.extend(new);
                        old.sort();
                        old.dedup();
                        // Two lists of keywords can each stay below the limit and exceed it together.
                        Some(old).filter(|values| values.len() <= AXIS_MAX)
                    }
                    _ => None,
                };
            }
        }
        Ok(merged)
    }
}
