//! Sources of edges: arrays of the ranks, or a reader such as an import.
//!
//! Each rank has a contiguous share of the edges; the concatenated shares, in rank order, are the list that numbers
//! the edges. A share is read once, from beginning to end, in pieces.

use std::fmt;

use fieldstone_core::{Code, Result};

use super::checksum;

/// This rank's share of the edges.
pub trait EdgeSource {
    /// The number of edges on this rank.
    ///
    /// Errors: if the share is malformed; all ranks then fail.
    fn count(&self) -> Result<u64>;

    /// Reads the ends of the edges from index `at` of the share on, with the caller's node numbers. Both slices have
    /// the same length. Called once for each edge, in ascending order.
    fn read(&mut self, at: u64, first: &mut [i64], second: &mut [i64]) -> Result<()>;
}

/// An integer type in which a caller numbers nodes or ranks.
pub trait CallerNumber: Copy + fmt::Debug {
    /// The number; `i64::MAX` for a larger one, which is not a node.
    fn number(self) -> i64;
}

macro_rules! caller_numbers {
    ($($kind:ty),*) => { $(impl CallerNumber for $kind {
        #[inline]
        fn number(self) -> i64 {
            i64::try_from(self).unwrap_or(i64::MAX)
        }
    })* };
}
caller_numbers!(i32, i64, u32, u64);

/// Edges in memory: the first end of each, and the second.
#[derive(Debug, Clone, Copy)]
pub struct EdgeArrays<'a, N> {
    /// First ends.
    pub first: &'a [N],
    /// Second ends.
    pub second: &'a [N],
}

impl<N: CallerNumber> EdgeSource for EdgeArrays<'_, N> {
    fn count(&self) -> Result<u64> {
        match self.first.len() == self.second.len() {
            true => Ok(self.first.len() as u64),
            false => Err(Code::ShapeMismatch
                .error(format!(
                    "there are {} first ends of edges, but {} second ends",
                    self.first.len(),
                    self.second.len()
                ))
                .with_hint("give each edge both ends")),
        }
    }

    fn read(&mut self, at: u64, first: &mut [i64], second: &mut [i64]) -> Result<()> {
        let from = at as usize;
        let copy = |numbers: &[N], out: &mut [i64]| {
            let numbers = &numbers[from..from + out.len()];
            out.iter_mut().zip(numbers).for_each(|(out, number)| *out = number.number());
        };
        copy(self.first, first);
        copy(self.second, second);
        Ok(())
    }
}

/// Edges that a closure reads: `read(at, first ends, second ends)`.
pub struct EdgeReader<F> {
    /// The number of edges on this rank.
    pub count: u64,
    /// See [`EdgeSource::read`].
    pub read: F,
}

impl<F> fmt::Debug for EdgeReader<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a reader of {} edges", self.count)
    }
}

impl<F: FnMut(u64, &mut [i64], &mut [i64]) -> Result<()>> EdgeSource for EdgeReader<F> {
    fn count(&self) -> Result<u64> {
        Ok(self.count)
    }

    fn read(&mut self, at: u64, first: &mut [i64], second: &mut [i64]) -> Result<()> {
        (self.read)(at, first, second)
    }
}

/// Edges of a share, read and checked: both ends are nodes, counted from 0.
#[derive(Debug, Default)]
pub(super) struct EdgePiece {
    /// Global number of the first edge.
    pub begin: u64,
    pub first: Vec<i64>,
    pub second: Vec<i64>,
}

/// The begins of shares, and the caller's numbering of nodes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbering {
    /// Global number of this rank's first edge.
    pub start: u64,
    /// The number of nodes.
    pub nodes: u64,
    /// The caller's number for node 0.
    pub base: u64,
}

impl EdgePiece {
    /// Reads `count` edges from index `at` of the share on, into the memory of the previous piece.
    pub fn read(
        mut self,
        source: &mut dyn EdgeSource,
        at: u64,
        count: usize,
        n: Numbering,
    ) -> Result<EdgePiece> {
        self.begin = n.start + at;
        self.first.resize(count, 0);
        self.second.resize(count, 0);
        if count > 0 {
            source.read(at, &mut self.first, &mut self.second)?;
        }
        let base = n.base as i64;
        for (list, which) in [(&mut self.first, "first"), (&mut self.second, "second")] {
            let mut largest = 0;
            for end in list.iter_mut() {
                *end = end.wrapping_sub(base);
                largest = largest.max(*end as u64);
            }
            let outside = |end: &i64| *end as u64 >= n.nodes;
            // The pass above needs no branch; only if it finds an error does this one locate it.
            let wrong = (largest >= n.nodes).then(|| list.iter().position(outside)).flatten();
            if let Some(at) = wrong {
                return Err(no_node(self.begin + at as u64, which, list[at].wrapping_add(base), n));
            }
        }
        Ok(self)
    }

    /// The term of its edges for the checksum of the mesh.
    pub fn sum(&self) -> u128 {
        let edge = |(number, (first, second)): (u64, (u64, u64))| checksum::edge(number, first, second);
        (self.begin..).zip(self.ends()).map(edge).fold(0, u128::wrapping_add)
    }

    /// The ends of each edge.
    pub fn ends(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.first.iter().zip(&self.second).map(|(first, second)| (*first as u64, *second as u64))
    }
}

fn no_node(edge: u64, which: &str, value: i64, n: Numbering) -> fieldstone_core::Error {
    let Numbering { nodes, base, .. } = n;
    let range = match nodes {
        0 => "there are no nodes".to_owned(),
        _ => format!("nodes are {base} to {}", nodes - 1 + base),
    };
    Code::Value
        .error(format!("the {which} end of edge {edge} is {value}, but {range}"))
        .with_hint("correct the edge, or set `base` to the number of the first node")
}
