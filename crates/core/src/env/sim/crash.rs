//! Power cuts: this module draws one of the disk images that the calls made so far allow.
//!
//! Synced bytes and lengths (`sync_data`) of files whose entries are synced (`sync_dir`) are certain. Everything
//! later may or may not be there: each write whole, torn at 512-byte sectors or absent, in any order; each length;
//! each change of entries. The image keeps only the rule of the medium: a sector shows its writes up to one of them,
//! never a later write without an earlier one.

use std::collections::{BTreeMap, BTreeSet};

use super::file::{FileData, FileNode, Journal, Piece, Recent};
use super::random::Random;
use super::tree::{Node, ROOT, Tree};

/// The unit that is written as a whole or not.
const SECTOR: usize = 512;

/// Probabilities with which unsynced data survive in one image.
#[derive(Debug, Clone, Copy)]
struct Mood {
    whole: f64,
    torn: f64,
}

impl Mood {
    /// The part of a failed sync's data that is written.
    const FAILED_SYNC: Mood = Mood { whole: 0.5, torn: 0.5 };

    /// Some images keep everything, some nothing, and most a mixture.
    fn draw(rng: &mut Random) -> Mood {
        match rng.below(8) {
            0 => Mood { whole: 1.0, torn: 0.0 },
            1 => Mood { whole: 0.0, torn: 0.0 },
            2 => Mood { whole: 0.0, torn: 1.0 },
            3 | 4 => Mood { whole: 0.8, torn: 0.5 },
            5 | 6 => Mood { whole: 0.4, torn: 0.4 },
            _ => Mood { whole: 0.15, torn: 0.3 },
        }
    }
}

/// The parts of a piece, cut at sector boundaries, each with its sector's number.
fn sectors(piece: &Piece) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
    let end = piece.end();
    let mut at = piece.offset;
    std::iter::from_fn(move || {
        let start = at;
        let sector = start / SECTOR;
        at = end.min(start - start % SECTOR + SECTOR);
        (start < end).then_some((sector, start..at))
    })
}

impl Journal {
    /// Applies some of the pending writes to `bytes`, each whole, in part or not.
    fn survive(&self, bytes: &mut Vec<u8>, mood: Mood, rng: &mut Random) {
        // The last write that each sector shows; earlier writes to it are included.
        let mut last: BTreeMap<usize, usize> = BTreeMap::new();
        for (i, piece) in self.pending.iter().enumerate() {
            let whole = rng.chance(mood.whole);
            let torn = !whole && rng.chance(mood.torn);
            for (sector, _) in sectors(piece) {
                if whole || (torn && rng.coin()) {
                    last.insert(sector, i);
                }
            }
        }
        for (i, piece) in self.pending.iter().enumerate() {
            for (sector, range) in sectors(piece) {
                if last.get(&sector).is_some_and(|l| *l >= i) {
                    let inside = range.start - piece.offset..range.end - piece.offset;
                    Piece { offset: range.start, data: piece.data[inside].to_vec() }.apply(bytes);
                }
            }
        }
    }

    /// One of the contents that a power cut may leave.
    fn image(&self, mood: Mood, rng: &mut Random) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        self.survive(&mut bytes, mood, rng);
        let len = match self.lens.last() {
            None => self.durable.len(),
            Some(newest) if rng.chance(mood.whole) => *newest,
            Some(_) => match rng.below(self.lens.len() as u64 + 1) as usize {
                0 => self.durable.len(),
                n => self.lens[n - 1],
            },
        };
        bytes.resize(len, 0);
        bytes
    }

    /// The effect of a failed sync: the pending writes are lost; with `part`, some become durable.
    pub(super) fn lose(&mut self, part: bool, rng: &mut Random) {
        let mut durable = std::mem::take(&mut self.durable);
        let len = durable.len();
        if part {
            self.survive(&mut durable, Mood::FAILED_SYNC, rng);
        }
        // The length is metadata and waits for a sync of its own.
        if durable.len() > len && self.lens.first().is_none_or(|l| *l > len) {
            self.lens.insert(0, len);
        }
        self.durable = durable;
        self.pending.clear();
    }
}

impl Tree {
    /// One of the trees that a power cut may leave; everything in it is durable.
    pub(super) fn crashed(&self, weak: bool, rng: &mut Random) -> Tree {
        let mood = Mood::draw(rng);
        let mut tree = self.deep_clone();
        // Some changes of entries survive, each with the earlier ones to the same names.
        let chosen = tree.journal.iter().map(|_| rng.chance(mood.whole)).collect();
        tree.make_durable(chosen);
        tree.journal.clear();
        // Walk the durable entries from the root: a node that no entry leads to is lost.
        let mut links: BTreeMap<_, u32> = BTreeMap::new();
        let mut kept = BTreeSet::from([ROOT]);
        let mut queue = vec![ROOT];
        while let Some(ino) = queue.pop() {
            let Some(dir) = tree.dir_mut(ino) else { continue };
            dir.history.clear();
            dir.entries = dir.durable.clone();
            for child in dir.entries.values() {
                *links.entry(*child).or_default() += 1;
                if kept.insert(*child) {
                    queue.push(*child);
                }
            }
        }
        tree.nodes.retain(|ino, _| kept.contains(ino));
        for (ino, node) in &mut tree.nodes {
            let Node::File(file) = node else { continue };
            let mut data: FileData = file.read().clone();
            // The bytes of each remaining file are another draw.
            if let Some(journal) = &data.journal {
                data.bytes = journal.image(mood, rng);
            }
            data.links = links.get(ino).copied().unwrap_or(0);
            data.named.past.clear();
            data.journal = Some(Journal { durable: data.bytes.clone(), ..Journal::default() });
            data.recent = weak.then(|| Recent { base: data.bytes.clone(), writes: Vec::new() });
            *file = FileNode::new(*ino, data);
        }
        tree.garbage = false;
        tree
    }
}
