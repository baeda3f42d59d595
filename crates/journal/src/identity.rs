//! Who a store is, and the random names of what its writers make.

use fieldstone_core::env::Env;
use fieldstone_format::Id;

/// Who the store is, as this writer writes it into its logs.
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
