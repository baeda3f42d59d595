//! Files that a user names: opened without waiting for the other end of a pipe, and refused if they are not plain
//! files. The standard input, as `/dev/stdin`, is accepted.

use std::io::{self, Read};
use std::path::Path;

pub use fieldstone_core::env::real::{open_named as open, read_named as read};

/// Reads a whole text.
///
/// Errors: those of [`open`]; `InvalidData` if it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}
