//! The provenance graph of a store: users, executions and data, and the relations between them, in versions.
//!
//! It is an index of the logs: immutable, sorted segments hold the vertices and relations from the logs, in
//! memory and in files, which may be deleted and are then built again.
//!
//! | module | |
//! |---|---|
//! | [`cause`] | the relations that a walk by cause takes |
//! | [`vocabulary`] | types of vertices and relations, and the reverse names of relations |
//! | [`access`] | the calls of a graph, as traits |
//! | [`archive`] | moving hidden versions to another store |
//! | [`audit`] | the actions of a user, or everybody who had to do with a file |
//! | [`described`] | the description of a vertex, from several sources |
//! | [`dossier`] | a lineage with everything known about it |
//! | [`find`] | finding vertices by type, properties and words |
//! | [`folder`] | segments on disk, and their list |
//! | [`live`] | [`Graph`]: one handle: the puts of this process, and its reads |
//! | [`partition`] | the slot of each relation |
//! | [`put`] | the arguments of puts |
//! | [`read`] | a vertex, its versions, the relations at it |
//! | [`relations`] | finding relations by type and properties |
//! | `reports` | reports of its calls |
//! | [`segment`] | sorted parts of the index: building, merging, reading |
//! | [`slot`] | an index that is cut into slots, independent of how they run |
//! | [`state`] | all segments of one moment, read as one graph |
//! | [`trace`] | lineage, by cause |
//! | [`travel`] | traversals, step by step |
//! | [`follower`] | how the state follows the logs |

pub mod access;
pub mod archive;
pub mod audit;
pub mod cause;
mod commits;
pub mod described;
pub mod dossier;
pub mod find;
pub mod folder;
pub mod follower;
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
pub mod vocabulary;

pub use live::Graph;
