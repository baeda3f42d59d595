//! Files that a user names: opened without waiting for the other end of a pipe, and refused where they are not plain files.
//! The standard input, as `/dev/stdin`, is taken.

use std::io::{self, Read};
use std::path::Path;

pub use fieldstone_core::env::real::{open_named as open, read_named as read};

/// A whole text.
///
/// Errors: those of [`open`]; `InvalidData` where it is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
}
