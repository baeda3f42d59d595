//! `fieldstone run`: a command, with a record of what it was and what it read and wrote.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use fieldstone::execution::{self, ExecutionOptions};
use fieldstone::{Code, Mode, OpenOptions};

use crate::output::{Done, Out, Stop, report};

const EXAMPLES: &str = "\
Examples:
  fieldstone run store -- python regrid.py --to n80
  fieldstone run store --reads 'in/*.nc' --writes 'out/*.nc' -- ./model namelist
  fieldstone run store --watch out --env MODEL_* --name forecast -- srun ./model

The store then says who ran what: arguments, executable with its checksum, folder, host, environment, git commit, SLURM's
numbers, beginning, end, and exit code or signal; what the command archived in stores and read from them, and the
files that were named. See fieldstone trace. Processes that the command starts belong to its job.

Arguments that look like secrets are masked before anything is written. Of the environment only variables of a list are
kept (PATH, PYTHONPATH, OMP_*, SLURM_* and such), and those that --env names.

It ends as the command does: with its exit code, or 128 and the signal's number; 127 where there is no such command. Signals
are passed on to it. With --json nothing else is printed either.";

/// Run a command and record where its results come from
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The store for the record: a folder; made where it is absent
    store: String,
    /// A name for it; the program's, where it is not given
    #[arg(long)]
    name: Option<String>,
    /// Files that it reads, as a shell names them; may be given several times
    #[arg(long, value_name = "GLOB")]
    reads: Vec<String>,
    /// Files that it writes: those that are new or changed at its end
    #[arg(long, value_name = "GLOB")]
    writes: Vec<String>,
    /// A folder whose new and changed files it wrote
    #[arg(long, value_name = "DIR")]
    watch: Vec<PathBuf>,
    /// A variable of the environment that is kept, too; * at the end stands for anything
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// Of a store that is made: simulation, mars, or a schema file's path
    #[arg(long)]
    schema: Option<String>,
    /// End with 3, and run nothing, where no store is; FIELDSTONE_CREATE=0 says so for all calls
    #[arg(long)]
    existing: bool,
    /// The command and its arguments, behind --
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs the command.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let options = ExecutionOptions {
        name: arguments.name.clone(),
        reads: arguments.reads.clone(),
        writes: arguments.writes.clone(),
        watch: arguments.watch.clone(),
        env: arguments.env.clone(),
        ..ExecutionOptions::default()
    };
    let mode = if arguments.existing { Mode::Update } else { Mode::Append };
    let schema = arguments.schema.clone();
    let opened = OpenOptions { mode, schema, ..OpenOptions::default() };
    let store = fieldstone::open(&arguments.store, &opened)?;
    let ended = execution::run(&store, &arguments.command, options)?;
    let json = out.json();
    // What is wrong with the record does not make the command's result another one.
    for note in ended.notes {
        out.note(format_args!("not recorded: {note}"));
    }
    if let Some(error) = ended.unrecorded.or(store.close().err()) {
        report(&error.context("the end of the record is not in the store"), json);
    }
    if let Some(failed) = ended.failed {
        report(&Code::FileNotFound.error(failed), json);
    }
    match u8::try_from(ended.code) {
        Ok(0) => Ok(()),
        Ok(code) => Err(Stop::Exit(code)),
        Err(_) => Err(Stop::Exit(u8::MAX)),
    }
}
