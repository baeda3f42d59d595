//! A container for tools that inspect it: its header with names as in the file or as paths, and its bytes. Programs
//! that compute with values open it as a container instead.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_array::container::Metadata;
use fieldstone_array::container::cdl::Verbatim;
use fieldstone_array::container::validate::{Report, validate};
use fieldstone_core::env::{DiskFile, Env};
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::parse::{self, Source};
use fieldstone_format::netcdf::{Attrs, Header, paths};
use fieldstone_format::partitioned;

/// Form of names when a netCDF file is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// As in the file: the names that plain netCDF tools see.
    AsInFile,
    /// As paths, if the file says that its names spell paths.
    Paths,
}

/// An open container.
#[derive(Debug)]
pub struct Look {
    metadata: Arc<dyn Metadata>,
    bytes: Bytes,
    len: u64,
    header_bytes: u64,
}

/// The file's bytes, with its path for errors.
#[derive(Debug)]
struct Bytes {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
}

impl Bytes {
    fn open(path: &Path) -> Result<Bytes> {
        let file = Env::real().disk.open_read(path).map_err(|e| Error::io("open", path, e))?;
        Ok(Bytes { path: path.to_owned(), file })
    }
}

impl Source for Bytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let at = offset.saturating_add(done as u64);
            match self.file.read_at(rest, at).map_err(|e| Error::io("read", &self.path, e))? {
                0 => break,
                some => done += some,
            }
        }
        Ok(done)
    }
    fn len(&self) -> Result<u64> {
        Ok(self.file.stat().map_err(|e| Error::io("stat", &self.path, e))?.len)
    }
}

/// Opens a container for inspection.
///
/// Errors: NotFound, Denied; Corrupt with offset and rule if it is not a container.
pub fn open(path: &Path, names: Names) -> Result<Look> {
    let bytes = Bytes::open(path)?;
    let len = bytes.len()?;
    let mut magic = [0; 4];
    if bytes.read_at(&mut magic, 0)? == 4 && magic == partitioned::MAGIC {
        let container = super::open(path, super::Mode::Read, None)?;
        let header_bytes = container.layout()?.header_len;
        return Ok(Look { metadata: container.metadata()?, bytes, len, header_bytes });
    }
    let (mut header, places) = parse::header(&bytes).map_err(|error| error.context(path.display()))?;
    if names == Names::Paths {
        show_paths(&mut header);
    }
    let metadata = Verbatim::new(header, len).map_err(|error| error.context(path.display()))?;
    Ok(Look { metadata: Arc::new(metadata), bytes, len, header_bytes: places.header_len })
}

/// Checks whether a file keeps to its format, netCDF classic or with the partitioned header, and lists its faults.
///
/// Errors: NotFound, Denied, Unavailable. The report, not an error, describes wrong bytes.
pub fn check(path: &Path) -> Result<Report> {
    validate(&Bytes::open(path)?)
}

/// Names of a header as paths, without the attribute that says how they are escaped.
fn show_paths(header: &mut Header) {
    if !paths::is_escaped(&header.attrs) {
        return;
    }
    header.dims.names = header.dims.names.iter().map(paths::decode).collect();
    header.vars.names = header.vars.names.iter().map(paths::decode).collect();
    let mut attrs = Attrs::default();
    for attr in header.attrs.iter().filter(|attr| attr.name != paths::ATTRIBUTE) {
        attrs.push(&paths::decode(attr.name), attr.ty, attr.value);
    }
    header.attrs = attrs;
}

impl Look {
    /// Its header.
    pub fn metadata(&self) -> &dyn Metadata {
        &*self.metadata
    }

    /// Bytes of the header.
    pub fn header_bytes(&self) -> u64 {
        self.header_bytes
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.len
    }

    /// The file's name, without folder and extension: CDL's name of the container.
    pub fn name(&self) -> String {
        self.bytes.path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Reads the file's bytes from `offset` on into `buffer`, as far as both last.
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.bytes.read_at(buffer, offset)
    }
}
