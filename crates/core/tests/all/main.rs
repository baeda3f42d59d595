//! Tests of keys, schemas, requests, boxes, the environment and communicators.
//!
//! A single program, so that shared code is linked once. Run a part by its name: `cargo test -p fieldstone-core
//! comm::`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod codes;
mod comm;
mod comm_team;
mod env_conformance;
mod env_crash;
mod env_faults;
mod env_weak;
mod geometry_boxes;
mod geometry_copy;
mod geometry_coverage;
mod geometry_dtypes;
mod geometry_stats;
mod schema_extend;
mod schema_keys;
mod schema_mars;
mod schema_properties;
mod schema_request;
mod schema_roles;
mod schema_select;
mod schema_text;
mod sync;
mod template;
mod values;
