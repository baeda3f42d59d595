//! Outcomes that must be errors.

use fieldstone_core::{Error, ErrorKind, Result};

/// The error of an outcome that must be one of this kind.
#[track_caller]
pub fn error<T>(outcome: Result<T>, kind: ErrorKind) -> Error {
    match outcome {
        Ok(_) => panic!("succeeds, where {} is due", kind.name()),
        Err(e) if e.kind() == kind => e,
        Err(e) => panic!("{} is due, not {}: {e}", kind.name(), e.kind().name()),
    }
}
