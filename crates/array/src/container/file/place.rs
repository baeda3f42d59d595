//! Where a container is written until it is finished, and how it then takes its name.
//!
//! A container whose path is free is written in place, and the first four bytes of the file say that it is
//! unfinished ([`UNFINISHED`]). One whose path is taken is written beside it, under a name that begins with a
//! dot and ends in `.part`, and replaces it by a rename; where the path is a link, the file that it leads to. The
//! new one has the old one's permissions. In both cases the magic of the format is the last
//! that is written of a file, after all data of all ranks. So whatever happens to the writers, a reader
//! finds the old container, the new one, or a file that says that it was never finished.
//!
//! Invariants: before [`Place::publish`] returns nobody finds a new container under the path; the calls are
//! collective, and only rank 0 renames and removes.

use std::path::{Path, PathBuf};

use fieldstone_core::env::comm::{FileMode, Team, TeamFile};
use fieldstone_core::env::{Env, FileKind};
use fieldstone_core::{Error, ErrorKind, Result};

/// First bytes of a file that its writer has not finished; the format's fourth byte follows.
pub const UNFINISHED: &[u8; 3] = b"FSU";

/// A path, and where its container is being written.
#[derive(Debug, Clone)]
pub struct Place {
    env: Env,
    path: PathBuf,
    written: PathBuf,
    /// What a file written beside the path is renamed to: the path, or where its link leads.
    takes: PathBuf,
}

impl Place {
    /// Collective: creates the file in which a new container is written, beside an existing one of that path.
    ///
    /// Errors: `Invalid` where the path names something else than a file; `Conflict` where ranks disagree
    /// about the path; `NotFound` where its folder is missing.
    pub fn create(team: &Team, env: &Env, path: &Path, fourth: u8) -> Result<(Place, TeamFile)> {
        let own = path.as_os_str().as_encoded_bytes();
        let mut choice = Ok(own.to_vec());
        if team.rank() == 0 {
            choice = beside(env, path).map(|beside| [own, &[0], beside.as_bytes()].concat());
        }
        let choice = team.broadcast("create", 0, choice)?;
        let split = choice.iter().position(|byte| *byte == 0).unwrap_or(choice.len());
        let (root_path, beside) =
            (&choice[..split], String::from_utf8_lossy(choice.get(split + 1..).unwrap_or(&[])));
        let same = if root_path == own {
            Ok(())
        } else {
            let root_path = String::from_utf8_lossy(root_path);
            Err(Error::conflict(format!(
                "this rank creates {}, but rank 0 creates {root_path}",
                path.display()
            ))
            .with_hint("give the same path on all ranks"))
        };
        let takes = same.and_then(|()| match beside.is_empty() {
            true => Ok(path.to_owned()),
            false => env.disk.absolute(path).map_err(|cause| Error::io("look at", path, cause)),
        });
        let takes = team.agree("create", takes)?;
        let written = if beside.is_empty() { path.to_owned() } else { takes.with_file_name(&*beside) };
        let place = Place { env: env.clone(), path: path.to_owned(), written, takes };
        let file = team.open("create", &place.written, FileMode::CreateNew).map_err(taken)?;
        let marked = if team.rank() == 0 { place.begin(&file, fourth) } else { Ok(()) };
        team.agree("create", marked).inspect_err(|_| file.give_up())?;
        Ok((place, file))
    }

    fn begin(&self, file: &TeamFile, fourth: u8) -> Result<()> {
        if self.is_beside() {
            let copied = self.env.disk.copy_permissions(&self.takes, &self.written);
            copied.map_err(|cause| Error::io("give permissions to", &self.written, cause))?;
        }
        mark(file, fourth)
    }

    /// A finished container's place.
    pub fn of(env: &Env, path: &Path) -> Place {
        Place { env: env.clone(), path: path.to_owned(), written: path.to_owned(), takes: path.to_owned() }
    }

    /// The container's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is written beside the path, which it takes when it is finished.
    pub fn is_beside(&self) -> bool {
        self.written != self.path
    }

    /// Collective: the container is finished. `head` is what rank 0 writes at offset 0, magic first; the rest of
    /// the file has been written by all ranks. With `durable`, all of it survives a power cut when this returns.
    pub fn publish(&mut self, file: &TeamFile, head: &[u8], durable: bool) -> Result<()> {
        let (team, root) = (file.team().clone(), file.team().rank() == 0);
        let magic = head.len().min(4);
        let counted = if root { file.write_at(&head[magic..], magic as u64) } else { Ok(()) };
        team.agree("finish", counted)?;
        // An old container is replaced by nothing that a power cut could take away.
        let durable_first = durable || self.is_beside();
        if durable_first {
            file.sync("finish", Ok(()))?;
        }
        let marked = if root { file.write_at(&head[..magic], 0) } else { Ok(()) };
        team.agree("finish", marked)?;
        if durable_first {
            file.sync("finish", Ok(()))?;
        }
        let named = if root { self.take_name(durable) } else { Ok(()) };
        team.agree("finish", named)?;
        self.written.clone_from(&self.path);
        Ok(())
    }

    fn take_name(&self, durable: bool) -> Result<()> {
        let disk = &self.env.disk;
        if self.written != self.path {
            disk.rename(&self.written, &self.takes)
                .map_err(|cause| Error::io("rename to", &self.takes, cause))?;
        }
        if durable {
            let folder = self.takes.parent().filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new("."));
            disk.sync_dir(folder).map_err(|cause| Error::io("sync the folder", folder, cause))?;
        }
        Ok(())
    }

    /// Removes an unfinished file. Only where nothing of it was published; what cannot be removed stays, and
    /// says that it is unfinished.
    pub fn discard(&self) {
        let _ = self.env.disk.unlink(&self.written);
    }
}

/// Says in the file's first bytes that it is not finished.
pub fn mark(file: &TeamFile, fourth: u8) -> Result<()> {
    let [a, b, c] = *UNFINISHED;
    file.write_at(&[a, b, c, fourth], 0)
}

/// The name under which to write: empty where the path itself is free.
fn beside(env: &Env, path: &Path) -> Result<String> {
    let name = path.file_name().ok_or_else(|| {
        Error::invalid(format!("{} names no file", path.display())).with_hint("give the path of a file")
    })?;
    match env.disk.stat(path) {
        Ok(stat) if stat.kind != FileKind::File => {
            Err(Error::invalid(format!("{} is no file", path.display()))
                .with_hint("give the path of a file, or remove what is there"))
        }
        Ok(_) => {
            let mut random = [0; 8];
            env.rand.fill(&mut random);
            Ok(format!(".{}.{:016x}.part", name.to_string_lossy(), u64::from_le_bytes(random)))
        }
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(String::new()),
        Err(cause) => Err(Error::io("look at", path, cause)),
    }
}

fn taken(error: Error) -> Error {
    if error.kind() == ErrorKind::NotFound {
        return error.with_hint("create the folder first");
    }
    error
}
