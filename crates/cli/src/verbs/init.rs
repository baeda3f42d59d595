//! `fieldstone init`: a store with a schema, before the first field.

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{ErrorKind, Exist, Mode, OpenOptions};
use serde_json::json;

use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone init store
  fieldstone init forecasts --schema mars
  fieldstone init store --schema my.schema
  fieldstone init store --exist error
  fieldstone init store --format 1
  fieldstone init /group/store --shared

A store need not be made before something is archived into it; this is for the schema to be settled, and
the folder to be there, before many writers begin. With --shared all members of the folder's group write into it:
what they make has the group, and nobody removes what another made. A store that is there already stays as it is; ends
with 4 where it has another schema. See also fieldstone schema.

--exist error: from now on nobody archives a field that is there again, unless the call says so: a job that is run
again by mistake ends with a Conflict. --exist new takes that back. Only the store's owner may say it.

--format 1 pins the version of the format: older releases write the store, too, and what needs a newer one (attempts, files
of arrays, accepted losses) is refused, until the store's owner says fieldstone upgrade.";

/// Make a store without fields
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The store: a folder
    store: String,
    /// simulation, mars, or a schema file's path; simulation for a new store where it is not given
    #[arg(long)]
    schema: Option<String>,
    /// What an archive does where its field is there: new (a newer version) or error
    #[arg(long, value_name = "WHAT", value_parser = ["new", "error"])]
    exist: Option<String>,
    /// Pin the version of the format; the newest where it is not given
    #[arg(long, value_name = "VERSION")]
    format: Option<u32>,
    /// Let the folder's group write into it; a store that is there is opened to the group, too
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
    if let Some(exist) = &arguments.exist {
        store.set_exist(Exist::parse(exist)?)?;
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
