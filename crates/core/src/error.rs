//! The errors of Fieldstone. The kind of an error shows what the caller can do about it, and its code what exactly
//! went wrong. The message names the key, file, keyword or offset at fault, and the hint gives the next step. The
//! code determines the kind.

mod code;

use std::error::Error as StdError;
use std::fmt;
use std::path::Path;

pub use code::Code;

/// Shorthand used by every crate of Fieldstone.
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an error: it shows what the caller can do. The list only ever grows at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The object that the call asks for does not exist: ask for another, or use a lenient read.
    NotFound,
    /// The call itself is wrong (type, range, keyword, syntax): correct it.
    Invalid,
    /// Two statements contradict each other: look at both and decide.
    Conflict,
    /// Stored bytes fail their checksum or grammar: restore the named file; the rest is readable.
    Corrupt,
    /// The caller may not do this: ask the owner named in the message.
    Denied,
    /// The medium failed or is full: repair it and try again.
    Unavailable,
    /// A defect of Fieldstone: report it.
    Internal,
}

impl ErrorKind {
    /// Every kind, in the order of the program's exit codes.
    pub const ALL: [ErrorKind; 7] = [
        ErrorKind::Internal,
        ErrorKind::Invalid,
        ErrorKind::NotFound,
        ErrorKind::Conflict,
        ErrorKind::Corrupt,
        ErrorKind::Denied,
        ErrorKind::Unavailable,
    ];

    /// The kind's name, the same in Rust, Python, C and JSON.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "NotFound",
            ErrorKind::Invalid => "Invalid",
            ErrorKind::Conflict => "Conflict",
            ErrorKind::Corrupt => "Corrupt",
            ErrorKind::Denied => "Denied",
            ErrorKind::Unavailable => "Unavailable",
            ErrorKind::Internal => "Internal",
        }
    }

    /// Exit code of the program for each kind: 1 internal, 2 invalid, 3 not found, 4 conflict, 5 corrupt, 6 denied, 7
    /// unavailable.
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Internal => 1,
            ErrorKind::Invalid => 2,
            ErrorKind::NotFound => 3,
            ErrorKind::Conflict => 4,
            ErrorKind::Corrupt => 5,
            ErrorKind::Denied => 6,
            ErrorKind::Unavailable => 7,
        }
    }
}

/// An error of any part of Fieldstone.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    code: Code,
    message: String,
    hint: Option<String>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

macro_rules! constructor {
    ($($(#[$doc:meta])* $name:ident => $kind:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(message: impl Into<String>) -> Error {
            Error::new(Code::$kind, message)
        }
    )*};
}

impl Error {
    /// Makes an error from a code, or from a kind if no narrower code fits, and a message that names what is at
    /// fault.
    pub fn new(code: impl Into<Code>, message: impl Into<String>) -> Error {
        Error(Box::new(Inner { code: code.into(), message: message.into(), hint: None, source: None }))
    }

    constructor! {
        /// See [`ErrorKind::NotFound`].
        not_found => NotFound;
        /// See [`ErrorKind::Invalid`].
        invalid => Invalid;
        /// See [`ErrorKind::Conflict`].
        conflict => Conflict;
        /// See [`ErrorKind::Corrupt`].
        corrupt => Corrupt;
        /// See [`ErrorKind::Denied`].
        denied => Denied;
        /// See [`ErrorKind::Unavailable`].
        unavailable => Unavailable;
        /// See [`ErrorKind::Internal`].
        internal => Internal;
    }

    /// Makes an error from an I/O failure of `action` ("write", "open") on `path`; the cause decides the code.
    pub fn io(action: &str, path: &Path, cause: std::io::Error) -> Error {
        let code = Code::of_io(&cause);
        let hint = match code {
            Code::DiskFull => Some("free some space and archive again"),
            Code::PermissionDenied => Some("check the permissions of the store's folder"),
            _ => None,
        };
        let mut error = Error::new(code, format!("cannot {action} {}: {cause}", path.display()));
        error.0.hint = hint.map(str::to_owned);
        error.with_source(cause)
    }

    /// Replaces the code by a narrower one.
    pub fn with_code(mut self, code: Code) -> Error {
        self.0.code = code;
        self
    }

    /// Adds a hint: the next step.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the cause.
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Error {
        self.0.source = Some(Box::new(source));
        self
    }

    /// Puts `what` before the message, and keeps code, hint and cause.
    pub fn context(mut self, what: impl fmt::Display) -> Error {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// Copies this error for another caller: a sealed log reports the same failure to every later call.
    pub fn replicate(&self) -> Error {
        let mut copy = Error::new(self.0.code, self.0.message.clone());
        copy.0.hint = self.0.hint.clone();
        copy
    }

    /// The kind: what the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.0.code.kind()
    }

    /// The code: what exactly went wrong, for a program that acts on it.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Whether the same call may succeed later, although no one changes anything: another process holds a lock, or a
    /// server restarts.
    pub fn is_retryable(&self) -> bool {
        self.0.code.is_retryable()
    }

    /// The message without the hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The next step, if one is known.
    pub fn hint(&self) -> Option<&str> {
        self.0.hint.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)?;
        match &self.0.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_ref().map(|s| s.as_ref() as &(dyn StdError + 'static))
    }
}
