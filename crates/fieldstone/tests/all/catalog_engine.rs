//! The engine is only an index: deleted, damaged, stale, locked by others or out of reach, it changes no answer and
//! delays no flush.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use crate::shared::*;
use fieldstone::Session;
use fieldstone::catalog::{CatalogSettings, Deletion, Query};
use fieldstone::env::sim::SimWorld;
use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, DType, Mode, OpenOptions};
use fieldstone_catalog::engine::{Database as _, Sqlite};

/// Names the store to a child that only reads it.
const CHILD: &str = "FIELDSTONE_TEST_CATALOG_STORE";

/// A store with data of every kind, flushed.
fn filled(folder: &Path) -> Both {
    let both = Both::at(folder);
    for name in ["a", "b"] {
        both.prepare(name);
        both.catalog.annotate(columns(name, "max", 500), &Session::default()).unwrap();
        both.annotate(name, "min", 3, [1, 1], 0.25);
        both.catalog.annotate(on_run(name, "cost", 7.0), &Session::default()).unwrap();
        both.flush();
    }
    let data = vec![0; 8 * 64];
    let value = fieldstone::Value::Array { data: &data, dtype: DType::F8, shape: &[8, 8] };
    let key = [("run", "a"), ("variable", "t"), ("step", "9")];
    both.store.archive(&key, value, &ArchiveOptions::default()).unwrap();
    both.catalog
        .delete(&Deletion::Attributes(all_of(vec![above(60.0)])), false, true, &Session::default())
        .unwrap();
    both.flush();
    both
}

fn delete_engine(folder: &Path) {
    fs::remove_dir_all(folder.join("catalog")).unwrap();
}

#[test]
fn deleting_the_engine_changes_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let both = filled(folder.path());
    let answers = both.answers();
    assert!(answers.lines().count() > 800, "{answers}");
    delete_engine(folder.path());
    assert_eq!(both.answers(), answers, "deleted while it was open");
    assert!(Both::engine(folder.path()).exists());
    assert_eq!(Both::at(folder.path()).answers(), answers);
    // Only the file itself, so that its journal stays.
    fs::remove_file(Both::engine(folder.path())).unwrap();
    assert_eq!(Both::at(folder.path()).answers(), answers);
    assert_eq!(both.answers(), answers);
    let memory = Some("memory:".to_owned());
    let replayed = both.store.catalog_with(CatalogSettings { engine: memory });
    let replayed = Both { store: both.store.clone(), catalog: replayed };
    assert_eq!(replayed.answers(), answers);
    let report = both.catalog.rebuild().unwrap();
    assert_eq!((report.logs, report.commits), (1, 3));
    assert!(report.attributes >= 1000 && report.fields == 1, "{report:?}");
    assert_eq!(both.answers(), answers);
}

#[test]
fn a_damaged_engine_is_set_aside_and_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let both = filled(folder.path());
    let answers = both.answers();
    drop(both);
    let path = Both::engine(folder.path());
    for damage in 0..3 {
        let mut file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        let length = file.metadata().unwrap().len();
        match damage {
            0 => file.set_len(length / 3).unwrap(),
            1 => file.write_all(b"this is not a database").unwrap(),
            _ => {
                file.seek(SeekFrom::Start(4096)).unwrap();
                file.write_all(&vec![0xa5; length as usize - 4096]).unwrap();
            }
        }
        drop(file);
        assert_eq!(Both::at(folder.path()).answers(), answers, "damage {damage}");
        assert!(folder.path().join("catalog/index.sqlite.damaged").exists());
    }
}

#[test]
fn an_engine_of_another_store_is_made_again() {
    let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let both = filled(one.path());
    let answers = both.answers();
    let stranger = Both::at(other.path());
    stranger.prepare("z");
    stranger.flush();
    assert_eq!(stranger.catalog.runs(&Query::all()).unwrap().len(), 1);
    drop((both, stranger));
    fs::copy(Both::engine(other.path()), Both::engine(one.path())).unwrap();
    for end in ["-wal", "-shm"] {
        let _ = fs::remove_file(one.path().join(format!("catalog/index.sqlite{end}")));
    }
    assert_eq!(Both::at(one.path()).answers(), answers);
}

#[test]
fn a_log_that_is_ahead_of_the_engine_is_followed() {
    // As after a kill between a flush and the next read: the engine has nothing of the last commits.
    let folder = tempfile::tempdir().unwrap();
    let both = filled(folder.path());
    let answers = both.answers();
    let kept = tempfile::tempdir().unwrap();
    let old = kept.path().join("engine");
    drop(both);
    fs::copy(Both::engine(folder.path()), &old).unwrap();
    let both = Both::at(folder.path());
    both.annotate("a", "late", 1, [0, 0], 1.0);
    both.flush();
    let newer = both.answers();
    assert_ne!(newer, answers);
    drop(both);
    delete_engine(folder.path());
    fs::create_dir(folder.path().join("catalog")).unwrap();
    fs::copy(&old, Both::engine(folder.path())).unwrap();
    assert_eq!(Both::at(folder.path()).answers(), newer);
}

#[test]
fn a_busy_engine_delays_no_flush() {
    let folder = tempfile::tempdir().unwrap();
    let both = filled(folder.path());
    assert!(!both.hits(vec![]).is_empty());
    let path = Both::engine(folder.path());
    // Another process that applies commits for a long time: it holds SQLite's write lock.
    let mut script = std::process::Command::new("python3");
    script.arg("-c").arg(
        "import sqlite3, sys\n\
         c = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
         c.execute('BEGIN IMMEDIATE')\n\
         print('held', flush=True)\n\
         sys.stdin.read()",
    );
    script.arg(&path).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut holder = script.spawn().unwrap();
    let mut line = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut line).unwrap();
    assert_eq!(&line, b"held\n");
    let clock = fieldstone::Env::real().clock;
    let begun = clock.monotonic();
    both.catalog.annotate(columns("a", "more", 20_000), &Session::default()).unwrap();
    both.flush();
    let took = (clock.monotonic() - begun) / 1_000_000_000;
    assert!(took < 20, "the flush waited {took} s for the engine");
    assert!(!both.catalog.catch_up().unwrap(), "another process holds it");
    drop(holder.stdin.take());
    holder.wait().unwrap();
    assert_eq!(both.catalog.count(&all_of(vec![tag_is("more")])).unwrap(), 20_000);
}

#[test]
fn many_attributes_are_applied_beside_their_flush() {
    let folder = tempfile::tempdir().unwrap();
    let both = filled(folder.path());
    let applied = |both: &Both| {
        fs::metadata(Both::engine(folder.path())).map_or(0, |m| m.len()) + {
            let _ = both;
            fs::metadata(folder.path().join("catalog/index.sqlite-wal")).map_or(0, |m| m.len())
        }
    };
    let before = applied(&both);
    both.catalog.annotate(columns("a", "more", 50_000), &Session::default()).unwrap();
    both.flush();
    // No handle reads, but a background thread applies commits.
    let clock = fieldstone::Env::real().clock;
    let begun = clock.monotonic();
    while applied(&both) <= before + 500_000 || !both.catalog.catch_up().unwrap() {
        assert!(clock.monotonic() - begun < 30_000_000_000, "{before} and then {}", applied(&both));
        clock.sleep(5_000_000);
    }
    // The length is not a sign: SQLite's journal begins again at its start once all its pages are in the file.
    let content = || {
        let of = |name: &str| fs::read(folder.path().join("catalog").join(name)).unwrap_or_default();
        (of("index.sqlite"), of("index.sqlite-wal"))
    };
    let mut before = content();
    loop {
        clock.sleep(300_000_000);
        let now = content();
        if std::mem::replace(&mut before, now.clone()) == now {
            break;
        }
    }
    both.annotate("a", "few", 1, [0, 0], 1.0);
    both.flush();
    assert!(content() == before, "a few are left to the next read");
    both.store.close().unwrap();
    assert!(content() != before, "or to the end of the handle");
}

#[test]
fn many_threads_and_handles_apply_at_once() {
    let folder = tempfile::tempdir().unwrap();
    drop(filled(folder.path()));
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let folder = folder.path();
            scope.spawn(move || {
                let both = Both::at(folder);
                let name = format!("w{writer}");
                both.prepare(&name);
                for step in 0..5 {
                    both.annotate(&name, "max", step, [0, 0], step as f64);
                    both.flush();
                    let own = both.hits(vec![run_is(&name)]);
                    assert_eq!(own.len() as i64, step + 1, "what was flushed is there: {own:?}");
                }
            });
        }
    });
    let both = Both::at(folder.path());
    assert_eq!(both.hits(vec![tag_is("max"), above(-1.0)]).len(), 30 + 2 * 481);
    let check = both.catalog.verify().unwrap();
    assert!(check.ok(), "{check:#?}");
}

#[test]
fn a_reader_needs_read_permission_only() {
    let reader = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    if let Ok(url) = std::env::var(CHILD) {
        println!("{}", Both::open(&url, &reader).answers());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let answers = filled(folder.path()).answers();
    delete_engine(folder.path());
    let cache = tempfile::tempdir().unwrap();
    if fieldstone::Env::real().identity.uid() == 0 {
        // Root may write anywhere: simulate a store of another user, which a reader leaves alone.
        for path in [folder.path().to_owned(), folder.path().join("logs")] {
            std::os::unix::fs::chown(path, Some(4321), Some(4321)).unwrap();
        }
    } else {
        let read_only = std::os::unix::fs::PermissionsExt::from_mode(0o555);
        fs::set_permissions(folder.path(), read_only).unwrap();
    }
    // A process of its own, because it needs another cache.
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "--nocapture", "catalog_engine::a_reader_needs_read_permission_only"]);
    child.env(CHILD, folder.path()).env("XDG_CACHE_HOME", cache.path());
    let output = child.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&answers), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(!folder.path().join("catalog").exists());
    let entries = fs::read_dir(cache.path().join("fieldstone")).unwrap().flatten();
    let stores: Vec<_> = entries.filter(|entry| entry.path().is_dir()).collect();
    assert_eq!(stores.len(), 1);
    assert!(stores[0].path().join("index.sqlite").exists());
    let writable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(folder.path(), writable).unwrap();
}

#[test]
fn an_engine_of_a_later_release_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let both = filled(folder.path());
    let answers = both.answers();
    drop(both);
    let path = Both::engine(folder.path());
    let script = "import sqlite3, sys\n\
                  c = sqlite3.connect(sys.argv[1])\n\
                  c.execute(\"UPDATE meta SET value = '1000' WHERE name = 'layout'\")\n\
                  c.commit()\n\
                  c.execute('PRAGMA user_version = 1000')\n\
                  c.execute('PRAGMA wal_checkpoint(TRUNCATE)')";
    let done = std::process::Command::new("python3").arg("-c").arg(script).arg(&path).status().unwrap();
    assert!(done.success());
    let before = fs::read(&path).unwrap();
    let both = Both::at(folder.path());
    assert_eq!(both.answers(), answers);
    both.annotate("a", "late", 1, [0, 0], 1.0);
    both.flush();
    assert_eq!(both.hits(vec![tag_is("late")]).len(), 1);
    assert!(fs::read(&path).unwrap() == before, "the other file is as it was");
    let names = fs::read_dir(folder.path().join("catalog")).unwrap();
    let own = names.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let own: Vec<String> =
        own.filter(|name| name.starts_with("index-") && name.ends_with(".sqlite")).collect();
    assert_eq!(own.len(), 1, "an engine under the name of its own layout: {own:?}");
}

#[test]
fn what_no_checksum_tells_is_found_and_mended() {
    let folder = tempfile::tempdir().unwrap();
    let both = filled(folder.path());
    let answers = both.answers();
    drop(both);
    // Written as the engine itself does.
    let mut engine = Sqlite::open(&Both::engine(folder.path())).unwrap();
    engine.execute("UPDATE attr SET num = num + 1 WHERE num = 0.25", &[]).unwrap();
    drop(engine);
    let both = Both::at(folder.path());
    let check = both.catalog.verify().unwrap();
    assert!(!check.ok() && check.damaged.is_empty(), "{check:#?}");
    both.catalog.rebuild().unwrap();
    assert!(both.catalog.verify().unwrap().ok());
    assert_eq!(both.answers(), answers);
}

#[test]
fn other_programs_may_read_the_file_and_what_they_write_is_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let both = filled(folder.path());
    let answers = both.answers();
    let path = Both::engine(folder.path());
    let python = |script: &str| {
        let begin = "import sqlite3, sys\nc = sqlite3.connect(sys.argv[1])\n";
        let script = format!("{begin}{script}");
        let output = std::process::Command::new("python3").arg("-c").arg(script).arg(&path).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let count = "print(c.execute('SELECT count(*) FROM attributes').fetchone()[0])";
    let rows = both.catalog.count(&Query::all()).unwrap().to_string();
    assert_eq!(python(count), rows, "next to an open engine");
    drop(both);
    assert_eq!(python(count), rows);
    assert_eq!(python("print(c.execute('PRAGMA integrity_check').fetchone()[0])"), "ok");
    let aside = folder.path().join("catalog/index.sqlite.damaged");
    assert_eq!(Both::at(folder.path()).answers(), answers);
    assert!(!aside.exists(), "to read leaves the file as it is");
    python("c.execute('DELETE FROM attr WHERE num > 20')\nc.commit()");
    assert_eq!(Both::at(folder.path()).answers(), answers);
    assert!(aside.exists());
}

#[test]
fn damaged_records_are_named_and_the_rest_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let good = Both::at(folder.path());
    good.prepare("good");
    good.annotate("good", "max", 1, [0, 0], 1.0);
    good.flush();
    let bad = Both::at(folder.path());
    bad.prepare("bad");
    bad.flush();
    let logs = || {
        let all = fs::read_dir(folder.path().join("logs")).unwrap().flatten();
        all.map(|entry| (entry.path(), fs::metadata(entry.path()).unwrap().len())).collect::<Vec<_>>()
    };
    let before = logs();
    bad.catalog.annotate(columns("bad", "max", 400), &Session::default()).unwrap();
    bad.flush();
    bad.annotate("bad", "min", 1, [0, 0], 1.0);
    bad.flush();
    drop((good, bad));
    // In the middle of the record of columns.
    let grown =
        logs().into_iter().find(|(path, len)| before.iter().any(|(p, l)| p == path && len > l)).unwrap();
    let start = before.iter().find(|(path, _)| *path == grown.0).unwrap().1;
    let mut file = fs::OpenOptions::new().write(true).open(&grown.0).unwrap();
    file.seek(SeekFrom::Start(start + 300)).unwrap();
    file.write_all(&[0xa5; 8]).unwrap();
    drop(file);
    delete_engine_if_there(folder.path());
    let both = Both::at(folder.path());
    let mut hits = both.hits(vec![]);
    hits.sort();
    assert_eq!(hits, ["bad 1 t min 1.0 [0, 0]", "good 1 t max 1.0 [0, 0]"]);
    let check = both.catalog.verify().unwrap();
    let name = grown.0.file_name().unwrap().to_string_lossy().into_owned();
    assert!(
        check.different.is_empty() && check.damaged.iter().any(|text| text.contains(&name)),
        "{check:#?}"
    );
}

fn delete_engine_if_there(folder: &Path) {
    let _ = fs::remove_dir_all(folder.join("catalog"));
}

/// System calls on a simulated machine that counts all of them; the engine makes none.
#[test]
fn a_query_looks_at_the_logs_once() {
    let world = SimWorld::new(1);
    let open = |host: &str| {
        let options = OpenOptions::default();
        let path = Path::new("/store");
        let store = fieldstone::open_in(world.process(host), "/store", path, &options).unwrap();
        let catalog = store.catalog_with(CatalogSettings::default());
        Both { store, catalog }
    };
    let (writer, reader) = (open("a"), open("b"));
    writer.prepare("a");
    writer.annotate("a", "max", 1, [0, 0], 1.0);
    writer.flush();
    assert_eq!(reader.hits(vec![]).len(), 1);
    let calls = |work: &dyn Fn()| {
        let before = world.counters().total();
        work();
        world.counters().total() - before
    };
    let look = calls(&|| drop(reader.store.version().unwrap()));
    assert!(look > 0);
    let query = Query::all();
    let asked: [(&str, &dyn Fn()); 3] = [
        ("tags", &|| drop(reader.catalog.tags(&query).unwrap())),
        ("attributes", &|| drop(reader.catalog.attributes(&query).unwrap())),
        ("stream", &|| assert_eq!(reader.catalog.stream(&query).unwrap().count(), 1)),
    ];
    for (name, ask) in asked {
        assert_eq!(calls(ask), look, "{name}");
    }
    // Also if this handle has unflushed data.
    reader.catalog.create_tags(vec![float_tag("min")], &Session::default()).unwrap();
    assert_eq!(calls(&|| assert_eq!(reader.catalog.tags(&query).unwrap().len(), 2)), look);
}
