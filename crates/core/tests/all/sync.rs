//! Threads that take turns in the order of a seed: the same seed gives the same run; all orders occur; the error
//! names a thread that stands still.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use fieldstone_core::sync::schedule::{Run, run};
use fieldstone_core::sync::{Condvar, Mutex, RwLock, mpsc, thread};

/// Two threads that add to a number in two steps each.
fn added(seed: u64) -> Run<u32> {
    run(seed, || {
        let number = Mutex::new(0);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    let read = *number.lock();
                    *number.lock() = read + 1;
                });
            }
        });
        number.into_inner()
    })
}

#[test]
fn a_seed_is_a_run_and_seeds_meet_all_orders() {
    let mut found = BTreeSet::new();
    for seed in 0..100 {
        let (one, other) = (added(seed), added(seed));
        assert_eq!((one.outcome.clone(), one.digest), (other.outcome, other.digest));
        found.insert(one.outcome.unwrap());
    }
    assert_eq!(found, BTreeSet::from([1, 2]), "both threads may read before either writes");
}

#[test]
fn threads_that_all_wait_end_the_run() {
    let met = (0..100).filter(|&seed| {
        let run = run(seed, || {
            let (a, b) = (Mutex::new(0), Mutex::new(0));
            thread::scope(|scope| {
                scope.spawn(|| *a.lock() + *b.lock());
                scope.spawn(|| *b.lock() + *a.lock());
            });
        });
        run.outcome == Err("all threads wait".to_owned())
    });
    assert!((5..95).contains(&met.count()));
}

#[test]
fn a_panic_of_one_thread_ends_the_run_and_is_told() {
    let run = run(1, || {
        let lock = Mutex::new(0);
        thread::scope(|scope| {
            let other = scope.spawn(|| {
                let _held = lock.lock();
                panic!("on purpose");
            });
            let outcome = other.join().map_err(|panic| *panic.downcast_ref::<&str>().unwrap());
            assert_eq!(outcome, Err::<(), _>("on purpose"));
            drop(lock.lock());
            panic!("for all to see");
        })
    });
    assert_eq!(run.outcome, Err::<(), _>("for all to see".to_owned()));
}

/// Waiting threads are woken, a timed wait ends when no other thread can run, and a channel has space for one value.
#[test]
fn condition_variables_channels_and_other_threads() {
    for seed in 0..50 {
        let run = run(seed, || {
            let shared = Arc::new((Mutex::new(0), Condvar::new(), RwLock::new(0)));
            let (sender, receiver) = mpsc::sync_channel(1);
            let other = shared.clone();
            let counting = thread::Builder::new().name("count".into()).spawn(move || {
                let (number, changed, copy) = &*other;
                for n in 1..=3 {
                    *copy.write() = n;
                    *number.lock() = n;
                    changed.notify_all();
                    sender.send(n).unwrap();
                }
            });
            let (number, changed, copy) = &*shared;
            let mut reached = number.lock();
            while *reached < 1 {
                reached = changed.wait(reached);
            }
            drop(reached);
            let received: Vec<u32> = receiver.into_iter().collect();
            let counting = counting.unwrap();
            counting.join().unwrap();
            let (late, outcome) =
                changed.wait_timeout_while(number.lock(), Duration::from_secs(1000), |n| *n < 4);
            (received, outcome.timed_out(), *late, *copy.read())
        });
        assert_eq!(run.outcome, Ok((vec![1, 2, 3], true, 3, 3)), "seed {seed}");
    }
}

/// Outside a run they are std's.
#[test]
fn outside_of_a_run_nothing_is_drawn() {
    let (number, changed) = (Mutex::new(0), Condvar::new());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let mut reached = number.lock();
            while *reached < 1 {
                reached = changed.wait(reached);
            }
            *reached
        });
        *number.lock() = 1;
        changed.notify_one();
        assert_eq!(waiting.join().unwrap(), 1);
    });
    let (guard, outcome) = changed.wait_timeout_while(number.lock(), Duration::from_millis(1), |n| *n < 2);
    assert!(outcome.timed_out() && *guard == 1 && number.try_lock().is_none());
}
