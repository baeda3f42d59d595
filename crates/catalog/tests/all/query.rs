//! The executor against brute force: the same random catalogs, the same random queries, equal answers, on
//! tables in memory and on SQLite; `tests/postgres.rs` does the same on PostgreSQL.
use crate::common::agree::{Tally, random_pairs, random_queries};
use crate::common::indexed::indexed;
use crate::common::memory::Memory;
use crate::common::world;
use crate::common::{brute, empress};
use fieldstone_catalog::engine::Sqlite;
use fieldstone_catalog::query::{self, Dim, Expr, NameTest, Query, Range, Relation, Term};
use fieldstone_core::ErrorKind;
use fieldstone_core::value::{Test, Value};
use fieldstone_format::Id;
use fieldstone_format::catalog::Coordinate;
use fieldstone_testkit::require::full;
use fieldstone_testkit::seeded;

/// The number of rows of one random catalog, and whether they are on few series.
fn size(seed: u64) -> (usize, bool) {
    match seed % 4 {
        0 => (400, true),
        1 => (60, false),
        _ => (200, false),
    }
}

/// The queries must find something, and few may be refused; otherwise nothing was compared.
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
    let tallies = (0..if full() { 60 } else { 20 }).map(|seed| {
        let mut rng = seeded(seed);
        let (rows, dense) = size(seed);
        let mut world = world::random(&mut rng, rows, dense);
        world.seal();
        random_queries(&mut rng, &world, &mut Memory::new(&world), 50)
    });
    told_something(&tallies.collect::<Vec<_>>());
}

#[test]
fn random_queries_agree_on_sqlite() {
    let tallies = (1_000..if full() { 1_030 } else { 1_012 }).map(|seed| {
        let mut rng = seeded(seed);
        let (rows, dense) = size(seed);
        let mut world = world::random(&mut rng, rows, dense);
        let mut index = indexed(Box::new(Sqlite::memory().unwrap()), Id([1; 16]), &mut world);
        random_queries(&mut rng, &world, &mut index, 40)
    });
    told_something(&tallies.collect::<Vec<_>>());
}

#[test]
fn hits_stand_beside_what_is_related_to_them() {
    let mut rows = 0;
    for seed in 2_000..2_024 {
        let mut rng = seeded(seed);
        let mut world = world::random(&mut rng, 80, seed % 2 == 0);
        world.seal();
        rows += random_pairs(&mut rng, &world, &mut Memory::new(&world), 20);
        let mut index = indexed(Box::new(Sqlite::memory().unwrap()), Id([1; 16]), &mut world);
        rows += random_pairs(&mut rng, &world, &mut index, 20);
    }
    assert!(rows > 10_000, "{rows} rows: too little was compared");
}

#[test]
fn what_asks_for_nothing_beside_its_hits_has_no_pairs() {
    let mut world = empress::world();
    world.seal();
    for text in
        ["tag=maximum", "tag=maximum and without overlapping (tag=vortex)", "tag=maximum or with same run ()"]
    {
        let query = query::text::parse(text).unwrap();
        let error = query::collect_pairs(&mut Memory::new(&world), &query).unwrap_err();
        assert!(error.to_string().contains("no term for related attributes"), "{text}: {error}");
    }
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

fn term(term: Term) -> Query {
    Query { expr: Expr::All(vec![Expr::Term(term)]), ..Query::all() }
}

fn along(dim: &str, range: Range) -> Query {
    term(Term::Region(vec![(Dim::Name(dim.into()), range)], Relation::Overlaps))
}

#[test]
fn a_dimension_that_no_variable_has_is_refused_and_names_those_there_are() {
    let mut world = empress::world();
    world.seal();
    let mut tables = Memory::new(&world);
    for asked in [
        along("height", Range::Index(Some(0), Some(5))),
        term(Term::Extent(Dim::Name("height".into()), Test::Exists)),
    ] {
        let error = query::collect(&mut tables, &asked).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("'height'"), "{error}");
        assert!(error.hint().unwrap().contains("'x', 'y', 'z'"), "{error:?}");
        for refused in [
            query::count(&mut tables, &asked).map(|_| ()),
            query::runs(&mut tables, &asked).map(|_| ()),
            query::boxes(&mut tables, &asked).map(|_| ()),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
        }
    }
    let error = query::collect(&mut tables, &along("z", Range::Physical(0.0, 1.0))).unwrap_err();
    assert!(error.to_string().contains("coordinates along 'z'"), "{error}");

    // Names that do not exist are not an error; a query with them needs no variable.
    for absent in [Term::Run(NameTest::Is("no".into())), Term::Variable(NameTest::Glob("no*".into()))] {
        let both = vec![Expr::Term(absent), along("height", Range::Index(None, Some(9))).expr];
        let found = query::collect(&mut tables, &Query { expr: Expr::All(both), ..Query::all() });
        assert!(found.unwrap().value.is_empty());
    }
    assert!(
        query::collect(&mut tables, &term(Term::Tag(NameTest::Is("no".into())))).unwrap().value.is_empty()
    );
}

#[test]
fn an_expression_that_is_too_large_is_refused_by_every_call() {
    let run = || Expr::Term(Term::Run(NameTest::Is("a".into())));
    let deep = (0..1_000_000).fold(run(), |inner, n| match n % 2 {
        0 => Expr::Not(Box::new(inner)),
        _ => Expr::All(vec![run(), inner]),
    });
    let wide = Expr::Term(Term::Step(vec![(0, 0); 1_000_001]));
    for expr in [deep, wide] {
        let query = Query { expr, ..Query::all() };
        let mut world = empress::world();
        world.seal();
        let mut memory = Memory::new(&world);
        let outcomes = [
            query::collect(&mut memory, &query).map(drop),
            query::count(&mut memory, &query).map(drop),
            query::aggregate(&mut memory, &query, &[]).map(drop),
            query::explain(&mut memory, &query).map(drop),
            query::runs(&mut memory, &query).map(drop),
            query::steps(&mut memory, &query).map(drop),
            query::variables(&mut memory, &query).map(drop),
            query::tags(&mut memory, &query).map(drop),
            query::boxes(&mut memory, &query).map(drop),
        ];
        for outcome in outcomes {
            let error = outcome.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
            assert!(error.hint().unwrap().contains("ask for less"), "{error:?}");
        }
    }
}

#[test]
fn coordinates_on_another_grid_are_refused_by_its_name() {
    let mut world = empress::world();
    for variable in &mut world.variables {
        variable.decl.coords = vec![(0, Coordinate::Other("tripolar".into()))];
    }
    world.seal();
    let mut tables = Memory::new(&world);
    let error = query::collect(&mut tables, &along("z", Range::Physical(0.0, 1.0))).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("'tripolar'"), "{error}");
    assert!(query::collect(&mut tables, &along("z", Range::Index(Some(0), Some(9)))).is_ok());
}

/// A descending latitude and an ascending one: a range includes both ends, and 0.1 + 0.2 keeps its exact
/// value.
#[test]
fn coordinates_become_elements_at_both_ends() {
    let mut world = empress::world();
    let rising: Vec<f64> = (0..40).map(|i| f64::from(i) * 0.1).collect();
    for variable in &mut world.variables {
        variable.decl.coords = vec![
            (0, Coordinate::Uniform { first: 90.0, spacing: -4.5 }),
            (1, Coordinate::Rectilinear(rising.clone())),
        ];
    }
    world.seal();
    let mut tables = Memory::new(&world);
    let ids = |tables: &mut Memory, asked: &Query| query::collect(tables, asked).unwrap().id;
    for (dim, low, high, from, to) in [
        ("z", 81.0, 90.0, 0, 3),
        ("z", 85.6, 200.0, 0, 1),
        ("y", 0.1 * 3.0, 0.5, 3, 6),
        ("y", 0.3, 0.3, 0, 0), // the element is at 0.30000000000000004, not at 0.3
    ] {
        let expected = ids(&mut tables, &along(dim, Range::Index(Some(from), Some(to))));
        assert_eq!(ids(&mut tables, &along(dim, Range::Physical(low, high))), expected, "{dim} {low} {high}");
        assert_eq!(expected.is_empty(), from == to);
    }
}

#[test]
fn few_hits_are_read_fast_and_counts_of_whole_series_read_nothing() {
    let mut world = empress::world();
    let mut index = indexed(Box::new(Sqlite::memory().unwrap()), Id([4; 16]), &mut world);
    let all = world.attrs.len() as u64;
    let first = query::collect(&mut index, &Query { limit: Some(3), ..Query::all() }).unwrap();
    assert!(first.value.len() == 3 && first.visited * 4 < all, "{} of {all} rows", first.visited);
    let (count, stats) = query::count(&mut index, &term(Term::Tag(NameTest::Is("maximum".into())))).unwrap();
    let expected = world.attrs.iter().filter(|attr| attr.tag < 2).count() as u64;
    assert_eq!((count, stats.visited), (expected, 0));
    let (count, stats) = query::count(&mut index, &term(Term::Step(vec![(1, 1)]))).unwrap();
    let expected = world.attrs.iter().filter(|attr| attr.step == Some(1)).count() as u64;
    assert_eq!((count, stats.visited), (expected, 0));
    let steps = query::steps(&mut index, &term(Term::Tag(NameTest::Is("count".into())))).unwrap();
    assert_eq!(steps.len(), 3 + 5 + 5 + 5);
}

#[test]
fn a_plan_says_what_is_read() {
    let mut world = empress::world();
    let mut index = indexed(Box::new(Sqlite::memory().unwrap()), Id([5; 16]), &mut world);
    let mut asked = term(Term::Tag(NameTest::Is("maximum".into())));
    let expected = brute::find(&world, &asked).len();
    let text = query::explain(&mut index, &asked).unwrap();
    assert!(text.contains("tag 'maximum'") && text.contains(&format!("{expected} hits; read")), "{text}");
    let above = Expr::Term(Term::Value(Test::Above(Value::Float(99.0))));
    asked.expr = Expr::All(vec![asked.expr, above]);
    assert!(query::explain(&mut index, &asked).unwrap().contains("by value"));
}
