//! Access by which tests go around the store: they look at its files, damage them, give them to other users. These
//! calls are not counted, and no fault strikes them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::SimWorld;
use super::file::FileNode;
use super::tree::Node;

impl SimWorld {
    /// Drops cached content: files then show the bytes on the disk and the writes that it will still receive, which
    /// reveals the losses of a failed `sync_data`.
    pub fn drop_caches(&self) {
        for node in self.0.lock().tree.nodes.values() {
            if let Node::File(file) = node {
                file.write().evict();
            }
        }
    }

    /// The content of a file as its writer sees it.
    pub fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        Ok(self.file(path)?.read().bytes.clone())
    }

    /// Replaces the content of an existing file, durably, for all hosts.
    pub fn overwrite(&self, path: &Path, content: &[u8]) -> io::Result<()> {
        self.file(path)?.write().replace(content.to_vec());
        Ok(())
    }

    /// Inverts the bits of `mask` in one byte of a file, durably, for all hosts.
    pub fn flip(&self, path: &Path, offset: u64, mask: u8) -> io::Result<()> {
        let mut content = self.read(path)?;
        let byte = usize::try_from(offset).ok().and_then(|o| content.get_mut(o)).ok_or(Errno::INVAL)?;
        *byte ^= mask;
        self.overwrite(path, &content)
    }

    /// Cuts a file to `len` bytes or lengthens it with zeros, durably, for all hosts.
    pub fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        let mut content = self.read(path)?;
        content.resize(usize::try_from(len).map_err(|_| Errno::FBIG)?, 0);
        self.overwrite(path, &content)
    }

    fn file(&self, path: &Path) -> io::Result<Arc<FileNode>> {
        let state = self.0.lock();
        state.tree.file(state.tree.lookup(path)?).cloned()
    }

    /// Paths of all files, in order.
    pub fn files(&self) -> Vec<PathBuf> {
        let state = self.0.lock();
        let all = state.tree.below(Path::new("/")).unwrap_or_default();
        all.into_iter().filter(|(_, ino)| state.tree.file(*ino).is_ok()).map(|(path, _)| path).collect()
    }
}
