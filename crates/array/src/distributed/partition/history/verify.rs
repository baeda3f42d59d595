//! Reads a whole stored partition in one process, and compares all of it with its checksums.

use std::path::Path;

use fieldstone_core::env::{Disk, DiskFile, read_exact_at};
use fieldstone_core::{Code, Error, Result};
use fieldstone_format::partition::{BlockEntry, ENTRY, HEADER, HistoryHeader, HistoryKind, PartEntry};

use super::PIECE;

/// Reads the file at `path`, and compares header, entries and data with their checksums; returns its size in bytes.
///
/// Errors: `Corrupt`, with the file and the position in it; `NotFound` if there is none.
pub fn verify_history(disk: &dyn Disk, path: &Path) -> Result<u64> {
    let failed = |cause| Error::io("read", path, cause);
    let file = disk.open_plain(path, false).map_err(failed)?;
    let length = file.stat().map_err(failed)?.len;
    verify(&*file, path, length).map_err(|error| error.context(path.display()))
}

fn verify(file: &dyn DiskFile, path: &Path, length: u64) -> Result<u64> {
    let failed = |cause| Error::io("read", path, cause);
    if length < HEADER as u64 {
        return Err(Code::Truncated.error(format!("the file has {length} bytes, less than a header")));
    }
    let mut bytes = [0; HEADER];
    read_exact_at(file, &mut bytes, 0).map_err(failed)?;
    let kind = if bytes.starts_with(b"FSPE") { HistoryKind::Edges } else { HistoryKind::Parts };
    let header = HistoryHeader::decode(kind, &bytes, length)?;
    let (mut entry, mut data) = ([0; ENTRY], vec![0; PIECE]);
    let mut end = header.data();
    for number in 0..header.entries {
        let at = header.entry(number);
        read_exact_at(file, &mut entry, at).map_err(failed)?;
        let found = match kind {
            HistoryKind::Parts => PartEntry::decode(&header, &entry, number)
                .map(|part| (part.offset, part.length(&header), part.sum)),
            HistoryKind::Edges => BlockEntry::decode(&header, &entry, number)
                .map(|block| (block.offset, block.length(&header), block.sum)),
        };
        let (offset, len, kept) = found.map_err(|error| error.context(format_args!("at byte {at}")))?;
        let mut sum = 0;
        let mut done = 0;
        while done < len {
            let part = &mut data[..(len - done).min(PIECE as u64) as usize];
            read_exact_at(file, part, offset + done).map_err(failed)?;
            sum = crc32c::crc32c_append(sum, part);
            done += part.len() as u64;
        }
        if sum != kept {
            return Err(super::damaged(len, offset));
        }
        end = end.max(offset + len);
    }
    match end == length {
        true => Ok(length),
        false => Err(Error::corrupt(format!("the bytes from {end} on have no checksum"))),
    }
}
