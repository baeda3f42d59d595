//! The queries of the EMPRESS paper on its volume: equal to plain loops, with few rows read according to
//! counters. `FIELDSTONE_PAPER=4000` uses the paper's largest number of chunks, and prints times.
use crate::common::paper;
use fieldstone_catalog::engine::Sqlite;
use fieldstone_catalog::query;
use fieldstone_format::Id;

/// Nanoseconds of processor time of this thread.
fn cpu() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

#[test]
fn queries_of_the_paper_read_few_rows_beyond_their_hits() {
    let large = std::env::var("FIELDSTONE_PAPER").is_ok_and(|chunks| chunks == "4000");
    let paper = paper::generate(if large { [10, 20, 20] } else { [10, 10, 10] });
    let begun = cpu();
    let mut index = paper.index(Box::new(Sqlite::memory().unwrap()), Id([3; 16]));
    println!("{} attributes applied in {} ms", paper.rows.len(), (cpu() - begun) / 1_000_000);
    for (name, asked, hit) in paper.queries() {
        let expected = paper.rows.iter().filter(|row| hit(row)).count() as u64;
        let mut table = query::TableBuilder::default();
        let stats = query::run(&mut index, &asked, &mut |hit| {
            table.push(hit);
            Ok(fieldstone_catalog::engine::Flow::More)
        });
        let stats = stats.unwrap();
        assert_eq!(table.len() as u64, expected, "{name}");
        if large {
            let begun = cpu();
            (0..20).for_each(|_| drop(query::collect(&mut index, &asked).unwrap()));
            println!("{name}: {expected} hits, {stats:?}, {} µs", (cpu() - begun) / 20_000);
            println!("{}", query::explain(&mut index, &asked).unwrap());
        }
        assert!(stats.visited <= 4 * expected + 200, "{name}: {expected} hits, {stats:?}");
    }
    let (asked, expected) = paper.hot_runs();
    let runs: Vec<String> =
        query::runs(&mut index, &asked).unwrap().into_iter().map(|row| row.decl.run.name).collect();
    assert_eq!(runs, expected);
    assert!(!expected.is_empty());
}
