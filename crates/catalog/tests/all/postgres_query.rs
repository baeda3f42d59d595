//! The query model on PostgreSQL: the same random queries and the 82 of EMPRESS as on SQLite.

use crate::common::agree::random_queries;
use crate::common::empress;
use crate::common::indexed::indexed;
use crate::common::paper;
use crate::common::world;
use fieldstone_catalog::engine::{Database, Postgres};
use fieldstone_catalog::query;
use fieldstone_format::Id;
use fieldstone_testkit::postgres::shared;
use fieldstone_testkit::require::full;
use fieldstone_testkit::seeded;

#[test]
fn random_queries_agree_on_postgresql() {
    let Some(server) = shared() else { return };
    let (mut queries, mut some) = (0, 0);
    for seed in 2_000..if full() { 2_012 } else { 2_004u64 } {
        let mut rng = seeded(seed);
        let (rows, dense) = [(400, true), (200, false)][seed as usize % 2];
        let mut world = world::random(&mut rng, rows, dense);
        let store = Id([seed as u8; 16]);
        let db = Postgres::open(&server.url(), store).unwrap();
        let mut index = indexed(Box::new(db), store, &mut world);
        let tally = random_queries(&mut rng, &world, &mut index, 40);
        (queries, some) = (queries + tally.queries, some + tally.some);
    }
    // The queries must find something, otherwise nothing was compared.
    assert!(some * 3 > queries, "{queries} queries, {some} found");
}

#[test]
fn the_82_queries_of_empress_on_postgresql() {
    let Some(server) = shared() else { return };
    let mut world = empress::world();
    let store = Id([251; 16]);
    let db = Postgres::open(&server.url(), store).unwrap();
    let mut index = indexed(Box::new(db), store, &mut world);
    empress::check(&world, &mut index);
}

#[test]
fn queries_of_the_paper_on_postgresql() {
    let Some(server) = shared() else { return };
    let paper = paper::generate([10, 10, 10]);
    let store = Id([250; 16]);
    let db = Postgres::open(&server.url(), store).unwrap();
    let mut index = paper.index(Box::new(db), store);
    for (name, asked, hit) in paper.queries() {
        let expected = paper.rows.iter().filter(|row| hit(row)).count() as u64;
        let found = query::collect(&mut index, &asked).unwrap();
        assert_eq!(found.value.len() as u64, expected, "{name}");
        assert!(found.visited <= 4 * expected + 200, "{name}: {expected} hits, {} read", found.visited);
    }
}

#[test]
fn plans_of_all_probes_go_by_an_index() {
    let Some(server) = shared() else { return };
    let mut world = empress::world();
    let store = Id([252; 16]);
    indexed(Box::new(Postgres::open(&server.url(), store).unwrap()), store, &mut world);
    for plan in Postgres::open(&server.url(), store).unwrap().explain_scans().unwrap() {
        assert!(plan.contains("Index Scan") && !plan.contains("Seq Scan"), "{plan}");
    }
    let mut db = Postgres::open(&server.url(), store).unwrap();
    let sql = "SELECT step, n FROM series WHERE run = $1 AND tag = $2 AND step BETWEEN $3 AND $4";
    let plan = db.explain(sql).unwrap();
    assert!(plan.contains("Index") && !plan.contains("Seq Scan"), "{plan}");
}
