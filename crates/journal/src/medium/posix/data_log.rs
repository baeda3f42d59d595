//! A data log: where the bytes of large flushes go as they are archived.

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_core::env::{Disk, DiskFile, Env, creation_failed, write_all_at, write_all_streaming};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::{Id, data};

use super::layout::Layout;
use super::linked::Linked;
use crate::medium::{Address, DataWriter, Unsynced};

/// Bytes collected before they are written: large writes cost the page cache least.
const BUFFER: usize = 4 << 20;
/// Values of at least this size are written from the caller's memory.
const DIRECT: usize = 1 << 20;
/// Size of a page of the page cache.
const PAGE: u64 = 4096;
/// Bytes of one flush that stay in the page cache for the next reader. Bytes beyond that pass through the cache, so
/// that a large flush neither evicts the pages of others nor pays for fresh ones (J-2).
const CACHED: u64 = 32 << 20;

/// A data log being written.
#[derive(Debug)]
pub struct DataLog {
    disk: Arc<dyn Disk>,
    folder: PathBuf,
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    number: u32,
    /// Bytes in the file.
    written: u64,
    /// Bytes known to be durable.
    synced: u64,
    buffer: Vec<u8>,
    /// Whether the directory entry is durable.
    entered: bool,
    /// Whether a write failed: what was collected then is lost, and nothing more is taken.
    failed: bool,
    linked: Linked,
}

impl DataLog {
    /// Creates data log `number` of a writer.
    pub fn create(env: &Env, layout: &Layout, writer: Id, number: u32) -> Result<DataLog> {
        let path = layout.file(writer, number);
        let file = env.disk.create_alike(&path).map_err(|e| creation_failed(&*env.disk, &path, e))?;
        let mut buffer = Vec::with_capacity(BUFFER);
        buffer.extend_from_slice(&data::encode_header(writer, number));
        Ok(DataLog {
            disk: env.disk.clone(),
            folder: layout.data(),
            path,
            file,
            number,
            written: 0,
            synced: 0,
            buffer,
            entered: false,
            failed: false,
            linked: Linked::default(),
        })
    }

    /// Goes on with a data log behind its first `length` bytes, which are durable.
    pub fn go_on(
        env: &Env,
        layout: &Layout,
        (writer, number): (Id, u32),
        file: Arc<dyn DiskFile>,
        length: u64,
    ) -> DataLog {
        DataLog {
            disk: env.disk.clone(),
            folder: layout.data(),
            path: layout.file(writer, number),
            file,
            number,
            written: length,
            synced: length,
            buffer: Vec::with_capacity(BUFFER),
            entered: true,
            failed: false,
            linked: Linked::default(),
        }
    }

    fn write_buffer(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let outcome = self.write_out(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        outcome
    }

    fn write_out(&mut self, bytes: &[u8]) -> Result<()> {
        if self.failed {
            let path = self.path.display();
            return Err(Code::IoFailed.error(format!("an earlier write to {path} failed")));
        }
        let cached = self.written - self.synced < CACHED;
        let write = if cached { write_all_at } else { write_all_streaming };
        if let Err(e) = write(&*self.file, bytes, self.written) {
            self.failed = true;
            return Err(Error::io("write", &self.path, e));
        }
        if cached {
            self.file.start_writeback(self.written, bytes.len() as u64);
        }
        self.written += bytes.len() as u64;
        Ok(())
    }
}

impl DataWriter for DataLog {
    fn number(&self) -> u32 {
        self.number
    }

    fn write(&mut self, bytes: &[u8]) -> Result<Address> {
        let offset = self.written + self.buffer.len() as u64;
        let mut rest = bytes;
        // Every write but the last before a sync ends at a page: no page is written twice.
        if rest.len() >= DIRECT {
            let (head, tail) = rest.split_at(((PAGE - offset % PAGE) % PAGE) as usize);
            self.buffer.extend_from_slice(head);
            self.write_buffer()?;
            let (pages, tail) = tail.split_at(tail.len() - tail.len() % PAGE as usize);
            self.write_out(pages)?;
            rest = tail;
        }
        loop {
            let room = BUFFER - (self.written % PAGE) as usize - self.buffer.len();
            if rest.len() < room {
                self.buffer.extend_from_slice(rest);
                return Ok(offset);
            }
            let (head, tail) = rest.split_at(room);
            self.buffer.extend_from_slice(head);
            self.write_buffer()?;
            rest = tail;
        }
    }

    /// Writes all that was taken; the sync is that of the bytes, and of the folder where the name is new.
    fn unsynced(&mut self) -> Result<Unsynced> {
        self.write_buffer()?;
        let (file, path) = (self.file.clone(), self.path.clone());
        let bytes = self.written > self.synced;
        let folder = (!self.entered).then(|| (self.disk.clone(), self.folder.clone()));
        Ok(Unsynced::new(self.written, move || {
            if bytes {
                file.sync_data().map_err(|e| Error::io("sync", &path, e))?;
            }
            match &folder {
                Some((disk, folder)) => disk.sync_dir(folder).map_err(|e| Error::io("sync", folder, e)),
                None => Ok(()),
            }
        }))
    }

    fn note_synced(&mut self, upto: Address) {
        self.synced = self.synced.max(upto);
        self.entered = true;
    }

    fn synced(&self) -> Address {
        self.synced
    }

    fn check(&mut self) -> Result<()> {
        self.linked.check(&*self.disk, &*self.file, &self.path)
    }

    fn give_up(mut self: Box<Self>) {
        // The file under the name may now belong to another writer.
        if self.check().is_err() {
            return;
        }
        let _ = match self.synced {
            0 => self.disk.unlink(&self.path),
            synced => self.file.set_len(synced),
        };
    }

    fn is_gone(&self) -> bool {
        self.linked.is_gone()
    }
}
