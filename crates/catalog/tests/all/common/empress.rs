//! The 82 queries of EMPRESS, by their names, as terms of one query model.
//!
//! A name describes the result and the terms; [`query_of`] builds the query from a dozen terms. Each must
//! return some of the rows but not all, equal to brute force; and each kind of term must matter.

use std::collections::BTreeSet;

use fieldstone_catalog::engine::Tables;
use fieldstone_catalog::query::{self, Dim, Expr, NameTest, Query, Range, Relation, Scope, Term};
use fieldstone_core::value::{Test, Value, ValueType};
use fieldstone_format::catalog::{RunDecl, RunName, TagDecl, VariableDecl, VariableName};
use fieldstone_testkit::seeded;

use super::brute;
use super::world::{Attr, HeldFields, NOBODY, Step, Variable, World};

/// EMPRESS's names, without their common prefix.
pub const NAMES: [&str; 82] = [
    "all_run_attributes",
    "all_run_attributes_in_run",
    "all_run_attributes_with_type",
    "all_run_attributes_with_type_above_max",
    "all_run_attributes_with_type_above_max_in_run",
    "all_run_attributes_with_type_below_min",
    "all_run_attributes_with_type_below_min_in_run",
    "all_run_attributes_with_type_in_run",
    "all_run_attributes_with_type_range",
    "all_run_attributes_with_type_range_in_run",
    "all_timestep_attributes",
    "all_timestep_attributes_in_timestep",
    "all_timestep_attributes_with_type",
    "all_timestep_attributes_with_type_above_max",
    "all_timestep_attributes_with_type_above_max_in_timestep",
    "all_timestep_attributes_with_type_below_min",
    "all_timestep_attributes_with_type_below_min_in_timestep",
    "all_timestep_attributes_with_type_in_timestep",
    "all_timestep_attributes_with_type_range",
    "all_timestep_attributes_with_type_range_in_timestep",
    "all_timesteps_with_var",
    "all_timesteps_with_var_attributes_with_type_var",
    "all_timesteps_with_var_attributes_with_type_var_above_max",
    "all_timesteps_with_var_attributes_with_type_var_below_min",
    "all_timesteps_with_var_attributes_with_type_var_dims",
    "all_timesteps_with_var_attributes_with_type_var_dims_above_max",
    "all_timesteps_with_var_attributes_with_type_var_dims_below_min",
    "all_timesteps_with_var_attributes_with_type_var_dims_range",
    "all_timesteps_with_var_attributes_with_type_var_range",
    "all_timesteps_with_var_attributes_with_type_var_substr",
    "all_timesteps_with_var_attributes_with_type_var_substr_above_max",
    "all_timesteps_with_var_attributes_with_type_var_substr_below_min",
    "all_timesteps_with_var_attributes_with_type_var_substr_dims",
    "all_timesteps_with_var_attributes_with_type_var_substr_dims_above_max",
    "all_timesteps_with_var_attributes_with_type_var_substr_dims_below_min",
    "all_timesteps_with_var_attributes_with_type_var_substr_dims_range",
    "all_timesteps_with_var_attributes_with_type_var_substr_range",
    "all_timesteps_with_var_substr",
    "all_types_with_var_attributes",
    "all_types_with_var_attributes_in_timestep",
    "all_types_with_var_attributes_with_var",
    "all_types_with_var_attributes_with_var_dims",
    "all_types_with_var_attributes_with_var_dims_in_timestep",
    "all_types_with_var_attributes_with_var_in_timestep",
    "all_types_with_var_attributes_with_var_substr",
    "all_types_with_var_attributes_with_var_substr_dims",
    "all_types_with_var_attributes_with_var_substr_dims_in_timestep",
    "all_types_with_var_attributes_with_var_substr_in_timestep",
    "all_var_attributes",
    "all_var_attributes_with_dims",
    "all_var_attributes_with_type_by_id",
    "all_var_attributes_with_type_by_name_ver",
    "all_var_attributes_with_type_dims_by_id",
    "all_var_attributes_with_type_dims_by_name_ver",
    "all_var_attributes_with_type_var_above_max",
    "all_var_attributes_with_type_var_below_min",
    "all_var_attributes_with_type_var_by_id",
    "all_var_attributes_with_type_var_by_name_ver",
    "all_var_attributes_with_type_var_dims_above_max",
    "all_var_attributes_with_type_var_dims_below_min",
    "all_var_attributes_with_type_var_dims_by_id",
    "all_var_attributes_with_type_var_dims_by_name_ver",
    "all_var_attributes_with_type_var_dims_range",
    "all_var_attributes_with_type_var_range",
    "all_var_attributes_with_type_var_substr",
    "all_var_attributes_with_type_var_substr_above_max",
    "all_var_attributes_with_type_var_substr_below_min",
    "all_var_attributes_with_type_var_substr_dims",
    "all_var_attributes_with_type_var_substr_dims_above_max",
    "all_var_attributes_with_type_var_substr_dims_below_min",
    "all_var_attributes_with_type_var_substr_dims_range",
    "all_var_attributes_with_type_var_substr_range",
    "all_var_attributes_with_var_by_id",
    "all_var_attributes_with_var_by_name_ver",
    "all_var_attributes_with_var_dims_by_id",
    "all_var_attributes_with_var_dims_by_name_ver",
    "all_var_attributes_with_var_substr",
    "all_var_attributes_with_var_substr_dims",
    "run",
    "timestep",
    "type",
    "var",
];

/// The result of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    Runs,
    Steps,
    Variables,
    Tags,
    Attributes,
}

/// Kinds of terms. An EMPRESS database is a project here; its ids are names and versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Project,
    Run,
    Step,
    Variable,
    VariableVersion,
    VariablePattern,
    Tag,
    TagVersion,
    Dims,
    Range,
    AboveMax,
    BelowMin,
    OnRun,
    OnStep,
    OnVariable,
}

pub const PARTS: [Part; 15] = [
    Part::Project,
    Part::Run,
    Part::Step,
    Part::Variable,
    Part::VariableVersion,
    Part::VariablePattern,
    Part::Tag,
    Part::TagVersion,
    Part::Dims,
    Part::Range,
    Part::AboveMax,
    Part::BelowMin,
    Part::OnRun,
    Part::OnStep,
    Part::OnVariable,
];

/// The parts of the query with this name.
pub fn parts_of(name: &str) -> (Gives, BTreeSet<Part>) {
    let mut parts = BTreeSet::from([Part::Project]);
    let gives = match name {
        "run" => return (Gives::Runs, parts),
        "timestep" => Gives::Steps,
        "type" => Gives::Tags,
        "var" => {
            parts.insert(Part::Step);
            Gives::Variables
        }
        _ if name.starts_with("all_timesteps_with_var") => Gives::Steps,
        _ if name.starts_with("all_types_with_var_attributes") => Gives::Tags,
        _ => Gives::Attributes,
    };
    // All but three names are about one run; attributes of runs only if the name says so.
    if !name.starts_with("all_run_attributes") || name.ends_with("_in_run") {
        parts.insert(Part::Run);
    }
    if name.starts_with("all_run_attributes") {
        parts.insert(Part::OnRun);
    } else if name.starts_with("all_timestep_attributes") {
        parts.insert(Part::OnStep);
    } else if name.starts_with("all_var_attributes") {
        parts.extend([Part::OnVariable, Part::Step]);
    } else if name.starts_with("all_types_with_var_attributes") {
        parts.insert(Part::OnVariable);
    }
    if name.ends_with("_in_timestep") {
        parts.insert(Part::Step);
    }
    let terms = [
        "all_run_attributes",
        "all_timestep_attributes",
        "all_var_attributes",
        "all_types_with_var_attributes",
    ];
    let rest = terms.iter().find_map(|prefix| name.strip_prefix(prefix)).unwrap_or(name);
    let rest = rest.strip_prefix("all_timesteps").unwrap_or(rest);
    if rest.contains("_type") {
        parts.extend([Part::Tag, Part::TagVersion]);
    }
    if rest.contains("_var_substr") {
        parts.insert(Part::VariablePattern);
    } else if rest.contains("_var") && name != "var" {
        parts.extend([Part::Variable, Part::VariableVersion]);
    }
    for (word, part) in [
        ("_dims", Part::Dims),
        ("_range", Part::Range),
        ("_above_max", Part::AboveMax),
        ("_below_min", Part::BelowMin),
    ] {
        if rest.contains(word) {
            parts.insert(part);
        }
    }
    (gives, parts)
}

fn term_of(part: Part, parts: &BTreeSet<Part>) -> Term {
    let is = |name: &str| NameTest::Is(name.to_owned());
    // Integers if the variable is a pattern, floats otherwise, so that both are tested.
    let whole = parts.contains(&Part::VariablePattern);
    let number = |int: i64, float: f64| if whole { Value::Int(int) } else { Value::Float(float) };
    let side = |from, to| Range::Index(Some(from), Some(to));
    match part {
        Part::Project => Term::Project(is("astro")),
        Part::Run => Term::Run(is("astro3d-1")),
        Part::Step => Term::Step(vec![(1, 1)]),
        Part::Variable => Term::Variable(is("temperature")),
        Part::VariableVersion => Term::VariableVersion(vec![0]),
        Part::VariablePattern => Term::Variable(NameTest::Glob("*temp*".into())),
        Part::Tag => Term::Tag(is(if whole { "count" } else { "maximum" })),
        Part::TagVersion => Term::TagVersion(vec![0]),
        Part::Dims => Term::Region(
            vec![
                (Dim::Name("z".into()), side(10, 20)),
                (Dim::Index(1), side(5, 25)),
                (Dim::Name("x".into()), side(0, 15)),
            ],
            Relation::Overlaps,
        ),
        Part::Range => Term::Value(Test::Between(number(40, 40.0), number(70, 70.0))),
        Part::AboveMax => Term::Value(Test::Above(number(60, 60.5))),
        Part::BelowMin => Term::Value(Test::Below(number(40, 40.5))),
        Part::OnRun => Term::Scope(Scope::Run),
        Part::OnStep => Term::Scope(Scope::Step),
        Part::OnVariable => Term::Scope(Scope::Variable),
    }
}

/// The query of a name, without one kind of term if `without` is given.
pub fn query_of(name: &str, without: Option<Part>) -> (Gives, Query) {
    let (gives, parts) = parts_of(name);
    let kept = parts.iter().filter(|part| Some(**part) != without);
    let terms = kept.map(|part| Expr::Term(term_of(*part, &parts))).collect();
    (gives, Query { expr: Expr::All(terms), ..Query::all() })
}

/// Two projects, four runs, three steps, five variables, five tags; attributes on all of them.
pub fn world() -> World {
    let mut rng = seeded(1809);
    let mut world = World::default();
    for (project, name) in
        [("astro", "astro3d-1"), ("astro", "astro3d-2"), ("ocean", "astro3d-1"), ("ocean", "c")]
    {
        world.runs.push(RunDecl {
            run: RunName { project: project.into(), name: name.into() },
            job: None,
            params: Vec::new(),
            created: 0,
            grid: None,
            notes: None,
            outside: None,
            annotate: Default::default(),
            if_exists: None,
            state: None,
        });
    }
    for (name, version, kind) in [
        ("maximum", 0, ValueType::Float),
        ("maximum", 1, ValueType::Float),
        ("count", 0, ValueType::Int),
        ("count", 1, ValueType::Int),
        ("note", 0, ValueType::Text),
    ] {
        let unit = if version == 0 { String::new() } else { "m".to_owned() };
        world.tags.push(TagDecl { name: name.into(), version, kind, unit });
    }
    for run in 0..world.runs.len() {
        for step in 0..if run == 0 { 3 } else { 5 } {
            world.steps.push(Step { run, step, time: Some(step as f64) });
        }
        for (name, version) in
            [("temperature", 0), ("temperature", 1), ("sea_temp", 0), ("pressure", 0), ("wind", 0)]
        {
            world.variables.push(Variable {
                run,
                decl: VariableDecl {
                    variable: VariableName { name: name.into(), version },
                    dtype: None,
                    shape: Some(vec![40, 40, 40]),
                    dims: vec!["z".into(), "y".into(), "x".into()],
                    attrs: Vec::new(),
                    coords: Vec::new(),
                    decomposition: None,
                    finders: None,
                },
            });
        }
    }
    for variable in world.variables.clone() {
        for step in world.steps.iter().filter(|step| step.run == variable.run && rng.percent(60)) {
            world.held.push(HeldFields {
                run: step.run,
                step: step.step,
                variable: variable.decl.variable.clone(),
            });
        }
    }
    for row in 0..9_000 {
        let run = rng.within(0, 4) as usize;
        let steps: Vec<i64> =
            world.steps.iter().filter(|step| step.run == run).map(|step| step.step).collect();
        let scope = row % 10;
        // The first run has no notes on steps, and no counts of version 1 at step 1, so that tags differ.
        let mut tag = rng.within(0, 5) as usize;
        let step = *rng.pick(&steps);
        if run == 0 && (tag == 4 || (tag == 3 && step == 1)) {
            tag = 0;
        }
        let variables: Vec<VariableName> = world
            .variables
            .iter()
            .filter(|variable| {
                variable.run == run && !(tag == 1 && variable.decl.variable.name == "temperature")
            })
            .map(|variable| variable.decl.variable.clone())
            .collect();
        let (on_variable, on_step) = (scope > 1, scope > 0);
        let start: Vec<i64> = (0..3).map(|_| rng.within(0, 36)).collect();
        let count: Vec<i64> = start.iter().map(|from| rng.within(1, (41 - from).min(14))).collect();
        let number = rng.within(0, 100);
        world.attrs.push(Attr {
            run,
            tag,
            step: on_step.then_some(step),
            variable: on_variable.then(|| rng.pick(&variables).clone()),
            region: (on_variable && rng.percent(90)).then_some((start, count)),
            cells: None,
            keywords: Vec::new(),
            value: match world.tags[tag].kind {
                ValueType::Float => Value::Float(number as f64 + 0.25),
                ValueType::Int => Value::Int(number),
                _ => Value::Text(format!("note {number}")),
            },
            id: NOBODY,
        });
    }
    world
}

/// The result of a query, as lines.
fn given(tables: &mut dyn Tables, gives: Gives, asked: &Query) -> Vec<String> {
    match gives {
        Gives::Runs => {
            query::runs(tables, asked).unwrap().iter().map(|row| format!("{:?}", row.decl.run)).collect()
        }
        Gives::Steps => query::steps(tables, asked)
            .unwrap()
            .iter()
            .map(|row| format!("{:?}", (&row.run, row.step)))
            .collect(),
        Gives::Variables => query::variables(tables, asked)
            .unwrap()
            .iter()
            .map(|row| format!("{:?}", (&row.run, &row.decl.variable)))
            .collect(),
        Gives::Tags => query::tags(tables, asked)
            .unwrap()
            .iter()
            .map(|row| format!("{:?}", (&row.decl.name, row.version)))
            .collect(),
        Gives::Attributes => {
            query::collect(tables, asked).unwrap().id.iter().map(|id| format!("{id:?}")).collect()
        }
    }
}

/// Tests every name on tables over [`world`]: some rows, not all, equal to brute force; and every term
/// matters.
pub fn check(world: &World, tables: &mut dyn Tables) {
    let all = |tables: &mut dyn Tables, gives| given(tables, gives, &Query::all()).len();
    let mut matters: BTreeSet<Part> = BTreeSet::new();
    for name in NAMES {
        let (gives, asked) = query_of(name, None);
        let rows = given(tables, gives, &asked);
        assert!(!rows.is_empty(), "{name} gives nothing");
        assert!(rows.len() < all(tables, gives), "{name} gives everything");
        let hits = brute::find(world, &asked);
        let count = match gives {
            Gives::Runs => brute::runs(world, &asked).len(),
            Gives::Steps => brute::steps(world, &hits, &asked).len(),
            Gives::Variables => brute::variables(world, &hits, &asked).len(),
            Gives::Tags => brute::tags(world, &hits, &asked).len(),
            Gives::Attributes => {
                let ids: Vec<String> = hits.iter().map(|attr| format!("{:?}", attr.id)).collect();
                assert_eq!(rows, ids, "{name}");
                ids.len()
            }
        };
        assert_eq!(rows.len(), count, "{name}");
        let found = query::collect(tables, &asked).unwrap();
        super::agree::same(world, tables, &asked, &found);
        for part in parts_of(name).1 {
            if given(tables, gives, &query_of(name, Some(part)).1) != rows {
                matters.insert(part);
            }
        }
    }
    assert_eq!(matters, BTreeSet::from(PARTS), "each kind of term changes the answer of some query");
}
