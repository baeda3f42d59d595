//! Tests of the bytes of a store, of containers and of pipes.
//!
//! One program, so that the linker runs once. A part runs alone by its name: `cargo test -p fieldstone-format
//! catalog::`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod catalog;
mod catalog_arrays;
mod catalog_lines;
mod catalog_spec;
mod common;
mod graph_messages;
mod graph_spec;
mod grib;
mod helper_frames;
mod keys_and_segments;
mod spec_example;
mod structures;
mod tables;
mod takeovers;
