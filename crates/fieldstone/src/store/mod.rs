//! The handle on an open store: its fields, its catalog, its runs and transactions.
//!
//! * `composed`: the first [backend](crate::Backend): fields, journal and catalogs, flushed together; `fields`, `port`,
//!   `backend`: its calls as a field store, those for catalogs, and the rest; `mesh_points`, `grids`, `grib_points`:
//!   the points of meshes and grids;
//! * `forwarded`: the handle as a field store; `many`: calls with a list of requests; `verify`: the check of fields,
//!   arrays, meshes and kept partitions; `repair`: mending from a backup; `compact`: takeovers of ended logs; `datasets`: locks and hides of whole
//!   datasets; `wipe`: they vanish, or are made unreadable; `purge`: hidden versions, and their room.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, OpenOptions, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! store.archive(&[("run", "a"), ("variable", "t")], Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod backend;
mod compact;
mod composed;
mod datasets;
mod fields;
mod forwarded;
mod grib_points;
mod grids;
mod hold;
mod maintain;
mod many;
mod mesh_points;
mod moving;
mod port;
mod prefetch;
mod purge;
mod repair;
mod retain;
mod unnamed;
mod verify;
mod wipe;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use fieldstone_core::request::Request;
use fieldstone_core::value::ValueType;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::TagDecl;
use fieldstone_journal::Session;
use fieldstone_store::api::{
    AcceptanceReport, FieldStore, IfExists, ListOptions, Listing, MaintainReport, RetentionRule,
};
use fieldstone_store::frontends::FilterStore;
use fieldstone_store::local::LocalStore;

use self::composed::Composed;
use crate::backend::{Backend, GraphPlace};
use crate::catalog::{CatalogAccess, CatalogSettings, TagInfo};
use crate::graph::{GraphAccess, SlotOptions, Tracer};
use crate::naming::SessionNaming;
use crate::remote;
use crate::run::{NewRun, Run};
use crate::transaction::Transaction;
use crate::transfer::What;

pub use compact::{CompactOptions, OnCompact};
pub use datasets::DatasetAccess;
pub use hold::{Hold, hold, holds, release};
pub(crate) use maintain::check_rate;
pub use maintain::{MaintainOptions, OnMaintain};
pub use many::AllOf;
pub use prefetch::PrefetchReport;
pub use purge::{OnPurge, PurgeOptions};
pub use repair::{MendedPart, RepairOptions, RepairReport, repair, repair_in};
pub use retain::RetainOptions;
pub use wipe::{EraseOptions, WipeOptions};

/// An open store. Clones are the same handle. The traits of a [`FieldStore`], which the [`prelude`](crate::prelude)
/// brings into scope, have the calls on fields.
#[derive(Debug, Clone)]
pub struct Store {
    backend: Arc<dyn Backend>,
    catalog: Arc<OnceLock<Arc<dyn CatalogAccess>>>,
    graph: Arc<OnceLock<Arc<dyn GraphAccess>>>,
    settings: CatalogSettings,
    /// Sessions that may name meshes with their next flush.
    pub(crate) naming: Arc<SessionNaming>,
}

impl From<Store> for Arc<dyn FieldStore> {
    fn from(store: Store) -> Arc<dyn FieldStore> {
        store.backend
    }
}

impl Store {
    /// A store of these fields, with a catalog according to these settings. `durable`: every change outside
    /// transactions is durable before its call returns.
    pub fn of(fields: LocalStore, settings: CatalogSettings, durable: bool) -> Store {
        Store::over(remote::as_asked(Composed::new(fields, durable)), settings)
    }

    /// A store over a backend.
    pub fn over(backend: Arc<dyn Backend>, settings: CatalogSettings) -> Store {
        Store { backend, catalog: Arc::default(), graph: Arc::default(), settings, naming: Arc::default() }
    }

    /// Its backend.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// A warning for the user, returned once, if a field was archived without a keyword of dates that the schema makes
    /// optional: fields of two days then share one key.
    pub fn undated(&self) -> Option<String> {
        let keyword = self.backend.take_undated()?;
        Some(format!(
            "a field was archived without {keyword}, which the schema makes optional: fields of two days share one key; \
             add {keyword}=YYYYMMDD to the key"
        ))
    }

    /// This store, restricted to the fields that a request selects; catalog and graph are the whole store's. `Invalid`
    /// for a request that does not fit the schema, and for days relative to today.
    pub fn filtered(&self, request: Request) -> Result<Store> {
        let filter: FilterStore<dyn Backend> = FilterStore::new(self.backend.clone(), request)?;
        Ok(Store::over(Arc::new(filter), self.settings.clone()))
    }

    /// This store as a field store, for a frontend or a list of stores.
    pub fn fields(&self) -> Arc<dyn FieldStore> {
        self.backend.clone()
    }

    /// The catalog: queries, and calls for many runs at once.
    pub fn catalog(&self) -> &dyn CatalogAccess {
        &**self.catalog.get_or_init(|| self.catalog_with(self.settings.clone()))
    }

    /// Another catalog with an engine of its own, according to these settings. It opens nothing before the first use.
    pub fn catalog_with(&self, settings: CatalogSettings) -> Arc<dyn CatalogAccess> {
        self.backend.clone().catalog(settings)
    }

    /// The provenance graph: users, executions and data, and their relations.
    pub fn graph(&self) -> &dyn GraphAccess {
        &**self.graph.get_or_init(|| self.backend.clone().graph())
    }

    /// Lineage of this store's data, as a session sees the store.
    pub fn tracer<'a>(&'a self, session: &'a Session) -> Tracer<'a> {
        Tracer { store: self, session }
    }

    /// The fields that several requests select.
    pub fn all_of<'a>(&'a self, requests: &'a [Request]) -> AllOf<'a> {
        AllOf { store: self, requests }
    }

    /// The graph with its segments in a folder that the caller chose, and slots that run as the options say: on a
    /// network of their own, with slow disks, or plainly. Each of its closes writes its memory out.
    ///
    /// Errors: `Invalid` if an earlier call opened the graph.
    pub fn graph_with_slots(
        &self,
        folder: &std::path::Path,
        options: SlotOptions,
    ) -> Result<&dyn GraphAccess> {
        let place = GraphPlace { folder: folder.to_owned(), slots: options };
        let graph = self.backend.clone().graph_in(place)?;
        self.graph.set(graph).map_err(|_| {
            Error::invalid("this handle's graph is already open with other options")
                .with_hint("open it with these options before any other call that uses the graph")
        })?;
        Ok(self.graph())
    }

    /// Makes a session's archived data durable and visible: `None` flushes data outside transactions, an id the data of
    /// that transaction. See [`Transactions::flush`].
    pub fn flush(&self, session: impl Into<Session>) -> Result<()> {
        let session = session.into();
        self.backend.flush(&session)?;
        self.naming.end(&session);
        Ok(())
    }

    /// Forgets a session's archived data that were not flushed.
    pub fn discard(&self, session: impl Into<Session>) -> Result<()> {
        let session = session.into();
        self.backend.discard(&session)?;
        self.naming.end(&session);
        Ok(())
    }

    /// Decides a transaction: visible for all, or never. See [`Transactions::decide`].
    pub fn decide(&self, transaction: Id, commit: bool) -> Result<()> {
        let session = Session::default();
        self.backend.decide(transaction, commit, &session)?;
        self.naming.end(&session.within(transaction));
        Ok(())
    }

    /// Flushes data outside transactions, and ends the writes of this handle.
    pub fn close(&self) -> Result<()> {
        self.backend.close(&Session::default())
    }

    /// Sets for the whole store how to archive a key that has a field, unless call, run or handle decide; durably.
    /// Denied for users other than the store's owner.
    pub fn set_if_exists(&self, if_exists: IfExists) -> Result<()> {
        self.backend.set_if_exists(if_exists, &Session::default())
    }

    /// Accepts the loss of a file, named as in messages: for a log that is missing or shorter than before,
    /// all commits that cannot be read; for a data log that is missing, all fields with bytes in it; for a damaged mesh
    /// or kept partition, that file; otherwise the damaged fields of the file, also of a takeover or an array file. The store records who accepted it, when and `why`, and it is final: accepted losses
    /// never count again, even if the file comes back. Reads, [`verify`](fieldstone_store::api::Admin::verify) and
    /// [`status`](fieldstone_store::api::Admin::status) go on without the lost data, and these two list the loss.
    ///
    /// Errors: `Invalid` if the file lost nothing; `Denied` for users other than its owner, the store's owner, and
    /// root, and in a store of format 1; `Conflict` if the log's writer is alive and may continue.
    pub fn accept(&self, name: &str, why: &str) -> Result<AcceptanceReport> {
        verify::check_lost(self, name)?;
        self.backend.accept(name, why, &Session::default())
    }

    /// Upgrades the store to the newest format version that this release writes, durably: older releases can read what
    /// they know, and write nothing. Returns the versions before and after. Denied for users other than the store's
    /// owner.
    pub fn upgrade(&self) -> Result<(u32, u32)> {
        self.backend.upgrade(&Session::default())
    }

    /// Reads the fields that requests select, or those under hits, where the store is: a later read finds their bytes in
    /// the memory of that machine, as long as it keeps them there. Nothing of them comes here from a store on another
    /// machine. Each byte is compared with its checksum, and a field that cannot be read is named.
    pub fn prefetch(&self, what: impl Into<What>) -> Result<PrefetchReport> {
        prefetch::prefetch(self, &what.into())
    }

    /// The selected fields that became visible after a version, and the version of this answer: the `since` of the next
    /// call. NotFound if the version no longer exists.
    pub fn list_since(
        &self,
        request: &Request,
        since: &str,
        options: &ListOptions,
    ) -> Result<(Listing, String)> {
        self.backend.list_since(request, since, options)
    }

    /// Waits for a flush after a version, by any process; `false` if there was none in that time. Flushed data may
    /// still be invisible, in a transaction.
    pub fn wait(&self, since: &str, timeout: Duration) -> Result<bool> {
        let timeout = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        self.backend.wait(since, timeout, &Session::default())
    }

    /// Whether any user has decided about a transaction.
    pub fn is_decided(&self, transaction: Id) -> Result<bool> {
        self.backend.is_decided(transaction)
    }

    /// Whether the catalog was used: then it may hold unflushed data.
    pub fn uses_catalog(&self) -> bool {
        self.catalog.get().is_some()
    }

    /// Declares a run, by [`NewRun::create`].
    pub fn create_run(&self, name: &str) -> NewRun {
        NewRun::new(self.clone(), name)
    }

    /// The run of this name, declared or named by fields. NotFound if there is none, Invalid if several projects have
    /// one.
    pub fn run(&self, name: &str) -> Result<Run> {
        Run::find(self, None, name, &Session::default())
    }

    /// The run of this name in a project; `""` means no project.
    pub fn run_of_project(&self, project: &str, name: &str) -> Result<Run> {
        Run::find(self, Some(project), name, &Session::default())
    }

    /// Declares a tag, a named kind of metadata that all runs share. Declaring the same again is fine; a tag of this
    /// name with another type or unit stays, and this one gets a version of its own.
    pub fn create_tag(&self, name: &str, kind: ValueType, unit: Option<&str>) -> Result<TagInfo> {
        let unit = unit.unwrap_or_default().to_owned();
        let tag = TagDecl { name: name.to_owned(), version: 0, kind, unit };
        let mut made = self.catalog().create_tags(vec![tag], &Session::default())?;
        made.pop().ok_or_else(|| fieldstone_core::Error::internal("a tag was not made"))
    }

    /// Begins a transaction; its writes become visible together, or not at all.
    pub fn transaction(&self) -> Result<Transaction> {
        Ok(Transaction::new(self.clone(), self.backend.begin()?, false))
    }

    /// Joins a transaction that another handle or process began.
    pub fn join_transaction(&self, id: Id) -> Transaction {
        Transaction::new(self.clone(), id, true)
    }
}

/// Rules of retention, and maintenance.
impl Store {
    /// Keeps a rule of retention in the store, for the whole datasets or indexes that a request selects now and later;
    /// returns it. The request, with its keywords and values in order, is the rule's name: another rule of the same request
    /// takes its place. [`maintain`](Self::maintain) applies rules; until then nothing goes.
    ///
    /// With `to` it moves fields to another store, which must exist when the rule is applied; its request may then name single
    /// fields, or a query says which fields go: those under its hits.
    ///
    /// A rule counts for the data of the user who made it; those of root and of the owner of the folder of logs count for
    /// all data, as their wipes do.
    ///
    /// Errors: `Invalid` for a keyword below the second level of keys, for a request that names no values unless `all` is
    /// set, for a rule without an age and versions, or with 0 versions, for a query that is none or without `to`; `Denied` if it selects datasets of other users,
    /// unless you own the folder of logs or are root, for a handle that only reads, and in a store of format 1; `NotFound`
    /// if the rule to drop does not exist.
    pub fn retain(&self, request: &Request, options: &RetainOptions) -> Result<RetentionRule> {
        self.backend().retain(request, &options.to_call()?)
    }

    /// The rules of retention that are in force, by owner and request.
    pub fn rules(&self) -> Result<Vec<RetentionRule>> {
        self.backend().rules()
    }

    /// Looks after this user's data, and reports each step: moves fields as rules say; removes files whose grace is over; wipes fields that rules of
    /// retention call too old; purges versions that rules let go; merges ended logs. It makes only steps that pay, and
    /// names the others with the reason. It may run any time, beside readers and writers: a call that ends early leaves the
    /// rest to the next one. A purge follows a wipe a grace later, so regular calls are needed; a day apart is usual.
    ///
    /// Under a rule with an age alone, removed, wiped and aborted content goes, and hidden versions stay; under one with
    /// versions, hidden versions beyond these go, too. Without a rule nothing goes but files that nothing names.
    ///
    /// Errors: `Denied` if the handle only reads, and in a store of format 1. An error of one step is in the report.
    pub fn maintain(&self, options: &MaintainOptions<'_>) -> Result<MaintainReport> {
        moving::maintain(self, options)
    }
}
