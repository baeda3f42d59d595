//! Transactions: what becomes visible together.

use fieldstone_core::Result;
use fieldstone_journal::Session;

use super::*;

/// Archives and flushes one field into a transaction.
fn join(store: &Store, harness: &dyn Harness, key: &str, value: &[u8], id: Id) -> Result<()> {
    put_in(store, key, value, Some(id))?;
    store.flush(&Session::from(id))?;
    harness.settle();
    Ok(())
}

/// Only sessions that name its id see the content of an undecided transaction.
pub fn prepared_is_invisible(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    put(&a, "run=a,variable=t", b"old")?;
    flush(harness, &a)?;
    let id = a.begin()?;
    put_in(&a, "run=a,variable=t", b"new", Some(id))?;
    put_in(&a, "run=a,variable=u", b"more", Some(id))?;
    assert_eq!(get(&a, "run=a,variable=t")?, b"old");
    a.flush(&Session::from(id))?;
    harness.settle();
    for store in [&a, &b, &open(harness, 2)?] {
        assert_eq!(get(store, "run=a,variable=t")?, b"old");
        assert_eq!(listed(store, "")?.len(), 1);
        assert_eq!(get_in(store, "run=a,variable=t", Some(id))?, b"new");
        let own = ListOptions { session: Session::from(id), ..ListOptions::default() };
        assert_eq!(list_with(store, "", &own)?.len(), 2);
        let fields = store.retrieve(
            &request("run=a,variable=u/t")?,
            &RetrieveOptions { strict: true, session: Session::from(id) },
        )?;
        assert_eq!((fields.get(0)?.read()?, fields.get(1)?.read()?), (b"more".to_vec(), b"new".to_vec()));
        let axes = store.axes(&Request::new(), &ReadOptions { session: Session::from(id) })?;
        assert_eq!(axes.iter().map(|(_, v)| v.len()).collect::<Vec<_>>(), [1, 2]);
        let axes = store.axes(&Request::new(), &ReadOptions::default())?;
        assert_eq!(axes.iter().map(|(_, v)| v.len()).collect::<Vec<_>>(), [1, 1]);
        let open: Vec<(Id, u64)> = store.status()?.transactions.iter().map(|t| (t.id, t.fields)).collect();
        assert_eq!(open, [(id, 2)]);
    }
    Ok(())
}

/// One decision shows what several processes flushed, all of it in one moment.
pub fn decision_shows_all_at_once(harness: &dyn Harness) -> Result<()> {
    let opener = open(harness, 0)?;
    let reader = open(harness, 1)?;
    let id = opener.begin()?;
    for process in 0..4 {
        let joined = open(harness, process)?;
        for flush in 0..3 {
            join(&joined, harness, &format!("run=r{process},variable=t,step={flush}"), b"x", id)?;
        }
    }
    assert_eq!(listed(&reader, "")?.len(), 0);
    put_in(&opener, "run=opener,variable=t", b"last", Some(id))?;
    opener.decide(id, true, &Session::default())?;
    harness.settle();
    assert_eq!(listed(&reader, "")?.len(), 13);
    assert_eq!(listed(&opener, "")?.len(), 13);
    assert_eq!(get(&reader, "run=opener,variable=t")?, b"last");
    assert!(reader.status()?.transactions.is_empty());
    Ok(())
}

/// An aborted transaction is never visible, with or without its id.
pub fn abort_shows_nothing(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    put(&a, "run=a,variable=t", b"old")?;
    flush(harness, &a)?;
    let id = a.begin()?;
    join(&b, harness, "run=a,variable=t", b"never", id)?;
    put_in(&a, "run=a,variable=u", b"never", Some(id))?;
    a.decide(id, false, &Session::default())?;
    harness.settle();
    for store in [&a, &b] {
        assert_eq!(get(store, "run=a,variable=t")?, b"old");
        assert_eq!(get_in(store, "run=a,variable=t", Some(id))?, b"old");
        assert_eq!(count_all(store)?, 1);
        assert!(store.status()?.transactions.is_empty());
    }
    assert_eq!(a.unflushed(), 0);
    Ok(())
}

/// A flush into a decided transaction is a Conflict and never visible.
pub fn late_flush_conflicts(harness: &dyn Harness) -> Result<()> {
    for commit in [true, false] {
        let (a, b) = (open(harness, 0)?, open(harness, 1)?);
        let id = a.begin()?;
        join(&a, harness, &format!("run={commit},variable=t"), b"in time", id)?;
        a.decide(id, commit, &Session::default())?;
        harness.settle();
        put_in(&b, &format!("run={commit},variable=late"), b"late", Some(id))?;
        let late = fails("a late flush", ErrorKind::Conflict, b.flush(&Session::from(id)));
        names(&late, &id.to_string());
        harness.settle();
        let seen = listed(&open(harness, 2)?, &format!("run={commit}"))?;
        assert_eq!(seen.len(), usize::from(commit));
        b.discard(&Session::from(id))?;
        // The handle goes on.
        put(&b, &format!("run={commit},variable=after"), b"x")?;
        flush(harness, &b)?;
        assert_eq!(get(&a, &format!("run={commit},variable=after"))?, b"x");
    }
    Ok(())
}

/// Deciding again the same way changes nothing; the other way is a Conflict.
pub fn decided_twice(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    for commit in [true, false] {
        let id = a.begin()?;
        join(&a, harness, &format!("run={commit},variable=t"), b"x", id)?;
        a.decide(id, commit, &Session::default())?;
        harness.settle();
        a.decide(id, commit, &Session::default())?;
        b.decide(id, commit, &Session::default())?;
        fails("the other decision", ErrorKind::Conflict, b.decide(id, !commit, &Session::default()));
        fails("the other decision", ErrorKind::Conflict, a.decide(id, !commit, &Session::default()));
        harness.settle();
        assert_eq!(listed(&b, &format!("run={commit}"))?.len(), usize::from(commit));
    }
    Ok(())
}

/// The fields of a transaction count as new at its decision: over what was flushed before it, under
/// what was flushed after it.
pub fn decision_counts_as_the_time_of_its_fields(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    join(&a, harness, "run=a,variable=t", b"prepared first", id)?;
    put(&b, "run=a,variable=t", b"flushed second")?;
    flush(harness, &b)?;
    assert_eq!(get(&a, "run=a,variable=t")?, b"flushed second");
    a.decide(id, true, &Session::default())?;
    harness.settle();
    for store in [&a, &b] {
        assert_eq!(get(store, "run=a,variable=t")?, b"prepared first");
    }
    put(&b, "run=a,variable=t", b"third")?;
    flush(harness, &b)?;
    for store in [&a, &b] {
        assert_eq!(get(store, "run=a,variable=t")?, b"third");
        assert_eq!((listed(store, "")?.len(), count_all(store)?), (1, 3));
    }
    Ok(())
}

/// Flushes outside, and other transactions of the same handle, are not part of a transaction.
pub fn transactions_do_not_mix(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let (one, two) = (a.begin()?, a.begin()?);
    assert_ne!(one, two);
    put_in(&a, "run=a,variable=one", b"1", Some(one))?;
    put_in(&a, "run=a,variable=two", b"2", Some(two))?;
    put(&a, "run=a,variable=none", b"0")?;
    flush(harness, &a)?;
    assert_eq!((listed(&b, "")?.len(), a.unflushed()), (1, 2));
    a.flush(&Session::from(one))?;
    a.flush(&Session::from(two))?;
    harness.settle();
    fails("the other transaction's field", ErrorKind::NotFound, get_in(&b, "run=a,variable=two", Some(one)));
    a.decide(two, true, &Session::default())?;
    harness.settle();
    assert_eq!(listed(&b, "")?, ["{run=a}{variable=none}{}", "{run=a}{variable=two}{}"]);
    a.decide(one, false, &Session::default())?;
    harness.settle();
    assert_eq!(listed(&b, "")?.len(), 2);
    Ok(())
}

/// Within a transaction the newest of several flushes is seen, by all processes and after the
/// decision alike.
pub fn own_transaction_sees_the_newest(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    let mut last = String::new();
    for (i, store) in [&a, &b, &a, &b, &b, &a].into_iter().enumerate() {
        last = format!("value {i}");
        join(store, harness, "run=a,variable=t", last.as_bytes(), id)?;
        for reader in [&a, &b] {
            assert_eq!(get_in(reader, "run=a,variable=t", Some(id))?, last.as_bytes(), "flush {i}");
        }
    }
    b.decide(id, true, &Session::default())?;
    harness.settle();
    for reader in [&a, &b] {
        assert_eq!(get(reader, "run=a,variable=t")?, last.as_bytes());
    }
    Ok(())
}

/// A transaction committed without any field is decided all the same.
pub fn empty_commit_is_final(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    a.decide(id, true, &Session::default())?;
    harness.settle();
    put_in(&b, "run=a,variable=t", b"late", Some(id))?;
    fails("a late flush", ErrorKind::Conflict, b.flush(&Session::from(id)));
    harness.settle();
    assert_eq!(listed(&a, "")?.len(), 0);
    Ok(())
}
