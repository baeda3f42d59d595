//! Frontends: stores over other stores.
//!
//! A frontend holds one or more `Arc<dyn FieldStore>` and is one itself, so that frontends nest freely. It knows
//! nothing of the stores beneath: not their files, snapshots or journals. Like every store, it has to pass the
//! [conformance suite](crate::conformance).
//!
//! * [`filter`]: shows and takes only what a request selects.
//!
//! Invariant: every call of every trait is written out in each frontend (`clippy::missing_trait_methods`): a
//! call that is new is a decision, never a default.

pub mod filter;

pub use filter::FilterStore;
