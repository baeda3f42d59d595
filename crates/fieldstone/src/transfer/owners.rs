//! Moves by root of fields that others own: each owner's go in his name, and stay his (R35).
//!
//! Only the owner of a dataset removes from it, and a store belongs to whoever writes into it. So root acts for each owner, in
//! both stores: the files that this makes are the owner's.
//!
//! Invariants:
//! * fields of one owner go in one transaction, those of several owners in one each: a crash leaves each field in one of the
//!   stores, or in both, and the same move goes on;
//! * root makes the target where there is none.

use std::collections::BTreeSet;

use fieldstone_core::{Error, Result};
use fieldstone_format::keys::encode_key;
use fieldstone_store::api::{FieldAccess, ListOptions};

use super::choice::choose;
use super::{TransferOptions, TransferReport, What, move_within};
use crate::Session;
use crate::Store;
use crate::catalog::CatalogSettings;

/// Moves for the owners of the datasets; `None` where all are the caller's, or the caller cannot act for others.
pub fn move_for_owners(
    from: &Store,
    what: &What,
    to: &Store,
    options: &TransferOptions<'_>,
) -> Result<Option<TransferReport>> {
    let me = from.catalog().user(&Session::default());
    if options.own || from.backend().for_user(me)?.is_none() || to.backend().for_user(me)?.is_none() {
        return Ok(None);
    }
    let owners = owners(from, what, options)?;
    if owners.iter().all(|owner| *owner == me) {
        return Ok(None);
    }
    let by_hits = matches!(what, What::Query(_) | What::Hits(_));
    if owners.len() > 1 {
        if by_hits {
            return Ok(None);
        }
        // A field that a request lacks is an error before anything moves.
        super::Transfer::plan(from, what, to, (options, true, false))?;
    }
    to.backend().create()?;
    let mut report = TransferReport::default();
    for owner in &owners {
        let (source, target) = (as_user(from, *owner)?, as_user(to, *owner)?);
        let moved = match owners.len() {
            1 => move_within(&source, what, &target, options, false),
            _ => {
                let own = TransferOptions { own: true, strict: false, ..*options };
                move_within(&source, what, &target, &own, true)
            }
        };
        let closed = source.close().and_then(|()| target.close());
        report.add(moved?);
        closed?;
    }
    from.refresh()?;
    to.refresh()?;
    Ok(Some(report))
}

/// The same store for another user. Files that derive from its logs are each user's own: its catalog is in memory.
fn as_user(store: &Store, user: u32) -> Result<Store> {
    let backend = store.backend().for_user(user)?;
    let backend = backend.ok_or_else(|| Error::denied("this process cannot act for other users any more"))?;
    Ok(Store::over(backend, CatalogSettings { engine: Some("memory:".into()) }))
}

/// The owners of the datasets with fields of a choice.
fn owners(from: &Store, what: &What, options: &TransferOptions<'_>) -> Result<BTreeSet<u32>> {
    let mut owners = BTreeSet::new();
    for request in choose(from, what, false, options.before.is_some())?.requests {
        for entry in from.backend().list(&request, &ListOptions { depth: 1, ..ListOptions::default() })? {
            let key = encode_key(&entry?.key);
            owners.extend(from.owner(&key.bytes[..key.ends[0]])?);
        }
    }
    Ok(owners)
}

impl TransferReport {
    /// Adds what went for another owner.
    fn add(&mut self, other: TransferReport) {
        self.fields += other.fields;
        self.bytes += other.bytes;
        self.unchanged += other.unchanged;
        self.versions += other.versions;
        self.attributes += other.attributes;
        self.removed += other.removed;
        self.kept.extend(other.kept);
        self.damaged.extend(other.damaged);
        for left in other.left {
            match self.left.iter_mut().find(|known| (known.kind, known.why) == (left.kind, left.why)) {
                Some(known) => known.add(left),
                None => self.left.push(left),
            }
        }
    }
}
