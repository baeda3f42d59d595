//! A dataset belongs to the user who made it (promise 10).

use crate::common::*;
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_journal::Session;
use fieldstone_store::api::*;

fn world() -> SimWorld {
    let world = SimWorld::new(1);
    world.set_uid("alice", 501);
    world.set_uid("bob", 502);
    world
}

#[test]
fn archiving_into_anothers_dataset_is_denied_by_name() {
    let world = world();
    let (alice, bob) = (open(&world, "alice"), open(&world, "bob"));
    flush_one(&alice, "run=a,variable=t", b"alice");
    let denied = error(put(&bob, "run=a,variable=u", b"bob"), ErrorKind::Denied);
    for part in ["user501", "run=a"] {
        assert!(denied.message().contains(part), "{denied}");
    }
    assert!(denied.hint().unwrap().contains("user501"));
    let spec = FieldSpec { dtype: fieldstone_core::dtype::DType::F8, shape: &[2], fill: None, chunks: None };
    let created = bob.create_field(&[("run", "a"), ("variable", "u")], &spec, &ArchiveOptions::default());
    error(created, ErrorKind::Denied);
    let id = bob.begin().unwrap();
    error(put_in(&bob, "run=a,variable=u", b"bob", id), ErrorKind::Denied);
    assert_eq!(bob.unflushed(), 0);
    // Other datasets are free, and everyone may read.
    flush_one(&bob, "run=b,variable=t", b"bob");
    error(put(&alice, "run=b,variable=t", b"alice"), ErrorKind::Denied);
    for store in [&alice, &bob] {
        assert_eq!(get(store, "run=a,variable=t").unwrap(), b"alice");
        assert_eq!(get(store, "run=b,variable=t").unwrap(), b"bob");
    }
    // Another process of the owner may write.
    flush_one(&open(&world, "alice"), "run=a,variable=t", b"alice again");
    assert_eq!(get(&bob, "run=a,variable=t").unwrap(), b"alice again");
    let owners: Vec<String> = bob
        .list(&Request::new(), &ListOptions::default())
        .unwrap()
        .map(|e| e.unwrap().owner.to_string())
        .collect();
    assert_eq!(owners, ["user501", "user502"]);
}

/// Two processes archive before the dataset has an owner: the first to flush owns it.
#[test]
fn the_first_flush_makes_the_owner() {
    let world = world();
    let (alice, bob) = (open(&world, "alice"), open(&world, "bob"));
    put(&alice, "run=a,variable=t", b"alice").unwrap();
    put(&bob, "run=a,variable=t", b"bob").unwrap();
    bob.flush(&Session::default()).unwrap();
    let denied = error(alice.flush(&Session::default()), ErrorKind::Denied);
    assert!(denied.message().contains("user502"), "{denied}");
    alice.discard(&Session::default()).unwrap();
    for store in [&alice, &bob, &open(&world, "alice")] {
        assert_eq!(get(store, "run=a,variable=t").unwrap(), b"bob");
        assert_eq!(count_all(store), 1);
    }
    error(put(&alice, "run=a,variable=t", b"alice"), ErrorKind::Denied);
}

/// A log that another user planted counts for its own datasets and no others.
#[test]
fn a_foreign_log_does_not_count_in_anothers_dataset() {
    let world = world();
    let (owner, forger) = (open(&world, "alice"), open(&world, "alice"));
    flush_one(&owner, "run=a,variable=t", b"owner");
    put(&forger, "run=a,variable=t", b"forged").unwrap();
    put(&forger, "run=a,variable=u", b"forged").unwrap();
    put(&forger, "run=forger,variable=t", b"own").unwrap();
    let before = files(&world, "logs");
    forger.flush(&Session::default()).unwrap();
    let forged = files(&world, "logs").into_iter().find(|f| !before.contains(f)).unwrap();
    world.permissions().chown(&forged, 666).unwrap();
    let reader = open(&world, "bob");
    assert_eq!(listed(&reader), ["{run=a}{variable=t}{}", "{run=forger}{variable=t}{}"]);
    assert_eq!(count_all(&reader), 2);
    assert_eq!(get(&reader, "run=a,variable=t").unwrap(), b"owner");
    assert_eq!(get(&reader, "run=forger,variable=t").unwrap(), b"own");
    error(get(&reader, "run=a,variable=u"), ErrorKind::NotFound);
    let axes = reader.axes(&Request::parse("run=a").unwrap(), &ReadOptions::default()).unwrap();
    assert_eq!(axes[1].1.len(), 1, "{axes:?}");
    let fields = reader.retrieve(&Request::parse("run=a").unwrap(), &RetrieveOptions::default()).unwrap();
    assert_eq!((fields.len(), fields.get(0).unwrap().read().unwrap()), (1, b"owner".to_vec()));
    let stats = reader.stats(&Request::new()).unwrap();
    assert_eq!((stats.fields, stats.masked), (2, 0));
    let owners = reader.status().unwrap().owners;
    assert!(owners.iter().any(|o| o.contains("run=a") && o.contains("user501")), "{owners:?}");
    assert!(owners.iter().any(|o| o.contains("run=forger") && o.contains("user666")), "{owners:?}");
}

/// In a transaction that two users joined, each decides for his own logs.
#[test]
fn a_joined_transaction_keeps_owners() {
    let world = world();
    let (alice, bob) = (open(&world, "alice"), open(&world, "bob"));
    flush_one(&alice, "run=a,variable=t", b"alice");
    let id = alice.begin().unwrap();
    put_in(&alice, "run=a,variable=u", b"alice", id).unwrap();
    alice.flush(&Session::from(id)).unwrap();
    put_in(&bob, "run=b,variable=u", b"bob", id).unwrap();
    bob.flush(&Session::from(id)).unwrap();
    alice.decide(id, true, &Session::default()).unwrap();
    let alices = ["{run=a}{variable=t}{}", "{run=a}{variable=u}{}"];
    assert_eq!(listed(&bob), alices);
    let waiting = bob.status().unwrap().transactions;
    assert!(waiting.len() == 1 && waiting[0].owners[0].starts_with("user502"), "{waiting:?}");
    bob.decide(id, true, &Session::default()).unwrap();
    assert_eq!(listed(&alice).len(), 3);
}

/// No user can remove another's fields, or take files into another's dataset.
#[test]
fn removing_from_anothers_dataset_is_denied_by_name() {
    let world = world();
    let (alice, bob) = (open(&world, "alice"), open(&world, "bob"));
    flush_one(&alice, "run=a,variable=t", b"alice");
    flush_one(&bob, "run=b,variable=t", b"bob");
    let all = Request::parse("variable=t").unwrap();
    let denied = error(bob.remove(&all, &RemoveOptions::default()), ErrorKind::Denied);
    assert!(denied.message().contains("user501") && denied.message().contains("run=a"), "{denied}");
    let theirs = [field(&bob, "run=a,variable=t", None).unwrap()];
    error(bob.remove_fields(&theirs, &RemoveOptions::default()), ErrorKind::Denied);
    let path =
        fieldstone_store::conformance::put_file(&world.process("bob"), "/f".into(), Some(b"x")).unwrap();
    let content = ExternalContent::Bytes(1);
    let spec = ExternalSpec { path: &path, offset: 0, parts: 1, stride: 0, content, seen: None };
    let key = [("run", "a"), ("variable", "u")];
    error(bob.archive_external(&key, &spec, &ArchiveOptions::default()), ErrorKind::Denied);
    assert_eq!(bob.unflushed(), 0, "nothing that was refused is kept");
    assert_eq!(alice.remove(&Request::parse("run=a").unwrap(), &RemoveOptions::default()).unwrap(), 1);
    alice.flush(&Session::default()).unwrap();
    assert_eq!(listed(&bob), ["{run=b}{variable=t}{}"]);
    // Ownership remains.
    error(put(&bob, "run=a,variable=t", b"bob"), ErrorKind::Denied);
}
