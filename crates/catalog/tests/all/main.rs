//! Tests of the catalog: its tables, its engines and its query language.
//!
//! All of them are one program, so that everything is linked once. Run a part by its name: `cargo test -p
//! fieldstone-catalog query::`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod apply;
mod common;
mod engine;
mod follower;
mod paper;
mod postgres;
mod postgres_index;
mod postgres_query;
mod query;
mod query_text;
mod rot;
#[path = "../../../../fuzz/store_checks.rs"]
mod store_checks;
mod store_parsers;
mod writers;
