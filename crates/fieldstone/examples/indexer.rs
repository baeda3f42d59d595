//! A process that archives fields, annotates them in the same flush, and queries. The tests break the
//! disk under its engine.
//!
//! ```text
//! indexer STORE RUN FLUSHES
//! ```
//! A flush holds one field under RUN and [`ROWS`] attributes of it. Prints `flushed N` after a flush, `found N` for an
//! answer of the catalog, `refused KIND` for an error.

use std::io::Write;

use fieldstone::Session;
use fieldstone::catalog::value::ValueType;
use fieldstone::catalog::{CatalogSettings, Query};
use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, DType, Error, OpenOptions, Result, Value};
use fieldstone_format::catalog::{
    AttributeBatch, Boxes, Column, RunDecl, RunName, Values, VariableDecl, VariableName,
};

/// Attributes of one flush.
const ROWS: usize = 40;

fn say(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).map_err(|e| Error::io("write", "stdout".as_ref(), e))
}

fn annotate(url: &str, name: &str, flushes: i64) -> Result<()> {
    let store = fieldstone::open(url, &OpenOptions::default())?;
    let catalog = store.catalog_with(CatalogSettings::default());
    let run = RunName { project: String::new(), name: name.to_owned() };
    let variable = VariableName { name: "v".to_owned(), version: 0 };
    let declared = RunDecl {
        run: run.clone(),
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
    catalog.create_run(declared, true, &Session::default())?;
    let declared = VariableDecl {
        variable: variable.clone(),
        dtype: Some(DType::parse("u1")?),
        shape: Some(vec![ROWS as u64, 64]),
        dims: Vec::new(),
        attrs: Vec::new(),
        coords: Vec::new(),
        decomposition: None,
        finders: None,
    };
    catalog.create_variables(&run, vec![declared], &Session::default())?;
    let tag = catalog.tag_for("n", None, ValueType::Int, &Session::default())?;
    for step in 0..flushes {
        let text = step.to_string();
        let key = [("run", name), ("variable", "v"), ("step", &*text)];
        let data = vec![step as u8; ROWS * 64];
        let field = Value::Array { data: &data, dtype: DType::parse("u1")?, shape: &[ROWS as u64, 64] };
        store.archive(&key, field, &ArchiveOptions::default())?;
        let batch = AttributeBatch {
            keywords: Vec::new(),
            run: run.clone(),
            tag: tag.clone(),
            rows: ROWS,
            step: Some(Column::One(step)),
            variables: vec![variable.clone()],
            variable: Column::One(0),
            boxes: Some(Boxes {
                rank: 2,
                start: (0..ROWS as i64).flat_map(|row| [row, step % 64]).collect(),
                count: [1, 1].repeat(ROWS),
                cells: None,
            }),
            values: Values::Int((0..ROWS as i64).map(|row| step * 1000 + row).collect()),
            one_value: false,
            continues: false,
            singles: false,
        };
        catalog.annotate(batch, &Session::default())?;
        store.flush(None)?;
        say(&format!("flushed {step}"))?;
        if step % 2 == 1 {
            match catalog.count(&Query::all()) {
                Ok(found) => say(&format!("found {found}"))?,
                Err(e) => {
                    eprintln!("{e}");
                    say(&format!("refused {}", e.kind().name()))?;
                }
            }
        }
    }
    drop(catalog);
    store.close()
}

fn main() -> std::process::ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match &arguments[..] {
        [url, name, flushes] => match flushes.parse() {
            Ok(flushes) => annotate(url, name, flushes),
            Err(_) => Err(Error::invalid(format!("'{flushes}' is not a number"))),
        },
        _ => Err(Error::invalid("usage: indexer STORE RUN FLUSHES")),
    };
    match outcome {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            std::process::ExitCode::FAILURE
        }
    }
}
