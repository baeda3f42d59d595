//! The graph of a store: its answers over time, its owners, and its segments on disk.

use std::path::Path;

use fieldstone::Session;
use fieldstone::env::sim::SimWorld;
use fieldstone::graph::{Deletion, RelationPut, TraceOptions, Versions, VertexName, VertexPut};
use fieldstone::prelude::*;
use fieldstone::{ErrorKind, Mode, OpenOptions, Store};

fn file(id: &str) -> VertexName {
    VertexName::new("file", id)
}

fn job(id: &str) -> VertexName {
    VertexName::new("job", id)
}

fn write(store: &Store, job_id: &str, file_id: &str) -> u64 {
    let put = RelationPut::new("write", job(job_id), file(file_id));
    store.graph().put_relations(vec![put], &Session::default()).unwrap()
}

fn writers(store: &Store, file_id: &str) -> Vec<String> {
    let edges = store
        .graph()
        .edges(&file(file_id), Some("wasWrittenBy"), Versions::NOW, None, &Session::default())
        .unwrap();
    edges.iter().map(|edge| edge.far.id.to_string()).collect()
}

fn simulated(world: &SimWorld, host: &str, options: &OpenOptions) -> Store {
    let store = fieldstone::open_in(world.process(host), "/s", Path::new("/s"), options).unwrap();
    // A reader before the first flush finds nothing.
    store.will_write();
    store
}

fn on_disk(folder: &Path, mode: Mode) -> Store {
    let url = folder.join("store").display().to_string();
    fieldstone::open(&url, &OpenOptions { mode, ..OpenOptions::default() }).unwrap()
}

#[test]
fn the_own_process_sees_a_put_at_once_and_others_at_the_flush() {
    let world = SimWorld::new(1);
    let (a, b) =
        (simulated(&world, "a", &OpenOptions::default()), simulated(&world, "b", &OpenOptions::default()));
    write(&a, "1", "x");
    assert_eq!(writers(&a, "x"), ["1"]);
    assert!(writers(&b, "x").is_empty());
    a.flush(None).unwrap();
    assert_eq!(writers(&b, "x"), ["1"]);
    write(&a, "2", "x");
    a.discard(None).unwrap();
    assert_eq!(writers(&a, "x"), ["1"]);
}

#[test]
fn a_transaction_shows_to_who_names_it_and_to_all_when_it_is_committed() {
    for commit in [true, false] {
        let world = SimWorld::new(2);
        let (a, b) = (
            simulated(&world, "a", &OpenOptions::default()),
            simulated(&world, "b", &OpenOptions::default()),
        );
        let transaction = a.transaction().unwrap();
        let id = transaction.id();
        let put = RelationPut::new("write", job("1"), file("x"));
        a.graph().put_relations(vec![put], &Session::from(id)).unwrap();
        let seen = |store: &Store| {
            store.graph().edges(&file("x"), None, Versions::NOW, None, &Session::from(id)).unwrap().len()
        };
        assert_eq!((seen(&a), writers(&a, "x").len()), (1, 0));
        transaction.flush().unwrap();
        assert_eq!((seen(&a), seen(&b)), (1, 1), "it is prepared");
        assert!(writers(&a, "x").is_empty() && writers(&b, "x").is_empty());
        if commit { transaction.commit() } else { transaction.abort() }.unwrap();
        let expected: &[&str] = if commit { &["1"] } else { &[] };
        assert_eq!(writers(&a, "x"), expected);
        assert_eq!(writers(&b, "x"), expected);
        assert!(b.graph().verify().unwrap().ok());
    }
}

#[test]
fn relations_are_a_kind_of_what_a_transaction_holds() {
    let world = SimWorld::new(3);
    let store = simulated(&world, "a", &OpenOptions::default());
    let transaction = store.transaction().unwrap();
    let put = RelationPut::new("write", job("1"), file("x"));
    store.graph().put_relations(vec![put], &Session::from(transaction.id())).unwrap();
    transaction.activate(&["relation"]).unwrap();
    assert_eq!(writers(&store, "x"), ["1"]);
    transaction.deactivate(&["relation"]).unwrap();
    assert!(writers(&store, "x").is_empty());
    transaction.abort().unwrap();
    assert!(writers(&store, "x").is_empty() && store.graph().verify().unwrap().ok());
}

#[test]
fn nobody_deletes_what_another_put() {
    let world = SimWorld::new(4);
    world.set_uid("alice", 501);
    world.set_uid("bob", 502);
    let alice = simulated(&world, "alice", &OpenOptions::default());
    write(&alice, "1", "x");
    alice.graph().put_vertices(vec![VertexPut::new(file("x"))], &Session::default()).unwrap();
    alice.flush(None).unwrap();
    for folder in ["/s", "/s/logs", "/s/data", "/s/boards"] {
        world.permissions().set_mode(Path::new(folder), 0o1777).unwrap();
    }
    let bob = simulated(&world, "bob", &OpenOptions::default());
    let relation = Deletion::Relation("write".into(), job("1"), file("x"));
    for what in [relation, Deletion::Vertex(file("x"))] {
        let error = bob.graph().delete(vec![what], None, &Session::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    }
    // A user owns his own versions, and deletes only those.
    write(&bob, "1", "x");
    bob.flush(None).unwrap();
    bob.graph()
        .delete(vec![Deletion::Relation("write".into(), job("1"), file("x"))], None, &Session::default())
        .unwrap();
    bob.flush(None).unwrap();
    for store in [&alice, &bob] {
        let edges = store.graph().edges(&job("1"), None, Versions::NOW, None, &Session::default()).unwrap();
        assert_eq!(edges.iter().map(|edge| edge.user).collect::<Vec<_>>(), [501]);
    }
}

#[test]
fn stamps_follow_what_was_read_whatever_the_clocks_say() {
    let world = SimWorld::new(5);
    world.set_clock_offset("late", -3_600_000_000_000);
    let (early, late) = (
        simulated(&world, "early", &OpenOptions::default()),
        simulated(&world, "late", &OpenOptions::default()),
    );
    let first = write(&early, "1", "x");
    early.flush(None).unwrap();
    assert_eq!(writers(&late, "x"), ["1"]);
    let put = RelationPut::new("read", job("2"), file("x"));
    let second = late.graph().put_relations(vec![put], &Session::default()).unwrap();
    assert!(second > first, "it was put after the first was read");
    let third = write(&late, "2", "y");
    late.flush(None).unwrap();
    assert!(third > second);
    let lineage = early.graph().trace(&file("y"), &TraceOptions::default(), &Session::default()).unwrap();
    let names: Vec<String> = lineage.vertices.iter().map(|step| step.name.to_string()).collect();
    assert_eq!(names, ["file:y", "job:2", "file:x", "job:1"]);
}

#[test]
fn where_changes_are_durable_each_is_there_when_its_call_returns() {
    let world = SimWorld::new(6);
    let options = OpenOptions { durable: true, ..OpenOptions::default() };
    let store = simulated(&world, "a", &options);
    write(&store, "1", "x");
    let other = simulated(&world, "b", &OpenOptions::default());
    assert_eq!(writers(&other, "x"), ["1"]);
    store.create_run("r").create().unwrap();
    store
        .archive(&[("run", "r"), ("variable", "t")], fieldstone::Value::Bytes(b"x"), &Default::default())
        .unwrap();
    assert_eq!(store.unflushed(), 0);
    other.refresh().unwrap();
    assert!(other.run("r").is_ok());
    let transaction = store.transaction().unwrap();
    let put = RelationPut::new("write", job("2"), file("x"));
    store.graph().put_relations(vec![put], &Session::from(transaction.id())).unwrap();
    assert_eq!(writers(&other, "x"), ["1"], "a transaction waits for its commit");
}

#[test]
fn what_is_put_is_refused_where_it_cannot_be_kept() {
    let store = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
    let graph = store.graph();
    let century = graph.now() + 37_000 * 86_400 * 1_000_000_000;
    let relation = |kind: &str, source: VertexName| RelationPut::new(kind, source, file("x"));
    let wrong = [
        relation("", job("1")),
        relation("write", job("")),
        relation("write", VertexName::new("a:b", "1")),
        RelationPut { time: Some(century), ..relation("write", job("1")) },
        RelationPut { time: Some(9), until: Some(8), ..relation("write", job("1")) },
    ];
    for put in wrong {
        let error = graph.put_relations(vec![put], &Session::default()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
    }
    assert!(graph.edges(&file("x"), None, Versions::ALL, None, &Session::default()).unwrap().is_empty());
    for what in [Deletion::Vertex(file("x")), Deletion::Relation("write".into(), job("1"), file("x"))] {
        assert_eq!(
            graph.delete(vec![what], None, &Session::default()).unwrap_err().kind(),
            ErrorKind::NotFound
        );
    }
}

/// Enough relations for segments to be written when the handle is closed.
fn many(store: &Store) {
    let put = |n: u32| RelationPut::new("write", job(&(n % 50).to_string()), file(&format!("/data/{n}")));
    store.graph().put_relations((0..20_000).map(put).collect(), &Session::default()).unwrap();
    store.flush(None).unwrap();
    assert_eq!(writers(store, "/data/7"), ["7"]);
}

#[test]
fn segments_on_disk_are_read_by_others_and_made_anew_where_they_are_damaged() {
    let folder = tempfile::tempdir().unwrap();
    let store = on_disk(folder.path(), Mode::Append);
    many(&store);
    store.close().unwrap();
    let graph = folder.path().join("store/graph");
    let segments = || -> Vec<std::path::PathBuf> {
        let entries = std::fs::read_dir(&graph).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|suffix| suffix == "segment")).collect()
    };
    assert_eq!(segments().len(), 1, "it was written at the end");
    let other = on_disk(folder.path(), Mode::Read);
    assert_eq!(writers(&other, "/data/17"), ["17"]);
    assert!(other.graph().verify().unwrap().ok());
    let bytes = std::fs::read(&segments()[0]).unwrap();
    for at in [0, bytes.len() / 3, bytes.len() / 2, bytes.len() - 40, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        std::fs::write(&segments()[0], &damaged).unwrap();
        let reader = on_disk(folder.path(), Mode::Read);
        for n in [0, 17, 4_711, 19_999] {
            assert_eq!(writers(&reader, &format!("/data/{n}")), [(n % 50).to_string()], "byte {at}");
        }
        // Damage of a page that was never read is found when all pages are read.
        let check = reader.graph().verify().unwrap();
        assert!(check.ok() || check.different[0].starts_with("the index cannot be read"), "{check:?}");
        reader.graph().rebuild().unwrap();
        assert!(reader.graph().verify().unwrap().ok());
        reader.close().unwrap();
        let now = segments();
        assert_eq!(now.len(), 1);
        std::fs::write(&now[0], &bytes).unwrap();
    }
    std::fs::remove_dir_all(&graph).unwrap();
    assert_eq!(writers(&on_disk(folder.path(), Mode::Read), "/data/17"), ["17"], "it may be deleted");
}
