//! What an error of PostgreSQL means to the caller: its SQLSTATE becomes one of our kinds.
//!
//! A lost connection is Unavailable and the next transaction connects again; tables that are gone are
//! Corrupt, so that the index is built anew.

use fieldstone_core::{Error, ErrorKind};

/// Sorts an error that came up while doing `action` at `place` ("host:port/database") into a kind.
pub(super) fn sorted(action: &str, place: &str, cause: postgres::Error) -> Error {
    let (kind, hint) = match cause.code() {
        Some(state) => of_state(state.code()),
        None if cause.is_closed() || is_io(&cause) => {
            (ErrorKind::Unavailable, Some("see whether the server runs, then try again"))
        }
        None => (ErrorKind::Internal, None),
    };
    let said = match cause.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        None => deepest(&cause),
    };
    let error = Error::new(kind, format!("PostgreSQL at {place}: cannot {action}: {said}"));
    let error = match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    };
    if cause.code().is_some_and(|state| state.code() == LOCK_NOT_AVAILABLE) {
        return error.with_source(super::super::Busy(said));
    }
    error.with_source(cause)
}

/// Another one holds a lock for longer than `lock_timeout`.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The error of a connection that could not be made: without a SQLSTATE it is a matter of reaching the
/// server, or of a password that was not given.
pub(super) fn of_connecting(place: &str, cause: postgres::Error) -> Error {
    if cause.code().is_some() || is_io(&cause) || cause.is_closed() {
        return sorted("connect", place, cause);
    }
    let said = deepest(&cause);
    if said.contains("password") || said.contains("authentication") {
        return Error::denied(format!("PostgreSQL at {place}: cannot connect: {said}"))
            .with_hint("put the password into the URL or into PGPASSWORD")
            .with_source(cause);
    }
    Error::unavailable(format!("PostgreSQL at {place}: cannot connect: {said}"))
        .with_hint("check host and port of the catalog's URL, and that the server runs")
        .with_source(cause)
}

fn of_state(code: &str) -> (ErrorKind, Option<&'static str>) {
    use ErrorKind::{Conflict, Corrupt, Denied, Internal, NotFound, Unavailable};
    match code {
        "3D000" => (NotFound, Some("create the database first: createdb NAME")),
        "42501" => (Denied, Some("the role needs CREATE on the database and its own schemas")),
        "25006" => (Denied, Some("the server is a standby or read-only: name the primary")),
        "42P01" | "3F000" | "42703" | "42883" | "XX001" | "XX002" => {
            (Corrupt, Some("the tables are built again by `fieldstone rebuild`"))
        }
        LOCK_NOT_AVAILABLE => (Unavailable, Some("another process is applying to this catalog: try again")),
        "53100" => (Unavailable, Some("the server's disk is full: free some space and try again")),
        "53300" => (Unavailable, Some("raise max_connections or close other clients")),
        "23505" => (Conflict, None),
        _ => match code.get(..2) {
            Some("08" | "53" | "57" | "58") => {
                (Unavailable, Some("see whether the server runs, then try again"))
            }
            Some("40") => (Unavailable, Some("try again")),
            Some("28") => (Denied, Some("check user and password of the catalog's URL")),
            _ => (Internal, None),
        },
    }
}

fn is_io(error: &postgres::Error) -> bool {
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(e) = at {
        if e.is::<std::io::Error>() {
            return true;
        }
        at = e.source();
    }
    false
}

fn deepest(error: &postgres::Error) -> String {
    let mut said = error.to_string();
    let mut at = std::error::Error::source(error);
    while let Some(e) = at {
        let inner = e.to_string();
        if !said.contains(&inner) {
            said = format!("{said}: {inner}");
        }
        at = e.source();
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_become_kinds() {
        for (code, kind) in [
            ("08006", ErrorKind::Unavailable),
            ("57P01", ErrorKind::Unavailable),
            ("53100", ErrorKind::Unavailable),
            ("58030", ErrorKind::Unavailable),
            ("40001", ErrorKind::Unavailable),
            ("28P01", ErrorKind::Denied),
            ("42501", ErrorKind::Denied),
            ("3D000", ErrorKind::NotFound),
            ("42P01", ErrorKind::Corrupt),
            ("XX001", ErrorKind::Corrupt),
            ("42601", ErrorKind::Internal),
        ] {
            assert_eq!(of_state(code).0, kind, "{code}");
        }
    }
}
