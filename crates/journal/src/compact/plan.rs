//! The plan of a purge: the entries that it leaves out, the ranges that it copies, the files that it gives back.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use fieldstone_format::Id;
use fieldstone_format::log::SideRecord;

/// A file: log or data log of a writer, data log of a takeover.
pub type FileOf = (Id, u32);

/// Ranges of a file, in any order until they are merged.
#[derive(Debug, Default)]
pub struct Spans {
    all: Vec<(u64, u64)>,
    /// How many there were after they were merged last.
    merged: usize,
}

/// Most inputs of one takeover.
const INPUTS_MAX: usize = 1024;

/// Ranges of a file that are kept in memory at least before they are merged.
const SPANS_MIN: usize = 1024;

impl Spans {
    pub fn add(&mut self, begin: u64, end: u64) {
        match self.all.last_mut() {
            // Neighbours by key are often neighbours in a file.
            Some(last) if last.1 == begin => last.1 = end,
            _ => self.all.push((begin, end)),
        }
        if self.all.len() >= 2 * self.merged.max(SPANS_MIN) {
            self.merge();
        }
    }

    pub fn merge(&mut self) {
        self.all.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(self.all.len());
        for (begin, end) in self.all.drain(..) {
            match merged.last_mut() {
                Some(last) if last.1 >= begin => last.1 = last.1.max(end),
                _ => merged.push((begin, end)),
            }
        }
        self.merged = merged.len();
        self.all = merged;
    }

    fn bytes(&self) -> u64 {
        self.all.iter().map(|(begin, end)| end - begin).sum()
    }
}

/// The plan of one takeover.
#[derive(Debug, Default)]
pub struct PurgePlan {
    /// Entries that go, and keys of which any goes.
    pub versions: u64,
    pub fields: u64,
    /// Bytes in the entries that go.
    pub inline: u64,
    /// Bytes of payload that go with them, these among them.
    pub freed: u64,
    /// Bytes of payload that are copied.
    pub copied: u64,
    /// Bytes of the indexes of inputs for which the plan does something.
    pub index: u64,
    /// Files that are replaced, or that nothing names any more.
    pub files: u64,
    /// Datasets of which any entry goes.
    pub datasets: BTreeSet<Vec<u8>>,
    /// Data logs of writers that nothing names any more, or whose live ranges are copied.
    pub condemned: BTreeSet<FileOf>,
    /// The live ranges of each file.
    pub live: HashMap<FileOf, Spans>,
    /// Entries that go, by source.
    pub of_sources: HashMap<usize, u64>,
    /// Inputs for which the plan does something, by file name.
    pub worth: BTreeMap<String, Share>,
    /// Data logs of which a live part does not match its checksum.
    pub unsound: BTreeSet<FileOf>,
    /// Inputs that cannot be read whole, by source.
    pub damaged: Vec<usize>,
    /// The side records of an erasure, and the files that it empties.
    pub erasure: Erasure,
    /// Files of arrays that nothing names, with their bytes.
    pub beside: BTreeMap<String, u64>,
}

/// The side records of an erasure, and the files that it empties (R36).
#[derive(Debug, Default)]
pub struct Erasure {
    /// Whether no file keeps bytes that nothing names.
    pub all_dead: bool,
    /// Files that hold bytes of entries that go.
    pub files: HashSet<FileOf>,
    /// Side records of which rows are erased, by commit.
    pub records: HashMap<(Id, u64), Vec<SideRecord>>,
    /// Rows that are erased.
    pub rows: u64,
    /// Inputs that hold them, by file name.
    pub inputs: HashSet<String>,
}

/// The part of a plan that one input has.
#[derive(Debug, Clone, Copy, Default)]
pub struct Share {
    /// Bytes that are copied for it.
    pub copied: u64,
    /// Bytes of its index.
    pub index: u64,
    /// Files of its own.
    pub files: u64,
    /// Its age: takeovers by number, then logs by the stamp of their first commit.
    pub age: (bool, u64),
}

impl PurgePlan {
    /// Live bytes of a file.
    pub fn live(&self, file: FileOf) -> u64 {
        self.live.get(&file).map_or(0, Spans::bytes)
    }

    /// The live ranges of a file, ascending.
    pub fn ranges(&self, file: FileOf) -> &[(u64, u64)] {
        self.live.get(&file).map_or(&[], |spans| &spans.all)
    }

    /// The oldest inputs for which something is done, without those to be skipped, as many as fit and one at least; how many
    /// bytes are copied for the oldest of them, and whether they are all.
    pub fn first(&self, most: u64, skipped: &HashSet<String>) -> (HashSet<String>, u64, bool) {
        let is_next = |(name, _): &(&String, &Share)| !skipped.contains(*name);
        let mut worth: Vec<(&String, &Share)> = self.worth.iter().filter(is_next).collect();
        worth.sort_by_key(|(_, share)| share.age);
        let (mut chosen, mut copied) = (HashSet::new(), 0u64);
        for (name, share) in &worth {
            copied = copied.saturating_add(share.copied);
            if copied > most && !chosen.is_empty() || chosen.len() == INPUTS_MAX {
                break;
            }
            chosen.insert((*name).clone());
        }
        let is_all = chosen.len() == self.worth.len();
        (chosen, worth.first().map_or(0, |(_, share)| share.copied), is_all)
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.worth.is_empty()
    }
}
