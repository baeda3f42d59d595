//! The catalog: runs, steps, variables, tags and attributes, found by value, place and time.
//!
//! The store's logs hold the truth, as side records ([`fieldstone_format::catalog`]). The catalog is an index
//! over them in an SQL engine. A user may delete the index at any time; a replay of the logs builds it again.
//!
//! * [`access`]: the calls of a catalog, as traits;
//! * [`engine`]: the tables, and the databases that keep them;
//! * [`erase`]: attributes that an erasure takes;
//! * [`file_use`]: meshes and kept partitions, and what names them;
//! * [`follower`]: the tables as a follower of the logs;
//! * [`query`]: the query model, its text form, and the executor;
//! * `pending`: records on their way into the next commit;
//! * `reader`: an engine that follows the logs of an open store; readers wait for it and read it;
//! * `registry`: the declarations that a session sees;
//! * `reports`: settings, and reports of calls;
//! * `write`: checks declarations, attributes and deletions and turns them into records;
//! * [`live`]: the catalog of an open store.
//!
//! Invariants:
//! * applying a commit twice, or commits in another order, gives the same tables;
//! * the tables hold only what is visible to everybody; prepared and unflushed content is applied within a
//!   database transaction that is rolled back after the read;
//! * SQL narrows by keys alone; one place, in Rust, decides whether a row is a hit.

pub mod access;
pub mod engine;
pub mod erase;
pub mod file_use;
pub mod follower;
pub mod live;
mod pending;
pub mod query;
mod reader;
mod registry;
mod reports;
mod write;
