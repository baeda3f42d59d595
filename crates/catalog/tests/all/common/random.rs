//! Random queries over a [`world`](super::world): most find something.

use fieldstone_catalog::query::{
    Dim, Expr, Key, NameTest, Pick, Query, Range, Relation, Scope, Term, Where, WriterPart,
};
use fieldstone_core::value::{Test, Value};
use fieldstone_journal::Session;
use fieldstone_testkit::Random;

use super::meshes::{COORDINATE, RING};
use super::world::{DIMS, KINDS, RUNS, VARIABLES, WORDS, World, value};

fn name(rng: &mut Random, names: &[&str], globs: &[&str]) -> NameTest {
    match rng.within(0, 10) {
        0..=4 => NameTest::Is(rng.pick(names).to_string()),
        5..=7 => NameTest::Glob(rng.pick(globs).to_string()),
        8 => NameTest::Is("absent".into()),
        _ => NameTest::Any((0..rng.within(0, 3)).map(|_| name(rng, names, globs)).collect()),
    }
}

fn number(rng: &mut Random) -> Value {
    let n = rng.within(-4, 12);
    match rng.within(0, 8) {
        0 => Value::Float(n as f64 + 0.5),
        1 => Value::UInt(n.unsigned_abs()),
        2 => rng.pick(&[Value::Float(f64::NAN), Value::Float(f64::INFINITY), Value::Int(i64::MAX)]).clone(),
        3 => Value::Float(n as f64),
        _ => Value::Int(n),
    }
}

/// A test that some values of some type pass.
pub fn test(rng: &mut Random, depth: u32) -> Test {
    let kind = rng.pick(&KINDS).2;
    let own = value(rng, kind);
    match rng.within(0, if depth > 0 { 16 } else { 13 }) {
        0 => Test::Exists,
        1 => Test::Above(number(rng)),
        2 => Test::AtLeast(number(rng)),
        3 => Test::Below(number(rng)),
        4 => Test::AtMost(number(rng)),
        5 => Test::Between(number(rng), number(rng)),
        6 => Test::Equal(own),
        7 => Test::IsIn((0..rng.within(0, 5)).map(|_| value(rng, kind)).collect()),
        8 => Test::Contains(number(rng)),
        9 => Test::Contains(Value::Text(rng.pick(&["tur", "o", "", "Ω"]).to_string())),
        10 => Test::Glob(rng.pick(&["tur*", "*m*", "calm", "turb?lent", "[tc]*", "Ω*"]).to_string()),
        11 => Test::AtLeast(own),
        12 => Test::Between(Value::Text("b".into()), Value::Text(rng.pick(&WORDS).to_string())),
        13 => Test::All((0..rng.within(0, 3)).map(|_| test(rng, depth - 1)).collect()),
        14 => Test::Any((0..rng.within(0, 3)).map(|_| test(rng, depth - 1)).collect()),
        _ => Test::Not(Box::new(test(rng, depth - 1))),
    }
}

fn range(rng: &mut Random) -> Range {
    if rng.percent(25) {
        let low = rng.within(-12, 20) as f64;
        return Range::Physical(low, low + rng.within(-1, 15) as f64 / 2.0);
    }
    let from = rng.within(-2, 30);
    let to = from + rng.within(0, 15);
    Range::Index(rng.percent(80).then_some(from), rng.percent(80).then_some(to))
}

fn dimension(rng: &mut Random) -> Dim {
    if rng.percent(40) {
        Dim::Name(rng.pick(&DIMS).to_string())
    } else {
        Dim::Index(rng.within(0, 4) as usize)
    }
}

fn region(rng: &mut Random) -> Term {
    let mut dims: Vec<(Dim, Range)> = (0..rng.within(0, 4)).map(|_| (dimension(rng), range(rng))).collect();
    if rng.percent(25) {
        dims.truncate(2);
        let low = rng.within(0, 12) as f64 / 2.0;
        let along = Range::Physical(low, low + rng.within(-1, 6) as f64 / 2.0);
        dims.push((Dim::Name(rng.pick(&[COORDINATE, RING]).to_string()), along));
    }
    let relation = *rng.pick(&[Relation::Overlaps, Relation::Overlaps, Relation::Within, Relation::Contains]);
    Term::Region(dims, relation)
}

fn level(rng: &mut Random) -> Term {
    let mut range = || {
        let from = rng.within(-1, 3);
        (from, from.max(0) + rng.within(0, 2))
    };
    let second = range();
    Term::Level(if second.0 > 0 { vec![range(), second] } else { vec![second] })
}

fn term(rng: &mut Random) -> Term {
    let tags: Vec<&str> = KINDS.iter().map(|kind| kind.0).collect();
    match rng.within(0, 30) {
        0 => Term::Run(name(rng, &RUNS, &["astro*", "*-?", "[oc]*", "x[*]y"])),
        1 => Term::Project(name(rng, &["", "ocean", "astro"], &["*o*", "?*"])),
        2 => Term::Job(name(rng, &["job-1", "job-2"], &["job*", "*3"])),
        3 => Term::Param(rng.pick(&["nx", "solver", "absent"]).to_string(), test(rng, 1)),
        25 => Term::Attr(rng.pick(&["units", "cells", "absent"]).to_string(), test(rng, 1)),
        4 => Term::Created(Test::AtLeast(Value::DateTime(1_000 * rng.within(1, 5)))),
        5 | 6 => Term::Step(
            (0..rng.within(0, 3))
                .map(|_| {
                    let from = rng.within(-7, 30);
                    (from, from + rng.within(-1, 14))
                })
                .collect(),
        ),
        7 => Term::Time(test(rng, 1)),
        8 | 9 => Term::Variable(name(rng, &VARIABLES, &["temp*", "velocity_?", "*e*", "T"])),
        10 => Term::VariableVersion((0..rng.within(0, 3)).collect()),
        11..=14 => Term::Tag(name(rng, &tags, &["m*", "*m", "?????", "[nl]*"])),
        15 => Term::TagVersion((0..rng.within(0, 3)).collect()),
        16 => Term::Unit(name(rng, &["K", "m/s", ""], &["*"])),
        17 | 18 => Term::Value(test(rng, 2)),
        19 => Term::Scope(*rng.pick(&[Scope::Run, Scope::Step, Scope::Variable])),
        20 | 21 => region(rng),
        22 => Term::Extent(dimension(rng), test(rng, 1)),
        23 | 24 => {
            let name = rng.pick(&["number", "level", "absent"]).to_string();
            let test = match rng.within(0, 4) {
                0 => Test::Equal(Value::Int(rng.within(0, 4))),
                1 => Test::Equal(Value::Text(rng.pick(&["500", "sfc", "0001", "1"]).to_string())),
                2 => Test::Exists,
                _ => test(rng, 1),
            };
            Term::Keyword(name, test)
        }
        28 => level(rng),
        26 => Term::User(name(rng, &["0", "ann"], &["*", "a*"])),
        27 => Term::Writer(*rng.pick(&[WriterPart::Name, WriterPart::Rank, WriterPart::Job]), test(rng, 1)),
        _ => Term::Volume(test(rng, 1)),
    }
}

fn expr(rng: &mut Random, depth: u32) -> Expr {
    if depth == 0 {
        return Expr::Term(term(rng));
    }
    match rng.within(0, 12) {
        0..=4 => Expr::All((0..rng.within(0, 4)).map(|_| expr(rng, depth - 1)).collect()),
        5..=7 => Expr::Any((0..rng.within(0, 4)).map(|_| expr(rng, depth - 1)).collect()),
        8 => Expr::Not(Box::new(expr(rng, depth - 1))),
        9 if depth < 3 => {
            let places = [Where::SameRun, Where::SameStep, Where::SameVariable, Where::Overlapping];
            Expr::Related(*rng.pick(&places), Box::new(expr(rng, depth - 1)))
        }
        _ => Expr::Term(term(rng)),
    }
}

/// A frequent query of users: a tag, and one or two further terms.
fn usual(rng: &mut Random, world: &World) -> Expr {
    let tag = rng.pick(&world.tags).name.clone();
    let mut all = vec![Expr::Term(Term::Tag(NameTest::Is(tag)))];
    if rng.percent(60) {
        all.push(Expr::Term(region(rng)));
    }
    if rng.percent(50) {
        all.push(Expr::Term(Term::Value(test(rng, 1))));
    }
    if rng.percent(40) {
        all.push(Expr::Term(Term::Variable(name(rng, &VARIABLES[..2], &["temp*"]))));
    }
    if rng.percent(15) {
        let on_level = Expr::Term(level(rng));
        all.push(if rng.percent(25) { Expr::Not(Box::new(on_level)) } else { on_level });
        all.push(Expr::Term(Term::Variable(name(
            rng,
            &["T", "pressure", "level_0/T"],
            &["p*", "level*", "?"],
        ))));
    }
    if rng.percent(30) {
        all.push(Expr::Term(term(rng)));
    }
    Expr::All(all)
}

/// A random query with up to two terms of related attributes, and those.
pub fn query_of_pairs(rng: &mut Random, world: &World) -> (Query, Vec<(Where, Expr)>) {
    let places = [Where::SameRun, Where::SameStep, Where::SameVariable, Where::Overlapping];
    let related: Vec<_> = (0..rng.within(1, 3))
        .map(|at| {
            let expr = if rng.percent(60) { usual(rng, world) } else { expr(rng, 1) };
            // Everything of a run twice would be millions of rows.
            (*rng.pick(&places[at as usize..]), expr)
        })
        .collect();
    let mut all = vec![usual(rng, world)];
    all.extend(related.iter().map(|(place, inner)| Expr::Related(*place, Box::new(inner.clone()))));
    if rng.percent(30) {
        all.push(Expr::Not(Box::new(Expr::Related(*rng.pick(&places), Box::new(expr(rng, 1))))));
    }
    let query = query(rng, world);
    (Query { expr: Expr::All(all), ..query }, related)
}

/// A random query.
pub fn query(rng: &mut Random, world: &World) -> Query {
    let depth = rng.within(0, 4) as u32;
    let expr = if rng.percent(40) { usual(rng, world) } else { expr(rng, depth) };
    let keys =
        [Key::Run, Key::Created, Key::Step, Key::Time, Key::Variable, Key::Tag, Key::Value, Key::Volume];
    let mut order = Vec::new();
    if rng.percent(30) {
        order = (0..rng.within(1, 3)).map(|_| (rng.pick(&keys).clone(), rng.percent(50))).collect();
    }
    Query {
        expr,
        session: Session::default(),
        pick: rng.percent(15).then(|| *rng.pick(&[Pick::First, Pick::Last])),
        order,
        limit: rng.percent(20).then(|| rng.within(0, 30) as u64),
    }
}
