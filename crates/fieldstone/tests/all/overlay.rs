//! Overlays at both ends of a connection, and beside calls that go by the keys of fields.

use fieldstone::catalog::CatalogSettings;
use fieldstone::prelude::*;
use fieldstone::transfer::{TransferOptions, copy, move_to};
use fieldstone::{
    ArchiveOptions, Code, ErrorKind, FieldKey, ListOptions, OpenOptions, ReadOptions, Request, Store, Value,
    loopback,
};

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

fn memory() -> Store {
    fieldstone::open("memory:", &OpenOptions::default()).unwrap()
}

fn with_runs() -> Store {
    let store = memory();
    for (run, step) in [("a", "0"), ("a", "6"), ("c", "0")] {
        let key = [("run", run), ("variable", "t"), ("step", step)];
        store.archive(&key, Value::Bytes(run.as_bytes()), &ArchiveOptions::default()).unwrap();
    }
    store.flush(None).unwrap();
    store
}

/// A key as a request says it.
fn plain(key: &FieldKey) -> String {
    key.to_string().replace("}{", ",").replace(['{', '}'], "")
}

fn keys(store: &Store, text: &str) -> Vec<String> {
    let list = store.list(&request(text), &ListOptions::default()).unwrap();
    list.map(|entry| plain(&entry.unwrap().key)).collect()
}

#[test]
fn b27_a_store_at_the_far_end_shows_overlays_alike() {
    let near = with_runs();
    for far in [near.clone(), Store::over(loopback(near.backend().clone()), CatalogSettings::default())] {
        assert_eq!(far.overlay(&request("run=a"), &[("run", "b")]).unwrap(), 2);
        let again = far.overlay(&request("run=a"), &[("run", "b")]).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Conflict, "{again}");
        assert_eq!(keys(&far, "run=b"), ["run=b,variable=t,step=0", "run=b,variable=t,step=6"]);
        let key = [("run", "b"), ("variable", "t"), ("step", "6")];
        let field = far.get(&key, &ReadOptions::default()).unwrap();
        assert_eq!(
            (field.read().unwrap(), plain(&field.key().unwrap())),
            (b"a".to_vec(), "run=b,variable=t,step=6".into())
        );
        let refused = far.remove_fields(&[field], &Default::default()).unwrap_err();
        assert!(refused.kind() == ErrorKind::Invalid && refused.message().contains("run=a"), "{refused}");
        let rows = far.overlays().unwrap();
        assert_eq!((rows.len(), &*rows[0].request, &*rows[0].values), (1, "run=a", "run=b"));
        let unknown = far.overlay(&request("run=a"), &[("stepp", "b")]);
        assert_eq!(unknown.unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(far.end_overlay(&request("run=a"), &[("run", "b")]).unwrap(), 2);
        assert_eq!(keys(&far, "run=b").len(), 0);
    }
}

#[test]
fn a_move_goes_by_keys_of_fields_and_a_copy_by_those_that_it_asks_for() {
    let (store, to) = (with_runs(), memory());
    store.overlay(&request("run=a"), &[("run", "b")]).unwrap();
    let copied = copy(&store, vec![request("run=b")], &to, &TransferOptions::default()).unwrap();
    assert_eq!((copied.fields, keys(&to, "run=b").len()), (2, 2));
    let moved = move_to(&store, vec![request("run=b/c")], &to, &TransferOptions::default()).unwrap();
    assert_eq!((moved.removed, keys(&store, "").len()), (1, 4), "{moved:?}");
    assert_eq!(keys(&to, "").len(), 3);
}

#[test]
fn a_part_of_a_store_makes_no_overlays_and_shows_what_it_may() {
    let store = with_runs();
    store.overlay(&request("run=a"), &[("run", "b")]).unwrap();
    let part = store.filtered(request("run=b/c")).unwrap();
    assert_eq!(keys(&part, "").len(), 3);
    let refused = part.overlay(&request("run=c"), &[("run", "b")]).unwrap_err();
    assert_eq!(refused.code(), Code::OutsideFilter);
}
