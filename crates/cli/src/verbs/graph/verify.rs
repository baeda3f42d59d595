//! `fieldstone graph verify`: the view of the graph against the logs.

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{Error, json};

use crate::graph::Graphed;
use crate::output::{Done, Out, count};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph verify store && echo sound

Reads all records of the logs and compares them, line by line, with the segments that answer queries. Ends with 5 if
they differ, or if a record cannot be read. `fieldstone rebuild` makes the segments again.

With --json: ok, lines, different and damaged.";

/// Compare the graph's segments with the logs
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Graphed,
}

/// Compares; an error of kind Corrupt after the report where something differs.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = arguments.store.open()?;
    let check = store.graph().verify()?;
    let problems = check.different.len() + check.damaged.len();
    if out.json() {
        out.document(&json::graph::check(&check))?;
    } else {
        check.different.iter().try_for_each(|line| out.line(format_args!("different: {line}")))?;
        check.damaged.iter().try_for_each(|line| out.line(format_args!("damaged: {line}")))?;
        let found =
            if problems == 0 { "all as the logs say".to_owned() } else { count(problems as u64, "problem") };
        out.line(format_args!("{}: {found}", count(check.lines, "line")))?;
    }
    match problems {
        0 => Ok(()),
        _ => Err(Error::corrupt(format!("the graph of {} is not what its logs say", store.url()))
            .with_hint("rebuild it: fieldstone rebuild STORE")
            .into()),
    }
}
