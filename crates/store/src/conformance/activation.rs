//! Transactions that become visible kind by kind.

use fieldstone_core::Result;
use fieldstone_format::log::kinds::{FIELDS, TAG};
use fieldstone_journal::Session;

use super::*;

/// Flushes a field into a transaction.
fn join(harness: &dyn Harness, store: &Store, key: &str, value: &[u8], id: Id) -> Result<()> {
    put_in(store, key, value, Some(id))?;
    store.flush(&Session::from(id))?;
    harness.settle();
    Ok(())
}

fn decide(harness: &dyn Harness, store: &Store, id: Id, on: u32, off: u32) -> Result<()> {
    store.set_active_kinds(id, on, off, &Session::default())?;
    harness.settle();
    Ok(())
}

/// Kinds become visible one by one, for content prepared by then; the transaction stays open for more.
pub fn kinds_become_visible_one_by_one(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    join(harness, &b, "run=a,variable=t", b"b", id)?;
    decide(harness, &a, id, TAG, 0)?;
    for store in [&a, &b] {
        assert_eq!(listed(store, "")?.len(), 0);
        assert_eq!(get_in(store, "run=a,variable=t", Some(id))?, b"b");
        let open: Vec<(Id, u32)> = store.status()?.transactions.iter().map(|t| (t.id, t.kinds)).collect();
        assert_eq!(open, [(id, TAG)]);
    }
    // The decision flushes the unflushed content of the opener; it does not cover content flushed later.
    put_in(&a, "run=a,variable=u", b"a", Some(id))?;
    decide(harness, &a, id, FIELDS, 0)?;
    join(harness, &b, "run=a,variable=late", b"b", id)?;
    for store in [&a, &b] {
        assert_eq!(listed(store, "")?, ["{run=a}{variable=t}{}", "{run=a}{variable=u}{}"]);
        assert_eq!(get_in(store, "run=a,variable=late", Some(id))?, b"b");
    }
    a.decide(id, true, &Session::default())?;
    harness.settle();
    for store in [&a, &b] {
        assert_eq!(listed(store, "")?.len(), 3);
        assert!(store.status()?.transactions.is_empty());
    }
    put_in(&b, "run=a,variable=t", b"too late", Some(id))?;
    fails("a late flush", ErrorKind::Conflict, b.flush(&Session::from(id)));
    b.discard(&Session::from(id))
}

/// A kind that is switched off is gone for all but those who name the transaction, also after the
/// commit; switched on again it counts as new.
pub fn kinds_are_switched_off_and_on_again(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    put(&b, "run=a,variable=t", b"before")?;
    flush(harness, &b)?;
    let id = a.begin()?;
    join(harness, &a, "run=a,variable=t", b"prepared", id)?;
    a.decide(id, true, &Session::default())?;
    harness.settle();
    let committed = a.version()?;
    decide(harness, &a, id, 0, FIELDS)?;
    for store in [&a, &b] {
        assert_eq!(get(store, "run=a,variable=t")?, b"before");
        assert_eq!(get_in(store, "run=a,variable=t", Some(id))?, b"prepared");
        assert!(store.status()?.transactions.is_empty(), "it is committed all the same");
    }
    put(&b, "run=a,variable=t", b"between")?;
    flush(harness, &b)?;
    decide(harness, &a, id, FIELDS, TAG)?;
    for store in [&a, &b] {
        assert_eq!(get(store, "run=a,variable=t")?, b"prepared");
    }
    // Nothing changes by what is so already, and an older version shows what was so then.
    let version = a.version()?;
    decide(harness, &a, id, FIELDS, TAG)?;
    assert_eq!(a.version()?, version);
    let then = harness.open(2, &Opening { at: Some(committed), ..Opening::default() })?;
    assert_eq!(get(&then, "run=a,variable=t")?, b"prepared");
    put_in(&b, "run=a,variable=t", b"too late", Some(id))?;
    fails("a late flush", ErrorKind::Conflict, b.flush(&Session::from(id)));
    fails(
        "an abort of a committed transaction",
        ErrorKind::Conflict,
        a.decide(id, false, &Session::default()),
    );
    Ok(())
}

/// A later decision takes effect from its own position on, an earlier one from its own.
pub fn what_is_covered_later_is_newer(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    join(harness, &a, "run=a,variable=first", b"prepared", id)?;
    decide(harness, &a, id, FIELDS, 0)?;
    for variable in ["first", "second"] {
        put(&b, &format!("run=a,variable={variable}"), b"between")?;
    }
    flush(harness, &b)?;
    join(harness, &a, "run=a,variable=second", b"prepared", id)?;
    a.decide(id, true, &Session::default())?;
    harness.settle();
    for store in [&a, &b] {
        assert_eq!(get(store, "run=a,variable=first")?, b"between");
        assert_eq!(get(store, "run=a,variable=second")?, b"prepared");
    }
    Ok(())
}

/// An abort takes away what was visible by kind, for good.
pub fn an_abort_after_activation_is_final(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    join(harness, &b, "run=a,variable=t", b"x", id)?;
    decide(harness, &a, id, FIELDS | TAG, 0)?;
    assert_eq!(listed(&b, "")?.len(), 1);
    a.decide(id, false, &Session::default())?;
    harness.settle();
    for store in [&a, &b] {
        assert_eq!(listed(store, "")?.len(), 0);
        fails("an aborted field", ErrorKind::NotFound, get_in(store, "run=a,variable=t", Some(id)));
        let refused = fails(
            "what is aborted",
            ErrorKind::Conflict,
            store.set_active_kinds(id, FIELDS, 0, &Session::default()),
        );
        names(&refused, &id.to_string());
    }
    // Also where nothing was prepared yet when it was activated.
    let id = a.begin()?;
    decide(harness, &a, id, FIELDS, 0)?;
    a.decide(id, false, &Session::default())?;
    harness.settle();
    put_in(&b, "run=a,variable=t", b"x", Some(id))?;
    fails("a late flush", ErrorKind::Conflict, b.flush(&Session::from(id)));
    fails("both at once", ErrorKind::Invalid, a.set_active_kinds(a.begin()?, TAG, TAG, &Session::default()));
    Ok(())
}
