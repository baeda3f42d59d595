//! A catalog as plain structs, and random ones: the reference for the executor.
//!
//! [`World`] is a list of everything, without any index. Tests put it into [`Memory`](super::memory::Memory)
//! tables, or as records into an engine, and [`brute`](super::brute) searches it with plain loops.

use std::sync::Arc;

use fieldstone_core::value::{Value, ValueType};
use fieldstone_format::Id;
use fieldstone_format::catalog::{
    ArrayGroup, AttributeBatch, AttributeId, Boxes, CellSets, Column, Coordinate, KeywordColumn, Record,
    RunDecl, RunName, StepDecl, TagDecl, Values, VariableDecl, VariableName,
};
use fieldstone_testkit::Random;

use super::meshes;

/// An attribute.
#[derive(Debug, Clone)]
pub struct Attr {
    pub run: usize,
    pub tag: usize,
    pub step: Option<i64>,
    pub variable: Option<VariableName>,
    pub region: Option<(Vec<i64>, Vec<i64>)>,
    /// A dimension, and indices along it.
    pub cells: Option<(usize, Vec<i64>)>,
    /// Further keywords, by name.
    pub keywords: Vec<(&'static str, String)>,
    pub value: Value,
    pub id: AttributeId,
}

/// A step of a run.
#[derive(Debug, Clone)]
pub struct Step {
    pub run: usize,
    pub step: i64,
    pub time: Option<f64>,
}

/// A variable of a run.
#[derive(Debug, Clone)]
pub struct Variable {
    pub run: usize,
    pub decl: VariableDecl,
}

/// A field that is held.
#[derive(Debug, Clone)]
pub struct HeldFields {
    pub run: usize,
    pub step: i64,
    pub variable: VariableName,
}

/// Everything.
#[derive(Debug, Default, Clone)]
pub struct World {
    pub runs: Vec<RunDecl>,
    pub steps: Vec<Step>,
    pub variables: Vec<Variable>,
    pub held: Vec<HeldFields>,
    pub tags: Vec<TagDecl>,
    pub attrs: Vec<Attr>,
}

/// The writer whose commit holds all of a world.
pub const WRITER: Id = Id([7; 16]);

/// The id of no attribute.
pub const NOBODY: AttributeId = AttributeId { writer: None, sequence: 0, record: 0, row: 0 };

/// The keywords of rows as columns.
pub fn keyword_columns(attrs: &[Attr]) -> Vec<KeywordColumn> {
    let of = |keyword: &str| -> Vec<Arc<str>> {
        let value =
            |attr: &Attr| attr.keywords.iter().find(|(k, _)| *k == keyword).map(|(_, v)| v.as_str().into());
        attrs.iter().map(|attr| value(attr).unwrap_or_default()).collect()
    };
    let columns = KEYWORDS.map(|keyword| KeywordColumn { keyword: keyword.into(), values: of(keyword) });
    columns.into_iter().filter(|column| column.values.iter().any(|value| !value.is_empty())).collect()
}

impl World {
    /// The variable of an attribute.
    pub fn variable(&self, attr: &Attr) -> Option<&VariableDecl> {
        let name = attr.variable.as_ref()?;
        self.variables.iter().find(|v| v.run == attr.run && v.decl.variable == *name).map(|v| &v.decl)
    }

    pub fn time(&self, run: usize, step: i64) -> Option<f64> {
        self.steps.iter().find(|s| s.run == run && s.step == step).and_then(|s| s.time)
    }

    /// Sorts attributes into records, numbers them, and returns the records of one commit.
    pub fn seal(&mut self) -> Vec<Record> {
        let mut records = vec![Record::Runs(self.runs.clone()), Record::Tags(self.tags.clone())];
        for (index, run) in self.runs.iter().enumerate() {
            let of = |s: &&Step| s.run == index;
            let steps = self.steps.iter().filter(of).map(|s| StepDecl { number: s.step, time: s.time });
            records.push(Record::Steps(run.run.clone(), steps.collect()));
            let variables = self.variables.iter().filter(|v| v.run == index).map(|v| v.decl.clone());
            records.push(Record::Variables(run.run.clone(), variables.collect()));
            let of_run = self.variables.iter().filter(|v| v.run == index);
            let on_mesh = of_run.filter_map(|v| Some((&v.decl, meshes::dimension(&v.decl)?.1)));
            let groups: Vec<ArrayGroup> =
                on_mesh.clone().map(|(decl, extent)| meshes::group(decl, extent)).collect();
            if !groups.is_empty() {
                records.push(Record::Meshes(on_mesh.map(|(_, extent)| meshes::mesh(extent)).collect()));
                records.push(Record::Groups(run.run.clone(), groups));
            }
        }
        // Rows of one record share run, tag and target.
        let class = |a: &Attr| {
            let rank = a.region.as_ref().map_or(0, |(start, _)| start.len() + 1);
            let cells = a.cells.as_ref().map_or(0, |(dim, _)| dim + 1);
            (a.run, a.tag, a.step.is_some(), a.variable.is_some(), rank, cells)
        };
        self.attrs.sort_by_key(class); // stable: rows keep their order
        let mut from = 0;
        while from < self.attrs.len() {
            let of = class(&self.attrs[from]);
            let rows = self.attrs[from..].iter().take_while(|a| class(a) == of).count();
            let record = u32::try_from(records.len()).unwrap();
            for (row, attr) in self.attrs[from..from + rows].iter_mut().enumerate() {
                attr.id = AttributeId {
                    writer: Some(WRITER),
                    sequence: 1,
                    record,
                    row: u32::try_from(row).unwrap(),
                };
            }
            let batch = self.batch(&self.attrs[from..from + rows]);
            records.push(Record::Attributes(batch));
            from += rows;
        }
        records
    }

    fn batch(&self, attrs: &[Attr]) -> AttributeBatch {
        let first = &attrs[0];
        let mut variables: Vec<VariableName> = attrs.iter().filter_map(|a| a.variable.clone()).collect();
        variables.sort();
        variables.dedup();
        let index = |a: &Attr| a.variable.as_ref().map_or(0, |v| variables.binary_search(v).unwrap() as u32);
        let tag = self.tags[first.tag].clone();
        let boxes = first.region.as_ref().map(|(start, _)| Boxes {
            rank: start.len(),
            start: attrs.iter().flat_map(|a| a.region.clone().unwrap().0).collect(),
            count: attrs.iter().flat_map(|a| a.region.clone().unwrap().1).collect(),
            cells: first.cells.as_ref().map(|(dim, _)| CellSets {
                dim: *dim,
                sets: attrs.iter().map(|a| a.cells.clone().unwrap().1.into()).collect(),
            }),
        });
        AttributeBatch {
            keywords: keyword_columns(attrs),
            run: self.runs[first.run].run.clone(),
            rows: attrs.len(),
            step: first.step.map(|_| Column::Each(attrs.iter().map(|a| a.step.unwrap()).collect())),
            variable: Column::Each(attrs.iter().map(index).collect()),
            values: column(tag.kind, attrs),
            variables,
            tag,
            boxes,
            one_value: false,
            continues: false,
            singles: false,
        }
    }
}

fn column(kind: ValueType, attrs: &[Attr]) -> Values {
    macro_rules! each {
        ($($variant:ident)|+) => {
            attrs.iter().map(|a| match &a.value {
                $(Value::$variant(v) => v.clone(),)+
                other => panic!("{other:?} in a tag of {kind:?}"),
            }).collect()
        };
    }
    match kind {
        ValueType::Bool => Values::Bool(each!(Bool)),
        ValueType::Int | ValueType::DateTime => Values::Int(each!(Int | DateTime)),
        ValueType::UInt => Values::UInt(each!(UInt)),
        ValueType::Float => Values::Float(each!(Float)),
        ValueType::Text => Values::Text(each!(Text)),
        _ => Values::Any(attrs.iter().map(|a| a.value.clone()).collect()),
    }
}

/// Keywords that attributes have, ascending.
pub const KEYWORDS: [&str; 2] = ["level", "number"];

fn keywords(rng: &mut Random) -> Vec<(&'static str, String)> {
    let mut all = Vec::new();
    if rng.percent(20) {
        all.push(("level", rng.pick(&["500", "850.5", "sfc", "0001"]).to_string()));
    }
    if rng.percent(30) {
        all.push(("number", rng.within(0, 4).to_string()));
    }
    all
}

pub const PROJECTS: [&str; 3] = ["", "ocean", "astro"];
pub const RUNS: [&str; 5] = ["astro3d-1", "astro3d-2", "ocean-a", "control", "x*y"];
pub const VARIABLES: [&str; 8] =
    ["temperature", "temp_sea", "pressure", "velocity_x", "velocity_y", "T", "level_0/T", "level_2/pressure"];
pub const DIMS: [&str; 5] = ["z", "y", "x", "lat", "lon"];
pub const WORDS: [&str; 6] = ["turbulent", "turbine", "calm", "", "Ω-point", "storm"];
pub const KINDS: [(&str, i64, ValueType, &str); 13] = [
    ("maximum", 0, ValueType::Float, "K"),
    ("maximum", 1, ValueType::Float, "m/s"),
    ("minimum", 0, ValueType::Float, "K"),
    ("count", 0, ValueType::Int, ""),
    ("serial", 0, ValueType::UInt, ""),
    ("vortex", 0, ValueType::Bool, ""),
    ("note", 0, ValueType::Text, ""),
    ("seen", 0, ValueType::DateTime, ""),
    ("levels", 0, ValueType::IntRange, ""),
    ("band", 0, ValueType::FloatRange, "Hz"),
    ("weights", 0, ValueType::Array, ""),
    ("extra", 0, ValueType::Json, ""),
    ("raw", 0, ValueType::Bytes, ""),
];

/// A value of a type, often one of a few, so that tests match some.
pub fn value(rng: &mut Random, kind: ValueType) -> Value {
    let small = rng.within(-4, 12);
    match kind {
        ValueType::Bool => Value::Bool(rng.percent(50)),
        ValueType::Int => Value::Int(*rng.pick(&[small, small, small, i64::MIN, i64::MAX, (1 << 53) + 1])),
        ValueType::UInt => {
            Value::UInt(*rng.pick(&[small.unsigned_abs(), small.unsigned_abs(), u64::MAX, (1 << 53) + 1]))
        }
        ValueType::Float => {
            let odd =
                [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 9007199254740992.0, f64::MIN_POSITIVE];
            Value::Float(if rng.percent(12) {
                *rng.pick(&odd)
            } else {
                small as f64 + rng.within(0, 4) as f64 / 4.0
            })
        }
        ValueType::Text => Value::Text(rng.pick(&WORDS).to_string()),
        ValueType::Bytes => Value::Bytes(vec![rng.within(0, 3) as u8; rng.within(0, 3) as usize]),
        ValueType::DateTime => Value::DateTime(1_700_000_000_000_000_000 + small),
        ValueType::IntRange => Value::IntRange(small, small + rng.within(0, 6)),
        ValueType::FloatRange => {
            Value::FloatRange(small as f64, small as f64 + rng.within(0, 12) as f64 / 2.0)
        }
        ValueType::Array => {
            Value::Array((0..rng.within(0, 4)).map(|_| Value::Int(rng.within(0, 5))).collect())
        }
        ValueType::Json => match rng.within(0, 5) {
            0 => Value::Null,
            1 => Value::List(vec![Value::Int(small), Value::Text("a".into())]),
            2 => Value::Map(vec![("k".into(), Value::Int(small))]),
            3 => Value::Int(small),
            _ => Value::Text(rng.pick(&WORDS).to_string()),
        },
    }
}

fn coordinate(rng: &mut Random, extent: u64) -> Coordinate {
    let spacing = *rng.pick(&[0.5, 1.0, 2.5, -1.0, -0.25]);
    let first = rng.within(-10, 10) as f64;
    if rng.percent(50) {
        return Coordinate::Uniform { first, spacing };
    }
    let mut at = first;
    Coordinate::Rectilinear(
        (0..extent)
            .map(|_| {
                at += spacing * rng.within(1, 4) as f64;
                at
            })
            .collect(),
    )
}

fn variable(rng: &mut Random, name: &str, version: i64) -> VariableDecl {
    let rank = rng.within(1, 5) as usize;
    let shape: Vec<u64> = (0..rank).map(|_| rng.within(4, 40) as u64).collect();
    let named = rng.percent(80);
    let mut names: Vec<&str> = DIMS.to_vec();
    let dims = (0..rank).map(|_| match named {
        true => names.remove(rng.within(0, names.len() as i64) as usize).to_owned(),
        false => String::new(),
    });
    let dims: Vec<String> = if named { dims.collect() } else { Vec::new() };
    let mut coords = Vec::new();
    for (dim, extent) in shape.iter().enumerate() {
        if rng.percent(60) {
            coords.push((dim as u32, coordinate(rng, *extent)));
        }
    }
    let mut attrs = Vec::new();
    if rng.percent(60) {
        attrs.push(("units".to_owned(), Value::Text(rng.pick(&["K", "m/s", "text"]).to_string())));
        attrs.push(("cells".to_owned(), Value::Int(rng.within(-3, 12))));
    }
    VariableDecl {
        variable: VariableName { name: name.to_owned(), version },
        dtype: None,
        shape: rng.percent(85).then_some(shape),
        dims,
        attrs,
        coords,
        decomposition: None,
        finders: None,
    }
}

fn region(rng: &mut Random, decl: &VariableDecl) -> (Vec<i64>, Vec<i64>) {
    let shape = decl.shape.clone().unwrap_or_else(|| vec![20; 1 + decl.coords.len()]);
    let mut start = Vec::new();
    let mut count = Vec::new();
    for extent in shape {
        let extent = extent as i64;
        let from = rng.within(0, extent);
        start.push(from);
        count.push(rng.within(1, (extent - from + 1).max(2)));
    }
    if decl.shape.is_none() && rng.percent(10) {
        start[0] = i64::MAX - 7; // int64 throughout
        count[0] = 5;
    }
    (start, count)
}

/// Some elements of a box along one dimension; shrinks the box to the least one that holds them.
fn cells(rng: &mut Random, (start, count): &mut (Vec<i64>, Vec<i64>)) -> (usize, Vec<i64>) {
    let dim = rng.within(0, start.len() as i64) as usize;
    let all = start[dim]..start[dim] + count[dim];
    let mut cells: Vec<i64> = all.clone().filter(|_| rng.percent(40)).collect();
    if cells.is_empty() {
        cells.push(all.start);
    }
    (start[dim], count[dim]) = (cells[0], cells[cells.len() - 1] - cells[0] + 1);
    (dim, cells)
}

/// A random catalog of about `rows` attributes, on few series if `dense`.
pub fn random(rng: &mut Random, rows: usize, dense: bool) -> World {
    let mut world = World::default();
    let run_count = if dense { rng.within(1, 3) } else { rng.within(1, 6) };
    for index in 0..run_count {
        let run = RunName { project: rng.pick(&PROJECTS).to_string(), name: RUNS[index as usize].to_owned() };
        let mut params = vec![("nx".to_owned(), Value::Int(rng.within(0, 4) * 64))];
        if rng.percent(50) {
            params.push(("solver".into(), Value::Text(rng.pick(&["cg", "gmres"]).to_string())));
        }
        world.runs.push(RunDecl {
            run,
            job: rng.percent(60).then(|| format!("job-{}", rng.within(1, 4))),
            params,
            created: 1_000 * rng.within(1, 5),
            grid: None,
            notes: None,
            outside: rng.percent(15).then_some(Value::Bool(true)),
            annotate: Default::default(),
            if_exists: None,
            state: None,
        });
    }
    let tag_count = if dense { 2 } else { KINDS.len() };
    for (name, version, kind, unit) in KINDS.iter().take(tag_count) {
        let unit = unit.to_string();
        world.tags.push(TagDecl { name: name.to_string(), version: *version, kind: *kind, unit });
    }
    for run in 0..world.runs.len() {
        for step in 0..rng.within(1, 7) {
            let step = step * 6 - 6;
            world.steps.push(Step { run, step, time: rng.percent(70).then_some(step as f64 * 0.5) });
        }
        let variable_count = if dense { 2 } else { VARIABLES.len() };
        for name in VARIABLES.iter().take(variable_count) {
            for version in 0..rng.within(0, 3) {
                world.variables.push(Variable { run, decl: variable(rng, name, version) });
            }
        }
        if !world.variables.iter().any(|v| v.run == run) {
            world.variables.push(Variable { run, decl: variable(rng, "temperature", 0) });
        }
    }
    for Variable { run, decl } in world.variables.clone() {
        for step in world.steps.iter().filter(|s| s.run == run) {
            if rng.percent(50) {
                world.held.push(HeldFields { run, step: step.step, variable: decl.variable.clone() });
            }
        }
    }
    for _ in 0..rows {
        let run = rng.within(0, world.runs.len() as i64) as usize;
        let steps: Vec<i64> = world.steps.iter().filter(|s| s.run == run).map(|s| s.step).collect();
        let variables: Vec<&VariableDecl> =
            world.variables.iter().filter(|v| v.run == run).map(|v| &v.decl).collect();
        let tag = rng.within(0, world.tags.len() as i64) as usize;
        let decl = (dense || rng.percent(80)).then(|| *rng.pick(&variables));
        let boxed = decl.filter(|_| dense || rng.percent(75));
        let mut region = boxed.map(|decl| region(rng, decl));
        let of_cells = boxed.is_some_and(|decl| decl.shape.is_some()) && rng.percent(30);
        let cells = region.as_mut().filter(|_| of_cells).map(|region| cells(rng, region));
        let attr = Attr {
            run,
            tag,
            step: rng.percent(85).then(|| *rng.pick(&steps)),
            variable: decl.map(|decl| decl.variable.clone()),
            region,
            cells,
            keywords: keywords(rng),
            value: value(rng, world.tags[tag].kind),
            id: AttributeId { writer: Some(WRITER), sequence: 0, record: 0, row: 0 },
        };
        world.attrs.push(attr);
    }
    world
}
