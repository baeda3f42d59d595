//! Catalog and graph of a store at the far end of a connection.

use std::sync::Arc;

use fieldstone_catalog::access::{
    CatalogAdmin, CatalogArrays, CatalogLookup, CatalogQueries, CatalogWriter, Hits,
};
use fieldstone_catalog::engine::{DeclarationRow, Interrupt, Selection, Writer};
use fieldstone_catalog::live::{CatalogCheck, DeleteReport, Deletion as CatalogDeletion, RebuildReport};
use fieldstone_catalog::query::{
    Aggregate, BoxInfo, By, HitTable, MissingName, PairTable, Query, RunInfo, StepInfo, TagInfo, VariableInfo,
};
use fieldstone_core::Result;
use fieldstone_core::value::{Test, Value, ValueType};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    ArrayGroup, AttributeBatch, AttributeId, HistoryDecl, ImportDecl, MeshDecl, Record, RunDecl, RunName,
    RunState, StepDecl, TagDecl, VariableDecl, VariableName,
};
use fieldstone_format::graph::{Archive, RelationBatch, TypeDecl, VertexName};
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_graph::access::{GraphAdmin, GraphReader, GraphWalks, GraphWriter};
use fieldstone_graph::archive::{ArchiveReport, HiddenVersions};
use fieldstone_graph::audit::{Audit, AuditOptions};
use fieldstone_graph::dossier::Dossier;
use fieldstone_graph::live::{Check, Partitions, Stats};
use fieldstone_graph::put::{Deletion, RelationPut, VertexPut};
use fieldstone_graph::read::{Relation, Versions, Vertex};
use fieldstone_graph::relations::{RelationTest, TypeMatches};
use fieldstone_graph::slot::Engine;
use fieldstone_graph::trace::{Lineage, Step, TraceOptions};
use fieldstone_graph::travel::{PathStream, Travel, Traversal, TraversalSource, VertexTest};
use fieldstone_journal::Session;
use fieldstone_store::api::IfExists;
use fieldstone_wire::Wire;

use super::argument::Argument;
use super::connection::Far;
use super::fields::Stream;
use super::frame::decoded;
use super::methods::{
    alone, catalog_admin, catalog_arrays, catalog_lookup, catalog_queries, catalog_writer, client_methods,
    graph_admin, graph_reader, graph_walks, graph_writer,
};

/// A catalog that stays with its store.
#[derive(Debug)]
pub struct RemoteCatalog {
    pub(super) far: Far,
}

impl RemoteCatalog {
    fn decide(&self, on: bool, transaction: Id, kinds: &[&str], session: &Session) -> Result<()> {
        self.far.call(alone::ACTIVATE, |out| {
            on.put(out);
            transaction.put(out);
            kinds.iter().map(|kind| (*kind).to_owned()).collect::<Vec<String>>().put(out);
            session.put(out);
        })
    }
}

impl CatalogWriter for RemoteCatalog {
    catalog_writer!(client_methods!());

    fn activate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()> {
        self.decide(true, transaction, kinds, session)
    }

    fn deactivate(&self, transaction: Id, kinds: &[&str], session: &Session) -> Result<()> {
        self.decide(false, transaction, kinds, session)
    }
}

impl CatalogLookup for RemoteCatalog {
    catalog_lookup!(client_methods!());
}

impl CatalogQueries for RemoteCatalog {
    catalog_queries!(client_methods!());

    fn stream(&self, query: &Query) -> Result<Hits> {
        let (far, ()) = self.far.call_for_object(alone::STREAM, |out| query.put(out))?;
        Ok(Box::new(Stream::of(far)))
    }
}

impl CatalogArrays for RemoteCatalog {
    catalog_arrays!(client_methods!());
}

impl CatalogAdmin for RemoteCatalog {
    catalog_admin!(client_methods!());
}

/// A graph that stays with its store.
#[derive(Debug)]
pub struct RemoteGraph {
    pub(super) far: Far,
}

impl GraphWriter for RemoteGraph {
    graph_writer!(client_methods!());
}

impl GraphReader for RemoteGraph {
    graph_reader!(client_methods!());

    fn hidden(
        &self,
        before: u64,
        take: &mut dyn FnMut(&HiddenVersions) -> Result<()>,
        session: &Session,
    ) -> Result<ArchiveReport> {
        let put = |out: &mut fieldstone_wire::Out<'_>| {
            before.put(out);
            session.put(out);
        };
        self.far.call_in_portions(alone::HIDDEN, put, &mut |bytes| take(&decoded(bytes)?))
    }
}

impl GraphWalks for RemoteGraph {
    graph_walks!(client_methods!());

    fn travel(&self, travel: &Travel, engine: Engine, session: &Session) -> Result<Traversal> {
        let (far, summary) = self.far.call_for_object(alone::TRAVEL, |out| {
            travel.put(out);
            engine.put(out);
            session.put(out);
        })?;
        Ok(Traversal::new(summary, Arc::new(RemoteTraversal { far })))
    }
}

impl GraphAdmin for RemoteGraph {
    graph_admin!(client_methods!());
}

/// Vertices and paths that stay with the store.
#[derive(Debug)]
struct RemoteTraversal {
    far: Far,
}

impl TraversalSource for RemoteTraversal {
    fn names(&self, set: usize, from: usize, most: usize) -> Result<Vec<VertexName>> {
        self.far.call(alone::TRAVEL_NAMES, |out| {
            set.put(out);
            from.put(out);
            most.put(out);
        })
    }

    fn vertex(&self, name: &VertexName) -> Result<Vertex> {
        self.far.call(alone::TRAVEL_VERTEX, |out| name.put(out))
    }

    fn paths(&self) -> Option<PathStream> {
        Some(match self.far.call_for_object(alone::TRAVEL_PATHS, |_| {}) {
            Ok((far, ())) => Box::new(Stream::of(far)),
            Err(error) => Box::new(std::iter::once(Err(error))),
        })
    }
}
