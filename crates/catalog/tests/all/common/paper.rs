//! The volume of the EMPRESS paper: chunks that tile a volume, ten variables, three steps, ten tags with
//! attributes on a share of the chunks; and the paper's queries.

use fieldstone_catalog::engine::{Database, Index, Wait};
use fieldstone_catalog::query::{Dim, Expr, NameTest, Query, Range, Relation, Term};
use fieldstone_core::value::{Test, Value, ValueType};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    AttributeBatch, Boxes, Column, Record, RunDecl, RunName, StepDecl, TagDecl, Values, VariableDecl,
    VariableName,
};
use fieldstone_journal::feed::Commit;
use fieldstone_testkit::seeded;

pub const VARIABLES: [&str; 10] = [
    "temperature",
    "pressure",
    "density",
    "velocity_x",
    "velocity_y",
    "velocity_z",
    "vorticity",
    "mass_fraction_o2",
    "mass_fraction_h2",
    "heat_release",
];
/// Name, type, and the number of chunks among a thousand that have it.
pub const TAGS: [(&str, ValueType, i64); 10] = [
    ("blob_freq", ValueType::Bool, 250),
    ("blob_ifreq", ValueType::Bool, 50),
    ("blob_rare", ValueType::Bool, 1),
    ("maximum", ValueType::Float, 1_000),
    ("minimum", ValueType::Float, 1_000),
    ("note_freq", ValueType::Text, 200),
    ("note_ifreq", ValueType::Text, 25),
    ("note_rare", ValueType::Text, 5),
    ("range_ifreq", ValueType::IntRange, 100),
    ("range_rare", ValueType::IntRange, 10),
];
const CHUNK: i64 = 170;
const RUNS: i64 = 200;

/// One attribute of a variable.
#[derive(Debug, Clone)]
pub struct Row {
    pub tag: usize,
    pub step: i64,
    pub variable: usize,
    pub start: [i64; 3],
    pub count: [i64; 3],
    pub value: Value,
}

/// The whole volume.
#[derive(Debug)]
pub struct Paper {
    pub shape: [i64; 3],
    pub rows: Vec<Row>,
    /// `max_temp` of each run.
    pub maxima: Vec<f64>,
}

pub fn generate(chunks: [i64; 3]) -> Paper {
    let mut rng = seeded(1);
    let mut rows = Vec::new();
    for step in 0..3 {
        for variable in 0..VARIABLES.len() {
            for (tag, (_, kind, share)) in TAGS.iter().enumerate() {
                for chunk in 0..chunks.iter().product() {
                    if *share < 1_000 && rng.within(0, 1_000) >= *share {
                        continue;
                    }
                    let at =
                        [chunk % chunks[0], chunk / chunks[0] % chunks[1], chunk / (chunks[0] * chunks[1])];
                    let (mut start, mut count) = (at.map(|at| at * CHUNK), [CHUNK; 3]);
                    if matches!(kind, ValueType::Bool | ValueType::IntRange) {
                        for d in 0..3 {
                            let (a, b) = (rng.within(0, CHUNK), rng.within(0, CHUNK));
                            start[d] += a.min(b);
                            count[d] = (a - b).abs() + 1;
                        }
                    }
                    let share = rng.within(0, 1 << 52) as f64 / (1u64 << 52) as f64;
                    let low = rng.within(0, 1 << 31);
                    let value = match kind {
                        ValueType::Bool => Value::Bool(low % 2 == 0),
                        ValueType::Float => Value::Float(if tag == 3 { share * 1e10 } else { share * -1e10 }),
                        ValueType::Text => Value::Text(format!("attr data for var{variable} timestep{step}")),
                        _ => Value::IntRange(low, low + 10_000),
                    };
                    rows.push(Row { tag, step, variable, start, count, value });
                }
            }
        }
    }
    let maxima = (0..RUNS).map(|_| rng.within(0, 1_000_000) as f64 / 100.0).collect();
    Paper { shape: chunks.map(|n| n * CHUNK), rows, maxima }
}

/// A query by its name: the query, and whether a row is a hit.
pub type Asked<'a> = (&'static str, Query, Box<dyn Fn(&Row) -> bool + 'a>);

fn run(index: i64) -> RunName {
    RunName { project: String::new(), name: format!("run{index}") }
}

fn tag(index: usize) -> TagDecl {
    TagDecl { name: TAGS[index].0.into(), version: 0, kind: TAGS[index].1, unit: String::new() }
}

impl Paper {
    fn records(&self) -> Vec<Record> {
        let declare = |index| RunDecl {
            run: run(index),
            job: None,
            params: Vec::new(),
            created: 0,
            grid: None,
            notes: None,
            outside: None,
            annotate: Default::default(),
            if_exists: None,
            state: None,
        };
        let names = VARIABLES.map(|name| VariableName { name: name.into(), version: 0 });
        let variable = |name: &VariableName| VariableDecl {
            variable: name.clone(),
            dtype: None,
            shape: Some(self.shape.map(|n| n as u64).to_vec()),
            dims: vec!["x".into(), "y".into(), "z".into()],
            attrs: Vec::new(),
            coords: Vec::new(),
            decomposition: None,
            finders: None,
        };
        let mut records = vec![
            Record::Runs((0..RUNS).map(declare).collect()),
            Record::Steps(run(0), (0..3).map(|number| StepDecl { number, time: None }).collect()),
            Record::Variables(run(0), names.iter().map(variable).collect()),
        ];
        for step in 0..3 {
            for (index, (_, kind, _)) in TAGS.iter().enumerate() {
                let rows: Vec<&Row> = self.rows.iter().filter(|r| r.step == step && r.tag == index).collect();
                let values = match kind {
                    ValueType::Bool => {
                        Values::Bool(rows.iter().map(|r| matches!(r.value, Value::Bool(true))).collect())
                    }
                    ValueType::Float => {
                        let float = |r: &&Row| if let Value::Float(v) = r.value { v } else { 0.0 };
                        Values::Float(rows.iter().map(float).collect())
                    }
                    ValueType::Text => {
                        let text =
                            |r: &&Row| if let Value::Text(v) = &r.value { v.clone() } else { String::new() };
                        Values::Text(rows.iter().map(text).collect())
                    }
                    _ => Values::Any(rows.iter().map(|r| r.value.clone()).collect()),
                };
                records.push(Record::Attributes(AttributeBatch {
                    keywords: Vec::new(),
                    run: run(0),
                    tag: tag(index),
                    rows: rows.len(),
                    step: Some(Column::One(step)),
                    variables: names.to_vec(),
                    variable: Column::Each(rows.iter().map(|r| r.variable as u32).collect()),
                    boxes: Some(Boxes {
                        rank: 3,
                        start: rows.iter().flat_map(|r| r.start).collect(),
                        count: rows.iter().flat_map(|r| r.count).collect(),
                        cells: None,
                    }),
                    values,
                    one_value: false,
                    continues: false,
                    singles: false,
                }));
            }
        }
        for (index, maximum) in (0..).zip(&self.maxima) {
            records.push(Record::Attributes(AttributeBatch {
                keywords: Vec::new(),
                run: run(index),
                tag: TagDecl {
                    name: "max_temp".into(),
                    version: 0,
                    kind: ValueType::Float,
                    unit: "K".into(),
                },
                rows: 1,
                step: None,
                variables: Vec::new(),
                variable: Column::One(0),
                boxes: None,
                values: Values::Float(vec![*maximum]),
                one_value: false,
                continues: false,
                singles: false,
            }));
        }
        records
    }

    /// An engine with it, inside one read.
    pub fn index(&self, db: Box<dyn Database>, store: Id) -> Index {
        let side: Vec<_> = self.records().iter().map(Record::encode).collect();
        let mut index = Index::open(db, store).unwrap();
        assert!(index.begin_apply(Wait::Yes).unwrap());
        let writer = Id([9; 16]);
        let commit =
            Commit { writer, owner: 0, sequence: 1, stamp: 1, time: 0, transaction: None, order: None, side };
        index.apply_commit(&commit).unwrap();
        index.set_watermark(writer, 1).unwrap();
        index.end_apply().unwrap();
        index.begin_read().unwrap();
        index
    }

    /// First and last part of each dimension.
    fn part(&self, from: f64, to: f64) -> [(i64, i64); 3] {
        self.shape.map(|n| ((n as f64 * from) as i64, (n as f64 * to) as i64))
    }

    /// The queries by name: each query, and whether a row is a hit.
    pub fn queries(&self) -> Vec<Asked<'_>> {
        let name =
            |names: &[&str]| NameTest::Any(names.iter().map(|name| NameTest::Is(name.to_string())).collect());
        let tags = |names: &[&str]| Expr::Term(Term::Tag(name(names)));
        let on = |names: &[&str]| Expr::Term(Term::Variable(name(names)));
        let run = || Expr::Term(Term::Run(NameTest::Is("run0".into())));
        let step = || Expr::Term(Term::Step(vec![(1, 1)]));
        let region = |sides: [(i64, i64); 3]| {
            let side =
                |(d, (from, to)): (usize, (i64, i64))| (Dim::Index(d), Range::Index(Some(from), Some(to)));
            Expr::Term(Term::Region(sides.into_iter().enumerate().map(side).collect(), Relation::Overlaps))
        };
        let ask = |terms| Query { expr: Expr::All(terms), ..Query::all() };
        let inside = |row: &Row, sides: [(i64, i64); 3]| {
            (0..3).all(|d| row.start[d] < sides[d].1 && row.start[d] + row.count[d] > sides[d].0)
        };
        let (large, tiny) = (self.part(0.30, 0.55), self.part(0.40, 0.4625));
        let above = 0.999e10;
        vec![
            (
                "three tags of a variable and step",
                ask(vec![
                    run(),
                    step(),
                    on(&["temperature"]),
                    tags(&["blob_freq", "blob_ifreq", "blob_rare"]),
                ]),
                Box::new(|row: &Row| row.step == 1 && row.variable == 0 && row.tag < 3)
                    as Box<dyn Fn(&Row) -> bool>,
            ),
            (
                "a tag in a box",
                ask(vec![run(), step(), on(&["temperature"]), tags(&["blob_freq"]), region(large)]),
                Box::new(move |row| row.step == 1 && row.variable == 0 && row.tag == 0 && inside(row, large)),
            ),
            (
                "a value over all steps",
                ask(vec![
                    run(),
                    tags(&["maximum"]),
                    Expr::Term(Term::Value(Test::Above(Value::Float(above)))),
                ]),
                Box::new(move |row| row.tag == 3 && matches!(row.value, Value::Float(v) if v > above)),
            ),
            (
                "a rare tag in a box, all steps",
                ask(vec![run(), tags(&["blob_rare"]), region(large)]),
                Box::new(move |row| row.tag == 2 && inside(row, large)),
            ),
            (
                "a tag on variables by pattern",
                ask(vec![
                    run(),
                    step(),
                    tags(&["note_ifreq"]),
                    Expr::Term(Term::Variable(NameTest::Glob("*velocity*".into()))),
                ]),
                Box::new(|row| row.step == 1 && row.tag == 6 && (3..6).contains(&row.variable)),
            ),
            (
                "everything of a step in a box",
                ask(vec![run(), step(), region(large)]),
                Box::new(move |row| row.step == 1 && inside(row, large)),
            ),
            (
                "a dense tag in a tiny box, all steps",
                ask(vec![run(), tags(&["maximum"]), region(tiny)]),
                Box::new(move |row| row.tag == 3 && inside(row, tiny)),
            ),
        ]
    }

    /// Runs with an attribute above a number.
    pub fn hot_runs(&self) -> (Query, Vec<String>) {
        let terms = vec![
            Expr::Term(Term::Tag(NameTest::Is("max_temp".into()))),
            Expr::Term(Term::Value(Test::Above(Value::Float(9_900.0)))),
        ];
        let mut names: Vec<String> =
            (0..).zip(&self.maxima).filter(|(_, max)| **max > 9_900.0).map(|(i, _)| run(i).name).collect();
        names.sort();
        (Query { expr: Expr::All(terms), ..Query::all() }, names)
    }
}
