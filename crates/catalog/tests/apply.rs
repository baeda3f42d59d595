//! Applying commits: whatever the order, the same tables; and those of a model that knows no tables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "common/history.rs"]
mod history;

use fieldstone_catalog::engine::Sqlite;

/// Random histories; the seed of one that fails is in its message.
#[test]
fn any_order_gives_what_the_model_says() {
    for seed in 0..400 {
        history::check(seed, &mut || Box::new(Sqlite::memory().unwrap()));
    }
}
