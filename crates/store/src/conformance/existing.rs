//! Archiving under a key that has a field, if that is to be an error.

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_journal::Session;

use super::*;

const KEY: &str = "run=a,variable=t,step=0";
const OTHER: &str = "run=a,variable=t,step=1";

fn options() -> ArchiveOptions {
    ArchiveOptions { if_exists: Some(IfExists::Error), ..ArchiveOptions::default() }
}

fn archive_with(store: &Store, key: &str, value: Value<'_>, options: &ArchiveOptions) -> Result<()> {
    with_key(key, |pairs| store.archive(pairs, value, options))
}

fn whole(store: &Store, key: &str, value: f64) -> Result<()> {
    let data = doubles([value; 10]);
    archive_with(store, key, Value::Array { data: &data, dtype: DType::F8, shape: &[10] }, &options())
}

fn piece_with(store: &Store, start: u64, count: u64, options: &ArchiveOptions) -> Result<()> {
    let data = doubles((0..count).map(|_| 1.0));
    let value =
        Value::Piece { data: &data, dtype: DType::F8, start: &[start], count: &[count], shape: &[10] };
    archive_with(store, KEY, value, options)
}

fn piece(store: &Store, start: u64, count: u64) -> Result<()> {
    piece_with(store, start, count, &options())
}

fn refused<T: std::fmt::Debug>(what: &str, outcome: Result<T>) {
    let error = fails(what, ErrorKind::Conflict, outcome);
    names(&error, "step=0");
}

/// Whole fields, pieces whose box is covered, and what this handle archived and did not flush.
pub fn what_is_there_is_refused(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    whole(&a, KEY, 1.0)?;
    refused("twice before a flush", whole(&a, KEY, 2.0));
    refused("a piece of an unflushed field", piece(&a, 0, 2));
    flush(harness, &a)?;
    for store in [&a, &b] {
        refused("a whole field", whole(store, KEY, 2.0));
        refused("bytes", archive_with(store, KEY, Value::Bytes(b"x"), &options()));
        refused("a piece", piece(store, 0, 2));
        let spec = FieldSpec { dtype: DType::F8, shape: &[10], fill: None, chunks: None };
        refused("a created field", with_key(KEY, |pairs| store.create_field(pairs, &spec, &options())));
        whole(store, OTHER, 3.0)?;
        store.discard(&Session::default())?;
    }
    // Another field of the call is not taken either.
    let data = doubles([4.0; 10]);
    let value = Value::Array { data: &data, dtype: DType::F8, shape: &[10] };
    let many: Vec<Vec<(&str, &str)>> =
        ["1", "0"].map(|step| vec![("run", "a"), ("variable", "t"), ("step", step)]).into();
    let items: Vec<(&Pairs<'_>, Value<'_>)> = many.iter().map(|key| (&key[..], value)).collect();
    refused("one of many", a.archive_many(&items, &options()));
    assert_eq!(a.unflushed(), 0);
    let other = [("run", "a"), ("variable", "u"), ("step", "0")];
    refused(
        "the same twice in a call",
        a.archive_many(&[(&other[..], value), (&other[..], value)], &options()),
    );
    assert_eq!(a.unflushed(), 0);
    // A caller that does not ask for it makes a newer version, and a removed field does not exist.
    put(&a, KEY, b"newer")?;
    flush(harness, &a)?;
    a.remove(&request(KEY)?, &RemoveOptions::default())?;
    flush(harness, &a)?;
    whole(&b, KEY, 5.0)?;
    flush(harness, &b)?;
    assert_eq!(listed(&a, "")?.len(), 1);
    Ok(())
}

/// Others may flush between the call and the flush; the flush then writes nothing, and all of it waits on.
pub fn what_others_flushed_meanwhile_is_refused(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    whole(&a, KEY, 1.0)?;
    whole(&a, OTHER, 1.0)?;
    put(&b, KEY, b"first")?;
    flush(harness, &b)?;
    refused("the flush", a.flush(&Session::default()));
    refused("the next one", a.flush(&Session::default()));
    assert_eq!(a.unflushed(), 2);
    assert_eq!(get(&b, KEY)?, b"first");
    assert_eq!(listed(&b, "")?.len(), 1);
    a.discard(&Session::default())?;
    whole(&a, OTHER, 1.0)?;
    flush(harness, &a)?;
    assert_eq!(listed(&b, "")?.len(), 2);
    Ok(())
}

/// Pieces of several writers make one field; where each element is there, a piece is refused.
pub fn a_restart_goes_on_where_the_dead_attempt_left_off(harness: &dyn Harness) -> Result<()> {
    let attempt = |process, name: &str| {
        harness.open(process, &Opening { attempt: name.to_owned(), ..Opening::default() })
    };
    let (a, b) = (attempt(0, "one")?, attempt(1, "one")?);
    piece(&a, 0, 4)?;
    refused("the same piece", piece(&a, 1, 2));
    flush(harness, &a)?;
    refused("a part of a piece", piece(&b, 0, 3));
    // It overlaps, and reaches beyond.
    piece(&b, 2, 4)?;
    flush(harness, &b)?;
    refused("what two pieces cover", piece(&a, 1, 5));
    refused("a whole field", whole(&a, KEY, 1.0));
    let plain = open(harness, 2)?;
    refused("without an attempt", piece(&plain, 0, 4));
    // The new attempt hides what the old one did not finish, so nothing of it is there.
    let again = attempt(2, "two")?;
    piece(&again, 0, 4)?;
    flush(harness, &again)?;
    refused("its own piece", piece(&again, 0, 2));
    piece(&again, 4, 6)?;
    flush(harness, &again)?;
    // A whole field exists for every attempt.
    refused("a third one", piece(&attempt(0, "three")?, 0, 4));
    Ok(())
}

/// Within a transaction: what was flushed into it, and what others made visible before it is decided.
pub fn refusals_in_transactions(harness: &dyn Harness) -> Result<()> {
    let (a, b) = (open(harness, 0)?, open(harness, 1)?);
    let id = a.begin()?;
    let inside = ArchiveOptions { session: Session::from(id), ..options() };
    piece_with(&a, 0, 5, &inside)?;
    a.flush(&Session::from(id))?;
    harness.settle();
    refused("what was flushed into it", piece_with(&b, 0, 5, &inside));
    piece_with(&b, 5, 5, &inside)?;
    b.flush(&Session::from(id))?;
    harness.settle();
    a.decide(id, true, &Session::default())?;
    let id = a.begin()?;
    let inside = ArchiveOptions { session: Session::from(id), ..options() };
    let data = doubles([1.0; 10]);
    let value = Value::Array { data: &data, dtype: DType::F8, shape: &[10] };
    archive_with(&a, OTHER, value, &inside)?;
    put(&b, OTHER, b"first")?;
    flush(harness, &b)?;
    fails("the decision", ErrorKind::Conflict, a.decide(id, true, &Session::default()));
    a.decide(id, false, &Session::default())?;
    assert_eq!(get(&b, OTHER)?, b"first");
    Ok(())
}
