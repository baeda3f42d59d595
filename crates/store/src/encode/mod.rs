//! Encoding: a value becomes blocks, an entry and the bytes to store, outside of any lock.
//!
//! * `blocks`: cutting, compressing and checksumming a value;
//! * `external`: the same for bytes that stay where they are.

mod blocks;
mod external;

pub use blocks::{created, removal, value};
pub use external::external;
