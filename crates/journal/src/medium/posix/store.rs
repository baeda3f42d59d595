//! The identity of the store in a folder, as its logs and their ends are judged by it.

use fieldstone_format::Id;

/// The identity of the store that the logs belong to.
#[derive(Debug, Clone, Copy)]
pub struct Store {
    /// The id in its marker.
    pub id: Id,
    /// The user who owns the folder of logs.
    pub folder_owner: u32,
}
