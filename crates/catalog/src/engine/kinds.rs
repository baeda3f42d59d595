//! Kinds of declarations, and of deletions of whole objects: the numbers in the tables.

pub(super) const RUN: i64 = 1;
pub(super) const STEP: i64 = 2;
pub(super) const VARIABLE: i64 = 3;
pub(super) const TAG: i64 = 4;
pub(super) const GROUP: i64 = 5;
pub(super) const IMPORT: i64 = 6;
pub(super) const MESH: i64 = 7;
pub(super) const HISTORY: i64 = 8;
pub(super) const MOVED: i64 = 9;
/// The state of a run.
pub(super) const STATE: i64 = 10;

/// Whether declarations of a kind can be deleted individually, by their places in the logs.
pub(super) fn goes_alone(kind: i64) -> bool {
    kind != TAG
}

/// Whether declarations of a kind belong to a run; others belong to the store.
pub(super) fn of_run(kind: i64) -> bool {
    ![TAG, MESH, HISTORY].contains(&kind)
}
