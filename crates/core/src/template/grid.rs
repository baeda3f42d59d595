//! The division of a variable into objects.

use crate::geometry::{IndexBox, element_count};
use crate::{Code, Error, Result};

/// An array of `shape`, cut into chunks; each chunk is cut along its first dimension into pieces.
///
/// Pieces are numbered in each dimension from 0; along the first dimension, the numbers run through all chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectGrid {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    /// Extent of a piece along the first dimension.
    cut: u64,
    /// Number of pieces in each dimension.
    counts: Vec<u64>,
    /// Number of pieces of a whole chunk.
    per_chunk: u64,
    /// Product of `counts`.
    total: u64,
}

impl ObjectGrid {
    /// Makes a grid in which each chunk is one object.
    pub fn new(shape: Vec<u64>, chunk: Vec<u64>) -> Result<ObjectGrid> {
        let cut = chunk.first().copied().unwrap_or(1);
        ObjectGrid::cut(shape, chunk, cut)
    }

    /// Makes a grid whose chunks are cut along the first dimension into equal pieces, as many as needed for a piece
    /// to have at most `object_bytes` (or one index of the first dimension, if that is more).
    pub fn sized(
        shape: Vec<u64>,
        chunk: Vec<u64>,
        item_size: usize,
        object_bytes: u64,
    ) -> Result<ObjectGrid> {
        if object_bytes == 0 {
            return Err(Error::invalid("objects of 0 bytes").with_hint("give their size in bytes"));
        }
        let first = chunk.first().copied().unwrap_or(1);
        let bytes = element_count(&chunk)?.saturating_mul(item_size as u64);
        let pieces = bytes.div_ceil(object_bytes).clamp(1, first.max(1));
        ObjectGrid::cut(shape, chunk, first.div_ceil(pieces))
    }

    fn cut(shape: Vec<u64>, chunk: Vec<u64>, cut: u64) -> Result<ObjectGrid> {
        element_count(&shape)?;
        if chunk.len() != shape.len() {
            return Err(Code::Shape.error(format!(
                "chunks {chunk:?} have {} dimensions, the variable has {} (shape {shape:?})",
                chunk.len(),
                shape.len()
            )));
        }
        if let Some(d) = chunk.iter().position(|&extent| extent == 0) {
            return Err(Code::Shape.error(format!("chunks {chunk:?}: dimension {d} must be at least 1")));
        }
        let mut counts: Vec<u64> = shape.iter().zip(&chunk).map(|(s, c)| s.div_ceil(*c)).collect();
        let mut per_chunk = 1;
        if let (Some(count), Some(&extent), Some(&first)) = (counts.first_mut(), shape.first(), chunk.first())
        {
            per_chunk = first.div_ceil(cut);
            // At most one piece for each index, so nothing overflows.
            *count = (extent / first) * per_chunk + (extent % first).div_ceil(cut);
        }
        let total = element_count(&counts)?;
        Ok(ObjectGrid { shape, chunk, cut, counts, per_chunk, total })
    }

    /// The variable's shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Number of pieces in each dimension.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of pieces.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number, along dimension `d`, of the piece that contains `index`.
    pub fn number(&self, d: usize, index: u64) -> u64 {
        let chunk = self.chunk[d];
        if d > 0 {
            return index / chunk;
        }
        (index / chunk) * self.per_chunk + (index % chunk) / self.cut
    }

    /// First index and end of piece `number` along dimension `d`; `None` if there is no such piece.
    pub fn range(&self, d: usize, number: u64) -> Option<(u64, u64)> {
        if number >= *self.counts.get(d)? {
            return None;
        }
        let chunk = self.chunk[d];
        // Starts are inside the shape; only ends can exceed it.
        let (start, end) = if d > 0 {
            (number * chunk, (number * chunk).saturating_add(chunk))
        } else {
            let first = (number / self.per_chunk) * chunk;
            let start = first + (number % self.per_chunk) * self.cut;
            (start, start.saturating_add(self.cut).min(first.saturating_add(chunk)))
        };
        Some((start, end.min(self.shape[d])))
    }

    /// The box of the piece with these numbers.
    pub fn piece(&self, numbers: &[u64]) -> Result<IndexBox> {
        let missing = || Error::invalid(format!("there is no piece {numbers:?} among {:?}", self.counts));
        if numbers.len() != self.shape.len() {
            return Err(missing());
        }
        let (mut start, mut count) = (Vec::new(), Vec::new());
        for (d, &number) in numbers.iter().enumerate() {
            let (first, end) = self.range(d, number).ok_or_else(missing)?;
            start.push(first);
            count.push(end - first);
        }
        IndexBox::unbounded(start, count)
    }

    /// Position of a piece among all, in C order.
    pub fn place(&self, numbers: &[u64]) -> u64 {
        numbers.iter().zip(&self.counts).fold(0, |place, (number, count)| place * count + number)
    }

    /// The numbers of the piece at a position.
    pub fn at(&self, mut place: u64) -> Option<Vec<u64>> {
        if place >= self.total {
            return None;
        }
        let mut numbers = vec![0; self.counts.len()];
        for (number, count) in numbers.iter_mut().zip(&self.counts).rev() {
            *number = place % count;
            place /= count;
        }
        Some(numbers)
    }

    /// The numbers of the pieces that share an element with `region`, in C order. Invalid if the region is not inside
    /// the shape.
    pub fn overlapping(&self, region: &IndexBox) -> Result<Pieces> {
        region.check_within(&self.shape)?;
        let mut first = Vec::new();
        let mut last = Vec::new();
        if !region.is_empty() {
            for d in 0..self.shape.len() {
                first.push(self.number(d, region.start()[d]));
                last.push(self.number(d, region.end(d) - 1));
            }
        }
        Ok(Pieces { next: (!region.is_empty()).then(|| first.clone()), first, last })
    }
}

/// Numbers of pieces, in C order.
#[derive(Debug, Clone)]
pub struct Pieces {
    next: Option<Vec<u64>>,
    first: Vec<u64>,
    last: Vec<u64>,
}

impl Iterator for Pieces {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        let now = self.next.take()?;
        let mut next = now.clone();
        for d in (0..next.len()).rev() {
            if next[d] < self.last[d] {
                next[d] += 1;
                self.next = Some(next);
                break;
            }
            next[d] = self.first[d];
        }
        Some(now)
    }
}
