//! `fieldstone graph checksum`: the checksums of files as executions record them.

use std::path::PathBuf;

use clap::Args;
use fieldstone::json;
use fieldstone::lineage::checksum;

use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone graph checksum plot.png data/*.nc

Each line has the checksum, two blanks and the path. The checksum is `xxh3:` and the 32 hex digits of XXH3-128 that
`xxhsum -H2` prints. Scripts of `fieldstone trace --script` compare files by it.

With --json: {\"files\": [...]} of path and checksum.";

/// Print the checksums of files as the graph has them
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// The files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

/// Prints a line for each file.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let env = fieldstone::Env::real();
    if out.json() {
        let shape = |path: &PathBuf| Ok(json::graph::checksum(path, &checksum(&env, path)?));
        return out.items("files", arguments.files.iter().map(shape));
    }
    for path in &arguments.files {
        out.text(format!("{}  {}\n", checksum(&env, path)?, path.display()))?;
    }
    Ok(())
}
