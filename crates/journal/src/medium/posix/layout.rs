//! The layout of a store's folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use fieldstone_format::copy_mark::{self, CopyMark, CopyState};
use fieldstone_format::version::{OwnerName, Version};
use fieldstone_format::{Id, data, log, marker};

use super::reserve::is_reserve;

/// Folders that parts of a store may make beside its logs, none of which is needed to read it.
const NAMES: [&str; 8] = ["logs", "data", "boards", "catalog", "graph", "arrays", "meshes", "histories"];

/// The paths of one store.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
    /// The mark of a copy, where the folder is one.
    copy: Option<Arc<CopyMark>>,
    /// The version that a backup is read at, where it is an older one.
    at: Option<Arc<OlderVersion>>,
}

/// An older version that a backup is read at.
#[derive(Debug, Clone)]
pub struct OlderVersion {
    /// The version.
    pub version: Version,
    /// Whether exactly the takeovers that it names count; else of each owner the oldest that has all that these have.
    pub is_exact: bool,
}

impl Layout {
    /// The paths of the store in a folder.
    pub fn new(root: impl Into<PathBuf>) -> Layout {
        Layout { root: root.into(), copy: None, at: None }
    }

    /// The same paths, of a folder that is a copy.
    pub fn of_copy(self, mark: CopyMark, at: Option<OlderVersion>) -> Layout {
        Layout { copy: Some(Arc::new(mark)), at: at.map(Arc::new), ..self }
    }

    /// The mark of a copy, where the folder is one.
    pub fn copy(&self) -> Option<&CopyMark> {
        self.copy.as_deref()
    }

    /// The file that says so.
    pub fn copy_mark(&self) -> PathBuf {
        self.root.join(copy_mark::FILE_NAME)
    }

    /// Ids that the store's files may carry besides its own.
    pub fn former(&self) -> Arc<[Id]> {
        self.copy().map_or_else(Arc::default, |mark| mark.former[..].into())
    }

    /// The greatest number of a takeover that counts, of an owner by his name; `None` outside of backups, where all do.
    pub fn last_takeover(&self, owner: &str) -> Option<u64> {
        let mark = self.copy().filter(|mark| mark.state == CopyState::Backup)?;
        Some(number_of(&mark.version, owner).unwrap_or(0))
    }

    /// The numbers of an owner's takeovers that may count in the older version that a backup is read at, the first that can be
    /// opened does.
    pub fn takeovers_at(&self, owner: &str, numbers: &[u64]) -> Option<Vec<u64>> {
        let at = self.at.as_deref()?;
        let number = number_of(&at.version, owner).unwrap_or(0);
        let may = |other: &u64| if at.is_exact { *other == number } else { *other >= number };
        Some(numbers.iter().copied().filter(may).collect())
    }

    /// Whether an older version is read by exactly the takeovers that it names.
    pub fn is_exact(&self) -> bool {
        self.at.as_ref().is_some_and(|at| at.is_exact)
    }

    /// The store's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The file that says what store it is.
    pub fn marker(&self) -> PathBuf {
        self.root.join(marker::FILE_NAME)
    }

    /// The folder of logs.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// The folder of data logs.
    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// The folder of boards.
    pub fn boards(&self) -> PathBuf {
        self.root.join("boards")
    }

    /// The folders in which each writer makes files of his own; any may be absent.
    pub fn of_all_writers(&self) -> impl Iterator<Item = PathBuf> {
        // Indexes are their user's alone.
        NAMES.iter().filter(|name| !["catalog", "graph"].contains(name)).map(|name| self.root.join(name))
    }

    /// Whether a name directly in the store's folder is one that a store has.
    pub fn holds(&self, name: &str) -> bool {
        name == marker::FILE_NAME || name == copy_mark::FILE_NAME || NAMES.contains(&name) || is_reserve(name)
    }

    /// The log of a writer.
    pub fn log(&self, writer: Id) -> PathBuf {
        self.logs().join(log::file_name(writer))
    }

    /// File 0 of a writer is its log, file n its data log n.
    pub fn file(&self, writer: Id, number: u32) -> PathBuf {
        match number {
            0 => self.log(writer),
            n => self.data().join(data::file_name(writer, n)),
        }
    }
}

/// The number of an owner's takeover in a version.
fn number_of(version: &Version, owner: &str) -> Option<u64> {
    let is_his = |name: OwnerName| matches!(name, OwnerName::User(uid) if format!("u{uid}") == owner);
    version.takeovers().iter().find(|name| is_his(name.owner)).map(|name| name.number)
}
