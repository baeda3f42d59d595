//! Shapes, boxes and chunks of arrays, and operations on them: copy, fill, coverage, statistics.
//!
//! A **shape** is the extents of an array, slowest dimension first (C order, as in numpy). A **box** is a start and
//! count for each dimension in the array's global index space. A buffer "covers" a box if it holds exactly the box's
//! elements in C order.
//!
//! Invariants:
//! * rank 0 is a scalar: one element, one box, one chunk;
//! * an extent may be zero: the array then has no elements and no chunks;
//! * every product and sum of outside numbers is checked: a result that does not fit in `u64` is `Invalid`.

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

/// Maximum number of dimensions of an array, as in numpy 1.
pub const MAX_RANK: usize = 32;

/// Number of elements of an array of this shape; 1 for a scalar. `Invalid` if the rank exceeds [`MAX_RANK`] or the
/// number does not fit in `u64`.
pub fn element_count(shape: &[u64]) -> Result<u64> {
    check_rank(shape.len())?;
    // A zero extent empties the array whatever the others are, so an overflow of the dimensions before it must not
    // hide it.
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
                .error(format!("shape {shape:?} of {item_size}-byte elements does not fit in memory"))
                .with_hint("work on a smaller box")
        },
    )
}

fn check_rank(rank: usize) -> Result<()> {
    if rank <= MAX_RANK {
        return Ok(());
    }
    Err(Code::Shape.error(format!("the array has {rank} dimensions; the limit is {MAX_RANK}")))
}
