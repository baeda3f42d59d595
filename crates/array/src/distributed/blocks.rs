//! The blocks by which arrays are checksummed and verified.

/// Number of elements in a block.
pub const BLOCK: u64 = 1 << 16;
/// Limit on the average number of pieces of a block that a rank keeps; with more, everything is read back.
pub const PIECES: u64 = 64;
