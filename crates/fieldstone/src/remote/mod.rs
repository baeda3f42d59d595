//! A backend at the far end of a connection: every call and every answer crosses as bytes of one codec
//! ([`fieldstone_wire`]).
//!
//! ```text
//! RemoteStore, RemoteCatalog, RemoteGraph          Serving
//!        │ call: object, method, arguments            │ finds the object, reads the arguments, calls it
//!        ▼                                            ▼
//!   Connection ── frames, as bytes ──▶ Served: a thread that reads frames, a worker for each calling thread
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `frame` | frames: calls, answers, questions back, releases |
//! | `argument`, `methods` | how arguments cross; the methods, by number, once for both ends |
//! | `connection` | the client's end |
//! | `store`, `catalog_and_graph`, `fields`, `named` | the backend, its catalog and graph, its fields and streams, as the client has them |
//! | `served`, `serving` | the server's end: threads; methods |
//!
//! [`loopback`] connects a store with a thread of the same process. `FIELDSTONE_LOOPBACK=1` opens every store this way:
//! it shows that nothing above a [`Backend`] needs a local store.
//!
//! Invariants:
//! * an object that stays with the store (a field, a stream, a traversal) has a number while the client holds it;
//! * one worker serves the calls of one thread, in their order: a thread can only lose its own archived data;
//! * authors stay with the client; the server asks for their part of a commit when it makes the commit.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::catalog::CatalogSettings;
//! use fieldstone::{ArchiveOptions, OpenOptions, ReadOptions, Store, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let far = Store::over(fieldstone::loopback(store.backend().clone()), CatalogSettings::default());
//! let key = [("run", "a"), ("variable", "t")];
//! far.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! far.flush(None)?;
//! assert_eq!(store.get(&key, &ReadOptions::default())?.read()?, b"x");
//! # Ok::<(), fieldstone::Error>(())
//! ```

mod argument;
mod catalog_and_graph;
mod connection;
mod fields;
mod frame;
pub(crate) mod methods;
mod named;
mod served;
mod serving;
mod store;

use std::sync::Arc;

use crate::backend::Backend;

pub(crate) use fields::warm;

/// The variable that makes this process open every store at the far end of a loopback.
const VARIABLE: &str = "FIELDSTONE_LOOPBACK";

/// A backend at the far end of a connection inside this process: a thread serves it.
pub fn loopback(backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
    Arc::new(store::RemoteStore::to(served::Served::new(backend, serving::serve)))
}

/// The same if the environment asks for it; else the backend itself.
pub(crate) fn as_asked(backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
    match std::env::var_os(VARIABLE).is_some_and(|value| value == "1") {
        true => loopback(backend),
        false => backend,
    }
}
