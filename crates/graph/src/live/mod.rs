//! The graph of an open store: what is put into it, and what is read from it.
//!
//! ```text
//! put_*, delete_*    rows of a session, each with its stamp             write
//! flush              rows become side records of the next commit        inner, by the facade
//! vertex, edges, …   the view follows the logs; own rows lie over it     read
//! ```
//!
//! What a process puts it sees at once, all others at its flush; what is put within a transaction sees who names
//! that, and all others at its commit.

mod buffer;
mod inner;
mod own;
mod partitions;
mod saving;
mod slots;
mod stamps;
mod types;
mod view_cache;
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

use crate::archive::{ArchiveReport, HiddenVersions, hidden};
use crate::audit::{Audit, AuditOptions, audit};
use crate::commits;
use crate::dossier::{Dossier, around, dossier};
use crate::find;
use crate::put::{Deletion, RelationPut, VertexPut};
use crate::read::{self, Relation, Versions, Vertex};
use crate::relations::{self, RelationTest, TypeMatches};
use crate::slot::{Engine, StartSlots};
use crate::state::GraphState;
use crate::trace::{Lineage, Step, TraceOptions, trace, trace_all, trace_on};
use crate::travel::{Travel, Travelled, VertexTest};
use inner::GraphInner;
pub use inner::{Check, Stats};
pub use partitions::{Partitions, SlotContent};

/// What the graph asks of the store that it belongs to.
pub trait GraphPort: Send + Sync + std::fmt::Debug {
    /// Hears of a change that was taken and not flushed; flushes where every change is to be durable at once.
    fn changed(&self, session: &Session) -> Result<()>;

    /// Lets a graph take part in every flush of this process, for as long as it lives.
    fn join_graph(&self, graph: Weak<dyn FlushParticipant>);

    /// Starts the slots of a view that is cut into several.
    fn slots(&self) -> Arc<dyn StartSlots>;
}

/// The graph of an open store. Clones share what they have.
#[derive(Debug, Clone)]
pub struct Graph {
    inner: Arc<GraphInner>,
}

impl Graph {
    /// The graph over a journal. Nothing is read before it is needed.
    pub fn new(port: Arc<dyn GraphPort>, journal: Arc<Journal>) -> Graph {
        let slots = port.slots();
        Graph { inner: GraphInner::new(port, journal, None, slots) }
    }

    /// The same, with a folder for its segments that the caller chose: what simulations use.
    pub fn in_folder(port: Arc<dyn GraphPort>, journal: Arc<Journal>, folder: PathBuf) -> Graph {
        let slots = port.slots();
        Graph { inner: GraphInner::new(port, journal, Some(folder), slots) }
    }

    /// The same, with slots that run as the caller says.
    pub fn with_slots(
        port: Arc<dyn GraphPort>,
        journal: Arc<Journal>,
        folder: PathBuf,
        slots: Arc<dyn StartSlots>,
    ) -> Graph {
        Graph { inner: GraphInner::new(port, journal, Some(folder), slots) }
    }

    // ---- writing: visible to this process at once, to all at flush; with a transaction, at its commit

    /// Declares types. What was declared otherwise before is Conflict; the same again is no error.
    pub fn define(&self, types: Vec<TypeDecl>, session: &Session) -> Result<()> {
        self.inner.define(types, session)?;
        self.inner.changed(session)
    }

    /// Puts versions of vertices; gives the stamp of the last one, usable as a moment.
    pub fn put_vertices(&self, vertices: Vec<VertexPut>, session: &Session) -> Result<u64> {
        self.put(vertices, Vec::new(), session)
    }

    /// Puts versions of relations, each in one piece with its reverse; gives the stamp of the last one.
    pub fn put_relations(&self, relations: Vec<RelationPut>, session: &Session) -> Result<u64> {
        self.put(Vec::new(), relations, session)
    }

    /// Puts vertices and relations: all of them, or nothing where one is refused. Gives the last stamp.
    pub fn put(
        &self,
        vertices: Vec<VertexPut>,
        relations: Vec<RelationPut>,
        session: &Session,
    ) -> Result<u64> {
        let stamp = self.inner.put(vertices, relations, session)?;
        self.inner.changed(session)?;
        Ok(stamp)
    }

    /// Puts vertices, and relations of columns: all of them, or nothing where one is refused. Gives the last stamp.
    pub fn put_batch(
        &self,
        vertices: Vec<VertexPut>,
        batch: &RelationBatch,
        session: &Session,
    ) -> Result<u64> {
        let stamp = self.inner.put_batch(vertices, batch, session)?;
        self.inner.changed(session)?;
        Ok(stamp)
    }

    /// Deletes vertices, with the relations at them, and relations, now or at a stamp; gives the stamp of the last
    /// deletion. NotFound for what is not there, Denied for what another user put last; then nothing is deleted.
    pub fn delete(&self, what: Vec<Deletion>, time: Option<u64>, session: &Session) -> Result<u64> {
        let stamp = self.inner.delete(what, time, session)?;
        self.inner.changed(session)?;
        Ok(stamp)
    }

    // ---- moving to another store

    /// Hands own versions that newer ones hide at a moment, and ever after, to `take`, in portions; what is not flushed
    /// counts. Invalid for a moment to come: what is hidden then may be seen until then.
    pub fn hidden(
        &self,
        before: u64,
        take: &mut dyn FnMut(&HiddenVersions) -> Result<()>,
        session: &Session,
    ) -> Result<ArchiveReport> {
        if before > self.inner.stamp() {
            return Err(Error::invalid("before is a moment to come")
                .with_hint("what is hidden then may be seen until then"));
        }
        hidden(&*self.inner.state(session)?, self.inner.user(session), before, take)
    }

    /// Takes versions as another store has them, with their types and stamps. Conflict where a type is declared
    /// otherwise here.
    pub fn take_versions(&self, versions: &HiddenVersions, session: &Session) -> Result<()> {
        self.inner.take_versions(versions, session)?;
        self.inner.changed(session)
    }

    /// Marks versions as moved to a store that has them durably.
    pub fn mark_archived(
        &self,
        archive: &Archive,
        versions: &HiddenVersions,
        session: &Session,
    ) -> Result<()> {
        self.inner.mark_archived(archive, versions, session)?;
        self.inner.changed(session)
    }

    // ---- reading: with what a transaction holds, where one is named

    /// A vertex as it was at a moment, or is. NotFound where none was.
    pub fn vertex(&self, vertex: &VertexName, at: Option<u64>, session: &Session) -> Result<Vertex> {
        self.inner.reading(session, |state| read::vertex(state, vertex, at))
    }

    /// All versions of a vertex, deletions among them, newest first; none where nothing was put.
    pub fn versions(&self, vertex: &VertexName, session: &Session) -> Result<Vec<Vertex>> {
        self.inner.reading(session, |state| read::versions(state, vertex))
    }

    /// Relations at a vertex, of one type or of all, as either end calls it.
    pub fn edges(
        &self,
        vertex: &VertexName,
        kind: Option<&str>,
        versions: Versions,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Relation>> {
        self.inner.reading(session, |state| read::edges(state, vertex, kind, versions, limit))
    }

    /// Where a vertex came from, or what came from it. NotFound where nothing names it.
    pub fn trace(&self, root: &VertexName, options: &TraceOptions, session: &Session) -> Result<Lineage> {
        self.inner.reading(session, |state| trace(state, root, options))
    }

    /// Walks the graph step by step. What is asked for is checked against the declared types. Where the view is cut
    /// into slots, these walk it, by the engine that is asked for; all engines give the same.
    pub fn travel(&self, travel: &Travel, engine: Engine, session: &Session) -> Result<Travelled> {
        self.inner.travel(travel, engine, session)
    }

    /// Cuts the view into slots in another way: it is made anew from the logs, and written to disk, so that whoever
    /// opens the store next finds it so. Invalid for no slots, too many, or a threshold of 0.
    pub fn partition(&self, partitioning: Partitioning) -> Result<Partitions> {
        self.inner.partition(partitioning)
    }

    /// How the view is cut into slots, and what each has.
    pub fn partitions(&self) -> Result<Partitions> {
        self.inner.partitions()
    }

    /// The vertices that pass a test, as it was at a moment or is, at most so many; in no particular order.
    pub fn find(
        &self,
        test: &VertexTest,
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Vertex>> {
        self.inner.reading(session, |state| find::find(state, test, at, limit))
    }

    /// The relations of a type that pass a test, as they were at a moment or are, at most so many; in no particular
    /// order. Of each the version that `edges` gives.
    pub fn find_relations(
        &self,
        test: &RelationTest,
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Relation>> {
        self.inner.reading(session, |state| relations::find_relations(state, test, at, limit))
    }

    /// What of a type passes tests: vertices, or relations where the name is one of theirs. Where both have the name
    /// it is that of vertices; `~` before the name from the far end means relations.
    pub fn find_by_type(
        &self,
        kind: &str,
        tests: &[(String, Test)],
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<TypeMatches> {
        self.inner.reading(session, |state| relations::find_by_type(state, kind, tests, at, limit))
    }

    /// The vertices that have words in their ids, in the property `name`, or in texts that are declared; all of the
    /// words, of which one with a `*` behind it stands for all that begin so. By type and id, at most so many.
    pub fn search(
        &self,
        text: &str,
        kind: Option<&str>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Vertex>> {
        self.inner.reading(session, |state| find::search(state, text, kind, limit))
    }

    /// A lineage with all that is known of its vertices, and who ran its executions.
    pub fn dossier(&self, root: &VertexName, options: &TraceOptions, session: &Session) -> Result<Dossier> {
        let named = |user| self.user_name(user);
        self.inner.reading(session, |state| dossier(state, root, options, &named))
    }

    /// The same of several vertices as one, as in [`trace_all`](Self::trace_all).
    pub fn dossier_all(
        &self,
        root: &VertexName,
        others: &[VertexName],
        options: &TraceOptions,
        session: &Session,
    ) -> Result<Dossier> {
        let named = |user| self.user_name(user);
        self.inner.reading(session, |state| {
            around(state, trace_all(state, root, others, options)?, options.at, &named)
        })
    }

    /// The same of a lineage that is there already; `at` is the moment it was asked for.
    pub fn around(&self, lineage: &Lineage, at: Option<u64>, session: &Session) -> Result<Dossier> {
        let named = |user| self.user_name(user);
        self.inner.reading(session, |state| around(state, lineage.clone(), at, &named))
    }

    /// Lists a user's actions, commits without an execution included, or the users of a file and of all that came from it.
    /// Invalid where neither is given, NotFound where nothing names them.
    pub fn audit(&self, options: &AuditOptions, session: &Session) -> Result<Audit> {
        let named = |user| self.user_name(user);
        let found = self.inner.reading(session, |state| audit(state, options, &named));
        let user = options.user.as_ref().filter(|_| options.file.is_none());
        let Some(user) = user.and_then(|user| user.parse().ok()) else { return found };
        let all = commits::of_user(&self.inner.journal.feed()?, user, options)?;
        let rows = found.iter().flat_map(|audit| &audit.rows);
        let known: BTreeSet<&VertexName> =
            rows.filter(|row| row.action == "write").map(|row| &row.object).collect();
        let of_user = (&*user.to_string(), options.limit);
        let mut plain =
            self.inner.reading(session, |state| commits::without_execution(state, &all, &known, of_user))?;
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

    /// The lineage of several vertices as one: of `root`, and of others that stand beside it, such as the commits of one
    /// field's parts. Of what nothing names there is nothing but the root itself.
    pub fn trace_all(
        &self,
        root: &VertexName,
        others: &[VertexName],
        options: &TraceOptions,
        session: &Session,
    ) -> Result<Lineage> {
        self.inner.reading(session, |state| trace_all(state, root, others, options))
    }

    /// A lineage that goes on here from vertices to which it took so many hops elsewhere; `None` where nothing names any
    /// of them.
    pub fn trace_on(
        &self,
        starts: &[Step],
        options: &TraceOptions,
        session: &Session,
    ) -> Result<Option<Lineage>> {
        self.inner.reading(session, |state| trace_on(state, starts, options))
    }

    /// All of it, as it is now: nothing that is put later shows.
    pub fn state(&self, session: &Session) -> Result<Arc<GraphState>> {
        self.inner.state(session)
    }

    /// Makes the view anew from the logs, from the first commit on, and writes it to disk; gives what there is then.
    pub fn rebuild(&self) -> Result<Stats> {
        self.inner.rebuild()
    }

    /// Compares the view with a replay of the logs in memory, line by line: it takes memory of some times the bytes of
    /// the view. A line that the one has and the other has not is given with what it is; at most 100.
    pub fn verify(&self) -> Result<Check> {
        self.inner.verify()
    }

    /// What there is.
    pub fn stats(&self) -> Result<Stats> {
        self.inner.stats()
    }

    /// The name of a user, as a version has its number.
    pub fn user_name(&self, user: u32) -> String {
        self.inner.user_name(user)
    }

    /// The number of a user of this name, or of this number as text.
    pub fn user_number(&self, name: &str) -> Option<u32> {
        self.inner.user_number(name)
    }

    /// The stamp that a put of now would get.
    pub fn now(&self) -> u64 {
        self.inner.stamp()
    }
}
