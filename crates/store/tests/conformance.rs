//! The conformance suite, on every system a store may stand on. Each behaviour on each system is a
//! test of its own: `cargo test -p fieldstone-store --test conformance weak::b01`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_store::api::FieldStore;
use fieldstone_store::conformance::{self, Harness, Opening, put_file};
use fieldstone_store::local::LocalStore;

const SECOND: u64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND as i64;
/// From 2024, where simulated worlds begin, to 2099.
const TO_2099: i64 = 75 * 365 * 24 * HOUR;

fn open(env: Env, folder: &Path, how: &Opening) -> Result<Arc<dyn FieldStore>> {
    Ok(Arc::new(LocalStore::open(env, folder, how.local("tested"))?))
}

/// A folder of this machine's file system.
struct Posix(tempfile::TempDir);

impl Posix {
    fn fresh() -> Posix {
        Posix(tempfile::tempdir().unwrap())
    }
}

impl Harness for Posix {
    fn open(&self, _process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        open(Env::real(), &self.0.path().join("store"), how)
    }

    fn settle(&self) {}

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        put_file(&Env::real(), self.0.path().join(name), content)
    }
}

/// The store behind `memory:`.
struct Memory(Env);

impl Memory {
    fn fresh() -> Memory {
        Memory(SimWorld::memory())
    }
}

impl Harness for Memory {
    fn open(&self, _process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        open(self.0.clone(), Path::new("/store"), how)
    }

    fn settle(&self) {}

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        put_file(&self.0, Path::new("/").join(name), content)
    }
}

/// A simulated disk that several hosts share.
struct Shared {
    world: SimWorld,
    hosts: &'static [&'static str],
    /// How long hosts may see what was.
    staleness: u64,
}

impl Shared {
    fn new() -> Shared {
        let world = SimWorld::new(1);
        world.set_tracing(false);
        Shared { world, hosts: &["a", "b"], staleness: 0 }
    }

    /// The weak profile of a network file system.
    fn weak(seconds: u64) -> Shared {
        let shared = Shared { staleness: seconds * SECOND, ..Shared::new() };
        shared.world.weak(shared.staleness);
        shared
    }

    /// A file system without hard links.
    fn without_links() -> Shared {
        let shared = Shared::new();
        shared.world.set_links(false);
        shared
    }

    /// Hosts whose clocks are wrong; the world's time is right on the last.
    fn wrong_clocks(staleness: u64) -> Shared {
        let mut shared = if staleness == 0 { Shared::new() } else { Shared::weak(staleness) };
        shared.hosts = &["behind", "ahead", "far-ahead", "right"];
        shared.world.set_clock_offset("behind", -HOUR);
        shared.world.set_clock_offset("ahead", HOUR);
        shared.world.set_clock_offset("far-ahead", TO_2099);
        shared
    }
}

impl Harness for Shared {
    fn open(&self, process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
        let host = self.hosts[process % self.hosts.len()];
        open(self.world.process(host), Path::new("/shared/store"), how)
    }

    fn settle(&self) {
        self.world.advance(self.staleness);
    }

    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf> {
        let path = put_file(&self.world.process(self.hosts[0]), Path::new("/shared").join(name), content);
        self.settle();
        path
    }

    fn pass(&self) {
        self.world.advance(self.staleness / 8);
    }
}

macro_rules! systems {
    ($($system:ident: $fresh:expr;)+) => {$(
        mod $system {
            use super::*;

            fn run(name: &str) {
                conformance::run(name, &$fresh).unwrap();
            }

            behaviours!();
        }
    )+

        /// No behaviour is left out below.
        #[test]
        fn every_behaviour_is_run() {
            let all: Vec<&str> = conformance::BEHAVIOURS.iter().map(|(name, _)| *name).collect();
            assert_eq!(names(), all);
        }
    };
}

macro_rules! listed {
    ($($name:ident)+) => {
        macro_rules! behaviours {
            () => {$(
                #[test]
                fn $name() {
                    run(stringify!($name));
                }
            )+};
        }

        fn names() -> Vec<&'static str> {
            vec![$(stringify!($name)),+]
        }
    };
}

listed! {
    b01_flush_visibility b02_unflushed_is_lost b03_close_flushes b04_overwritten_at_flush
    b05_last_wins_in_batch b06_two_processes_same_keys b07_four_processes_many_flushes
    b08_threads_share_a_handle discard_forgets opened_fields_stay_as_they_were a_list_stays_as_it_was
    early_looks_do_no_harm
    simulation_keys_come_back mars_keys_come_back b32_odd_keys_come_back typed_values_sort
    get_finds_absent_optionals axes_hold_what_is_there list_by_depth list_masked
    b09_request_order b10_strict_and_lenient b32_one_value_is_left_out ranges_and_everything
    fields_concatenate a_reader_seeks
    dtypes_of_every_kind arrays_of_every_rank opaque_ranges_across_blocks boxes_of_chunked_arrays
    compression_per_call large_flushes empty_values
    pieces_accumulate newer_piece_wins pieces_of_one_commit incomplete_is_named
    disagreeing_pieces_conflict whole_field_hides_pieces created_field_hides_pieces
    created_field_fills mixed_generations_never_show
    prepared_is_invisible decision_shows_all_at_once abort_shows_nothing
    late_flush_conflicts decided_twice decision_counts_as_the_time_of_its_fields
    transactions_do_not_mix own_transaction_sees_the_newest empty_commit_is_final
    kinds_become_visible_one_by_one kinds_are_switched_off_and_on_again what_is_covered_later_is_newer
    an_abort_after_activation_is_final a_feed_gives_commits_in_their_order a_feed_gives_entries
    version_reads_as_it_was version_survives_merges version_of_another_store version_holds_decisions
    removal_counts_at_the_flush a_later_archive_brings_the_key_back removal_hides_older_pieces
    removal_in_a_transaction removal_within_a_batch removal_survives_merges removal_of_a_version
    removals_that_are_refused
    external_fields_read_like_others external_arrays_of_every_layout external_bytes_and_ranges
    a_changed_source_is_corrupt external_fields_in_transactions wrong_external_places
    b19_wrong_keys_and_requests b32_reading_only no_store_is_not_found existing_store_conflicts
    another_schema_conflicts wrong_values wrong_boxes side_records_need_no_field
}

systems! {
    posix: Posix::fresh();
    memory: Memory::fresh();
    shared: Shared::new();
    weak: Shared::weak(10);
    very_weak: Shared::weak(50);
    without_links: Shared::without_links();
    wrong_clocks: Shared::wrong_clocks(0);
    weak_with_wrong_clocks: Shared::wrong_clocks(30);
}
