//! Two users create one dataset at once: one of them owns it, and the other learns of it, also where files show late (J-22).

use crate::common::*;
use crate::takeovers::close;
use fieldstone_core::env::sim::SimWorld;
use fieldstone_core::{Code, ErrorKind, Result};
use fieldstone_journal::Session;
use fieldstone_testkit::require::full;

const KEYS: [&str; 2] = ["run=a,variable=t", "run=a,variable=u"];

/// A shared store in which both users' hosts have seen what there is; files show up to `late` seconds late from then on.
fn store(seed: u64, late: u64) -> SimWorld {
    let world = shared_folder_of(seed);
    let alice = open(&world, "alice");
    flush_one(&alice, "run=first,variable=t", b"the store is there");
    close(&alice);
    world.advance(60 * SECOND);
    if late > 0 {
        world.weak(late * SECOND);
    }
    world
}

fn flush(store: &Store) -> Result<()> {
    store.flush(&Session::default())
}

/// Whether a flush says that another user owns the dataset, or that nobody knows yet; else it is acknowledged.
fn is_refused(outcome: &Result<()>) -> bool {
    match outcome {
        Ok(()) => false,
        Err(e) => {
            let is_known = e.code() == Code::DatasetOwned || e.kind() == ErrorKind::Unavailable;
            assert!(is_known, "{e}");
            true
        }
    }
}

#[test]
fn a_dataset_that_two_users_create_at_once_has_one_owner() {
    let seeds = if full() { 2000 } else { 150 };
    let (mut waited, mut both) = (0, 0);
    for seed in 0..seeds {
        let late = [0, 5, 30, 110][(seed % 4) as usize];
        let world = store(seed, late);
        world.set_links(seed % 3 > 0);
        let mut random = Random::new(seed);
        let stores = ["alice", "bob"].map(|user| open(&world, user));
        for (store, key) in stores.iter().zip(KEYS) {
            put(store, key, key.as_bytes()).unwrap();
        }
        let first = random.below(2) as usize;
        let mut outcomes = [Ok(()), Ok(())];
        for user in [first, 1 - first] {
            outcomes[user] = flush(&stores[user]);
            world.advance(random.below(3 * SECOND));
        }
        let refused = outcomes.each_ref().map(is_refused);
        assert_eq!(refused.iter().filter(|refused| **refused).count(), 1, "seed {seed}: {outcomes:?}");
        // The one who was refused hears why, at the latest when everything shows.
        let loser = usize::from(refused[1]);
        waited += u64::from(outcomes[loser].as_ref().is_err_and(|e| e.kind() == ErrorKind::Unavailable));
        world.advance(120 * SECOND);
        let again = put(&stores[loser], KEYS[loser], b"again").and_then(|()| flush(&stores[loser]));
        assert_eq!(again.unwrap_err().code(), Code::DatasetOwned, "seed {seed}");
        world.advance(120 * SECOND);
        for host in ["alice", "bob", "carol"] {
            let reader = open(&world, host);
            let listed = listed(&reader);
            both += 1;
            assert_eq!(listed.len(), 2, "seed {seed}: {listed:?}");
            assert_eq!(get(&reader, KEYS[1 - loser]).unwrap(), KEYS[1 - loser].as_bytes(), "seed {seed}");
            error(get(&reader, KEYS[loser]), ErrorKind::NotFound);
        }
    }
    assert!(both > 0 && waited > 0, "{waited} flushes met a claim that did not show");
}

#[test]
fn processes_of_one_user_share_a_dataset_that_they_create_at_once() {
    for seed in 0..if full() { 500 } else { 60 } {
        let world = store(seed, [5, 30][(seed % 2) as usize]);
        world.set_uid("alice2", ALICE);
        let stores = ["alice", "alice2"].map(|host| open(&world, host));
        for (store, key) in stores.iter().zip(KEYS) {
            put(store, key, key.as_bytes()).unwrap();
        }
        for store in &stores {
            // The writer keeps its fields.
            while let Err(e) = flush(store) {
                assert_eq!(e.kind(), ErrorKind::Unavailable, "seed {seed}: {e}");
                world.advance(10 * SECOND);
            }
        }
        world.advance(120 * SECOND);
        let reader = open(&world, "bob");
        for key in KEYS {
            assert_eq!(get(&reader, key).unwrap(), key.as_bytes(), "seed {seed}");
        }
    }
}
