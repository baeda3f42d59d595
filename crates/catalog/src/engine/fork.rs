//! SQLite in a process that forks while other threads use it.
//!
//! SQLite forbids to carry an open connection across a fork, and leaves two things of a process in a
//! child that break even a connection of the child's own:
//!
//! * mutexes that other threads held at that moment, which nobody will ever release. So a fork waits until
//!   no thread holds one: [`enter`] and [`leave`] count threads within, `before` waits until there is
//!   none. A mutex is held for a look at some list, never for a query or a transaction, so that the
//!   wait is short whatever the threads do;
//! * the list of open files with the locks that the process has on them. Locks of a file are no property of
//!   a child, so one that believed the list would read and write without any. [`stat`] gives a file
//!   another number in every generation of processes; so a child finds nothing of its parent's there.
//!
//! Invariants:
//! * SQLite is not touched before [`ready`] was called;
//! * a thread that holds a mutex of SQLite's never waits for a fork;
//! * what waits here waits on atomics alone, which the child can set right by itself;
//! * a child of a process in which this could not be done gets an error, not a hang.

use std::cell::Cell;
use std::ffi::{CStr, c_int};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use fieldstone_core::sync::thread;
use fieldstone_core::{Code, Result};
use rusqlite::ffi;

/// Between two looks of one who waits.
const PAUSE: Duration = Duration::from_micros(50);
/// How often a fork looks whether threads still hold mutexes, 10 s at least; after that the child may not
/// use SQLite.
const LOOKS: u32 = 200_000;

/// A fork is near: nobody enters any more.
const FORKING: u32 = 1 << 31;

/// [`FORKING`], and the number of threads that hold a mutex.
static GATE: AtomicU32 = AtomicU32::new(0);
/// Forks between the first process and this one.
static GENERATION: AtomicU64 = AtomicU64::new(0);
/// Whether SQLite is of no use in this process.
static BROKEN: AtomicBool = AtomicBool::new(false);
/// What [`ready`] has done: nothing, all, what it could; or it is at work in process `n - AT_WORK`.
static STATE: AtomicU64 = AtomicU64::new(NOTHING);
const NOTHING: u64 = 0;
const DONE: u64 = 1;
const UNPROTECTED: u64 = 2;
const AT_WORK: u64 = 16;

/// SQLite's own mutexes.
static MUTEXES: OnceLock<ffi::sqlite3_mutex_methods> = OnceLock::new();
/// The function below [`stat`].
static FSTAT: OnceLock<Fstat> = OnceLock::new();

type Fstat = unsafe extern "C" fn(c_int, *mut libc::stat) -> c_int;

thread_local! {
    /// Mutexes that this thread holds.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// Whether this thread has closed the gate for its fork.
    static CLOSED: Cell<bool> = const { Cell::new(false) };
}

/// Prepares SQLite for forks, once a process; to be called before anything of SQLite's is. Unavailable in
/// a forked child that cannot use it.
pub(super) fn ready() -> Result<()> {
    let mine = AT_WORK + u64::from(std::process::id());
    loop {
        match STATE.load(Ordering::Acquire) {
            DONE | UNPROTECTED => break,
            NOTHING => {
                let begun = STATE.compare_exchange(NOTHING, mine, Ordering::AcqRel, Ordering::Acquire);
                if begun.is_ok() {
                    prepare();
                }
            }
            at_work if at_work == mine => thread::sleep(PAUSE),
            // A thread of the parent's was at it, and had not touched SQLite yet: see `prepare`.
            at_work => {
                let _ = STATE.compare_exchange(at_work, NOTHING, Ordering::AcqRel, Ordering::Acquire);
            }
        }
    }
    if BROKEN.load(Ordering::Acquire) {
        let why = "this process was forked when the catalog's engine could not be prepared for a fork";
        return Err(Code::Forked
            .error(why)
            .with_hint("start a new process (spawn, exec), or use the catalog in the parent"));
    }
    Ok(())
}

fn prepare() {
    // SAFETY: three functions without arguments that stay for as long as the library is loaded. A second
    // registration in a child does no harm: see `before`.
    let registered =
        unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    // From here to `leave` no fork happens.
    enter();
    let done = registered == 0 && configure();
    STATE.store(if done { DONE } else { UNPROTECTED }, Ordering::Release);
    leave();
}

/// Puts our functions around SQLite's mutexes and below its files; `false` where somebody else in the
/// process has begun to use it.
fn configure() -> bool {
    let mut methods = ffi::sqlite3_mutex_methods {
        xMutexInit: None,
        xMutexEnd: None,
        xMutexAlloc: None,
        xMutexFree: None,
        xMutexEnter: None,
        xMutexTry: None,
        xMutexLeave: None,
        xMutexHeld: None,
        xMutexNotheld: None,
    };
    let done = |code: c_int| code == ffi::SQLITE_OK;
    // SAFETY: `sqlite3_config` is called with the argument that its option takes, before SQLite is
    // initialised or after it was shut down; it says so where that does not hold. Nobody has a connection.
    unsafe {
        // Its own methods are there only once it was initialised.
        if !done(ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMUTEX, &raw mut methods))
            || !done(ffi::sqlite3_initialize())
            || !done(ffi::sqlite3_shutdown())
            || !done(ffi::sqlite3_config(ffi::SQLITE_CONFIG_GETMUTEX, &raw mut methods))
        {
            return false;
        }
    }
    if methods.xMutexEnter.is_none() || methods.xMutexTry.is_none() || methods.xMutexLeave.is_none() {
        return false;
    }
    let original = *MUTEXES.get_or_init(|| methods);
    let wrapped = ffi::sqlite3_mutex_methods {
        xMutexEnter: Some(mutex_enter),
        xMutexTry: Some(mutex_try),
        xMutexLeave: Some(mutex_leave),
        ..original
    };
    // SAFETY: as above. The methods are copied. Counting memory would take a mutex for each allocation.
    unsafe {
        done(ffi::sqlite3_config(ffi::SQLITE_CONFIG_MUTEX, &raw const wrapped))
            && done(ffi::sqlite3_config(ffi::SQLITE_CONFIG_MEMSTATUS, 0 as c_int))
            && done(ffi::sqlite3_initialize())
            && wrap_fstat(c"unix", c"fstat")
    }
}

/// # Safety
/// SQLite is initialised, and nobody has a file open by it.
unsafe fn wrap_fstat(vfs: &CStr, call: &CStr) -> bool {
    // Elsewhere SQLite's `struct stat` may be another one than the library's.
    if cfg!(not(target_pointer_width = "64")) {
        return false;
    }
    // SAFETY: the name is a C string; a system that was found stays.
    let found = unsafe { ffi::sqlite3_vfs_find(vfs.as_ptr()) };
    if found.is_null() {
        return false;
    }
    // SAFETY: it is not null and came from SQLite.
    let (get, set) = unsafe { ((*found).xGetSystemCall, (*found).xSetSystemCall) };
    let (Some(get), Some(set)) = (get, set) else { return false };
    // SAFETY: the arguments are of the types that SQLite documents.
    let Some(original) = (unsafe { get(found, call.as_ptr()) }) else { return false };
    // SAFETY: SQLite keeps all its system calls as pointers of one type; this one is `fstat`'s.
    let original = unsafe { std::mem::transmute::<unsafe extern "C" fn(), Fstat>(original) };
    FSTAT.get_or_init(|| original);
    // SAFETY: SQLite casts it back to the type of `fstat` before it calls it.
    let ours = unsafe { std::mem::transmute::<Fstat, unsafe extern "C" fn()>(stat) };
    // SAFETY: as for `get`; nobody has a file open, so that all numbers are given by the same function.
    unsafe { set(found, call.as_ptr(), Some(ours)) == ffi::SQLITE_OK }
}

// ---- what SQLite calls

unsafe extern "C" fn mutex_enter(mutex: *mut ffi::sqlite3_mutex) {
    enter();
    if let Some(original) = MUTEXES.get().and_then(|methods| methods.xMutexEnter) {
        // SAFETY: passed on as it came.
        unsafe { original(mutex) };
    }
}

unsafe extern "C" fn mutex_try(mutex: *mut ffi::sqlite3_mutex) -> c_int {
    enter();
    let taken = match MUTEXES.get().and_then(|methods| methods.xMutexTry) {
        // SAFETY: passed on as it came.
        Some(original) => unsafe { original(mutex) },
        None => ffi::SQLITE_BUSY,
    };
    if taken != ffi::SQLITE_OK {
        leave();
    }
    taken
}

unsafe extern "C" fn mutex_leave(mutex: *mut ffi::sqlite3_mutex) {
    if let Some(original) = MUTEXES.get().and_then(|methods| methods.xMutexLeave) {
        // SAFETY: passed on as it came.
        unsafe { original(mutex) };
    }
    leave();
}

unsafe extern "C" fn stat(file: c_int, facts: *mut libc::stat) -> c_int {
    let Some(original) = FSTAT.get() else { return -1 };
    // SAFETY: passed on as it came.
    let code = unsafe { original(file, facts) };
    if code == 0 {
        // The uppermost bits of a device's number are free on all systems that number devices by use.
        let mark = GENERATION.load(Ordering::Relaxed) << 44;
        // SAFETY: the caller's `struct stat`, just filled.
        unsafe { (*facts).st_dev ^= mark };
    }
    code
}

// ---- the gate

/// Says that this thread is about to hold a mutex; waits while another one forks.
fn enter() {
    let depth = DEPTH.get();
    DEPTH.set(depth + 1);
    if depth > 0 {
        return;
    }
    while GATE.fetch_add(1, Ordering::SeqCst) & FORKING != 0 {
        GATE.fetch_sub(1, Ordering::SeqCst);
        thread::sleep(PAUSE);
    }
}

/// Says that it holds one less.
fn leave() {
    let depth = DEPTH.get().saturating_sub(1);
    DEPTH.set(depth);
    if depth == 0 {
        GATE.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What the gate counts for this thread.
fn own() -> u32 {
    u32::from(DEPTH.get() > 0)
}

/// Waits until something holds; `false` where that took too long.
fn until(mut holds: impl FnMut() -> bool) -> bool {
    for _ in 0..LOOKS {
        if holds() {
            return true;
        }
        thread::sleep(PAUSE);
    }
    false
}

/// Before a fork: closes the gate and waits until only this thread may be within.
extern "C" fn before() {
    if CLOSED.get() {
        return;
    }
    // Another thread may be forking.
    if !until(|| GATE.fetch_or(FORKING, Ordering::SeqCst) & FORKING == 0) {
        return;
    }
    let alone = until(|| GATE.load(Ordering::SeqCst) == FORKING | own());
    CLOSED.set(alone);
    if !alone {
        GATE.fetch_and(!FORKING, Ordering::SeqCst);
    }
}

extern "C" fn after_in_parent() {
    if CLOSED.replace(false) {
        GATE.fetch_and(!FORKING, Ordering::SeqCst);
    }
}

extern "C" fn after_in_child() {
    GENERATION.fetch_add(1, Ordering::SeqCst);
    let alone = CLOSED.replace(false) || GATE.load(Ordering::SeqCst) == own();
    if !alone || STATE.load(Ordering::SeqCst) == UNPROTECTED {
        BROKEN.store(true, Ordering::SeqCst);
    }
    // Whoever else was within is not in this process.
    GATE.store(own(), Ordering::SeqCst);
}
