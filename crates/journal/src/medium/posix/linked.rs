//! Whether what was written can still be reached: a file that is open takes writes and syncs long after
//! somebody removed or replaced it.
//!
//! Invariants:
//! * nothing counts as gone on the word of a stale view: another host's changes may show late on a network
//!   file system, so that what seems absent is asked for by a call that the server answers;
//! * a store that this handle knows to exist is never made again by it.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use fieldstone_core::env::{Disk, DiskFile};
use fieldstone_core::{Code, Result};
use fieldstone_format::Id;

use super::layout::Layout;

/// An open file and the name that it was made under.
#[derive(Debug, Default)]
pub struct Linked {
    inode: Option<u64>,
    /// Names that it had at the last check.
    names: u64,
    /// Whether it was found to be gone.
    gone: bool,
}

impl Linked {
    /// Whether a check found the file gone.
    pub fn is_gone(&self) -> bool {
        self.gone
    }

    /// How many names the file had at the last check; 0 before one.
    pub fn names(&self) -> u64 {
        self.names
    }

    /// Unavailable where `path` certainly does not lead to `file` any more. Called after a sync: what is
    /// linked then was reachable when it became durable.
    pub fn check(&mut self, disk: &dyn Disk, file: &dyn DiskFile, path: &Path) -> Result<()> {
        let Some(why) = self.look(disk, file, path) else { return Ok(()) };
        self.gone = true;
        let shown = path.display();
        Err(Code::LogGone.error(format!("{shown} is gone: {why} while this handle was writing to it")).with_hint(
            "put it back if you can: what was flushed into it before is lost with it; then archive again what \
             is named here",
        ))
    }

    /// The fate of the file, if it is certain.
    fn look(&mut self, disk: &dyn Disk, file: &dyn DiskFile, path: &Path) -> Option<&'static str> {
        let inode = match self.inode {
            Some(inode) => inode,
            None => *self.inode.insert(file.stat().ok()?.inode),
        };
        match disk.stat(path) {
            Ok(stat) if stat.inode == inode => {
                self.names = stat.links;
                None
            }
            Ok(_) => {
                // Some file systems renumber files while they are open.
                let (open, named) = (file.stat().ok()?.inode, disk.stat(path).ok()?);
                (self.inode, self.names) = (Some(open), named.links);
                (open != named.inode).then_some("another file has its name")
            }
            // Renaming a file to its own name changes nothing, and fails where there is none.
            Err(e) if absent(&e) => match disk.rename(path, path) {
                Err(e) if absent(&e) => Some("it was removed or renamed"),
                _ => None,
            },
            // A process that cannot look does not know.
            Err(_) => None,
        }
    }
}

/// Whether the folder certainly does not exist. The sync of a folder opens it, and a stale view cannot answer that.
pub fn is_absent(disk: &dyn Disk, folder: &Path) -> bool {
    disk.stat(folder).is_err_and(|e| absent(&e)) && disk.sync_dir(folder).is_err_and(|e| absent(&e))
}

fn absent(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// That there is a store, as far as a handle knows. A forked child shares it, so that it has no lock.
#[derive(Debug, Default)]
pub struct Existence {
    id: [AtomicU64; 2],
    /// Whether there is one, with the id above.
    store: AtomicBool,
    /// Whether it has its folder of logs.
    logs: AtomicBool,
}

impl Existence {
    /// There is a store with this id; `logs`: with its folder of logs.
    pub fn note(&self, id: Id, logs: bool) {
        let number = u128::from_le_bytes(id.0);
        self.id[0].store(number as u64, Ordering::Relaxed);
        self.id[1].store((number >> 64) as u64, Ordering::Relaxed);
        self.store.store(true, Ordering::Release);
        self.logs.fetch_or(logs, Ordering::Release);
    }

    /// The id of the store, where there is known to be one.
    pub fn id(&self) -> Option<Id> {
        let known = self.store.load(Ordering::Acquire);
        let half = |i: usize| u128::from(self.id[i].load(Ordering::Relaxed));
        known.then(|| Id((half(0) | half(1) << 64).to_le_bytes()))
    }

    /// Unavailable where the store was there and is not any more.
    pub fn check(&self, disk: &dyn Disk, layout: &Layout) -> Result<()> {
        if self.id().is_none() {
            return Ok(());
        }
        let logs = self.logs.load(Ordering::Acquire).then(|| layout.logs());
        for folder in std::iter::once(layout.root().to_owned()).chain(logs) {
            self.check_folder(disk, layout, folder)?;
        }
        Ok(())
    }

    fn check_folder(&self, disk: &dyn Disk, layout: &Layout, folder: PathBuf) -> Result<()> {
        if is_absent(disk, &folder) {
            let root = layout.root().display();
            return Err(Code::StoreGone
                .error(format!(
                    "the store at {root} is gone: {} was removed or renamed while this handle was open",
                    folder.display()
                ))
                .with_hint("put it back and archive again what is named here, or open a new store"));
        }
        Ok(())
    }

    /// Conflict where the store in its place is another one.
    pub fn check_id(&self, found: Id, layout: &Layout) -> Result<()> {
        match self.id() {
            Some(id) if id != found => Err(Code::StoreReplaced.error(format!(
                "the store at {} is gone: there is another one in its place, made while this handle was open",
                layout.root().display()
            ))
            .with_hint("put it back, or open the new one and archive again what is named here")),
            _ => Ok(()),
        }
    }
}
