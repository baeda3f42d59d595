//! The SHA-256 of files that programs in several languages must write identically.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The sum in `tests/array-files.sha256` for a level: over the files of the described case.
pub fn of_level(level: u64) -> &'static str {
    let text = include_str!("../../../tests/array-files.sha256");
    let found = text.lines().filter_map(|line| line.split_once("  level "));
    let mut found = found.filter(|(_, number)| number.parse() == Ok(level));
    found.next().unwrap().0
}

/// The sum over names and bytes of all netCDF files below a folder.
pub fn of_folder(folder: &Path) -> String {
    let mut paths = Vec::new();
    collect(folder, &mut paths);
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, std::fs::read(path).unwrap())
    };
    of_files(paths.into_iter().map(read).collect())
}

/// The sum over names and bytes of files, in the order of their names.
pub fn of_files(mut files: Vec<(String, Vec<u8>)>) -> String {
    files.sort();
    let mut sum = Sha256::new();
    for (name, bytes) in files {
        sum.update(name);
        sum.update(bytes);
    }
    sum.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "nc") {
            files.push(path);
        }
    }
}
