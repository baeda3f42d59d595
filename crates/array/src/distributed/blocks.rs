//! The blocks in which arrays are summed and checked.

/// Elements of a block.
pub const BLOCK: u64 = 1 << 16;
/// Pieces of a block that a rank keeps at most, on average; with more all is read back.
pub const PIECES: u64 = 64;
