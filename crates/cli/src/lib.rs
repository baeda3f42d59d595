//! The program `fieldstone`: `fieldstone VERB STORE [REQUEST] [options]`.
//!
//! A verb is a file of [`verbs`]: its arguments, its help with examples, and what it does in terms of
//! the crate `fieldstone`. Nothing here knows how a store works. JSON comes from `fieldstone::json`, but for what only
//! the program has: its version, pictures, what `init` and `doctor` say.
//!
//! Invariants:
//! * stdout carries data alone, through [`output::Out`]; messages, hints and progress go to stderr, where an error is
//!   one JSON object where data are JSON;
//! * the exit code is the error kind's (`fieldstone::ErrorKind::exit_code`), 0 where all went well, also
//!   when the reader of a pipe went away;
//! * no verb collects what it can print as it comes.

pub mod ahead;
pub mod arguments;
pub mod caption;
pub mod catalog;
pub mod compact;
pub mod complete;
pub mod csv;
pub mod draw;
pub mod elements;
pub mod explain;
pub mod graph;
pub mod help;
pub mod in_force;
pub mod ingested;
pub mod interrupt;
pub mod log;
pub mod marks;
pub mod mesh_picture;
pub mod metrics;
pub mod npy;
pub mod output;
pub mod picture;
pub mod progress;
pub mod region;
pub mod rows;
pub mod shell;
pub mod table;
pub mod time;
pub mod transfer;
pub mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser};

use output::{EarlyEnd, Format, Out};
use verbs::Verb;

const HELP: &str = "\
Examples:
  echo hello | fieldstone archive store run=a variable=t step=6
  fieldstone list store run=a,step=0/to/24/by/6
  fieldstone get store run=a variable=t step=6

Every verb has examples: fieldstone list --help. Topics: fieldstone help request | query | output | errors |
completion.";

/// One store for a simulation's fields, their metadata and their provenance.
#[derive(Debug, Parser)]
#[command(name = "fieldstone", version, after_help = HELP, max_term_width = 100, infer_subcommands = false)]
#[command(arg_required_else_help = true, subcommand_required = true, disable_help_subcommand = true)]
pub struct Program {
    #[command(subcommand)]
    verb: Verb,
    /// Print one JSON document instead of lines
    #[arg(long, global = true, conflicts_with = "jsonl")]
    json: bool,
    /// Print one JSON object a line, as they are found
    #[arg(long, global = true)]
    jsonl: bool,
    /// Print no messages but errors
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Lay out for this many columns; without it as wide as the terminal, or bare lines where it is none
    #[arg(long, global = true, value_name = "COLUMNS", value_parser = clap::value_parser!(u16).range(1..=1000))]
    width: Option<u16>,
}

/// The whole command line, for help, completions and their tests.
pub fn command() -> clap::Command {
    let (release, format) = (env!("CARGO_PKG_VERSION"), fieldstone::FORMAT_VERSION);
    let version =
        format!("{release} (new stores are of format {format}; reads and writes formats 1 to {format})");
    help::arrange(Program::command().version(version))
}

/// Runs the program with the arguments of this process.
pub fn main() -> ExitCode {
    run(std::env::args_os())
}

/// Runs the program with `arguments`, the first of which is its name.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    log::start();
    ExitCode::from(call(arguments))
}

/// Runs the program with `arguments`, the first of which is its name; gives its exit code.
pub fn call(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.get(1).is_some_and(|word| word == "__complete") {
        let words = arguments[2..].iter().map(|word| word.to_string_lossy().into_owned());
        complete::main(&words.collect::<Vec<_>>());
        return 0;
    }
    let parsed = command()
        .try_get_matches_from(&arguments)
        .and_then(|matches| Program::from_arg_matches(&matches).map_err(|e| e.format(&mut command())));
    let program = match parsed {
        Ok(program) => program,
        // clap's code for a wrong call is 2, the one of Invalid; help and version end with 0.
        Err(error) => {
            let asked = matches!(
                error.kind(),
                ErrorKind::DisplayHelp
                    | ErrorKind::DisplayVersion
                    | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
            );
            match asked {
                true => drop(error.print()),
                false => {
                    // The parsed arguments are lost with the rest of the call.
                    let json = arguments.iter().any(|word| word == "--json" || word == "--jsonl");
                    output::report(&help::wrong_call(&error, &arguments), json);
                }
            }
            return if error.use_stderr() { 2 } else { 0 };
        }
    };
    let format = match (program.json, program.jsonl) {
        (true, _) => Format::Json,
        (_, true) => Format::JsonLines,
        _ => Format::Text,
    };
    let mut out = Out::stdout(format, program.quiet, program.width.map(usize::from));
    let done = verbs::run(&program.verb, &mut out);
    // Output of a verb that failed later still has to appear.
    let done = match (done, out.finish()) {
        (Ok(()), flushed) => flushed,
        (stopped, _) => stopped,
    };
    // A command of a job that only read has not recorded that yet; its answer stands all the same.
    if let Err(error) = fieldstone::execution::record_late_reads() {
        output::report(&error.context("the reads of this command are not recorded"), format != Format::Text);
    }
    match done {
        Ok(()) | Err(EarlyEnd::PipeClosed) => 0,
        Err(EarlyEnd::Exit(code)) => code,
        Err(EarlyEnd::Error(error)) => {
            output::report(&error, format != Format::Text);
            error.kind().exit_code()
        }
    }
}
