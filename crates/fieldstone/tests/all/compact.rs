//! Compaction: every call answers as before, with an engine that followed the logs and with one that is rebuilt.

use std::cell::Cell;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use fieldstone::catalog::query::text::parse;
use fieldstone::catalog::{CatalogSettings, Query};
use fieldstone::graph::{AuditOptions, RelationPut, TraceOptions, Versions, VertexName, Way};
use fieldstone::prelude::*;
use fieldstone::{
    CompactOptions, CompactReport, ErrorKind, ListOptions, Mode, OpenOptions, ReadOptions, Request, Session,
    Store, loopback,
};

use crate::shared::{Both, lines};

/// At once, as nobody else has the store open.
const AT_ONCE: CompactOptions<'static> =
    CompactOptions { requests: &[], max_bytes: None, rate: None, grace: Duration::ZERO, progress: None };

fn vertex(kind: &str, id: &str) -> VertexName {
    VertexName::new(kind, id)
}

/// The `n`-th writer: fields, a removal, attributes, relations, and a transaction.
fn write(folder: &Path, n: i64) {
    let both = Both::at(folder);
    let (run, step) = (format!("r{}", n % 2), n.to_string());
    if n < 2 {
        both.prepare(&run);
    }
    let key = |step| [("run", run.as_str()), ("variable", "t"), ("step", step)];
    both.archive(&key(&step), &[8, 8], None);
    both.archive(&key("100"), &[8, 8], None);
    both.annotate(&run, "peak", n, [n % 4, 2], n as f64);
    let put = |kind, from: &str, to: &str| RelationPut::new(kind, vertex("job", from), vertex("file", to));
    let relations = vec![put("write", &step, &step), put("read", &step, &(n - 1).to_string())];
    both.store.graph().put_relations(relations, &Session::default()).unwrap();
    both.flush();
    let transaction = both.store.transaction().unwrap();
    both.archive(&[("run", "tx"), ("variable", "t"), ("step", step.as_str())], &[4], Some(transaction.id()));
    both.try_annotate(&run, "within", n, [0, 0], 1.5, Some(transaction.id())).unwrap();
    transaction.flush().unwrap();
    if n % 3 == 0 { transaction.abort() } else { transaction.commit() }.unwrap();
    if n == 4 {
        both.remove("run=r0,step=0");
    }
    both.store.close().unwrap();
}

fn written(writers: i64) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    (0..writers).for_each(|n| write(folder.path(), n));
    folder
}

fn open(folder: &Path, mode: Mode, at: Option<String>) -> Both {
    let options = OpenOptions { mode, at, ..OpenOptions::default() };
    Both::open(&folder.display().to_string(), &options)
}

/// Fields, with their versions, and their bytes.
fn fields(store: &Store, text: &mut String) {
    let listed = ListOptions { masked: true, ..ListOptions::default() };
    for entry in store.list(&Request::new(), &listed).unwrap() {
        let mut entry = entry.unwrap();
        // A takeover keeps small payload in another file.
        entry.place = None;
        writeln!(text, "{entry:?}").unwrap();
        if !entry.masked {
            let key: Vec<(String, String)> =
                entry.key.iter().map(|(k, v)| (k.to_string(), v.text().into_owned())).collect();
            let key: Vec<(&str, &str)> = key.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
            let field = store.get(&key, &ReadOptions::default()).unwrap();
            writeln!(text, "{:?} {:?}", field.commits(), field.read().unwrap()).unwrap();
        }
    }
    writeln!(text, "{:?}", store.axes(&Request::new(), &ReadOptions::default()).unwrap()).unwrap();
}

/// Everything that a handle answers.
fn answers(both: &Both) -> String {
    let (mut text, none, store) = (String::new(), Session::default(), &both.store);
    fields(store, &mut text);
    writeln!(text, "{}", both.answers()).unwrap();
    for query in ["tag=peak and value>2 order by -value", "tag=within", "run=r1 and box=0:4,0:4"] {
        writeln!(text, "{query}: {:?}", lines(&both.catalog.attributes(&parse(query).unwrap()).unwrap()))
            .unwrap();
    }
    let hits = both.catalog.attributes(&Query::all()).unwrap();
    let hits: Vec<_> = (0..).map_while(|row| hits.hit(row)).collect();
    for hit in &hits {
        let writer = both.catalog.writer(hit.id.writer).unwrap().unwrap();
        writeln!(text, "{hit:?} by {:?} {writer:?}", both.catalog.user_name(hit.user)).unwrap();
    }
    for n in 0..6 {
        let file = vertex("file", &n.to_string());
        let options = TraceOptions { way: Way::Both, ..TraceOptions::default() };
        let Ok(lineage) = store.graph().trace(&file, &options, &none) else { continue };
        writeln!(text, "{lineage:?}").unwrap();
        let edges = store.graph().edges(&file, None, Versions::NOW, None, &none).unwrap();
        writeln!(text, "{edges:?} {:?}", store.graph().versions(&file, &none)).unwrap();
    }
    let user = Some(store.backend().env().identity.uid().to_string());
    let audit = store.graph().audit(&AuditOptions { user, ..AuditOptions::default() }, &none).unwrap();
    audit.rows.iter().for_each(|row| writeln!(text, "{row:?}").unwrap());
    assert!(audit.rows.len() > 10, "{audit:?}");
    text
}

#[track_caller]
fn same(before: &str, after: &str) {
    let differs = before.lines().zip(after.lines()).find(|(one, other)| one != other);
    if let Some((one, other)) = differs {
        panic!("before: {one}\nafter:  {other}");
    }
    assert_eq!(before.lines().count(), after.lines().count());
}

fn logs(folder: &Path) -> usize {
    let names = fs::read_dir(folder.join("logs")).unwrap().map(|entry| entry.unwrap().file_name());
    names.filter(|name| name.to_string_lossy().ends_with(".log")).count()
}

#[test]
fn everything_is_answered_as_before() {
    let folder = written(7);
    let followed = open(folder.path(), Mode::Read, None);
    let before = answers(&followed);
    let version = followed.store.version().unwrap();
    let store = open(folder.path(), Mode::Append, None).store;
    let report = store.compact(&AT_ONCE).unwrap();
    assert_eq!((report.logs, report.segments.1, report.waiting), ((7, 0), 1, 0), "{report}");
    assert!(report.files.1 < report.files.0 && report.nbytes > 0 && report.left.is_empty(), "{report}");
    assert_eq!(logs(folder.path()), 0);
    // The handle that was open, a new one with the same engine, and the version of then.
    same(&before, &answers(&followed));
    same(&before, &answers(&open(folder.path(), Mode::Read, None)));
    same(&before, &answers(&open(folder.path(), Mode::Read, Some(version))));
    // An engine and segments made from the takeover.
    store.catalog().rebuild().unwrap();
    store.graph().rebuild().unwrap();
    same(&before, &answers(&open(folder.path(), Mode::Read, None)));
    drop(store);
    fs::remove_dir_all(folder.path().join("catalog")).unwrap();
    fs::remove_dir_all(folder.path().join("graph")).unwrap();
    let again = open(folder.path(), Mode::Append, None);
    same(&before, &answers(&again));
    assert!(again.catalog.verify().unwrap().ok() && again.store.graph().verify().unwrap().ok());
    assert!(again.store.verify(&Request::new()).unwrap().ok());
}

#[test]
fn writing_goes_on_after_it() {
    let (folder, plain) = (written(4), tempfile::tempdir().unwrap());
    (0..4).for_each(|n| write(plain.path(), n));
    open(folder.path(), Mode::Append, None).store.compact(&AT_ONCE).unwrap();
    for n in 4..7 {
        write(folder.path(), n);
        write(plain.path(), n);
    }
    open(folder.path(), Mode::Append, None).store.compact(&AT_ONCE).unwrap();
    // Two stores differ in moments and ids; their keys and their catalogs are equal.
    let (compacted, plain) = (open(folder.path(), Mode::Read, None), open(plain.path(), Mode::Read, None));
    let hits = |both: &Both| lines(&both.catalog.attributes(&Query::all()).unwrap());
    let keys = |both: &Both| -> Vec<String> {
        let all = both.store.list(&Request::new(), &ListOptions::default()).unwrap();
        all.map(|entry| entry.unwrap().key.to_string()).collect()
    };
    assert_eq!((keys(&compacted), compacted.variables()), (keys(&plain), plain.variables()));
    let (mut one, mut other) = (hits(&compacted), hits(&plain));
    one.sort();
    other.sort();
    assert_eq!(one, other);
}

#[test]
fn a_request_takes_only_logs_that_hold_something_of_it() {
    let folder = written(5);
    let store = open(folder.path(), Mode::Append, None).store;
    let compact = |requests: &[&str]| {
        let requests: Vec<Request> = requests.iter().map(|text| Request::parse(text).unwrap()).collect();
        store.compact(&CompactOptions { requests: &requests, ..AT_ONCE }).unwrap().logs
    };
    let before = answers(&open(folder.path(), Mode::Read, None));
    assert_eq!(compact(&["run=nothing"]), (5, 5));
    assert_eq!(compact(&["run=r1,step=1", "run=r1,step=3"]), (5, 3));
    // The first writer aborted its transaction: its log holds the entry all the same.
    assert_eq!(compact(&["run=tx,step=0"]), (3, 2));
    // Through a filter, the same.
    let filtered = store.filtered(Request::parse("step=2").unwrap()).unwrap();
    assert_eq!(filtered.compact(&AT_ONCE).unwrap().logs, (2, 1));
    assert_eq!(compact(&[]), (1, 0));
    same(&before, &answers(&open(folder.path(), Mode::Read, None)));
    let wrong = Request::parse("step=x").unwrap();
    let error = store.compact(&CompactOptions { requests: &[wrong], ..AT_ONCE }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
}

#[test]
fn max_bytes_bounds_a_call_and_the_next_goes_on() {
    let folder = written(6);
    let before = answers(&open(folder.path(), Mode::Read, None));
    let store = open(folder.path(), Mode::Append, None).store;
    let largest = fs::read_dir(folder.path().join("logs")).unwrap();
    let largest = largest.map(|entry| entry.unwrap().metadata().unwrap().len()).max().unwrap();
    let none = store.compact(&CompactOptions { max_bytes: Some(1), ..AT_ONCE }).unwrap();
    assert_eq!((none.logs, none.nbytes), ((6, 6), 0));
    let mut calls = 0;
    loop {
        let report = store.compact(&CompactOptions { max_bytes: Some(2 * largest), ..AT_ONCE }).unwrap();
        calls += 1;
        assert!(report.logs.1 < report.logs.0, "{report}");
        if report.logs.1 == 0 {
            break;
        }
    }
    assert!(calls > 1);
    same(&before, &answers(&open(folder.path(), Mode::Read, None)));
}

#[test]
fn replaced_files_stay_for_the_grace() {
    let folder = written(3);
    let store = open(folder.path(), Mode::Append, None).store;
    let report = store.compact(&CompactOptions::default()).unwrap();
    assert_eq!((report.logs, report.waiting, logs(folder.path())), ((3, 0), 3, 3), "{report}");
    assert_eq!(store.compact(&CompactOptions::default()).unwrap().waiting, 3);
    let report = store.compact(&AT_ONCE).unwrap();
    assert_eq!((report.waiting, logs(folder.path())), (0, 0), "{report}");
}

#[test]
fn a_damaged_log_is_left_and_an_accepted_one_asks_for_nothing() {
    let folder = written(4);
    let mut paths: Vec<_> =
        fs::read_dir(folder.path().join("logs")).unwrap().map(|e| e.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "log"));
    let log = paths.into_iter().min().unwrap();
    let mut bytes = fs::read(&log).unwrap();
    let name = format!("logs/{}", log.file_name().unwrap().display());
    // A byte of a field: ones fill it.
    let at = bytes.windows(64).position(|w| w.iter().all(|byte| *byte == 1)).unwrap();
    bytes[at + 8] ^= 2;
    fs::write(&log, &bytes).unwrap();
    let store = open(folder.path(), Mode::Append, None).store;
    let report = store.compact(&AT_ONCE).unwrap();
    assert_eq!((report.logs, report.damaged().count()), ((4, 1), 1), "{report}");
    assert_eq!(report.left[0].file, name);
    assert!(report.to_string().contains(&format!("left: {name}: ")), "{report}");
    store.accept(&name, "an exercise").unwrap();
    let report = store.compact(&AT_ONCE).unwrap();
    assert_eq!((report.damaged().count(), report.left.len()), (0, 1), "{report}");
    assert!(report.left[0].accepted);
}

#[test]
fn progress_is_reported_and_may_end_it() {
    let folder = written(4);
    let before = answers(&open(folder.path(), Mode::Read, None));
    let near = open(folder.path(), Mode::Append, None).store;
    let far = Store::over(loopback(near.backend().clone()), CatalogSettings::default());
    for store in [&near, &far] {
        let stop = |_| Err(fieldstone::Error::conflict("enough"));
        let error = store.compact(&CompactOptions { progress: Some(&stop), ..AT_ONCE }).unwrap_err();
        assert_eq!((error.message(), logs(folder.path())), ("enough", 4));
    }
    let last = Cell::new((0, 0));
    let note = |progress: fieldstone::CompactProgress| {
        last.set((progress.logs, progress.entries));
        Ok(())
    };
    let report = far.compact(&CompactOptions { progress: Some(&note), ..AT_ONCE }).unwrap();
    assert!(matches!(last.get(), (4, entries) if entries >= 12), "{last:?}");
    assert_eq!((report.logs, logs(folder.path())), ((4, 0), 0));
    same(&before, &answers(&open(folder.path(), Mode::Read, None)));
}

fn refused(outcome: fieldstone::Result<CompactReport>) -> (ErrorKind, String) {
    let error = outcome.unwrap_err();
    assert!(error.hint().is_some(), "{error}");
    (error.kind(), error.to_string())
}

#[test]
fn stores_that_cannot_be_compacted_say_so() {
    let memory = fieldstone::open("memory:", &OpenOptions::default()).unwrap();
    let (kind, message) = refused(memory.compact(&AT_ONCE));
    assert!(kind == ErrorKind::Invalid && message.contains("in memory"), "{message}");
    let folder = written(1);
    let reading = open(folder.path(), Mode::Read, None).store;
    assert_eq!(refused(reading.compact(&AT_ONCE)).0, ErrorKind::Denied);
    let older = tempfile::tempdir().unwrap();
    let url = older.path().join("s").display().to_string();
    let options = OpenOptions { format: Some(1), ..OpenOptions::default() };
    fieldstone::init(&url, &options).unwrap();
    let store = fieldstone::open(&url, &OpenOptions::default()).unwrap();
    let (kind, message) = refused(store.compact(&AT_ONCE));
    assert!(kind == ErrorKind::Denied && message.contains("upgrade"), "{message}");
}

#[test]
fn a_store_without_logs_has_nothing_to_compact() {
    let folder = tempfile::tempdir().unwrap();
    let store = Both::at(folder.path()).store;
    let report = store.compact(&CompactOptions::default()).unwrap();
    assert_eq!((report.logs, report.nbytes, report.left.len()), ((0, 0), 0, 0));
}
