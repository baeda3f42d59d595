//! Ended transactions: one takeover seals them, a later one forgets them, and no answer changes.

use crate::common::*;
use crate::takeovers::{act, close, compact, first_difference, look_all, open_at};
use fieldstone_core::ErrorKind;
use fieldstone_core::env::sim::{OpKind, SimWorld};
use fieldstone_core::request::Request;
use fieldstone_format::Id;
use fieldstone_format::log::kinds;
use fieldstone_format::takeover::TakeoverTable;
use fieldstone_journal::Session;
use fieldstone_store::api::*;
use fieldstone_store::conformance::Opening;

const DAY: u64 = 25 * 3_600 * SECOND;

/// Transactions that are known, and how many of some are sealed.
fn known(world: &SimWorld, of: &[Id]) -> (usize, usize) {
    let store = open(world, "b");
    let snapshot = store.journal().looks().snapshot().unwrap();
    let user = snapshot.taken.takeovers().all()[0].user;
    let sealed = |id: &&Id| snapshot.taken.sealed(**id, user).unwrap().is_some_and(|number| number > 0);
    (store.transactions().unwrap().len(), of.iter().filter(sealed).count())
}

/// Rows of transactions in all takeovers, and the reads of a handle that looks at them first.
fn cost(world: &SimWorld) -> (u64, u64) {
    let reads = || world.counters().count(OpKind::Read);
    let before = reads();
    let snapshot = open(world, "b").journal().looks().snapshot().unwrap();
    let takeovers = snapshot.taken.takeovers().all();
    let rows = takeovers.iter().map(|takeover| takeover.rows(TakeoverTable::Transactions)).sum();
    (rows, reads() - before)
}

/// A log closes, so that there is something to take over, and takeovers are made.
fn compact_again(world: &SimWorld, n: u64) {
    let store = open(world, "a");
    flush_one(&store, "run=a,variable=other,step=1", format!("{n}").as_bytes());
    close(&store);
    compact(&open(world, "a"));
}

/// Takes over until this number of transactions is known, of which this number is sealed.
fn compact_until(world: &SimWorld, of: &[Id], wanted: (usize, usize)) {
    let found = (1..6).any(|n| {
        compact_again(world, n);
        known(world, of) == wanted
    });
    assert!(found, "{:?} are never {wanted:?}", known(world, of));
}

/// A day passes, the ended transactions are sealed, and forgotten.
fn forget(world: &SimWorld) {
    world.advance(DAY);
    // They announce a floor, have it and seal, and forget; large ones follow a round later.
    (1..=5).for_each(|n| compact_again(world, n));
}

/// Everything that a store answers but which transactions there were.
fn look(world: &SimWorld, open_transactions: &[Id], versions: &[String]) -> String {
    let all = look_all(world, open_transactions, versions);
    let fields = all.lines().filter(|line| !line.starts_with("[TransactionState") && *line != "[]");
    fields.collect::<Vec<_>>().join("\n")
}

/// The same at older versions alone.
fn look_back(world: &SimWorld, versions: &[String]) -> String {
    let at = |version: &String| crate::takeovers::look(&open_at(world, version), None);
    let all: String = versions.iter().map(at).collect();
    let fields = all.lines().filter(|line| !line.starts_with("[TransactionState") && *line != "[]");
    fields.collect::<Vec<_>>().join("\n")
}

fn put_and_flush(store: &Store, key: &str, value: &[u8], transaction: Id) {
    put_in(store, key, value, transaction).unwrap();
    store.flush(&Session::from(transaction)).unwrap();
}

fn decide(store: &Store, transaction: Id, commit: bool) -> fieldstone_core::Result<()> {
    store.decide(transaction, commit, &Session::default())
}

/// A committed and an aborted transaction, with versions before and after the commit; a field that was flushed between the
/// two parts of the committed one.
fn ended(world: &SimWorld) -> (Id, Id, Vec<String>) {
    let (a, other) = (open(world, "a"), open(world, "b"));
    let (committed, aborted) = (a.begin().unwrap(), a.begin().unwrap());
    put_and_flush(&a, "run=a,variable=t,step=1", b"committed", committed);
    put_and_flush(&a, "run=a,variable=t,step=1", b"aborted", aborted);
    put_and_flush(&a, "run=a,variable=gone,step=9", b"aborted", aborted);
    flush_one(&other, "run=a,variable=t,step=1", b"between");
    flush_one(&other, "run=a,variable=t,step=2", b"plain");
    let mut versions = vec![other.version().unwrap()];
    decide(&a, committed, true).unwrap();
    versions.push(other.version().unwrap());
    decide(&a, aborted, false).unwrap();
    close(&a);
    close(&other);
    (committed, aborted, versions)
}

#[test]
fn r17_ended_transactions_are_sealed_and_then_forgotten() {
    let world = SimWorld::new(1);
    let (committed, aborted, mut versions) = ended(&world);
    compact(&open(&world, "a"));
    let both = [committed, aborted];
    assert_eq!(known(&world, &both), (2, 0), "a day has not passed");
    world.advance(DAY);
    let store = open(&world, "a");
    let waiting = store.begin().unwrap();
    put_and_flush(&store, "run=a,variable=waiting,step=1", b"waiting", waiting);
    compact_until(&world, &both, (3, 2));
    versions.push(open(&world, "b").version().unwrap());
    let before = look_back(&world, &versions);
    assert_eq!(get(&open(&world, "b"), "run=a,variable=t,step=1").unwrap(), b"committed");
    let reader = open(&world, "b");
    let pinned = open_at(&world, &versions[0]);
    close(&store);
    compact_until(&world, &both, (1, 0));
    let after = look_back(&world, &versions);
    assert!(before == after, "{}", first_difference(&before, &after));
    for (store, value) in [(&reader, &b"committed"[..]), (&pinned, b"between")] {
        assert_eq!(get(store, "run=a,variable=t,step=1").unwrap(), value);
        assert_eq!(
            store.list(&Request::parse("variable=gone").unwrap(), &ListOptions::default()).unwrap().count(),
            0
        );
    }
    // The one that waits is decided, however late.
    decide(&open(&world, "b"), waiting, true).unwrap();
    assert_eq!(get(&reader, "run=a,variable=waiting,step=1").unwrap(), b"waiting");
}

#[test]
fn r17_nobody_decides_on_what_is_sealed_or_forgotten() {
    let world = SimWorld::new(1);
    let (committed, aborted, _) = ended(&world);
    world.advance(DAY);
    let attempts = |world: &SimWorld, sealed: bool| {
        let store = open(world, "b");
        let kinds = |on, off| store.set_active_kinds(committed, on, off, &Session::default());
        error(kinds(0, kinds::FIELDS), ErrorKind::Conflict);
        error(decide(&store, committed, false), ErrorKind::Conflict);
        error(decide(&store, aborted, true), ErrorKind::Conflict);
        for transaction in [committed, aborted] {
            put_in(&store, "run=a,variable=late,step=1", b"late", transaction).unwrap();
            error(store.flush(&Session::from(transaction)), ErrorKind::Conflict);
            store.discard(&Session::from(transaction)).unwrap();
        }
        // The same decision changes nothing, while it is known.
        assert_eq!(decide(&store, committed, true).is_ok(), sealed);
        assert_eq!(get(&store, "run=a,variable=t,step=1").unwrap(), b"committed");
    };
    compact_until(&world, &[committed, aborted], (2, 2));
    attempts(&world, true);
    compact_until(&world, &[committed, aborted], (0, 0));
    attempts(&world, false);
    compact_again(&world, 3);
    assert_eq!(known(&world, &[committed, aborted]), (0, 0));
    attempts(&world, false);
}

#[test]
fn r17_only_a_takeover_a_grace_later_forgets() {
    let world = SimWorld::new(1);
    let (committed, aborted, _) = ended(&world);
    world.advance(DAY);
    let both = [committed, aborted];
    let graceful = |n: u64| {
        let store = open(&world, "a");
        flush_one(&store, "run=a,variable=other,step=1", format!("{n}").as_bytes());
        close(&store);
        let options =
            fieldstone_journal::compact::CompactOptions { grace: 3_600 * SECOND, ..Default::default() };
        let maker = open(&world, "a");
        maker.journal().maintenance().compact(&options, &Session::default(), &mut |_| Ok(())).unwrap();
    };
    // One announces the floor, and one of a grace later has it and seals.
    graceful(1);
    graceful(2);
    assert_eq!(known(&world, &both), (2, 0));
    for _ in 0..3 {
        world.advance(3_700 * SECOND);
        graceful(3);
    }
    let sealed = known(&world, &both);
    assert!(sealed == (2, 2) || sealed == (0, 0), "{sealed:?}");
    graceful(4);
    assert_eq!(known(&world, &both), sealed);
    world.advance(3_700 * SECOND);
    graceful(5);
    assert_eq!(known(&world, &both), (0, 0));
}

/// A decision that stops at its n-th call while others seal the transaction, or forget it, too; whether it came to that call.
fn decides_slowly(n: u64, forgets: bool) -> bool {
    let world = SimWorld::new(n);
    let (committed, _, _) = ended(&world);
    compact(&open(&world, "a"));
    world.advance(DAY);
    let env = world.process("b");
    let decider = open_in(&env, &Opening::default()).unwrap();
    flush_one(&decider, "run=a,variable=own,step=1", b"own");
    let stop = world.stop_nth(&env, n);
    let thread = std::thread::spawn({
        let (decider, stop) = (decider.clone(), stop.clone());
        move || {
            let outcome = decider.set_active_kinds(committed, 0, kinds::FIELDS, &Session::default());
            stop.end();
            outcome
        }
    });
    let stopped = stop.wait();
    if stopped {
        // A decision that is durable already keeps it from being sealed.
        for round in 0..6 {
            let (left, sealed) = known(&world, &[committed]);
            if left == 0 || sealed == 1 && !forgets {
                break;
            }
            compact_again(&world, round);
        }
    }
    stop.resume();
    let outcome = thread.join().unwrap();
    let _ = decider.journal().close(&Session::default());
    let shown = || get(&open(&world, "b"), "run=a,variable=t,step=1").unwrap();
    // A decision that is acknowledged counts for ever.
    for round in 0..4 {
        if outcome.is_ok() {
            assert_eq!(shown(), b"between", "{n}, {forgets}, {round}");
        }
        compact_again(&world, 10 + round);
    }
    if let Err(failure) = &outcome {
        assert_eq!(failure.kind(), ErrorKind::Conflict, "{n}: {failure}");
    }
    stopped
}

#[test]
fn r17_who_decides_looks_again() {
    for forgets in [false, true] {
        let stops = (1..).take_while(|n| decides_slowly(*n, forgets)).count();
        assert!(stops > 6, "{stops}");
    }
}

#[test]
fn r16_a_late_flush_below_the_floor_is_conflict() {
    let world = SimWorld::new(1);
    let late = open(&world, "b");
    late.create().unwrap();
    flush_one(&open(&world, "a"), "run=a,variable=t,step=1", b"one");
    let unlisted = late.begin().unwrap();
    let listed = open(&world, "b");
    let held = listed.begin().unwrap();
    for n in 0..8 {
        flush_one(&listed, "run=a,variable=t,step=2", b"a commit that lists it");
        world.advance(if n < 3 { DAY / 3 } else { 0 });
        compact_again(&world, n);
    }
    let reader = open(&world, "a");
    let floor = |id: Id| {
        let snapshot = reader.journal().looks().snapshot().unwrap();
        snapshot.taken.is_forgotten(id, snapshot.taken.takeovers().all()[0].user)
    };
    // The floor stays below what a living log lists; the other one began before that.
    assert!(!floor(held));
    assert_eq!(floor(unlisted), unlisted < held);
    put_and_flush(&listed, "run=a,variable=held,step=1", b"held", held);
    decide(&listed, held, true).unwrap();
    assert_eq!(get(&reader, "run=a,variable=held,step=1").unwrap(), b"held");
    close(&listed);
    forget(&world);
    put_in(&late, "run=a,variable=late,step=1", b"late", unlisted).unwrap();
    error(late.flush(&Session::from(unlisted)), ErrorKind::Conflict);
    assert!(get(&reader, "run=a,variable=late,step=1").is_err());
    error(decide(&late, unlisted, true), ErrorKind::Conflict);
    late.discard(&Session::from(unlisted)).unwrap();
    late.abandon(unlisted, &Session::default()).unwrap();
    assert!(reader.transactions().unwrap().iter().all(|state| state.id != unlisted));
}

/// A flush into an unlisted transaction that stops while the floor passes.
fn flushes_slowly(n: u64) -> bool {
    let world = SimWorld::new(n);
    let env = world.process("b");
    let late = open_in(&env, &Opening::default()).unwrap();
    late.create().unwrap();
    let unlisted = late.begin().unwrap();
    let stop = world.stop_nth(&env, n);
    let thread = std::thread::spawn({
        let (late, stop) = (late.clone(), stop.clone());
        move || {
            put_in(&late, "run=a,variable=late,step=1", b"late", unlisted).unwrap();
            let outcome = late.flush(&Session::from(unlisted));
            stop.end();
            outcome
        }
    });
    let stopped = stop.wait();
    if stopped {
        compact_again(&world, 0);
        forget(&world);
    }
    stop.resume();
    let outcome = thread.join().unwrap();
    let reader = open(&world, "a");
    let decided = decide(&open(&world, "a"), unlisted, true);
    if outcome.is_ok() {
        decided.unwrap();
        assert_eq!(get(&reader, "run=a,variable=late,step=1").unwrap(), b"late", "{n}");
    } else if decided.is_err() {
        assert!(get(&reader, "run=a,variable=late,step=1").is_err(), "{n}");
        let _ = late.journal().close(&Session::default());
        forget(&world);
        assert!(get(&reader, "run=a,variable=late,step=1").is_err(), "{n}");
    }
    stopped
}

#[test]
fn r16_a_flush_that_sleeps_below_the_floor_shows_nothing() {
    let stops = (1..).take_while(|n| flushes_slowly(*n)).count();
    assert!(stops > 6, "{stops}");
}

#[test]
fn r17_no_answer_changes_when_transactions_are_forgotten() {
    let count = if std::env::var_os("FIELDSTONE_CRASH").is_some() { 400 } else { 12 };
    let mut forgotten = 0;
    for seed in fieldstone_testkit::random::seeds(count) {
        let mut random = seeded(seed);
        let world = SimWorld::new(seed);
        world.set_tracing(false);
        let (mut open_transactions, mut versions) = (Vec::new(), Vec::new());
        let mut stores: Vec<Store> = ["a", "b", "a"].map(|host| open(&world, host)).to_vec();
        stores[0].create().unwrap();
        for n in 0..60 {
            let i = random.below(3) as usize;
            act(&mut random, &stores[i], &mut open_transactions, n);
            if random.below(4) == 0 {
                close(&stores[i]);
                stores[i] = open(&world, ["a", "b"][i % 2]);
            }
            if random.below(8) == 0 && versions.len() < 4 {
                versions.push(stores[i].version().unwrap());
            }
            if random.below(12) == 0 {
                // Handles that are silent for a day begin another log.
                stores.iter().for_each(close);
                world.advance(DAY);
                stores = ["a", "b", "a"].map(|host| open(&world, host)).to_vec();
                flush_one(&stores[0], "run=r0,variable=z,step=0", b"a day later");
                close(&stores[0]);
                stores[0] = open(&world, "a");
                compact(&open(&world, "a"));
                let known = stores[0].transactions().unwrap();
                open_transactions.retain(|id| known.iter().any(|state| state.id == *id));
            }
            if random.below(6) == 0 {
                let before = look(&world, &open_transactions, &versions);
                let known = stores[0].transactions().unwrap().len();
                let report = compact(&open(&world, "a"));
                let after = look(&world, &open_transactions, &versions);
                forgotten += known - stores[0].transactions().unwrap().len();
                assert!(
                    before == after,
                    "seed {seed}, step {n}: {report:?}\n{}",
                    first_difference(&before, &after)
                );
            }
        }
    }
    assert!(forgotten > 5, "{forgotten}");
}

/// Reading takeovers that changed does not cost more with the number of transactions that ended.
#[test]
fn r16_ended_transactions_cost_nothing() {
    let world = SimWorld::new(1);
    world.set_tracing(false);
    let store = open(&world, "a");
    for n in 0..5_000 {
        let id = store.begin().unwrap();
        put_and_flush(&store, &format!("run=a,variable=t,step={}", n % 7), b"value", id);
        decide(&store, id, n % 5 > 0).unwrap();
    }
    close(&store);
    compact(&open(&world, "a"));
    let (rows, reads) = cost(&world);
    assert_eq!(rows, 5_000);
    let version = open(&world, "b").version().unwrap();
    forget(&world);
    let (rows, after) = cost(&world);
    assert!(rows == 0 && after < 40 && after < reads / 2, "{rows} rows: {after} reads instead of {reads}");
    let reader = open(&world, "b");
    assert!(reader.verify(&Request::new()).unwrap().damaged.is_empty());
    assert_eq!(get(&reader, "run=a,variable=t,step=3").unwrap(), b"value");
    assert_eq!(get(&open_at(&world, &version), "run=a,variable=t,step=3").unwrap(), b"value");
}
