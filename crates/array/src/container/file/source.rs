//! Files as sources for the header parsers.

use fieldstone_core::Result;
use fieldstone_core::env::comm::TeamFile;
use fieldstone_format::netcdf::Version;
use fieldstone_format::netcdf::parse::Source;

/// Reads a file on this rank alone.
#[derive(Debug, Clone)]
pub(crate) struct FileSource(pub TeamFile);

impl Source for FileSource {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.0.read_at(buffer, offset)
    }
    fn len(&self) -> Result<u64> {
        self.0.len()
    }
}

/// A file of ours without its magic, read as if it had one.
#[derive(Debug, Clone)]
pub(crate) struct UnfinishedSource(pub TeamFile, pub Version);

impl Source for UnfinishedSource {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let read = self.0.read_at(buffer, offset)?;
        let magic = magic(self.1);
        for (at, byte) in (offset..4).zip(buffer[..read].iter_mut()) {
            *byte = magic[at as usize];
        }
        Ok(read)
    }
    fn len(&self) -> Result<u64> {
        self.0.len()
    }
}

/// The first four bytes of a finished classic file.
pub(crate) fn magic(version: Version) -> [u8; 4] {
    [b'C', b'D', b'F', version as u8]
}
