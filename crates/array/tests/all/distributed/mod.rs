//! Distributed arrays: views, plans, methods, files.

mod files;
pub mod model;
mod plans;
mod views;
