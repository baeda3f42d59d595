//! Wipes: what a version showed is hidden, and nothing else, whatever happens to the logs.

use crate::common::*;
use crate::takeovers::{close, compact, look, open_at};
use fieldstone_core::ErrorKind;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::{OpKind, SimWorld, SyncKind};
use fieldstone_core::key::KeyValue;
use fieldstone_core::request::Request;
use fieldstone_format::store_record::{RangeAction, Selection, SelectionItem};
use fieldstone_journal::Session;
use fieldstone_journal::compact::CompactOptions;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;

pub fn wipe_with(store: &Store, request: &str, how: &Wiping) -> fieldstone_core::Result<WipeReport> {
    store.wipe(&Request::parse(request).unwrap(), how)
}

pub fn wipe(store: &Store, request: &str) -> WipeReport {
    wipe_with(store, request, &Wiping { doit: true, ..Wiping::default() }).unwrap()
}

fn axes(store: &Store) -> String {
    let axes = store.axes(&Request::new(), &ReadOptions::default()).unwrap();
    let text =
        |values: Vec<KeyValue>| values.iter().map(|v| v.text().into_owned()).collect::<Vec<_>>().join("/");
    axes.into_iter().map(|(name, values)| format!("{name}={}", text(values))).collect::<Vec<_>>().join(",")
}

/// Steps of a dataset that are listed.
fn steps(store: &Store, request: &str) -> usize {
    store
        .list(&Request::parse(request).unwrap(), &ListOptions::default())
        .unwrap()
        .map(Result::unwrap)
        .count()
}

#[test]
fn r26_a_wipe_hides_whole_datasets_and_indexes_and_says_what_it_would_hide() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    for (run, variable, step) in [("a", "t", 0), ("a", "t", 6), ("a", "u", 0), ("b", "t", 0), ("b", "u", 12)]
    {
        put(&store, &format!("run={run},variable={variable},step={step}"), b"value").unwrap();
    }
    store.flush(&Session::default()).unwrap();
    let (before, version) = (look(&store, None), store.version().unwrap());
    world.process("a").disk.create_new(&std::path::Path::new(ROOT).join("stray.txt")).unwrap();
    // Behaviour 23: a dry run changes nothing, and names what is not the store's.
    let report = wipe_with(&store, "run=a", &Wiping::default()).unwrap();
    assert_eq!((report.fields, report.nbytes, report.done), (3, 15, false));
    assert_eq!(report.foreign, ["stray.txt"]);
    assert_eq!((look(&store, None), store.version().unwrap()), (before.clone(), version.clone()));
    // A keyword of single fields, no keyword at all, one that no key lacks.
    let refused = |request: &str| wipe_with(&store, request, &Wiping { doit: true, ..Wiping::default() });
    for (request, named) in
        [("run=a,step=0", "step"), ("", "everything"), ("run=*", "everything"), ("run=!*", "run")]
    {
        let e = refused(request).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Invalid, "{request}: {e}");
        assert!(e.message().contains(named), "{request}: {e}");
    }
    assert_eq!(look(&store, None), before);
    // An index alone, then what is left of the dataset; the other one stays.
    assert_eq!(wipe(&store, "run=a,variable=t").fields, 2);
    assert_eq!(listed(&store).len(), 3);
    assert_eq!(wipe(&store, "run=a").fields, 1);
    for reader in [&store, &open(&world, "b")] {
        assert_eq!(listed(reader).len(), 2);
        assert_eq!(axes(reader), "run=b,variable=t/u,step=0/12");
        error(get(reader, "run=a,variable=t,step=6"), ErrorKind::NotFound);
        let stats = reader.stats(&Request::new()).unwrap();
        assert_eq!((stats.fields, stats.datasets, stats.masked), (2, 1, 0));
        let rows = reader.stats_by(&Request::new(), &StatsBy::Dataset).unwrap();
        // Wiped fields take room until a purge.
        let counts: Vec<(u64, bool)> = rows.iter().map(|row| (row.fields, row.dead > 0)).collect();
        assert_eq!(counts, [(0, true), (2, false)], "{rows:?}");
    }
    assert_eq!(wipe(&store, "run=a").fields, 0);
    // The older version answers as before, this one does not.
    let older = open_at(&world, &version);
    assert_eq!(look(&older, None), before);
    assert_eq!(listed(&open_at(&world, &store.version().unwrap())).len(), 2);
    // A field that is archived again is new, and alone.
    flush_one(&store, "run=a,variable=t,step=6", b"again");
    let options = ListOptions { masked: true, ..ListOptions::default() };
    let again = store.list(&Request::parse("run=a").unwrap(), &options).unwrap().count();
    assert_eq!((get(&store, "run=a,variable=t,step=6").unwrap(), again), (b"again".to_vec(), 1));
    let report = store.verify(&Request::new()).unwrap();
    assert!(report.ok(), "{report:?}");
    // Everything, if that is said.
    let how = Wiping { doit: true, all: true, ..Wiping::default() };
    assert_eq!(wipe_with(&store, "", &how).unwrap().fields, 3);
    assert_eq!((listed(&store).len(), axes(&open(&world, "b"))), (0, String::new()));
}

#[test]
fn r26_what_is_under_way_stays() {
    let world = SimWorld::new(1);
    let (a, b) = (open(&world, "a"), open(&world, "b"));
    let (open_one, committed, active) = (b.begin().unwrap(), b.begin().unwrap(), b.begin().unwrap());
    for (id, name) in [(open_one, "open"), (committed, "committed"), (active, "active")] {
        put_in(&b, &format!("run=a,variable={name},step=1"), name.as_bytes(), id).unwrap();
        b.flush(&Session::from(id)).unwrap();
    }
    b.decide(committed, true, &Session::default()).unwrap();
    let fields = fieldstone_format::log::kinds::FIELDS;
    b.set_active_kinds(active, !fields, fields, &Session::default()).unwrap();
    flush_one(&b, "run=a,variable=plain,step=1", b"plain");
    put(&b, "run=a,variable=late,step=1", b"late").unwrap();
    put(&a, "run=a,variable=own,step=1", b"own").unwrap();
    assert_eq!(wipe(&a, "run=a").fields, 2);
    assert_eq!(listed(&b).len(), 0);
    b.flush(&Session::default()).unwrap();
    a.flush(&Session::default()).unwrap();
    b.decide(open_one, true, &Session::default()).unwrap();
    b.set_active_kinds(active, fields, 0, &Session::default()).unwrap();
    let seen = |store: &Store| {
        ["late", "own", "open", "active", "plain", "committed"]
            .map(|name| get(store, &format!("run=a,variable={name},step=1")).is_ok())
    };
    assert_eq!(seen(&open(&world, "c")), [true, true, true, true, false, false]);
    // The same after all of it was taken over, and again.
    close(&a);
    close(&b);
    for round in 0..3 {
        compact(&open(&world, "a"));
        assert_eq!(seen(&open(&world, "c")), [true, true, true, true, false, false], "{round}");
        let store = open(&world, "a");
        flush_one(&store, "run=b,variable=t,step=1", b"one more log");
        close(&store);
    }
}

#[test]
fn r61_a_wipe_means_the_same_after_any_takeovers() {
    let world = SimWorld::new(1);
    let (first, living) = (open(&world, "a"), open(&world, "b"));
    for n in 0..30 {
        put(&first, &format!("run=a,variable=t,step={n}"), format!("old {n}").as_bytes()).unwrap();
        put(&first, &format!("run=b,variable=t,step={n}"), b"stays").unwrap();
    }
    first.flush(&Session::default()).unwrap();
    close(&first);
    compact(&open(&world, "a"));
    // One part in a takeover, one in a log that lives on behind the wipe.
    flush_one(&living, "run=a,variable=t,step=40", b"old");
    let wiper = open(&world, "c");
    let version = wiper.version().unwrap();
    assert_eq!(wipe(&wiper, "run=a").fields, 31);
    flush_one(&living, "run=a,variable=t,step=40", b"new");
    flush_one(&living, "run=a,variable=t,step=3", b"newer");
    let (before, at) = (look(&open(&world, "d"), None), living.version().unwrap());
    assert_eq!((steps(&living, "run=a"), steps(&living, "run=b")), (2, 30));
    let older = look(&open_at(&world, &version), None);
    for round in ["the log of the wipe", "the living log", "another log", "a last one"] {
        match round {
            "the log of the wipe" => close(&wiper),
            "the living log" => close(&living),
            _ => {
                let store = open(&world, "a");
                for n in 0..40 {
                    put(&store, &format!("run=c,variable=t,step={n}"), round.as_bytes()).unwrap();
                }
                store.flush(&Session::default()).unwrap();
                close(&store);
            }
        }
        compact(&open(&world, "a"));
        let store = open(&world, "d");
        assert_eq!((steps(&store, "run=a"), steps(&store, "run=b")), (2, 30), "{round}");
        assert_eq!(look(&open_at(&world, &at), None), before, "{round}");
        assert_eq!(look(&open_at(&world, &version), None), older, "{round}");
        assert_eq!(get(&store, "run=a,variable=t,step=40").unwrap(), b"new", "{round}");
        assert!(store.verify(&Request::new()).unwrap().ok(), "{round}");
    }
}

#[test]
fn r26_an_age_counts_from_the_youngest_part_of_a_field() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let create = |key: &str| {
        let pairs = pairs(key);
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let spec = FieldSpec { dtype: DType::I4, shape: &[4], fill: None, chunks: None };
        store.create_field(&pairs, &spec, &ArchiveOptions::default()).unwrap();
    };
    let piece = |key: &str, start: u64| {
        let data = [1, 0, 0, 0, 2, 0, 0, 0];
        let value = Value::Piece { data: &data, dtype: DType::I4, start: &[start], count: &[2], shape: &[4] };
        archive(&store, key, value, &ArchiveOptions::default()).unwrap();
        store.flush(&Session::default()).unwrap();
    };
    let prepared = store.begin().unwrap();
    put_in(&store, "run=a,variable=decided,step=1", b"late", prepared).unwrap();
    store.flush(&Session::from(prepared)).unwrap();
    flush_one(&store, "run=a,variable=old,step=1", b"old");
    flush_one(&store, "run=a,variable=again,step=1", b"first");
    create("run=a,variable=array,step=1");
    create("run=a,variable=done,step=1");
    piece("run=a,variable=array,step=1", 0);
    piece("run=a,variable=done,step=1", 0);
    piece("run=a,variable=done,step=1", 2);
    world.advance(10 * HOUR as u64);
    let age = open(&world, "b").journal().env().clock.now();
    world.advance(HOUR as u64);
    store.decide(prepared, true, &Session::default()).unwrap();
    flush_one(&store, "run=a,variable=again,step=1", b"second");
    flush_one(&store, "run=a,variable=young,step=1", b"young");
    piece("run=a,variable=array,step=1", 2);
    let how = Wiping { doit: true, older_than: Some(age), ..Wiping::default() };
    let report = wipe_with(&store, "run=a", &how).unwrap();
    assert_eq!(report.fields, 2, "{report:?}");
    for round in 0..2 {
        let reader = open(&world, "b");
        let seen = ["old", "done", "again", "young", "array", "decided"]
            .map(|name| get(&reader, &format!("run=a,variable={name},step=1")).map(|bytes| bytes.len()).ok());
        assert_eq!(seen, [None, None, Some(6), Some(5), Some(16), Some(4)], "{round}");
        // The older value is hidden for good, not only by the newer one.
        assert_eq!(count_all(&reader), 4);
        close(&store);
        compact(&open(&world, "a"));
    }
}

#[test]
fn r26_pieces_onto_a_wiped_field_are_pieces_of_an_absent_one() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let key = "run=a,variable=t,step=1";
    let whole = [1u8; 16];
    archive(
        &store,
        key,
        Value::Array { data: &whole, dtype: DType::I4, shape: &[4] },
        &ArchiveOptions::default(),
    )
    .unwrap();
    store.flush(&Session::default()).unwrap();
    wipe(&store, "run=a");
    let piece = Value::Piece { data: &[2; 8], dtype: DType::I4, start: &[2], count: &[2], shape: &[4] };
    archive(&store, key, piece, &ArchiveOptions::default()).unwrap();
    store.flush(&Session::default()).unwrap();
    let reader = open(&world, "b");
    error(get(&reader, key), ErrorKind::NotFound);
    let bytes = field(&reader, key, None).unwrap().lenient().read().unwrap();
    assert_eq!(bytes[8..], [2; 8]);
    assert_ne!(bytes[..8], [1; 8]);
}

#[test]
fn r26_a_wiped_attempt_still_hides_its_stragglers() {
    let world = SimWorld::new(1);
    let of =
        |name: &str| open_in(&world.process("a"), &Opening { attempt: name.into(), ..Opening::default() });
    let (first, second) = (of("1").unwrap(), of("2").unwrap());
    flush_one(&second, "run=a,variable=t,step=1", b"second");
    wipe(&open(&world, "b"), "run=a");
    flush_one(&first, "run=a,variable=t,step=1", b"straggler");
    flush_one(&first, "run=a,variable=t,step=2", b"nobody's else");
    assert_eq!(listed(&open(&world, "b")).len(), 1);
    close(&first);
    close(&second);
    compact(&open(&world, "a"));
    assert_eq!(listed(&open(&world, "b")).len(), 1);
    flush_one(&of("2").unwrap(), "run=a,variable=t,step=1", b"again");
    assert_eq!(get(&open(&world, "b"), "run=a,variable=t,step=1").unwrap(), b"again");
}

#[test]
fn r22_a_wiped_dataset_keeps_its_owner_and_others_hide_nothing_of_it() {
    let world = shared_folder();
    let (alice, bob, admin) = (open(&world, "alice"), open(&world, "bob"), open(&world, "admin"));
    for step in 0..3 {
        flush_one(&alice, &format!("run=a,variable=t,step={step}"), b"alice's");
        flush_one(&bob, &format!("run=b,variable=t,step={step}"), b"bob's");
    }
    let how = Wiping { doit: true, all: true, ..Wiping::default() };
    for request in ["run=a", "", "run=a/b"] {
        let e = wipe_with(&bob, request, &how).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Denied, "{e}");
        assert!(e.message().contains("run=a") && e.message().contains("501"), "{e}");
    }
    // A record in his log speaks of his own datasets alone, whatever it selects.
    let snapshot = bob.journal().looks().snapshot().unwrap();
    let item =
        SelectionItem { level: 1, keyword: "variable".into(), values: vec![KeyValue::Text("t".into())] };
    let selections = vec![Selection { items: vec![item] }];
    let ranges = bob.journal().ranges();
    ranges.hide(&RangeAction::Wipe, selections, (&snapshot, None), &Session::default()).unwrap();
    for reader in [&alice, &bob, &open(&world, "admin")] {
        assert_eq!((steps(reader, "run=a"), steps(reader, "run=b")), (3, 0));
    }
    flush_one(&bob, "run=b,variable=t,step=7", b"bob's");
    // Root may, and the dataset is alice's all the same.
    assert_eq!(wipe(&admin, "run=a").fields, 3);
    assert_eq!(listed(&bob).len(), 1);
    let e = put(&bob, "run=a,variable=t,step=1", b"mine now").and_then(|()| bob.flush(&Session::default()));
    assert_eq!(e.unwrap_err().kind(), ErrorKind::Denied);
    bob.discard(&Session::default()).unwrap();
    flush_one(&alice, "run=a,variable=t,step=1", b"alice's");
    for store in [&alice, &bob] {
        close(store);
        compact(&open(&world, if std::sync::Arc::ptr_eq(store, &alice) { "alice" } else { "bob" }));
    }
    assert_eq!((steps(&admin, "run=a"), steps(&admin, "run=b")), (1, 1));
}

/// Reads of a new handle that lists, asks for the axes, and gets a field that is not there.
fn reads(world: &SimWorld) -> u64 {
    let before = world.counters().count(OpKind::Read);
    let store = open(world, "c");
    drop((listed(&store), axes(&store), get(&store, "run=a,variable=t,step=77")));
    world.counters().count(OpKind::Read) - before
}

#[test]
fn r27_wiped_fields_cost_fewer_reads_than_before() {
    for taken in [false, true] {
        let world = SimWorld::new(1);
        world.set_tracing(false);
        let writer = open(&world, "a");
        for n in 0..20_000 {
            put(&writer, &format!("run=a,variable=v{},step={}", n % 4, n / 4), b"12345678").unwrap();
            if n % 2_000 == 0 {
                put(&writer, &format!("run=b,variable=t,step={n}"), b"stays").unwrap();
            }
        }
        writer.flush(&Session::default()).unwrap();
        close(&writer);
        if taken {
            compact(&open(&world, "a"));
        }
        let before = reads(&world);
        let size = |world: &SimWorld| -> usize {
            files(world, "").iter().map(|path| world.read(path).map_or(0, |bytes| bytes.len())).sum()
        };
        let bytes = size(&world);
        let wiper = open(&world, "a");
        assert_eq!(wipe(&wiper, "run=a").fields, 20_000);
        close(&wiper);
        assert!(size(&world) - bytes < 8 << 10, "a wipe wrote {}", size(&world) - bytes);
        let after = reads(&world);
        let is_less = if taken { after <= before } else { after * 4 < before };
        assert!(is_less, "taken over {taken}: {before} reads before the wipe, {after} after it");
        // Everything: nothing of the source is read.
        let how = Wiping { doit: true, all: true, ..Wiping::default() };
        wipe_with(&open(&world, "a"), "", &how).unwrap();
        let all = reads(&world);
        assert!(
            all <= after + 4 && listed(&open(&world, "c")).is_empty(),
            "{all} reads of nothing, {after} before"
        );
    }
}

#[test]
fn r26_the_record_of_a_store_with_many_writers_is_small() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let writers: Vec<Store> = (0..1_000).map(|_| open(&world, "a")).collect();
    for (n, writer) in writers.iter().enumerate() {
        flush_one(writer, &format!("run=a,variable=t,step={n}"), b"value");
    }
    let wiper = open(&world, "b");
    assert_eq!(wipe(&wiper, "run=a").fields, 1_000);
    let length = |path: &std::path::PathBuf| commits(&world, path).len();
    let longest = files(&world, "logs").iter().map(length).max().unwrap();
    assert!(longest < 32 << 10, "{longest}");
    assert_eq!(listed(&open(&world, "b")).len(), 0);
}

#[test]
fn r26_a_wipe_that_is_killed_hides_all_or_nothing() {
    let (mut wiped, mut kept) = (0, 0);
    for n in 1.. {
        let world = SimWorld::new(3);
        let store = open(&world, "a");
        flush_one(&store, "run=a,variable=t,step=1", b"one");
        flush_one(&store, "run=a,variable=t,step=2", b"two");
        let env = world.process("b");
        world.kill_nth(&env, None, n);
        let how = Wiping { doit: true, ..Wiping::default() };
        let outcome = open_in(&env, &Opening::default()).and_then(|store| wipe_with(&store, "run=a", &how));
        if env.identity.alive(env.identity.process()) {
            outcome.unwrap();
            break;
        }
        for after in [None, Some(world.power_cut(0)), Some(world.power_cut(1))] {
            let left = listed(&open(after.as_ref().unwrap_or(&world), "c")).len();
            assert!(left == 2 || left == 0, "killed at call {n}: {left} of 2 are left");
            (wiped, kept) = (wiped + usize::from(left == 0), kept + usize::from(left == 2));
        }
    }
    assert!(wiped > 0 && kept > 0, "{wiped} wiped, {kept} kept");
}

#[test]
fn r26_the_takeover_that_a_wipe_names_is_durable_before_it() {
    for image in 0..16 {
        let world = SimWorld::new(26);
        let (store, wiper) = (open(&world, "a"), open(&world, "b"));
        flush_one(&store, "run=a,variable=t", b"wiped");
        flush_one(&store, "run=b,variable=t", b"stays");
        close(&store);
        // Its log has its name.
        flush_one(&wiper, "run=b,variable=u", b"stays");
        // A maker that has not come to the sync of its takeover's name.
        world.disable_sync(SyncKind::Dir, "logs");
        let options = CompactOptions { grace: 3_600 * SECOND, ..CompactOptions::default() };
        let maker = open(&world, "a");
        maker.journal().maintenance().compact(&options, &Session::default(), &mut |_| Ok(())).unwrap();
        world.clear_faults();
        wiper.refresh().unwrap();
        assert_eq!(wipe(&wiper, "run=a").fields, 1);
        let cut = world.power_cut(image);
        let shown = listed(&open(&cut, "c"));
        assert_eq!(shown, ["{run=b}{variable=t}{}", "{run=b}{variable=u}{}"], "image {image}");
    }
}
