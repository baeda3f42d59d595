//! `fieldstone shell`: verbs and traversals, line after line.

use clap::Args;

use crate::output::{Done, Out};
use crate::shell::{self, ShellContext};

const EXAMPLES: &str = "\
Examples:
  fieldstone shell store
  echo 'v(file:/plot.png).e(wasWrittenBy).e(read).repeat()' | fieldstone shell store

Each line is a verb with its arguments, without the store: list run=a, find tag=maximum, trace plot.png, graph stats.
A line that begins with v( is a traversal; options of graph travel may follow it. Words are split as in sh; # begins a
comment. open STORE changes to another store; exit or Ctrl-D ends the shell. TAB completes, and the arrow keys recall
earlier lines.

If the lines do not come from a terminal, it ends with the code of the first line that failed.";

/// Type verbs and traversals, line after line
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The store that the lines are about
    store: Option<String>,
}

/// Runs lines until they end.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    shell::run(ShellContext::new(arguments.store.clone(), out.options()))
}
