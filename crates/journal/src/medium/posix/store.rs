//! The identity of the store in a folder, as its logs and their ends are judged by it.

use std::sync::Arc;

use fieldstone_format::Id;

/// The identity of the store that the logs belong to.
#[derive(Debug, Clone)]
pub struct Store {
    /// The id in its marker.
    pub id: Id,
    /// Ids that its files may carry besides, because they were copied from a store that had them.
    pub former: Arc<[Id]>,
    /// The user who owns the folder of logs.
    pub folder_owner: u32,
}

impl Store {
    /// Whether a file with this id belongs to the store.
    pub fn has(&self, id: Id) -> bool {
        self.id == id || self.former.contains(&id)
    }
}
