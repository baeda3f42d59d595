//! The catalog of a store: runs, steps, variables, tags and attributes, written with the store's commits and
//! found by value, place and time. [`Store::catalog`](crate::Store::catalog) gives it; its calls are those of
//! [`CatalogAccess`].
//!
//! ```
//! use fieldstone::{OpenOptions, Target};
//! use fieldstone::catalog::query::text::parse;
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let run = store.create_run("demo").create()?;
//! run.annotate("cause", "a shock", &Target::run())?;
//! assert_eq!(store.catalog().count(&parse("tag=cause")?)?, 1);
//! # Ok::<(), fieldstone::Error>(())
//! ```

pub use fieldstone_catalog::access::{
    CatalogAccess, CatalogAdmin, CatalogArrays, CatalogLookup, CatalogQueries, CatalogWriter, Hits,
};
pub use fieldstone_catalog::engine::{ARRAY_TABLES, Interrupt, Selection, Writer};
pub use fieldstone_catalog::live::{
    CatalogCheck, CatalogSettings, DeclarationRow, Declared, DeleteReport, Deletion, RebuildReport,
};
pub use fieldstone_catalog::query::{
    self, Aggregate, BoxInfo, By, Hit, HitTable, Query, RunInfo, StepInfo, TagInfo, VariableInfo,
};
pub use fieldstone_core::catalog::{
    Annotate, ArrayGroup, ArrayLayout, ArraySet, AttributeId, BasicPattern, Column, Coordinate, FileSums,
    HistoryContent, HistoryDecl, ImportDecl, ImportFormat, ImportedVariable, MeshDecl, MeshLocation,
    RankSizes, RunDecl, RunName, StepDecl, StorageOrder, TagDecl, Values, VariableDecl, VariableName,
};
pub use fieldstone_core::kinds;
pub use fieldstone_core::schema::step_number;
pub use fieldstone_core::value;
