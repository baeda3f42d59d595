//! The [`Disk`] and [`DiskFile`] of a simulated host, and of `memory:`.
//!
//! A call of a host goes through [`World::call`]: fault, effect, account, all under the world's one lock. A call of
//! `memory:` has neither faults nor an account; reads and writes of its open files take only that file's lock.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use super::faults::{Effect, Op, OpKind, SyncKind, Verdict};
use super::file::{FileNode, Stamp};
use super::tree::{Caller, Node, names};
use super::{Process, World, WorldState};
use crate::env::{Clock, Disk, DiskFile, FileKind, Identity, Space, Stat, real};

/// The target of a handle's or disk's calls, and the process that makes them.
#[derive(Debug, Clone)]
pub(super) struct Door {
    pub(super) world: Arc<World>,
    pub(super) who: Who,
}

/// The process that makes calls.
#[derive(Debug, Clone)]
pub(super) enum Who {
    /// A simulated process.
    Process(Process),
    /// This real process, on `memory:`.
    Real { clock: real::RealClock, host: Arc<str> },
}

impl Door {
    /// Makes a call on a path.
    fn path_call<T>(
        &self,
        kind: OpKind,
        path: &Path,
        to: Option<&Path>,
        effect: impl FnOnce(&mut WorldState, &Caller) -> io::Result<T>,
    ) -> io::Result<T> {
        match &self.who {
            Who::Process(process) => {
                let mut op = process.op(kind, path.into());
                op.to = to.map(Path::to_owned);
                self.world.call(op, |state, caller, _, _| effect(state, caller))
            }
            Who::Real { clock, host } => {
                let stamp = Stamp { host: host.clone(), time: clock.now() };
                let caller = Caller { stamp, uid: real::RealIdentity.uid(), weak: false };
                effect(&mut self.world.lock(), &caller)
            }
        }
    }
}

impl Process {
    fn op(&self, kind: OpKind, path: Arc<Path>) -> Op {
        Op { host: self.host.clone(), process: self.id, kind, path, to: None, offset: 0, len: 0, ok: true }
    }
}

impl World {
    /// Makes a call of a simulated process. `effect` may change the account's offset and length.
    fn call<T>(
        &self,
        mut op: Op,
        effect: impl FnOnce(&mut WorldState, &Caller, &mut Op, Effect) -> io::Result<T>,
    ) -> io::Result<T> {
        crate::sync::pause();
        self.stalls.pass(&op);
        let state = &mut *self.lock();
        let verdict = state.gate(&op)?;
        let caller = Caller {
            stamp: Stamp { host: op.host.clone(), time: state.now },
            uid: state.host(&op.host).uid,
            weak: state.weak.is_some(),
        };
        let result = match verdict {
            Verdict::Go(limit) => effect(state, &caller, &mut op, Effect::UpTo(limit)),
            Verdict::Fail(error, None) => Err(error),
            Verdict::Fail(error, Some(some)) => {
                // The caller only sees the fault, whatever the effect was.
                drop(effect(state, &caller, &mut op, some));
                Err(error)
            }
        };
        op.ok = result.is_ok();
        state.faults.record(op);
        result
    }
}

/// The access for which a handle was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    Append,
}

/// An open file; it stays usable after its names are removed.
#[derive(Debug)]
struct SimFile {
    door: Door,
    node: Arc<FileNode>,
    path: Arc<Path>,
    mode: Mode,
}

impl SimFile {
    fn call<T>(
        &self,
        process: &Process,
        kind: OpKind,
        range: (u64, usize),
        effect: impl FnOnce(&mut WorldState, &Caller, &mut Op, Effect) -> io::Result<T>,
    ) -> io::Result<T> {
        let mut op = process.op(kind, self.path.clone());
        (op.offset, op.len) = (range.0, range.1 as u64);
        self.door.world.call(op, effect)
    }

    /// Writes as much of `data` as fits and the fault allows; at the end if `offset` is `None`. Returns the offset
    /// and the number of bytes written.
    fn write_some(
        &self,
        state: &WorldState,
        caller: &Caller,
        op: &mut Op,
        data: &[u8],
        effect: Effect,
    ) -> io::Result<usize> {
        let Effect::UpTo(limit) = effect else { return Ok(0) };
        let old_len = self.node.read().len();
        if self.mode == Mode::Append {
            op.offset = old_len;
        }
        let n = state.fitting(limit.min(data.len()), op.offset, old_len)?;
        self.node.write().write_at(&data[..n], op.offset, &caller.stamp)?;
        op.len = n as u64;
        Ok(n)
    }
}

impl DiskFile for SimFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Who::Process(process) = &self.door.who else {
            return Ok(self.node.read().read_at(buffer, offset));
        };
        self.call(process, OpKind::Read, (offset, buffer.len()), |state, caller, op, effect| {
            let limit = if let Effect::UpTo(limit) = effect { limit.min(buffer.len()) } else { 0 };
            let n = state.read_seen(&self.node, &mut buffer[..limit], offset, &caller.stamp);
            op.len = n as u64;
            Ok(n)
        })
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        match (self.mode, &self.door.who) {
            (Mode::Append, _) => Err(io::ErrorKind::InvalidInput.into()),
            (Mode::Read, _) => Err(Errno::BADF.into()),
            (Mode::Write, Who::Real { clock, host }) => {
                let stamp = Stamp { host: host.clone(), time: clock.now() };
                self.node.write().write_at(data, offset, &stamp)?;
                Ok(data.len())
            }
            (Mode::Write, Who::Process(process)) => {
                let range = (offset, data.len());
                self.call(process, OpKind::Write, range, |state, caller, op, effect| {
                    self.write_some(state, caller, op, data, effect)
                })
            }
        }
    }

    fn write_vectored_at(&self, parts: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let whole: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        self.write_at(&whole, offset)
    }

    fn append(&self, data: &[u8]) -> io::Result<u64> {
        if self.mode != Mode::Append {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        match &self.door.who {
            Who::Real { clock, host } => {
                let stamp = Stamp { host: host.clone(), time: clock.now() };
                let mut file = self.node.write();
                let offset = file.len();
                file.write_at(data, offset, &stamp)?;
                Ok(offset)
            }
            Who::Process(process) => {
                self.call(process, OpKind::Append, (0, data.len()), |state, caller, op, effect| {
                    match self.write_some(state, caller, op, data, effect)? {
                        n if n < data.len() => {
                            let message = format!("only {n} of {} bytes were appended", data.len());
                            Err(io::Error::new(io::ErrorKind::WriteZero, message))
                        }
                        _ => Ok(op.offset),
                    }
                })
            }
        }
    }

    fn sync_data(&self) -> io::Result<()> {
        let Who::Process(process) = &self.door.who else { return Ok(()) };
        self.call(process, OpKind::SyncData, (0, 0), |state, _, _, effect| {
            let mut file = self.node.write();
            match effect {
                Effect::UpTo(_) if state.faults.ignores(SyncKind::Data, &self.path) => {}
                Effect::UpTo(_) => file.sync(),
                Effect::LoseAll | Effect::LosePart => {
                    if let Some(journal) = &mut file.journal {
                        journal.lose(effect == Effect::LosePart, &mut state.rng);
                    }
                }
            }
            Ok(())
        })
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        // Unsynced writes may survive a power cut in any case, so this only counts the call.
        if let Who::Process(process) = &self.door.who {
            let range = (offset, usize::try_from(len).unwrap_or(usize::MAX));
            drop(self.call(process, OpKind::Writeback, range, |_, _, _, _| Ok(())));
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        match (self.mode, &self.door.who) {
            (Mode::Read, _) => Err(Errno::INVAL.into()),
            (_, Who::Real { clock, host }) => {
                let stamp = Stamp { host: host.clone(), time: clock.now() };
                self.node.write().set_len(len, &stamp)
            }
            (_, Who::Process(process)) => {
                self.call(process, OpKind::SetLen, (len, 0), |state, caller, _, _| {
                    let old_len = self.node.read().len();
                    let growth = usize::try_from(len.saturating_sub(old_len)).map_err(|_| Errno::NOSPC)?;
                    if state.fitting(growth, old_len, old_len)? < growth {
                        return Err(Errno::NOSPC.into());
                    }
                    self.node.write().set_len(len, &caller.stamp)
                })
            }
        }
    }

    fn stat(&self) -> io::Result<Stat> {
        Ok(self.stat_with_time()?.0)
    }

    fn stat_with_time(&self) -> io::Result<(Stat, i64)> {
        let stat = |len: u64, links: u64| {
            let data = self.node.read();
            let inode = self.node.ino;
            let (mtime, uid, mode) = (data.mtime, data.uid, data.mode);
            (Stat { kind: FileKind::File, len, uid, mode, inode, links }, mtime)
        };
        let Who::Process(process) = &self.door.who else {
            // One guard at a time: a second one would wait for a writer that waits for the first.
            let (len, links) = {
                let data = self.node.read();
                (data.len(), data.links)
            };
            return Ok(stat(len, u64::from(links)));
        };
        self.call(process, OpKind::StatFile, (0, 0), |state, caller, _, _| {
            let len = state.len_of(&self.node, &caller.stamp);
            Ok(stat(len, state.links_of(&self.node, &caller.stamp)))
        })
    }

    fn inode_time(&self) -> io::Result<i64> {
        let time = || {
            let data = self.node.read();
            data.mtime.max(data.named.last)
        };
        match &self.door.who {
            Who::Real { .. } => Ok(time()),
            Who::Process(process) => self.call(process, OpKind::StatFile, (0, 0), |_, _, _, _| Ok(time())),
        }
    }
}

/// The file system as one simulated process, or the user of `memory:`, reaches it.
#[derive(Debug)]
pub(super) struct SimDisk(pub(super) Door);

impl SimDisk {
    fn handle(&self, node: Arc<FileNode>, path: &Path, mode: Mode) -> Arc<dyn DiskFile> {
        Arc::new(SimFile { door: self.0.clone(), node, path: path.into(), mode })
    }

    /// The file at `path` as this host sees it, if the caller may open it in this mode.
    fn find(state: &mut WorldState, path: &Path, caller: &Caller, mode: Mode) -> io::Result<Arc<FileNode>> {
        let ino = state.look_up(path, &caller.stamp)?;
        let file = state.tree.file(ino)?;
        let data = file.read();
        let may = match mode {
            Mode::Read => data.uid == caller.uid || data.mode & 0o004 != 0,
            Mode::Write | Mode::Append => data.access.allows(data.uid, caller.uid),
        };
        match may {
            true => Ok(file.clone()),
            false => Err(Errno::ACCESS.into()),
        }
    }
}

impl Disk for SimDisk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let node = self.0.path_call(OpKind::Create, path, None, |state, caller| {
            state.inode_left()?;
            state.tree.create(path, caller)
        })?;
        Ok(self.handle(node, path, Mode::Write))
    }

    /// Here, every file is created this way.
    fn create_alike(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.create_new(path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let node = self.0.path_call(OpKind::OpenRead, path, None, |state, caller| {
            SimDisk::find(state, path, caller, Mode::Read)
        })?;
        Ok(self.handle(node, path, Mode::Read))
    }

    /// There are no links or pipes here.
    fn open_plain(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        if write { self.open_write(path) } else { self.open_read(path) }
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let node = self.0.path_call(OpKind::OpenWrite, path, None, |state, caller| {
            SimDisk::find(state, path, caller, Mode::Write)
        })?;
        Ok(self.handle(node, path, Mode::Write))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let node = self.0.path_call(OpKind::OpenAppend, path, None, |state, caller| {
            if state.weak.is_some() {
                return Err(io::ErrorKind::Unsupported.into());
            }
            match SimDisk::find(state, path, caller, Mode::Append) {
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    state.inode_left()?;
                    state.tree.create(path, caller)
                }
                found => found,
            }
        })?;
        Ok(self.handle(node, path, Mode::Append))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        self.0.path_call(OpKind::CreateDirAll, path, None, |state, caller| {
            state.tree.create_dir_all(path, caller)
        })
    }

    fn create_dir_alike(&self, path: &Path) -> io::Result<()> {
        self.0.path_call(OpKind::CreateDirAll, path, None, |state, caller| {
            state.tree.create_dir_alike(path, caller)
        })
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.0.path_call(OpKind::SyncDir, path, None, |state, _| {
            let ino = state.tree.lookup(path)?;
            state.tree.dir(ino)?;
            if !state.faults.ignores(SyncKind::Dir, path) {
                state.tree.sync_dir(ino);
            }
            Ok(())
        })
    }

    fn list_dir(&self, path: &Path) -> io::Result<Vec<(String, FileKind)>> {
        self.0.path_call(OpKind::ListDir, path, None, |state, caller| {
            let dir = state.look_up(path, &caller.stamp)?;
            let names = state.names_in(dir, &caller.stamp)?;
            let kind = |ino| state.tree.nodes.get(&ino).map_or(FileKind::File, Node::kind);
            Ok(names.into_iter().map(|(name, ino)| (name, kind(ino))).collect())
        })
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        Ok(self.stat_with_time(path)?.0)
    }

    fn stat_with_time(&self, path: &Path) -> io::Result<(Stat, i64)> {
        self.0.path_call(OpKind::Stat, path, None, |state, caller| {
            let inode = state.look_up(path, &caller.stamp)?;
            match state.tree.nodes.get(&inode) {
                Some(Node::Dir(d)) => {
                    let (kind, uid, mode) = (FileKind::Directory, d.uid, d.mode);
                    Ok((Stat { kind, len: 0, uid, mode, inode, links: 1 }, d.mtime))
                }
                Some(Node::File(file)) => {
                    let file = file.clone();
                    let len = state.len_of(&file, &caller.stamp);
                    let links = state.links_of(&file, &caller.stamp);
                    let data = file.read();
                    let (kind, uid, mode) = (FileKind::File, data.uid, data.mode);
                    Ok((Stat { kind, len, uid, mode, inode, links }, data.mtime))
                }
                None => Err(Errno::NOENT.into()),
            }
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.path_call(OpKind::Link, from, Some(to), |state, caller| {
            if !state.links {
                return Err(io::ErrorKind::Unsupported.into());
            }
            state.tree.link(from, to, caller)
        })
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.path_call(OpKind::Rename, from, Some(to), |state, caller| state.tree.rename(from, to, caller))
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        self.0.path_call(OpKind::Unlink, path, None, |state, caller| state.tree.unlink(path, caller))
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.0.path_call(OpKind::RemoveDir, path, None, |state, caller| state.tree.remove_dir(path, caller))
    }

    fn lags(&self, _path: &Path) -> bool {
        self.0.world.lock().weak.is_some()
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        self.0.path_call(OpKind::Space, path, None, |state, caller| {
            state.look_up(path, &caller.stamp)?;
            Ok(state.space())
        })
    }

    /// Permission bits do not control writes here.
    fn copy_permissions(&self, _from: &Path, _to: &Path) -> io::Result<()> {
        Ok(())
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.path_call(OpKind::Absolute, path, None, |_, _| {
            Ok(Path::new("/").join(names(path)?.iter().collect::<PathBuf>()))
        })
    }
}
