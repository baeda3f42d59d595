//! The program `fieldstone`: `fieldstone VERB STORE [REQUEST] [options]`.
//!
//! A verb is a file of [`verbs`]: its arguments, its help with examples, and what it does in terms of
//! the crate `fieldstone`. Nothing here knows how a store works.
//!
//! Invariants:
//! * stdout carries data alone, through [`output::Out`]; messages, hints and progress go to stderr;
//! * the exit code is the error kind's (`fieldstone::ErrorKind::exit_code`), 0 where all went well, also
//!   when the reader of a pipe went away;
//! * no verb collects what it can print as it comes.

pub mod arguments;
pub mod draw;
pub mod elements;
pub mod json;
pub mod npy;
pub mod output;
pub mod picture;
pub mod region;
pub mod time;
pub mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

use output::{Out, Stop};
use verbs::Verb;

const HELP: &str = "\
Examples:
  echo hello | fieldstone archive store run=a variable=t step=6
  fieldstone list store run=a,step=0/to/24/by/6
  fieldstone get store run=a variable=t step=6

Requests are in the MARS language: lists (t/u), ranges (0/to/24/by/6), * for all; a keyword that is not
named is free. Give them as one argument or as several.

Exit codes: 0 ok, 1 internal, 2 invalid, 3 not found, 4 conflict, 5 corrupt, 6 denied, 7 unavailable.";

/// One store for a simulation's fields, their metadata and their provenance.
#[derive(Debug, Parser)]
#[command(name = "fieldstone", version, after_help = HELP, max_term_width = 100, infer_subcommands = false)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub struct Program {
    #[command(subcommand)]
    verb: Verb,
    /// Print one JSON document instead of lines
    #[arg(long, global = true)]
    json: bool,
    /// Print no messages but errors
    #[arg(short, long, global = true)]
    quiet: bool,
}

/// The whole command line, for help, completions and their tests.
pub fn command() -> clap::Command {
    let version = format!("{} (format {})", env!("CARGO_PKG_VERSION"), fieldstone::FORMAT_VERSION);
    Program::command().version(version)
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    run(std::env::args_os())
}

/// Runs the program with `arguments`, the first of which is its name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let parsed = command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Program::from_arg_matches(&matches).map_err(|e| e.format(&mut command())));
    let program = match parsed {
        Ok(program) => program,
        // clap's code for a wrong call is 2, the one of Invalid; help and version end with 0.
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    let mut out = Out::stdout(program.json, program.quiet);
    let done = verbs::run(&program.verb, &mut out);
    // What a verb printed before it failed is printed all the same.
    let done = match (done, out.finish()) {
        (Ok(()), flushed) => flushed,
        (stopped, _) => stopped,
    };
    match done {
        Ok(()) | Err(Stop::PipeClosed) => ExitCode::SUCCESS,
        Err(Stop::Error(error)) => {
            output::report(&error);
            ExitCode::from(error.kind().exit_code())
        }
    }
}
