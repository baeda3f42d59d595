//! Copies single files of a store into its backup.
//!
//! Invariants:
//! * bytes that the backup's own version vouches for are never written again: damage of the source does not reach them;
//! * a log or a takeover gets its name when it is whole and synced; of a log that is there, what is new stands behind what
//!   counts.

use std::io::ErrorKind::{AlreadyExists, NotFound};
use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::{DiskFile, Env, creation_failed, write_all_at, write_all_streaming};
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::log::{FOOT, HEAD};

use super::super::end_file::UNFINISHED;
use super::super::layout::Layout;
use super::super::log_copy::{hide_new_frames, parts};
use super::super::open_files::read_vec;
use super::{BackupProgress, BackupReport};
use crate::identity::random_id;

/// Bytes that are copied at once.
const PART: u64 = 4 << 20;
/// Bytes that are compared at once, where a file may have changed anywhere.
const COMPARED: u64 = 64 << 10;

/// Copies files from one folder to another.
pub struct Copier<'a> {
    pub source: (&'a Env, &'a Layout),
    pub target: (&'a Env, &'a Layout),
    pub each: &'a mut dyn FnMut(BackupProgress) -> Result<()>,
    pub report: BackupReport,
}

impl Copier<'_> {
    fn from(&self, path: &str) -> Result<Arc<dyn DiskFile>> {
        let path = self.source.1.root().join(path);
        self.source.0.disk.open_plain(&path, false).map_err(|e| Error::io("open", &path, e))
    }

    fn step(&mut self, bytes: u64) -> Result<()> {
        self.report.nbytes += bytes;
        (self.each)(BackupProgress { files: self.report.files, nbytes: self.report.nbytes })
    }

    /// Copies a file that only grows up to a length; `vouched` bytes of it are certainly in the backup.
    pub fn grow(&mut self, path: &str, upto: u64, vouched: u64) -> Result<()> {
        let (disk, to) = (self.target.0.disk.clone(), self.target.1.root().join(path));
        let there = match disk.stat(&to) {
            Ok(stat) => Some(stat.len),
            Err(e) if e.kind() == NotFound => None,
            Err(e) => return Err(Error::io("look at", &to, e)),
        };
        let from = vouched.min(there.unwrap_or(0));
        let lacks = planted::is(Planted::BackupLacksCommits) && path.starts_with("logs/");
        if (from >= upto || lacks) && there.is_some() {
            return Ok(());
        }
        if there.is_none() && path.starts_with("logs/") {
            return self.whole(path, upto);
        }
        let file = match there {
            Some(_) => disk.open_plain(&to, true).map_err(|e| Error::io("open", &to, e))?,
            None => disk.create_alike(&to).map_err(|e| creation_failed(&*disk, &to, e))?,
        };
        let is_log = path.starts_with("logs/") && upto - from >= (HEAD + FOOT) as u64;
        if is_log {
            hide_new_frames(&*file, from, upto).map_err(|e| Error::io("write", &to, e))?;
            for (begin, end) in parts(from, upto) {
                self.copy_durably(path, &*file, &to, begin, end)?;
            }
        } else if from < upto {
            self.copy_durably(path, &*file, &to, from, upto)?;
        }
        self.give(path, &to)?;
        self.report.files += 1;
        self.step(0)
    }

    /// Copies a file as a whole, in place of any file of its name.
    pub fn whole(&mut self, path: &str, bytes: u64) -> Result<()> {
        let (disk, to) = (self.target.0.disk.clone(), self.target.1.root().join(path));
        let folder = to.parent().unwrap_or(&to);
        let temporary = folder.join(format!("{UNFINISHED}{}", random_id(self.target.0)));
        let file = disk.create_alike(&temporary).map_err(|e| creation_failed(&*disk, &temporary, e))?;
        let mut copied = || -> Result<()> {
            self.copy(path, &*file, &temporary, 0, bytes)?;
            file.sync_data().map_err(|e| Error::io("sync", &temporary, e))?;
            self.give(path, &temporary)?;
            disk.rename(&temporary, &to).map_err(|e| Error::io("rename", &temporary, e))
        };
        let outcome = copied();
        if outcome.is_err() {
            let _ = disk.unlink(&temporary);
            return outcome;
        }
        self.report.files += 1;
        self.step(0)
    }

    /// Copies bytes `at..upto`, and syncs them.
    fn copy_durably(&mut self, path: &str, file: &dyn DiskFile, to: &Path, at: u64, upto: u64) -> Result<()> {
        self.copy(path, file, to, at, upto)?;
        file.sync_data().map_err(|e| Error::io("sync", to, e))
    }

    /// Copies bytes `at..upto`.
    fn copy(&mut self, path: &str, file: &dyn DiskFile, to: &Path, mut at: u64, upto: u64) -> Result<()> {
        let (from, source) = (self.from(path)?, self.source.1.root().join(path));
        while at < upto {
            let n = PART.min(upto - at);
            let bytes = read_vec(&*from, &source, at, n)?;
            put(file, to, &bytes, at)?;
            file.start_writeback(at, n);
            at += n;
            self.step(n)?;
        }
        Ok(())
    }

    /// Copies a small file unless it is there.
    pub fn small(&mut self, path: &str) -> Result<()> {
        let source = self.source.1.root().join(path);
        let len = self.source.0.disk.stat(&source).map_err(|e| Error::io("look at", &source, e))?.len;
        let to = self.target.1.root().join(path);
        let there = self.target.0.disk.open_plain(&to, false).ok();
        let same = there.filter(|file| file.stat().is_ok_and(|stat| stat.len == len)).is_some_and(|file| {
            let ours = self.from(path).and_then(|from| read_vec(&*from, &source, 0, len));
            ours.is_ok_and(|ours| read_vec(&*file, &to, 0, len).is_ok_and(|theirs| theirs == ours))
        });
        if same { Ok(()) } else { self.whole(path, len) }
    }

    /// Makes a file that may have changed anywhere equal to its source, and writes only where they differ.
    pub fn equal(&mut self, path: &str) -> Result<()> {
        let (disk, to) = (self.target.0.disk.clone(), self.target.1.root().join(path));
        let (from, source) = (self.from(path)?, self.source.1.root().join(path));
        let len = from.stat().map_err(|e| Error::io("look at", &source, e))?.len;
        let file = match disk.create_alike(&to) {
            Ok(file) => file,
            Err(e) if e.kind() == AlreadyExists => {
                disk.open_plain(&to, true).map_err(|e| Error::io("open", &to, e))?
            }
            Err(e) => return Err(creation_failed(&*disk, &to, e)),
        };
        let there = file.stat().map_err(|e| Error::io("look at", &to, e))?.len;
        let mut at = 0;
        while at < len {
            let n = if at < there { COMPARED.min(len - at) } else { PART.min(len - at) };
            let bytes = read_vec(&*from, &source, at, n)?;
            if at + n > there || read_vec(&*file, &to, at, n)? != bytes {
                put(&*file, &to, &bytes, at)?;
                self.step(n)?;
            }
            at += n;
        }
        if there > len {
            file.set_len(len).map_err(|e| Error::io("cut", &to, e))?;
        }
        file.sync_data().map_err(|e| Error::io("sync", &to, e))?;
        self.give(path, &to)?;
        self.report.files += 1;
        self.step(0)
    }

    /// Gives a copy the owner of its source.
    fn give(&self, path: &str, to: &Path) -> Result<()> {
        let source = self.source.1.root().join(path);
        give_as(self.source.0, &source, self.target.0, to)
    }
}

/// Gives a file or a folder the owner of another one.
pub fn give_as(source: &Env, of: &Path, target: &Env, to: &Path) -> Result<()> {
    let owner = source.disk.stat(of).map_err(|e| Error::io("look at", of, e))?.uid;
    if target.disk.stat(to).map_err(|e| Error::io("look at", to, e))?.uid == owner {
        return Ok(());
    }
    target.identity.give(to, owner).map_err(|e| {
        Code::PermissionDenied
            .error(format!("{} would lose its owner in the backup: {e}", of.display()))
            .with_hint(
                "make backups of a store of several users as root: a dataset belongs to the owner of its log",
            )
    })
}

fn put(file: &dyn DiskFile, to: &Path, bytes: &[u8], at: u64) -> Result<()> {
    let whole = bytes.len() as u64 == PART;
    let wrote = if whole { write_all_streaming(file, bytes, at) } else { write_all_at(file, bytes, at) };
    wrote.map_err(|e| Error::io("write", to, e))
}
