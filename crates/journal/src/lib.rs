//! The journal: what the writers of a store wrote, and what of it counts.

pub mod conformance;
pub mod feed;
pub mod files;
pub mod follow;
pub mod fork;
pub mod home;
pub mod identity;
pub mod journal;
pub mod medium;
pub mod run;
pub mod snapshot;
pub mod view;
pub mod writer;

pub use journal::Journal;
