//! Error codes: a code once assigned stays.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use fieldstone_core::{Code, Error, ErrorKind};

/// Text, kind and retry flag of each code, in the order of their assignment: add a new code at the end, and never
/// change or remove a line.
const GIVEN_OUT: &str = include_str!("codes.txt");

fn line(code: Code) -> String {
    let again = if code.is_retryable() { "retry" } else { "final" };
    format!("{code} {} {again}", code.kind().name())
}

#[test]
fn a_code_that_was_given_out_stays_what_it_is() {
    let given: Vec<&str> = GIVEN_OUT.lines().collect();
    let known: HashSet<String> = Code::ALL.iter().map(|&code| line(code)).collect();
    for given in &given {
        assert!(known.contains(*given), "`{given}` was given out, and is gone or means something else");
    }
    for &code in Code::ALL {
        assert!(given.contains(&line(code).as_str()), "add `{}` at the end of codes.txt", line(code));
    }
    assert_eq!(given.len(), Code::ALL.len());
}

#[test]
fn texts_are_words_with_dashes_and_lead_back() {
    for &code in Code::ALL {
        let text = code.as_str();
        assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b == b'-'), "{text}");
        assert!(!text.starts_with('-') && !text.ends_with('-') && !text.contains("--"), "{text}");
        assert_eq!(Code::of_text(text), Some(code));
        assert!(code.meaning().ends_with('.') && code.action().ends_with('.'), "{text}");
    }
    assert_eq!(Code::of_text("Internal"), None);
}

#[test]
fn each_kind_has_a_general_code_that_comes_first_and_is_final() {
    for kind in ErrorKind::ALL {
        let general = Code::from(kind);
        assert_eq!(general.kind(), kind);
        assert_eq!(Code::ALL.iter().find(|code| code.kind() == kind), Some(&general));
        let dashed =
            if kind == ErrorKind::NotFound { "not-found".to_owned() } else { kind.name().to_lowercase() };
        assert_eq!(general.as_str(), dashed);
        assert!(!general.is_retryable());
        assert_eq!(Error::new(kind, "x").code(), general);
    }
    assert_eq!(Error::conflict("x").code(), Code::Conflict);
}

#[test]
fn only_what_others_hold_for_a_while_may_be_retried() {
    for code in Code::ALL.iter().filter(|code| code.is_retryable()) {
        assert_eq!(code.kind(), ErrorKind::Unavailable, "{code}");
    }
    assert!(!Code::DiskFull.is_retryable() && !Code::OutOfMemory.is_retryable());
    assert!(Code::EngineBusy.is_retryable() && Code::EngineLost.is_retryable());
}

#[test]
fn the_systems_errors_have_codes() {
    let of = |cause: io::Error| Error::io("write", Path::new("/f"), cause).code();
    assert_eq!(of(io::ErrorKind::NotFound.into()), Code::FileNotFound);
    assert_eq!(of(io::Error::from_raw_os_error(13)), Code::PermissionDenied);
    assert_eq!(of(io::Error::from_raw_os_error(28)), Code::DiskFull);
    assert_eq!(of(io::Error::from_raw_os_error(24)), Code::ProcessLimit);
    assert_eq!(of(io::Error::from_raw_os_error(5)), Code::IoFailed);
    assert_eq!(of(io::Error::from_raw_os_error(30)).kind(), ErrorKind::Denied);
}

#[test]
fn a_code_survives_context_hint_and_replication() {
    let error = Code::RunExists.error("a").with_hint("b").context("c");
    assert_eq!((error.code(), error.kind(), error.message()), (Code::RunExists, ErrorKind::Conflict, "c: a"));
    assert_eq!(error.replicate().code(), Code::RunExists);
    assert_eq!(error.with_code(Code::EngineBusy).kind(), ErrorKind::Unavailable);
}
