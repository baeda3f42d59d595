//! Features of stores with a journal only: side records that go with commits, and feeds, on every system of the
//! conformance suite.

use fieldstone_core::Result;
use fieldstone_core::dtype::DType;
use fieldstone_core::request::Request;
use fieldstone_format::log::SideRecord;
use fieldstone_format::log::kinds::{FIELDS, TAG, VARIABLE_ATTRIBUTE};
use fieldstone_journal::Session;
use fieldstone_journal::feed::{Commit, EntryChange, EntryEffect};
use fieldstone_store::LocalStore;
use fieldstone_store::api::*;
use fieldstone_store::conformance::{Access, Opening};

use super::conformance::{Folder, Memory, Posix, Shared};

fn open(system: &dyn Folder, process: usize) -> Result<LocalStore> {
    system.local(process, &Opening::default())
}

fn record(n: u8) -> SideRecord {
    SideRecord { kind: 9, bytes: vec![n].into() }
}

fn note(store: &LocalStore, n: u8, transaction: Option<Id>) -> Result<()> {
    store.journal().unflushed().add(vec![record(n)], &Session::from(transaction))
}

fn put(store: &LocalStore, step: u8, variable: &str, transaction: Option<Id>) -> Result<()> {
    let step = step.to_string();
    let options = ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() };
    store.archive(&[("run", "a"), ("variable", variable), ("step", &step)], Value::Bytes(b"x"), &options)
}

fn flush(system: &dyn Folder, store: &LocalStore, transaction: Option<Id>) -> Result<()> {
    store.flush(&Session::from(transaction))?;
    system.settle();
    Ok(())
}

fn decide(system: &dyn Folder, store: &LocalStore, id: Id, on: u32, off: u32) -> Result<()> {
    store.set_active_kinds(id, on, off, &Session::default())?;
    system.settle();
    Ok(())
}

/// Checks the side records of a kind that everyone sees, in the order of their place among all commits.
fn sees(store: &LocalStore, kind: u32, expected: &[u8]) -> Result<()> {
    let feed = store.journal().looks().feed()?;
    let decisions = feed.decisions();
    let mut found = Vec::new();
    for (writer, _) in feed.logs() {
        for commit in feed.commits(writer, 0)? {
            let commit = commit?;
            let order = match commit.transaction {
                None => Some((commit.stamp, writer)),
                Some(id) => decisions
                    .iter()
                    .find(|decision| decision.transaction == id)
                    .and_then(|decision| decision.visible(kind, writer, commit.sequence)),
            };
            found.extend(order.map(|order| (order, commit.stamp, commit.side[0].bytes[0])));
        }
    }
    found.sort_unstable();
    assert_eq!(found.into_iter().map(|(_, _, n)| n).collect::<Vec<u8>>(), expected, "kind {kind:#x}");
    Ok(())
}

/// Records of different kinds become visible one kind at a time, out of those prepared by then.
fn kinds_are_shown_one_by_one(system: &dyn Folder) -> Result<()> {
    let (a, b) = (open(system, 0)?, open(system, 1)?);
    let id = a.begin()?;
    let join = |n: u8| note(&b, n, Some(id)).and_then(|()| flush(system, &b, Some(id)));
    join(1)?;
    decide(system, &a, id, TAG, 0)?;
    for store in [&a, &b] {
        sees(store, TAG, &[1])?;
        sees(store, VARIABLE_ATTRIBUTE, &[])?;
    }
    join(2)?;
    sees(&a, TAG, &[1])?;
    a.decide(id, true, &Session::default())?;
    system.settle();
    for store in [&a, &b] {
        sees(store, TAG, &[1, 2])?;
        sees(store, VARIABLE_ATTRIBUTE, &[1, 2])?;
    }
    Ok(())
}

/// A kind that is switched off is hidden, and counts as new when it is switched on again; an older version shows the
/// state of its time, and an abort shows nothing.
fn kinds_are_switched_off_and_on_again(system: &dyn Folder) -> Result<()> {
    let (a, b) = (open(system, 0)?, open(system, 1)?);
    let id = a.begin()?;
    note(&a, 1, Some(id))?;
    flush(system, &a, Some(id))?;
    a.decide(id, true, &Session::default())?;
    system.settle();
    let committed = a.version()?;
    decide(system, &a, id, 0, FIELDS)?;
    for store in [&a, &b] {
        sees(store, TAG, &[1])?;
        sees(store, FIELDS, &[])?;
    }
    note(&b, 5, None)?;
    flush(system, &b, None)?;
    decide(system, &a, id, FIELDS, TAG)?;
    for store in [&a, &b] {
        sees(store, FIELDS, &[5, 1])?;
        sees(store, TAG, &[5])?;
    }
    let then = system.local(2, &Opening { at: Some(committed), ..Opening::default() })?;
    sees(&then, TAG, &[1])?;
    let id = a.begin()?;
    note(&b, 6, Some(id))?;
    flush(system, &b, Some(id))?;
    decide(system, &a, id, TAG, 0)?;
    sees(&b, TAG, &[5, 6])?;
    a.decide(id, false, &Session::default())?;
    system.settle();
    sees(&b, TAG, &[5])
}

/// A feed returns the side records of each log commit by commit, from an earlier position on, and skips commits
/// without any.
fn a_feed_gives_commits_in_their_order(system: &dyn Folder) -> Result<()> {
    let (a, b) = (open(system, 0)?, open(system, 1)?);
    let (of_a, of_b) = (a.journal(), b.journal());
    assert_eq!(
        (of_a.looks().feed()?.logs(), of_a.unflushed().records(&Session::default())),
        (vec![], vec![])
    );
    for n in 1..=6u8 {
        put(&a, n, "t", None)?;
        if n % 2 == 0 {
            of_a.unflushed().add(vec![record(n), record(n + 10)], &Session::default())?;
            assert_eq!(of_a.unflushed().records(&Session::default()), [record(n), record(n + 10)]);
        }
        flush(system, &a, None)?;
        assert_eq!(of_a.unflushed().records(&Session::default()), []);
    }
    let id = b.begin()?;
    of_b.unflushed().add(vec![record(7)], &Session::from(id))?;
    assert_eq!(
        (of_b.unflushed().records(&Session::default()), of_b.unflushed().records(&Session::from(id))),
        (vec![], vec![record(7)])
    );
    flush(system, &b, Some(id))?;
    let feed = of_a.looks().feed()?;
    let heads = feed.logs();
    let of = |length: u64| heads.iter().find(|(_, sequence)| *sequence == length).copied();
    let (Some((first, _)), Some((second, _))) = (of(6), of(1)) else {
        panic!("the logs are {heads:?}");
    };
    let sides = |writer: Id, after: u64| -> Result<Vec<(u64, Vec<u8>)>> {
        let numbers = |commit: Commit| (commit.sequence, commit.side.iter().map(|r| r.bytes[0]).collect());
        feed.commits(writer, after)?.map(|commit| Ok(numbers(commit?))).collect()
    };
    assert_eq!(sides(first, 0)?, [(2, vec![2, 12]), (4, vec![4, 14]), (6, vec![6, 16])]);
    assert_eq!(sides(first, 2)?, [(4, vec![4, 14]), (6, vec![6, 16])]);
    assert_eq!(sides(first, 3)?, [(4, vec![4, 14]), (6, vec![6, 16])]);
    assert_eq!((sides(first, 6)?, sides(Id::LEAST, 0)?), (vec![], vec![]));
    let commits: Vec<Commit> = feed.commits(second, 0)?.collect::<Result<_>>()?;
    assert_eq!((commits.len(), commits[0].transaction, commits[0].writer), (1, Some(id), second));
    // It shows one moment, as does the feed of an older version.
    of_a.unflushed().add(vec![record(99)], &Session::default())?;
    flush(system, &a, None)?;
    assert_eq!(sides(first, 4)?.len(), 1);
    let then = system.local(2, &Opening { at: Some(feed.version()), ..Opening::default() })?;
    let then = then.journal().looks().feed()?;
    assert_eq!((then.logs(), then.problems().len()), (heads.clone(), 0));
    assert_eq!(then.commits(first, 4)?.count(), 1);
    assert_eq!(of_a.looks().feed()?.commits(first, 4)?.count(), 2);
    Ok(())
}

/// A feed returns the entries of each log: fields with type and shape, pieces and removals.
fn a_feed_gives_entries(system: &dyn Folder) -> Result<()> {
    let a = open(system, 0)?;
    put(&a, 1, "bytes", None)?;
    flush(system, &a, None)?;
    let data = [0; 48];
    let value = Value::Array { data: &data, dtype: DType::parse("<f8")?, shape: &[2, 3] };
    let key = [("run", "a"), ("variable", "array"), ("step", "1")];
    a.archive(&key, value, &ArchiveOptions::default())?;
    flush(system, &a, None)?;
    a.remove(&Request::parse("run=a,variable=bytes")?, &RemoveOptions::default())?;
    flush(system, &a, None)?;
    let id = a.begin()?;
    put(&a, 2, "t", Some(id))?;
    flush(system, &a, Some(id))?;
    let feed = open(system, 1)?.journal().looks().feed()?;
    let (writer, _) = feed.logs()[0];
    let entries = |after: u64| -> Result<Vec<(String, u64, bool)>> {
        let of = |entry: EntryChange| {
            (entry.key.to_string(), entry.sequence, entry.effect == EntryEffect::Removal)
        };
        feed.entries(writer, after).map(|entry| Ok(of(entry?))).collect()
    };
    let all = [
        ("{run=a}{variable=array}{step=1}", 2, false),
        ("{run=a}{variable=bytes}{step=1}", 1, false),
        ("{run=a}{variable=bytes}{step=1}", 3, true),
        ("{run=a}{variable=t}{step=2}", 4, false),
    ];
    for after in 0..5 {
        let mut found = entries(after)?;
        found.sort();
        let expected: Vec<_> = all.iter().filter(|(_, n, _)| *n > after).collect();
        assert_eq!(found.len(), expected.len());
        for ((key, n, removal), found) in expected.into_iter().zip(&found) {
            assert_eq!((*key, *n, *removal), (&*found.0, found.1, found.2));
        }
    }
    let array = feed.entries(writer, 1).find_map(|e| e.ok().filter(|e| e.sequence == 2));
    let array = array.unwrap();
    assert_eq!(array.dtype.map(|dtype| dtype.to_string()).as_deref(), Some("<f8"));
    assert_eq!((array.shape.as_deref(), array.transaction), (Some(&[2, 3][..]), None));
    let prepared: Vec<EntryChange> = feed.entries_under(id, None).collect::<Result<_>>()?;
    assert_eq!((prepared.len(), prepared[0].transaction, prepared[0].sequence), (1, Some(id), 4));
    assert_eq!(feed.problems(), []);
    Ok(())
}

/// Records are flushed with fields or alone, and do not affect the fields; a handle that only reads cannot write any.
fn side_records_need_no_field(system: &dyn Folder) -> Result<()> {
    let store = open(system, 0)?;
    note(&store, 7, None)?;
    flush(system, &store, None)?;
    let reader = system.local(1, &Opening { access: Access::Read, ..Opening::default() })?;
    let count = || reader.list(&Request::new(), &ListOptions::default()).map(Iterator::count);
    assert_eq!(count()?, 0);
    put(&store, 1, "t", None)?;
    store
        .journal()
        .unflushed()
        .add(vec![SideRecord { kind: 8, bytes: vec![1; 1000].into() }], &Session::default())?;
    flush(system, &store, None)?;
    store
        .journal()
        .unflushed()
        .add(vec![SideRecord { kind: 9, bytes: Vec::new().into() }], &Session::default())?;
    flush(system, &store, None)?;
    assert_eq!(count()?, 1);
    assert!(reader.verify(&Request::new())?.ok());
    let refused = note(&reader, 1, None).unwrap_err();
    assert_eq!(refused.kind(), fieldstone_core::ErrorKind::Denied);
    Ok(())
}

macro_rules! systems {
    ($($system:ident: $fresh:expr;)+) => {$(
        mod $system {
            use super::*;

            #[test]
            fn kinds_one_by_one() {
                kinds_are_shown_one_by_one(&$fresh).unwrap();
            }

            #[test]
            fn kinds_off_and_on() {
                kinds_are_switched_off_and_on_again(&$fresh).unwrap();
            }

            #[test]
            fn commits_in_their_order() {
                a_feed_gives_commits_in_their_order(&$fresh).unwrap();
            }

            #[test]
            fn entries() {
                a_feed_gives_entries(&$fresh).unwrap();
            }

            #[test]
            fn no_field_needed() {
                side_records_need_no_field(&$fresh).unwrap();
            }
        }
    )+};
}

systems! {
    posix: Posix::fresh();
    memory: Memory::fresh();
    shared: Shared::new();
    weak: Shared::weak(10);
    very_weak: Shared::weak(50);
    without_links: Shared::without_links();
    wrong_clocks: Shared::wrong_clocks(0);
    weak_with_wrong_clocks: Shared::wrong_clocks(30);
}
