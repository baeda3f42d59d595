//! The calls of a field store, whatever keeps its bytes.
//!
//! | trait | what for |
//! |---|---|
//! | [`FieldAccess`] | fields in by key, out by request |
//! | [`Transactions`] | what becomes visible, when, together |
//! | [`Admin`] | what a store says of itself, its checkpoint and its end |
//! | [`FieldStore`] | all of them: what everybody holds, as `Arc<dyn FieldStore>` |
//!
//! (The first is not called `Fields`: these are what a [retrieve](FieldAccess::retrieve) gives.)
//!
//! Every option of a call is in a struct with a default, and no call has a body here (F-1), so that a wrapper
//! forwards a call whole and decides on each of them. Any implementation can make the results of calls: lists
//! and reports are plain data, and a [`Field`] and [`Fields`](crate::Fields) hold a source that a store
//! implements. [`FieldStoreExt`] has the most frequent calls.
//!
//! Every implementation keeps these promises (checked by [`conformance`](crate::conformance)):
//! * [`archive`](FieldAccess::archive) returns when the store has its own copy of the data;
//!   [`flush`](Transactions::flush) when everything this handle archived (outside transactions) is
//!   durable, indexed and visible; nothing is visible before;
//! * a key archived again is a new version; readers see the old one until the new one is flushed;
//! * reads pin a snapshot at the call and never mix in newer data;
//! * errors name the key, keyword or file at fault.
//!
//! ```
//! use std::sync::Arc;
//! use fieldstone_core::env::sim::SimWorld;
//! use fieldstone_store::LocalStore;
//! use fieldstone_store::api::{ArchiveOptions, FieldStore, ReadOptions, Session, Value};
//! use fieldstone_store::local::LocalOptions;
//!
//! let options = LocalOptions { writable: true, ..LocalOptions::default() };
//! let store = LocalStore::open(SimWorld::memory(), "/store".as_ref(), options)?;
//! let store: Arc<dyn FieldStore> = Arc::new(store);
//! let key = [("run", "a"), ("variable", "t"), ("step", "6")];
//! store.archive(&key, Value::Bytes(b"hello"), &ArchiveOptions::default())?;
//! store.flush(&Session::default())?;
//! assert_eq!(store.get(&key, &ReadOptions::default())?.read()?, b"hello");
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod admin;
mod compaction;
mod erasing;
mod fields;
mod handing;
mod hiding;
mod holding;
mod lanes;
mod listing;
mod locking;
mod maintaining;
mod options;
mod overlaying;
mod purging;
mod reindexing;
mod reports;
mod retaining;
mod transactions;
mod values;
mod wiping;

use fieldstone_core::geometry::IndexBox;
use fieldstone_core::request::{Request, Values};
use fieldstone_core::{Code, Result};

pub use fieldstone_core::compression::Compression;
pub use fieldstone_core::id::{EntryId, Id};
pub use fieldstone_core::if_exists::IfExists;
pub use fieldstone_journal::session::{Cancel, Session, SessionId};

pub use crate::checkpoint::{CheckpointOptions, CheckpointReport};
pub use admin::Admin;
pub use compaction::{CompactProgress, CompactReport, Compaction, LeftLog};
pub use erasing::{EraseSide, ErasedSide, Erasing, ErasureReport, SideCommit};
pub use fields::{FieldAccess, FieldStreams};
pub use fieldstone_core::lock_kind::LockKind;
pub use handing::{HandOverInfo, HandOverReport, HandingOver};
pub use hiding::{HiddenFields, Hiding};
pub use holding::{HoldInfo, Holding};
pub use lanes::{KeyEntry, StoreSettings, TransactionState, VersionOrder};
pub use listing::{Extremes, FieldLocation, ListEntry, Listing, PlaceFile};
pub use locking::{DatasetLock, Locking};
pub use maintaining::{MaintainAction, MaintainProgress, MaintainReport, MaintainStep, Maintaining};
pub use options::{ArchiveOptions, ListOptions, ReadOptions, RemoveOptions, RetrieveOptions};
pub use overlaying::{OverlaidFields, Overlaying};
pub use purging::{PurgeProgress, PurgeReport, Purging};
pub use reindexing::{IndexedField, PointedFields, Pointing};
pub use reports::{
    AcceptanceReport, Advice, Damage, FormatPin, Stats, StatsBy, StatsRow, Status, StatusProblem,
    TransactionStatus, VerifyReport, WriterStatus,
};
pub use retaining::{Retaining, RetentionRule};
pub use transactions::Transactions;
pub use values::{
    ByteStream, ExternalContent, ExternalSpec, FieldSpec, FileState, Pairs, StoredArraySpec, Value,
};
pub use wiping::{WipeReport, Wiping};

use crate::field::Field;
pub use crate::field::{BlockPlace, StoredArray};

/// A store of fields: all calls together. Every type with these traits is one.
pub trait FieldStore: FieldAccess + FieldStreams + Transactions + Admin {}

impl<S: FieldAccess + FieldStreams + Transactions + Admin + ?Sized> FieldStore for S {}

/// The most frequent calls, in terms of [`FieldAccess`].
pub trait FieldStoreExt: FieldAccess {
    /// The one field a request names; Invalid where it names several.
    fn get_one(&self, request: &Request, options: &ReadOptions) -> Result<Field> {
        only_one(self, request, options)
    }

    /// A box of an array, or all of it.
    fn get_box(&self, key: &Pairs<'_>, region: Option<&IndexBox>, options: &ReadOptions) -> Result<Vec<u8>> {
        self.get(key, options)?.read_box(region)
    }
}

impl<S: FieldAccess + ?Sized> FieldStoreExt for S {}

/// The one field that a key names as a request: what a [`get`](FieldAccess::get) falls back to where no
/// field has this very key.
pub fn get_by_request<S: FieldAccess + ?Sized>(
    store: &S,
    key: &Pairs<'_>,
    options: &ReadOptions,
) -> Result<Field> {
    only_one(store, &key_request(key), options)
}

/// The request that a key is: each keyword with its one value.
pub fn key_request(key: &Pairs<'_>) -> Request {
    let mut request = Request::new();
    for (keyword, value) in key {
        request.set(*keyword, Values::list([*value]));
    }
    request
}

fn only_one<S: FieldAccess + ?Sized>(store: &S, request: &Request, options: &ReadOptions) -> Result<Field> {
    // Lenient, because another field that the request names may be incomplete; the one is checked when
    // it is read.
    let lenient = RetrieveOptions { strict: false, session: options.session.clone() };
    let fields = store.retrieve(request, &lenient)?;
    let mut fields = fields.iter();
    match (fields.next().transpose()?, fields.next().transpose()?) {
        (Some(field), None) => Ok(field.strict()),
        (None, _) => Err(Code::FieldNotFound
            .error(format!("no field {request}"))
            .with_hint("see what exists with axes or list")),
        (Some(a), Some(b)) => Err(Code::RequestTooBroad
            .error(format!("{request} names more than one field: {} and {} among them", a.key()?, b.key()?))
            .with_hint("give every keyword, or use retrieve")),
    }
}
