//! A data log: where the bytes of large flushes go as they are archived.

use std::path::PathBuf;
use std::sync::Arc;

use fieldstone_core::env::{DiskFile, Env, write_all_at, write_all_streaming};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::{Id, data};

use super::linked::Linked;
use crate::layout::Layout;

/// Bytes collected before they are written: large writes cost the page cache least.
const BUFFER: usize = 4 << 20;
/// Values of at least this size are written from the caller's memory.
const DIRECT: usize = 1 << 20;
/// Size of a page of the page cache.
const PAGE: u64 = 4096;
/// Bytes of one flush that stay in the page cache for whoever reads them next. What goes beyond passes
/// through it, so that a large flush neither evicts what others use nor pays for fresh pages.
const CACHED: u64 = 32 << 20;

/// A data log being written.
#[derive(Debug)]
pub struct DataLog {
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

/// What is to be synced of a data log, without a lock on it.
#[derive(Debug)]
pub struct Unsynced {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    /// Bytes that are durable when the sync has returned.
    upto: u64,
    bytes: bool,
    name: bool,
}

impl Unsynced {
    /// Syncs the bytes, and the folder where the name is new.
    pub fn sync(&self, env: &Env, layout: &Layout) -> Result<()> {
        if self.bytes {
            self.file.sync_data().map_err(|e| Error::io("sync", &self.path, e))?;
        }
        if self.name {
            let folder = layout.data();
            env.disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))?;
        }
        Ok(())
    }
}

impl DataLog {
    /// Creates data log `number` of a writer.
    pub fn create(env: &Env, layout: &Layout, writer: Id, number: u32) -> Result<DataLog> {
        let path = layout.file(writer, number);
        let file = env.disk.create_alike(&path).map_err(|e| Error::io("create", &path, e))?;
        let mut buffer = Vec::with_capacity(BUFFER);
        buffer.extend_from_slice(&data::encode_header(writer, number));
        Ok(DataLog {
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

    /// Its number.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Bytes known to be durable.
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// Takes bytes; returns their offset in the file.
    pub fn write(&mut self, bytes: &[u8]) -> Result<u64> {
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

    /// Writes all that was taken; what is to be synced then.
    pub fn unsynced(&mut self) -> Result<Unsynced> {
        self.write_buffer()?;
        let (upto, bytes) = (self.written, self.written > self.synced);
        Ok(Unsynced { path: self.path.clone(), file: self.file.clone(), upto, bytes, name: !self.entered })
    }

    /// A sync has returned.
    pub fn note_synced(&mut self, done: &Unsynced) {
        self.synced = self.synced.max(done.upto);
        self.entered = true;
    }

    /// Whether the file was found gone.
    pub fn is_gone(&self) -> bool {
        self.linked.is_gone()
    }

    /// Unavailable where the file is gone from its place.
    pub fn check(&mut self, env: &Env) -> Result<()> {
        self.linked.check(&*env.disk, &*self.file, &self.path)
    }
}
