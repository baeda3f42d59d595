//! Arguments that several verbs share: the store, the version to read, the request.

use std::io::Read;
use std::path::Path;
use std::sync::OnceLock;

use clap::Args;
use fieldstone::files;
use fieldstone::prelude::*;
use fieldstone::{
    Code, Error, ErrorKind, Field, FieldStore, FieldStoreExt, Mode, OpenOptions, ReadOptions, Request,
    Result, nearest,
};

use crate::explain;

use crate::output::{Done, file_error, file_failed};

/// The store of a verb that reads.
#[derive(Debug, Args)]
pub struct Reading {
    /// The store: a folder
    pub store: String,
    /// Read the store as it was at this version, or with @FILE at that in a file (see `fieldstone version`)
    #[arg(long, value_name = "VERSION")]
    pub at: Option<String>,
}

impl Reading {
    /// Opens it for reading; NotFound where no store is.
    pub fn open(&self) -> Result<fieldstone::Store> {
        let at = self.at.as_deref().map(version).transpose()?;
        let options = OpenOptions { mode: Mode::Read, at, ..OpenOptions::default() };
        let store = fieldstone::open(&self.store, &options).map_err(|error| match error.kind() {
            ErrorKind::NotFound if self.at.is_none() => error.with_hint(other_store(&self.store)),
            _ => error,
        })?;
        note_skipped(&store)?;
        Ok(store)
    }
}

/// A version as it is given: itself, or the file that has it. Of many writers it is longer than an argument may be.
pub fn version(text: &str) -> Result<String> {
    let Some(path) = text.strip_prefix('@') else { return Ok(text.to_owned()) };
    let path = Path::new(path);
    let read = files::read_text(path).map_err(|e| file_failed("read", path, e))?;
    Ok(read.trim().to_owned())
}

/// Warns the user, beside the output, of logs that are missing from it.
fn note_skipped(store: &fieldstone::Store) -> Result<()> {
    store.skipped()?.iter().for_each(|note| eprintln!("note: {note}"));
    Ok(())
}

/// A hint for a path without a store.
fn other_store(url: &str) -> String {
    let path = Path::new(url);
    let parent = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let beside = std::fs::read_dir(parent).into_iter().flatten().flatten();
    let stores = beside.filter(|entry| entry.path().join("logs").is_dir());
    let names: Vec<String> = stores.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let own = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match nearest::did_you_mean(own, names.iter().map(String::as_str)) {
        Some(meant) => meant,
        None => format!(
            "check the path; a store is made by what is first archived into it, or: try: fieldstone init {}",
            explain::shell_word(url)
        ),
    }
}

/// The store of a verb that writes.
#[derive(Debug, Args)]
pub struct Writing {
    /// The store: a folder; made where it is absent
    pub store: String,
    /// simulation, mars, mixed, or a schema file's path; the store's own where it is not given
    #[arg(long)]
    pub schema: Option<String>,
    /// How bytes are compressed: none, zstd or zstd:LEVEL
    #[arg(long, value_name = "HOW")]
    pub compression: Option<String>,
    /// End with 3 where no store is, instead of making one; FIELDSTONE_CREATE=0 says so for all calls
    #[arg(long)]
    pub must_exist: bool,
}

impl Writing {
    /// Opens one that is there, for calls that make none.
    pub fn open_existing(&self) -> Result<fieldstone::Store> {
        self.open_with(Mode::Update)
    }

    /// Opens it for reading and writing.
    pub fn open(&self) -> Result<fieldstone::Store> {
        self.open_with(if self.must_exist { Mode::Update } else { Mode::Append })
    }

    fn open_with(&self, mode: Mode) -> Result<fieldstone::Store> {
        let compression = self.compression.as_deref().map(fieldstone::Compression::parse).transpose()?;
        let schema = self.schema.clone();
        let options = OpenOptions { mode, schema, compression, ..OpenOptions::default() };
        let store = fieldstone::open(&self.store, &options)?;
        note_skipped(&store)?;
        Ok(store)
    }
}

/// The fields that a verb works on.
#[derive(Debug, Args)]
pub struct Selecting {
    /// Which fields, such as run=a step=0/to/24/by/6, @FILE for a file with requests, one a line, or - for stdin;
    /// all where it is not given
    #[arg(value_name = "REQUEST")]
    pub request: Vec<String>,
    /// The words of `request`, kept once they are read, because stdin can be read only once.
    #[arg(skip)]
    read: OnceLock<Vec<Request>>,
}

impl Selecting {
    /// The request, where a verb takes one; the one that selects everything where none is given.
    pub fn parse(&self) -> Done<Request> {
        match self.requests()? {
            [one] => Ok(one.clone()),
            many => Err(Code::CommandLine
                .error(format!("{} requests, and this takes one", many.len()))
                .with_hint("give one request, or do it for each line")
                .into()),
        }
    }

    /// The requests; the one that selects everything where there is none.
    pub fn requests(&self) -> Done<&[Request]> {
        if let Some(read) = self.read.get() {
            return Ok(read);
        }
        let read = read_requests(&self.request)?;
        Ok(self.read.get_or_init(|| read))
    }
}

/// The requests of words: those of a file, or of stdin, each with what the other words say.
pub fn read_requests(words: &[String]) -> Done<Vec<Request>> {
    let is_file = |word: &String| word == "-" || word.starts_with('@');
    let mut all = vec![Request::new()];
    for group in words.chunk_by(|a, b| !is_file(a) && !is_file(b)) {
        let text = match &group[0] {
            word if is_file(word) => read_request(word.strip_prefix('@').unwrap_or(word))?,
            _ => join(group),
        };
        let some = Request::parse_many(&text).map_err(how_to_write)?;
        if some.is_empty() {
            continue;
        }
        let mut both = Vec::with_capacity(all.len() * some.len());
        for known in &all {
            for more in &some {
                both.push(known.with(more)?);
            }
        }
        all = both;
    }
    Ok(all)
}

fn how_to_write(error: Error) -> Error {
    match error.hint() {
        Some(_) => error,
        None => error.with_hint("how requests are written: fieldstone help request"),
    }
}

/// The one field that a request names, or the error that explains why it names none.
pub fn one_field(store: &dyn FieldStore, request: &Request) -> Result<Field> {
    store.get_one(request, &ReadOptions::default()).map_err(|error| match error.kind() {
        ErrorKind::NotFound => match explain::why(store, request) {
            Some(why) => error.with_hint(why),
            None => error,
        },
        ErrorKind::Invalid if error.hint().is_some_and(|hint| hint.contains("retrieve")) => {
            error.with_hint(format!("try: {}", explain::command("list", store.url(), request)))
        }
        _ => error,
    })
}

/// Longest request file: a longer file cannot be a request.
const REQUEST_MAX: u64 = 64 << 20;

/// A request out of a file, or of stdin.
fn read_request(file: &str) -> Done<String> {
    let mut text = String::new();
    let read = match file {
        "-" => std::io::stdin().take(REQUEST_MAX).read_to_string(&mut text),
        _ => files::open(Path::new(file)).and_then(|f| f.take(REQUEST_MAX).read_to_string(&mut text)),
    };
    read.map_err(|e| file_error("read the request in", Path::new(file), e))?;
    let length = text.trim_end().len();
    text.truncate(length);
    Ok(text)
}

/// Joins what the shell split: `run=a step=1` as well as `retrieve, class = od , type = pf`. A comma is
/// put where neither side has a sign that goes on.
pub fn join<S: AsRef<str>>(arguments: &[S]) -> String {
    let mut text = String::new();
    for argument in arguments {
        let argument = argument.as_ref();
        let open = text.is_empty()
            || text.trim_end().ends_with([',', '=', '/'])
            || argument.trim_start().starts_with([',', '=', '/']);
        if !open {
            text.push(',');
        }
        text.push_str(argument);
    }
    text
}

/// A number of bytes: `4096`, `500M`, `10GiB`; a unit is a power of 1024.
pub fn bytes(text: &str) -> std::result::Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let unit = text[digits..].trim_end_matches('B').trim_end_matches('i').to_ascii_uppercase();
    let power = ["", "K", "M", "G", "T", "P"].iter().position(|known| *known == unit);
    let number = text[..digits].parse::<u64>().ok();
    let size = number.zip(power).and_then(|(number, power)| number.checked_mul(1 << (10 * power)));
    size.ok_or_else(|| "write a number of bytes, such as 4096, 500M or 10G".to_owned())
}

/// Whole numbers separated by commas: `64,128`.
pub fn numbers(option: &str, text: &str) -> Result<Vec<u64>> {
    let number = |n: &str| {
        let wrong = || {
            Code::CommandLine
                .error(format!("{option}: '{n}' is not a whole number"))
                .with_hint(format!("write one number per dimension, such as {option} 64,128"))
        };
        n.trim().parse::<u64>().map_err(|_| wrong())
    };
    text.split(',').map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_joined_as_a_request_is_written() {
        for (arguments, text) in [
            (vec![], ""),
            (vec!["run=a,step=1"], "run=a,step=1"),
            (vec!["run=a", "step=1/to/5"], "run=a,step=1/to/5"),
            (vec!["run=a,", "step=1"], "run=a,step=1"),
            (vec!["retrieve,", "class", "=", "od", ",", "type", "=pf"], "retrieve,class=od,type=pf"),
            (vec!["step=1/", "to/", "5"], "step=1/to/5"),
        ] {
            assert_eq!(join(&arguments), text);
        }
    }

    #[test]
    fn sizes_have_units() {
        for (text, size) in [
            ("0", 0),
            ("4096", 4096),
            ("2k", 2048),
            ("500M", 500 << 20),
            ("10GiB", 10 << 30),
            ("1TB", 1 << 40),
        ] {
            assert_eq!(bytes(text), Ok(size), "{text}");
        }
        for wrong in ["", "M", "-1", "1.5G", "10X", "99999999999999999999", "99999999P", "1 G", "ü"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_are_read_and_named_when_wrong() {
        assert_eq!(numbers("--shape", "2, 3").unwrap(), [2, 3]);
        let error = numbers("--shape", "2,x").unwrap_err();
        assert_eq!(error.message(), "--shape: 'x' is not a whole number");
    }
}
