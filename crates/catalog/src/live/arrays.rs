//! Distributed arrays in the catalog: groups of sets and imports of runs, meshes and histories of the store, and the
//! tables of SDM's database over them.
//!
//! What is declared is visible to this process at once, to all at flush; with a transaction, at its commit. Declared
//! again as it is writes nothing; declared otherwise is Conflict.

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{ArrayGroup, HistoryDecl, ImportDecl, MeshDecl, RunName};
use fieldstone_journal::Session;

use super::Catalog;
use crate::engine::ARRAY_TABLES;
use crate::write::arrays as write;

impl Catalog {
    /// Declares groups of a run; Denied where it is another's. A group that is there takes the sets that it has not;
    /// its properties and the sets that it has must be equal.
    pub fn create_groups(&self, run: &RunName, groups: Vec<ArrayGroup>, session: &Session) -> Result<()> {
        write::create_groups(self.inner.registry(), run, groups, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Declares files that a run imports; Denied where it is another's.
    pub fn create_imports(&self, run: &RunName, imports: Vec<ImportDecl>, session: &Session) -> Result<()> {
        write::create_imports(self.inner.registry(), run, imports, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Declares meshes of the store.
    pub fn create_meshes(&self, meshes: Vec<MeshDecl>, session: &Session) -> Result<()> {
        write::create_meshes(self.inner.registry(), meshes, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Declares histories of partitions, each by its file.
    pub fn create_histories(&self, histories: Vec<HistoryDecl>, session: &Session) -> Result<()> {
        write::create_histories(self.inner.registry(), histories, session)?;
        self.inner.store.fields.changed(session)
    }

    /// Groups of a run, by name, each with all its sets; NotFound where there is no such run.
    pub fn array_groups(&self, run: &RunName, session: &Session) -> Result<Vec<ArrayGroup>> {
        write::array_groups(self.inner.registry(), run, session)
    }

    /// A group of a run; NotFound where there is none of the name.
    pub fn array_group(&self, run: &RunName, name: &str, session: &Session) -> Result<ArrayGroup> {
        write::array_group(self.inner.registry(), run, name, session)
    }

    /// Files that a run imports, by name; NotFound where there is no such run.
    pub fn imports(&self, run: &RunName, session: &Session) -> Result<Vec<ImportDecl>> {
        write::imports(self.inner.registry(), run, session)
    }

    /// Meshes of the store, by name.
    pub fn meshes(&self, session: &Session) -> Result<Vec<MeshDecl>> {
        write::meshes(self.inner.registry(), session)
    }

    /// A mesh of the store; NotFound where there is none of the name.
    pub fn mesh(&self, name: &str, session: &Session) -> Result<MeshDecl> {
        write::mesh(self.inner.registry(), name, session)
    }

    /// Histories of partitions, by path.
    pub fn histories(&self, session: &Session) -> Result<Vec<HistoryDecl>> {
        write::histories(self.inner.registry(), session)
    }

    /// One of the six tables of SDM's database ([`ARRAY_TABLES`]): names of columns, then rows.
    pub fn array_table(&self, name: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
        if !ARRAY_TABLES.contains(&name) {
            return Err(Error::invalid(format!("there is no table '{name}' of arrays"))
                .with_hint(format!("the tables are {}", ARRAY_TABLES.join(", "))));
        }
        self.sql(&format!("SELECT * FROM {name}"))
    }
}
