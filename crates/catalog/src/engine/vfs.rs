//! Every page that SQLite reads is compared with its checksum: a layer between SQLite and the system.
//!
//! SQLite reaches files through a table of functions (a VFS). This one passes every call on to the default
//! one, and looks at the pages of the main file and of the write-ahead log on their way:
//!
//! | call | main file | write-ahead log |
//! |---|---|---|
//! | read of a page | ours must hold ([`page::is_whole`]) | SQLite's own must hold ([`page::is_whole_frame`]) |
//! | write of a page | gets its checksum | |
//! | begin and end of copying the log into the file | the note on page 1 ([`Note`]) | |
//! | first read, and first after the log was read anew | the log must not lack what the note says | |
//!
//! What does not hold is `SQLITE_CORRUPT`: the engine is an index, and is made again by who meets that. The
//! index of the log (`-shm`) is memory that processes share, made anew by the first that opens the file.
//!
//! Invariants:
//! * SQLite's own buffers are never changed on a write: the log's checksums were made over them;
//! * a page is judged only where it cannot be in the making: a frame that this connection has written twice
//!   within a transaction has its checksum at the commit, and is believed until then;
//! * the file is not mapped (the table has no `xFetch`) and read by whole pages alone.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::ptr::{self, null_mut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use fieldstone_core::{Error, Result};
use rusqlite::{Connection, ffi};

use super::page::{self, FRAME, FRAME_HEAD, FRAME_HEAD_SUM, LOG_HEAD, LOG_HEAD_SUM, Note, PAGE};

/// The name under which SQLite knows the layer.
pub const NAME: &CStr = c"fieldstone-checked";
/// Asks a file whether it met damage: `xFileControl` with a pointer to an int.
const DAMAGED: c_int = 0x4653_0001;
/// How often a page that does not match is read: who copies the log may be writing its note.
const READS: usize = 4;
/// What SQLite reads of the header without its page: the page's size, and what tells changes.
const HEADER: i64 = 100;
/// Words of the index of the log (`walformat.html`): frames, salts, frames that are being copied.
const SHM_FRAMES: usize = 16;
const SHM_SALTS: usize = 32;
const SHM_COPIED: usize = 128;

/// What is known of copying the log into the file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Copying {
    Not,
    Runs(Note),
    /// It ended; that all went well shows when the file is cut to its length.
    Ended(Note),
}

/// A file as SQLite has it. The default VFS's own file follows in memory.
#[repr(C, align(8))]
struct Checked {
    head: ffi::sqlite3_file,
    /// Of a log: its main file. Null for the main file.
    main: *mut Checked,
    /// The first part of the log's index, where it is mapped.
    shm: *const AtomicU32,
    /// Whether the log must be compared with the note before the next page is believed.
    unproven: bool,
    /// Whether damage was met.
    damaged: bool,
    /// Frames from here on were written twice; their checksums come with the commit.
    stale_from: i64,
    /// The frame whose head was written last, and whose page follows.
    begun: i64,
    copying: Copying,
}

/// No frame.
const NONE: i64 = i64::MAX;

/// Calls a method of an open file of the default VFS; one that it lacks is none that SQLite may call.
macro_rules! pass {
    ($file:expr, $method:ident $(, $argument:expr)*) => {{
        let file: *mut ffi::sqlite3_file = $file;
        match (*(*file).pMethods).$method {
            Some(method) => method(file $(, $argument)*),
            None => ffi::SQLITE_MISUSE,
        }
    }};
}

impl Checked {
    /// The default VFS's file.
    fn inner(&mut self) -> *mut ffi::sqlite3_file {
        ptr::from_mut(self).wrapping_add(1).cast()
    }

    /// Reads from the default VFS's file.
    fn read(&mut self, bytes: &mut [u8], at: i64) -> c_int {
        let inner = self.inner();
        // SAFETY: `inner` is open as long as this is, and the buffer has as many bytes as are asked for.
        unsafe { pass!(inner, xRead, bytes.as_mut_ptr().cast(), bytes.len() as c_int, at) }
    }

    fn write(&mut self, bytes: &[u8], at: i64) -> c_int {
        let inner = self.inner();
        // SAFETY: as for `read`; the call only reads the buffer.
        unsafe { pass!(inner, xWrite, bytes.as_ptr().cast(), bytes.len() as c_int, at) }
    }

    fn damage(&mut self) -> c_int {
        self.damaged = true;
        ffi::SQLITE_CORRUPT
    }

    /// A page of the main file, as it is when it matches its checksum.
    fn page(&mut self, page: &mut [u8; PAGE], number: u32) -> c_int {
        for _ in 0..READS {
            match self.read(page, i64::from(number - 1) * PAGE as i64) {
                ffi::SQLITE_OK if page::is_whole(page, number) => return ffi::SQLITE_OK,
                // A file that ends too early lost pages.
                ffi::SQLITE_OK | ffi::SQLITE_IOERR_SHORT_READ => std::thread::yield_now(),
                code => return code,
            }
        }
        self.damage()
    }

    /// A word of the log's index.
    fn word(&self, at: usize) -> Option<u32> {
        // SAFETY: SQLite's first mapping has 32 KiB, aligned to a page, and stays until `xShmUnmap`, which
        // forgets it here; other processes write to it, so it is read as atomic words.
        (!self.shm.is_null()).then(|| unsafe { (*self.shm.add(at / 4)).load(Ordering::Acquire) })
    }

    fn salts(&self) -> Option<[u8; 8]> {
        let mut salts = [0; 8];
        salts[..4].copy_from_slice(&self.word(SHM_SALTS)?.to_ne_bytes());
        salts[4..].copy_from_slice(&self.word(SHM_SALTS + 4)?.to_ne_bytes());
        Some(salts)
    }

    /// Compares the log with the note, once it can be.
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
            // The note may be of a log that was ended, and begun anew, since it was read.
            std::thread::yield_now();
        }
        self.damage()
    }

    /// Writes the note.
    fn set_note(&mut self, note: Note) {
        let mut page = [0; PAGE];
        if self.page(&mut page, 1) != ffi::SQLITE_OK {
            return;
        }
        page::seal(&mut page, 1, Some(note));
        // A note that cannot be written is as a log that cannot be copied: nothing more may be written.
        self.damaged |= self.write(&page, 0) != ffi::SQLITE_OK;
    }

    fn read_main(&mut self, bytes: &mut [u8], at: i64) -> c_int {
        if at + bytes.len() as i64 <= HEADER {
            return self.read(bytes, at);
        }
        let (Ok(page), Some(number)) = (<&mut [u8; PAGE]>::try_from(bytes), number(at)) else {
            // By a size of pages that is not ours.
            return self.damage();
        };
        match self.prove() {
            ffi::SQLITE_OK => self.page(page, number),
            code => code,
        }
    }

    fn write_main(&mut self, bytes: &[u8], at: i64) -> c_int {
        let (Ok(page), Some(number)) = (<&[u8; PAGE]>::try_from(bytes), number(at)) else {
            return self.damage();
        };
        if self.damaged || number == 1 && !page::has_room(page) {
            return self.damage();
        }
        let mut sealed = *page;
        let note = match self.copying {
            Copying::Runs(note) if number == 1 => Some(note),
            Copying::Runs(_) => None,
            _ if number == 1 => self.noted(),
            _ => None,
        };
        page::seal(&mut sealed, number, note);
        self.write(&sealed, at)
    }

    /// The note that is in the file, where there is a page to hold it.
    fn noted(&mut self) -> Option<Note> {
        let mut old = [0; PAGE];
        let whole = self.read(&mut old, 0) == ffi::SQLITE_OK && page::is_whole(&old, 1);
        page::note(&old).filter(|_| whole)
    }

    fn read_log(&mut self, main: &mut Checked, bytes: &mut [u8], at: i64) -> c_int {
        if at == 0 {
            // The log's index is made anew from what is whole of the log.
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
                ffi::SQLITE_OK | ffi::SQLITE_IOERR_SHORT_READ => std::thread::yield_now(),
                code => return code,
            }
        }
        main.damage()
    }

    fn write_log(&mut self, main: &mut Checked, bytes: &[u8], at: i64) -> c_int {
        if at == 0 {
            main.stale_from = NONE;
        } else if let (Some(frame), FRAME_HEAD) = (frame_of_head(at), bytes.len()) {
            // Checksums are made anew from the first stale frame on.
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

    /// Takes note of what SQLite says of itself.
    fn control(&mut self, op: c_int) {
        match (op, self.copying) {
            (ffi::SQLITE_FCNTL_CKPT_START, _) => {
                self.copying = Copying::Not;
                if let (Some(salts), Some(frames)) = (self.salts(), self.word(SHM_COPIED)) {
                    let note = Note { salts, frames, complete: false };
                    self.copying = Copying::Runs(note);
                    self.set_note(note);
                }
            }
            (ffi::SQLITE_FCNTL_CKPT_DONE, Copying::Runs(note)) => self.copying = Copying::Ended(note),
            _ => {}
        }
    }

    /// The file gets its length: every page was copied.
    fn truncated(&mut self) {
        if let Copying::Ended(note) = self.copying {
            self.copying = Copying::Not;
            self.set_note(Note { complete: true, ..note });
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

/// The file behind SQLite's pointer.
///
/// # Safety
/// `file` is one that `open` made and that is not closed; SQLite uses the files of a connection one call
/// after another, and no call here reaches another one of the same file.
unsafe fn checked<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Checked {
    // SAFETY: `open` has written a `Checked` there.
    unsafe { &mut *file.cast::<Checked>() }
}

/// The main file of a log.
///
/// # Safety
/// As for `checked`; SQLite closes the log before its main file, which is another piece of memory.
unsafe fn main_of<'a>(log: &Checked) -> &'a mut Checked {
    // SAFETY: `open` made sure that it is a main file of ours.
    unsafe { &mut *log.main }
}

/// A buffer of SQLite's.
///
/// # Safety
/// `bytes` has `length` bytes that nobody else uses during the call.
unsafe fn buffer<'a>(bytes: *mut c_void, length: c_int) -> &'a mut [u8] {
    // SAFETY: SQLite gives buffers of the length that it names.
    unsafe { std::slice::from_raw_parts_mut(bytes.cast(), usize::try_from(length).unwrap_or(0)) }
}

type File = *mut ffi::sqlite3_file;

unsafe extern "C" fn close(file: File) -> c_int {
    // SAFETY: SQLite closes an open file, once.
    let code = unsafe { pass!(checked(file).inner(), xClose) };
    // SAFETY: the memory is SQLite's until this call returns.
    unsafe { (*file).pMethods = ptr::null() };
    code
}

unsafe extern "C" fn read_main(file: File, bytes: *mut c_void, length: c_int, at: i64) -> c_int {
    // SAFETY: the contract of `xRead`.
    unsafe { checked(file).read_main(buffer(bytes, length), at) }
}

unsafe extern "C" fn write_main(file: File, bytes: *const c_void, length: c_int, at: i64) -> c_int {
    // SAFETY: the contract of `xWrite`; the buffer is only read.
    unsafe { checked(file).write_main(buffer(bytes.cast_mut(), length), at) }
}

unsafe extern "C" fn read_log(file: File, bytes: *mut c_void, length: c_int, at: i64) -> c_int {
    // SAFETY: the contract of `xRead`; log and main file are two pieces of memory.
    unsafe {
        let log = checked(file);
        let main = main_of(log);
        log.read_log(main, buffer(bytes, length), at)
    }
}

unsafe extern "C" fn write_log(file: File, bytes: *const c_void, length: c_int, at: i64) -> c_int {
    // SAFETY: as for `read_log`; the buffer is only read.
    unsafe {
        let log = checked(file);
        let main = main_of(log);
        log.write_log(main, buffer(bytes.cast_mut(), length), at)
    }
}

unsafe extern "C" fn truncate_main(file: File, size: i64) -> c_int {
    // SAFETY: an open file.
    unsafe {
        checked(file).truncated();
        pass!(checked(file).inner(), xTruncate, size)
    }
}

unsafe extern "C" fn control_main(file: File, op: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: an open file; the argument of `DAMAGED` is a pointer to an int, by `is_damaged`.
    unsafe {
        let this = checked(file);
        if op == DAMAGED {
            *argument.cast::<c_int>() = this.damaged.into();
            return ffi::SQLITE_OK;
        }
        this.control(op);
        pass!(this.inner(), xFileControl, op, argument)
    }
}

unsafe extern "C" fn abilities(file: File) -> c_int {
    // SAFETY: an open file. A part of a page has no checksum.
    unsafe { pass!(checked(file).inner(), xDeviceCharacteristics) & !ffi::SQLITE_IOCAP_SUBPAGE_READ }
}

unsafe extern "C" fn shm_map(
    file: File,
    part: c_int,
    size: c_int,
    extend: c_int,
    at: *mut *mut c_void,
) -> c_int {
    // SAFETY: the contract of `xShmMap`: `at` takes the address of the part, or null.
    unsafe {
        let this = checked(file);
        let code = pass!(this.inner(), xShmMap, part, size, extend, at);
        if part == 0 {
            this.shm = if code == ffi::SQLITE_OK { (*at).cast() } else { ptr::null() };
        }
        code
    }
}

unsafe extern "C" fn shm_lock(file: File, offset: c_int, count: c_int, flags: c_int) -> c_int {
    // SAFETY: an open file.
    unsafe {
        let this = checked(file);
        if offset == 0 && flags == ffi::SQLITE_SHM_UNLOCK | ffi::SQLITE_SHM_EXCLUSIVE {
            // The end of a write: what it wrote twice has its checksums, or is gone.
            this.stale_from = NONE;
        }
        pass!(this.inner(), xShmLock, offset, count, flags)
    }
}

unsafe extern "C" fn shm_barrier(file: File) {
    // SAFETY: an open file.
    unsafe {
        let inner = checked(file).inner();
        if let Some(barrier) = (*(*inner).pMethods).xShmBarrier {
            barrier(inner);
        }
    }
}

unsafe extern "C" fn shm_unmap(file: File, delete: c_int) -> c_int {
    // SAFETY: an open file.
    unsafe {
        let this = checked(file);
        this.shm = ptr::null();
        pass!(this.inner(), xShmUnmap, delete)
    }
}

/// Methods that are passed on as they are.
macro_rules! passed_on {
    ($($name:ident = $method:ident($($argument:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(file: File $(, $argument: $type)*) -> c_int {
            // SAFETY: an open file, and SQLite's own arguments.
            unsafe { pass!(checked(file).inner(), $method $(, $argument)*) }
        }
    )*};
}

passed_on! {
    truncate = xTruncate(size: i64);
    sync = xSync(flags: c_int);
    file_size = xFileSize(size: *mut i64);
    lock = xLock(level: c_int);
    unlock = xUnlock(level: c_int);
    check_reserved = xCheckReservedLock(found: *mut c_int);
    control = xFileControl(op: c_int, argument: *mut c_void);
    sector_size = xSectorSize();
}

const LOG: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 1,
    xClose: Some(close),
    xRead: Some(read_log),
    xWrite: Some(write_log),
    xTruncate: Some(truncate),
    xSync: Some(sync),
    xFileSize: Some(file_size),
    xLock: Some(lock),
    xUnlock: Some(unlock),
    xCheckReservedLock: Some(check_reserved),
    xFileControl: Some(control),
    xSectorSize: Some(sector_size),
    xDeviceCharacteristics: Some(abilities),
    xShmMap: None,
    xShmLock: None,
    xShmBarrier: None,
    xShmUnmap: None,
    xFetch: None,
    xUnfetch: None,
};

static LOG_METHODS: ffi::sqlite3_io_methods = LOG;
static MAIN_METHODS: ffi::sqlite3_io_methods = ffi::sqlite3_io_methods {
    iVersion: 2,
    xRead: Some(read_main),
    xWrite: Some(write_main),
    xTruncate: Some(truncate_main),
    xFileControl: Some(control_main),
    xShmMap: Some(shm_map),
    xShmLock: Some(shm_lock),
    xShmBarrier: Some(shm_barrier),
    xShmUnmap: Some(shm_unmap),
    ..LOG
};

type Vfs = *mut ffi::sqlite3_vfs;

/// The VFS below.
///
/// # Safety
/// `vfs` is the one that `register` made.
unsafe fn below(vfs: Vfs) -> Vfs {
    // SAFETY: `register` keeps the default VFS there; both are never freed.
    unsafe { (*vfs).pAppData.cast() }
}

unsafe extern "C" fn open(
    vfs: Vfs,
    name: ffi::sqlite3_filename,
    file: File,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    // SAFETY: the contract of `xOpen`: `file` has the room that `szOsFile` asks for, aligned to 8 bytes, and
    // a log's name leads to its main file, which is open and stays so longer than the log.
    unsafe {
        let below = below(vfs);
        let Some(open) = (*below).xOpen else { return ffi::SQLITE_MISUSE };
        let mut main: *mut Checked = null_mut();
        if flags & ffi::SQLITE_OPEN_WAL != 0 && !name.is_null() {
            let of_log = ffi::sqlite3_database_file_object(name);
            if !of_log.is_null() && ptr::eq((*of_log).pMethods, &MAIN_METHODS) {
                main = of_log.cast();
            }
        }
        if main.is_null() && flags & ffi::SQLITE_OPEN_MAIN_DB == 0 {
            return open(below, name, file, flags, out);
        }
        let this = Checked {
            head: ffi::sqlite3_file { pMethods: ptr::null() },
            main,
            shm: ptr::null(),
            unproven: true,
            damaged: false,
            stale_from: NONE,
            begun: NONE,
            copying: Copying::Not,
        };
        ptr::write(file.cast(), this);
        let inner = checked(file).inner();
        (*inner).pMethods = ptr::null();
        let code = open(below, name, inner, flags, out);
        // One that failed may still have to be closed.
        if !(*inner).pMethods.is_null() {
            (*file).pMethods = if main.is_null() { &MAIN_METHODS } else { &LOG_METHODS };
        }
        code
    }
}

/// Functions of the VFS that are passed on as they are.
macro_rules! vfs_passed_on {
    ($($name:ident = $method:ident($($argument:ident: $type:ty),*) -> $result:ty, else $absent:expr;)*) => {$(
        unsafe extern "C" fn $name(vfs: Vfs $(, $argument: $type)*) -> $result {
            // SAFETY: our VFS, and SQLite's own arguments.
            unsafe {
                let below = below(vfs);
                match (*below).$method {
                    Some(method) => method(below $(, $argument)*),
                    None => $absent,
                }
            }
        }
    )*};
}

vfs_passed_on! {
    delete = xDelete(name: *const c_char, sync: c_int) -> c_int, else ffi::SQLITE_MISUSE;
    access = xAccess(name: *const c_char, flags: c_int, out: *mut c_int) -> c_int, else ffi::SQLITE_MISUSE;
    full_name = xFullPathname(name: *const c_char, size: c_int, out: *mut c_char) -> c_int,
        else ffi::SQLITE_MISUSE;
    load = xDlOpen(name: *const c_char) -> *mut c_void, else null_mut();
    load_error = xDlError(size: c_int, out: *mut c_char) -> (), else ();
    unload = xDlClose(library: *mut c_void) -> (), else ();
    randomness = xRandomness(size: c_int, out: *mut c_char) -> c_int, else 0;
    sleep = xSleep(microseconds: c_int) -> c_int, else 0;
    time = xCurrentTime(out: *mut f64) -> c_int, else ffi::SQLITE_MISUSE;
    last_error = xGetLastError(size: c_int, out: *mut c_char) -> c_int, else 0;
    time_in_milliseconds = xCurrentTimeInt64(out: *mut i64) -> c_int, else ffi::SQLITE_MISUSE;
}

/// A symbol of a library that was loaded.
unsafe extern "C" fn symbol(
    vfs: Vfs,
    library: *mut c_void,
    name: *const c_char,
) -> Option<unsafe extern "C" fn(Vfs, *mut c_void, *const c_char)> {
    // SAFETY: our VFS, and SQLite's own arguments.
    unsafe { (*below(vfs)).xDlSym.and_then(|find| find(below(vfs), library, name)) }
}

fn make() -> c_int {
    // SAFETY: the default VFS stays as long as the process. What is registered is never freed or changed,
    // and its functions keep the contracts of SQLite's.
    unsafe {
        let below = ffi::sqlite3_vfs_find(ptr::null());
        if below.is_null() {
            return ffi::SQLITE_MISUSE;
        }
        let vfs = ffi::sqlite3_vfs {
            iVersion: 2.min((*below).iVersion),
            szOsFile: (*below).szOsFile.saturating_add(size_of::<Checked>() as c_int),
            mxPathname: (*below).mxPathname,
            pNext: null_mut(),
            zName: NAME.as_ptr(),
            pAppData: below.cast(),
            xOpen: Some(open),
            xDelete: Some(delete),
            xAccess: Some(access),
            xFullPathname: Some(full_name),
            xDlOpen: Some(load),
            xDlError: Some(load_error),
            xDlSym: Some(symbol),
            xDlClose: Some(unload),
            xRandomness: Some(randomness),
            xSleep: Some(sleep),
            xCurrentTime: Some(time),
            xGetLastError: Some(last_error),
            xCurrentTimeInt64: Some(time_in_milliseconds),
            xSetSystemCall: None,
            xGetSystemCall: None,
            xNextSystemCall: None,
        };
        ffi::sqlite3_vfs_register(Box::into_raw(Box::new(vfs)), 0)
    }
}

/// Makes SQLite know the layer; once a process.
pub fn register() -> Result<()> {
    static DONE: OnceLock<c_int> = OnceLock::new();
    match *DONE.get_or_init(make) {
        ffi::SQLITE_OK => Ok(()),
        code => Err(Error::internal(format!("SQLite takes no layer below it: code {code}"))),
    }
}

/// Asks SQLite to leave the end of each page alone, in a file that is still empty.
pub fn reserve(connection: &Connection) {
    let mut bytes = page::RESERVED as c_int;
    control_of(connection, ffi::SQLITE_FCNTL_RESERVE_BYTES, &mut bytes);
}

/// Whether damage was met, perhaps by what has no answer: copying the log into the file.
pub fn is_damaged(connection: &Connection) -> bool {
    let mut damaged = 0;
    control_of(connection, DAMAGED, &mut damaged);
    damaged != 0
}

fn control_of(connection: &Connection, op: c_int, value: &mut c_int) {
    // SAFETY: the connection is open, and both calls take a pointer to an int. A database in memory knows
    // none of them, and says so by a code.
    let code = unsafe {
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), op, ptr::from_mut(value).cast())
    };
    debug_assert!(matches!(code, ffi::SQLITE_OK | ffi::SQLITE_NOTFOUND), "file control {op}: {code}");
}
