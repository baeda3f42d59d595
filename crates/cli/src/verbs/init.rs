//! `fieldstone init`: creates a store with a schema, before the first field.

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{ErrorKind, IfExists, Mode, OpenOptions};
use serde_json::json;

use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone init store
  fieldstone init forecasts --schema mars
  fieldstone init store --schema my.schema
  fieldstone init store --if-exists error
  fieldstone init store --format 1
  fieldstone init /group/store --shared

Archiving creates a store if it does not exist. Use init to choose the schema and create the folder before many
writers begin. With --shared all members of the folder's group can write: new files get that group, and members cannot
remove each other's files. init does not change an existing store; it ends with 4 if that store has another schema.
See also fieldstone schema.

--if-exists error: from now on, archiving a field that already exists is a Conflict, unless the call overrides it. That
stops a job that someone starts twice by mistake. --if-exists new restores the default. Only the store's owner may set it.

--format 1 pins the version of the format, so that older releases can also write the store. Until the store's owner
runs fieldstone upgrade, the store refuses everything that needs a newer format: attempts, files of arrays, accepted
losses.";

/// Create an empty store
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The store: a folder
    store: String,
    /// simulation, mars, or the path of a schema file; a new store gets simulation by default
    #[arg(long)]
    schema: Option<String>,
    /// The result of archiving a field that already exists: new (a newer version) or error
    #[arg(long, value_name = "WHAT", value_parser = ["new", "error"])]
    if_exists: Option<String>,
    /// Pin the version of the format; by default the newest
    #[arg(long, value_name = "VERSION")]
    format: Option<u32>,
    /// Let the folder's group write into the store, also into an existing one
    #[arg(long)]
    shared: bool,
}

/// Makes it.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let url = &arguments.store;
    let reading = OpenOptions { mode: Mode::Read, ..OpenOptions::default() };
    let is_new = matches!(fieldstone::open(url, &reading), Err(e) if e.kind() == ErrorKind::NotFound);
    if arguments.shared {
        fieldstone::share(url)?;
    }
    let (schema, format) = (arguments.schema.clone(), arguments.format);
    let options = OpenOptions { schema, format, ..OpenOptions::default() };
    let store = fieldstone::init(url, &options)?;
    if let Some(if_exists) = &arguments.if_exists {
        store.set_if_exists(IfExists::parse(if_exists)?)?;
    }
    store.close()?;
    let schema = store.schema();
    let name = schema.name().unwrap_or("custom");
    if out.json() {
        return out.document(&json!({
            "url": url,
            "schema": name,
            "created": is_new,
            "shared": arguments.shared,
            "format": store.status()?.format,
        }));
    }
    let state = if is_new { "made" } else { "there already" };
    let shared = if arguments.shared { ", shared with its group" } else { "" };
    out.note(format_args!("{url}: {state}, schema {name}{shared}"));
    Ok(())
}
