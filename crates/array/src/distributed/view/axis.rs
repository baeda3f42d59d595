//! The indices of a footprint along one dimension.

use std::sync::Arc;

/// Indices along one dimension of an array, each with its position along the same dimension of memory.
#[derive(Debug, Clone)]
pub enum ViewAxis {
    /// `count` indices from `start` on, `step` apart; in memory, adjacent from `memory` on.
    Range {
        /// First index.
        start: u64,
        /// Distance between indices.
        step: u64,
        /// Number of indices.
        count: u64,
        /// Position of the first index in memory.
        memory: u64,
    },
    /// Blocks of `block` indices, `period` apart, below `extent`; adjacent in memory.
    Cyclic {
        /// First index.
        first: u64,
        /// Number of indices in a block; the last one may have fewer.
        block: u64,
        /// Distance from the beginning of one block to that of the next.
        period: u64,
        /// Length of the dimension.
        extent: u64,
    },
    /// The array index for each position in memory, for the first `count` positions; -1 for none.
    Map {
        /// The map.
        map: Arc<[i64]>,
        /// The number of its valid entries.
        count: usize,
    },
}

/// Indices that are adjacent in the array and in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ContiguousRun {
    pub index: u64,
    pub memory: u64,
    pub len: u64,
}

impl ViewAxis {
    /// Takes a whole dimension.
    pub fn whole(len: u64) -> ViewAxis {
        ViewAxis::Range { start: 0, step: 1, count: len, memory: 0 }
    }

    /// The number of positions in memory that it fills, including those without an element.
    pub fn len(&self) -> u64 {
        match self {
            ViewAxis::Range { count, .. } => *count,
            ViewAxis::Cyclic { first, block, period, extent } => {
                let from_first = extent.saturating_sub(*first);
                let blocks = from_first / period;
                blocks * block + (from_first - blocks * period).min(*block)
            }
            ViewAxis::Map { count, .. } => *count as u64,
        }
    }

    /// Whether it fills no position.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it takes each index of a dimension and of memory, in order.
    pub(super) fn is_whole(&self, extent: u64, memory_extent: u64) -> bool {
        matches!(self, ViewAxis::Range { start: 0, step: 1, count, memory: 0 } if *count == extent)
            && extent == memory_extent
    }

    /// The first of its segments from position `at` on, in `order` if given, and the number of positions that it
    /// takes. `None` for a -1 of a map.
    pub(super) fn segment(&self, at: u64, order: Option<&[u32]>) -> (Option<ContiguousRun>, u64) {
        match self {
            ViewAxis::Range { start, step: 1, count, memory } => {
                let len = count - at;
                (Some(ContiguousRun { index: start + at, memory: memory + at, len }), len)
            }
            ViewAxis::Range { start, step, memory, .. } => {
                (Some(ContiguousRun { index: start + at * step, memory: memory + at, len: 1 }), 1)
            }
            ViewAxis::Cyclic { first, block, period, extent } => {
                let (nth, within) = (at / block, at % block);
                let index = first + nth * period + within;
                let len = (block - within).min(extent - index);
                (Some(ContiguousRun { index, memory: at, len }), len)
            }
            ViewAxis::Map { map, count } => {
                let place = |at: u64| order.map_or(at, |order| u64::from(order[at as usize]));
                let ends = order.map_or(*count, <[u32]>::len) as u64;
                let memory = place(at);
                let Ok(index) = u64::try_from(map[memory as usize]) else { return (None, 1) };
                let next = |len: u64| {
                    at + len < ends && {
                        let memory_next = place(at + len);
                        memory_next == memory + len
                            && u64::try_from(map[memory_next as usize]) == Ok(index + len)
                    }
                };
                let len = (1..).find(|len| !next(*len)).unwrap_or(1);
                (Some(ContiguousRun { index, memory, len }), len)
            }
        }
    }

    /// The index at position `at`, and its position in memory.
    pub(super) fn index(&self, at: u64, order: Option<&[u32]>) -> Option<(u64, u64)> {
        match self {
            ViewAxis::Map { map, .. } => {
                let memory = order.map_or(at, |order| u64::from(order[at as usize]));
                u64::try_from(map[memory as usize]).ok().map(|index| (index, memory))
            }
            _ => self.segment(at, None).0.map(|segment| (segment.index, segment.memory)),
        }
    }

    /// Number of elements along it.
    pub(super) fn elements(&self) -> u64 {
        match self {
            ViewAxis::Map { map, count } => map[..*count].iter().filter(|index| **index >= 0).count() as u64,
            _ => self.len(),
        }
    }
}

/// Maps are compared by their contents: a plan is made for a map, not for its hash.
impl PartialEq for ViewAxis {
    fn eq(&self, other: &ViewAxis) -> bool {
        match (self, other) {
            (
                ViewAxis::Range { start, step, count, memory },
                ViewAxis::Range { start: start2, step: step2, count: count2, memory: memory2 },
            ) => (start, step, count, memory) == (start2, step2, count2, memory2),
            (
                ViewAxis::Cyclic { first, block, period, extent },
                ViewAxis::Cyclic { first: first2, block: block2, period: period2, extent: extent2 },
            ) => (first, block, period, extent) == (first2, block2, period2, extent2),
            (ViewAxis::Map { map, count }, ViewAxis::Map { map: map2, count: count2 }) => {
                count == count2 && (Arc::ptr_eq(map, map2) || map[..*count] == map2[..*count])
            }
            _ => false,
        }
    }
}

impl Eq for ViewAxis {}
