//! Shapes, boxes and chunks of arrays, and what is done with them: copy, fill, coverage, statistics.
//!
//! A **shape** is the extents of an array, slowest dimension first (C order, as in numpy). A **box** is
//! start and count per dimension in the array's global index space. A buffer "covers" a box when it
//! holds the box's elements in C order and nothing else.
//!
//! Invariants:
//! * rank 0 is a scalar: one element, one box, one chunk;
//! * zero extents are allowed: no element, no chunk;
//! * every product and sum of outside numbers is checked: what does not fit `u64` is `Invalid`.

mod axis;
mod copy;
mod coverage;
mod flat;
mod grid;
mod index_box;
mod stats;

pub use axis::CoordinateAxis;
pub use copy::{copy_box, fill_box};
pub use coverage::{Uncovered, uncovered};
pub use flat::flat_boxes;
pub use grid::{ChunkGrid, Overlapping};
pub use index_box::IndexBox;
pub use stats::{Scalar, Summary, summarize, summarize_without};

use crate::{Code, Result};

/// Most dimensions an array may have, as in numpy 1.
pub const MAX_RANK: usize = 32;

/// Elements of an array of this shape; 1 for a scalar. `Invalid` when the rank exceeds [`MAX_RANK`] or
/// the number does not fit `u64`.
pub fn element_count(shape: &[u64]) -> Result<u64> {
    check_rank(shape.len())?;
    // A zero extent empties the array whatever the others are, so it must not be hidden by an
    // overflow of the dimensions before it.
    if shape.contains(&0) {
        return Ok(0);
    }
    let product = shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent));
    product.ok_or_else(|| Code::Shape.error(format!("shape {shape:?} has more than 2^64 elements")))
}

/// Bytes of an array of this shape, as a length in memory.
pub fn byte_count(shape: &[u64], item_size: usize) -> Result<usize> {
    let bytes = element_count(shape)?.checked_mul(item_size as u64);
    bytes.and_then(|bytes| usize::try_from(bytes).ok()).filter(|&b| b <= isize::MAX as usize).ok_or_else(
        || {
            Code::Shape
                .error(format!("shape {shape:?} of {item_size}-byte elements does not fit memory"))
                .with_hint("work on a smaller box")
        },
    )
}

fn check_rank(rank: usize) -> Result<()> {
    if rank <= MAX_RANK {
        return Ok(());
    }
    Err(Code::Shape.error(format!("an array of {rank} dimensions; at most {MAX_RANK} are possible")))
}
