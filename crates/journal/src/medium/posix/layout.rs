//! The layout of a store's folder.

use std::path::{Path, PathBuf};

use fieldstone_format::{Id, data, log, marker};

use super::reserve::is_reserve;

/// Folders that parts of a store may make beside its logs, none of which is needed to read it.
const NAMES: [&str; 8] = ["logs", "data", "boards", "catalog", "graph", "arrays", "meshes", "histories"];

/// The paths of one store.
#[derive(Debug, Clone)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The paths of the store in a folder.
    pub fn new(root: impl Into<PathBuf>) -> Layout {
        Layout { root: root.into() }
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
        name == marker::FILE_NAME || NAMES.contains(&name) || is_reserve(name)
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
