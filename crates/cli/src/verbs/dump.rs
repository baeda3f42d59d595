//! `fieldstone dump`: the store's structures as text.

use clap::Args;
use fieldstone::json;
use fieldstone::prelude::*;

use crate::arguments::{Reading, Selecting};
use crate::output::{Done, Format, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone dump store | less
  fieldstone dump store run=a,variable=t";

/// Show logs, commits, segments and entries as text
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
}

/// Prints line by line.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open()?;
    let mut lines = Vec::new();
    for request in requests {
        lines.extend(store.dump(request)?);
    }
    match out.format() {
        Format::Json => out.document(&json::reports::dump(&lines)),
        Format::JsonLines => out.items("lines", lines.iter().map(|line| Ok(json::reports::dump_line(line)))),
        Format::Text => lines.iter().try_for_each(|line| out.line(line)),
    }
}
