//! A layer between SQLite and the system that compares every page that SQLite reads with its checksum
//! ([`checked`](super::checked)).
//!
//! SQLite reaches files through a table of functions (a VFS). This VFS passes every call on to the default
//! one, and checks the pages of the main file and of the write-ahead log on their way. A mismatch is
//! `SQLITE_CORRUPT`: the engine is an index, and the caller builds it again. The index of the log (`-shm`) is
//! memory that processes share; the first one that opens the file builds it.
//!
//! Invariants:
//! * the default VFS itself opens all other files of SQLite;
//! * the file is not mapped (the table has no `xFetch`), and pages are never read in parts.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::size_of;
use std::ptr::{self, null_mut};
use std::sync::OnceLock;

use fieldstone_core::{Error, Result};
use rusqlite::{Connection, ffi};

use super::checked::{Checked, NONE, pass};
use super::page;

/// SQLite's name for this layer.
pub const NAME: &CStr = c"fieldstone-checked";
/// Asks a file whether it found damage: `xFileControl` with a pointer to an int.
const DAMAGED: c_int = 0x4653_0001;

/// The file that SQLite's pointer stands for.
///
/// # Safety
/// `file` is one that `open` made and that is not closed. SQLite uses the files of a connection in one call
/// at a time, and no call here reaches another file object of the same file.
unsafe fn checked<'a>(file: *mut ffi::sqlite3_file) -> &'a mut Checked {
    // SAFETY: `open` has written a `Checked` there.
    unsafe { &mut *file.cast::<Checked>() }
}

/// The main file of a log.
///
/// # Safety
/// As for `checked`; SQLite closes the log before its main file, which is separate memory.
unsafe fn main_of<'a>(log: &Checked) -> &'a mut Checked {
    // SAFETY: `open` ensured that it is a main file of ours.
    unsafe { &mut *log.main }
}

/// A buffer of SQLite's to fill.
///
/// # Safety
/// `bytes` has `length` bytes that nobody else uses during the call.
unsafe fn buffer<'a>(bytes: *mut c_void, length: c_int) -> &'a mut [u8] {
    // SAFETY: SQLite gives buffers of the length that it names.
    unsafe { std::slice::from_raw_parts_mut(bytes.cast(), usize::try_from(length).unwrap_or(0)) }
}

/// A buffer of SQLite's to write to the file.
///
/// # Safety
/// `bytes` has `length` bytes that nobody changes during the call.
unsafe fn content<'a>(bytes: *const c_void, length: c_int) -> &'a [u8] {
    // SAFETY: SQLite gives buffers of the length that it names.
    unsafe { std::slice::from_raw_parts(bytes.cast(), usize::try_from(length).unwrap_or(0)) }
}

type File = *mut ffi::sqlite3_file;

unsafe extern "C" fn close(file: File) -> c_int {
    // SAFETY: SQLite closes an open file, once.
    let code = unsafe { pass!(checked(file).inner, xClose) };
    // SAFETY: the memory belongs to SQLite, which keeps it until this call returns.
    unsafe { (*file).pMethods = ptr::null() };
    code
}

unsafe extern "C" fn read_main(file: File, bytes: *mut c_void, length: c_int, at: i64) -> c_int {
    // SAFETY: the contract of `xRead`.
    unsafe { checked(file).read_main(buffer(bytes, length), at) }
}

unsafe extern "C" fn write_main(file: File, bytes: *const c_void, length: c_int, at: i64) -> c_int {
    // SAFETY: the contract of `xWrite`.
    unsafe { checked(file).write_main(content(bytes, length), at) }
}

unsafe extern "C" fn read_log(file: File, bytes: *mut c_void, length: c_int, at: i64) -> c_int {
    // SAFETY: the contract of `xRead`; the log and the main file are separate memory.
    unsafe {
        let log = checked(file);
        let main = main_of(log);
        log.read_log(main, buffer(bytes, length), at)
    }
}

unsafe extern "C" fn write_log(file: File, bytes: *const c_void, length: c_int, at: i64) -> c_int {
    // SAFETY: as for `read_log`.
    unsafe {
        let log = checked(file);
        let main = main_of(log);
        log.write_log(main, content(bytes, length), at)
    }
}

unsafe extern "C" fn truncate_main(file: File, size: i64) -> c_int {
    // SAFETY: an open file.
    unsafe {
        checked(file).truncated();
        pass!(checked(file).inner, xTruncate, size)
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
        pass!(this.inner, xFileControl, op, argument)
    }
}

unsafe extern "C" fn abilities(file: File) -> c_int {
    // SAFETY: an open file. A part of a page has no checksum, so reads of parts are switched off.
    unsafe { pass!(checked(file).inner, xDeviceCharacteristics) & !ffi::SQLITE_IOCAP_SUBPAGE_READ }
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
        let code = pass!(this.inner, xShmMap, part, size, extend, at);
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
            // The write has ended: frames that it wrote twice have their checksums, or are gone.
            this.stale_from = NONE;
        }
        pass!(this.inner, xShmLock, offset, count, flags)
    }
}

unsafe extern "C" fn shm_barrier(file: File) {
    // SAFETY: an open file.
    unsafe {
        let inner = checked(file).inner;
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
        pass!(this.inner, xShmUnmap, delete)
    }
}

/// Methods that pass their call on unchanged.
macro_rules! passed_on {
    ($($name:ident = $method:ident($($argument:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(file: File $(, $argument: $type)*) -> c_int {
            // SAFETY: an open file, and SQLite's own arguments.
            unsafe { pass!(checked(file).inner, $method $(, $argument)*) }
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

/// The VFS that this one calls.
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
    // SAFETY: the contract of `xOpen`: `file` has the room that `szOsFile` asks for, aligned to 8 bytes. The
    // name of a log leads to its main file, which is open and stays open longer than the log.
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
        let this: *mut Checked = file.cast();
        let inner: File = this.add(1).cast();
        ptr::write(this, Checked::closed(inner, main));
        (*inner).pMethods = ptr::null();
        let code = open(below, name, inner, flags, out);
        // A file that failed to open may still have to be closed.
        if !(*inner).pMethods.is_null() {
            (*file).pMethods = if main.is_null() { &MAIN_METHODS } else { &LOG_METHODS };
        }
        code
    }
}

/// Functions of the VFS that pass their call on unchanged.
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

/// A symbol of a loaded library.
unsafe extern "C" fn symbol(
    vfs: Vfs,
    library: *mut c_void,
    name: *const c_char,
) -> Option<unsafe extern "C" fn(Vfs, *mut c_void, *const c_char)> {
    // SAFETY: our VFS, and SQLite's own arguments.
    unsafe { (*below(vfs)).xDlSym.and_then(|find| find(below(vfs), library, name)) }
}

fn make() -> c_int {
    // SAFETY: the default VFS exists as long as the process. A registered VFS is never freed or changed, and
    // its functions keep the contracts of SQLite.
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

/// Registers the layer with SQLite, once in each process.
pub fn register() -> Result<()> {
    static DONE: OnceLock<c_int> = OnceLock::new();
    match *DONE.get_or_init(make) {
        ffi::SQLITE_OK => Ok(()),
        code => Err(Error::internal(format!("SQLite refused the file layer: code {code}"))),
    }
}

/// Asks SQLite to leave the end of each page free, in a file that is still empty.
pub fn reserve(connection: &Connection) {
    let mut bytes = page::RESERVED as c_int;
    control_of(connection, ffi::SQLITE_FCNTL_RESERVE_BYTES, &mut bytes);
}

/// Whether damage was found, perhaps by a call without a result: copying the log into the file.
pub fn is_damaged(connection: &Connection) -> bool {
    let mut damaged = 0;
    control_of(connection, DAMAGED, &mut damaged);
    damaged != 0
}

fn control_of(connection: &Connection, op: c_int, value: &mut c_int) {
    // SAFETY: the connection is open, and both calls take a pointer to an int. A database in memory knows
    // neither call and returns a code.
    let code = unsafe {
        ffi::sqlite3_file_control(connection.handle(), c"main".as_ptr(), op, ptr::from_mut(value).cast())
    };
    debug_assert!(matches!(code, ffi::SQLITE_OK | ffi::SQLITE_NOTFOUND), "file control {op}: {code}");
}
