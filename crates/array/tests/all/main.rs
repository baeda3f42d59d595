//! Tests of containers.
//!
//! A single program, so that shared code is linked once. Run a part by its name: `cargo test -p fieldstone-array
//! cdl::`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod cdl;
#[path = "../../../../fuzz/checks.rs"]
mod checks;
mod container_access;
mod container_append;
mod container_conversions;
mod container_corpus;
mod container_crash;
mod container_data;
mod container_define;
mod container_enddef;
mod container_failed;
mod container_file;
mod container_foreign;
mod container_index;
mod container_kill;
mod container_length;
mod container_names;
mod container_options;
mod container_overlap;
mod container_parsers;
mod container_partitioned;
mod container_validate;
mod container_validate_partitioned;
mod container_views;
mod distributed;
mod distributed_checked;
mod distributed_counters;
mod distributed_decomposition;
mod distributed_deferred;
mod distributed_files;
mod distributed_import;
mod distributed_memory;
mod distributed_mesh;
mod distributed_mesh_faults;
mod distributed_model;
mod distributed_order;
mod distributed_random;
mod distributed_rounds;
mod partition;
mod partition_history;
mod partition_model;
