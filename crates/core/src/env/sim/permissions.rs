//! Owners and permissions of the files of a world, as an administrator sets them without the store's knowledge. These
//! calls are not counted, and no fault strikes them.

use std::io;
use std::path::Path;

use super::tree::{Access, Node};
use super::{SimWorld, World};

/// Owners and permissions of files and directories.
#[derive(Debug, Clone, Copy)]
pub struct Permissions<'a> {
    pub(super) world: &'a World,
}

impl SimWorld {
    /// Owners and permissions of its files.
    pub fn permissions(&self) -> Permissions<'_> {
        Permissions { world: &self.0 }
    }
}

impl Permissions<'_> {
    /// Gives a file or directory to another user.
    pub fn chown(&self, path: &Path, uid: u32) -> io::Result<()> {
        let mut state = self.world.lock();
        let ino = state.tree.lookup(path)?;
        match state.tree.nodes.get_mut(&ino) {
            Some(Node::Dir(dir)) => dir.uid = uid,
            Some(Node::File(file)) => file.write().uid = uid,
            None => {}
        }
        Ok(())
    }

    /// Sets the permission bits of a file or directory: what a directory's new files get, and who may read
    /// a file.
    pub fn set_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        let mut state = self.world.lock();
        let ino = state.tree.lookup(path)?;
        match state.tree.nodes.get_mut(&ino) {
            Some(Node::Dir(dir)) => dir.mode = mode,
            Some(Node::File(file)) => file.write().mode = mode,
            None => {}
        }
        Ok(())
    }

    /// Makes a path and all below it read-only for all but its owner, or for all.
    pub fn make_read_only(&self, path: &Path, except_owner: bool) -> io::Result<()> {
        self.allow(path, if except_owner { Access::Owner } else { Access::Nobody })
    }

    /// Makes a path and all below it writable for all, as everything is at first.
    pub fn make_writable(&self, path: &Path) -> io::Result<()> {
        self.allow(path, Access::All)
    }

    fn allow(&self, path: &Path, access: Access) -> io::Result<()> {
        let mut state = self.world.lock();
        for (_, ino) in state.tree.below(path)? {
            match state.tree.nodes.get_mut(&ino) {
                Some(Node::Dir(dir)) => dir.access = access,
                Some(Node::File(file)) => file.write().access = access,
                None => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_read_only_is_so_for_others_than_its_owner() {
        let world = SimWorld::new(1);
        world.set_uid("guest", 7);
        let (owner, guest, path) = (world.host("owner"), world.host("guest"), Path::new("/f"));
        owner.disk.create_new(path).unwrap();
        let writes = |env: &crate::env::Env| env.disk.open_write(path).is_ok();
        assert!(writes(&owner) && writes(&guest));
        world.permissions().make_read_only(path, true).unwrap();
        assert!(writes(&owner) && !writes(&guest));
        world.permissions().chown(path, 7).unwrap();
        assert!(!writes(&owner) && writes(&guest));
        world.permissions().make_writable(path).unwrap();
        assert!(writes(&owner));
        world.permissions().set_mode(path, 0o600).unwrap();
        assert!(guest.disk.stat(path).is_ok());
    }
}
