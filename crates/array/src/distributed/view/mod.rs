//! The elements of a global array that a rank holds, and their places in its memory.
//!
//! A [`View`] is the caller's description. [`View::resolve`] checks it against the shape of the array and the ranks,
//! and returns a [`LocalView`]: the shape of the rank's memory and two [`Footprint`]s, for the elements that the rank
//! writes and for those that it reads. A footprint is a product of one axis for each dimension (A-1), and yields its
//! elements as [`Run`]s.
//!
//! | module | what it does |
//! |---|---|
//! | [`axis`] | the indices along one dimension: a range, cyclic blocks, or a map |
//! | [`footprint`] | the product of axes, as runs of elements |
//! | `resolve` | the checks of views |
//! | [`decomposition`] | views from decomposition files of ParallelIO |
//!
//! Invariants: elements count in C order, in the array and in memory; a footprint never names an element outside the
//! array or memory; a regular footprint takes a few words for each dimension, however many elements it has.
//!
//! ```
//! use fieldstone_array::distributed::view::View;
//! # fn main() -> fieldstone_core::Result<()> {
//! let view = View::grid(&[2, 1]).halo(1).resolve(&[5, 3], 1, 2)?;
//! assert_eq!(view.local_shape(), [4, 5], "two rows of three, and one more on each side");
//! let runs: Vec<_> = view.written().runs().map(|run| (run.at, run.memory, run.elements)).collect();
//! assert_eq!(runs, [(9, 6, 3), (12, 11, 3)]);
//! # Ok(()) }
//! ```

use std::sync::Arc;

use fieldstone_core::{Code, Result};
use xxhash_rust::xxh3::xxh3_64;

pub mod axis;
pub mod decomposition;
pub mod footprint;
mod resolve;

use axis::ViewAxis;
pub use footprint::{Footprint, Run, Runs};

/// The part of an array that a rank holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct View {
    kind: ViewKind,
    halo: Halo,
    stride: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ViewKind {
    Block { start: Vec<u64>, count: Vec<u64> },
    Grid { grid: Vec<u64> },
    Cyclic { grid: Vec<u64>, blocks: Vec<u64> },
    Irregular { map: Arc<[i64]>, owned: Option<u64>, dim: Option<usize> },
    Joined { count: u64 },
}

/// How much wider memory is than a block, on both sides of each dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Halo {
    /// The same on every side.
    All(u64),
    /// Before and after the block, for each dimension.
    Each(Vec<(u64, u64)>),
}

impl From<u64> for Halo {
    fn from(width: u64) -> Halo {
        Halo::All(width)
    }
}

impl From<Vec<(u64, u64)>> for Halo {
    fn from(widths: Vec<(u64, u64)>) -> Halo {
        Halo::Each(widths)
    }
}

impl View {
    fn of(kind: ViewKind) -> View {
        View { kind, halo: Halo::All(0), stride: Vec::new() }
    }

    /// The box of `count` indices from `start` on.
    pub fn block(start: &[u64], count: &[u64]) -> View {
        View::of(ViewKind::Block { start: start.to_vec(), count: count.to_vec() })
    }

    /// This rank's part in a balanced cut, as numpy's `array_split` makes it; ranks are in C order over the grid.
    pub fn grid(grid: &[u64]) -> View {
        View::of(ViewKind::Grid { grid: grid.to_vec() })
    }

    /// Blocks assigned to ranks in turn in every dimension; ranks are in C order over the grid. In memory the blocks
    /// are adjacent.
    pub fn cyclic(grid: &[u64], blocks: &[u64]) -> View {
        View::of(ViewKind::Cyclic { grid: grid.to_vec(), blocks: blocks.to_vec() })
    }

    /// Global indices along dimension `dim`, with the other dimensions whole; without `dim`, elements by their index
    /// in C order. -1 means no element. The first `owned` entries are written (`None`: all), and all are read.
    pub fn irregular(map: impl Into<Arc<[i64]>>, owned: Option<u64>, dim: Option<usize>) -> View {
        View::of(ViewKind::Irregular { map: map.into(), owned, dim })
    }

    /// The same map along another dimension; any other view unchanged.
    pub fn along(mut self, along: usize) -> View {
        if let ViewKind::Irregular { dim, .. } = &mut self.kind {
            *dim = Some(along);
        }
        self
    }

    /// `count` indices of the first dimension, after those of the lower ranks.
    pub fn joined(count: u64) -> View {
        View::of(ViewKind::Joined { count })
    }

    /// The same with memory that is wider than the block. The halo is not written; a read fills the part of it inside
    /// the array.
    pub fn halo(mut self, halo: impl Into<Halo>) -> View {
        self.halo = halo.into();
        self
    }

    /// The same with indices `stride` apart, for reading. Empty: 1 everywhere.
    pub fn stride(mut self, stride: &[u64]) -> View {
        self.stride = stride.to_vec();
        self
    }

    /// The name by which users choose it.
    pub fn word(&self) -> &'static str {
        match self.kind {
            ViewKind::Block { .. } | ViewKind::Grid { .. } => "block",
            ViewKind::Cyclic { .. } => "cyclic",
            ViewKind::Irregular { .. } => "irregular",
            ViewKind::Joined { .. } => "joined",
        }
    }

    /// Describes the view, with everything that is equal on all ranks: `block 2x2x1 halo 1`, `cyclic 2x2 blocks 4x4`,
    /// `irregular`.
    pub fn describe(&self) -> String {
        let product = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join("x");
        let mut text = self.word().to_owned();
        match &self.kind {
            ViewKind::Grid { grid } => text += &format!(" {}", product(grid)),
            ViewKind::Cyclic { grid, blocks } => {
                text += &format!(" {} blocks {}", product(grid), product(blocks));
            }
            ViewKind::Block { .. } | ViewKind::Irregular { .. } | ViewKind::Joined { .. } => {}
        }
        match &self.halo {
            Halo::All(0) => {}
            Halo::All(width) => text += &format!(" halo {width}"),
            Halo::Each(widths) => {
                let each: Vec<String> = widths.iter().map(|(a, b)| format!("{a}/{b}")).collect();
                text += &format!(" halo {}", each.join("x"));
            }
        }
        if self.stride.iter().any(|stride| *stride != 1) {
            text += &format!(" stride {}", product(&self.stride));
        }
        text
    }

    /// The number of indices of the first dimension that this rank adds, if the dimension's extent is the sum over
    /// all ranks.
    pub fn joined_count(&self) -> Option<u64> {
        match self.kind {
            ViewKind::Joined { count } => Some(count),
            _ => None,
        }
    }

    /// See [`LocalView::deal`].
    fn deal(&self) -> u64 {
        match &self.kind {
            ViewKind::Grid { .. } | ViewKind::Cyclic { .. } => {
                xxh3_64(format!("{:?}", self.kind).as_bytes()) | 1
            }
            ViewKind::Joined { .. } => 2,
            ViewKind::Block { .. } | ViewKind::Irregular { .. } => 0,
        }
    }

    /// The minimum length of the first dimension that contains the view, with `row` elements for each index; `None`
    /// if the view takes a share of whatever there is.
    pub fn reaches(&self, row: u64) -> Option<u64> {
        let last = |start: u64, count: u64, stride: u64| match count {
            0 => 0,
            _ => start.saturating_add((count - 1).saturating_mul(stride)).saturating_add(1),
        };
        match &self.kind {
            ViewKind::Block { start, count } if !count.contains(&0) => {
                let stride = self.stride.first().copied().unwrap_or(1);
                Some(last(*start.first()?, *count.first()?, stride))
            }
            ViewKind::Block { .. } => Some(0),
            ViewKind::Irregular { map, dim: Some(0), .. } => Some(largest(map).map_or(0, |last| last + 1)),
            ViewKind::Irregular { map, dim: None, .. } => {
                Some(largest(map).map_or(0, |last| last / row.max(1) + 1))
            }
            _ => None,
        }
    }

    /// Resolves the view for an array of this shape on `rank` of `size` ranks. A joined view begins where the lower
    /// ranks end: see [`resolve_joined`](View::resolve_joined).
    ///
    /// Errors: `Invalid`, with the position and value at fault.
    pub fn resolve(&self, shape: &[u64], rank: usize, size: usize) -> Result<LocalView> {
        self.resolve_joined(shape, rank, size, 0)
    }

    /// As [`resolve`](View::resolve); the lower ranks hold `before` indices of a joined view.
    pub fn resolve_joined(&self, shape: &[u64], rank: usize, size: usize, before: u64) -> Result<LocalView> {
        let local = resolve::resolve(self, shape, (rank, size), before)?;
        Ok(LocalView { deal: self.deal(), ..local })
    }
}

fn largest(map: &[i64]) -> Option<u64> {
    map.iter().copied().max().and_then(|last| u64::try_from(last).ok())
}

/// Extents of an array and of the rank's memory, and an axis for each dimension with the indices taken.
#[derive(Debug, Clone, PartialEq, Eq)]
struct AxisProduct {
    shape: Vec<u64>,
    axes: Vec<ViewAxis>,
}

/// A view of an array of known shape, on one rank. See the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalView {
    local_shape: Vec<u64>,
    /// For views that distribute an array: how they do it. Ranks with equal values hold no element twice.
    deal: u64,
    written: Option<Footprint>,
    read: Footprint,
    /// The input of the footprints: the part written, if it is another one, and the part read.
    written_of: Option<AxisProduct>,
    read_of: AxisProduct,
}

impl LocalView {
    /// Makes a view from the part read and, if it is another one, the part written, in an array of `shape`.
    fn new(
        shape: &[u64],
        local_shape: Vec<u64>,
        deal: u64,
        read: Vec<ViewAxis>,
        written: Option<Vec<ViewAxis>>,
    ) -> LocalView {
        let made = |axes: &Vec<ViewAxis>| Footprint::new(shape, &local_shape, axes.clone());
        let of = |axes| AxisProduct { shape: shape.to_vec(), axes };
        LocalView {
            deal,
            written: written.as_ref().map(made),
            read: made(&read),
            written_of: written.map(of),
            read_of: of(read),
            local_shape,
        }
    }

    /// The same elements of an array that is stored with its dimensions reversed, as one in Fortran order is; the
    /// local shape is reversed, too. Memory then counts in Fortran order: see
    /// [`Buffer::transposed`](crate::distributed::buffer::Buffer::transposed). A map over all dimensions counts
    /// elements as they are stored, and does not change.
    pub fn transposed(&self) -> LocalView {
        fn reversed<T: Clone>(list: &[T]) -> Vec<T> {
            list.iter().rev().cloned().collect()
        }
        let AxisProduct { shape, axes } = &self.read_of;
        // If some ranks distribute an array one way and others the other way, nothing is known.
        let deal = if self.deal == 0 { 0 } else { self.deal ^ 1 << 63 };
        let written = self.written_of.as_ref().map(|written| reversed(&written.axes));
        LocalView::new(&reversed(shape), reversed(&self.local_shape), deal, reversed(axes), written)
    }

    /// The shape of this rank's memory.
    pub fn local_shape(&self) -> &[u64] {
        &self.local_shape
    }

    /// A number that is equal on all ranks if the view distributes the array so that no element is written by two
    /// ranks; 0 if each rank declares its own part.
    pub fn deal(&self) -> u64 {
        self.deal
    }

    /// The elements that this rank writes: by default all that it reads.
    pub fn written(&self) -> &Footprint {
        self.written.as_ref().unwrap_or(&self.read)
    }

    /// The elements that this rank reads.
    pub fn read(&self) -> &Footprint {
        &self.read
    }

    /// The elements that this rank writes, for a call that writes.
    ///
    /// Errors: `Invalid` for indices that are not adjacent.
    pub fn to_write(&self) -> Result<&Footprint> {
        match self.written().has_gaps() {
            false => Ok(self.written()),
            true => Err(Code::Option.error("a view with a stride cannot be written").with_hint(
                "a stride is only for reading: leave it out, or pass the indices to fst.irregular(map)",
            )),
        }
    }
}
