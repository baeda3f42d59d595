//! Reports of a store: verify, status, stats, dump.

mod advice;
mod dump;
mod headers;
mod missing;
mod stats;
mod status;
mod verify;

pub use advice::advice;
pub use dump::dump;
pub use stats::{stats, stats_by};
pub use status::{acceptance, status};
pub use verify::{verify, verify_since};
