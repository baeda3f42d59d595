//! What a test needs that may be absent: a program, a folder of data, a right.
//!
//! A test goes on where it is there, skips where it is not, and fails where `FIELDSTONE_REQUIRE` holds its name
//! or `all`. CI sets `all`, so that nothing is skipped in silence. The names are listed in `CONTRIBUTING.md`.
//!
//! ```
//! use fieldstone_testkit::require::require;
//! if !require("thing", std::path::Path::new("/").exists(), "there is no thing") {
//!     return;
//! }
//! ```

use std::process::Command;

/// Whether to go on: false skips, and panics where `FIELDSTONE_REQUIRE` holds `name` or `all`.
#[track_caller]
pub fn require(name: &str, condition: bool, why: &str) -> bool {
    let required = std::env::var("FIELDSTONE_REQUIRE").unwrap_or_default();
    assert!(condition || !is_required(&required, name), "{name} is required (FIELDSTONE_REQUIRE): {why}");
    if !condition {
        eprintln!("skipped, {name}: {why}");
    }
    condition
}

fn is_required(required: &str, name: &str) -> bool {
    required.split([',', ' ']).any(|word| word == name || word == "all")
}

/// Whether a program is installed; its name is that of the requirement.
#[track_caller]
pub fn program(name: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output();
    require(name, found.is_ok_and(|done| done.status.success()), &format!("{name} is not installed"))
}

/// Whether the long versions of fault tests run: `FIELDSTONE_CRASH=full`.
pub fn full() -> bool {
    std::env::var("FIELDSTONE_CRASH").is_ok_and(|value| value == "full")
}
