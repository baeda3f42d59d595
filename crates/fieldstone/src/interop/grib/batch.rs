//! Reads the fields of a source in batches, so that one question covers many headers.
//!
//! Invariants: parts come in the order of the source; a batch holds at most [`MANY`] fields and, unless one message is
//! longer, [`LARGE`] bytes read from a file.

use std::borrow::Cow;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use fieldstone_core::env::real::open_named;
use fieldstone_core::{Code, Result};
use fieldstone_format::grib::fields::fields;
use fieldstone_format::grib::header::Header;
use fieldstone_format::grib::messages::{Messages, Source, Stretch};

use crate::interop::helper::Texts;
use crate::interop::shared_helper::SharedHelper;

const MANY: usize = 512;
const LARGE: usize = 16 << 20;

/// A source whose messages stay valid while later ones are read.
pub trait Keep: Source {
    /// The bytes at `offset`; if the source had to be read, they are in `buffer`.
    fn keep<'a>(&'a self, offset: u64, len: usize, buffer: &mut Vec<u8>) -> Cow<'a, [u8]>;
}

impl Keep for [u8] {
    fn keep<'a>(&'a self, offset: u64, len: usize, _: &mut Vec<u8>) -> Cow<'a, [u8]> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        Cow::Borrowed(self.get(start..start.saturating_add(len)).unwrap_or_default())
    }
}

/// A file that is read in place.
pub struct FileSource {
    file: File,
    size: u64,
}

impl FileSource {
    pub fn open(path: &Path) -> Result<FileSource> {
        let failed = |e: std::io::Error| {
            let what = format!("{}: {e}", path.display());
            match Code::of_io(&e) {
                code @ (Code::FileNotFound | Code::PermissionDenied | Code::ProcessLimit) => code.error(what),
                _ => Code::IoFailed.error(what),
            }
        };
        let file = match open_named(path) {
            Err(e) if matches!(e.kind(), ErrorKind::InvalidInput | ErrorKind::IsADirectory) => {
                return Err(Code::FileKind.error(format!("{} is not a regular file", path.display())));
            }
            outcome => outcome.map_err(failed)?,
        };
        let size = file.metadata().map_err(failed)?.len();
        Ok(FileSource { file, size })
    }
}

impl Source for FileSource {
    fn size(&self) -> u64 {
        self.size
    }

    fn view<'a>(&'a self, at: u64, len: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        buffer.resize(len, 0);
        self.file.read_exact_at(buffer, at).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => {
                Code::Truncated.error("the file shrank while it was being read")
            }
            _ => Code::IoFailed.error(format!("cannot read {len} bytes at {at}: {e}")),
        })?;
        Ok(buffer)
    }
}

impl Keep for FileSource {
    fn keep<'a>(&'a self, _: u64, _: usize, buffer: &mut Vec<u8>) -> Cow<'a, [u8]> {
        Cow::Owned(std::mem::take(buffer))
    }
}

/// A field of a source, or a part of it that is not a field.
pub struct Part<'a> {
    /// Its name for people: `message 3 at byte 4711`, with the number of the field if the message has several.
    pub what: String,
    /// Offset and length of its message, and the field's number in the message.
    pub place: (u64, u64, usize),
    /// Its key and bytes, or the reason for their absence.
    pub field: std::result::Result<Field<'a>, String>,
}

/// A field with its key.
pub struct Field<'a> {
    pub header: Header,
    pub bytes: Cow<'a, [u8]>,
    pub key: Texts,
}

/// Iterates over a source.
pub struct Batches<'a, S: ?Sized> {
    source: &'a S,
    messages: Messages,
    ordinal: u64,
    buffer: Vec<u8>,
    end: bool,
}

impl<'a, S: Keep + ?Sized> Batches<'a, S> {
    pub fn new(source: &'a S) -> Batches<'a, S> {
        Batches { source, messages: Messages::new(), ordinal: 0, buffer: Vec::new(), end: false }
    }

    /// Whether the source is at its end.
    pub fn at_end(&self) -> bool {
        self.end
    }

    /// Number of bytes that are done.
    pub fn position(&self) -> u64 {
        self.messages.position()
    }

    /// The next fields with their keys; none at the end.
    pub fn next(&mut self, reader: &mut SharedHelper<'_>) -> Result<Option<Vec<Part<'a>>>> {
        let (mut parts, mut bytes) = (Vec::new(), 0usize);
        while !self.end && parts.len() < MANY && bytes < LARGE {
            bytes = bytes.saturating_add(self.message(&mut parts)?);
        }
        let headers: Vec<&Header> =
            parts.iter().filter_map(|part: &Part<'_>| part.field.as_ref().ok()).map(|f| &f.header).collect();
        let mut keys = reader.keys(&headers)?.into_iter();
        for part in &mut parts {
            if let Ok(field) = &mut part.field {
                match keys.next() {
                    Some(Ok(key)) => field.key = key,
                    Some(Err(why)) => part.field = Err(why),
                    None => part.field = Err("the helper sent no key for it".to_owned()),
                }
            }
        }
        Ok((!parts.is_empty()).then_some(parts))
    }

    /// Adds the next message; returns the number of its bytes that are kept.
    fn message(&mut self, parts: &mut Vec<Part<'a>>) -> Result<usize> {
        let found = self.messages.next(self.source, &mut self.buffer)?;
        self.ordinal += 1;
        let ordinal = self.ordinal;
        let what = |offset: u64| format!("message {ordinal} at byte {offset}");
        let (offset, len, several) = match found {
            None => {
                self.end = true;
                return Ok(0);
            }
            Some(Stretch::Damaged { offset, why }) => {
                parts.push(Part { what: what(offset), place: (offset, 0, 0), field: Err(why) });
                return Ok(0);
            }
            Some(Stretch::Message { offset, bytes }) => match fields(bytes) {
                Ok(fields) if fields.len() < 2 => (offset, bytes.len(), None),
                Ok(fields) => {
                    let owned: Vec<Vec<u8>> = fields.into_iter().map(Cow::into_owned).collect();
                    (offset, bytes.len(), Some(owned))
                }
                Err(why) => {
                    parts.push(Part { what: what(offset), place: (offset, 0, 0), field: Err(why) });
                    return Ok(0);
                }
            },
        };
        let mut add = |n: usize, what: String, bytes: Cow<'a, [u8]>| {
            let field = Field { header: Header::new(&bytes), bytes, key: Texts::new() };
            parts.push(Part { what, place: (offset, len as u64, n), field: Ok(field) });
        };
        match several {
            None => add(0, what(offset), self.source.keep(offset, len, &mut self.buffer)),
            Some(fields) => {
                let total = fields.len();
                for (n, field) in fields.into_iter().enumerate() {
                    add(n, format!("{}, field {} of {total}", what(offset), n + 1), Cow::Owned(field));
                }
            }
        }
        Ok(if matches!(parts.last(), Some(Part { field: Ok(Field { bytes: Cow::Owned(_), .. }), .. })) {
            len
        } else {
            0
        })
    }
}
