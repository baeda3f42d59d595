//! Backends of a [`Store`](crate::Store). Nothing above this module asks for a journal.
//!
//! `Composed`, which combines fields, journal, catalog and graph, is the first. Another implementation may be the far
//! end of a connection, or a frontend for several stores: it answers the same calls, and no others.
//!
//! Invariants:
//! * a backend refuses a call that it cannot serve with an error that says so;
//! * files besides the fields (arrays, meshes, kept partitions) are reached through [`Backend::folder`], if there is
//!   one.
//!
//! ```
//! use std::sync::Arc;
//!
//! use fieldstone::catalog::CatalogSettings;
//! use fieldstone::{Backend, OpenOptions, Session, Store};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let backend: Arc<dyn Backend> = store.backend().clone();
//! assert!(backend.folder().is_none() && backend.check_writable().is_ok());
//! let same = Store::over(backend, CatalogSettings::default());
//! same.create_run("a").create()?;
//! same.flush(None)?;
//! assert!(store.run("a").is_ok());
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::collections::HashSet;
use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::request::Request;
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_store::api::{
    AcceptanceReport, CompactProgress, CompactReport, Compaction, DatasetLock, FieldStore, HiddenFields,
    Hiding, IfExists, KeyEntry, ListOptions, Listing, Locking, MaintainProgress, MaintainReport, Maintaining,
    Pairs, PurgeProgress, PurgeReport, Purging, Retaining, RetentionRule, Session, StoreSettings,
    TransactionState, WipeReport, Wiping,
};

use fieldstone_store::api::{Erasing, ErasureReport};
use fieldstone_store::api::{HandOverInfo, HandOverReport, HandingOver};
use fieldstone_store::api::{HoldInfo, Holding, VerifyReport};
use fieldstone_store::api::{IndexedField, OverlaidFields, Overlaying, PointedFields, Pointing};

use fieldstone_catalog::access::CatalogAccess;
use fieldstone_catalog::live::CatalogSettings;
use fieldstone_graph::access::GraphAccess;
use fieldstone_slots::SlotOptions;

/// The place of a graph's segments, if the caller chooses it.
#[derive(Debug, Clone)]
pub struct GraphPlace {
    /// The folder of its segments.
    pub folder: PathBuf,
    /// Options of its slots.
    pub slots: SlotOptions,
}

/// The calls that a store makes, besides those of its fields.
pub trait Backend:
    FieldStore + BackendAdmin + BackendOwners + BackendSharing + BackendLane + Send + Sync + Debug
{
    /// The world of the calls: clock, identity, and the disk of [`folder`](Self::folder).
    fn env(&self) -> &Env;

    /// The id of the store; before it is made, the id that it will get.
    fn id(&self) -> Id;

    /// The store's folder, if this process can reach one.
    fn folder(&self) -> Option<PathBuf>;

    /// The same, if it is on a file system of this machine: a job that begins here leaves it out of its own files.
    fn native_folder(&self) -> Option<PathBuf>;

    /// The same store in the name of another user, where this process may act for him: as root, in a folder of this machine.
    fn for_user(&self, user: u32) -> Result<Option<Arc<dyn Backend>>> {
        let _ = user;
        Ok(None)
    }

    /// Fails with Denied if this handle only reads.
    fn check_writable(&self) -> Result<()>;

    /// Fails with Denied if the store's format version is older than `since`, the version that added `what`.
    fn check_format(&self, since: u32, what: &str) -> Result<()>;

    /// Makes the store now, without a field.
    fn create(&self) -> Result<()>;

    /// Whether anything that a session took waits for a flush, or for the end of one.
    fn has_pending(&self, session: &Session) -> bool;

    /// Whether any user has decided about a transaction.
    fn is_decided(&self, transaction: Id) -> Result<bool>;

    /// See [`Store::list_since`](crate::Store::list_since).
    fn list_since(&self, request: &Request, since: &str, options: &ListOptions) -> Result<(Listing, String)>;

    /// The fields of some commits, each given as a log and a number.
    fn list_commits(&self, commits: HashSet<(Id, u64)>, options: &ListOptions) -> Result<Listing>;

    /// The commits that wrote the fields of a request, each with its stamp. This does not count as a read.
    fn origins(&self, request: &Request, session: &Session) -> Result<Vec<(CommitId, u64)>>;

    /// Waits for a flush after a version; `false` if there was none in `timeout` nanoseconds.
    fn wait(&self, since: &str, timeout: u64, session: &Session) -> Result<bool>;

    /// A keyword of dates that a field lacked; only the first caller gets it.
    fn take_undated(&self) -> Option<Arc<str>>;

    /// Closes the store without recording this process's reads.
    fn close_quietly(&self, session: &Session) -> Result<()>;

    /// The catalog. It opens nothing before the first use.
    fn catalog(self: Arc<Self>, settings: CatalogSettings) -> Arc<dyn CatalogAccess>;

    /// The graph. It reads nothing before the first use.
    fn graph(self: Arc<Self>) -> Arc<dyn GraphAccess>;

    /// The graph with its segments at the caller's place. `Invalid` if this process cannot reach the store.
    fn graph_in(self: Arc<Self>, place: GraphPlace) -> Result<Arc<dyn GraphAccess>>;
}

/// Administration: for the store's owner, and for those who look after their own logs in it.
pub trait BackendAdmin {
    /// See [`Store::set_if_exists`](crate::Store::set_if_exists).
    fn set_if_exists(&self, if_exists: IfExists, session: &Session) -> Result<()>;

    /// See [`Store::accept`](crate::Store::accept).
    fn accept(&self, name: &str, why: &str, session: &Session) -> Result<AcceptanceReport>;

    /// See [`Store::compact`](crate::Store::compact). `Invalid` for a store whose logs cannot be taken over.
    fn compact(
        &self,
        what: &Compaction,
        each: &mut dyn FnMut(CompactProgress) -> Result<()>,
    ) -> Result<CompactReport>;

    /// See [`Store::purge`](crate::Store::purge). `Invalid` for a store whose logs cannot be taken over.
    fn purge(&self, what: &Purging, each: &mut dyn FnMut(PurgeProgress) -> Result<()>)
    -> Result<PurgeReport>;

    /// See [`Store::erase`](crate::Store::erase). `Invalid` for a store whose logs cannot be taken over.
    fn erase(self: Arc<Self>, what: &Erasing) -> Result<ErasureReport>;

    /// See [`Store::wipe`](crate::Store::wipe).
    fn wipe(&self, request: &Request, how: &Wiping) -> Result<WipeReport>;
    /// Sets a lock on datasets, or ends it. See [`DatasetAccess::lock`](crate::DatasetAccess::lock).
    fn set_lock(&self, request: &Request, how: &Locking) -> Result<u64>;
    /// The locks in force, by dataset.
    fn locks(&self) -> Result<Vec<DatasetLock>>;
    /// Hides fields, or shows them again. See [`DatasetAccess::hide`](crate::DatasetAccess::hide).
    fn set_hidden(&self, request: &Request, how: &Hiding) -> Result<u64>;
    /// The hides in force.
    fn hidden(&self) -> Result<Vec<HiddenFields>>;

    /// See [`Store::retain`](crate::Store::retain).
    fn retain(&self, request: &Request, how: &Retaining) -> Result<RetentionRule>;

    /// See [`Store::rules`](crate::Store::rules).
    fn rules(&self) -> Result<Vec<RetentionRule>>;

    /// The rules that move fields and count for the data of a session's user. `Denied` if this handle may not maintain the
    /// store.
    fn moving_rules(&self, session: &Session) -> Result<Vec<RetentionRule>>;

    /// See [`AllOf::verify_since`](crate::AllOf::verify_since).
    fn verify_since(&self, request: &Request, since: &str) -> Result<VerifyReport>;

    /// See [`hold`](crate::hold).
    fn hold(&self, how: &Holding) -> Result<HoldInfo>;

    /// Ends a hold, by its name, before it expires.
    fn release(&self, name: &str, session: &Session) -> Result<()>;

    /// See [`holds`](crate::holds).
    fn holds(&self) -> Result<Vec<HoldInfo>>;

    /// See [`Store::maintain`](crate::Store::maintain); fields have been moved before.
    fn maintain(
        &self,
        what: &Maintaining,
        each: &mut dyn FnMut(MaintainProgress) -> Result<()>,
    ) -> Result<MaintainReport>;

    /// See [`Store::upgrade`](crate::Store::upgrade).
    fn upgrade(&self, session: &Session) -> Result<(u32, u32)>;

    /// Pins the version of the format, durably.
    fn pin_format(&self, version: u32, session: &Session) -> Result<()>;
}

/// Calls about the users who own datasets and runs.
pub trait BackendOwners {
    /// Hands over all that a user owns. See [`DatasetAccess::hand_over`](crate::DatasetAccess::hand_over).
    fn hand_over(&self, how: &HandingOver) -> Result<HandOverReport>;

    /// All hand-overs, oldest first.
    fn hand_overs(&self) -> Result<Vec<HandOverInfo>>;
}

/// Calls that say under which keys fields are found.
pub trait BackendSharing {
    /// Lets fields appear under other values, too, or ends that. See [`DatasetAccess::overlay`](crate::DatasetAccess::overlay).
    fn set_overlay(&self, request: &Request, how: &Overlaying) -> Result<u64>;

    /// The overlays in force, oldest first.
    fn overlays(&self) -> Result<Vec<OverlaidFields>>;

    /// The next fields of a request behind an encoded key, as entries by which another store names them. Empty at the end.
    /// `Invalid` for a store that no other one can reach.
    fn indexed(&self, request: &Request, after: &[u8], session: &Session) -> Result<Vec<IndexedField>>;

    /// Archives entries that name another store; those that do not fit the schema are left, each with its key and the reason.
    fn take_indexed(&self, fields: &[IndexedField], session: &Session) -> Result<Vec<(String, String)>>;

    /// Records that another store names the fields of a request, or does so no more. Returns whether purges leave all of them.
    fn point(&self, request: &Request, how: &Pointing) -> Result<bool>;

    /// See [`pointers`](crate::pointers).
    fn pointers(&self) -> Result<Vec<PointedFields>>;
}

/// Facts by which a store of several merges its lanes. (Schema and version are calls of a field store.)
pub trait BackendLane {
    /// All entries that count under a key, newest first, each with its place in the order, its attempt, and whether it
    /// begins a generation; removals included.
    fn entries(&self, key: &Pairs<'_>, session: &Session) -> Result<Vec<KeyEntry>>;

    /// The greatest stamp of a place in the order that a visible entry under an encoded key has, removals included: what is
    /// moved there must have a greater one to be seen.
    fn newest_place(&self, key: &[u8]) -> Result<Option<u64>>;

    /// The transactions that a user decided about, or flushed into, user by user.
    fn transactions(&self) -> Result<Vec<TransactionState>>;

    /// The settings that the owner made, by name.
    fn settings(&self) -> Result<StoreSettings>;

    /// Files of arrays, meshes and kept partitions, by their paths in the store, with their bytes.
    fn named_files(&self) -> Result<Vec<(String, u64)>>;
}
