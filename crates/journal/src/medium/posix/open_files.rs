//! Open files, shared between readers and bounded in number: a store of a thousand writers has more
//! files than a process may hold open.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fieldstone_core::env::{Disk, DiskFile, read_exact_at};
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::Id;

use super::layout::Layout;

/// Most files kept open for reading, if the process may hold that many.
const OPEN_MAX: usize = 256;
/// The errors of the system if the process, or the machine, has too many open files: ENFILE, EMFILE.
const TOO_MANY: [i32; 2] = [23, 24];

/// Files of the store's writers, opened for reading on demand.
#[derive(Debug)]
pub struct OpenFiles {
    disk: Arc<dyn Disk>,
    layout: Layout,
    open: Mutex<HashMap<(Id, u32), Arc<dyn DiskFile>>>,
    /// Files of takeovers, by the ids that name their data logs.
    takeovers: Mutex<HashMap<Id, PathBuf>>,
    /// How many are kept open at most: fewer than [`OPEN_MAX`] once the system refused one.
    most: AtomicUsize,
}

impl OpenFiles {
    /// No file is opened yet.
    pub fn new(disk: Arc<dyn Disk>, layout: Layout) -> OpenFiles {
        OpenFiles {
            disk,
            layout,
            open: Mutex::default(),
            takeovers: Mutex::default(),
            most: AtomicUsize::new(OPEN_MAX),
        }
    }

    /// The paths of the store.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// From now on file 0 of this id is a takeover.
    pub fn name_takeover(&self, id: Id, path: PathBuf) {
        self.takeovers.lock().insert(id, path);
    }

    /// File 0 of a writer is its log, or its takeover; file n its data log n.
    pub fn path(&self, writer: Id, number: u32) -> PathBuf {
        let takeover = || self.takeovers.lock().get(&writer).cloned();
        let takeover = if number == 0 { takeover() } else { None };
        takeover.unwrap_or_else(|| self.layout.file(writer, number))
    }

    /// Such a file as it is shown: relative to the store's folder.
    pub fn shown(&self, writer: Id, number: u32) -> String {
        let path = self.path(writer, number);
        path.strip_prefix(self.layout.root()).unwrap_or(&path).display().to_string()
    }

    /// The file `number` of `writer`, open for reading.
    pub fn get(&self, writer: Id, number: u32) -> Result<Arc<dyn DiskFile>> {
        let mut open = self.open.lock();
        if let Some(file) = open.get(&(writer, number)) {
            return Ok(file.clone());
        }
        let path = self.path(writer, number);
        let mut opened = self.disk.open_plain(&path, false);
        let refused = |e: &std::io::Error| e.raw_os_error().is_some_and(|code| TOO_MANY.contains(&code));
        if !open.is_empty() && opened.as_ref().is_err_and(refused) {
            // Half of the limit leaves room for other files that the process opens.
            self.most.store((open.len() / 2).max(1), Ordering::Relaxed);
            open.clear();
            opened = self.disk.open_plain(&path, false);
        }
        let file = opened.map_err(|e| {
            let error = Error::io("open", &path, e);
            match error.kind() {
                // The index names the file, so its absence is damage.
                fieldstone_core::ErrorKind::NotFound => Code::DataGone.error(error.message()),
                _ => error,
            }
        })?;
        if open.len() >= self.most.load(Ordering::Relaxed) {
            open.clear();
        }
        open.insert((writer, number), file.clone());
        Ok(file)
    }

    /// The file, at least `length` bytes long if it is: a handle that is behind another host's write is reopened.
    pub fn get_to(&self, writer: Id, number: u32, length: u64) -> Result<Arc<dyn DiskFile>> {
        let file = self.get(writer, number)?;
        match file.stat() {
            Ok(stat) if stat.len >= length => Ok(file),
            _ => self.reopened(writer, number),
        }
    }

    /// Fills `buffer` from `offset` of a writer's file.
    pub fn read(&self, writer: Id, number: u32, buffer: &mut [u8], offset: u64) -> Result<()> {
        let mut outcome = read_exact_at(&*self.get(writer, number)?, buffer, offset);
        if outcome.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::UnexpectedEof) {
            outcome = read_exact_at(&*self.reopened(writer, number)?, buffer, offset);
        }
        outcome.map_err(|e| {
            Error::io("read", &self.path(writer, number), e)
                .context(format!("{} bytes at {offset}", buffer.len()))
        })
    }

    /// Reads `length` bytes at `offset` of a writer's file; see [`read_vec`].
    pub fn read_vec(&self, writer: Id, number: u32, offset: u64, length: u64) -> Result<Vec<u8>> {
        let path = self.path(writer, number);
        match read_vec(&*self.get(writer, number)?, &path, offset, length) {
            Err(e) if e.kind() == fieldstone_core::ErrorKind::Corrupt => {
                read_vec(&*self.reopened(writer, number)?, &path, offset, length)
            }
            outcome => outcome,
        }
    }

    /// Closes what is open of a writer: another file has taken the name of its log.
    pub fn forget(&self, writer: Id) {
        self.open.lock().retain(|(of, _), _| *of != writer);
    }

    /// The file, reopened. A network file system may show a handle an old length, and asks its server at an open; and
    /// a file may have been restored since.
    fn reopened(&self, writer: Id, number: u32) -> Result<Arc<dyn DiskFile>> {
        self.open.lock().remove(&(writer, number));
        self.get(writer, number)
    }
}

/// Reads `length` bytes at `offset` into a new buffer, refusing lengths beyond the file's end before
/// anything is allocated.
pub fn read_vec(file: &dyn DiskFile, path: &Path, offset: u64, length: u64) -> Result<Vec<u8>> {
    let size = file.stat().map_err(|e| Error::io("stat", path, e))?.len;
    if offset.checked_add(length).is_none_or(|end| end > size) {
        return Err(Code::Truncated
            .error(format!("{} has {size} bytes, {length} are expected at {offset}", path.display())));
    }
    let mut buffer =
        vec![0; usize::try_from(length).map_err(|_| Code::OutOfMemory.error("not enough memory"))?];
    read_exact_at(file, &mut buffer, offset).map_err(|e| Error::io("read", path, e))?;
    Ok(buffer)
}
