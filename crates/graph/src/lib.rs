//! The provenance graph of a store: users, executions and data, and how they are related, in versions.
//!
//! It is a view of the logs: what they say of vertices and relations stands here in immutable, sorted segments, in
//! memory and in files, which may be deleted and are made anew.
//!
//! | module | |
//! |---|---|
//! | [`cause`] | what a walk by cause takes |
//! | [`vocabulary`] | types of vertices and relations, their names from the far end |
//! | [`access`] | the calls of a graph, whatever answers them |
//! | [`archive`] | moving hidden versions to another store |
//! | [`audit`] | what a user did, or who had to do with a file |
//! | [`described`] | what a vertex is, by what several sources say |
//! | [`dossier`] | a lineage with all that is known of it |
//! | [`find`] | vertices by what they are |
//! | [`folder`] | segments on disk, and their list |
//! | [`live`] | [`Graph`]: one handle: what this process puts, and what it reads |
//! | [`partition`] | which slot has which relation |
//! | [`put`] | what is put into it |
//! | [`read`] | a vertex, its versions, the relations at it |
//! | [`relations`] | relations by what they are |
//! | `reports` | reports of its calls |
//! | [`segment`] | sorted parts of the view: building, merging, reading |
//! | [`slot`] | a view that is cut into slots, whoever runs them |
//! | [`state`] | all segments of one moment, read as one graph |
//! | [`trace`] | lineage, by cause |
//! | [`travel`] | traversals, step by step |
//! | [`view`] | how the state follows the logs |

pub mod access;
pub mod archive;
pub mod audit;
pub mod cause;
mod commits;
pub mod described;
pub mod dossier;
pub mod find;
pub mod folder;
mod frame;
pub mod hashing;
pub mod live;
mod parallel;
pub mod partition;
pub mod put;
pub mod read;
pub mod relations;
mod reports;
pub mod segment;
pub mod slot;
pub mod state;
pub mod trace;
pub mod travel;
mod tree;
pub mod view;
pub mod vocabulary;

pub use live::Graph;
