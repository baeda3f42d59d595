//! Facts about one field, or about all fields that a request selects: the program prints them, a server or a page
//! returns them. Their JSON is [`crate::json::fields::field`] and [`crate::json::reports::overview`].
//!
//! Invariant: nothing here writes, or reads more of a field than the answer needs.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::facts::{FieldFacts, Overview};
//! use fieldstone::{ArchiveOptions, ListOptions, OpenOptions, ReadOptions, Request, Value, json};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let key = [("run", "demo"), ("variable", "t"), ("step", "6")];
//! store.archive(&key, Value::Bytes(b"hello"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//!
//! let all = Request::new();
//! for entry in store.list(&all, &ListOptions::default())? {
//!     let facts = FieldFacts::of(&store, entry?, &store.get(&key, &ReadOptions::default())?)?;
//!     assert_eq!(facts.content.kind, "text");
//!     assert_eq!(json::fields::field(&facts)["values"][0], "hello");
//! }
//! let overview = Overview::of(&store, &all)?;
//! assert_eq!((overview.stats.fields, overview.axes.len()), (1, 3));
//! assert_eq!(json::reports::overview(&overview)["axes"]["step"]["first"], "6");
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod content;
mod coordinates;
mod described;
mod field;
mod overview;

pub use content::Content;
pub use coordinates::{Coordinates, Direction, with_unit};
pub use described::{Described, time_of};
pub use field::FieldFacts;
pub use overview::{CatalogFacts, Overview};
