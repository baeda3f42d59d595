//! The calls of a graph, whatever answers them: a view of this process, or a store at the far end of a connection.
//!
//! | trait | calls |
//! |---|---|
//! | [`GraphWriter`] | vertices, relations and types, put and deleted |
//! | [`GraphReader`] | vertices and relations, by name, property and words |
//! | [`GraphWalks`] | lineage, traversals and audits |
//! | [`GraphAdmin`] | the view beneath |
//! | [`GraphAccess`] | all of them |
//!
//! Invariant: no call has a body here, so that an implementation decides on each (F-1).
//!
//! ```
//! use fieldstone_graph::access::GraphAccess;
//!
//! fn relations(graph: &dyn GraphAccess) -> fieldstone_core::Result<u64> {
//!     Ok(graph.stats()?.relations)
//! }
//! # let _ = relations;
//! ```

use std::fmt::Debug;

use fieldstone_core::Result;
use fieldstone_core::value::Test;
use fieldstone_format::graph::{Archive, RelationBatch, TypeDecl, VertexName};
use fieldstone_format::graph_segment::partitioning::Partitioning;
use fieldstone_journal::Session;

use crate::archive::{ArchiveReport, HiddenVersions};
use crate::audit::{Audit, AuditOptions};
use crate::dossier::Dossier;
use crate::put::{Deletion, RelationPut, VertexPut};
use crate::read::{Relation, Versions, Vertex};
use crate::relations::{RelationTest, TypeMatches};
use crate::reports::{Check, Partitions, Stats};
use crate::slot::Engine;
use crate::trace::{Lineage, Step, TraceOptions};
use crate::travel::{Travel, Traversal, VertexTest};

/// All calls of a graph. Whatever has them is one.
pub trait GraphAccess: GraphWriter + GraphReader + GraphWalks + GraphAdmin {}

impl<G: GraphWriter + GraphReader + GraphWalks + GraphAdmin> GraphAccess for G {}

/// Vertices, relations and types, put and deleted.
///
/// All of it is visible to this process at once and to everybody at the flush; within a transaction at its commit.
pub trait GraphWriter: Send + Sync + Debug {
    /// Declares types. Another declaration of one that is there is Conflict; the same again is taken.
    fn define(&self, types: Vec<TypeDecl>, session: &Session) -> Result<()>;

    /// Puts versions of vertices; gives the stamp of the last one, usable as a moment.
    fn put_vertices(&self, vertices: Vec<VertexPut>, session: &Session) -> Result<u64>;

    /// Puts versions of relations, each in one piece with its reverse; gives the stamp of the last one.
    fn put_relations(&self, relations: Vec<RelationPut>, session: &Session) -> Result<u64>;

    /// Puts vertices and relations: all of them, or nothing where one is refused. Gives the last stamp.
    fn put(&self, vertices: Vec<VertexPut>, relations: Vec<RelationPut>, session: &Session) -> Result<u64>;

    /// Puts vertices, and relations of columns: all of them, or nothing where one is refused. Gives the last stamp.
    fn put_batch(&self, vertices: Vec<VertexPut>, batch: &RelationBatch, session: &Session) -> Result<u64>;

    /// Deletes vertices, with the relations at them, and relations, now or at a stamp; gives the stamp of the last
    /// deletion. NotFound for what is not there, Denied for what another user put last; then nothing is deleted.
    fn delete(&self, what: Vec<Deletion>, time: Option<u64>, session: &Session) -> Result<u64>;

    /// Takes versions as another store has them, with their types and stamps. Conflict where a type is declared
    /// otherwise here.
    fn take_versions(&self, versions: &HiddenVersions, session: &Session) -> Result<()>;

    /// Marks versions as moved to a store that has them durably.
    fn mark_archived(&self, archive: &Archive, versions: &HiddenVersions, session: &Session) -> Result<()>;
}

/// Vertices and relations, by name, property and words. A session sees what its transaction holds, too.
pub trait GraphReader {
    /// A vertex as it was at a moment, or is. NotFound where none was.
    fn vertex(&self, vertex: &VertexName, at: Option<u64>, session: &Session) -> Result<Vertex>;

    /// All versions of a vertex, deletions among them, newest first; none where nothing was put.
    fn versions(&self, vertex: &VertexName, session: &Session) -> Result<Vec<Vertex>>;

    /// Relations at a vertex, of one type or of all, as either end calls it.
    fn edges(
        &self,
        vertex: &VertexName,
        kind: Option<&str>,
        versions: Versions,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Relation>>;

    /// The vertices that pass a test, as it was at a moment or is, at most `limit`; in no particular order.
    fn find(
        &self,
        test: &VertexTest,
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Vertex>>;

    /// The relations of a type that pass a test, as they were at a moment or are, at most `limit`; in no particular
    /// order. Of each the version that `edges` gives.
    fn find_relations(
        &self,
        test: &RelationTest,
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Relation>>;

    /// The vertices of a type that pass tests, or relations where the name is one of theirs. Where both have the name
    /// it is that of vertices; `~` before the name from the far end means relations.
    fn find_by_type(
        &self,
        kind: &str,
        tests: &[(String, Test)],
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<TypeMatches>;

    /// The vertices that have words in their ids, in the property `name`, or in texts that are declared; all of the
    /// words, of which one with a `*` behind it stands for all that begin so. By type and id, at most `limit`.
    fn search(
        &self,
        text: &str,
        kind: Option<&str>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Vertex>>;

    /// Hands own versions that newer ones hide at a moment, and ever after, to `take`, in portions; what is not flushed
    /// counts. Invalid for a moment to come: what is hidden then may be seen until then.
    fn hidden(
        &self,
        before: u64,
        take: &mut dyn FnMut(&HiddenVersions) -> Result<()>,
        session: &Session,
    ) -> Result<ArchiveReport>;

    /// The name of a user, as a version has its number.
    fn user_name(&self, user: u32) -> String;

    /// The number of a user of this name, or of this number as text.
    fn user_number(&self, name: &str) -> Option<u32>;

    /// The stamp that a put of now would get.
    fn now(&self) -> u64;
}

/// Lineage, traversals and audits.
pub trait GraphWalks {
    /// Where a vertex came from, or what came from it. NotFound where nothing names it.
    fn trace(&self, root: &VertexName, options: &TraceOptions, session: &Session) -> Result<Lineage>;

    /// The lineage of several vertices as one: of `root`, and of others that stand beside it, such as the commits of one
    /// field's parts. Of what nothing names there is nothing but the root itself.
    fn trace_all(
        &self,
        root: &VertexName,
        others: &[VertexName],
        options: &TraceOptions,
        session: &Session,
    ) -> Result<Lineage>;

    /// A lineage that goes on here from vertices to which it took hops elsewhere, as each step counts; `None` where nothing names any
    /// of them.
    fn trace_on(&self, starts: &[Step], options: &TraceOptions, session: &Session)
    -> Result<Option<Lineage>>;

    /// Walks the graph step by step. The declared types must allow the walk. Where the view is cut
    /// into slots, these walk it, by the engine that is asked for; all engines give the same.
    fn travel(&self, travel: &Travel, engine: Engine, session: &Session) -> Result<Traversal>;

    /// A lineage with all that is known of its vertices, and who ran its executions.
    fn dossier(&self, root: &VertexName, options: &TraceOptions, session: &Session) -> Result<Dossier>;

    /// The same of several vertices as one, as in [`trace_all`](Self::trace_all).
    fn dossier_all(
        &self,
        root: &VertexName,
        others: &[VertexName],
        options: &TraceOptions,
        session: &Session,
    ) -> Result<Dossier>;

    /// The same of a lineage that is there already; `at` is the moment it was asked for.
    fn around(&self, lineage: &Lineage, at: Option<u64>, session: &Session) -> Result<Dossier>;

    /// Lists a user's actions, commits without an execution included, or the users of a file and of all that came from it.
    /// Invalid where neither is given, NotFound where nothing names them.
    fn audit(&self, options: &AuditOptions, session: &Session) -> Result<Audit>;
}

/// The view beneath: how it is cut, built and checked.
pub trait GraphAdmin {
    /// Cuts the view into slots in another way: it is built again from the logs, and written to disk, so that whoever
    /// opens the store next finds it so. Invalid for no slots, too many, or a threshold of 0.
    fn partition(&self, partitioning: Partitioning) -> Result<Partitions>;

    /// How the view is cut into slots, and what each has.
    fn partitions(&self) -> Result<Partitions>;

    /// Builds the view again from the logs, from the first commit on, and writes it to disk; gives what there is then.
    fn rebuild(&self) -> Result<Stats>;

    /// Compares the view with a replay of the logs in memory, line by line: it takes memory of some times the bytes of
    /// the view. A line that the one has and the other has not is given with what it is; at most 100.
    fn verify(&self) -> Result<Check>;

    /// Counts of the graph's content.
    fn stats(&self) -> Result<Stats>;
}
