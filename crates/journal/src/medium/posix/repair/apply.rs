//! The changes of a bench are made on the disk.

use std::collections::BTreeSet;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

use fieldstone_core::env::patched::FileChanges;
use fieldstone_core::env::{DiskFile, create_dirs_alike, creation_failed, read_exact_at, write_all_at};
use fieldstone_core::{Code, Error, Result};

use super::super::end_file::UNFINISHED;
use super::{Bench, CHUNK, each_chunk};
use crate::identity::random_id;

impl Bench {
    /// Takes back what is to be changed in files of other users, who must mend them themselves; returns these files. Root may
    /// change all.
    pub fn leave_others(&mut self) -> Vec<String> {
        let own = self.env.identity.uid();
        let mut left = Vec::new();
        if own == 0 {
            return left;
        }
        for (path, changes) in self.disk.all() {
            let owner = self.owner(&path, &changes);
            if owner.is_none_or(|owner| owner == own) {
                continue;
            }
            self.disk.set(&path, None);
            let file = path.strip_prefix(&self.root).unwrap_or(&path).display().to_string();
            let name = owner.map_or_else(String::new, |owner| self.env.identity.user_name(owner));
            self.mended.retain(|part| part.file != file);
            self.note_left(&file, format!("it belongs to {name}, who can mend it, or root"));
            left.push(file);
        }
        left
    }

    /// The owner of a file that is to be changed, or to be made.
    fn owner(&self, path: &Path, changes: &FileChanges) -> Option<u32> {
        let disk = &self.env.disk;
        let there = disk.stat(path).or_else(|e| match changes.taken.first() {
            Some(taken) => disk.stat(&taken.from),
            None => Err(e),
        });
        there.ok().map(|stat| stat.uid)
    }

    /// Makes all changes, durably; returns how many bytes were written. A file that is gone meanwhile is passed over: a takeover
    /// has replaced it.
    pub fn apply(&self) -> Result<u64> {
        let mut written = 0;
        let mut folders: BTreeSet<PathBuf> = BTreeSet::new();
        for (path, changes) in self.disk.all() {
            match changes.is_new {
                true => {
                    self.make(&path, &changes)?;
                    // The folders above may be new, too.
                    let above = path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.root));
                    folders.extend(above.map(Path::to_owned));
                }
                false => {
                    let file = match self.env.disk.open_plain(&path, true) {
                        Err(e) if e.kind() == NotFound => continue,
                        file => file.map_err(|e| Error::io("open", &path, e))?,
                    };
                    self.write(&*file, &path, &changes)?;
                }
            }
            written += changes.len();
        }
        for folder in folders {
            self.env.disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))?;
        }
        Ok(written)
    }

    /// Makes a file under another name, and gives it its own when it is whole.
    fn make(&self, path: &Path, changes: &FileChanges) -> Result<()> {
        let disk = &*self.env.disk;
        let folder = path.parent().unwrap_or(path);
        create_dirs_alike(disk, &self.root, folder).map_err(|e| Error::io("make", folder, e))?;
        let temporary = folder.join(format!("{UNFINISHED}{}", random_id(&self.env)));
        let file = disk.create_alike(&temporary).map_err(|e| creation_failed(disk, &temporary, e))?;
        let made = self.write(&*file, &temporary, changes).and_then(|()| {
            self.give(path, &temporary, changes)?;
            disk.rename(&temporary, path).map_err(|e| Error::io("rename", &temporary, e))
        });
        if made.is_err() {
            let _ = disk.unlink(&temporary);
        }
        made
    }

    /// Gives a new file the owner of the one that it replaces, or of its copy.
    fn give(&self, path: &Path, temporary: &Path, changes: &FileChanges) -> Result<()> {
        let Some(owner) = self.owner(path, changes) else { return Ok(()) };
        let stat = self.env.disk.stat(temporary).map_err(|e| Error::io("look at", temporary, e))?;
        if stat.uid == owner {
            return Ok(());
        }
        self.env.identity.give(temporary, owner).map_err(|e| {
            Code::PermissionDenied
                .error(format!("{} would lose its owner: {e}", path.display()))
                .with_hint("mend files of other users as root")
        })
    }

    fn write(&self, file: &dyn DiskFile, path: &Path, changes: &FileChanges) -> Result<()> {
        let failed = |e| Error::io("write", path, e);
        for range in &changes.taken {
            let from = &range.from;
            let source = self.env.disk.open_plain(from, false).map_err(|e| Error::io("open", from, e))?;
            let mut bytes = vec![0; CHUNK as usize];
            for (at, n) in each_chunk(range.offset, range.offset + range.length) {
                let bytes = &mut bytes[..n as usize];
                read_exact_at(&*source, bytes, at).map_err(|e| Error::io("read", from, e))?;
                // Changed bytes within it come from elsewhere.
                for (begin, run) in &changes.bytes {
                    let (first, last) = ((*begin).max(at), (begin + run.len() as u64).min(at + n));
                    if first < last {
                        let to = (first - at) as usize..(last - at) as usize;
                        bytes[to].copy_from_slice(&run[(first - begin) as usize..(last - begin) as usize]);
                    }
                }
                write_all_at(file, bytes, at).map_err(failed)?;
            }
        }
        for (at, bytes) in &changes.bytes {
            write_all_at(file, bytes, *at).map_err(failed)?;
        }
        file.sync_data().map_err(|e| Error::io("sync", path, e))
    }
}
