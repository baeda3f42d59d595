//! Every byte of a takeover and of its data log is changed, and it is cut: nothing panics, no wrong data pass as correct,
//! and `verify` names the file. Takeovers of other users and other stores hide nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use crate::common::*;
use crate::takeovers::{close, compact, open_at};
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::env::write_all_at;
use fieldstone_core::request::Request;
use fieldstone_core::{Code, Error, ErrorKind};
use fieldstone_format::Id;
use fieldstone_format::log::SideRecord;
use fieldstone_format::owner::Owner;
use fieldstone_format::takeover::{TAIL, TakeoverHeader, TakeoverRecord, TakeoverTable, file_name};
use fieldstone_journal::Session;
use fieldstone_journal::compact::CompactOptions;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Opening, put_file};
use fieldstone_testkit::require::full;

/// The content of a store: bytes by key, `None` where nothing may be found.
type Content = BTreeMap<String, Option<Vec<u8>>>;

struct Scene {
    world: SimWorld,
    content: Content,
    /// An older version, and what it shows under [`KEY`].
    older: (String, Vec<u8>),
    prepared: Id,
}

const KEY: &str = "run=a,variable=t,step=1";

/// A store whose logs are all taken over but one.
fn scene() -> Scene {
    let world = SimWorld::new(31);
    world.set_tracing(false);
    let mut content = Content::new();
    let mut put_one = |store: &Store, key: &str, bytes: &[u8]| {
        flush_one(store, key, bytes);
        content.insert(key.to_owned(), Some(bytes.to_vec()));
    };
    let a = open(&world, "a");
    put_one(&a, KEY, &pattern(40, 1));
    let older = (a.version().unwrap(), pattern(40, 1));
    put_one(&a, "run=a,variable=t,step=2", &pattern(300, 2));
    let side = SideRecord { kind: 9, bytes: b"a side record".to_vec().into() };
    a.journal().unflushed().add(vec![side], &Session::default()).unwrap();
    put_one(&a, "run=b,variable=z,step=1", &pattern(70, 3));
    close(&a);
    let attempt = Opening { attempt: "1.1".into(), ..Opening::default() };
    let b = open_in(&world.process("b"), &attempt).unwrap();
    put_one(&b, KEY, &pattern(50, 4));
    put_one(&b, "run=a,variable=gone", b"to be removed");
    b.remove(&Request::parse("run=a,variable=gone").unwrap(), &RemoveOptions::default()).unwrap();
    b.flush(&Session::default()).unwrap();
    let data: Vec<u8> = (0..96u32).flat_map(|i| (i as f32).to_le_bytes()).collect();
    let value = Value::Array { data: &data, dtype: DType::F4, shape: &[8, 12] };
    let chunks = Some(vec![3, 5]);
    let options = ArchiveOptions { chunks, compression: Some(Compression::Zstd(3)), ..Default::default() };
    archive(&b, "run=c,variable=array", value, &options).unwrap();
    b.flush(&Session::default()).unwrap();
    let id = b.begin().unwrap();
    put_in(&b, "run=c,variable=decided", b"decided", id).unwrap();
    b.decide(id, true, &Session::default()).unwrap();
    let prepared = b.begin().unwrap();
    put_in(&b, "run=c,variable=prepared", b"prepared", prepared).unwrap();
    b.flush(&Session::from(prepared)).unwrap();
    close(&b);
    compact(&open(&world, "a"));
    put_one(&open(&world, "a"), "run=living,variable=t", b"living");
    content.insert("run=c,variable=array".into(), Some(data));
    content.insert("run=c,variable=decided".into(), Some(b"decided".to_vec()));
    for absent in ["run=a,variable=gone", "run=c,variable=prepared", "run=a,variable=never"] {
        content.insert(absent.into(), None);
    }
    Scene { world, content, older, prepared }
}

fn only(world: &SimWorld, folder: &str, end: &str) -> PathBuf {
    let mut found = files(world, folder);
    found.retain(|path| path.to_string_lossy().ends_with(end));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn shown(path: &Path) -> String {
    path.strip_prefix(ROOT).unwrap().display().to_string()
}

/// An error that a damaged store may give.
fn is_damage(error: &Error, at: &str) -> bool {
    let named = error.message().contains(".takeover") || error.message().contains(".data");
    assert!(error.kind() == ErrorKind::Corrupt && named, "{at}: {:?} {error}", error.kind());
    true
}

/// Reads everything in a new process; the keys that are refused, and the report of `verify`.
fn read_all(scene: &Scene, world: &SimWorld, at: &str) -> (BTreeSet<String>, VerifyReport) {
    let store = open(world, "reader");
    let mut refused = BTreeSet::new();
    for (key, expected) in &scene.content {
        match (get(&store, key), expected) {
            (Ok(bytes), Some(expected)) => assert!(bytes == *expected, "{at}: other bytes under {key}"),
            (Ok(_), None) => panic!("{at}: {key} is there"),
            (Err(e), None) if e.kind() == ErrorKind::NotFound => {}
            (Err(e), _) if is_damage(&e, &format!("{at}: {key}")) => drop(refused.insert(key.clone())),
            (Err(_), _) => {}
        }
    }
    check_list(scene, &store, at);
    let within = field(&store, "run=c,variable=prepared", Some(scene.prepared)).and_then(|f| f.read());
    match within {
        Ok(bytes) => assert_eq!(bytes, b"prepared", "{at}"),
        Err(e) => drop(is_damage(&e, &format!("{at}: within the transaction"))),
    }
    let how = Opening { at: Some(scene.older.0.clone()), ..Opening::default() };
    match open_in(&world.process("reader"), &how).and_then(|older| get(&older, KEY)) {
        Ok(bytes) => assert_eq!(bytes, scene.older.1, "{at}: the older version"),
        Err(e) => drop(is_damage(&e, &format!("{at}: the older version"))),
    }
    // Outcomes that only must not panic.
    let _ = store.transactions();
    let _ = store.status();
    if let Ok(feed) = store.journal().looks().feed() {
        for (writer, _) in feed.logs() {
            let _ = feed.commits(writer, 0).map(|commits| commits.filter(|commit| commit.is_ok()).count());
        }
    }
    let report = store.verify(&Request::new()).unwrap_or_else(|e| panic!("{at}: verify: {e}"));
    (refused, report)
}

fn check_list(scene: &Scene, store: &Store, at: &str) {
    let visible = |key: &str| scene.content.get(key).is_some_and(Option::is_some);
    let mut unlisted: BTreeSet<&String> = scene.content.keys().filter(|key| visible(key)).collect();
    let mut has_failed = false;
    match store.list(&Request::new(), &ListOptions::default()) {
        Ok(list) => {
            for entry in list {
                match entry {
                    Ok(entry) => {
                        let text = entry.key.to_string().replace("}{", ",").replace(['{', '}'], "");
                        let text = text.trim_end_matches(',');
                        assert!(visible(text), "{at}: {text} is listed");
                        unlisted.retain(|key| *key != text);
                    }
                    Err(e) => has_failed |= is_damage(&e, &format!("{at}: list")),
                }
            }
        }
        Err(e) => has_failed = is_damage(&e, &format!("{at}: list")),
    }
    assert!(has_failed || unlisted.is_empty(), "{at}: {unlisted:?} are left out without a word");
    match store.axes(&Request::new(), &ReadOptions::default()) {
        Ok(axes) => {
            let axes = format!("{axes:?}");
            assert!(axes.contains("living") && axes.contains("array"), "{at}: {axes}");
        }
        Err(e) => drop(is_damage(&e, &format!("{at}: axes"))),
    }
}

/// The name of the part of a takeover that each byte belongs to.
fn parts(bytes: &[u8]) -> Vec<String> {
    let header = TakeoverHeader::decode(bytes).unwrap();
    let (first, length) = (header.record_offset as usize, header.record_len as usize);
    let record = TakeoverRecord::decode(&bytes[first..first + length], &header).unwrap();
    let mut parts = vec!["no part".to_owned(); bytes.len()];
    let mut fill = |from: usize, length: usize, name: &str| parts[from..from + length].fill(name.to_owned());
    let header_len = header.encode().len();
    fill(0, header_len, "header");
    fill(first, length, "record");
    fill(first + length, length, "record, copy");
    fill(first + 2 * length, header_len, "header, copy");
    fill(bytes.len() - TAIL, TAIL, "tail");
    for (table, reference) in &record.tables {
        assert_eq!(reference.height, 0);
        fill(reference.root.offset as usize, reference.root.stored as usize, &format!("{table:?}"));
    }
    parts
}

/// Every byte of a takeover of some KB is covered by a checksum, and every change of one is found in its file.
#[test]
fn each_changed_byte_is_found_and_nothing_wrong_is_read() {
    let scene = scene();
    let path = only(&scene.world, "logs", ".takeover");
    let bytes = scene.world.read(&path).unwrap();
    let parts = parts(&bytes);
    let (refused, report) = read_all(&scene, &scene.world, "whole");
    assert!(refused.is_empty() && report.ok(), "{refused:?} {report:?}");
    let mut tally: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for (offset, part) in parts.iter().enumerate() {
        let mask = [1, 0x80, 0xff, 0x10][offset % 4];
        let at = format!("byte {offset} ^ {mask:#04x} ({part})");
        scene.world.flip(&path, offset as u64, mask).unwrap();
        let (refused, report) = read_all(&scene, &scene.world, &at);
        let damaged = report.damaged.iter().any(|damage| damage.file == shown(&path));
        assert!(damaged, "{at}: verify finds {:?}", report.damaged);
        let is_twice = ["header", "record", "tail"].iter().any(|twice| part.starts_with(twice));
        assert!(!is_twice || refused.is_empty(), "{at}: {refused:?}");
        let counts = tally.entry(part).or_default();
        counts[0] += 1;
        counts[1] += usize::from(!refused.is_empty());
        counts[2] += usize::from(refused.contains("run=living,variable=t"));
        if full() || offset % 16 == 0 {
            check_next(&scene, &at);
        }
        scene.world.flip(&path, offset as u64, mask).unwrap();
    }
    println!("{} bytes", bytes.len());
    for (part, [tried, refused, living]) in tally {
        println!(
            "{part:<14} {tried:>5} changed, {refused:>5} refuse a field, {living:>5} one of a living log"
        );
    }
}

/// A takeover made over a damaged one turns no damage into absence.
fn check_next(scene: &Scene, at: &str) {
    let world = scene.world.fork_image();
    let mut scene = Scene {
        world: world.clone(),
        content: scene.content.clone(),
        older: scene.older.clone(),
        prepared: scene.prepared,
    };
    let more = open(&world, "a");
    let added = put(&more, "run=more,variable=t", &pattern(9_000, 7))
        .and_then(|()| more.flush(&Session::default()).map(drop));
    if added.is_ok() {
        scene.content.insert("run=more,variable=t".into(), Some(pattern(9_000, 7)));
    }
    let _ = more.journal().close(&Session::default());
    let options = CompactOptions { grace: 0, ..CompactOptions::default() };
    let maker = open(&world, "a");
    let made = maker.journal().maintenance().compact(&options, &Session::default(), &mut |_| Ok(()));
    let at =
        format!("{at}, then a takeover: {:?}", made.map(|report| report.logs).map_err(|e| e.to_string()));
    read_all(&scene, &world, &at);
}

#[test]
fn each_changed_byte_of_its_data_log_is_found() {
    let scene = scene();
    let path = only(&scene.world, "data", ".data");
    let bytes = scene.world.read(&path).unwrap();
    let (mut refusing, mut noted) = (0, 0);
    for offset in 0..bytes.len() {
        let at = format!("data log, byte {offset}");
        scene.world.flip(&path, offset as u64, 1 << (offset % 8)).unwrap();
        let (refused, report) = read_all(&scene, &scene.world, &at);
        let damaged = report.damaged.iter().any(|damage| damage.file == shown(&path));
        let note = report.notes.iter().any(|note| note.contains(&shown(&path)));
        assert!(damaged || note, "{at}: {:?}", report.damaged);
        assert!(damaged || refused.is_empty(), "{at}: {refused:?}");
        assert!(refused.len() <= 1, "{at}: {refused:?}");
        (refusing, noted) = (refusing + refused.len(), noted + usize::from(!damaged));
        if full() || offset % 16 == 0 {
            check_next(&scene, &at);
        }
        scene.world.flip(&path, offset as u64, 1 << (offset % 8)).unwrap();
    }
    println!("{} bytes of the data log, {refusing} refuse a field, {noted} of older versions", bytes.len());
}

/// The newest takeover is cut at every length, or loses its data log: the reader says so, and finds nothing "absent".
#[test]
fn a_takeover_that_is_cut_or_without_its_data_log_is_named() {
    let scene = scene();
    let path = only(&scene.world, "logs", ".takeover");
    let bytes = scene.world.read(&path).unwrap();
    let header = TakeoverHeader::decode(&bytes).unwrap();
    let record_end = (header.record_offset + u64::from(header.record_len)) as usize;
    let mut cuts = 0;
    for length in (0..bytes.len()).step_by(if full() { 1 } else { 13 }) {
        let world = scene.world.fork_image();
        world.truncate(&path, length as u64).unwrap();
        let at = format!("cut to {length} of {}", bytes.len());
        let (refused, report) = read_all(&scene, &world, &at);
        assert!(report.damaged.iter().any(|d| d.file == shown(&path)), "{at}: {:?}", report.damaged);
        // One copy of header and record is enough.
        let is_lost = length < record_end;
        assert_eq!(refused.contains(KEY), is_lost, "{at}");
        assert_eq!(refused.contains("run=a,variable=never"), is_lost, "{at}");
        cuts += 1;
    }
    let world = scene.world.fork_image();
    let data = only(&world, "data", ".data");
    put_file(&world.process("a"), data.clone(), None).unwrap();
    let (refused, report) = read_all(&scene, &world, "without its data log");
    assert!(refused.contains(KEY) && !refused.contains("run=living,variable=t"), "{refused:?}");
    assert!(report.damaged.iter().any(|d| d.file == shown(&data)), "{:?}", report.damaged);
    println!("{cuts} cuts");
}

/// A takeover that the newest one lists is missing: who has it open stays with it, others say so (R29).
#[test]
fn r29_a_missing_takeover_of_the_list_is_named() {
    let world = SimWorld::new(1);
    for length in [200_000, 10] {
        let store = open(&world, "a");
        flush_one(&store, &format!("run=r,variable=t,step={length}"), &pattern(length, 1));
        close(&store);
        compact(&open(&world, "a"));
    }
    let mut takeovers = files(&world, "logs");
    takeovers.retain(|path| path.to_string_lossy().ends_with(".takeover"));
    assert_eq!(takeovers.len(), 2, "{takeovers:?}");
    let reader = open(&world, "b");
    assert_eq!(listed(&reader).len(), 2);
    let bytes = world.read(&takeovers[0]).unwrap();
    put_file(&world.process("a"), takeovers[0].clone(), None).unwrap();
    reader.refresh().unwrap();
    assert_eq!(listed(&reader).len(), 2);
    assert_eq!(get(&reader, "run=r,variable=t,step=200000").unwrap(), pattern(200_000, 1));
    let new = open(&world, "b");
    for step in ["10", "200000", "never"] {
        let error = get(&new, &format!("run=r,variable=t,step={step}")).unwrap_err();
        assert!(is_damage(&error, step) && error.message().contains("-1.takeover"), "{error}");
    }
    let report = new.verify(&Request::new()).unwrap();
    let missing = report.damaged.iter().find(|damage| damage.file.ends_with("-1.takeover"));
    assert!(missing.is_some_and(|damage| damage.why.contains("missing")), "{report:?}");
    let problems = new.status().unwrap().problems;
    let is_it = |problem: &StatusProblem| problem.file.ends_with("-1.takeover");
    let codes: Vec<Option<Code>> =
        problems.iter().filter(|problem| is_it(problem)).map(|problem| problem.code).collect();
    assert_eq!(codes, [Some(Code::DataGone)], "{problems:?}");
    put_file(&world.process("a"), takeovers[0].clone(), Some(&bytes)).unwrap();
    new.refresh().unwrap();
    assert_eq!(listed(&new).len(), 2);
    assert!(open(&world, "b").verify(&Request::new()).unwrap().ok());
}

/// All that stood in a damaged block of an index is given up by the place of the block; all else is read as before, and backed up.
#[test]
fn a_damaged_block_of_an_index_is_given_up() {
    for taken in [false, true] {
        let world = SimWorld::new(1);
        world.set_tracing(false);
        let store = open(&world, "a");
        for step in 0..900 {
            let value = format!("value {step}");
            put(&store, &format!("run=a,variable=t,step={step}"), value.as_bytes()).unwrap();
        }
        store.flush(&Session::default()).unwrap();
        close(&store);
        if taken {
            compact(&open(&world, "a"));
        }
        let path = only(&world, "logs", if taken { ".takeover" } else { ".log" });
        let bytes = world.read(&path).unwrap();
        let at = match taken {
            // A leaf stands before the root of its table.
            true => entries_root(&bytes) - 50,
            false => last_block(&open(&world, "b")),
        };
        world.flip(&path, at, 1).unwrap();
        world.advance(2 * SECOND);
        let before = open(&world, "b").verify(&Request::new()).unwrap();
        assert_eq!(before.damaged[0].file, shown(&path), "{before:?}");
        let report = open(&world, "a").accept(&shown(&path), "bit rot", &Session::default()).unwrap();
        assert!(report.what.starts_with("1 damaged block "), "{report}");
        assert_eq!(report.file, shown(&path));
        world.advance(2 * SECOND);
        let reader = open(&world, "b");
        let verified = reader.verify(&Request::new()).unwrap();
        assert!(verified.ok() && verified.accepted == [report], "{verified:?}");
        let left = listed(&reader);
        assert!(left.len() > 100 && left.len() < 900, "{}", left.len());
        for step in 0..900 {
            let key = format!("run=a,variable=t,step={step}");
            match left.contains(&format!("{{run=a}}{{variable=t}}{{step={step}}}")) {
                true => assert_eq!(get(&reader, &key).unwrap(), format!("value {step}").as_bytes()),
                false => drop(error(get(&reader, &key), ErrorKind::NotFound)),
            }
        }
        error(open(&world, "a").accept(&shown(&path), "", &Session::default()), ErrorKind::Invalid);
        crate::backup::backup(&world);
        assert_eq!(listed(&crate::backup::copy(&world)), left);
        let more = open(&world, "a");
        flush_one(&more, "run=b,variable=t", b"more");
        close(&more);
        compact(&open(&world, "a"));
        assert_eq!(listed(&open(&world, "b")).len(), left.len() + 1);
        assert!(open(&world, "b").verify(&Request::new()).unwrap().ok());
    }
}

/// A byte in the last index block of the only log.
fn last_block(store: &Store) -> u64 {
    let snapshot = store.journal().looks().snapshot().unwrap();
    let segment = &snapshot.logs[0].segments[0];
    let place = segment.meta().unwrap().directory.last().unwrap();
    assert_eq!(segment.reference.file, 0);
    segment.reference.offset + place.offset + place.length / 2
}

fn entries_root(bytes: &[u8]) -> u64 {
    let header = TakeoverHeader::decode(bytes).unwrap();
    let (first, length) = (header.record_offset as usize, header.record_len as usize);
    let record = TakeoverRecord::decode(&bytes[first..first + length], &header).unwrap();
    record.table(TakeoverTable::Entries).unwrap().root.offset
}

/// No list has the newest takeover: a wipe on record names it, and its data log is there.
#[test]
fn r60_the_newest_takeover_is_missed_by_what_speaks_of_it() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, KEY, &pattern(9_000, 1));
    flush_one(&store, "run=b,variable=z", &pattern(9_000, 2));
    close(&store);
    compact(&open(&world, "a"));
    let store = open(&world, "a");
    let how = Wiping { doit: true, ..Wiping::default() };
    assert_eq!(store.wipe(&Request::parse("run=b").unwrap(), &how).unwrap().fields, 1);
    close(&store);
    let report = open(&world, "b").verify(&Request::new()).unwrap();
    assert!(report.ok() && !report.notes.iter().any(|note| note.contains("takeover")), "{report:?}");
    let (path, data) = (only(&world, "logs", ".takeover"), only(&world, "data", ".data"));
    let bytes = world.read(&path).unwrap();
    put_file(&world.process("a"), path.clone(), None).unwrap();
    let report = open(&world, "b").verify(&Request::new()).unwrap();
    let missing = report.damaged.iter().find(|damage| damage.file == shown(&path));
    assert!(missing.is_some_and(|damage| damage.why.contains("a wipe")), "{report:?}");
    assert!(report.notes.iter().any(|note| note.starts_with(&shown(&data))), "{report:?}");
    put_file(&world.process("a"), path.clone(), Some(&bytes)).unwrap();
    assert!(open(&world, "b").verify(&Request::new()).unwrap().ok());
    // Another one takes its name.
    put_file(&world.process("a"), path, None).unwrap();
    let other = open(&world, "a");
    flush_one(&other, "run=c,variable=z", b"more");
    close(&other);
    compact(&open(&world, "a"));
    let report = open(&world, "b").verify(&Request::new()).unwrap();
    assert!(report.notes.iter().any(|note| note.contains("another takeover has its name")), "{report:?}");
}

/// A folder of all users: alice has fields in two logs.
fn shared() -> (SimWorld, Store) {
    let world = shared_folder();
    let first = open(&world, "alice");
    flush_one(&first, KEY, b"alice's");
    close(&first);
    let alice = open(&world, "alice");
    flush_one(&alice, "run=a,variable=z", b"living");
    (world, alice)
}

/// The takeover that alice would make of her first log, with another header; bob also puts its data log there.
fn forged(world: &SimWorld, change: impl Fn(&mut TakeoverHeader)) -> Vec<u8> {
    let fork = world.fork_image();
    compact(&open(&fork, "alice"));
    let bytes = fork.read(&only(&fork, "logs", "u501-1.takeover")).unwrap();
    let id = TakeoverHeader::decode(&bytes).unwrap().id;
    let data = only(&fork, "data", &format!("{id}-1.data"));
    if let Ok(file) = world.process("bob").disk.create_new(&data) {
        write_all_at(&*file, &fork.read(&data).unwrap(), 0).unwrap();
    }
    let mut header = TakeoverHeader::decode(&bytes).unwrap();
    let length = header.encode().len();
    change(&mut header);
    let header = header.encode();
    assert_eq!(header.len(), length, "no offset moves");
    let body = &bytes[length..bytes.len() - TAIL - length];
    [&header[..], body, &header, &TakeoverHeader::tail(length as u32)].concat()
}

fn put_as(world: &SimWorld, host: &str, name: &str, bytes: &[u8]) {
    let path = Path::new(ROOT).join("logs").join(name);
    write_all_at(&*world.process(host).disk.create_new(&path).unwrap(), bytes, 0).unwrap();
}

#[test]
fn r60_a_takeover_of_another_user_hides_nothing() {
    // The owner in the header, and the name of the file.
    let forgeries = [(BOB, "u502"), (ALICE, "u501"), (BOB, "u501"), (ALICE, "u502")];
    for (n, (user, name)) in forgeries.into_iter().enumerate() {
        let (world, alice) = shared();
        let bytes = forged(&world, |header| header.owner = Owner::User(user));
        put_as(&world, "bob", &file_name(name, 1), &bytes);
        check_alice(&world, &alice, &format!("forgery {n}"));
        // Alice takes her logs over all the same, whatever number bob took.
        let maker = open(&world, "alice");
        flush_one(&maker, "run=a,variable=later", b"later");
        close(&maker);
        let made = maker.journal().maintenance().compact(
            &CompactOptions { grace: 0, ..CompactOptions::default() },
            &Session::default(),
            &mut |_| Ok(()),
        );
        let made = made.map(|report| report.logs).map_err(|e| e.to_string());
        check_alice(&world, &alice, &format!("forgery {n}, then {made:?}"));
        assert_eq!(get(&open(&world, "bob"), "run=a,variable=later").unwrap(), b"later");
    }
}

fn check_alice(world: &SimWorld, alice: &Store, at: &str) {
    for store in [alice, &open(world, "alice"), &open(world, "bob")] {
        store.refresh().unwrap();
        for (key, value) in [(KEY, &b"alice's"[..]), ("run=a,variable=z", b"living")] {
            assert_eq!(get(store, key).unwrap(), value, "{at}");
        }
        let never = get(store, "run=a,variable=never").unwrap_err();
        assert_eq!(never.kind(), ErrorKind::NotFound, "{at}: {never}");
        assert!(store.verify(&Request::new()).unwrap().ok(), "{at}");
    }
}

/// Bob puts a greater number under alice's name, after she took her logs over, and before she does it again.
#[test]
fn r60_a_file_under_the_name_of_another_user_hides_none_of_his() {
    let (world, alice) = shared();
    let real = forged(&world, |_| {});
    compact(&open(&world, "alice"));
    for number in [2, 9] {
        put_as(&world, "bob", &file_name("u501", number), &real);
    }
    put_as(&world, "bob", &file_name("u501", 10), b"");
    check_alice(&world, &alice, "behind the real one");
    let maker = open(&world, "alice");
    flush_one(&maker, "run=a,variable=later", b"later");
    close(&maker);
    let report = compact(&maker);
    assert!(report.logs.1 < report.logs.0, "{report:?}");
    check_alice(&world, &alice, "and after her next one");
    assert_eq!(get(&open(&world, "bob"), "run=a,variable=later").unwrap(), b"later");
}

#[test]
fn a_takeover_of_another_store_hides_nothing_that_is_there() {
    let (world, alice) = shared();
    let own = forged(&world, |header| header.store = Id([7; 16]));
    let stranger = |header: &mut TakeoverHeader| header.store = Id([7; 16]);
    put_as(
        &world,
        "bob",
        &file_name("u502", 1),
        &forged(&world, |header| {
            stranger(header);
            header.owner = Owner::User(BOB);
        }),
    );
    for store in [&alice, &open(&world, "alice")] {
        store.refresh().unwrap();
        assert_eq!(get(store, KEY).unwrap(), b"alice's");
        let report = store.verify(&Request::new()).unwrap();
        let named = report.damaged.iter().map(|damage| &damage.file).chain(&report.notes);
        assert!(named.into_iter().any(|line| line.contains("u502-1.takeover")), "{report:?}");
    }
    // Her own of another store: the reader does not pass over it.
    put_as(&world, "alice", &file_name("u501", 1), &own);
    let report = open(&world, "alice").verify(&Request::new()).unwrap();
    let why = report.damaged.iter().find(|damage| damage.file.ends_with("u501-1.takeover"));
    assert!(why.is_some_and(|damage| damage.why.contains("another store")), "{report:?}");
    let _ = open_at(&world, &alice.version().unwrap());
}
