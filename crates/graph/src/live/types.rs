//! Types of relations that were looked up: puts read the logs once for each name.

use std::collections::HashSet;
use std::sync::Arc;

use fieldstone_core::sync::Mutex;

use crate::state::GraphState;

/// The state of the last lookup, and the types that nobody had declared in it.
#[derive(Debug, Default)]
pub struct KnownTypes(Mutex<LookedUp>);

#[derive(Debug, Default)]
struct LookedUp {
    state: Option<Arc<GraphState>>,
    absent: HashSet<String>,
}

impl KnownTypes {
    /// The state, if it decides what a type is.
    pub fn get(&self, kind: &str) -> Option<Arc<GraphState>> {
        let looked = self.0.lock();
        looked.state.as_ref().filter(|state| looked.are_said_by(state, kind)).cloned()
    }

    /// Whether a state decides what a type is: it declares the type, or nobody had declared it at the last
    /// lookup.
    pub fn are_said_by(&self, state: &GraphState, kind: &str) -> bool {
        self.0.lock().are_said_by(state, kind)
    }

    /// Records that a type was looked up in a state.
    pub fn keep(&self, kind: &str, state: &Arc<GraphState>) {
        let mut looked = self.0.lock();
        looked.absent.insert(kind.to_owned());
        looked.state = Some(state.clone());
    }

    /// Forgets everything, because types may have been declared: the next put looks them up.
    pub fn forget(&self) {
        *self.0.lock() = LookedUp::default();
    }
}

impl LookedUp {
    fn are_said_by(&self, state: &GraphState, kind: &str) -> bool {
        state.vocabulary().edge(kind).is_some() || self.absent.contains(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_is_looked_for_once_until_types_are_declared() {
        let (types, state) = (KnownTypes::default(), Arc::new(GraphState::of(Vec::new())));
        assert!(types.get("likes").is_none());
        types.keep("likes", &state);
        assert!(types.get("likes").is_some() && types.get("knows").is_none());
        assert!(types.are_said_by(&state, "likes") && !types.are_said_by(&state, "knows"));
        types.forget();
        assert!(types.get("likes").is_none());
    }
}
