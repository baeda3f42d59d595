//! Walking a log's frames: from its end to the last whole commit, from commit to commit, and through
//! every checksum.

use fieldstone_core::env::read_exact_at;
use fieldstone_core::planted::{self, Planted};
use fieldstone_core::{Code, Error, ErrorKind, Result};
use fieldstone_format::board::Slot;
use fieldstone_format::log::{CommitRecord, FOOT, FrameInfo, HEAD, HEADER_PREFIX, LogHeader};

use super::open_files::read_vec;

/// Bytes read from the end of a log: enough for foot and record of all but a few commits.
const TAIL: u64 = 4096;
/// Bytes read at a time from the zeros behind the last commit.
const ZEROS: u64 = 64 << 10;
/// Zeros that may end a foot: all but one byte of its checksum.
const FOOT_ZEROS: u64 = 3;

/// Walks the frames of a log.
pub struct LogReader<'a> {
    /// The log.
    pub file: &'a dyn fieldstone_core::env::DiskFile,
    /// Its path, for messages.
    pub path: &'a std::path::Path,
    /// The end of the log for this reader.
    pub end: u64,
}

impl LogReader<'_> {
    /// Reads a range, which must lie before the end.
    pub fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        if offset.checked_add(length).is_none_or(|end| end > self.end) {
            return Err(Code::Truncated.error(format!("{} is cut", self.path.display())));
        }
        read_vec(self.file, self.path, offset, length)
    }

    /// Says which frame an error is about.
    pub fn named(&self, at: u64, error: Error) -> Error {
        error.context(format!("frame at {at} of {}", self.path.display()))
    }

    /// The extent of the frame that begins at an offset, by its head.
    pub fn head(&self, at: u64) -> Result<FrameInfo> {
        let bytes = self.read(at, HEAD as u64)?;
        let ends = FrameInfo::decode_head(&bytes, at).map_err(|e| self.named(at, e))?;
        if ends.end() > self.end {
            return Err(self.named(at, Code::Truncated.error("the frame is cut")));
        }
        Ok(ends)
    }

    /// The record of a frame, from whichever copy is whole.
    pub fn record(&self, ends: &FrameInfo) -> Result<CommitRecord> {
        let [last, first] = ends.record_offsets();
        // J-6: either copy will do, each has its checksum.
        self.record_copy(ends, last).or_else(|e| self.record_copy(ends, first).map_err(|_| e))
    }

    /// The record of a frame, from the copy at an offset.
    pub fn record_copy(&self, ends: &FrameInfo, offset: u64) -> Result<CommitRecord> {
        let bytes = self.read(offset, u64::from(ends.record_len))?;
        ends.record(&bytes).map_err(|e| self.named(ends.frame, e))
    }

    /// Head and foot of the frame at an offset: either will do.
    pub fn ends(&self, at: u64, end: Option<u64>) -> Result<FrameInfo> {
        self.head(at).or_else(|e| {
            let end = end.ok_or_else(|| e.replicate())?;
            let foot = self.read(end - FOOT as u64, FOOT as u64)?;
            FrameInfo::decode_foot(&foot, end).ok().filter(|ends| ends.frame == at).ok_or(e)
        })
    }

    /// The frame that begins at an offset, and its record.
    pub fn frame(&self, at: u64) -> Result<(FrameInfo, CommitRecord)> {
        let ends = self.head(at)?;
        let record = self.record(&ends)?;
        Ok((ends, record))
    }

    /// The frame at `target`, found by going back from commit to commit from the one at `from`, whose
    /// record is given: then a frame's foot is found too, where its head is damaged.
    pub fn back_to(
        &self,
        target: u64,
        from: u64,
        record: &CommitRecord,
    ) -> Result<(FrameInfo, CommitRecord)> {
        let (mut next, mut previous) = (from, record.previous);
        loop {
            if previous < target || previous >= next {
                return Err(self.named(next, Error::corrupt("the chain of commits does not lead back")));
            }
            let ends = self.ends(previous, Some(next))?;
            let record = self.record(&ends)?;
            if previous == target {
                return Ok((ends, record));
            }
            (next, previous) = (previous, record.previous);
        }
    }

    /// Compares every part of a frame with its checksum.
    pub fn check_frame(&self, ends: &FrameInfo) -> Result<CommitRecord> {
        let head = self.head(ends.frame)?;
        let foot = self.read(ends.end() - FOOT as u64, FOOT as u64)?;
        let foot = FrameInfo::decode_foot(&foot, ends.end()).map_err(|e| self.named(ends.frame, e))?;
        if head != foot {
            return Err(self.named(ends.frame, Error::corrupt("head and foot of the frame differ")));
        }
        let [last, first] = ends.record_offsets();
        let record = self.record_copy(ends, last)?;
        self.record_copy(ends, first)?;
        match self.check_body(ends) {
            Ok(()) => Ok(record),
            // Which part of it does not match matters to who can do without the values.
            Err(e) => self.check_side(ends, &record).and(Err(e)),
        }
    }

    /// Compares a frame's side records with their checksum.
    fn check_side(&self, ends: &FrameInfo, record: &CommitRecord) -> Result<()> {
        let bytes = self.read(record.side.offset, record.side.length)?;
        match fieldstone_format::crc(&bytes) == record.side.crc {
            true => Ok(()),
            false => {
                let wrong = Error::corrupt("the commit's side records do not match their checksum");
                Err(self.named(ends.frame, wrong))
            }
        }
    }

    /// Compares a frame's body with its checksum.
    pub fn check_body(&self, ends: &FrameInfo) -> Result<()> {
        let (mut at, mut left) = ends.body();
        let mut sum = 0;
        let mut buffer = vec![0; left.min(1 << 20) as usize];
        while left > 0 {
            let n = left.min(buffer.len() as u64) as usize;
            read_exact_at(self.file, &mut buffer[..n], at).map_err(|e| Error::io("read", self.path, e))?;
            sum = fieldstone_format::crc_append(sum, &buffer[..n]);
            at += n as u64;
            left -= n as u64;
        }
        if sum == ends.body_crc || planted::is(Planted::TornFrameAccepted) {
            return Ok(());
        }
        Err(self.named(ends.frame, Code::Checksum.error("the commit does not match its checksum")))
    }

    /// The last whole commit at or behind `start`, where a frame begins (or the log ends).
    ///
    /// A commit is whole if its body matches its checksum. That is not read again where the board
    /// vouches for the commit (its slot is written after the sync), nor for commits that another one
    /// follows (it was begun after their sync returned), nor up to `marked`, the commit that the mark of a copy names: it
    /// was durable there before the mark.
    ///
    /// `trusting`: takes the commit that the slot names for the last one, and does not look for frames that its
    /// writer may have begun since. Otherwise only zeros and torn frames may follow the result.
    pub fn last_commit(
        &self,
        start: u64,
        (slot, marked): (Option<&Slot>, u64),
        trusting: bool,
    ) -> Result<Option<(FrameInfo, CommitRecord)>> {
        let vouched = |ends: &FrameInfo| {
            let on_board =
                |s: &Slot| s.sequence > ends.sequence || s.frame == ends.frame && s.hash == ends.hash;
            ends.sequence <= marked || slot.is_some_and(on_board)
        };
        if let Some(slot) = slot.filter(|slot| trusting && slot.length <= self.end)
            && let Some((ends, record)) = self.tail(start, slot.length)?
            && (ends.frame, ends.hash) == (slot.frame, slot.hash)
        {
            return Ok(Some((ends, record)));
        }
        // From the end: one damaged head must not hide what was committed behind it. A foot may end in zeros.
        let last = self.data_end(start)?;
        for end in last..=self.end.min(last + FOOT_ZEROS) {
            if let Some((ends, record)) = self.tail(start, end)?
                && (vouched(&ends) || self.check_body(&ends).is_ok())
            {
                return Ok(Some((ends, record)));
            }
        }
        // No foot at the end: a torn tail, or a frame being written. Step forward from what is sure.
        let mut at = start;
        let mut whole: Vec<(FrameInfo, CommitRecord)> = Vec::new();
        if let Some(slot) = slot
            && slot.frame >= start
            && let Ok((ends, record)) = self.frame(slot.frame)
            && ends.hash == slot.hash
        {
            at = ends.end();
            whole.push((ends, record));
        }
        while at < self.end {
            let Ok((ends, record)) = self.frame(at) else { break };
            at = ends.end();
            whole.push((ends, record));
        }
        while let Some((ends, record)) = whole.pop() {
            if vouched(&ends) || self.check_body(&ends).is_ok() {
                return Ok(Some((ends, record)));
            }
        }
        Ok(None)
    }

    /// The begin of the zeros that end the log; `start` if everything after it is zero. Bytes that its writer cuts
    /// off meanwhile were zeros.
    pub fn data_end(&self, start: u64) -> Result<u64> {
        let (mut end, mut step) = (self.end, TAIL);
        let mut buffer = Vec::new();
        while end > start {
            let from = end - step.min(end - start);
            buffer.resize((end - from) as usize, 0);
            let mut filled = 0;
            while filled < buffer.len() {
                let read = self.file.read_at(&mut buffer[filled..], from + filled as u64);
                match read.map_err(|e| Error::io("read", self.path, e))? {
                    0 => break,
                    n => filled += n,
                }
            }
            if let Some(last) = buffer[..filled].iter().rposition(|&byte| byte != 0) {
                return Ok(from + last as u64 + 1);
            }
            (end, step) = (from, ZEROS);
        }
        Ok(start)
    }

    /// The commit whose foot ends at `end`, if one does.
    fn tail(&self, start: u64, end: u64) -> Result<Option<(FrameInfo, CommitRecord)>> {
        if end < start.saturating_add((HEAD + FOOT) as u64) {
            return Ok(None);
        }
        let length = TAIL.min(end - start);
        let bytes = match self.read(end - length, length) {
            // Cut off by its writer meanwhile.
            Err(e) if e.kind() == ErrorKind::Corrupt => return Ok(None),
            outcome => outcome?,
        };
        let Ok(ends) = FrameInfo::decode_foot(&bytes[bytes.len() - FOOT..], end) else { return Ok(None) };
        if ends.frame < start {
            return Ok(None);
        }
        let before_foot = bytes.len() - FOOT;
        let near = before_foot.checked_sub(ends.record_len as usize).map(|from| &bytes[from..before_foot]);
        let record = match near.map(|bytes| ends.record(bytes)) {
            Some(Ok(record)) => Ok(record),
            _ => self.record(&ends),
        };
        Ok(record.ok().map(|record| (ends, record)))
    }
}

/// The version of a log that is not of our version, where its header shows it beyond doubt.
pub fn foreign_version(
    file: &dyn fieldstone_core::env::DiskFile,
    path: &std::path::Path,
    len: u64,
) -> Result<Option<u32>> {
    if len < HEADER_PREFIX as u64 {
        return Ok(None);
    }
    let prefix = read_vec(file, path, 0, HEADER_PREFIX as u64)?;
    match LogHeader::foreign(&prefix) {
        Some((version, length)) if u64::from(length) <= len => {
            let header = read_vec(file, path, 0, u64::from(length))?;
            Ok(LogHeader::is_whole(&header).then_some(version))
        }
        _ => Ok(None),
    }
}

/// The header of a log; `None` where it is not all there yet.
pub fn read_header(
    file: &dyn fieldstone_core::env::DiskFile,
    path: &std::path::Path,
    len: u64,
) -> Result<Option<(LogHeader, u64)>> {
    if len < HEADER_PREFIX as u64 {
        return Ok(None);
    }
    let named = |e: Error| e.context(path.display());
    let prefix = read_vec(file, path, 0, HEADER_PREFIX as u64)?;
    if prefix.iter().all(|&b| b == 0) {
        return Ok(None);
    }
    let length = u64::from(LogHeader::length(&prefix).map_err(named)?);
    if length > len {
        return Ok(None);
    }
    let bytes = read_vec(file, path, 0, length)?;
    Ok(Some((LogHeader::decode(&bytes).map_err(named)?, length)))
}
