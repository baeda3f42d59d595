//! Showing what a job flushed and, because it was killed, did not live to show: by one process, later.
//!
//! A flush makes steps durable, has them made known, and then has the file show them. In between the file shows less
//! than is known. A few bytes of its header are missing, which follow from what is known.

use std::path::Path;

use fieldstone_core::env::{Disk, DiskFile, read_exact_at, write_all_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::parse::{self, Source};
use fieldstone_format::netcdf::write;

use super::image;
use super::sets::STEP;

/// Has the file at `path` show all that is known to be in it: a slab at `last`, and whatever lies before it. Whether it had
/// to be changed.
///
/// Errors: `Denied` for the file of another user; `Corrupt` for one that is damaged.
pub fn show(disk: &dyn Disk, path: &Path, last: u64) -> Result<bool> {
    let failed = |e| Error::io("open", path, e);
    let file = disk.open_plain(path, false).map_err(failed)?;
    let Some((at, bytes)) = missing(&*file, last).map_err(|error| error.context(path.display()))? else {
        return Ok(false);
    };
    let file = disk.open_plain(path, true).map_err(failed)?;
    write_all_at(&*file, &bytes, at)
        .and_then(|()| file.sync_data())
        .map_err(|e| Error::io("write", path, e))?;
    Ok(true)
}

/// What has to be written for a file to show a slab at `last`, and where.
fn missing(file: &dyn DiskFile, last: u64) -> Result<Option<(u64, Vec<u8>)>> {
    let failed = |e: std::io::Error| Error::corrupt(format!("its header cannot be read: {e}"));
    let mut magic = [0; write::UNFINISHED.len()];
    read_exact_at(file, &mut magic, 0).map_err(failed)?;
    if magic == write::UNFINISHED {
        return Ok(Some((0, write::MAGIC.to_vec())));
    }
    let (header, places) = parse::header(&OpenSource(file))?;
    let layout = Layout::of(&header, places.header_len)?;
    let has_steps = header.dims.record.is_some_and(|dim| header.dims.get(dim as usize).name == STEP);
    let (Some(shown), true) = (header.numrecs, has_steps && layout.record_size > 0) else { return Ok(None) };
    let records = last.checked_sub(layout.record_begin).map_or(0, |at| at / layout.record_size + 1);
    Ok((shown < records).then(|| image::count_of_records(records)))
}

/// An open file as its header is read.
struct OpenSource<'a>(&'a dyn DiskFile);

impl Source for OpenSource<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.0.read_at(buffer, offset).map_err(|e| Error::corrupt(format!("its header cannot be read: {e}")))
    }
    fn len(&self) -> Result<u64> {
        Ok(self.0.stat().map_err(|e| Error::corrupt(format!("its length cannot be read: {e}")))?.len)
    }
}
