//! Where a store's engine is, and what becomes of its file when it is damaged or gone.
//!
//! | store | engine |
//! |---|---|
//! | in memory, on a simulated disk, or open at an older version | in memory, by replay |
//! | a folder on a local file system that we may write to | `<store>/catalog/index.sqlite` |
//! | any other folder | `$XDG_CACHE_HOME/fieldstone/<store id>/index.sqlite`, `~/.cache` where that is not set |
//! | where the cache is on a network too | a folder of the user under the system's temporary folder |
//!
//! Invariants:
//! * SQLite never opens a file on a network file system;
//! * the file and its journal belong together: opening one, setting one aside and clearing what a
//!   deleted one left behind exclude each other by a lock on the file `lock` beside them;
//! * nothing is made in a folder of another user by a handle that only reads.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use fieldstone_core::{Error, Result};
use fieldstone_store::api::Home;
use rustix::fs::{Access, FlockOperation};

/// Name of the folder in the store's.
const FOLDER: &str = "catalog";
/// Name of the engine's file.
const FILE: &str = "index.sqlite";

/// Where an engine is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EnginePlace {
    /// In this process's memory.
    Memory,
    /// A file of SQLite's.
    File(PathBuf),
    /// A schema of a PostgreSQL server.
    Postgres(String),
}

impl std::fmt::Display for EnginePlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EnginePlace::Memory => f.write_str("memory"),
            EnginePlace::File(path) => write!(f, "{}", path.display()),
            EnginePlace::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

/// The URL as it may be shown.
fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (server, tail) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match server.rsplit_once('@') {
        Some((user, host)) => {
            let user = user.split(':').next().unwrap_or("");
            format!("{scheme}://{user}@{host}{tail}")
        }
        None => url.to_owned(),
    }
}

/// Chooses the engine's place. `engine` is what the caller asked for; else, for a store in a folder, the
/// variable `FIELDSTONE_CATALOG`.
pub fn choose(home: &Home, engine: Option<&str>) -> Result<EnginePlace> {
    if home.pinned {
        return Ok(EnginePlace::Memory);
    }
    let variable =
        std::env::var("FIELDSTONE_CATALOG").ok().filter(|text| !text.is_empty() && home.folder.is_some());
    match engine.or(variable.as_deref()) {
        Some(url) if url.starts_with("postgresql://") || url.starts_with("postgres://") => {
            return Ok(EnginePlace::Postgres(url.to_owned()));
        }
        Some("memory:") => return Ok(EnginePlace::Memory),
        Some(url) => {
            return Err(Error::invalid(format!("no engine of a catalog is reached by '{url}'")).with_hint(
                "give postgresql://user@host/database, memory:, or nothing for the file beside the store",
            ));
        }
        None => {}
    }
    let Some(folder) = &home.folder else { return Ok(EnginePlace::Memory) };
    let own = beside(home, folder).or_else(|| in_cache(home)).or_else(|| in_temporary(home));
    Ok(own.map_or(EnginePlace::Memory, EnginePlace::File))
}

/// The engine in the store's own folder, where it may stand there.
fn beside(home: &Home, folder: &Path) -> Option<PathBuf> {
    if is_network(folder) {
        return None;
    }
    let inside = folder.join(FOLDER);
    if !inside.exists() {
        let owner = fs::metadata(folder).ok()?.uid();
        if !home.writable && owner != home.env.identity.uid() {
            return None;
        }
        match fs::create_dir(&inside) {
            // Who may write to the store's folder may write to this one.
            Ok(()) => {
                let mode = fs::metadata(folder).ok()?.permissions().mode();
                fs::set_permissions(&inside, fs::Permissions::from_mode(mode & 0o777)).ok();
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    usable(&inside)
}

/// The engine's file in a folder, where we may write to both.
fn usable(folder: &Path) -> Option<PathBuf> {
    let may = |path: &Path, access| rustix::fs::access(path, access).is_ok();
    if !may(folder, Access::WRITE_OK | Access::EXEC_OK) {
        return None;
    }
    let all = fs::read_dir(folder).ok()?.flatten();
    let mut files = all.map(|entry| entry.path()).filter(|path| path.is_file());
    let path = folder.join(FILE);
    files.all(|file| may(&file, Access::READ_OK | Access::WRITE_OK)).then_some(path)
}

fn in_cache(home: &Home) -> Option<PathBuf> {
    let named = |name| std::env::var_os(name).filter(|text| !text.is_empty()).map(PathBuf::from);
    let cache = match named("XDG_CACHE_HOME") {
        Some(folder) if folder.is_absolute() => folder,
        _ => named("HOME")?.join(".cache"),
    };
    private(&cache.join("fieldstone").join(home.id.to_string()), home)
}

fn in_temporary(home: &Home) -> Option<PathBuf> {
    let folder = std::env::temp_dir().join(format!("fieldstone-{}", home.env.identity.uid()));
    private(&folder, home)?;
    private(&folder.join(home.id.to_string()), home)
}

/// The engine in a folder of this user alone; made where it is absent.
fn private(folder: &Path, home: &Home) -> Option<PathBuf> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
    // Where others can write, the name may have been taken before us.
    let facts = fs::symlink_metadata(folder).ok()?;
    if facts.uid() != home.env.identity.uid() || !facts.is_dir() || is_network(folder) {
        return None;
    }
    usable(folder)
}

/// Whether the file system of a path is reached over a network, or by a program of a user that may do so.
fn is_network(path: &Path) -> bool {
    match rustix::fs::statfs(path) {
        Ok(facts) => is_network_type(facts.f_type as u64 & 0xffff_ffff),
        // Nothing is known of it: better not.
        Err(_) => true,
    }
}

/// Numbers of file systems as `statfs` gives them.
fn is_network_type(magic: u64) -> bool {
    [
        0x6969,      // NFS
        0x517b,      // SMB
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB 2
        0x0bd0_0bd0, // Lustre
        0x4750_4653, // GPFS
        0x00c3_6400, // Ceph
        0x0102_1997, // 9P
        0x6573_5546, // FUSE
        0x1983_0326, // BeeGFS
        0xaad7_aaea, // PanFS
        0x2003_0528, // OrangeFS
        0x5346_414f, // AFS
        0x6b41_4653, // kAFS
        0x7375_7245, // Coda
        0x7461_636f, // OCFS2
        0x0116_1970, // GFS2
        0x786f_4256, // shared folders of VirtualBox
        0x564c,      // NCP
    ]
    .contains(&magic)
}

/// Keeps others from setting the file aside, or from opening it.
#[derive(Debug)]
pub struct Guard(#[allow(dead_code)] File);

fn guard(path: &Path, operation: FlockOperation) -> Result<Guard> {
    let lock = path.with_file_name("lock");
    let open = || -> io::Result<File> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&lock)?;
        rustix::fs::flock(&file, operation)?;
        Ok(file)
    };
    open().map(Guard).map_err(|e| Error::io("lock", &lock, e))
}

/// Makes a file ready to be opened, and keeps it so until the guard is dropped: no journal of a file that
/// was deleted lies beside it.
pub fn prepare(path: &Path) -> Result<Guard> {
    let shared = guard(path, FlockOperation::LockShared)?;
    if path.exists() || companions(path).iter().all(|file| !file.exists()) {
        return Ok(shared);
    }
    drop(shared);
    let _alone = guard(path, FlockOperation::LockExclusive)?;
    if !path.exists() {
        for file in companions(path) {
            remove(&file)?;
        }
        // An empty file is a new database; whoever comes next finds it and leaves the journal alone.
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(path)
            .map_err(|e| Error::io("create", path, e))?;
    }
    drop(_alone);
    guard(path, FlockOperation::LockShared)
}

/// Sets a damaged file aside, provided that it is still the one with this inode. What was set aside
/// before is replaced.
pub fn set_aside(path: &Path, inode: Option<u64>) -> Result<()> {
    let _alone = guard(path, FlockOperation::LockExclusive)?;
    if inode_of(path) != inode {
        return Ok(());
    }
    let mut files = vec![path.to_owned()];
    files.extend(companions(path));
    for file in files {
        let mut aside = file.clone().into_os_string();
        aside.push(".damaged");
        match fs::rename(&file, &aside) {
            Ok(()) => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(Error::io("set aside", &file, e)),
        }
    }
    Ok(())
}

/// SQLite's journal and its index.
fn companions(path: &Path) -> [PathBuf; 2] {
    ["-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(Error::io("remove", path, e)),
        _ => Ok(()),
    }
}

/// Which file stands under a path now.
pub fn inode_of(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|facts| facts.ino())
}

/// The file of this layout, where the usual name is taken by a newer one.
pub fn of_layout(path: &Path, layout: &str) -> PathBuf {
    path.with_file_name(format!("index-{layout}.sqlite"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use fieldstone_core::env::Env;
    use fieldstone_store::api::Id;

    fn home(folder: Option<&Path>) -> Home {
        let folder = folder.map(Path::to_owned);
        Home { id: Id([7; 16]), folder, writable: true, pinned: false, env: Env::real() }
    }

    #[test]
    fn it_stands_beside_the_store_or_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        let found = choose(&home(Some(folder.path())), None).unwrap();
        assert_eq!(found, EnginePlace::File(folder.path().join("catalog/index.sqlite")));
        assert_eq!(choose(&home(None), None).unwrap(), EnginePlace::Memory);
        let older = Home { pinned: true, ..home(Some(folder.path())) };
        assert_eq!(choose(&older, None).unwrap(), EnginePlace::Memory);
    }

    #[test]
    fn it_is_asked_for_by_url() {
        let url = "postgresql://me:secret@host:1/db?x=1";
        let found = choose(&home(None), Some(url)).unwrap();
        assert_eq!(found, EnginePlace::Postgres(url.into()));
        assert_eq!(found.to_string(), "postgresql://me@host:1/db?x=1");
        assert!(choose(&home(None), Some("mysql://host")).unwrap_err().message().contains("mysql://host"));
    }

    #[test]
    fn network_file_systems_are_known() {
        for magic in [0x6969, 0xff53_4d42, 0x0bd0_0bd0, 0x4750_4653, 0x6573_5546, 0x0102_1997] {
            assert!(is_network_type(magic));
        }
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert!(!is_network_type(local));
        }
    }

    #[test]
    fn a_reader_makes_nothing_in_a_folder_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let reader = Home { writable: false, ..home(Some(folder.path())) };
        assert!(beside(&reader, folder.path()).is_some(), "it is our own");
        fs::remove_dir(folder.path().join(FOLDER)).unwrap();
        let uid = home(None).env.identity.uid();
        if uid == 0 {
            std::os::unix::fs::chown(folder.path(), Some(1234), None).unwrap();
            assert_eq!(beside(&reader, folder.path()), None);
            assert!(!folder.path().join(FOLDER).exists());
        }
    }

    #[test]
    fn a_journal_without_its_file_is_cleared_and_damage_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let [wal, shm] = companions(&path);
        fs::write(&wal, b"old").unwrap();
        fs::write(&shm, b"old").unwrap();
        drop(prepare(&path).unwrap());
        assert!(!wal.exists() && !shm.exists() && path.exists());
        fs::write(&path, b"broken").unwrap();
        set_aside(&path, Some(1)).unwrap();
        assert!(path.exists(), "another file stands there by now");
        set_aside(&path, inode_of(&path)).unwrap();
        assert!(!path.exists() && folder.path().join("index.sqlite.damaged").exists());
    }
}
