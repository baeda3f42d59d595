//! The catalog of a store: runs, steps, variables, tags and attributes, written with the store's commits and
//! found by value, place and time. The work is done in `fieldstone_catalog`; here a store is given to it.

use std::ops::Deref;
use std::sync::Arc;

use crate::{Result, Store};

pub use fieldstone_catalog::access::CatalogAccess;
pub use fieldstone_catalog::engine::{ARRAY_TABLES, Interrupt, Selection, Writer};
pub use fieldstone_catalog::live::{
    CatalogCheck, CatalogSettings, DeclarationRow, Declared, DeleteReport, Deletion, RebuildReport,
};
pub use fieldstone_catalog::query::{
    self, Aggregate, BoxInfo, By, Hit, HitTable, Query, RunInfo, StepInfo, TagInfo, VariableInfo,
};
pub use fieldstone_core::schema::step_number;
pub use fieldstone_core::value;
pub use fieldstone_format::catalog::{
    Annotate, ArrayGroup, ArrayLayout, ArraySet, AttributeId, BasicPattern, Column, Coordinate, FileSums,
    HistoryContent, HistoryDecl, ImportDecl, ImportFormat, ImportedVariable, MeshDecl, MeshLocation,
    RankSizes, RunDecl, RunName, StepDecl, StorageOrder, TagDecl, Values, VariableDecl, VariableName,
};
pub use fieldstone_format::log::kinds;

/// The catalog of an open store. Clones share what they have. All calls are those of
/// [`CatalogAccess`].
///
/// ```
/// use fieldstone::{OpenOptions, Target};
/// use fieldstone::catalog::query::text::parse;
///
/// let store = fieldstone::open("memory:", &OpenOptions::default())?;
/// let run = store.create_run("demo").create()?;
/// run.annotate("cause", "a shock", &Target::run())?;
/// assert_eq!(store.catalog().count(&parse("tag=cause")?)?, 1);
/// # Ok::<(), fieldstone::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Catalog(Arc<dyn CatalogAccess>);

impl Catalog {
    /// A catalog of a store with settings of its own; others use [`Store::catalog`]. Nothing is opened before
    /// it is needed.
    pub fn of(store: &Store, settings: CatalogSettings) -> Catalog {
        Catalog(store.backend().clone().catalog(settings))
    }

    /// Rows of a read-only SQL statement over the documented views: names of columns, each once, then rows.
    pub fn sql(&self, statement: &str) -> Result<(Vec<String>, Vec<Vec<value::Value>>)> {
        let Selection { names, rows, .. } = self.sql_until(statement, None)?;
        Ok((names, rows))
    }
}

impl Deref for Catalog {
    type Target = dyn CatalogAccess;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}
