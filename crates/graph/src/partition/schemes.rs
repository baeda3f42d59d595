//! The four partitioners.

use fieldstone_core::env::sim::Random;
use fieldstone_format::graph_segment::VertexPlace;
use fieldstone_format::graph_segment::partitioning::SlotLabels;

use super::tree::Partition;
use super::{Partitioner, SlotNumber, Splitting};

/// Keeps all relations of a vertex at its home.
#[derive(Debug)]
pub struct EdgeCut {
    pub slots: SlotNumber,
}

/// Places each relation by a hash of both ends.
#[derive(Debug)]
pub struct VertexCut {
    pub slots: SlotNumber,
}

/// Splits partitions by the bits of a hash of the far end.
#[derive(Debug)]
pub struct Giga {
    pub slots: SlotNumber,
    pub threshold: u32,
}

/// Splits partitions on the way to the far end's home.
#[derive(Debug)]
pub struct Dido {
    pub slots: SlotNumber,
    pub threshold: u32,
    pub labels: SlotLabels,
}

/// Spreads the bits of a number over all of it. The specification of segments fixes this function.
fn mix(number: u64) -> u64 {
    Random::new(number).next_u64()
}

fn within(slots: SlotNumber, hash: u64) -> u32 {
    ((u128::from(hash) * u128::from(slots)) >> 64) as u32
}

/// For labels numbered by levels: a partition at depth d gives away to the slot that is 2^d further on.
pub fn low_top(label: u32) -> Partition {
    match label.checked_ilog2() {
        None => Partition::ROOT,
        Some(bits) => Partition::at(bits + 1, label),
    }
}

/// Mirrors the bits below the highest: converts a partition's turns into its label in the paper's figure, and
/// back.
fn mirrored(number: u32) -> u32 {
    match number.checked_ilog2() {
        None | Some(0) => number,
        Some(bits) => 1 << bits | (number & ((1 << bits) - 1)).reverse_bits() >> (32 - bits),
    }
}

impl Partitioner for EdgeCut {
    fn slots(&self) -> SlotNumber {
        self.slots
    }

    fn splitting(&self) -> Splitting {
        Splitting::Never
    }

    fn path(&self, _: VertexPlace, _: VertexPlace) -> u32 {
        0
    }
}

impl Partitioner for VertexCut {
    fn slots(&self) -> SlotNumber {
        self.slots
    }

    fn splitting(&self) -> Splitting {
        Splitting::Always
    }

    fn path(&self, v: VertexPlace, u: VertexPlace) -> u32 {
        within(self.slots, mix(mix(v.0 as u64) ^ u.0 as u64))
    }
}

impl Partitioner for Giga {
    fn slots(&self) -> SlotNumber {
        self.slots
    }

    fn splitting(&self) -> Splitting {
        Splitting::Beyond(self.threshold)
    }

    fn path(&self, _: VertexPlace, u: VertexPlace) -> u32 {
        // From the lower half of the place, which determines no home.
        within(self.slots, mix(u.0 as u64))
    }
}

impl Partitioner for Dido {
    fn slots(&self) -> SlotNumber {
        self.slots
    }

    fn splitting(&self) -> Splitting {
        Splitting::Beyond(self.threshold)
    }

    fn path(&self, v: VertexPlace, u: VertexPlace) -> u32 {
        let slots = u32::from(self.slots);
        let offset = (u32::from(self.home(u)) + slots - u32::from(self.home(v))) % slots;
        match self.labels {
            SlotLabels::Low => offset,
            SlotLabels::Paper => mirrored(offset),
        }
    }

    fn label(&self, partition: Partition) -> u32 {
        match self.labels {
            SlotLabels::Low => partition.turns(),
            SlotLabels::Paper => mirrored(partition.turns()),
        }
    }

    fn top_of_label(&self, label: u32) -> Partition {
        match self.labels {
            SlotLabels::Low => low_top(label),
            SlotLabels::Paper => low_top(mirrored(label)),
        }
    }
}

#[cfg(test)]
mod tests {
    use fieldstone_format::graph_segment::partitioning::{PartitionScheme, Partitioning};

    use super::*;
    use crate::partition::{Splits, partitioner};

    fn place(home: u64, slots: u64) -> VertexPlace {
        // The middle of the slot's range of the highest 64 bits.
        let width = u64::MAX / slots;
        VertexPlace(u128::from(home * width + width / 2) << 64 | u128::from(home))
    }

    fn all(slots: SlotNumber) -> Vec<Partitioning> {
        use PartitionScheme::{Dido, EdgeCut, Giga, VertexCut};
        let of = |(scheme, labels)| Partitioning { slots, scheme, labels, threshold: 2 };
        let low = SlotLabels::Low;
        [(EdgeCut, low), (VertexCut, low), (Giga, low), (Dido, low), (Dido, SlotLabels::Paper)]
            .map(of)
            .to_vec()
    }

    #[test]
    fn the_figures_levels_are_there_exactly() {
        // Fig. 6: S1 to S8, the home of v is S1.
        let dido = Dido { slots: 8, threshold: 128, labels: SlotLabels::Paper };
        let v = place(0, 8);
        let level = |depth: u32| -> Vec<u32> {
            // From left to right: the first turn is the most significant.
            let node = |i: u32| {
                let turns = if depth == 0 { 0 } else { i.reverse_bits() >> (32 - depth) };
                u32::from(dido.slot(v, Partition::at(depth, turns))) + 1
            };
            (0..1 << depth).map(node).collect()
        };
        assert_eq!(level(0), [1]);
        assert_eq!(level(1), [1, 2]);
        assert_eq!(level(2), [1, 3, 2, 4]);
        assert_eq!(level(3), [1, 5, 3, 6, 2, 7, 4, 8]);
        let low = Dido { labels: SlotLabels::Low, ..dido };
        let turns = |i: u32| Partition::at(3, i.reverse_bits() >> 29);
        let level: Vec<u16> = (0..8).map(|i| low.slot(v, turns(i)) + 1).collect();
        assert_eq!(level, [1, 5, 3, 7, 2, 6, 4, 8], "only S6 and S7 change places");
    }

    #[test]
    fn what_is_split_to_the_end_is_with_its_far_end() {
        for slots in [1, 2, 3, 5, 8, 12, 32, 100] {
            for labels in [SlotLabels::Low, SlotLabels::Paper] {
                let dido = Dido { slots, threshold: 1, labels };
                for (v, u) in (0..slots).flat_map(|v| (0..slots).map(move |u| (v, u))) {
                    let [v, u] = [v, u].map(|home| place(home.into(), slots.into()));
                    let leaf = dido.leaf_below(Partition::ROOT, dido.path(v, u), &|_| true);
                    assert_eq!(dido.slot(v, leaf), dido.home(u));
                }
            }
        }
    }

    #[test]
    fn a_moved_relation_stays_on_its_far_ends_way() {
        // Every partition that a relation passes is an ancestor of its final one; each slot has one chain of
        // them.
        for slots in [2, 6, 8, 32] {
            for partitioning in all(slots) {
                let scheme = partitioner(&partitioning);
                for (v, u) in (0..slots).flat_map(|v| (0..slots).map(move |u| (v, u))) {
                    let [v, u] = [v, u].map(|home| place(home.into(), slots.into()));
                    let path = scheme.path(v, u);
                    let mut splits = Splits::default();
                    let mut been = vec![scheme.home(v)];
                    loop {
                        let leaf = scheme.leaf_below(Partition::ROOT, path, &|p| splits.has(p));
                        assert!(leaf.is_on(path));
                        let slot = scheme.slot(v, leaf);
                        if been.last() != Some(&slot) {
                            assert!(!been.contains(&slot), "never back");
                            been.push(slot);
                        }
                        let top = scheme.top(v, slot);
                        assert_eq!(scheme.leaf_below(top, path, &|p| splits.has(p)), leaf);
                        if scheme.given_away(leaf).is_none() {
                            break;
                        }
                        splits.add(leaf);
                    }
                }
            }
        }
    }

    #[test]
    fn slots_that_are_asked_are_those_that_have_something() {
        for slots in [1, 3, 8] {
            for partitioning in all(slots) {
                let scheme = partitioner(&partitioning);
                let v = place(1 % u64::from(slots), slots.into());
                for few in [0, 1, 3, 100] {
                    let mut splits = Splits::default();
                    let mut open = std::collections::VecDeque::from([Partition::ROOT]);
                    while let Some(next) = open.pop_front().filter(|_| splits.len() < few) {
                        if scheme.splitting() == Splitting::Beyond(2)
                            && let Some(right) = scheme.given_away(next)
                        {
                            splits.add(next);
                            open.extend([next.turn(0), right]);
                        }
                    }
                    let mut asked = scheme.slots_of(v, &splits);
                    assert_eq!(asked[0], scheme.home(v));
                    asked.sort_unstable();
                    let mut having: Vec<u16> = (0..2000u64)
                        .map(|n| VertexPlace::named("file", &n.to_string()))
                        .map(|u| scheme.slot_of(v, u, &splits))
                        .collect();
                    having.sort_unstable();
                    having.dedup();
                    assert_eq!(asked, having, "{partitioning:?} {splits:?}");
                }
            }
        }
    }
}
