//! What the hops of a traversal cost.

/// What one hop of one round did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepFigures {
    /// Which hop, from 0.
    pub hop: usize,
    /// The round of what is repeated, from 1; 0 behind it.
    pub round: u32,
    /// Vertices that it began with; by cause, with each of their times.
    pub frontier: u64,
    /// Those that it reached, and that no earlier round had.
    pub reached: u64,
    /// Vertices whose relations were read.
    pub vertices: u64,
    /// Relations that were read.
    pub relations: u64,
    /// How long it took.
    pub nanoseconds: u64,
}
