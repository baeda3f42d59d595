//! A process that archives fields and annotates them in the same flush, as if on a host of its own. The tests run many
//! at once and kill them; `bench` measures the time of a commit.
//!
//! ```text
//! annotator STORE NAME FLUSHES [latency]     prints the number of each flush after it returned;
//!                                            with `latency` the nanoseconds it took instead
//! ```
//! A flush holds three arrays of run NAME and an attribute on each; every fourth one is a transaction.
//! `FIELDSTONE_TEST_HOST` sets the name of the host, `FIELDSTONE_TEST_CLOCK` the seconds by which its clock is
//! ahead.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use fieldstone::Session;
use fieldstone::catalog::value::ValueType;
use fieldstone::catalog::{CatalogAccess, CatalogSettings, Query};
use fieldstone::env::real::{RealClock, RealIdentity};
use fieldstone::env::{Clock, Identity};
use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, DType, Env, Error, Result, Value};
use fieldstone_format::catalog::*;
use fieldstone_store::local::{LocalOptions, LocalStore};
use fieldstone_testkit::fields::content;

/// A clock that is ahead.
#[derive(Debug)]
struct Skewed(RealClock, i64);

impl Clock for Skewed {
    fn now(&self) -> i64 {
        self.0.now() + self.1
    }

    fn monotonic(&self) -> u64 {
        self.0.monotonic()
    }

    fn sleep(&self, nanoseconds: u64) {
        self.0.sleep(nanoseconds);
    }
}

/// This process, on a host of another name.
#[derive(Debug)]
struct Elsewhere(RealIdentity, String);

impl Identity for Elsewhere {
    fn host(&self) -> String {
        self.1.clone()
    }

    fn process(&self) -> u32 {
        self.0.process()
    }

    fn uid(&self) -> u32 {
        self.0.uid()
    }

    fn user_name(&self, uid: u32) -> String {
        self.0.user_name(uid)
    }

    fn alive(&self, process: u32) -> bool {
        self.0.alive(process)
    }
}

fn env() -> Env {
    let mut env = Env::real();
    if let Ok(host) = std::env::var("FIELDSTONE_TEST_HOST") {
        env.identity = Arc::new(Elsewhere(RealIdentity, host));
    }
    let ahead = std::env::var("FIELDSTONE_TEST_CLOCK").ok().and_then(|text| text.parse::<i64>().ok());
    if let Some(seconds) = ahead {
        env.clock = Arc::new(Skewed(RealClock::default(), seconds.saturating_mul(1_000_000_000)));
    }
    env
}

/// Attributes on three steps of the run's variable, each with a box.
fn marks(run: &RunName, steps: [i64; 3]) -> AttributeBatch {
    AttributeBatch {
        keywords: Vec::new(),
        run: run.clone(),
        tag: TagDecl { name: "mark".into(), version: 0, kind: ValueType::Float, unit: String::new() },
        rows: 3,
        step: Some(Column::Each(steps.into())),
        variables: vec![VariableName { name: "v".into(), version: 0 }],
        variable: Column::One(0),
        boxes: Some(Boxes { rank: 2, start: vec![1, 2], count: vec![3, 4], cells: None }),
        values: Values::Float(steps.iter().map(|step| *step as f64).collect()),
        one_value: false,
        continues: false,
        singles: false,
    }
}

fn declare(catalog: &dyn CatalogAccess, run: &RunName) -> Result<()> {
    catalog.create_run(RunDecl::named(run.clone()), true, &Session::default())?;
    let variable = VariableDecl {
        variable: VariableName { name: "v".into(), version: 0 },
        dtype: Some(DType::F8),
        shape: Some(vec![8, 8]),
        dims: Vec::new(),
        attrs: Vec::new(),
        coords: Vec::new(),
        decomposition: None,
        finders: None,
    };
    catalog.create_variables(run, vec![variable], &Session::default())
}

fn annotate(url: &str, name: &str, flushes: u64, latency: bool) -> Result<()> {
    let env = env();
    let options =
        LocalOptions { url: url.to_owned(), writable: true, native: true, ..LocalOptions::default() };
    let store = fieldstone::Store::of(
        LocalStore::open(env.clone(), Path::new(url), options)?,
        CatalogSettings::default(),
        false,
    );
    let catalog = store.catalog_with(CatalogSettings::default());
    let run = RunName { project: String::new(), name: name.to_owned() };
    for flush in 0..flushes {
        let transaction = if flush % 4 == 3 && !latency { Some(store.begin()?) } else { None };
        if flush == 0 {
            declare(&*catalog, &run)?;
        }
        let steps = [0, 1, 2].map(|i| 3 * flush + i);
        for step in steps {
            let key = [("run", name), ("variable", "v"), ("step", &step.to_string())];
            let data = content(name, step, 512);
            let value = Value::Array { data: &data, dtype: DType::F8, shape: &[8, 8] };
            store.archive(
                &key,
                value,
                &ArchiveOptions { session: Session::from(transaction), ..ArchiveOptions::default() },
            )?;
        }
        catalog.annotate(marks(&run, steps.map(|step| step as i64)), &Session::from(transaction))?;
        let begin = env.clock.monotonic();
        match transaction {
            Some(id) => store.decide(id, true)?,
            None => store.flush(None)?,
        }
        let took = env.clock.monotonic() - begin;
        let mut out = std::io::stdout().lock();
        writeln!(out, "{}", if latency { took } else { flush })
            .and_then(|()| out.flush())
            .map_err(|e| Error::io("write", "stdout".as_ref(), e))?;
        // A query now and then, so that processes also write the engine.
        if flush % 5 == 4 && !latency {
            catalog.count(&Query::all())?;
        }
    }
    store.close()
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse().map_err(|_| Error::invalid(format!("'{text}' is not a number")));
    let outcome = match arguments[..] {
        [url, name, flushes] => number(flushes).and_then(|n| annotate(url, name, n, false)),
        [url, name, flushes, "latency"] => number(flushes).and_then(|n| annotate(url, name, n, true)),
        _ => Err(Error::invalid("usage: annotator STORE NAME FLUSHES [latency]")),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            std::process::ExitCode::FAILURE
        }
    }
}
