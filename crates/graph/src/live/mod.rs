//! The graph of an open store: puts and reads.
//!
//! ```text
//! put_*, delete_*    rows of a session, each with its stamp             write
//! flush              rows become side records of the next commit        inner, by the facade
//! vertex, edges, …   the follower follows the logs; own rows lie over it     read
//! ```
//!
//! A process sees its own puts at once, all others see them after the flush. Puts in a transaction are
//! visible to readers that name it, and to all others after its commit.

mod buffer;
mod follower_cache;
mod inner;
mod own;
mod partitions;
mod saving;
mod slots;
mod stamps;
mod types;
mod write;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Weak};

use fieldstone_core::value::Test;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::graph::{Archive, RelationBatch, TypeDecl, VertexName};
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_journal::Journal;
use fieldstone_journal::Session;
use fieldstone_journal::participant::FlushParticipant;

use crate::access::{GraphAdmin, GraphReader, GraphWalks, GraphWriter};
use crate::archive::{ArchiveReport, HiddenVersions, hidden};
use crate::audit::{Audit, AuditOptions, audit};
use crate::commits;
use crate::dossier::{Dossier, around, dossier};
use crate::find;
use crate::put::{Deletion, RelationPut, VertexPut};
use crate::read::{self, Relation, Versions, Vertex};
use crate::relations::{self, RelationTest, TypeMatches};
pub use crate::reports::{Check, Partitions, SlotContent, Stats};
use crate::slot::{Engine, StartSlots};
use crate::state::GraphState;
use crate::trace::{Lineage, Step, TraceOptions, trace, trace_all, trace_on};
use crate::travel::{Travel, Traversal, VertexTest};
use inner::GraphInner;

/// The calls of the graph to its store.
pub trait GraphPort: Send + Sync + std::fmt::Debug {
    /// Reports a change that is not flushed; the store flushes it if every change must be durable at once.
    fn changed(&self, session: &Session) -> Result<()>;

    /// Makes a graph take part in every flush of this process, as long as the graph lives.
    fn join_graph(&self, graph: Weak<dyn FlushParticipant>);

    /// Starts the slots of a follower that is cut into several.
    fn slots(&self) -> Arc<dyn StartSlots>;
}

/// The graph of an open store. Clones share their state.
#[derive(Debug, Clone)]
pub struct Graph {
    inner: Arc<GraphInner>,
}

impl Graph {
    /// The graph over a journal. Reads nothing before it is needed.
    pub fn new(port: Arc<dyn GraphPort>, journal: Arc<Journal>) -> Graph {
        let slots = port.slots();
        Graph { inner: GraphInner::new(port, journal, None, slots) }
    }

    /// The graph over a journal, with a folder for its segments, and slots that run as the caller chooses.
    pub fn with_slots(
        port: Arc<dyn GraphPort>,
        journal: Arc<Journal>,
        folder: PathBuf,
        slots: Arc<dyn StartSlots>,
    ) -> Graph {
        Graph { inner: GraphInner::new(port, journal, Some(folder), slots) }
    }

    /// The whole graph at this moment: later puts do not show.
    pub fn state(&self, session: &Session) -> Result<Arc<GraphState>> {
        self.inner.state(session)
    }
}

impl GraphWriter for Graph {
    fn define(&self, types: Vec<TypeDecl>, session: &Session) -> Result<()> {
        self.inner.define(types, session)?;
        self.inner.changed(session)
    }

    fn put_vertices(&self, vertices: Vec<VertexPut>, session: &Session) -> Result<u64> {
        self.put(vertices, Vec::new(), session)
    }

    fn put_relations(&self, relations: Vec<RelationPut>, session: &Session) -> Result<u64> {
        self.put(Vec::new(), relations, session)
    }

    fn put(&self, vertices: Vec<VertexPut>, relations: Vec<RelationPut>, session: &Session) -> Result<u64> {
        let stamp = self.inner.put(vertices, relations, session)?;
        self.inner.changed(session)?;
        Ok(stamp)
    }

    fn put_batch(&self, vertices: Vec<VertexPut>, batch: &RelationBatch, session: &Session) -> Result<u64> {
        let stamp = self.inner.put_batch(vertices, batch, session)?;
        self.inner.changed(session)?;
        Ok(stamp)
    }

    fn delete(&self, what: Vec<Deletion>, time: Option<u64>, session: &Session) -> Result<u64> {
        let stamp = self.inner.delete(what, time, session)?;
        self.inner.changed(session)?;
        Ok(stamp)
    }

    fn take_versions(&self, versions: &HiddenVersions, session: &Session) -> Result<()> {
        self.inner.take_versions(versions, session)?;
        self.inner.changed(session)
    }

    fn put_stubs(&self, archive: &Archive, versions: &HiddenVersions, session: &Session) -> Result<()> {
        self.inner.put_stubs(archive, versions, session)?;
        self.inner.changed(session)
    }
}

impl GraphReader for Graph {
    fn vertex(&self, vertex: &VertexName, at: Option<u64>, session: &Session) -> Result<Vertex> {
        self.inner.reading(session, |state, _| read::vertex(state, vertex, at))
    }

    fn versions(&self, vertex: &VertexName, session: &Session) -> Result<Vec<Vertex>> {
        self.inner.reading(session, |state, _| read::versions(state, vertex))
    }

    fn edges(
        &self,
        vertex: &VertexName,
        kind: Option<&str>,
        versions: Versions,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Relation>> {
        self.inner.reading(session, |state, limits| read::edges(state, vertex, kind, versions, limit, limits))
    }

    fn find(
        &self,
        test: &VertexTest,
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Vertex>> {
        self.inner.reading(session, |state, limits| find::find(state, test, at, limit, limits))
    }

    fn find_relations(
        &self,
        test: &RelationTest,
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Relation>> {
        self.inner.reading(session, |state, limits| relations::find_relations(state, test, at, limit, limits))
    }

    fn find_by_type(
        &self,
        kind: &str,
        tests: &[(String, Test)],
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<TypeMatches> {
        self.inner
            .reading(session, |state, limits| relations::find_by_type(state, kind, tests, at, limit, limits))
    }

    fn search(
        &self,
        text: &str,
        kind: Option<&str>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Vertex>> {
        self.inner.reading(session, |state, limits| find::search(state, text, kind, limit, limits))
    }

    fn hidden(
        &self,
        before: u64,
        take: &mut dyn FnMut(&HiddenVersions) -> Result<()>,
        session: &Session,
    ) -> Result<ArchiveReport> {
        if before > self.inner.stamp() {
            return Err(Error::invalid("before is in the future")
                .with_hint("versions that will be hidden then may be visible until then"));
        }
        let limits = &mut self.inner.limits(session);
        hidden(&*self.inner.state(session)?, self.inner.user(session), before, take, limits)
    }

    fn user_name(&self, user: u32) -> String {
        self.inner.user_name(user)
    }

    fn user_number(&self, name: &str) -> Option<u32> {
        self.inner.user_number(name)
    }

    fn now(&self) -> u64 {
        self.inner.stamp()
    }
}

impl GraphWalks for Graph {
    fn trace(&self, root: &VertexName, options: &TraceOptions, session: &Session) -> Result<Lineage> {
        self.inner.reading(session, |state, limits| trace(state, root, options, limits))
    }

    fn trace_all(
        &self,
        root: &VertexName,
        others: &[VertexName],
        options: &TraceOptions,
        session: &Session,
    ) -> Result<Lineage> {
        self.inner.reading(session, |state, limits| trace_all(state, root, others, options, limits))
    }

    fn trace_on(
        &self,
        starts: &[Step],
        options: &TraceOptions,
        session: &Session,
    ) -> Result<Option<Lineage>> {
        self.inner.reading(session, |state, limits| trace_on(state, starts, options, limits))
    }

    fn travel(&self, travel: &Travel, engine: Engine, session: &Session) -> Result<Traversal> {
        Ok(self.inner.travel(travel, engine, session)?.into())
    }

    fn dossier(&self, root: &VertexName, options: &TraceOptions, session: &Session) -> Result<Dossier> {
        let named = |user| self.user_name(user);
        self.inner.reading(session, |state, limits| dossier(state, root, options, &named, limits))
    }

    fn dossier_all(
        &self,
        root: &VertexName,
        others: &[VertexName],
        options: &TraceOptions,
        session: &Session,
    ) -> Result<Dossier> {
        let named = |user| self.user_name(user);
        self.inner.reading(session, |state, limits| {
            around(state, trace_all(state, root, others, options, limits)?, options.at, &named, limits)
        })
    }

    fn around(&self, lineage: &Lineage, at: Option<u64>, session: &Session) -> Result<Dossier> {
        let named = |user| self.user_name(user);
        self.inner.reading(session, |state, limits| around(state, lineage.clone(), at, &named, limits))
    }

    fn audit(&self, options: &AuditOptions, session: &Session) -> Result<Audit> {
        let named = |user| self.user_name(user);
        let found = self.inner.reading(session, |state, limits| audit(state, options, &named, limits));
        let user = options.user.as_ref().filter(|_| options.file.is_none());
        let Some(user) = user.and_then(|user| user.parse().ok()) else { return found };
        let all = commits::of_user(
            &self.inner.journal.looks().feed()?,
            user,
            options,
            &mut self.inner.limits(session),
        )?;
        let rows = found.iter().flat_map(|audit| &audit.rows);
        let known: BTreeSet<&VertexName> =
            rows.filter(|row| row.action == "write").map(|row| &row.object).collect();
        let of_user = (&*user.to_string(), options.limit);
        let mut plain = self.inner.reading(session, |state, limits| {
            commits::without_execution(state, &all, &known, of_user, limits)
        })?;
        plain.iter_mut().for_each(|row| row.user = named(user));
        match found {
            Err(error) if error.kind() == ErrorKind::NotFound && !plain.is_empty() => {
                let truncated = plain.len() > options.limit;
                plain.truncate(options.limit);
                Ok(Audit { rows: plain, derived: Vec::new(), truncated })
            }
            Ok(mut audit) => {
                audit.rows.append(&mut plain);
                audit.rows.sort_by_key(|row| row.stamp);
                audit.truncated |= audit.rows.len() > options.limit;
                audit.rows.truncate(options.limit);
                Ok(audit)
            }
            found => found,
        }
    }
}

impl GraphAdmin for Graph {
    fn partition(&self, partitioning: Partitioning) -> Result<Partitions> {
        self.inner.partition(partitioning)
    }

    fn partitions(&self) -> Result<Partitions> {
        self.inner.partitions()
    }

    fn rebuild(&self) -> Result<Stats> {
        self.inner.rebuild()
    }

    fn verify(&self) -> Result<Check> {
        self.inner.verify()
    }

    fn stats(&self) -> Result<Stats> {
        self.inner.stats()
    }
}
