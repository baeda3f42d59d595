//! `fieldstone axes`: the values present, per keyword.

use std::io::Write;

use clap::Args;
use fieldstone::{Quoted, ReadOptions};
use serde_json::Value;

use crate::arguments::{Reading, Selecting};
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone axes store
  fieldstone axes store run=a,variable=t

Each line is a part of a request: step=0/6/12.";

/// Show the values that each keyword has
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
}

/// Prints a line per keyword.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let request = arguments.selecting.parse()?;
    let axes = arguments.store.open()?.axes(&request, &ReadOptions::default())?;
    if out.json() {
        let texts = |values: &[fieldstone::KeyValue]| values.iter().map(|v| Value::from(v.text())).collect();
        let object = axes.iter().map(|(name, values)| (name.to_string(), texts(values))).collect();
        return out.document(&Value::Object(object));
    }
    for (name, values) in &axes {
        write!(out, "{name}")?;
        for (i, value) in values.iter().enumerate() {
            let sign = if i == 0 { '=' } else { '/' };
            write!(out, "{sign}{}", Quoted(&value.text()))?;
        }
        out.write_all(b"\n")?;
    }
    Ok(())
}
