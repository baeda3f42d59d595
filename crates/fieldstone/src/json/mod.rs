//! The answers of a store as JSON: the shapes that the program prints with `--json`, also for other interfaces, such as
//! a server or a page in a browser.
//!
//! A module covers one subject, and each of its functions one shape. A function takes the result of the crate's own
//! calls, plus facts that these lack, such as the names of users; it reads nothing from a store. The caller decides how
//! the rows of a list follow one another, in a document or one per line.
//!
//! Invariant: these shapes, down to the order of their members, are those of `docs/guide/cli.md`; they only change
//! together with it.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::catalog::Query;
//! use fieldstone::{ArchiveOptions, FieldStoreExt, ListOptions, OpenOptions, Request, Value, json};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let key = [("run", "demo"), ("variable", "t"), ("step", "6")];
//! store.archive(&key, Value::Bytes(b"hello"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//!
//! for entry in store.list(&Request::new(), &ListOptions::default())? {
//!     let shape = json::fields::entry(&entry?);
//!     assert_eq!(shape["key"].to_string(), r#"{"run":"demo","variable":"t","step":"6"}"#);
//!     assert_eq!(shape["nbytes"], 5);
//! }
//! let runs = store.catalog().runs(&Query::all())?;
//! assert_eq!(json::catalog::run(&runs[0])["name"], "demo");
//! # Ok::<(), fieldstone::Error>(())
//! ```

pub mod arrays;
pub mod catalog;
pub mod container;
pub mod fields;
pub mod graph;
pub mod moved;
pub mod reports;
pub mod values;
