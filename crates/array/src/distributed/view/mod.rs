//! What of a global array a rank holds.
//!
//! A [`View`] is what a caller says; with the array's shape and the rank it becomes a [`LocalView`]: the shape of the
//! rank's buffer, and the [`Run`]s that lead from the buffer to the array. Both are in C order; elements are counted, not
//! bytes, so that one view serves sets of any element size.
//!
//! ```
//! use fieldstone_array::distributed::view::{View, Whole};
//! // Ten elements cut over three ranks as numpy's array_split does; the second has elements 4, 5 and 6.
//! let local = View::grid(&[3]).local(&Whole::new(&[10])?, 1, 3)?;
//! assert_eq!(local.shape(), [3]);
//! let mut runs = Vec::new();
//! local.written(&mut |run| runs.push((run.global, run.local, run.len)));
//! assert_eq!(runs, [(4, 0, 3)]);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```
//!
//! | module | |
//! |---|---|
//! | `local` | a view of one rank: checks, shape, runs |
//! | `axis` | which indices of one dimension a rank holds |

mod axis;
mod local;

use std::sync::Arc;

use fieldstone_core::{Code, Result};

pub use local::{LocalView, Run};

/// The shape of a global array.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Whole {
    shape: Vec<u64>,
    elements: u64,
}

impl Whole {
    /// An array of these extents; `TooLarge` where it has more elements than 2^63.
    pub fn new(shape: &[u64]) -> Result<Whole> {
        // An extent of 0 makes it empty, whatever the others are.
        let product = match shape.contains(&0) {
            true => Some(0),
            false => shape.iter().try_fold(1u64, |all, len| all.checked_mul(*len)),
        };
        let elements = product.filter(|elements| *elements <= i64::MAX as u64);
        let beyond =
            || Code::TooLarge.error(format!("an array of shape {shape:?} has more than 2^63 elements"));
        Ok(Whole { shape: shape.to_vec(), elements: elements.ok_or_else(beyond)? })
    }

    /// Its extents.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many elements it has.
    pub fn elements(&self) -> u64 {
        self.elements
    }
}

/// Elements beside those that a rank holds, before and behind, in each dimension.
pub type Halo = Vec<(u64, u64)>;

/// What a rank holds of a global array. See the constructors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// See [`View::block`].
    Block {
        /// First index in each dimension.
        start: Vec<u64>,
        /// How many in each dimension.
        count: Vec<u64>,
        /// Every n-th in each dimension; empty for all.
        stride: Vec<u64>,
        /// What the buffer has around; empty for nothing.
        halo: Halo,
    },
    /// See [`View::grid`].
    Grid {
        /// Ranks in each dimension.
        grid: Vec<u64>,
        /// What the buffer has around; empty for nothing.
        halo: Halo,
    },
    /// See [`View::cyclic`].
    Cyclic {
        /// Ranks in each dimension.
        grid: Vec<u64>,
        /// Length of a block in each dimension.
        blocks: Vec<u64>,
    },
    /// See [`View::irregular`].
    Irregular {
        /// Global indices, -1 for none.
        map: Arc<[i64]>,
        /// How many of them, the first ones, are written.
        owned: usize,
        /// The dimension that they count along; flat ones where it is absent.
        dim: Option<usize>,
    },
    /// See [`View::joined`].
    Joined {
        /// Extent of this rank's part.
        count: u64,
    },
}

impl View {
    /// A box: `count` indices from `start` on.
    pub fn block(start: &[u64], count: &[u64]) -> View {
        View::Block { start: start.to_vec(), count: count.to_vec(), stride: Vec::new(), halo: Vec::new() }
    }

    /// A balanced cut: `grid` ranks in each dimension, in C order; extents as numpy's `array_split` gives them.
    pub fn grid(grid: &[u64]) -> View {
        View::Grid { grid: grid.to_vec(), halo: Vec::new() }
    }

    /// The same with a buffer that is wider by `halo` on both sides. What lies there is not written; a read fills what
    /// of it lies within the array. Only of blocks.
    pub fn with_halo(mut self, wider: Halo) -> View {
        if let View::Block { halo, .. } | View::Grid { halo, .. } = &mut self {
            *halo = wider;
        }
        self
    }

    /// The same with indices `every` apart, for reading. Only of blocks.
    pub fn with_stride(mut self, every: &[u64]) -> View {
        if let View::Block { stride, .. } = &mut self {
            *stride = every.to_vec();
        }
        self
    }

    /// Blocks dealt out in turn in each dimension, to `grid` ranks; the buffer has them one behind the other.
    pub fn cyclic(grid: &[u64], blocks: &[u64]) -> View {
        View::Cyclic { grid: grid.to_vec(), blocks: blocks.to_vec() }
    }

    /// Elements by a map of global indices along `dim`, the other dimensions whole, or by flat indices in C order; -1 is
    /// no element. The first `owned` are written, all are read.
    pub fn irregular(map: impl Into<Arc<[i64]>>, owned: Option<usize>, dim: Option<usize>) -> View {
        let map = map.into();
        View::Irregular { owned: owned.unwrap_or(map.len()), map, dim }
    }

    /// The ranks' parts one behind the other along the first dimension, whose extent is their sum.
    pub fn joined(count: u64) -> View {
        View::Joined { count }
    }
}
