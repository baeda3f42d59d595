//! `fieldstone archive`: one value under one key, durable and visible when the program ends.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use fieldstone::prelude::*;
use fieldstone::{ArchiveOptions, Code, DType, IndexBox, Request, Result, Value, json};
use rustix::fs::{OFlags, Stat, fcntl_getfl, fstat, stat};

use crate::arguments::{Writing, join, numbers};
use crate::npy;
use crate::output::{Done, Out, file_error};

const EXAMPLES: &str = "\
Examples:
  fieldstone archive store run=a variable=t step=6 t6.grib
  some-model | fieldstone archive store run=a,variable=t,step=6
  fieldstone archive store run=a variable=p step=6 --npy pressure.npy
  fieldstone archive store run=a variable=p step=6 --npy rank3.npy --start 0,64 --shape 128,128
  fieldstone archive store run=a variable=q step=6 q.bin --dtype f4 --shape 180,360
  fieldstone archive store --key run=a,variable=t,step=6 'name=with=signs.grib'";

/// Archive an array, or the bytes of a file or of stdin, under a key
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Writing,
    /// The key as keyword=value, and at most one file (- or none: stdin)
    #[arg(value_name = "KEY|FILE")]
    words: Vec<String>,
    /// The key; KEY|FILE then names the file alone
    #[arg(long)]
    key: Option<String>,
    /// Archive the array in this .npy file
    #[arg(long, value_name = "FILE")]
    npy: Option<PathBuf>,
    /// The bytes are an array of this element type, in C order: f4, <i2, M8[s] …
    #[arg(long, requires = "shape", conflicts_with = "npy")]
    dtype: Option<String>,
    /// The whole array's extents
    #[arg(long, value_name = "N,N…")]
    shape: Option<String>,
    /// The bytes are the piece of the array that starts here
    #[arg(long, value_name = "N,N…", requires = "shape")]
    start: Option<String>,
    /// Extents of the piece; a .npy file says its own
    #[arg(long, value_name = "N,N…", requires = "start", conflicts_with = "npy")]
    count: Option<String>,
    /// Extents of the chunks that the array is stored in
    #[arg(long, value_name = "N,N…")]
    chunks: Option<String>,
}

/// Archives and flushes.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let (key, file) = arguments.key_and_file()?;
    let pairs = Request::parse(&key)?.single_pairs()?;
    let pairs: Vec<(&str, &str)> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let list =
        |option: &str, text: &Option<String>| text.as_deref().map(|text| numbers(option, text)).transpose();
    let shape = list("--shape", &arguments.shape)?;
    let start = list("--start", &arguments.start)?;
    let count = list("--count", &arguments.count)?;
    let options = ArchiveOptions { chunks: list("--chunks", &arguments.chunks)?, ..Default::default() };

    let store = arguments.store.open()?;
    // A wrong key is reported before stdin is waited for.
    let resolved = store.schema().resolve(&pairs)?;
    let bytes = match &arguments.npy {
        Some(path) => read(Some(path))?,
        None => read(file.as_deref())?,
    };
    let array = match (&arguments.npy, arguments.dtype.as_deref()) {
        (Some(path), _) => {
            let (dtype, own, data) = npy::parse(&bytes).map_err(|e| e.context(path.display()))?;
            Some((dtype, own, data))
        }
        (None, Some(dtype)) => {
            let extents = count.as_ref().or(shape.as_ref()).cloned().unwrap_or_default();
            Some((DType::parse(dtype)?, extents, &bytes[..]))
        }
        (None, None) if shape.is_some() => {
            return Err(Code::CommandLine.error("--shape needs --dtype or --npy").into());
        }
        (None, None) => None,
    };
    let value = match (&array, &start, &shape) {
        (None, ..) => Value::Bytes(&bytes),
        (Some((dtype, own, data)), Some(start), Some(shape)) => {
            IndexBox::new(start.clone(), own.clone(), shape)?;
            Value::Piece { data, dtype: *dtype, start, count: own, shape }
        }
        (Some((_, own, _)), None, Some(shape)) if own != shape => {
            return Err(Code::ShapeMismatch
                .error(format!("the array has shape {own:?}, --shape says {shape:?}"))
                .with_hint("give --start for a piece of a larger array")
                .into());
        }
        (Some((dtype, own, data)), ..) => Value::Array { data, dtype: *dtype, shape: own },
    };
    store.archive(&pairs, value, &options)?;
    store.flush(None)?;
    if let Some(undated) = store.undated() {
        out.note(undated);
    }
    let nbytes = array.as_ref().map_or(bytes.len(), |(_, _, data)| data.len());
    if out.json() {
        out.document(&json::moved::archived(&resolved, nbytes, &store.version()?))?;
    } else {
        out.note(format_args!("archived {resolved} ({nbytes} bytes)"));
    }
    Ok(store.close()?)
}

impl Arguments {
    /// Words with a `=` are the key, the one without is the file; with `--key` the word is the file.
    fn key_and_file(&self) -> Result<(String, Option<PathBuf>)> {
        let (pairs, files): (Vec<&String>, Vec<&String>) =
            self.words.iter().partition(|word| self.key.is_none() && word.contains('='));
        let key = match &self.key {
            Some(key) => key.clone(),
            None => join(&pairs),
        };
        if key.is_empty() {
            return Err(Code::CommandLine
                .error("there is no key to archive under")
                .with_hint("give it as keyword=value, such as run=a variable=t step=6"));
        }
        let file = match &files[..] {
            [] => None,
            [file] if self.npy.is_none() => Some(PathBuf::from(file)),
            [file] => return Err(Code::CommandLine.error(format!("both --npy and '{file}' are given"))),
            [a, b, ..] => {
                return Err(Code::CommandLine
                    .error(format!("'{a}' and '{b}' are two files for one key"))
                    .with_hint("a keyword and its value are joined by ="));
            }
        };
        Ok((key, file.filter(|path| path != Path::new("-"))))
    }
}

/// Whether stdin was closed when the program began: Rust then opens the null device in its place, to read and to write.
fn stdin_is_closed() -> bool {
    let stdin = std::io::stdin();
    is_null(fstat(&stdin)) && fcntl_getfl(&stdin).is_ok_and(|flags| flags.contains(OFlags::RDWR))
}

/// Whether this is the null device, which has no bytes and is never waited for.
fn is_null(file: rustix::io::Result<Stat>) -> bool {
    match (file, stat("/dev/null")) {
        (Ok(file), Ok(null)) => file.st_rdev == null.st_rdev && file.st_mode == null.st_mode,
        _ => false,
    }
}

fn read(path: Option<&Path>) -> Done<Vec<u8>> {
    let mut bytes = Vec::new();
    match path {
        Some(path) if is_null(stat(path)) => {}
        Some(path) => bytes = fieldstone::files::read(path).map_err(|e| file_error("read", path, e))?,
        None if stdin_is_closed() => {
            return Err(Code::CommandLine
                .error("stdin is closed, or the null device: there are no bytes to archive")
                .with_hint("name a file, or /dev/null for a value without bytes")
                .into());
        }
        None => {
            std::io::stdin()
                .read_to_end(&mut bytes)
                .map_err(|e| file_error("read", Path::new("stdin"), e))?;
        }
    }
    Ok(bytes)
}
