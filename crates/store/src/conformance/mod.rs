//! The behaviours that every store must show, each a function that a test runs by name (T-3).
//!
//! A backend or frontend implements [`Harness`] and hands it to [`run_all`], or to one behaviour of [`BEHAVIOURS`] at
//! a time. Each behaviour gets a new harness, because it needs a store of its own. The harness covers the differences
//! between systems: on a weak file system [`Harness::settle`] waits until every host sees the flushes; elsewhere it
//! does nothing.
//!
//! A behaviour that is not shown panics in an `assert`, or returns the error that the store gave.
//!
//! | module | an implementation shows |
//! |---|---|
//! | `visibility` | the content that a flush makes visible, to which handles and when; open readers see no change |
//! | `keys` | keys come back as they went in; types, order, axes, depths, hidden versions |
//! | `requests` | order, ranges, strict and lenient, fields as one file |
//! | `arrays` | element types, ranks, blocks, compression, sizes |
//! | `generations` | pieces, hidden and incomplete generations, contradictions |
//! | `sessions` | a session flushes only its own content; its user, its limits |
//! | `transactions` | prepared, decided, aborted, late |
//! | `activation` | kinds of content one by one |
//! | `versions` | older versions, read as they were |
//! | `removals` | removals by request and by version |
//! | `external` | bytes in files outside |
//! | `stored` | arrays in files of the store |
//! | `refusals` | refused calls and their errors |
//!
//! Every implementation shows all of them, also one that wraps another or stands at the far end of a
//! connection: no behaviour asks for a journal. How texts of versions look is the harness's to say
//! ([`Harness::foreign_version`], [`Harness::later_version`]).
//!
//! ```
//! use std::sync::Arc;
//! use fieldstone_core::Result;
//! use fieldstone_core::env::{Env, sim::SimWorld};
//! use fieldstone_store::api::FieldStore;
//! use fieldstone_store::conformance::{Harness, Opening, put_file, run};
//! use fieldstone_store::local::LocalStore;
//!
//! struct Memory(Env);
//!
//! impl Harness for Memory {
//!     fn open(&self, _process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>> {
//!         let options = how.local("memory:");
//!         Ok(Arc::new(LocalStore::open(self.0.clone(), "/store".as_ref(), options)?))
//!     }
//!     fn settle(&self) {}
//!
//!     fn source(&self, name: &str, content: Option<&[u8]>) -> Result<std::path::PathBuf> {
//!         put_file(&self.0, std::path::Path::new("/").join(name), content)
//!     }
//! }
//!
//! run("b01_flush_visibility", &Memory(SimWorld::memory()))?;
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod activation;
mod arrays;
mod attempts;
mod existing;
mod external;
mod generations;
mod keys;
mod refusals;
mod removals;
mod requests;
mod sessions;
mod stored;
mod transactions;
mod versions;
mod visibility;

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_core::env::sim::Random;
use fieldstone_core::env::{Env, write_all_at};
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::attempt::Origin;
use fieldstone_format::version::Version;
use fieldstone_journal::Session;

use crate::api::*;
use crate::local::LocalOptions;

/// The mode in which a handle is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Reading and archiving.
    #[default]
    Append,
    /// Reading only.
    Read,
    /// A store that must not exist yet.
    Create,
}

/// How a handle is opened.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// The mode.
    pub access: Access,
    /// The schema asked for; the store's own where absent.
    pub schema: Option<Schema>,
    /// The version to read.
    pub at: Option<String>,
    /// The attempt that what is written is of; none where empty.
    pub attempt: String,
    /// The version of the format of a store that is new; the newest where absent.
    pub format: Option<u32>,
}

impl Opening {
    /// These wishes as a [`LocalStore`](crate::LocalStore) takes them.
    pub fn local(&self, url: &str) -> LocalOptions {
        LocalOptions {
            url: url.to_owned(),
            writable: self.access != Access::Read && self.at.is_none(),
            must_exist: self.access == Access::Read || self.at.is_some(),
            must_be_new: self.access == Access::Create,
            schema: self.schema.clone(),
            at: self.at.clone(),
            compression: None,
            outside: None,
            native: false,
            origin: Origin { attempt: self.attempt.clone(), ..Origin::default() },
            if_exists: None,
            format: self.format,
            ..LocalOptions::default()
        }
    }
}

/// One store, and how its handles are opened.
pub trait Harness: Sync {
    /// A new handle on the store, as process `process` has it: different processes, on different
    /// hosts where there are several, share nothing but the store.
    fn open(&self, process: usize, how: &Opening) -> Result<Arc<dyn FieldStore>>;

    /// Returns when every process sees what was flushed before the call.
    fn settle(&self);

    /// Puts a file beside the store, for every process to see, in place of one of that name; `None`
    /// takes it away. Returns its path.
    fn source(&self, name: &str, content: Option<&[u8]>) -> Result<PathBuf>;

    /// As [`source`](Self::source), for a file in the store's folder, whose path within it is `name`. `None`
    /// where the store has no folder in which others can write.
    fn inside(&self, _name: &str, _content: Option<&[u8]>) -> Result<Option<PathBuf>> {
        Ok(None)
    }

    /// Lets a moment pass, in which a weak system shows others some of the flushes.
    fn pass(&self) {}

    /// A version's text that is none of this store's.
    fn foreign_version(&self) -> String {
        Version::new(vec![(Id([7; 16]), 1)]).encode()
    }

    /// The text that a version will have when more has been flushed.
    fn later_version(&self, version: &str) -> Result<String> {
        let later = |(writer, sequence): &(Id, u64)| (*writer, sequence + 1);
        Ok(Version::new(Version::decode(version)?.writers().iter().map(later).collect()).encode())
    }
}

/// Writes, replaces or takes away a file: what most harnesses do for [`Harness::source`].
pub fn put_file(env: &Env, path: PathBuf, content: Option<&[u8]>) -> Result<PathBuf> {
    let failed = |e| Error::io("replace", &path, e);
    match env.disk.unlink(&path) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    if let Some(content) = content {
        let folder = path.parent().unwrap_or(&path);
        env.disk.create_dir_all(folder).map_err(failed)?;
        let file = env.disk.create_new(&path).map_err(failed)?;
        write_all_at(&*file, content, 0).and_then(|()| file.sync_data()).map_err(failed)?;
        env.disk.sync_dir(folder).map_err(failed)?;
    }
    Ok(path)
}

/// A behaviour.
pub type Behaviour = fn(&dyn Harness) -> Result<()>;

macro_rules! define {
    ($($module:ident: $($name:ident),+;)+) => {
        /// All behaviours by name.
        pub const BEHAVIOURS: &[(&str, Behaviour)] = &[$($((stringify!($name), $module::$name),)+)+];
        $(pub use $module::{$($name),+};)+
    };
}

/// Hands the names of all behaviours, `module: name, …;` one after another, to a macro: the only list of
/// them. A harness makes a test of each so.
#[macro_export]
macro_rules! behaviours {
    ($macro:ident) => {
        $macro! {
            visibility:
                b01_flush_visibility, b02_unflushed_is_lost, b03_close_flushes, b04_overwritten_at_flush,
                b05_last_wins_in_batch, b06_two_processes_same_keys, b07_four_processes_many_flushes,
                b08_threads_share_a_handle, discard_forgets, opened_fields_stay_as_they_were,
                a_list_stays_as_it_was, early_looks_do_no_harm;
            keys:
                simulation_keys_come_back, mars_keys_come_back, b32_odd_keys_come_back, typed_values_sort,
                get_finds_absent_optionals, axes_hold_what_is_there, list_by_depth, list_masked;
            requests:
                b09_request_order, b10_strict_and_lenient, b32_one_value_is_left_out, ranges_and_everything,
                fields_concatenate, a_reader_seeks;
            arrays:
                dtypes_of_every_kind, arrays_of_every_rank, opaque_ranges_across_blocks, boxes_of_chunked_arrays,
                compression_per_call, large_flushes, empty_values;
            generations:
                pieces_accumulate, newer_piece_wins, pieces_of_one_commit, incomplete_is_named,
                disagreeing_pieces_conflict, whole_field_hides_pieces, created_field_hides_pieces,
                created_field_fills, mixed_generations_never_show;
            attempts:
                pieces_of_two_attempts_never_add_up, what_has_no_attempt_counts_as_ever, what_a_generation_hid_stays_hidden,
                attempts_in_transactions_and_versions, removals_of_attempts,
                a_visible_version_is_removed_behind_a_straggler;
            existing:
                what_is_there_is_refused, what_others_flushed_meanwhile_is_refused,
                a_restart_goes_on_where_the_dead_attempt_left_off, refusals_in_transactions;
            sessions:
                a_flush_is_of_one_session, a_transaction_has_several_sessions,
                a_session_of_another_user_writes_nothing, limits_end_calls_early;
            transactions:
                prepared_is_invisible, decision_shows_all_at_once, abort_shows_nothing,
                late_flush_conflicts, decided_twice, decision_counts_as_the_time_of_its_fields,
                transactions_do_not_mix, own_transaction_sees_the_newest, empty_commit_is_final;
            activation:
                kinds_become_visible_one_by_one, kinds_are_switched_off_and_on_again, what_is_covered_later_is_newer,
                an_abort_after_activation_is_final;
            versions:
                version_reads_as_it_was, version_survives_merges, version_of_another_store,
                version_holds_decisions;
            removals:
                removal_counts_at_the_flush, a_later_archive_brings_the_key_back, removal_hides_older_pieces,
                removal_in_a_transaction, removal_within_a_batch, removal_survives_merges, removal_of_a_version,
                removals_that_are_refused;
            external:
                external_fields_read_like_others, external_arrays_of_every_layout, external_bytes_and_ranges,
                a_changed_source_is_corrupt, external_fields_in_transactions, wrong_external_places;
            stored:
                stored_arrays_read_like_others, stored_arrays_of_every_layout, stored_arrays_with_holes,
                a_damaged_file_of_the_store_is_corrupt, stored_arrays_in_transactions_and_versions,
                logs_of_both_versions_are_read_together, wrong_stored_places;
            refusals:
                b19_wrong_keys_and_requests, b32_reading_only, no_store_is_not_found, existing_store_conflicts,
                another_schema_conflicts, wrong_values, wrong_boxes;
        }
    };
}

behaviours!(define);

/// Runs all behaviours, each on a store of its own.
pub fn run_all<H: Harness>(fresh: impl Fn() -> H) -> Result<()> {
    for (name, behaviour) in BEHAVIOURS {
        behaviour(&fresh()).map_err(|e| e.context(name))?;
    }
    Ok(())
}

/// Runs one behaviour by name.
pub fn run(name: &str, harness: &dyn Harness) -> Result<()> {
    match BEHAVIOURS.iter().find(|(known, _)| *known == name) {
        Some((_, behaviour)) => behaviour(harness).map_err(|e| e.context(name)),
        None => Err(Error::invalid(format!("there is no behaviour {name}"))),
    }
}

// Helpers that behaviours share.

type Store = Arc<dyn FieldStore>;

/// A handle for reading and archiving.
fn open(harness: &dyn Harness, process: usize) -> Result<Store> {
    harness.open(process, &Opening::default())
}

/// A handle on a store with a schema that comes with Fieldstone.
fn open_as(harness: &dyn Harness, process: usize, schema: &str) -> Result<Store> {
    harness.open(process, &Opening { schema: Schema::builtin(schema), ..Opening::default() })
}

/// Flushes, and lets every process see it.
fn flush(harness: &dyn Harness, store: &Store) -> Result<()> {
    store.flush(&Session::default())?;
    harness.settle();
    Ok(())
}

fn request(text: &str) -> Result<Request> {
    Request::parse(text)
}

/// Archives opaque bytes under a key written as a request.
fn put(store: &Store, key: &str, value: &[u8]) -> Result<()> {
    put_in(store, key, value, None)
}

fn put_in(store: &Store, key: &str, value: &[u8], transaction: Option<Id>) -> Result<()> {
    let options = ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() };
    with_key(key, |pairs| store.archive(pairs, Value::Bytes(value), &options))
}

/// Calls with the pairs of a key written as a request.
fn with_key<T>(key: &str, call: impl FnOnce(&Pairs<'_>) -> Result<T>) -> Result<T> {
    let pairs = request(key)?.single_pairs()?;
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    call(&pairs)
}

fn get(store: &Store, key: &str) -> Result<Vec<u8>> {
    get_in(store, key, None)
}

fn get_in(store: &Store, key: &str, transaction: Option<Id>) -> Result<Vec<u8>> {
    with_key(key, |pairs| store.get(pairs, &ReadOptions { session: Session::from(transaction) }))?.read()
}

/// Keys listed for a request, as text.
fn listed(store: &Store, text: &str) -> Result<Vec<String>> {
    list_with(store, text, &ListOptions::default())
}

fn list_with(store: &Store, text: &str, options: &ListOptions) -> Result<Vec<String>> {
    store.list(&request(text)?, options)?.map(|entry| entry.map(|e| e.key.to_string())).collect()
}

/// How many entries a list has, hidden ones included.
fn count_all(store: &Store) -> Result<usize> {
    let options = ListOptions { masked: true, ..ListOptions::default() };
    Ok(list_with(store, "", &options)?.len())
}

/// Checks that a call fails, and how; returns the error.
fn fails<T>(what: &str, kind: ErrorKind, outcome: Result<T>) -> Error {
    match outcome {
        Ok(_) => {
            assert!(kind == ErrorKind::Internal, "{what}: succeeds, where {} is due", kind.name());
            Error::internal("no error")
        }
        Err(e) => {
            assert!(e.kind() == kind, "{what}: {} is due, not {}: {e}", kind.name(), e.kind().name());
            e
        }
    }
}

/// Checks that an error's message names something.
fn names(error: &Error, what: &str) {
    assert!(error.message().contains(what), "'{error}' does not name '{what}'");
}

/// Elements of an f64 array.
fn doubles(values: impl IntoIterator<Item = f64>) -> Vec<u8> {
    values.into_iter().flat_map(f64::to_ne_bytes).collect()
}

/// Bytes that show a misplaced one.
fn pattern(length: usize, seed: u64) -> Vec<u8> {
    Random::new(seed).bytes(length)
}
