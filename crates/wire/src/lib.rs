//! The calls of a store as bytes: one codec for everything that crosses a connection, arguments and answers
//! alike.
//!
//! ```text
//! number  = varint                  signed  = varint, zigzag       float = 8 bytes, IEEE 754, little endian
//! text    = length: varint  UTF-8   list    = count: varint  items
//! option  = 0 | 1 item              variant = tag: u8  its fields, in the order of the declaration
//! struct  = its fields, in the order of the declaration
//! ```
//!
//! | module | bytes of |
//! |---|---|
//! | [`codec`] | numbers, texts, lists; the two ends of a connection |
//! | `basics` | errors, requests, keys, values, arrays |
//! | `session` | sessions, authors and their parts |
//! | `fields` | options, list entries and reports of the field store |
//! | `catalog` | declarations, queries and hits |
//! | `graph` | vertices, relations, lineages and traversals |
//!
//! Invariants:
//! * each type is written and read in one place, and every value is equal after a round trip;
//! * bytes from outside cause an error at worst: no count is trusted beyond the bytes that follow, and
//!   nesting is bounded;
//! * an object that stays with its store (a field, a list, a traversal) does not cross; its number does.
//!
//! ```
//! use fieldstone_core::request::Request;
//! use fieldstone_wire::{In, NoEnds, Out, Wire};
//!
//! let request = Request::parse("run=a,step=0/to/24/by/6")?;
//! let mut out = Out::new(&NoEnds);
//! request.put(&mut out);
//! let bytes = out.into_bytes();
//! assert_eq!(Request::read(&mut In::new(&bytes, &NoEnds))?, request);
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod basics;
mod catalog;
pub mod codec;
mod fields;
mod graph;
mod session;

pub use codec::{Ends, In, NoEnds, Out, Wire};
pub use fields::{ArchivedValue, ExternalValue, FieldFacts, Outcome, StoredValue};
