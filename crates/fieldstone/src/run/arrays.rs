//! Distributed arrays as the catalog has them: groups and imports of a run, meshes and histories of a store.

use fieldstone_core::Result;
use fieldstone_core::value::Value;
use fieldstone_format::catalog::{ArrayGroup, HistoryDecl, ImportDecl, MeshDecl};

use super::Run;
use crate::Session;
use crate::Store;

impl Run {
    /// Declares a group of distributed arrays. A group that is there takes the sets that it has not; its properties and
    /// the sets that it has must be equal, else Conflict.
    pub fn create_array_group(&self, group: ArrayGroup) -> Result<()> {
        self.store.catalog().create_groups(&self.name, vec![group], &self.session)
    }

    /// A group with all its sets, as it was declared; NotFound where there is none of the name.
    pub fn array_group(&self, name: &str) -> Result<ArrayGroup> {
        self.store.catalog().array_group(&self.name, name, &self.session)
    }

    /// Groups, by name.
    pub fn array_groups(&self) -> Result<Vec<ArrayGroup>> {
        self.store.catalog().array_groups(&self.name, &self.session)
    }

    /// Declares a file from outside, and what this run takes from it. Conflict where the name is of another file.
    pub fn create_import(&self, import: ImportDecl) -> Result<()> {
        self.store.catalog().create_imports(&self.name, vec![import], &self.session)
    }

    /// Imports, by name.
    pub fn imports(&self) -> Result<Vec<ImportDecl>> {
        self.store.catalog().imports(&self.name, &self.session)
    }
}

impl Store {
    /// Meshes that the store keeps, by name.
    pub fn meshes(&self) -> Result<Vec<MeshDecl>> {
        self.catalog().meshes(&Session::default())
    }

    /// A mesh that the store keeps; NotFound where there is none of the name.
    pub fn mesh_info(&self, name: &str) -> Result<MeshDecl> {
        self.catalog().mesh(name, &Session::default())
    }

    /// Partitions that the store keeps, by path.
    pub fn histories(&self) -> Result<Vec<HistoryDecl>> {
        self.catalog().histories(&Session::default())
    }

    /// One of the six tables of SDM's database (`run_table`, `access_pattern_table`, `execution_table`, `import_table`,
    /// `index_table`, `index_history_table`): names of columns, then rows.
    pub fn array_table(&self, name: &str) -> Result<(Vec<String>, Vec<Vec<Value>>)> {
        self.catalog().array_table(name)
    }
}
