//! Writing: declarations, attributes and deletions are checked here, against what is declared, and become
//! records of a session's next commit.
//!
//! | module | holds |
//! |---|---|
//! | `declare`, `agreement` | runs, variables, steps and tags; when two declarations agree |
//! | `arrays` | groups, imports, meshes and histories of distributed arrays |
//! | `annotate`, `validate` | attributes; whether they agree with their tag and their variables |
//! | `delete`, `deletion` | deletions; what they name |
//! | `versions` | variables declared from their files, a version for each content |
//! | `carry` | attributes from another store, and what goes from a store that gave them away |
//! | `state` | how a run goes; data outside of the store that were moved |
//!
//! All of it are functions over what is known to be declared (`registry`); what they write waits in `pending`.

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
