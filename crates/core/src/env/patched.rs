//! A file system seen through changes that nobody has made yet: whoever is to mend files first looks at them as they would
//! be, and changes nothing unless that is better.
//!
//! Invariants:
//! * reads see the changed bytes, through files that were opened before a change, too;
//! * nothing is changed below: what would change the file system is refused.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, DiskFile, FileKind, Space, Stat};
use crate::sync::Mutex;

/// A range of a file that stands at the same place of another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TakenRange {
    /// The other file.
    pub from: PathBuf,
    /// Its begin.
    pub offset: u64,
    /// Its length.
    pub length: u64,
}

/// The changes of one file.
#[derive(Debug, Clone, Default)]
pub struct FileChanges {
    /// Whether the file begins empty: it is not there, or another one is to take its name.
    pub is_new: bool,
    /// Ranges that stand in other files.
    pub taken: Vec<TakenRange>,
    /// Bytes by their offset, which count before what is taken. They do not overlap.
    pub bytes: BTreeMap<u64, Vec<u8>>,
}

impl FileChanges {
    /// The end of the last change.
    pub fn end(&self) -> u64 {
        let taken = self.taken.iter().map(|range| range.offset + range.length);
        let bytes = self.bytes.iter().next_back().map(|(at, bytes)| at + bytes.len() as u64);
        taken.chain(bytes).max().unwrap_or(0)
    }

    /// How many bytes are changed.
    pub fn len(&self) -> u64 {
        let taken: u64 = self.taken.iter().map(|range| range.length).sum();
        taken + self.bytes.values().map(|bytes| bytes.len() as u64).sum::<u64>()
    }

    /// Whether nothing is changed.
    pub fn is_empty(&self) -> bool {
        !self.is_new && self.taken.is_empty() && self.bytes.is_empty()
    }

    /// Runs of bytes that overlap a range.
    fn runs(&self, offset: u64, length: u64) -> impl Iterator<Item = (u64, &Vec<u8>)> {
        let first = self.bytes.range(..=offset).next_back().map_or(offset, |(at, _)| *at);
        let found = self.bytes.range(first..offset.saturating_add(length)).map(|(at, bytes)| (*at, bytes));
        found.filter(move |(at, bytes)| at + bytes.len() as u64 > offset)
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset + bytes.len() as u64;
        let others: Vec<u64> = self.runs(offset, bytes.len() as u64).map(|(at, _)| at).collect();
        let mut begin = offset;
        let mut merged = bytes.to_vec();
        for at in others {
            let Some(other) = self.bytes.remove(&at) else { continue };
            if at < begin {
                let before = other[..(begin - at) as usize].iter().copied();
                drop(merged.splice(0..0, before));
                begin = at;
            }
            if at + other.len() as u64 > end {
                merged.extend_from_slice(&other[(end - at) as usize..]);
            }
        }
        self.bytes.insert(begin, merged);
    }
}

/// State that all files of the disk share.
#[derive(Debug)]
struct PatchedState {
    under: Arc<dyn Disk>,
    changes: Mutex<BTreeMap<PathBuf, Arc<FileChanges>>>,
    /// Files from which ranges are taken.
    open: Mutex<HashMap<PathBuf, Arc<dyn DiskFile>>>,
}

impl PatchedState {
    fn changes(&self, path: &Path) -> Option<Arc<FileChanges>> {
        self.changes.lock().get(path).cloned()
    }

    fn source(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.open.lock().get(path) {
            return Ok(file.clone());
        }
        let file = self.under.open_plain(path, false)?;
        self.open.lock().insert(path.to_owned(), file.clone());
        Ok(file)
    }

    /// The facts of a file that is new, and its time.
    fn stat_of_new(&self, path: &Path, changes: &FileChanges) -> io::Result<(Stat, i64)> {
        let (stat, time) = match (changes.taken.first(), path.parent()) {
            (Some(taken), _) => self.under.stat_with_time(&taken.from)?,
            (None, Some(folder)) => self.under.stat_with_time(folder)?,
            (None, None) => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok((Stat { kind: FileKind::File, len: changes.end(), links: 1, ..stat }, time))
    }

    fn stat(&self, path: &Path) -> io::Result<(Stat, i64)> {
        match self.changes(path) {
            Some(changes) if changes.is_new => self.stat_of_new(path, &changes),
            Some(changes) => {
                let (stat, time) = self.under.stat_with_time(path)?;
                Ok((Stat { len: stat.len.max(changes.end()), ..stat }, time))
            }
            None => match self.under.stat_with_time(path) {
                // A folder that is to be made.
                Err(e) if e.kind() == io::ErrorKind::NotFound && self.has_below(path) => {
                    let folder = path.parent().ok_or(e)?;
                    self.stat(folder)
                }
                found => found,
            },
        }
    }

    fn has_below(&self, folder: &Path) -> bool {
        self.changes.lock().keys().any(|path| path.parent().is_some_and(|parent| parent.starts_with(folder)))
    }
}

/// A file system with changes that are not made.
#[derive(Debug, Clone)]
pub struct PatchedDisk {
    shared: Arc<PatchedState>,
}

impl PatchedDisk {
    /// A file system without a change.
    pub fn new(under: Arc<dyn Disk>) -> PatchedDisk {
        let (changes, open) = (Mutex::default(), Mutex::default());
        PatchedDisk { shared: Arc::new(PatchedState { under, changes, open }) }
    }

    fn change(&self, path: &Path, change: impl FnOnce(&mut FileChanges)) {
        let mut all = self.shared.changes.lock();
        let changes = all.entry(path.to_owned()).or_default();
        change(Arc::make_mut(changes));
    }

    /// Changes bytes of a file.
    pub fn write(&self, path: &Path, offset: u64, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.change(path, |changes| changes.write(offset, bytes));
        }
    }

    /// Takes a range from another file, where no other byte of it was changed.
    pub fn take(&self, path: &Path, range: TakenRange) {
        if range.length > 0 {
            self.change(path, |changes| changes.taken.push(range));
        }
    }

    /// Begins a file that is empty, in the place of any other one.
    pub fn begin(&self, path: &Path) {
        self.change(path, |changes| *changes = FileChanges { is_new: true, ..FileChanges::default() });
    }

    /// The changes of a file.
    pub fn of(&self, path: &Path) -> Option<Arc<FileChanges>> {
        self.shared.changes(path)
    }

    /// Puts the changes of a file in the place of those of now; with `None` it has none.
    pub fn set(&self, path: &Path, changes: Option<Arc<FileChanges>>) {
        let mut all = self.shared.changes.lock();
        match changes {
            Some(changes) => drop(all.insert(path.to_owned(), changes)),
            None => drop(all.remove(path)),
        }
    }

    /// All changes, by file.
    pub fn all(&self) -> Vec<(PathBuf, Arc<FileChanges>)> {
        self.shared.changes.lock().iter().map(|(path, changes)| (path.clone(), changes.clone())).collect()
    }

    /// The file system below.
    pub fn under(&self) -> &Arc<dyn Disk> {
        &self.shared.under
    }

    fn opened(
        &self,
        path: &Path,
        open: impl FnOnce(&dyn Disk) -> io::Result<Arc<dyn DiskFile>>,
    ) -> io::Result<Arc<dyn DiskFile>> {
        let is_new = self.shared.changes(path).is_some_and(|changes| changes.is_new);
        let under = if is_new { None } else { Some(open(&*self.shared.under)?) };
        Ok(Arc::new(PatchedFile { shared: self.shared.clone(), path: path.to_owned(), under }))
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::Error::new(io::ErrorKind::PermissionDenied, "nothing is written here"))
}

impl Disk for PatchedDisk {
    fn create_new(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        refused()
    }

    fn create_alike(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        refused()
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.opened(path, |under| under.open_read(path))
    }

    fn open_plain(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        match write {
            true => refused(),
            false => self.opened(path, |under| under.open_plain(path, false)),
        }
    }

    fn open_write(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        refused()
    }

    fn open_append(&self, _: &Path) -> io::Result<Arc<dyn DiskFile>> {
        refused()
    }

    fn create_dir_all(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn create_dir_alike(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.shared.under.sync_dir(path)
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<(String, FileKind)>> {
        let mut names = match self.shared.under.list_dir(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound && self.shared.has_below(path) => Vec::new(),
            names => names?,
        };
        let changes = self.shared.changes.lock();
        for changed in changes.iter().filter(|(_, changes)| changes.is_new).map(|(path, _)| path) {
            // The name in this folder: of the file, or of a folder on the way to it.
            let Some(first) = changed.strip_prefix(path).ok().and_then(|below| below.iter().next()) else {
                continue;
            };
            let name = first.to_string_lossy().into_owned();
            if !names.iter().any(|(known, _)| *known == name) {
                let is_file = changed.parent() == Some(path);
                names.push((name, if is_file { FileKind::File } else { FileKind::Directory }));
            }
        }
        Ok(names)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        self.shared.stat(path).map(|(stat, _)| stat)
    }

    fn stat_with_time(&self, path: &Path) -> io::Result<(Stat, i64)> {
        self.shared.stat(path)
    }

    fn link(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn unlink(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn copy_permissions(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn lags(&self, path: &Path) -> bool {
        self.shared.under.lags(path)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.shared.under.space(path)
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        self.shared.under.absolute(path)
    }
}

/// A file as its changes make it.
#[derive(Debug)]
struct PatchedFile {
    shared: Arc<PatchedState>,
    path: PathBuf,
    /// The file as it is; `None` if it was new when it was opened.
    under: Option<Arc<dyn DiskFile>>,
}

impl PatchedFile {
    fn under(&self, changes: Option<&FileChanges>) -> Option<&Arc<dyn DiskFile>> {
        self.under.as_ref().filter(|_| changes.is_none_or(|changes| !changes.is_new))
    }
}

/// Reads until the buffer is full or the file ends.
fn fill(file: &dyn DiskFile, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// The parts of two ranges that overlap: where it begins in each, and its length.
fn overlap(offset: u64, length: u64, other: u64, other_length: u64) -> Option<(usize, usize, usize)> {
    let from = offset.max(other);
    let to = (offset + length).min(other + other_length);
    (from < to).then(|| ((from - offset) as usize, (from - other) as usize, (to - from) as usize))
}

impl DiskFile for PatchedFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let changes = self.shared.changes(&self.path);
        let Some(changes) = changes else {
            return self.under(None).map_or(Ok(0), |file| file.read_at(buffer, offset));
        };
        let mut filled = match self.under(Some(&changes)) {
            Some(file) => fill(&**file, buffer, offset)?,
            None => 0,
        };
        let there = changes.end().saturating_sub(offset).min(buffer.len() as u64) as usize;
        if there > filled {
            buffer[filled..there].fill(0);
            filled = there;
        }
        let length = filled as u64;
        for range in &changes.taken {
            let Some((at, begin, n)) = overlap(offset, length, range.offset, range.length) else { continue };
            let source = self.shared.source(&range.from)?;
            super::read_exact_at(&*source, &mut buffer[at..at + n], range.offset + begin as u64)?;
        }
        for (begin, bytes) in changes.runs(offset, length) {
            if let Some((at, from, n)) = overlap(offset, length, begin, bytes.len() as u64) {
                buffer[at..at + n].copy_from_slice(&bytes[from..from + n]);
            }
        }
        Ok(filled)
    }

    fn write_at(&self, _: &[u8], _: u64) -> io::Result<usize> {
        refused()
    }

    fn write_vectored_at(&self, _: &[io::IoSlice<'_>], _: u64) -> io::Result<usize> {
        refused()
    }

    fn append(&self, _: &[u8]) -> io::Result<u64> {
        refused()
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn start_writeback(&self, _: u64, _: u64) {}

    fn set_len(&self, _: u64) -> io::Result<()> {
        refused()
    }

    fn stat(&self) -> io::Result<Stat> {
        self.stat_with_time().map(|(stat, _)| stat)
    }

    fn stat_with_time(&self) -> io::Result<(Stat, i64)> {
        let changes = self.shared.changes(&self.path);
        match (self.under(changes.as_deref()), changes) {
            (Some(file), Some(changes)) => {
                let (stat, time) = file.stat_with_time()?;
                Ok((Stat { len: stat.len.max(changes.end()), ..stat }, time))
            }
            (Some(file), None) => file.stat_with_time(),
            (None, Some(changes)) => self.shared.stat_of_new(&self.path, &changes),
            (None, None) => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn inode_time(&self) -> io::Result<i64> {
        match &self.under {
            Some(file) => file.inode_time(),
            None => Ok(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::Env;
    use crate::env::sim::SimWorld;
    use crate::env::{read_exact_at, write_all_at};

    fn content(disk: &dyn Disk, path: &str) -> Vec<u8> {
        let file = disk.open_plain(Path::new(path), false).unwrap();
        let mut bytes = vec![0; file.stat().unwrap().len as usize];
        read_exact_at(&*file, &mut bytes, 0).unwrap();
        bytes
    }

    fn disk() -> PatchedDisk {
        let env: Env = SimWorld::memory();
        env.disk.create_dir_all(Path::new("/s")).unwrap();
        for (path, bytes) in [("/s/a", b"0123456789"), ("/s/b", b"abcdefghij")] {
            let file = env.disk.create_new(Path::new(path)).unwrap();
            write_all_at(&*file, bytes, 0).unwrap();
        }
        PatchedDisk::new(env.disk)
    }

    #[test]
    fn a_reader_sees_changes_and_the_disk_below_none() {
        let disk = disk();
        let path = Path::new("/s/a");
        let opened = disk.open_plain(path, false).unwrap();
        disk.write(path, 2, b"xx");
        disk.write(path, 3, b"yyy");
        disk.write(path, 1, b"z");
        disk.take(path, TakenRange { from: "/s/b".into(), offset: 7, length: 3 });
        assert_eq!(content(&disk, "/s/a"), b"0zxyyy6hij");
        disk.write(path, 9, b"END");
        assert_eq!(content(&disk, "/s/a"), b"0zxyyy6hiEND");
        let mut part = [0; 4];
        read_exact_at(&*opened, &mut part, 4).unwrap();
        assert_eq!(&part, b"yy6h");
        assert_eq!(content(&**disk.under(), "/s/a"), b"0123456789");
        disk.set(path, None);
        assert_eq!(content(&disk, "/s/a"), b"0123456789");
    }

    #[test]
    fn a_new_file_shows_with_its_folder() {
        let disk = disk();
        disk.begin(Path::new("/s/f/c"));
        disk.take(Path::new("/s/f/c"), TakenRange { from: "/s/b".into(), offset: 0, length: 4 });
        assert_eq!(content(&disk, "/s/f/c"), b"abcd");
        assert_eq!(disk.list_dir(Path::new("/s/f")).unwrap(), [("c".to_owned(), FileKind::File)]);
        assert!(disk.list_dir(Path::new("/s")).unwrap().contains(&("f".to_owned(), FileKind::Directory)));
        assert_eq!(disk.stat(Path::new("/s/f")).unwrap().kind, FileKind::Directory);
        assert!(disk.under().stat(Path::new("/s/f")).is_err());
        assert!(disk.create_new(Path::new("/s/d")).is_err());
    }
}
