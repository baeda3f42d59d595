//! The engine of an open store, read: brought up to the store's logs before each read, with what is not flushed laid
//! over it.
//!
//! | module | holds |
//! |---|---|
//! | `port`, `open_store` | what is asked of the store's fields; the store itself, and who calls |
//! | `location`, `engine_file` | where the engine is, its file set aside and cleared |
//! | `connection`, `lock_holders` | its connections, and what is done while other processes have it |
//! | `following` | how it follows the logs |
//! | `consistent_view` | what a read sees: one instant |
//! | `overlay` | what is not flushed, at the cost of what is new |
//! | `engine_reader`, `applying` | reads; what was flushed, applied beside the caller |
//!
//! Invariant: in a forked child nothing here is its parent's.

mod applying;
pub mod connection;
pub mod consistent_view;
mod engine_file;
pub mod engine_reader;
pub mod following;
pub mod location;
mod lock_holders;
pub mod open_store;
mod overlay;
mod port;

pub use consistent_view::Visibility;
pub use engine_reader::EngineReader;
pub use open_store::OpenStore;
pub use port::FieldPort;
