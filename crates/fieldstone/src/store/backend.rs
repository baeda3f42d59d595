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
    AcceptanceReport, CompactProgress, CompactReport, Compaction, DatasetLock, FieldAccess, HiddenFields,
    Hiding, IfExists, KeyEntry, ListOptions, Listing, Locking, MaintainProgress, MaintainReport, Maintaining,
    Pairs, PurgeProgress, PurgeReport, Purging, Retaining, RetentionRule, RetrieveOptions, Session,
    StoreSettings, TransactionState, WipeReport, Wiping,
};

use fieldstone_store::api::{Erasing, ErasureReport, LeftLog};
use fieldstone_store::api::{HandOverInfo, HandOverReport, HandingOver};
use fieldstone_store::api::{HoldInfo, Holding, VerifyReport};
use fieldstone_store::api::{IndexedField, OverlaidFields, Overlaying, PointedFields, Pointing};
use fieldstone_store::local::{LocalOptions, LocalStore};
use fieldstone_store::{erase, hand_over, hide, holds, locks, overlay, reindex, retain};

use super::composed::Composed;
use super::unnamed;
use crate::backend::{Backend, BackendAdmin, BackendLane, BackendOwners, BackendSharing, GraphPlace};
use crate::own_files::OwnFiles;

/// The reason why a server of the catalog may still hold what was erased.
const ON_A_SERVER: &str =
    "its tables were built again; the server's own log and backups may hold it for a while";
/// The reason why other users' engines may.
const IN_CACHES: &str =
    "each user's engine holds it until `fieldstone rebuild`, or until its file is removed";

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

    fn for_user(&self, user: u32) -> Result<Option<Arc<dyn Backend>>> {
        let journal = &self.journal;
        let folder = journal.home().folder.filter(|_| journal.access().check_writable().is_ok());
        let Some((env, folder)) = journal.env().acting_as(user).zip(folder) else { return Ok(None) };
        let url = self.fields.url().to_owned();
        let options = LocalOptions { url, writable: true, native: true, ..LocalOptions::default() };
        Ok(Some(Composed::new(LocalStore::open(env, &folder, options)?, false)))
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
        let mut report = self.fields.purge(what, each)?;
        if let Some(store) = self.me.upgrade() {
            unnamed::free(&store, what, &mut report)?;
        }
        Ok(report)
    }

    fn set_lock(&self, request: &Request, how: &Locking) -> Result<u64> {
        locks::set_lock(&self.journal, request, how)
    }

    fn locks(&self) -> Result<Vec<DatasetLock>> {
        locks::locks(&self.journal)
    }

    fn set_hidden(&self, request: &Request, how: &Hiding) -> Result<u64> {
        hide::set_hidden(&self.journal, request, how)
    }

    fn hidden(&self) -> Result<Vec<HiddenFields>> {
        hide::hidden(&self.journal)
    }

    fn erase(self: Arc<Self>, what: &Erasing) -> Result<ErasureReport> {
        erase::begin(&self.journal, what)?;
        let settings = CatalogSettings { engine: what.engine.clone() };
        let catalog = Catalog::new(self.clone(), self.journal.clone(), settings);
        let mut hidden = catalog.hidden_attributes(&what.requests, &what.session)?;
        let mut report =
            erase::erase(&self.journal, what, &mut |commit, records| hidden.erase(commit, records))?;
        let feed = self.journal.looks().feed()?;
        let mut left = hidden.left(&feed, what.doit)?;
        if what.doit {
            left.extend(catalog.renew_engine()?.map(|url| (url, ON_A_SERVER.to_owned())));
        }
        if feed.is_shared() {
            left.insert(("catalogs of other users".to_owned(), IN_CACHES.to_owned()));
        }
        report.visible += hidden.visible();
        let named = left.into_iter().map(|(file, why)| LeftLog { file, why, accepted: false });
        let new: Vec<LeftLog> = named.filter(|left| !report.left.contains(left)).collect();
        report.left.extend(new);
        Ok(report)
    }

    fn wipe(&self, request: &Request, how: &Wiping) -> Result<WipeReport> {
        self.fields.wipe(request, how)
    }

    fn retain(&self, request: &Request, how: &Retaining) -> Result<RetentionRule> {
        self.fields.retain(request, how)
    }

    fn rules(&self) -> Result<Vec<RetentionRule>> {
        retain::rules(&self.journal)
    }

    fn moving_rules(&self, session: &Session) -> Result<Vec<RetentionRule>> {
        retain::moving_rules(&self.journal, session)
    }

    fn verify_since(&self, request: &Request, since: &str) -> Result<VerifyReport> {
        fieldstone_store::verify_since(&self.journal, request, since)
    }

    fn hold(&self, how: &Holding) -> Result<HoldInfo> {
        holds::hold(&self.journal, how)
    }

    fn release(&self, name: &str, session: &Session) -> Result<()> {
        holds::release(&self.journal, name, session)
    }

    fn holds(&self) -> Result<Vec<HoldInfo>> {
        holds::holds(&self.journal)
    }

    fn maintain(
        &self,
        what: &Maintaining,
        each: &mut dyn FnMut(MaintainProgress) -> Result<()>,
    ) -> Result<MaintainReport> {
        self.fields.maintain(what, each)
    }

    fn upgrade(&self, session: &Session) -> Result<(u32, u32)> {
        self.journal.format().upgrade(session)
    }

    fn pin_format(&self, version: u32, session: &Session) -> Result<()> {
        self.journal.format().pin(version, session)
    }
}

impl BackendOwners for Composed {
    fn hand_over(&self, how: &HandingOver) -> Result<HandOverReport> {
        hand_over::hand_over(&self.journal, how)
    }

    fn hand_overs(&self) -> Result<Vec<HandOverInfo>> {
        hand_over::hand_overs(&self.journal)
    }
}

impl BackendSharing for Composed {
    fn set_overlay(&self, request: &Request, how: &Overlaying) -> Result<u64> {
        overlay::set_overlay(&self.journal, request, how)
    }

    fn overlays(&self) -> Result<Vec<OverlaidFields>> {
        overlay::overlays(&self.journal)
    }

    fn indexed(&self, request: &Request, after: &[u8], session: &Session) -> Result<Vec<IndexedField>> {
        reindex::indexed(&self.fields, request, after, session)
    }

    fn take_indexed(&self, fields: &[IndexedField], session: &Session) -> Result<Vec<(String, String)>> {
        reindex::take_indexed(&self.fields, fields, session)
    }

    fn point(&self, request: &Request, how: &Pointing) -> Result<bool> {
        reindex::point(&self.journal, request, how)
    }

    fn pointers(&self) -> Result<Vec<PointedFields>> {
        reindex::pointers(&self.journal)
    }
}

impl BackendLane for Composed {
    fn entries(&self, key: &Pairs<'_>, session: &Session) -> Result<Vec<KeyEntry>> {
        self.journal.check_there()?;
        self.fields.entries(key, session)
    }

    fn newest_place(&self, key: &[u8]) -> Result<Option<u64>> {
        self.fields.newest_place(key)
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
