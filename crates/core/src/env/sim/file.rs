//! The bytes of one simulated file: the content that readers see now, the content that a power cut would leave, and,
//! under the weak profile, the content that other hosts may still see.
//!
//! Invariants:
//! * `bytes` is the content that the writing host sees;
//! * `journal`, kept in worlds that can crash, holds the durable bytes, and every write and length since; a sync
//!   moves the second into the first;
//! * `recent`, kept under the weak profile, holds the bytes that every host sees, and the writes that some hosts may
//!   not see yet.

use std::io;
use std::sync::Arc;

use rustix::io::Errno;

use super::tree::{Access, Ino};
use crate::sync::plain::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A file, shared by its names and its open handles.
#[derive(Debug)]
pub(super) struct FileNode {
    pub(super) ino: Ino,
    data: RwLock<FileData>,
}

impl FileNode {
    pub(super) fn new(ino: Ino, data: FileData) -> Arc<FileNode> {
        Arc::new(FileNode { ino, data: RwLock::new(data) })
    }

    pub(super) fn read(&self) -> RwLockReadGuard<'_, FileData> {
        self.data.read()
    }

    pub(super) fn write(&self) -> RwLockWriteGuard<'_, FileData> {
        self.data.write()
    }
}

/// Bytes written at an offset.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) offset: usize,
    pub(super) data: Vec<u8>,
}

impl Piece {
    pub(super) fn end(&self) -> usize {
        self.offset + self.data.len()
    }

    /// Copies the piece into `bytes`, which grow (with zeros in a gap) as needed.
    pub(super) fn apply(&self, bytes: &mut Vec<u8>) {
        if bytes.len() < self.end() {
            bytes.resize(self.end(), 0);
        }
        bytes[self.offset..self.end()].copy_from_slice(&self.data);
    }
}

/// The durable content of a file, and its changes since.
#[derive(Debug, Clone, Default)]
pub(super) struct Journal {
    pub(super) durable: Vec<u8>,
    pub(super) pending: Vec<Piece>,
    /// The lengths of the file since its last sync, oldest first.
    pub(super) lens: Vec<usize>,
}

/// The content that the other hosts of a weak world see.
#[derive(Debug, Clone, Default)]
pub(super) struct Recent {
    /// The content that every host sees.
    pub(super) base: Vec<u8>,
    /// Writes that only their own host is sure to see, oldest first.
    pub(super) writes: Vec<RecentWrite>,
}

/// A write that another host may not see yet.
#[derive(Debug, Clone)]
pub(super) struct RecentWrite {
    pub(super) time: i64,
    pub(super) host: Arc<str>,
    pub(super) piece: Piece,
    /// Whether this sets the length to the offset of the (empty) piece, and so discards the bytes beyond it.
    pub(super) sets_len: bool,
}

/// Changes to the number of a file's names.
#[derive(Debug, Clone, Default)]
pub(super) struct Named {
    /// The time of the last one.
    pub(super) last: i64,
    /// Those that other hosts may not see yet: the number of names before each.
    pub(super) past: Vec<(Stamp, u32)>,
}

/// Everything about a file except its names.
#[derive(Debug, Clone)]
pub(super) struct FileData {
    pub(super) bytes: Vec<u8>,
    pub(super) mtime: i64,
    pub(super) uid: u32,
    pub(super) access: Access,
    /// Permission bits; only those for reading have an effect.
    pub(super) mode: u32,
    pub(super) links: u32,
    /// When it got its names, and lost them; under the weak profile with the hosts that did it, oldest first.
    pub(super) named: Named,
    pub(super) journal: Option<Journal>,
    pub(super) recent: Option<Recent>,
}

impl FileData {
    pub(super) fn new(uid: u32, mtime: i64, tracked: bool, weak: bool) -> FileData {
        FileData {
            bytes: Vec::new(),
            mtime,
            uid,
            access: Access::All,
            mode: 0o644,
            links: 0,
            named: Named { last: mtime, past: Vec::new() },
            journal: tracked.then(Journal::default),
            recent: weak.then(Recent::default),
        }
    }

    /// Counts a name that the file gets or loses.
    pub(super) fn set_links(&mut self, links: u32, by: &Stamp) {
        if self.recent.is_some() && self.links > 0 {
            self.named.past.push((by.clone(), self.links));
        }
        self.links = links;
        self.named.last = by.time;
    }

    /// How many names a host sees, with the changes of others up to `moment`.
    pub(super) fn links_at(&self, host: &str, moment: i64) -> u32 {
        let unseen = |(by, _): &&(Stamp, u32)| &*by.host != host && by.time > moment;
        self.named.past.iter().find(unseen).map_or(self.links, |(_, before)| *before)
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Reads the content that the writing host sees.
    pub(super) fn read_at(&self, buffer: &mut [u8], offset: u64) -> usize {
        let Ok(start) = usize::try_from(offset) else { return 0 };
        let Some(rest) = self.bytes.get(start..) else { return 0 };
        let n = rest.len().min(buffer.len());
        buffer[..n].copy_from_slice(&rest[..n]);
        n
    }

    /// Writes all of `data`. If memory does not suffice, it fails without writing anything.
    pub(super) fn write_at(&mut self, data: &[u8], offset: u64, by: &Stamp) -> io::Result<()> {
        if data.is_empty() {
            return Ok(());
        }
        let end = usize::try_from(offset).ok().and_then(|o| o.checked_add(data.len()));
        let end = end.filter(|e| isize::try_from(*e).is_ok()).ok_or(Errno::FBIG)?;
        let offset = end - data.len();
        let old_len = self.bytes.len();
        if end > old_len {
            self.bytes.try_reserve(end - old_len).map_err(|_| Errno::NOSPC)?;
        }
        // An append copies the data once; only a gap is filled with zeros.
        if offset >= old_len {
            self.bytes.resize(offset, 0);
            self.bytes.extend_from_slice(data);
        } else {
            let inside = data.len().min(old_len - offset);
            self.bytes[offset..offset + inside].copy_from_slice(&data[..inside]);
            self.bytes.extend_from_slice(&data[inside..]);
        }
        self.mtime = by.time;
        if let Some(journal) = &mut self.journal {
            journal.pending.push(Piece { offset, data: data.to_vec() });
            if end > old_len {
                journal.lens.push(end);
            }
        }
        if let Some(recent) = &mut self.recent {
            let piece = Piece { offset, data: data.to_vec() };
            recent.writes.push(RecentWrite { time: by.time, host: by.host.clone(), piece, sets_len: false });
        }
        Ok(())
    }

    /// Cuts the file, or adds a hole; fails only if memory does not suffice.
    ///
    /// The journal treats a cut also as a write of zeros over the removed bytes. So after a power cut, a file that
    /// has grown again may show the old bytes, zeros, or some of each, as on a real disk.
    pub(super) fn set_len(&mut self, len: u64, by: &Stamp) -> io::Result<()> {
        let len = usize::try_from(len).ok().filter(|l| isize::try_from(*l).is_ok()).ok_or(Errno::FBIG)?;
        let old_len = self.bytes.len();
        self.bytes.try_reserve(len.saturating_sub(old_len)).map_err(|_| Errno::NOSPC)?;
        self.bytes.resize(len, 0);
        self.mtime = by.time;
        if let Some(journal) = &mut self.journal {
            if len < old_len {
                journal.pending.push(Piece { offset: len, data: vec![0; old_len - len] });
            }
            if len != old_len {
                journal.lens.push(len);
            }
        }
        if let Some(recent) = &mut self.recent {
            let piece = Piece { offset: len, data: Vec::new() };
            recent.writes.push(RecentWrite { time: by.time, host: by.host.clone(), piece, sets_len: true });
        }
        Ok(())
    }

    /// Makes bytes and length durable.
    pub(super) fn sync(&mut self) {
        let len = self.bytes.len();
        if let Some(journal) = &mut self.journal {
            for piece in journal.pending.drain(..) {
                piece.apply(&mut journal.durable);
            }
            journal.durable.resize(len, 0);
            journal.lens.clear();
        }
    }

    /// Drops cached content: shows the bytes that the disk holds and the writes that it will still receive, at the
    /// current length.
    pub(super) fn evict(&mut self) {
        let len = self.bytes.len();
        if let Some(journal) = &self.journal {
            self.bytes = journal.durable.clone();
            journal.pending.iter().for_each(|p| p.apply(&mut self.bytes));
            self.bytes.resize(len, 0);
        }
    }

    /// Replaces the content for every host, durably; tests use it to tamper with a store.
    pub(super) fn replace(&mut self, bytes: Vec<u8>) {
        if let Some(journal) = &mut self.journal {
            *journal = Journal { durable: bytes.clone(), ..Journal::default() };
        }
        if let Some(recent) = &mut self.recent {
            *recent = Recent { base: bytes.clone(), writes: Vec::new() };
        }
        self.bytes = bytes;
    }
}

/// The writing host and the time.
#[derive(Debug, Clone)]
pub(super) struct Stamp {
    pub(super) host: Arc<str>,
    pub(super) time: i64,
}
