//! Names as errors show them.

use fieldstone_format::catalog::{RunName, VariableName};

/// A run as an error shows it.
pub fn run_text(run: &RunName) -> String {
    match run.project.as_str() {
        "" => format!("'{}'", run.name),
        project => format!("'{}' of project '{project}'", run.name),
    }
}

/// A variable as an error shows it.
pub fn variable_text(variable: &VariableName) -> String {
    match variable.version {
        0 => format!("'{}'", variable.name),
        version => format!("'{}' version {version}", variable.name),
    }
}
