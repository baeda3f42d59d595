//! The catalog of a store: runs, steps, variables, tags and attributes, written with the store's commits and
//! found by value, place and time. The work is done in `fieldstone_catalog`; here a store is given to it.

use std::ops::Deref;
use std::sync::Arc;

use fieldstone_core::Result;

use crate::Store;

pub use fieldstone_catalog::live::{CatalogCheck, CatalogSettings, DeleteReport, Deletion, RebuildReport};
pub use fieldstone_catalog::query::{
    self, Aggregate, BoxInfo, By, Hit, HitTable, Query, RunInfo, StepInfo, TagInfo, VariableInfo,
};
pub use fieldstone_core::value;
pub use fieldstone_format::catalog as records;
pub use fieldstone_format::log::kinds;

/// The catalog of an open store. Clones share what they have. All calls are those of
/// [`fieldstone_catalog::live::Catalog`].
///
/// ```
/// use fieldstone::catalog::{Catalog, CatalogSettings, Query, records::*};
/// use fieldstone::catalog::value::ValueType;
///
/// let store = fieldstone::open("memory:", &fieldstone::OpenOptions::default())?;
/// let catalog = Catalog::of(store, CatalogSettings::default())?;
/// let run = RunName { project: String::new(), name: "demo".into() };
/// catalog.create_run(RunDecl::named(run.clone()), false, None)?;
/// catalog.annotate(AttributeBatch {
///     tag: catalog.tag_for("cause", None, ValueType::Text)?,
///     run,
///     rows: 1,
///     step: None,
///     variables: Vec::new(),
///     variable: Column::One(0),
///     boxes: None,
///     values: Values::Text(vec!["a shock".into()]),
///     one_value: true,
///     continues: false,
///     singles: false,
/// }, None)?;
/// assert_eq!(catalog.count(&Query::all())?, 1);
/// # Ok::<(), fieldstone::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Catalog(fieldstone_catalog::live::Catalog);

impl Catalog {
    /// The catalog of a store. Nothing is opened before it is needed.
    pub fn of(store: Arc<Store>, settings: CatalogSettings) -> Result<Catalog> {
        let journal = store.journal().clone();
        Ok(Catalog(fieldstone_catalog::live::Catalog::new(store, journal, settings)))
    }
}

impl Deref for Catalog {
    type Target = fieldstone_catalog::live::Catalog;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}
