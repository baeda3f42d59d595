//! Types that all parts of Fieldstone share: keys, schemas, requests, element types, boxes, values of catalog and
//! graph, error kinds, and the environment (`env`: clock, randomness, disk) through which all code reaches the outside
//! world.
//!
//! This crate defines no bytes on disk (`fieldstone-format` does), and does no I/O except in the real implementations
//! in [`env`].

pub mod amr;
pub mod catalog;
pub mod compression;
pub mod decoded;
pub mod dtype;
pub mod elements;
pub mod env;
pub mod error;
pub mod geometry;
pub mod glob;
pub mod graph;
pub mod id;
pub mod if_exists;
pub mod key;
pub mod kinds;
pub mod lock_kind;
pub mod nearest;
pub mod packing;
pub mod planted;
mod processor;
pub mod request;
pub mod schema;
pub mod step_dim;
pub mod sync;
pub mod template;
pub mod value;

pub use error::{Code, Error, ErrorKind, Result};
