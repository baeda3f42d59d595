//! `fieldstone completions`: what a shell needs to complete verbs and options.

use std::io::Write;

use clap::Args;
use clap_complete::Shell;

use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone completions bash > ~/.local/share/bash-completion/completions/fieldstone
  fieldstone completions zsh > \"${fpath[1]}/_fieldstone\"
  fieldstone completions fish > ~/.config/fish/completions/fieldstone.fish";

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

/// Prints the script.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut crate::command(), "fieldstone", &mut script);
    Ok(out.write_all(&script)?)
}
