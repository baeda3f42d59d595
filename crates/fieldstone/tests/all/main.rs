//! Tests of fields, catalog and containers together, on real disks and in processes of their own.
//!
//! One program, so that common code is linked once. A part runs alone by its name: `cargo test -p fieldstone kill::`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod array_faults;
mod array_job;
mod array_ranks;
mod array_sets;
mod arrays;
mod arrays_digest;
mod arrays_random;
mod arrays_random_case;
mod arrays_rewrite;
mod axes;
mod catalog;
mod catalog_arrays;
mod catalog_engine;
mod catalog_fields;
mod catalog_lost;
mod catalog_model;
mod catalog_owners;
mod catalog_postgres;
mod catalog_rot;
mod catalog_transactions;
mod catalog_unflushed;
mod catalog_waits;
mod codes;
mod compact;
mod cubes;
// From the tests of the crate below: the meaning of views, written a second time.
#[allow(dead_code)]
#[path = "../../../array/tests/all/distributed_memory.rs"]
mod distributed_memory;
#[allow(dead_code)]
#[path = "../../../array/tests/all/distributed_model.rs"]
mod distributed_model;
mod engine_faults;
mod erase;
mod finders;
mod fleet;
mod graph;
mod graph_archive;
mod graph_damage;
mod graph_faults;
mod graph_sharing;
mod graph_slots;
mod hand_over;
mod handles;
mod hide;
mod imports;
mod ingest;
mod ingest_heap;
mod kill;
mod lanes;
mod left_files;
mod lineage;
mod lineage_audit;
mod lineage_export;
mod listing;
mod outside;
mod outside_moved;
mod overlay;
mod own_files;
mod processes;
mod purge_meshes;
mod reindex;
mod remote;
mod repair;
mod retain;
mod retain_moves;
mod sessions;
mod shared;
mod strace;
mod transfer;
mod transfer_arrays;
mod transfer_catalog;
mod transfer_crossing;
mod transfer_time;
mod wipe;
