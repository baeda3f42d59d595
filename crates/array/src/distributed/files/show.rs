//! Completes the files of a killed job: one process later makes them show the steps that the job flushed.
//!
//! A flush makes steps durable, has the caller record them, and then makes the file show them. In between, the
//! file shows less than was recorded. It lacks a few bytes of its header, which follow from the record.

use std::path::Path;

use fieldstone_core::env::{Disk, DiskFile, read_exact_at, write_all_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::netcdf::layout::Layout;
use fieldstone_format::netcdf::parse::{self, Source};
use fieldstone_format::netcdf::write;

use super::image;
use super::sets::STEP;

/// Makes the file at `path` show everything that is known to be in it: a slab at `last`, and everything before it.
/// Returns whether the file had to change.
///
/// Errors: `Denied` for a file of another user; `Corrupt` for one that is damaged.
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

/// The bytes to write so that a file shows a slab at `last`, and their offset.
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

/// An open file as a source for the header's parser.
struct OpenSource<'a>(&'a dyn DiskFile);

impl Source for OpenSource<'_> {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        self.0.read_at(buffer, offset).map_err(|e| Error::corrupt(format!("its header cannot be read: {e}")))
    }
    fn len(&self) -> Result<u64> {
        Ok(self.0.stat().map_err(|e| Error::corrupt(format!("its length cannot be read: {e}")))?.len)
    }
}
