//! The outside world, as traits: clock, randomness and disk. Fieldstone reads the time, draws random numbers and
//! accesses files only through an [`Env`], so that a whole store can run on a simulated machine from a seed, with
//! every fault that a disk can have (T-1).
//!
//! * [`comm`]: the communicator, through which ranks agree and write one file together.
//! * [`Pace`]: work at a steady rate.
//! * [`patched`]: a disk with changes that nobody has made yet.
//! * [`real`]: the operating system.
//! * [`sim`]: a seeded simulation: several hosts, faults, power cuts, and the *weak* profile of a
//!   network file system. Without faults it is also the store behind `memory:`.
//!
//! Invariants every [`Disk`] keeps:
//! * `write_at` and `append` may write fewer bytes than asked (the caller loops); they never write
//!   more, and never elsewhere;
//! * bytes covered by a `sync_data` that returned survive a power cut, if the file's directory entry was synced too
//!   (`sync_dir`);
//! * `create_new` and `link` fail atomically with `AlreadyExists` if the name is taken;
//! * a file or folder created *alike* gets the group and mode of its parent folder, whatever the process's umask; but
//!   only its owner may write to a file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Code, Error};

pub mod comm;
mod pace;
pub mod patched;
pub mod real;
pub mod sim;

pub use pace::Pace;

/// Wall-clock and monotonic time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Nanoseconds since 1970-01-01 UTC by this host's clock, which may be wrong.
    fn now(&self) -> i64;
    /// Nanoseconds since some fixed moment; never decreases.
    fn monotonic(&self) -> u64;
    /// Waits.
    fn sleep(&self, nanoseconds: u64);
}

/// Random bytes.
pub trait Rand: Send + Sync + fmt::Debug {
    /// Fills `buffer`; ids drawn this way must not repeat between processes.
    fn fill(&self, buffer: &mut [u8]);
}

/// The type of a directory entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A plain file.
    File,
    /// A directory.
    Directory,
    /// Any other type.
    Other,
}

/// Facts about a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// File or directory.
    pub kind: FileKind,
    /// Length in bytes.
    pub len: u64,
    /// Numeric id of the owning user.
    pub uid: u32,
    /// Permission bits, with the sticky bit: in a folder with `0o1777`, all users may create files of their own.
    pub mode: u32,
    /// Number of the inode in the file system.
    pub inode: u64,
    /// Names that a file has; of a directory it says nothing.
    pub links: u64,
}

impl Stat {
    /// Whether users other than the owner may create files in this directory, or write to this file.
    pub fn is_shared(&self) -> bool {
        self.mode & 0o022 != 0
    }
}

/// Free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Bytes an unprivileged user can still write.
    pub free_bytes: u64,
    /// Files an unprivileged user can still create.
    pub free_inodes: u64,
}

/// An open file. All methods take `&self`; positions are always explicit.
pub trait DiskFile: Send + Sync + fmt::Debug {
    /// Reads into `buffer` from `offset`; returns the number of bytes read, 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at `offset`; returns the number of bytes written, which may be fewer than given. Do not use it on a
    /// file opened with [`Disk::open_append`].
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize>;
    /// As [`write_at`](Self::write_at), with consecutive parts in one call.
    fn write_vectored_at(&self, parts: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize>;
    /// As [`write_at`](Self::write_at), for data that no process will read soon: they may leave the page cache once
    /// they are written back.
    fn write_streaming(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.write_at(data, offset)
    }
    /// The same file without the page cache: bytes go directly to and from the disk, at any offset. `Unsupported` if
    /// the file system has no direct I/O.
    fn direct(self: Arc<Self>) -> io::Result<Arc<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Appends `data` in one piece, atomically among the processes of this host, and returns its offset. Only on a
    /// file opened with [`Disk::open_append`].
    fn append(&self, data: &[u8]) -> io::Result<u64>;
    /// Makes the file's bytes and length durable (fdatasync).
    fn sync_data(&self) -> io::Result<()>;
    /// Asks for the write-back of a range to begin, without waiting; a hint that may do nothing.
    fn start_writeback(&self, offset: u64, len: u64);
    /// Cuts the file to `len` bytes, or extends it by a hole of zeros.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Facts about the open file, without its times: a process that asks for the times of a file makes the next write
    /// store new ones, so that the next sync must write the inode, too (J-29).
    fn stat(&self) -> io::Result<Stat>;
    /// As [`stat`](Self::stat), with the time of the last change in nanoseconds since 1970, by the file system's
    /// clock.
    fn stat_with_time(&self) -> io::Result<(Stat, i64)>;
    /// The time of the last change of the file or of its names (ctime), in nanoseconds since 1970, by the file system's
    /// clock: a new name counts, also if the bytes stay.
    fn inode_time(&self) -> io::Result<i64>;
}

/// A file system.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Creates a file for reading and writing; `AlreadyExists` if the name is taken.
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// As [`create_new`](Disk::create_new); every user who may read the folder may read the file.
    fn create_alike(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file that a user named, for reading; follows links, and never waits for a pipe. `InvalidInput` unless
    /// it is a plain file.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing plain file in a place where others may have put something else: never follows a link, and
    /// never waits for a pipe. `InvalidInput` unless it is a plain file.
    fn open_plain(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>>;
    /// As [`open_read`](Disk::open_read), for reading and writing at explicit offsets.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a plain file for appending, as [`open_plain`](Disk::open_plain) does; creates it alike if it does not
    /// exist. `Unsupported` on a file system without a usable append.
    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates a directory and its parents; succeeds if they exist.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Creates one directory with the group and mode of its parent; succeeds if it exists.
    fn create_dir_alike(&self, path: &Path) -> io::Result<()>;
    /// Makes the entries of a directory durable (fsync of the directory).
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, in no order.
    fn list_dir(&self, path: &Path) -> io::Result<Vec<(String, FileKind)>>;
    /// Facts about a path, without its times, as [`DiskFile::stat`].
    fn stat(&self, path: &Path) -> io::Result<Stat>;
    /// As [`stat`](Self::stat), with the time of the last change in nanoseconds since 1970, by the file system's
    /// clock.
    fn stat_with_time(&self, path: &Path) -> io::Result<(Stat, i64)>;
    /// Gives a file a second name; `AlreadyExists` if `to` is taken.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames, replacing `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Grants access to the file `to` to the users who have it to `from`. If `from` is the folder of `to`, a new
    /// file, the file gets the permissions and group that [`create_alike`](Disk::create_alike) gives.
    fn copy_permissions(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Whether changes by another host may appear late at `path`, as on a network file system.
    fn lags(&self, path: &Path) -> bool;
    /// Free space of the file system that holds `path`.
    fn space(&self, path: &Path) -> io::Result<Space>;
    /// A stable, absolute form of `path` (with links resolved if it exists).
    fn absolute(&self, path: &Path) -> io::Result<PathBuf>;
}

/// Creates a directory below `root` and its missing parents, each as [`Disk::create_dir_alike`] does; creates `root`
/// itself as [`Disk::create_dir_all`] does.
pub fn create_dirs_alike(disk: &dyn Disk, root: &Path, path: &Path) -> io::Result<()> {
    if disk.stat(path).is_ok() {
        return Ok(());
    }
    let below = path.strip_prefix(root).map_err(|_| io::ErrorKind::InvalidInput)?;
    disk.create_dir_all(root)?;
    let mut folder = root.to_owned();
    for part in below {
        folder.push(part);
        disk.create_dir_alike(&folder)?;
    }
    Ok(())
}

/// The identity of this process.
pub trait Identity: Send + Sync + fmt::Debug {
    /// Name of this host.
    fn host(&self) -> String;
    /// Process id: changes in a forked child.
    fn process(&self) -> u32;
    /// Effective user.
    fn uid(&self) -> u32;
    /// Name of a user, or the number as text if the user has no name.
    fn user_name(&self, uid: u32) -> String;
    /// Number of the user with this name or number.
    fn user_number(&self, name: &str) -> Option<u32> {
        name.parse().ok()
    }
    /// Whether a process of this host is alive.
    fn alive(&self, process: u32) -> bool;
    /// Distinguishes this process from all others of this host that ever had its number.
    fn lifetime(&self) -> Lifetime {
        Lifetime::default()
    }
    /// The start of a process of this host within the boot; `None` if there is no such process, or nobody can say.
    fn started(&self, process: u32) -> Option<u64> {
        let _ = process;
        None
    }
    /// Whether a process of a host with this name has certainly ended: its boot is over, or nobody in its namespace,
    /// which is this process's own, has its number and its start.
    fn has_ended(&self, process: u32, lifetime: &Lifetime) -> bool {
        let own = self.lifetime();
        if !own.is_known() || !lifetime.is_known() {
            return false;
        }
        let is_another = || self.started(process).is_some_and(|started| started != lifetime.started);
        own.boot != lifetime.boot
            || own.namespace == lifetime.namespace && (!self.alive(process) || is_another())
    }
    /// Gives a file or a folder of this machine to another user, which takes the rights of root. `Unsupported` where nobody can.
    fn give(&self, path: &Path, uid: u32) -> io::Result<()> {
        let _ = (path, uid);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// The environment in which this process acts for another user, whose are the files that it makes there. `None` where it
    /// has no right to, which on a machine is root's.
    fn acting_as(&self, user: u32, env: &Env) -> Option<Env> {
        let _ = (user, env);
        None
    }
    /// The process as it appears in the names of its unfinished files: `PROCESS@HOST`.
    fn writer_name(&self) -> String {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
        format!("{}@{}", self.process(), self.host().chars().filter(is_plain).collect::<String>())
    }
}

/// Distinguishes a process from all others of its host that ever had its number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lifetime {
    /// The boot of the host; empty if it is not known.
    pub boot: String,
    /// The namespace in which the process has its number; 0 if it is not known.
    pub namespace: u64,
    /// The start of the process within the boot; 0 if it is not known.
    pub started: u64,
}

impl Lifetime {
    /// Whether two of them can be compared.
    pub fn is_known(&self) -> bool {
        !self.boot.is_empty() && self.namespace != 0 && self.started != 0
    }
}

/// All interfaces to the outside world.
#[derive(Debug, Clone)]
pub struct Env {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub rand: Arc<dyn Rand>,
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Identity of host, process and user.
    pub identity: Arc<dyn Identity>,
}

impl Env {
    /// This environment for another user, where this process may act for him.
    pub fn acting_as(&self, user: u32) -> Option<Env> {
        self.identity.acting_as(user, self)
    }

    /// The environment of the operating system.
    pub fn real() -> Env {
        Env {
            clock: Arc::new(real::RealClock::default()),
            rand: Arc::new(real::RealRand),
            disk: Arc::new(real::RealDisk::default()),
            identity: Arc::new(real::RealIdentity),
        }
    }
}

/// The error for a file or folder that could not be created. A file system without free inodes reports that it has no
/// space; this function distinguishes the cases.
pub fn creation_failed(disk: &dyn Disk, path: &Path, cause: io::Error) -> Error {
    let full = matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let folder = path.ancestors().skip(1).find(|above| disk.stat(above).is_ok());
    match folder.filter(|_| full).map(|folder| disk.space(folder)) {
        Some(Ok(Space { free_bytes, free_inodes: 0 })) => Code::InodesFull
            .error(format!(
                "cannot create {}: the file system has no free inodes ({free_bytes} bytes are free)",
                path.display()
            ))
            .with_hint("remove unneeded files, then archive again; df -i shows inodes"),
        _ => Error::io("create", path, cause),
    }
}

/// Reads exactly `buffer.len()` bytes at `offset`; `UnexpectedEof` if the file is shorter.
pub fn read_exact_at(file: &dyn DiskFile, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        let n = file.read_at(buffer, offset)?;
        if n == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        buffer = &mut buffer[n..];
        offset += n as u64;
    }
    Ok(())
}

/// Writes all of `data` at `offset`, and repeats after short writes.
pub fn write_all_at(file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
    write_all(data, offset, |data, offset| file.write_at(data, offset))
}

/// As [`write_all_at`], with consecutive parts; one call, if the system takes all of them.
pub fn write_all_vectored_at(
    file: &dyn DiskFile,
    mut parts: &mut [io::IoSlice<'_>],
    mut offset: u64,
) -> io::Result<()> {
    // Skip empty leading parts: they would look like a write of no bytes.
    io::IoSlice::advance_slices(&mut parts, 0);
    while !parts.is_empty() {
        let n = file.write_vectored_at(parts, offset)?;
        if n == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        io::IoSlice::advance_slices(&mut parts, n);
        offset += n as u64;
    }
    Ok(())
}

/// As [`write_all_at`], through [`DiskFile::write_streaming`].
pub fn write_all_streaming(file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
    write_all(data, offset, |data, offset| file.write_streaming(data, offset))
}

fn write_all(
    mut data: &[u8],
    mut offset: u64,
    write: impl Fn(&[u8], u64) -> io::Result<usize>,
) -> io::Result<()> {
    while !data.is_empty() {
        let n = write(data, offset)?;
        if n == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        data = &data[n..];
        offset += n as u64;
    }
    Ok(())
}
