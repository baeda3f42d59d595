//! Measures the cost of reading unflushed data: looks a run up by name before each of its annotations, in a transaction
//! and outside, and does the same with a known run.
//!
//! ```text
//! unflushed FOLDER [calls] [rows]     by default 290 calls of 273 rows; medians of seven, in milliseconds
//! ```

use std::path::{Path, PathBuf};

use fieldstone::Session;
use fieldstone::catalog::value::ValueType;
use fieldstone::catalog::{CatalogSettings, Query};
use fieldstone::prelude::*;
use fieldstone::{Env, Error, Result};
use fieldstone_format::catalog::*;

const ROUNDS: usize = 7;

/// Rows of one call: of one tag, each at its own step.
fn rows(run: &RunName, call: usize, rows: usize) -> AttributeBatch {
    let first = (call * rows) as i64;
    AttributeBatch {
        keywords: Vec::new(),
        tag: TagDecl { name: "max".into(), version: 0, kind: ValueType::Float, unit: String::new() },
        run: run.clone(),
        rows,
        step: Some(Column::Each((first..first + rows as i64).collect())),
        variables: Vec::new(),
        variable: Column::One(0),
        boxes: None,
        values: Values::Float((0..rows).map(|row| (call * row) as f64 / 8.0).collect()),
        one_value: false,
        continues: false,
        singles: false,
    }
}

/// The duration of work in milliseconds.
fn timed(work: &mut dyn FnMut() -> Result<()>) -> Result<f64> {
    let clock = Env::real().clock;
    let begun = clock.monotonic();
    work()?;
    Ok((clock.monotonic() - begun) as f64 / 1e6)
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

struct Measured<'a> {
    folder: &'a Path,
    calls: usize,
    rows: usize,
}

impl Measured<'_> {
    /// Annotates a run of a new store; then counts the attributes, before they are flushed.
    fn annotate(&self, in_transaction: bool, by_name: bool) -> Result<(f64, f64)> {
        let folder = self.folder.join("store");
        let store = fieldstone::open(&folder.display().to_string(), &fieldstone::OpenOptions::default())?;
        let catalog = store.catalog_with(CatalogSettings::default());
        let run = RunName { project: String::new(), name: "r".into() };
        catalog.create_run(RunDecl::named(run.clone()), false, &Session::default())?;
        store.flush(None)?;
        let transaction = if in_transaction { Some(store.begin()?) } else { None };
        let calls = timed(&mut || {
            (0..self.calls).try_for_each(|call| {
                if by_name {
                    catalog.run(None, "r", &Session::from(transaction))?;
                }
                catalog.annotate(rows(&run, call, self.rows), &Session::from(transaction))
            })
        })?;
        let read = timed(&mut || {
            let found = catalog.count(&Query { session: Session::from(transaction), ..Query::all() })?;
            let due = (self.calls * self.rows) as u64;
            (found == due).then_some(()).ok_or_else(|| Error::internal(format!("{found} of {due} are there")))
        })?;
        store.close()?;
        // Without a flush there is no folder.
        let _ = std::fs::remove_dir_all(&folder);
        Ok((calls, read))
    }

    /// Declares the same number of runs.
    fn create_runs(&self, in_transaction: bool) -> Result<f64> {
        let folder = self.folder.join("store");
        let store = fieldstone::open(&folder.display().to_string(), &fieldstone::OpenOptions::default())?;
        let catalog = store.catalog_with(CatalogSettings::default());
        let transaction = if in_transaction { Some(store.begin()?) } else { None };
        let taken = timed(&mut || {
            (0..self.calls).try_for_each(|n| {
                let run = RunName { project: String::new(), name: format!("r{n}") };
                catalog.create_run(RunDecl::named(run), false, &Session::from(transaction))
            })
        })?;
        store.close()?;
        // Without a flush there is no folder.
        let _ = std::fs::remove_dir_all(&folder);
        Ok(taken)
    }
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder =
        PathBuf::from(arguments.next().ok_or_else(|| Error::invalid("unflushed FOLDER [calls] [rows]"))?);
    let mut number = |default| arguments.next().and_then(|text| text.parse().ok()).unwrap_or(default);
    let measured = Measured { folder: &folder, calls: number(290), rows: number(273) };
    let rounds = if number(1) == 0 { 1 } else { ROUNDS };
    for (name, in_transaction, by_name) in [
        ("run known, outside", false, false),
        ("run known, in a transaction", true, false),
        ("run by name, outside", false, true),
        ("run by name, in a transaction", true, true),
    ] {
        let all =
            (0..rounds).map(|_| measured.annotate(in_transaction, by_name)).collect::<Result<Vec<_>>>()?;
        let (calls, reads): (Vec<f64>, Vec<f64>) = all.into_iter().unzip();
        println!("{name:32} annotated in {:9.1}, first read in {:9.1}", median(calls), median(reads));
    }
    for (name, in_transaction) in [("create_run, outside", false), ("create_run, in a transaction", true)] {
        let all = (0..rounds).map(|_| measured.create_runs(in_transaction)).collect::<Result<Vec<_>>>()?;
        println!("{name:32} {:9.1}", median(all));
    }
    Ok(())
}
