//! Distributed arrays in the catalog: groups of sets and imports of runs, meshes and histories of the store,
//! and the tables of SDM's database over them.
//!
//! This process sees a declaration at once; everybody sees it after the flush or, in a transaction, after the
//! commit. Repeating a declaration writes nothing; a different one is a Conflict.

use fieldstone_core::value::Value;
use fieldstone_core::{Error, Result};
use fieldstone_format::catalog::{ArrayGroup, HistoryDecl, ImportDecl, MeshDecl, RunName};
use fieldstone_journal::Session;

use super::Catalog;
use crate::access::{CatalogArrays, CatalogQueries};
use crate::engine::{ARRAY_TABLES, Selection};
use crate::write::arrays as write;

impl CatalogArrays for Catalog {
    fn create_groups(&self, run: &RunName, groups: Vec<ArrayGroup>, session: &Session) -> Result<()> {
        write::create_groups(self.inner.registry(), run, groups, session)?;
        self.inner.store.fields.changed(session)
    }

    fn create_imports(&self, run: &RunName, imports: Vec<ImportDecl>, session: &Session) -> Result<()> {
        write::create_imports(self.inner.registry(), run, imports, session)?;
        self.inner.store.fields.changed(session)
    }

    fn create_meshes(&self, meshes: Vec<MeshDecl>, session: &Session) -> Result<()> {
        write::create_meshes(self.inner.registry(), meshes, session)?;
        self.inner.store.fields.changed(session)
    }

    fn create_histories(&self, histories: Vec<HistoryDecl>, session: &Session) -> Result<()> {
        write::create_histories(self.inner.registry(), histories, session)?;
        self.inner.store.fields.changed(session)
    }

    fn array_groups(&self, run: &RunName, session: &Session) -> Result<Vec<ArrayGroup>> {
        write::array_groups(self.inner.registry(), run, session)
    }

    fn array_group(&self, run: &RunName, name: &str, session: &Session) -> Result<ArrayGroup> {
        write::array_group(self.inner.registry(), run, name, session)
    }

    fn imports(&self, run: &RunName, session: &Session) -> Result<Vec<ImportDecl>> {
        write::imports(self.inner.registry(), run, session)
    }

    fn meshes(&self, session: &Session) -> Result<Vec<MeshDecl>> {
        write::meshes(self.inner.registry(), session)
    }

    fn mesh(&self, name: &str, session: &Session) -> Result<MeshDecl> {
        write::mesh(self.inner.registry(), name, session)
    }

    fn histories(&self, session: &Session) -> Result<Vec<HistoryDecl>> {
        write::histories(self.inner.registry(), session)
    }

    fn array_table(&self, name: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
        if !ARRAY_TABLES.contains(&name) {
            return Err(Error::invalid(format!("there is no table '{name}' about arrays"))
                .with_hint(format!("the tables are {}", ARRAY_TABLES.join(", "))));
        }
        let Selection { names, rows, .. } = self.sql_until(&format!("SELECT * FROM {name}"), None)?;
        Ok((names, rows))
    }
}
