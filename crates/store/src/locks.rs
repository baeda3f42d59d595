//! Locks: what nobody may do in whole datasets until somebody who may ends the lock (J-49).
//!
//! Invariants:
//! * a lock names datasets one by one, so that each can be unlocked alone;
//! * the journal refuses writes into a locked dataset, at the call and again at the flush; reads look at each dataset that
//!   they enter.

use std::collections::BTreeMap;

use fieldstone_core::key::{LEVELS, Level, Names};
use fieldstone_core::request::Request;
use fieldstone_core::schema::{Constraint, Selection};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::keys::{KeyDecoder, encode_level, level_ends};
use fieldstone_format::store_record::STORE_RECORDS_SINCE;
use fieldstone_journal::Journal;
use fieldstone_journal::snapshot::Lock;

use crate::api::{DatasetLock, Locking};
use crate::levels::keyword_below;
use crate::read::Scan;

/// Datasets by their encoded first levels.
type Datasets = BTreeMap<Vec<u8>, Level>;

/// Sets a lock on the datasets that a request selects, or ends it; returns how many there are.
pub fn set_lock(journal: &Journal, request: &Request, how: &Locking) -> Result<u64> {
    journal.access().check_writable()?;
    journal.format().check(STORE_RECORDS_SINCE, "a lock")?;
    if let Some(keyword) = keyword_below(&journal.schema().now(), request, 1) {
        return Err(too_deep(keyword));
    }
    let now = journal.env().clock.now();
    let selection = journal.schema().make(|schema| schema.select_at(request, now))?;
    let snapshot = journal.looks().snapshot()?;
    let mut datasets = Datasets::new();
    if !how.locks {
        // A dataset may be empty by now.
        let named = snapshot.locks.named().into_iter().filter(|level| selects(&selection, level));
        datasets.extend(named.map(|level| (encoded(&level), level)));
    }
    let mut scan = Scan::new(snapshot.clone(), selection.clone(), None)?.on(journal.files()).lenient(true);
    scan = scan.within(how.session.limits(&journal.env().clock));
    let mut decoder = KeyDecoder::new();
    while let Some(versions) = scan.next_key()? {
        let key = decoder.decode(&versions.key)?;
        check_shape(&selection, [0, 1, 2].map(|level| &key.levels[level].names))?;
        let level = versions.key[..level_ends(&versions.key)?[0]].to_vec();
        scan.skip_prefix(&level)?;
        datasets.insert(level, (*key.levels[0]).clone());
    }
    if datasets.is_empty() && how.locks {
        return Err(Code::FieldNotFound
            .error(format!("no dataset is selected by {request}"))
            .with_hint("see what exists with list, at depth 1"));
    }
    let (mut set, mut ended, mut concerned) = (Vec::new(), Vec::new(), 0);
    for (encoded, level) in datasets {
        let found = snapshot.locks.on(&encoded, &snapshot)?;
        let its: Vec<&Lock> = found.iter().filter(|lock| lock.what & how.what.bit() != 0).collect();
        concerned += u64::from(how.locks || !its.is_empty());
        if its.is_empty() != how.locks {
            continue;
        }
        journal.ranges().check_may(&encoded, &snapshot, "lock", &how.session)?;
        if how.locks {
            set.push((level, how.what.bit()));
            continue;
        }
        for lock in its {
            ended.push((level.clone(), lock.what));
            // A lock of several kinds goes on with the others.
            let left = lock.what & !how.what.bit();
            if left != 0 {
                set.push((level.clone(), left));
            }
        }
    }
    if !ended.is_empty() {
        journal.ranges().lock(&ended, false, &how.session)?;
    }
    if !set.is_empty() {
        journal.ranges().lock(&set, true, &how.session)?;
    }
    Ok(concerned)
}

/// The locks in force, by dataset.
pub fn locks(journal: &Journal) -> Result<Vec<DatasetLock>> {
    let (snapshot, identity) = (journal.looks().snapshot()?, &journal.env().identity);
    let mut all = Vec::new();
    for level in snapshot.locks.named() {
        let encoded = encoded(&level);
        let mut kinds: Vec<DatasetLock> = Vec::new();
        for lock in &*snapshot.locks.on(&encoded, &snapshot)? {
            kinds.extend(lock.kinds().map(|what| DatasetLock {
                dataset: request_of(&level),
                what,
                by: identity.user_name(lock.made.user),
                since: lock.made.time,
            }));
        }
        kinds.sort_by_key(|lock| lock.what);
        all.extend(kinds);
    }
    Ok(all)
}

/// A dataset as a request names it.
fn request_of(level: &Level) -> String {
    let present = level.names.iter().zip(&level.values).filter(|(_, value)| !value.is_absent());
    present.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

fn encoded(level: &Level) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_level(level, &mut bytes);
    bytes
}

/// Whether a selection of whole datasets selects that with a first level.
fn selects(selection: &Selection, level: &Level) -> bool {
    let none: Names = [].into();
    let Some(matcher) = selection.for_shape([&level.names, &none, &none]) else { return false };
    matcher.constraints[0].iter().zip(&level.values).all(|(constraint, value)| match constraint {
        Constraint::Any => true,
        constraint => constraint.matches(value),
    })
}

/// Invalid for a keyword below the first level of keys, also one that the schema does not name.
fn check_shape(selection: &Selection, names: [&Names; LEVELS]) -> Result<()> {
    let matcher = selection.for_shape(names);
    let matcher = matcher.ok_or_else(|| Error::internal("a key was selected that does not match"))?;
    for (names, constraints) in names.iter().zip(&matcher.constraints).skip(1) {
        let limited =
            names.iter().zip(constraints).find(|(_, constraint)| !matches!(constraint, Constraint::Any));
        if let Some((name, _)) = limited {
            return Err(too_deep(name));
        }
    }
    Ok(())
}

fn too_deep(keyword: &str) -> Error {
    Error::invalid(format!("{keyword} stands below the first level of keys: a lock takes whole datasets"))
        .with_hint("name keywords of the first level; schema show prints them")
}
