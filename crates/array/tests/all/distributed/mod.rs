//! Distributed arrays: views, plans, methods, files.

pub mod model;
mod plans;
mod views;
