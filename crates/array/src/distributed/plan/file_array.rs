//! The positions of an array's elements in a file.

use fieldstone_core::env::comm::TeamReader;
use fieldstone_core::{Code, Result};

/// The result of a read beyond the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PastFileEnd {
    /// Zeros, as in any hole: the file is still being written.
    Zeros,
    /// An error: the file is complete.
    Corrupt,
}

impl PastFileEnd {
    /// Fills `bytes` from `offset`; returns how many of them are in the file.
    pub(in crate::distributed) fn read(
        self,
        file: &TeamReader,
        offset: u64,
        bytes: &mut [u8],
    ) -> Result<u64> {
        let read = file.read_at(bytes, offset)?;
        if read < bytes.len() {
            if self == PastFileEnd::Corrupt {
                let (end, len) = (offset + bytes.len() as u64, file.len()?);
                return Err(Code::Truncated
                    .error(format!("the requested data end at byte {end} or later, but the file at {len}"))
                    .with_hint("the file was cut, or its header is damaged"));
            }
            bytes[read..].fill(0);
        }
        Ok(read as u64)
    }
}

/// The layout of an array in a file: consecutive in C order, or in records with a stride.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileArray {
    /// Offset of the first element.
    pub begin: u64,
    /// Bytes of an element.
    pub size: u64,
    /// Elements in a record; 0 if there are no records.
    pub record: u64,
    /// Bytes from one record to the next.
    pub record_stride: u64,
}

impl FileArray {
    /// Makes the layout of an array in one piece.
    pub fn dense(begin: u64, size: u64) -> FileArray {
        FileArray { begin, size, record: 0, record_stride: 0 }
    }

    /// Errors: `Invalid` if `total` elements would end at or beyond byte 2^63.
    pub fn check(&self, total: u64) -> Result<()> {
        let end = match (total, self.record) {
            (0, _) => Some(0),
            (_, 0) => total.checked_mul(self.size),
            (_, record) => ((total - 1) / record)
                .checked_mul(self.record_stride)
                .and_then(|last| last.checked_add(record.checked_mul(self.size)?)),
        };
        let end = end.and_then(|end| end.checked_add(self.begin)).filter(|end| *end <= i64::MAX as u64);
        end.map(drop).ok_or_else(|| Code::TooLarge.error(format!("{total} elements end beyond byte 2^63")))
    }

    /// The byte after the last of `total` elements.
    pub fn end(&self, total: u64) -> u64 {
        match total {
            0 => self.begin,
            _ => self.offset(total - 1) + self.size,
        }
    }

    /// Offset of an element.
    pub fn offset(&self, at: u64) -> u64 {
        match self.record {
            0 => self.begin + at * self.size,
            record => self.begin + at / record * self.record_stride + at % record * self.size,
        }
    }

    /// The number of adjacent elements, of `elements` from `at` on.
    pub fn side_by_side(&self, at: u64, elements: u64) -> u64 {
        match self.record {
            0 => elements,
            record if record * self.size == self.record_stride => elements,
            record => elements.min(record - at % record),
        }
    }

    /// Calls `act` with offset, index and count of each run of adjacent elements, of those from `at` to `end`.
    pub fn pieces(&self, at: u64, end: u64, mut act: impl FnMut(u64, u64, u64) -> Result<()>) -> Result<()> {
        let mut here = at;
        while here < end {
            let count = self.side_by_side(here, end - here);
            act(self.offset(here), here - at, count)?;
            here += count;
        }
        Ok(())
    }
}
