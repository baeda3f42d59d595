//! Reading a header: of a whole file, and of single entries found through an index.
//!
//! The header is read in chunks that grow from 8 KiB to 1 MiB, so that a small one costs one read and a large
//! one is never in memory twice. Readers tolerate the same defects as netCDF's own readers (padding that is
//! not zero or is counted as a part of a name, a wrong `vsize`, odd names). [`examine`] reports these as
//! well, and continues after defects that readers refuse.
//!
//! Invariants: allocations are bounded by the bytes that the source really holds; every error is `Corrupt`
//! and names the offset, the object and the rule; no read goes beyond the last chunk of the header; in a
//! header that [`header`] accepts every dimension id is in range and nothing overlaps.
//!
//! ```
//! use fieldstone_format::netcdf::{Header, NcType, Version, layout, parse, write};
//! let mut header = Header::new(Version::Cdf5);
//! let x = header.dims.push("x", 3);
//! header.vars.push("v", NcType::Short, &[x]);
//! layout::lay_out(&mut header, &layout::Alignment::default(), false, None)?;
//! let (read, places) = parse::header(&write::header(&header, false))?;
//! assert_eq!((read, places.vars), (header, 1));
//!
//! let error = parse::header(&b"CDF\x05\0\0".to_vec()).unwrap_err().to_string();
//! assert!(error.starts_with("offset 4: the file ends before its number of records"), "{error}");
//! # Ok::<(), fieldstone_core::Error>(())
//! ```

mod check;
mod entry;
mod findings;

use std::collections::HashSet;

use fieldstone_core::{Error, Result};

pub use entry::{AttrEntry, DimEntry, VarEntry, attr_entry, dim_entry, list_head, var_entry};
use entry::{Parsed, Progress, Scan, Stop, trimmed};
use findings::Notes;
pub use findings::{Finding, Findings, SHOWN, Severity, shown};

use super::write::{List, MAGIC, UNFINISHED};
use super::{Header, Version, names};
use crate::partitioned;

/// Bytes that can be read at any offset: a file, a part of one, or memory.
#[allow(clippy::len_without_is_empty)] // Its length may need a disk access.
pub trait Source {
    /// Reads into `buffer` from `offset`; returns fewer bytes than requested only at the end.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize>;
    /// Number of bytes.
    fn len(&self) -> Result<u64>;
}

impl Source for [u8] {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or(&[]);
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        Ok(len)
    }
    fn len(&self) -> Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }
}

impl Source for Vec<u8> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.as_slice().read_at(buffer, offset)
    }
    fn len(&self) -> Result<u64> {
        Ok(Vec::len(self) as u64)
    }
}

/// Positions and counts of the parts of a header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Places {
    /// Offset of the list of dimensions (of its tag).
    pub dims_at: u64,
    /// Offset of the list of global attributes.
    pub attrs_at: u64,
    /// Offset of the list of variables.
    pub vars_at: u64,
    /// Bytes of the header.
    pub header_len: u64,
    /// Number of dimensions.
    pub dims: u64,
    /// Number of global attributes.
    pub attrs: u64,
    /// Number of variables.
    pub vars: u64,
}

/// The result of [`examine`], besides its findings.
#[derive(Debug, Clone)]
pub struct Examined {
    /// The header, without dimension ids that do not exist.
    pub header: Header,
    /// Positions of its parts.
    pub places: Places,
    /// Size of the file in bytes.
    pub file_len: u64,
}

/// The reason why the reading of a header ended.
enum Trouble {
    Io(Error),
    Finding(Box<Finding>),
}

type Tried<T> = std::result::Result<T, Trouble>;

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Io(error)
    }
}

impl From<Box<Finding>> for Trouble {
    fn from(finding: Box<Finding>) -> Trouble {
        Trouble::Finding(finding)
    }
}

/// Reads the header of a netCDF classic file. Names are as they are in the file.
///
/// Errors: `Corrupt` with offset and rule if the bytes are not a header; errors of the source.
pub fn header(source: &(impl Source + ?Sized)) -> Result<(Header, Places)> {
    let parser = Parser::new(source, Notes(None))?;
    match parser.header() {
        Ok((header, places)) => Ok((header, places)),
        Err(Trouble::Io(error)) => Err(error),
        Err(Trouble::Finding(finding)) => Err(finding.into_error()),
    }
}

/// Reads a header as [`header`] does, but adds all its defects to `findings`, also those that readers
/// tolerate. `None` if it could not be read to its end.
pub fn examine(source: &(impl Source + ?Sized), findings: &mut Findings) -> Result<Option<Examined>> {
    let parser = Parser::new(source, Notes(Some(findings)))?;
    let file_len = parser.file_len;
    match parser.header() {
        Ok((header, places)) => Ok(Some(Examined { header, places, file_len })),
        Err(Trouble::Io(error)) => Err(error),
        Err(Trouble::Finding(finding)) => {
            findings.push(*finding);
            Ok(None)
        }
    }
}

/// Sizes of reads: the first, and the largest.
const CHUNKS: (u64, u64) = (8 << 10, 1 << 20);

struct Parser<'s, 'f, S: Source + ?Sized> {
    source: &'s S,
    file_len: u64,
    /// Bytes of the file from `base`; those before `at` are parsed.
    bytes: Vec<u8>,
    base: u64,
    at: usize,
    chunk: u64,
    notes: Notes<'f>,
}

/// Number of superfluous record dimensions to report before the check of a file ends. A hole in a file reads
/// as any number of them, and each would take as much memory as it has bytes.
const RECORD_DIMS: usize = Findings::LIMIT;

/// The object being parsed, for messages; its name has no zero bytes at the end.
#[derive(Clone, Copy)]
enum Object<'a> {
    File,
    Number(List, u64),
    Named(List, &'a [u8]),
}

impl Object<'_> {
    fn kind(list: List) -> &'static str {
        match list {
            List::Dims => "dimension",
            List::Attrs => "attribute",
            List::Vars => "variable",
        }
    }
    fn name(self) -> String {
        match self {
            Object::File => String::new(),
            Object::Number(list, i) => format!("{} number {i}", Object::kind(list)),
            Object::Named(list, name) => {
                format!("{} `{}`", Object::kind(list), shown(name))
            }
        }
    }
}

impl<'s, 'f, S: Source + ?Sized> Parser<'s, 'f, S> {
    fn new(source: &'s S, notes: Notes<'f>) -> Result<Self> {
        let file_len = source.len()?;
        Ok(Parser { source, file_len, bytes: Vec::new(), base: 0, at: 0, chunk: CHUNKS.0, notes })
    }

    fn offset(&self) -> u64 {
        self.base + self.at as u64
    }

    /// Makes `wanted` bytes available from the current position, or at least one more than now; false at the
    /// file's end.
    fn fill(&mut self, wanted: u64) -> Result<bool> {
        self.bytes.drain(..self.at);
        self.base += self.at as u64;
        self.at = 0;
        let before = self.bytes.len();
        let wanted = wanted.max(before as u64 + self.chunk);
        while (self.bytes.len() as u64) < wanted {
            // Chunk by chunk, so that a false length costs memory only for bytes that exist.
            let old = self.bytes.len();
            let step = self.chunk.min(wanted - old as u64);
            self.bytes.resize(old + step as usize, 0);
            let read = self.source.read_at(&mut self.bytes[old..], self.base + old as u64)?;
            self.bytes.truncate(old + read.min(step as usize));
            self.chunk = (self.chunk * 2).min(CHUNKS.1);
            if (read as u64) < step {
                break;
            }
        }
        Ok(self.bytes.len() > before)
    }

    /// Makes the next entry available: parses it once for its length, reading more until it is complete.
    fn entry(
        &mut self,
        version: Version,
        object: Object<'_>,
        mut parse: impl for<'a> FnMut(&mut Scan<'a>) -> Parsed<()>,
    ) -> Tried<usize> {
        loop {
            let mut scan = Scan::new(&self.bytes[self.at..], self.offset(), version);
            match parse(&mut scan) {
                Ok(()) => return Ok(scan.used()),
                Err(Stop::Broken { offset, rule, message }) => {
                    return Err(Box::new(Finding::error(offset, object.name(), rule, message)).into());
                }
                Err(Stop::Short { upto, offset, what }) => {
                    let begin = self.offset();
                    // A length beyond the end of the file is refused without reading up to it.
                    let fits = begin.checked_add(upto).is_some_and(|end| end <= self.file_len);
                    if !fits || !self.fill(upto)? {
                        let bytes = begin.saturating_add(upto) - offset;
                        let (rule, message) = (
                            "a file holds its whole header",
                            format!("the file ends before its {what} ({bytes} bytes from here)"),
                        );
                        let finding = Finding::error(offset, object.name(), rule, message);
                        return Err(Box::new(
                            finding.with_hint("the file is truncated: get a complete copy"),
                        )
                        .into());
                    }
                }
            }
        }
    }

    fn magic(&mut self) -> Tried<Version> {
        while self.bytes.len() < 8 && self.fill(8)? {}
        let bytes = &self.bytes;
        let stop = |message: String, hint| {
            let rule = "a netCDF classic file begins with CDF and the byte 1, 2 or 5";
            Err(Box::new(Finding::error(0, "", rule, message).with_hint(hint)).into())
        };
        let Some(magic) = bytes.get(..4) else {
            return match bytes.len() {
                0 => stop(
                    "the file is empty: its writer never finished it, or it is not a netCDF file".to_string(),
                    "if its writer was stopped, write it again",
                ),
                n => stop(format!("the file has only {n} bytes"), "this is not a netCDF file"),
            };
        };
        if magic[..3] == MAGIC {
            if let Some(version) = Version::from_byte(magic[3]) {
                self.at = 4;
                return Ok(version);
            }
            return stop(
                format!("CDF and the byte {}", magic[3]),
                "the version is unknown, or the byte damaged",
            );
        }
        if magic[..3] == UNFINISHED {
            return stop(
                "the writer never finished this file".to_string(),
                "its writer was stopped before close or sync: write it again",
            );
        }
        if magic[..4] == [0; 4] {
            return stop(
                "the file begins with zeros: its writer never finished it, or it is not a netCDF file"
                    .to_string(),
                "if its writer was stopped, write it again",
            );
        }
        if magic[..3] == partitioned::MAGIC[..3] {
            return stop(
                "this is a container with a partitioned header".to_string(),
                "open it as a container, or convert it (fieldstone container convert)",
            );
        }
        if bytes.starts_with(b"\x89HDF\r\n\x1a\n") {
            return stop(
                "this is a netCDF-4/HDF5 file".to_string(),
                "convert it: nccopy -k cdf5, or open it with netCDF4 or h5py",
            );
        }
        stop(format!("the file begins with \"{}\"", magic.escape_ascii()), "this is not a netCDF file")
    }

    /// The head of a list: its position and its count.
    fn list(&mut self, version: Version, list: List, smallest: u64) -> Tried<(u64, u64)> {
        let at = self.offset();
        let used = self.entry(version, Object::File, |scan| scan.list_head(list).map(|_| ()))?;
        let count = Scan::new(&self.bytes[self.at..], at, version).list_head(list).unwrap_or(0);
        self.at += used;
        let room = self.file_len.saturating_sub(self.offset());
        if count > u64::from(u32::MAX) || count.checked_mul(smallest).is_none_or(|bytes| bytes > room) {
            let message = format!("{count} {}, but the file has only {room} bytes after that", list.name());
            let rule = "a file holds its whole header";
            return Err(Box::new(Finding::error(at + 4, "", rule, message)).into());
        }
        Ok((at, count))
    }

    fn header(mut self) -> Tried<(Header, Places)> {
        let version = self.magic()?;
        let mut header = Header::new(version);
        let used =
            self.entry(version, Object::File, |scan| scan.raw_size("number of records").map(|_| ()))?;
        let numrecs = Scan::new(&self.bytes[self.at..], 4, version).raw_size("").unwrap_or(0);
        self.at += used;
        header.numrecs = self.numrecs(version, numrecs)?;

        let width = version.size_width() as u64;
        let mut places = Places::default();
        (places.dims_at, places.dims) = self.list(version, List::Dims, 2 * width)?;
        self.dims(&mut header, places.dims)?;
        (places.attrs_at, places.attrs) = self.list(version, List::Attrs, 2 * width + 4)?;
        self.attrs(&mut header, places.attrs)?;
        let smallest = 4 * width + 8 + version.offset_width() as u64;
        (places.vars_at, places.vars) = self.list(version, List::Vars, smallest)?;
        let offsets = self.vars(&mut header, places.vars)?;
        places.header_len = self.offset();
        check::places(&header, &places, &offsets, &mut self.notes)?;
        Ok((header, places))
    }

    fn numrecs(&mut self, version: Version, numrecs: u64) -> Tried<Option<u64>> {
        let (streaming, largest) = match version {
            Version::Cdf5 => (u64::MAX, i64::MAX as u64),
            _ => (u64::from(u32::MAX), u64::from(u32::MAX)),
        };
        if numrecs == streaming {
            let message = "the number of records is all ones (a streaming file): the file's size gives it";
            self.notes.warning(4, "a finished file states its number of records", || ("", message));
            return Ok(None);
        }
        if numrecs > largest {
            let rule = "counts and lengths are not negative";
            self.notes.refuse(4, rule, || ("", format!("number of records is {}", numrecs as i64)))?;
        }
        Ok(Some(numrecs.min(largest)))
    }

    fn dims(&mut self, header: &mut Header, count: u64) -> Tried<()> {
        let (mut seen, mut record_dims) = (SeenNames::default(), 0);
        for i in 0..count {
            let version = header.version;
            let used = self.entry(version, Object::Number(List::Dims, i), |scan| scan.dim().map(|_| ()))?;
            let offset = self.offset();
            let Ok(dim) = Scan::new(&self.bytes[self.at..], offset, version).dim() else { break };
            let object = Object::Named(List::Dims, trimmed(dim.name));
            let name = name(&mut self.notes, offset, object, dim.name)?;
            padding(&mut self.notes, offset, object, "its name", dim.padding);
            seen.name(&mut self.notes, offset, object, &name);
            if dim.len == 0 {
                if header.dims.record.is_some() {
                    let rule = "one dimension at most has length 0 (the record dimension)";
                    if record_dims == RECORD_DIMS {
                        let message =
                            format!("{RECORD_DIMS} others before it are too many: the check ends here");
                        return Err(Box::new(Finding::error(offset, object.name(), rule, message)).into());
                    }
                    record_dims += 1;
                    self.notes.refuse(offset, rule, || (object.name(), "a second record dimension"))?;
                }
                header.dims.push_record(&name);
            } else {
                header.dims.push(&name, dim.len);
            }
            self.at += used;
        }
        Ok(())
    }

    fn attrs(&mut self, header: &mut Header, count: u64) -> Tried<()> {
        let mut seen = SeenNames::default();
        for i in 0..count {
            let version = header.version;
            let used = self.entry(version, Object::Number(List::Attrs, i), |scan| scan.attr().map(|_| ()))?;
            let Ok(attr) = Scan::new(&self.bytes[self.at..], self.offset(), version).attr() else { break };
            let object = Object::Named(List::Attrs, trimmed(attr.name));
            let name = attr_name(&mut self.notes, version, object, &attr)?;
            seen.name(&mut self.notes, attr.offset, object, &name);
            header.attrs.push(&name, attr.ty, attr.value);
            self.at += used;
        }
        Ok(())
    }

    /// Offsets of the entries, if findings are kept.
    fn vars(&mut self, header: &mut Header, count: u64) -> Tried<Vec<u64>> {
        let (mut seen, mut offsets) = (SeenNames::default(), Vec::new());
        let mut ids = Vec::new();
        for i in 0..count {
            let version = header.version;
            let mut progress = Progress::default();
            let object = Object::Number(List::Vars, i);
            let used = self.entry(version, object, |scan| scan.var_from(&mut progress))?;
            let offset = self.offset();
            let Ok(var) = Scan::new(&self.bytes[self.at..], offset, version).var() else { break };
            let object = Object::Named(List::Vars, trimmed(var.name));
            let name = name(&mut self.notes, offset, object, var.name)?;
            padding(&mut self.notes, offset, object, "its name", var.padding);
            seen.name(&mut self.notes, offset, object, &name);
            check::type_of(&mut self.notes, version, offset, &object.name_of(), var.ty)?;
            ids.clear();
            check::dims_of(&mut self.notes, header, &var, &object.name_of(), &mut ids)?;
            header.vars.push(&name, var.ty, &ids);
            let mut seen_attrs = SeenNames::default();
            for attr in var.attrs() {
                let name = attr_name(&mut self.notes, version, object, &attr)?;
                seen_attrs.name(&mut self.notes, attr.offset, object, &name);
                header.vars.attrs_of_last(&name, attr.ty, attr.value);
            }
            header.vars.vsizes.push(var.vsize);
            header.vars.begins.push(var.begin);
            if self.notes.kept() {
                offsets.push(offset);
            }
            self.at += used;
        }
        Ok(offsets)
    }
}

impl<'a> Object<'a> {
    /// The text of the name, made only when needed.
    fn name_of(self) -> impl Fn() -> String + use<'a> {
        move || self.name()
    }
}

/// Names seen in one list, if findings are kept.
#[derive(Default)]
struct SeenNames(HashSet<String>);

impl SeenNames {
    fn name(&mut self, notes: &mut Notes<'_>, offset: u64, object: Object<'_>, name: &str) {
        if notes.kept() && !self.0.insert(name.to_string()) {
            let rule = "names are unique among dimensions, among variables, among one object's attributes";
            let message = || format!("the name `{}` occurs twice", shown(name));
            notes.error(offset, rule, || (object.name(), message()));
        }
    }
}

/// Checks a name and returns its text.
fn name<'a>(
    notes: &mut Notes<'_>,
    offset: u64,
    object: Object<'_>,
    name: &'a [u8],
) -> Tried<std::borrow::Cow<'a, str>> {
    let raw = name;
    let name = trimmed(raw);
    if name.len() < raw.len() {
        let zeros = raw.len() - name.len();
        let message = || format!("its name ends in {zeros} zero bytes: readers drop them");
        notes.warning(offset, "padding is not a part of a name", || (object.name(), message()));
    }
    let text = String::from_utf8_lossy(name);
    if let std::borrow::Cow::Owned(_) = &text {
        notes.refuse(offset, "names are UTF-8", || (object.name(), "its name is not UTF-8"))?;
    }
    if notes.kept() {
        if let Some(rule) = names::broken_rule(name) {
            notes.error(offset, rule, || (object.name(), "its name is illegal"));
        } else if names::nfc(&text) != text {
            let rule = "names are in Unicode's normal form C";
            notes.error(offset, rule, || (object.name(), "its name is not in normal form"));
        }
        if name.len() > names::MAX_NAME {
            let message = || format!("its name has {} bytes", name.len());
            notes.error(offset, "a name has at most 256 bytes", || (object.name(), message()));
        }
    }
    Ok(text)
}

/// Checks type, name and padding of an attribute: a global one (`object` is the attribute itself) or one of a
/// variable.
fn attr_name<'a>(
    notes: &mut Notes<'_>,
    version: Version,
    object: Object<'_>,
    attr: &AttrEntry<'a>,
) -> Tried<std::borrow::Cow<'a, str>> {
    let whole = || match object {
        Object::Named(List::Attrs, _) => object.name(),
        _ => format!("{}, {}", object.name(), Object::Named(List::Attrs, trimmed(attr.name)).name()),
    };
    check::type_of(notes, version, attr.offset, &whole, attr.ty)?;
    let text = name(notes, attr.offset, object, attr.name)?;
    padding(notes, attr.offset, object, "the name of an attribute", attr.padding);
    padding(notes, attr.offset, object, "the values of an attribute", attr.value_padding);
    Ok(text)
}

fn padding(notes: &mut Notes<'_>, offset: u64, object: Object<'_>, after: &str, padding: &[u8]) {
    if notes.kept() && padding.iter().any(|byte| *byte != 0) {
        let message = || format!("the padding after {after} is \"{}\"", padding.escape_ascii());
        notes.error(offset, "padding in the header is zero", || (object.name(), message()));
    }
}

#[cfg(test)]
mod tests;
