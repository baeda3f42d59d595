//! The calls of a graph as traits. An index of this process implements them, or a store at the far end of a
//! connection.
//!
//! | trait | calls |
//! |---|---|
//! | [`GraphWriter`] | putting and deleting vertices, relations and types |
//! | [`GraphReader`] | vertices and relations, by name, property and words |
//! | [`GraphWalks`] | lineage, traversals and audits |
//! | [`GraphAdmin`] | calls about the index itself |
//! | [`GraphAccess`] | all of them |
//!
//! Invariant: no call has a default body, so that each implementation decides on every call (F-1).
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

/// All calls of a graph. Every type that has the four traits has this one.
pub trait GraphAccess: GraphWriter + GraphReader + GraphWalks + GraphAdmin {}

impl<G: GraphWriter + GraphReader + GraphWalks + GraphAdmin> GraphAccess for G {}

/// Puts and deletes vertices, relations and types.
///
/// This process sees the result at once. Everybody sees it after the flush or, in a transaction, after the
/// commit.
pub trait GraphWriter: Send + Sync + Debug {
    /// Declares types. Repeating a declaration does nothing; a different declaration of an existing type is a
    /// Conflict.
    fn define(&self, types: Vec<TypeDecl>, session: &Session) -> Result<()>;

    /// Puts versions of vertices; returns the stamp of the last one, which can be used as a moment.
    fn put_vertices(&self, vertices: Vec<VertexPut>, session: &Session) -> Result<u64>;

    /// Puts versions of relations, each in one piece with its reverse; returns the stamp of the last one.
    fn put_relations(&self, relations: Vec<RelationPut>, session: &Session) -> Result<u64>;

    /// Puts vertices and relations: all of them, or none if one is refused. Returns the last stamp.
    fn put(&self, vertices: Vec<VertexPut>, relations: Vec<RelationPut>, session: &Session) -> Result<u64>;

    /// Puts vertices, and relations given as columns: all of them, or none if one is refused. Returns the
    /// last stamp.
    fn put_batch(&self, vertices: Vec<VertexPut>, batch: &RelationBatch, session: &Session) -> Result<u64>;

    /// Deletes vertices, with the relations at them, and relations, now or at a stamp; returns the stamp of
    /// the last deletion. NotFound if one does not exist, Denied if another user put its last version; then
    /// nothing is deleted.
    fn delete(&self, what: Vec<Deletion>, time: Option<u64>, session: &Session) -> Result<u64>;

    /// Adds versions of another store, with their types and stamps. Conflict if a type has another
    /// declaration here.
    fn take_versions(&self, versions: &HiddenVersions, session: &Session) -> Result<()>;

    /// Marks versions as moved to a store that has them durably.
    fn put_stubs(&self, archive: &Archive, versions: &HiddenVersions, session: &Session) -> Result<()>;
}

/// Reads vertices and relations, by name, property and words. A session also sees the content of its
/// transaction.
pub trait GraphReader {
    /// A vertex at a moment, or now. NotFound if there was none.
    fn vertex(&self, vertex: &VertexName, at: Option<u64>, session: &Session) -> Result<Vertex>;

    /// All versions of a vertex, including deletions, newest first; empty if nobody put any.
    fn versions(&self, vertex: &VertexName, session: &Session) -> Result<Vec<Vertex>>;

    /// Relations at a vertex, of one type or of all; either name of a type selects it.
    fn edges(
        &self,
        vertex: &VertexName,
        kind: Option<&str>,
        versions: Versions,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Relation>>;

    /// The vertices that pass a test, at a moment or now, at most `limit`; in no particular order.
    fn find(
        &self,
        test: &VertexTest,
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Vertex>>;

    /// The relations of a type that pass a test, at a moment or now, at most `limit`; in no particular order.
    /// Each in the version that `edges` gives.
    fn find_relations(
        &self,
        test: &RelationTest,
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Relation>>;

    /// The vertices of a type that pass tests, or the relations if the name is one of theirs. If both have
    /// the name, it selects vertices; `~` before the reverse name selects the relations.
    fn find_by_type(
        &self,
        kind: &str,
        tests: &[(String, Test)],
        at: Option<u64>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<TypeMatches>;

    /// The vertices that have words in their ids, in the property `name`, or in declared texts. All words
    /// must match; one with a `*` at its end matches every word that begins like it. By type and id, at most
    /// `limit`.
    fn search(
        &self,
        text: &str,
        kind: Option<&str>,
        limit: Option<usize>,
        session: &Session,
    ) -> Result<Vec<Vertex>>;

    /// Passes the user's own versions that newer ones hide at a moment, and ever after, to `take`, in
    /// portions; unflushed versions count. Invalid for a future moment: versions hidden then may still be
    /// visible until then.
    fn hidden(
        &self,
        before: u64,
        take: &mut dyn FnMut(&HiddenVersions) -> Result<()>,
        session: &Session,
    ) -> Result<ArchiveReport>;

    /// The name of a user, from the number in a version.
    fn user_name(&self, user: u32) -> String;

    /// The number of the user with this name, or with this number as text.
    fn user_number(&self, name: &str) -> Option<u32>;

    /// The stamp that a put would get now.
    fn now(&self) -> u64;
}

/// Lineage, traversals and audits. The limits of a session end them on their way, and also the reading of a
/// traversal's paths.
pub trait GraphWalks {
    /// The vertices from which a vertex came, or that came from it. NotFound if nothing names the vertex.
    fn trace(&self, root: &VertexName, options: &TraceOptions, session: &Session) -> Result<Lineage>;

    /// The lineage of several vertices as one: of `root`, and of others that belong to it, such as the
    /// commits of one field's parts. If nothing names them, the lineage holds only the root itself.
    fn trace_all(
        &self,
        root: &VertexName,
        others: &[VertexName],
        options: &TraceOptions,
        session: &Session,
    ) -> Result<Lineage>;

    /// Continues a lineage here, from vertices that it reached elsewhere, with the hops that each step
    /// counts; `None` if nothing names any of them.
    fn trace_on(&self, starts: &[Step], options: &TraceOptions, session: &Session)
    -> Result<Option<Lineage>>;

    /// Walks the graph step by step. The declared types must allow the walk. If the index is cut into slots,
    /// these walk it, with the requested engine; all engines give the same result.
    fn travel(&self, travel: &Travel, engine: Engine, session: &Session) -> Result<Traversal>;

    /// A lineage with everything known about its vertices, and the users who ran its executions.
    fn dossier(&self, root: &VertexName, options: &TraceOptions, session: &Session) -> Result<Dossier>;

    /// The dossier of several vertices as one, as in [`trace_all`](Self::trace_all).
    fn dossier_all(
        &self,
        root: &VertexName,
        others: &[VertexName],
        options: &TraceOptions,
        session: &Session,
    ) -> Result<Dossier>;

    /// The dossier of an existing lineage; `at` is the moment of the request.
    fn around(&self, lineage: &Lineage, at: Option<u64>, session: &Session) -> Result<Dossier>;

    /// Lists a user's actions, including commits without an execution, or the users of a file and of
    /// everything that came from it. Invalid if neither is given, NotFound if nothing names them.
    fn audit(&self, options: &AuditOptions, session: &Session) -> Result<Audit>;
}

/// Calls about the index itself: its slots, its construction and its checks.
pub trait GraphAdmin {
    /// Cuts the index into slots in another way: builds it again from the logs and writes it to disk, where
    /// the next process that opens the store finds it. Invalid for no slots, too many, or a threshold of 0.
    fn partition(&self, partitioning: Partitioning) -> Result<Partitions>;

    /// The slots of the index, and the content of each.
    fn partitions(&self) -> Result<Partitions>;

    /// Builds the index again from the logs, from the first commit on, and writes it to disk; returns its new
    /// counts.
    fn rebuild(&self) -> Result<Stats>;

    /// Compares the index with a replay of the logs in memory, line by line. The replay takes several times
    /// the bytes of the index. Returns the lines that only one of them has, at most 100.
    fn verify(&self) -> Result<Check>;

    /// Counts of the graph's content.
    fn stats(&self) -> Result<Stats>;
}
