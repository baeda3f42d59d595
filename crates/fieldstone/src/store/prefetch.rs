//! Reading fields ahead, so that the next reads find their bytes in memory.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, OpenOptions, Request, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! store.archive(&[("run", "a"), ("variable", "t")], Value::Bytes(b"hello"), &ArchiveOptions::default())?;
//! store.flush(None)?;
//! let report = store.prefetch(vec![Request::parse("run=a")?])?;
//! assert_eq!((report.fields, report.nbytes), (1, 5));
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::collections::HashSet;

use fieldstone_core::{ErrorKind, Result};
use fieldstone_store::api::RetrieveOptions;

use crate::Store;
use crate::remote::warm;
use crate::transfer::{Unreadable, What, fields_under};

/// Report of [`Store::prefetch`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrefetchReport {
    /// Fields that were read.
    pub fields: u64,
    /// Their bytes.
    pub nbytes: u64,
    /// Fields that cannot be read.
    pub damaged: Vec<Unreadable>,
}

/// See [`Store::prefetch`].
pub fn prefetch(store: &Store, what: &What) -> Result<PrefetchReport> {
    let (requests, wanted) = fields_under(store, what)?;
    let options = RetrieveOptions { strict: false, ..RetrieveOptions::default() };
    let (mut report, mut known) = (PrefetchReport::default(), HashSet::new());
    for request in &requests {
        // This does not count as a read of the execution.
        for field in store.backend().retrieve(request, &options)?.iter() {
            let field = field?.lenient();
            let key = field.key()?;
            if !wanted(&key) || !known.insert(field.id().key.to_vec()) {
                continue;
            }
            let warmed = match warm(&field) {
                Ok(None) => field.warm(),
                far => far.map(Option::unwrap_or_default),
            };
            match warmed {
                Ok(nbytes) => {
                    report.fields += 1;
                    report.nbytes = report.nbytes.saturating_add(nbytes);
                }
                Err(e) if matches!(e.kind(), ErrorKind::Corrupt | ErrorKind::Conflict) => {
                    let (key, why) = (key.to_string(), e.message().to_owned());
                    report.damaged.push(Unreadable { key, why });
                }
                Err(e) => return Err(e),
            }
        }
    }
    Ok(report)
}
