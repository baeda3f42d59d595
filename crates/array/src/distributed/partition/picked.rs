//! Edges on their way to the ranks of their ends, and the part that a rank builds from those it received.
//!
//! A part has the edges that one rank sends another from one piece of its share: the edges whose first end belongs to
//! the receiver, and those of which only the second does. An edge is its number, counted from the beginning of the
//! piece, and its ends: 12 bytes, if nodes are below 2^32.
//!
//! ```text
//! part = edges with the first end; edges with the second end only; begin: u64; how many have the first end: u32
//! edge = number: u32, first end, second end
//! ```
//!
//! Invariants: in a part, numbers ascend in both lists; parts of one source come in the order of its pieces.

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};

use super::number_set::{NumberCollector, NumberSet};
use super::source::EdgePiece;
use fieldstone_format::partition::words::{Word, words};

/// Bytes after the lists.
const TAIL: usize = 12;

/// Size of an edge in bytes.
const fn width<W: Word>() -> usize {
    4 + 2 * W::WIDTH
}

/// The edges in one list of a part: numbers in the piece, and ends.
#[inline]
fn sent_edges<W: Word>(bytes: &[u8]) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
    bytes.chunks_exact(width::<W>()).map(|edge| {
        let (number, ends) = edge.split_at(4);
        let (first, second) = ends.split_at(W::WIDTH);
        (u32::of(number), W::of(first), W::of(second))
    })
}

#[inline]
fn put_edge<W: Word>(out: &mut Vec<u8>, number: usize, first: u64, second: u64) {
    let mut edge = [0; 20];
    let edge = &mut edge[..width::<W>()];
    u32::put(number as u64, &mut edge[..4]);
    W::put(first, &mut edge[4..4 + W::WIDTH]);
    W::put(second, &mut edge[4 + W::WIDTH..]);
    out.extend_from_slice(edge);
}

/// Sorts the edges of pieces by their destination. The lists are reused from piece to piece, so that their memory is
/// touched once.
#[derive(Debug)]
pub(super) struct PartLists {
    /// For each rank: edges with the first end, and those with only the second end.
    lists: Vec<[Vec<u8>; 2]>,
}

impl PartLists {
    pub fn new(ranks: usize) -> PartLists {
        PartLists { lists: (0..ranks).map(|_| Default::default()).collect() }
    }

    /// The parts of a piece for each rank, given the ranks of its ends.
    pub fn sort_out<W: Word>(&mut self, piece: &EdgePiece, rank_of: impl Fn(u64) -> u32) -> Vec<Vec<u8>> {
        for (number, (first, second)) in piece.ends().enumerate() {
            let (a, b) = (rank_of(first), rank_of(second));
            put_edge::<W>(&mut self.lists[a as usize][0], number, first, second);
            if a != b {
                put_edge::<W>(&mut self.lists[b as usize][1], number, first, second);
            }
        }
        let finish = |[first, second]: &mut [Vec<u8>; 2]| {
            let part = part::<W>(piece.begin, first, second);
            first.clear();
            second.clear();
            part
        };
        self.lists.iter_mut().map(finish).collect()
    }
}

/// The edges of a piece that have an end in a set, as a part.
pub(super) fn pick<W: Word>(begin: u64, first: &[u8], second: &[u8], owned: &NumberSet) -> Vec<u8> {
    let [mut with_first, mut with_second] = [Vec::new(), Vec::new()];
    for (number, (a, b)) in words::<W>(first).zip(words::<W>(second)).enumerate() {
        match (owned.contains(a), owned.contains(b)) {
            (true, _) => put_edge::<W>(&mut with_first, number, a, b),
            (false, true) => put_edge::<W>(&mut with_second, number, a, b),
            _ => (),
        }
    }
    part::<W>(begin, &with_first, &with_second)
}

/// Makes a part from two lists; without edges it is empty.
fn part<W: Word>(begin: u64, first: &[u8], second: &[u8]) -> Vec<u8> {
    let length = first.len() + second.len();
    if length == 0 {
        return Vec::new();
    }
    let mut bytes = Vec::with_capacity(length + TAIL);
    bytes.extend_from_slice(first);
    bytes.extend_from_slice(second);
    bytes.extend_from_slice(&begin.to_le_bytes());
    bytes.extend_from_slice(&((first.len() / width::<W>()) as u32).to_le_bytes());
    bytes
}

/// A received part.
#[derive(Debug)]
struct SentPart {
    begin: u64,
    /// The number of edges with the first end here, and with only the second end here.
    counts: [usize; 2],
    bytes: Vec<u8>,
}

impl SentPart {
    fn parse<W: Word>(mut bytes: Vec<u8>) -> Result<SentPart> {
        let wrong = || Error::internal("another rank sent malformed edges");
        let (lists, tail) = bytes.split_last_chunk::<TAIL>().ok_or_else(wrong)?;
        let (begin, with_first) = (u64::of(tail), u32::of(&tail[8..]) as usize);
        let (count, length) = (lists.len() / width::<W>(), lists.len());
        let is_whole = length.is_multiple_of(width::<W>());
        let with_second = count.checked_sub(with_first).filter(|_| is_whole).ok_or_else(wrong)?;
        bytes.truncate(length);
        Ok(SentPart { begin, counts: [with_first, with_second], bytes })
    }

    /// The bytes of one list.
    fn list<W: Word>(&self, list: usize) -> &[u8] {
        let (first, second) = self.bytes.split_at(self.bytes.len() - width::<W>() * self.counts[1]);
        [first, second][list]
    }

    /// Frees the memory of the edges with the first end here.
    fn drop_first<W: Word>(&mut self) {
        self.bytes = self.list::<W>(1).to_vec();
    }
}

/// All parts that a rank received, by source.
#[derive(Debug)]
pub(super) struct Picked {
    sources: Vec<Vec<SentPart>>,
    counts: [usize; 2],
}

/// A rank's part of the mesh, without the owners of its ghosts.
#[derive(Debug)]
pub(super) struct LocalMesh {
    /// Own nodes, then ghosts.
    pub nodes: Arc<[i64]>,
    pub owned: usize,
    pub ghosts: NumberSet,
    pub edges: Arc<[i64]>,
    pub owned_edges: usize,
    pub ends: Vec<[u32; 2]>,
}

/// A list of zeros that is shared from the beginning, so that it need not be copied.
pub(super) fn zeros(count: usize) -> Arc<[i64]> {
    std::iter::repeat_n(0, count).collect()
}

/// The local numbers of nodes of the whole mesh.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalNumbers<'a> {
    pub owned: &'a NumberSet,
    pub ghosts: &'a NumberSet,
}

fn stray(first: u64, second: u64) -> Error {
    Error::internal(format!("an edge between nodes {first} and {second} is on a rank that owns neither"))
}

impl LocalNumbers<'_> {
    #[inline]
    fn of(&self, node: u64) -> Option<u32> {
        let index = match self.owned.index(node) {
            Some(index) => index,
            None => self.owned.len() + self.ghosts.index(node)?,
        };
        Some(index as u32)
    }

    /// The local ends of an edge.
    #[inline]
    pub fn ends(&self, first: u64, second: u64) -> Result<[u32; 2]> {
        match (self.of(first), self.of(second)) {
            (Some(first), Some(second)) => Ok([first, second]),
            _ => Err(stray(first, second)),
        }
    }

    /// Global numbers by local number.
    pub fn nodes(&self) -> Result<Arc<[i64]>> {
        let count = self.owned.len() + self.ghosts.len();
        if u32::try_from(count).is_err() {
            return Err(Code::TooLarge
                .error(format!("this rank's part has {count} nodes, but local numbers have 32 bits"))
                .with_hint("partition the mesh over more ranks"));
        }
        let mut nodes = zeros(count);
        let list = Arc::get_mut(&mut nodes).unwrap_or_default();
        let mut at = 0;
        let mut put = |node: u64| {
            list[at] = node as i64;
            at += 1;
        };
        self.owned.for_each(&mut put);
        self.ghosts.for_each(&mut put);
        Ok(nodes)
    }
}

impl Picked {
    pub fn new(ranks: usize) -> Picked {
        Picked { sources: (0..ranks).map(|_| Vec::new()).collect(), counts: [0; 2] }
    }

    /// Adds a part from `source`, which has the edges of its next piece.
    pub fn take<W: Word>(&mut self, source: usize, bytes: Vec<u8>) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let part = SentPart::parse::<W>(bytes)?;
        self.counts.iter_mut().zip(part.counts).for_each(|(sum, count)| *sum += count);
        self.sources[source].push(part);
        Ok(())
    }

    fn parts(&self) -> impl Iterator<Item = &SentPart> {
        self.sources.iter().flatten()
    }

    /// Puts edges in order and replaces their ends by local numbers. Frees parts as it uses them.
    pub fn assemble<W: Word>(mut self, owned: NumberSet, nodes: u64) -> Result<LocalMesh> {
        let mut ghosts = NumberCollector::new(nodes, (self.counts[0] + self.counts[1]) as u64);
        for part in self.parts() {
            for (_, _, second) in sent_edges::<W>(part.list::<W>(0)) {
                if !owned.contains(second) {
                    ghosts.insert(second);
                }
            }
            sent_edges::<W>(part.list::<W>(1)).for_each(|(_, first, _)| ghosts.insert(first));
        }
        let ghosts = ghosts.finish();
        let local = LocalNumbers { owned: &owned, ghosts: &ghosts };
        let nodes = local.nodes()?;
        let count = self.counts[0] + self.counts[1];
        let mut edges = zeros(count);
        let numbers = Arc::get_mut(&mut edges).unwrap_or_default();
        let mut ends = Vec::with_capacity(count);
        for list in [0, 1] {
            // Edges of a node are often adjacent.
            let mut last = None;
            for part in self.sources.iter_mut().flatten() {
                let numbers = &mut numbers[ends.len()..][..part.counts[list]];
                for (into, (number, first, second)) in
                    numbers.iter_mut().zip(sent_edges::<W>(part.list::<W>(list)))
                {
                    let place = match last {
                        Some((node, place)) if node == first => Some(place),
                        _ => local.of(first),
                    };
                    let pair = place.zip(local.of(second)).ok_or_else(|| stray(first, second))?;
                    *into = part.begin.wrapping_add(number) as i64;
                    ends.push([pair.0, pair.1]);
                    last = Some((first, pair.0));
                }
                match list {
                    0 => part.drop_first::<W>(),
                    _ => part.bytes = Vec::new(),
                }
            }
        }
        let (owned, owned_edges) = (owned.len(), self.counts[0]);
        Ok(LocalMesh { nodes, owned, ghosts, edges, owned_edges, ends })
    }
}
