//! A file of SQLite whose pages are compared with their checksums: the checks behind [`vfs`](super::vfs).
//!
//! | call | main file | write-ahead log |
//! |---|---|---|
//! | read of a page | ours must hold ([`page::is_whole`]) | SQLite's own must hold ([`page::is_whole_frame`]) |
//! | write of a page | gets its checksum | |
//! | begin and end of copying the log into the file | the note on page 1 ([`Note`]) | |
//! | first read, and first read after the log was restarted | the log must not lack what the note says | |
//!
//! Invariants:
//! * a write never changes SQLite's own buffers: the log's checksums were made over them;
//! * a page is checked only if it cannot be in the middle of a write: a frame that this connection has
//!   written twice in a transaction gets its checksum at the commit, and is trusted until then;
//! * SQLite reads the file in whole pages, except for its header before the first page.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use fieldstone_core::sync::thread;

use rusqlite::ffi;

use super::page::{self, FRAME, FRAME_HEAD, FRAME_HEAD_SUM, LOG_HEAD, LOG_HEAD_SUM, Note, PAGE};

/// How often a page is read again if its checksum does not match: a process that copies the log may be
/// writing its note.
const READS: usize = 4;
/// The part of the header that SQLite reads without its page: the page size, and the counter of changes.
const HEADER: i64 = 100;
/// Words of the index of the log (`walformat.html`): frames, salts, frames that are being copied.
const SHM_FRAMES: usize = 16;
const SHM_SALTS: usize = 32;
const SHM_COPIED: usize = 128;

/// The state of copying the log into the file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Copying {
    Not,
    Runs(Note),
    /// It ended; SQLite shows that all went well when it cuts the file to its length.
    Ended(Note),
    /// The note could not be written, with this error code: nothing may be copied.
    Refused(c_int),
}

/// A file as SQLite holds it.
#[repr(C, align(8))]
pub struct Checked {
    /// SQLite's part of it.
    pub head: ffi::sqlite3_file,
    /// The default VFS's own part, which follows in memory.
    pub inner: *mut ffi::sqlite3_file,
    /// Of a log: its main file. Null for a main file.
    pub main: *mut Checked,
    /// The first part of the log's index, if it is mapped.
    pub shm: *const AtomicU32,
    /// Whether the log must be compared with the note before the next page is trusted.
    unproven: bool,
    /// Whether damage was found.
    pub damaged: bool,
    /// Frames from here on were written twice; the commit writes their checksums.
    pub stale_from: i64,
    /// The frame whose head was written last; its page follows.
    begun: i64,
    copying: Copying,
}

/// No frame.
pub const NONE: i64 = i64::MAX;

/// Calls a method of an open file of the default VFS. SQLite does not call a method that the file lacks.
macro_rules! pass {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        let file: *mut ffi::sqlite3_file = $file;
        match (*(*file).pMethods).$method {
            Some(method) => method(file $(, $argument)*),
            None => ffi::SQLITE_MISUSE,
        }
    }};
}
pub(super) use pass;

impl Checked {
    /// A file before it is open: over one of the default VFS and, for a log, with its main file.
    pub fn closed(inner: *mut ffi::sqlite3_file, main: *mut Checked) -> Checked {
        Checked {
            head: ffi::sqlite3_file { pMethods: ptr::null() },
            inner,
            main,
            shm: ptr::null(),
            unproven: true,
            damaged: false,
            stale_from: NONE,
            begun: NONE,
            copying: Copying::Not,
        }
    }

    /// Reads from the default VFS's file.
    fn read(&mut self, bytes: &mut [u8], at: i64) -> c_int {
        let inner = self.inner;
        // SAFETY: `inner` is open as long as this is, and the buffer has as many bytes as the call asks for.
        unsafe { pass!(inner, xRead, bytes.as_mut_ptr().cast(), bytes.len() as c_int, at) }
    }

    fn write(&mut self, bytes: &[u8], at: i64) -> c_int {
        let inner = self.inner;
        // SAFETY: as for `read`; the call only reads the buffer.
        unsafe { pass!(inner, xWrite, bytes.as_ptr().cast(), bytes.len() as c_int, at) }
    }

    fn damage(&mut self) -> c_int {
        self.damaged = true;
        ffi::SQLITE_CORRUPT
    }

    /// Reads a page of the main file until it matches its checksum.
    fn page(&mut self, page: &mut [u8; PAGE], number: u32) -> c_int {
        for _ in 0..READS {
            match self.read(page, i64::from(number - 1) * PAGE as i64) {
                ffi::SQLITE_OK if page::is_whole(page, number) => return ffi::SQLITE_OK,
                // A file that ends too early has lost pages.
                ffi::SQLITE_OK | ffi::SQLITE_IOERR_SHORT_READ => thread::yield_now(),
                code => return code,
            }
        }
        self.damage()
    }

    /// A word of the log's index.
    fn word(&self, at: usize) -> Option<u32> {
        // SAFETY: SQLite's first mapping has 32 KiB, aligned to a page, and stays until `xShmUnmap`, which
        // clears it here. Other processes write to it, so it is read as atomic words.
        (!self.shm.is_null()).then(|| unsafe { (*self.shm.add(at / 4)).load(Ordering::Acquire) })
    }

    fn salts(&self) -> Option<[u8; 8]> {
        let mut salts = [0; 8];
        salts[..4].copy_from_slice(&self.word(SHM_SALTS)?.to_ne_bytes());
        salts[4..].copy_from_slice(&self.word(SHM_SALTS + 4)?.to_ne_bytes());
        Some(salts)
    }

    /// Compares the log with the note, once that is possible.
    fn prove(&mut self) -> c_int {
        if !self.unproven || self.shm.is_null() {
            return ffi::SQLITE_OK;
        }
        let mut page = [0; PAGE];
        for _ in 0..READS {
            let code = self.page(&mut page, 1);
            if code != ffi::SQLITE_OK {
                return code;
            }
            let note = page::note(&page);
            let (Some(salts), Some(frames)) = (self.salts(), self.word(SHM_FRAMES)) else { break };
            if note.is_none_or(|note| !note.lacks(salts, frames)) {
                self.unproven = false;
                return ffi::SQLITE_OK;
            }
            // The note may describe a log that was restarted since it was read.
            thread::yield_now();
        }
        self.damage()
    }

    /// Writes the note.
    fn set_note(&mut self, note: Note) -> c_int {
        let mut page = [0; PAGE];
        match self.page(&mut page, 1) {
            ffi::SQLITE_OK => {
                page::seal(&mut page, 1, Some(note));
                self.write(&page, 0)
            }
            code => code,
        }
    }

    /// SQLite reads from the main file.
    pub fn read_main(&mut self, bytes: &mut [u8], at: i64) -> c_int {
        if at + bytes.len() as i64 <= HEADER {
            return self.read(bytes, at);
        }
        let (Ok(page), Some(number)) = (<&mut [u8; PAGE]>::try_from(bytes), number(at)) else {
            // The page size is not ours.
            return self.damage();
        };
        match self.prove() {
            ffi::SQLITE_OK => self.page(page, number),
            code => code,
        }
    }

    /// SQLite writes to the main file.
    pub fn write_main(&mut self, bytes: &[u8], at: i64) -> c_int {
        let (Ok(page), Some(number)) = (<&[u8; PAGE]>::try_from(bytes), number(at)) else {
            return self.damage();
        };
        if self.damaged || number == 1 && !page::has_room(page) {
            return self.damage();
        }
        let mut sealed = *page;
        let note = match self.copying {
            Copying::Refused(code) => return code,
            Copying::Runs(note) => Some(note).filter(|_| number == 1),
            _ if number == 1 => self.noted(),
            _ => None,
        };
        page::seal(&mut sealed, number, note);
        self.write(&sealed, at)
    }

    /// The note in the file, if the file has a page that holds it.
    fn noted(&mut self) -> Option<Note> {
        let mut old = [0; PAGE];
        let whole = self.read(&mut old, 0) == ffi::SQLITE_OK && page::is_whole(&old, 1);
        page::note(&old).filter(|_| whole)
    }

    /// SQLite reads from the log.
    pub fn read_log(&mut self, main: &mut Checked, bytes: &mut [u8], at: i64) -> c_int {
        if at == 0 {
            // SQLite rebuilds the log's index from the intact part of the log.
            main.unproven = true;
        }
        let Some(frame) = frame_of_page(at).filter(|_| bytes.len() == PAGE) else {
            return self.read(bytes, at);
        };
        let proven = main.prove();
        if proven != ffi::SQLITE_OK {
            return proven;
        }
        if frame >= main.stale_from {
            return self.read(bytes, at);
        }
        let mut whole = [0; FRAME];
        let mut before = [0; 8];
        let sum_before = match frame {
            0 => LOG_HEAD_SUM as i64,
            _ => at - (FRAME_HEAD + FRAME) as i64 + FRAME_HEAD_SUM as i64,
        };
        for _ in 0..READS {
            let read = match self.read(&mut before, sum_before) {
                ffi::SQLITE_OK => self.read(&mut whole, at - FRAME_HEAD as i64),
                code => code,
            };
            match read {
                ffi::SQLITE_OK if page::is_whole_frame(before, &whole) => {
                    bytes.copy_from_slice(&whole[FRAME_HEAD..]);
                    return ffi::SQLITE_OK;
                }
                ffi::SQLITE_OK | ffi::SQLITE_IOERR_SHORT_READ => thread::yield_now(),
                code => return code,
            }
        }
        main.damage()
    }

    /// SQLite writes to the log.
    pub fn write_log(&mut self, main: &mut Checked, bytes: &[u8], at: i64) -> c_int {
        if at == 0 {
            main.stale_from = NONE;
        } else if let (Some(frame), FRAME_HEAD) = (frame_of_head(at), bytes.len()) {
            // SQLite writes checksums again from the first stale frame on.
            main.stale_from += i64::from(frame == main.stale_from);
            main.begun = frame;
        } else if let (Some(frame), PAGE) = (frame_of_page(at), bytes.len()) {
            if main.begun != frame {
                main.stale_from = main.stale_from.min(frame);
            }
            main.begun = NONE;
        }
        self.write(bytes, at)
    }

    /// Observes the state that SQLite reports about itself.
    pub fn control(&mut self, op: c_int) {
        match (op, self.copying) {
            (ffi::SQLITE_FCNTL_CKPT_START, _) => {
                self.copying = Copying::Not;
                if let (Some(salts), Some(frames)) = (self.salts(), self.word(SHM_COPIED)) {
                    let note = Note { salts, frames, complete: false };
                    self.copying = match self.set_note(note) {
                        ffi::SQLITE_OK => Copying::Runs(note),
                        code => Copying::Refused(code),
                    };
                }
            }
            (ffi::SQLITE_FCNTL_CKPT_DONE, Copying::Runs(note)) => self.copying = Copying::Ended(note),
            (ffi::SQLITE_FCNTL_CKPT_DONE, _) => self.copying = Copying::Not,
            _ => {}
        }
    }

    /// SQLite cuts the file to its length: every page was copied.
    pub fn truncated(&mut self) {
        if let Copying::Ended(note) = self.copying {
            self.copying = Copying::Not;
            // Without it the file counts as one that needs its log, which is true as well.
            let _ = self.set_note(Note { complete: true, ..note });
        }
    }
}

/// The number of the page at an offset of the main file.
fn number(at: i64) -> Option<u32> {
    (at >= 0 && at % PAGE as i64 == 0).then(|| u32::try_from(at / PAGE as i64 + 1).ok()).flatten()
}

fn frame_of_head(at: i64) -> Option<i64> {
    let behind = at - LOG_HEAD as i64;
    (behind >= 0 && behind % FRAME as i64 == 0).then_some(behind / FRAME as i64)
}

fn frame_of_page(at: i64) -> Option<i64> {
    frame_of_head(at - FRAME_HEAD as i64)
}
