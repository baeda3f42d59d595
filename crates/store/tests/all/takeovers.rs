//! Takeovers: after one, a store answers everything as before, and past writers cost nothing any more.

use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

use crate::common::*;
use fieldstone_core::dtype::DType;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::request::Request;
use fieldstone_format::Id;
use fieldstone_journal::Session;
use fieldstone_journal::compact::{CompactOptions, CompactReport};
use fieldstone_journal::writer::INLINE_MAX;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;

/// Compacts at once, as nobody else has the store open.
pub fn compact(store: &Store) -> CompactReport {
    let options = CompactOptions { grace: 0, ..CompactOptions::default() };
    store.journal().maintenance().compact(&options, &Session::default(), &mut |_| Ok(())).unwrap()
}

pub fn close(store: &Store) {
    store.journal().close(&Session::default()).unwrap();
}

/// A handle at an older version.
pub fn open_at(world: &SimWorld, version: &str) -> Store {
    open_in(&world.process("b"), &Opening { at: Some(version.to_owned()), ..Opening::default() }).unwrap()
}

/// All that a handle answers about fields.
pub fn look(store: &Store, own: Option<Id>) -> String {
    let mut text = String::new();
    let options = ListOptions { masked: true, session: Session::from(own), ..ListOptions::default() };
    for entry in store.list(&Request::new(), &options).unwrap() {
        let mut entry = entry.unwrap();
        // Payload of small flushes is elsewhere after a takeover; how much it is stays.
        entry.place = None;
        writeln!(text, "{entry:?}").unwrap();
        let key = entry.key.to_string();
        let pairs = pairs(&key);
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        writeln!(text, "  {:?}", store.entries(&pairs, &Session::from(own)).unwrap()).unwrap();
        if !entry.masked {
            let bytes = field(store, &key, own).and_then(|field| field.lenient().read());
            writeln!(
                text,
                "  {:?}",
                bytes.map(|bytes| fieldstone_format::crc(&bytes)).map_err(|e| e.to_string())
            )
            .unwrap();
        }
    }
    let session = Session::from(own);
    writeln!(text, "{:?}", store.axes(&Request::new(), &ReadOptions { session }).unwrap()).unwrap();
    writeln!(text, "{:?}", store.transactions().unwrap()).unwrap();
    text
}

/// Everything about a store: now, within open transactions, and at older versions.
pub fn look_all(world: &SimWorld, open_transactions: &[Id], versions: &[String]) -> String {
    let store = open(world, "b");
    let mut text = look(&store, None);
    for transaction in open_transactions {
        text += &look(&store, Some(*transaction));
    }
    for version in versions {
        let older = open_at(world, version);
        assert_eq!(older.version().unwrap(), *version);
        let _ = writeln!(text, "at an older version:\n{}", look(&older, None));
        let options = ListOptions { masked: false, ..ListOptions::default() };
        let (news, _) = store.list_since(&Request::new(), version, &options).unwrap();
        let news: Vec<String> = news.map(|entry| entry.unwrap().key.to_string()).collect();
        let _ = writeln!(text, "since: {news:?}");
    }
    let report = store.verify(&Request::new()).unwrap();
    assert!(report.damaged.is_empty(), "{report:?}");
    text
}

#[test]
fn a_takeover_answers_in_the_place_of_closed_logs() {
    let world = SimWorld::new(1);
    for n in 0..20 {
        let store = open(&world, ["a", "b"][n % 2]);
        flush_one(&store, &format!("run=r{},variable=t,step={n}", n % 3), format!("value {n}").as_bytes());
        flush_one(&store, "run=r0,variable=t,step=0", format!("again {n}").as_bytes());
        close(&store);
    }
    let living = open(&world, "a");
    flush_one(&living, "run=r1,variable=z,step=1", b"living");
    let before = look_all(&world, &[], &[]);
    let report = compact(&open(&world, "a"));
    assert_eq!(report.logs, (21, 1));
    assert_eq!(report.left, []);
    assert_eq!(look_all(&world, &[], &[]), before);
    // The logs are gone, one takeover and one data log are there, and the boards have the living log's slot alone.
    let names: Vec<String> = files(&world, "logs").iter().map(|path| path.display().to_string()).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(files(&world, "data").len(), 1);
    // Its version is short, and names a takeover.
    let version = open(&world, "b").version().unwrap();
    assert!(version.starts_with('t') && version.len() < 80, "{version}");
}

#[test]
fn a_handle_that_is_open_meanwhile_sees_no_change() {
    let world = SimWorld::new(1);
    let reader = open(&world, "b");
    let writer = open(&world, "a");
    flush_one(&writer, "run=a,variable=t,step=1", b"one");
    let (before, version) = (look(&reader, None), reader.version().unwrap());
    close(&writer);
    compact(&open(&world, "a"));
    assert_eq!(look(&reader, None), before);
    assert_eq!(look(&writer, None), before);
    // Nobody is woken by maintenance.
    assert!(!reader.wait(&version, SECOND, &Session::default()).unwrap());
    flush_one(&writer, "run=a,variable=t,step=2", b"two");
    assert!(reader.wait(&version, SECOND, &Session::default()).unwrap());
    assert_eq!(get(&reader, "run=a,variable=t,step=2").unwrap(), b"two");
    close(&writer);
    compact(&open(&world, "a"));
    assert_eq!(listed(&reader).len(), 2);
    assert!(reader.wait(&version, SECOND, &Session::default()).unwrap());
}

#[test]
fn old_logs_stay_for_a_grace() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    flush_one(&store, "run=a,variable=t,step=1", b"one");
    close(&store);
    let maker = open(&world, "a");
    let compact = |grace: u64| {
        let options = CompactOptions { grace, ..CompactOptions::default() };
        maker.journal().maintenance().compact(&options, &Session::default(), &mut |_| Ok(())).unwrap()
    };
    let report = compact(60 * SECOND);
    assert_eq!((report.waiting, files(&world, "logs").len()), (1, 2));
    assert_eq!(compact(60 * SECOND).waiting, 1);
    world.advance(61 * SECOND);
    assert_eq!(compact(60 * SECOND).waiting, 0);
    assert_eq!(files(&world, "logs").len(), 1);
    assert_eq!(get(&open(&world, "b"), "run=a,variable=t,step=1").unwrap(), b"one");
}

#[test]
fn r31_a_field_that_is_held_is_read_after_its_log_is_gone() {
    let world = SimWorld::new(1);
    let store = open(&world, "a");
    let large = pattern(INLINE_MAX + 5, 3);
    flush_one(&store, "run=a,variable=t,step=1", b"small");
    flush_one(&store, "run=a,variable=t,step=2", &large);
    let reader = open(&world, "b");
    let hold = |step: u32| field(&reader, &format!("run=a,variable=t,step={step}"), None).unwrap();
    let (small, big, pinned) = (hold(1), hold(2), open_at(&world, &store.version().unwrap()));
    flush_one(&store, "run=a,variable=t,step=1", b"newer");
    close(&store);
    for round in 0..3 {
        compact(&open(&world, "a"));
        assert_eq!(
            (small.read().unwrap(), big.read().unwrap()),
            (b"small".to_vec(), large.clone()),
            "{round}"
        );
        // The next takeover takes this one over.
        let writer = open(&world, "a");
        flush_one(&writer, &format!("run=a,variable=t,step={}", 10 + round), &pattern(100_000, round));
        close(&writer);
    }
    world.advance(60 * SECOND);
    assert_eq!(get(&pinned, "run=a,variable=t,step=1").unwrap(), b"small");
    assert_eq!(listed(&pinned).len(), 2);
}

#[test]
fn a_list_goes_on_after_its_logs_are_gone() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    for n in 0..3 {
        let store = open(&world, "a");
        for i in 0..2_000 {
            put(&store, &format!("run=a,variable=t,step={}", 3 * i + n), b"value").unwrap();
        }
        store.flush(&Session::default()).unwrap();
        close(&store);
    }
    let reader = open(&world, "b");
    let mut listing = reader.list(&Request::new(), &ListOptions::default()).unwrap();
    let first: Vec<String> = listing.by_ref().take(10).map(|entry| entry.unwrap().key.to_string()).collect();
    compact(&open(&world, "a"));
    flush_one(&open(&world, "a"), "run=a,variable=t,step=7000", b"later");
    let rest: Vec<String> = listing.map(|entry| entry.unwrap().key.to_string()).collect();
    assert_eq!((first.len(), rest.len()), (10, 5_990));
    let all: std::collections::BTreeSet<&String> = first.iter().chain(&rest).collect();
    assert_eq!(all.len(), 6_000);
}

/// Fields of one retrieve are decoded a thousand at a time, for as long as the caller likes.
#[test]
fn r31_a_retrieve_goes_on_after_its_logs_are_gone() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    for n in 0..3 {
        let store = open(&world, "a");
        for i in 0..2_000 {
            put(&store, &format!("run=a,variable=t,step={}", 3 * i + n), format!("{i}").as_bytes()).unwrap();
        }
        store.flush(&Session::default()).unwrap();
        close(&store);
    }
    let pinned = open_at(&world, &open(&world, "a").version().unwrap());
    let all = Request::parse("run=a,variable=t").unwrap();
    for reader in [open(&world, "b"), pinned] {
        // A pinned handle looks for takeovers now and then.
        world.advance(20 * SECOND);
        let fields = reader.retrieve(&all, &RetrieveOptions::default()).unwrap();
        let version = fields.version();
        assert_eq!(fields.len(), 6_000);
        let read = |i: usize| fields.get(i).and_then(|field| field.read());
        let first = read(10).unwrap();
        // Twice: what replaced the logs is replaced as well.
        for n in 0..2 {
            let later = open(&world, "a");
            flush_one(&later, &format!("run=a,variable=t,step={n}"), &[b'x'; 200_000]);
            close(&later);
            compact(&open(&world, "a"));
            let mut seen = std::collections::BTreeSet::new();
            for i in [0, 1_500, 2_600, 3_700, 4_800, 5_999] {
                let bytes = read(i).unwrap();
                seen.insert(fields.get(i).unwrap().key().unwrap().to_string());
                assert!(bytes.len() < 5, "a later value is none of this retrieve");
            }
            assert_eq!(seen.len(), 6);
        }
        assert_eq!(read(10).unwrap(), first);
        assert_eq!(fields.version(), version);
    }
}

/// The takeover of such a handle must name the store as others know it.
#[test]
fn a_handle_that_was_opened_before_the_store_existed_takes_over() {
    let world = SimWorld::new(1);
    let maker = open(&world, "a");
    let writer = open(&world, "b");
    flush_one(&writer, "run=a,variable=t,step=1", b"one");
    close(&writer);
    assert_eq!(compact(&maker).logs, (1, 0));
    let reader = open(&world, "b");
    assert_eq!(get(&reader, "run=a,variable=t,step=1").unwrap(), b"one");
    assert!(reader.verify(&Request::new()).unwrap().damaged.is_empty());
}

/// One random call.
pub fn act(random: &mut Random, store: &Store, transactions: &mut Vec<Id>, n: u64) {
    let key = format!(
        "run=r{},variable={},step={}",
        random.below(3),
        ["t", "z"][random.below(2) as usize],
        random.below(6)
    );
    let session = match transactions.len() as u64 {
        0 => Session::default(),
        open if random.below(2) == 0 => Session::from(transactions[random.below(open) as usize]),
        _ => Session::default(),
    };
    let options = ArchiveOptions { session: session.clone(), ..ArchiveOptions::default() };
    match random.below(12) {
        0..=3 => archive(store, &key, Value::Bytes(format!("{n}").as_bytes()), &options).unwrap(),
        4 => {
            let large = pattern(INLINE_MAX + 100, n);
            archive(store, &key, Value::Bytes(&large), &options).unwrap();
        }
        5 => {
            let data: Vec<u8> = (0..96u32).flat_map(|i| (i as f32 + n as f32).to_le_bytes()).collect();
            let value = Value::Array { data: &data, dtype: DType::F4, shape: &[8, 12] };
            let chunks = Some(vec![3, 5]);
            archive(store, &key, value, &ArchiveOptions { chunks, ..options }).unwrap();
        }
        6 => {
            let start = [4 * random.below(2), 0];
            let data = vec![n as u8; 4 * 4 * 12];
            let value = Value::Piece {
                data: &data,
                dtype: DType::F4,
                start: &start,
                count: &[4, 12],
                shape: &[8, 12],
            };
            let _ = archive(store, &format!("{key},number=1"), value, &options);
        }
        7 => {
            let request = Request::parse(&format!("run=r{}", random.below(3))).unwrap();
            store.remove(&request, &RemoveOptions { session: session.clone() }).unwrap();
        }
        8 if transactions.len() < 3 => transactions.push(store.begin().unwrap()),
        9 if !transactions.is_empty() => {
            let id = transactions.swap_remove(random.below(transactions.len() as u64) as usize);
            store.decide(id, random.below(3) > 0, &Session::default()).unwrap();
        }
        _ => {}
    }
    store.flush(&session).unwrap();
}

#[test]
fn nothing_that_a_store_answers_changes_by_a_takeover() {
    let count = if std::env::var_os("FIELDSTONE_CRASH").is_some() { 400 } else { 12 };
    for seed in fieldstone_testkit::random::seeds(count) {
        let mut random = seeded(seed);
        let world = SimWorld::new(seed);
        world.set_tracing(false);
        let (mut open_transactions, mut versions) = (Vec::new(), Vec::new());
        let attempt = |random: &mut Random| ["", "", "1.1", "1.2"][random.below(4) as usize].to_owned();
        let new = |random: &mut Random, host| {
            let how = Opening { attempt: attempt(random), ..Opening::default() };
            open_in(&world.process(host), &how).unwrap()
        };
        let mut stores: Vec<Store> = (0..3).map(|i| new(&mut random, ["a", "b", "a"][i])).collect();
        stores[0].create().unwrap();
        for n in 0..60 {
            let i = random.below(3) as usize;
            act(&mut random, &stores[i], &mut open_transactions, n);
            if random.below(4) == 0 {
                close(&stores[i]);
                stores[i] = new(&mut random, ["a", "b"][i % 2]);
            }
            if random.below(8) == 0 && versions.len() < 4 {
                versions.push(stores[i].version().unwrap());
            }
            if random.below(6) == 0 {
                let before = look_all(&world, &open_transactions, &versions);
                let by_handle = look(&stores[0], None);
                let report = compact(&open(&world, "a"));
                let after = look_all(&world, &open_transactions, &versions);
                assert!(
                    before == after,
                    "seed {seed}, step {n}: {report:?}\n{}",
                    first_difference(&before, &after)
                );
                assert_eq!(look(&stores[0], None), by_handle, "seed {seed}, step {n}");
            }
        }
    }
}

pub fn first_difference(a: &str, b: &str) -> String {
    let pair = a.lines().zip(b.lines()).find(|(a, b)| a != b);
    pair.map_or_else(
        || format!("{} and {} lines", a.lines().count(), b.lines().count()),
        |(a, b)| format!("before: {a}\nafter:  {b}"),
    )
}

#[test]
fn many_short_writers_leave_few_takeovers() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    for n in 0..200 {
        let store = open(&world, "a");
        flush_one(&store, &format!("run=r,variable=t,step={n}"), b"v");
        close(&store);
        if n % 5 == 4 {
            compact(&open(&world, "a"));
        }
    }
    let (logs, data) = (files(&world, "logs"), files(&world, "data"));
    assert!(logs.len() <= 7 && data.len() <= 7, "{logs:?} {data:?}");
    assert_eq!(listed(&open(&world, "b")).len(), 200);
    let report = open(&world, "b").verify(&Request::new()).unwrap();
    assert_eq!((report.damaged.len(), report.notes.len()), (0, 0), "{report:?}");
}

/// Jobs of one flush each, one after another, with nothing but their own closing merges; the most files that were there.
fn short_jobs(world: &SimWorld, jobs: usize, pace: u64) -> usize {
    let how = Opening::default();
    let mut most = 0;
    for n in 0..jobs {
        let options = fieldstone_store::local::LocalOptions { closing_merges: true, ..how.local(ROOT) };
        let env = world.process("a");
        let store = Arc::new(fieldstone_store::LocalStore::open(env, Path::new(ROOT), options).unwrap());
        flush_one(&store, &format!("run=r,variable=t,step={n}"), b"v");
        close(&store);
        world.advance(pace);
        most = most.max(files(world, "logs").len() + files(world, "data").len());
    }
    most
}

#[test]
fn r32_writers_of_short_jobs_need_no_operator() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let most = short_jobs(&world, 600, 10 * SECOND);
    // Files of the last minutes, and of logs that wait for one closing writer in sixteen.
    assert!(most < 250, "{most} files");
    let reader = open(&world, "b");
    assert_eq!(listed(&reader).len(), 600);
    assert!(reader.version().unwrap().len() < 16 * 130, "{}", reader.version().unwrap());
    assert!(reader.verify(&Request::new()).unwrap().damaged.is_empty());
}

#[test]
fn r32_ten_jobs_a_second_leave_a_bounded_number_of_files() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let reader = open(&world, "b");
    let most = short_jobs(&world, 1_200, SECOND / 10);
    // 256 that were replaced, those of two seconds, and logs that wait for one closing writer in sixteen.
    assert!((256..500).contains(&most), "{most} files");
    reader.refresh().unwrap();
    assert_eq!(listed(&reader).len(), 1_200);
    assert!(reader.verify(&Request::new()).unwrap().damaged.is_empty());
}

#[test]
fn r19_a_damaged_log_is_left() {
    let world = SimWorld::new(1);
    for n in 0..3 {
        let store = open(&world, "a");
        flush_one(&store, &format!("run=r,variable=t,step={n}"), b"a value");
        flush_one(&store, &format!("run=r,variable=z,step={n}"), b"another");
        close(&store);
    }
    let log = files(&world, "logs").remove(1);
    let mut bytes = world.read(&log).unwrap();
    let at = bytes.windows(7).position(|w| w == b"a value").unwrap();
    bytes[at] ^= 1;
    fieldstone_store::conformance::put_file(&world.process("a"), log.clone(), Some(&bytes)).unwrap();
    let report = compact(&open(&world, "a"));
    assert_eq!((report.logs, report.left.len()), ((3, 1), 1), "{report:?}");
    assert!(log.ends_with(Path::new(&report.left[0].file).file_name().unwrap()));
    assert!(world.read(&log).is_ok());
    assert_eq!(listed(&open(&world, "b")).len(), 6);
}

#[test]
fn r60_two_makers_take_a_log_over_once() {
    let world = SimWorld::new(1);
    for n in 0..4 {
        let store = open(&world, "a");
        flush_one(&store, &format!("run=r,variable=t,step={n}"), b"v");
        close(&store);
    }
    // The second maker starts while the first one has written everything and has no name yet.
    let (first, second) = (open(&world, "a"), open(&world, "b"));
    let options = CompactOptions { grace: 0, ..CompactOptions::default() };
    let mut begun = false;
    let report = first.journal().maintenance().compact(&options, &Session::default(), &mut |progress| {
        if progress.entries == 4 && !std::mem::replace(&mut begun, true) {
            compact(&second);
        }
        Ok(())
    });
    assert_eq!(report.unwrap().logs, (4, 0));
    assert_eq!(listed(&open(&world, "b")).len(), 4);
    assert_eq!(files(&world, "logs").len(), 1, "{:?}", files(&world, "logs"));
    assert_eq!(files(&world, "data").len(), 1);
}

#[test]
fn a_store_of_format_1_has_no_takeovers() {
    let world = SimWorld::new(1);
    let store = open_in(&world.process("a"), &Opening { format: Some(1), ..Opening::default() }).unwrap();
    flush_one(&store, "run=r,variable=t,step=1", b"v");
    let store: Arc<_> = open(&world, "a");
    let outcome =
        store
            .journal()
            .maintenance()
            .compact(&CompactOptions::default(), &Session::default(), &mut |_| Ok(()));
    assert_eq!(outcome.unwrap_err().kind(), fieldstone_core::ErrorKind::Denied);
}

/// Maintenance replaces a board of its host without the slots of logs that are taken over. A writer that is open finds
/// another file under the name, and says in another slot that it closes: its log is taken over as well.
#[test]
fn r25_a_writer_whose_board_was_replaced_still_says_that_it_closes() {
    let world = SimWorld::new(1);
    let (first, second) = (open(&world, "a"), open(&world, "a"));
    flush_one(&first, "run=a,variable=t", b"1");
    flush_one(&second, "run=a,variable=u", b"2");
    close(&first);
    let board = Path::new(ROOT).join("boards/a.board");
    let before = world.read(&board).unwrap().len();
    assert_eq!(compact(&open(&world, "a")).logs, (2, 1));
    assert!(world.read(&board).unwrap().len() < before);
    close(&second);
    assert_eq!(compact(&open(&world, "a")).logs, (1, 0));
    assert_eq!(listed(&open(&world, "b")).len(), 2);
}
