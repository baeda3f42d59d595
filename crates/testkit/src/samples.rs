//! Real files, and a Python that reads them for comparison.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::require::require;

/// The folder of the checkout.
pub fn checkout() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    beside.canonicalize().unwrap_or(beside)
}

/// A real sample file or folder, from the folder in `FIELDSTONE_DATA`, or else from `../shared/data` next to
/// the checkout. `None` skips the test; the requirement's name is `data`.
#[track_caller]
pub fn sample(relative: &str) -> Option<PathBuf> {
    let data = std::env::var_os("FIELDSTONE_DATA").filter(|folder| !folder.is_empty());
    let path = data.map_or_else(|| checkout().join("../shared/data"), PathBuf::from).join(relative);
    let why = format!("no {}; FIELDSTONE_DATA names the folder of sample files", path.display());
    require("data", path.exists(), &why).then_some(path)
}

/// The Python of `FIELDSTONE_PYTHON`, or else that of `make build`, which may be absent.
pub fn python() -> PathBuf {
    let named = std::env::var_os("FIELDSTONE_PYTHON").map(PathBuf::from);
    named.unwrap_or_else(|| checkout().join(".venv/bin/python"))
}

/// That Python, if it has these modules (`numpy, netCDF4`); `None` skips the test under the name
/// `requirement`.
#[track_caller]
pub fn python_with(requirement: &str, modules: &str) -> Option<PathBuf> {
    let python = python();
    // -P leaves out the folder in which the test runs, whose files are not modules to import.
    let done = Command::new(&python).args(["-P", "-c", &format!("import {modules}")]).output();
    let why =
        format!("{} cannot import {modules}: make build test-tools makes one with them", python.display());
    require(requirement, done.is_ok_and(|done| done.status.success()), &why).then_some(python)
}
