//! Regular chunks of an array.

use super::{IndexBox, element_count};
use crate::{Code, Error, Result};

/// An array of `shape` cut into chunks of `chunk`; chunks at the far edges are cut short.
///
/// Indices count from the array's (or the piece's) own start: shift a global box with
/// [`IndexBox::relative_to`] first. Chunks are numbered in C order.
///
/// ```
/// use fieldstone_core::geometry::{ChunkGrid, IndexBox};
/// let grid = ChunkGrid::new(vec![10, 10], vec![4, 5])?;
/// assert_eq!(grid.chunk_count(), 6);
/// assert_eq!(grid.chunk_box(5)?.to_string(), "8:10,5:10");
/// let touched: Vec<u64> = grid.overlapping(&IndexBox::parse("0:5,7:8")?)?.collect();
/// assert_eq!(touched, [1, 3]);
/// # Ok::<(), fieldstone_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkGrid {
    shape: Vec<u64>,
    chunk: Vec<u64>,
    /// Chunks per dimension.
    counts: Vec<u64>,
    /// Product of `counts`.
    total: u64,
}

impl ChunkGrid {
    /// Makes a grid of chunks of extent `chunk`, each at least 1.
    pub fn new(shape: Vec<u64>, chunk: Vec<u64>) -> Result<ChunkGrid> {
        element_count(&shape)?;
        if chunk.len() != shape.len() {
            return Err(Code::Shape.error(format!(
                "chunks {chunk:?} have {} dimensions, the array has {} (shape {shape:?})",
                chunk.len(),
                shape.len()
            )));
        }
        if let Some(d) = chunk.iter().position(|&extent| extent == 0) {
            return Err(Code::Shape.error(format!("chunks {chunk:?}: dimension {d} must be at least 1")));
        }
        let counts: Vec<u64> = shape.iter().zip(&chunk).map(|(s, c)| s.div_ceil(*c)).collect();
        let total = element_count(&counts)?;
        Ok(ChunkGrid { shape, chunk, counts, total })
    }

    /// Makes a grid whose chunks hold at most `target_bytes` (or one element, if that is larger).
    ///
    /// Starts with one chunk (F-4) and repeatedly halves the dimension with the fewest chunks, so that the number of
    /// chunks stays balanced between dimensions, and a small box touches few bytes whatever its orientation.
    pub fn choose(shape: &[u64], item_size: usize, target_bytes: u64) -> Result<ChunkGrid> {
        element_count(shape)?;
        let mut chunk: Vec<u64> = shape.iter().map(|&extent| extent.max(1)).collect();
        let bytes = |chunk: &[u64]| {
            chunk.iter().fold(item_size as u64, |product, &extent| product.saturating_mul(extent))
        };
        // An empty array needs one empty chunk; a cut would only change its chunk's extents.
        while !shape.contains(&0) && bytes(&chunk) > target_bytes {
            let widest =
                (0..chunk.len()).filter(|&d| chunk[d] > 1).min_by_key(|&d| shape[d].div_ceil(chunk[d]));
            let Some(d) = widest else { break };
            chunk[d] = chunk[d].div_ceil(2);
        }
        ChunkGrid::new(shape.to_vec(), chunk)
    }

    /// The array's shape.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// The extent of a chunk that is not cut.
    pub fn chunk(&self) -> &[u64] {
        &self.chunk
    }

    /// Chunks per dimension.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Number of chunks; 0 if the array is empty, 1 for a scalar.
    pub fn chunk_count(&self) -> u64 {
        self.total
    }

    /// The box of chunk `index`.
    pub fn chunk_box(&self, index: u64) -> Result<IndexBox> {
        if index >= self.total {
            return Err(Error::invalid(format!(
                "there is no chunk {index}: the grid has {} chunks",
                self.total
            )));
        }
        let mut rest = index;
        let mut start = vec![0; self.shape.len()];
        let mut end = vec![0; self.shape.len()];
        for d in (0..self.shape.len()).rev() {
            // The last chunk starts inside the shape, so only its end can overflow u64.
            start[d] = (rest % self.counts[d]) * self.chunk[d];
            end[d] = start[d].saturating_add(self.chunk[d]).min(self.shape[d]);
            rest /= self.counts[d];
        }
        Ok(IndexBox::from_bounds(start, &end))
    }

    /// The numbers of the chunks that share an element with `region`, ascending. Costs one step for each chunk found.
    /// Ignores the part of `region` outside the shape; another rank is `Invalid`.
    pub fn overlapping(&self, region: &IndexBox) -> Result<Overlapping> {
        if region.rank() != self.shape.len() {
            return Err(Code::Box.error(format!(
                "box {region} has {} dimensions, the array has {} (shape {:?})",
                region.rank(),
                self.shape.len(),
                self.shape
            )));
        }
        let mut found = Overlapping { axes: Vec::with_capacity(region.rank()), index: Some(0), left: 1 };
        let mut stride = 1_u64;
        let mut first = 0_u64;
        for d in (0..region.rank()).rev() {
            let low = region.start()[d];
            let end = region.end(d).min(self.shape[d]);
            if self.total == 0 || low >= end {
                return Ok(Overlapping { axes: Vec::new(), index: None, left: 0 });
            }
            let low = low / self.chunk[d];
            let span = (end - 1) / self.chunk[d] - low + 1;
            // All of these are at most `total`, which fits in u64.
            first += low * stride;
            found.axes.push(GridAxis { at: 0, span, stride });
            found.left *= span;
            stride *= self.counts[d];
        }
        found.index = Some(first);
        Ok(found)
    }
}

/// One dimension of [`Overlapping`], the fastest first.
#[derive(Debug, Clone)]
struct GridAxis {
    at: u64,
    span: u64,
    stride: u64,
}

/// Iterator of [`ChunkGrid::overlapping`].
#[derive(Debug, Clone)]
pub struct Overlapping {
    axes: Vec<GridAxis>,
    index: Option<u64>,
    left: u64,
}

impl Overlapping {
    /// Number of chunks not yet yielded.
    pub fn remaining(&self) -> u64 {
        self.left
    }
}

impl Iterator for Overlapping {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let found = self.index.take()?;
        self.left -= 1;
        let mut next = found;
        for axis in &mut self.axes {
            if axis.at + 1 < axis.span {
                axis.at += 1;
                self.index = Some(next + axis.stride);
                break;
            }
            next -= axis.at * axis.stride;
            axis.at = 0;
        }
        Some(found)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::try_from(self.left).unwrap_or(usize::MAX), usize::try_from(self.left).ok())
    }
}
