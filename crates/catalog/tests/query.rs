//! The executor against brute force: the same random catalogs, the same random queries, equal answers, on
//! tables in memory and on SQLite; `tests/postgres.rs` does the same on PostgreSQL.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::agree::{Tally, random_queries};
use common::empress;
use common::indexed::indexed;
use common::memory::Memory;
use common::rng::Rng;
use common::world;
use fieldstone_catalog::engine::Sqlite;
use fieldstone_format::Id;

/// Rows, and whether they stand on few series, of one random catalog.
fn size(seed: u64) -> (usize, bool) {
    match seed % 4 {
        0 => (400, true),
        1 => (60, false),
        _ => (200, false),
    }
}

/// The queries must find something, and few may be refused, or nothing was compared.
fn told_something(tallies: &[Tally]) {
    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let (queries, some, refused) = (sum(|t| t.queries), sum(|t| t.some), sum(|t| t.refused));
    assert!(
        some * 3 > queries && refused * 8 < queries,
        "{queries} queries, {some} found, {refused} refused"
    );
}

#[test]
fn random_queries_agree_with_brute_force() {
    let tallies = (0..60).map(|seed| {
        let mut rng = Rng(seed);
        let (rows, dense) = size(seed);
        let mut world = world::random(&mut rng, rows, dense);
        world.seal();
        random_queries(&mut rng, &world, &mut Memory::new(&world), 50)
    });
    told_something(&tallies.collect::<Vec<_>>());
}

#[test]
fn random_queries_agree_on_sqlite() {
    let tallies = (1_000..1_030).map(|seed| {
        let mut rng = Rng(seed);
        let (rows, dense) = size(seed);
        let mut world = world::random(&mut rng, rows, dense);
        let mut index = indexed(Box::new(Sqlite::memory().unwrap()), Id([1; 16]), &mut world);
        random_queries(&mut rng, &world, &mut index, 40)
    });
    told_something(&tallies.collect::<Vec<_>>());
}

#[test]
fn the_82_queries_of_empress_are_terms_of_one_model() {
    let mut world = empress::world();
    world.seal();
    empress::check(&world, &mut Memory::new(&world));
}

#[test]
fn the_82_queries_of_empress_on_sqlite() {
    let mut world = empress::world();
    let mut index = indexed(Box::new(Sqlite::memory().unwrap()), Id([2; 16]), &mut world);
    empress::check(&world, &mut index);
}
