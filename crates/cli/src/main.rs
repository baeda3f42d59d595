//! The program `fieldstone`. All of it is in the library of this crate.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: fieldstone::env::real::HugePages = fieldstone::env::real::HugePages;

fn main() -> ExitCode {
    fieldstone_cli::main()
}
