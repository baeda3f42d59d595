//! `fieldstone man`: the help of every verb as pages for `man`.

use std::path::PathBuf;
use std::{fs, io};

use clap::Args;
use clap_mangen::Man;
use fieldstone::Error;

use crate::output::{Done, Out};

const EXAMPLES: &str = "\
Examples:
  fieldstone man | man -l -                        read the program's page
  fieldstone man --into ~/.local/share/man/man1    a page for the program and one for each verb

pip installs the pages with the program. If its bin folder is in PATH, man fieldstone and man fieldstone-list
find them.";

/// Print the program's page for man, or write a page for each verb
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Write fieldstone.1 and a page for each verb into this folder, and create it if needed
    #[arg(long, value_name = "FOLDER")]
    into: Option<PathBuf>,
}

/// Prints the page or writes all of them.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let mut program = crate::command();
    program.build();
    let Some(folder) = &arguments.into else {
        return out.text(String::from_utf8_lossy(&page(program)?));
    };
    let elsewhere = "give a folder that you may write to, such as ~/.local/share/man/man1";
    fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e).with_hint(elsewhere))?;
    let verbs: Vec<_> = program.get_subcommands().cloned().collect();
    for command in std::iter::once(program).chain(verbs) {
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        let path = folder.join(format!("{name}.1"));
        fs::write(&path, page(command)?).map_err(|e| Error::io("write", &path, e).with_hint(elsewhere))?;
    }
    Ok(())
}

/// A page in roff. A verb's page names its subcommands; their own help describes them.
fn page(command: clap::Command) -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    let release = concat!("fieldstone ", env!("CARGO_PKG_VERSION"));
    Man::new(command).source(release).render(&mut page)?;
    Ok(page)
}
