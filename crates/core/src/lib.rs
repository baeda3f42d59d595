//! Types that all parts of Fieldstone share: keys, schemas, requests, element types, boxes, error kinds, and the
//! environment (`env`: clock, randomness, disk) through which all code reaches the outside world.
//!
//! This crate defines no bytes on disk (`fieldstone-format` does), and does no I/O except in the real implementations
//! in [`env`].

pub mod amr;
pub mod compression;
pub mod dtype;
pub mod elements;
pub mod env;
pub mod error;
pub mod geometry;
pub mod glob;
pub mod key;
pub mod nearest;
pub mod packing;
pub mod planted;
mod processor;
pub mod request;
pub mod schema;
pub mod sync;
pub mod template;
pub mod value;

pub use error::{Code, Error, ErrorKind, Result};
