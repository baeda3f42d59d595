//! Helpers for the tests of Fieldstone's crates. A development dependency only: nothing that ships uses it.
//! Of our crates it depends only on the lowest, so that each of them can use it.
//!
//! * [`random`]: numbers from a seed, which a failing test prints.
//! * [`require`]: requirements of a test that may be absent: the test is skipped, or fails if they are
//!   required.
//! * [`samples`]: the folder of real files, and the Python of the checkout.
//! * [`postgres`]: a PostgreSQL server that ends with its test.
//! * [`fields`]: bytes of fields that reveal a misplaced one.
//! * [`digest`]: the sum of files that programs in several languages must write identically.
//! * [`errors`]: an outcome that must be an error of a kind.
//!
//! To change a communicator in part, a test adds a layer over another one:
//! [`fieldstone_core::env::comm::layer`].

// A helper for tests may panic: an unexpected result ends the test.
#![allow(clippy::unwrap_used, clippy::panic)]

pub mod digest;
pub mod errors;
pub mod fields;
pub mod postgres;
pub mod random;
pub mod require;
pub mod samples;

pub use random::{Random, Seeded, seeded};
