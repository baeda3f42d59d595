//! Checksums of SQLite's pages: ours in the main file, SQLite's own in the write-ahead log.
//!
//! A page of the main file ends in 16 bytes that SQLite leaves alone on request:
//!
//! ```text
//! 0   8  salts of the write-ahead log that was copied into the file last   only on page 1, else 0
//! 8   4  frames of it that may be in the file, little-endian; the highest   only on page 1, else 0
//!        bit: all of them are
//! 12  4  CRC-32C of the page without these 4 bytes, then its number, little-endian
//! ```
//!
//! The *note* on page 1 closes a gap of SQLite: its checksums end a log at the first damaged frame, so older
//! pages from the log would be combined with newer ones from the file. The note reveals such a log, because
//! it ends before the frames that the file already holds.
//!
//! A frame of the log is 24 bytes and a page; its checksum continues that of the frame before.

use fieldstone_format::{crc, crc_append};

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// Bytes at the end of a page that hold our note and checksum.
pub const RESERVED: usize = 16;
/// Bytes of the head of the write-ahead log, and the place of its checksum.
pub const LOG_HEAD: usize = 32;
pub const LOG_HEAD_SUM: usize = 24;
/// Bytes of the head of a frame, and the place of its checksum.
pub const FRAME_HEAD: usize = 24;
pub const FRAME_HEAD_SUM: usize = 16;
/// Bytes of a frame.
pub const FRAME: usize = FRAME_HEAD + PAGE;

/// The end of a page's own bytes, where our bytes begin.
const NOTE: usize = PAGE - RESERVED;
const SUM: usize = PAGE - 4;
const COMPLETE: u32 = 1 << 31;

/// The part of a write-ahead log that may be in the main file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    /// Distinguishes this log from the one before.
    pub salts: [u8; 8],
    /// This many of its first frames.
    pub frames: u32,
    /// Whether all of them are there, so that the file is complete without the log.
    pub complete: bool,
}

impl Note {
    /// Whether a log that now has this many frames is too short for the file.
    pub fn lacks(&self, salts: [u8; 8], frames: u32) -> bool {
        if salts != self.salts {
            return !self.complete;
        }
        frames < self.frames && !(frames == 0 && self.complete)
    }
}

/// The checksum of a page with its number, from 1.
fn sum(page: &[u8; PAGE], number: u32) -> u32 {
    crc_append(crc(&page[..SUM]), &number.to_le_bytes())
}

/// Writes a page's note and checksum at its end.
pub fn seal(page: &mut [u8; PAGE], number: u32, note: Option<Note>) {
    page[NOTE..SUM].fill(0);
    if let Some(note) = note {
        let complete = if note.complete { COMPLETE } else { 0 };
        page[NOTE..NOTE + 8].copy_from_slice(&note.salts);
        page[NOTE + 8..SUM].copy_from_slice(&(note.frames & !COMPLETE | complete).to_le_bytes());
    }
    let sum = sum(page, number);
    page[SUM..].copy_from_slice(&sum.to_le_bytes());
}

/// Whether a page is intact.
pub fn is_whole(page: &[u8; PAGE], number: u32) -> bool {
    page[SUM..] == sum(page, number).to_le_bytes()
}

/// The note on page 1.
pub fn note(page: &[u8; PAGE]) -> Option<Note> {
    let mut salts = [0; 8];
    salts.copy_from_slice(&page[NOTE..NOTE + 8]);
    let mut frames = [0; 4];
    frames.copy_from_slice(&page[NOTE + 8..SUM]);
    let frames = u32::from_le_bytes(frames);
    let note = Note { salts, frames: frames & !COMPLETE, complete: frames & COMPLETE != 0 };
    (note != Note { salts: [0; 8], frames: 0, complete: false }).then_some(note)
}

/// Whether a file's first page leaves room for checksums.
pub fn has_room(page: &[u8]) -> bool {
    page.get(20).is_some_and(|reserved| usize::from(*reserved) == RESERVED)
}

/// Whether a frame is intact; `before` is the checksum of the frame before, or of the log's head.
pub fn is_whole_frame(before: [u8; 8], frame: &[u8; FRAME]) -> bool {
    let expected = &frame[FRAME_HEAD_SUM..FRAME_HEAD];
    // The machine that made the log chose the byte order of the words: nearly always this one's.
    frame_sum(before, frame, u32::from_ne_bytes) == *expected
        || frame_sum(before, frame, |word| u32::from_ne_bytes(word).swap_bytes()) == *expected
}

/// SQLite's checksum of a frame: of the first 8 bytes of its head, and of its page.
fn frame_sum(before: [u8; 8], frame: &[u8; FRAME], word: impl Fn([u8; 4]) -> u32) -> [u8; 8] {
    let [a, b, c, d, e, f, g, h] = before;
    let mut sums = (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]));
    let mut add = |bytes: &[u8]| {
        let (pairs, _) = bytes.as_chunks::<8>();
        for &[a, b, c, d, e, f, g, h] in pairs {
            sums.0 = sums.0.wrapping_add(word([a, b, c, d])).wrapping_add(sums.1);
            sums.1 = sums.1.wrapping_add(word([e, f, g, h])).wrapping_add(sums.0);
        }
    };
    add(&frame[..8]);
    add(&frame[FRAME_HEAD..]);
    let mut sum = [0; 8];
    sum[..4].copy_from_slice(&sums.0.to_be_bytes());
    sum[4..].copy_from_slice(&sums.1.to_be_bytes());
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> [u8; PAGE] {
        let mut page = [0; PAGE];
        page.iter_mut().enumerate().for_each(|(i, byte)| *byte = (i * 31 % 251) as u8);
        page
    }

    #[test]
    fn every_changed_bit_of_a_page_is_noticed() {
        let note_of_it = Some(Note { salts: *b"saltsalt", frames: 7, complete: true });
        for (number, said) in [(1, note_of_it), (1, None), (9, None)] {
            let mut page = page();
            seal(&mut page, number, said);
            assert!(is_whole(&page, number) && note(&page) == said);
            assert!(!is_whole(&page, number + 1), "the page of another place");
            for bit in 0..PAGE * 8 {
                page[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_whole(&page, number), "bit {bit}");
                page[bit / 8] ^= 1 << (bit % 8);
            }
        }
        assert!(!is_whole(&[0; PAGE], 1) && !is_whole(&[0; PAGE], 2), "a page of zeros is not valid");
    }

    #[test]
    fn every_changed_bit_of_a_frame_is_noticed() {
        let mut frame = [0; FRAME];
        frame[..4].copy_from_slice(&3_u32.to_be_bytes());
        frame[FRAME_HEAD..].copy_from_slice(&page());
        let before = *b"\x01\x02\x03\x04\xf1\xf2\xf3\xf4";
        for word in [u32::from_le_bytes, u32::from_be_bytes] {
            let sum = frame_sum(before, &frame, word);
            frame[FRAME_HEAD_SUM..FRAME_HEAD].copy_from_slice(&sum);
            assert!(is_whole_frame(before, &frame));
            for bit in (0..FRAME * 8).filter(|bit| !(64..128).contains(bit)) {
                frame[bit / 8] ^= 1 << (bit % 8);
                assert!(!is_whole_frame(before, &frame), "bit {bit}");
                frame[bit / 8] ^= 1 << (bit % 8);
            }
        }
    }

    #[test]
    fn a_log_that_is_too_short_for_the_file_is_known() {
        let note = |frames, complete| Note { salts: [1; 8], frames, complete };
        let (same, other) = ([1; 8], [2; 8]);
        assert!(!note(5, false).lacks(same, 5) && !note(5, true).lacks(same, 9));
        assert!(note(5, false).lacks(same, 4) && note(5, true).lacks(same, 4));
        assert!(note(5, false).lacks(same, 0) && note(5, false).lacks(other, 9));
        assert!(!note(5, true).lacks(same, 0) && !note(5, true).lacks(other, 0));
    }
}
