//! The first commit of a store: folders and marker. Several processes may do this at once.

use std::path::Path;

use fieldstone_core::env::{Env, creation_failed, write_all_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::copy_mark::{CopyMark, CopyState};
use fieldstone_format::marker::{self, Marker};

use super::layout::Layout;
use super::linked::Existence;
use super::remains;
use crate::identity::{StoreIdentity, random_id};
use crate::medium::agree;

/// Makes folders and marker where they are absent, and returns what the store now is. Conflict where
/// another process has meanwhile made it a store with another schema.
///
/// Every writer does this before its first commit, and trusts nothing but the marker: a process that created
/// something before us may have died before it synced it. If there is a marker, the folders above the store are
/// durable, because they were synced before the marker was made; the store's own folder is synced each time. If
/// anything shows that a folder of logs existed and is gone, this is Corrupt, and creates nothing. It does not create
/// a store again that `existence` knows; the absence of that store is the error.
pub fn create_store(
    env: &Env,
    layout: &Layout,
    identity: StoreIdentity,
    existence: &Existence,
) -> Result<StoreIdentity> {
    existence.check(&*env.disk, layout)?;
    if let Some(gone) = remains::without_logs(&*env.disk, layout) {
        return Err(gone.error());
    }
    let marked = env.disk.stat(&layout.marker()).is_ok();
    if !marked {
        env.disk.create_dir_all(layout.root()).map_err(|e| creation_failed(&*env.disk, layout.root(), e))?;
    }
    let make =
        |folder: &Path| env.disk.create_dir_alike(folder).map_err(|e| creation_failed(&*env.disk, folder, e));
    for folder in [layout.logs(), layout.data(), layout.boards()] {
        if !marked || env.disk.stat(&folder).is_err() {
            make(&folder)?;
        }
    }
    // Another user who makes one of these first owns it, and may take away all that others put into it.
    if !marked && env.disk.stat(layout.root()).is_ok_and(|stat| stat.is_shared()) {
        layout.of_all_writers().try_for_each(|folder| make(&folder))?;
    }
    if !marked {
        sync_above(env, layout.root())?;
        // A marker says that there is a folder of logs, after a power cut, too.
        env.disk.sync_dir(layout.root()).map_err(|e| Error::io("sync", layout.root(), e))?;
        write_marker(env, layout, &identity)?;
    }
    let root = layout.root();
    env.disk.sync_dir(root).map_err(|e| Error::io("sync", root, e))?;
    let identity = check(env, layout, identity, existence)?;
    existence.note(identity.id, true);
    Ok(identity)
}

/// Syncs all folders above one. Which of them are new cannot be known; one that we may not change was
/// not changed by us, and a file system that is read-only or cannot sync folders has nothing to sync.
fn sync_above(env: &Env, folder: &Path) -> Result<()> {
    use std::io::ErrorKind::{InvalidInput, PermissionDenied, ReadOnlyFilesystem, Unsupported};
    for above in folder.ancestors().skip(1).filter(|path| !path.as_os_str().is_empty()) {
        match env.disk.sync_dir(above) {
            Err(e)
                if !matches!(
                    e.kind(),
                    InvalidInput | PermissionDenied | ReadOnlyFilesystem | Unsupported
                ) =>
            {
                return Err(Error::io("sync", above, e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes the marker whole under a temporary name and gives it its own by a link, which fails where
/// another process was first.
fn write_marker(env: &Env, layout: &Layout, identity: &StoreIdentity) -> Result<()> {
    let path = layout.marker();
    if env.disk.stat(&path).is_ok() {
        return Ok(());
    }
    let marker = Marker { id: identity.id, schema: identity.schema.clone() };
    let temporary = layout.root().join(format!(".new-{}", random_id(env)));
    let file = env.disk.create_alike(&temporary).map_err(|e| creation_failed(&*env.disk, &temporary, e))?;
    let outcome = write_all_at(&*file, &marker.encode(), 0)
        .and_then(|()| file.sync_data())
        .and_then(|()| match env.disk.link(&temporary, &path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => {
                write_without_links(env, &temporary, &path)
            }
            outcome => outcome,
        })
        .map_err(|e| Error::io("write", &path, e));
    let _ = env.disk.unlink(&temporary);
    outcome
}

/// Without links, the first process that creates a name next to the marker puts the marker in place. Others wait for
/// that, and do it themselves if the first one died. The name stays: a host that does not see the marker yet still
/// finds the name taken.
fn write_without_links(env: &Env, temporary: &Path, path: &Path) -> std::io::Result<()> {
    match env.disk.create_alike(&path.with_file_name(".new-marker")) {
        Ok(_) => {}
        Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {
            let patience = if path.parent().is_some_and(|root| env.disk.lags(root)) { LATE } else { TORN };
            for _ in 0..patience / POLL {
                if env.disk.stat(path).is_ok() {
                    return Ok(());
                }
                env.clock.sleep(POLL);
            }
        }
        Err(e) => return Err(e),
    }
    env.disk.rename(temporary, path)
}

/// How long a marker may be in the making; how long one that is there may show late on another host, as a whole or
/// its name before its bytes; and how often it is looked at meanwhile, nanoseconds.
const TORN: u64 = 2_000_000_000;
pub const LATE: u64 = 90_000_000_000;
pub const POLL: u64 = 10_000_000;

/// How long a marker that is torn may still become whole for this host, nanoseconds.
pub fn torn_for(env: &Env, layout: &Layout) -> u64 {
    if env.disk.lags(layout.root()) { LATE } else { TORN }
}

/// The marker's content, now that there is one. All logs must carry the same id, so this waits until a marker that
/// was made on another host shows.
fn check(
    env: &Env,
    layout: &Layout,
    identity: StoreIdentity,
    existence: &Existence,
) -> Result<StoreIdentity> {
    let mut waited = 0;
    let marker = loop {
        let marker = read_marker(env, layout)?;
        let limit = match marker {
            Some(Ok(_)) => 0,
            Some(Err(_)) if marker_bytes(env, layout)?.is_some_and(|b| marker::foreign(&b).is_some()) => 0,
            Some(Err(_)) => torn_for(env, layout),
            None => LATE,
        };
        if waited >= limit {
            break marker;
        }
        env.clock.sleep(POLL);
        waited += POLL;
    };
    match marker {
        Some(Ok(marker)) => {
            let agreed = agree(marker, &identity, &layout.root().display())?;
            existence.check_id(agreed.id, layout)?;
            Ok(agreed)
        }
        _ => Ok(identity),
    }
}

/// Reads the marker: `None` where there is none, an inner error where it is damaged.
pub fn read_marker(env: &Env, layout: &Layout) -> Result<Option<Result<Marker>>> {
    Ok(marker_bytes(env, layout)?.map(|bytes| Marker::decode(&bytes)))
}

/// The bytes of the marker; `None` where there is none.
pub fn marker_bytes(env: &Env, layout: &Layout) -> Result<Option<Vec<u8>>> {
    let path = layout.marker();
    let file = match env.disk.open_plain(&path, false) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(Error::io("open", &path, e)),
    };
    let length = file.stat().map_err(|e| Error::io("look at", &path, e))?.len.min(16 << 20);
    let bytes = super::open_files::read_vec(&*file, &path, 0, length)?;
    let promoted = layout.copy().filter(|copy| copy.state == CopyState::Promoted);
    Ok(Some(match (promoted, Marker::decode(&bytes)) {
        // A copy keeps the marker of its source, and has an id of its own.
        (Some(copy), Ok(marker)) => Marker { id: copy.id, ..marker }.encode(),
        _ => bytes,
    }))
}

/// The mark of a copy; `None` in other folders. Corrupt where that cannot be read: nobody must write into a backup.
pub fn read_copy_mark(env: &Env, layout: &Layout) -> Result<Option<CopyMark>> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    let path = layout.copy_mark();
    let file = match env.disk.open_plain(&path, false) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), NotFound | NotADirectory) => return Ok(None),
        Err(e) => return Err(Error::io("open", &path, e)),
    };
    let length = file.stat().map_err(|e| Error::io("look at", &path, e))?.len;
    let bytes = super::open_files::read_vec(&*file, &path, 0, length)?;
    CopyMark::decode(&bytes).map(Some).map_err(|e| e.context(layout.root().display()))
}
