//! When a field is visible, and to whom.

use std::collections::BTreeSet;

use fieldstone_core::{Error, Result};
use fieldstone_journal::Session;

use super::*;

const KEY: &str = "run=a,variable=t,step=0";

/// Archived fields are visible to others at the flush and not before.
pub fn b01_flush_visibility(harness: &dyn Harness) -> Result<()> {
    let (writer, reader) = (open(harness, 0)?, open(harness, 1)?);
    put(&writer, KEY, b"hello")?;
    harness.settle();
    for store in [&writer, &reader] {
        assert_eq!(listed(store, "")?, [""; 0], "before the flush");
        fails("get before the flush", ErrorKind::NotFound, get(store, KEY));
    }
    assert_eq!((writer.unflushed(), reader.unflushed()), (1, 0));
    flush(harness, &writer)?;
    assert_eq!(writer.unflushed(), 0);
    for store in [&writer, &reader, &open(harness, 2)?] {
        assert_eq!(listed(store, "")?, ["{run=a}{variable=t}{step=0}"]);
        assert_eq!(get(store, KEY)?, b"hello");
    }
    Ok(())
}

/// A process that ends without flushing leaves what it flushed before and nothing else.
pub fn b02_unflushed_is_lost(harness: &dyn Harness) -> Result<()> {
    let writer = open(harness, 0)?;
    put(&writer, KEY, b"kept")?;
    flush(harness, &writer)?;
    put(&writer, "run=a,variable=t,step=1", b"lost")?;
    put(&writer, "run=a,variable=t,step=2", &pattern(3 << 20, 1))?;
    drop(writer);
    harness.settle();
    assert_eq!(listed(&open(harness, 1)?, "")?, ["{run=a}{variable=t}{step=0}"]);
    Ok(())
}

/// Closing flushes.
pub fn b03_close_flushes(harness: &dyn Harness) -> Result<()> {
    let writer = open(harness, 0)?;
    put(&writer, KEY, b"hello")?;
    writer.close(&Session::default())?;
    harness.settle();
    assert_eq!(get(&open(harness, 1)?, KEY)?, b"hello");
    Ok(())
}

/// A key archived again is a new version; the old one is read until the flush.
pub fn b04_overwritten_at_flush(harness: &dyn Harness) -> Result<()> {
    let (writer, reader) = (open(harness, 0)?, open(harness, 1)?);
    put(&writer, KEY, b"one")?;
    flush(harness, &writer)?;
    put(&writer, KEY, b"two!")?;
    harness.settle();
    assert_eq!(get(&reader, KEY)?, b"one");
    assert_eq!(get(&writer, KEY)?, b"one");
    flush(harness, &writer)?;
    for store in [&writer, &reader] {
        assert_eq!(get(store, KEY)?, b"two!");
        assert_eq!(listed(store, "")?.len(), 1);
        assert_eq!(count_all(store)?, 2);
    }
    // Another process overwrites it too.
    put(&reader, KEY, b"three")?;
    flush(harness, &reader)?;
    assert_eq!(get(&writer, KEY)?, b"three");
    assert_eq!((listed(&writer, "")?.len(), count_all(&writer)?), (1, 3));
    Ok(())
}

/// Of several values of one key in one batch the last is stored, alone.
pub fn b05_last_wins_in_batch(harness: &dyn Harness) -> Result<()> {
    let writer = open(harness, 0)?;
    put(&writer, "run=a,variable=t,step=1", b"A")?;
    put(&writer, "run=a,variable=t,step=1", b"BB")?;
    assert_eq!(writer.unflushed(), 1);
    flush(harness, &writer)?;
    assert_eq!(get(&writer, "run=a,variable=t,step=1")?, b"BB");
    assert_eq!(count_all(&writer)?, 1);
    Ok(())
}

/// Two processes archive the same keys at once: all values of a key are there, one of them visible.
pub fn b06_two_processes_same_keys(harness: &dyn Harness) -> Result<()> {
    let write = |process: usize| -> Result<()> {
        let writer = open(harness, process)?;
        for step in 0..10 {
            put(&writer, &format!("run=a,variable=t,step={step}"), format!("{process}:{step}").as_bytes())?;
        }
        writer.flush(&Session::default())
    };
    in_threads(2, &write)?;
    harness.settle();
    let reader = open(harness, 2)?;
    assert_eq!((listed(&reader, "")?.len(), count_all(&reader)?), (10, 20));
    let mut winners = BTreeSet::new();
    for step in 0..10 {
        let value = get(&reader, &format!("run=a,variable=t,step={step}"))?;
        let text = String::from_utf8_lossy(&value).into_owned();
        let (winner, of) = text.split_once(':').ok_or_else(|| Error::internal(text.clone()))?;
        assert_eq!(of, step.to_string());
        winners.insert(winner.to_owned());
    }
    assert_eq!(winners.len(), 1, "one flush is newer for all keys");
    Ok(())
}

/// Four processes flush fifty times each into one dataset.
pub fn b07_four_processes_many_flushes(harness: &dyn Harness) -> Result<()> {
    let write = |process: usize| -> Result<()> {
        let writer = open(harness, process)?;
        (0..50).try_for_each(|i| {
            put(&writer, &format!("run=a,variable=v{process},step={i}"), &[process as u8, i])?;
            writer.flush(&Session::default())
        })
    };
    in_threads(4, &write)?;
    harness.settle();
    let reader = open(harness, 4)?;
    assert_eq!(listed(&reader, "")?.len(), 200);
    let fields = reader.retrieve(&request("run=a,variable=v0/v1/v2/v3,step=0/to/49")?, &strict())?;
    for (i, field) in fields.iter().enumerate() {
        assert_eq!(field?.read()?, [(i / 50) as u8, (i % 50) as u8]);
    }
    Ok(())
}

/// Threads share a handle, archiving, flushing and reading.
pub fn b08_threads_share_a_handle(harness: &dyn Harness) -> Result<()> {
    let shared = open(harness, 0)?;
    let work = |thread: usize| -> Result<()> {
        for i in 0..100 {
            let key = format!("run=a,variable=v{thread},step={i}");
            put(&shared, &key, format!("{thread}:{i}").as_bytes())?;
            if i % 25 == 24 {
                shared.flush(&Session::default())?;
                assert_eq!(get(&shared, &key)?, format!("{thread}:{i}").as_bytes());
            }
        }
        Ok(())
    };
    in_threads(4, &work)?;
    harness.settle();
    let reader = open(harness, 1)?;
    assert_eq!((listed(&reader, "")?.len(), count_all(&reader)?), (400, 400));
    for thread in 0..4 {
        for i in 0..100 {
            let value = get(&reader, &format!("run=a,variable=v{thread},step={i}"))?;
            assert_eq!(value, format!("{thread}:{i}").as_bytes());
        }
    }
    Ok(())
}

/// Discarded content is never flushed; flushed content stays.
pub fn discard_forgets(harness: &dyn Harness) -> Result<()> {
    let writer = open(harness, 0)?;
    put(&writer, KEY, b"kept")?;
    flush(harness, &writer)?;
    put(&writer, KEY, b"forgotten")?;
    put(&writer, "run=b,variable=t", &pattern(2 << 20, 3))?;
    writer.discard(&Session::default())?;
    assert_eq!(writer.unflushed(), 0);
    put(&writer, "run=c,variable=t", b"next")?;
    flush(harness, &writer)?;
    let reader = open(harness, 1)?;
    assert_eq!(listed(&reader, "")?, ["{run=a}{variable=t}{step=0}", "{run=c}{variable=t}{}"]);
    assert_eq!(get(&reader, KEY)?, b"kept");
    Ok(())
}

/// Fields and a field, once found, read as they were, whatever is flushed meanwhile.
pub fn opened_fields_stay_as_they_were(harness: &dyn Harness) -> Result<()> {
    let (writer, reader) = (open(harness, 0)?, open(harness, 1)?);
    let big = pattern(3 << 20, 5);
    put(&writer, KEY, b"one")?;
    put(&writer, "run=a,variable=t,step=1", &big)?;
    flush(harness, &writer)?;
    let fields = reader.retrieve(&request("run=a,variable=t,step=0/1")?, &strict())?;
    let field = with_key(KEY, |key| reader.get(key, &ReadOptions::default()))?;
    for round in 0..5 {
        put(&writer, KEY, format!("later {round}").as_bytes())?;
        put(&writer, "run=a,variable=t,step=1", b"small")?;
        put(&writer, &format!("run=a,variable=t,step={}", round + 2), b"more")?;
        flush(harness, &writer)?;
        reader.refresh()?;
    }
    assert_eq!(field.read()?, b"one");
    assert_eq!(fields.len(), 2);
    assert_eq!(fields.get(0)?.read()?, b"one");
    assert!(fields.get(1)?.read()? == big);
    assert_eq!(get(&reader, KEY)?, b"later 4");
    Ok(())
}

/// A list, once begun, does not change.
pub fn a_list_stays_as_it_was(harness: &dyn Harness) -> Result<()> {
    let (writer, reader) = (open(harness, 0)?, open(harness, 1)?);
    for step in 0..200 {
        put(&writer, &format!("run=a,variable=t,step={}", 2 * step), b"x")?;
    }
    flush(harness, &writer)?;
    let mut list = reader.list(&Request::new(), &ListOptions::default())?;
    assert!(list.next().transpose()?.is_some());
    for step in 0..200 {
        put(&writer, &format!("run=a,variable=t,step={}", 2 * step + 1), b"yy")?;
    }
    flush(harness, &writer)?;
    reader.refresh()?;
    let rest: Vec<ListEntry> = list.collect::<Result<_>>()?;
    assert_eq!(rest.len(), 199);
    assert!(rest.iter().all(|e| e.nbytes == 1));
    assert_eq!(listed(&reader, "")?.len(), 400);
    Ok(())
}

/// A process that looks before the system shows a flush sees it once the system does, whole, and finds no damage.
pub fn early_looks_do_no_harm(harness: &dyn Harness) -> Result<()> {
    let reader = open(harness, 1)?;
    let writers = [open(harness, 0)?, open(harness, 2)?, open(harness, 1)?];
    let mut flushed = 0;
    for round in 0..30 {
        // Old writers and new ones: their logs and boards are to be found first.
        let writer =
            if round % 2 == 0 { &writers[round % writers.len()] } else { &open(harness, round + 1)? };
        let batch = 1 + round % 4;
        for field in 0..batch {
            put(writer, &format!("run=a,variable=t{field},step={round}"), &pattern(1000, round as u64))?;
        }
        writer.flush(&Session::default())?;
        for _ in 0..round % 7 {
            harness.pass();
            let seen = listed(&reader, "")?.len();
            assert!(
                seen == flushed || seen == flushed + batch,
                "{seen} of a flush of {batch} after {flushed}"
            );
        }
        flushed += batch;
        harness.settle();
        assert_eq!(listed(&reader, "")?.len(), flushed, "round {round}");
        let status = reader.status()?;
        assert!(status.problems.is_empty(), "round {round}: {:?}", status.problems);
    }
    assert!(reader.verify(&Request::new())?.ok());
    Ok(())
}

pub(super) fn strict() -> RetrieveOptions {
    RetrieveOptions::default()
}

/// Runs `work` in threads at once; each opens handles of its own.
fn in_threads(threads: usize, work: &(dyn Fn(usize) -> Result<()> + Sync)) -> Result<()> {
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|i| scope.spawn(move || work(i))).collect();
        running.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(panic) => std::panic::resume_unwind(panic),
        })
    })
}
