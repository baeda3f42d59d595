//! Rows that changed while records were applied, and must be derived again before the transaction ends.

use std::collections::{BTreeMap, BTreeSet};

use super::kinds::{MOVED, RUN, STATE, STEP, TAG, VARIABLE};
use super::{NO_STEP, NO_VARIABLE, RunId, TagId, VariableId};

/// Rows that must be derived again. `true`: something is known to use the step, variable or tag.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    pub runs: BTreeSet<RunId>,
    pub steps: BTreeMap<(RunId, i64), bool>,
    pub variables: BTreeMap<(RunId, VariableId), bool>,
    pub tags: BTreeSet<TagId>,
    /// Of groups, imports, meshes and histories: kind, run, item.
    pub of_arrays: BTreeSet<(i64, RunId, i64)>,
    /// The time of the oldest flush of a field of a run, among the applied ones.
    pub written: BTreeMap<RunId, i64>,
}

impl Dirty {
    /// A change to a step.
    pub fn step(&mut self, run: RunId, step: i64) {
        if step != NO_STEP {
            self.steps.insert((run, step), false);
        }
    }

    /// A new use of a step.
    pub fn used_step(&mut self, run: RunId, step: i64) {
        if step != NO_STEP {
            self.steps.entry((run, step)).or_insert(true);
        }
    }

    /// A change to a variable.
    pub fn variable(&mut self, run: RunId, variable: VariableId) {
        if variable != NO_VARIABLE {
            self.variables.insert((run, variable), false);
        }
    }

    /// A new use of a variable.
    pub fn used_variable(&mut self, run: RunId, variable: VariableId) {
        if variable != NO_VARIABLE {
            self.variables.entry((run, variable)).or_insert(true);
        }
    }

    /// A flush of a field of a run, visible or not.
    pub fn written(&mut self, run: RunId, time: i64) {
        let known = self.written.entry(run).or_insert(time);
        *known = time.min(*known);
    }

    /// A change to a tag.
    pub fn tag(&mut self, tag: TagId) {
        self.tags.insert(tag);
    }

    /// Runs with an added or removed declaration.
    pub fn declared_runs(&self) -> BTreeSet<RunId> {
        self.runs.clone()
    }

    /// A declaration was added or removed.
    pub fn declaration(&mut self, kind: i64, run: RunId, item: i64) {
        match kind {
            RUN | MOVED | STATE => {
                self.runs.insert(run);
            }
            STEP => self.step(run, item),
            VARIABLE => self.variable(run, item),
            TAG => self.tag(item),
            _ => {
                self.of_arrays.insert((kind, run, item));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_to_stand_stays_until_something_goes() {
        let mut dirty = Dirty::default();
        dirty.used_step(1, NO_STEP);
        assert!(dirty.steps.is_empty());
        dirty.used_step(1, 5);
        assert_eq!(dirty.steps.get(&(1, 5)), Some(&true));
        dirty.step(1, 5);
        dirty.used_step(1, 5);
        assert_eq!(dirty.steps.get(&(1, 5)), Some(&false), "it must be looked at");
        dirty.declaration(STATE, 7, 0);
        assert_eq!(dirty.declared_runs(), BTreeSet::from([7]));
        dirty.written(1, 9);
        dirty.written(1, 8);
        dirty.written(1, 10);
        assert_eq!(dirty.written.get(&1), Some(&8));
    }
}
