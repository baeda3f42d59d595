//! The traits whose calls an open store answers: `use fieldstone::prelude::*` brings them into scope, and nothing else.
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

pub use fieldstone_store::api::{Admin, FieldAccess, FieldStoreExt, Transactions};
