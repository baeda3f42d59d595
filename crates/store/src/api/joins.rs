//! What a catalog beside the fields uses: side records that go with their commits, and the commits.
//!
//! These calls are the journal's, of which a store in a folder is made; the composed store of the facade has
//! them for its catalogs. Nothing but that store has them to give and nothing but the catalog uses
//! them: no frontend does its own work by them, and one that shows only a part refuses them.

use fieldstone_core::Result;
use fieldstone_format::Id;
use fieldstone_format::log::SideRecord;

use super::{Feed, Home};

/// What a catalog beside the fields uses.
pub trait Joins {
    /// Carries catalog and graph changes with the session's next flush.
    fn archive_side(&self, records: Vec<SideRecord>, transaction: Option<Id>) -> Result<()>;

    /// Side records that this handle took for a session and did not flush yet, in their order.
    fn pending_side(&self, transaction: Option<Id>) -> Result<Vec<SideRecord>>;

    /// What the logs hold at this moment (or in the version this handle was opened at), commit by commit.
    fn feed(&self) -> Result<Feed>;

    /// Where and what the store is.
    fn home(&self) -> Home;
}
