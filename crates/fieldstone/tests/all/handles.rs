//! The handles of Rust: stores, runs and transactions, and their rules, the same in every language.

use fieldstone::catalog::value::ValueType;
use fieldstone::catalog::{Deletion, Query, Values};
use fieldstone::finders::Finder;
use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, Array, ByteOrder, DType, ErrorKind, ListOptions, OpenOptions, Request, Run, Store,
    Target, Value, WriteOptions,
};

fn memory() -> Store {
    fieldstone::open("memory:", &OpenOptions::default()).unwrap()
}

fn count(store: &Store) -> usize {
    store.list(&Request::new(), &ListOptions::default()).unwrap().count()
}

fn bytes(elements: &[f64]) -> Vec<u8> {
    elements.iter().flat_map(|x| x.to_ne_bytes()).collect()
}

/// A run with a variable `t` of four doubles.
fn run(store: &Store) -> Run {
    let run = store.create_run("r").create().unwrap();
    run.create_variable("t", DType::F8, &[4]).dims(["x"]).create().unwrap();
    run
}

#[track_caller]
fn refused<T: std::fmt::Debug>(outcome: fieldstone::Result<T>, part: &str) {
    let error = outcome.unwrap_err();
    assert!(error.kind() == ErrorKind::Invalid && error.message().contains(part), "{error}");
}

#[test]
fn a_dropped_transaction_is_aborted_and_a_committed_one_stays() {
    let store = memory();
    let key = |step| [("run", "r"), ("variable", "t"), ("step", step)];
    for (step, commit) in [("0", false), ("1", true)] {
        let transaction = store.transaction().unwrap();
        transaction.archive(&key(step), Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
        transaction.flush().unwrap();
        assert_eq!(transaction.list(&Request::new()).unwrap().count(), 1, "its own");
        if commit {
            transaction.commit().unwrap();
            assert_eq!(transaction.state(), "committed");
            refused(transaction.flush(), "is committed");
        }
    }
    assert_eq!(count(&store), 1);
    assert!(store.status().unwrap().transactions.is_empty(), "both are decided");
}

#[test]
fn who_joined_forgets_what_was_not_flushed_and_decides_nothing() {
    let store = memory();
    let opener = store.transaction().unwrap();
    let key = [("run", "r"), ("variable", "t")];
    {
        let joined = store.join_transaction(opener.id());
        joined.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
    }
    assert_eq!((store.unflushed(), opener.state()), (0, "open"));
    {
        let joined = store.join_transaction(opener.id());
        joined.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
        joined.leave(true).unwrap();
    }
    opener.commit().unwrap();
    assert_eq!(count(&store), 1);
}

#[test]
fn a_detached_transaction_can_be_joined_and_committed() {
    let store = memory();
    let id = {
        let transaction = store.transaction().unwrap();
        let key = [("run", "r"), ("variable", "t")];
        transaction.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
        transaction.flush().unwrap();
        transaction.detach()
    };
    store.join_transaction(id).commit().unwrap();
    assert_eq!(count(&store), 1);
}

#[test]
fn what_a_run_of_a_transaction_writes_belongs_to_it() {
    let store = memory();
    let transaction = store.transaction().unwrap();
    let run = transaction.create_run("r").unwrap().param("nx", 4).create().unwrap();
    run.create_variable("t", DType::F8, &[4]).create().unwrap();
    let elements = bytes(&[1.0, 2.0, 3.0, 4.0]);
    let array = Array::new(&elements, DType::F8, &[4]).unwrap();
    run.write("t", Some(0), array, &WriteOptions::default()).unwrap();
    run.annotate("note", "hot", &Target::run()).unwrap();
    transaction.flush().unwrap();
    assert_eq!((count(&store), store.catalog().count(&Query::all()).unwrap()), (0, 0));
    assert!(store.run("r").is_err());
    transaction.commit().unwrap();
    assert_eq!((count(&store), store.catalog().count(&Query::all()).unwrap()), (1, 1));
    assert_eq!(store.run("r").unwrap().info().unwrap().decl.params.len(), 1);
}

#[test]
fn a_write_follows_the_newest_version_of_its_variable() {
    let folder = tempfile::tempdir().unwrap();
    let url = folder.path().join("s").to_str().unwrap().to_owned();
    let open = || fieldstone::open(&url, &OpenOptions::default()).unwrap();
    let whole = |extent: usize| bytes(&vec![1.0; extent]);
    let declare = |run: &Run, version: i64, extent: u64| {
        run.create_variable("t", DType::F8, &[extent]).version(version).create().unwrap();
    };
    let write = |run: &Run, extent: usize| {
        let data = whole(extent);
        run.write("t", Some(0), Array::new(&data, DType::F8, &[extent as u64])?, &WriteOptions::default())
    };
    let first = open();
    let made = run(&first);
    write(&made, 4).unwrap();
    declare(&made, 2, 5);
    refused(write(&made, 4), "has shape (4,), variable t of run r (5,)");
    write(&made, 5).unwrap();
    // An older one that is declared later is not the newest.
    declare(&made, 1, 6);
    write(&made, 5).unwrap();
    first.flush(None).unwrap();
    write(&made, 5).unwrap();

    // Another handle looks before it writes, or declares.
    let second = open();
    let run = second.run("r").unwrap();
    write(&run, 5).unwrap();
    let third = open();
    let run = third.run("r").unwrap();
    run.create_variable("t", DType::F8, &[4]).dims(["x"]).create().unwrap();
    write(&run, 5).unwrap();
    second.discard(None).unwrap();
    third.discard(None).unwrap();

    // In a transaction its own data count, and discarded ones do not.
    let transaction = third.transaction().unwrap();
    let inside = transaction.run("r").unwrap();
    declare(&inside, 3, 7);
    write(&inside, 7).unwrap();
    write(&run, 5).unwrap();
    transaction.abort().unwrap();
    declare(&run, 4, 8);
    write(&run, 8).unwrap();
    third.discard(None).unwrap();
    write(&run, 5).unwrap();
}

#[test]
fn arrays_are_written_as_they_are_declared() {
    let store = memory();
    let run = run(&store);
    let whole = WriteOptions::default();
    let elements = bytes(&[1.0, 2.0, 3.0, 4.0]);
    let write = |dtype: DType, data: &[u8], shape: &[u64], options: &WriteOptions| {
        run.write("t", Some(0), Array::new(data, dtype, shape)?, options)
    };
    refused(write(DType::F4, &[0; 16], &[4], &whole), "has dtype float32, variable t of run r float64");
    refused(write(DType::F8, &elements[..16], &[2], &whole), "has shape (2,), variable t of run r (4,)");
    refused(write(DType::F8, &elements[..8], &[4], &whole), "8 bytes are not an array (4,) of <f8");
    let piece = WriteOptions { start: Some(vec![0]), ..WriteOptions::default() };
    let other = run.write("u", None, Array::new(&elements, DType::F8, &[4]).unwrap(), &piece);
    refused(other, "has no shape to take a piece of");

    // The other byte order is converted.
    let swapped: Vec<u8> = elements.chunks(8).flat_map(|x| x.iter().rev().copied()).collect();
    let order = if DType::F8.byte_order() == ByteOrder::Little { ByteOrder::Big } else { ByteOrder::Little };
    write(DType::F8.with_order(order), &swapped, &[4], &whole).unwrap();
    assert_eq!(run.read("t", Some(0)).unwrap_err().kind(), ErrorKind::NotFound);
    store.flush(None).unwrap();
    assert_eq!(run.read("t", Some(0)).unwrap().read().unwrap(), elements);

    // Pieces make up a whole.
    for start in [0, 2] {
        let part = bytes(&[start as f64, start as f64 + 1.0]);
        let options = WriteOptions { start: Some(vec![start]), ..WriteOptions::default() };
        run.write("t", Some(1), Array::new(&part, DType::F8, &[2]).unwrap(), &options).unwrap();
    }
    store.flush(None).unwrap();
    assert_eq!(run.read("t", Some(1)).unwrap().read().unwrap(), bytes(&[0.0, 1.0, 2.0, 3.0]));
}

#[test]
fn features_are_found_while_a_variable_is_written() {
    let store = memory();
    let run = store.create_run("r").create().unwrap();
    run.create_variable("t", DType::F8, &[4]).find(Finder::Max).create().unwrap();
    let elements = bytes(&[1.0, 9.0, 3.0, 4.0]);
    let array = Array::new(&elements, DType::F8, &[4]).unwrap();
    run.write("t", Some(0), array, &WriteOptions::default()).unwrap();
    store.flush(None).unwrap();
    assert_eq!(store.catalog().count(&Query::all()).unwrap(), 1);
    let text = run.create_variable("u", DType::parse("<U4").unwrap(), &[4]).find(Finder::Max).create();
    refused(text, "finders cannot work on elements of <U4");
}

#[test]
fn columns_agree_on_their_rows() {
    let store = memory();
    let run = run(&store);
    let on = Target::variable("t").steps(vec![0, 1, 2]);
    refused(run.annotate("max", 1.0, &on), "step is a column");
    refused(run.annotate_many("max", Values::Float(vec![1.0, 2.0]), &on), "values has 2 rows and step has 3");
    let boxes = Target::variable("t").step(0).within_each(1, vec![0, 1], vec![1, 1]);
    run.annotate_many("max", Values::Float(vec![1.0, 2.0]), &boxes).unwrap();
    run.annotate_many("max", Values::Float(vec![3.0]), &on).unwrap();
    run.annotate_many(("max", 1), Values::Int(vec![7]), &Target::run()).unwrap();
    assert_eq!(store.catalog().count(&Query::all()).unwrap(), 6);
    refused(run.create_steps(vec![1, 2], Some(vec![0.5])), "numbers has 2 rows and times has 1");
}

#[test]
fn a_correction_replaces_and_rows_of_one_call_do_not() {
    let store = memory();
    let run = run(&store);
    let on = Target::variable("t").step(0);
    for value in [1.0, 2.0] {
        run.annotate("max", value, &on).unwrap();
    }
    assert_eq!(store.catalog().count(&Query::all()).unwrap(), 1);
    let tag = run.tag("many".into(), ValueType::Int).unwrap();
    run.annotate_rows(tag.clone(), Values::Int(vec![1, 2]), false, &on).unwrap();
    run.annotate_more(tag, Values::Int(vec![3]), &on).unwrap();
    assert_eq!(store.catalog().count(&Query::all()).unwrap(), 4);
}

#[test]
fn what_a_deletion_takes_is_the_deepest_that_is_named() {
    let of = |named: &[&str], fields| {
        Deletion::of_named(Query::all(), named, fields).map(|what| match what {
            Deletion::Runs(_) => "runs",
            Deletion::Steps(_) => "steps",
            Deletion::Variables(_) => "variables",
            Deletion::Tags(_) => "tags",
            Deletion::Attributes(_) => "attributes",
        })
    };
    for (named, what) in [
        (&["run"][..], "runs"),
        (&["run", "project"], "runs"),
        (&["run", "step"], "steps"),
        (&["variable", "run"], "variables"),
        (&["tag"], "tags"),
        (&["run", "level"], "variables"),
        (&["tag", "level"], "attributes"),
        (&["run", "tag"], "attributes"),
        (&["variable", "step"], "attributes"),
        (&["run", "where"], "attributes"),
        (&["where"], "attributes"),
    ] {
        assert_eq!(of(named, false).unwrap(), what, "{named:?}");
    }
    refused(of(&["project"], false), "no arguments that select anything");
    refused(of(&["tag"], true), "tags have no fields of their own");
    assert_eq!(of(&["run", "step"], true).unwrap(), "steps");
}

#[test]
fn a_store_is_one_handle_however_often_it_is_cloned() {
    let store = memory();
    let other = store.clone();
    assert!(!other.uses_catalog());
    store.create_tag("max", ValueType::Float, Some("K")).unwrap();
    assert!(other.uses_catalog());
    assert_eq!(other.catalog().tags(&Query::all()).unwrap()[0].decl.unit, "K");
    let fields = other.fields();
    fields
        .archive(&[("run", "r"), ("variable", "t")], Value::Bytes(b"x"), &ArchiveOptions::default())
        .unwrap();
    assert_eq!(store.unflushed(), 1);
}
