//! Requirements of a test that may be absent: a program, a folder of data, a permission.
//!
//! A test runs if the requirement is present and is skipped otherwise. It fails if the requirement is absent
//! and `FIELDSTONE_REQUIRE` holds its name or `all`. CI sets `all`, so that no test is skipped silently.
//! `CONTRIBUTING.md` lists the names.
//!
//! ```
//! use fieldstone_testkit::require::require;
//! if !require("thing", std::path::Path::new("/").exists(), "there is no thing") {
//!     return;
//! }
//! ```

use std::process::Command;

/// Whether to continue: false skips the test. Panics if `FIELDSTONE_REQUIRE` holds `name` or `all`.
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

/// Whether a program is installed; the requirement has its name.
#[track_caller]
pub fn program(name: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {name}")]).output();
    require(name, found.is_ok_and(|done| done.status.success()), &format!("{name} is not installed"))
}

/// Whether the long versions of fault tests run: `FIELDSTONE_CRASH=full`.
pub fn full() -> bool {
    std::env::var("FIELDSTONE_CRASH").is_ok_and(|value| value == "full")
}
