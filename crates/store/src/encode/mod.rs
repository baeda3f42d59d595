//! Encoding: a value becomes blocks, an entry and the bytes to store, outside of any lock.
//!
//! * `blocks`: cutting, compressing and checksumming a value;
//! * `external`: the same for bytes that stay where they are;
//! * `streamed`: cutting opaque bytes that are read part by part;
//! * `stored`: an entry for bytes that stand in a file of the store.

mod blocks;
mod external;
mod stored;
mod streamed;

pub use blocks::{created, removal, value};
pub use external::external;
pub use stored::stored;
pub use streamed::streamed;
