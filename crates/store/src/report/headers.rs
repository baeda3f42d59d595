//! Headers of array files, which have no checksum: but of each array in a file the index says where it is, of which type and
//! shape. A header under which other programs would find something else there is damaged.
//!
//! The number of records is not compared: it may be behind (array-files.md, 4).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

use fieldstone_core::dtype::{DType, DTypeKind};
use fieldstone_core::env::DiskFile;
use fieldstone_core::{Error, Result};
use fieldstone_format::entry::{ArrayInfo, Grown};
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::{Header, NcType, Var, parse, write};
use fieldstone_journal::medium::posix::FileMedium;

/// No array of such a file begins before this offset; others have no header.
const BEGIN_LEAST: u64 = 4096;

/// Headers that were read, by file; `None` once a file was named.
#[derive(Debug, Default)]
pub struct ArrayHeaders(HashMap<String, Option<FileHeader>>);

#[derive(Debug)]
struct FileHeader {
    header: Header,
    record_size: u64,
}

impl ArrayHeaders {
    /// Corrupt if the header of the file does not describe the array at its place; of each file once.
    pub fn check(&mut self, files: &FileMedium, grown: &Grown, array: &ArrayInfo) -> Result<()> {
        if grown.offset < BEGIN_LEAST || !grown.path.ends_with(".nc") {
            return Ok(());
        }
        let known = match self.0.entry(grown.path.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let header = files.open_inside(&grown.path).and_then(|file| read(&*file, &grown.path));
                match header {
                    Ok(header) => place.insert(Some(header)),
                    Err(e) => {
                        place.insert(None);
                        return Err(e.context("the header of the file"));
                    }
                }
            }
        };
        if known.as_ref().is_none_or(|header| header.describes(grown.offset, array)) {
            return Ok(());
        }
        *known = None;
        let (offset, dtype, shape) = (grown.offset, array.dtype.name(), &array.shape);
        Err(Error::corrupt(format!(
            "the header of the file does not describe the array of {dtype} with shape {shape:?} at {offset}"
        )))
    }
}

fn read(file: &dyn DiskFile, path: &str) -> Result<FileHeader> {
    let (header, places) = parse::header(&HeaderBytes { file, path })?;
    let record_size = Layout::of(&header, places.header_len)?.record_size;
    Ok(FileHeader { header, record_size })
}

impl FileHeader {
    fn describes(&self, offset: u64, array: &ArrayInfo) -> bool {
        self.header.vars.iter().any(|var| self.is_array(var, offset, array))
    }

    fn is_array(&self, var: Var<'_>, offset: u64, array: &ArrayInfo) -> bool {
        let Some((ty, last)) = external(array.dtype) else { return false };
        let lengths: Vec<u64> =
            var.dims().iter().map(|dim| self.header.dims.get(*dim as usize).len).collect();
        let shape: Vec<u64> = array.shape.iter().copied().chain(last).collect();
        if var.ty() != ty {
            return false;
        }
        if !self.header.is_record(var) {
            return var.begin() == offset && lengths == shape;
        }
        // One record for each step, or, of an open extent, all of them.
        let is_step = || {
            let behind = offset.checked_sub(var.begin());
            lengths[1..] == shape[..]
                && behind.is_some_and(|behind| behind.is_multiple_of(self.record_size.max(1)))
        };
        let is_open = || var.begin() == offset && !shape.is_empty() && lengths[1..] == shape[1..];
        is_step() || is_open()
    }
}

/// The type of elements in a file, and the length of a last dimension (array-files.md, 2).
fn external(dtype: DType) -> Option<(NcType, Option<u64>)> {
    let ty = match (dtype.kind(), dtype.size()) {
        (DTypeKind::Bool, 1) | (DTypeKind::Int, 1) => NcType::Byte,
        (DTypeKind::Int, 2) => NcType::Short,
        (DTypeKind::Int, 4) => NcType::Int,
        (DTypeKind::Int, 8) => NcType::Int64,
        (DTypeKind::UInt, 1) => NcType::UByte,
        (DTypeKind::UInt, 2) => NcType::UShort,
        (DTypeKind::UInt, 4) => NcType::UInt,
        (DTypeKind::UInt, 8) => NcType::UInt64,
        (DTypeKind::Float, 4) => NcType::Float,
        (DTypeKind::Float, 8) => NcType::Double,
        (DTypeKind::Complex, 8) => return Some((NcType::Float, Some(2))),
        (DTypeKind::Complex, 16) => return Some((NcType::Double, Some(2))),
        (DTypeKind::Bytes, 1) => NcType::Char,
        (DTypeKind::Bytes, n) => return Some((NcType::Char, Some(n as u64))),
        _ => return None,
    };
    Some((ty, None))
}

/// The bytes of a file, which shows nothing yet if it is marked as unfinished: its header is whole all the same.
struct HeaderBytes<'a> {
    file: &'a dyn DiskFile,
    path: &'a str,
}

impl parse::Source for HeaderBytes<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let failed = |e| Error::io("read", Path::new(self.path), e);
        let mut filled = 0;
        while filled < buffer.len() {
            match self.file.read_at(&mut buffer[filled..], offset + filled as u64).map_err(failed)? {
                0 => break,
                n => filled += n,
            }
        }
        if offset == 0 && buffer[..filled].starts_with(&write::UNFINISHED) {
            buffer[..write::MAGIC.len()].copy_from_slice(&write::MAGIC);
        }
        Ok(filled)
    }

    fn len(&self) -> Result<u64> {
        self.file.stat().map(|stat| stat.len).map_err(|e| Error::io("look at", Path::new(self.path), e))
    }
}
