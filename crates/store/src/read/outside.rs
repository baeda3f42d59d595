//! Files outside the store (F-6): opened for every read, and compared with their state when the index recorded them.
//! Nothing is mapped, and no handle is kept, so that a read sees a file that was replaced under its name.

use std::path::Path;
use std::sync::Arc;

use fieldstone_core::env::{Disk, DiskFile, read_exact_at};
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::location::{External, url_path};

/// Bytes between two parts up to which they are fetched by one read.
const GAP_MAX: u64 = 16 << 10;
/// Most bytes of the file that are fetched by one read for several parts.
const READ_MAX: u64 = 1 << 20;

/// The hint for a file that has changed.
const AGAIN: &str = "remove the fields of this file, then take it again: the store knows it as it was and has no copy of its bytes";

/// An open file outside the store, and where its ranges are.
#[derive(Debug)]
pub struct Outside {
    file: Arc<dyn DiskFile>,
    offset: u64,
    part: u64,
    stride: u64,
}

impl Outside {
    /// Opens the file of a location of `length` bytes. Corrupt where it is gone or not what it was.
    pub fn open(disk: &dyn Disk, external: &External, length: u64) -> Result<Outside> {
        let path = url_path(&external.url)?;
        let file = disk.open_read(&path).map_err(|e| {
            let error = Error::io("open", &path, e);
            match error.kind() {
                // The index names the file, so its absence is damage.
                ErrorKind::NotFound => Code::OutsideChanged.error("the file is gone").with_hint(AGAIN),
                _ => error,
            }
        })?;
        let (stat, mtime) = file.stat_with_time().map_err(|e| Error::io("look at", &path, e))?;
        if stat.len != external.nbytes {
            return Err(Code::OutsideChanged
                .error(format!(
                    "the file was changed: it has {} bytes and had {} when it was taken",
                    stat.len, external.nbytes
                ))
                .with_hint(AGAIN));
        }
        if mtime != external.mtime {
            return Err(Code::OutsideChanged
                .error("the file was changed: its change time is not what it was")
                .with_hint(AGAIN));
        }
        Ok(Outside::new(file, external, length))
    }

    /// A file that was opened and looked at.
    pub fn new(file: Arc<dyn DiskFile>, external: &External, length: u64) -> Outside {
        let part = external.part(length);
        Outside { file, offset: external.offset, part, stride: external.stride }
    }

    /// The file.
    pub fn file(&self) -> &dyn DiskFile {
        &*self.file
    }

    /// Fills `out` with the raw bytes from `start` on, as if the parts stood one behind the other.
    pub fn read(&self, out: &mut [u8], start: u64) -> Result<()> {
        let mut rest = out;
        let mut at = start;
        let mut window = Vec::new();
        while !rest.is_empty() && self.part > 0 {
            let (index, within) = (at / self.part, at % self.part);
            let from = self.offset + index * self.stride + within;
            let first = (self.part - within).min(rest.len() as u64);
            // Parts that lie close together are fetched with what is between them.
            let close = self.stride - self.part.min(self.stride) <= GAP_MAX;
            let more = match close {
                true => READ_MAX.saturating_sub(first) / self.stride.max(1),
                false => 0,
            };
            let taken = more.saturating_mul(self.part).saturating_add(first).min(rest.len() as u64);
            let (own, behind) = rest.split_at_mut(taken as usize);
            if taken == first {
                self.fetch(own, from)?;
            } else {
                let parts = (taken - first).div_ceil(self.part);
                let last = taken - first - (parts - 1) * self.part;
                let span = (self.stride - within) + (parts - 1) * self.stride + last;
                window.resize(span as usize, 0);
                self.fetch(&mut window, from)?;
                let (head, tail) = own.split_at_mut(first as usize);
                head.copy_from_slice(&window[..first as usize]);
                for (i, part) in tail.chunks_mut(self.part as usize).enumerate() {
                    let begin = (self.stride - within + i as u64 * self.stride) as usize;
                    part.copy_from_slice(&window[begin..begin + part.len()]);
                }
            }
            at += taken;
            rest = behind;
        }
        Ok(())
    }

    fn fetch(&self, out: &mut [u8], from: u64) -> Result<()> {
        read_exact_at(&*self.file, out, from).map_err(|e| match e.kind() {
            std::io::ErrorKind::UnexpectedEof => Code::OutsideChanged
                .error(format!("the file ends before the {} bytes at {from}", out.len()))
                .with_hint(AGAIN),
            _ => Error::io("read", Path::new("a file outside the store"), e),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use fieldstone_core::env::sim::SimWorld;
    use fieldstone_core::env::write_all_at;
    use fieldstone_format::entry::Blocks;
    use fieldstone_format::location::file_url;

    use super::*;

    /// Parts of every length at every distance, read from every place.
    #[test]
    fn parts_are_read_as_one() {
        let world = SimWorld::new(1);
        let env = world.process("a");
        let content: Vec<u8> = (0..200_000u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let path = Path::new("/source");
        let file = env.disk.create_new(path).unwrap();
        write_all_at(&*file, &content, 0).unwrap();
        let (stat, mtime) = file.stat_with_time().unwrap();
        for (part, stride, parts) in
            [(7, 7, 40), (8, 12, 500), (3, 30_000, 6), (900, 1000, 150), (5000, 5000, 1)]
        {
            let offset = 13;
            let external = External {
                url: file_url(path),
                nbytes: stat.len,
                mtime,
                offset,
                parts,
                stride,
                size: 0,
                file: 0,
                blocks: Blocks::Inline(Vec::new()),
            };
            let length = part * parts;
            let outside = Outside::open(&*env.disk, &external, length).unwrap();
            let raw: Vec<u8> = (0..parts)
                .flat_map(|i| content[(offset + i * stride) as usize..][..part as usize].to_vec())
                .collect();
            let starts = [0, 1, part - 1, part, length / 2, length.saturating_sub(3)];
            for start in starts.into_iter().filter(|start| *start < length) {
                for count in [1, part, part + 1, 3 * part + 2, length].map(|n| n.min(length - start)) {
                    let mut out = vec![0; count as usize];
                    outside.read(&mut out, start).unwrap();
                    assert!(
                        out == raw[start as usize..][..count as usize],
                        "{part} {stride} {start} {count}"
                    );
                }
            }
        }
    }
}
