//! The answers of a store as JSON: the shapes that the program prints with `--json`, for whatever else hands them out,
//! such as a server or a page in a browser.
//!
//! A module holds one subject, and a function of it one shape. A function takes what the crate's own calls return, and
//! beside it only what these do not know, such as the names of users; it reads nothing from a store. How rows of a list
//! follow one another, within a document or a line each, is up to the caller.
//!
//! Invariant: these shapes, down to the order of their members, are those of `docs/guide/cli.md`; they change only
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
