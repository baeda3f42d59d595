//! Kinds of declarations, and of what is deleted as a whole: numbers that stand in the tables.

pub(super) const RUN: i64 = 1;
pub(super) const STEP: i64 = 2;
pub(super) const VARIABLE: i64 = 3;
pub(super) const TAG: i64 = 4;
pub(super) const GROUP: i64 = 5;
pub(super) const IMPORT: i64 = 6;
pub(super) const MESH: i64 = 7;
pub(super) const HISTORY: i64 = 8;
pub(super) const MOVED: i64 = 9;
/// How a run goes.
pub(super) const STATE: i64 = 10;

/// Whether a declaration of a kind can be deleted alone, by where it was written.
pub(super) fn goes_alone(kind: i64) -> bool {
    [RUN, STEP, VARIABLE, MOVED, STATE].contains(&kind)
}

/// Whether declarations of a kind belong to a run; others are the store's.
pub(super) fn of_run(kind: i64) -> bool {
    ![TAG, MESH, HISTORY].contains(&kind)
}
