//! Writing: declarations, attributes and deletions are checked here, against what is declared, and become
//! records of a session's next commit.
//!
//! | module | holds |
//! |---|---|
//! | `declare`, `agreement` | runs, variables, steps and tags; when two declarations agree |
//! | `arrays` | groups, imports, meshes and histories of distributed arrays |
//! | `declaration_cache` | what was declared or looked up lately, so that an attribute asks no engine |
//! | `annotate`, `validate` | attributes; whether they agree with their tag and their variables |
//! | `attribute_buffer` | attributes that came one at a time, gathered into few records |
//! | `delete` | deletions |
//! | `versions` | variables declared from their files, a version for each content |
//! | `carry` | attributes from another store, and what goes from a store that gave them away |
//! | `moved`, `state` | data outside of the store that were moved; how a run goes |
//! | `ownership` | who owns a run, and what others may do with it |
//! | `shown` | names as errors show them |
//!
//! All of it are methods of the catalog of an open store (`live`).

mod agreement;
mod annotate;
mod arrays;
pub(crate) mod attribute_buffer;
mod carry;
pub(crate) mod declaration_cache;
pub(crate) mod declare;
pub(crate) mod delete;
mod moved;
mod ownership;
pub(crate) mod shown;
mod state;
pub(crate) mod tags;
mod validate;
mod versions;
