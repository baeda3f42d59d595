//! Terms about users and writers against plain loops, on attributes of several logs.
use std::collections::BTreeSet;
use std::sync::Arc;

use fieldstone_catalog::engine::{Index, Sqlite, Wait, Writer};
use fieldstone_catalog::query::{self, Expr, NameTest, Query, Term, Where, WriterPart};
use fieldstone_core::value::{Glob, Test, Value, ValueType};
use fieldstone_format::Id;
use fieldstone_format::catalog::{AttributeBatch, Column, Record, RunName, TagDecl, Values, VariableName};
use fieldstone_journal::feed::Commit;
use fieldstone_testkit::{Random, seeded};

const RUNS: [&str; 2] = ["storm", "calm"];
const TAGS: [&str; 3] = ["max", "min", "note"];
const VARIABLES: [&str; 2] = ["t", "p"];
const LOGS: i64 = 9;

/// An attribute, with its writer.
#[derive(Debug, Clone)]
struct Row {
    log: usize,
    run: &'static str,
    tag: &'static str,
    step: i64,
    variable: &'static str,
    value: i64,
}

/// Logs of two users on two hosts; the sixth has a damaged header, the last belongs to no job.
fn writer(log: usize) -> (u32, Option<Writer>) {
    let user = if log % 4 == 3 { 7 } else { 8 };
    let job = if log < 4 { "1177" } else { "1178.a" };
    let of_job = Writer {
        host: if log.is_multiple_of(2) { "node1" } else { "node2" }.into(),
        process: 100 + log as u32 / 2,
        rank: Some(log as u32 % 3),
        job: job.into(),
        attempt: (1 + log / 3).to_string(),
    };
    let alone = Writer { rank: None, job: String::new(), attempt: String::new(), ..of_job.clone() };
    (user, (log != 5).then_some(if log == 8 { alone } else { of_job }))
}

fn user_name(user: u32) -> String {
    if user == 7 { "ann".into() } else { "bob".into() }
}

fn record(rows: &[&Row]) -> Record {
    let first = rows[0];
    Record::Attributes(AttributeBatch {
        keywords: Vec::new(),
        run: RunName { project: String::new(), name: first.run.into() },
        tag: TagDecl { name: first.tag.into(), version: 0, kind: ValueType::Int, unit: String::new() },
        rows: rows.len(),
        step: Some(Column::Each(rows.iter().map(|row| row.step).collect())),
        variables: vec![VariableName { name: first.variable.into(), version: 0 }],
        variable: Column::One(0),
        boxes: None,
        values: Values::Int(rows.iter().map(|row| row.value).collect()),
        one_value: false,
        continues: false,
        singles: false,
    })
}

/// Rows at different places, so that none replaces another, in logs that take turns.
fn world(random: &mut Random) -> (Index, Vec<Row>) {
    let mut index = Index::open(Box::new(Sqlite::memory().unwrap()), Id([1; 16])).unwrap();
    index.set_writers(Some(Arc::new(|id: Id| writer(usize::from(id.0[0]) - 1).1)));
    index.set_user_names(Arc::new(user_name));
    let (mut all, mut sequences) = (Vec::new(), [0u64; LOGS as usize]);
    for step in 0..60 {
        let log = random.within(0, LOGS) as usize;
        let mut side = Vec::new();
        for (run, tag, variable) in (0..random.within(1, 4))
            .map(|_| (*random.pick(&RUNS), *random.pick(&TAGS), *random.pick(&VARIABLES)))
            .collect::<BTreeSet<_>>()
        {
            let row = |at| Row { log, run, tag, step: 10 * step + at, variable, value: step + at };
            let rows: Vec<Row> = (0..random.within(1, 4)).map(row).collect();
            side.push(record(&rows.iter().collect::<Vec<_>>()).encode());
            all.extend(rows);
        }
        let id = Id([log as u8 + 1; 16]);
        sequences[log] += 1;
        let (sequence, stamp, owner) = (sequences[log], step as u64 + 1, writer(log).0);
        assert!(index.begin_apply(Wait::Yes).unwrap());
        let commit =
            Commit { writer: id, owner, sequence, stamp, time: 0, transaction: None, order: None, side };
        index.apply_commit(&commit).unwrap();
        index.set_watermark(id, sequence).unwrap();
        index.end_apply().unwrap();
    }
    index.begin_read().unwrap();
    (index, all)
}

fn term(random: &mut Random) -> Term {
    let name = |random: &mut Random, names: &[&str]| match random.within(0, 3) {
        0 => NameTest::Glob("*n*".into()),
        1 => NameTest::Any(names.iter().map(|name| NameTest::Is(name.to_string())).collect()),
        _ => NameTest::Is(random.pick(names).to_string()),
    };
    let number = |random: &mut Random| match random.within(0, 3) {
        0 => Test::Exists,
        1 => Test::Below(Value::Int(random.within(0, 3))),
        _ => Test::Equal(Value::Int(random.within(0, 3))),
    };
    match random.within(0, 10) {
        0 => Term::Run(name(random, &RUNS)),
        1 => Term::Tag(name(random, &TAGS)),
        2 => Term::Value(Test::AtLeast(Value::Int(random.within(0, 60)))),
        3 => Term::User(name(random, &["ann", "bob", "nobody"])),
        4 => Term::User(name(random, &["7", "8"])),
        5 => Term::Writer(WriterPart::Rank, number(random)),
        6 => Term::Writer(WriterPart::Attempt, number(random)),
        7 => Term::Writer(
            WriterPart::Job,
            random.pick(&[Test::Equal(Value::Int(1177)), Test::Typed("1178*".into()), Test::Exists]).clone(),
        ),
        8 => Term::Writer(WriterPart::Process, Test::AtLeast(Value::Int(random.within(100, 106)))),
        _ => Term::Writer(
            WriterPart::Name,
            random
                .pick(&[
                    Test::Glob("node1:*".into()),
                    Test::Equal(Value::Text("node2:101".into())),
                    Test::Equal(Value::Text(Id([6; 16]).to_string())),
                ])
                .clone(),
        ),
    }
}

fn expr(random: &mut Random, depth: u32) -> Expr {
    let several = |random: &mut Random| (0..random.within(1, 4)).map(|_| expr(random, depth - 1)).collect();
    match random.within(0, if depth == 0 { 1 } else { 6 }) {
        0 => Expr::Term(term(random)),
        1 | 2 => Expr::All(several(random)),
        3 => Expr::Any(several(random)),
        4 => Expr::Not(Box::new(expr(random, depth - 1))),
        _ => Expr::Related(Where::SameStep, Box::new(Expr::Term(term(random)))),
    }
}

fn named(test: &NameTest, name: &str) -> bool {
    match test {
        NameTest::Is(is) => is == name,
        NameTest::Glob(glob) | NameTest::Typed(glob) => Glob::new(glob).matches(name),
        NameTest::Any(tests) => tests.iter().any(|test| named(test, name)),
    }
}

/// Whether a text passes, as it is or as the number that it represents.
fn says(text: &str, test: &Test) -> bool {
    let number = text.parse().ok().map(Value::Int);
    !text.is_empty()
        && (test.matches(&Value::Text(text.into())) || number.is_some_and(|number| test.matches(&number)))
}

fn holds(expr: &Expr, row: &Row, at: usize, all: &[Row]) -> bool {
    let (user, writer) = writer(row.log);
    match expr {
        Expr::All(list) => list.iter().all(|one| holds(one, row, at, all)),
        Expr::Any(list) => list.iter().any(|one| holds(one, row, at, all)),
        Expr::Not(inner) => !holds(inner, row, at, all),
        Expr::Related(_, inner) => all.iter().enumerate().any(|(other, mate)| {
            other != at && mate.run == row.run && mate.step == row.step && holds(inner, mate, other, all)
        }),
        Expr::Term(Term::Run(test)) => named(test, row.run),
        Expr::Term(Term::Tag(test)) => named(test, row.tag),
        Expr::Term(Term::Value(test)) => test.matches(&Value::Int(row.value)),
        Expr::Term(Term::User(test)) => named(test, &user_name(user)) || named(test, &user.to_string()),
        Expr::Term(Term::Writer(WriterPart::Name, test)) => {
            writer.is_some_and(|writer| says(&writer.to_string(), test))
                || says(&Id([row.log as u8 + 1; 16]).to_string(), test)
        }
        Expr::Term(Term::Writer(part, test)) => writer.is_some_and(|writer| match part {
            WriterPart::Rank => writer.rank.is_some_and(|rank| test.matches(&Value::Int(rank.into()))),
            WriterPart::Process => test.matches(&Value::Int(writer.process.into())),
            WriterPart::Job => says(&writer.job, test),
            WriterPart::Attempt => says(&writer.attempt, test),
            WriterPart::Host | WriterPart::Name => panic!("not asked"),
        }),
        Expr::Term(other) => panic!("{other:?} is not asked"),
    }
}

#[test]
fn random_queries_of_users_and_writers_agree_with_brute_force() {
    let mut random = seeded(49);
    let (mut index, all) = world(&mut random);
    let mut found = 0;
    for _ in 0..600 {
        let query = Query { expr: expr(&mut random, 2), ..Query::all() };
        let hit = |(at, row): &(usize, &Row)| holds(&query.expr, row, *at, &all);
        let wanted: Vec<&Row> = all.iter().enumerate().filter(hit).map(|(_, row)| row).collect();
        let place = |row: &&Row| (row.run.to_owned(), row.tag.to_owned(), row.step, row.variable.to_owned());
        let expected: BTreeSet<_> = wanted.iter().map(place).collect();
        let mut seen = BTreeSet::new();
        query::run(&mut index, &query, &mut |hit| {
            let place = (hit.run.to_string(), hit.tag.to_string(), hit.step.unwrap());
            seen.insert((place.0, place.1, place.2, hit.variable.unwrap().to_string()));
            Ok(fieldstone_catalog::engine::Flow::More)
        })
        .unwrap();
        assert_eq!(seen, expected, "{}", query.expr);
        assert_eq!(query::count(&mut index, &query).unwrap().0, wanted.len() as u64, "{}", query.expr);
        let text = query::text::parse(&query.to_string()).unwrap();
        assert_eq!(query::count(&mut index, &text).unwrap().0, wanted.len() as u64, "{query}");
        // If a writer or user must match, a list holds the objects that hits touch.
        let by =
            Expr::Term(Term::User(NameTest::Any(vec![NameTest::Is("ann".into()), NameTest::Is("8".into())])));
        let listed = Query { expr: Expr::All(vec![by, query.expr.clone()]), ..Query::all() };
        let tags: BTreeSet<String> =
            query::tags(&mut index, &listed).unwrap().into_iter().map(|tag| tag.decl.name).collect();
        assert_eq!(tags, wanted.iter().map(|row| row.tag.to_owned()).collect(), "{}", query.expr);
        let runs: BTreeSet<String> =
            query::runs(&mut index, &listed).unwrap().into_iter().map(|run| run.decl.run.name).collect();
        assert_eq!(runs, wanted.iter().map(|row| row.run.to_owned()).collect(), "{}", query.expr);
        let steps = query::steps(&mut index, &listed).unwrap();
        let steps: BTreeSet<_> = steps.into_iter().map(|step| (step.run.name, step.step)).collect();
        assert_eq!(
            steps,
            wanted.iter().map(|row| (row.run.to_owned(), row.step)).collect(),
            "{}",
            query.expr
        );
        found += wanted.len().min(1);
    }
    assert!(found > 150, "only {found} of 600 queries found anything");
}

#[test]
fn the_attributes_view_says_who_wrote() {
    let (mut index, all) = world(&mut seeded(7));
    let sql = "SELECT uid, host, process, rank, job, attempt, COUNT(*) FROM attributes \
               GROUP BY uid, host, process, rank, job, attempt";
    let rows = index.sql(sql, None).unwrap().rows;
    let mut seen: Vec<(u32, Option<Writer>, i64)> = Vec::new();
    for row in &rows {
        let text = |at: usize| match &row[at] {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        let number = |at: usize| match row[at] {
            Value::Int(number) => Some(number),
            _ => None,
        };
        let writer = text(1).map(|host| Writer {
            host,
            process: number(2).unwrap() as u32,
            rank: number(3).map(|rank| rank as u32),
            job: text(4).unwrap_or_default(),
            attempt: text(5).unwrap_or_default(),
        });
        seen.push((number(0).unwrap() as u32, writer, number(6).unwrap()));
    }
    let logs: BTreeSet<usize> = all.iter().map(|row| row.log).collect();
    assert_eq!(seen.len(), logs.len());
    for log in logs {
        let (user, writer) = writer(log);
        let count = all.iter().filter(|row| row.log == log).count() as i64;
        assert!(seen.contains(&(user, writer, count)), "log {log}");
    }
}
