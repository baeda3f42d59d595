//! Tests of the field store on real and simulated disks.
//!
//! A single test program, because one link is faster than many. Run a part by its name: `cargo test -p
//! fieldstone-store crash::`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod accepted;
mod as_stored;
mod attempts;
mod backup;
mod backup_faults;
mod behaviours;
mod boards;
mod checkpoint;
mod claims;
mod clocks;
mod common;
mod conformance;
mod crash;
mod damage;
mod ends;
mod erase_faults;
mod external;
mod faults;
mod feed;
mod field_sources;
mod filter;
mod forgotten;
mod formats;
mod gone;
mod group;
mod half_mounted;
mod hand_over;
mod hide;
mod holds;
mod kept;
mod large;
mod locks;
mod losses;
mod maintain;
mod model;
mod moved;
mod objects;
mod overlay;
mod owners;
mod pieces;
mod power_cut;
mod purge;
mod purge_arrays;
mod purge_faults;
mod rate;
mod reindex;
mod repair;
mod retain;
mod schedules;
mod schema;
mod settings;
mod shared;
mod side;
mod stats;
mod stored;
mod syncs;
mod takeover_damage;
mod takeover_ended;
mod takeover_faults;
mod takeover_kept;
mod takeover_marks;
mod takeover_parts;
mod takeovers;
mod transactions;
mod users;
mod versions;
mod wipe;
mod wipe_counted;
mod wipe_kept;
mod wipe_purge;
mod zeroed;
