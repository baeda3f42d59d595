//! Applying commits gives the same tables in any order, and the tables of a model that works without tables.

use crate::common::history;
use fieldstone_catalog::engine::Sqlite;
use fieldstone_testkit::require::full;

/// Random histories; the message of a failure contains the seed.
#[test]
fn any_order_gives_what_the_model_says() {
    for seed in 0..if full() { 400 } else { 100 } {
        history::check(seed, 1, &mut || Box::new(Sqlite::memory().unwrap()));
    }
}

/// The same with logs of two users, and runs for which the store names owners sooner or later.
#[test]
fn any_order_gives_what_the_model_says_of_several_users() {
    for seed in 0..if full() { 600 } else { 100 } {
        history::check(seed, 2, &mut || Box::new(Sqlite::memory().unwrap()));
    }
}
