//! Partitions of a vertex's relations as nodes of a binary tree, and the set of split ones.

/// A partition: a node of the tree. Its number is a leading 1 followed by the turns that lead to it, the
/// first turn in the lowest bit.
///
/// The root is 1. A partition splits into the one that stays (turn 0) and the one that is given away (turn
/// 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Partition(u32);

/// Deepest partition: as deep as the numbers of slots have bits.
const DEPTH_MAX: u32 = 16;

impl Partition {
    /// All relations of a vertex.
    pub const ROOT: Partition = Partition(1);

    /// The partition of this number; `None` if no tree has it.
    pub fn of_number(number: u32) -> Option<Partition> {
        (1..1 << (DEPTH_MAX + 1)).contains(&number).then_some(Partition(number))
    }

    /// The partition at this depth to which these turns lead.
    pub fn at(depth: u32, turns: u32) -> Partition {
        let depth = depth.min(DEPTH_MAX);
        Partition(1 << depth | turns & ((1 << depth) - 1))
    }

    /// Its number.
    pub fn number(self) -> u32 {
        self.0
    }

    /// The number of turns that lead to it.
    pub fn depth(self) -> u32 {
        self.0.ilog2()
    }

    /// The turns that lead to it.
    pub fn turns(self) -> u32 {
        self.0 & !(1 << self.depth())
    }

    /// The part that it gives away when it splits; `None` at the deepest.
    pub fn right(self) -> Option<Partition> {
        let depth = self.depth();
        (depth < DEPTH_MAX).then(|| Partition::at(depth + 1, self.turns() | 1 << depth))
    }

    /// The part to which a path leads.
    pub fn turn(self, path: u32) -> Partition {
        let depth = self.depth();
        Partition::at(depth + 1, self.turns() | path & 1 << depth)
    }

    /// Whether a path leads through it.
    pub fn is_on(self, path: u32) -> bool {
        path & ((1 << self.depth()) - 1) == self.turns()
    }
}

/// The split partitions of a vertex. The set only grows, and two sets that grew apart can be merged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Splits(Vec<Partition>);

impl Splits {
    /// Whether a partition is split.
    pub fn has(&self, partition: Partition) -> bool {
        self.0.binary_search(&partition).is_ok()
    }

    /// Adds one; returns whether it is new.
    pub fn add(&mut self, partition: Partition) -> bool {
        match self.0.binary_search(&partition) {
            Ok(_) => false,
            Err(at) => {
                self.0.insert(at, partition);
                true
            }
        }
    }

    /// Adds those of another.
    pub fn merge(&mut self, other: &Splits) {
        other.partitions().for_each(|partition| {
            self.add(partition);
        });
    }

    /// The split partitions, the shallower first.
    pub fn partitions(&self) -> impl Iterator<Item = Partition> + '_ {
        self.0.iter().copied()
    }

    /// The partitions with these numbers, as in lists on disk and in messages.
    pub fn of_numbers(numbers: &[u32]) -> Splits {
        numbers.iter().filter_map(|number| Partition::of_number(*number)).collect()
    }

    /// Their numbers, the shallower first.
    pub fn numbers(&self) -> Vec<u32> {
        self.partitions().map(Partition::number).collect()
    }

    /// Whether no partition is split.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of split partitions.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl FromIterator<Partition> for Splits {
    fn from_iter<I: IntoIterator<Item = Partition>>(all: I) -> Splits {
        let mut all: Vec<Partition> = all.into_iter().collect();
        all.sort_unstable();
        all.dedup();
        Splits(all)
    }
}
