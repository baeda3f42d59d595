//! `fieldstone backup`: a copy that shows a version, brought up to date by what is new.

use std::path::PathBuf;

use clap::Args;
use fieldstone::{BackupOptions, BackupReport, Code, Error, backup, json};

use crate::arguments::{Writing, bytes};
use crate::interrupt::Interrupt;
use crate::output::{Done, Out, count, size};
use crate::progress::Ticker;

const EXAMPLES: &str = "\
Examples:
  fieldstone backup store /mnt/tape/store
  fieldstone backup store /mnt/tape/store --follow
  fieldstone backup store /mnt/tape/store --purge

The first call copies all that is visible, later calls what is new. Others may read and write the store meanwhile; a hold
keeps purges from dropping anything until the call ends (fieldstone hold). The backup is whole at every moment: it shows its
version of before until everything of the new one is on its disk, so that a call may be killed. It opens for reading only,
until `fieldstone promote` makes it a store of its own.

The backup keeps, for its older versions, all that purges of the store drop, until --purge. --follow goes on until Ctrl-C;
a flush is in the backup a few seconds later. The call reads back all that it copied, unless --no-verify is given, names
damage that the store has, and ends with 5 then. Make backups of a store of several users as root, so that files keep their
owners.

With --json: version and before, the versions that the backup shows now and showed before; files, nbytes; removed, files that
nothing in the backup needs any more; damaged; foreign, files that are not the store's and were not copied; held.";

/// Copy what is new in a store to its backup
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The folder of the backup, which the first call makes
    #[arg(value_name = "TO")]
    to: PathBuf,
    /// Go on until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Drop what purges of the store dropped
    #[arg(long)]
    purge: bool,
    /// Do not read back the copied bytes
    #[arg(long)]
    no_verify: bool,
    /// Copy at most this much in a second, such as 32M, so that others who write wait less
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    rate: Option<u64>,
}

/// Makes a backup, or brings it up to date.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let store = match arguments.store.open_existing() {
        // A user who may only read may make a copy, too.
        Err(e) if e.kind() == fieldstone::ErrorKind::Denied => {
            let options = fieldstone::OpenOptions { mode: fieldstone::Mode::Read, ..Default::default() };
            fieldstone::open(&arguments.store.store, &options)?
        }
        store => store?,
    };
    let ticker = Ticker::start(format!("backing up {}", arguments.store.store), out);
    let interrupt = arguments.follow.then(Interrupt::watch);
    let progress = |_| match interrupt.as_ref().is_some_and(Interrupt::is_asked) {
        true => Err(Error::internal("interrupted")),
        false => Ok(()),
    };
    let options = BackupOptions {
        follow: arguments.follow,
        purge: arguments.purge,
        verify: !arguments.no_verify,
        rate: arguments.rate,
        progress: Some(&progress),
    };
    let made = backup(&store, &arguments.to, &options);
    drop(ticker);
    let closed = store.close();
    let report = match made {
        // Ctrl-C is how --follow ends.
        Err(_) if interrupt.as_ref().is_some_and(Interrupt::is_asked) => {
            closed?;
            return out.line(format_args!("stopped: {} shows its last version", arguments.to.display()));
        }
        made => made?,
    };
    closed?;
    match out.json() {
        true => out.document(&json::reports::backed_up(&report))?,
        false => print(&report, out)?,
    }
    match report.damaged.len() {
        0 => Ok(()),
        n => Err(Code::Checksum
            .error(format!("{} damaged in {}", count(n as u64, "part"), arguments.store.store))
            .with_hint("an earlier version of the backup may have them whole; fieldstone verify names what is damaged")
            .into()),
    }
}

fn print(report: &BackupReport, out: &mut Out) -> Done {
    for damage in &report.damaged {
        let key = damage.key.as_deref().unwrap_or("-");
        out.line(format_args!("damaged: {key} in {}: {}", damage.file, damage.why))?;
    }
    for file in &report.foreign {
        out.line(format_args!("not copied: {file} is not the store's"))?;
    }
    let removed = match report.removed {
        0 => String::new(),
        n => format!("; removed {}", count(n, "file")),
    };
    let copied = (size(report.nbytes), count(report.files, "file"));
    out.line(format_args!("copied {} in {}{removed}", copied.0, copied.1))
}
