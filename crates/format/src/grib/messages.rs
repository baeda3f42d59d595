//! The messages of a file or of bytes in memory, one after another.
//!
//! A message begins with `GRIB` and an edition of 1 or 2, has its own length and ends in `7777`. Bytes
//! between messages (bulletin headers, padding) are skipped silently. Bytes that begin like a message but are
//! not one are reported with their offset, and the search continues after their first four bytes.
//!
//! Invariants: messages do not overlap and come in the order of the stream; the sections of a returned
//! message add up to its length, so that no later reader runs past its end.

use fieldstone_core::Result;

use super::{length, number};

/// Most bytes that one search for the beginning of a message reads at a time.
const CHUNK: usize = 1 << 20;
/// The first search is short: messages usually follow one another.
const FIRST_LOOK: usize = 64;
const END: &[u8] = b"7777";
/// GRIB1 lengths above this count in units of 120 bytes.
const LARGE: usize = 0x7F_FFFF;

/// A source of bytes.
pub trait Source {
    /// Number of bytes.
    fn size(&self) -> u64;
    /// The `len` bytes at `at`, from the source itself or read into `buffer`. Callers stay inside the size.
    fn view<'a>(&'a self, at: u64, len: usize, buffer: &'a mut Vec<u8>) -> Result<&'a [u8]>;
}

impl Source for [u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn view<'a>(&'a self, at: u64, len: usize, _: &'a mut Vec<u8>) -> Result<&'a [u8]> {
        let range = usize::try_from(at).ok().and_then(|at| Some(at..at.checked_add(len)?));
        let bytes = range.and_then(|range| self.get(range));
        bytes.ok_or_else(|| fieldstone_core::Error::internal(format!("no {len} bytes at {at}")))
    }
}

/// A stretch of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Stretch<'a> {
    /// A message whose sections add up.
    Message {
        /// Offset of its first byte.
        offset: u64,
        /// Its bytes, from `GRIB` to `7777`.
        bytes: &'a [u8],
    },
    /// Bytes that begin like a message but are not one.
    Damaged {
        /// Offset of the first byte.
        offset: u64,
        /// Description of the defect.
        why: String,
    },
}

/// A position in a stream of messages.
#[derive(Debug, Clone, Default)]
pub struct Messages {
    position: u64,
}

impl Messages {
    /// Starts at the beginning.
    pub fn new() -> Messages {
        Messages::default()
    }

    /// Number of bytes done.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next message or damage; `None` at the end. If the source is a file, `buffer` holds the message.
    pub fn next<'a, S: Source + ?Sized>(
        &mut self,
        source: &'a S,
        buffer: &'a mut Vec<u8>,
    ) -> Result<Option<Stretch<'a>>> {
        let Some(offset) = find(source, self.position, buffer)? else {
            self.position = source.size();
            return Ok(None);
        };
        let whole = match length_at(source, offset, buffer)? {
            Ok(len) => ends_well(source, offset, len, buffer)?,
            Err(why) => Err(why),
        };
        self.position = offset + 4;
        let len = match whole {
            Ok(len) => len,
            Err(why) => return Ok(Some(Stretch::Damaged { offset, why })),
        };
        let bytes = source.view(offset, len, buffer)?;
        Ok(Some(match bad_sections(bytes) {
            Some(at) => {
                Stretch::Damaged { offset, why: format!("its sections do not add up at byte {at} of it") }
            }
            None => {
                self.position = offset + len as u64;
                Stretch::Message { offset, bytes }
            }
        }))
    }
}

/// Offset of the next `GRIB` with a known edition, at or after `from`.
fn find<S: Source + ?Sized>(source: &S, from: u64, buffer: &mut Vec<u8>) -> Result<Option<u64>> {
    let (mut at, mut look) = (from, FIRST_LOOK);
    loop {
        let left = source.size().saturating_sub(at);
        if left < 8 {
            return Ok(None);
        }
        let len = usize::try_from(left).map_or(look, |left| left.min(look));
        let bytes = source.view(at, len, buffer)?;
        let begins = |w: &[u8]| w.starts_with(b"GRIB") && matches!(w[7], 1 | 2);
        if let Some(place) = bytes.windows(8).position(begins) {
            return Ok(Some(at + place as u64));
        }
        at += (len - 7) as u64;
        look = CHUNK;
    }
}

/// Length of the message at `start`, or the reason why there is none.
fn length_at<S: Source + ?Sized>(
    source: &S,
    start: u64,
    buffer: &mut Vec<u8>,
) -> Result<std::result::Result<u64, String>> {
    let left = source.size() - start;
    let head = source.view(start, left.min(16) as usize, buffer)?;
    let len = if head.get(7) == Some(&2) {
        match number(head, 8, 8) {
            Some(len) => len,
            None => return Ok(Err("cut short".to_owned())),
        }
    } else {
        match number(head, 4, 3).unwrap_or(0) {
            coded if coded & 0x80_0000 == 0 => coded,
            coded => large_grib1(source, start, coded, buffer)?,
        }
    };
    Ok(match len {
        0..12 => Err(format!("its length of {len} bytes is impossible")),
        _ if len > left => Err(format!("cut short: {len} bytes long, {left} left in the file")),
        _ => Ok(len),
    })
}

/// Length of a GRIB1 message above 8 MB: ECMWF counts it in units of 120 bytes. Section 4 then holds the
/// correction in its own length: the true total is 120 * units - that length + 4, as in eccodes.
fn large_grib1<S: Source + ?Sized>(source: &S, start: u64, coded: u64, buffer: &mut Vec<u8>) -> Result<u64> {
    let total = (coded & 0x7F_FFFF) * 120;
    let mut at = start + 8;
    let mut short = |at: u64, n: usize| -> Result<Option<Vec<u8>>> {
        match at.checked_add(n as u64) {
            Some(end) if end <= source.size() => source.view(at, n, buffer).map(|b| Some(b.to_vec())),
            _ => Ok(None),
        }
    };
    let Some(section1) = short(at, 8)? else { return Ok(coded & 0x7F_FFFF) };
    at += number(&section1, 0, 3).unwrap_or(0);
    for flag in [0x80, 0x40] {
        if section1.get(7).is_some_and(|flags| flags & flag != 0) {
            let Some(section) = short(at, 3)? else { return Ok(total) };
            at += number(&section, 0, 3).unwrap_or(0);
        }
    }
    let Some(section4) = short(at, 3)? else { return Ok(total) };
    Ok(match number(&section4, 0, 3).unwrap_or(0) {
        correction @ 0..120 => (total + 4).saturating_sub(correction),
        _ => coded,
    })
}

/// The length as a size in memory, if the message ends in `7777`.
fn ends_well<S: Source + ?Sized>(
    source: &S,
    start: u64,
    len: u64,
    buffer: &mut Vec<u8>,
) -> Result<std::result::Result<usize, String>> {
    let end = source.view(start + len - END.len() as u64, END.len(), buffer)?;
    Ok(match usize::try_from(len) {
        Ok(len) if end == END => Ok(len),
        _ => Err(format!("its length of {len} bytes does not end in 7777")),
    })
}

/// The offset at which the sections of a message stop adding up. Libraries may crash on lengths that lead out
/// of the message.
fn bad_sections(message: &[u8]) -> Option<usize> {
    let end = message.len().saturating_sub(END.len());
    if message.get(7) == Some(&2) {
        let mut at = 16;
        while at < end {
            let number = message.get(at + 4).copied();
            match length(message, at, 4).and_then(|len| at.checked_add(len).filter(|_| len >= 5)) {
                Some(next) if next <= end && number.is_some_and(|n| (1..=7).contains(&n)) => at = next,
                _ => return Some(at),
            }
        }
        return None;
    }
    let mut at = 8 + length(message, 8, 3).unwrap_or(0);
    let flags = message.get(15).copied().unwrap_or(0);
    for flag in [0x80, 0x40, 0] {
        let Some(len) = length(message, at, 3).filter(|_| at + 3 <= end) else { return Some(at) };
        if flag == 0 {
            // Above 8 MB the length of section 4 is a correction, not a length.
            return (message.len() <= LARGE && at + len > end).then_some(at);
        }
        if flags & flag != 0 {
            at += len;
        }
    }
    None
}
