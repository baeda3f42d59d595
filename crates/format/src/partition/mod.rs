//! Files in which partitions of meshes are kept. The normative text is `spec/partition-history.md`.

/// A checksum of 128 bits of a mesh or a partitioning vector: the sum of hashes of its elements with their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ContentSum(pub u128);

impl std::fmt::Display for ContentSum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}
