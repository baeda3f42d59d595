//! The first commit of a store: folders and marker. Several processes may do this at once.

use std::path::Path;

use fieldstone_core::env::{Env, write_all_at};
use fieldstone_core::{Error, Result};
use fieldstone_format::marker::Marker;

use super::{StoreIdentity, random_id};
use crate::layout::Layout;

/// Makes folders and marker where they are absent, and returns what the store now is. Conflict where
/// another process has meanwhile made it a store with another schema.
pub fn create_store(env: &Env, layout: &Layout, identity: StoreIdentity) -> Result<StoreIdentity> {
    let folders = [layout.logs(), layout.data(), layout.boards()];
    if env.disk.stat(&layout.marker()).is_ok() && folders.iter().all(|f| env.disk.stat(f).is_ok()) {
        return check(env, layout, identity);
    }
    for folder in &folders {
        env.disk.create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
    }
    write_marker(env, layout, &identity)?;
    sync(env, layout.root())?;
    // The folder itself is entered in its parent, which may not be ours to sync.
    if let Some(parent) = layout.root().parent().filter(|p| !p.as_os_str().is_empty()) {
        match env.disk.sync_dir(parent) {
            Err(e) if e.kind() != std::io::ErrorKind::PermissionDenied => {
                return Err(Error::io("sync", parent, e));
            }
            _ => {}
        }
    }
    check(env, layout, identity)
}

fn sync(env: &Env, folder: &Path) -> Result<()> {
    env.disk.sync_dir(folder).map_err(|e| Error::io("sync", folder, e))
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
    let file = env.disk.create_new(&temporary).map_err(|e| Error::io("create", &temporary, e))?;
    let outcome = write_all_at(&*file, &marker.encode(), 0)
        .and_then(|()| file.sync_data())
        .and_then(|()| match env.disk.link(&temporary, &path) {
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
            // Without links the last of several first writers wins; `check` tells the others.
            Err(e) if e.kind() == std::io::ErrorKind::Unsupported => env.disk.rename(&temporary, &path),
            outcome => outcome,
        })
        .map_err(|e| Error::io("write", &path, e));
    let _ = env.disk.unlink(&temporary);
    outcome
}

fn check(env: &Env, layout: &Layout, identity: StoreIdentity) -> Result<StoreIdentity> {
    match read_marker(env, layout)? {
        Some(Ok(marker)) if marker.schema != identity.schema => Err(Error::conflict(format!(
            "{} has meanwhile been made a store with another schema",
            layout.root().display()
        ))
        .with_hint("open it again")),
        Some(Ok(marker)) => Ok(StoreIdentity { id: marker.id, schema: marker.schema }),
        _ => Ok(identity),
    }
}

/// Reads the marker: `None` where there is none, an inner error where it is damaged.
pub fn read_marker(env: &Env, layout: &Layout) -> Result<Option<Result<Marker>>> {
    let path = layout.marker();
    let file = match env.disk.open_read(&path) {
        Ok(file) => file,
        Err(e) if matches!(e.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(e) => return Err(Error::io("open", &path, e)),
    };
    let length = file.stat().map_err(|e| Error::io("look at", &path, e))?.len.min(16 << 20);
    let bytes = crate::files::read_vec(&*file, &path, 0, length)?;
    Ok(Some(Marker::decode(&bytes)))
}
