//! Rules of retention: how long fields stay, and how many of their versions.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{OpenOptions, Request, RetainOptions};
//! use std::time::Duration;
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! let days = RetainOptions { older_than: Some(Duration::from_secs(5 * 86_400)), ..RetainOptions::default() };
//! store.retain(&Request::parse("run=hot")?, &days)?;
//! assert_eq!(store.rules()?[0].request, "run=hot");
//! store.retain(&Request::parse("run=hot")?, &RetainOptions { drop: true, ..RetainOptions::default() })?;
//! assert!(store.rules()?.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::time::Duration;

use fieldstone_core::Result;
use fieldstone_journal::Session;
use fieldstone_store::api::Retaining;

use super::moving;

/// Options of [`Store::retain`](super::Store::retain).
#[derive(Debug, Clone, Default)]
pub struct RetainOptions {
    /// A query of the catalog: the rule is about the fields under its hits, and the request names nothing.
    pub query: Option<String>,
    /// Moves fields to this store, with everything on them, in place of wiping them.
    pub to: Option<String>,
    /// Wipes, or moves, fields of which everything was archived longer ago than this.
    pub older_than: Option<Duration>,
    /// Keeps this number of versions of each field, the visible one among them.
    pub versions: Option<u64>,
    /// Ends the rule of this request, or query.
    pub drop: bool,
    /// Lets a request that names no values mean the whole store.
    pub all: bool,
}

impl RetainOptions {
    pub(super) fn to_call(&self) -> Result<Retaining> {
        let nanoseconds = |age: Duration| u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        Ok(Retaining {
            query: self.query.as_deref().map(moving::checked).transpose()?,
            to: self.to.as_deref().map(moving::absolute).transpose()?,
            older_than: self.older_than.map(nanoseconds),
            versions: self.versions,
            drop: self.drop,
            all: self.all,
            session: Session::default(),
        })
    }
}
