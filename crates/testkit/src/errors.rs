//! Outcomes that must be errors.

use fieldstone_core::{Error, ErrorKind, Result};

/// The error of an outcome, which must be of this kind.
#[track_caller]
pub fn error<T>(outcome: Result<T>, kind: ErrorKind) -> Error {
    match outcome {
        Ok(_) => panic!("succeeds, but {} is expected", kind.name()),
        Err(e) if e.kind() == kind => e,
        Err(e) => panic!("{} is expected, not {}: {e}", kind.name(), e.kind().name()),
    }
}
