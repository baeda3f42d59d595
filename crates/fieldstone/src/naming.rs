//! Flags of processes that may name meshes and kept partitions soon, and their condemned files (mesh-files.md, 4; R37).
//!
//! A process that may declare a mesh or a partition, or something that names one, leaves a flag in their folder before it
//! looks at the catalog. A purge condemns a file by a name beside it, and looks for flags and at the catalog before and
//! after it deletes the declaration (R53): whoever comes second sees the other. It unlinks the file a grace later.

use std::io::ErrorKind::{NotFound, PermissionDenied, ReadOnlyFilesystem};
use std::path::{Path, PathBuf};

use fieldstone_core::env::{Env, FileKind};
use fieldstone_core::sync::Mutex;
use fieldstone_core::{Error, Result};
use fieldstone_journal::Session;
use fieldstone_journal::medium::posix::array_files::GONE;
use fieldstone_journal::session::SessionKey;

use crate::own_files::{HISTORIES, MESHES, PART, flag_of, is_flag, is_gone};

/// While it exists, a process says that it may name meshes and partitions.
#[derive(Debug)]
pub struct Naming {
    env: Env,
    path: PathBuf,
    writer: String,
}

impl Naming {
    /// Under a name of its own, in a folder of meshes or partitions; `None` if this user may not write to one, or it is
    /// absent: a purge of its owner looks at what was flushed alone.
    pub fn of_job(env: &Env, folder: &Path, job: &str) -> Result<Option<Naming>> {
        let writer = env.identity.writer_name();
        let path = folder.join(flag_of(&format!("{job}-{writer}")));
        match env.disk.create_alike(&path) {
            Ok(_) => Ok(Some(Naming { env: env.clone(), path, writer })),
            Err(e) if matches!(e.kind(), NotFound | PermissionDenied | ReadOnlyFilesystem) => Ok(None),
            Err(e) => Err(Error::io("make", &path, e)),
        }
    }
}

impl Drop for Naming {
    fn drop(&mut self) {
        // A forked child leaves it to its parent.
        if self.env.identity.writer_name() == self.writer {
            let _ = self.env.disk.unlink(&self.path);
        }
    }
}

/// Sessions of a handle that may name meshes with their next flush.
#[derive(Debug, Default)]
pub struct SessionNaming(Mutex<Vec<(SessionKey, Naming)>>);

impl SessionNaming {
    /// Says so for a session, before it looks at what the catalog has of them.
    pub fn begin(&self, env: &Env, folder: &Path, session: &Session) -> Result<()> {
        let mut all = self.0.lock();
        if !all.iter().any(|(key, _)| *key == session.key()) {
            let mut random = [0; 8];
            env.rand.fill(&mut random);
            let naming = Naming::of_job(env, folder, &hex(&random))?;
            all.extend(naming.map(|naming| (session.key(), naming)));
        }
        Ok(())
    }

    /// The session has flushed, or forgotten, what it had.
    pub fn end(&self, session: &Session) {
        self.0.lock().retain(|(key, _)| *key != session.key());
    }
}

/// Bytes in hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The name that condemns a file.
pub fn note_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{GONE}{name}"))
}

/// Whether a file is condemned.
pub fn is_condemned(env: &Env, path: &Path) -> Result<bool> {
    let note = note_of(path);
    match env.disk.stat(&note) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == NotFound => Ok(false),
        Err(e) => Err(Error::io("look for", &note, e)),
    }
}

/// A file of this user's.
#[derive(Debug, Clone)]
pub struct OwnFile {
    /// Relative to the store's folder.
    pub path: String,
    pub bytes: u64,
    /// When it changed last, nanoseconds since 1970.
    pub changed: i64,
}

/// The folders of meshes and kept partitions.
#[derive(Debug, Default)]
pub struct NamedFolders {
    /// Whole files.
    pub files: Vec<OwnFile>,
    /// Files that their writers left unfinished.
    pub parts: Vec<OwnFile>,
    /// Condemned files, each since when.
    pub condemned: Vec<(String, i64)>,
    /// Flags of processes that have ended.
    pub stale: Vec<String>,
    /// Whether a process says that it may name more.
    pub is_open: bool,
}

impl NamedFolders {
    /// A look at those of a store.
    pub fn look(env: &Env, root: &Path) -> Result<NamedFolders> {
        let mut found = NamedFolders::default();
        for folder in [MESHES, HISTORIES] {
            let path = root.join(folder);
            match env.disk.list_dir(&path) {
                Ok(names) => {
                    let files = names.into_iter().filter(|(_, kind)| *kind == FileKind::File);
                    files.for_each(|(name, _)| found.take(env, (root, folder), &name));
                }
                Err(e) if matches!(e.kind(), NotFound | PermissionDenied) => {}
                Err(e) => return Err(Error::io("list", &path, e)),
            }
        }
        found.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    fn take(&mut self, env: &Env, (root, folder): (&Path, &str), name: &str) {
        let within = format!("{folder}/{name}");
        let path = root.join(&within);
        // Another purge removed it meanwhile.
        let Ok((stat, changed)) = env.disk.stat_with_time(&path) else { return };
        let is_own = stat.uid == env.identity.uid();
        if let Some(of) = name.strip_prefix(GONE) {
            self.condemned.extend(is_own.then(|| (format!("{folder}/{of}"), changed)));
        } else if is_flag(&within) {
            match is_gone(env, &path) {
                true => self.stale.extend(is_own.then_some(within)),
                false => self.is_open = true,
            }
        } else if is_own {
            let file = OwnFile { path: within, bytes: stat.len, changed };
            match name.ends_with(PART) {
                true if is_gone(env, &path) => self.parts.push(file),
                true => {}
                false => self.files.push(file),
            }
        }
    }

    /// Whether there is nothing in them.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty() && self.parts.is_empty() && self.condemned.is_empty() && self.stale.is_empty()
    }
}
