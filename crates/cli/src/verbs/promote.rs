//! `fieldstone promote`: a backup becomes a store of its own.

use clap::Args;

use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone promote /mnt/tape/store

The backup gets an id of its own, and opens for writing. Its content and its older versions stay; it does not follow its
source any more, so that the next backup of the source needs a new folder.

With --json: id, that of the store.";

/// Make a backup a store of its own
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The folder of the backup
    #[arg(value_name = "STORE")]
    store: String,
}

/// Promotes a backup.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let id = fieldstone::promote(&fieldstone::local_path(&arguments.store)?)?;
    match out.json() {
        true => out.document(&serde_json::json!({ "id": id })),
        false => out.line(format_args!("promoted {}: its id is {id}", arguments.store)),
    }
}
