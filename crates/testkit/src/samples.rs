//! Real files, and the Python that reads them beside us.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::require::require;

/// The folder of the checkout.
pub fn checkout() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    beside.canonicalize().unwrap_or(beside)
}

/// A real sample file or folder, from the folder that `FIELDSTONE_DATA` names, else from `../shared/data`
/// beside the checkout. `None` skips the test; the requirement's name is `data`.
#[track_caller]
pub fn sample(relative: &str) -> Option<PathBuf> {
    let data = std::env::var_os("FIELDSTONE_DATA").filter(|folder| !folder.is_empty());
    let path = data.map_or_else(|| checkout().join("../shared/data"), PathBuf::from).join(relative);
    let why = format!("no {}; FIELDSTONE_DATA names the folder of sample files", path.display());
    require("data", path.exists(), &why).then_some(path)
}

/// The Python that `FIELDSTONE_PYTHON` names, else that of `make build`, which may be absent.
pub fn python() -> PathBuf {
    let named = std::env::var_os("FIELDSTONE_PYTHON").map(PathBuf::from);
    named.unwrap_or_else(|| checkout().join(".venv/bin/python"))
}

/// That Python where it has these modules (`numpy, netCDF4`); `None` skips the test by the name `requirement`.
#[track_caller]
pub fn python_with(requirement: &str, modules: &str) -> Option<PathBuf> {
    let python = python();
    // Without the folder that the test runs in, whose files are no modules.
    let done = Command::new(&python).args(["-P", "-c", &format!("import {modules}")]).output();
    let why =
        format!("{} cannot import {modules}: make build test-tools makes one that can", python.display());
    require(requirement, done.is_ok_and(|done| done.status.success()), &why).then_some(python)
}
