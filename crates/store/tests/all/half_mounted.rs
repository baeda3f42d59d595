//! A store whose folder of logs is missing, such as one that is half mounted or half restored: no call reports it as
//! empty, and none recreates the folder. A store in creation is not mistaken for such a store.

use std::path::Path;

use crate::common::*;
use fieldstone_core::env::sim::{Fault, Plan, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_core::{Code, ErrorKind};
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Access, Opening};

const MOVED: &str = "/shared/moved";

/// A closed store with a small field and one in a data log; next to the logs, only names that contain `kept` stay.
fn without_logs(kept: &str) -> SimWorld {
    let world = SimWorld::new(1);
    let writer = open(&world, "a");
    flush_one(&writer, "run=a,variable=small", b"1");
    flush_one(&writer, "run=a,variable=large", &pattern(3 << 20, 1));
    writer.close(&Session::default()).unwrap();
    let other = world.process("b");
    other.disk.rename(&Path::new(ROOT).join("logs"), Path::new(MOVED)).unwrap();
    let beside = world.files().into_iter().filter(|path| path.starts_with(ROOT));
    beside
        .filter(|path| !path.to_string_lossy().contains(kept))
        .for_each(|path| other.disk.unlink(&path).unwrap());
    world
}

fn is_gone<T>(outcome: fieldstone_core::Result<T>) {
    let failure = error(outcome, ErrorKind::Corrupt);
    assert_eq!(failure.code(), Code::LogsGone, "{failure}");
    assert!(failure.message().contains("logs") && failure.hint().is_some(), "{failure}");
}

fn every_read_says_so(store: &Store) {
    let all = Request::new();
    is_gone(store.list(&all, &ListOptions::default()).map(drop));
    is_gone(store.axes(&all, &ReadOptions::default()));
    is_gone(get(store, "run=a,variable=small"));
    for strict in [true, false] {
        let options = RetrieveOptions { strict, ..RetrieveOptions::default() };
        is_gone(store.retrieve(&all, &options).map(drop));
    }
    is_gone(store.stats(&all));
    is_gone(store.version());
    is_gone(store.dump(&all));
    is_gone(store.journal().looks().feed());
    is_gone(store.list_since(&all, "vAAAAAAA", &ListOptions::default()).map(drop));
}

#[test]
fn a_store_without_its_folder_of_logs_is_never_empty_and_not_made_again() {
    for kept in ["fieldstone.store", "boards/", "data/", "/"] {
        let world = without_logs(kept);
        let other = world.process("b");
        let there = || other.disk.stat(&Path::new(ROOT).join("logs")).is_ok();
        for access in [Access::Read, Access::Append] {
            let opened = open_in(&world.process("c"), &Opening { access, ..Opening::default() });
            let has_marker = world.files().iter().any(|path| path.ends_with("fieldstone.store"));
            if !has_marker {
                is_gone(opened.map(drop));
                continue;
            }
            let store = opened.unwrap();
            every_read_says_so(&store);
            let status = store.status().unwrap();
            assert_eq!((status.code(), status.problems[0].code), (5, Some(Code::LogsGone)), "{status:?}");
            let report = store.verify(&Request::new()).unwrap();
            assert!(report.damaged.iter().any(|damage| damage.file == "logs"), "{report:?}");
            if access == Access::Append {
                for size in [100, 3 << 20] {
                    let outcome = put(&store, "run=b,variable=t", &pattern(size, 1))
                        .and_then(|()| store.flush(&Session::default()));
                    is_gone(outcome);
                    store.discard(&Session::default()).unwrap();
                }
                is_gone(store.create());
                is_gone(store.set_if_exists(IfExists::Error, &Session::default()));
            }
            assert!(!there(), "the folder was made again, with {kept} there");
            // The same handle reads logs that come back.
            other.disk.rename(Path::new(MOVED), &Path::new(ROOT).join("logs")).unwrap();
            world.advance(2 * SECOND);
            assert_eq!(get(&store, "run=a,variable=small").unwrap(), b"1");
            other.disk.rename(&Path::new(ROOT).join("logs"), Path::new(MOVED)).unwrap();
        }
        assert!(!there());
    }
}

#[test]
fn a_handle_that_has_read_the_logs_says_so_when_they_go() {
    let world = SimWorld::new(1);
    let (writer, reader) = (open(&world, "a"), open(&world, "b"));
    flush_one(&writer, "run=a,variable=small", b"1");
    assert_eq!(listed(&reader).len(), 1);
    let other = world.process("c");
    other.disk.rename(&Path::new(ROOT).join("logs"), Path::new(MOVED)).unwrap();
    every_read_says_so(&reader);
    other.disk.rename(Path::new(MOVED), &Path::new(ROOT).join("logs")).unwrap();
    assert_eq!(get(&reader, "run=a,variable=small").unwrap(), b"1");
}

#[test]
fn folders_of_the_users_are_no_remains_of_a_store() {
    let world = SimWorld::new(1);
    let other = world.process("b");
    for name in ["data/run1.data", "boards/notes.txt", "arrays/mine/a.npy", "meshes/wing.nc"] {
        let path = Path::new(ROOT).join(name);
        other.disk.create_dir_all(path.parent().unwrap()).unwrap();
        drop(other.disk.create_new(&path).unwrap());
    }
    let reading = Opening { access: Access::Read, ..Opening::default() };
    error(open_in(&world.process("c"), &reading), ErrorKind::NotFound);
    flush_one(&open(&world, "a"), "run=a,variable=t", b"1");
}

/// A writer dies at any call of the first flush, and another host sees its files late: no process takes the store for
/// one that lost its logs, and the next writer makes it.
#[test]
fn a_store_that_is_being_made_is_not_one_without_logs() {
    for fault in [Fault::Kill, Fault::PowerOff] {
        for n in 1.. {
            let world = SimWorld::new(n);
            let env = world.process("a");
            world.schedule(Plan::new(fault).host("a").nth(n));
            let large = pattern(3 << 20, 1);
            let store = open_in(&env, &Opening::default());
            let flushed = store.and_then(|store| {
                put(&store, "run=a,variable=large", &large)?;
                store.flush(&Session::default())
            });
            let seen = if fault == Fault::PowerOff { world.power_cut(n) } else { world.fork_image() };
            let reader = seen.process("b");
            match open_in(&reader, &Opening { access: Access::Read, ..Opening::default() }) {
                Ok(reader) => drop(reader.list(&Request::new(), &ListOptions::default()).unwrap()),
                Err(e) => assert_eq!(e.code(), Code::StoreNotFound, "at call {n}: {e}"),
            }
            flush_one(&open_in(&reader, &Opening::default()).unwrap(), "run=b,variable=t", b"1");
            if flushed.is_ok() {
                assert!(n > 15, "a first flush has more than {n} calls");
                break;
            }
        }
    }
}

#[test]
fn a_store_that_holds_nothing_is_empty() {
    let world = SimWorld::new(1);
    open(&world, "a").create().unwrap();
    let reader = open(&world, "b");
    assert!(listed(&reader).is_empty());
    assert_eq!(reader.status().unwrap().code(), 0);
    assert!(reader.verify(&Request::new()).unwrap().ok());
}
