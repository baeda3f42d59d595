//! Kinds of a transaction's content, as bits of a decision's mask: EMPRESS activates by these.

/// Fields.
pub const FIELDS: u32 = 1;
/// Runs.
pub const RUN: u32 = 1 << 1;
/// Steps.
pub const STEP: u32 = 1 << 2;
/// Variables.
pub const VARIABLE: u32 = 1 << 3;
/// Tags.
pub const TAG: u32 = 1 << 4;
/// Attributes of runs.
pub const RUN_ATTRIBUTE: u32 = 1 << 5;
/// Attributes of steps.
pub const STEP_ATTRIBUTE: u32 = 1 << 6;
/// Attributes of variables.
pub const VARIABLE_ATTRIBUTE: u32 = 1 << 7;
/// Vertices and relations of the graph.
pub const RELATION: u32 = 1 << 8;
