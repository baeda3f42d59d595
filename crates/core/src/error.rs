//! The errors of Fieldstone. A kind says what the caller can do, a code what exactly went wrong; the message says
//! which key, file, keyword or offset is at fault; the hint says the next step. The kind follows from the code.

mod code;

use std::error::Error as StdError;
use std::fmt;
use std::path::Path;

pub use code::Code;

/// Shorthand used by every crate of Fieldstone.
pub type Result<T> = std::result::Result<T, Error>;

/// What the caller can do about an error. The list only ever grows at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// What was asked for does not exist: ask for something else, or use a lenient read.
    NotFound,
    /// The call itself is wrong (type, range, keyword, syntax): correct it.
    Invalid,
    /// Two statements contradict each other: look at both and decide.
    Conflict,
    /// Stored bytes fail their checksum or grammar: restore the named file; the rest is readable.
    Corrupt,
    /// The caller may not do this: ask the owner named in the message.
    Denied,
    /// The medium failed or is full: mend it and try again.
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

    /// Exit code of the program: 1 internal, 2 invalid, 3 not found, 4 conflict, 5 corrupt,
    /// 6 denied, 7 unavailable.
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
    /// An error of a code, or of a kind without a narrower one, with a message that names what is at fault.
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

    /// An I/O failure of `action` ("write", "open") on `path`, sorted into a kind.
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

    /// Says more exactly what went wrong than the kind that it was made with.
    pub fn with_code(mut self, code: Code) -> Error {
        self.0.code = code;
        self
    }

    /// Adds the next step.
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.0.hint = Some(hint.into());
        self
    }

    /// Adds the cause.
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Error {
        self.0.source = Some(Box::new(source));
        self
    }

    /// Puts `what` before the message, keeping code, hint and cause.
    pub fn context(mut self, what: impl fmt::Display) -> Error {
        self.0.message = format!("{what}: {}", self.0.message);
        self
    }

    /// The same failure for a second listener (a sealed log reports it to every later caller).
    pub fn replicate(&self) -> Error {
        let mut copy = Error::new(self.0.code, self.0.message.clone());
        copy.0.hint = self.0.hint.clone();
        copy
    }

    /// What the caller can do.
    pub fn kind(&self) -> ErrorKind {
        self.0.code.kind()
    }

    /// What exactly went wrong, for a program that acts on it.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Whether the same call may succeed later without anybody changing anything: others hold a lock, a server
    /// restarts.
    pub fn is_retryable(&self) -> bool {
        self.0.code.is_retryable()
    }

    /// The message without the hint.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The next step, where one is known.
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
