//! The elements that a rank writes or reads: a product of axes, iterated as runs.

use std::sync::Arc;

use super::axis::{ContiguousRun, ViewAxis};

/// Elements that are adjacent in the array and in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// Index of the first element in the array, in C order.
    pub at: u64,
    /// Its index in memory, in C order of the local shape.
    pub memory: u64,
    /// Number of elements, at least one.
    pub elements: u64,
}

/// A dimension outside the innermost one, along which runs repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OuterAxis {
    axis: ViewAxis,
    /// Number of elements from one index to the next, in the array and in memory.
    step: u64,
    memory_step: u64,
}

/// A product of axes. See [the module of views](super).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Footprint {
    /// Number of elements of the whole array.
    total: u64,
    /// Number of elements of the memory.
    memory: u64,
    outer: Vec<OuterAxis>,
    last: ViewAxis,
    /// Number of elements in the dimensions inside `last`, which are taken whole.
    inner: u64,
    elements: u64,
    /// For a box, first index and count in each dimension of the array.
    bounds: Option<(Vec<u64>, Vec<u64>)>,
}

impl Footprint {
    /// Makes the product of `axes` in an array of `shape`, held by memory of `local_shape`. Products of both shapes
    /// are below 2^63.
    pub(super) fn new(shape: &[u64], local_shape: &[u64], axes: Vec<ViewAxis>) -> Footprint {
        let bounds = axes.iter().map(|axis| match axis {
            ViewAxis::Range { start, step: 1, count, .. } => Some((*start, *count)),
            _ => None,
        });
        let bounds = bounds.collect::<Option<Vec<_>>>().map(|bounds| bounds.into_iter().unzip());
        let elements = match axes.iter().any(ViewAxis::is_empty) {
            true => 0,
            false => axes.iter().map(ViewAxis::elements).product(),
        };
        let (mut inner, mut memory_step) = (1, 1);
        let (mut last, mut outer) = (None, Vec::new());
        for (i, axis) in axes.into_iter().enumerate().rev() {
            let (len, local) = (shape[i], local_shape[i]);
            match (&last, axis.is_whole(len, local)) {
                (None, true) => inner *= len,
                (None, false) => {
                    memory_step = inner * local;
                    last = Some((axis, inner * len));
                }
                (Some((_, step)), _) => {
                    outer.push(OuterAxis { axis, step: *step, memory_step });
                    memory_step *= local;
                    last = last.map(|(last, step)| (last, step * len));
                }
            }
        }
        outer.reverse();
        let last = last.map_or(ViewAxis::whole(1), |(last, _)| last);
        Footprint {
            total: shape.iter().product(),
            memory: local_shape.iter().product(),
            outer,
            last,
            inner,
            elements,
            bounds,
        }
    }

    /// The number of its elements.
    pub fn elements(&self) -> u64 {
        self.elements
    }

    /// The number of elements of the whole array.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The number of elements of the whole memory.
    pub fn memory(&self) -> u64 {
        self.memory
    }

    /// First index and count in each dimension, if it is a box.
    pub fn bounds(&self) -> Option<(&[u64], &[u64])> {
        self.bounds.as_ref().map(|(start, count)| (&start[..], &count[..]))
    }

    /// The map, if it has one, and the number of valid entries.
    pub fn map(&self) -> Option<(&Arc<[i64]>, usize)> {
        let axes = self.outer.iter().map(|outer| &outer.axis).chain([&self.last]);
        axes.into_iter().find_map(|axis| match axis {
            ViewAxis::Map { map, count } => Some((map, *count)),
            _ => None,
        })
    }

    /// Whether an axis skips indices between those that it takes at a distance.
    pub(super) fn has_gaps(&self) -> bool {
        let axes = self.outer.iter().map(|outer| &outer.axis).chain([&self.last]);
        axes.into_iter()
            .any(|axis| matches!(axis, ViewAxis::Range { step, count, .. } if *step > 1 && *count > 1))
    }

    /// A number of elements that divides every run and its begin, so that these elements always move together. 0 if
    /// there are none.
    pub fn unit(&self) -> u64 {
        if self.elements == 0 {
            return 0;
        }
        let along = match &self.last {
            ViewAxis::Map { .. } => 1,
            ViewAxis::Range { step, .. } if *step > 1 => 1,
            ViewAxis::Range { start, count, .. } => gcd(*start, *count),
            ViewAxis::Cyclic { first, block, period, extent } => {
                gcd(gcd(*first, *block), gcd(*period, *extent))
            }
        };
        let unit = self.inner * along.max(1);
        // Outer indices must not break the division.
        self.outer.iter().fold(unit, |unit, outer| gcd(unit, outer.step))
    }

    /// The approximate number of its runs: exact except for maps, whose neighbouring entries may join.
    pub fn run_count(&self) -> u64 {
        let outer: u64 = self.outer.iter().map(|outer| outer.axis.elements()).product();
        if self.elements == 0 {
            return 0;
        }
        let along = match &self.last {
            ViewAxis::Range { step: 1, .. } => 1,
            ViewAxis::Range { count, .. } => *count,
            ViewAxis::Cyclic { block, .. } => self.last.len().div_ceil(*block),
            ViewAxis::Map { map, count } => {
                let map = &map[..*count];
                let joins = map.windows(2).filter(|pair| pair[0] >= 0 && pair[1] == pair[0] + 1);
                self.last.elements() - joins.count() as u64
            }
        };
        outer * along
    }

    /// Its runs in the order of memory. They ascend in the array, unless a map does not.
    pub fn runs(&self) -> Runs<'_> {
        self.runs_in(None)
    }

    /// Its runs in the order of the array; `order` has the entries of its map that name an element, ordered by index,
    /// or is `None` without a map.
    pub fn ascending<'a>(&'a self, order: Option<&'a [u32]>) -> Runs<'a> {
        self.runs_in(order)
    }

    fn runs_in<'a>(&'a self, order: Option<&'a [u32]>) -> Runs<'a> {
        Runs {
            footprint: self,
            order,
            outer: vec![0; self.outer.len()],
            bases: None,
            at: 0,
            ended: self.elements == 0,
        }
    }

    /// Calls `act` with the indices in the array and in memory of each group of `unit` elements, in the order of
    /// memory. `unit` divides [`unit`](Footprint::unit).
    pub fn for_each_unit(&self, unit: u64, mut act: impl FnMut(u64, u64)) {
        let ViewAxis::Map { map, count } = &self.last else {
            return self.runs().for_each(|run| {
                for n in 0..run.elements / unit {
                    act(run.at / unit + n, run.memory + n * unit);
                }
            });
        };
        let each = self.inner / unit;
        let mut outer = self.runs();
        while let Some((base, memory_base)) = outer.base() {
            // Divide here, because the loop would divide for each entry.
            let base = base / unit;
            for (place, index) in map[..*count].iter().enumerate() {
                if let Ok(index) = u64::try_from(*index) {
                    let (at, memory) = (base + index * each, memory_base + place as u64 * self.inner);
                    for n in 0..each {
                        act(at + n, memory + n * unit);
                    }
                }
            }
            outer.step_outer();
        }
    }

    /// The number of entries of an axis in this order: all, except for a map.
    fn len_of(axis: &ViewAxis, order: Option<&[u32]>) -> u64 {
        match (axis, order) {
            (ViewAxis::Map { .. }, Some(order)) => order.len() as u64,
            _ => axis.len(),
        }
    }
}

/// The greatest common divisor; of 0 and n it is n.
pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The runs of a footprint; takes a few words for each dimension.
#[derive(Debug, Clone)]
pub struct Runs<'a> {
    footprint: &'a Footprint,
    order: Option<&'a [u32]>,
    /// Positions along the outer axes.
    outer: Vec<u64>,
    /// The offsets that the outer axes add, in the array and in memory; `None` before they are known.
    bases: Option<(u64, u64)>,
    /// Position along the last axis.
    at: u64,
    ended: bool,
}

impl Runs<'_> {
    /// The offsets that the outer axes add at their current positions, or at the next ones at which all have an
    /// element.
    fn base(&mut self) -> Option<(u64, u64)> {
        while !self.ended {
            if self.bases.is_some() {
                return self.bases;
            }
            let (mut base, mut memory) = (0, 0);
            let mut missing = None;
            for (i, (outer, at)) in self.footprint.outer.iter().zip(&self.outer).enumerate() {
                match outer.axis.index(*at, self.order) {
                    Some((index, place)) => {
                        base += index * outer.step;
                        memory += place * outer.memory_step;
                    }
                    None => missing = missing.or(Some(i)),
                }
            }
            match missing {
                None => self.bases = Some((base, memory)),
                Some(axis) => self.advance(axis + 1),
            }
        }
        None
    }

    /// Moves to the next position of the outer axes.
    fn step_outer(&mut self) {
        self.advance(self.outer.len());
    }

    /// Moves to the next position of the first `axes` outer axes; those inside them start again.
    fn advance(&mut self, axes: usize) {
        (self.bases, self.at) = (None, 0);
        self.outer[axes..].fill(0);
        for i in (0..axes).rev() {
            self.outer[i] += 1;
            if self.outer[i] < Footprint::len_of(&self.footprint.outer[i].axis, self.order) {
                return;
            }
            self.outer[i] = 0;
        }
        self.ended = true;
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let inner = self.footprint.inner;
        loop {
            let (base, memory_base) = self.base()?;
            let (segment, taken) = self.footprint.last.segment(self.at, self.order);
            self.at += taken;
            if self.at >= Footprint::len_of(&self.footprint.last, self.order) {
                self.step_outer();
            }
            if let Some(ContiguousRun { index, memory, len }) = segment {
                return Some(Run {
                    at: base + index * inner,
                    memory: memory_base + memory * inner,
                    elements: len * inner,
                });
            }
        }
    }
}
