//! The traits of an open store's calls: `use fieldstone::prelude::*` brings only them into scope.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, OpenOptions, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! store.archive(&[("run", "a"), ("variable", "t")], Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! assert_eq!(store.unflushed(), 1);
//! store.flush(None)?;
//! assert_eq!(store.status()?.writers.len(), 1);
//! # Ok::<(), fieldstone::Error>(())
//! ```

pub use crate::store::DatasetAccess;
pub use fieldstone_store::api::{Admin, FieldAccess, FieldStoreExt, Transactions};
