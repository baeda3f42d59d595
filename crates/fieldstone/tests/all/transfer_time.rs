//! Moved and copied fields keep the time, the place in the order, the attempt and the commits that they had (R35).

use std::path::Path;
use std::time::{Duration, SystemTime};

use fieldstone::catalog::value::Value as Property;
use fieldstone::env::sim::SimWorld;
use fieldstone::graph::{Props, RelationPut, TraceOptions, Versions, VertexName, VertexPut};
use fieldstone::prelude::*;
use fieldstone::transfer::{TransferOptions, TransferReport, copy, move_to};
use fieldstone::{
    ArchiveOptions, CompactOptions, DType, ErrorKind, FieldSpec, ListOptions, OpenOptions, ReadOptions,
    Request, Session, Store, Value, WipeOptions, open_in,
};

const HOT: &str = "/hot";
const COLD: &str = "/cold";
const DAY: u64 = 86_400_000_000_000;

fn world() -> SimWorld {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    world
}

fn open_with(world: &SimWorld, path: &str, options: OpenOptions) -> Store {
    open_in(world.process("a"), path, Path::new(path), &options).unwrap()
}

fn open(world: &SimWorld, path: &str) -> Store {
    open_with(world, path, OpenOptions::default())
}

fn of_attempt(world: &SimWorld, path: &str, attempt: &str) -> Store {
    open_with(world, path, OpenOptions { attempt: Some(attempt.to_owned()), ..OpenOptions::default() })
}

fn key(step: &str) -> [(&str, &str); 3] {
    [("run", "a"), ("variable", "t"), ("step", step)]
}

fn put(store: &Store, step: &str, value: &[u8]) {
    store.archive(&key(step), Value::Bytes(value), &ArchiveOptions::default()).unwrap();
    store.flush(None).unwrap();
}

fn get(store: &Store, step: &str) -> Option<Vec<u8>> {
    Some(store.get(&key(step), &ReadOptions::default()).ok()?.read().unwrap())
}

fn commits(store: &Store, step: &str) -> Vec<String> {
    let field = store.get(&key(step), &ReadOptions::default()).unwrap();
    field.commits().into_iter().map(|(id, _)| id.to_string()).collect()
}

fn all() -> Vec<Request> {
    vec![Request::parse("run=a").unwrap()]
}

fn lenient() -> TransferOptions<'static> {
    TransferOptions { strict: false, ..TransferOptions::default() }
}

fn copied(from: &Store, to: &Store) -> TransferReport {
    copy(from, all(), to, &lenient()).unwrap()
}

fn moved(from: &Store, to: &Store) -> TransferReport {
    move_to(from, all(), to, &lenient()).unwrap()
}

/// Key, time and attempt of each field.
fn listed(store: &Store) -> Vec<(String, i64, Option<String>)> {
    let list = store.list(&Request::new(), &ListOptions::default()).unwrap();
    let entries = list.map(|entry| entry.unwrap());
    entries.map(|e| (e.key.to_string(), e.time, e.attempt.map(|name| name.to_string()))).collect()
}

fn compact(store: Store, world: &SimWorld, path: &str) -> Store {
    store.close().unwrap();
    let store = open(world, path);
    let at_once = CompactOptions { grace: Duration::ZERO, ..CompactOptions::default() };
    assert!(store.compact(&at_once).unwrap().logs.0 > 0);
    store
}

#[test]
fn r35_fields_keep_time_and_commit_in_another_store() {
    let world = world();
    let (hot, cold, copies) = (open(&world, HOT), open(&world, COLD), open(&world, "/copies"));
    for step in ["0", "1", "2"] {
        put(&hot, step, step.as_bytes());
        world.advance(DAY);
    }
    let (before, wrote) = (listed(&hot), commits(&hot, "1"));
    assert_eq!(before.len(), 3);
    assert_eq!(copied(&hot, &copies).fields, 3);
    assert_eq!(moved(&hot, &cold).removed, 3);
    for store in [&copies, &cold] {
        assert_eq!(listed(store), before);
        assert_eq!(commits(store, "1"), wrote);
        assert_eq!(get(store, "2").unwrap(), b"2");
    }
    // A takeover of both stores, and a third store, keep them as well.
    let cold = compact(cold, &world, COLD);
    assert_eq!((listed(&cold), commits(&cold, "1")), (before.clone(), wrote.clone()));
    let third = open(&world, "/third");
    moved(&cold, &third);
    assert_eq!((listed(&third), commits(&third, "1")), (before, wrote));
    assert!(third.verify(&Request::new()).unwrap().ok());
}

#[test]
fn r35_pieces_of_several_commits_stay_those_of_their_commits() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    let options = ArchiveOptions::default();
    let spec = FieldSpec { dtype: DType::U1, shape: &[4, 6], fill: None, chunks: Some(&[2, 3]) };
    hot.create_field(&key("0"), &spec, &options).unwrap();
    hot.flush(None).unwrap();
    let boxes: [([u64; 2], [u64; 2]); 4] =
        [([0, 0], [4, 2]), ([1, 1], [2, 4]), ([3, 3], [1, 3]), ([0, 5], [2, 1])];
    for (n, (start, count)) in boxes.iter().enumerate() {
        world.advance(DAY);
        let data = vec![n as u8 + 1; (count[0] * count[1]) as usize];
        let piece = Value::Piece { data: &data, dtype: DType::U1, start, count, shape: &[4, 6] };
        hot.archive(&key("0"), piece, &options).unwrap();
        hot.flush(None).unwrap();
    }
    let output =
        |store: &Store| store.get(&key("0"), &ReadOptions::default()).unwrap().lenient().read().unwrap();
    let (before, wrote, data) = (listed(&hot), commits(&hot, "0"), output(&hot));
    assert_eq!(wrote.len(), 5);
    moved(&hot, &cold);
    assert_eq!((listed(&cold), output(&cold)), (before, data));
    let mut there = commits(&cold, "0");
    there.dedup();
    assert_eq!(there, wrote);
}

#[test]
fn r35_what_a_move_brings_is_seen_and_keeps_its_time() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    put(&hot, "0", b"hot");
    let before = listed(&hot);
    world.advance(DAY);
    // The target has a newer value, but the mover's replaces it, as ever.
    put(&cold, "0", b"cold");
    world.advance(DAY);
    moved(&hot, &cold);
    assert_eq!((get(&cold, "0").unwrap(), listed(&cold)), (b"hot".to_vec(), before.clone()));
    // There and back, past the removals that moves leave.
    for _ in 0..2 {
        world.advance(DAY);
        assert_eq!(moved(&cold, &hot).removed, 1);
        assert_eq!((get(&hot, "0").unwrap(), listed(&hot)), (b"hot".to_vec(), before.clone()));
        assert_eq!(get(&cold, "0"), None);
        world.advance(DAY);
        assert_eq!(moved(&hot, &cold).removed, 1);
        assert_eq!((get(&cold, "0").unwrap(), listed(&cold)), (b"hot".to_vec(), before.clone()));
        assert_eq!(get(&hot, "0"), None);
    }
    // A value that is archived there is newer.
    put(&cold, "0", b"newest");
    assert_eq!(get(&cold, "0").unwrap(), b"newest");
    assert!(cold.verify(&Request::new()).unwrap().ok());
}

#[test]
fn r35_a_removal_in_the_target_does_not_take_what_is_being_moved() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    put(&hot, "0", b"hot");
    put(&cold, "0", b"cold");
    world.advance(DAY);
    let progress = |done: u64, all: u64| {
        if done == all && get(&cold, "0").is_some() {
            let other = open(&world, COLD);
            other.remove(&Request::parse("run=a,variable=t").unwrap(), &Default::default())?;
            other.flush(None)?;
        }
        Ok(())
    };
    let options = TransferOptions { progress: Some(&progress), ..TransferOptions::default() };
    let refused = move_to(&hot, all(), &cold, &options).unwrap_err();
    assert!(refused.to_string().contains("was written or removed"), "{refused}");
    assert_eq!((get(&hot, "0").unwrap(), get(&cold, "0")), (b"hot".to_vec(), None));
    moved(&hot, &cold);
    assert_eq!((get(&hot, "0"), get(&cold, "0").unwrap()), (None, b"hot".to_vec()));
}

#[test]
fn r35_attempts_go_along_and_a_newer_one_hides_an_older_one() {
    let world = world();
    let first = of_attempt(&world, HOT, "1");
    put(&first, "0", b"first");
    put(&first, "1", b"first");
    let cold = open(&world, COLD);
    copied(&first, &cold);
    world.advance(DAY);
    put(&of_attempt(&world, HOT, "2"), "0", b"second");
    // A straggler of the older attempt.
    world.advance(DAY);
    put(&first, "0", b"late");
    let before = listed(&first);
    let attempts: Vec<_> = before.iter().map(|(_, _, attempt)| attempt.as_deref()).collect();
    assert_eq!(attempts, [Some("2"), Some("1")]);
    moved(&open(&world, HOT), &cold);
    assert_eq!((listed(&cold), get(&cold, "0").unwrap()), (before.clone(), b"second".to_vec()));
    // The value that came first keeps its place also if it arrives last.
    let (third, fourth) = (open(&world, "/third"), open(&world, "/fourth"));
    copied(&cold, &third);
    put(&of_attempt(&world, "/old", "0"), "0", b"zeroth");
    copied(&third, &fourth);
    assert_eq!(get(&fourth, "0").unwrap(), b"second");
    let cold = compact(cold, &world, COLD);
    assert_eq!(listed(&cold), before);
}

#[test]
fn r26_the_age_of_a_moved_field_counts_from_its_arrival_for_a_wipe() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    put(&hot, "0", b"hot");
    world.advance(10 * DAY);
    moved(&hot, &cold);
    world.advance(DAY);
    let ago = |days: u64| {
        SystemTime::UNIX_EPOCH + Duration::from_nanos(world.now() as u64) - Duration::from_nanos(days * DAY)
    };
    let wiped = |older_than| {
        let options = WipeOptions { older_than: Some(older_than), doit: true, all: false };
        cold.wipe(&Request::parse("run=a").unwrap(), &options).unwrap().fields
    };
    assert_eq!(wiped(ago(5)), 0);
    assert_eq!(wiped(ago(0)), 1);
    assert_eq!(get(&cold, "0"), None);
}

/// Time and value of each version of a field, newest first.
fn versions(store: &Store, step: &str) -> Vec<(i64, Vec<u8>)> {
    let mut field = store.get(&key(step), &ReadOptions::default()).unwrap();
    let mut all = vec![(field.time(), field.read().unwrap())];
    while let Some(older) = field.older().unwrap() {
        field = older;
        all.push((field.time(), field.read().unwrap()));
    }
    all
}

#[test]
fn r35_older_values_go_along_where_they_are_asked_for() {
    let world = world();
    let (hot, cold, copies) = (open(&world, HOT), open(&world, COLD), open(&world, "/copies"));
    for value in [&b"one"[..], b"two", b"three"] {
        put(&hot, "0", value);
        world.advance(DAY);
    }
    put(&hot, "1", b"only");
    let (before, list) = (versions(&hot, "0"), listed(&hot));
    assert_eq!(before.len(), 3);
    let with_versions = TransferOptions { versions: true, ..lenient() };
    let report = copy(&hot, all(), &copies, &with_versions).unwrap();
    assert_eq!((report.fields, report.versions, &report.left[..]), (2, 2, &[][..]));
    assert_eq!((versions(&copies, "0"), listed(&copies)), (before.clone(), list.clone()));
    let masked = ListOptions { masked: true, ..ListOptions::default() };
    assert_eq!(copies.list(&Request::new(), &masked).unwrap().count(), 4);
    // All of it is there, or a version is missing.
    let again = copy(&hot, all(), &copies, &with_versions).unwrap();
    assert_eq!((again.fields, again.unchanged, again.versions), (0, 2, 0));
    copied(&hot, &cold);
    let again = copy(&hot, all(), &cold, &with_versions).unwrap();
    assert_eq!((again.fields, again.unchanged, again.versions), (0, 2, 2));
    assert_eq!(versions(&cold, "0")[..3], before[..]);
    let copies = compact(copies, &world, "/copies");
    assert_eq!(versions(&copies, "0"), before);
    let (third, fourth) = (open(&world, "/third"), open(&world, "/fourth"));
    let left = moved(&hot, &third).left;
    assert_eq!(left.iter().map(|left| (left.kind, left.count)).collect::<Vec<_>>(), [("version", 2)]);
    assert_eq!(versions(&third, "0"), before[..1]);
    let report = move_to(&copies, all(), &fourth, &with_versions).unwrap();
    assert_eq!((report.removed, report.versions, &report.left[..]), (2, 2, &[][..]));
    assert_eq!((versions(&fourth, "0"), listed(&fourth)), (before, list));
    assert_eq!(get(&copies, "0"), None);
    assert!(fourth.verify(&Request::new()).unwrap().ok());
}

#[test]
fn r35_the_report_names_owners_who_lose_their_fields() {
    let world = world();
    let hot = open(&world, HOT);
    put(&hot, "0", b"of the first");
    hot.close().unwrap();
    world.set_uid("b", 502);
    let by =
        |path: &str| open_in(world.process("b"), path, Path::new(path), &OpenOptions::default()).unwrap();
    let report = copied(&by(HOT), &by(COLD));
    assert_eq!(report.left.iter().map(|left| (left.kind, left.count)).collect::<Vec<_>>(), [("owner", 1)]);
    assert_eq!(report.left[0].names.len(), 1);
}

fn vertex(text: &str) -> VertexName {
    let (kind, id) = text.split_once(':').unwrap();
    VertexName::new(kind, id)
}

/// All that led to a field, by name.
fn lineage(store: &Store, step: &str) -> Vec<String> {
    let commit = vertex(&format!("commit:{}", commits(store, step)[0]));
    let lineage = store.graph().trace(&commit, &TraceOptions::default(), &Session::default()).unwrap();
    lineage.vertices.into_iter().map(|step| step.name.to_string()).collect()
}

#[test]
fn r35_the_lineage_of_fields_goes_along_whole() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    put(&hot, "0", b"first");
    put(&hot, "1", b"second");
    let commit = |step: &str| format!("commit:{}", commits(&hot, step)[0]);
    let relation = |source: &str, kind: &str, target: &str, time| RelationPut {
        time: Some(time),
        ..RelationPut::new(kind, vertex(source), vertex(target))
    };
    let (first, second) = (commit("0"), commit("1"));
    let relations = vec![
        relation("user:501", "run", "job:model", 10),
        relation("job:model", "read", "file:/mesh", 11),
        relation("job:model", "write", &first, 12),
        relation("job:regrid", "read", &first, 13),
        relation("job:regrid", "write", &second, 14),
        relation("job:other", "write", "file:/other", 15),
    ];
    let argv = Property::List(vec![Property::Text("model".into())]);
    let model = VertexPut {
        props: Props::of([("argv", &argv)]).unwrap(),
        time: Some(10),
        ..VertexPut::new(vertex("job:model"))
    };
    hot.graph().put(vec![model], relations, &Session::default()).unwrap();
    hot.flush(None).unwrap();
    let before = lineage(&hot, "1");
    assert_eq!(before.len(), 5);
    let alone = TransferOptions { fields_only: true, ..lenient() };
    let bare = open(&world, "/bare");
    let left = copy(&hot, all(), &bare, &alone).unwrap().left;
    assert_eq!(left.iter().map(|left| (left.kind, left.count)).collect::<Vec<_>>(), [("execution", 2)]);
    moved(&hot, &cold);
    assert_eq!((lineage(&cold, "1"), lineage(&cold, "0").len()), (before.clone(), 3));
    let graph = cold.graph();
    let props = graph.vertex(&vertex("job:model"), None, &Session::default()).unwrap().props;
    assert_eq!(props, [("argv".to_owned(), argv)]);
    let readers =
        graph.edges(&vertex(&first), Some("wasReadBy"), Versions::NOW, None, &Session::default()).unwrap();
    assert_eq!(readers.len(), 1);
    let gone = graph.vertex(&vertex("job:other"), None, &Session::default());
    assert_eq!(gone.unwrap_err().kind(), ErrorKind::NotFound, "it has no part in these fields");
    // A second time adds nothing; a third store gets it from the second.
    let (third, rows) = (open(&world, "/third"), graph.stats().unwrap());
    put(&hot, "2", b"later");
    copied(&hot, &cold);
    assert_eq!(graph.stats().unwrap().relations, rows.relations);
    copied(&cold, &third);
    assert_eq!(lineage(&third, "1"), before);
    assert_eq!(copied(&cold, &third).unchanged, 3);
}

#[test]
fn a_target_of_the_first_format_gives_fields_a_time_of_its_own() {
    let world = world();
    let hot = open(&world, HOT);
    put(&hot, "0", b"hot");
    world.advance(DAY);
    let old = open_with(&world, COLD, OpenOptions { format: Some(1), ..OpenOptions::default() });
    let report = moved(&hot, &old);
    assert_eq!((report.fields, report.removed, get(&old, "0").unwrap()), (1, 1, b"hot".to_vec()));
    assert!(listed(&old)[0].1 >= world.now() - DAY as i64 / 2);
    let left: Vec<_> = report.left.iter().map(|left| (left.kind, left.count)).collect();
    assert_eq!(left, [("time", 1)]);
}

/// Entries of one transaction have one place; in the target only places say which of two logs' entries is newer.
#[test]
fn parts_of_one_transaction_keep_their_order_whatever_logs_they_are_in() {
    for seed in 0..8 {
        let world = SimWorld::new(seed);
        world.set_tracing(false);
        let (first, second) = (open(&world, HOT), open(&world, HOT));
        let transaction = first.begin().unwrap();
        let inside = ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() };
        let whole = |value: u8| vec![value; 4];
        for value in [1, 2] {
            let data = whole(value);
            let value = Value::Array { data: &data, dtype: DType::U1, shape: &[4] };
            first.archive(&key("0"), value, &inside).unwrap();
            first.flush(Session::from(transaction)).unwrap();
        }
        let (data, dtype) = ([3], DType::U1);
        let piece = Value::Piece { data: &data, dtype, start: &[1], count: &[1], shape: &[4] };
        second.refresh().unwrap();
        second.archive(&key("0"), piece, &inside).unwrap();
        second.flush(Session::from(transaction)).unwrap();
        let data = whole(4);
        let value = Value::Array { data: &data, dtype: DType::U1, shape: &[4] };
        first.refresh().unwrap();
        first.archive(&key("1"), value, &inside).unwrap();
        first.flush(Session::from(transaction)).unwrap();
        let data = whole(5);
        second.refresh().unwrap();
        let value = Value::Array { data: &data, dtype: DType::U1, shape: &[4] };
        second.archive(&key("1"), value, &inside).unwrap();
        second.flush(Session::from(transaction)).unwrap();
        first.decide(transaction, true).unwrap();
        let cold = open(&world, COLD);
        let options = TransferOptions { versions: true, ..TransferOptions::default() };
        let requests = vec![Request::parse("run=a").unwrap()];
        assert_eq!(move_to(&first, requests, &cold, &options).unwrap().removed, 2, "seed {seed}");
        assert_eq!(get(&cold, "0"), Some(vec![2, 3, 2, 2]), "seed {seed}");
        assert_eq!(get(&cold, "1"), Some(whole(5)), "seed {seed}");
    }
}
