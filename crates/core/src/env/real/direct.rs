//! Reads and writes without the page cache (O_DIRECT), at any offset and from any memory.
//!
//! Aligned ranges go through a buffer of this file directly to the disk; unaligned edges go through the page cache,
//! which Linux keeps coherent with the disk. So two ranks may write neighbouring bytes of one block.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::sync::Arc;

use rustix::fs::OFlags;
use rustix::io::{Errno, retry_on_intr};

use super::{Mode, RealFile};
use crate::env::{DiskFile, Stat};
use crate::sync::plain::Mutex;

/// Alignment of offsets, lengths and memory: enough for every disk in use.
const BLOCK: usize = 4096;
/// Maximum number of bytes in one call.
const PIECE: usize = 4 << 20;

/// A file with one handle that bypasses the page cache, and one that uses it.
#[derive(Debug)]
pub(super) struct DirectFile {
    direct: File,
    cached: Arc<dyn DiskFile>,
    /// Memory for one piece, plus the bytes lost to alignment.
    memory: Mutex<Vec<u8>>,
}

impl DirectFile {
    /// Opens a handle's file again through the handle, so that it is the same file whatever its name refers to now.
    /// `Unsupported` if the file system has no direct I/O, or /proc is missing.
    pub(super) fn over(cached: Arc<RealFile>) -> io::Result<Arc<dyn DiskFile>> {
        let path = format!("/proc/self/fd/{}", cached.file.as_raw_fd());
        let write = cached.mode == Mode::Write;
        let flags = OFlags::DIRECT | OFlags::NONBLOCK;
        let opened = File::options().read(true).write(write).custom_flags(flags.bits() as i32).open(path);
        let direct = match opened {
            Err(e)
                if [Errno::INVAL, Errno::NOENT]
                    .iter()
                    .any(|n| e.raw_os_error() == Some(n.raw_os_error())) =>
            {
                return Err(io::ErrorKind::Unsupported.into());
            }
            opened => opened?,
        };
        Ok(Arc::new(DirectFile { direct, cached, memory: Mutex::default() }))
    }

    /// Runs `act` with `len` bytes of aligned memory.
    fn with_memory<T>(&self, len: usize, act: impl FnOnce(&mut [u8]) -> T) -> T {
        let mut memory = self.memory.lock();
        if memory.len() < len + BLOCK {
            memory.resize(len + BLOCK, 0);
        }
        let start = memory.as_ptr().align_offset(BLOCK);
        act(&mut memory[start..start + len])
    }
}

impl DiskFile for DirectFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let skipped = (offset % BLOCK as u64) as usize;
        let len = (skipped + buffer.len()).next_multiple_of(BLOCK).min(PIECE);
        let read = self.with_memory(len, |memory| {
            let begin = offset - skipped as u64;
            let read = retry_on_intr(|| rustix::io::pread(&self.direct, &mut *memory, begin))?;
            let wanted = read.saturating_sub(skipped).min(buffer.len());
            buffer[..wanted].copy_from_slice(&memory[skipped..skipped + wanted]);
            Ok(wanted)
        });
        match read {
            // The disk has larger blocks.
            Err(Errno::INVAL) => self.cached.read_at(buffer, offset),
            read => Ok(read?),
        }
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<usize> {
        let before = (BLOCK - (offset % BLOCK as u64) as usize) % BLOCK;
        let len = data.len() / BLOCK * BLOCK;
        if before > 0 || len == 0 {
            let edge = if before > 0 { before.min(data.len()) } else { data.len() };
            return self.cached.write_at(&data[..edge], offset);
        }
        let len = len.min(PIECE);
        let written = self.with_memory(len, |memory| {
            memory.copy_from_slice(&data[..len]);
            retry_on_intr(|| rustix::io::pwrite(&self.direct, &*memory, offset))
        });
        match written {
            Err(Errno::INVAL) => self.cached.write_at(data, offset),
            written => Ok(written?),
        }
    }

    fn write_vectored_at(&self, parts: &[io::IoSlice<'_>], offset: u64) -> io::Result<usize> {
        match parts.iter().find(|part| !part.is_empty()) {
            Some(part) => self.write_at(part, offset),
            None => Ok(0),
        }
    }

    fn append(&self, _: &[u8]) -> io::Result<u64> {
        Err(io::ErrorKind::InvalidInput.into())
    }

    fn sync_data(&self) -> io::Result<()> {
        self.cached.sync_data()
    }

    fn start_writeback(&self, offset: u64, len: u64) {
        self.cached.start_writeback(offset, len);
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.cached.set_len(len)
    }

    fn stat(&self) -> io::Result<Stat> {
        self.cached.stat()
    }

    fn stat_with_time(&self) -> io::Result<(Stat, i64)> {
        self.cached.stat_with_time()
    }

    fn inode_time(&self) -> io::Result<i64> {
        self.cached.inode_time()
    }
}

#[cfg(test)]
mod tests {
    use fieldstone_testkit::require::require;

    use crate::env::{Env, write_all_at};

    #[test]
    fn any_offset_and_length_is_read_and_written_as_through_the_cache() {
        // Use the target folder, because a folder for temporary files may be in memory.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("f");
        let disk = Env::real().disk;
        let plain = disk.create_new(&path).unwrap();
        let direct = plain.clone().direct();
        if !require("O_DIRECT", direct.is_ok(), "this file system has no direct I/O") {
            return;
        }
        let direct = direct.unwrap();
        let mut model = vec![0u8; 300_000];
        for (i, (offset, len)) in
            [(0, 300_000), (1, 4095), (4096, 8192), (4095, 2), (100, 20_000), (8192, 12_345), (299_999, 1)]
                .into_iter()
                .enumerate()
        {
            let bytes: Vec<u8> = (0..len).map(|n| (n * 7 + i * 31) as u8).collect();
            let handle = if i % 3 == 1 { &plain } else { &direct };
            write_all_at(&**handle, &bytes, offset as u64).unwrap();
            model[offset..offset + len].copy_from_slice(&bytes);
            for (offset, len) in [(0, 300_000), (4097, 3), (5, 100_000), (299_990, 10)] {
                let mut read = vec![0; len];
                let mut done = 0;
                while done < len {
                    match direct.read_at(&mut read[done..], (offset + done) as u64).unwrap() {
                        0 => break,
                        n => done += n,
                    }
                }
                assert_eq!(done, len);
                assert!(read == model[offset..offset + len], "{len} bytes at {offset} after write {i}");
            }
        }
        assert_eq!(direct.read_at(&mut [0; 10], 300_000).unwrap(), 0);
        assert_eq!(direct.read_at(&mut [0; 10], 299_995).unwrap(), 5);
    }
}
