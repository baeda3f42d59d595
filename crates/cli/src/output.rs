//! Where the program's words go: data to stdout, through one buffer; everything else to stderr.
//!
//! Invariant: no failure to print is a panic. A closed pipe ends the program quietly
//! ([`Stop::PipeClosed`]); a full disk behind stdout is an error like any other.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use fieldstone::{Error, ErrorKind};
use serde_json::Value;

/// Why a verb stops early.
#[derive(Debug)]
pub enum Stop {
    /// Something went wrong.
    Error(Error),
    /// Nobody reads our output any more, as in `fieldstone list … | head`.
    PipeClosed,
}

/// What a verb returns.
pub type Done<T = ()> = Result<T, Stop>;

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Error(error)
    }
}

/// A failure to print.
impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Stop::PipeClosed,
            _ => Stop::Error(Error::unavailable(format!("cannot write the output: {error}"))),
        }
    }
}

/// An I/O failure on a file that the user named.
pub fn file_error(action: &str, path: &Path, cause: io::Error) -> Stop {
    let hint = match cause.kind() {
        io::ErrorKind::NotFound => Some("check the path"),
        io::ErrorKind::PermissionDenied => Some("check the file's permissions"),
        _ => None,
    };
    let kind = match cause.kind() {
        io::ErrorKind::IsADirectory => ErrorKind::Invalid,
        _ => Error::io(action, path, io::Error::from(cause.kind())).kind(),
    };
    let error = Error::new(kind, format!("cannot {action} {}: {cause}", path.display()));
    Stop::Error(match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    })
}

/// Stdout and how it is to look.
pub struct Out {
    to: BufWriter<Box<dyn Write>>,
    json: bool,
    quiet: bool,
    terminal: bool,
}

impl Out {
    /// The process's stdout.
    pub fn stdout(json: bool, quiet: bool) -> Out {
        // Past std's own line buffer, which would cut binary data at every newline.
        let to: Box<dyn Write> = match io::stdout().as_fd().try_clone_to_owned() {
            Ok(fd) => Box::new(File::from(fd)),
            Err(_) => Box::new(io::stdout()),
        };
        Out { to: BufWriter::with_capacity(1 << 16, to), json, quiet, terminal: io::stdout().is_terminal() }
    }

    /// Output into any writer.
    pub fn to(writer: Box<dyn Write>, json: bool) -> Out {
        Out { to: BufWriter::new(writer), json, quiet: true, terminal: false }
    }

    /// Whether one JSON document is wanted.
    pub fn json(&self) -> bool {
        self.json
    }

    /// Whether a person looks at stdout.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether colours are wanted on stdout.
    pub fn colour(&self) -> bool {
        self.terminal && colours_allowed()
    }

    /// Prints one JSON document.
    pub fn document(&mut self, value: &Value) -> Done {
        serde_json::to_writer_pretty(&mut self.to, value).map_err(io::Error::from)?;
        Ok(self.to.write_all(b"\n")?)
    }

    /// Prints one JSON value on a line of its own.
    pub fn json_line(&mut self, value: &Value) -> Done {
        self.json_value(value)?;
        Ok(self.to.write_all(b"\n")?)
    }

    /// Prints one JSON value.
    pub fn json_value(&mut self, value: &Value) -> Done {
        Ok(serde_json::to_writer(&mut self.to, value).map_err(io::Error::from)?)
    }

    /// A message for people, on stderr.
    pub fn note(&self, message: impl fmt::Display) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{message}");
        }
    }

    /// A line on stderr in place of the one that was shown so before: for a terminal.
    pub fn status(&self, message: impl fmt::Display) {
        if !self.quiet {
            let _ = write!(io::stderr(), "\r\x1b[K{message}");
        }
    }

    /// Prints what is still buffered.
    pub fn finish(&mut self) -> Done {
        Ok(self.to.flush()?)
    }
}

impl Write for Out {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.to.write(data)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// `1 field`, `2 fields`.
pub fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Prints an error and its hint on stderr.
pub fn report(error: &Error) {
    let (red, cyan, plain) = match io::stderr().is_terminal() && colours_allowed() {
        true => ("\x1b[1;31m", "\x1b[36m", "\x1b[0m"),
        false => ("", "", ""),
    };
    let mut stderr = io::stderr();
    let _ = writeln!(stderr, "{red}error:{plain} {}", error.message());
    let usual = match error.kind() {
        ErrorKind::Internal => Some("this is a defect of fieldstone: please report it"),
        ErrorKind::Corrupt => Some("fieldstone verify names all that is damaged; the rest can be read"),
        _ => None,
    };
    if let Some(hint) = error.hint().or(usual) {
        let _ = writeln!(stderr, "{cyan}hint:{plain} {hint}");
    }
}

fn colours_allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}
