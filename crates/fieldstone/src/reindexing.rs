//! Reindexing: fields of one store under keys of another one, without a copy (R34).
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, OpenOptions, ReadOptions, Request, Value, pointers, reindex};
//!
//! let folder = tempfile::tempdir()?;
//! let path = |name: &str| folder.path().join(name).display().to_string();
//! let from = fieldstone::open(&path("from"), &OpenOptions::default())?;
//! let key = [("run", "a"), ("variable", "t"), ("step", "0")];
//! from.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! from.flush(None)?;
//! let to = fieldstone::open(&path("to"), &OpenOptions::default())?;
//! let report = reindex(&from, &Request::parse("run=a")?, &to)?;
//! assert_eq!((report.fields, report.kept), (1, true));
//! assert_eq!(to.get(&key, &ReadOptions::default())?.read()?, b"x");
//! assert_eq!(pointers(&from)?[0].request, "run=a");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use fieldstone_core::request::Request;
use fieldstone_core::{Code, Result};
use fieldstone_format::store_record::STORE_RECORDS_SINCE;
use fieldstone_journal::Session;
use fieldstone_store::api::{FieldAccess as _, PointedFields, Pointing};

use crate::Store;

/// The result of a reindex.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReindexReport {
    /// Fields that the other store names now.
    pub fields: u64,
    /// Whether purges of the source leave all of them: its owners let the caller record that.
    pub kept: bool,
    /// Fields that the other store cannot name, each with its key and the reason.
    pub left: Vec<(String, String)>,
}

/// Lets another store name the fields that a request selects, under keys of its own schema: no byte is copied, and reads fetch
/// the bytes from where they are, also after the source was compacted or purged. The source records who names its fields, and its
/// purges leave them. The fields are visible in the other store when this returns; a later value in the source is not.
///
/// Errors: `Invalid` for a source in memory, for one and the same store, and for a request that does not list values;
/// `NotFound` where nothing is selected; `Denied` for a target that is only read, and for datasets of others there.
pub fn reindex(from: &Store, request: &Request, to: &Store) -> Result<ReindexReport> {
    let (source, target) = (from.backend(), to.backend());
    target.check_writable()?;
    if source.id() == target.id() {
        return Err(Code::WrongStore
            .error(format!("{} and {} are one store", from.url(), to.url()))
            .with_hint("overlay shows fields under other values within a store"));
    }
    let mut portion = source.indexed(request, &[], &Session::default())?;
    if portion.is_empty() {
        return Err(Code::FieldNotFound
            .error(format!("no field is selected by {request}"))
            .with_hint("see what exists with list"));
    }
    target.will_write();
    target.create()?;
    let may = source.check_writable().and_then(|()| source.check_format(STORE_RECORDS_SINCE, "a pointer"));
    let kept = match may {
        // First the source knows, then the target has entries: no purge comes between.
        Ok(()) => source.point(request, &pointing(to, true))?,
        Err(_) => false,
    };
    let transaction = target.begin()?;
    let session = Session::from(transaction);
    let mut report = ReindexReport { kept, ..ReindexReport::default() };
    let mut take = || -> Result<()> {
        while let Some(last) = portion.last() {
            let after = last.encoded.clone();
            let left = target.take_indexed(&portion, &session)?;
            report.fields += (portion.len() - left.len()) as u64;
            report.left.extend(left);
            target.flush(&session)?;
            portion = source.indexed(request, &after, &Session::default())?;
        }
        target.decide(transaction, true, &Session::default())
    };
    if let Err(error) = take() {
        // The first error says what happened.
        let _abandoned = target.abandon(transaction, &Session::default());
        return Err(error);
    }
    Ok(report)
}

/// Ends the record that another store names the fields of a request: purges no longer leave them for it.
pub fn end_reindex(from: &Store, request: &Request, to: &Store) -> Result<()> {
    from.backend().point(request, &pointing(to, false)).map(drop)
}

/// The stores that name fields of this one, oldest first: what its purges leave for them.
pub fn pointers(store: &Store) -> Result<Vec<PointedFields>> {
    store.backend().pointers()
}

fn pointing(to: &Store, names: bool) -> Pointing {
    let folder = to.backend().folder();
    let url = folder.map_or_else(|| to.url().to_owned(), |folder| folder.display().to_string());
    Pointing { store: to.backend().id(), url, names, session: Session::default() }
}
