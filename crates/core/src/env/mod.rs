//! The outside world, as traits: clock, randomness and disk. Nothing in Fieldstone reads the time,
//! draws a random number or touches a file but through an [`Env`], so that a whole store can run on
//! a simulated machine from a seed, with every fault a disk can have (T-1).
//!
//! * [`comm`]: the communicator, over which ranks agree and write one file together.
//! * [`real`]: the operating system.
//! * [`sim`]: a seeded simulation: several hosts, faults, power cuts, and the *weak* profile of a
//!   network file system. Without faults it is also the store behind `memory:`.
//!
//! Invariants every [`Disk`] keeps:
//! * `write_at` and `append` may write fewer bytes than asked (the caller loops); they never write
//!   more, and never elsewhere;
//! * what a returned `sync_data` covered survives a power cut, provided that the file's directory
//!   entry was synced too (`sync_dir`);
//! * `create_new` and `link` fail with `AlreadyExists` where the name is taken, atomically;
//! * what is made *alike* takes the group and the mode of the folder above it, whatever the process's umask
//!   says; but of a file, only its owner may write to it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Code, Error};

pub mod comm;
pub mod real;
pub mod sim;

/// Wall-clock and monotonic time.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Nanoseconds since 1970-01-01 UTC by this host's clock, which may be wrong.
    fn now(&self) -> i64;
    /// Nanoseconds since some fixed moment; never goes back.
    fn monotonic(&self) -> u64;
    /// Waits.
    fn sleep(&self, nanoseconds: u64);
}

/// Random bytes.
pub trait Rand: Send + Sync + fmt::Debug {
    /// Fills `buffer`; ids drawn this way must not repeat between processes.
    fn fill(&self, buffer: &mut [u8]);
}

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A plain file.
    File,
    /// A directory.
    Directory,
    /// Anything else.
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
    /// Permission bits, with the sticky bit: `0o1777` is a folder in which all users make files of their own.
    pub mode: u32,
    /// Identity of the inode within the file system.
    pub inode: u64,
}

impl Stat {
    /// Whether users other than the owner may make files in this directory, or write to this file.
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
    /// Reads into `buffer` from `offset`; returns how many bytes were read, 0 at the end of the file.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// Writes at `offset`; returns how many bytes were written (may be fewer than given).
    /// Not to be used on a file opened with [`Disk::open_append`].
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize>;
    /// As [`write_at`](Self::write_at), of parts that follow one another, by one call.
    fn write_vectored_at(&self, parts: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize>;
    /// As [`write_at`](Self::write_at), for data that nobody will read soon: they need not stay in the
    /// page cache once they are written back.
    fn write_streaming(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        self.write_at(data, offset)
    }
    /// The same file past the page cache: bytes go straight to the disk and come from it, at any offset. `Unsupported`
    /// where there is no such way.
    fn direct(self: Arc<Self>) -> io::Result<Arc<dyn DiskFile>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Appends `data` in one piece, atomically among the processes of this host, and returns the
    /// offset where it stands. Only on a file opened with [`Disk::open_append`].
    fn append(&self, data: &[u8]) -> io::Result<u64>;
    /// Makes the file's bytes and length durable (fdatasync).
    fn sync_data(&self) -> io::Result<()>;
    /// Asks for write-back of a range to begin, without waiting; a hint that may do nothing.
    fn start_writeback(&self, offset: u64, len: u64);
    /// Cuts the file to `len` bytes, or adds a hole of zeros up to there.
    fn set_len(&self, len: u64) -> io::Result<()>;
    /// Facts about the open file, but for its times: who asks for those of a file makes its next write store
    /// new ones, and so its next sync write the inode, too (J-29).
    fn stat(&self) -> io::Result<Stat>;
    /// As [`stat`](Self::stat), with the last change, nanoseconds since 1970, by the file system's clock.
    fn stat_with_time(&self) -> io::Result<(Stat, i64)>;
}

/// A file system.
pub trait Disk: Send + Sync + fmt::Debug {
    /// Creates a file for reading and writing; `AlreadyExists` where the name is taken.
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// As [`create_new`](Disk::create_new); whoever may read its folder may read the file.
    fn create_alike(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a file that a user named for reading; follows links, and never waits for a pipe. `InvalidInput` for what is not a
    /// plain file.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing plain file where others may have put something else: never follows a link that
    /// stands in its place, and never waits for a pipe. `InvalidInput` for what is no plain file.
    fn open_plain(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>>;
    /// As [`open_read`](Disk::open_read), for reading and writing at explicit offsets.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens a plain file, as [`open_plain`](Disk::open_plain), for appending, creating it alike where it
    /// is absent. `Unsupported` on a file system without a usable append.
    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Creates a directory and its parents; fine where they exist.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;
    /// Creates one directory with the group and the mode of the one above it; fine where it exists.
    fn create_dir_alike(&self, path: &Path) -> io::Result<()>;
    /// Makes the entries of a directory durable (fsync of the directory).
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Names in a directory, in no order.
    fn list_dir(&self, path: &Path) -> io::Result<Vec<(String, FileKind)>>;
    /// Facts about a path, but for its times, as [`DiskFile::stat`].
    fn stat(&self, path: &Path) -> io::Result<Stat>;
    /// As [`stat`](Self::stat), with the last change, nanoseconds since 1970, by the file system's clock.
    fn stat_with_time(&self, path: &Path) -> io::Result<(Stat, i64)>;
    /// A second name for a file; `AlreadyExists` where `to` is taken.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Renames, replacing `to`.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn unlink(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Lets the file `to` be read and written by whom `from` may be. Where `from` is the folder of `to`, a new file, that gets the
    /// permissions and the group that [`create_alike`](Disk::create_alike) gives one.
    fn copy_permissions(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Whether what another host did may show late at `path`: a network file system.
    fn lags(&self, path: &Path) -> bool;
    /// Free space of the file system that holds `path`.
    fn space(&self, path: &Path) -> io::Result<Space>;
    /// A stable, absolute form of `path` (links resolved where it exists).
    fn absolute(&self, path: &Path) -> io::Result<PathBuf>;
}

/// Creates a directory below `root` and those between them that are absent, each as [`Disk::create_dir_alike`] does; `root` by
/// itself is made as [`Disk::create_dir_all`] does.
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

/// The identity of this process in the world.
pub trait Identity: Send + Sync + fmt::Debug {
    /// Name of this host.
    fn host(&self) -> String;
    /// Process id: changes in a forked child.
    fn process(&self) -> u32;
    /// Effective user.
    fn uid(&self) -> u32;
    /// Name of a user, or its number as text where it has none.
    fn user_name(&self, uid: u32) -> String;
    /// Number of the user who has a name, or whose number it is.
    fn user_number(&self, name: &str) -> Option<u32> {
        name.parse().ok()
    }
    /// Whether a process of this host is alive.
    fn alive(&self, process: u32) -> bool;
    /// The process as it stands in the names of files that it has not finished: `PROCESS@HOST`.
    fn writer_name(&self) -> String {
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
        format!("{}@{}", self.process(), self.host().chars().filter(is_plain).collect::<String>())
    }
}

/// Everything a store may touch.
#[derive(Debug, Clone)]
pub struct Env {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub rand: Arc<dyn Rand>,
    /// Files.
    pub disk: Arc<dyn Disk>,
    /// Who we are.
    pub identity: Arc<dyn Identity>,
}

impl Env {
    /// The operating system's.
    pub fn real() -> Env {
        Env {
            clock: Arc::new(real::RealClock::default()),
            rand: Arc::new(real::RealRand),
            disk: Arc::new(real::RealDisk),
            identity: Arc::new(real::RealIdentity),
        }
    }
}

/// The error of a file or folder that was not made: a file system without a free inode says that it has no space.
pub fn creation_failed(disk: &dyn Disk, path: &Path, cause: io::Error) -> Error {
    let full = matches!(cause.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
    let folder = path.ancestors().skip(1).find(|above| disk.stat(above).is_ok());
    match folder.filter(|_| full).map(|folder| disk.space(folder)) {
        Some(Ok(Space { free_bytes, free_inodes: 0 })) => Code::InodesFull
            .error(format!(
                "cannot create {}: the file system takes no further file, its inodes are used up ({free_bytes} bytes \
                 are free)",
                path.display()
            ))
            .with_hint("remove files that nobody needs, then archive again; df -i shows inodes"),
        _ => Error::io("create", path, cause),
    }
}

/// Reads exactly `buffer.len()` bytes at `offset`; `UnexpectedEof` where the file is shorter.
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

/// Writes all of `data` at `offset`, repeating after short writes.
pub fn write_all_at(file: &dyn DiskFile, data: &[u8], offset: u64) -> io::Result<()> {
    write_all(data, offset, |data, offset| file.write_at(data, offset))
}

/// As [`write_all_at`], of parts that follow one another, by one call where the system takes all of them.
pub fn write_all_vectored_at(
    file: &dyn DiskFile,
    mut parts: &mut [io::IoSlice<'_>],
    mut offset: u64,
) -> io::Result<()> {
    // Leading parts without bytes would look like a write of nothing.
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

/// As [`write_all_at`], by [`DiskFile::write_streaming`].
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
