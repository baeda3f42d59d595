//! Results of calls: a status for the caller, and the last error of each thread.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use fieldstone::{Error, ErrorKind, Result};

use crate::arguments::text;

/// The result of a call; the numbers are those of the program's exit codes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum fs_status {
    /// Success.
    FS_OK = 0,
    /// A defect of Fieldstone: report it.
    FS_INTERNAL = 1,
    /// The call itself is wrong: correct it.
    FS_INVALID = 2,
    /// The requested object does not exist.
    FS_NOT_FOUND = 3,
    /// Two statements contradict each other.
    FS_CONFLICT = 4,
    /// Stored bytes are damaged; the message names the file.
    FS_CORRUPT = 5,
    /// The caller lacks permission.
    FS_DENIED = 6,
    /// The medium failed or is full: repair it and try again.
    FS_UNAVAILABLE = 7,
}

/// The status of a kind.
fn status_of(kind: ErrorKind) -> fs_status {
    match kind {
        ErrorKind::Invalid => fs_status::FS_INVALID,
        ErrorKind::NotFound => fs_status::FS_NOT_FOUND,
        ErrorKind::Conflict => fs_status::FS_CONFLICT,
        ErrorKind::Corrupt => fs_status::FS_CORRUPT,
        ErrorKind::Denied => fs_status::FS_DENIED,
        ErrorKind::Unavailable => fs_status::FS_UNAVAILABLE,
        _ => fs_status::FS_INTERNAL,
    }
}

struct LastError {
    status: c_int,
    code: CString,
    retryable: bool,
    message: CString,
    hint: CString,
}

thread_local! {
    static LAST: RefCell<Option<LastError>> = const { RefCell::new(None) };
}

/// C text of any text: a zero byte inside would end it early, so it is shown as U+FFFD.
pub fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default()
}

/// Remembers an error as this thread's last, and returns its status.
pub fn remember(error: &Error) -> c_int {
    let status = status_of(error.kind()) as c_int;
    let (message, hint) = (c_text(error.message()), c_text(error.hint().unwrap_or("")));
    let (code, retryable) = (c_text(error.code().as_str()), error.is_retryable());
    // An ending thread no longer has a place for it; its status still reports the error.
    let _ = LAST.try_with(|last| last.replace(Some(LastError { status, code, retryable, message, hint })));
    status
}

/// A part of this thread's last error, or `none` if it has none.
fn last<T>(none: T, get: impl FnOnce(&LastError) -> T) -> T {
    LAST.try_with(|last| last.borrow().as_ref().map(get)).ok().flatten().unwrap_or(none)
}

/// Runs the body of a call: success is 0, an error is remembered, a panic is `Internal`.
pub fn call(body: impl FnOnce() -> Result<()>) -> c_int {
    // A panic may leave half-done work only behind locks, which the store treats as broken or repairs.
    let result = catch_unwind(AssertUnwindSafe(body));
    match result.unwrap_or_else(|panic| Err(panicked(&*panic))) {
        Ok(()) => fs_status::FS_OK as c_int,
        Err(error) => remember(&error),
    }
}

fn panicked(panic: &(dyn Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("a panic");
    Error::internal(format!("a defect of Fieldstone: {text}"))
        .with_hint("report it with what the program did last")
}

/// The kind of this thread's last error; FS_OK if none of its calls has failed.
#[unsafe(no_mangle)]
pub extern "C" fn fs_error_kind() -> c_int {
    last(fs_status::FS_OK as c_int, |error| error.status)
}

/// The code of this thread's last error, one of the FS_CODE_ texts, for a program that reacts to particular
/// errors; "" if no call has failed. Valid as long as the message.
#[unsafe(no_mangle)]
pub extern "C" fn fs_error_code() -> *const c_char {
    last(c"".as_ptr(), |error| error.code.as_ptr())
}

/// 1 if the failed call may succeed later without any change, for example because another process holds a
/// lock; else 0.
#[unsafe(no_mangle)]
pub extern "C" fn fs_error_is_retryable() -> c_int {
    last(0, |error| c_int::from(error.retryable))
}

/// The message of this thread's last failed call; "" if none failed. Valid until this thread's next failing
/// call.
#[unsafe(no_mangle)]
pub extern "C" fn fs_error_message() -> *const c_char {
    last(c"".as_ptr(), |error| error.message.as_ptr())
}

/// A remedy for this thread's last error; "" if none is known. Valid as long as the message.
#[unsafe(no_mangle)]
pub extern "C" fn fs_error_hint() -> *const c_char {
    last(c"".as_ptr(), |error| error.hint.as_ptr())
}

/// The name of a status: "NotFound" for FS_NOT_FOUND, "Ok" for FS_OK, "" for a number that is not a status.
#[unsafe(no_mangle)]
pub extern "C" fn fs_status_name(status: c_int) -> *const c_char {
    let name: &CStr = match status {
        0 => c"Ok",
        1 => c"Internal",
        2 => c"Invalid",
        3 => c"NotFound",
        4 => c"Conflict",
        5 => c"Corrupt",
        6 => c"Denied",
        7 => c"Unavailable",
        _ => c"",
    };
    name.as_ptr()
}

/// For bindings to other languages: makes an error of the binding this thread's last error, and returns
/// `status`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn fs_fail(status: c_int, message: *const c_char, hint: *const c_char) -> c_int {
    call(|| {
        // SAFETY: the caller passes texts that end in a zero byte, or null.
        let message = unsafe { text(message, "message") }?;
        let kind = ErrorKind::ALL.into_iter().find(|kind| c_int::from(kind.exit_code()) == status);
        let error = Error::new(
            kind.ok_or_else(|| Error::invalid(format!("{status} is not the status of an error")))?,
            message,
        );
        if hint.is_null() {
            return Err(error);
        }
        // SAFETY: as above, and it is not null.
        Err(error.with_hint(unsafe { text(hint, "hint") }?))
    })
}

/// The version of this library, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn fs_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen() -> (c_int, String, String) {
        // SAFETY: both point to texts of this thread, and no call replaces them before the reads.
        let (message, hint) =
            unsafe { (CStr::from_ptr(fs_error_message()), CStr::from_ptr(fs_error_hint())) };
        (fs_error_kind(), message.to_str().unwrap().to_owned(), hint.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_panic_becomes_internal() {
        assert_eq!(call(|| panic!("lost {}", "count")), fs_status::FS_INTERNAL as c_int);
        let (kind, message, hint) = seen();
        assert_eq!((kind, message.as_str()), (1, "a defect of Fieldstone: lost count"));
        assert!(hint.contains("report"));
    }

    #[test]
    fn success_keeps_the_last_error_and_threads_have_their_own() {
        assert_eq!(call(|| Err(Error::denied("no\0t you").with_hint("ask"))), 6);
        assert_eq!(call(|| Ok(())), 0);
        assert_eq!(seen(), (6, "no\u{fffd}t you".into(), "ask".into()));
        std::thread::spawn(|| assert_eq!(seen(), (0, String::new(), String::new()))).join().unwrap();
    }

    #[test]
    fn the_last_error_has_a_code() {
        let of = |code: fieldstone::Code| {
            call(|| Err(code.error("x")));
            // SAFETY: a text of this thread, and no call replaces it before the read.
            let text = unsafe { CStr::from_ptr(fs_error_code()) };
            (text.to_str().unwrap().to_owned(), fs_error_is_retryable())
        };
        std::thread::spawn(|| assert!(last(true, |_| false) && fs_error_is_retryable() == 0)).join().unwrap();
        for &code in fieldstone::Code::ALL {
            assert_eq!(of(code), (code.as_str().to_owned(), c_int::from(code.is_retryable())));
        }
    }

    #[test]
    fn every_kind_has_its_number_and_name() {
        for kind in ErrorKind::ALL {
            // SAFETY: a constant text.
            let name = unsafe { CStr::from_ptr(fs_status_name(c_int::from(kind.exit_code()))) };
            assert_eq!(name.to_str().unwrap(), kind.name());
        }
        for kind in ErrorKind::ALL {
            assert_eq!(status_of(kind) as u8, kind.exit_code());
        }
    }
}
