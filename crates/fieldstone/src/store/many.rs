//! Calls with a list of requests: each selects its fields, one request after another.
//!
//! ```
//! use fieldstone::prelude::*;
//! use fieldstone::{ArchiveOptions, ListOptions, OpenOptions, Request, Value};
//!
//! let store = fieldstone::open("memory:", &OpenOptions::default())?;
//! for run in ["a", "b"] {
//!     let key = [("run", run), ("variable", "t"), ("step", "0")];
//!     store.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default())?;
//! }
//! store.flush(None)?;
//! let requests = Request::parse_many("run=b\nrun=a")?;
//! assert_eq!(store.all_of(&requests).list(&ListOptions::default())?.count(), 2);
//! assert_eq!(store.all_of(&requests).stats()?.fields, 2);
//! # Ok::<(), fieldstone::Error>(())
//! ```

use std::collections::HashSet;
use std::sync::Arc;

use fieldstone_core::Result;
use fieldstone_core::key::{FieldKey, KeyValue};
use fieldstone_core::request::Request;
use fieldstone_store::api::{
    Admin, FieldAccess, ListOptions, Listing, ReadOptions, Stats, StatsBy, StatsRow, VerifyReport,
};

use super::Store;

/// The fields of a store that several requests select. [`Store::all_of`] makes it.
#[derive(Debug, Clone, Copy)]
pub struct AllOf<'a> {
    pub(super) store: &'a Store,
    pub(super) requests: &'a [Request],
}

impl AllOf<'_> {
    /// The fields that the requests select, request by request; a list begins when the one before it has ended.
    pub fn list(&self, options: &ListOptions) -> Result<Listing> {
        let requests = self.requests;
        if let [one] = requests {
            return self.store.list(one, options);
        }
        requests.iter().try_for_each(|request| self.store.select(request).map(drop))?;
        let (store, options) = (self.store.clone(), options.clone());
        let listed = move |request: Request| -> Listing {
            store.list(&request, &options).unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
        };
        let requests: Vec<Request> = requests.to_vec();
        Ok(Box::new(requests.into_iter().flat_map(listed)))
    }

    /// The selected fields that became visible after a version, and the version of this answer.
    pub fn list_since(&self, since: &str, options: &ListOptions) -> Result<(Listing, String)> {
        let mut lists = Vec::with_capacity(self.requests.len());
        let mut now = None;
        for request in self.requests {
            let (list, version) = self.store.list_since(request, since, options)?;
            lists.push(list);
            // Changes between two looks come again with the next call, and are not skipped.
            now.get_or_insert(version);
        }
        Ok((Box::new(lists.into_iter().flatten()), now.unwrap_or_else(|| since.to_owned())))
    }

    /// The values present under any of the requests, per keyword and in typed order.
    pub fn axes(&self, options: &ReadOptions) -> Result<Vec<(Arc<str>, Vec<KeyValue>)>> {
        let mut all: Vec<(Arc<str>, Vec<KeyValue>)> = Vec::new();
        for request in self.requests {
            for (name, values) in self.store.axes(request, options)? {
                match all.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, known)) => known.extend(values),
                    None => all.push((name, values)),
                }
            }
        }
        if self.requests.len() > 1 {
            for (_, values) in &mut all {
                values.sort();
                values.dedup();
            }
        }
        Ok(all)
    }

    /// Counts of the selected fields; a field that two requests select is counted twice.
    pub fn stats(&self) -> Result<Stats> {
        let mut all = Stats::default();
        for request in self.requests {
            let Stats { datasets, indexes, fields, bytes, stored_bytes, masked, .. } = all;
            let one = self.store.stats(request)?;
            all = Stats {
                datasets: datasets + one.datasets,
                indexes: indexes + one.indexes,
                fields: fields + one.fields,
                bytes: bytes.saturating_add(one.bytes),
                stored_bytes: stored_bytes.saturating_add(one.stored_bytes),
                masked: masked + one.masked,
                ..one
            };
        }
        if self.requests.len() > 1 {
            (all.datasets, all.indexes) = (self.levels(1)?, self.levels(2)?);
        }
        Ok(all)
    }

    /// Fields and bytes of the selected fields, summed up; a field that two requests select is counted twice.
    pub fn stats_by(&self, by: &StatsBy) -> Result<Vec<StatsRow>> {
        let [first, others @ ..] = self.requests else { return Ok(Vec::new()) };
        let mut all = self.store.stats_by(first, by)?;
        for request in others {
            for row in self.store.stats_by(request, by)? {
                match all.iter_mut().find(|known| known.name == row.name) {
                    None => all.push(row),
                    Some(known) => {
                        known.fields += row.fields;
                        known.nbytes = known.nbytes.saturating_add(row.nbytes);
                        known.stored = known.stored.saturating_add(row.stored);
                        known.dead = known.dead.saturating_add(row.dead);
                    }
                }
            }
        }
        Ok(all)
    }

    /// Number of selected datasets or indexes, each counted once.
    fn levels(&self, depth: u8) -> Result<u64> {
        let mut known = HashSet::new();
        for entry in self.list(&ListOptions { depth, ..ListOptions::default() })? {
            let FieldKey { levels } = entry?.key;
            known.insert(levels.into_iter().take(usize::from(depth)).collect::<Vec<_>>());
        }
        Ok(known.len() as u64)
    }

    /// Verifies the selected fields.
    pub fn verify(&self) -> Result<VerifyReport> {
        self.verified(&|request| self.store.verify(request))
    }

    /// Verifies the selected fields as far as flushes after a version brought them, and for the empty request also logs and
    /// takeovers that came or grew since: a daily check of a large store. All that the version has is passed over, and a note counts
    /// it; so are files of arrays, meshes and histories that no new field names. NotFound if the version no longer exists.
    pub fn verify_since(&self, since: &str) -> Result<VerifyReport> {
        self.verified(&|request| self.store.backend().verify_since(request, since))
    }

    fn verified(&self, verify: &dyn Fn(&Request) -> Result<VerifyReport>) -> Result<VerifyReport> {
        let mut all = VerifyReport::default();
        for request in self.requests {
            let one = verify(request)?;
            all.fields += one.fields;
            all.bytes = all.bytes.saturating_add(one.bytes);
            all.files += one.files;
            all.accepted = one.accepted;
            for damage in one.damaged {
                if !all.damaged.contains(&damage) {
                    all.damaged.push(damage);
                }
            }
            for note in one.notes {
                if !all.notes.contains(&note) {
                    all.notes.push(note);
                }
            }
        }
        Ok(all)
    }
}
