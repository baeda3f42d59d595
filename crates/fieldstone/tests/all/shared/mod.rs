//! Shared by the tests of the catalog: short calls over a store and its catalog.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone::Session;
use fieldstone::catalog::query::{Expr, NameTest, Term};
use fieldstone::catalog::value::{Test, Value, ValueType};
use fieldstone::catalog::{CatalogAccess, CatalogSettings, HitTable, Query};
use fieldstone::prelude::*;
use fieldstone::{Id, OpenOptions};
use fieldstone_format::catalog::*;

/// A store and its catalog.
pub struct Both {
    pub store: fieldstone::Store,
    pub catalog: Arc<dyn CatalogAccess>,
}

impl Both {
    pub fn open(url: &str, options: &OpenOptions) -> Both {
        let store = fieldstone::open(url, options).unwrap();
        let catalog = store.catalog_with(CatalogSettings::default());
        Both { store, catalog }
    }

    /// In a folder that holds a store from the beginning.
    pub fn at(folder: &Path) -> Both {
        fieldstone::init(&folder.display().to_string(), &OpenOptions::default()).unwrap();
        Both::open(&folder.display().to_string(), &OpenOptions::default())
    }

    pub fn memory() -> Both {
        Both::open("memory:", &OpenOptions::default())
    }

    pub fn flush(&self) {
        self.store.flush(None).unwrap();
    }

    pub fn create_run(&self, name: &str) {
        self.catalog.create_run(RunDecl::named(run(name)), false, &Session::default()).unwrap();
    }

    /// A run with a variable `t` of shape (8, 8).
    pub fn prepare(&self, name: &str) {
        self.create_run(name);
        self.catalog.create_variables(&run(name), vec![variable("t", &[8, 8])], &Session::default()).unwrap();
    }

    /// One attribute of type float on a step of `t`, with a box.
    pub fn annotate(&self, name: &str, tag: &str, step: i64, start: [i64; 2], value: f64) {
        self.try_annotate(name, tag, step, start, value, None).unwrap();
    }

    pub fn try_annotate(
        &self,
        name: &str,
        tag: &str,
        step: i64,
        start: [i64; 2],
        value: f64,
        transaction: Option<Id>,
    ) -> fieldstone::Result<()> {
        let batch = AttributeBatch {
            step: Some(Column::One(step)),
            variables: vec![variable_name("t")],
            boxes: Some(Boxes { rank: 2, start: start.into(), count: vec![2, 2], cells: None }),
            ..on_run(name, tag, value)
        };
        self.catalog.annotate(batch, &Session::from(transaction))
    }

    pub fn hits(&self, terms: Vec<Term>) -> Vec<String> {
        lines(&self.catalog.attributes(&all_of(terms)).unwrap())
    }

    pub fn hits_in(&self, transaction: Id) -> Vec<String> {
        let query = Query { session: Session::from(transaction), ..Query::all() };
        lines(&self.catalog.attributes(&query).unwrap())
    }

    /// The engine's file.
    pub fn engine(folder: &Path) -> PathBuf {
        folder.join("catalog/index.sqlite")
    }

    /// All answers of the catalog, as text.
    pub fn answers(&self) -> String {
        let all = Query::all();
        let mut text = lines(&self.catalog.attributes(&all).unwrap()).join("\n");
        for run in self.catalog.runs(&all).unwrap() {
            text += &format!("\nrun {:?} {}", run.decl, run.declared);
        }
        for step in self.catalog.steps(&all).unwrap() {
            text += &format!("\nstep {step:?}");
        }
        for variable in self.catalog.variables(&all).unwrap() {
            text += &format!("\nvariable {:?} {:?} {}", variable.run, variable.decl, variable.declared);
        }
        for tag in self.catalog.tags(&all).unwrap() {
            text += &format!("\ntag {tag:?}");
        }
        text
    }
}

pub fn run(name: &str) -> RunName {
    RunName { project: String::new(), name: name.into() }
}

pub fn variable_name(name: &str) -> VariableName {
    VariableName { name: name.into(), version: 0 }
}

pub fn variable(name: &str, shape: &[u64]) -> VariableDecl {
    VariableDecl {
        variable: variable_name(name),
        dtype: Some(fieldstone::DType::F8),
        shape: Some(shape.into()),
        dims: Vec::new(),
        attrs: vec![("units".into(), Value::Text("K".into()))],
        coords: Vec::new(),
        decomposition: None,
        finders: None,
    }
}

pub fn float_tag(name: &str) -> TagDecl {
    TagDecl { name: name.into(), version: 0, kind: ValueType::Float, unit: String::new() }
}

/// One attribute of type float on a run.
pub fn on_run(name: &str, tag: &str, value: f64) -> AttributeBatch {
    AttributeBatch {
        keywords: Vec::new(),
        run: run(name),
        tag: float_tag(tag),
        rows: 1,
        step: None,
        variables: Vec::new(),
        variable: Column::One(0),
        boxes: None,
        values: Values::Float(vec![value]),
        one_value: true,
        continues: false,
        singles: false,
    }
}

/// Columns of attributes on `t`.
pub fn columns(name: &str, tag: &str, rows: usize) -> AttributeBatch {
    let start = (0..rows).flat_map(|i| [(i % 7) as i64, (i / 7 % 7) as i64]).collect();
    AttributeBatch {
        rows,
        step: Some(Column::Each((0..rows as i64).map(|i| i / 100).collect())),
        variables: vec![variable_name("t")],
        boxes: Some(Boxes { rank: 2, start, count: vec![1; 2 * rows], cells: None }),
        values: Values::Float((0..rows).map(|i| i as f64 / 8.0).collect()),
        one_value: false,
        ..on_run(name, tag, 0.0)
    }
}

pub fn all_of(terms: Vec<Term>) -> Query {
    Query { expr: Expr::All(terms.into_iter().map(Expr::Term).collect()), ..Query::all() }
}

pub fn tag_is(name: &str) -> Term {
    Term::Tag(NameTest::Is(name.into()))
}

pub fn run_is(name: &str) -> Term {
    Term::Run(NameTest::Is(name.into()))
}

pub fn above(value: f64) -> Term {
    Term::Value(Test::Above(Value::Float(value)))
}

/// Hits as lines: run, step, variable, tag, value, start.
pub fn lines(table: &HitTable) -> Vec<String> {
    let line = |row| {
        let hit = table.hit(row)?;
        let step = hit.step.map_or("-".into(), |step| step.to_string());
        let variable = hit.variable.as_deref().unwrap_or("-").to_owned();
        let start = hit.region.map_or("-".into(), |(start, _)| format!("{start:?}"));
        Some(format!("{} {step} {variable} {} {} {start}", hit.run, hit.tag, hit.value))
    };
    (0..).map_while(line).collect()
}

impl Both {
    /// Archives an array of ones.
    pub fn archive(&self, key: &[(&str, &str)], shape: &[u64], transaction: Option<Id>) {
        let data = vec![1_u8; 8 * shape.iter().product::<u64>() as usize];
        let value = fieldstone::Value::Array { data: &data, dtype: fieldstone::DType::F8, shape };
        let options =
            fieldstone::ArchiveOptions { session: Session::from(transaction), ..Default::default() };
        self.store.archive(key, value, &options).unwrap();
    }

    /// Removes the fields of a request.
    pub fn remove(&self, request: &str) -> u64 {
        let request = fieldstone::Request::parse(request).unwrap();
        self.store.remove(&request, &Default::default()).unwrap()
    }

    /// Variables with their shapes, and the steps that hold them.
    pub fn variables(&self) -> Vec<String> {
        let all = Query::all();
        let line = |info: fieldstone::catalog::VariableInfo| {
            let of = |name: &str| NameTest::Is(name.into());
            let terms = vec![Term::Run(of(&info.run.name)), Term::Variable(of(&info.decl.variable.name))];
            let steps = self.catalog.steps(&all_of(terms)).unwrap();
            let steps: Vec<i64> = steps.iter().map(|step| step.step).collect();
            format!("{} {} {:?} {steps:?}", info.run.name, info.decl.variable.name, info.decl.shape)
        };
        self.catalog.variables(&all).unwrap().into_iter().map(line).collect()
    }
}
