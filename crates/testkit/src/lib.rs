//! What the tests of Fieldstone's crates share. A development dependency only: nothing that ships uses it,
//! and it knows of our crates the lowest alone, so that every one of them can use it.
//!
//! * [`random`]: numbers from a seed, which is printed where a test fails.
//! * [`require`]: what a test needs that may be absent: a skip, and a failure where it is required.
//! * [`samples`]: the folder of real files, and the Python of the checkout.
//! * [`postgres`]: a PostgreSQL server that ends with its test.
//! * [`fields`]: bytes of fields that show a misplaced one.
//! * [`digest`]: the sum of files that programs in several languages write alike.
//! * [`errors`]: an outcome that must be an error of a kind.
//!
//! A communicator that a test changes in part is a layer over another one:
//! [`fieldstone_core::env::comm::layer`].

// It is for tests, where what is not as it should be ends the test.
#![allow(clippy::unwrap_used, clippy::panic)]

pub mod digest;
pub mod errors;
pub mod fields;
pub mod postgres;
pub mod random;
pub mod require;
pub mod samples;

pub use random::{Random, Seeded, seeded};
