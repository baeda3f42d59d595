//! The operating system as an implementation of the traits in [`env`](super).
//!
//! Invariants:
//! * every descriptor is close-on-exec, and `EINTR` never reaches a caller;
//! * no call here takes a lock of the kernel (`flock`, `fcntl` locks): a mutex in the handle keeps an append and the
//!   query for its position together;
//! * facts about the process (its id, its randomness) are not stored where a forked child would find them, so that a
//!   child never acts under its parent's name.

mod acting;
mod direct;
mod huge_pages;
mod process;
pub mod trusted_folder;
mod user_cache;

pub use huge_pages::HugePages;

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::fs::{AtFlags, CWD, Gid, OFlags, Uid};
use rustix::io::{Errno, ReadWriteFlags, retry_on_intr};
use rustix::process::Pid;
use rustix::rand::GetRandomFlags;

use super::{Clock, Disk, DiskFile, Env, FileKind, Identity, Lifetime, Rand, Space, Stat};
use crate::sync::plain::Mutex;

/// The host's clock.
#[derive(Debug, Clone)]
pub struct RealClock {
    start: Instant,
}

impl Default for RealClock {
    #[allow(clippy::disallowed_methods)]
    fn default() -> RealClock {
        RealClock { start: Instant::now() }
    }
}

impl Clock for RealClock {
    #[allow(clippy::disallowed_methods)]
    fn now(&self) -> i64 {
        let saturate = |d: Duration| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX);
        match SystemTime::now().duration_since(UNIX_EPOCH) {
            Ok(after) => saturate(after),
            Err(before) => -saturate(before.duration()),
        }
    }

    fn monotonic(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn sleep(&self, nanoseconds: u64) {
        std::thread::sleep(Duration::from_nanos(nanoseconds));
    }
}

/// The kernel's random bytes. Each call is a system call: a fork would copy a pool in the process, and two processes
/// would then draw the same ids.
#[derive(Debug, Clone, Copy)]
pub struct RealRand;

impl Rand for RealRand {
    fn fill(&self, buffer: &mut [u8]) {
        let mut rest = &mut *buffer;
        while !rest.is_empty() {
            match retry_on_intr(|| rustix::rand::getrandom(&mut *rest, GetRandomFlags::empty())) {
                Ok(n) if n > 0 => rest = &mut rest[n..],
                _ => return fill_without_getrandom(rest),
            }
        }
    }
}

/// For kernels and sandboxes without `getrandom`: reads the device or, if that is missing too, hashes all values that
/// differ between processes and calls.
fn fill_without_getrandom(buffer: &mut [u8]) {
    use std::io::Read;
    if File::open("/dev/urandom").and_then(|mut f| f.read_exact(buffer)).is_ok() {
        return;
    }
    static CALLS: AtomicU64 = AtomicU64::new(0);
    let clock = RealClock::default();
    for chunk in buffer.chunks_mut(8) {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_i64(clock.now());
        hasher.write_u32(RealIdentity.process());
        hasher.write_u64(CALLS.fetch_add(1, Ordering::Relaxed));
        hasher.write(RealIdentity.host().as_bytes());
        chunk.copy_from_slice(&hasher.finish().to_le_bytes()[..chunk.len()]);
    }
}

/// This process, as the operating system describes it.
#[derive(Debug, Clone, Copy)]
pub struct RealIdentity;

impl Identity for RealIdentity {
    fn acting_as(&self, user: u32, env: &Env) -> Option<Env> {
        (self.uid() == 0).then(|| acting::env_of(user, env))
    }

    fn host(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }

    fn give(&self, path: &Path, uid: u32) -> io::Result<()> {
        std::os::unix::fs::lchown(path, Some(uid), None)
    }

    fn process(&self) -> u32 {
        process::number()
    }

    fn uid(&self) -> u32 {
        rustix::process::geteuid().as_raw()
    }

    fn user_name(&self, uid: u32) -> String {
        let passwd = std::fs::read("/etc/passwd").unwrap_or_default();
        name_in_passwd(&String::from_utf8_lossy(&passwd), uid).unwrap_or_else(|| uid.to_string())
    }

    fn user_number(&self, name: &str) -> Option<u32> {
        let passwd = std::fs::read("/etc/passwd").unwrap_or_default();
        number_in_passwd(&String::from_utf8_lossy(&passwd), name).or_else(|| name.parse().ok())
    }

    fn lifetime(&self) -> Lifetime {
        process::lifetime()
    }

    fn started(&self, process: u32) -> Option<u64> {
        process::started_of(process)
    }

    fn alive(&self, process: u32) -> bool {
        let Some(pid) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return false };
        // A process of another user gives EPERM, so it is alive.
        !matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH))
    }
}

/// The first name with this number, in text of the form of `/etc/passwd`.
fn name_in_passwd(passwd: &str, uid: u32) -> Option<String> {
    passwd.lines().find_map(|line| {
        let mut parts = line.split(':');
        let name = parts.next().filter(|n| !n.is_empty())?;
        (parts.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    })
}

/// The number of the first user of this name.
fn number_in_passwd(passwd: &str, name: &str) -> Option<u32> {
    let of_name = |line: &&str| line.split(':').next() == Some(name);
    passwd.lines().find(of_name).filter(|_| !name.is_empty())?.split(':').nth(2)?.parse().ok()
}

/// The access for which a handle was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Read,
    Write,
    Append,
}

/// An open file of the operating system.
#[derive(Debug)]
struct RealFile {
    file: File,
    mode: Mode,
    /// Keeps an append and the query for its position together.
    appending: Mutex<()>,
    /// Whether the kernel or file system lacks streaming writes.
    no_streaming: AtomicBool,
}

/// Linux 6.14: pages of this write leave the page cache once they are written back.
const RWF_DONTCACHE: u32 = 0x80;

impl RealFile {
    fn handle(file: File, mode: Mode) -> Arc<dyn DiskFile> {
        Arc::new(RealFile { file, mode, appending: Mutex::new(()), no_streaming: AtomicBool::new(false) })
    }
}

impl DiskFile for RealFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        Ok(retry_on_intr(|| rustix::io::pread(&self.file, &mut *buffer, offset))?)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        // Linux would ignore the offset of such a write.
        if self.mode == Mode::Append {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(retry_on_intr(|| rustix::io::pwrite(&self.file, data, offset))?)
    }

    fn write_vectored_at(&self, parts: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
        if self.mode == Mode::Append {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok(retry_on_intr(|| rustix::io::pwritev(&self.file, parts, offset))?)
    }

    fn write_streaming(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        if self.mode == Mode::Append || self.no_streaming.load(Ordering::Relaxed) {
            return self.write_at(data, offset);
        }
        let flags = ReadWriteFlags::from_bits_retain(RWF_DONTCACHE);
        let slices = [io::IoSlice::new(data)];
        match retry_on_intr(|| rustix::io::pwritev2(&self.file, &slices, offset, flags)) {
            Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => {
                self.no_streaming.store(true, Ordering::Relaxed);
                self.write_at(data, offset)
            }
            outcome => Ok(outcome?),
        }
    }

    fn direct(self: Arc<Self>) -> io::Result<Arc<dyn DiskFile>> {
        direct::DirectFile::over(self)
    }

    fn append(&self, data: &[u8]) -> io::Result<u64> {
        if self.mode != Mode::Append {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let _one_at_a_time = self.appending.lock();
        let written = retry_on_intr(|| rustix::io::write(&self.file, data))?;
        if written < data.len() {
            let message = format!("only {written} of {} bytes were appended", data.len());
            return Err(io::Error::new(io::ErrorKind::WriteZero, message));
        }
        // The kernel left the position of this descriptor at the end of the appended bytes, and nothing else moves
        // it; the end of the file may already be further.
        let end = rustix::fs::tell(&self.file)?;
        end.checked_sub(data.len() as u64).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        writeback::start(&self.file, offset, len);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn stat(&self) -> io::Result<Stat> {
        stat_of(&self.file, Path::new(""), AtFlags::EMPTY_PATH, || self.file.metadata())
    }

    fn stat_with_time(&self) -> io::Result<(Stat, i64)> {
        Ok(to_stat(&self.file.metadata()?))
    }

    fn inode_time(&self) -> io::Result<i64> {
        let meta = self.file.metadata()?;
        Ok(meta.ctime().saturating_mul(1_000_000_000).saturating_add(meta.ctime_nsec()))
    }
}

#[cfg(target_os = "linux")]
mod writeback {
    use std::ffi::{c_int, c_uint};
    use std::os::fd::AsRawFd;

    /// `SYNC_FILE_RANGE_WRITE` of `linux/fs.h`: begin to write, do not wait.
    const WRITE: c_uint = 2;

    unsafe extern "C" {
        /// From the C library, which `std` links; rustix has no binding for it.
        fn sync_file_range(fd: c_int, offset: i64, len: i64, flags: c_uint) -> c_int;
    }

    pub(super) fn start(file: &std::fs::File, offset: u64, len: u64) {
        let (Ok(offset), Ok(len)) = (i64::try_from(offset), i64::try_from(len)) else { return };
        // SAFETY: the declaration matches the C library's (both offsets are 64 bits wide on every Linux); the call
        // takes no pointer, and the descriptor is open for as long as `file` is borrowed. A failure changes nothing,
        // because the call is a hint.
        let _ = unsafe { sync_file_range(file.as_raw_fd(), offset, len, WRITE) };
    }
}

#[cfg(not(target_os = "linux"))]
mod writeback {
    pub(super) fn start(_: &std::fs::File, _: u64, _: u64) {}
}

fn to_kind(kind: std::fs::FileType) -> FileKind {
    match () {
        () if kind.is_file() => FileKind::File,
        () if kind.is_dir() => FileKind::Directory,
        () => FileKind::Other,
    }
}

fn to_stat(meta: &std::fs::Metadata) -> (Stat, i64) {
    let stat = Stat {
        kind: to_kind(meta.file_type()),
        len: meta.len(),
        uid: meta.uid(),
        mode: meta.mode() & 0o7777,
        inode: meta.ino(),
        links: meta.nlink(),
    };
    (stat, meta.mtime().saturating_mul(1_000_000_000).saturating_add(meta.mtime_nsec()))
}

/// Facts without times. From Linux 6.13 on, a file whose times a process has queried gets a new time with its next
/// write, whereas writes in one tick of the kernel's clock otherwise share theirs: J-29.
#[cfg(target_os = "linux")]
fn stat_of(
    at: impl AsFd,
    path: &Path,
    flags: AtFlags,
    otherwise: impl FnOnce() -> io::Result<std::fs::Metadata>,
) -> io::Result<Stat> {
    use rustix::fs::{StatxFlags, statx};
    let mask = StatxFlags::TYPE
        | StatxFlags::MODE
        | StatxFlags::UID
        | StatxFlags::INO
        | StatxFlags::SIZE
        | StatxFlags::NLINK;
    let facts = match statx(at, path, flags, mask) {
        Ok(facts) if StatxFlags::from_bits_retain(facts.stx_mask).contains(mask) => facts,
        // The call is missing in some kernels and sandboxes, and some file systems leave fields out.
        Ok(_) | Err(Errno::NOSYS | Errno::PERM) => return Ok(to_stat(&otherwise()?).0),
        Err(e) => return Err(e.into()),
    };
    let mode = u32::from(facts.stx_mode);
    Ok(Stat {
        kind: match rustix::fs::FileType::from_raw_mode(mode) {
            rustix::fs::FileType::RegularFile => FileKind::File,
            rustix::fs::FileType::Directory => FileKind::Directory,
            _ => FileKind::Other,
        },
        len: facts.stx_size,
        uid: facts.stx_uid,
        mode: mode & 0o7777,
        inode: facts.stx_ino,
        links: u64::from(facts.stx_nlink),
    })
}

#[cfg(not(target_os = "linux"))]
fn stat_of(
    _: impl AsFd,
    _: &Path,
    _: AtFlags,
    otherwise: impl FnOnce() -> io::Result<std::fs::Metadata>,
) -> io::Result<Stat> {
    Ok(to_stat(&otherwise()?).0)
}

/// Opens a plain file: never follows a link, and never waits for the other end of a pipe.
fn open_plain(path: &Path, options: &mut OpenOptions, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match options.custom_flags(flags.bits() as i32).open(path) {
        // The kernel's errors for a link, and for a pipe without a reader.
        Err(e) if [Errno::LOOP, Errno::NXIO].iter().any(|n| e.raw_os_error() == Some(n.raw_os_error())) => {
            return Err(not_plain());
        }
        outcome => outcome?,
    };
    if stat_of(&file, Path::new(""), AtFlags::EMPTY_PATH, || file.metadata())?.kind != FileKind::File {
        return Err(not_plain());
    }
    Ok(RealFile::handle(file, mode))
}

fn not_plain() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file, but a link, a pipe or a device")
}

/// Opens a file that a user named: follows links, and never waits for the other end of a pipe. It gives
/// `InvalidInput` for anything but a plain file, except for descriptors that this process inherited, such as its
/// standard input or the pipe of a shell's `<(…)`.
pub fn open_named(path: &Path) -> io::Result<File> {
    open_followed(path, OpenOptions::new().read(true))
}

fn open_followed(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let opened = options.custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
    let file = match opened {
        // The kernel's error for a pipe without a reader, and for a socket.
        Err(e) if e.raw_os_error() == Some(Errno::NXIO.raw_os_error()) => return Err(not_a_file()),
        outcome => outcome?,
    };
    match stat_of(&file, Path::new(""), AtFlags::EMPTY_PATH, || file.metadata())?.kind {
        FileKind::File => Ok(file),
        FileKind::Directory => Err(Errno::ISDIR.into()),
        // Open it again without the flag, so that reads wait for data.
        FileKind::Other if is_own_descriptor(path) => File::open(path),
        FileKind::Other => Err(not_a_file()),
    }
}

fn is_own_descriptor(path: &Path) -> bool {
    path == Path::new("/dev/stdin") || ["/dev/fd", "/proc/self/fd"].iter().any(|own| path.starts_with(own))
}

/// Refuses files at which an open would block: a pipe, a socket, a device. Leaves it to the opener to report a
/// missing file.
pub fn refuse_waiting(path: &Path) -> io::Result<()> {
    match RealDisk::default().stat(path) {
        Ok(stat) if stat.kind == FileKind::Other => Err(not_a_file()),
        _ => Ok(()),
    }
}

fn not_a_file() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file, but a pipe, a socket or a device")
}

/// All bytes of a file that a user named, opened as by [`open_named`].
pub fn read_named(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut open_named(path)?, &mut bytes)?;
    Ok(bytes)
}

/// The folder of a file, and a mode that lets every reader of the folder read the file.
fn mode_alike(path: &Path) -> (Option<std::fs::Metadata>, u32) {
    let folder = path.parent().and_then(|folder| std::fs::metadata(folder).ok());
    let mode = 0o600 | folder.as_ref().map_or(0, |folder| folder.mode() & 0o044);
    (folder, mode)
}

/// Creates a file of the folder's group that every reader of the folder may read.
fn create_alike(path: &Path) -> io::Result<File> {
    let (_, mode) = mode_alike(path);
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)?;
    make_alike(&file, path)?;
    Ok(file)
}

/// Gives the group and mode of the folder to a file just created at `path`. Leaves the file as it is if the file
/// system or the rules of the group do not allow that.
fn make_alike(file: &File, path: &Path) -> io::Result<()> {
    let (folder, mode) = mode_alike(path);
    let made = file.metadata()?;
    if let Some(folder) = folder {
        if made.gid() != folder.gid() {
            let _ = rustix::fs::fchown(file, None, Some(Gid::from_raw(folder.gid())));
        }
        if made.mode() & 0o777 != mode {
            let _ = file.set_permissions(std::fs::Permissions::from_mode(mode));
        }
    }
    Ok(())
}

/// Whether the file system of a path is reached over a network, or through a user's program that may do so. An
/// unknown file system counts as a network.
pub fn is_network(path: &Path) -> bool {
    rustix::fs::statfs(path).map_or(true, |facts| is_network_type(facts.f_type as u64 & 0xffff_ffff))
}

/// Type numbers of network file systems, as `statfs` gives them.
fn is_network_type(magic: u64) -> bool {
    [
        0x6969,      // NFS
        0x517b,      // SMB
        0xff53_4d42, // CIFS
        0xfe53_4d42, // SMB 2
        0x0bd0_0bd0, // Lustre
        0x4750_4653, // GPFS
        0x00c3_6400, // Ceph
        0x0102_1997, // 9P
        0x6573_5546, // FUSE
        0x1983_0326, // BeeGFS
        0xaad7_aaea, // PanFS
        0x2003_0528, // OrangeFS
        0x5346_414f, // AFS
    ]
    .contains(&magic)
}

/// The operating system's files.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk {
    /// The user to whom new files and folders of a store are given.
    user: Option<u32>,
}

impl RealDisk {
    /// Files that belong to a user, whoever makes them, which takes the rights of root.
    pub fn of_user(user: u32) -> RealDisk {
        RealDisk { user: Some(user) }
    }

    /// A new file that its user owns. It is given away by its handle: whoever may write to the folder could put another
    /// file in its place.
    fn given(&self, file: File) -> io::Result<File> {
        if let Some(user) = self.user {
            rustix::fs::fchown(&file, Some(Uid::from_raw(user)), None)?;
        }
        Ok(file)
    }
}

impl Disk for RealDisk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(path)?;
        Ok(RealFile::handle(self.given(file)?, Mode::Write))
    }

    fn create_alike(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(RealFile::handle(self.given(create_alike(path)?)?, Mode::Write))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        Ok(RealFile::handle(open_named(path)?, Mode::Read))
    }

    fn open_plain(&self, path: &Path, write: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mode = if write { Mode::Write } else { Mode::Read };
        open_plain(path, OpenOptions::new().read(true).write(write), mode)
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let file = open_followed(path, OpenOptions::new().read(true).write(true))?;
        Ok(RealFile::handle(file, Mode::Write))
    }

    fn open_append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        match create_alike(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            made => drop(self.given(made?)?),
        }
        open_plain(path, OpenOptions::new().read(true).append(true), Mode::Append)
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir_all(path)
    }

    fn create_dir_alike(&self, path: &Path) -> io::Result<()> {
        let above = path.parent().map(std::fs::metadata).transpose()?;
        let mode = above.as_ref().map_or(0o777, |above| above.mode() & 0o7777);
        match std::fs::DirBuilder::new().mode(mode).create(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
            outcome => outcome?,
        }
        let made = std::fs::symlink_metadata(path)?;
        if let Some(above) = above.filter(|_| made.is_dir()) {
            if made.gid() != above.gid() {
                let _ = rustix::fs::chownat(
                    CWD,
                    path,
                    None,
                    Some(Gid::from_raw(above.gid())),
                    AtFlags::SYMLINK_NOFOLLOW,
                );
            }
            if made.mode() & 0o7777 != mode {
                let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode));
            }
        }
        if self.user.is_some() {
            let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
            self.given(OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)?)?;
        }
        Ok(())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    /// Omits names that are not UTF-8: no file of a store has one. A link is [`FileKind::Other`].
    fn list_dir(&self, path: &Path) -> io::Result<Vec<(String, FileKind)>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            let kind = match entry.file_type() {
                Ok(kind) => to_kind(kind),
                // The entry was removed after the directory was read.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(e),
            };
            names.push((name, kind));
        }
        Ok(names)
    }

    fn stat(&self, path: &Path) -> io::Result<Stat> {
        stat_of(CWD, path, AtFlags::empty(), || std::fs::metadata(path))
    }

    fn stat_with_time(&self, path: &Path) -> io::Result<(Stat, i64)> {
        Ok(to_stat(&std::fs::metadata(path)?))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty())?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(rustix::fs::renameat(CWD, from, CWD, to)?)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(CWD, path, AtFlags::empty())?)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(CWD, path, AtFlags::REMOVEDIR)?)
    }

    fn copy_permissions(&self, from: &Path, to: &Path) -> io::Result<()> {
        let facts = std::fs::metadata(from)?;
        if !facts.is_dir() {
            return std::fs::set_permissions(to, facts.permissions());
        }
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        make_alike(&OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(to)?, to)
    }

    fn lags(&self, path: &Path) -> bool {
        is_network(path)
    }

    fn space(&self, path: &Path) -> io::Result<Space> {
        let s = retry_on_intr(|| rustix::fs::statvfs(path))?;
        // File systems that make inodes as they need them report a total of 0.
        let free_inodes = if s.f_files == 0 { u64::MAX } else { s.f_favail };
        Ok(Space { free_bytes: s.f_bavail.saturating_mul(s.f_frsize), free_inodes })
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        let mut existing = std::path::absolute(path)?;
        let mut missing = VecDeque::new();
        let mut resolved = loop {
            match std::fs::canonicalize(&existing) {
                Ok(resolved) => break resolved,
                Err(e) if e.kind() == io::ErrorKind::NotFound => {
                    let Some(last) = existing.components().next_back() else { return Err(e) };
                    missing.push_front(PathBuf::from(last.as_os_str()));
                    if !existing.pop() {
                        return Err(e);
                    }
                }
                Err(e) => return Err(e),
            }
        };
        for part in missing {
            match part.components().next() {
                Some(Component::ParentDir) => drop(resolved.pop()),
                _ => resolved.push(part),
            }
        }
        Ok(resolved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn network_file_systems_are_known() {
        for magic in [0x6969, 0xff53_4d42, 0x0bd0_0bd0, 0x4750_4653, 0x6573_5546, 0x0102_1997] {
            assert!(is_network_type(magic));
        }
        for local in [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630] {
            assert!(!is_network_type(local));
        }
    }

    #[test]
    fn a_user_is_named_by_the_passwd_file_or_by_number() {
        let text = "root:x:0:0:root:/root:/bin/sh\nbroken\n:x:7:7::/:\nann:x:1000:1000::/home/ann:/bin/sh\n";
        assert_eq!(name_in_passwd(text, 1000).as_deref(), Some("ann"));
        assert_eq!(name_in_passwd(text, 7), None);
        assert_eq!(number_in_passwd(text, "ann"), Some(1000));
        assert_eq!((number_in_passwd(text, "an"), number_in_passwd(text, "")), (None, None));
        assert_eq!(RealIdentity.user_number("4000000001"), Some(4_000_000_001));
        assert_eq!(RealIdentity.user_name(4_000_000_001), "4000000001");
    }
}
