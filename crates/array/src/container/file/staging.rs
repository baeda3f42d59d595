//! The place where a container is written until it is finished, and the way in which it then takes its name (C-5).
//!
//! If the path is free, the container is written in place, and the first four bytes of the file mark it as unfinished
//! ([`UNFINISHED`]). If the path is taken, the container is written next to it, under a name that begins with a dot
//! and ends in `.part`, and a rename replaces the old file; if the path is a link, the rename replaces the target of
//! the link. The new file has the old one's permissions. In both cases, the magic of the format is written last,
//! after all data of all ranks. So whatever happens to the writers, a reader finds the old container, the new one, or
//! a file marked as unfinished.
//!
//! Invariants: before [`Staging::publish`] returns, the new container cannot be found under the path; the calls are
//! collective, and only rank 0 renames and removes.

use std::ffi::OsStr;
use std::io::ErrorKind::NotFound;
use std::path::{Path, PathBuf};

use fieldstone_core::env::comm::{FileMode, Team, TeamFile};
use fieldstone_core::env::{Env, FileKind};
use fieldstone_core::{Code, Error, ErrorKind, Result};

use super::options::{NamedOptions, agree_on};

/// First bytes of a file that its writer has not finished; the format's fourth byte follows.
pub const UNFINISHED: &[u8; 3] = b"FSU";

/// Number of bytes of a file's name kept in the temporary name: file systems allow 255, and 23 are added.
const NAME_KEPT: usize = 255 - 23;

/// A path, and the file in which its container is being written.
#[derive(Debug, Clone)]
pub struct Staging {
    env: Env,
    path: PathBuf,
    written: PathBuf,
    /// The path to which a temporary file is renamed: the path itself, or the target of the link; absolute.
    target: PathBuf,
    /// The inode of the created file, as rank 0 found it: another file may take the path in the meantime.
    inode: Option<u64>,
}

impl Staging {
    /// Collective: creates the file for a new container, next to an existing one with that path.
    ///
    /// `given` has the options of this rank, or the reason why it cannot take part.
    ///
    /// Errors: `Invalid` if the path is not that of a file; `Conflict` if ranks disagree about the path or an option;
    /// `NotFound` if its folder is missing.
    pub fn create(
        team: &Team,
        env: &Env,
        path: &Path,
        (given, fourth): (Result<NamedOptions>, u8),
    ) -> Result<(Staging, TeamFile)> {
        // Absolute, so that the process may change its folder in the meantime.
        let absolute = env.disk.absolute(path).map_err(|cause| Error::io("look at", path, cause));
        let (target, given) = match (given, absolute) {
            (Ok(given), Ok(absolute)) => (absolute, Ok(given)),
            (Err(error), _) | (_, Err(error)) => (PathBuf::new(), Err(error)),
        };
        let temporary_name = agree_on(team, "create", path, given, || temporary_name(env, path))?;
        let written =
            if temporary_name.is_empty() { target.clone() } else { target.with_file_name(temporary_name) };
        let mut staging = Staging { env: env.clone(), path: path.to_owned(), written, target, inode: None };
        let opened = if staging.is_temporary() { &staging.written } else { path };
        let file = team.open("create", opened, FileMode::CreateNew);
        let file = file.map_err(|error| staging.not_created(error))?;
        let marked = if team.rank() == 0 { staging.begin(&file, fourth) } else { Ok(()) };
        team.agree("create", marked).inspect_err(|_| {
            file.give_up();
            if team.rank() == 0 {
                staging.discard();
            }
        })?;
        Ok((staging, file))
    }

    /// Explains why the file could not be created, in terms of the path.
    fn not_created(&self, error: Error) -> Error {
        if error.kind() == ErrorKind::NotFound {
            return error.with_hint("create the folder first");
        }
        // A query through a link without target finds nothing, and yet its name is taken.
        let folder = self.written.parent().filter(|folder| !folder.as_os_str().is_empty());
        let names = self.env.disk.list_dir(folder.unwrap_or(Path::new("."))).unwrap_or_default();
        let is_listed = |name: &OsStr| names.iter().any(|(listed, _)| OsStr::new(listed) == name);
        let absent = self.env.disk.stat(&self.written).is_err_and(|cause| cause.kind() == NotFound);
        if absent && self.written.file_name().is_some_and(is_listed) {
            let path = self.written.display();
            return Code::FileKind
                .error(format!("{path} is a link without a target"))
                .with_hint("remove the link, or give the path of a file");
        }
        error
    }

    fn begin(&mut self, file: &TeamFile, fourth: u8) -> Result<()> {
        let stat = self.env.disk.stat(&self.written);
        self.inode = Some(stat.map_err(|cause| Error::io("look at", &self.written, cause))?.inode);
        if self.is_temporary() {
            let copied = self.env.disk.copy_permissions(&self.target, &self.written);
            copied.map_err(|cause| Error::io("give permissions to", &self.written, cause))?;
        }
        mark(file, fourth)
    }

    /// Makes the staging of a finished container: the file itself.
    pub fn of(env: &Env, path: &Path) -> Result<Staging> {
        let target = env.disk.absolute(path).map_err(|cause| Error::io("look at", path, cause))?;
        let inode = env.disk.stat(&target).ok().map(|stat| stat.inode);
        Ok(Staging { env: env.clone(), path: path.to_owned(), written: target.clone(), target, inode })
    }

    /// The file's absolute path, which stays valid if the process changes its folder.
    pub fn absolute(&self) -> &Path {
        &self.target
    }

    /// The container's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is written next to the path, which it takes when it is finished.
    pub fn is_temporary(&self) -> bool {
        self.written != self.target
    }

    /// Collective: publishes the finished container. `head` is what rank 0 writes at offset 0, magic first; all ranks
    /// have written the rest of the file. With `durable`, all of it survives a power cut after this returns.
    pub fn publish(&mut self, file: &TeamFile, head: &[u8], durable: bool) -> Result<()> {
        let (team, root) = (file.team().clone(), file.team().rank() == 0);
        let magic = head.len().min(4);
        let counted = if root {
            self.check_own().and_then(|()| file.write_at(&head[magic..], magic as u64))
        } else {
            Ok(())
        };
        team.agree("finish", counted)?;
        // Before the old container is replaced, the new one must be safe from a power cut.
        let durable_first = durable || self.is_temporary();
        if durable_first {
            file.sync("finish", Ok(()))?;
        }
        // The magic makes the file valid, so it comes after everything else is in the file.
        let marked = if root { file.write_at(&head[..magic], 0) } else { Ok(()) };
        team.agree("finish", marked)?;
        if durable_first {
            file.sync("finish", Ok(()))?;
        }
        let named = if root { self.take_name(durable) } else { Ok(()) };
        team.agree("finish", named)?;
        self.written.clone_from(&self.target);
        Ok(())
    }

    fn take_name(&self, durable: bool) -> Result<()> {
        let disk = &self.env.disk;
        if self.is_temporary() {
            disk.rename(&self.written, &self.target)
                .map_err(|cause| Error::io("rename to", &self.target, cause))?;
        }
        if durable {
            let folder = self.target.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            disk.sync_dir(folder).map_err(|cause| Error::io("sync the folder", folder, cause))?;
        }
        Ok(())
    }

    /// Whether the file under the name is still the one that was created.
    fn is_own(&self) -> bool {
        self.inode.is_none_or(|own| self.env.disk.stat(&self.written).is_ok_and(|stat| stat.inode == own))
    }

    /// Errors: `Conflict` if the written file is not the one under its name.
    pub fn check_own(&self) -> Result<()> {
        if self.is_own() {
            return Ok(());
        }
        let path = self.written.display();
        Err(Code::FileReplaced
            .error(format!("{path} was removed or replaced while this container was written"))
            .with_hint("let only one job at a time create a container at that path"))
    }

    /// Removes an unfinished file, if nothing of it was published. A file that cannot be removed stays, marked as
    /// unfinished; another file in its place stays, too.
    pub fn discard(&self) {
        if self.is_own() {
            let _ = self.env.disk.unlink(&self.written);
        }
    }
}

/// Marks the file as unfinished in its first bytes.
pub fn mark(file: &TeamFile, fourth: u8) -> Result<()> {
    let [a, b, c] = *UNFINISHED;
    file.write_at(&[a, b, c, fourth], 0)
}

/// The name under which to write: empty if the path itself is free.
fn temporary_name(env: &Env, path: &Path) -> Result<String> {
    let name = path.file_name().ok_or_else(|| {
        Code::FileKind
            .error(format!("{} does not name a file", path.display()))
            .with_hint("give the path of a file")
    })?;
    match env.disk.stat(path) {
        Ok(stat) if stat.kind != FileKind::File => Err(Code::FileKind
            .error(format!("{} is not a file", path.display()))
            .with_hint("give the path of a file, or remove the object in its place")),
        Ok(_) => {
            let mut random = [0; 8];
            env.rand.fill(&mut random);
            let mut name = name.to_string_lossy().into_owned();
            // Remove whole characters, so that the name stays valid UTF-8.
            while name.len() > NAME_KEPT {
                name.pop();
            }
            Ok(format!(".{name}.{:016x}.part", u64::from_le_bytes(random)))
        }
        Err(cause) if cause.kind() == NotFound => Ok(String::new()),
        Err(cause) => Err(Error::io("look at", path, cause)),
    }
}
