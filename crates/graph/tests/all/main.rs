//! Tests of the graph: its segments, the view, what is read from it.
//!
//! One program: what links once is built once. A part runs alone by its name: `cargo test -p fieldstone-graph view::`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod archive;
mod common;
mod find;
mod find_relations;
mod folder;
mod history;
mod segments;
mod slot_counters;
mod slot_model;
mod slots;
mod trace;
mod travel;
mod view;
