//! Code shared by the tests of the query model: a catalog as plain structs, tables over it, brute force,
//! random queries. `tests/query.rs` runs them on tables in memory and on SQLite, `tests/postgres.rs` on
//! PostgreSQL.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod agree;
pub mod brute;
pub mod empress;
pub mod history;
pub mod indexed;
pub mod memory;
pub mod meshes;
pub mod paper;
pub mod random;
pub mod world;
