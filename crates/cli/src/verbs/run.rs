//! `fieldstone run`: runs a command and records its arguments, environment, inputs and outputs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use fieldstone::execution::{self, ExecutionOptions};
use fieldstone::{Code, Mode, OpenOptions};

use crate::output::{Done, EarlyEnd, Out, report};

const EXAMPLES: &str = "\
Examples:
  fieldstone run store -- python regrid.py --to n80
  fieldstone run store --reads 'in/*.nc' --writes 'out/*.nc' -- ./model namelist
  fieldstone run store --watch out --env MODEL_* --name forecast -- srun ./model

The store records the user, the arguments, the executable with its checksum, folder, host, environment, git commit,
SLURM's numbers, begin, end, and exit code or signal of the command. It also records the fields that the command
archived and read, and the files that you name. See fieldstone trace. Processes that the command starts belong to its
job.

Arguments that look like secrets are masked before anything is written. The record keeps only listed environment
variables (PATH, PYTHONPATH, OMP_*, SLURM_* and such), and those that --env names.

The program passes signals on to the command and ends with its exit code, or with 128 plus the signal's number, or with
127 if there is no such command. It prints nothing of its own, also with --json.";

/// Run a command and record where its results come from
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The store for the record: a folder; created if it does not exist
    store: String,
    /// A name for the execution; by default the program's name
    #[arg(long)]
    name: Option<String>,
    /// Files that the command reads, or shell patterns of them; may be given several times
    #[arg(long, value_name = "GLOB")]
    reads: Vec<String>,
    /// Files that the command writes: those of them that are new or changed when it ends
    #[arg(long, value_name = "GLOB")]
    writes: Vec<String>,
    /// A folder; the command wrote all files there that are new or changed when it ends
    #[arg(long, value_name = "DIR")]
    watch: Vec<PathBuf>,
    /// A further environment variable to record; * at the end matches anything
    #[arg(long, value_name = "NAME")]
    env: Vec<String>,
    /// The schema of a new store: simulation, mars, or the path of a schema file
    #[arg(long)]
    schema: Option<String>,
    /// If there is no store, run nothing and end with 3; FIELDSTONE_CREATE=0 says so for all calls
    #[arg(long)]
    must_exist: bool,
    /// The command and its arguments, after --
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
    let mode = if arguments.must_exist { Mode::Update } else { Mode::Append };
    let schema = arguments.schema.clone();
    let opened = OpenOptions { mode, schema, ..OpenOptions::default() };
    let store = fieldstone::open(&arguments.store, &opened)?;
    let ended = execution::run(&store, &arguments.command, options)?;
    let json = out.json();
    // A failure to record does not change the command's result.
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
        Ok(code) => Err(EarlyEnd::Exit(code)),
        Err(_) => Err(EarlyEnd::Exit(u8::MAX)),
    }
}
