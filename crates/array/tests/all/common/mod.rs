//! What tests of containers share: requirements that CI may not skip, and real sample files.
#![allow(dead_code, clippy::unwrap_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether to go on: false skips, and panics where `FIELDSTONE_REQUIRE` holds `name` or `all`.
pub fn require(name: &str, condition: bool, why: &str) -> bool {
    let required = std::env::var("FIELDSTONE_REQUIRE").unwrap_or_default();
    let required = required.split([',', ' ']).any(|word| word == name || word == "all");
    assert!(condition || !required, "{name} is required (FIELDSTONE_REQUIRE): {why}");
    if !condition {
        eprintln!("skipped, {name}: {why}");
    }
    condition
}

/// A real sample file or folder, from FIELDSTONE_DATA or the folder of them beside the checkout.
pub fn sample(relative: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let path = std::env::var_os("FIELDSTONE_DATA").map_or(beside, PathBuf::from).join(relative);
    require("data", path.exists(), "FIELDSTONE_DATA names the folder of sample files").then_some(path)
}

/// Whether a program is installed.
pub fn program(name: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output();
    require(name, found.is_ok_and(|done| done.status.success()), "it is not installed")
}
