//! Bytes of an engine's file change on their own: a reader gets the whole of a committed state, or an error
//! about a damaged file. It never gets a part, and never a mix of two moments.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use fieldstone_catalog::engine::{self, Flow, Index, Probe, RunSelect, Sqlite, Tables, Wait};
use fieldstone_core::value::ValueType;
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    AttributeBatch, Boxes, Column, Record, Removal, RunName, TagDecl, Values, VariableName,
};
use fieldstone_journal::feed::Commit;
use fieldstone_testkit::{Random, seeded};

const STORE: Id = Id([9; 16]);
const WRITER: Id = Id([11; 16]);

fn run(n: i64) -> RunName {
    RunName { project: String::new(), name: format!("run{n}") }
}

fn tag() -> TagDecl {
    TagDecl { name: "maximum".into(), version: 1, kind: ValueType::Float, unit: "K".into() }
}

/// A commit of attributes at several places, now and then of a deletion.
fn record(rng: &mut Random) -> Record {
    if rng.percent(10) {
        return Record::Remove(vec![Removal::Step(run(rng.within(0, 4)), rng.within(0, 40))]);
    }
    let rows = rng.within(1, 60) as usize;
    let mut each = |to| (0..rows).map(|_| rng.within(0, to)).collect::<Vec<i64>>();
    Record::Attributes(AttributeBatch {
        keywords: Vec::new(),
        step: Some(Column::Each(each(40))),
        boxes: Some(Boxes {
            rank: 1,
            start: each(5000),
            count: each(90).iter().map(|n| n + 1).collect(),
            cells: None,
        }),
        values: Values::Float(each(1_000_000).iter().map(|n| *n as f64 / 8.0).collect()),
        run: run(rng.within(0, 4)),
        tag: tag(),
        rows,
        variables: vec![VariableName { name: "temperature".into(), version: 1 }],
        variable: Column::One(0),
        one_value: false,
        continues: false,
        singles: false,
    })
}

fn open(path: &Path) -> Result<Index> {
    let mut index = Index::open(Box::new(Sqlite::open(path)?), STORE)?;
    // The log is copied into the file every few commits.
    index.database().batch("PRAGMA wal_autocheckpoint = 25")?;
    Ok(index)
}

fn commit(sequence: u64, record: &Record) -> Commit {
    let side = vec![record.encode()];
    Commit {
        writer: WRITER,
        owner: 0,
        sequence,
        stamp: sequence,
        time: 0,
        transaction: None,
        order: None,
        side,
    }
}

fn apply(index: &mut Index, sequence: u64, record: &Record) -> Result<()> {
    assert!(index.begin_apply(Wait::Yes)?);
    let commit = commit(sequence, record);
    let applied = index.apply_commit(&commit).and_then(|()| index.set_watermark(WRITER, sequence));
    match applied.and_then(|()| index.end_apply()) {
        Err(e) => {
            let _ = index.abort();
            Err(e)
        }
        done => done,
    }
}

/// The content of the tables, by their keys and by their index of values.
fn content(index: &mut Index) -> Result<String> {
    index.begin_read()?;
    let said = content_within(index);
    index.end_read()?;
    said
}

fn content_within(index: &mut Index) -> Result<String> {
    let mut said = engine::dump(index)?;
    let tags = index.tags()?;
    for run in index.runs(&RunSelect::All)? {
        for tag in &tags {
            let numbers = f64::NEG_INFINITY..=f64::INFINITY;
            let mut rows = Vec::new();
            index.scan(&[Probe::Number { run: run.id, tag: tag.id, numbers }], &mut |row| {
                rows.push(format!("{:?} {} {:?}\n", row.num, row.step, row.region));
                Ok(Flow::More)
            })?;
            rows.sort();
            said += &format!("{:?}\n{}", run.decl.run, rows.concat());
        }
    }
    Ok(said)
}

fn log_of(path: &Path) -> PathBuf {
    path.with_file_name("index.sqlite-wal")
}

/// The file and the log as a killed process leaves them.
fn copy(path: &Path, folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).unwrap();
    let copy = folder.join("index.sqlite");
    let _ = fs::remove_file(folder.join("index.sqlite-shm"));
    fs::copy(path, &copy).unwrap();
    fs::copy(log_of(path), log_of(&copy)).unwrap();
    copy
}

/// Changes a file a little; describes the change.
fn change(rng: &mut Random, path: &Path) -> String {
    let mut bytes = fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    if bytes.is_empty() {
        return format!("{name} is empty");
    }
    // The head of the log is small, and everything else depends on it.
    let end = if rng.percent(10) { 100.min(bytes.len()) } else { bytes.len() };
    let at = rng.within(0, end as i64) as usize;
    let said = match rng.within(0, 10) {
        0..=5 => {
            bytes[at] ^= 1 << rng.within(0, 8);
            format!("a bit of byte {at}")
        }
        6..=7 => {
            let to = (at + rng.within(1, 300) as usize).min(bytes.len());
            bytes[at..to].iter_mut().for_each(|byte| *byte = rng.within(0, 256) as u8);
            format!("bytes {at} to {to}")
        }
        8 => {
            let from = at / 4096 * 4096;
            let to = (from + 4096).min(bytes.len());
            bytes[from..to].fill(0);
            format!("zeros from {from}")
        }
        _ => {
            bytes.truncate(at);
            format!("cut at {at}")
        }
    };
    fs::write(path, bytes).unwrap();
    format!("{name}: {said}")
}

/// Reads the content, continues with it, and reads again.
fn read_and_go_on(path: &Path, committed: &HashSet<String>) -> Result<bool> {
    let mut index = open(path)?;
    let said = content(&mut index)?;
    let right = committed.contains(&said);
    let mut rng = seeded(7);
    for sequence in 1000..1012 {
        apply(&mut index, sequence, &record(&mut rng))?;
    }
    Ok(right)
}

fn damaged(error: &Error) -> bool {
    error.kind() == ErrorKind::Corrupt
}

/// After any change in the file, or in the log that a killed process left, reads return a whole committed
/// state.
#[test]
fn what_is_read_of_a_changed_file_was_committed_as_a_whole() {
    let (mut noticed, mut older, mut tried) = (0, 0, 0);
    for seed in 0..3 {
        let mut rng = seeded(seed);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.sqlite");
        let mut index = open(&path).unwrap();
        let mut reader = open(&path).unwrap();
        let mut reading = false;
        let mut committed = HashSet::from([content(&mut index).unwrap()]);
        let mut last = String::new();
        for sequence in 1..=70 {
            apply(&mut index, sequence, &record(&mut rng)).unwrap();
            last = content(&mut index).unwrap();
            committed.insert(last.clone());
            // A reader keeps a part of the log from being copied.
            if rng.percent(30) {
                if reading {
                    reader.end_read().unwrap();
                } else {
                    reader.begin_read().unwrap();
                }
                reading = !reading;
            }
            if sequence % 7 != 0 {
                continue;
            }
            let kept = copy(&path, &folder.path().join("kept"));
            let again = copy(&kept, &folder.path().join("again"));
            assert_eq!(content(&mut open(&again).unwrap()).unwrap(), last, "seed {seed}: nothing changed");
            for _ in 0..8 {
                let tampered = copy(&kept, &folder.path().join("tampered"));
                let mut what = Vec::new();
                for _ in 0..rng.within(1, 3) {
                    let which = if rng.percent(50) { tampered.clone() } else { log_of(&tampered) };
                    what.push(change(&mut rng, &which));
                }
                tried += 1;
                match read_and_go_on(&tampered, &committed) {
                    Ok(right) => {
                        assert!(right, "seed {seed}, commit {sequence}: {what:?} is not noticed");
                        older += 1;
                    }
                    Err(e) if damaged(&e) => noticed += 1,
                    Err(e) => panic!("seed {seed}, commit {sequence}, {what:?}: {e:?}"),
                }
            }
        }
        assert!(!last.is_empty());
    }
    // Nobody reads the pages of empty tables, such as those of distributed arrays here.
    assert!(noticed > tried * 2 / 5 && older > 0, "{noticed} noticed, {older} harmless of {tried}");
}

/// The same under open connections: the next reader gets the error.
#[test]
fn what_changes_under_an_open_connection_is_noticed() {
    let mut noticed = 0;
    for seed in 0..40 {
        let mut rng = seeded(1000 + seed);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("index.sqlite");
        let mut index = open(&path).unwrap();
        // Nothing that it read stays in memory.
        index.database().batch("PRAGMA cache_size = 1").unwrap();
        for sequence in 1..=20 {
            apply(&mut index, sequence, &record(&mut rng)).unwrap();
        }
        // The other connection's last write is only in the log.
        let mut other = open(&path).unwrap();
        other.database().batch("PRAGMA wal_autocheckpoint = 0").unwrap();
        for sequence in 21..=30 {
            apply(&mut other, sequence, &record(&mut rng)).unwrap();
        }
        let truth = content(&mut other).unwrap();
        let which = if rng.percent(50) { path.clone() } else { log_of(&path) };
        let bytes = fs::read(&which).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&which).unwrap();
        for _ in 0..8 {
            let at = rng.within(0, bytes.len() as i64) as usize;
            file.write_all_at(&[bytes[at] ^ 1 << rng.within(0, 8)], at as u64).unwrap();
        }
        match content(&mut index) {
            Ok(said) => assert_eq!(said, truth, "seed {seed}: {}", which.display()),
            Err(e) => {
                assert!(damaged(&e), "seed {seed}: {e}");
                noticed += 1;
            }
        }
    }
    assert!(noticed > 20, "{noticed} of 40");
}

/// SQLite finds damage in the log while it copies the log into the file, and reports it to nobody.
#[test]
fn damage_that_the_copying_of_the_log_meets_is_told_by_the_next_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.sqlite");
    let mut index = open(&path).unwrap();
    index.database().batch("PRAGMA wal_autocheckpoint = 0").unwrap();
    let mut rng = seeded(3);
    for sequence in 1..=5 {
        apply(&mut index, sequence, &record(&mut rng)).unwrap();
    }
    let mut bytes = fs::read(log_of(&path)).unwrap();
    bytes.iter_mut().skip(32 + 24 + 50).step_by(4120).for_each(|byte| *byte ^= 4);
    fs::write(log_of(&path), bytes).unwrap();
    index.database().batch("PRAGMA wal_autocheckpoint = 1").unwrap();
    // Pages are in memory: the commit succeeds, and the next call does not.
    let went = apply(&mut index, 6, &record(&mut rng));
    assert!(went.is_ok() || went.is_err_and(|e| damaged(&e)));
    assert!(damaged(&index.begin_read().unwrap_err()));
}

/// Intact files are never reported as damaged: many pages written twice in a transaction, rollbacks, a
/// restarted log, files that shrink, and several connections at once.
#[test]
fn what_is_not_damaged_is_not_taken_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("index.sqlite");
    let mut index = open(&path).unwrap();
    let mut other = open(&path).unwrap();
    for one in [&mut index, &mut other] {
        // Pages go to the log before the commit, and are read back from there.
        one.database().batch("PRAGMA cache_size = 10; PRAGMA cache_spill = 1").unwrap();
    }
    let mut rng = seeded(5);
    for round in 0..60_u64 {
        let one = if round % 3 == 0 { &mut other } else { &mut index };
        assert!(one.begin_apply(Wait::Yes).unwrap());
        for step in 0..rng.within(1, 12) as u64 {
            let sequence = round * 100 + step + 1;
            one.apply_commit(&commit(sequence, &record(&mut rng))).unwrap();
            one.set_watermark(WRITER, sequence).unwrap();
        }
        match rng.within(0, 5) {
            0 => one.abort().unwrap(),
            1 if round % 20 == 1 => {
                one.clear().unwrap();
                one.end_apply().unwrap();
            }
            _ => one.end_apply().unwrap(),
        }
        assert_eq!(content(&mut index).unwrap(), content(&mut other).unwrap(), "round {round}");
    }
    drop(other);
    let said = content(&mut index).unwrap();
    drop(index);
    assert!(!log_of(&path).exists(), "who closes last copies the log");
    assert_eq!(content(&mut open(&path).unwrap()).unwrap(), said);
}
