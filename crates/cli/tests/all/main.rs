//! Tests of the program as its users run it.
//!
//! One program: what links once is built once. A part runs alone by its name: `cargo test -p fieldstone-cli catalog::`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrays;
mod backup;
mod catalog;
mod codes_and_help;
mod compact;
mod completion;
mod container;
mod erase;
mod hand_over;
mod harness;
mod hide;
mod holds;
mod inspect;
mod layout;
mod lineage;
mod locks;
mod maintenance_faults;
mod operations;
mod overlay;
mod prefetch;
mod purge;
mod real_files;
mod reindex;
mod repair;
mod retain;
mod run;
mod schema_and_show;
mod sharing;
mod shell;
mod wipe;
mod write_and_read;
