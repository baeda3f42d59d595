//! The communicator of one process: every collective is a copy, and its files are those of the disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Comm, CommFile, CommReader, CommWriter, FileMode, Reduce};
use crate::env::{Disk, DiskFile, read_exact_at, write_all_at};
use crate::{Error, Result};

/// A single rank with files on `disk`.
#[derive(Debug, Clone)]
pub struct SingleComm {
    disk: Arc<dyn Disk>,
}

impl SingleComm {
    /// Makes the only rank of a job, with files on `disk`.
    pub fn new(disk: Arc<dyn Disk>) -> SingleComm {
        SingleComm { disk }
    }
}

impl Comm for SingleComm {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn barrier(&self) -> Result<()> {
        Ok(())
    }
    fn broadcast(&self, _root: usize, data: Vec<u8>, _len: usize) -> Result<Vec<u8>> {
        Ok(data)
    }
    fn allgather(&self, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![data.to_vec()])
    }
    fn gather(&self, _root: usize, data: &[u8]) -> Result<Vec<Vec<u8>>> {
        Ok(vec![data.to_vec()])
    }
    fn exscan(&self, values: &mut [u64]) -> Result<()> {
        values.fill(0);
        Ok(())
    }
    fn allreduce(&self, _reduce: Reduce, _values: &mut [u64]) -> Result<()> {
        Ok(())
    }
    fn alltoallv(&self, parts: Vec<Vec<u8>>, _longest: usize) -> Result<Vec<Vec<u8>>> {
        Ok(parts)
    }
    fn open(&self, path: &Path, mode: FileMode) -> Result<Arc<dyn CommFile>> {
        Ok(Arc::new(DiskCommFile::open(&*self.disk, path, mode)?))
    }
}

/// A file of a [`Disk`] as a rank sees it: used by a single process, and by threads, which share it.
#[derive(Debug)]
pub struct DiskCommFile {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
}

impl DiskCommFile {
    /// Opens or creates `path` on `disk`.
    pub fn open(disk: &dyn Disk, path: &Path, mode: FileMode) -> Result<DiskCommFile> {
        let (action, file) = match mode {
            FileMode::CreateNew => ("create", disk.create_new(path)),
            FileMode::Read => ("open", disk.open_read(path)),
            FileMode::ReadWrite => ("open", disk.open_write(path)),
        };
        let file = file.map_err(|cause| Error::io(action, path, cause))?;
        Ok(DiskCommFile { file, path: path.to_owned() })
    }

    fn failed(&self, action: &str, cause: std::io::Error) -> Error {
        Error::io(action, &self.path, cause)
    }
}

impl CommWriter for DiskCommFile {
    fn write_at(&self, data: &[u8], offset: u64) -> Result<()> {
        write_all_at(&*self.file, data, offset).map_err(|cause| self.failed("write", cause))
    }
}

impl CommReader for DiskCommFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(cause) => return Err(self.failed("read", cause)),
            }
        }
        Ok(done)
    }
    fn read_all(&self, parts: &mut [(u64, &mut [u8])]) -> Result<()> {
        let read = |(offset, part): &mut (u64, &mut [u8])| read_exact_at(&*self.file, part, *offset);
        parts.iter_mut().try_for_each(read).map_err(|cause| self.failed("read", cause))
    }
    fn len(&self) -> Result<u64> {
        Ok(self.file.stat().map_err(|cause| self.failed("stat", cause))?.len)
    }
}

impl CommFile for DiskCommFile {
    fn set_len(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|cause| self.failed("set the length of", cause))
    }
    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|cause| self.failed("sync", cause))
    }
    fn visibility_barrier(&self) -> Result<()> {
        Ok(())
    }
    fn is_concurrent(&self) -> bool {
        true
    }
}
