//! The place of a version of a field among all versions.

use fieldstone_format::Id;

/// The position in the order of all commits: stamp and log; the greater one is newer.
pub type Order = (u64, Id);
