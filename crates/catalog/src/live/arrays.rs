//! Distributed arrays in the catalog: groups of sets and imports of runs, meshes and histories of the store, and the
//! tables of SDM's database over them.
//!
//! What is declared is visible to this process at once, to all at flush; with a transaction, at its commit. Declared
//! again as it is writes nothing; declared otherwise is Conflict.

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{ArrayGroup, HistoryDecl, ImportDecl, MeshDecl, RunName};

use super::Catalog;
use crate::engine::ARRAY_TABLES;

impl Catalog {
    /// Declares groups of a run; Denied where it is another's. A group that is there takes the sets that it has not;
    /// its properties and the sets that it has must be equal.
    pub fn create_groups(
        &self,
        run: &RunName,
        groups: Vec<ArrayGroup>,
        transaction: Option<Id>,
    ) -> Result<()> {
        self.inner.create_groups(run, groups, transaction)?;
        self.inner.fields.changed(transaction)
    }

    /// Declares files that a run imports; Denied where it is another's.
    pub fn create_imports(
        &self,
        run: &RunName,
        imports: Vec<ImportDecl>,
        transaction: Option<Id>,
    ) -> Result<()> {
        self.inner.create_imports(run, imports, transaction)?;
        self.inner.fields.changed(transaction)
    }

    /// Declares meshes of the store.
    pub fn create_meshes(&self, meshes: Vec<MeshDecl>, transaction: Option<Id>) -> Result<()> {
        self.inner.create_meshes(meshes, transaction)?;
        self.inner.fields.changed(transaction)
    }

    /// Declares histories of partitions, each by its file.
    pub fn create_histories(&self, histories: Vec<HistoryDecl>, transaction: Option<Id>) -> Result<()> {
        self.inner.create_histories(histories, transaction)?;
        self.inner.fields.changed(transaction)
    }

    /// Groups of a run, by name, each with all its sets; NotFound where there is no such run.
    pub fn array_groups(&self, run: &RunName, transaction: Option<Id>) -> Result<Vec<ArrayGroup>> {
        self.inner.array_groups(run, transaction)
    }

    /// A group of a run; NotFound where there is none of the name.
    pub fn array_group(&self, run: &RunName, name: &str, transaction: Option<Id>) -> Result<ArrayGroup> {
        self.inner.array_group(run, name, transaction)
    }

    /// Files that a run imports, by name; NotFound where there is no such run.
    pub fn imports(&self, run: &RunName, transaction: Option<Id>) -> Result<Vec<ImportDecl>> {
        self.inner.imports(run, transaction)
    }

    /// Meshes of the store, by name.
    pub fn meshes(&self, transaction: Option<Id>) -> Result<Vec<MeshDecl>> {
        self.inner.meshes(transaction)
    }

    /// A mesh of the store; NotFound where there is none of the name.
    pub fn mesh(&self, name: &str, transaction: Option<Id>) -> Result<MeshDecl> {
        self.inner.mesh(name, transaction)
    }

    /// Histories of partitions, by path.
    pub fn histories(&self, transaction: Option<Id>) -> Result<Vec<HistoryDecl>> {
        self.inner.histories(transaction)
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
