//! Edges on their way to the ranks of their ends, and what a rank makes of those that came to it.
//!
//! A part is what one rank has for another of one piece of its share: the edges whose first end is the other's, and
//! those of which only the second one is. An edge is its number, counted from the beginning of the piece, and its
//! ends: 12 bytes, where nodes are below 2^32.
//!
//! ```text
//! part = numbers, first ends, second ends of those with the second end only; the same of those with the first end;
//!        begin: u64  how many have the first end: u32
//! ```
//!
//! Invariants: within a part numbers ascend, in both lists; parts of one source come in the order of its pieces.

use std::sync::Arc;

use fieldstone_core::{Code, Error, Result};

use super::number_set::{NumberCollector, NumberSet};
use super::source::EdgePiece;
use fieldstone_format::partition::words::{Word, words};

/// Bytes behind the lists.
const TAIL: usize = 12;

/// Edges of one list of a part.
#[derive(Debug, Clone, Copy)]
struct SentColumns<'a> {
    begin: u64,
    numbers: &'a [u8],
    first: &'a [u8],
    second: &'a [u8],
}

impl<'a> SentColumns<'a> {
    fn ends<W: Word>(&self) -> impl Iterator<Item = (u64, u64)> + 'a {
        words::<W>(self.first).zip(words::<W>(self.second))
    }

    fn edges<W: Word>(&self) -> impl Iterator<Item = (u64, u64, u64)> + 'a {
        let begin = self.begin;
        words::<u32>(self.numbers).zip(self.ends::<W>()).map(move |(n, (a, b))| (begin.wrapping_add(n), a, b))
    }
}

/// What is sent to each rank of a piece, given the ranks of an edge's ends.
pub(super) fn sort_out<W: Word>(
    piece: &EdgePiece,
    ranks: usize,
    mut ranks_of: impl FnMut(u64, u64) -> (u32, u32),
) -> Vec<Vec<u8>> {
    let mut counts = vec![[0usize; 2]; ranks];
    let mut ends = Vec::with_capacity(piece.first.len());
    for (first, second) in piece.ends() {
        let (a, b) = ranks_of(first, second);
        counts[a as usize][0] += 1;
        counts[b as usize][1] += usize::from(a != b);
        ends.push((a, b));
    }
    let mut parts: Vec<PartWriter> = counts.iter().map(|[a, b]| PartWriter::new::<W>(*a, *b)).collect();
    for ((number, (first, second)), (a, b)) in piece.ends().enumerate().zip(ends) {
        parts[a as usize].put::<W>(0, number, first, second);
        if a != b {
            parts[b as usize].put::<W>(1, number, first, second);
        }
    }
    parts.into_iter().zip(counts).map(|(part, [a, _])| part.finish(piece.begin, a)).collect()
}

/// The edges of a piece that have an end in a set, as a part.
pub(super) fn pick<W: Word>(begin: u64, first: &[u8], second: &[u8], owned: &NumberSet) -> Vec<u8> {
    let which = |(a, b): (u64, u64)| match (owned.contains(a), owned.contains(b)) {
        (true, _) => Some(0),
        (false, true) => Some(1),
        _ => None,
    };
    let ends = words::<W>(first).zip(words::<W>(second));
    let mut counts = [0; 2];
    ends.clone().filter_map(which).for_each(|list| counts[list] += 1);
    let mut part = PartWriter::new::<W>(counts[0], counts[1]);
    for (number, ends) in ends.enumerate() {
        if let Some(list) = which(ends) {
            part.put::<W>(list, number, ends.0, ends.1);
        }
    }
    part.finish(begin, counts[0])
}

/// A part whose lists are filled side by side.
struct PartWriter {
    bytes: Vec<u8>,
    /// Of each list: where its columns begin, and how many edges are in it.
    columns: [[usize; 3]; 2],
    filled: [usize; 2],
}

impl PartWriter {
    fn new<W: Word>(with_first: usize, with_second: usize) -> PartWriter {
        let columns = |at: usize, count: usize| [at, at + 4 * count, at + (4 + W::WIDTH) * count];
        let behind = (4 + 2 * W::WIDTH) * with_second;
        let length = behind + (4 + 2 * W::WIDTH) * with_first;
        let mut bytes = Vec::with_capacity(if length == 0 { 0 } else { length + TAIL });
        bytes.resize(length, 0);
        PartWriter { bytes, columns: [columns(behind, with_first), columns(0, with_second)], filled: [0; 2] }
    }

    #[inline]
    fn put<W: Word>(&mut self, list: usize, number: usize, first: u64, second: u64) {
        let n = self.filled[list];
        self.filled[list] += 1;
        let [numbers, firsts, seconds] = self.columns[list];
        u32::put(number as u64, &mut self.bytes[numbers + 4 * n..][..4]);
        W::put(first, &mut self.bytes[firsts + W::WIDTH * n..][..W::WIDTH]);
        W::put(second, &mut self.bytes[seconds + W::WIDTH * n..][..W::WIDTH]);
    }

    /// A part without edges is nothing.
    fn finish(mut self, begin: u64, with_first: usize) -> Vec<u8> {
        if !self.bytes.is_empty() {
            self.bytes.extend_from_slice(&begin.to_le_bytes());
            self.bytes.extend_from_slice(&(with_first as u32).to_le_bytes());
        }
        self.bytes
    }
}

/// One part that came.
#[derive(Debug)]
struct SentPart {
    begin: u64,
    /// How many edges have the first end here, and how many the second end only.
    counts: [usize; 2],
    bytes: Vec<u8>,
}

impl SentPart {
    fn parse<W: Word>(mut bytes: Vec<u8>) -> Result<SentPart> {
        let wrong = || Error::internal("edges that came from another rank are not well formed");
        let (lists, tail) = bytes.split_last_chunk::<TAIL>().ok_or_else(wrong)?;
        let (begin, with_first) = (u64::of(tail), u32::of(&tail[8..]) as usize);
        let each = 4 + 2 * W::WIDTH;
        let (count, length) = (lists.len() / each, lists.len());
        let with_second = count.checked_sub(with_first).filter(|_| length % each == 0).ok_or_else(wrong)?;
        bytes.truncate(length);
        Ok(SentPart { begin, counts: [with_first, with_second], bytes })
    }

    fn columns<W: Word>(&self, list: usize) -> SentColumns<'_> {
        let each = 4 + 2 * W::WIDTH;
        let behind = each * self.counts[1];
        let bytes = if list == 0 { &self.bytes[behind..] } else { &self.bytes[..behind] };
        let (numbers, ends) = bytes.split_at(4 * self.counts[list]);
        let (first, second) = ends.split_at(W::WIDTH * self.counts[list]);
        SentColumns { begin: self.begin, numbers, first, second }
    }

    /// Gives back the memory of the edges with the first end here.
    fn drop_first(&mut self, each: usize) {
        self.bytes.truncate(each * self.counts[1]);
        self.bytes.shrink_to_fit();
    }
}

/// All parts that came to a rank, by source.
#[derive(Debug)]
pub(super) struct Picked {
    sources: Vec<Vec<SentPart>>,
    counts: [usize; 2],
}

/// What a rank has of the mesh, but for who owns its ghosts.
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

/// Where nodes of the whole mesh stand on this rank.
#[derive(Debug, Clone, Copy)]
pub(super) struct LocalNumbers<'a> {
    pub owned: &'a NumberSet,
    pub ghosts: &'a NumberSet,
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

    /// Ends of an edge.
    #[inline]
    pub fn ends(&self, first: u64, second: u64) -> Result<[u32; 2]> {
        match (self.of(first), self.of(second)) {
            (Some(first), Some(second)) => Ok([first, second]),
            _ => {
                Err(Error::internal(format!("an edge of nodes {first} and {second} is on a rank of neither")))
            }
        }
    }

    /// Global numbers by place.
    pub fn nodes(&self) -> Result<Arc<[i64]>> {
        let count = self.owned.len() + self.ghosts.len();
        if u32::try_from(count).is_err() {
            return Err(Code::TooLarge
                .error(format!("a part of {count} nodes: local numbers have 32 bits"))
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

    /// Takes in what came from `source`, which are the edges of its next piece.
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

    /// Puts edges in order and gives their ends local numbers. Parts are given back as they are taken up.
    pub fn assemble<W: Word>(mut self, owned: NumberSet, nodes: u64) -> Result<LocalMesh> {
        let mut ghosts = NumberCollector::new(nodes, (self.counts[0] + self.counts[1]) as u64);
        for part in self.parts() {
            for (_, second) in part.columns::<W>(0).ends::<W>() {
                if !owned.contains(second) {
                    ghosts.insert(second);
                }
            }
            part.columns::<W>(1).ends::<W>().for_each(|(first, _)| ghosts.insert(first));
        }
        let ghosts = ghosts.finish();
        let local = LocalNumbers { owned: &owned, ghosts: &ghosts };
        let nodes = local.nodes()?;
        let count = self.counts[0] + self.counts[1];
        let mut edges = zeros(count);
        let numbers = Arc::get_mut(&mut edges).unwrap_or_default();
        let mut ends = Vec::with_capacity(count);
        for list in [0, 1] {
            for part in self.sources.iter_mut().flatten() {
                for (number, first, second) in part.columns::<W>(list).edges::<W>() {
                    numbers[ends.len()] = number as i64;
                    ends.push(local.ends(first, second)?);
                }
                match list {
                    0 => part.drop_first(4 + 2 * W::WIDTH),
                    _ => part.bytes = Vec::new(),
                }
            }
        }
        let (owned, owned_edges) = (owned.len(), self.counts[0]);
        Ok(LocalMesh { nodes, owned, ghosts, edges, owned_edges, ends })
    }
}
