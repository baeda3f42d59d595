//! Runs the same queries on tables and by brute force, and compares every part of the answers.

use fieldstone_catalog::engine::{Flow, Tables};
use fieldstone_catalog::query::{self, Aggregate, By, HitTable, Query, TableBuilder};
use fieldstone_core::ErrorKind;
use fieldstone_testkit::Random;

use super::brute;
use super::random;
use super::world::{Attr, World};

/// The totals of many queries.
#[derive(Debug, Default)]
pub struct Tally {
    pub queries: u64,
    pub refused: u64,
    pub some: u64,
    pub hits: u64,
    pub visited: u64,
}

/// Runs `queries` random queries on tables over `world`.
pub fn random_queries(rng: &mut Random, world: &World, tables: &mut dyn Tables, queries: u64) -> Tally {
    let mut tally = Tally::default();
    for _ in 0..queries {
        let asked = random::query(rng, world);
        tally.queries += 1;
        match query::collect(tables, &asked) {
            Ok(found) => {
                tally.hits += found.value.len() as u64;
                tally.some += u64::from(!found.value.is_empty());
                tally.visited += found.visited;
                same(world, tables, &asked, &found);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{asked:?}: {error}");
                let text = error.to_string();
                assert!(text.contains("dimension") || text.contains("coordinates"), "{text}");
                assert!(names_a_dimension(&asked), "{asked:?}: {text}");
                tally.refused += 1;
            }
        }
    }
    tally
}

/// Runs `queries` random queries with related attributes; returns the number of rows.
pub fn random_pairs(rng: &mut Random, world: &World, tables: &mut dyn Tables, queries: u64) -> usize {
    let mut rows = 0;
    for _ in 0..queries {
        let (asked, related) = random::query_of_pairs(rng, world);
        let found = match query::collect_pairs(tables, &asked) {
            Ok(found) => found,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Invalid, "{asked:?}: {error}");
                assert!(names_a_dimension(&asked), "{asked:?}: {error}");
                continue;
            }
        };
        let expected = brute::pairs(world, &asked, &related);
        rows += expected.len();
        assert_eq!(found.related.len(), related.len());
        for (at, table) in [&found.hits].into_iter().chain(&found.related).enumerate() {
            let column: Vec<&Attr> = expected.iter().map(|row| row[at]).collect();
            rows_are(world, table, &column, &asked);
        }
    }
    rows
}

fn names_a_dimension(asked: &Query) -> bool {
    let text = format!("{asked:?}");
    text.contains("Name(\"") || text.contains("Physical")
}

/// Compares every form of the answer.
pub fn same(world: &World, tables: &mut dyn Tables, asked: &Query, found: &HitTable) {
    let expected = brute::find(world, asked);
    rows_are(world, found, &expected, asked);

    // One at a time, and as many as the receiver wants.
    let mut some = TableBuilder::default();
    let wanted = expected.len() / 2;
    let stats = query::run(tables, asked, &mut |hit| {
        if wanted > 0 {
            some.push(hit);
        }
        Ok(if some.len() >= wanted { Flow::Stop } else { Flow::More })
    });
    let stats = stats.unwrap();
    if wanted > 0 {
        rows_are(world, &some.finish(stats.visited), &expected[..wanted], asked);
    }

    let (count, _) = query::count(tables, asked).unwrap();
    assert_eq!(count, expected.len() as u64, "count of {asked:?}");

    for by in [&[By::Run, By::Step][..], &[By::Tag], &[By::Variable, By::Tag], &[]] {
        let (ours, theirs) =
            (query::aggregate(tables, asked, by).unwrap(), brute::aggregate(world, &expected, by));
        assert_eq!(ours.len(), theirs.len(), "{by:?} of {asked:?}");
        for (ours, theirs) in ours.iter().zip(&theirs) {
            aggregates_are(ours, theirs, asked);
        }
    }

    let listed = Query { order: Vec::new(), limit: None, ..asked.clone() };
    let hits = if asked.limit.is_some() { brute::find(world, &listed) } else { expected };
    let run = |run: &fieldstone_format::catalog::RunName| format!("{}/{}", run.project, run.name);
    let runs: Vec<_> = query::runs(tables, &listed).unwrap().iter().map(|row| run(&row.decl.run)).collect();
    assert_eq!(runs, brute::runs(world, &listed), "runs of {asked:?}");
    let steps: Vec<_> =
        query::steps(tables, &listed).unwrap().iter().map(|row| (run(&row.run), row.step)).collect();
    assert_eq!(steps, brute::steps(world, &hits, &listed), "steps of {asked:?}");
    let variables: Vec<_> = query::variables(tables, &listed)
        .unwrap()
        .iter()
        .map(|row| (run(&row.run), row.decl.variable.clone()))
        .collect();
    assert_eq!(variables, brute::variables(world, &hits, &listed), "variables of {asked:?}");
    let tags: Vec<_> = query::tags(tables, &listed)
        .unwrap()
        .iter()
        .map(|row| (row.decl.name.clone(), row.version))
        .collect();
    assert_eq!(tags, brute::tags(world, &hits, &listed), "tags of {asked:?}");
    assert_eq!(query::boxes(tables, &listed).unwrap(), brute::boxes(world, &hits), "boxes of {asked:?}");
}

fn rows_are(world: &World, found: &HitTable, expected: &[&Attr], asked: &Query) {
    let ids: Vec<_> = expected.iter().map(|attr| attr.id).collect();
    assert_eq!(found.id, ids, "{asked:#?}");
    let word = |column: &query::Coded, row: usize| {
        let code = column.codes[row];
        (code != u32::MAX).then(|| column.words[code as usize].to_string())
    };
    for (row, attr) in expected.iter().enumerate() {
        let run = &world.runs[attr.run].run;
        assert_eq!(word(&found.project, row).unwrap(), run.project);
        assert_eq!(word(&found.run, row).unwrap(), run.name);
        assert_eq!(found.step[row], attr.step);
        let time = attr.step.and_then(|step| world.time(attr.run, step));
        assert_eq!(found.time[row], time);
        let variable = attr.variable.as_ref();
        assert_eq!(word(&found.variable, row), variable.map(|v| v.name.clone()));
        assert_eq!(found.variable_version[row], variable.map_or(0, |v| v.version));
        let tag = &world.tags[attr.tag];
        assert_eq!(word(&found.tag, row).unwrap(), tag.name);
        assert_eq!(found.tag_version[row], tag.version);
        assert_eq!(word(&found.unit, row).unwrap(), tag.unit);
        assert_eq!(format!("{:?}", found.value[row]), format!("{:?}", attr.value)); // NaN and -0.0 too
        let (from, to) = (found.offsets[row] as usize, found.offsets[row + 1] as usize);
        let region = (found.start[from..to].to_vec(), found.count[from..to].to_vec());
        assert_eq!(region, attr.region.clone().unwrap_or_default());
        let cells = found.cells_of(row).map(|(dim, cells)| (*dim, cells.to_vec()));
        assert_eq!(cells, attr.cells);
        let keywords = found.keywords_of(row).map(|all| all.to_vec()).unwrap_or_default();
        let keywords: Vec<(&str, &str)> = keywords.iter().map(|(k, v)| (&**k, &**v)).collect();
        let expected: Vec<(&str, &str)> = attr.keywords.iter().map(|(k, v)| (*k, v.as_str())).collect();
        assert_eq!(keywords, expected);
    }
}

/// Equal except for rounding, which depends on the largest number in the sum.
fn close(a: Option<f64>, b: Option<f64>, scale: f64) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-12 * scale,
        (a, b) => a.is_none() && b.is_none(),
    }
}

fn aggregates_are(ours: &Aggregate, theirs: &Aggregate, asked: &Query) {
    let key = |a: &Aggregate| {
        (a.run.clone(), a.step, a.variable.clone(), a.tag.clone(), a.count, a.time.map(f64::to_bits))
    };
    assert_eq!(key(ours), key(theirs), "{asked:?}");
    assert!(ours.min == theirs.min && ours.max == theirs.max, "{ours:?} {theirs:?}");
    let infinite = theirs.mean.is_some_and(|mean| !mean.is_finite());
    let scale = theirs.min.unwrap_or(0.0).abs().max(theirs.max.unwrap_or(0.0).abs());
    assert!(infinite || close(ours.mean, theirs.mean, scale), "{ours:?} {theirs:?} {asked:?}");
}
