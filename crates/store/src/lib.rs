//! The field store: fields go in by key, become visible at a flush, and come out by request.
//!
//! * [`api`]: the calls of a [`FieldStore`], in three traits, and their types; every backend and frontend
//!   keeps their promises.
//! * [`field`]: [`Field`] and [`Fields`], the results of a store, and [`FieldSource`], which it implements for them.
//! * [`local`]: [`LocalStore`], the store in a folder (or, on a simulated disk, in memory).
//! * [`frontends`]: stores over other stores.
//! * [`conformance`]: the suite that every implementation of the trait must pass.
//!
//! Inside a [`LocalStore`]:
//!
//! * `encode`: a value becomes blocks and an entry, which the journal takes;
//! * `read`: from a request to entries, from entries to checked bytes;
//! * `report`: verify, status, stats, dump; `repair`: mending from a copy; `accept`: giving up what is lost;
//!   `compact`: taking over ended logs; `wipe`: hiding whole datasets and indexes; `purge`: dropping hidden versions;
//!   `erase`: making hidden content unreadable;
//!   `locks`: what nobody may do in a dataset; `overlay`: fields that appear under other values, too;
//!   `reindex`: fields that other stores name;
//!   `retain`: rules of retention; `maintain`: what they ask for, and what pays;
//! * `standing`: what stands at one moment, for those who follow the logs.
//!
//! Invariants: what makes a field visible is the journal's; a value is encoded outside of any lock; a read pins
//! one snapshot.

mod accept;
pub mod api;
mod compact;
pub mod conformance;
mod encode;
pub mod erase;
mod existing;
pub mod field;
pub mod frontends;
pub mod hand_over;
pub mod hide;
pub mod holds;
mod levels;
pub mod local;
pub mod locks;
mod maintain;
pub mod overlay;
mod purge;
mod read;
pub mod reindex;
pub mod repair;
mod report;
pub mod retain;
mod standing;
mod wipe;

use fieldstone_journal::medium::posix::checkpoint;
use fieldstone_journal::{files, snapshot};

pub use api::FieldStore;
pub use field::{
    Field, FieldId, FieldPart, FieldSource, Fields, FieldsReader, FieldsSource, Outline, StoredBlock,
};
pub use local::LocalStore;
pub use report::verify_since;
pub use standing::Standing;
