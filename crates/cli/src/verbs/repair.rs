//! `fieldstone repair`: mends what a backup, or the store itself, has whole.

use std::path::PathBuf;

use clap::Args;
use fieldstone::{Env, Error, ErrorKind, RepairOptions, RepairReport, json, local_path, repair, repair_in};

use crate::arguments::{Reading, Selecting};
use crate::output::{Done, Out, count, size};
use crate::progress::Ticker;

const EXAMPLES: &str = "\
Examples:
  fieldstone repair store --from /mnt/tape/store
  fieldstone repair store --from /mnt/tape/store --doit
  fieldstone repair store run=a --from /mnt/tape/store --doit
  fieldstone repair store --doit

Without --doit it only prints what it would mend. It mends damaged and missing parts of files, byte for byte, by a backup
of the store (fieldstone backup) or another copy of its folder; without --from, by what the store itself has twice, and
what follows from other files. A byte of the backup counts only where a checksum covers it, and where nothing whole in the
store contradicts. Bytes that match are never written, so that a call may be killed at any moment, and others may read and
write meanwhile. With a request it mends the fields that it selects, and in any case the index, in which they are found.

It then lists what is left, as `fieldstone verify` names it, and ends with 5 if there is something: `fieldstone accept`
gives that up. The owner of a file mends it, or root.

With --json: mended (key or null, file, how), left (key or null, file, why), nbytes, done.";

/// Mend damaged and missing files, from a backup if there is one
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
    /// A backup of the store, or another copy of its folder
    #[arg(long, value_name = "BACKUP")]
    from: Option<PathBuf>,
    /// Do it; without this option it only prints what it would mend
    #[arg(long)]
    doit: bool,
}

/// Mends, or prints what it would mend; an error of kind Corrupt after the report if something is left.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let requests = arguments.selecting.requests()?;
    let (url, options) =
        (&arguments.store.store, RepairOptions { source: arguments.from.as_deref(), doit: arguments.doit });
    let ticker = Ticker::start(format!("looking at {url}"), out);
    let report = match arguments.store.open() {
        Ok(store) => repair(&store, requests, &options),
        // Nothing in it says which store it is: the backup does.
        Err(e) if e.kind() == ErrorKind::Corrupt && options.source.is_some() => {
            repair_in(&Env::real(), &local_path(url)?, requests, &options)
        }
        Err(e) => Err(e),
    };
    drop(ticker);
    let report = report?;
    match out.json() {
        true => out.document(&json::reports::repaired(&report))?,
        false => print(&report, out)?,
    }
    match report.left.len() {
        0 => Ok(()),
        n => Err(Error::corrupt(format!("{} left damaged in {}", count(n as u64, "part"), url))
            .with_hint(
                "give another backup with --from, or archive the named fields again; to give up what is lost for good: \
                 fieldstone accept STORE FILE",
            )
            .into()),
    }
}

fn print(report: &RepairReport, out: &mut Out) -> Done {
    let word = if report.done { "mended" } else { "would mend" };
    for part in &report.mended {
        let key = part.key.as_deref().unwrap_or("-");
        out.line(format_args!("{word}: {key} in {}: {}", part.file, part.how))?;
    }
    for damage in &report.left {
        let key = damage.key.as_deref().unwrap_or("-");
        out.line(format_args!("left: {key} in {}: {}", damage.file, damage.why))?;
    }
    let parts = count(report.mended.len() as u64, "part");
    match report.done {
        true => out.line(format_args!("mended {parts}, {} written", size(report.nbytes)))?,
        false => out.line(format_args!("would mend {parts}"))?,
    }
    if !report.done && !report.mended.is_empty() {
        out.note("nothing was mended: give --doit to do it");
    }
    Ok(())
}
