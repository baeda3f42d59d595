//! `fieldstone shell`: verbs and traversals, line after line.

use clap::Args;

use crate::output::{Done, Out};
use crate::shell::{self, Session};

const EXAMPLES: &str = "\
Examples:
  fieldstone shell store
  echo 'v(file:/plot.png).e(wasWrittenBy).e(read).repeat()' | fieldstone shell store

A line is a verb with its arguments, without the store: list run=a, find tag=maximum, trace plot.png, graph stats. What
begins with v( is a traversal, with the options of graph travel behind it. Words are split as by sh; # begins a comment.
open STORE takes another store, exit or Ctrl-D ends. TAB completes, the arrows go through former lines.

Where lines do not come from a terminal, it ends with the code of the first one that failed.";

/// Type verbs and traversals, line after line
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The store that the lines are about
    store: Option<String>,
}

/// Runs lines until they end.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    shell::run(Session::new(arguments.store.clone(), out.options()))
}
