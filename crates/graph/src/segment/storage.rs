//! The place of a segment's bytes: in memory, or in the pages of a file.
//!
//! Pages of files are read on demand, compared with their checksums, and kept in a cache that all segments of
//! a process share. Nothing is mapped into memory, because another process can shorten a file.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use std::hash::BuildHasherDefault;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fieldstone_core::env::{Disk, DiskFile, read_exact_at};
use fieldstone_core::sync::{Mutex, MutexGuard};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::graph_segment::PAGE;
use fieldstone_format::graph_segment::directory::{Directory, Section, Summary, TRAILER};
use fieldstone_format::{Id, block, crc};

use super::outside;
use crate::hashing::NumberHasher;

/// Parts of the cache, each with a lock of its own.
const SHARDS: usize = 16;
/// Longest directory that is read: that of a segment with some 10^10 relations.
const DIRECTORY_MAX: u64 = 1 << 30;

/// Bytes of a section.
#[derive(Debug)]
pub enum SectionBytes<'a> {
    /// Of a segment in memory.
    Borrowed(&'a [u8]),
    /// Of one page.
    Page(Arc<[u8]>, Range<usize>),
    /// Of several pages.
    Owned(Vec<u8>),
}

impl Deref for SectionBytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            SectionBytes::Borrowed(bytes) => bytes,
            SectionBytes::Page(page, range) => &page[range.clone()],
            SectionBytes::Owned(bytes) => bytes,
        }
    }
}

/// The place of a segment's bytes.
#[derive(Debug)]
pub enum Storage {
    /// In memory, by section.
    Memory(Vec<Vec<u8>>),
    /// In a file.
    File(FileStorage),
}

impl Storage {
    /// Raw bytes of a section.
    pub fn len(&self, section: Section) -> u64 {
        match self {
            Storage::Memory(sections) => sections[section as usize].len() as u64,
            Storage::File(file) => file.directory.sections[section as usize].length,
        }
    }

    /// Its size in bytes: in memory, or in its file.
    pub fn bytes(&self) -> u64 {
        match self {
            Storage::Memory(sections) => sections.iter().map(|section| section.len() as u64).sum(),
            Storage::File(file) => file.bytes,
        }
    }

    /// Bytes of a section; Corrupt if the section is shorter.
    pub fn read(&self, section: Section, from: usize, len: usize) -> Result<SectionBytes<'_>> {
        let to = from.checked_add(len).filter(|to| *to as u64 <= self.len(section)).ok_or_else(outside)?;
        match self {
            Storage::Memory(sections) => Ok(SectionBytes::Borrowed(&sections[section as usize][from..to])),
            Storage::File(file) => file.read(section, from..to),
        }
    }
}

/// The page of a section that was read last: a caller that reads a section from front to back asks the cache
/// once for each page.
#[derive(Debug, Default)]
pub struct PageCursor {
    page: Option<(usize, Arc<[u8]>)>,
}

impl Storage {
    /// Bytes of a section, mostly from the cursor's page; Corrupt if the section is shorter.
    #[inline]
    pub fn read_on<'a>(
        &'a self,
        section: Section,
        from: usize,
        len: usize,
        cursor: &'a mut PageCursor,
    ) -> Result<Cow<'a, [u8]>> {
        let to = from.checked_add(len).filter(|to| *to as u64 <= self.len(section)).ok_or_else(outside)?;
        match self {
            Storage::Memory(sections) => Ok(Cow::Borrowed(&sections[section as usize][from..to])),
            Storage::File(_) if len == 0 => Ok(Cow::Borrowed(&[])),
            Storage::File(file) => file.read_on(section, from..to, cursor),
        }
    }
}

/// Numbers of files, so that the cache never confuses pages of two files.
static FILES: AtomicU64 = AtomicU64::new(0);

/// A segment's file.
#[derive(Debug)]
pub struct FileStorage {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    number: u64,
    bytes: u64,
    directory: Directory,
    cache: Arc<PageCache>,
}

impl FileStorage {
    /// Opens the segment of a store.
    pub fn open(disk: &dyn Disk, path: &Path, store: Id, cache: Arc<PageCache>) -> Result<FileStorage> {
        let io = |e| Error::io("read", path, e);
        let file = disk.open_plain(path, false).map_err(|e| Error::io("open", path, e))?;
        let bytes = file.stat().map_err(io)?.len;
        let named = |e: Error| e.context(path.display());
        let Some(at) = bytes.checked_sub(TRAILER as u64) else {
            return Err(named(Error::corrupt("it is too short to be a segment")));
        };
        let mut trailer = [0; TRAILER];
        read_exact_at(&*file, &mut trailer, at).map_err(io)?;
        let (offset, length, sum) = Directory::find(&trailer, bytes).map_err(named)?;
        if length > DIRECTORY_MAX {
            return Err(named(Error::corrupt("its directory has an impossible length")));
        }
        let mut directory = vec![0; length as usize];
        read_exact_at(&*file, &mut directory, offset).map_err(io)?;
        if crc(&directory) != sum {
            return Err(named(Code::Checksum.error("its directory does not match its checksum")));
        }
        let directory = Directory::decode(&directory, offset).map_err(named)?;
        if directory.store != store {
            return Err(named(Error::corrupt("it belongs to another store")));
        }
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        Ok(FileStorage { file, path: path.to_owned(), number, bytes, directory, cache })
    }

    /// The summary in its directory.
    pub fn summary(&self) -> Summary {
        self.directory.summary.clone()
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn read(&self, section: Section, range: Range<usize>) -> Result<SectionBytes<'_>> {
        let first = range.start / PAGE;
        if range.is_empty() {
            return Ok(SectionBytes::Borrowed(&[]));
        }
        if (range.end - 1) / PAGE == first {
            let page = self.page(section, first)?;
            return Ok(SectionBytes::Page(page, range.start - first * PAGE..range.end - first * PAGE));
        }
        let mut bytes = Vec::with_capacity(range.len());
        let mut at = range.start;
        while at < range.end {
            let number = at / PAGE;
            let page = self.page(section, number)?;
            let end = (range.end - number * PAGE).min(page.len());
            bytes.extend_from_slice(&page[at - number * PAGE..end]);
            at = number * PAGE + end;
        }
        Ok(SectionBytes::Owned(bytes))
    }

    fn read_on<'a>(
        &self,
        section: Section,
        range: Range<usize>,
        cursor: &'a mut PageCursor,
    ) -> Result<Cow<'a, [u8]>> {
        let number = range.start / PAGE;
        if (range.end - 1) / PAGE != number {
            return self.read(section, range).map(|bytes| Cow::Owned(bytes.to_vec()));
        }
        if cursor.page.as_ref().is_none_or(|(known, _)| *known != number) {
            cursor.page = Some((number, self.page(section, number)?));
        }
        let within = range.start - number * PAGE..range.end - number * PAGE;
        let bytes = cursor.page.as_ref().and_then(|(_, page)| page.get(within)).ok_or_else(outside)?;
        Ok(Cow::Borrowed(bytes))
    }

    fn page(&self, section: Section, number: usize) -> Result<Arc<[u8]>> {
        let key = (self.number, section as u8, number as u32);
        if let Some(page) = self.cache.get(&key) {
            return Ok(page);
        }
        let pages = &self.directory.sections[section as usize];
        let place = pages.pages.get(number).ok_or_else(outside)?;
        let mut stored = vec![0; place.stored as usize];
        let read = read_exact_at(&*self.file, &mut stored, place.offset);
        read.map_err(|e| Error::io("read", &self.path, e))?;
        let named = |e: Error| e.context(format!("{} at byte {}", self.path.display(), place.offset));
        if crc(&stored) != place.crc {
            return Err(named(Code::Checksum.error("a page does not match its checksum")));
        }
        let mut page: Arc<[u8]> = std::iter::repeat_n(0, pages.raw_len(number)).collect();
        // Nobody else has the page yet, so it can be written.
        if let Some(raw) = Arc::get_mut(&mut page) {
            block::unpack_checked(&stored, raw).map_err(named)?;
        }
        self.cache.put(key, page.clone());
        Ok(page)
    }
}

/// File, section, page.
type PageKey = (u64, u8, u32);

/// A bounded cache of pages. It evicts pages that were not used since they were last considered. Pages of
/// rows go first: they are most of the bytes, and each is needed seldom, while every step through the graph
/// needs places, offsets and names.
#[derive(Debug)]
pub struct PageCache {
    shards: Vec<Mutex<Shard>>,
    /// Bytes of one shard.
    room: usize,
    /// Bytes read from files.
    read: AtomicU64,
}

/// Rows may always use at least this part of the room.
const ROWS_PART: usize = 4;

#[derive(Debug, Default)]
struct Shard {
    /// Each with a flag that says whether it was used again.
    pages: HashMap<PageKey, (Arc<[u8]>, bool), BuildHasherDefault<NumberHasher>>,
    rows: PageQueue,
    others: PageQueue,
}

/// Pages in the order in which they came.
#[derive(Debug, Default)]
struct PageQueue {
    order: VecDeque<PageKey>,
    bytes: usize,
}

impl Shard {
    fn shrink(&mut self, room: usize) {
        while self.rows.bytes + self.others.bytes > room {
            let queue = if self.rows.bytes > room / ROWS_PART { &mut self.rows } else { &mut self.others };
            let Some(oldest) = queue.order.pop_front() else { return };
            let asked = self.pages.get_mut(&oldest).is_some_and(|(_, asked)| std::mem::take(asked));
            if asked {
                queue.order.push_back(oldest);
            } else {
                queue.bytes -= self.pages.remove(&oldest).map_or(0, |(page, _)| page.len());
            }
        }
    }
}

fn shard_of(key: &PageKey) -> usize {
    (key.0 as usize * 31 + usize::from(key.1) * 7 + key.2 as usize) % SHARDS
}

impl PageCache {
    /// A cache of this many bytes.
    pub fn new(bytes: usize) -> Arc<PageCache> {
        let shards = (0..SHARDS).map(|_| Mutex::default()).collect();
        Arc::new(PageCache { shards, room: bytes / SHARDS, read: AtomicU64::new(0) })
    }

    /// Bytes of pages that were read from files so far.
    pub fn bytes_read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    fn shard(&self, key: &PageKey) -> MutexGuard<'_, Shard> {
        self.shards[shard_of(key)].lock()
    }

    fn get(&self, key: &PageKey) -> Option<Arc<[u8]>> {
        self.shard(key).pages.get_mut(key).map(|(page, asked)| {
            *asked = true;
            page.clone()
        })
    }

    fn put(&self, key: PageKey, page: Arc<[u8]>) {
        let bytes = page.len();
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
        let mut shard = self.shard(&key);
        if shard.pages.insert(key, (page, false)).is_some() {
            // Two threads read it at once: it is already in its queue.
            return;
        }
        let queue = if key.1 == Section::Rows as u8 { &mut shard.rows } else { &mut shard.others };
        queue.order.push_back(key);
        queue.bytes += bytes;
        shard.shrink(self.room);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_leave_the_cache_before_what_every_step_asks_for() {
        let cache = PageCache::new(SHARDS * 8 * PAGE);
        let page: Arc<[u8]> = vec![0; PAGE].into();
        let pages = |section: Section, n: usize| {
            let all = (0..).map(move |page| (1, section as u8, page));
            all.filter(|key| shard_of(key) == 0).take(n)
        };
        let there = |section, n| pages(section, n).filter(|key| cache.get(key).is_some()).count();
        let put = |section, n| pages(section, n).for_each(|key| cache.put(key, page.clone()));
        put(Section::Rows, 8);
        assert_eq!(there(Section::Rows, 8), 8, "they take all room while nothing else does");
        put(Section::Names, 6);
        put(Section::Rows, 40);
        assert_eq!((there(Section::Names, 6), there(Section::Rows, 40)), (6, 2));
        put(Section::Names, 40);
        assert_eq!((there(Section::Names, 40), there(Section::Rows, 40)), (6, 2));
    }
}
