//! The facts by which a store of several merges its lanes: equal in a local store and at the far end of a loopback.

use std::sync::Arc;

use fieldstone::catalog::CatalogSettings;
use fieldstone::prelude::*;
use fieldstone::{
    ArchiveOptions, Backend, DType, IfExists, KeyEntry, OpenOptions, RemoveOptions, Request, Session, Store,
    Value, loopback,
};

const KEY: [(&str, &str); 2] = [("run", "a"), ("variable", "t")];

/// A store in a folder, and two backends: its own, and one at the far end.
fn store() -> (tempfile::TempDir, Store, [Arc<dyn Backend>; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let store =
        fieldstone::open(&folder.path().join("s").display().to_string(), &OpenOptions::default()).unwrap();
    let near = store.backend().clone();
    let far = Store::over(loopback(near.clone()), CatalogSettings::default()).backend().clone();
    (folder, store, [near, far])
}

fn put(store: &Store, value: Value<'_>, session: Session) {
    store.archive(&KEY, value, &ArchiveOptions { session: session.clone(), ..Default::default() }).unwrap();
    store.flush(session).unwrap();
}

fn shape(entries: &[KeyEntry]) -> Vec<(bool, bool, bool, u64)> {
    entries.iter().map(|one| (one.live, one.generation, one.removal, one.length)).collect()
}

#[test]
fn entries_of_a_key_are_newest_first_with_removals_among_them() {
    let (_folder, store, backends) = store();
    put(&store, Value::Bytes(b"one"), Session::default());
    let (data, shape_of) = ([0u8; 16], [4u64]);
    put(&store, Value::Array { data: &data, dtype: DType::F4, shape: &shape_of }, Session::default());
    let piece =
        Value::Piece { data: &data[..8], dtype: DType::F4, start: &[2], count: &[2], shape: &shape_of };
    put(&store, piece, Session::default());
    for backend in &backends {
        let entries = backend.entries(&KEY, &Session::default()).unwrap();
        assert_eq!(
            shape(&entries),
            [(true, false, false, 8), (true, true, false, 16), (false, true, false, 3)],
            "{entries:?}"
        );
        assert!(
            entries.is_sorted_by(|newer, older| newer.order > older.order) && entries[0].attempt.is_none()
        );
        assert_eq!(entries[0].piece.as_ref().map(|piece| piece.start().to_vec()), Some(vec![2]));
    }
    store.remove(&Request::parse("run=a").unwrap(), &RemoveOptions::default()).unwrap();
    store.flush(None).unwrap();
    for backend in &backends {
        let entries = backend.entries(&KEY, &Session::default()).unwrap();
        assert!(entries[0].removal && entries.iter().all(|one| !one.live), "{entries:?}");
        assert!(backend.entries(&[("run", "b"), ("variable", "t")], &Session::default()).unwrap().is_empty());
    }
}

#[test]
fn a_filter_is_a_backend_that_shows_its_part_and_changes_nothing_of_the_whole() {
    let (_folder, store, _) = store();
    put(&store, Value::Bytes(b"x"), Session::default());
    let before = store.version().unwrap();
    let other = [("run", "a"), ("variable", "u")];
    store.archive(&other, Value::Bytes(b"y"), &ArchiveOptions::default()).unwrap();
    store.flush(None).unwrap();
    let winds = store.filtered(Request::parse("variable=u").unwrap()).unwrap();
    // At the far end of a loopback, too.
    let far = Store::over(loopback(winds.backend().clone()), CatalogSettings::default());
    for shown in [&winds, &far] {
        let backend = shown.backend();
        assert_eq!(backend.entries(&KEY, &Session::default()).unwrap(), []);
        assert_eq!(backend.entries(&other, &Session::default()).unwrap().len(), 1);
        let (all, options) = (Request::new(), fieldstone::ListOptions::default());
        assert_eq!(shown.list(&all, &options).unwrap().count(), 1);
        assert_eq!(shown.list_since(&all, &before, &options).unwrap().0.count(), 1);
        let origins = backend.origins(&all, &Session::default()).unwrap();
        let commits = origins.iter().map(|(commit, _)| (commit.log, commit.sequence)).collect();
        assert_eq!((origins.len(), backend.list_commits(commits, &options).unwrap().count()), (1, 1));
        assert_eq!(shown.set_if_exists(IfExists::Error).unwrap_err().code(), fieldstone::Code::OutsideFilter);
        assert_eq!(shown.upgrade().unwrap_err().code(), fieldstone::Code::OutsideFilter);
        assert_eq!(shown.catalog().runs(&fieldstone::catalog::Query::all()).unwrap().len(), 1);
    }
}

#[test]
fn transactions_have_a_state_before_and_after_their_decision() {
    let (_folder, store, backends) = store();
    let [open, kept, given_up] = [(); 3].map(|()| {
        let id = fieldstone::Transactions::begin(&**store.backend()).unwrap();
        put(&store, Value::Bytes(b"x"), id.into());
        id
    });
    store.decide(kept, true).unwrap();
    store.decide(given_up, false).unwrap();
    for backend in &backends {
        let states = backend.transactions().unwrap();
        let of = |id| states.iter().find(|state| state.id == id).unwrap();
        assert_eq!((of(open).ended, of(open).order, of(open).prepared.len()), (false, None, 1));
        assert_eq!((of(kept).ended, of(kept).aborted, of(kept).order.is_some()), (true, false, true));
        assert!(of(given_up).ended && of(given_up).aborted && states.len() == 3);
        // A session within the open one sees its entry beside the decided one.
        assert_eq!(backend.entries(&KEY, &Session::default()).unwrap().len(), 1);
        assert_eq!(backend.entries(&KEY, &open.into()).unwrap().len(), 2);
    }
}

#[test]
fn settings_and_named_files_are_listed() {
    let (folder, store, backends) = store();
    put(&store, Value::Bytes(b"x"), Session::default());
    store.set_if_exists(IfExists::Error).unwrap();
    std::fs::create_dir_all(folder.path().join("s/meshes")).unwrap();
    std::fs::write(folder.path().join("s/meshes/m.bin"), [0; 7]).unwrap();
    for backend in &backends {
        assert_eq!(backend.settings().unwrap().get("exist").map(String::as_str), Some("error"));
        assert_eq!(backend.named_files().unwrap(), [("meshes/m.bin".to_owned(), 7)]);
    }
}
