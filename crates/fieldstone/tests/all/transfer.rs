//! Fields from store to store: the share, the checks, and the state after a crash.

use std::path::Path;

use fieldstone::Session;
use fieldstone::env::sim::SimWorld;
use fieldstone::prelude::*;
use fieldstone::transfer::{TransferOptions, TransferReport, copy, move_to};
use fieldstone::{
    ArchiveOptions, Compression, DType, Error, ErrorKind, ExternalContent, ExternalSpec, Field, FieldSpec,
    ListOptions, OpenOptions, ReadOptions, Request, Result, StoredArraySpec, Value, open_in,
};
use fieldstone_testkit::errors::error;
use fieldstone_testkit::fields::pattern;

type Store = fieldstone::Store;

const HOT: &str = "/hot";
const COLD: &str = "/cold";

fn world() -> SimWorld {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    world
}

fn open(world: &SimWorld, path: &str) -> Store {
    open_in(world.process("a"), path, Path::new(path), &OpenOptions::default()).unwrap()
}

fn with_schema(world: &SimWorld, path: &str, schema: &str) -> Store {
    let options = OpenOptions { schema: Some(schema.to_owned()), ..OpenOptions::default() };
    open_in(world.process("a"), path, Path::new(path), &options).unwrap()
}

fn key(variable: &str, step: u64) -> Vec<(&str, String)> {
    vec![("run", "a".to_owned()), ("variable", variable.to_owned()), ("step", step.to_string())]
}

fn put(store: &Store, variable: &str, step: u64, value: Value<'_>, options: &ArchiveOptions) {
    let key = key(variable, step);
    let pairs: Vec<(&str, &str)> = key.iter().map(|(k, v)| (*k, v.as_str())).collect();
    store.archive(&pairs, value, options).unwrap();
}

fn bytes(store: &Store, variable: &str, step: u64, value: &[u8]) {
    put(store, variable, step, Value::Bytes(value), &ArchiveOptions::default());
}

fn field(store: &Store, variable: &str, step: u64) -> Result<Field> {
    let key = key(variable, step);
    let pairs: Vec<(&str, &str)> = key.iter().map(|(k, v)| (*k, v.as_str())).collect();
    store.get(&pairs, &ReadOptions::default())
}

fn listed(store: &Store) -> Vec<String> {
    let list = store.list(&Request::new(), &ListOptions::default()).unwrap();
    list.map(|entry| entry.unwrap().key.to_string()).collect()
}

fn request(text: &str) -> Vec<Request> {
    vec![Request::parse(text).unwrap()]
}

fn copied(from: &Store, text: &str, to: &Store) -> Result<TransferReport> {
    copy(from, request(text), to, &TransferOptions::default())
}

fn moved(from: &Store, text: &str, to: &Store) -> Result<TransferReport> {
    move_to(from, request(text), to, &TransferOptions::default())
}

/// A store with a field of every kind.
fn of_all_kinds(world: &SimWorld) -> Store {
    let store = open(world, HOT);
    let plain = ArchiveOptions::default();
    bytes(&store, "opaque", 0, b"hello");
    bytes(&store, "opaque", 1, b"");
    bytes(&store, "opaque", 2, &pattern(17_500_000, 1));
    let packed = ArchiveOptions { compression: Some(Compression::Zstd(1)), ..plain.clone() };
    put(&store, "packed", 0, Value::Bytes(&[7; 10_000]), &packed);
    for (step, name) in ["<f4", ">f8", "|S3", "<M8[ns]", ">i2", "|b1"].into_iter().enumerate() {
        let dtype = DType::parse(name).unwrap();
        let data = vec![1; 6 * dtype.size()];
        put(&store, "typed", step as u64, Value::Array { data: &data, dtype, shape: &[2, 3] }, &plain);
    }
    let data = pattern(24_000, 2);
    let chunked = ArchiveOptions { chunks: Some(vec![7, 33]), ..packed.clone() };
    put(&store, "chunked", 0, Value::Array { data: &data, dtype: DType::F4, shape: &[60, 100] }, &chunked);
    // More than is held in memory at once.
    let large = pattern(40_000_000, 3);
    let value = Value::Array { data: &large, dtype: DType::F4, shape: &[100, 100, 1000] };
    put(&store, "large", 0, value, &ArchiveOptions { chunks: Some(vec![30, 30, 300]), ..plain.clone() });
    let fill = 9f32.to_ne_bytes();
    let spec = FieldSpec { dtype: DType::F4, shape: &[8, 8], fill: Some(&fill), chunks: Some(&[3, 3]) };
    let created = |step: &str| {
        store.create_field(&[("run", "a"), ("variable", "created"), ("step", step)], &spec, &plain).unwrap();
    };
    let piece = |step: u64, start: [u64; 2], count: [u64; 2]| {
        let data = pattern((count[0] * count[1] * 4) as usize, step);
        let value =
            Value::Piece { data: &data, dtype: DType::F4, start: &start, count: &count, shape: &[8, 8] };
        put(&store, "created", step, value, &plain);
    };
    // Unflushed; in part; complete in overlapping pieces; pieces without a created field.
    created("0");
    created("1");
    piece(1, [2, 3], [4, 2]);
    piece(1, [3, 3], [1, 5]);
    created("2");
    piece(2, [0, 0], [8, 5]);
    store.flush(None).unwrap();
    piece(2, [0, 4], [8, 4]);
    piece(3, [1, 1], [2, 2]);
    store.flush(None).unwrap();
    // Bytes outside the store.
    let outside = world.process("a").disk.create_new(Path::new("/source.nc")).unwrap();
    outside.write_at(&pattern(5000, 4), 0).unwrap();
    let dtype = DType::parse(">i4").unwrap();
    let content = ExternalContent::Array { dtype, shape: &[10, 30] };
    let path = Path::new("/source.nc");
    let spec = ExternalSpec { path, offset: 100, parts: 10, stride: 400, content, seen: None };
    store.archive_external(&[("run", "a"), ("variable", "outside")], &spec, &plain).unwrap();
    store.flush(None).unwrap();
    store
}

/// Archives an array of 10 by 30 elements that is in a file of the store.
fn put_stored(world: &SimWorld, store: &Store, step: u64, holes: u64) -> Vec<u8> {
    let disk = world.process("a").disk;
    let folder = Path::new(HOT).join("arrays/a");
    disk.create_dir_all(&folder).unwrap();
    let raw = pattern(1200, step);
    let file = disk.create_new(&folder.join(format!("{step}.nc"))).unwrap();
    file.write_at(&raw, 0).unwrap();
    file.sync_data().unwrap();
    let sums: Vec<u32> = raw.chunks(500).map(fieldstone_format::crc).collect();
    let path = format!("arrays/a/{step}.nc");
    let dtype = DType::parse(">f4").unwrap();
    let spec = StoredArraySpec {
        path: &path,
        offset: 0,
        dtype,
        shape: &[10, 30],
        fill: None,
        block: 500,
        sums: &sums,
        holes,
    };
    let key = key("stored", step);
    let pairs: Vec<(&str, &str)> = key.iter().map(|(k, v)| (*k, v.as_str())).collect();
    store.archive_stored(&pairs, &spec, &ArchiveOptions::default()).unwrap();
    store.flush(None).unwrap();
    raw
}

#[test]
fn an_array_in_a_file_of_the_store_is_copied_and_one_with_holes_is_refused() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    let raw = put_stored(&world, &hot, 0, 0);
    assert!(field(&hot, "stored", 0).unwrap().stored_array().unwrap().is_some());
    copied(&hot, "", &cold).unwrap();
    let copy = field(&cold, "stored", 0).unwrap();
    assert!(copy.read().unwrap() == raw && copy.stored_array().unwrap().is_none());
    put_stored(&world, &hot, 1, 3);
    let refused = error(copied(&hot, "step=1", &cold), ErrorKind::NotFound);
    assert!(refused.message().contains("3 elements") && refused.message().contains("step=1"), "{refused}");
    assert_eq!(listed(&cold).len(), 1);
    let memory = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
    let spec = StoredArraySpec {
        path: "arrays/x",
        offset: 0,
        dtype: DType::F8,
        shape: &[1],
        fill: None,
        block: 8,
        sums: &[1],
        holes: 0,
    };
    let key = [("run", "a"), ("variable", "t"), ("step", "0")];
    let refused = error(memory.archive_stored(&key, &spec, &ArchiveOptions::default()), ErrorKind::Invalid);
    assert!(refused.message().contains("no folder"), "{refused}");
}

/// All facts of a field.
fn output(field: &Field) -> String {
    let field = field.clone().lenient();
    let read = field.read().unwrap();
    let sum = read.iter().fold(0u64, |h, b| h.wrapping_mul(31).wrapping_add(u64::from(*b)));
    let outline = field.outline().unwrap();
    let written: u64 = match &outline {
        Some(_) => field.written().unwrap().iter().map(|b| b.element_count().unwrap()).sum(),
        None => 0,
    };
    format!(
        "{}: {} bytes {sum:x}, {outline:?}, complete {}, {written} written, compressed {}",
        field.key().unwrap(),
        read.len(),
        field.is_complete().unwrap(),
        field.is_compressed().unwrap(),
    )
}

fn all(store: &Store) -> Vec<String> {
    let options = fieldstone::RetrieveOptions { strict: false, session: Session::default() };
    let fields = store.retrieve(&Request::new(), &options).unwrap();
    fields.iter().map(|field| output(&field.unwrap())).collect()
}

#[test]
fn fields_of_every_kind_come_along_as_they_are() {
    let world = world();
    let (hot, cold) = (of_all_kinds(&world), open(&world, COLD));
    let report = copied(&hot, "", &cold).unwrap();
    let n = listed(&hot).len() as u64;
    assert_eq!((report.fields, report.unchanged, report.removed, &report.kept), (n, 0, 0, &Vec::new()));
    let (ours, theirs) = (all(&hot), all(&cold));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        if ours.contains("variable=outside") {
            // Copied as bytes, in the store's own division.
            assert_eq!(ours.split("chunks").next(), theirs.split("chunks").next());
            let entry = cold.list(&request("variable=outside")[0], &ListOptions::default()).unwrap().next();
            assert!(!entry.unwrap().unwrap().place.unwrap().to_string().starts_with("file:"));
        } else {
            assert_eq!(ours, theirs);
        }
    }
    assert_eq!(ours.len(), theirs.len());
    assert!(cold.verify(&Request::new()).unwrap().ok());
    // Again: nothing is written.
    let before = cold.version().unwrap();
    let again = copied(&hot, "", &cold).unwrap();
    assert_eq!((again.fields, again.bytes, again.unchanged), (0, 0, n));
    assert_eq!(cold.version().unwrap(), before);
    // A field that differs in one element, or in the set of written elements, is copied again.
    let data = [0; 4];
    let value =
        Value::Piece { data: &data, dtype: DType::F4, start: &[7, 7], count: &[1, 1], shape: &[8, 8] };
    put(&hot, "created", 0, value, &ArchiveOptions::default());
    bytes(&hot, "opaque", 0, b"hallo");
    hot.flush(None).unwrap();
    let again = copied(&hot, "", &cold).unwrap();
    assert_eq!((again.fields, again.bytes, again.unchanged), (2, 9, n - 2));
    assert_eq!(output(&field(&hot, "created", 0).unwrap()), output(&field(&cold, "created", 0).unwrap()));
}

#[test]
fn what_the_target_has_no_place_for_is_refused_before_a_byte_moves() {
    let world = world();
    let hot = with_schema(&world, HOT, "[run[ variable[ step, member? ]]]");
    for (member, step) in [("1", "0"), ("2", "0"), ("1", "1")] {
        let key = [("run", "a"), ("variable", "t"), ("step", step), ("member", member)];
        hot.archive(&key, Value::Bytes(b"x"), &ArchiveOptions::default()).unwrap();
    }
    hot.flush(None).unwrap();
    let narrow = with_schema(&world, "/narrow", "[run[ variable[ step ]]]");
    let refused = error(copied(&hot, "", &narrow), ErrorKind::Invalid);
    assert!(refused.message().contains("member=1") && refused.message().contains("/narrow"), "{refused}");
    // Keys that would become one in the target.
    let blind = with_schema(&world, "/blind", "[run[ variable[ step, member- ]]]");
    if let Err(refused) = copied(&hot, "", &blind) {
        assert_eq!(refused.kind(), ErrorKind::Invalid);
    } else {
        panic!("two fields went under one key");
    }
    for store in [&narrow, &blind] {
        assert_eq!((listed(store).len(), store.unflushed()), (0, 0));
    }
}

#[test]
fn a_transfer_is_strict_unless_told_otherwise_and_takes_each_field_once() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    for step in 0..3 {
        bytes(&hot, "t", step, b"x");
    }
    hot.flush(None).unwrap();
    let missing = error(copied(&hot, "run=a,variable=t,step=1/to/4", &cold), ErrorKind::NotFound);
    assert!(missing.message().contains("step=3") && missing.hint().is_some(), "{missing}");
    assert_eq!(listed(&cold).len(), 0);
    let lenient = TransferOptions { strict: false, ..TransferOptions::default() };
    let requests = ["step=1/to/4", "step=0/1"].map(|text| Request::parse(text).unwrap());
    let report = copy(&hot, requests.to_vec(), &cold, &lenient).unwrap();
    assert_eq!((report.fields, report.bytes, listed(&cold).len()), (3, 3, 3));
    error(copy(&hot, Vec::<Request>::new(), &cold, &lenient), ErrorKind::Invalid);
}

#[test]
fn a_move_removes_what_was_carried_over_and_nothing_newer() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    for step in 0..4 {
        bytes(&hot, "t", step, b"old");
        bytes(&hot, "u", step, b"stays");
    }
    hot.flush(None).unwrap();
    let version = hot.version().unwrap();
    bytes(&cold, "t", 3, b"old");
    cold.flush(None).unwrap();
    // Another process writes a newer version in the middle of the move.
    let other = open(&world, HOT);
    let progress = |done: u64, of: u64| {
        if (done, of) == (2, 4) {
            bytes(&other, "t", 1, b"newer");
            other.flush(None).unwrap();
        }
        Ok(())
    };
    let options = TransferOptions { progress: Some(&progress), ..TransferOptions::default() };
    let report = move_to(&hot, request("variable=t"), &cold, &options).unwrap();
    assert_eq!((report.fields, report.unchanged, report.removed), (3, 1, 3));
    assert_eq!(report.kept, ["{run=a}{variable=t}{step=1}"]);
    assert_eq!(listed(&cold).len(), 4);
    assert_eq!(field(&cold, "t", 1).unwrap().read().unwrap(), b"old");
    for store in [&hot, &other, &open(&world, HOT)] {
        assert_eq!(field(store, "t", 1).unwrap().read().unwrap(), b"newer");
        assert_eq!(listed(store).len(), 5);
    }
    let options = OpenOptions { at: Some(version), ..OpenOptions::default() };
    let old: Store = open_in(world.process("a"), HOT, Path::new(HOT), &options).unwrap();
    assert_eq!(field(&old, "t", 0).unwrap().read().unwrap(), b"old");
    // Unflushed data of this handle are not part of it, and still its own.
    bytes(&hot, "v", 0, b"unflushed");
    moved(&hot, "variable=u", &cold).unwrap();
    assert_eq!((hot.unflushed(), listed(&hot).len(), listed(&cold).len()), (1, 1, 8));
}

#[test]
fn moves_that_cannot_remove_are_refused_before_anything_is_copied() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    bytes(&hot, "t", 0, b"x");
    hot.flush(None).unwrap();
    let same = error(moved(&hot, "", &open(&world, HOT)), ErrorKind::Invalid);
    assert!(same.message().contains("same store"), "{same}");
    let reading = OpenOptions { mode: fieldstone::Mode::Read, ..OpenOptions::default() };
    let reader: Store = open_in(world.process("a"), HOT, Path::new(HOT), &reading).unwrap();
    error(moved(&reader, "", &cold), ErrorKind::Denied);
    world.set_uid("b", 502);
    let stranger: Store = open_in(world.process("b"), HOT, Path::new(HOT), &OpenOptions::default()).unwrap();
    world.permissions().make_writable(Path::new(HOT)).unwrap();
    error(moved(&stranger, "", &cold), ErrorKind::Denied);
    assert_eq!((listed(&hot).len(), listed(&cold).len(), hot.unflushed()), (1, 0, 0));
    // A copy from it is fine.
    assert_eq!(copied(&reader, "", &cold).unwrap().fields, 1);
}

/// A fault of the target's disk is found before anything is visible or removed.
#[test]
fn a_target_that_loses_a_byte_is_found_out() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    for step in 0..3 {
        bytes(&hot, "t", step, &pattern(1_000_000, step));
    }
    hot.flush(None).unwrap();
    let struck = std::cell::Cell::new(false);
    let progress = |done: u64, of: u64| {
        if done == of && !struck.replace(true) {
            let data = world.files().into_iter().find(|f| f.starts_with("/cold/data")).unwrap();
            world.flip(&data, 1_500_000, 1).unwrap();
        }
        Ok(())
    };
    let options = TransferOptions { progress: Some(&progress), ..TransferOptions::default() };
    let found = error(move_to(&hot, request(""), &cold, &options), ErrorKind::Corrupt);
    assert!(struck.get() && found.message().contains("step=1"), "{found}");
    assert_eq!((listed(&cold).len(), listed(&hot).len(), hot.unflushed()), (0, 3, 0));
    let report = moved(&hot, "", &cold).unwrap();
    assert_eq!((report.fields, report.removed, listed(&hot).len(), listed(&cold).len()), (3, 3, 0, 3));
}

/// Intact bytes that differ from the source are also found.
#[test]
fn a_target_that_gives_back_something_else_is_found_out() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    for step in 0..3 {
        bytes(&hot, "t", step, b"right");
    }
    hot.flush(None).unwrap();
    let other = open(&world, COLD);
    let progress = |done: u64, of: u64| {
        if done == of
            && let [open] = &other.status().unwrap().transactions[..]
        {
            let options = ArchiveOptions { session: Session::from(open.id), ..ArchiveOptions::default() };
            put(&other, "t", 1, Value::Bytes(b"wrong"), &options);
            other.flush(Some(open.id)).unwrap();
        }
        Ok(())
    };
    let options = TransferOptions { progress: Some(&progress), ..TransferOptions::default() };
    let found = error(move_to(&hot, request(""), &cold, &options), ErrorKind::Corrupt);
    assert!(found.message().contains("step=1") && found.message().contains(COLD), "{found}");
    assert_eq!((listed(&cold).len(), listed(&hot).len(), hot.unflushed()), (0, 3, 0));
}

/// Damage in the source is named by its key; all else is carried over, and damaged fields stay.
#[test]
fn a_transfer_goes_on_past_what_is_damaged_and_names_it() {
    let world = world();
    let (hot, cold, backup) = (open(&world, HOT), open(&world, COLD), open(&world, "/backup"));
    for step in 0..3 {
        bytes(&hot, "t", step, &pattern(1_000_000, step));
    }
    // The second of two parts of 16 MiB is damaged: the target has the first when that is found.
    let large = pattern(40_000_000, 3);
    let value = Value::Array { data: &large, dtype: DType::F4, shape: &[100, 100, 1000] };
    put(
        &hot,
        "t",
        3,
        value,
        &ArchiveOptions { chunks: Some(vec![30, 30, 300]), ..ArchiveOptions::default() },
    );
    put(
        &hot,
        "t",
        4,
        Value::Piece { data: &[0; 8], dtype: DType::F8, start: &[0], count: &[1], shape: &[2] },
        &ArchiveOptions::default(),
    );
    bytes(&hot, "u", 0, b"sound");
    hot.flush(None).unwrap();
    // Pieces that disagree do not form a field.
    put(
        &hot,
        "t",
        4,
        Value::Piece { data: &[0; 8], dtype: DType::F8, start: &[1], count: &[1], shape: &[3] },
        &ArchiveOptions::default(),
    );
    hot.flush(None).unwrap();
    let data = world.files().into_iter().find(|f| f.starts_with("/hot/data")).unwrap();
    world.flip(&data, 2_500_000, 1).unwrap();
    world.flip(&data, 3_000_000 + 38_000_000, 1).unwrap();
    let hot = open(&world, HOT);
    let lenient = TransferOptions { strict: false, ..TransferOptions::default() };
    for moving in [false, true] {
        let report = match moving {
            false => copy(&hot, request(""), &backup, &lenient).unwrap(),
            true => move_to(&hot, request(""), &cold, &lenient).unwrap(),
        };
        let mut named: Vec<&str> = report.damaged.iter().map(|field| field.key.as_str()).collect();
        named.sort_unstable();
        let damaged = [2, 3, 4].map(|step| format!("{{run=a}}{{variable=t}}{{step={step}}}"));
        assert_eq!(named, damaged, "{:?}", report.damaged);
        assert!(report.damaged.iter().any(|field| field.why.contains("data")), "{:?}", report.damaged);
        let to = if moving { &cold } else { &backup };
        assert_eq!((report.fields, listed(to).len(), report.removed), (3, 3, if moving { 3 } else { 0 }));
        assert_eq!(listed(&hot).len(), if moving { 3 } else { 6 });
        assert!(to.verify(&Request::new()).unwrap().ok());
    }
}

/// Killed at any system call, also with a power cut: a field is in the source, in the target, or in both; the target
/// has all or nothing; and the repeated move completes the first.
#[test]
fn a_killed_move_loses_nothing() {
    let fields = 4;
    let mut calls = 0;
    for n in (1..).step_by(3) {
        let world = SimWorld::new(n);
        world.set_tracing(false);
        {
            let hot = open(&world, HOT);
            for step in 0..fields {
                bytes(&hot, "t", step, &pattern(400_000, step));
            }
            hot.flush(None).unwrap();
            let cold = open(&world, COLD);
            bytes(&cold, "other", 0, b"there before");
            cold.flush(None).unwrap();
        }
        let env = world.process("a");
        let open_as = |path: &str| {
            open_in(env.clone(), path, Path::new(path), &OpenOptions::default()).map(|store| store as Store)
        };
        world.kill_nth(&env, None, n);
        let done = open_as(HOT).and_then(|hot| moved(&hot, "variable=t", &open_as(COLD)?)).is_ok();
        let world = if n % 2 == 0 { world.power_cut(n) } else { world };
        let (hot, cold) = (open(&world, HOT), open(&world, COLD));
        let there = |store: &Store, step| {
            field(store, "t", step).is_ok_and(|f| f.read().unwrap() == pattern(400_000, step))
        };
        let arrived = (0..fields).filter(|step| there(&cold, *step)).count() as u64;
        assert!(arrived == 0 || arrived == fields, "killed at call {n}: {arrived} fields arrived");
        for step in 0..fields {
            assert!(there(&hot, step) || there(&cold, step), "killed at call {n}: step {step} is lost");
        }
        for store in [&hot, &cold] {
            assert!(store.verify(&Request::new()).unwrap().ok(), "killed at call {n}");
        }
        let lenient = TransferOptions { strict: false, ..TransferOptions::default() };
        move_to(&hot, request("variable=t"), &cold, &lenient).unwrap();
        assert_eq!((listed(&hot).len(), listed(&cold).len() as u64), (0, fields + 1), "killed at call {n}");
        if done {
            assert!(n > 20, "a move of so few calls: {n}");
            return;
        }
        calls += 1;
        assert!(calls < 2000, "the move never ends");
    }
}

#[test]
fn an_interrupted_transfer_leaves_nothing() {
    let world = world();
    let (hot, cold) = (open(&world, HOT), open(&world, COLD));
    for step in 0..5 {
        bytes(&hot, "t", step, b"x");
    }
    hot.flush(None).unwrap();
    let progress = |done: u64, _: u64| match done {
        3 => Err(Error::internal("interrupted")),
        _ => Ok(()),
    };
    let options = TransferOptions { progress: Some(&progress), ..TransferOptions::default() };
    error(move_to(&hot, request(""), &cold, &options), ErrorKind::Internal);
    let status = cold.status().unwrap();
    assert_eq!((listed(&cold).len(), status.unflushed, status.transactions.len()), (0, 0, 0));
    assert_eq!((listed(&hot).len(), hot.unflushed()), (5, 0));
}
