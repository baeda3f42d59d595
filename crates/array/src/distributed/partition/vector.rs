//! Partitioning vectors: they assign each node to a rank.
//!
//! A vector is kept in one of three forms, however it was given: complete on each rank, as a formula, or in
//! contiguous shares. Shares stay where they are: a rank queries their holders for the nodes that it needs, so that
//! the memory of a rank falls with the number of ranks.
//!
//! Invariants: every entry is a rank of the team; shares in rank order cover the nodes.

use std::path::Path;
use std::sync::OnceLock;

use fieldstone_core::env::comm::Team;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::partition::ContentSum;

use super::hilbert::{self, Coordinates};
use super::number_set::{NumberCollector, NumberSet};
use super::shares::{Starts, block_range, no_rank};
use super::source::CallerNumber;
use super::{FEWEST, STEP, checksum, metis};
use crate::distributed::agreed::alike;
use fieldstone_format::partition::words::{narrow, put_words, words};

/// The caller's partitioning vector.
#[derive(Debug, Clone, Copy)]
pub enum Vector<'a> {
    /// The rank of every node, equal on all ranks.
    Replicated(RankNumbers<'a>),
    /// The ranks of the nodes in this rank's contiguous share.
    Shares(RankNumbers<'a>),
    /// Contiguous ranges that differ by at most one node, as numpy's `array_split` cuts them.
    Block,
    /// Equal shares along a Hilbert curve through the nodes.
    Hilbert(Coordinates<'a>),
    /// A METIS file: a line for each node with the rank's number.
    File(&'a Path),
}

/// Ranks of nodes in a caller's memory.
#[derive(Debug, Clone, Copy)]
pub enum RankNumbers<'a> {
    /// Four-byte integers.
    I32(&'a [i32]),
    /// Eight-byte integers.
    I64(&'a [i64]),
}

impl<'a> From<&'a [i32]> for RankNumbers<'a> {
    fn from(list: &'a [i32]) -> Self {
        RankNumbers::I32(list)
    }
}

impl<'a> From<&'a [i64]> for RankNumbers<'a> {
    fn from(list: &'a [i64]) -> Self {
        RankNumbers::I64(list)
    }
}

impl RankNumbers<'_> {
    fn len(&self) -> usize {
        match self {
            RankNumbers::I32(list) => list.len(),
            RankNumbers::I64(list) => list.len(),
        }
    }

    /// The entries as ranks; `before` nodes come before the first.
    fn check(&self, before: u64, ranks: usize) -> Result<Vec<u32>> {
        fn each<N: CallerNumber>(list: &[N], before: u64, ranks: usize) -> Result<Vec<u32>> {
            let wrong = |entry: &N| !(0..ranks as i64).contains(&entry.number());
            match list.iter().position(wrong) {
                Some(at) => Err(no_rank(before + at as u64, list[at].number(), ranks)),
                None => Ok(list.iter().map(|entry| entry.number() as u32).collect()),
            }
        }
        match self {
            RankNumbers::I32(list) => each(list, before, ranks),
            RankNumbers::I64(list) => each(list, before, ranks),
        }
    }
}

impl Vector<'_> {
    /// The name of the vector's kind; equal on all ranks.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Vector::Replicated(_) => "a vector on every rank",
            Vector::Shares(_) => "shares of a vector",
            Vector::Block => "block",
            Vector::Hilbert(_) => "hilbert",
            Vector::File(_) => "a METIS file",
        }
    }
}

/// A checked vector, with its checksum. See the module's documentation.
#[derive(Debug)]
pub struct NodeRanks<'a> {
    pub(super) nodes: u64,
    pub(super) ranks: usize,
    sum: ContentSum,
    form: VectorForm<'a>,
}

#[derive(Debug)]
enum VectorForm<'a> {
    Everywhere(Vec<u32>),
    Block,
    Shares(Starts, Vec<u32>),
    /// Nodes along a curve: cut into shares when ranks are first needed.
    Curve(Coordinates<'a>, Starts, OnceLock<Vec<u32>>),
}

fn block_rank(nodes: u64, ranks: usize, node: u64) -> u32 {
    let (each, longer) = (nodes / ranks as u64, nodes % ranks as u64);
    match node < longer * (each + 1) {
        true => (node / (each + 1)) as u32,
        false => (longer + (node - longer * (each + 1)) / each.max(1)) as u32,
    }
}

impl<'a> NodeRanks<'a> {
    /// Collective: checks a vector against the ranks of the team and, if `nodes` is given, against that number of
    /// nodes.
    ///
    /// Errors: `Invalid` for an entry that is not a rank, with rank, position and value, and if the numbers of
    /// entries and nodes differ; `Conflict` if ranks pass vectors of different kinds. All ranks raise the same.
    pub fn new(team: &Team, vector: &Vector<'a>, nodes: Option<u64>) -> Result<NodeRanks<'a>> {
        agree_kind(team, vector, nodes)?;
        let (rank, ranks) = (team.rank(), team.size());
        let count = |given: u64| match nodes {
            Some(nodes) if nodes != given => Err(wrong_count(vector.word(), given, nodes)),
            _ => Ok(given),
        };
        let (nodes, form) = match vector {
            Vector::Replicated(list) => {
                let nodes = count(list.len() as u64);
                let own = nodes.and_then(|_| list.check(0, ranks));
                let hash = own.as_ref().map_err(Error::replicate).map(|own| {
                    let hash = own.chunks(1 << 12).fold(0, |sum, ranks| {
                        let bytes: Vec<u8> = ranks.iter().flat_map(|rank| rank.to_le_bytes()).collect();
                        crc32c::crc32c_append(sum, &bytes)
                    });
                    vec![u64::from(hash), !u64::from(hash), own.len() as u64, !(own.len() as u64)]
                });
                let agreed = team.max(STEP, hash)?;
                let own = own?;
                if agreed[0] != !agreed[1] || agreed[2] != !agreed[3] {
                    return Err(differing_vectors(team, &own)?);
                }
                (own.len() as u64, VectorForm::Everywhere(own))
            }
            Vector::Shares(list) => {
                let starts = Starts::new(team, Ok(list.len() as u64))?;
                let own = count(starts.total()).and_then(|_| list.check(starts.of(rank).start, ranks));
                (starts.total(), VectorForm::Shares(starts, team.agree(STEP, own)?))
            }
            Vector::Block => {
                let nodes = nodes.ok_or_else(|| {
                    Code::Option
                        .error("`block` does not determine the number of nodes")
                        .with_hint("give `nodes`, or a mesh")
                });
                (team.agree(STEP, nodes)?, VectorForm::Block)
            }
            Vector::Hilbert(coordinates) => {
                let starts = Starts::new(team, coordinates.count())?;
                team.agree(STEP, count(starts.total()))?;
                let sum = hilbert::checksum(team, coordinates, &starts)?;
                let (nodes, form) =
                    (starts.total(), VectorForm::Curve(*coordinates, starts, OnceLock::new()));
                return Ok(NodeRanks { nodes, ranks, sum, form });
            }
            Vector::File(path) => {
                let own = metis::read(team, path)?;
                let starts = Starts::new(team, Ok(own.len() as u64))?;
                team.agree(STEP, count(starts.total()))?;
                (starts.total(), VectorForm::Shares(starts, own))
            }
        };
        let mut found = NodeRanks { nodes, ranks, sum: ContentSum::default(), form };
        found.sum = checksum::total(team, STEP, found.own_sum(rank), [nodes, ranks as u64])?;
        Ok(found)
    }

    /// The terms of the nodes in this rank's share.
    fn own_sum(&self, rank: usize) -> u128 {
        let add = |sum: u128, (node, rank): (u64, u32)| sum.wrapping_add(checksum::node_rank(node, rank));
        match &self.form {
            VectorForm::Everywhere(list) => {
                let range = block_range(self.nodes, self.ranks, rank);
                range.map(|node| (node, list[node as usize])).fold(0, add)
            }
            VectorForm::Block => block_range(self.nodes, self.ranks, rank)
                .map(|node| (node, block_rank(self.nodes, self.ranks, node)))
                .fold(0, add),
            VectorForm::Curve(..) => 0,
            VectorForm::Shares(starts, own) => {
                starts.of(rank).zip(own).map(|(node, rank)| (node, *rank)).fold(0, add)
            }
        }
    }

    /// The number of nodes.
    pub fn nodes(&self) -> u64 {
        self.nodes
    }

    /// The checksum that identifies the vector: it depends on the rank of each node or, if coordinates determine
    /// these, on the coordinates and the number of ranks.
    pub fn sum(&self) -> ContentSum {
        self.sum
    }

    /// The shares, if the vector is in shares.
    fn shares(&self) -> Option<(&Starts, &[u32])> {
        match &self.form {
            VectorForm::Shares(starts, own) => Some((starts, own)),
            VectorForm::Curve(_, starts, own) => Some((starts, own.get().map_or(&[], Vec::as_slice))),
            _ => None,
        }
    }

    /// Collective: the nodes of this rank. Ranks with shares send them once, in rounds of about `buffer` bytes. Call
    /// this before you query ranks of nodes.
    pub(super) fn owned(&self, team: &Team, buffer: u64) -> Result<NumberSet> {
        let rank = team.rank();
        if let VectorForm::Curve(coordinates, starts, own) = &self.form
            && own.get().is_none()
        {
            let shares = hilbert::split(team, coordinates, starts)?;
            own.get_or_init(|| shares);
        }
        match &self.form {
            VectorForm::Everywhere(list) => {
                let own = |entry: &&u32| **entry as usize == rank;
                let mut collector = NumberCollector::new(self.nodes, list.iter().filter(own).count() as u64);
                (0u64..)
                    .zip(list)
                    .filter(|(_, entry)| own(entry))
                    .for_each(|(node, _)| collector.insert(node));
                Ok(collector.finish())
            }
            VectorForm::Block => Ok(NumberSet::range(block_range(self.nodes, self.ranks, rank))),
            VectorForm::Shares(..) | VectorForm::Curve(..) => {
                let Some((starts, own)) = self.shares() else { return Ok(NumberSet::range(0..0)) };
                let mut collector =
                    NumberCollector::new(self.nodes, self.nodes.div_ceil(self.ranks.max(1) as u64));
                let each = (buffer / 16).clamp(FEWEST, 1 << 31);
                for round in 0..starts.largest().div_ceil(each) {
                    let mine = own.len() as u64;
                    let (from, to) = ((round * each).min(mine), ((round + 1) * each).min(mine));
                    let mut parts = vec![Vec::new(); self.ranks];
                    for (at, to) in (0u32..).zip(&own[from as usize..to as usize]) {
                        parts[*to as usize].extend_from_slice(&at.to_le_bytes());
                    }
                    for (source, part) in team.alltoallv(STEP, Ok(parts))?.iter().enumerate() {
                        let begin = starts.of(source).start + round * each;
                        words::<u32>(part).for_each(|at| collector.insert(begin + at));
                    }
                }
                Ok(collector.finish())
            }
        }
    }

    /// Whether ranks of nodes are known without communication.
    pub(super) fn is_local(&self) -> bool {
        self.shares().is_none()
    }

    /// The ranks of a set's nodes, in its order. Collective if ranks are not [local](NodeRanks::is_local); an earlier
    /// failure is raised then.
    pub(super) fn of_set(&self, team: &Team, set: Result<&NumberSet>) -> Result<Vec<u32>> {
        let Some((starts, own)) = self.shares() else {
            let set = set?;
            let mut found = Vec::with_capacity(set.len());
            match &self.form {
                VectorForm::Everywhere(list) => set.for_each(|node| found.push(list[node as usize])),
                _ => set.for_each(|node| found.push(block_rank(self.nodes, self.ranks, node))),
            }
            return Ok(found);
        };
        // Send positions in a share in a narrow type if the largest fits, and answers as narrow as the number of
        // ranks allows.
        let is_narrow = narrow(starts.largest());
        let asked = set.as_ref().map_err(|error| error.replicate()).map(|set| {
            let mut parts = vec![Vec::new(); self.ranks];
            let mut holder = 0;
            set.for_each(|node| {
                while node >= starts.of(holder).end {
                    holder += 1;
                }
                put_words(&mut parts[holder], [node - starts.of(holder).start], is_narrow);
            });
            parts
        });
        let counts: Vec<usize> = match &asked {
            Ok(parts) => parts.iter().map(|part| part.len() / if is_narrow { 4 } else { 8 }).collect(),
            Err(_) => Vec::new(),
        };
        let asked = team.alltoallv(STEP, asked)?;
        let set = set?;
        let answer = |part: &Vec<u8>| match is_narrow {
            true => answer(words::<u32>(part), own, self.ranks),
            false => answer(words::<u64>(part), own, self.ranks),
        };
        let answers = asked.iter().map(answer).collect::<Result<Vec<_>>>();
        let answers = team.alltoallv(STEP, answers)?;
        let mut found = Vec::with_capacity(set.len());
        for (part, count) in answers.iter().zip(counts) {
            let width = answer_width(self.ranks);
            if part.len() != count * width {
                return Err(Error::internal("the holder of the vector sent an answer of another length"));
            }
            found.extend(
                part.chunks_exact(width)
                    .map(|bytes| bytes.iter().rev().fold(0u32, |value, byte| value << 8 | u32::from(*byte))),
            );
        }
        Ok(found)
    }

    /// Calls `act` with a function that gives the rank of a node, if ranks are local.
    pub(super) fn with_local<T>(&self, act: impl LocalRanks<T>) -> Option<T> {
        match &self.form {
            VectorForm::Everywhere(list) => Some(act.call(|node| list[node as usize])),
            VectorForm::Block => {
                let (nodes, ranks) = (self.nodes, self.ranks);
                Some(act.call(move |node| block_rank(nodes, ranks, node)))
            }
            VectorForm::Shares(..) | VectorForm::Curve(..) => None,
        }
    }
}

/// Code compiled for each representation of ranks.
pub(super) trait LocalRanks<T> {
    fn call(self, rank_of: impl Fn(u64) -> u32) -> T;
}

/// Size of a rank in an answer, in bytes.
fn answer_width(ranks: usize) -> usize {
    match ranks {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

fn answer(asked: impl Iterator<Item = u64>, own: &[u32], ranks: usize) -> Result<Vec<u8>> {
    let width = answer_width(ranks);
    let mut answer = Vec::new();
    for at in asked {
        let rank = usize::try_from(at).ok().and_then(|at| own.get(at));
        let rank = rank.ok_or_else(|| Error::internal("a rank asks for a node of another share"))?;
        answer.extend_from_slice(&rank.to_le_bytes()[..width]);
    }
    Ok(answer)
}

/// Collective: checks that ranks pass the same kind of vector for the same number of nodes.
fn agree_kind(team: &Team, vector: &Vector<'_>, nodes: Option<u64>) -> Result<()> {
    let nodes_text = nodes.map_or("not given".to_owned(), |nodes| nodes.to_string());
    let checked = match nodes {
        Some(nodes) if nodes >= 1 << 62 => Err(Code::TooLarge
            .error(format!("{nodes} nodes"))
            .with_hint("a mesh must have fewer than 2^62 nodes")),
        _ => Ok(format!("{}, nodes {nodes_text}", vector.word())),
    };
    alike(team, STEP, checked, "use the same kind of vector and number of nodes on all ranks").map(drop)
}

fn wrong_count(what: &str, given: u64, nodes: u64) -> Error {
    Code::ShapeMismatch
        .error(format!("{what} has {given} entries, but there are {nodes} nodes"))
        .with_hint("give a rank for each node; the lengths of shares add up to the number of nodes")
}

/// Collective: the error for vectors that should be equal on all ranks, but differ; shows where.
fn differing_vectors(team: &Team, own: &[u32]) -> Result<Error> {
    let lengths = Starts::new(team, Ok(own.len() as u64))?;
    let of = |rank: usize| lengths.of(rank).end - lengths.of(rank).start;
    if let Some(other) = (0..team.size()).find(|rank| of(*rank) != of(0)) {
        return Ok(Code::Value
            .error(format!(
                "the vector of rank 0 has {} entries, but that of rank {other} has {}",
                of(0),
                of(other)
            ))
            .with_hint("pass a replicated vector identically on all ranks, or pass shares as shares"));
    }
    let bytes = own.iter().flat_map(|rank| rank.to_le_bytes()).collect();
    let first = team.broadcast(STEP, 0, Ok(bytes))?;
    let at = words::<u32>(&first).zip(own).position(|(first, own)| first != u64::from(*own));
    let size = team.size() as u64;
    let mine = at.map_or(0, |_| size - team.rank() as u64);
    // The lowest rank that differs reports the position.
    let lowest = (size - team.max(STEP, Ok(vec![mine]))?[0]) as usize;
    let text = at.map_or(String::new(), |at| {
        format!("the vector's entry of node {at} is {} on rank {lowest}, but {} on rank 0", own[at], {
            words::<u32>(&first).nth(at).unwrap_or(0)
        })
    });
    let text = team.broadcast(STEP, lowest.min(team.size() - 1), Ok(text.into_bytes()))?;
    Ok(Code::Value
        .error(String::from_utf8_lossy(&text))
        .with_hint("pass a replicated vector identically on all ranks, or pass shares as shares"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rank_of_a_node_under_block_is_that_of_the_range_it_is_in() {
        for (nodes, ranks) in [(0, 3), (1, 4), (10, 3), (12, 4), (1000, 7)] {
            let mut at = 0;
            for rank in 0..ranks {
                let range = block_range(nodes, ranks, rank);
                assert_eq!(range.start, at);
                at = range.end;
                assert!(range.into_iter().all(|node| block_rank(nodes, ranks, node) == rank as u32));
            }
            assert_eq!(at, nodes);
        }
    }
}
