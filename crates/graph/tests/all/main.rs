//! Tests of the graph: its segments, the follower, and reads.
//!
//! All of them are one program, so that everything is linked once. Run a part by its name: `cargo test -p
//! fieldstone-graph follower::`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod archive;
mod common;
mod find;
mod find_relations;
mod folder;
mod follower;
mod history;
mod limits;
mod segments;
mod slot_counters;
mod slot_model;
mod slots;
mod trace;
mod travel;
