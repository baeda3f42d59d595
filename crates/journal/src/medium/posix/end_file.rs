//! One end file: how it is made, and read (`spec/takeovers.md`, 5).
//!
//! Invariants:
//! * an end file is whole and synced before it gets its name, so that it is there whole or not at all;
//! * the link to the name decides between several makers, and whoever loses obeys the file that is there.

use std::io;
use std::io::ErrorKind::{AlreadyExists, NotFound, Unsupported};
use std::path::PathBuf;

use fieldstone_core::env::{Disk, Env, creation_failed, write_all_at};
use fieldstone_core::{Error, ErrorKind, Result};
use fieldstone_format::Id;
use fieldstone_format::log_end::{END_MAX, LogEnd, file_name};

use super::create::{POLL, torn_for};
use super::layout::Layout;
use super::open_files::read_vec;
use crate::identity::random_id;

/// The first version of the format whose readers heed end files.
pub const ENDS_SINCE: u32 = 2;

/// The error of a call that the file system does not permit.
const EPERM: i32 = 1;

/// The beginning of the names of files that get their own name when they are whole.
pub const UNFINISHED: &str = ".new-";

/// An end file, and the user whose file it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndFile {
    /// The owner of the file.
    pub owner: u32,
    /// Its content.
    pub end: LogEnd,
}

/// Whether a name in the folder of logs is that of a file that never got its own.
pub fn is_unfinished(name: &str) -> bool {
    name.starts_with(UNFINISHED)
}

/// A path in the folder of logs for a file that is not whole yet.
pub fn unfinished(env: &Env, layout: &Layout) -> PathBuf {
    layout.logs().join(format!("{UNFINISHED}{}", random_id(env)))
}

/// Reads the end file of a log; `None` where there is none. Corrupt where it is damaged.
pub fn read(disk: &dyn Disk, layout: &Layout, writer: Id) -> Result<Option<EndFile>> {
    let path = layout.logs().join(file_name(writer));
    let file = match disk.open_plain(&path, false) {
        Ok(file) => file,
        Err(e) if e.kind() == NotFound => return Ok(None),
        Err(e) => return Err(Error::io("open", &path, e)),
    };
    let stat = file.stat().map_err(|e| Error::io("look at", &path, e))?;
    // One byte more than it may have: then its length does not match.
    let bytes = read_vec(&*file, &path, 0, stat.len.min(END_MAX as u64 + 1))?;
    let end = LogEnd::decode(&bytes)?;
    match end.writer == writer {
        true => Ok(Some(EndFile { owner: stat.uid, end })),
        false => Err(Error::corrupt("the end file carries another log's name")),
    }
}

/// Makes the end file of a log, durable, where there is none. Returns the one that is there now, and whether this call
/// made it; `None` on a file system without hard links.
pub fn make(env: &Env, layout: &Layout, end: &LogEnd) -> Result<Option<(EndFile, bool)>> {
    let (disk, folder) = (&*env.disk, layout.logs());
    let path = folder.join(file_name(end.writer));
    let unfinished = unfinished(env, layout);
    let file = disk.create_alike(&unfinished).map_err(|e| creation_failed(disk, &unfinished, e))?;
    let linked = write_all_at(&*file, &end.encode(), 0)
        .and_then(|()| file.sync_data())
        .and_then(|()| disk.link(&unfinished, &path));
    let _ = disk.unlink(&unfinished);
    match linked {
        Ok(()) => {
            disk.sync_dir(&folder).map_err(|e| Error::io("sync", &folder, e))?;
            Ok(Some((EndFile { owner: env.identity.uid(), end: end.clone() }, true)))
        }
        Err(e) if e.kind() == AlreadyExists => Ok(Some((read_late(env, layout, end.writer)?, false))),
        Err(e) if is_without_links(&e) => Ok(None),
        Err(e) => Err(Error::io("make", &path, e)),
    }
}

/// Whether an error of a link is that of a file system that has none: FAT says that it is not permitted.
fn is_without_links(error: &io::Error) -> bool {
    error.kind() == Unsupported || error.raw_os_error() == Some(EPERM)
}

/// Reads an end file that is there for certain, and that this host may not see yet.
fn read_late(env: &Env, layout: &Layout, writer: Id) -> Result<EndFile> {
    let mut left = torn_for(env, layout) / POLL;
    loop {
        match read(&*env.disk, layout, writer) {
            Ok(Some(file)) => return Ok(file),
            Ok(None) if left == 0 => {
                return Err(Error::unavailable(format!("the end file of log {writer} does not show")));
            }
            Err(e) if left == 0 || e.kind() != ErrorKind::Corrupt => return Err(e),
            _ => {}
        }
        env.clock.sleep(POLL);
        left -= 1;
    }
}
