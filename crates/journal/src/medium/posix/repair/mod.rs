//! Mending a store: damaged and missing parts of its files are taken from a copy of it, or from what the store itself has twice.
//!
//! A [`Bench`] shows the store as it will be: each part that is found whole elsewhere is noted there, and the files are looked at
//! again through these changes. Nothing is written before [`Bench::apply`]. Invariants:
//! * a byte of the copy counts only where a checksum covers it that the copy holds whole, and that nothing whole in the store
//!   contradicts;
//! * bytes that match are never written, so that each byte of a file is at every moment as it was, or mended;
//! * a file that writers have open keeps its inode; only one that is absent, or has another length and no writer, gets another.
//!
//! | module | |
//! |---|---|
//! | here | the bench |
//! | `logs` | frames and headers of logs |
//! | `names` | end files and claims |
//! | `taken` | takeovers |
//! | `apply` | the changes are made |

mod apply;
mod logs;
mod names;
mod taken;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_core::env::patched::{FileChanges, PatchedDisk, TakenRange};
use fieldstone_core::env::{Disk, DiskFile, Env, read_exact_at};
use fieldstone_core::{Error, Result};

pub use self::logs::{mend_log, mend_own_copies};
pub use self::names::mend_names;
pub use self::taken::{mend_takeover, mend_takeover_copies};

/// Bytes that are compared at once.
const CHUNK: u64 = 1 << 20;

/// A part that can be mended, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MendedPart {
    /// The field, if the part is one's.
    pub key: Option<String>,
    /// File, relative to the store's folder.
    pub file: String,
    /// The mended bytes, and where they are from.
    pub how: String,
}

/// A part that cannot be mended although the copy has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnmendedPart {
    /// File, relative to the store's folder.
    pub file: String,
    /// Why.
    pub why: String,
}

/// A store that is being mended.
#[derive(Debug)]
pub struct Bench {
    env: Env,
    disk: PatchedDisk,
    root: PathBuf,
    source: Option<PathBuf>,
    mended: Vec<MendedPart>,
    unmended: Vec<UnmendedPart>,
}

impl Bench {
    /// The store in a folder, and a copy of it.
    pub fn new(env: &Env, folder: &Path, source: Option<&Path>) -> Result<Bench> {
        let absolute = |path: &Path| env.disk.absolute(path).map_err(|e| Error::io("look at", path, e));
        let root = absolute(folder)?;
        let source = source.map(absolute).transpose()?;
        if source.as_ref().is_some_and(|source| *source == root) {
            return Err(Error::invalid(format!("{} is the store itself", root.display()))
                .with_hint("give a backup of the store, or leave it out"));
        }
        let disk = PatchedDisk::new(env.disk.clone());
        Ok(Bench { env: env.clone(), disk, root, source, mended: Vec::new(), unmended: Vec::new() })
    }

    /// The world in which the store is mended; nothing is written there.
    pub fn world(&self) -> Env {
        Env { disk: Arc::new(self.disk.clone()), ..self.env.clone() }
    }

    /// The store's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of the copy.
    pub fn source(&self) -> Option<&Path> {
        self.source.as_deref()
    }

    /// The parts that are mended.
    pub fn mended(&self) -> &[MendedPart] {
        &self.mended
    }

    /// The parts that are not, with the reason.
    pub fn unmended(&self) -> &[UnmendedPart] {
        &self.unmended
    }

    /// Notes what is mended.
    pub fn note(&mut self, key: Option<String>, file: &str, how: String) {
        let part = MendedPart { key, file: file.to_owned(), how };
        if !self.mended.contains(&part) {
            self.mended.push(part);
        }
    }

    /// Notes what cannot be.
    pub fn note_left(&mut self, file: &str, why: String) {
        self.unmended.push(UnmendedPart { file: file.to_owned(), why });
    }

    /// The words for a part that the copy has.
    pub fn of_source(&self, what: &str) -> String {
        let source = self.source.as_ref().map_or_else(String::new, |path| path.display().to_string());
        format!("{what}, from {source}")
    }

    /// The bytes that a file of the store has; `None` if it is not there.
    pub fn length(&self, path: &str) -> Option<u64> {
        self.disk.stat(&self.root.join(path)).ok().map(|stat| stat.len)
    }

    /// The bytes that a file of the copy has; `None` if it is not there.
    pub fn source_length(&self, path: &str) -> Option<u64> {
        self.env.disk.stat(&self.source.as_ref()?.join(path)).ok().map(|stat| stat.len)
    }

    /// A file of the store, open for reading.
    pub fn open(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let path = self.root.join(path);
        self.disk.open_plain(&path, false).map_err(|e| Error::io("open", &path, e))
    }

    /// A file of the copy.
    fn open_source(&self, path: &str) -> Option<Arc<dyn DiskFile>> {
        self.env.disk.open_plain(&self.source.as_ref()?.join(path), false).ok()
    }

    /// Bytes of a file of the store; `None` where they cannot be read.
    pub fn own(&self, path: &str, offset: u64, length: u64) -> Option<Vec<u8>> {
        bytes_of(&*self.open(path).ok()?, offset, length)
    }

    /// Bytes of a file of the copy; `None` where they cannot be read.
    pub fn of_copy(&self, path: &str, offset: u64, length: u64) -> Option<Vec<u8>> {
        bytes_of(&*self.open_source(path)?, offset, length)
    }

    /// Changes the bytes of a file that differ from these.
    pub fn put(&mut self, path: &str, offset: u64, bytes: &[u8]) {
        let own = self.own(path, offset, bytes.len() as u64);
        let whole = self.root.join(path);
        for (at, run) in runs(own.as_deref(), bytes) {
            self.disk.write(&whole, offset + at as u64, run);
        }
    }

    /// Puts a new file with these bytes in the place of a file.
    pub fn put_file(&mut self, path: &str, bytes: &[u8]) {
        let whole = self.root.join(path);
        self.disk.begin(&whole);
        self.disk.write(&whole, 0, bytes);
    }

    /// Whether a range of a file is the same in the copy.
    pub fn is_equal(&self, path: &str, from: u64, upto: u64) -> bool {
        let (Ok(own), Some(other)) = (self.open(path), self.open_source(path)) else { return false };
        each_chunk(from, upto).all(|(at, n)| {
            let theirs = bytes_of(&*other, at, n);
            theirs.is_some() && bytes_of(&*own, at, n) == theirs
        })
    }

    /// Makes a range of a file as it is in the copy; `false` if the copy does not have all of it.
    pub fn equalize(&mut self, path: &str, from: u64, upto: u64) -> bool {
        let (Ok(own), Some(other)) = (self.open(path), self.open_source(path)) else { return false };
        let whole = self.root.join(path);
        for (at, n) in each_chunk(from, upto) {
            let Some(theirs) = bytes_of(&*other, at, n) else { return false };
            match bytes_of(&*own, at, n) {
                Some(ours) => {
                    for (begin, run) in runs(Some(&ours), &theirs) {
                        self.disk.write(&whole, at + begin as u64, run);
                    }
                }
                None => self.take_range(path, at, n),
            }
        }
        true
    }

    /// Takes a range from the copy, whatever the store has there.
    fn take_range(&self, path: &str, offset: u64, length: u64) {
        if let Some(source) = &self.source {
            self.disk.take(&self.root.join(path), TakenRange { from: source.join(path), offset, length });
        }
    }

    /// Takes a file from the copy, up to a length, instead of the store's.
    pub fn take_file(&mut self, path: &str, upto: u64) {
        self.disk.begin(&self.root.join(path));
        self.take_range(path, 0, upto);
    }

    /// Makes a file as it is in the copy: where both have the same length only what differs, else as a whole.
    pub fn take_alike(&mut self, path: &str) -> bool {
        let Some(length) = self.source_length(path) else { return false };
        if self.length(path) == Some(length) {
            return self.equalize(path, 0, length);
        }
        self.take_file(path, length);
        true
    }

    /// The changes of a file, which [`put_back`](Self::put_back) restores.
    pub fn changes(&self, path: &str) -> Option<Arc<FileChanges>> {
        self.disk.of(&self.root.join(path))
    }

    /// Puts former changes of a file back.
    pub fn put_back(&mut self, path: &str, changes: Option<Arc<FileChanges>>) {
        self.disk.set(&self.root.join(path), changes);
    }
}

/// Ranges of a range.
fn each_chunk(from: u64, upto: u64) -> impl Iterator<Item = (u64, u64)> {
    let count = upto.saturating_sub(from).div_ceil(CHUNK);
    (0..count).map(move |i| (from + i * CHUNK, CHUNK.min(upto - from - i * CHUNK)))
}

/// Bytes of a file; `None` where they cannot be read.
fn bytes_of(file: &dyn DiskFile, offset: u64, length: u64) -> Option<Vec<u8>> {
    let is_there =
        file.stat().is_ok_and(|stat| offset.checked_add(length).is_some_and(|end| end <= stat.len));
    let mut bytes = vec![0; usize::try_from(length).ok().filter(|_| is_there)?];
    read_exact_at(file, &mut bytes, offset).ok()?;
    Some(bytes)
}

/// The runs of bytes that differ from what is there, with their places.
fn runs<'a>(there: Option<&[u8]>, wanted: &'a [u8]) -> Vec<(usize, &'a [u8])> {
    let Some(there) = there else { return vec![(0, wanted)] };
    let mut found = Vec::new();
    let mut begin = None;
    for (i, (a, b)) in there.iter().zip(wanted).enumerate() {
        match (a == b, begin) {
            (false, None) => begin = Some(i),
            (true, Some(from)) => {
                found.push((from, &wanted[from..i]));
                begin = None;
            }
            _ => {}
        }
    }
    found.extend(begin.map(|from| (from, &wanted[from..])));
    found
}
