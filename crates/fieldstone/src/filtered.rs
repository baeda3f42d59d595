//! A filter over a backend, itself a backend: its fields are those that a request selects. Catalog, graph and all other
//! calls that concern the whole store go to the whole store; calls that would change it as a whole fail.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, ListOptions, OpenOptions, Request, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let winds = store.filtered(Request::parse("variable=u/v")?)?;
//! for variable in ["u", "t"] {
//!     store.archive(&[("run", "a"), ("variable", variable)], Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! }
//! store.flush(None)?;
//! assert_eq!(winds.list(&Request::new(), &ListOptions::default())?.count(), 1);
//! assert_eq!(winds.catalog().runs(&fieldstone::catalog::Query::all())?.len(), 1);
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_catalog::access::CatalogAccess;
use fieldstone_catalog::live::CatalogSettings;
use fieldstone_core::Result;
use fieldstone_core::env::Env;
use fieldstone_core::request::Request;
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_format::keys::encode_key;
use fieldstone_graph::access::GraphAccess;
use fieldstone_store::api::{
    AcceptanceReport, CompactProgress, CompactReport, Compaction, DatasetLock, FieldAccess, HiddenFields,
    Hiding, IfExists, KeyEntry, ListOptions, Listing, Locking, MaintainProgress, MaintainReport, Maintaining,
    Pairs, PurgeProgress, PurgeReport, Purging, Retaining, RetentionRule, Session, StoreSettings,
    TransactionState, WipeReport, Wiping,
};
use fieldstone_store::api::{Erasing, ErasureReport};
use fieldstone_store::api::{HandOverInfo, HandOverReport, HandingOver};
use fieldstone_store::api::{HoldInfo, Holding, VerifyReport};
use fieldstone_store::api::{IndexedField, OverlaidFields, Overlaying, PointedFields, Pointing};
use fieldstone_store::frontends::FilterStore;

use crate::backend::{Backend, BackendAdmin, BackendLane, BackendOwners, BackendSharing, GraphPlace};

impl Backend for FilterStore<dyn Backend> {
    fn env(&self) -> &Env {
        self.beneath().env()
    }

    fn id(&self) -> Id {
        self.beneath().id()
    }

    fn folder(&self) -> Option<PathBuf> {
        self.beneath().folder()
    }

    fn native_folder(&self) -> Option<PathBuf> {
        self.beneath().native_folder()
    }

    fn check_writable(&self) -> Result<()> {
        self.beneath().check_writable()
    }

    fn check_format(&self, since: u32, what: &str) -> Result<()> {
        self.beneath().check_format(since, what)
    }

    fn create(&self) -> Result<()> {
        self.beneath().create()
    }

    fn has_pending(&self, session: &Session) -> bool {
        self.beneath().has_pending(session)
    }

    fn is_decided(&self, transaction: Id) -> Result<bool> {
        self.beneath().is_decided(transaction)
    }

    fn list_since(&self, request: &Request, since: &str, options: &ListOptions) -> Result<(Listing, String)> {
        self.beneath().list_since(&self.shown(request), since, options)
    }

    fn list_commits(&self, commits: HashSet<(Id, u64)>, options: &ListOptions) -> Result<Listing> {
        let selection = self.select(&Request::new())?;
        let entries = self.beneath().list_commits(commits, options)?;
        Ok(Box::new(
            entries.filter(move |entry| entry.as_ref().map_or(true, |entry| selection.takes(&entry.key))),
        ))
    }

    fn origins(&self, request: &Request, session: &Session) -> Result<Vec<(CommitId, u64)>> {
        self.beneath().origins(&self.shown(request), session)
    }

    fn wait(&self, since: &str, timeout: u64, session: &Session) -> Result<bool> {
        self.beneath().wait(since, timeout, session)
    }

    fn take_undated(&self) -> Option<Arc<str>> {
        self.beneath().take_undated()
    }

    fn close_quietly(&self, session: &Session) -> Result<()> {
        self.beneath().close_quietly(session)
    }

    fn catalog(self: Arc<Self>, settings: CatalogSettings) -> Arc<dyn CatalogAccess> {
        self.beneath().clone().catalog(settings)
    }

    fn graph(self: Arc<Self>) -> Arc<dyn GraphAccess> {
        self.beneath().clone().graph()
    }

    fn graph_in(self: Arc<Self>, place: GraphPlace) -> Result<Arc<dyn GraphAccess>> {
        self.beneath().clone().graph_in(place)
    }
}

impl BackendAdmin for FilterStore<dyn Backend> {
    fn set_if_exists(&self, _exist: IfExists, _session: &Session) -> Result<()> {
        Err(self.refused("a setting"))
    }

    fn accept(&self, _name: &str, _why: &str, _session: &Session) -> Result<AcceptanceReport> {
        Err(self.refused("an accepted loss"))
    }

    /// Logs with a field of the filter are compacted whole, with everything else in them.
    fn compact(
        &self,
        what: &Compaction,
        each: &mut dyn FnMut(CompactProgress) -> Result<()>,
    ) -> Result<CompactReport> {
        let requests = match &what.requests[..] {
            [] => vec![self.shown(&Request::new())],
            requests => requests.iter().map(|request| self.shown(request)).collect(),
        };
        self.beneath().compact(&Compaction { requests, ..what.clone() }, each)
    }

    fn purge(
        &self,
        what: &Purging,
        each: &mut dyn FnMut(PurgeProgress) -> Result<()>,
    ) -> Result<PurgeReport> {
        let is_all = what.all && what.requests.iter().all(Request::is_empty);
        let requests = match is_all {
            true => vec![self.shown(&Request::new())],
            false => what.requests.iter().map(|request| self.shown(request)).collect(),
        };
        self.beneath().purge(&Purging { requests, ..what.clone() }, each)
    }

    fn set_lock(&self, _request: &Request, _how: &Locking) -> Result<u64> {
        Err(self.refused("locks"))
    }

    fn locks(&self) -> Result<Vec<DatasetLock>> {
        self.beneath().locks()
    }

    fn set_hidden(&self, request: &Request, how: &Hiding) -> Result<u64> {
        self.beneath().set_hidden(&self.shown(request), how)
    }

    fn hidden(&self) -> Result<Vec<HiddenFields>> {
        self.beneath().hidden()
    }

    fn erase(self: Arc<Self>, what: &Erasing) -> Result<ErasureReport> {
        let requests = what.requests.iter().map(|request| self.shown(request)).collect();
        self.beneath().clone().erase(&Erasing { requests, ..what.clone() })
    }

    /// Wipes within the filter alone: one of single fields lets nothing be wiped.
    fn wipe(&self, request: &Request, how: &Wiping) -> Result<WipeReport> {
        self.beneath().wipe(&self.shown(request), how)
    }

    fn retain(&self, _request: &Request, _how: &Retaining) -> Result<RetentionRule> {
        Err(self.refused("a rule of retention"))
    }

    /// Those of the whole store.
    fn rules(&self) -> Result<Vec<RetentionRule>> {
        self.beneath().rules()
    }

    fn moving_rules(&self, _session: &Session) -> Result<Vec<RetentionRule>> {
        Err(self.refused("maintenance"))
    }

    fn verify_since(&self, request: &Request, since: &str) -> Result<VerifyReport> {
        self.beneath().verify_since(&self.shown(request), since)
    }

    /// A hold is on the whole store, as a filter has no files of its own.
    fn hold(&self, how: &Holding) -> Result<HoldInfo> {
        self.beneath().hold(how)
    }

    fn release(&self, name: &str, session: &Session) -> Result<()> {
        self.beneath().release(name, session)
    }

    fn holds(&self) -> Result<Vec<HoldInfo>> {
        self.beneath().holds()
    }

    fn maintain(
        &self,
        _what: &Maintaining,
        _each: &mut dyn FnMut(MaintainProgress) -> Result<()>,
    ) -> Result<MaintainReport> {
        Err(self.refused("maintenance"))
    }

    fn upgrade(&self, _session: &Session) -> Result<(u32, u32)> {
        Err(self.refused("the format"))
    }

    fn pin_format(&self, _version: u32, _session: &Session) -> Result<()> {
        Err(self.refused("the format"))
    }
}

impl BackendOwners for FilterStore<dyn Backend> {
    fn hand_over(&self, _how: &HandingOver) -> Result<HandOverReport> {
        // It would hand over what lies outside, too.
        Err(self.refused("a hand-over"))
    }

    fn hand_overs(&self) -> Result<Vec<HandOverInfo>> {
        self.beneath().hand_overs()
    }
}

impl BackendSharing for FilterStore<dyn Backend> {
    fn set_overlay(&self, _request: &Request, _how: &Overlaying) -> Result<u64> {
        // It could show what lies outside.
        Err(self.refused("an overlay"))
    }

    fn overlays(&self) -> Result<Vec<OverlaidFields>> {
        self.beneath().overlays()
    }

    fn indexed(&self, request: &Request, after: &[u8], session: &Session) -> Result<Vec<IndexedField>> {
        self.beneath().indexed(&self.shown(request), after, session)
    }

    fn take_indexed(&self, _fields: &[IndexedField], _session: &Session) -> Result<Vec<(String, String)>> {
        Err(self.refused("a reindex"))
    }

    fn point(&self, _request: &Request, _how: &Pointing) -> Result<bool> {
        Err(self.refused("a pointer"))
    }

    fn pointers(&self) -> Result<Vec<PointedFields>> {
        self.beneath().pointers()
    }
}

impl BackendLane for FilterStore<dyn Backend> {
    fn entries(&self, key: &Pairs<'_>, session: &Session) -> Result<Vec<KeyEntry>> {
        match self.shows(&encode_key(&self.schema().resolve(key)?).bytes)? {
            true => self.beneath().entries(key, session),
            false => Ok(Vec::new()),
        }
    }

    fn newest_place(&self, key: &[u8]) -> Result<Option<u64>> {
        self.beneath().newest_place(key)
    }

    fn transactions(&self) -> Result<Vec<TransactionState>> {
        self.beneath().transactions()
    }

    fn settings(&self) -> Result<StoreSettings> {
        self.beneath().settings()
    }

    fn named_files(&self) -> Result<Vec<(String, u64)>> {
        self.beneath().named_files()
    }
}
