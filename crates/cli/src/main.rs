//! The program `fieldstone`. All of it is in the library of this crate.

use std::process::ExitCode;

fn main() -> ExitCode {
    fieldstone_cli::main()
}
