//! The catalog: runs, steps, variables, tags and attributes, found by value, place and time.
//!
//! The truth is in the store's logs, as side records ([`fieldstone_format::catalog`]). What is here is
//! an index over them in an SQL engine, which may be deleted at any time and is built again by replay.
//!
//! * [`access`]: the calls of a catalog, whatever answers them;
//! * [`engine`]: the tables, and the databases that keep them;
//! * [`view`]: the tables as a view of the logs;
//! * [`query`]: the query model, its text form, and the executor;
//! * `pending`: records on their way into the next commit;
//! * `reader`: an engine that follows the logs of an open store, read and waited for;
//! * `registry`: what is declared, as a session sees it;
//! * `reports`: settings, and reports of calls;
//! * `write`: declarations, attributes and deletions, checked before they become records;
//! * [`live`]: the catalog of an open store.
//!
//! Invariants:
//! * applying a commit twice, or commits in another order, gives the same tables;
//! * the tables hold only what is visible to everybody; what is prepared or unflushed is applied within
//!   a database transaction that is rolled back after the read;
//! * SQL narrows by keys alone; whether a row is a hit is decided in one place, in Rust.

pub mod access;
pub mod engine;
pub mod live;
mod pending;
pub mod query;
mod reader;
mod registry;
mod reports;
pub mod view;
mod write;
