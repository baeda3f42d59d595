//! The identity of a store, and the random names of files that its writers create.

use fieldstone_core::env::Env;
use fieldstone_format::Id;

/// The identity of the store, as this writer records it in its logs.
#[derive(Debug, Clone)]
pub struct StoreIdentity {
    /// The store's id.
    pub id: Id,
    /// Text of its schema.
    pub schema: String,
}

/// Draws a random id.
pub fn random_id(env: &Env) -> Id {
    let mut id = [0; 16];
    env.rand.fill(&mut id);
    Id(id)
}
