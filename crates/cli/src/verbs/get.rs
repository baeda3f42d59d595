//! `fieldstone get`: the bytes of the fields that a request names, in request order.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use fieldstone::Session;
use fieldstone::{
    Code, DType, Error, ErrorKind, Field, FieldStore, Fields, IndexBox, Item, Request, Result,
    RetrieveOptions, Values, json,
};
use serde_json::Value;

use crate::arguments::{Reading, Selecting};
use crate::interrupt::Interrupt;
use crate::output::{Done, EarlyEnd, Out, count, file_error};
use crate::region::{Region, slabs};
use crate::{explain, npy};

/// Bytes of an opaque field that are in memory at once.
const PART: u64 = 32 << 20;

/// The most missing fields that a message names.
const NAMED: usize = 3;

const EXAMPLES: &str = "\
Examples:
  fieldstone get store run=a variable=t step=6 > t6.grib
  fieldstone get store run=a,variable=t/u,step=0/to/24/by/6 -o all.grib
  fieldstone get store run=a variable=p step=6 --npy -o p.npy
  fieldstone get store run=a variable=p step=6 --box 0:10,:,3 | xxd | head
  fieldstone get store run=a variable=t step=0/to/48/by/6 --lenient -o found.grib
  fieldstone get store @requests.mars

A box has a half-open range, an index or a colon for each dimension. As in MARS, a target in the request names the
output file: retrieve, run=a, target=\"all.grib\"; -o overrides it. A request file may hold several requests, each
with its verb; fields of requests with the same target go into that file one after another.";

/// Write the fields that a request names to stdout or a file
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(flatten)]
    store: Reading,
    #[command(flatten)]
    selecting: Selecting,
    /// Write to this file instead of the request's target; it appears when it is complete
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only this part of each array, such as 0:10,:,3
    #[arg(long = "box", value_name = "BOX")]
    region: Option<String>,
    /// Write a .npy file; several arrays of one type and shape are stacked along a new first dimension
    #[arg(long)]
    npy: bool,
    /// Write the fields that exist, and fill unwritten parts of arrays
    #[arg(long)]
    lenient: bool,
}

/// The part of a field to write: all of it, or a box of an array.
struct OutputPiece {
    field: Field,
    array: Option<(DType, IndexBox, Vec<u64>)>,
}

/// Fields that go to the same output.
struct Job {
    target: Option<PathBuf>,
    fields: Fields,
}

/// Gets. All requests are resolved before the first byte is written; requests with the same target follow one
/// another in it.
pub fn run(arguments: &Arguments, out: &mut Out) -> Done {
    let region = arguments.region.as_deref().map(Region::parse).transpose()?;
    let requests = arguments.selecting.requests()?;
    let store = arguments.store.open()?;
    let mut jobs: Vec<Job> = Vec::new();
    for request in requests {
        let (request, named) = without_target(&store, request.clone())?;
        let target = arguments.output.clone().or(named).filter(|path| path != Path::new("-"));
        if out.json() && target.is_none() {
            return Err(Code::CommandLine
                .error("the fields themselves are not JSON")
                .with_hint("add -o FILE, and --json reports what was written; or see list --json")
                .into());
        }
        let fields = find(&store, &request, arguments.lenient, out)?;
        match jobs.iter_mut().find(|job| job.target == target) {
            Some(job) => job.fields = job.fields.clone().concat(fields),
            None => jobs.push(Job { target, fields }),
        }
    }
    let mut reports = Vec::new();
    for Job { target, fields } in &jobs {
        let head = arguments.npy.then(|| npy_head(fields, region.as_ref())).transpose()?;
        let mut written = 0;
        let mut copy = |to: &mut dyn Write| -> Done {
            if let Some(head) = &head {
                to.write_all(head)?;
            }
            for field in fields.iter() {
                let piece = OutputPiece::new(field?, region.as_ref())?;
                written += piece.write(to)?;
            }
            Ok(())
        };
        match target {
            Some(path) => whole_file(path, &mut copy)?,
            None => copy(out)?,
        }
        let Some(path) = target else { continue };
        if out.json() {
            reports.push(json::moved::written(fields, written, path));
        } else {
            let fields = count(fields.len() as u64, "field");
            out.note(format_args!("{}: {fields}, {written} bytes", path.display()));
        }
    }
    match reports.pop() {
        Some(one) if reports.is_empty() => out.document(&one)?,
        Some(last) => {
            reports.push(last);
            out.document(&Value::Array(reports))?;
        }
        None => {}
    }
    Ok(())
}

/// The fields of one request, or the reason why there are none.
fn find(store: &dyn FieldStore, request: &Request, lenient: bool, out: &mut Out) -> Done<Fields> {
    let explained = |error: Error| match explain::why(store, request) {
        Some(why) => error.with_hint(why),
        None => {
            error.with_hint("see what exists with fieldstone axes or list; --lenient takes what there is")
        }
    };
    let options = RetrieveOptions { strict: !lenient, session: Session::default() };
    let fields = store.retrieve(request, &options).map_err(|e| match e.kind() {
        ErrorKind::NotFound => explained(e),
        _ => e,
    })?;
    if fields.is_empty() && !lenient {
        return Err(explained(Code::FieldNotFound.error(match request.is_empty() {
            true => format!("the store {} holds no field", store.url()),
            false => format!("no field {request}"),
        }))
        .into());
    }
    let missing = fields.missing_count();
    if missing > 0 {
        let named = fields.missing(NAMED).join("; ");
        let more = missing.saturating_sub(NAMED as u64);
        let more = if more > 0 { format!("; and {more} more") } else { String::new() };
        out.note(format_args!("not there: {named}{more}"));
    }
    Ok(fields)
}

/// Splits a request into its `target`, the file that the answer goes to, and the rest. If the store's schema has a
/// keyword of that name, it is a keyword like any other.
fn without_target(store: &dyn FieldStore, request: Request) -> Result<(Request, Option<PathBuf>)> {
    let is_target = |name: &str| name.eq_ignore_ascii_case("target");
    if store.schema().keywords().iter().any(|name| is_target(name)) {
        return Ok((request, None));
    }
    let Some((name, values)) = request.iter().find(|(name, _)| is_target(name)) else {
        return Ok((request, None));
    };
    match values {
        Values::List(items) => match &items[..] {
            [Item::One(file)] => Ok((explain::without(&request, name), Some(PathBuf::from(file)))),
            _ => Err(Code::Option
                .error(format!("target={values} is more than one file"))
                .with_hint("name one file, in quotes where it holds a /: target=\"out/all.grib\"")),
        },
        Values::Any | Values::Present | Values::Absent | Values::Like(_) => Err(Code::Option
            .error(format!("target={values} does not name one file"))
            .with_hint("name one file: target=\"all.grib\"")),
    }
}

impl OutputPiece {
    fn new(field: Field, region: Option<&Region>) -> Result<OutputPiece> {
        let array = match (field.dtype()?, field.shape()?, region) {
            (Some(dtype), Some(shape), region) => {
                let region = region.cloned().unwrap_or_default();
                let (region, kept) = region.within(&shape).map_err(|e| in_field(&field, e))?;
                Some((dtype, region, kept))
            }
            (.., None) => None,
            (.., Some(_)) => {
                let opaque = Code::NotAnArray.error("it is opaque bytes, and only an array has a box");
                return Err(in_field(&field, opaque));
            }
        };
        Ok(OutputPiece { field, array })
    }

    /// Writes its bytes part by part, and returns how many.
    fn write(&self, to: &mut dyn Write) -> Done<u64> {
        let mut buffer = Vec::new();
        let mut written = 0;
        if let Some((dtype, region, _)) = &self.array {
            for slab in slabs(region, dtype.size())? {
                let bytes = slab.element_count()?.saturating_mul(dtype.size() as u64);
                resize(&mut buffer, bytes)?;
                self.field.read_box_into(&slab, &mut buffer)?;
                to.write_all(&buffer)?;
                written += bytes;
            }
            return Ok(written);
        }
        let nbytes = self.field.nbytes()?;
        while written < nbytes {
            let bytes = PART.min(nbytes - written);
            resize(&mut buffer, bytes)?;
            self.field.read_range(written, &mut buffer)?;
            to.write_all(&buffer)?;
            written += bytes;
        }
        Ok(written)
    }
}

fn in_field(field: &Field, error: Error) -> Error {
    match field.key() {
        Ok(key) => error.context(key),
        Err(_) => error,
    }
}

fn resize(buffer: &mut Vec<u8>, bytes: u64) -> Result<()> {
    let length = usize::try_from(bytes).ok();
    match length.filter(|&n| buffer.try_reserve(n.saturating_sub(buffer.len())).is_ok()) {
        Some(n) => buffer.resize(n, 0),
        None => {
            return Err(Code::OutOfMemory.error(format!("a part of {bytes} bytes does not fit into memory")));
        }
    }
    Ok(())
}

/// The .npy header of one array, or of several stacked ones, which must have the same type and shape.
fn npy_head(fields: &Fields, region: Option<&Region>) -> Result<Vec<u8>> {
    let mut first: Option<(DType, Vec<u64>)> = None;
    for field in fields.iter() {
        let piece = OutputPiece::new(field?, region)?;
        let Some((dtype, _, shape)) = piece.array else {
            return Err(in_field(
                &piece.field,
                Code::NotAnArray.error("it is opaque bytes, and .npy holds arrays"),
            ));
        };
        match &first {
            None => first = Some((dtype, shape)),
            Some(known) if *known == (dtype, shape.clone()) => {}
            Some((other, extents)) => {
                let differ =
                    format!("{dtype} {shape:?}, and {other} {extents:?} before it, cannot be stacked");
                return Err(in_field(&piece.field, Error::invalid(differ)));
            }
        }
    }
    let Some((dtype, mut shape)) = first else {
        return Err(Code::FieldNotFound.error("no field to write"));
    };
    if fields.len() > 1 {
        shape.insert(0, fields.len() as u64);
    }
    Ok(npy::head(dtype, &shape))
}

/// Writes a file that is either complete or absent: it has a temporary name until it is whole. A device or a pipe
/// is written directly.
fn whole_file(path: &Path, write: &mut dyn FnMut(&mut dyn Write) -> Done) -> Done {
    let failed = |action: &'static str| move |e| file_error(action, path, e);
    let direct = std::fs::metadata(path).is_ok_and(|m| !m.is_file());
    let part = match direct {
        true => path.to_owned(),
        false => {
            let mut name = path.file_name().unwrap_or_default().to_owned();
            name.push(format!(".part-{}", std::process::id()));
            path.with_file_name(name)
        }
    };
    let interrupt = Interrupt::watch();
    let file = match direct {
        true => File::options().write(true).open(&part),
        false => File::create(&part),
    };
    let file = Stoppable { to: file.map_err(failed("write"))?, interrupt: &interrupt };
    let mut to = BufWriter::with_capacity(1 << 16, file);
    let done = write(&mut to).map_err(|stop| match (stop, interrupt.code()) {
        (_, Some(code)) => EarlyEnd::Exit(code),
        (stop, None) => stop,
    });
    let done = done.map_err(|stop| match stop {
        // A full disk behind the file, not behind stdout.
        EarlyEnd::Error(error) if error.message().starts_with("cannot write the output") => {
            EarlyEnd::Error(error.context(path.display()))
        }
        stop => stop,
    });
    let done = done.and_then(|()| to.flush().map_err(failed("write")));
    let done = done.and_then(|()| match direct {
        true => Ok(()),
        false => std::fs::rename(&part, path).map_err(failed("write")),
    });
    if done.is_err() && !direct {
        // The bytes in the buffer are not worth writing.
        drop(to.into_parts());
        let _ = std::fs::remove_file(&part);
    }
    match interrupt.code() {
        Some(code) if done.is_err() => Err(EarlyEnd::Exit(code)),
        _ => done,
    }
}

/// A file that refuses further bytes once a signal has asked the program to end.
struct Stoppable<'a> {
    to: File,
    interrupt: &'a Interrupt,
}

impl Write for Stoppable<'_> {
    fn write(&mut self, data: &[u8]) -> std::io::Result<usize> {
        match self.interrupt.is_asked() {
            true => Err(std::io::Error::other("interrupted")),
            false => self.to.write(data),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}
