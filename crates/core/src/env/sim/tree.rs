//! The files and directories of a simulated file system, as they are now; `journal` records which of them would
//! survive a power cut.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::file::{FileData, FileNode, Stamp};
use super::journal::{Change, Edit};
use crate::env::FileKind;

/// Number of a file or directory.
pub(super) type Ino = u64;

/// The root directory.
pub(super) const ROOT: Ino = 1;

/// The users who may write to a file or change a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    All,
    Owner,
    Nobody,
}

impl Access {
    pub(super) fn allows(self, owner: u32, uid: u32) -> bool {
        match self {
            Access::All => true,
            Access::Owner => owner == uid,
            Access::Nobody => false,
        }
    }
}

/// The author of a change.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) stamp: Stamp,
    pub(super) uid: u32,
    /// Whether other hosts may see the change late.
    pub(super) weak: bool,
}

/// A change to one entry that other hosts may not see yet.
#[derive(Debug, Clone)]
pub(super) struct Past {
    pub(super) by: Stamp,
    pub(super) name: String,
    pub(super) from: Option<Ino>,
    pub(super) to: Option<Ino>,
}

/// A directory.
#[derive(Debug, Clone)]
pub(super) struct Dir {
    pub(super) entries: BTreeMap<String, Ino>,
    pub(super) durable: BTreeMap<String, Ino>,
    pub(super) history: Vec<Past>,
    pub(super) uid: u32,
    pub(super) mtime: i64,
    pub(super) access: Access,
    /// Permission bits. They decide who may read, and which bits new files get; `access` decides who may write.
    pub(super) mode: u32,
}

impl Dir {
    pub(super) fn new(uid: u32, mtime: i64) -> Dir {
        Dir {
            entries: BTreeMap::new(),
            durable: BTreeMap::new(),
            history: Vec::new(),
            uid,
            mtime,
            access: Access::All,
            mode: 0o755,
        }
    }
}

/// The object of an inode number.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Dir(Dir),
    File(Arc<FileNode>),
}

impl Node {
    pub(super) fn kind(&self) -> FileKind {
        match self {
            Node::Dir(_) => FileKind::Directory,
            Node::File(_) => FileKind::File,
        }
    }
}

/// All files and directories.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<Ino, Node>,
    pub(super) next: Ino,
    pub(super) journal: Vec<Change>,
    pub(super) tracked: bool,
    /// Whether nodes without a name may wait for collection.
    pub(super) garbage: bool,
}

/// The names on the way to `path`, from the root; `.` and `..` are resolved by text.
pub(super) fn names(path: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(utf8(name)?),
            Component::ParentDir => drop(names.pop()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(names)
}

fn utf8(name: &OsStr) -> io::Result<String> {
    Ok(name.to_str().ok_or(Errno::ILSEQ)?.to_owned())
}

impl Tree {
    pub(super) fn new(tracked: bool, uid: u32) -> Tree {
        let nodes = BTreeMap::from([(ROOT, Node::Dir(Dir::new(uid, 0)))]);
        Tree { nodes, next: ROOT + 1, journal: Vec::new(), tracked, garbage: false }
    }

    pub(super) fn dir(&self, ino: Ino) -> io::Result<&Dir> {
        match self.nodes.get(&ino) {
            Some(Node::Dir(dir)) => Ok(dir),
            Some(Node::File(_)) => Err(Errno::NOTDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    pub(super) fn dir_mut(&mut self, ino: Ino) -> Option<&mut Dir> {
        match self.nodes.get_mut(&ino) {
            Some(Node::Dir(dir)) => Some(dir),
            _ => None,
        }
    }

    pub(super) fn file(&self, ino: Ino) -> io::Result<&Arc<FileNode>> {
        match self.nodes.get(&ino) {
            Some(Node::File(file)) => Ok(file),
            Some(Node::Dir(_)) => Err(Errno::ISDIR.into()),
            None => Err(Errno::NOENT.into()),
        }
    }

    fn walk(&self, names: &[String]) -> io::Result<Ino> {
        names.iter().try_fold(ROOT, |at, name| {
            let found = self.dir(at)?.entries.get(name);
            found.copied().ok_or_else(|| Errno::NOENT.into())
        })
    }

    /// The inode of a path.
    pub(super) fn lookup(&self, path: &Path) -> io::Result<Ino> {
        self.walk(&names(path)?)
    }

    /// The directory that holds a path's last name, and that name.
    fn place(&self, path: &Path) -> io::Result<(Ino, String)> {
        let mut names = names(path)?;
        let last = names.pop().ok_or(Errno::BUSY)?;
        let dir = self.walk(&names)?;
        self.dir(dir)?;
        Ok((dir, last))
    }

    /// As [`Tree::place`]; fails unless the caller may change that directory.
    fn writable_place(&self, path: &Path, caller: &Caller) -> io::Result<(Ino, String)> {
        let (ino, name) = self.place(path)?;
        let dir = self.dir(ino)?;
        match dir.access.allows(dir.uid, caller.uid) {
            true => Ok((ino, name)),
            false => Err(Errno::ACCESS.into()),
        }
    }

    fn add(&mut self, node: impl FnOnce(Ino) -> Node) -> Ino {
        let ino = self.next;
        self.next += 1;
        self.nodes.insert(ino, node(ino));
        ino
    }

    /// Makes a change: visible at once, durable after a sync of its home.
    fn change(&mut self, home: Ino, edits: Vec<Edit>, caller: &Caller) {
        for edit in &edits {
            let Some(dir) = self.dir_mut(edit.dir) else { continue };
            let old = match edit.to {
                Some(ino) => dir.entries.insert(edit.name.clone(), ino),
                None => dir.entries.remove(&edit.name),
            };
            dir.mtime = caller.stamp.time;
            if caller.weak {
                let (by, name) = (caller.stamp.clone(), edit.name.clone());
                dir.history.push(Past { by, name, from: old, to: edit.to });
            }
            if let Some(Node::File(file)) = edit.to.and_then(|ino| self.nodes.get(&ino)) {
                let mut data = file.write();
                let links = data.links + 1;
                data.set_links(links, &caller.stamp);
            }
            if let Some(old) = old {
                self.released(old, &caller.stamp);
            }
        }
        if self.tracked {
            self.journal.push(Change { home, edits });
        }
    }

    /// Counts a removed name; discards an unnamed file unless a power cut could restore its name.
    fn released(&mut self, ino: Ino, by: &Stamp) {
        if let Some(Node::File(file)) = self.nodes.get(&ino) {
            let mut data = file.write();
            let links = data.links.saturating_sub(1);
            data.set_links(links, by);
            if links > 0 {
                return;
            }
        }
        self.garbage = true;
    }

    pub(super) fn create(&mut self, path: &Path, caller: &Caller) -> io::Result<Arc<FileNode>> {
        let (dir, name) = self.place(path)?;
        if self.dir(dir)?.entries.contains_key(&name) {
            return Err(Errno::EXIST.into());
        }
        self.writable_place(path, caller)?;
        let mut data = FileData::new(caller.uid, caller.stamp.time, self.tracked, caller.weak);
        data.mode = 0o600 | self.dir(dir)?.mode & 0o044;
        let ino = self.add(|ino| Node::File(FileNode::new(ino, data)));
        self.change(dir, vec![Edit { dir, name, to: Some(ino) }], caller);
        self.file(ino).cloned()
    }

    pub(super) fn create_dir_all(&mut self, path: &Path, caller: &Caller) -> io::Result<()> {
        let names = names(path)?;
        let mut at = ROOT;
        for (i, name) in names.iter().enumerate() {
            let dir = self.dir(at)?;
            if let Some(ino) = dir.entries.get(name) {
                let last_is_file = i + 1 == names.len() && self.dir(*ino).is_err();
                if last_is_file {
                    return Err(Errno::EXIST.into());
                }
                at = *ino;
                continue;
            }
            if !dir.access.allows(dir.uid, caller.uid) {
                return Err(Errno::ACCESS.into());
            }
            let new = Dir::new(caller.uid, caller.stamp.time);
            let ino = self.add(|_| Node::Dir(new));
            self.change(at, vec![Edit { dir: at, name: name.clone(), to: Some(ino) }], caller);
            at = ino;
        }
        Ok(())
    }

    /// Creates one directory, with the mode of its parent.
    pub(super) fn create_dir_alike(&mut self, path: &Path, caller: &Caller) -> io::Result<()> {
        let above = self.place(path)?.0;
        let (made, mode) = (self.lookup(path).is_err(), self.dir(above)?.mode);
        self.create_dir_all(path, caller)?;
        let ino = self.lookup(path)?;
        if let Some(dir) = self.dir_mut(ino).filter(|_| made) {
            dir.mode = mode;
        }
        Ok(())
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path, caller: &Caller) -> io::Result<()> {
        let ino = self.lookup(from)?;
        let (dir, name) = self.place(to)?;
        if self.dir(dir)?.entries.contains_key(&name) {
            return Err(Errno::EXIST.into());
        }
        self.file(ino).map_err(|_| Errno::PERM)?;
        self.writable_place(to, caller)?;
        self.change(dir, vec![Edit { dir, name, to: Some(ino) }], caller);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path, caller: &Caller) -> io::Result<()> {
        let ino = self.lookup(from)?;
        let (old_dir, old_name) = self.writable_place(from, caller)?;
        let (new_dir, new_name) = self.writable_place(to, caller)?;
        let replaced = self.dir(new_dir)?.entries.get(&new_name).copied();
        if replaced == Some(ino) {
            return Ok(());
        }
        let moves_dir = self.dir(ino).is_ok();
        let below = names(to)?.starts_with(&names(from)?);
        match replaced.map(|r| self.dir(r)) {
            _ if moves_dir && below => return Err(Errno::INVAL.into()),
            Some(Ok(_)) if !moves_dir => return Err(Errno::ISDIR.into()),
            Some(Err(_)) if moves_dir => return Err(Errno::NOTDIR.into()),
            Some(Ok(dir)) if !dir.entries.is_empty() => return Err(Errno::NOTEMPTY.into()),
            _ => {}
        }
        let edits = vec![
            Edit { dir: new_dir, name: new_name, to: Some(ino) },
            Edit { dir: old_dir, name: old_name, to: None },
        ];
        self.change(new_dir, edits, caller);
        if let Some(replaced) = replaced {
            self.collect_now(replaced);
        }
        Ok(())
    }

    pub(super) fn unlink(&mut self, path: &Path, caller: &Caller) -> io::Result<()> {
        let ino = self.lookup(path)?;
        self.file(ino)?;
        let (dir, name) = self.writable_place(path, caller)?;
        self.change(dir, vec![Edit { dir, name, to: None }], caller);
        self.collect_now(ino);
        Ok(())
    }

    pub(super) fn remove_dir(&mut self, path: &Path, caller: &Caller) -> io::Result<()> {
        let ino = self.lookup(path)?;
        if !self.dir(ino)?.entries.is_empty() {
            return Err(Errno::NOTEMPTY.into());
        }
        let (dir, name) = self.writable_place(path, caller)?;
        self.change(dir, vec![Edit { dir, name, to: None }], caller);
        self.collect_now(ino);
        Ok(())
    }

    /// Every file and directory below `path`, and `path` itself, as paths in order.
    pub(super) fn below(&self, path: &Path) -> io::Result<Vec<(PathBuf, Ino)>> {
        let mut found = Vec::new();
        let names = names(path)?;
        let mut queue = vec![(Path::new("/").join(names.iter().collect::<PathBuf>()), self.walk(&names)?)];
        while let Some((path, ino)) = queue.pop() {
            if let Some(Node::Dir(dir)) = self.nodes.get(&ino) {
                queue.extend(dir.entries.iter().map(|(name, ino)| (path.join(name), *ino)));
            }
            found.push((path, ino));
        }
        found.sort();
        Ok(found)
    }

    /// A copy that shares nothing with this tree.
    pub(super) fn deep_clone(&self) -> Tree {
        let copy = |(ino, node): (&Ino, &Node)| match node {
            Node::Dir(dir) => (*ino, Node::Dir(dir.clone())),
            Node::File(file) => (*ino, Node::File(FileNode::new(*ino, file.read().clone()))),
        };
        Tree {
            nodes: self.nodes.iter().map(copy).collect(),
            next: self.next,
            journal: self.journal.clone(),
            tracked: self.tracked,
            garbage: self.garbage,
        }
    }
}
