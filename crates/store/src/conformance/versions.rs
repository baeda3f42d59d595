//! Versions of the whole store: reading it as it was.

use fieldstone_core::Result;
use fieldstone_journal::Session;

use super::*;

fn at(harness: &dyn Harness, version: &str) -> Result<Store> {
    harness.open(1, &Opening { at: Some(version.to_owned()), ..Opening::default() })
}

/// An older version lists and reads as it was, from any process, and is not written.
pub fn version_reads_as_it_was(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    put(&a, "run=a,variable=t", b"one")?;
    flush(harness, &a)?;
    let first = a.version()?;
    assert_eq!(first, b.version()?, "processes that see the same name it the same");
    put(&b, "run=a,variable=t", b"two")?;
    put(&b, "run=b,variable=t", b"new")?;
    flush(harness, &b)?;
    let second = a.version()?;
    assert_ne!(first, second);
    put(&a, "run=a,variable=t", b"three")?;
    flush(harness, &a)?;
    let old = at(harness, &first)?;
    assert_eq!((get(&old, "run=a,variable=t")?, count_all(&old)?), (b"one".to_vec(), 1));
    assert_eq!(old.version()?, first);
    let middle = at(harness, &second)?;
    assert_eq!(get(&middle, "run=a,variable=t")?, b"two");
    assert_eq!((listed(&middle, "")?.len(), count_all(&middle)?), (2, 3));
    put(&a, "run=c,variable=t", b"later")?;
    flush(harness, &a)?;
    old.refresh()?;
    assert_eq!(count_all(&old)?, 1);
    let denied =
        fails("archiving into an older version", ErrorKind::Denied, put(&old, "run=z,variable=t", b"x"));
    names(&denied, "older version");
    Ok(())
}

/// Versions stay readable while the writers merge their segments.
pub fn version_survives_merges(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let mut versions = Vec::new();
    for i in 0..40 {
        let store = if i % 3 == 0 { &b } else { &a };
        put(store, "run=a,variable=t", format!("value {i}").as_bytes())?;
        put(store, &format!("run=a,variable=u,step={i}"), b"x")?;
        flush(harness, store)?;
        versions.push(a.version()?);
    }
    for (i, version) in versions.iter().enumerate() {
        let old = at(harness, version)?;
        assert_eq!(get(&old, "run=a,variable=t")?, format!("value {i}").as_bytes());
        assert_eq!(listed(&old, "variable=u")?.len(), i + 1);
        assert_eq!(count_all(&old)?, 2 * i + 2);
    }
    Ok(())
}

/// A version of another store, and a text that is none, are refused.
pub fn version_of_another_store(harness: &dyn Harness) -> Result<()> {
    let a = open(harness, 0)?;
    put(&a, "run=a,variable=t", b"one")?;
    flush(harness, &a)?;
    fails("another store's version", ErrorKind::NotFound, at(harness, &harness.foreign_version()));
    let later = harness.later_version(&a.version()?)?;
    fails("a version yet to come", ErrorKind::NotFound, at(harness, &later));
    for text in ["", "v", "nonsense", &a.version()?[..5]] {
        let invalid = fails("no version", ErrorKind::Invalid, at(harness, text));
        names(&invalid, text);
    }
    Ok(())
}

/// A version from before a decision does not show what the decision made visible.
pub fn version_holds_decisions(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    put_in(&b, "run=a,variable=t", b"new", Some(id))?;
    b.flush(&Session::from(id))?;
    harness.settle();
    let before = a.version()?;
    a.decide(id, true, &Session::default())?;
    harness.settle();
    let after = a.version()?;
    for i in 0..5 {
        put(&a, &format!("run=a,variable=u,step={i}"), b"x")?;
        flush(harness, &a)?;
    }
    assert_eq!(count_all(&at(harness, &before)?)?, 0);
    assert_eq!(count_all(&at(harness, &after)?)?, 1);
    assert_eq!(get(&at(harness, &after)?, "run=a,variable=t")?, b"new");
    Ok(())
}
