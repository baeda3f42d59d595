//! Tests for every implementation of the journal's traits: each behaviour is a function that a test runs by name. See
//! [`follower`] for followers of the logs.

pub mod follower;
pub mod harness;
pub mod history;
pub mod taken;
