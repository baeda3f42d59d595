//! Removal: from a flush on a key has no field, until one is archived again.

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_journal::Session;

use super::*;

const KEY: &str = "run=a,variable=t,step=0";

fn remove(store: &Store, text: &str) -> Result<u64> {
    remove_in(store, text, None)
}

fn remove_in(store: &Store, text: &str, transaction: Option<Id>) -> Result<u64> {
    store.remove(&request(text)?, &RemoveOptions { session: Session::from(transaction) })
}

/// The field under a key as the store now has it.
fn field(store: &Store, key: &str) -> Result<crate::Field> {
    with_key(key, |pairs| store.get(pairs, &ReadOptions::default()))
}

/// Nothing shows that there was a field.
fn gone(store: &Store, key: &str) -> Result<()> {
    fails("a get", ErrorKind::NotFound, get(store, key));
    fails("a retrieve", ErrorKind::NotFound, store.retrieve(&request(key)?, &RetrieveOptions::default()));
    assert_eq!(listed(store, key)?, Vec::<String>::new());
    let lenient = RetrieveOptions { strict: false, session: Session::default() };
    assert_eq!(store.retrieve(&request(key)?, &lenient)?.len(), 0);
    assert_eq!(store.stats(&request(key)?)?.fields, 0);
    for depth in 1..=3 {
        let options = ListOptions { depth, ..ListOptions::default() };
        assert_eq!(list_with(store, key, &options)?.len(), 0, "depth {depth}");
    }
    Ok(())
}

/// Every process sees a removal from its flush on; older versions still show the removed field.
pub fn removal_counts_at_the_flush(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    put(&a, KEY, b"one")?;
    put(&a, "run=a,variable=u,step=0", b"kept")?;
    flush(harness, &a)?;
    let (before, opened) = (a.version()?, field(&b, KEY)?);
    assert_eq!(remove(&a, KEY)?, 1);
    assert_eq!((get(&b, KEY)?, get(&a, KEY)?), (b"one".to_vec(), b"one".to_vec()));
    assert_eq!(a.unflushed(), 1);
    flush(harness, &a)?;
    for store in [&a, &b, &open(harness, 2)?] {
        gone(store, KEY)?;
        assert_eq!(listed(store, "")?.len(), 1);
        assert_eq!(get(store, "run=a,variable=u,step=0")?, b"kept");
        let axes = store.axes(&Request::new(), &ReadOptions::default())?;
        let variables: Vec<String> = axes
            .iter()
            .filter(|(k, _)| &**k == "variable")
            .flat_map(|(_, v)| v)
            .map(ToString::to_string)
            .collect();
        assert_eq!(variables, ["u"]);
        assert_eq!(store.stats(&Request::new())?.masked, 1);
        let options = ListOptions { masked: true, ..ListOptions::default() };
        let all: Vec<ListEntry> = store.list(&Request::new(), &options)?.collect::<Result<_>>()?;
        let shown: Vec<(u64, bool)> = all.iter().map(|e| (e.nbytes, e.masked)).collect();
        assert_eq!(shown, [(3, true), (4, false)]);
    }
    assert_eq!(opened.read()?, b"one", "an opened field stays as it was");
    let old = harness.open(1, &Opening { at: Some(before), ..Opening::default() })?;
    assert_eq!((get(&old, KEY)?, listed(&old, "")?.len()), (b"one".to_vec(), 2));
    assert!(a.verify(&Request::new())?.ok());
    Ok(())
}

/// A field archived after a removal is there, with nothing of the field before; several times over.
pub fn a_later_archive_brings_the_key_back(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    for round in 0..6u8 {
        let (writer, remover) = if round % 2 == 0 { (&a, &b) } else { (&b, &a) };
        put(writer, KEY, &[round])?;
        flush(harness, writer)?;
        assert_eq!(get(remover, KEY)?, [round]);
        assert_eq!(remove(remover, "run=a")?, 1);
        flush(harness, remover)?;
        gone(writer, KEY)?;
        assert_eq!(remove(writer, "run=a")?, 0, "there is nothing left to remove");
    }
    put(&a, KEY, b"back")?;
    flush(harness, &a)?;
    assert_eq!((get(&b, KEY)?, count_all(&b)?), (b"back".to_vec(), 7));
    Ok(())
}

/// Pieces of before a removal stay hidden; pieces after it make a new field.
pub fn removal_hides_older_pieces(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let piece = |store: &Store, start: u64, values: &[f64]| {
        let value = Value::Piece {
            data: &doubles(values.iter().copied()),
            dtype: DType::F8,
            start: &[start],
            count: &[values.len() as u64],
            shape: &[4],
        };
        with_key(KEY, |pairs| store.archive(pairs, value, &ArchiveOptions::default()))
    };
    piece(&a, 0, &[1.0, 1.0, 1.0, 1.0])?;
    flush(harness, &a)?;
    remove(&b, KEY)?;
    flush(harness, &b)?;
    gone(&a, KEY)?;
    piece(&a, 1, &[2.0, 2.0])?;
    flush(harness, &a)?;
    let found = field(&b, KEY)?;
    assert!(!found.is_complete()?);
    fails("a strict read", ErrorKind::NotFound, found.read());
    let numbers = found.lenient().read()?;
    assert!(f64::from_ne_bytes(numbers[..8].try_into().unwrap_or_default()).is_nan());
    piece(&b, 0, &[3.0])?;
    piece(&b, 3, &[4.0])?;
    flush(harness, &b)?;
    assert_eq!(field(&a, KEY)?.read()?, doubles([3.0, 2.0, 2.0, 4.0]));
    Ok(())
}

/// In a transaction a removal is seen by those who name it, and by all at the commit.
pub fn removal_in_a_transaction(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    for step in 0..4 {
        put(&a, &format!("run=a,variable=t,step={step}"), b"x")?;
    }
    flush(harness, &a)?;
    let id = a.begin()?;
    assert_eq!(remove_in(&b, "step=0/1", Some(id))?, 2);
    put_in(&b, "run=a,variable=t,step=1", b"y", Some(id))?;
    b.flush(&Session::from(id))?;
    harness.settle();
    assert_eq!((listed(&a, "")?.len(), get(&a, "run=a,variable=t,step=1")?), (4, b"x".to_vec()));
    let inside = ListOptions { session: Session::from(id), ..ListOptions::default() };
    assert_eq!(list_with(&a, "", &inside)?.len(), 3);
    // The transaction may remove a field that it archived itself.
    assert_eq!(remove_in(&a, "step=1/2", Some(id))?, 2);
    a.decide(id, true, &Session::default())?;
    harness.settle();
    for store in [&a, &b] {
        assert_eq!(listed(store, "")?, ["{run=a}{variable=t}{step=3}"]);
    }
    let id = a.begin()?;
    remove_in(&a, "step=3", Some(id))?;
    a.flush(&Session::from(id))?;
    a.decide(id, false, &Session::default())?;
    harness.settle();
    assert_eq!(listed(&b, "")?.len(), 1);
    Ok(())
}

/// Within a batch the order of calls counts; unflushed fields are removed like others.
pub fn removal_within_a_batch(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    put(&a, KEY, b"never seen")?;
    assert_eq!(remove(&a, KEY)?, 1);
    flush(harness, &a)?;
    gone(&b, KEY)?;
    put(&a, KEY, b"one")?;
    flush(harness, &a)?;
    remove(&a, KEY)?;
    put(&a, KEY, b"two")?;
    flush(harness, &a)?;
    assert_eq!(get(&b, KEY)?, b"two");
    remove(&a, KEY)?;
    a.discard(&Session::default())?;
    flush(harness, &a)?;
    assert_eq!(get(&b, KEY)?, b"two");
    Ok(())
}

/// Removals last while the writers merge their segments.
pub fn removal_survives_merges(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let mut there = std::collections::BTreeSet::new();
    for i in 0..40 {
        let store = if i % 3 == 0 { &b } else { &a };
        put(store, &format!("run=a,variable=t,step={i}"), b"x")?;
        there.insert(i);
        let old = i * 7 % 23;
        if there.remove(&old) {
            remove(store, &format!("step={old}"))?;
        }
        flush(harness, store)?;
        assert_eq!(listed(&a, "")?.len(), there.len(), "after flush {i}");
    }
    let left: Vec<String> =
        there.iter().map(|step| format!("{{run=a}}{{variable=t}}{{step={step}}}")).collect();
    assert_eq!(listed(&open(harness, 2)?, "")?, left);
    let steps = open(harness, 2)?.axes(&Request::new(), &ReadOptions::default())?;
    assert_eq!(steps.last().map(|(_, values)| values.len()), Some(left.len()));
    Ok(())
}

/// A removal of one version counts only while that version is the newest.
pub fn removal_of_a_version(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let other = "run=a,variable=u,step=0";
    put(&a, KEY, b"one")?;
    put(&a, other, b"one")?;
    flush(harness, &a)?;
    let fields = [field(&a, KEY)?, field(&a, other)?];
    put(&b, KEY, b"two")?;
    flush(harness, &b)?;
    a.remove_fields(&fields, &RemoveOptions::default())?;
    flush(harness, &a)?;
    for store in [&a, &b] {
        assert_eq!(get(store, KEY)?, b"two", "a version that nobody asked to remove");
        gone(store, other)?;
    }
    // Flushed by another process after this one looked and before it flushed: nobody sees it removed.
    let newest = [field(&a, KEY)?];
    let id = a.begin()?;
    a.remove_fields(&newest, &RemoveOptions { session: Session::from(id) })?;
    put(&b, KEY, b"three")?;
    b.flush(&Session::default())?;
    a.decide(id, true, &Session::default())?;
    harness.settle();
    assert_eq!((get(&a, KEY)?, get(&b, KEY)?), (b"three".to_vec(), b"three".to_vec()));
    // One's own, not flushed, is newer too.
    let newest = [field(&a, KEY)?];
    put(&a, KEY, b"four")?;
    a.remove_fields(&newest, &RemoveOptions::default())?;
    flush(harness, &a)?;
    assert_eq!(get(&b, KEY)?, b"four");
    let newest = [field(&b, KEY)?];
    b.remove_fields(&newest, &RemoveOptions::default())?;
    b.remove_fields(&newest, &RemoveOptions::default())?;
    flush(harness, &b)?;
    gone(&a, KEY)?;
    assert!(a.verify(&Request::new())?.ok());
    Ok(())
}

/// Removing everything, from a store that is read, or with a wrong keyword, is refused.
pub fn removals_that_are_refused(harness: &dyn Harness) -> Result<()> {
    let a = open(harness, 0)?;
    put(&a, KEY, b"one")?;
    flush(harness, &a)?;
    fails("removing everything", ErrorKind::Invalid, a.remove(&Request::new(), &RemoveOptions::default()));
    fails("whatever step", ErrorKind::Invalid, remove(&a, "step=*"));
    fails("a wrong value", ErrorKind::Invalid, remove(&a, "step=x"));
    let reader = harness.open(1, &Opening { access: Access::Read, ..Opening::default() })?;
    fails("removing by a reader", ErrorKind::Denied, remove(&reader, "run=a"));
    let newest = [field(&reader, KEY)?];
    let refused = reader.remove_fields(&newest, &RemoveOptions::default());
    fails("removing by a reader", ErrorKind::Denied, refused);
    assert_eq!(a.unflushed(), 0);
    Ok(())
}
