//! The index on PostgreSQL: the same tests as on SQLite, and those that need a server.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::history;
use fieldstone_catalog::engine::{Index, Postgres, RunSelect, Tables, Wait};
use fieldstone_core::value::ValueType;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{AttributeBatch, Column, Record, RunName, TagDecl, Values};
use fieldstone_format::log::SideRecord;
use fieldstone_journal::feed::Commit;
use fieldstone_testkit::postgres::{Server, shared};
use fieldstone_testkit::require::full;

/// An id that no other test of this process uses.
pub fn store() -> Id {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let mut id = [0; 16];
    id[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    Id(id)
}

#[test]
fn any_order_gives_what_the_model_says() {
    let Some(server) = shared() else { return };
    for seed in 0..if full() { 40 } else { 10 } {
        history::check(seed, 1 + seed % 2, &mut || Box::new(Postgres::open(&server.url(), store()).unwrap()));
    }
}

/// A batch of one tag on one run.
fn commit(writer: u8, sequence: u64, run: &str, values: Vec<f64>) -> (Id, u64, Vec<SideRecord>) {
    let batch = AttributeBatch {
        keywords: Vec::new(),
        run: RunName { project: String::new(), name: run.into() },
        tag: TagDecl { name: "max".into(), version: 0, kind: ValueType::Float, unit: String::new() },
        rows: values.len(),
        step: Some(Column::One(sequence as i64 * 100 + i64::from(writer))),
        variables: Vec::new(),
        variable: Column::One(0),
        boxes: None,
        values: Values::Float(values),
        one_value: false,
        continues: false,
        singles: false,
    };
    (Id([writer; 16]), sequence, vec![Record::Attributes(batch).encode()])
}

fn apply(index: &mut Index, commits: &[(Id, u64, Vec<SideRecord>)]) -> Result<()> {
    index.begin_apply(Wait::Yes)?;
    for (writer, sequence, side) in commits {
        let commit = Commit {
            writer: *writer,
            owner: 0,
            sequence: *sequence,
            stamp: *sequence,
            time: 0,
            transaction: None,
            order: None,
            side: side.clone(),
        };
        index.apply_commit(&commit)?;
        index.set_watermark(*writer, *sequence)?;
    }
    index.end_apply()
}

fn open(server: &Server, store: Id) -> Index {
    Index::open(Box::new(Postgres::open(&server.url(), store).unwrap()), store).unwrap()
}

fn rows(index: &mut Index) -> u64 {
    index.begin_read().unwrap();
    let tags = index.tags().unwrap();
    let n = tags.iter().flat_map(|tag| index.spans(tag.id, None).unwrap()).map(|span| span.n).sum();
    index.end_read().unwrap();
    n
}

#[test]
fn many_apply_and_read_one_catalog_at_once() {
    let Some(server) = shared() else { return };
    let id = store();
    std::thread::scope(|scope| {
        for writer in 1..=8u8 {
            scope.spawn(move || {
                let mut index = open(server, id);
                for sequence in 1..=6 {
                    // All writers name half of the runs.
                    let run = if sequence % 2 == 0 { "shared" } else { ["a", "b"][writer as usize % 2] };
                    let values = (0..50).map(f64::from).collect();
                    apply(&mut index, &[commit(writer, sequence, run, values)]).unwrap();
                    assert_eq!(rows(&mut index) % 50, 0, "no part of another's commit is seen");
                }
            });
        }
    });
    let mut index = open(server, id);
    index.begin_read().unwrap();
    let names: Vec<String> =
        index.runs(&RunSelect::All).unwrap().into_iter().map(|run| run.decl.run.name).collect();
    let marks = index.watermarks().unwrap();
    index.end_read().unwrap();
    assert_eq!(names.len(), 3, "each run once: {names:?}");
    assert!(marks.logs.len() == 8 && marks.logs.values().all(|mark| *mark == 6), "{marks:?}");
    assert_eq!(rows(&mut index), 8 * 6 * 50);
}

#[test]
fn a_server_that_comes_back_older_is_applied_to_again() {
    let Some(server) = Server::start() else { return };
    let id = store();
    let mut index = open(&server, id);
    let first = commit(1, 1, "a", vec![1.0, 2.0]);
    apply(&mut index, std::slice::from_ref(&first)).unwrap();
    index.database().batch("CHECKPOINT").unwrap();
    // The crash loses these: a commit does not wait for the disk.
    apply(&mut index, &[commit(1, 2, "b", vec![3.0]), commit(1, 3, "c", vec![3.0])]).unwrap();
    server.stop();
    server.resume();
    assert_eq!(index.begin_read().unwrap_err().kind(), ErrorKind::Unavailable);
    index.begin_read().unwrap();
    let mark = index.watermarks().unwrap().of(Id([1; 16]));
    index.end_read().unwrap();
    let again: Vec<_> = [first, commit(1, 2, "b", vec![3.0]), commit(1, 3, "c", vec![3.0])]
        .into_iter()
        .filter(|(_, sequence, _)| *sequence > mark)
        .chain([commit(1, 4, "c", vec![4.0, 5.0, 6.0])])
        .collect();
    apply(&mut index, &again).unwrap();
    assert_eq!(rows(&mut index), 2 + 1 + 1 + 3);
}

#[test]
fn a_schema_that_was_dropped_is_made_again() {
    let Some(server) = shared() else { return };
    let id = store();
    let mut index = open(server, id);
    apply(&mut index, &[commit(1, 1, "a", vec![1.0]), commit(1, 2, "b", vec![2.0])]).unwrap();
    let schema: String = id.0.iter().map(|b| format!("{b:02x}")).collect();
    let drop = format!("DROP SCHEMA fieldstone_{schema} CASCADE");
    open(server, store()).database().batch(&drop).unwrap();
    index.begin_read().unwrap();
    assert_eq!(index.tags().unwrap_err().kind(), ErrorKind::Corrupt);
    index.end_read().unwrap();
    // Another process rebuilds it with other numbers, which this one must not confuse with those it
    // remembers.
    let mut other = open(server, id);
    apply(&mut other, &[commit(2, 1, "b", vec![3.0]), commit(2, 2, "x", vec![3.0])]).unwrap();
    apply(&mut index, &[commit(1, 1, "a", vec![1.0]), commit(1, 2, "b", vec![2.0])]).unwrap();
    index.begin_read().unwrap();
    let mut found = Vec::new();
    for run in index.runs(&RunSelect::All).unwrap() {
        let tag = index.tags().unwrap()[0].id;
        let n: u64 = index.spans(tag, Some(run.id)).unwrap().iter().map(|span| span.n).sum();
        found.push((run.decl.run.name, n));
    }
    index.end_read().unwrap();
    found.sort();
    assert_eq!(found, [("a".to_owned(), 1), ("b".to_owned(), 2), ("x".to_owned(), 1)]);
}
