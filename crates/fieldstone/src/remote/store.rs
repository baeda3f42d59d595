//! A backend at the far end of a connection.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_catalog::access::CatalogAccess;
use fieldstone_catalog::live::CatalogSettings;
use fieldstone_core::env::Env;
use fieldstone_core::key::KeyValue;
use fieldstone_core::request::Request;
use fieldstone_core::schema::{Schema, Selection};
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::commit_id::CommitId;
use fieldstone_graph::access::GraphAccess;
use fieldstone_store::api::{
    AcceptanceReport, Admin, ArchiveOptions, ByteStream, CheckpointOptions, CheckpointReport,
    CompactProgress, CompactReport, Compaction, DatasetLock, ExternalSpec, FieldAccess, FieldSpec,
    FieldStreams, HiddenFields, Hiding, IfExists, KeyEntry, ListOptions, Listing, Locking, MaintainProgress,
    MaintainReport, Maintaining, Pairs, PurgeProgress, PurgeReport, Purging, ReadOptions, RemoveOptions,
    Retaining, RetentionRule, RetrieveOptions, Session, Stats, StatsBy, StatsRow, Status, StoreSettings,
    StoredArraySpec, TransactionState, Transactions, Value, VerifyReport, WipeReport, Wiping, key_request,
};
use fieldstone_store::api::{Erasing, ErasureReport};
use fieldstone_store::api::{HandOverInfo, HandOverReport, HandingOver};
use fieldstone_store::api::{HoldInfo, Holding};
use fieldstone_store::api::{IndexedField, OverlaidFields, Overlaying, PointedFields, Pointing};
use fieldstone_store::{Field, Fields};
use fieldstone_wire::{ArchivedValue, ExternalValue, Out, StoredValue, Wire};

use super::argument::Argument;
use super::catalog_and_graph::{RemoteCatalog, RemoteGraph};
use super::connection::Far;
use super::fields::{RemoteFields, Stream, field};
use super::frame::decoded;
use super::methods::{
    admin, alone, backend, backend_admin, backend_lane, backend_owners, backend_sharing, client_methods,
    fields, transactions,
};
use super::served::Served;
use crate::backend::{Backend, BackendAdmin, BackendLane, BackendOwners, BackendSharing, GraphPlace};
use crate::execution::current::current;
use crate::execution::{Asked, reachable, record_late_reads};

/// A backend at the far end of a connection.
#[derive(Debug)]
pub struct RemoteStore {
    far: Far,
    env: Env,
    url: String,
    /// The URL by which other processes open it, if they can.
    reachable: Option<Arc<str>>,
    /// The schema as of the last read, by its text.
    schema: Mutex<Schema>,
}

impl RemoteStore {
    /// A store that a thread of this process serves from here on.
    pub fn to(served: Arc<Served>) -> RemoteStore {
        let backend = served.backend();
        let env = backend.env().clone();
        let url = backend.url().to_owned();
        let (schema, reachable) = (Mutex::new(backend.schema()), reachable(&url).map(Arc::from));
        RemoteStore { far: Far::to(served), env, url, reachable, schema }
    }

    /// The request that this thread's execution makes to the store.
    fn asked(&self, request: String) -> Option<Arc<Asked>> {
        current().map(|by| Arc::new(Asked { by, request: request.into(), url: self.reachable.clone() }))
    }

    fn listing(&self, method: u16, put: impl Fn(&mut Out<'_>)) -> Result<Listing> {
        let (far, ()) = self.far.call_for_object(method, put)?;
        Ok(Box::new(Stream::of(far)))
    }

    /// An object that the far end makes; if the connection is lost, one without answers.
    fn object(&self, method: u16, put: impl Fn(&mut Out<'_>)) -> Far {
        match self.far.call_for_object(method, put) {
            Ok((far, ())) => far,
            Err(error) => {
                tracing::warn!(%error, method, "a call got no answer");
                self.far.nowhere()
            }
        }
    }
}

/// Appends a key.
fn put_key(key: &Pairs<'_>, out: &mut Out<'_>) {
    let pairs: Vec<(String, String)> =
        key.iter().map(|(keyword, value)| ((*keyword).to_owned(), (*value).to_owned())).collect();
    pairs.put(out);
}

impl FieldAccess for RemoteStore {
    fields!(client_methods!());

    fn url(&self) -> &str {
        &self.url
    }

    fn schema(&self) -> Schema {
        let text: Result<String> = self.far.call(alone::SCHEMA, |_| {});
        let mut known = self.schema.lock();
        let newer = text.and_then(|text| match known.text() == text {
            true => Ok(None),
            false => Schema::parse(&text).map(Some),
        });
        match newer {
            Ok(newer) => newer.into_iter().for_each(|schema| *known = schema),
            Err(error) => tracing::warn!(%error, "the schema of the store may have grown"),
        }
        known.clone()
    }

    fn select(&self, request: &Request) -> Result<Selection> {
        // The store at the far end may show only a part of its fields.
        let request = self.bounds()?.into_iter().fold(request.clone(), Request::within);
        self.schema().select_at(&request, self.env.clock.now())
    }

    fn archive(&self, key: &Pairs<'_>, value: Value<'_>, options: &ArchiveOptions) -> Result<()> {
        self.far.call(alone::ARCHIVE, |out| {
            put_key(key, out);
            options.put(out);
            ArchivedValue::put_value(&value, out);
        })
    }

    fn archive_many(&self, items: &[(&Pairs<'_>, Value<'_>)], options: &ArchiveOptions) -> Result<()> {
        self.far.call(alone::ARCHIVE_MANY, |out| {
            options.put(out);
            items.len().put(out);
            for (key, value) in items {
                put_key(key, out);
                ArchivedValue::put_value(value, out);
            }
        })
    }

    fn create_field(&self, key: &Pairs<'_>, spec: &FieldSpec<'_>, options: &ArchiveOptions) -> Result<()> {
        self.far.call(alone::CREATE_FIELD, |out| {
            put_key(key, out);
            options.put(out);
            spec.dtype.put(out);
            spec.shape.to_vec().put(out);
            spec.fill.map(<[u8]>::to_vec).put(out);
            spec.chunks.map(<[u64]>::to_vec).put(out);
        })
    }

    fn archive_external(
        &self,
        key: &Pairs<'_>,
        spec: &ExternalSpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.far.call(alone::ARCHIVE_EXTERNAL, |out| {
            put_key(key, out);
            options.put(out);
            ExternalValue::of(spec).put(out);
        })
    }

    fn archive_stored(
        &self,
        key: &Pairs<'_>,
        spec: &StoredArraySpec<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.far.call(alone::ARCHIVE_STORED, |out| {
            put_key(key, out);
            options.put(out);
            StoredValue::of(spec).put(out);
        })
    }

    fn remove_fields(&self, fields: &[Field], options: &RemoveOptions) -> Result<()> {
        self.far.call(alone::REMOVE_FIELDS, |out| {
            options.put(out);
            fields.len().put(out);
            for field in fields {
                let id = field.id();
                PathBuf::from(id.store).put(out);
                id.key.to_vec().put(out);
                id.entry.put(out);
            }
        })
    }

    fn list(&self, request: &Request, options: &ListOptions) -> Result<Listing> {
        self.listing(alone::LIST, |out| {
            request.put(out);
            options.put(out);
        })
    }

    fn retrieve(&self, request: &Request, options: &RetrieveOptions) -> Result<Fields> {
        let found = self.far.call_for_object(alone::RETRIEVE, |out| {
            request.put(out);
            options.put(out);
        })?;
        let fields = RemoteFields::of(found);
        Ok(match self.asked(request.to_string()) {
            Some(asked) => asked.fields(fields),
            None => fields,
        })
    }

    fn get(&self, key: &Pairs<'_>, options: &ReadOptions) -> Result<Field> {
        let found = self.far.call_for_object(alone::GET, |out| {
            put_key(key, out);
            options.put(out);
        })?;
        Ok(match self.asked(key_request(key).to_string()) {
            Some(asked) => asked.field(field(found)),
            None => field(found),
        })
    }
}

impl FieldStreams for RemoteStore {
    fn archive_stream(
        &self,
        key: &Pairs<'_>,
        stream: ByteStream<'_>,
        options: &ArchiveOptions,
    ) -> Result<()> {
        self.archive(key, Value::Bytes(&stream.bytes()?), options)
    }
}

impl Transactions for RemoteStore {
    transactions!(client_methods!());

    fn will_write(&self) {
        self.far.call_or_default(alone::WILL_WRITE, |_| {})
    }
}

impl Admin for RemoteStore {
    admin!(client_methods!());

    fn close(&self, session: &Session) -> Result<()> {
        let closed = self.far.call(alone::CLOSE, |out| session.put(out));
        // A reader must not fail because its reads cannot be recorded.
        if let Err(error) = record_late_reads() {
            tracing::warn!(%error, "cannot record a read");
        }
        closed
    }
}

impl Backend for RemoteStore {
    backend!(client_methods!());

    fn env(&self) -> &Env {
        &self.env
    }

    fn id(&self) -> Id {
        self.far.call(alone::ID, |_| {}).unwrap_or(Id::LEAST)
    }

    fn list_since(&self, request: &Request, since: &str, options: &ListOptions) -> Result<(Listing, String)> {
        let (far, version) = self.far.call_for_object(alone::LIST_SINCE, |out| {
            request.put(out);
            since.to_owned().put(out);
            options.put(out);
        })?;
        Ok((Box::new(Stream::of(far)), version))
    }

    fn list_commits(&self, commits: HashSet<(Id, u64)>, options: &ListOptions) -> Result<Listing> {
        let commits = Vec::from_iter(commits);
        self.listing(alone::LIST_COMMITS, |out| {
            commits.put(out);
            options.put(out);
        })
    }

    fn catalog(self: Arc<Self>, settings: CatalogSettings) -> Arc<dyn CatalogAccess> {
        Arc::new(RemoteCatalog { far: self.object(alone::CATALOG, |out| settings.put(out)) })
    }

    fn graph(self: Arc<Self>) -> Arc<dyn GraphAccess> {
        Arc::new(RemoteGraph { far: self.object(alone::GRAPH, |_| {}) })
    }

    fn graph_in(self: Arc<Self>, place: GraphPlace) -> Result<Arc<dyn GraphAccess>> {
        if !place.slots.is_plain() {
            return Err(Error::invalid("slots run in the process that holds the store")
                .with_hint("open the store there"));
        }
        let (far, ()) = self.far.call_for_object(alone::GRAPH_IN, |out| place.folder.put(out))?;
        Ok(Arc::new(RemoteGraph { far }))
    }
}

impl BackendAdmin for RemoteStore {
    backend_admin!(client_methods!());

    fn compact(
        &self,
        what: &Compaction,
        each: &mut dyn FnMut(CompactProgress) -> Result<()>,
    ) -> Result<CompactReport> {
        let take = &mut |bytes: &[u8]| each(decoded(bytes)?);
        self.far.call_in_portions(alone::COMPACT, |out| what.put(out), take)
    }

    fn purge(
        &self,
        what: &Purging,
        each: &mut dyn FnMut(PurgeProgress) -> Result<()>,
    ) -> Result<PurgeReport> {
        let take = &mut |bytes: &[u8]| each(decoded(bytes)?);
        self.far.call_in_portions(alone::PURGE, |out| what.put(out), take)
    }

    fn erase(self: Arc<Self>, what: &Erasing) -> Result<ErasureReport> {
        self.far.call(alone::ERASE, |out| what.put(out))
    }

    fn maintain(
        &self,
        what: &Maintaining,
        each: &mut dyn FnMut(MaintainProgress) -> Result<()>,
    ) -> Result<MaintainReport> {
        let take = &mut |bytes: &[u8]| each(decoded(bytes)?);
        self.far.call_in_portions(alone::MAINTAIN, |out| what.put(out), take)
    }
}

impl BackendOwners for RemoteStore {
    backend_owners!(client_methods!());
}

impl BackendSharing for RemoteStore {
    backend_sharing!(client_methods!());
}

impl BackendLane for RemoteStore {
    backend_lane!(client_methods!());

    fn entries(&self, key: &Pairs<'_>, session: &Session) -> Result<Vec<KeyEntry>> {
        self.far.call(alone::ENTRIES, |out| {
            put_key(key, out);
            session.put(out);
        })
    }
}
