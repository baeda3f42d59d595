//! A file in which a rank writes or reads without the page cache, because hints ask for it (`direct_write`,
//! `direct_read`).
//!
//! MPI libraries follow these hints on few file systems. Here they apply to all reads and writes by offset, which the
//! methods `direct` and `exchange` make; the MPI library handles the collective call of method `view`.
//!
//! Invariant: bytes are the same either way; the handle takes care of alignment.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::comm::hints::Hints;
use fieldstone_core::env::comm::layer::FileLayer;
use fieldstone_core::env::comm::{CommFile, TeamFile};
use fieldstone_core::env::{Disk, DiskFile, write_all_at};
use fieldstone_core::{Error, Result};

/// The hints that request it.
const WRITE: &str = "direct_write";
const READ: &str = "direct_read";

fn asks(hints: &Hints, key: &str) -> bool {
    hints.get(key).is_some_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// Whether the hints ask for writes without the page cache.
pub fn asks_to_write(hints: &Hints) -> bool {
    asks(hints, WRITE)
}

/// Whether the hints ask for reads without the page cache.
pub fn asks_to_read(hints: &Hints) -> bool {
    asks(hints, READ)
}

/// The hints, of these, that this layer follows.
pub fn taken(hints: &Hints) -> Hints {
    let own = hints.iter().filter(|(key, _)| [WRITE, READ].contains(key) && asks(hints, key));
    Hints::given(own.map(|(key, value)| (key.to_owned(), value.to_owned())))
}

/// A handle for writing, without the page cache if `direct` is true and the file system supports it.
pub fn handle_to_write(disk: &dyn Disk, path: &Path, direct: bool) -> io::Result<Arc<dyn DiskFile>> {
    let plain = disk.open_plain(path, true)?;
    match direct.then(|| plain.clone().direct()) {
        Some(Err(error)) if error.kind() == io::ErrorKind::Unsupported => Ok(plain),
        Some(handle) => handle,
        None => Ok(plain),
    }
}

/// The layer over a team's file.
#[derive(Debug)]
struct DirectIo {
    below: Arc<dyn CommFile>,
    handle: Arc<dyn DiskFile>,
    path: PathBuf,
    writes: bool,
    reads: bool,
}

/// The file, which is at `path` on this rank's `disk`, written and read as `hints` ask; unchanged if they ask for
/// nothing, or the file system does not support it. On this rank alone. Also returns whether it changed.
///
/// Errors: those of opening the file again.
pub fn over(
    file: &TeamFile,
    disk: &dyn Disk,
    path: &Path,
    hints: &Hints,
    to_write: bool,
) -> Result<(TeamFile, bool)> {
    let (writes, reads) = (to_write && asks_to_write(hints), asks_to_read(hints));
    if !writes && !reads {
        return Ok((file.clone(), false));
    }
    let handle = match disk.open_plain(path, writes).and_then(|plain| plain.direct()) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => return Ok((file.clone(), false)),
        opened => opened.map_err(|cause| Error::io("open", path, cause))?,
    };
    let layer = DirectIo { below: file.below(), handle, path: path.to_owned(), writes, reads };
    Ok((file.over(Arc::new(layer)), true))
}

impl FileLayer for DirectIo {
    fn below(&self) -> &dyn CommFile {
        &*self.below
    }

    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        match self.writes {
            true => write_all_at(&*self.handle, data, offset).map_err(|e| Error::io("write", &self.path, e)),
            false => self.below.write_at(data, offset),
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        if !self.reads {
            return self.below.read_at(buffer, offset);
        }
        let mut done = 0;
        while done < buffer.len() {
            match self.handle.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(cause) => return Err(Error::io("read", &self.path, cause)),
            }
        }
        Ok(done)
    }
}
