//! Writing: checks declarations, attributes and deletions against the known declarations, and turns them into
//! records of a session's next commit.
//!
//! | module | holds |
//! |---|---|
//! | `declare`, `agreement` | runs, variables, steps and tags; when two declarations agree |
//! | `arrays` | groups, imports, meshes and histories of distributed arrays |
//! | `annotate`, `validate` | attributes; whether they agree with their tag and their variables |
//! | `delete`, `deletion` | deletions, and requests for them |
//! | `versions` | variables declared from their files, a version for each content |
//! | `carry` | attributes from another store, and removals in a store that handed its attributes over |
//! | `state` | the state of a run; new places of data outside of the store |
//!
//! All modules are functions over the known declarations (`registry`); the records that they write wait in
//! `pending`.

mod agreement;
pub mod annotate;
pub mod arrays;
pub mod carry;
pub mod declare;
pub mod delete;
pub mod deletion;
pub mod state;
pub mod tags;
mod validate;
pub mod versions;
