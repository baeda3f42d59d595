//! Reading: from a request to keys, from keys to entries, from entries to checked bytes.
//!
//! * `matcher` compares encoded keys with a request and says where the next match can be;
//! * `scan` walks all segments of a snapshot in key order; `lookup` finds one key;
//! * `overlaid` walks over what overlays show besides;
//! * `versions` sorts what was found under one key: what is visible, what is hidden;
//! * `plan` keeps the fields of a retrieve, compactly, in request order;
//! * `field` reads one field, `blocks` reads and checks blocks, `as_stored` gives them out as they are,
//!   `damaged` names the bytes that do not match, `outside` the files that the store does not own, `elsewhere` entries of other
//!   stores, `ranges` says which bytes of an array a box is;
//! * `list` and `axes` answer their calls, `counted` counts the fields of whole datasets, `entries` those of a store of several.

mod as_stored;
mod axes;
mod blocks;
mod counted;
mod damaged;
mod elsewhere;
mod entries;
mod field;
mod hidden;
mod list;
mod lookup;
mod matcher;
mod outside;
mod overlaid;
mod plan;
mod purged;
mod ranges;
mod scan;
mod versions;

pub use axes::axes;
pub use blocks::Source;
pub use counted::all_of_dataset;
pub use elsewhere::{EntryUrl, OtherStores};
pub use entries::{entries, newest_place, transactions};
pub use field::LocalField;
pub use hidden::{HiddenEntries, Limit};
pub use list::{ListStream, list};
pub use lookup::{lookup, lookup_moved};
pub use matcher::{Match, Matcher};
pub use outside::Outside;
pub use overlaid::lookup_overlaid;
pub use plan::retrieve;
pub use purged::{check_whole, is_dataset_purged, purged};
pub use ranges::slab;
pub use scan::Scan;
pub use versions::{KeyVersions, Part};
