//! Fields that another store names without a copy: found wherever their bytes are, and left by purges (R34).

use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use crate::purge::{at_once, try_purge};
use crate::takeovers::{close, compact};
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_core::schema::Schema;
use fieldstone_core::{ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_journal::Session;
use fieldstone_store::LocalStore;
use fieldstone_store::api::*;
use fieldstone_store::local::LocalOptions;
use fieldstone_store::reindex;

fn request(text: &str) -> Request {
    Request::parse(text).unwrap()
}

/// A store at another place of the same disk.
fn other(world: &SimWorld, schema: Option<&str>) -> Store {
    let schema = schema.map(|text| Schema::parse(text).unwrap());
    let options = LocalOptions { writable: true, schema, url: "/other".into(), ..LocalOptions::default() };
    Arc::new(LocalStore::open(world.process("o"), Path::new("/other"), options).unwrap())
}

fn reindexed(from: &Store, text: &str, to: &Store) -> Result<Vec<(String, String)>> {
    to.create()?;
    let session = Session::default();
    let (store, url) = (to.journal().home().id, "/other".to_owned());
    let how = Pointing { store, url, names: true, session: session.clone() };
    assert!(reindex::point(from.journal(), &request(text), &how)?);
    let (mut left, mut after) = (Vec::new(), Vec::new());
    loop {
        let portion = reindex::indexed(from, &request(text), &after, &session)?;
        let Some(last) = portion.last() else { break };
        after = last.encoded.clone();
        left.extend(reindex::take_indexed(to, &portion, &session)?);
    }
    to.flush(&session)?;
    Ok(left)
}

fn written(world: &SimWorld) -> Store {
    let store = open(world, "a");
    for step in 0..4 {
        flush_one(&store, &format!("run=a,variable=t,step={step}"), format!("value {step}").as_bytes());
    }
    flush_one(&store, "run=b,variable=t,step=0", b"not asked for");
    store
}

/// The keys of all fields, as requests say them.
fn keys(store: &Store) -> Vec<String> {
    listed(store).iter().map(|key| key.replace("}{", ",").replace(['{', '}'], "")).collect()
}

fn values(store: &Store) -> Vec<(String, Vec<u8>)> {
    keys(store).into_iter().map(|key| (key.clone(), get(store, &key).unwrap())).collect()
}

#[test]
fn r34_a_reindexed_field_is_read_wherever_its_bytes_are() {
    let world = SimWorld::new(1);
    let (store, to) = (written(&world), other(&world, None));
    assert_eq!(reindexed(&store, "run=a", &to).unwrap(), []);
    let expected: Vec<(String, Vec<u8>)> = (0..4)
        .map(|step| (format!("run=a,variable=t,step={step}"), format!("value {step}").into_bytes()))
        .collect();
    assert_eq!(values(&to), expected);
    // Later values, takeovers and purges of the source change nothing.
    for step in 0..3 {
        flush_one(&store, &format!("run=a,variable=t,step={step}"), b"later");
    }
    let field = field(&to, "run=a,variable=t,step=1", None).unwrap();
    close(&store);
    for _ in 0..2 {
        compact(&open(&world, "a"));
        let store = open(&world, "a");
        let report = try_purge(&store, &at_once()).unwrap();
        assert!(
            report.left.iter().any(|left| left.file == "run=a" && left.why.contains("/other")),
            "{report:?}"
        );
        close(&store);
        assert_eq!(values(&other(&world, None)), expected);
    }
    assert_eq!(field.read().unwrap(), b"value 1", "one that was found before");
    assert!(to.verify(&Request::new()).unwrap().damaged.is_empty());
    assert_eq!(get(&open(&world, "a"), "run=a,variable=t,step=1").unwrap(), b"later");
}

#[test]
fn r34_without_its_pointer_a_purge_takes_the_field_and_the_error_names_the_store() {
    let world = SimWorld::new(1);
    let (store, to) = (written(&world), other(&world, None));
    reindexed(&store, "run=a", &to).unwrap();
    assert_eq!(reindex::pointers(store.journal()).unwrap().len(), 1);
    let how = Pointing {
        store: to.journal().home().id,
        url: "/other".into(),
        names: false,
        session: Session::default(),
    };
    assert!(reindex::point(store.journal(), &request("run=a"), &how).unwrap());
    assert_eq!(reindex::pointers(store.journal()).unwrap(), []);
    flush_one(&store, "run=a,variable=t,step=1", b"later");
    flush_one(&store, "run=b,variable=t,step=1", b"confirms the one before");
    close(&store);
    compact(&open(&world, "a"));
    let again = open(&world, "a");
    try_purge(&again, &at_once()).unwrap();
    close(&again);
    let reader = other(&world, None);
    let error = get(&reader, "run=a,variable=t,step=1").unwrap_err();
    assert!(error.kind() == ErrorKind::Corrupt && error.to_string().contains(ROOT), "{error}");
    assert_eq!(get(&reader, "run=a,variable=t,step=2").unwrap(), b"value 2");
    // Another store at its place, and none.
    let disk = world.process("o").disk;
    disk.rename(Path::new(ROOT), Path::new("/moved")).unwrap();
    let error = get(&other(&world, None), "run=a,variable=t,step=2").unwrap_err();
    assert!(error.to_string().contains("gone"), "{error}");
}

#[test]
fn b29_another_schema_names_the_fields() {
    let world = SimWorld::new(1);
    let schema = "step: Integer; [variable [step [run]]]";
    let (store, to) = (written(&world), other(&world, Some(schema)));
    assert_eq!(reindexed(&store, "run=a,step=1/2", &to).unwrap(), []);
    assert_eq!(keys(&to), ["variable=t,step=1,run=a", "variable=t,step=2,run=a"]);
    assert_eq!(get(&to, "variable=t,step=2,run=a").unwrap(), b"value 2");
    // A reindex of these names the store that holds the bytes.
    let third = {
        let options = LocalOptions { writable: true, url: "/third".into(), ..LocalOptions::default() };
        Arc::new(LocalStore::open(world.process("o"), Path::new("/third"), options).unwrap())
    };
    assert_eq!(reindexed(&to, "variable=t", &third).unwrap(), []);
    world.process("o").disk.rename(Path::new("/other"), Path::new("/gone")).unwrap();
    assert_eq!(get(&third, "run=a,variable=t,step=2").unwrap(), b"value 2");
    let narrow = other(&world, Some("[run [variable [level]]]"));
    let left = reindexed(&store, "run=a", &narrow).unwrap();
    assert!(left.len() == 4 && left[0].0.contains("run=a") && left[0].1.contains("step"), "{left:?}");
}

#[test]
fn entries_of_a_stranger_are_refused() {
    let world = SimWorld::new(1);
    let (store, to) = (written(&world), other(&world, None));
    to.create().unwrap();
    let session = Session::default();
    let mut portion = reindex::indexed(&store, &request("run=a"), &[], &session).unwrap();
    portion[0].parts[0].truncate(5);
    let refused = reindex::take_indexed(&to, &portion, &session).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Corrupt, "{refused}");
    for text in ["run=a*", "run=!*"] {
        let refused = reindex::indexed(&store, &request(text), &[], &session).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Invalid, "{refused}");
    }
    let stranger = Id([4; 16]);
    let how = Pointing { store: stranger, url: "/x".into(), names: true, session };
    assert!(reindex::point(store.journal(), &request("run=a"), &how).unwrap());
    assert_eq!(reindex::pointers(store.journal()).unwrap()[0].store, stranger);
}
