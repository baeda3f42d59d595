//! Reads the engine of an open store: before each read, brings it up to the store's logs, and overlays
//! unflushed records.
//!
//! | module | holds |
//! |---|---|
//! | `port`, `open_store` | the interface to the store's fields; the store itself, and its users |
//! | `location`, `engine_file` | where the engine is; setting its file aside and clearing it |
//! | `connection`, `lock_holders` | its connections, and the behaviour while other processes hold it |
//! | `following` | how it follows the logs |
//! | `consistent_read` | the state that a read sees: one instant |
//! | `overlay` | unflushed records, at the cost of the new ones |
//! | `engine_reader`, `applying` | reads; applying flushed records in the background |
//!
//! Invariant: in a forked child, nothing here belongs to its parent.

mod applying;
pub mod connection;
pub mod consistent_read;
mod engine_file;
pub mod engine_reader;
pub mod following;
pub mod location;
mod lock_holders;
pub mod open_store;
mod overlay;
mod port;

pub use consistent_read::Visibility;
pub use engine_reader::EngineReader;
pub use open_store::OpenStore;
pub use port::FieldPort;
