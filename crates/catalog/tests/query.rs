//! The executor against brute force: the same random catalogs, the same random queries, equal answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::agree::random_queries;
use common::empress;
use common::memory::Memory;
use common::rng::Rng;
use common::world;

#[test]
fn random_queries_agree_with_brute_force() {
    let (mut queries, mut some, mut refused) = (0, 0, 0);
    for seed in 0..60 {
        let mut rng = Rng(seed);
        let (rows, dense) = match seed % 4 {
            0 => (400, true),
            1 => (60, false),
            _ => (200, false),
        };
        let mut world = world::random(&mut rng, rows, dense);
        world.seal();
        let mut tables = Memory::new(&world);
        let tally = random_queries(&mut rng, &world, &mut tables, 60);
        (queries, some, refused) = (queries + tally.queries, some + tally.some, refused + tally.refused);
    }
    // The queries must find something, and few may be refused, or nothing was compared.
    assert!(
        some * 3 > queries && refused * 8 < queries,
        "{queries} queries, {some} found, {refused} refused"
    );
}

#[test]
fn the_82_queries_of_empress_are_terms_of_one_model() {
    let mut world = empress::world();
    world.seal();
    empress::check(&world, &mut Memory::new(&world));
}
