//! The program's output: data go to stdout, through one buffer; everything else goes to stderr.
//!
//! Invariant: no failure to print is a panic. A closed pipe ends the program quietly
//! ([`EarlyEnd::PipeClosed`]); a full disk behind stdout is an error like any other.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;

use fieldstone::{Code, Error, ErrorKind, json};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use serde_json::{Value, json};

use crate::table;

/// Why a verb stops early.
#[derive(Debug)]
pub enum EarlyEnd {
    /// Something went wrong.
    Error(Error),
    /// Nobody reads our output any more, as in `fieldstone list … | head`.
    PipeClosed,
    /// Something that the program ran ended with this code, and all was said.
    Exit(u8),
}

/// The result of a verb.
pub type Done<T = ()> = Result<T, EarlyEnd>;

impl From<Error> for EarlyEnd {
    fn from(error: Error) -> EarlyEnd {
        EarlyEnd::Error(error)
    }
}

/// A failure to print.
impl From<io::Error> for EarlyEnd {
    fn from(error: io::Error) -> EarlyEnd {
        match error.kind() {
            io::ErrorKind::BrokenPipe => EarlyEnd::PipeClosed,
            _ => {
                let code = Code::of_io(&error);
                let code = if code.kind() == ErrorKind::Unavailable { code } else { Code::IoFailed };
                EarlyEnd::Error(code.error(format!("cannot write the output: {error}")))
            }
        }
    }
}

/// An I/O failure on a file that the user named.
pub fn file_error(action: &str, path: &Path, cause: io::Error) -> EarlyEnd {
    EarlyEnd::Error(file_failed(action, path, cause))
}

/// The same, for what gives an error on.
pub fn file_failed(action: &str, path: &Path, cause: io::Error) -> Error {
    let hint = match cause.kind() {
        io::ErrorKind::NotFound => Some("check the path"),
        io::ErrorKind::PermissionDenied => Some("check the file's permissions"),
        _ => None,
    };
    let code = match cause.kind() {
        io::ErrorKind::IsADirectory => Code::FileKind,
        _ => Code::of_io(&cause),
    };
    let error = code.error(format!("cannot {action} {}: {cause}", path.display()));
    match hint {
        Some(hint) => error.with_hint(hint),
        None => error,
    }
}

/// The format of stdout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// Lines and tables.
    #[default]
    Text,
    /// One JSON document.
    Json,
    /// One JSON object a line, as they are found.
    JsonLines,
}

/// Stdout and how it is to look.
pub struct Out {
    to: BufWriter<Box<dyn Write>>,
    format: Format,
    quiet: bool,
    terminal: bool,
    /// Columns that tables and pictures are laid out for; `None` where a program reads.
    width: Option<usize>,
    /// Lines or items so far.
    lines: u64,
}

impl Out {
    /// The process's stdout; with `width`, it is laid out as a terminal with that many columns.
    pub fn stdout(format: Format, quiet: bool, width: Option<usize>) -> Out {
        // Past std's own line buffer, which would cut binary data at every newline.
        let to: Box<dyn Write> = match io::stdout().as_fd().try_clone_to_owned() {
            Ok(fd) => Box::new(File::from(fd)),
            Err(_) => Box::new(io::stdout()),
        };
        let terminal = io::stdout().is_terminal();
        let width = width.or_else(|| terminal.then(terminal_width));
        Out { to: BufWriter::with_capacity(1 << 16, to), format, quiet, terminal, width, lines: 0 }
    }

    /// Whether somebody may still read what is printed: not where stdout is a pipe whose reader is gone.
    pub fn is_read(&self) -> bool {
        let stdout = io::stdout();
        let mut polled = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
        // Both are reported without being asked for. Linux opens a pipe without a name whether or not it has a reader,
        // so that opening /proc/self/fd/1 would not tell.
        let gone = PollFlags::POLLERR | PollFlags::POLLHUP;
        let looked = poll(&mut polled, PollTimeout::ZERO);
        looked.is_err() || !polled[0].revents().is_some_and(|events| events.intersects(gone))
    }

    /// The text that `write` prints, for tests.
    #[cfg(test)]
    pub fn captured(width: Option<usize>, write: impl FnOnce(&mut Out) -> Done) -> String {
        #[derive(Clone, Default)]
        struct Shared(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);
        impl Write for Shared {
            fn write(&mut self, data: &[u8]) -> io::Result<usize> {
                self.0.borrow_mut().write(data)
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let shared = Shared::default();
        let to = BufWriter::new(Box::new(shared.clone()) as Box<dyn Write>);
        let mut out = Out { to, format: Format::Text, quiet: true, terminal: false, width, lines: 0 };
        write(&mut out).unwrap();
        out.finish().unwrap();
        let bytes = shared.0.borrow().clone();
        String::from_utf8(bytes).unwrap()
    }

    /// Whether JSON is wanted, as one document or line by line.
    pub fn json(&self) -> bool {
        self.format != Format::Text
    }

    /// The format of stdout.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The options that ask for the same, for further calls.
    pub fn options(&self) -> Vec<String> {
        let format = match self.format {
            Format::Text => None,
            Format::Json => Some("--json"),
            Format::JsonLines => Some("--jsonl"),
        };
        format.into_iter().chain(self.quiet.then_some("--quiet")).map(str::to_owned).collect()
    }

    /// Columns that a person sees; `None` where a program reads.
    pub fn width(&self) -> Option<usize> {
        self.width
    }

    /// Whether a person looks at stdout.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// Whether colours are wanted on stdout.
    pub fn colour(&self) -> bool {
        self.terminal && colours_allowed()
    }

    /// Prints one JSON document: over several lines, or on one where JSON lines are wanted.
    pub fn document(&mut self, value: &Value) -> Done {
        match self.format {
            Format::JsonLines => self.json_value(value)?,
            _ => serde_json::to_writer_pretty(&mut self.to, value).map_err(io::Error::from)?,
        }
        Ok(self.to.write_all(b"\n")?)
    }

    /// Prints items as JSON, as they come: the list `name` of one document, or a line each.
    pub fn items(&mut self, name: &str, items: impl Iterator<Item = fieldstone::Result<Value>>) -> Done {
        let lines = self.format == Format::JsonLines;
        if !lines {
            write!(self.to, "{{\"{name}\": [")?;
        }
        let mut failed = None;
        for (i, item) in items.enumerate() {
            let item = match item {
                Ok(item) => item,
                // The document is closed all the same, so that what there is can be read.
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            };
            if !lines {
                self.to.write_all(if i == 0 { b"\n" } else { b",\n" })?;
            }
            self.json_value(&item)?;
            if lines {
                self.to.write_all(b"\n")?;
            }
            self.line_done()?;
        }
        self.to.write_all(if lines { b"" } else { b"\n]}\n" })?;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Prints a text as it is, whatever the width.
    pub fn text(&mut self, text: impl AsRef<str>) -> Done {
        Ok(self.to.write_all(text.as_ref().as_bytes())?)
    }

    /// Prints a line, cut to the terminal's width where there is one.
    pub fn line(&mut self, text: impl fmt::Display) -> Done {
        match self.width {
            Some(width) => writeln!(self, "{}", table::cut(&text.to_string(), width))?,
            None => writeln!(self, "{text}")?,
        }
        Ok(())
    }

    fn json_value(&mut self, value: &Value) -> Done {
        Ok(serde_json::to_writer(&mut self.to, value).map_err(io::Error::from)?)
    }

    /// Says that a line of a list is complete. The first ones are seen at once, however long the list;
    /// later ones in bulk.
    pub fn line_done(&mut self) -> Done {
        self.lines += 1;
        match self.lines.is_power_of_two() || self.lines.is_multiple_of(1024) {
            true => self.finish(),
            false => Ok(()),
        }
    }

    /// A message for people, on stderr.
    pub fn note(&self, message: impl fmt::Display) {
        if !self.quiet {
            let _ = writeln!(io::stderr(), "{message}");
        }
    }

    /// A line on stderr in place of the one that was shown so before: for a terminal. It is never longer than the
    /// terminal is wide: a line that wraps cannot be taken back.
    pub fn status(&self, message: impl fmt::Display) {
        self.status_line()(&message.to_string());
    }

    /// The same, for a thread beside the one that has this.
    pub fn status_line(&self) -> impl Fn(&str) + Send + use<> {
        let quiet = self.quiet;
        move |message| {
            if !quiet {
                let width = columns_of(io::stderr()).saturating_sub(1);
                let _ = write!(io::stderr(), "\r\x1b[K{}", table::cut(message, width));
            }
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

/// Bytes for people: exact below 10 KiB, rounded above.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 10 << 10 {
        return count(bytes, "byte");
    }
    let mut number = bytes as f64 / 1024.0;
    let mut unit = 0;
    while number >= 1023.95 && unit + 1 < UNITS.len() {
        (number, unit) = (number / 1024.0, unit + 1);
    }
    format!("{number:.1} {}", UNITS[unit])
}

/// Prints an error and its hint on stderr; as one line of JSON for who reads JSON.
pub fn report(error: &Error, json: bool) {
    if json {
        let document = json!({"error": json::reports::error(error)});
        let _ = writeln!(io::stderr(), "{document}");
        return;
    }
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

fn terminal_width() -> usize {
    columns_of(io::stdout())
}

/// Columns of a terminal: what COLUMNS says, else what the terminal itself says, else 80.
fn columns_of(terminal: impl AsFd) -> usize {
    let named = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok());
    let asked = || rustix::termios::tcgetwinsize(terminal).ok().map(|size| usize::from(size.ws_col));
    named.or_else(asked).filter(|&columns| columns > 0).unwrap_or(80)
}

fn colours_allowed() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|t| t != "dumb")
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_rounded_and_short() {
        let sizes = [0, 1, 10_239, 10_240, 1 << 20, 57_909_764_096, u64::MAX];
        let texts = ["0 bytes", "1 byte", "10239 bytes", "10.0 KiB", "1.0 MiB", "53.9 GiB", "16384.0 PiB"];
        assert_eq!(sizes.map(size), texts);
    }
}
