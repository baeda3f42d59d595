//! What every implementation of the journal's traits must show, each behaviour a function that a test runs
//! by name: [`view`] for what follows the logs.

pub mod history;
pub mod view;
