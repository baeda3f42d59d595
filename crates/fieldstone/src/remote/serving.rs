//! The methods of each object, for the server's calls.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_catalog::access::CatalogAccess;
use fieldstone_catalog::engine::{DeclarationRow, Interrupt};
use fieldstone_catalog::live::{CatalogSettings, Deletion as CatalogDeletion};
use fieldstone_catalog::query::{By, Hit, Query};
use fieldstone_core::geometry::IndexBox;
use fieldstone_core::request::Request;
use fieldstone_core::sync::Mutex;
use fieldstone_core::value::{Test, Value, ValueType};
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    ArrayGroup, AttributeBatch, AttributeId, HistoryDecl, ImportDecl, MeshDecl, Record, RunDecl, RunName,
    RunState, StepDecl, TagDecl, VariableDecl, VariableName,
};
use fieldstone_format::entry::EntryId;
use fieldstone_format::graph::{Archive, RelationBatch, TypeDecl, VertexName};
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_graph::access::GraphAccess;
use fieldstone_graph::archive::HiddenVersions;
use fieldstone_graph::audit::AuditOptions;
use fieldstone_graph::put::{Deletion, RelationPut, VertexPut};
use fieldstone_graph::read::Versions;
use fieldstone_graph::relations::RelationTest;
use fieldstone_graph::slot::Engine;
use fieldstone_graph::trace::{Lineage, Step, TraceOptions};
use fieldstone_graph::travel::{Path as Way, Travel, Traversal, VertexTest};
use fieldstone_slots::SlotOptions;
use fieldstone_store::api::Erasing;
use fieldstone_store::api::HandingOver;
use fieldstone_store::api::Holding;
use fieldstone_store::api::{
    ArchiveOptions, BlockPlace, CheckpointOptions, Compaction, FieldSpec, Hiding, IfExists, ListEntry,
    ListOptions, Locking, Maintaining, Purging, ReadOptions, RemoveOptions, Retaining, RetrieveOptions,
    Session, StatsBy, Wiping,
};
use fieldstone_store::api::{IndexedField, Overlaying, Pointing};
use fieldstone_store::{Field, Fields};
use fieldstone_wire::{ArchivedValue, ExternalValue, FieldFacts, In, Outcome, StoredValue, Wire};

use super::argument::Argument;
use super::frame::encoded;
use super::methods::{
    admin, alone, backend, backend_admin, backend_lane, backend_owners, backend_sharing, catalog_admin,
    catalog_arrays, catalog_lookup, catalog_queries, catalog_writer, fields, graph_admin, graph_reader,
    graph_walks, graph_writer, server_arms, transactions,
};
use super::named::Named;
use super::served::{Exported, Serving};
use crate::backend::{Backend, GraphPlace};

/// Items of a stream in one portion.
const PORTION: usize = 256;

/// A key, as it is read.
type Pairs = Vec<(String, String)>;

/// Calls a method of an object; returns the answer's bytes.
pub fn serve(serving: &Serving<'_>, object: &Exported, method: u16, arguments: &[u8]) -> Result<Vec<u8>> {
    let input = &mut In::new(arguments, serving);
    match object {
        Exported::Backend(store) => of_backend(serving, store, method, input),
        Exported::Catalog(catalog) => of_catalog(serving, &**catalog, method, input),
        Exported::Graph(graph) => of_graph(serving, &**graph, method, input),
        Exported::Field(field) => of_field(serving, field, method, input),
        Exported::Fields(fields) => of_fields(serving, fields, method, input),
        Exported::Listing(entries) => Ok(encoded(&portion::<ListEntry>(&mut **entries.lock()))),
        Exported::Hits(hits) => Ok(encoded(&portion::<Hit>(&mut **hits.lock()))),
        Exported::Paths(paths) => Ok(encoded(&portion::<Way>(&mut **paths.lock()))),
        Exported::Traversal(traversal) => of_traversal(serving, traversal, method, input),
    }
}

fn unknown(method: u16) -> Error {
    Error::corrupt(format!("the object has no method {method:#06x}"))
}

/// The next items of a stream; fewer than a portion's at the end.
fn portion<T>(stream: &mut dyn Iterator<Item = Result<T>>) -> Vec<Outcome<T>> {
    stream.take(PORTION).collect()
}

fn of_backend(
    serving: &Serving<'_>,
    store: &Arc<dyn Backend>,
    method: u16,
    input: &mut In<'_>,
) -> Result<Vec<u8>> {
    fields!(server_arms!(store, method, input));
    transactions!(server_arms!(store, method, input));
    admin!(server_arms!(store, method, input));
    backend!(server_arms!(store, method, input));
    backend_admin!(server_arms!(store, method, input));
    backend_lane!(server_arms!(store, method, input));
    backend_owners!(server_arms!(store, method, input));
    backend_sharing!(server_arms!(store, method, input));
    match method {
        alone::ARCHIVE..=alone::REMOVE_FIELDS => archiving(store, method, input).map(|()| Vec::new()),
        alone::LIST..=alone::GET | alone::LIST_SINCE | alone::LIST_COMMITS => {
            reading(serving, store, method, input)
        }
        alone::URL => Ok(encoded(&store.url().to_owned())),
        alone::SCHEMA => Ok(encoded(&store.schema().text().to_owned())),
        alone::WILL_WRITE => {
            store.will_write();
            Ok(Vec::new())
        }
        alone::CLOSE => store.close(&Session::read(input)?).map(|()| Vec::new()),
        alone::ENTRIES => {
            let (key, session) = (Pairs::read(input)?, Session::read(input)?);
            Ok(encoded(&store.entries(&lent(&key), &session)?))
        }
        alone::COMPACT => {
            let what = Compaction::read(input)?;
            Ok(encoded(&store.compact(&what, &mut |progress| serving.hand_over(&progress))?))
        }
        alone::PURGE => {
            let what = Purging::read(input)?;
            Ok(encoded(&store.purge(&what, &mut |progress| serving.hand_over(&progress))?))
        }
        alone::ERASE => Ok(encoded(&store.clone().erase(&Erasing::read(input)?)?)),
        alone::MAINTAIN => {
            let what = Maintaining::read(input)?;
            Ok(encoded(&store.maintain(&what, &mut |progress| serving.hand_over(&progress))?))
        }
        alone::ID => Ok(encoded(&store.id())),
        alone::CATALOG => {
            let catalog = store.clone().catalog(CatalogSettings::read(input)?);
            Ok(encoded(&serving.keep(Exported::Catalog(catalog))))
        }
        alone::GRAPH => Ok(encoded(&serving.keep(Exported::Graph(store.clone().graph())))),
        alone::GRAPH_IN => {
            let place = GraphPlace { folder: PathBuf::read(input)?, slots: SlotOptions::default() };
            Ok(encoded(&serving.keep(Exported::Graph(store.clone().graph_in(place)?))))
        }
        other => Err(unknown(other)),
    }
}

fn lent(pairs: &Pairs) -> Vec<(&str, &str)> {
    pairs.iter().map(|(keyword, value)| (&**keyword, &**value)).collect()
}

fn archiving(store: &Arc<dyn Backend>, method: u16, input: &mut In<'_>) -> Result<()> {
    match method {
        alone::ARCHIVE => {
            let (key, options, value) =
                (Pairs::read(input)?, ArchiveOptions::read(input)?, ArchivedValue::read(input)?);
            store.archive(&lent(&key), value.lend(), &options)
        }
        alone::ARCHIVE_MANY => {
            let options = ArchiveOptions::read(input)?;
            let items = Vec::<(Pairs, ArchivedValue)>::read(input)?;
            let keys: Vec<Vec<(&str, &str)>> = items.iter().map(|(key, _)| lent(key)).collect();
            let items: Vec<_> =
                keys.iter().zip(&items).map(|(key, (_, value))| (&**key, value.lend())).collect();
            store.archive_many(&items, &options)
        }
        alone::CREATE_FIELD => {
            let (key, options) = (Pairs::read(input)?, ArchiveOptions::read(input)?);
            let (dtype, shape) = (Wire::read(input)?, Vec::read(input)?);
            let (fill, chunks) = (Option::<Vec<u8>>::read(input)?, Option::<Vec<u64>>::read(input)?);
            let spec = FieldSpec { dtype, shape: &shape, fill: fill.as_deref(), chunks: chunks.as_deref() };
            store.create_field(&lent(&key), &spec, &options)
        }
        alone::ARCHIVE_EXTERNAL => {
            let (key, options, value) =
                (Pairs::read(input)?, ArchiveOptions::read(input)?, ExternalValue::read(input)?);
            store.archive_external(&lent(&key), &value.lend(), &options)
        }
        alone::ARCHIVE_STORED => {
            let (key, options, value) =
                (Pairs::read(input)?, ArchiveOptions::read(input)?, StoredValue::read(input)?);
            store.archive_stored(&lent(&key), &value.lend(), &options)
        }
        _ => {
            let options = RemoveOptions::read(input)?;
            let named = Vec::<(PathBuf, Vec<u8>, EntryId)>::read(input)?;
            let named: Vec<Field> = named.into_iter().map(Named::field).collect();
            store.remove_fields(&named, &options)
        }
    }
}

fn reading(
    serving: &Serving<'_>,
    store: &Arc<dyn Backend>,
    method: u16,
    input: &mut In<'_>,
) -> Result<Vec<u8>> {
    let keep = |entries| serving.keep(Exported::Listing(Arc::new(Mutex::new(entries))));
    match method {
        alone::LIST => {
            let (request, options) = (Request::read(input)?, ListOptions::read(input)?);
            Ok(encoded(&keep(store.list(&request, &options)?)))
        }
        alone::LIST_SINCE => {
            let (request, since, options) =
                (Request::read(input)?, String::read(input)?, ListOptions::read(input)?);
            let (entries, version) = store.list_since(&request, &since, &options)?;
            Ok(encoded(&(keep(entries), version)))
        }
        alone::LIST_COMMITS => {
            let (commits, options) = (Vec::<(Id, u64)>::read(input)?, ListOptions::read(input)?);
            Ok(encoded(&keep(store.list_commits(HashSet::from_iter(commits), &options)?)))
        }
        alone::RETRIEVE => {
            let (request, options) = (Request::read(input)?, RetrieveOptions::read(input)?);
            let fields = store.retrieve(&request, &options)?;
            let facts = (fields.len(), fields.missing_count(), fields.version());
            Ok(encoded(&(serving.keep(Exported::Fields(fields)), facts)))
        }
        _ => {
            let (key, options) = (Pairs::read(input)?, ReadOptions::read(input)?);
            Ok(held(serving, store.get(&lent(&key), &options)?))
        }
    }
}

/// A field that the client now holds, with its facts.
fn held(serving: &Serving<'_>, field: Field) -> Vec<u8> {
    let id = field.id();
    let array = field.source().array();
    let facts = FieldFacts {
        store: id.store.into(),
        key: id.key.to_vec(),
        entry: id.entry,
        version: field.version(),
        commits: field.commits(),
        time: field.time(),
        nbytes: field.nbytes(),
        array: array.map(|array| array.map(|(dtype, shape)| (dtype, shape.to_vec()))),
        chunks: field.chunks(),
        summary: field.summary(),
        lenient: field.is_lenient(),
    };
    encoded(&(serving.keep(Exported::Field(field)), facts))
}

fn of_catalog(
    serving: &Serving<'_>,
    catalog: &dyn CatalogAccess,
    method: u16,
    input: &mut In<'_>,
) -> Result<Vec<u8>> {
    catalog_writer!(server_arms!(catalog, method, input));
    catalog_lookup!(server_arms!(catalog, method, input));
    catalog_queries!(server_arms!(catalog, method, input));
    catalog_arrays!(server_arms!(catalog, method, input));
    catalog_admin!(server_arms!(catalog, method, input));
    match method {
        alone::STREAM => {
            let hits = catalog.stream(&Query::read(input)?)?;
            Ok(encoded(&serving.keep(Exported::Hits(Arc::new(Mutex::new(hits))))))
        }
        alone::ACTIVATE => {
            let (on, transaction, kinds) =
                (bool::read(input)?, Id::read(input)?, Vec::<String>::read(input)?);
            let session = Session::read(input)?;
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            match on {
                true => catalog.activate(transaction, &kinds, &session),
                false => catalog.deactivate(transaction, &kinds, &session),
            }
            .map(|()| Vec::new())
        }
        other => Err(unknown(other)),
    }
}

fn of_graph(
    serving: &Serving<'_>,
    graph: &dyn GraphAccess,
    method: u16,
    input: &mut In<'_>,
) -> Result<Vec<u8>> {
    graph_writer!(server_arms!(graph, method, input));
    graph_reader!(server_arms!(graph, method, input));
    graph_walks!(server_arms!(graph, method, input));
    graph_admin!(server_arms!(graph, method, input));
    match method {
        alone::HIDDEN => {
            let (before, session) = (u64::read(input)?, Session::read(input)?);
            let mut take = |portion: &HiddenVersions| serving.hand_over(portion);
            Ok(encoded(&graph.hidden(before, &mut take, &session)?))
        }
        alone::TRAVEL => {
            let (travel, engine, session) =
                (Travel::read(input)?, Engine::read(input)?, Session::read(input)?);
            let traversal = graph.travel(&travel, engine, &session)?;
            let summary = traversal.summary().clone();
            Ok(encoded(&(serving.keep(Exported::Traversal(traversal)), summary)))
        }
        other => Err(unknown(other)),
    }
}

fn of_traversal(
    serving: &Serving<'_>,
    traversal: &Traversal,
    method: u16,
    input: &mut In<'_>,
) -> Result<Vec<u8>> {
    match method {
        alone::TRAVEL_NAMES => {
            let (set, from, most) = (usize::read(input)?, usize::read(input)?, usize::read(input)?);
            Ok(encoded(&traversal.names(set, from, most)?))
        }
        alone::TRAVEL_VERTEX => Ok(encoded(&traversal.vertex(&VertexName::read(input)?)?)),
        alone::TRAVEL_PATHS => {
            let paths = traversal.paths().ok_or_else(|| Error::invalid("the traversal returns vertices"))?;
            Ok(encoded(&serving.keep(Exported::Paths(Arc::new(Mutex::new(paths))))))
        }
        other => Err(unknown(other)),
    }
}

fn of_fields(serving: &Serving<'_>, fields: &Fields, method: u16, input: &mut In<'_>) -> Result<Vec<u8>> {
    match method {
        alone::FIELDS_GET => Ok(held(serving, fields.get(usize::read(input)?)?)),
        alone::FIELDS_MISSING => Ok(encoded(&fields.missing(usize::read(input)?))),
        other => Err(unknown(other)),
    }
}

fn of_field(serving: &Serving<'_>, field: &Field, method: u16, input: &mut In<'_>) -> Result<Vec<u8>> {
    let source = field.source();
    match method {
        alone::FIELD_MISSING => Ok(encoded(&source.missing(usize::read(input)?)?)),
        alone::FIELD_HOLES => Ok(encoded(&source.holes()?)),
        alone::FIELD_OUTLINE => Ok(encoded(&source.outline()?)),
        alone::FIELD_PARTS => Ok(encoded(&source.parts()?)),
        alone::FIELD_HAS_OLDER => Ok(encoded(&source.older()?.is_some())),
        alone::FIELD_WARM => Ok(encoded(&field.warm()?)),
        alone::FIELD_OLDER => match field.older()? {
            Some(older) => Ok(held(serving, older)),
            None => Err(Error::internal("an older value was asked for that is not there")),
        },
        alone::FIELD_COMPRESSED => Ok(encoded(&source.is_compressed()?)),
        alone::FIELD_STORED => Ok(encoded(&source.stored_array()?)),
        alone::FIELD_BLOCK => {
            let region = IndexBox::read(input)?;
            // A field checks its arguments before it asks its source.
            Ok(encoded(&field.stored_block(&region)?.map(|block| *block.place())))
        }
        alone::FIELD_READ_BLOCK => {
            let place = BlockPlace::read(input)?;
            let mut bytes = room(place.stored)?;
            source.read_block(&place, &mut bytes)?;
            Ok(bytes)
        }
        alone::FIELD_READ => {
            let (region, lenient) = (Option::<IndexBox>::read(input)?, bool::read(input)?);
            let field = if lenient { field.clone().lenient() } else { field.clone().strict() };
            field.read_box(region.as_ref())
        }
        alone::FIELD_READ_RANGE => {
            let (start, length) = (u64::read(input)?, u64::read(input)?);
            let mut bytes = room(length)?;
            field.read_range(start, &mut bytes)?;
            Ok(bytes)
        }
        other => Err(unknown(other)),
    }
}

/// Bytes that a read fills.
fn room(length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let fits = usize::try_from(length).is_ok_and(|length| bytes.try_reserve_exact(length).is_ok());
    if !fits {
        return Err(
            fieldstone_core::Code::OutOfMemory.error(format!("a read of {length} bytes exceeds the memory"))
        );
    }
    bytes.resize(length as usize, 0);
    Ok(bytes)
}
