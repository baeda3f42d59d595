//! Catalog records lost in a failed flush: they are counted, forgotten, and declared again at their next use.

use std::path::Path;
use std::sync::mpsc::channel;

use crate::shared::*;
use fieldstone::Session;
use fieldstone::catalog::Query;
use fieldstone::prelude::*;
use fieldstone::{ErrorKind, Id};
use fieldstone_format::catalog::*;

/// Removes all logs, so that the next flush into one of them fails.
fn remove_logs(folder: &Path) {
    for entry in std::fs::read_dir(folder.join("logs")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
}

fn failed(outcome: fieldstone::Result<()>, part: &str) {
    let output = outcome.unwrap_err();
    assert_eq!(output.kind(), ErrorKind::Unavailable, "{output}");
    assert!(output.message().contains(part), "{output}");
}

/// A handle that has a log, and another that sees flushed data.
fn begun() -> (tempfile::TempDir, Both, Both) {
    let folder = tempfile::tempdir().unwrap();
    let (both, reader) = (Both::at(folder.path()), Both::at(folder.path()));
    both.prepare("first");
    both.flush();
    (folder, both, reader)
}

fn tags(both: &Both) -> Vec<String> {
    both.catalog.tags(&Query::all()).unwrap().into_iter().map(|tag| tag.decl.name).collect()
}

#[test]
fn attributes_are_counted_and_what_they_declared_is_declared_again() {
    let (folder, both, reader) = begun();
    remove_logs(folder.path());
    both.prepare("a");
    for step in 0..3 {
        both.annotate("a", "max", step, [0, 0], 1.0);
    }
    let output = both.store.flush(None).unwrap_err();
    assert_eq!(output.kind(), ErrorKind::Unavailable, "{output}");
    assert!(output.message().contains("3 attributes, and 2 other records of the catalog"), "{output}");
    assert_eq!(both.hits(vec![]).len(), 0);
    // The run no longer exists, for this handle neither.
    let unknown = both.try_annotate("a", "max", 1, [0, 0], 1.0, None).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound, "{unknown}");
    both.prepare("a");
    both.annotate("a", "max", 1, [0, 0], 1.0);
    both.flush();
    for both in [&both, &reader, &Both::at(folder.path())] {
        assert_eq!((both.hits(vec![]).len(), tags(both)), (1, vec!["max".to_owned()]));
        assert!(both.variables().contains(&"a t Some([8, 8]) []".to_owned()));
    }
}

/// A handle declares a tag again at its next use if a failed flush lost the declaration.
#[test]
fn a_tag_that_was_lost_is_declared_again() {
    let (folder, both, _) = begun();
    remove_logs(folder.path());
    both.catalog.create_tags(vec![float_tag("max")], &Session::default()).unwrap();
    failed(both.store.flush(None), "not archived: 1 record of the catalog:");
    both.catalog.create_tags(vec![float_tag("max")], &Session::default()).unwrap();
    both.flush();
    assert_eq!(tags(&Both::at(folder.path())), ["max"]);
}

/// Attributes that were not given to the store yet are lost with the session's log, and counted.
#[test]
fn a_robbed_transaction_loses_what_was_gathered() {
    let (folder, both, reader) = begun();
    let id = both.store.begin().unwrap();
    both.catalog.create_run(RunDecl::named(run("a")), false, &Session::from(id)).unwrap();
    both.catalog.create_variables(&run("a"), vec![variable("t", &[8, 8])], &Session::from(id)).unwrap();
    archive_large(&both, "a", Some(id));
    for step in 0..4 {
        both.try_annotate("a", "max", step, [0, 0], 1.0, Some(id)).unwrap();
    }
    remove_logs(folder.path());
    both.prepare("b");
    let lost = format!("4 attributes, and 2 other records of the catalog in transaction {id}");
    failed(both.store.flush(None), &lost);
    assert_eq!(both.hits_in(id).len(), 0);
    for _ in 0..2 {
        failed(both.store.decide(id, true), "4 attributes");
    }
    both.store.decide(id, false).unwrap();
    both.prepare("b");
    both.flush();
    assert_eq!(reader.hits(vec![]).len(), 0);
    let runs: Vec<String> = reader.variables().iter().map(|line| line[..1].to_owned()).collect();
    assert!(runs.contains(&"b".to_owned()) && !runs.contains(&"a".to_owned()), "{runs:?}");
}

/// A thread that only annotated gets an error.
#[test]
fn a_thread_that_annotates_is_told() {
    let (folder, both, _) = begun();
    let ((annotated, wait_annotated), (flushed, wait_flushed)) = (channel(), channel());
    let lost = "not archived: 1 attribute:";
    std::thread::scope(|scope| {
        let both = &both;
        // If one of them panics, the other one's channel ends.
        scope.spawn(move || {
            both.try_annotate("first", "max", 1, [0, 0], 1.0, None).unwrap();
            annotated.send(()).unwrap();
            wait_flushed.recv().unwrap();
            failed(both.store.flush(None), lost);
            both.store.flush(None).unwrap();
        });
        wait_annotated.recv().unwrap();
        remove_logs(folder.path());
        failed(both.store.flush(None), lost);
        both.store.flush(None).unwrap();
        flushed.send(()).unwrap();
        drop(flushed);
    });
}

fn archive_large(both: &Both, name: &str, transaction: Option<Id>) {
    let options = fieldstone::ArchiveOptions { session: Session::from(transaction), ..Default::default() };
    let key = [("run", name), ("variable", "large"), ("step", "1")];
    let data: Vec<u8> = (0..2 << 20).map(|i: u32| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    both.store.archive(&key, fieldstone::Value::Bytes(&data), &options).unwrap();
}
