//! Types of relations that were looked for: a put reads the logs once for each name.

use std::collections::HashSet;
use std::sync::Arc;

use fieldstone_core::sync::Mutex;

use crate::state::GraphState;

/// The state that was asked for types last, and the types that nobody had declared then.
#[derive(Debug, Default)]
pub struct KnownTypes(Mutex<LookedUp>);

#[derive(Debug, Default)]
struct LookedUp {
    state: Option<Arc<GraphState>>,
    absent: HashSet<String>,
}

impl KnownTypes {
    /// The state, where it says what a type is.
    pub fn get(&self, kind: &str) -> Option<Arc<GraphState>> {
        let looked = self.0.lock();
        looked.state.as_ref().filter(|state| looked.are_said_by(state, kind)).cloned()
    }

    /// Whether a state says what a type is: it is declared there, or nobody had declared it when it was looked for.
    pub fn are_said_by(&self, state: &GraphState, kind: &str) -> bool {
        self.0.lock().are_said_by(state, kind)
    }

    /// A type was looked for in a state.
    pub fn keep(&self, kind: &str, state: &Arc<GraphState>) {
        let mut looked = self.0.lock();
        looked.absent.insert(kind.to_owned());
        looked.state = Some(state.clone());
    }

    /// Types may have been declared: the next put looks for them.
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
