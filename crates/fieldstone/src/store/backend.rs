//! The composed store as a backend.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_catalog::access::CatalogAccess;
use fieldstone_catalog::live::{Catalog, CatalogSettings};
use fieldstone_core::env::Env;
use fieldstone_core::request::Request;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_graph::Graph;
use fieldstone_graph::access::GraphAccess;
use fieldstone_store::api::{
    AcceptanceReport, CompactProgress, CompactReport, Compaction, FieldAccess, IfExists, KeyEntry,
    ListOptions, Listing, Pairs, PurgeProgress, PurgeReport, Purging, RetrieveOptions, Session,
    StoreSettings, TransactionState, WipeReport, Wiping,
};

use super::composed::Composed;
use crate::backend::{Backend, BackendAdmin, BackendLane, GraphPlace};
use crate::own_files::OwnFiles;

impl Backend for Composed {
    fn env(&self) -> &Env {
        self.journal.env()
    }

    fn id(&self) -> Id {
        self.journal.home().id
    }

    fn folder(&self) -> Option<PathBuf> {
        self.fields.folder()
    }

    fn native_folder(&self) -> Option<PathBuf> {
        self.journal.home().folder
    }

    fn check_writable(&self) -> Result<()> {
        self.journal.access().check_writable()
    }

    fn check_format(&self, since: u32, what: &str) -> Result<()> {
        self.journal.format().check(since, what)
    }

    fn create(&self) -> Result<()> {
        self.fields.create()
    }

    fn has_pending(&self, session: &Session) -> bool {
        self.journal.unflushed().holds(session)
    }

    fn is_decided(&self, transaction: Id) -> Result<bool> {
        Ok(self.journal.looks().snapshot()?.transaction_states().any(|(id, _, _)| id == transaction))
    }

    fn list_since(&self, request: &Request, since: &str, options: &ListOptions) -> Result<(Listing, String)> {
        self.fields.list_since(request, since, options)
    }

    fn list_commits(&self, commits: HashSet<(Id, u64)>, options: &ListOptions) -> Result<Listing> {
        self.fields.list_commits(commits, options)
    }

    fn origins(&self, request: &Request, session: &Session) -> Result<Vec<(CommitId, u64)>> {
        let options = RetrieveOptions { strict: false, session: session.clone() };
        let mut commits = BTreeMap::new();
        // Bypass the calling execution: this does not count as a read.
        for field in self.fields.retrieve(request, &options)?.iter() {
            commits.extend(field?.commits());
        }
        Ok(commits.into_iter().collect())
    }

    fn wait(&self, since: &str, timeout: u64, session: &Session) -> Result<bool> {
        self.fields.wait(since, timeout, session)
    }

    fn take_undated(&self) -> Option<Arc<str>> {
        self.undated.take()
    }

    fn close_quietly(&self, session: &Session) -> Result<()> {
        self.end(session)
    }

    fn catalog(self: Arc<Self>, settings: CatalogSettings) -> Arc<dyn CatalogAccess> {
        let journal = self.journal.clone();
        Arc::new(Catalog::new(self, journal, settings))
    }

    fn graph(self: Arc<Self>) -> Arc<dyn GraphAccess> {
        let journal = self.journal.clone();
        Arc::new(Graph::new(self, journal))
    }

    fn graph_in(self: Arc<Self>, place: GraphPlace) -> Result<Arc<dyn GraphAccess>> {
        let journal = self.journal.clone();
        Ok(Arc::new(Graph::with_slots(self, journal, place.folder, Arc::new(place.slots))))
    }
}

impl BackendAdmin for Composed {
    fn set_if_exists(&self, if_exists: IfExists, session: &Session) -> Result<()> {
        self.fields.set_if_exists(if_exists, session)
    }

    fn accept(&self, name: &str, why: &str, session: &Session) -> Result<AcceptanceReport> {
        self.fields.accept(name, why, session)
    }

    fn compact(
        &self,
        what: &Compaction,
        each: &mut dyn FnMut(CompactProgress) -> Result<()>,
    ) -> Result<CompactReport> {
        self.fields.compact(what, each)
    }

    fn purge(
        &self,
        what: &Purging,
        each: &mut dyn FnMut(PurgeProgress) -> Result<()>,
    ) -> Result<PurgeReport> {
        self.fields.purge(what, each)
    }

    fn wipe(&self, request: &Request, how: &Wiping) -> Result<WipeReport> {
        self.fields.wipe(request, how)
    }

    fn newest_place(&self, key: &[u8]) -> Result<Option<u64>> {
        self.fields.newest_place(key)
    }

    fn upgrade(&self, session: &Session) -> Result<(u32, u32)> {
        self.journal.format().upgrade(session)
    }

    fn pin_format(&self, version: u32, session: &Session) -> Result<()> {
        self.journal.format().pin(version, session)
    }
}

impl BackendLane for Composed {
    fn entries(&self, key: &Pairs<'_>, session: &Session) -> Result<Vec<KeyEntry>> {
        self.journal.check_there()?;
        self.fields.entries(key, session)
    }

    fn transactions(&self) -> Result<Vec<TransactionState>> {
        self.fields.transactions()
    }

    fn settings(&self) -> Result<StoreSettings> {
        self.fields.settings()
    }

    fn named_files(&self) -> Result<Vec<(String, u64)>> {
        let Some(root) = self.fields.folder() else { return Ok(Vec::new()) };
        let OwnFiles { files, unread, .. } = OwnFiles::of(&*self.journal.env().disk, &root);
        match unread.into_iter().next() {
            Some((path, error)) => Err(Error::io("look at", &root.join(path), error)),
            None => Ok(files),
        }
    }
}
