//! `fieldstone hold`: nothing of a store goes while it is copied.

use std::time::Duration;

use clap::Args;
use fieldstone::json::values::time_in_seconds;
use fieldstone::{Code, HoldInfo, Holding, Mode, OpenOptions, Session, json};

use crate::arguments::Writing;
use crate::output::{Done, Out};
use crate::time::parse_span;

const EXAMPLES: &str = "\
Examples:
  fieldstone hold store --for 2h --name nightly --why \"rsync to tape\"
  fieldstone hold store --release nightly
  fieldstone hold store --list

Until the hold expires or is released, purges drop nothing, and files that takeovers replaced stay: whoever copies the store
meanwhile finds all its files. Reports of purges name the hold, its reason and its end. A hold counts for everybody's data,
and expires by itself. --for with the name of a hold sets it again, from now on.

Without options it lists the holds. With --json: name, why, by, since, until and version of the hold, or with --list holds,
a list of these.";

/// Keep all files of a store while it is copied
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// Hold the store for this time, such as 30m or 2h
    #[arg(long = "for", value_name = "TIME", value_parser = parse_span)]
    lasts: Option<Duration>,
    /// The name of the hold; a new one otherwise
    #[arg(long, value_name = "NAME", requires = "lasts")]
    name: Option<String>,
    /// The reason, for those who wait for it
    #[arg(long, value_name = "TEXT", requires = "lasts")]
    why: Option<String>,
    /// End the hold of this name
    #[arg(long, value_name = "NAME", conflicts_with = "lasts")]
    release: Option<String>,
    /// List the holds
    #[arg(long, conflicts_with_all = ["lasts", "release"])]
    list: bool,
}

/// Sets, ends or lists holds.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    if let Some(name) = &arguments.release {
        let store = arguments.store.open_existing()?;
        fieldstone::release(&store, name)?;
        store.close()?;
        return match out.json() {
            true => out.document(&serde_json::json!({ "released": name })),
            false => out.line(format_args!("released {name}")),
        };
    }
    let Some(lasts) = arguments.lasts else {
        let options = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
        return list(&fieldstone::holds(&fieldstone::open(&arguments.store.store, &options)?)?, out);
    };
    if arguments.name.as_deref() == Some("") {
        return Err(Code::CommandLine.error("a hold has no empty name").with_hint("leave --name out").into());
    }
    let how = Holding {
        name: arguments.name.clone().unwrap_or_default(),
        lasts: u64::try_from(lasts.as_nanos()).unwrap_or(u64::MAX),
        why: arguments.why.clone().unwrap_or_default(),
        session: Session::default(),
    };
    let store = arguments.store.open_existing()?;
    let hold = store.backend().hold(&how)?;
    store.close()?;
    match out.json() {
        true => out.document(&json::reports::hold(&hold)),
        false => out.line(format_args!("{}", line(&hold))),
    }
}

fn list(holds: &[HoldInfo], out: &mut Out) -> Done {
    if out.json() {
        return out.document(&json::reports::holds(holds));
    }
    if holds.is_empty() {
        return out.line("no holds");
    }
    holds.iter().try_for_each(|hold| out.line(format_args!("{}", line(hold))))
}

fn line(hold: &HoldInfo) -> String {
    let why = if hold.why.is_empty() { String::new() } else { format!(": {}", hold.why) };
    format!("{} until {} by {}{why}", hold.name, time_in_seconds(hold.until), hold.by)
}
