//! Compares a directory tree with the graph: removed entries end, entries that came back begin again, and a new owner
//! replaces the old one.
//!
//! Invariants: it only ends versions that the calling user put; an unchanged tree adds nothing.

use std::collections::HashMap;

use fieldstone_core::Result;
use fieldstone_format::Id;

use crate::Session;
use crate::Store;
use crate::graph::{Deletion, Versions, VertexName};
use crate::interop::lineage::{GraphRows, Listing, OWNED_BY};

/// The graph that takes a tree, in one transaction.
pub struct KnownTree<'a> {
    store: &'a Store,
    transaction: Id,
    /// Notes for the user, one line each.
    pub notes: Vec<String>,
}

impl<'a> KnownTree<'a> {
    pub fn new(store: &'a Store, transaction: Id) -> KnownTree<'a> {
        KnownTree { store, transaction, notes: Vec::new() }
    }

    /// Ends the entries that the graph has in a directory and the directory lacks, with all below them. Returns the
    /// number of vertices.
    pub fn end_absent(&mut self, listing: &Listing) -> Result<u64> {
        let mut left = self.entries_of(&listing.directory)?;
        left.retain(|entry| !listing.entries.contains(entry));
        let mut ended = 0;
        while let Some(vertex) = left.pop() {
            if &*vertex.kind == "directory" {
                left.extend(self.entries_of(&vertex)?);
            }
            let versions = self.store.graph().versions(&vertex, &Session::from(self.transaction))?;
            let Some(newest) = versions.first().filter(|newest| !newest.deleted) else { continue };
            if self.is_anothers(newest.user, &vertex) {
                continue;
            }
            let time = listing.time.max(newest.stamp.saturating_add(1));
            self.delete(Deletion::Vertex(vertex), time)?;
            ended += 1;
        }
        Ok(ended)
    }

    /// Makes ended entries that are back begin after their end, and leaves out owners that the graph knows, ending
    /// former owners. Returns the number of rows left out.
    pub fn meet(&mut self, rows: &mut GraphRows) -> Result<u64> {
        let mut ends = HashMap::new();
        for put in &mut rows.vertices {
            let end = self.last_end(&put.vertex, &mut ends)?;
            put.time = put.time.map(|time| time.max(end));
        }
        for put in &mut rows.relations {
            let end = self.last_end(&put.source, &mut ends)?.max(self.last_end(&put.target, &mut ends)?);
            put.time = put.time.map(|time| time.max(end));
        }
        let mut omitted = 0;
        for mut put in std::mem::take(&mut rows.relations) {
            if &*put.kind == OWNED_BY {
                let owners = self.related(&put.source, OWNED_BY)?;
                if owners.iter().any(|(owner, ..)| *owner == put.target) {
                    omitted += 1;
                    continue;
                }
                for (owner, stamp, user) in owners {
                    if !self.is_anothers(user, &put.source) {
                        let time = put.time.unwrap_or(0).max(stamp.saturating_add(1));
                        self.delete(Deletion::Relation(OWNED_BY.into(), put.source.clone(), owner), time)?;
                        put.time = Some(time);
                    }
                }
            }
            rows.relations.push(put);
        }
        Ok(omitted)
    }

    /// The first stamp after the last deletion of a vertex; 0 if there was none.
    fn last_end(&self, vertex: &VertexName, known: &mut HashMap<VertexName, u64>) -> Result<u64> {
        // A tree does not end users, and they have relations to very many vertices.
        if &*vertex.kind == "user" {
            return Ok(0);
        }
        if let Some(end) = known.get(vertex) {
            return Ok(*end);
        }
        let versions = self.store.graph().versions(vertex, &Session::from(self.transaction))?;
        let last = versions.iter().filter(|version| version.deleted).map(|version| version.stamp).max();
        let end = last.map_or(0, |stamp| stamp.saturating_add(1));
        known.insert(vertex.clone(), end);
        Ok(end)
    }

    fn entries_of(&self, directory: &VertexName) -> Result<Vec<VertexName>> {
        let related = self.related(directory, "has")?;
        let names = related.into_iter().map(|(name, ..)| name);
        Ok(names.filter(|name| matches!(&*name.kind, "file" | "directory")).collect())
    }

    /// Far ends of the current relations of a type, with stamp and user.
    fn related(&self, vertex: &VertexName, kind: &str) -> Result<Vec<(VertexName, u64, u32)>> {
        let graph = self.store.graph();
        let found = graph.edges(vertex, Some(kind), Versions::NOW, None, &Session::from(self.transaction))?;
        let own = found.into_iter().filter(|edge| !edge.deleted && !edge.reverse);
        Ok(own.map(|edge| (edge.far, edge.stamp, edge.user)).collect())
    }

    fn delete(&self, what: Deletion, time: u64) -> Result<()> {
        self.store.graph().delete(vec![what], Some(time), &Session::from(self.transaction)).map(|_| ())
    }

    /// Whether another user put the version to end; if so, adds a note.
    fn is_anothers(&mut self, user: u32, vertex: &VertexName) -> bool {
        let another = user != self.store.catalog().user(&Session::default());
        if another {
            let name = self.store.graph().user_name(user);
            self.notes
                .push(format!("{vertex} differs from the graph, and only {name}, who put it, can end it"));
        }
        another
    }
}
