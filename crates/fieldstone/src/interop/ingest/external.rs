//! Files whose values stay in them: checks which files can, and whether they are unchanged.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use fieldstone_core::{Code, Error, Result};
use fieldstone_store::api::FileState;

use super::{HDF5, read_head};

/// The file's state now. Invalid if its values cannot stay in it.
pub fn look(path: &Path) -> Result<FileState> {
    let head = read_head(path).map_err(|e| Error::io("read", path, e))?;
    if head.starts_with(b"FSU") {
        return Err(Code::ContainerUnfinished
            .error("the container is not finished: its writer has not closed it yet, or was stopped")
            .with_hint(
                "take it when its writer has closed it; if the writer was stopped, write the container again",
            ));
    }
    if ![&b"CDF\x01"[..], b"CDF\x02", b"CDF\x05", b"FSP"].iter().any(|magic| head.starts_with(magic)) {
        let found = match () {
            () if head.starts_with(HDF5) => "this is a netCDF-4 (HDF5) file",
            () => "this file has another format",
        };
        return Err(Code::FileFormat
            .error(format!(
                "only GRIB, netCDF classic files and containers can be taken without a copy: {found}"
            ))
            .with_hint("take it with a copy of its bytes"));
    }
    state(path)
}

/// Fails with Conflict if the file changed.
pub fn check(path: &Path, seen: FileState) -> Result<()> {
    if state(path)? == seen {
        return Ok(());
    }
    Err(Code::FileChanged
        .error("the file changed while it was being taken")
        .with_hint("take it again after its last writer ends"))
}

/// The state of a file: its size and change time.
pub fn state(path: &Path) -> Result<FileState> {
    let facts = std::fs::metadata(path).map_err(|e| Error::io("look at", path, e))?;
    let mtime = facts.mtime().saturating_mul(1_000_000_000).saturating_add(facts.mtime_nsec());
    Ok(FileState { nbytes: facts.len(), mtime })
}
