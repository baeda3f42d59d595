//! Maps errors of PostgreSQL to our codes by their SQLSTATE.
//!
//! A lost connection is Unavailable, and the next transaction connects again. Missing tables are Corrupt, so
//! that the index is built again.

use fieldstone_core::{Code, Error};

/// Maps an error that occurred during `action` at `place` ("host:port/database").
pub(super) fn sorted(action: &str, place: &str, cause: postgres::Error) -> Error {
    let (code, hint) = match cause.code() {
        Some(state) => of_state(state.code()),
        None if cause.is_closed() || is_io(&cause) => {
            (lost(&cause), Some("check that the server is running, then try again"))
        }
        None => (Code::Internal, None),
    };
    let said = match cause.as_db_error() {
        Some(db) => format!("{} (SQLSTATE {})", db.message(), db.code().code()),
        None => deepest(&cause),
    };
    let error = code.error(format!("PostgreSQL at {place}: cannot {action}: {said}"));
    let error = match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    };
    if cause.code().is_some_and(|state| state.code() == LOCK_NOT_AVAILABLE) {
        return error.with_source(super::super::Busy(said));
    }
    error.with_source(cause)
}

/// Another session holds a lock for longer than `lock_timeout`.
const LOCK_NOT_AVAILABLE: &str = "55P03";

/// The error of a failed connection: without a SQLSTATE, the server could not be reached or a password is
/// missing.
pub(super) fn of_connecting(place: &str, cause: postgres::Error) -> Error {
    if cause.code().is_some() || is_io(&cause) || cause.is_closed() {
        return sorted("connect", place, cause);
    }
    let said = deepest(&cause);
    if said.contains("password") || said.contains("authentication") {
        return Code::EngineDenied
            .error(format!("PostgreSQL at {place}: cannot connect: {said}"))
            .with_hint("put the password into the URL or into PGPASSWORD")
            .with_source(cause);
    }
    Code::EngineUnreachable
        .error(format!("PostgreSQL at {place}: cannot connect: {said}"))
        .with_hint("check the host and port in the catalog's URL, and that the server is running")
        .with_source(cause)
}

fn of_state(code: &str) -> (Code, Option<&'static str>) {
    use Code::{
        Conflict, DiskFull, EngineBusy, EngineDamaged, EngineDenied, EngineLost, Internal, IoFailed,
        NotFound, ReadOnly, Unavailable,
    };
    match code {
        "3D000" => (NotFound, Some("create the database first: createdb NAME")),
        "42501" => (EngineDenied, Some("the role needs CREATE on the database and its own schemas")),
        "25006" => (ReadOnly, Some("the server is a standby or read-only: give the URL of the primary")),
        "42P01" | "3F000" | "42703" | "42883" | "XX001" | "XX002" => {
            (EngineDamaged, Some("`fieldstone rebuild` builds the tables again"))
        }
        LOCK_NOT_AVAILABLE => (EngineBusy, Some("another process is applying to this catalog: try again")),
        "53100" => (DiskFull, Some("the server's disk is full: free some space and try again")),
        "53300" => (EngineBusy, Some("raise max_connections or close other clients")),
        "23505" => (Conflict, None),
        _ => match code.get(..2) {
            // The administrator is stopping the server, or it is starting.
            _ if code.starts_with("57P") => {
                (EngineLost, Some("check that the server is running, then try again"))
            }
            Some("08") => (EngineLost, Some("check that the server is running, then try again")),
            Some("58") => (IoFailed, Some("check that the server is running, then try again")),
            Some("53" | "57") => (Unavailable, Some("check that the server is running, then try again")),
            Some("40") => (EngineBusy, Some("try again")),
            Some("28") => (EngineDenied, Some("check the user and password in the catalog's URL")),
            _ => (Internal, None),
        },
    }
}

/// Classifies the end of a connection: a server that restarts refuses or ends connections for a while; a
/// wrong address stays wrong.
fn lost(error: &postgres::Error) -> Code {
    use std::io::ErrorKind as Io;
    let mut at: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(e) = at {
        if let Some(cause) = e.downcast_ref::<std::io::Error>() {
            return match cause.kind() {
                Io::ConnectionRefused | Io::ConnectionReset | Io::ConnectionAborted | Io::BrokenPipe => {
                    Code::EngineLost
                }
                Io::UnexpectedEof | Io::TimedOut | Io::WouldBlock => Code::EngineLost,
                _ => Code::EngineUnreachable,
            };
        }
        at = e.source();
    }
    Code::EngineLost
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
    fn states_become_codes() {
        for (state, code) in [
            ("08006", Code::EngineLost),
            ("57P01", Code::EngineLost),
            ("53100", Code::DiskFull),
            ("58030", Code::IoFailed),
            ("40001", Code::EngineBusy),
            ("28P01", Code::EngineDenied),
            ("42501", Code::EngineDenied),
            ("3D000", Code::NotFound),
            ("42P01", Code::EngineDamaged),
            ("XX001", Code::EngineDamaged),
            ("42601", Code::Internal),
        ] {
            assert_eq!(of_state(state).0, code, "{state}");
        }
    }
}
