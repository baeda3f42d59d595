//! A reserve of some KiB, so that what frees room can be written where the disk is full (takeovers.md, 10.5).
//!
//! A file of zeros, one of each user: who wipes, purges or maintains tries whether it could be made again, takes it away if
//! not, and makes it again afterwards. No flush looks for it, and nothing reads it.

use std::io;
use std::path::PathBuf;

use fieldstone_core::env::write_all_at;

use super::FileMedium;

/// Bytes of the reserve: a log with a record, or a takeover of some hundred names.
const SIZE: usize = 256 << 10;
/// Free bytes with which nobody needs it.
const PLENTY: u64 = 64 * SIZE as u64;
/// Prefix of its name, before the number of its user.
const NAME: &str = "reserve-";
/// The end of its name while it is written.
const NEW: &str = "-new";

/// Whether a name in the store's folder is that of a reserve.
pub fn is_reserve(name: &str) -> bool {
    let user = name.strip_prefix(NAME).map(|rest| rest.strip_suffix(NEW).unwrap_or(rest));
    user.is_some_and(|user| !user.is_empty() && user.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Room while this lives; then the reserve is made again where there is any.
#[derive(Debug)]
pub struct Room<'a> {
    medium: &'a FileMedium,
    is_taken: bool,
}

impl<'a> Room<'a> {
    /// As [`of`](Self::of), for whoever writes a few bytes: where the disk says that it has plenty, nothing is tried or
    /// made.
    pub fn for_little(medium: &'a FileMedium) -> Room<'a> {
        match medium.env.disk.space(medium.layout.root()) {
            Ok(space) if space.free_bytes >= PLENTY => Room { medium, is_taken: false },
            _ => Room::of(medium),
        }
    }

    /// Takes the reserve where the disk has no room for another one; else makes one for the next time, if there is none.
    pub fn of(medium: &'a FileMedium) -> Room<'a> {
        let is_taken = match make(medium) {
            Err(e) if is_full(&e) => {
                let _ = medium.env.disk.unlink(&path(medium, ""));
                true
            }
            _ => false,
        };
        Room { medium, is_taken }
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if self.is_taken {
            let _ = make(self.medium);
        }
    }
}

fn path(medium: &FileMedium, end: &str) -> PathBuf {
    medium.layout.root().join(format!("{NAME}{}{end}", medium.env.identity.uid()))
}

/// Writes a reserve, and keeps it where there is none. It is not synced: a hint that there is room is all that it is.
fn make(medium: &FileMedium) -> io::Result<()> {
    let (disk, path, new) = (&*medium.env.disk, path(medium, ""), path(medium, NEW));
    // Of a process that died.
    let _ = disk.unlink(&new);
    let made = disk.create_alike(&new).and_then(|file| write_all_at(&*file, &vec![0; SIZE], 0));
    let is_there = disk.stat(&path).is_ok_and(|stat| stat.len >= SIZE as u64);
    if made.is_ok() && !is_there {
        return disk.rename(&new, &path);
    }
    let _ = disk.unlink(&new);
    made
}

/// Whether an error is that of a disk without room, or of a quota.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
