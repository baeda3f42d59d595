//! `fieldstone completions`: scripts by which shells complete verbs, options, keywords and values.

use clap::Args;

use crate::complete::scripts::Shell;
use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  source <(fieldstone completions bash)
  fieldstone completions bash > ~/.local/share/bash-completion/completions/fieldstone
  fieldstone completions zsh > \"${fpath[1]}/_fieldstone\"
  fieldstone completions fish > ~/.config/fish/completions/fieldstone.fish

At each TAB the script asks the program, which asks the store. It offers verbs, options, files, stores, keywords
that the request does not have yet, and the values that exist under the rest of the request.";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Prints the script.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    out.text(arguments.shell.script())
}
