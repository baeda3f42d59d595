//! Calls about whole datasets that somebody can take back: a lock forbids calls there until it ends; hidden fields are not there
//! for readers until somebody shows them again; an overlay shows fields under other keys, too, until somebody ends it; a
//! hand-over makes a user's datasets another's.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, Code, LockKind, OpenOptions, Request, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let key = [("run", "a"), ("variable", "t"), ("step", "0")];
//! store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! let request = Request::parse("run=a")?;
//! assert_eq!(store.lock(&request, LockKind::Archive)?, 1);
//! let refused = store.archive(&key, Value::Bytes(b"y"), &ArchiveOptions::default());
//! assert_eq!(refused.unwrap_err().code(), Code::DatasetLocked);
//! assert_eq!(store.locks()?[0].dataset, "run=a");
//! assert_eq!(store.unlock(&request, LockKind::Archive)?, 1);
//! store.archive(&key, Value::Bytes(b"y"), &ArchiveOptions::default())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, ListOptions, OpenOptions, Request, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let key = [("run", "a"), ("variable", "t"), ("step", "0")];
//! store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! let request = Request::parse("run=a")?;
//! assert_eq!(store.hide(&request)?, 1);
//! assert_eq!(store.list(&request, &ListOptions::default())?.count(), 0);
//! assert_eq!(store.hidden()?[0].request, "run=a");
//! assert_eq!(store.unhide(&request)?, 1);
//! assert_eq!(store.list(&request, &ListOptions::default())?.count(), 1);
//! assert_eq!(store.overlay(&request, &[("run", "b")])?, 1);
//! let other = Request::parse("run=b")?;
//! assert_eq!(store.list(&other, &ListOptions::default())?.count(), 1);
//! assert_eq!(store.overlays()?[0].values, "run=b");
//! assert_eq!(store.end_overlay(&request, &[("run", "b")])?, 1);
//! assert_eq!(store.list(&other, &ListOptions::default())?.count(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use fieldstone_core::Result;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::{
    DatasetLock, HandOverInfo, HandOverReport, HandingOver, HiddenFields, Hiding, LockKind, Locking,
    OverlaidFields, Overlaying,
};

use super::Store;

/// Calls that forbid something in whole datasets, hide fields, or show them under other keys, until they are taken back.
pub trait DatasetAccess {
    /// Forbids calls of one kind in the datasets that a request selects, durably and for everybody, until
    /// [`unlock`](Self::unlock). Returns how many datasets there are.
    ///
    /// `Archive` refuses archives, pieces of fields and removals, at the call; a handle that has not seen the lock yet
    /// refuses them at the flush. `List` refuses lists and axes, `Retrieve` reads of fields; a retrieve that is not strict
    /// passes the datasets. `Wipe` refuses wipes and purges.
    ///
    /// Errors: `Invalid` for a keyword below the first level of keys; `NotFound` where no dataset is selected; `Denied` for
    /// datasets of other users, unless you own the folder of logs or are root, for a handle that only reads, and in a store
    /// of format 1.
    fn lock(&self, request: &Request, what: LockKind) -> Result<u64>;

    /// Ends locks of one kind on the datasets that a request selects. Returns how many were locked. Errors as those of
    /// [`lock`](Self::lock), but for `NotFound`.
    fn unlock(&self, request: &Request, what: LockKind) -> Result<u64>;

    /// The locks in force, by dataset.
    fn locks(&self) -> Result<Vec<DatasetLock>>;

    /// Hides all fields that a request selects, durably and for everybody, until [`unhide`](Self::unhide): whole datasets, or
    /// whole indexes of them. Returns how many fields vanish. No list, read, axis, statistic or query of the catalog shows
    /// them; older versions of the store do. Runs, attributes and lineage stay, and so do fields that others flush meanwhile
    /// or later. Their files stay: a purge leaves hidden fields alone, and a wipe takes them.
    ///
    /// Errors: `Invalid` for a keyword below the second level of keys, and for a request that names no values; `Denied` for
    /// datasets of other users, unless you own the folder of logs or are root, for a handle that only reads, and in a store
    /// of format 1.
    fn hide(&self, request: &Request) -> Result<u64>;

    /// Shows again what hides within a request hid. Returns how many fields are there again: 0 where nothing is
    /// hidden.
    ///
    /// Errors: `Invalid` if no hide lies within the request, and one selects a part of it: unhide that one as a whole, then
    /// hide what is to stay hidden; `Denied` for what another user hid, unless you own the folder of logs or are root, for a handle that only reads, and
    /// in a store of format 1.
    fn unhide(&self, request: &Request) -> Result<u64>;

    /// The hides in force, oldest first.
    fn hidden(&self) -> Result<Vec<HiddenFields>>;

    /// Lets all fields that a request selects appear under other values, too, durably and for everybody, until
    /// [`end_overlay`](Self::end_overlay): `run=a` as `run=b`. Returns how many fields do so now; fields that are archived later
    /// under the request appear like these, and what is removed, wiped or hidden appears no longer. Lists, axes and reads by
    /// request or key find them; everything else goes by the keys by which fields were archived: the catalog, lineage,
    /// statistics, wipes, purges, moves and removals. Under a key with a field of its own that one counts, then the newest overlay.
    ///
    /// Errors: `Invalid` for a keyword that the schema lacks, for one to which the request does not give one value, and where
    /// the schema would name the fields otherwise; `NotFound` where the request selects nothing; `Conflict` if this overlay is in
    /// force; `Denied` where the fields would appear in datasets of other users, unless you own the folder of logs or are root,
    /// for a handle that only reads, and in a store of format 1.
    fn overlay(&self, request: &Request, values: &[(&str, &str)]) -> Result<u64>;

    /// Ends the overlay with this request and these values. Returns how many fields appeared so.
    ///
    /// Errors: `NotFound` if none is in force; `Denied` for that of another user, unless you own the folder of logs or are root,
    /// for a handle that only reads, and in a store of format 1.
    fn end_overlay(&self, request: &Request, values: &[(&str, &str)]) -> Result<u64>;

    /// The overlays in force, oldest first.
    fn overlays(&self) -> Result<Vec<OverlaidFields>>;

    /// Hands over to a user, durably, all datasets and runs that belong to another one, both by name or number: when somebody
    /// leaves, or a project changes hands. Nothing is written again. The new owner may from now on do there whatever the old one
    /// could: archive, remove, wipe, lock, hide, annotate, decide on transactions. Content of the old one counts as before, but not
    /// if he writes it there later, also from a process that goes on. Datasets that he begins later are his own. Another
    /// hand-over gives all of it back. Older versions of the store show the owners of their time.
    ///
    /// Errors: `NotFound` for a name that this host does not know; `Invalid` where both are one user; `Denied` unless you own the
    /// folder of logs or are root, for a handle that only reads, and in a store of format 1.
    fn hand_over(&self, from: &str, to: &str) -> Result<HandOverReport>;

    /// All hand-overs, oldest first.
    fn hand_overs(&self) -> Result<Vec<HandOverInfo>>;
}

impl DatasetAccess for Store {
    fn lock(&self, request: &Request, what: LockKind) -> Result<u64> {
        self.backend().set_lock(request, &Locking { what, locks: true, session: Session::default() })
    }

    fn unlock(&self, request: &Request, what: LockKind) -> Result<u64> {
        self.backend().set_lock(request, &Locking { what, locks: false, session: Session::default() })
    }

    fn locks(&self) -> Result<Vec<DatasetLock>> {
        self.backend().locks()
    }

    fn hide(&self, request: &Request) -> Result<u64> {
        self.backend().set_hidden(request, &Hiding { hides: true, session: Session::default() })
    }

    fn unhide(&self, request: &Request) -> Result<u64> {
        self.backend().set_hidden(request, &Hiding { hides: false, session: Session::default() })
    }

    fn hidden(&self) -> Result<Vec<HiddenFields>> {
        self.backend().hidden()
    }

    fn overlay(&self, request: &Request, values: &[(&str, &str)]) -> Result<u64> {
        self.backend().set_overlay(request, &overlaying(values, true))
    }

    fn end_overlay(&self, request: &Request, values: &[(&str, &str)]) -> Result<u64> {
        self.backend().set_overlay(request, &overlaying(values, false))
    }

    fn overlays(&self) -> Result<Vec<OverlaidFields>> {
        self.backend().overlays()
    }

    fn hand_over(&self, from: &str, to: &str) -> Result<HandOverReport> {
        let (from, to, session) = (from.to_owned(), to.to_owned(), Session::default());
        self.backend().hand_over(&HandingOver { from, to, session })
    }

    fn hand_overs(&self) -> Result<Vec<HandOverInfo>> {
        self.backend().hand_overs()
    }
}

fn overlaying(values: &[(&str, &str)], shows: bool) -> Overlaying {
    let values = values.iter().map(|(keyword, value)| ((*keyword).to_owned(), (*value).to_owned()));
    Overlaying { values: values.collect(), shows, session: Session::default() }
}
