//! Fieldstone: one store for a simulation's fields. This crate is the stable Rust API; it
//! turns a URL into a composed store and re-exports the types that its calls use.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, OpenOptions, ReadOptions, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let key = [("run", "demo"), ("variable", "t"), ("step", "6")];
//! store.archive(&key, Value::Bytes(b"hello"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! assert_eq!(store.get(&key, &ReadOptions::default())?.read()?, b"hello");
//! # Ok::<(), fieldstone::Error>(())
//! ```

pub mod arrays;
mod backend;
mod backup;
pub mod catalog;
pub mod checkpoint;
pub mod container;
mod cubes;
pub mod execution;
pub mod explain;
pub mod facts;
pub mod files;
mod filtered;
pub mod finders;
pub mod graph;
mod interop;
pub mod json;
mod naming;
mod open;
mod own_files;
pub mod prelude;
mod reindexing;
mod remote;
mod run;
pub mod scheduler;
mod secrets;
mod steps;
mod store;
mod transaction;
pub mod transfer;
pub mod unpacked;
mod values_json;

pub use fieldstone_core::amr;
pub use fieldstone_core::dtype::{ByteOrder, DType, DTypeKind};
pub use fieldstone_core::elements::as_floats;
pub use fieldstone_core::env::{self, Env};
pub use fieldstone_core::geometry::{CoordinateAxis, IndexBox, Scalar, Summary, element_count};
pub use fieldstone_core::key::{FieldKey, KeyValue, Level, Quoted};
pub use fieldstone_core::nearest;
pub use fieldstone_core::packing;
pub use fieldstone_core::request::{ABSENT, Item, Request, Values, Wanted};
pub use fieldstone_core::schema::{
    CatalogRoles, Keys, KeywordDescription, KeywordType, LevelDescription, RuleDescription, Schema,
    Selection, Typed,
};
pub use fieldstone_core::{Code, Error, ErrorKind, Result};
pub use fieldstone_format::{FORMAT_VERSION, chunk};
pub use fieldstone_store::api::*;
pub use fieldstone_store::frontends::FilterStore;
pub use fieldstone_store::{
    Field, FieldId, FieldSource, Fields, FieldsReader, FieldsSource, Outline, StoredBlock,
};

pub use backend::{Backend, BackendAdmin, BackendLane, BackendOwners, BackendSharing, GraphPlace};
pub use backup::{BackupOptions, BackupProgress, BackupReport, OnBackup, backup, promote};
pub use cubes::{Axis, Cube, Cubes, Grouping, cubes};
pub use interop::grib::{GribOptions, GribSource, archive_grib, grib_keys};
pub use interop::ingest::{
    FdbSource, IngestOptions, IngestReport, NamedFiles, OnProgress, Progress, Reason, Skipped, StepDim,
    Taken, fdb_schema, ingest, ingest_fdb, ingest_into, suggest_schema,
};
pub use interop::{export, helper, lineage, outside};
pub use open::{Mode, OpenOptions, init, local_path, open, open_in, share};
pub use reindexing::{ReindexReport, end_reindex, pointers, reindex};
pub use remote::loopback;
pub use run::{Array, NewRun, NewVariable, Run, RunStatus, TagRef, Target, WriteOptions};
pub use store::{
    AllOf, CompactOptions, DatasetAccess, EraseOptions, Hold, MaintainOptions, MendedPart, OnCompact,
    OnMaintain, OnPurge, PrefetchReport, PurgeOptions, RepairOptions, RepairReport, RetainOptions, Store,
    WipeOptions, hold, holds, release, repair, repair_in,
};
pub use transaction::Transaction;
