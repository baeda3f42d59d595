//! Archives of the graph: two stores, kills in between, several users, and reads of the moved versions.

use std::path::Path;

use fieldstone::Session;
use fieldstone::env::Env;
use fieldstone::env::sim::SimWorld;
use fieldstone::graph::{
    EdgeType, Props, RelationPut, TypeDecl, Versions, VertexName, VertexPut, VertexType, archive,
    archive_into,
};
use fieldstone::prelude::*;
use fieldstone::{Code, ErrorKind, OpenOptions, Result, Store};
use fieldstone_core::value::{Value, ValueType};
use fieldstone_format::graph::props_bytes;

fn open(env: &Env, path: &str) -> Result<Store> {
    let store = fieldstone::open_in(env.clone(), path, Path::new(path), &OpenOptions::default())?;
    // A kill may come before there is anything.
    store.will_write();
    Ok(store)
}

fn file(n: u64) -> VertexName {
    VertexName::new("file", &format!("/data/{n}"))
}

fn note(n: u64) -> Props {
    Props::of([("note", &Value::Text(format!("{n:060}")))]).unwrap()
}

/// Ten versions of each of ten files and their writes, from stamp 10 on.
fn put(store: &Store) {
    for n in 0..100 {
        let time = Some(10 + n);
        let vertex = VertexPut { props: note(n), fixed: Some(note(n)), time, ..VertexPut::new(file(n % 10)) };
        store.graph().put_vertices(vec![vertex], &Session::default()).unwrap();
        let job = VertexName::new("job", "17");
        let write = RelationPut { props: note(n), time, ..RelationPut::new("makes", job, file(n % 10)) };
        store.graph().put_relations(vec![write], &Session::default()).unwrap();
    }
}

fn define(store: &Store) {
    let edge = EdgeType { name: "makes".into(), reverse: "madeBy".into(), ..EdgeType::default() };
    let fixed = vec![("note".to_owned(), ValueType::Text)];
    let vertex = VertexType { name: "file".into(), fixed, ..VertexType::default() };
    store.graph().define(vec![TypeDecl::Edge(edge), TypeDecl::Vertex(vertex)], &Session::default()).unwrap();
}

/// Versions here by stamp, each with its note; one without is read from the archive.
fn notes(store: &Store, there: Option<&Store>) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    for n in 0..10 {
        let of = |store: &Store| {
            store.graph().edges(&file(n), Some("madeBy"), Versions::ALL, None, &Session::default()).unwrap()
        };
        let moved = there.map(of).unwrap_or_default();
        for edge in of(store) {
            let same = moved.iter().find(|other| other.stamp == edge.stamp && edge.archived.is_some());
            let (_, value) = &same.unwrap_or(&edge).props[0];
            let Value::Text(note) = value else { panic!("{value:?}") };
            all.push((edge.stamp, note.clone()));
        }
        for vertex in store.graph().versions(&file(n), &Session::default()).unwrap() {
            let moved = there
                .map(|there| there.graph().versions(&file(n), &Session::default()).unwrap())
                .unwrap_or_default();
            let same = moved.iter().find(|other| other.stamp == vertex.stamp && vertex.archived.is_some());
            let own = same.unwrap_or(&vertex);
            assert_eq!(own.fixed, own.props);
            let Value::Text(note) = &own.props[0].1 else { panic!("{own:?}") };
            all.push((vertex.stamp, note.clone()));
        }
    }
    all
}

#[test]
fn both_stores_together_have_everything_and_the_index_is_smaller() {
    let world = SimWorld::new(1);
    let env = world.process("a");
    let (store, cold) = (open(&env, "/s").unwrap(), open(&env, "/cold").unwrap());
    define(&store);
    put(&store);
    let all = notes(&store, None);
    let before = store.graph().stats().unwrap();
    let report = archive(&store, 1_000, "/cold", false).unwrap();
    assert_eq!((report.vertices, report.relations, report.others, report.done), (90, 90, 0, false));
    assert_eq!(report.bytes, 90 * 3 * props_bytes(&note(1)).len() as u64);
    assert_eq!(store.graph().stats().unwrap().bytes, before.bytes, "nothing was done");
    let done = archive_into(&store, 1_000, &cold, "/cold").unwrap();
    assert_eq!((done.vertices, done.relations, done.done), (90, 90, true));
    assert_eq!(notes(&store, Some(&cold)), all);
    // The types moved, too.
    assert_eq!(
        cold.graph().edges(&file(1), Some("madeBy"), Versions::NOW, None, &Session::default()).unwrap().len(),
        1
    );
    let other = open(&world.process("b"), "/s").unwrap();
    for reader in [&store, &other] {
        let error = reader.graph().vertex(&file(3), Some(20), &Session::default()).unwrap_err();
        assert_eq!((error.kind(), error.code()), (ErrorKind::NotFound, Code::VersionArchived));
        assert!(error.message().contains("/cold"), "{error}");
        assert_eq!(reader.graph().vertex(&file(3), None, &Session::default()).unwrap().stamp, 103);
        reader.graph().rebuild().unwrap();
        assert!(reader.graph().verify().unwrap().ok());
        let stats = reader.graph().stats().unwrap();
        assert!(stats.bytes < before.bytes / 2, "{stats:?} {before:?}");
        assert_eq!((&*stats.archives[0].url, stats.archives[0].before), ("/cold", 1_000));
    }
    let again = archive_into(&store, 1_000, &cold, "/cold").unwrap();
    assert_eq!((again.vertices, again.relations), (0, 0));
    // Versions hidden by now move to another archive, and each names its archive.
    put(&store);
    let time = Some(2_000);
    store
        .graph()
        .put_vertices(vec![VertexPut { time, ..VertexPut::new(file(3)) }], &Session::default())
        .unwrap();
    let cellar = open(&env, "/cellar").unwrap();
    archive_into(&store, 3_000, &cellar, "/cellar").unwrap();
    let urls: Vec<Option<String>> = store
        .graph()
        .versions(&file(3), &Session::default())
        .unwrap()
        .into_iter()
        .map(|version| version.archived.map(|url| url.to_string()))
        .collect();
    assert!(urls.contains(&Some("/cellar".into())), "{urls:?}");
}

#[test]
fn a_kill_in_any_call_loses_nothing_and_the_next_archive_finishes() {
    let calls = {
        let world = SimWorld::new(2);
        let env = world.process("a");
        let (store, cold) = (open(&env, "/s").unwrap(), open(&env, "/cold").unwrap());
        define(&store);
        put(&store);
        store.flush(None).unwrap();
        let before = world.counters().total();
        archive_into(&store, 1_000, &cold, "/cold").unwrap();
        world.counters().total() - before
    };
    let mut between = 0;
    for n in (1..=calls).step_by(1 + calls as usize / 60) {
        let world = SimWorld::new(2);
        let env = world.process("a");
        let (store, cold) = (open(&env, "/s").unwrap(), open(&env, "/cold").unwrap());
        define(&store);
        put(&store);
        let all = notes(&store, None);
        store.flush(None).unwrap();
        world.kill_nth(&env, None, n);
        let outcome = archive_into(&store, 1_000, &cold, "/cold");
        if env.identity.alive(env.identity.process()) {
            assert!(outcome.is_ok(), "it made fewer calls");
            continue;
        }
        std::mem::forget((store, cold));
        let world = world.power_cut(n);
        let env = world.process("b");
        let (store, cold) = (open(&env, "/s").unwrap(), open(&env, "/cold").unwrap());
        assert_eq!(notes(&store, Some(&cold)), all, "call {n}");
        let there = cold.graph().versions(&file(1), &Session::default()).unwrap().len();
        let here = store.graph().versions(&file(1), &Session::default()).unwrap();
        between += u64::from(there > 0 && here.iter().all(|version| version.archived.is_none()));
        let finished = archive_into(&store, 1_000, &cold, "/cold").unwrap();
        assert!(finished.vertices == 90 || finished.vertices == 0, "call {n}: {finished:?}");
        assert_eq!(notes(&store, Some(&cold)), all, "call {n}");
        assert_eq!(
            cold.graph().versions(&file(1), &Session::default()).unwrap().len(),
            9,
            "nothing is there twice"
        );
        assert!(store.graph().verify().unwrap().ok() && cold.graph().verify().unwrap().ok());
    }
    assert!(between > 0, "no kill was between the two steps");
}

#[test]
fn what_others_put_stays() {
    let world = SimWorld::new(3);
    world.set_uid("alice", 501);
    world.set_uid("bob", 502);
    let alice = open(&world.process("alice"), "/s").unwrap();
    put(&alice);
    alice.flush(None).unwrap();
    for folder in ["/s", "/s/logs", "/s/data", "/s/boards"] {
        world.permissions().set_mode(Path::new(folder), 0o1777).unwrap();
    }
    let env = world.process("bob");
    let (bob, cold) = (open(&env, "/s").unwrap(), open(&env, "/bobs").unwrap());
    for time in [5, 500, 600] {
        let own = VertexPut { props: note(time), time: Some(time), ..VertexPut::new(file(3)) };
        bob.graph().put_vertices(vec![own], &Session::default()).unwrap();
    }
    let report = archive_into(&bob, 1_000, &cold, "/bobs").unwrap();
    assert_eq!((report.vertices, report.relations, report.others), (2, 0, 180));
    let moved = |version: &fieldstone::graph::Vertex| version.archived.is_some();
    let versions = alice.graph().versions(&file(3), &Session::default()).unwrap();
    let stamps: Vec<u64> = versions.iter().filter(|version| moved(version)).map(|v| v.stamp).collect();
    assert_eq!(stamps, [500, 5]);
    assert_eq!(
        alice.graph().vertex(&file(3), Some(550), &Session::default()).unwrap_err().code(),
        Code::VersionArchived
    );
    assert_eq!(alice.graph().vertex(&file(3), Some(200), &Session::default()).unwrap().stamp, 103);
}

#[test]
fn it_is_refused_where_it_would_hide_or_lose_something() {
    let world = SimWorld::new(4);
    let env = world.process("a");
    let (store, cold) = (open(&env, "/s").unwrap(), open(&env, "/cold").unwrap());
    define(&store);
    put(&store);
    let later = store.graph().now() + 1_000_000_000;
    assert_eq!(archive_into(&store, later, &cold, "/cold").unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(archive(&store, 1_000, "memory:", true).unwrap_err().kind(), ErrorKind::Invalid);
    let same = open(&env, "/s").unwrap();
    assert_eq!(archive_into(&store, 1_000, &same, "/s").unwrap_err().code(), Code::WrongStore);
    let edge = EdgeType { name: "makes".into(), reverse: "otherwise".into(), ..EdgeType::default() };
    cold.graph().define(vec![TypeDecl::Edge(edge)], &Session::default()).unwrap();
    assert_eq!(archive_into(&store, 1_000, &cold, "/cold").unwrap_err().kind(), ErrorKind::Conflict);
    let all = store.graph().versions(&file(3), &Session::default()).unwrap();
    assert!(all.len() == 10 && all.iter().all(|version| version.archived.is_none()), "nothing was moved");
}
