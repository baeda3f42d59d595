//! Applying commits: whatever the order, the same tables; and those of a model that knows no tables.

use crate::common::history;
use fieldstone_catalog::engine::Sqlite;
use fieldstone_testkit::require::full;

/// Random histories; the seed of one that fails is in its message.
#[test]
fn any_order_gives_what_the_model_says() {
    for seed in 0..if full() { 400 } else { 100 } {
        history::check(seed, 1, &mut || Box::new(Sqlite::memory().unwrap()));
    }
}

/// The same with logs of two users, and runs that the store names owners of sooner or later.
#[test]
fn any_order_gives_what_the_model_says_of_several_users() {
    for seed in 0..if full() { 600 } else { 100 } {
        history::check(seed, 2, &mut || Box::new(Sqlite::memory().unwrap()));
    }
}
